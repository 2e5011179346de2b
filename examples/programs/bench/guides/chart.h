/* The bar chart of an experiment's results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_CHART_H
#define BENCH_GUIDES_CHART_H

#include "experiment.h"

struct html;

/* A wide and a narrow chart; the page's style shows one of them. */
void guides_chart(const struct guides_result *result, struct html *out);

/* Whether variant `v` is the first of a named group. */
bool guides_begins_group(const struct guides_result *result, uint32_t v);

#endif
