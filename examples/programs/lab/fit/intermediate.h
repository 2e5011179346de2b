/* What the files of the estimate share: estimate.c finds the devices' costs, delays.c how late the
 * engine and the application are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_INTERMEDIATE_H
#define COX_EXAMPLES_LAB_FIT_INTERMEDIATE_H

#include "costs.h"
#include "estimate.h"
#include "lab/replay/device_costs.h"
#include "sample.h"

enum { LAB_FIT_BANDS_LEAST = 20 };

/* Intermediate results. */
struct lab_fit_work {
    const struct lab_replay_data *data;
    struct lab_fit *fit;
    struct lab_replay_fit models[COX_DEVICES_MAX];
    bool by_kernel[COX_DEVICES_MAX];
    struct lab_fit_costs costs[COX_DEVICES_MAX]; /* of devices without a profile */
    double *room; /* for as many values as there are bands and frames */
    struct lab_sample beyond, handed, submitted, handed_over;
    struct lab_sample delays; /* of the engine; negative if another band's end cut it short */
};

/* delays.c: find `engine`, `application`, `busy_ns`, `pause_frames` and each device's `submit_ns`.
 * The costs are known. False if out of memory. */
bool lab_fit_find_delays(struct lab_fit_work *work);

#endif
