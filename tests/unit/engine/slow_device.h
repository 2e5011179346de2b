/* A policy at work in a session of two devices that are alike, until one of them becomes three times slower.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SLOW_DEVICE_H
#define COX_TESTS_SLOW_DEVICE_H

#include "map_test.h"

/* Run the session's policy, whose name is `name`. `follows`: it has to share the rows well in the end. */
static inline void check_slow_device(const struct cox__session_spec *given, const char *name, bool follows)
{
    static const struct fake_params twins = {
        .device_count = 2, .devices = {{.fixed_ns = 5e3, .ns_per_row = 2e3}, {.fixed_ns = 5e3, .ns_per_row = 2e3}}};
    const double ratios[] = {0.25, 0.75};
    struct cox__session_spec params = *given;
    params.in_flight = 1;
    params.policy_options = &(const struct cox_policy_options){.ratios = ratios, .ratio_count = 2};
    open_rig(&twins, 400, 16, 4);
    open_session(&params);
    const struct cox_session_info info = rig_info(session);
    cr_assert_str_eq(info.policy, name);
    run_frames(0, 4);
    FAULT(.kind = FAKE_SLOW, .device = 0, .count = UINT32_MAX, .factor = 3);
    run_frames(4, 56);
    const struct cox_frame_report *last = reported(rig_report_count(rig) - 1);
    if (follows) {
        /* The best split is 3 : 1 and takes 600 us. A chunk of 1/32 costs its share of launches. The last one
         * ends at most 93 us after the others. */
        uint32_t devices = 0;
        for (uint32_t b = 0; b < last->band_count; b++)
            devices |= 1u << last->bands[b].device;
        cr_assert_eq(devices, 3, "%s: %s", name, cox_reason_text(last->total.reason));
        cr_assert_lt(last->total.end_ns - last->total.start_ns, last->total.pool_rows == 400 ? 850000u : 650000u,
                     "%s: %llu ns", name, (unsigned long long)(last->total.end_ns - last->total.start_ns));
    }
    close_rig();
}

#endif
