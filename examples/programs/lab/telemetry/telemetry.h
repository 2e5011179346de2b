/* What the machine says of itself while frames run: clocks, temperatures, power, throttling, settings. Everything is
 * found once; reading it again opens nothing and allocates nothing.
 *
 * Most of it are files below /sys; two interfaces are none: perf's energy counters (where powercap may not be read) and
 * NVIDIA's library. What cannot be read is no error: it is a note, with what would permit it.
 * Thread-safety: one lab_telemetry from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_H
#define COX_EXAMPLES_LAB_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum lab_telemetry_kind {
    LAB_CLOCK,       /* MHz */
    LAB_TEMPERATURE, /* °C */
    LAB_POWER,       /* W; of a battery what is drawn from it, negative while it is charged */
    LAB_LOAD,        /* % */
    LAB_THROTTLE,    /* events since lab_telemetry_open */
    LAB_SETTING,     /* text */
    LAB_TELEMETRY_KINDS
};

/* "clock", ...; "MHz", ... ("" for settings). */
const char *lab_telemetry_kind_name(enum lab_telemetry_kind kind);
const char *lab_telemetry_unit(enum lab_telemetry_kind kind);

struct lab_telemetry_source {
    enum lab_telemetry_kind kind;
    char name[80];    /* "clock of the P cores" */
    char part[48];    /* of the machine: "P cores", "package-0", "card1" */
    char origin[160]; /* the file, and how many more; or the interface */
};

struct lab_telemetry_params {
    const char *sysfs; /* the folder; NULL = /sys */
    /* For tests, since another machine's /sys says nothing of the counters of this one: where `sysfs` is given, what
     * is NULL is not asked. */
    const char *nvml; /* the library; NULL = libnvidia-ml.so.1 */
    int (*event_open)(uint32_t type, uint64_t config,
                      int cpu); /* NULL = perf_event_open; -1 with errno set */
};

enum { LAB_TELEMETRY_SOURCES_MAX = 64 };

/* NULL if out of memory. A machine that tells nothing has no sources, and notes. */
struct lab_telemetry;
struct lab_telemetry *lab_telemetry_open(const struct lab_telemetry_params *params);
void lab_telemetry_close(struct lab_telemetry **telemetry);

uint32_t lab_telemetry_count(const struct lab_telemetry *telemetry);
const struct lab_telemetry_source *lab_telemetry_source(const struct lab_telemetry *telemetry,
                                                        uint32_t source);

/* What is not read, and what would permit it: a sentence each; NULL beyond the last. */
const char *lab_telemetry_note(const struct lab_telemetry *telemetry, uint32_t index);

/* Read every source into values[lab_telemetry_count]; with `all` unset only those that change quickly. NaN = not its
 * turn, nothing to be read now, or nothing that can be meant. Power from an energy counter is that since the call
 * before: the first one has none. */
void lab_telemetry_read(struct lab_telemetry *telemetry, bool all, double *values);

/* Power from energy counters begins anew: the next reading has none, what was counted before it belongs to none. */
void lab_telemetry_restart(struct lab_telemetry *telemetry);

/* The text of a setting as it was read last, "" if it cannot be read; `changed` (may be NULL): by that reading. */
const char *lab_telemetry_setting(const struct lab_telemetry *telemetry, uint32_t source,
                                  bool *changed);

/* "clock (P cores, E cores), temperature (package)", cut to fit. Returns `text`. */
const char *lab_telemetry_summary(const struct lab_telemetry *telemetry, char *text, size_t bytes);

#endif
