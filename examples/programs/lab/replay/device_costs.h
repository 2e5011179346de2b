/* The costs of a device, estimated from a recorded run: t(n) = fixed + ns_per_row * n for its first
 * band of a frame, alone. For replay and fit.
 *
 * A disturbance makes a device slower by a factor for a while. The shape is the fixed cost over the
 * cost of a row. It comes from pairs of bands of different length that were near in time. The ratio
 * of their times does not depend on the device's speed. The fit minimizes absolute deviations of
 * logarithms, so outliers hardly count. The scale is the median over the phase with most frames.
 *
 * Bands of adjacent frames are no pair. A policy gives a device fewer rows because its last band
 * was slow, and this would look like a cost of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPLAY_FIT_H
#define COX_EXAMPLES_LAB_REPLAY_FIT_H

#include "recorded_run.h"

struct lab_replay_fit {
    size_t bands; /* used for it; 0 = the device never had rows and the rest is meaningless */
    double fixed_ns, launch_ns, ns_per_row; /* alone */
    double gap_ns[2];                       /* before the first band, before further ones */
    double slowdown;                        /* while another device works too; >= 1 */
    double kernel_part;                     /* the kernels' part of a band's time; 0 = unknown */
    bool kernel_of_rows; /* it is the part of the time without the fixed cost, which varies less */
    double uncertain;    /* standard error of the fixed cost's part of a band's time; 1 = unknown */
    bool fixed_known;    /* `uncertain` is small enough; else the fixed cost is set to 0 */
    bool slowdown_known; /* there were bands alone and bands while other devices worked */
    bool launch_known;   /* there were frames with several launches */
};

/* The time that a launch would have taken alone; without gaps. */
double lab_replay_alone(const struct lab_replay_fit *fit, const struct lab_replay_band *band);

/* The model's cost of a launch alone; without gaps. */
double lab_replay_cost(const struct lab_replay_fit *fit, uint32_t rows, uint32_t launch);

/* The phase with most frames of the session. */
uint32_t lab_replay_main_phase(const struct lab_replay_session *session);

/* All devices, from all sessions of the run; the scale comes from `phase`. False if out of
 * memory. */
bool lab_replay_fit(const struct lab_replay_data *data, uint32_t phase,
                    struct lab_replay_fit *fits);

/* Sorts; NaN for no values. */
double lab_replay_median(double *values, size_t count);

#endif
