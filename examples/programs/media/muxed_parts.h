/* What the files behind muxed.h share: muxed.c writes, muxed_join.c joins pieces. Each has either
 * an encoder or packets that exist already, and what is copied.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUXED_PARTS_H
#define MUXED_PARTS_H

#include "muxed.h"
#include "libav_calls.h"
#include "common/outfile.h"
#include "video_format.h"

#include <stdatomic.h>

/* --- The container (muxed.c) ------------------------------------------------------------------ */

struct muxed_file {
    struct muxed_params params;
    struct outfile *place;
    int fd; /* the outfile's */
    AVFormatContext *container;
    AVCodecContext *encoder; /* NULL = packets exist already */
    AVRational tick;         /* of the video's times */
    AVStream *video;
    AVFrame *frame;
    AVPacket *packet;
    struct muxed_copies *copies; /* NULL = there is no source */
    struct video_planes planes;
    int64_t last; /* the last frame's time in the encoder's ticks; AV_NOPTS_VALUE = no frame yet */
    int64_t step; /* ticks from one frame to the next, if the stream does not say */
    uint64_t frames;
    int failure; /* errno of the first write or seek that failed; 0 = none */
    bool begun;  /* the header has been written */
    bool misfit; /* the pieces cannot be joined: another try would not help */
    _Atomic uint64_t bytes;
};

/* A file with its container and packet. NULL: `error` says why. Free it with muxed_finish or
 * muxed_abandon. */
struct muxed_file *muxed_new(const struct muxed_params *params, struct error *error);

/* After `video` is described: open the output, and add the streams that are copied. */
bool muxed_open_place(struct muxed_file *file, const char *path, struct error *error);

/* Write the header. The first frame's time is `first`, in the video's ticks. What is copied starts
 * there if the file is of a later part of the source. */
bool muxed_begin(struct muxed_file *file, int64_t first, struct error *error);

/* Write a packet, after the copied ones that are due before it. Its times are in the video's
 * ticks. */
bool muxed_write_packet(struct muxed_file *file, AVPacket *packet, struct error *error);

/* muxed_copies_origin_us in the video's ticks; 0 without a source. */
int64_t muxed_origin(const struct muxed_file *file);

/* --- The encoder (muxed_encoder.c) ------------------------------------------------------------ */

/* An open encoder for the container. The frames' times count ticks of its time base. NULL: `error`
 * says why. */
AVCodecContext *muxed_open_encoder(const AVOutputFormat *container,
                                   const struct muxed_params *params,
                                   const struct video_format *format, struct error *error);

/* --- What is copied (muxed_copies.c) ---------------------------------------------------------- */

struct muxed_copies;

/* NULL: `error` says why. */
struct muxed_copies *muxed_copies_open(const struct muxed_params *params, struct error *error);
void muxed_copies_close(struct muxed_copies **copies);

/* Before the header of `out` is written: add a stream for each that it can hold, and report the
 * others. */
bool muxed_copies_add(struct muxed_copies *copies, AVFormatContext *out,
                      const struct muxed_params *params, struct error *error);

/* Copy what still holds for the new video: language, title, flags, rotation; and the metadata of
 * the whole file. False: out of memory. */
bool muxed_copies_describe(const struct muxed_copies *copies, AVFormatContext *out,
                           AVStream *video);

/* Copy the chapters between two times; AV_NOPTS_VALUE = no limit. False: out of memory. */
bool muxed_copies_chapters(const struct muxed_copies *copies, AVFormatContext *out,
                           int64_t begin_us, int64_t end_us);

/* Copy packets of these times only, in microseconds; AV_NOPTS_VALUE = no limit. */
void muxed_copies_begin(struct muxed_copies *copies, int64_t begin_us);
void muxed_copies_end(struct muxed_copies *copies, int64_t end_us);

/* Write the packets that are due before `until_us`; INT64_MAX = all that are left. */
bool muxed_copies_write(struct muxed_copies *copies, AVFormatContext *out, int64_t until_us,
                        struct error *error);

/* The start of the source's clock: 0, except for broadcasts, whose clocks started long ago. */
int64_t muxed_copies_origin_us(const struct muxed_copies *copies);
uint32_t muxed_copies_count(const struct muxed_copies *copies);

/* Packets that were damaged. With `params->strict` there are none. */
uint64_t muxed_copies_damaged(const struct muxed_copies *copies);

#endif
