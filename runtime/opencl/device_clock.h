/* A device's profile clock, converted to the host's time.
 *
 * Each driver has another clock for the times of an event: NVIDIA uses CLOCK_REALTIME, PoCL
 * CLOCK_MONOTONIC_RAW, and both refuse clGetDeviceAndHostTimer. But a driver takes
 * CL_PROFILING_COMMAND_QUEUED inside the call that enqueues the command, so host times before and
 * after that call enclose it. This gives an interval for the difference of the two clocks. Each new
 * pair of host times narrows the interval. It widens with time, since clocks drift.
 *
 * Pure arithmetic. Used with the engine lock held, and before that by the thread that creates the
 * runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_DEVICE_CLOCK_H
#define COX_OPENCL_DEVICE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct cox__device_clock {
    bool known;     /* the bounds are valid */
    int64_t low_ns; /* bounds of device time minus host time */
    int64_t high_ns;
    uint64_t at_ns; /* host time of the newest pair */
};

/* Narrow the interval: the stamp was taken between these two host times. */
void cox__cl_device_clock_enclose(struct cox__device_clock *clock, uint64_t stamp,
                                  uint64_t before_ns, uint64_t after_ns);

/* The host's time of a stamp; 0 = unknown. The error is at most cox__cl_device_clock_error_ns(). */
uint64_t cox__cl_device_clock_host_ns(const struct cox__device_clock *clock, uint64_t stamp);
uint64_t cox__cl_device_clock_error_ns(const struct cox__device_clock *clock);

#endif
