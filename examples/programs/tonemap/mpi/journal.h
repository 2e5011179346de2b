/* Which frames of a file that several processes write are in it, on the disk: a file of text to which the name of a
 * piece (scenes_piece) is added, as a line, when the piece is.
 *
 * A line counts on the next start if its piece is still the wanted one. Lines that do not count are taken out before
 * any frame is written, so that none of them can count again for frames that have been overwritten in between. A line
 * without its end, which a process that was ended while it wrote leaves behind, does not count.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_JOURNAL_H
#define MPI_JOURNAL_H

#include "common/range_scheduler.h"
#include "tonemap/scenes.h"

struct journal {
    const char *path;
    int fd; /* -1 = not open */
};

/* Begin with the lines of before that count, which are of frames below `frames`. `done`, which the caller frees, gets
 * their ranges, rising and apart; there are `*count`. False, here and below, after saying why. */
bool journal_begin(struct journal *journal, const char *path, const struct scenes *scenes,
                   uint64_t encoding, uint64_t frames, struct frame_range **done, uint64_t *count);

/* A piece is on the disk: returns when its line is, too. */
bool journal_add(struct journal *journal, const char *piece);

void journal_end(struct journal *journal);

#endif
