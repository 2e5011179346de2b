/* The first part: what the devices are and how long each needs for a frame. The other parts are
 * planned from it.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_PROBE_H
#define COX_EXAMPLES_LAB_LAPTOP_PROBE_H

#include <coxswain/sched.h>
#include <stdbool.h>
#include <stdint.h>

/* "" = unknown. */
struct laptop_device {
    char name[128], platform[128], driver[128], type[16], mode[16];
};

struct laptop_probe {
    uint32_t device_count;
    struct laptop_device devices[COX_DEVICES_MAX];
    double single_device_ns[COX_DEVICES_MAX],
        oracle_ns; /* of a frame of the size on the command line */
};

/* From the last run of the database. Prints the reason if it returns false. */
bool laptop_probe_read(const char *database, struct laptop_probe *probe);

#endif
