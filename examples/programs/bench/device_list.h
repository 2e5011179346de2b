/* Devices of a runtime as text, for cox_session_params.devices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_DEVICE_LIST_H
#define BENCH_DEVICE_LIST_H

#include <coxswain/coxswain.h>

struct bench_device_list {
    char text[8 * COX_DEVICES_MAX];
};

/* "#0,#2" for the runtime's devices 0 and 2. */
struct bench_device_list bench_device_list(const uint32_t *devices, uint32_t count);

#endif
