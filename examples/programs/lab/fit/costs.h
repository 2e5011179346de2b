/* What launches of one device cost in a recorded run, by its bands alone: for devices whose kernels
 * have no profile. Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_COSTS_H
#define COX_EXAMPLES_LAB_FIT_COSTS_H

#include "lab/replay/recorded_run.h"

static inline bool lab_fit_says_cost(const struct lab_replay_band *band)
{
    return band->good && !band->again;
}

/* Whether the session is a policy's and has bands with times. The oracle of a simulation has no
 * times. */
bool lab_fit_is_policy(const struct lab_replay_session *session);

/* A first band of n rows takes fixed_ns + row_ns * n. If it waited in the device's queue, the
 * device copied it in while it worked at the band before. Then it takes up to ahead_ns +
 * ahead_row_ns * n less, but no more than the wait. */
struct lab_fit_costs {
    double fixed_ns, row_ns;
    double ahead_ns, ahead_row_ns;
    double slower; /* while other devices work; 1 = not slower */
};

/* `room`: for five values of each band of the run. False if there are too few bands; `out` does not
 * change then. */
bool lab_fit_find_costs(const struct lab_replay_data *data, uint32_t device, double *room,
                        struct lab_fit_costs *out);

/* What the band should have taken. */
double lab_fit_cost(const struct lab_fit_costs *costs, const struct lab_replay_band *band);

#endif
