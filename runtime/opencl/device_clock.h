/* A device's profile clock, told in the host's time.
 *
 * Drivers give the times of an event on a clock of their own: NVIDIA's is CLOCK_REALTIME, PoCL's
 * CLOCK_MONOTONIC_RAW, and clGetDeviceAndHostTimer is refused by both. What is known is that
 * CL_PROFILING_COMMAND_QUEUED is taken inside the call that enqueues the command: host times before
 * and after that call enclose it. So the difference of the two clocks lies in an interval; each new
 * pair of host times narrows it, and it widens as time goes by, since clocks drift.
 *
 * Pure arithmetic. Used with the engine lock held, and before that by the thread that creates the
 * runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_DEVICE_CLOCK_H
#define COX_OPENCL_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct cox__device_clock {
    bool known;     /* the interval is one */
    int64_t low_ns; /* bounds of device time minus host time */
    int64_t high_ns;
    uint64_t at_ns; /* host time of the newest pair */
};

/* The stamp was taken between these two host times. */
void cox__cl_device_clock_enclose(struct cox__device_clock *clock, uint64_t stamp,
                                  uint64_t before_ns, uint64_t after_ns);

/* The host's time of a stamp, off by cox__cl_device_clock_error_ns() at most; 0 = unknown. */
uint64_t cox__cl_device_clock_host_ns(const struct cox__device_clock *clock, uint64_t stamp);
uint64_t cox__cl_device_clock_error_ns(const struct cox__device_clock *clock);

#endif
