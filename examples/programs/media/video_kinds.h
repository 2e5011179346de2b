/* What the kinds of video implement behind video.h, and what they share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_KINDS_H
#define VIDEO_KINDS_H

#include "mapped_file.h"
#include "peek.h"
#include "video_team.h"
#include "video.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* --- Rows of planes as pieces for readv and writev ---------------------------------------------------------------- */

/* Where in a frame the next piece begins. All zeros is the frame's beginning. */
struct video_rows {
    uint32_t plane;
    uint32_t row;
};

/* A frame's samples in memory. */
struct video_planes {
    uint32_t count;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    uint64_t frame_bytes; /* of all planes, rows as files have them */
};

/* As many as the kernel takes at once. */
enum { VIDEO_PIECES = 1024 };

/* Fill `pieces` with what comes next, one piece per row, or per plane where its rows follow each other without a gap.
 * Returns how many; 0 at the frame's end. */
size_t video_rows_next(struct video_rows *rows, const struct video_planes *planes,
                       void *const memory[], const size_t pitch_bytes[],
                       struct iovec pieces[VIDEO_PIECES]);

/* Take `bytes` off the front of `*count` pieces; returns the first one that is left. */
struct iovec *video_rows_advance(struct iovec *pieces, size_t *count, size_t bytes);

/* Whether each pitch holds a row. */
bool video_rows_fit(const struct video_planes *planes, const size_t pitch_bytes[],
                    struct error *error);

/* The planes of a format. False: no such format, or the size is not sane. */
bool video_planes_of(struct video_planes *planes, const struct cox_video_format *pixel,
                     uint64_t width, uint64_t height, struct error *error);

/* --- Bytes, from a file, a pipe or memory ------------------------------------------------------------------------- */

struct video_source {
    const uint8_t *ready; /* come first: all there is, in memory, or what was looked at */
    size_t ready_bytes;
    uint8_t kept[PEEK_BYTES];
    int fd; /* -1 = memory */
    bool close_fd;
    bool seekable;           /* a regular file: read at offsets, */
    struct video_team *team; /* side by side where that pays; else NULL */
    struct mapped_file *map; /* of a regular file whose frames are used in place; else NULL */
    uint64_t base;           /* where in the file the stream begins */
    uint64_t offset;         /* of the next byte, in the stream */
    int cancel_fd;           /* becomes readable on cancelling; -1 = nothing here waits */
    atomic_bool cancelled;
};

/* Open for reading. On failure nothing is left open. */
bool video_source_open(struct video_source *source, const char *path, struct error *error);
void video_source_open_memory(struct video_source *source, const void *data, size_t bytes);
void video_source_close(struct video_source *source);

/* Fill the pieces, which are changed. VIDEO_READ_END: the source ended before; `*got` says how many bytes came. */
enum video_read video_source_read(struct video_source *source, struct iovec *pieces, size_t count,
                                  uint64_t *got, struct error *error);

/* Pass over bytes. As above. */
enum video_read video_source_skip(struct video_source *source, uint64_t bytes, uint64_t *got,
                                  struct error *error);

/* Map the file; false where there is none or that fails. */
bool video_source_map(struct video_source *source);

/* How many bytes the stream has in all; 0 = unknown. */
uint64_t video_source_bytes(const struct video_source *source);

/* A hint, after every `bytes` read: those after the next `bytes` are wanted soon. */
void video_source_ahead(const struct video_source *source, uint64_t bytes);

/* --- What makes the frames (video_maker.c) ------------------------------------------------------------------------ */

enum { VIDEO_THREADS_MAX = 256, VIDEO_WRITERS_MAX = 8 };

struct video_threads {
    uint32_t count;
    pid_t ids[VIDEO_THREADS_MAX];
};

/* All of this process. */
void video_threads_list(struct video_threads *threads);

/* Takes `others` out of `threads`. */
void video_threads_without(struct video_threads *threads, const struct video_threads *others);

/* Processor time that they took so far; 0 for one that has ended. */
uint64_t video_threads_cpu_ns(const struct video_threads *threads);

/* A process that has the input's pipe open for writing. */
struct video_writer {
    clockid_t clock;
    uint64_t first_ns,
        last_ns; /* on its clock: when it was found, and when it was last looked at */
    bool gone;
    char name[VIDEO_NAME_BYTES];
};

struct video_writers {
    bool sought;
    uint32_t count;
    struct video_writer writers[VIDEO_WRITERS_MAX];
};

/* --- Kinds -------------------------------------------------------------------------------------------------------- */

/* How a kind lends frames: video.h's functions of these names. */
struct video_lender {
    bool (*lend)(struct video_input *input, cox_runtime *runtime, size_t pitch_bytes[]);
    enum video_read (*borrow)(struct video_input *input, cox_buffer *planes[], struct error *error);
    bool (*kept)(const struct video_input *input, cox_buffer *const planes[], struct error *error);
    void (*give_back)(struct video_input *input, cox_buffer *planes[]);
    void (*reclaim)(struct video_input *input);
};

/* Whether rows that lie so far apart can be shared out: bands begin where every device's sub-buffers may, at one of
 * enough places. */
bool video_pitch_suits(const cox_runtime *runtime, const struct video_planes *planes,
                       const size_t pitch_bytes[]);

/* y4m and raw files, mapped (video_lend.c). */
extern const struct video_lender video_lender_file;

struct video_reader {
    /* Read the header; fill `format`, `planes`, `state`. On failure nothing is left allocated. */
    bool (*open)(struct video_input *input, struct error *error);
    /* The next frame, or where `memory` is NULL, pass over it. */
    enum video_read (*read)(struct video_input *input, void *const memory[],
                            const size_t pitch_bytes[], struct error *error);
    /* video_input_count; NULL = the format says it. */
    bool (*count)(struct video_input *input, uint64_t *frames, struct error *error);
    /* Pass over so many frames at the stream's beginning without reading them all. VIDEO_READ_END where there are not
     * so many; false, and nothing is passed over: the stream cannot be sought in. NULL = reading is as quick. */
    bool (*seek)(struct video_input *input, uint64_t frames, enum video_read *result,
                 struct error *error);
    void (*close)(struct video_input *input); /* NULL = nothing to do */
    const struct video_lender *lender;
    /* What makes the frames; NULL = nothing, or what writes to the source. */
    void (*maker)(struct video_input *input, struct video_maker *maker);
};

struct video_input {
    const struct video_reader *reader;
    const char *path; /* during open only */
    struct video_format format;
    struct video_planes planes;
    struct video_source source; /* not used by containers, but for cancelling */
    uint64_t next_frame;
    bool cut;                     /* the file ends before it should */
    uint64_t samples;             /* y4m and raw: the byte at which those of the last frame began */
    cox_runtime *lends_to;        /* NULL = frames are read */
    int64_t time;                 /* of the last frame; readers without times leave it */
    struct video_writers writers; /* of video_input_maker alone */
    atomic_bool rate_varies;
    bool failed; /* every further read fails the same way */
    struct error error;
    void *state; /* the kind's own */
};

extern const struct video_reader video_reader_y4m;
extern const struct video_reader video_reader_raw;

/* y4m and raw: the samples of a frame that began at byte `begin`, its header, if any, being read. VIDEO_READ_END if
 * there is no byte of it. */
enum video_read video_read_samples(struct video_input *input, uint64_t begin, void *const memory[],
                                   const size_t pitch_bytes[], struct error *error);

/* The frame that begins at byte `begin` lacks `missing` bytes. Returns VIDEO_READ_ERROR. */
enum video_read video_fail_truncated(const struct video_input *input, uint64_t begin,
                                     uint64_t missing, struct error *error);

/* Fill `text`: "4:2:0, 10 bits" and the like, after `prefix`. */
void video_describe(struct video_format *format, const char *prefix);

#if COX_HAVE_LIBAV
extern const struct video_reader video_reader_libav;

/* Whether libavformat takes the content for a container that holds video. */
bool video_libav_knows(const char *path, const uint8_t *bytes, size_t count);
#endif

#endif
