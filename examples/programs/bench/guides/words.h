/* Names, numbers and sentences in the outputs of cox-bench guides.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_WORDS_H
#define BENCH_GUIDES_WORDS_H

#include "experiment.h"

const char *guides_unit_name(enum guides_unit unit);

/* Whether more is better. */
bool guides_unit_rate(enum guides_unit unit);

const char *guides_status_name(enum guides_status status);

/* Print three significant digits or a few more. Returns `text`. */
const char *guides_number(double value, char *text, size_t bytes);

/* Append to a text. */
void guides_say(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sorts `values`. */
struct guides_quartiles guides_quartiles_of(double *values, uint32_t count);

#endif
