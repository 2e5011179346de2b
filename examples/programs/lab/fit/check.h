/* Whether a fitted scenario forecasts what was recorded: for `cox-lab fit`.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_CHECK_H
#define COX_EXAMPLES_LAB_FIT_CHECK_H

#include "estimate.h"

/* A policy's periods, recorded and forecast. */
struct lab_fit_check {
    char name[80];
    bool simple; /* it keeps no model */

    /* The policy's code has changed since the recording. Then the forecast is of today's code, and
     * `own` repeats the recorded splits. */
    bool changed;
    double mean_ns, p99_ns;
    double forecast_ns, forecast_p99_ns; /* over all seeds */
    double own_ns, own_p99_ns;           /* with the levels that its session had; 0 = unknown */
};

/* Simulate the recorded policies, and each device that was recorded alone, in the scenario. Fills
 * up to `most` checks. False with a sentence in `why` if there is nothing to compare. */
bool lab_fit_check(const struct lab_replay_data *data, const struct lab_fit *fit,
                   const char *scenario, uint32_t seeds, struct lab_fit_check *checks,
                   uint32_t most, uint32_t *count, char *why, size_t why_bytes);

/* The share by which the worse of the two forecasts is off. For a changed policy only `own` counts,
 * and 0 if it is unknown. */
double lab_fit_error(const struct lab_fit_check *check);

/* A larger error makes the scenario useless for the policy. */
#define LAB_FIT_ERROR_MAX 0.10

/* Whether the simple policies have the same order by their means. Policies whose recorded means
 * differ by less than 1 % have no order. */
bool lab_fit_same_order(const struct lab_fit_check *checks, uint32_t count, bool own);

#endif
