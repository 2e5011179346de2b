/* The files of a job besides its input and output: statistics and trace; and the check that no two
 * of all files are the same.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_FILES_H
#define TONEMAP_FILES_H

#include "common/outfile.h"
#include "tonemap/report.h"
#include "options.h"

/* Whether the input and all outputs are different files. Prints an error if not. */
bool files_differ(const struct options *options);

/* Whether --overwrite is given or no file has the output's name. Prints an error if not. */
bool files_may_write(const struct options *options);

/* NULL = not asked for. */
struct records {
    struct outfile *stats, *trace;
};

bool records_open(struct records *records, const struct options *options);
void records_write(const struct records *records, struct report *report,
                   const struct report_about *about);
bool records_finish(struct records *records, const struct options *options);
void records_abandon(struct records *records);

#endif
