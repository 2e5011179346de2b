/* Devices that decode and encode video, as libavutil knows them: cuda, vaapi, vulkan and others.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HARDWARE_H
#define HARDWARE_H

#include "common/error.h"

#include <stdio.h>

/* Whether `hwdec` is "none", "auto", or NAME[:DEVICE] with a name that libavutil knows. If not,
 * `error` lists the names. */
bool hardware_find(const char *hwdec, struct error *error);

/* Print the devices, whether they open here, and what they decode and encode. */
bool hardware_list(FILE *to, struct error *error);

#endif
