/* The histograms of a part of a film, as `cox-tonemap analyse` writes them: exact counts, about a
 * kilobyte per frame. The file begins with a profile in lines of text. Then come the frames, as
 * numbers of 7 bits per byte, low bits first. A frame begins with 0 if it has the colours of the one
 * before, else with 1 and its colours and known peak. Its counts follow. The last line has the
 * number of frames and a check of all bytes before it.
 * Thread-safety: one part from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_PART_H
#define TONEMAP_PART_H

#include "common/outfile.h"
#include "profile.h"

/* A part that is written. The file gets its name when it is whole. */
struct part_writer {
    struct outfile *file;
    const char *path;
    struct profile now; /* of the last frame */
    uint64_t hash, count;
    bool failed;
};

/* Here and below: false after printing why. A film with a fixed peak needs no histograms: then
 * part_add is not called, and `count` of part_finish is all there is. */
bool part_begin(struct part_writer *part, const char *path, const struct profile *profile,
                uint64_t first);
bool part_add(struct part_writer *part, const struct film_plan *plan,
              const uint32_t histogram[COX_VIDEO_BINS]);

/* `last`: the film ends with the part. */
bool part_finish(struct part_writer *part, uint64_t count, bool last);
void part_abandon(struct part_writer *part);

/* A part that is read. */
struct part {
    uint64_t first, count; /* frames; `first` is the key of by_first */
    bool last;
    struct profile profile; /* the film's; after part_next with the colours of that frame */
    struct profile_text text;
};

bool part_open(struct part *part, const char *path);

/* Whether a file exists that ends like a part. Prints nothing. */
bool part_is_there(const char *path);
void part_close(struct part *part);

/* The next frame's histogram; can be called `count` times. */
bool part_next(struct part *part, uint32_t histogram[COX_VIDEO_BINS]);

#endif
