/* What the files that look for sources share: a telemetry to which they add.
 *
 * A source is one reading or several, which are made into one value. Its readings follow its lab__source_add, before
 * the next one's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_PARTS_H
#define COX_EXAMPLES_LAB_TELEMETRY_PARTS_H

#include "telemetry.h"

struct lab_energy;

/* How the readings become a value. */
enum lab__way {
    LAB__MEAN,
    LAB__MOST,
    LAB__PRODUCT, /* of their amounts */
    LAB__RATE,    /* of an energy counter, in joules: watts */
    LAB__RISE,    /* of event counters: their sum since the first reading */
    LAB__TEXT
};

/* How often a value changes. */
enum lab__pace { LAB__QUICK, LAB__SLOW };

struct lab__source;

/* `what` begins the name ("clock of the "), `part` ends it. NULL if there is no room, which the functions below
 * accept. */
__attribute__((format(printf, 6, 7))) struct lab__source *
lab__source_add(struct lab_telemetry *telemetry, enum lab_telemetry_kind kind, enum lab__way way,
                enum lab__pace pace, const char *what, const char *part, ...);

/* Readings of the source: times `scale`, as its kind is given. Each returns false, with errno set, if there is none. */
__attribute__((format(printf, 4, 5))) bool lab__source_file(struct lab_telemetry *telemetry,
                                                            struct lab__source *source,
                                                            double scale, const char *path, ...);

/* A file with a line for each level, where a star marks the one in use: "1: 1200Mhz *". */
__attribute__((format(printf, 4, 5))) bool lab__source_levels(struct lab_telemetry *telemetry,
                                                              struct lab__source *source,
                                                              double scale, const char *path, ...);

/* A battery's status: -1 while it is charged, else 1. */
__attribute__((format(printf, 3, 4))) bool lab__source_sign(struct lab_telemetry *telemetry,
                                                            struct lab__source *source,
                                                            const char *path, ...);

/* Both take over what they are given, in every case. */
bool lab__source_meter(struct lab_telemetry *telemetry, struct lab__source *source,
                       struct lab_energy *meter, const char *origin);
bool lab__source_event(struct lab_telemetry *telemetry, struct lab__source *source, int file,
                       double scale, const char *origin);

/* `call` returns NaN where there is no value; it is called until lab_telemetry_close. */
bool lab__source_call(struct lab_telemetry *telemetry, struct lab__source *source,
                      double (*call)(void *user, uint32_t device, int what), void *user,
                      uint32_t device, int what, const char *origin);

/* Values beyond these limits are none. */
void lab__source_limits(struct lab__source *source, double low, double high);

/* Ends the source: one without readings is taken back, and false returned. */
bool lab__source_end(struct lab_telemetry *telemetry, struct lab__source *source);

__attribute__((format(printf, 2, 3))) void lab__note(struct lab_telemetry *telemetry,
                                                     const char *format, ...);

/* --- Where sources are found -------------------------------------------------------------------------------------- */

void lab__find_cpus(struct lab_telemetry *telemetry,
                    const char *root); /* cpus.c: clocks, settings, throttling */
void lab__find_heat(struct lab_telemetry *telemetry, const char *root); /* heat.c */
void lab__find_power(struct lab_telemetry *telemetry,
                     const char *root, /* power.c: of the processor */
                     int (*event_open)(uint32_t type, uint64_t config, int cpu));
void lab__find_supplies(struct lab_telemetry *telemetry,
                        const char *root); /* supplies.c: battery and mains */
void lab__find_gpus(struct lab_telemetry *telemetry, const char *root); /* gpus.c */

/* nvml.c. NULL if there is no such library or GPU; else to be given back. */
struct lab__nvml;
struct lab__nvml *lab__find_nvml(struct lab_telemetry *telemetry, const char *root,
                                 const char *library);
void lab__nvml_close(struct lab__nvml **nvml);

#endif
