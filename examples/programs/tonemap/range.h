/* Which frames of a film a step is about, and whether those of several files follow each other.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_RANGE_H
#define TONEMAP_RANGE_H

#include "options.h"

struct range {
    uint64_t first;
    uint64_t count; /* at most; UINT64_MAX = to the film's end */
    bool last;      /* the film ends with it, as far as that is known beforehand */
};

/* What --range and --share say of a film that has been opened. False, after saying why. */
bool range_choose(struct range *range, const struct options *options, struct video_input *input);

/* The same of `count` frames from `first` on, which are all there are. */
bool range_of(struct range *range, const struct options *options, uint64_t first, uint64_t count);

/* Whether the frames of the file `path`, a part or a piece as `what` says, begin where those of the file `before` end.
 * False, after saying why. */
bool range_follows(const char *what, const char *before, uint64_t end, const char *path,
                   uint64_t first);

#endif
