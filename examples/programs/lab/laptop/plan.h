/* The parts of cox-lab laptop: for each, which commands run and for how long. Every command is
 * `cox-lab run`; the commands of a part write into one database.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_PLAN_H
#define COX_EXAMPLES_LAB_LAPTOP_PLAN_H

#include "lab/telemetry/core_kinds.h"
#include "probe.h"

#include <limits.h>

enum {
    LAPTOP_COMMANDS_MAX = 4, /* of a part */
    LAPTOP_COMMAND_BYTES = 640
};

struct laptop_options {
    double minutes;
    const char *devices; /* NULL = every device */
    const char *kernel, *folder;
    const char *parts; /* names with commas between; NULL = all */
    uint32_t columns, rows;
    uint32_t frames; /* of each policy in each part; 0 = as many as the time permits */
    bool fresh;
    char sysfs[PATH_MAX], powercap[PATH_MAX]; /* "" = the system's */
};

/* NULL for "". */
const char *laptop_or_null(const char *text);

enum laptop_part {
    LAPTOP_PROBE, /* the others are planned from it */
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

/* Whether the command line names the part, or no parts at all. */
bool laptop_part_wanted(const struct laptop_options *options, enum laptop_part part);

/* One `cox-lab run`. */
struct laptop_command {
    char text[LAPTOP_COMMAND_BYTES]; /* as a shell takes it */
    char args[LAPTOP_COMMAND_BYTES]; /* after "cox-lab", each with a 0 at its end */
    size_t used;                     /* bytes of them */
    char cpus[256];                  /* it may run on these only: "0,2"; "" = all */
};

struct laptop_plan {
    uint32_t count; /* 0 = the part cannot be measured here: `why` */
    struct laptop_command commands[LAPTOP_COMMANDS_MAX];
    char why[480];
};

/* The properties of the machine that decide which parts are possible. */
struct laptop_machine {
    struct laptop_probe probe;
    uint32_t kind_count;
    struct lab_core_kind kinds[LAB_CORE_KINDS_MAX];
    bool meter;
    char no_meter[480]; /* the reason, and what would permit it */
};
void laptop_machine_read(const struct laptop_options *options, struct laptop_machine *machine);

/* Plan a part that takes about this many seconds. */
void laptop_plan(const struct laptop_options *options, const struct laptop_machine *machine,
                 enum laptop_part part, double seconds, const char *database,
                 struct laptop_plan *plan);

/* The parts share the remaining time in proportion to these weights. */
double laptop_part_weight(const struct laptop_machine *machine, enum laptop_part part);

#endif
