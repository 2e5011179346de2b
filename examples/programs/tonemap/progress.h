/* One live line for long work: frames, a bar of how many of all they are, frames per second, the time left; and apart
 * from that how much is written, what binds, and how the frames are split over devices. Only where a person sees it: on
 * a terminal. Or, for programs, a line of JSON each second.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    PROGRESS_SPLIT_WIDTH = 12
}; /* of the split's bar: the line of a long film fits 80 columns */

struct progress {
    FILE *stream; /* NULL = nothing is shown */
    uint64_t total;
    uint64_t begin_ns, drawn_ns;
    bool visible;
    bool json; /* lines for programs, whatever `stream` is */
    /* The caller's, for what has them: */
    uint64_t bytes;    /* written; 0 = nothing to say */
    const char *bound; /* what the last frames waited for; NULL = nothing to say */
};

/* Shows nothing unless `stream` is a terminal. `total` 0 = not known beforehand. */
void progress_begin(struct progress *progress, FILE *stream, uint64_t total, uint64_t now_ns);

/* Redraws ten times a second at most, and not in the first half second: short work needs no line. `split` is a bar of
 * the devices' shares (report_bar); "" = there is nothing to share. */
void progress_update(struct progress *progress, uint64_t done, const char *split, uint64_t now_ns);

/* From now on lines of JSON to `stream`, a terminal or not. */
void progress_use_json(struct progress *progress, FILE *stream);

/* The last line of JSON; nothing without. */
void progress_end(struct progress *progress, uint64_t done, uint64_t now_ns);

/* Such a line, without its end. */
void progress_format_json(char *text, size_t bytes, const struct progress *progress, uint64_t done,
                          uint64_t now_ns, bool ended);

/* Removes the line, before something else is printed and at the end. */
void progress_clear(struct progress *progress);

/* The text itself, cut to `columns` characters; 0 = as many as `bytes` holds. The bar takes what the rest leaves; a
 * split that does not fit beside a short one is left out as a whole. */
void progress_format(char *text, size_t bytes, uint64_t done, uint64_t total, uint64_t elapsed_ns,
                     const char *split, unsigned columns);

#endif
