/* What every policy promises, of the library or not.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_POLICY_PROMISES_H
#define COX_TESTS_POLICY_PROMISES_H

#include "support/random_jitter.h"
#include "unit/sched/policy_at_work.h"

/* It gives a valid split under random views, lag and absurd measurements. */
static inline void check_splits(const struct cox_policy *given, uint64_t seed)
{
    static const uint64_t absurd[] = {0, 1, 2, 1000, 1000000, 1000000000, UINT64_MAX / 2, UINT64_MAX};
    random_begin(seed);
    for (uint32_t run = 0; run < 300; run++) {
        view = (struct cox_sched_view){.device_count = 1 + random_index(run % 10 == 0 ? COX_DEVICES_MAX : 5),
                                       .devices = devices,
                                       .rows = 1 + random_index(run % 3 == 0 ? 40 : 5000),
                                       .row_alignment = 1 + random_index(run % 2 ? 1 : 40)};
        if (run % 4 == 0)
            view.min_band_rows = random_index(view.rows + 10);
        if (run % 50 == 0)
            view.rows = INT32_MAX - random_index(3);
        for (uint32_t d = 0; d < view.device_count; d++)
            devices[d] = (struct cox_sched_device){.usable = true,
                                                   .hint = random_index(4) ? random_unit() * 100
                                                                           : (random_index(2) ? 0 : 1e300),
                                                   .single_device_ns = random_index(3) ? absurd[random_index(8)] : 0};
        begin_policy(given, &(struct cox_policy_options){.device = random_index(2)});
        struct cox_split late[3];
        for (uint32_t frame = 0; frame < 120; frame++) {
            view.frame = frame;
            if (random_index(8) == 0) {
                uint32_t d = random_index(view.device_count);
                devices[d].usable = !devices[d].usable;
                if (random_index(2))
                    devices[random_index(view.device_count)].single_device_ns = absurd[random_index(8)];
                bool none = true;
                for (uint32_t i = 0; i < view.device_count; i++)
                    none &= !devices[i].usable;
                devices[d].usable |= none;
            }
            split_frame();
            late[frame % 3] = split;
            uint32_t least = view.min_band_rows ? view.min_band_rows : view.row_alignment;
            for (uint32_t i = 0; i < split.band_count && split.band_count > 1; i++)
                cr_assert_geq(split.bands[i].rows, least, "%s gives a band of %u rows, the minimum is %u", policy->name,
                              split.bands[i].rows, least);
            if (frame < 2 || !policy->observe)
                continue;
            const struct cox_split *done = &late[(frame - 2) % 3];
            for (uint32_t i = 0; i < done->band_count; i++) {
                struct cox_measurement m = {.frame = random_index(9) ? frame - 2 : random_index(UINT32_MAX),
                                            .device = random_index(30) ? done->bands[i].device : 77,
                                            .first_row = done->bands[i].first_row,
                                            .rows = random_index(30) ? done->bands[i].rows : 0,
                                            .wall_ns = random_index(2) ? absurd[random_index(8)]
                                                                       : random_index(1000000),
                                            .kernel_ns = absurd[random_index(8)]};
                policy->observe(state, &m);
            }
        }
    }
}

/* It refuses to split over no device. */
static inline void check_no_device(const struct cox_policy *given)
{
    see(10, 1, 2);
    devices[0].usable = devices[1].usable = false;
    begin_policy(given, NULL);
    cr_assert_eq(policy->split(state, &view, &split), COX_E_NO_DEVICE, "%s", policy->name);
}

#endif
