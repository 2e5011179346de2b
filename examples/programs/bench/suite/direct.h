/* A problem in hand-written OpenCL, on one device or on several with given shares of the rows.
 *
 *   - Buffers on devices are made once and have the size of the whole memory. Rows keep their
 *     places. A band begins at a global work offset.
 *   - Processors work in the host's memory without copies, unless they were asked to be staged.
 *   - Other devices have three in-order queues, so that transfers and kernels overlap.
 *   - Data stay on the device. Devices exchange only the rows that a kernel reads.
 *   - Devices of one context exchange rows directly, others through pinned memory of the host.
 *   - All commands are enqueued without waiting, unless the host must do something in between.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_DIRECT_H
#define BENCH_SUITE_DIRECT_H

#include "plan.h"

struct suite_direct;

/* Compile the kernels for the devices and make all memory. `problem` must outlive it. NULL after a
 * message. */
struct suite_direct *suite_direct_create(const struct suite_problem *problem,
                                         const struct cox_device_info *devices, uint32_t count);

/* Plan a run over the devices with these parts of the rows, whose sum is 1. 0 = not used. False
 * after a message. */
bool suite_direct_split(struct suite_direct *direct, const double *shares);

/* How devices of one context exchange rows: through the host's memory, or directly, which is the
 * default. For the next suite_direct_split. Returns whether there are such devices. */
bool suite_direct_through_host(struct suite_direct *direct, bool through_host);

/* Run all frames on fresh data. `*wall_ns` is from data in the host's memory to results in the
 * host's memory. False after a message. */
bool suite_direct_run(struct suite_direct *direct, double *wall_ns);

/* The content of a memory after a run. */
const void *suite_direct_data(const struct suite_direct *direct, uint32_t memory);

/* Accepts NULL. */
void suite_direct_destroy(struct suite_direct **direct);

#endif
