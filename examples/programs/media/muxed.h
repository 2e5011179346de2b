/* A finished file: video encoded by libavcodec, and what else its source holds copied as it is, in Matroska or MP4.
 *
 * The file appears under its name when it is whole (outfile.h), or not at all. Frames keep their times. Sound,
 * subtitles, attachments, chapters and metadata come from the source, which is read a second time for them; packets are
 * not touched. What the container cannot hold is left out and told.
 *
 * Thread-safety: one finished file from one thread at a time; muxed_bytes from any.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUXED_H
#define MUXED_H

#include "video.h"

struct muxed_file;

/* All strings stay until the file is finished or abandoned. */
struct muxed_params {
    const char *container; /* libavformat's name: "matroska" or "mp4" */
    const char *
        encoder; /* NAME[:key=value,...]; NULL = libx264, or the container's own where that is missing */
    const char *crf; /* NULL = the encoder's default, here and below */
    const char *preset;
    const char *source; /* the container that the frames come from; NULL = nothing is copied */
    const char *piece;  /* which piece of which film it is; NULL = none. Matroska keeps it */
    uint64_t start,
        frames; /* the part of the source's frames that is written: begins late, ends early; 0 = all */
    /* A stream of the source is left out: what it is, and why. On the thread that opens. */
    void (*left_out)(void *user, const char *what);
    void *user;
};

/* The encoder is opened, and what is to be copied looked at; a file is begun. `format` is that of the frames: planes of
 * Y', Cb and Cr in limited range and of BT.709, at `rate` where there is no `tick`. `*out` is NULL unless true is
 * returned. Nothing of a file that exists is touched. */
bool muxed_open(struct muxed_file **out, const char *path, const struct muxed_params *params,
                const struct video_format *format, struct error *error);

/* The next frame, copied once; `time` as video_input_time says. Blocks while the encoder takes no more. */
bool muxed_write(struct muxed_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct error *error);

/* All that the encoder still holds, the rest of what is copied, and the file gets its name. It is gone in any case (set
 * to NULL). `*bytes` is what was written in all. */
bool muxed_finish(struct muxed_file **file, uint64_t *bytes, struct error *error);

/* Close; no file is left. NULL is accepted. */
void muxed_abandon(struct muxed_file **file);

/* A file of pieces that were encoded in the same way, in their order, and of what else `params->source` holds. Its
 * encoder's fields, start and piece are not read; `frames` is how many the pieces have in all. Their frames have the
 * times of the source. `*misfit`, where it fails: the pieces cannot be joined, and another try would not help. */
bool muxed_join(const char *path, const struct muxed_params *params, const char *const pieces[],
                uint32_t count, uint64_t *bytes, bool *misfit, struct error *error);

/* Written so far. */
uint64_t muxed_bytes(const struct muxed_file *file);

/* How many streams are copied, and the encoder's name. */
uint32_t muxed_copied(const struct muxed_file *file);
const char *muxed_encoder(const struct muxed_file *file);

#endif
