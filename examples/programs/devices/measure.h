/* What a device does with small frames and with large ones: how soon their end is known, and
 * whether they are copied.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_MEASURE_H
#define DEVICES_MEASURE_H

#include <coxswain/coxswain.h>

struct measured_ends {
    cox_status status;     /* not COX_OK: it could not be measured */
    bool told;             /* the device's clock told every end, */
    double clock_error_us; /* right to this at worst; */
    double p50_us, p99_us; /* and so much later the end was noticed */
};

struct measured_memory {
    cox_status status;
    bool
        wrapped; /* a large frame takes no longer than a small one: the device works on the host's memory */
    double
        extra_us; /* that a frame of 64 MiB there and back takes more than one of 64 KiB; the least of some */
    double
        gb_per_s; /* of a copy that would take as long: 1e9 bytes a second, there and back together */
};

struct measured {
    struct measured_ends ends;
    struct measured_memory memory;
};

/* Some frames, one after the other, on the runtime's device of that number. Blocks: for compilation
 * and a second or two. */
void measure_device(cox_runtime *runtime, uint32_t device, struct measured *out);

#endif
