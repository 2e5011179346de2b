/* The frames of a film that a step works on, and whether those of several files are contiguous.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_RANGE_H
#define TONEMAP_RANGE_H

#include "options.h"

struct range {
    uint64_t first;
    uint64_t count; /* at most; UINT64_MAX = to the film's end */
    bool last;      /* the film ends with it, as far as is known in advance */
};

/* The range that --range and --share ask for, in a film that has been opened. Returns false after
 * printing why. */
bool range_choose(struct range *range, const struct options *options, struct video_input *input);

/* The same for a film that has `count` frames, from `first` on. */
bool range_of(struct range *range, const struct options *options, uint64_t first, uint64_t count);

/* Whether the frames of the file `path` begin where those of the file `before` end. `what` is
 * "part" or "piece". Returns false after printing why. */
bool range_follows(const char *what, const char *before, uint64_t end, const char *path,
                   uint64_t first);

#endif
