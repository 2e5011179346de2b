/* The statistics of --stats: one JSON document, described in docs/reference/stats.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_STATS_H
#define TONEMAP_STATS_H

#include "report.h"

#include <stdio.h>

/* The session must be idle. Write errors stay in the stream. */
void stats_write(struct report *report, const struct report_about *about, FILE *stream);

#endif
