/* Measurements of one device: how soon the end of a small frame is noticed, and whether large
 * frames are copied.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_MEASURE_H
#define DEVICES_MEASURE_H

#include <coxswain/coxswain.h>

/* Of frames of 64 KiB. */
struct measured_ends {
    cox_status status;     /* not COX_OK: it could not be measured */
    bool told;             /* the clock of the device gave the end of every frame */
    double clock_error_us; /* largest error of this clock */
    double p50_us, p99_us; /* time from the end of a frame until the host notices it */
};

/* A frame of 64 MiB against one of 64 KiB, both copied there and back. */
struct measured_memory {
    cox_status status;
    bool wrapped;    /* there is no copy: the device works in host memory */
    double extra_us; /* extra time of the large frame; the fastest of each kind count */
    double gb_per_s; /* of a copy that takes this extra time: 1e9 bytes a second, there and back */
};

struct measured {
    struct measured_ends ends;
    struct measured_memory memory;
};

/* Run frames, one after the other, on one device of the runtime. Blocks for the compilation and a
 * second or two. */
void measure_device(cox_runtime *runtime, uint32_t device, struct measured *out);

#endif
