/* The histograms of a film's part, as `cox-tonemap analyse` leaves them: exact counts, about a kilobyte a frame. A
 * profile in lines of text, then the counts as numbers of 7 bits a byte, low ones first, then a line that says how many
 * frames there are and a check of all bytes before.
 * Thread-safety: one part from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_PART_H
#define TONEMAP_PART_H

#include "common/outfile.h"
#include "profile.h"

/* Being written; it appears under its name when it is whole. */
struct part_writer {
    struct outfile *file;
    const char *path;
    uint64_t hash, count;
    bool failed;
};

/* False, here and below, after saying why. A film whose peak is given needs no histograms: then part_add is not called,
 * and part_finish is told the count. */
bool part_begin(struct part_writer *part, const char *path, const struct profile *profile,
                uint64_t first);
bool part_add(struct part_writer *part, const uint32_t histogram[COX_VIDEO_BINS]);

/* `last`: the film ends with the part. */
bool part_finish(struct part_writer *part, uint64_t count, bool last);
void part_abandon(struct part_writer *part);

/* Being read. */
struct part {
    uint64_t first, count; /* frames; `first` is where by_first looks for it */
    bool last;
    struct profile profile;
    struct profile_text text;
};

bool part_open(struct part *part, const char *path);

/* Whether a file is there that ends as a part does; says nothing. */
bool part_is_there(const char *path);
void part_close(struct part *part);

/* The next frame's histogram; as many times as `count` says. */
bool part_next(struct part *part, uint32_t histogram[COX_VIDEO_BINS]);

#endif
