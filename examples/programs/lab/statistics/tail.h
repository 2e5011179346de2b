/* Whether a table's figures rest on enough frames.
 *
 * A quantile is known about as well as the number of frames beyond it: with ten, that number has a
 * standard error of a third. An interval from few blocks is too narrow, because their scatter is
 * not known either: of ten blocks, it holds in 90 % of cases instead of 95 (Student's t).
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TAIL_H
#define COX_EXAMPLES_LAB_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAB_TAIL_LEAST = 10, /* frames beyond a quantile */
    LAB_BLOCKS_LEAST = 10,
    LAB_TAIL_TEXT_BYTES = 320
};

/* How many of the frames lie beyond a quantile by nearest rank. */
uint64_t lab_tail_beyond(uint64_t frames, unsigned per_mille);

/* The quantiles of a table, as thousandths; 0 ends the list. If some have too few of `frames`
 * beyond them, `text` says so in two sentences, and true is returned. No frames give no
 * warning. */
bool lab_tail_warning(uint64_t frames, const unsigned *per_mille, char *text, size_t bytes);

/* The same for intervals from `blocks` of these, such as "seeds". */
bool lab_blocks_warning(uint64_t blocks, const char *what, char *text, size_t bytes);

#endif
