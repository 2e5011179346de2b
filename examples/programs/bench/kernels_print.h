/* The output of cox-bench kernels as text or JSON, device by device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_KERNELS_PRINT_H
#define BENCH_KERNELS_PRINT_H

#include "common/json.h"
#include "kernels_state.h"

/* `json`: NULL = text. */
void kernels_print_head(struct json *json, const struct kernels *kernels);
void kernels_print_device(struct json *json, const struct kernels *kernels);
void kernels_print_tail(struct json *json, const struct kernels *kernels);

#endif
