/* The machine's own figures while frames run: clocks, temperatures, power, throttling, settings.
 *
 * All sources are found once, by lab_telemetry_open. Reading them opens nothing and allocates
 * nothing. Most sources are files below /sys; perf's energy counters (if powercap is not readable)
 * and NVIDIA's library are the exceptions. A source that cannot be read is no error: a note says
 * what would permit it.
 *
 * Thread-safety: one lab_telemetry from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_SOURCES_H
#define COX_EXAMPLES_LAB_TELEMETRY_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum lab_telemetry_kind {
    LAB_CLOCK,       /* MHz */
    LAB_TEMPERATURE, /* °C */
    LAB_POWER,       /* W; of a battery: the power drawn from it, negative while it is charged */
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
    /* For tests. If `sysfs` is given, NULL here means that the interface is not used: this
     * machine's counters do not belong to another machine's /sys. */
    const char *nvml; /* the library; NULL = libnvidia-ml.so.1 */
    int (*event_open)(uint32_t type, uint64_t config,
                      int cpu); /* NULL = perf_event_open; returns -1 with errno set */
};

enum { LAB_TELEMETRY_SOURCES_MAX = 64 };

/* NULL if out of memory. A machine without readable sources has only notes. */
struct lab_telemetry;
struct lab_telemetry *lab_telemetry_open(const struct lab_telemetry_params *params);
void lab_telemetry_close(struct lab_telemetry **telemetry);

uint32_t lab_telemetry_count(const struct lab_telemetry *telemetry);
const struct lab_telemetry_source *lab_telemetry_source(const struct lab_telemetry *telemetry,
                                                        uint32_t source);

/* A sentence about something that cannot be read, and what would permit it. NULL after the last. */
const char *lab_telemetry_note(const struct lab_telemetry *telemetry, uint32_t index);

/* Read the sources into values[lab_telemetry_count]: all of them, or those that change quickly. NaN
 * means not read this time, not readable now, or out of range. Power from an energy counter is the
 * mean since the previous call, so its first reading is NaN. */
void lab_telemetry_read(struct lab_telemetry *telemetry, bool all, double *values);

/* Forget the energy counters' last values: the next reading of power is NaN. */
void lab_telemetry_restart(struct lab_telemetry *telemetry);

/* The text of a setting at its last reading; "" if it could not be read. `changed` (may be
 * NULL): by that reading. */
const char *lab_telemetry_setting(const struct lab_telemetry *telemetry, uint32_t source,
                                  bool *changed);

/* "clock (P cores, E cores), temperature (package)", cut to fit. Returns `text`. */
const char *lab_telemetry_summary(const struct lab_telemetry *telemetry, char *text, size_t bytes);

#endif
