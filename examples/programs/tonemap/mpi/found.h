/* Parts and encoded pieces of a film that a folder has already: they need not be made.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MPI_FOUND_H
#define MPI_FOUND_H

#include "common/range_scheduler.h"
#include "tonemap/scenes.h"

struct found {
    struct frame_range range; /* the first field, as by_first wants it */
    char *path;
};

struct founds {
    struct found *all; /* rising and apart */
    uint64_t count;
};

/* What is looked for. */
struct found_what {
    const struct profile *profile; /* of the film as it is to look */
    const struct scenes *scenes;   /* the light that pieces are to have; NULL = parts */
    uint64_t encoding;             /* of pieces */
};

/* What overlaps with something before it, and what is of something else, is left out. False after saying why. */
bool founds_look(struct founds *founds, const char *folder, const struct found_what *what);
void founds_forget(struct founds *founds);

#endif
