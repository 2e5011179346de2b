/* A live line for long work: frames, a progress bar, frames per second, the time left, the bytes
 * written, the bottleneck, and the split over the devices. It is shown on a terminal only. For
 * programs there is a line of JSON each second instead.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_PROGRESS_H
#define TONEMAP_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Of the split's bar, so that the line of a long film fits 80 columns. */
enum { PROGRESS_SPLIT_WIDTH = 12 };

struct progress {
    FILE *stream; /* NULL = nothing is shown */
    uint64_t total;
    uint64_t begin_ns, drawn_ns;
    bool visible;
    bool json; /* lines for programs, whatever `stream` is */

    /* Set by the caller: */
    uint64_t bytes;    /* written; 0 = not shown */
    const char *bound; /* what the last frames waited for; NULL = not shown */
};

/* Shows nothing unless `stream` is a terminal. `total` 0 = not known in advance. */
void progress_begin(struct progress *progress, FILE *stream, uint64_t total, uint64_t now_ns);

/* Redraws at most ten times a second, and not in the first half second: short work needs no line.
 * Pass the bar of the split (report_bar) as `split`; "" = there is one device. */
void progress_update(struct progress *progress, uint64_t done, const char *split, uint64_t now_ns);

/* Write lines of JSON to `stream` from now on, terminal or not. */
void progress_use_json(struct progress *progress, FILE *stream);

/* Write the last line of JSON. Without JSON it does nothing. */
void progress_end(struct progress *progress, uint64_t done, uint64_t now_ns);

/* A line of JSON, without its newline. */
void progress_format_json(char *text, size_t bytes, const struct progress *progress, uint64_t done,
                          uint64_t now_ns, bool ended);

/* Remove the line, before something else is printed and at the end. */
void progress_clear(struct progress *progress);

/* The text of the line, cut to `columns` characters; 0 = as many as `bytes` holds. The progress bar
 * takes the space that is left. If the split and a short progress bar do not both fit, the split is
 * left out. */
void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                     const char *split, unsigned columns);

#endif
