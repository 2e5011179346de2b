/* What a recorded run says of its devices: t(n) = fixed + ns_per_row * n for a device's first band of a frame, alone.
 *
 * Disturbances make a device slower by a factor, for a while. So the shape, fixed cost over cost per row, comes from
 * pairs of bands of unequal length that were near each other in time: the ratio of their times does not know how fast
 * the device was. Least absolute deviations of the logarithms; outliers have little say. The scale then is the median
 * over the phase with the most frames. Bands of neighbouring frames are no pair: a policy gives a device fewer rows
 * because its last band took long, which would look like a cost per row.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPLAY_FIT_H
#define COX_EXAMPLES_LAB_REPLAY_FIT_H

#include "recorded_run.h"

struct lab_replay_fit {
    size_t bands; /* it is made from; 0 = the device never had rows and the rest says nothing */
    double fixed_ns, launch_ns, ns_per_row; /* alone */
    double gap_ns[2];                       /* before the first band, before further ones */
    double slowdown;                        /* while another device works too; >= 1 */
    double
        kernel_part; /* of a band's time, or, if `kernel_of_rows`, of that without the fixed cost; 0 = unknown */
    double
        uncertain; /* standard error of the fixed cost's part of a band's time; 1 = nothing is known of it */
    bool kernel_of_rows; /* whichever differs less from band to band */
    bool fixed_known;    /* `uncertain` is small enough; else the fixed cost is taken to be none */
    bool slowdown_known; /* there were bands alone and beside the others */
    bool launch_known;   /* there were frames with several launches */
};

/* Time alone that a launch would have taken, from what it took; without gaps. */
double lab_replay_alone(const struct lab_replay_fit *fit, const struct lab_replay_band *band);

/* Cost alone by the model; without gaps. */
double lab_replay_cost(const struct lab_replay_fit *fit, uint32_t rows, uint32_t launch);

/* The phase that most frames of the session are of. */
uint32_t lab_replay_main_phase(const struct lab_replay_session *session);

/* All devices, from all sessions of the run; `phase` is where the scale comes from. False if out of memory. */
bool lab_replay_fit(const struct lab_replay_data *data, uint32_t phase,
                    struct lab_replay_fit *fits);

/* Sorts; NaN for no values. */
double lab_replay_median(double *values, size_t count);

#endif
