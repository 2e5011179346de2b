/* Where each frame of a container's video can be decoded from: the times of all its packets, read once, since a
 * container that tells how many frames lie before a place is rare.
 *
 * Frames are counted as a decoder gives them that begins at the file's beginning: in the order of their times, without
 * those that are decoded and not to be shown, and without those at the beginning that need what is not there.
 * Thread-safety: one index from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_INDEX_H
#define LIBAV_INDEX_H

#include "identity.h"
#include "libav_calls.h"

/* A packet from which a decoder may begin. */
struct libav_access {
    int64_t time;   /* of its frame */
    int64_t seek;   /* what to ask the container for: not after any time of the packet */
    uint64_t frame; /* from this one on every frame can be decoded */
};

struct libav_index {
    uint64_t frame_count;
    int64_t *times; /* of each frame, rising */
    uint64_t access_count;
    struct libav_access *access; /* in the order of the file, frames rising */
};

enum libav_indexed {
    LIBAV_INDEXED = 1,
    LIBAV_NO_INDEX =
        0, /* the stream does not give each frame a time of its own, or nothing to begin with */
    LIBAV_INDEX_FAILED = -1,
};

/* Read the whole of a container that was opened for this, of which this stream is wanted. `*error` is set where it
 * fails: cancelled, too, and cut off is what the caller's `interrupt` and the decoder tell. */
enum libav_indexed libav_index_read(struct libav_index *index, AVFormatContext *container,
                                    int stream, struct error *error);

/* The last place from which the frame can be decoded, by its number in `access`. */
uint64_t libav_index_find(const struct libav_index *index, uint64_t frame);

void libav_index_free(struct libav_index *index);

/* Keep the index of a file in a folder, and find it there again; `stream` is the one that it is of. An index that
 * another version of FFmpeg's libraries has made is not found. The oldest go where there are many. What fails is as if
 * it had never been kept. */
void libav_index_keep(const struct libav_index *index, const char *folder,
                      const struct file_identity *file, int stream);
bool libav_index_load(struct libav_index *index, const char *folder,
                      const struct file_identity *file, int stream);

/* Sort frames' times. False: two are equal. */
bool libav_times_sort(int64_t *times, uint64_t count);

/* The place of a time among those that rise, or of the first one after it. */
uint64_t libav_times_find(const int64_t *times, uint64_t count, int64_t time);

#endif
