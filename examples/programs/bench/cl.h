/* What all hand-written OpenCL of cox-bench needs: error messages, and the device of a
 * cox_device_info. Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CL_H
#define BENCH_CL_H

#include <CL/cl.h>

#include <coxswain/coxswain.h>
#include <stdbool.h>

/* Release an object unless it is NULL. `Kind` as in clRelease*. */
#define BENCH_CL_RELEASE(Kind, object) \
    do {                               \
        if (object)                    \
            clRelease##Kind(object);   \
    } while (0)

/* Whether a call failed; prints a message if so. */
bool bench_cl_failed(cl_int code, const char *call);

/* Find the device that `info` describes. The caller must not release it. False after a message. */
bool bench_cl_find_device(const struct cox_device_info *info, cl_device_id *device);

/* End minus start of a command by its event's profile; 0 = the profile does not say. */
double bench_cl_event_ns(cl_event event);

#endif
