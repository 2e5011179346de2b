/* The journal of a file that several processes write: which of its frames are on the disk. When a
 * piece is on the disk, its name (scenes_piece) is added to the journal as a line.
 *
 * After a restart a line counts if its piece is still wanted. Lines that do not count are removed
 * before any frame is written. Otherwise a line could count again later, although its frames have
 * been overwritten. A line without a newline does not count: the process was killed while it wrote
 * the line.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_MPI_JOURNAL_H
#define TONEMAP_MPI_JOURNAL_H

#include "common/range_scheduler.h"
#include "tonemap/scenes.h"

struct journal {
    const char *path;
    int fd; /* -1 = not open */
};

/* Keep the old lines that count; their frames are below `frames`. `*done` gets their `*count`
 * ranges, in rising order and without overlaps; the caller frees it. Here and below: false after
 * printing why. */
bool journal_begin(struct journal *journal, const char *path, const struct scenes *scenes,
                   uint64_t encoding, uint64_t frames, struct frame_range **done, uint64_t *count);

/* Add a piece that is on the disk. Returns when its line is on the disk, too. */
bool journal_add(struct journal *journal, const char *piece);

void journal_end(struct journal *journal);

#endif
