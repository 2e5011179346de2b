/* The processor's cores by kind, and which CPUs they are.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_KINDS_H
#define COX_EXAMPLES_LAB_TELEMETRY_KINDS_H

#include <stdbool.h>
#include <stdint.h>

enum { LAB_CORE_KINDS_MAX = 3 };

struct lab_core_kind {
    char name[24]; /* "P cores" */
    uint32_t cores;
    char cpus[256]; /* the first hardware thread of each: "0,2,4" */
};

/* Fastest first. Returns how many kinds there are; 0 = the system does not say. `sysfs` NULL = /sys. */
uint32_t lab_core_kinds(const char *sysfs, struct lab_core_kind kinds[LAB_CORE_KINDS_MAX]);

#endif
