/* SPDX-License-Identifier: Apache-2.0 */
#include "device_clock.h"

/* How fast the interval widens. If clocks drift apart faster, a pair of host times shows it, and
 * the interval starts again from that pair. */
#define DRIFT_PPM 100

void cox__cl_device_clock_enclose(struct cox__device_clock *clock, uint64_t stamp,
                                  uint64_t before_ns, uint64_t after_ns)
{
    const int64_t low = (int64_t)(stamp - after_ns), high = (int64_t)(stamp - before_ns);
    if (after_ns < before_ns)
        return;

    uint64_t passed_ns = 0;
    if (after_ns > clock->at_ns)
        passed_ns = after_ns - clock->at_ns;

    const int64_t drift = (int64_t)(passed_ns / (1000000 / DRIFT_PPM));
    clock->low_ns -= drift;
    clock->high_ns += drift;
    clock->at_ns = after_ns;

    /* The first pair, or a clock was set. */
    if (!clock->known || low > clock->high_ns || high < clock->low_ns) {
        clock->known = true;
        clock->low_ns = low;
        clock->high_ns = high;
        return;
    }

    if (low > clock->low_ns)
        clock->low_ns = low;
    if (high < clock->high_ns)
        clock->high_ns = high;
}

uint64_t cox__cl_device_clock_host_ns(const struct cox__device_clock *clock, uint64_t stamp)
{
    if (!clock->known)
        return 0;
    return stamp - (uint64_t)(clock->low_ns + (clock->high_ns - clock->low_ns) / 2);
}

uint64_t cox__cl_device_clock_error_ns(const struct cox__device_clock *clock)
{
    return (uint64_t)(clock->high_ns - clock->low_ns) / 2;
}
