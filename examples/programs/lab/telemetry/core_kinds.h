/* The kinds of CPU cores, such as P cores and E cores, and the CPUs of each kind. Used by the
 * telemetry's CPU sources and by `cox-lab laptop`.
 *
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_CORE_KINDS_H
#define COX_EXAMPLES_LAB_TELEMETRY_CORE_KINDS_H

#include <stdbool.h>
#include <stdint.h>

enum { LAB_CORE_KINDS_MAX = 3, LAB__CORES_MAX = 1024 };

struct lab_core_kind {
    char name[24]; /* "P cores" */
    uint32_t cores;
    char cpus[256]; /* the first hardware thread of each core: "0,2,4" */
};

/* Fastest kind first. Returns the number of kinds; 0 if the system does not list them. `sysfs` NULL
 * means /sys. */
uint32_t lab_core_kinds(const char *sysfs, struct lab_core_kind kinds[LAB_CORE_KINDS_MAX]);

/* --- For cpus.c: every core ------------------------------------------------------------------- */

struct lab__core {
    uint32_t cpu;     /* the first hardware thread */
    uint32_t class;   /* by PMU: core, atom, lowpower */
    uint32_t package; /* physical package */
    double speed;     /* greatest frequency, or capacity */
    uint32_t kind;
};

struct lab__cores {
    uint32_t count, kind_count;
    const char *names[LAB_CORE_KINDS_MAX];
    struct lab__core all[LAB__CORES_MAX]; /* fastest first */
};

/* The caller frees the result. NULL if there are no cores below `root`, or no memory. */
struct lab__cores *lab__cores_read(const char *root);

#endif
