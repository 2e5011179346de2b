/* Where decoding can start for each frame of a container's video: the times of all its packets,
 * from one pass over the file. Few containers can tell how many frames lie before a place.
 *
 * Frames are counted as a decoder outputs them from the file's beginning, in the order of their
 * times. Frames that are not presented do not count. Neither do leading frames whose references are
 * missing.
 *
 * Thread-safety: one index from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_INDEX_H
#define LIBAV_INDEX_H

#include "identity.h"
#include "libav_calls.h"

/* A packet at which a decoder can start. */
struct libav_access {
    int64_t time;   /* of its frame */
    int64_t seek;   /* the time to seek to: not after any time of the packet */
    uint64_t frame; /* from this one on, every frame can be decoded */
};

struct libav_index {
    uint64_t frame_count;
    int64_t *times; /* of each frame, rising */
    uint64_t access_count;
    struct libav_access *access; /* in the order of the file, frames rising */
};

enum libav_indexed {
    LIBAV_INDEXED = 1,
    LIBAV_NO_INDEX = 0, /* frames without distinct times, or nothing to start with */
    LIBAV_INDEX_FAILED = -1,
};

/* Read a whole container, which was opened for this. `*error` is set on failure, also if the
 * caller's `interrupt` cancels. A file that is cut off is not a failure: the decoder reports it. */
enum libav_indexed libav_index_read(struct libav_index *index, AVFormatContext *container,
                                    int stream, struct error *error);

/* The last access from which the frame can be decoded. */
uint64_t libav_index_find(const struct libav_index *index, uint64_t frame);

void libav_index_free(struct libav_index *index);

/* What an index belongs to: one stream of one file, as it was then. A file that is repaired in place
 * has the same length, and may have the same samples. */
struct libav_index_key {
    struct file_state file;
    uint64_t samples; /* file_identify's hash */
    int64_t stream;
};

/* Keep an index in a folder, and load it from there. An index from another version of FFmpeg's
 * libraries is not loaded. The oldest ones are removed if there are many. A failure to keep is
 * silent. */
void libav_index_keep(const struct libav_index *index, const char *folder,
                      const struct libav_index_key *key);
bool libav_index_load(struct libav_index *index, const char *folder,
                      const struct libav_index_key *key);

/* Sort frames' times. False: two are equal. */
bool libav_times_sort(int64_t *times, uint64_t count);

/* The place of a time among rising ones, or of the first one after it. */
uint64_t libav_times_find(const int64_t *times, uint64_t count, int64_t time);

#endif
