/* What the hand-written OpenCL of cox-bench shares: the device found again, errors said.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_CL_H
#define BENCH_CL_H

#include "shared.h"

#include <CL/cl.h>

/* Whether a call failed; says so on standard error. */
bool bench_cl_failed(cl_int code, const char *call);

/* The device that `info` describes; not to be released. False after a message. */
bool bench_cl_find_device(const struct cox_device_info *info, cl_device_id *device);

#endif
