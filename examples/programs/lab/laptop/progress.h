/* The parts that are done, kept in parts.json in the current folder, so that an interrupted
 * measurement continues where it stopped.
 * Thread-safety: from one thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_PROGRESS_H
#define COX_EXAMPLES_LAB_LAPTOP_PROGRESS_H

#include "plan.h"
#include "supply.h"

enum { LAPTOP_RECORDS_MAX = 2 * LAPTOP_ALL_PARTS }; /* on mains and on battery */

/* A part that is done, or failed. */
struct laptop_record {
    enum laptop_part part;
    enum laptop_supply supply, supply_end; /* at its beginning and at its end */
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

bool laptop_on_battery(const struct laptop_record *record);

/* "curve.db", or "curve-battery.db" if measured on battery; the same with another ending. */
void laptop_file_name(const struct laptop_record *record, const char *ending, char *name,
                      size_t bytes);

/* No file means no record. Prints the reason if it returns false: the folder holds measurements
 * with other devices, another kernel or another size. */
bool laptop_records_read(const struct laptop_options *options, struct laptop_records *records);
bool laptop_records_write(const struct laptop_options *options,
                          const struct laptop_records *records);

/* NULL if no record matches. Mains and unknown are the same. */
const struct laptop_record *laptop_record_find(const struct laptop_records *records,
                                               enum laptop_part part, bool on_battery);

/* Replaces the record of the same part and supply. */
void laptop_record_put(struct laptop_records *records, const struct laptop_record *record);

/* Remove the files of the part on this supply, and of all parts with parts.json. */
void laptop_record_remove(const struct laptop_record *record);
void laptop_records_clear(void);

#endif
