/* The database of a part, read only: its runs, and the frames that match a wish.
 * Thread-safety: one source from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_SOURCE_H
#define COX_EXAMPLES_LAB_LAPTOP_SOURCE_H

#include "lab/report/reader.h"
#include "lab/statistics/bootstrap.h"
#include "progress.h"
#include "lab/plot/plot.h"

enum { SOURCE_RUNS_MAX = 16 };

struct source_run {
    int64_t number;
    uint32_t columns, rows, in_flight, device_count;
    double deadline_ms, oracle_ns;
    char oracle_text[1024]; /* its ratios, as the database has them; "" = none */
    char devices[COX_DEVICES_MAX][80];
    bool busy;
};

struct source {
    struct reader reader;
    char why[400];
    uint32_t run_count;
    struct source_run runs[SOURCE_RUNS_MAX];
};

/* NULL after printing the reason. */
struct source *source_open(const struct laptop_record *record);

/* False, after printing the reason, if something could not be read in between. */
bool source_close(struct source **source);

/* Which frames: those that match all of these, from `first_frame` on. `policy` NULL = sessions
 * without a policy. `ratios` NULL = any. `device` -1 = any. `phase` -1 = all. */
struct source_wish {
    const struct source_run *run;
    const char *kind, *policy, *ratios;
    int device, phase;
    uint64_t first_frame;
    bool joules; /* not their times */
};

/* In the blocks in which they were run, without failed frames and the first of each turn. If it
 * returns false, source_close prints the reason. */
bool source_values(struct source *source, const struct source_wish *wish, struct lab_blocks *out);

/* Median over median, with the interval of the quotient. Sorts both. */
struct plot_point source_ratio(struct lab_blocks *of, struct lab_blocks *over, double x);

/* The median time of the frames that match. */
struct plot_point source_point(struct source *source, const struct source_wish *wish, double x);

/* The first device's share of the rows in the frames of a policy, from `first_frame` on; NaN =
 * unknown. */
double source_share(struct source *source, const struct source_wish *wish);

/* A statement with the run as ?1, which the caller finalizes. If it is NULL, source_close prints the
 * reason. An error while it is read ends the rows, and source_close prints it. */
struct sqlite3_stmt *source_ask(struct source *source, const struct source_run *run,
                                const char *sql);

#endif
