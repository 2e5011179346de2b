/* Conversion of a device's clock to host time, from pairs of host times that enclose the device's time stamps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/device_clock.h"

#include <criterion/criterion.h>

enum { CALL_NS = 8000, FRAME_NS = 500000 };

static const uint64_t begin_ns = 5000000000000, offset_ns = 1700000000000000000;

/* The device time at a host time, if the device's clock gains `ppm` parts per million. */
static uint64_t stamp_at(uint64_t host_ns, int ppm)
{
    return host_ns + offset_ns + (uint64_t)((int64_t)(host_ns - begin_ns) / 1000000 * ppm);
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* A thousand bands. Their commands are enqueued in calls of CALL_NS, and get their time stamps at various times
 * within the calls. */
static void follow(int ppm)
{
    struct cox__device_clock clock = {0};
    uint32_t seed = 9;
    for (uint32_t band = 0; band < 1000; band++) {
        const uint64_t before = begin_ns + (uint64_t)band * FRAME_NS;
        seed = seed * 1664525u + 1013904223u;
        cox__cl_device_clock_enclose(&clock, stamp_at(before + (seed >> 16) % CALL_NS, ppm), before, before + CALL_NS);
        const uint64_t end = before + FRAME_NS / 2, error = cox__cl_device_clock_error_ns(&clock);
        cr_assert_leq(error, CALL_NS / 2 + 1);
        cr_assert_leq(distance(cox__cl_device_clock_host_ns(&clock, stamp_at(end, ppm)), end), error + 100,
                      "band %u, %d ppm", band, ppm);
    }
}

Test(device_clock, is_off_by_no_more_than_half_an_enqueue_call)
{
    follow(0);
}

Test(device_clock, follows_a_clock_that_drifts)
{
    follow(80);
    follow(-80);
}

Test(device_clock, begins_anew_when_a_clock_was_set)
{
    struct cox__device_clock clock = {0};
    cox__cl_device_clock_enclose(&clock, stamp_at(begin_ns, 0), begin_ns, begin_ns + CALL_NS);
    const uint64_t later = begin_ns + FRAME_NS, hour = 3600000000000;
    cox__cl_device_clock_enclose(&clock, stamp_at(later, 0) + hour, later, later + CALL_NS);
    const uint64_t host = cox__cl_device_clock_host_ns(&clock, stamp_at(later, 0) + hour);
    cr_assert_leq(distance(host, later), CALL_NS);
}

Test(device_clock, a_call_in_which_the_thread_lost_its_core_says_little)
{
    struct cox__device_clock clock = {0};
    cox__cl_device_clock_enclose(&clock, stamp_at(begin_ns, 0), begin_ns, begin_ns + CALL_NS);
    const uint64_t later = begin_ns + FRAME_NS;
    cox__cl_device_clock_enclose(&clock, stamp_at(later, 0), later, later + 1000 * CALL_NS);
    cr_assert_leq(cox__cl_device_clock_error_ns(&clock), CALL_NS);
}

Test(device_clock, knows_nothing_at_first)
{
    const struct cox__device_clock clock = {0};
    cr_assert_eq(cox__cl_device_clock_host_ns(&clock, 12345), 0);
}
