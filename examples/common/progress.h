/* One live line for long work: frames, frames per second, the split as a bar, the time left. Only where a person sees
 * it: on a terminal.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *stream; /* NULL = nothing is shown */
    uint64_t total;
    uint64_t begin_ns, drawn_ns;
    bool visible;
};

/* Shows nothing unless `stream` is a terminal. `total` 0 = not known beforehand. */
void progress_begin(struct progress *progress, FILE *stream, uint64_t total, uint64_t now_ns);

/* Redraws ten times a second at most, and not in the first half second: short work needs no line. */
void progress_update(struct progress *progress, uint64_t done, const char *bar, uint64_t now_ns);

/* Removes the line, before something else is printed and at the end. */
void progress_clear(struct progress *progress);

/* The text itself, cut to `columns` characters. */
void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns, const char *bar,
                     unsigned columns);

#endif
