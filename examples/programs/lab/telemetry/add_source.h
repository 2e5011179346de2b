/* Adding sources to a telemetry. Called by the files that look for sources; see discover.h.
 *
 * A source combines one or more readings into one value. Add its readings after its
 * lab__source_add and before the next lab__source_add, then call lab__source_end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TELEMETRY_ADD_SOURCE_H
#define COX_EXAMPLES_LAB_TELEMETRY_ADD_SOURCE_H

#include "sources.h"

struct lab_energy;

/* How readings become a value. */
enum lab__way {
    LAB__MEAN,
    LAB__MOST,
    LAB__PRODUCT, /* of the absolute values */
    LAB__RATE,    /* of energy counters in joules: watts */
    LAB__RISE,    /* of event counters: their sum since the first reading */
    LAB__TEXT
};

/* How often a value changes. */
enum lab__pace { LAB__QUICK, LAB__SLOW };

enum lab__form {
    LAB__NUMBER, /* a file with a number */
    LAB__LEVELS, /* a file with a line for each level, a star at the current one: "1: 1200Mhz *" */
    LAB__SIGN,   /* a battery's status: -1 while it is charged, else 1 */
    LAB__METER,  /* an energy meter: joules */
    LAB__EVENT,  /* a perf event counter */
    LAB__CALL    /* a function */
};

struct lab__reading {
    enum lab__form form;
    int file; /* NUMBER, LEVELS, SIGN, EVENT; else -1 */
    double scale;
    struct lab_energy *meter;
    double (*call)(void *user, uint32_t device, int what); /* returns NaN if there is no value */
    void *user;
    uint32_t device;
    int what;
};

struct lab__source;

/* The source's name is `what` and `part`: "clock of the " and "P cores". NULL if there is no room;
 * the functions below accept NULL. */
struct lab__source *lab__source_add(struct lab_telemetry *telemetry, enum lab_telemetry_kind kind,
                                    enum lab__way way, enum lab__pace pace, const char *what,
                                    const char *part);

/* Add a reading. It then owns the file and the meter, also on failure. `origin` names the first
 * reading for people. */
bool lab__source_reading(struct lab_telemetry *telemetry, struct lab__source *source,
                         const struct lab__reading *reading, const char *origin);

/* Add a file below the root folder. `scale` converts to the unit of the source's kind. False with
 * errno set if the file cannot be opened. */
__attribute__((format(printf, 5, 6))) bool lab__source_file(struct lab_telemetry *telemetry,
                                                            struct lab__source *source,
                                                            enum lab__form form, double scale,
                                                            const char *path, ...);

/* Readings of a MEAN or MOST outside these limits, and values outside them, are dropped. */
void lab__source_limits(struct lab__source *source, double low, double high);

/* Removes the source and returns false if it has no readings. */
bool lab__source_end(struct lab_telemetry *telemetry, struct lab__source *source);

/* A source of one file with a number or a text. False if the file cannot be opened. */
__attribute__((format(printf, 8, 9))) bool lab__source_single(struct lab_telemetry *telemetry,
                                                              enum lab_telemetry_kind kind,
                                                              enum lab__way way,
                                                              enum lab__pace pace, const char *what,
                                                              const char *part, double scale,
                                                              const char *path, ...);

__attribute__((format(printf, 2, 3))) void lab__note(struct lab_telemetry *telemetry,
                                                     const char *format, ...);

/* --- For discover.c --------------------------------------------------------------------------- */

/* A telemetry without sources. `root` is the folder of all files. NULL if out of memory. */
struct lab_telemetry *lab__telemetry_create(const char *root);

/* Call `close` with `user` when the telemetry is closed. There is one such function. */
void lab__telemetry_on_close(struct lab_telemetry *telemetry, void (*close)(void *user),
                             void *user);

#endif
