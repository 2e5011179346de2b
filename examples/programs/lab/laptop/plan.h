/* cox-lab laptop: everything a paper's section on the load balancing of one machine needs, by one
 * command. It is made in parts: each is `cox-lab run`, with a database of its own in the folder. A
 * part that is done is not done again.
 *
 * Thread-safety: from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_H
#define COX_EXAMPLES_LAB_LAPTOP_H

#include "lab/telemetry/kinds.h"

#include <coxswain/sched.h>
#include <limits.h>
#include <stdint.h>

enum {
    LAPTOP_PARTS = 7,
    LAPTOP_COMMANDS_MAX = 4,                   /* of a part, all into one database */
    LAPTOP_RECORDS_MAX = 2 * LAPTOP_PARTS + 2, /* with the probes */
    LAPTOP_COMMAND_BYTES = 640
};

enum laptop_supply { LAPTOP_SUPPLY_UNKNOWN, LAPTOP_SUPPLY_MAINS, LAPTOP_SUPPLY_BATTERY };

/* "unknown", "mains", "battery". */
const char *laptop_supply_name(enum laptop_supply supply);

/* By the power supplies that the system lists; `sysfs` NULL = /sys. */
enum laptop_supply laptop_supply_now(const char *sysfs);

struct laptop_options {
    double minutes;
    const char *devices; /* NULL = every device */
    const char *kernel, *folder;
    const char *parts; /* names with commas between; NULL = all */
    uint32_t columns, rows;
    uint32_t frames; /* of each policy in each part; 0 = as the time allows */
    bool fresh;
    char sysfs[PATH_MAX], powercap[PATH_MAX]; /* "" = the system's */
};

/* Where a text may be NULL: "" is. */
const char *laptop_or_null(const char *text);

/* --- What was measured first (probe.c) -------------------------------------------------------- */

/* "" = unknown. */
struct laptop_device {
    char name[128], platform[128], driver[128], type[16], mode[16];
};

/* What the parts are planned by. */
struct laptop_probe {
    uint32_t device_count;
    struct laptop_device devices[COX_DEVICES_MAX];
    double solo_ns[COX_DEVICES_MAX], oracle_ns; /* of a frame of the size asked for */
};

/* From the last run of the database. False after saying why. */
bool laptop_probe_read(const char *database, struct laptop_probe *probe);

/* --- The parts (plan.c) ----------------------------------------------------------------------- */

enum laptop_part {
    LAPTOP_PROBE, /* what the others are planned by */
    LAPTOP_SIZES,
    LAPTOP_CURVE,
    LAPTOP_RESERVE,
    LAPTOP_CORUN,
    LAPTOP_KINDS,
    LAPTOP_DISTURB,
    LAPTOP_ENERGY,
    LAPTOP_ALL_PARTS
};

const char *laptop_part_name(enum laptop_part part); /* "sizes" */
bool laptop_part_find(const char *name, enum laptop_part *part);

/* Whether it was asked for. */
bool laptop_part_wanted(const struct laptop_options *options, enum laptop_part part);

/* One `cox-lab run`. */
struct laptop_command {
    char text[LAPTOP_COMMAND_BYTES]; /* as a shell takes it */
    char args[LAPTOP_COMMAND_BYTES]; /* after "cox-lab", each with a 0 at its end */
    size_t used;                     /* bytes of them */
    char cpus[256];                  /* it may run on these only: "0,2"; "" = all */
};

/* What a part takes. */
struct laptop_plan {
    uint32_t count; /* 0 = it cannot be made here: `why` */
    struct laptop_command commands[LAPTOP_COMMANDS_MAX];
    char why[480];
};

/* The machine as far as it decides on the parts. */
struct laptop_machine {
    struct laptop_probe probe;
    uint32_t kind_count;
    struct lab_core_kind kinds[LAB_CORE_KINDS_MAX];
    bool meter;
    char no_meter[480]; /* why there is none, and what would permit it */
};
void laptop_machine_read(const struct laptop_options *options, struct laptop_machine *machine);

/* So that it takes about so many seconds. */
void laptop_plan(const struct laptop_options *options, const struct laptop_machine *machine,
                 enum laptop_part part, double seconds, const char *database,
                 struct laptop_plan *plan);

/* How much of the time is for the part: the seconds that are left are shared by these. */
double laptop_part_weight(const struct laptop_machine *machine, enum laptop_part part);

/* --- What is done (record.c) ------------------------------------------------------------------ */

/* A part that is done, or failed. */
struct laptop_record {
    enum laptop_part part;
    enum laptop_supply supply, supply_end; /* when it began, and ended */
    int status;                            /* exit status */
    double seconds;
    char started_at[32];
    struct laptop_plan plan; /* as it was run */
};

struct laptop_records {
    uint32_t count;
    struct laptop_record all[LAPTOP_RECORDS_MAX];
};

extern const char laptop_records_file[]; /* "parts.json" */

/* "curve.db", of what was measured on battery "curve-battery.db"; the same with another ending. */
void laptop_file_name(enum laptop_part part, enum laptop_supply supply, const char *ending,
                      char *name, size_t bytes);

/* In the folder that is the current one. No file is no record. False after saying why: what it
 * holds was measured with other devices, another kernel or size. */
bool laptop_records_read(const struct laptop_options *options, struct laptop_records *records);
bool laptop_records_write(const struct laptop_options *options,
                          const struct laptop_records *records);

/* NULL = there is none. Mains and unknown are one. */
const struct laptop_record *laptop_record_find(const struct laptop_records *records,
                                               enum laptop_part part, bool on_battery);

/* In the place of the one of the same part and supply. */
void laptop_record_put(struct laptop_records *records, const struct laptop_record *record);

/* Remove what all parts wrote. */
void laptop_records_clear(void);

/* --- Running a part (child.c) ----------------------------------------------------------------- */

/* Run the plan's commands. The record gets the status, the seconds, the supplies. False: it was
 * interrupted. */
bool laptop_run_part(const struct laptop_options *options, struct laptop_record *record);

/* --- What comes out (results.c) --------------------------------------------------------------- */

/* The page, the plots' CSV files with the gnuplot script, the description of the machine, the
 * archive of all. False after saying why. */
bool laptop_write_results(const struct laptop_options *options,
                          const struct laptop_machine *machine,
                          const struct laptop_records *records);

#endif
