/* The table of cox-bench suite, as text and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_TABLE_H
#define BENCH_SUITE_TABLE_H

#include "common/json.h"
#include "rounds.h"

/* How the library on all devices compares with hand-written OpenCL. */
struct suite_summary {
    double efficiency; /* mean of hand-written with the best split over the library */
    double to_best;    /* least of the best device, hand-written, over the library */
    bool equal_bits, right;
    uint32_t count;
};

double suite_efficiency(const struct suite_figures *figures);
double suite_to_best(const struct suite_figures *figures);
void suite_summary_add(struct suite_summary *summary, const struct suite_figures *figures);

/* Whether all results are right and, if there were rounds, both bars are met. */
bool suite_summary_met(const struct suite_summary *summary, uint32_t rounds);

/* With 0 rounds the table has results, but no times. */
void suite_table_head(const char *size, uint32_t rounds);
void suite_table_row(const struct suite_figures *figures, uint32_t rounds);
void suite_table_end(const struct suite_summary *summary, uint32_t rounds);

/* One object per case, and the members of the end. */
void suite_json_row(struct json *json, const struct suite_figures *figures, uint32_t rounds);
void suite_json_end(struct json *json, const struct suite_summary *summary, uint32_t rounds);

#endif
