/* The parts and encoded pieces of a film that are in a folder already. They need not be made again.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_MPI_FOUND_H
#define TONEMAP_MPI_FOUND_H

#include "common/range_scheduler.h"
#include "tonemap/scenes.h"

struct found {
    struct frame_range range; /* the first field: the key of by_first */
    char *path;
};

struct founds {
    struct found *all; /* in rising order, without overlaps */
    uint64_t count;
};

/* What to find. */
struct found_what {
    const struct profile *profile; /* of the film with its look */
    const struct scenes *scenes;   /* the light of the pieces; NULL = find parts */
    uint64_t encoding;             /* of pieces */
};

/* Leaves out files of other films or other light, and those that overlap with an earlier one.
 * Returns false after printing why. */
bool founds_look(struct founds *founds, const char *folder, const struct found_what *what);
void founds_forget(struct founds *founds);

#endif
