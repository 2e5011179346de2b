/* Bytes of a stream: from a regular file, which is read at offsets; from anything else that has a
 * descriptor; or from memory.
 *
 * Waiting for a pipe also ends when the input is cancelled: cancelling makes an event descriptor
 * readable, and every wait polls both.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_SOURCE_H
#define VIDEO_SOURCE_H

#include "mapped_file.h"
#include "peek.h"
#include "video.h"

#include <stdatomic.h>
#include <sys/uio.h>

struct video_team;

struct video_source {
    const uint8_t *ready; /* the first bytes: all there are, in memory, or those that were peeked */
    size_t ready_bytes;
    uint8_t kept[PEEK_BYTES];
    int fd; /* -1 = memory */
    bool close_fd;
    bool seekable;           /* a regular file */
    struct video_team *team; /* threads that read it in parallel; NULL = one is enough */
    struct mapped_file *map; /* of a regular file whose frames are lent; else NULL */
    uint64_t base;           /* where in the file the stream begins */
    uint64_t offset;         /* of the next byte, in the stream */
    int cancel_fd;           /* becomes readable on cancelling; -1 = nothing waits */
    atomic_bool cancelled;
};

/* Open for reading. On failure nothing is left open. */
bool video_source_open(struct video_source *source, const char *path, struct error *error);
void video_source_open_memory(struct video_source *source, const void *data, size_t bytes);
void video_source_close(struct video_source *source);

/* Fill the pieces, which are changed. VIDEO_READ_END: the source ended before. `*got` says how many
 * bytes were read. */
enum video_read video_source_read(struct video_source *source, struct iovec *pieces, size_t count,
                                  uint64_t *got, struct error *error);

/* Skip bytes. Returns as video_source_read does. */
enum video_read video_source_skip(struct video_source *source, uint64_t bytes, uint64_t *got,
                                  struct error *error);

/* Map the file. False if it is not a regular file or mapping fails. */
bool video_source_map(struct video_source *source);

/* The length of the whole stream; 0 = unknown, as that of a pipe. False: the file does not tell. */
bool video_source_bytes(const struct video_source *source, uint64_t *bytes, struct error *error);

/* A hint, after every `bytes` read: those after the next `bytes` will be read soon. */
void video_source_ahead(const struct video_source *source, uint64_t bytes);

#endif
