/* The muxed output file, Matroska or MP4: video encoded by libavcodec, the rest of its source
 * copied.
 *
 * The file appears under its name when it is whole (outfile.h), or not at all. Frames keep their
 * times. Sound, subtitles, attachments, chapters and metadata come from the source, which is read a
 * second time for them. What the container cannot hold is left out and reported.
 *
 * Thread-safety: one file from one thread at a time; muxed_bytes from any thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MUXED_H
#define MUXED_H

#include "video.h"

struct muxed_file;

/* All strings must stay valid until the file is finished or abandoned. */
struct muxed_params {
    const char *container; /* libavformat's name: "matroska" or "mp4" */
    const char *encoder;   /* NAME[:key=value,...]; NULL = libx264, or else the container's own */
    const char *crf;       /* NULL = the encoder's default, here and below */
    const char *preset;
    const char *source;     /* the container that the frames come from; NULL = nothing is copied */
    const uint32_t *stream; /* which of its streams they are; NULL = the best one */
    bool strict;            /* damaged packets of the source are an error */
    bool keep_existing;     /* outfile_keep_existing */
    const char *piece;      /* which piece of which film; NULL = none. Matroska keeps it */

    /* The part of the source's frames that is written: a late start, an early end; 0 = all. */
    uint64_t start, frames;

    /* Called for each stream of the source that is left out: what it is, and why. On the thread
     * that opens. */
    void (*left_out)(void *user, const char *what);
    void *user;
};

/* Open the encoder, look at what to copy, and start a file. The frames in `format` are planes of
 * Y', Cb and Cr, or as muxed_interleaves says. They are of SDR and BT.709 unless `colours` names PQ
 * or BT.2020. They come at `rate` if there is no `tick`. On failure, `*out` is NULL. A file that
 * exists is not touched. */
bool muxed_open(struct muxed_file **out, const char *path, const struct muxed_params *params,
                const struct video_format *format, struct error *error);

/* Whether the encoder takes frames of 4:2:0 with `depth` bits only with Cb and Cr interleaved. False
 * if there is no such encoder; NULL = the default one. */
bool muxed_interleaves(const char *encoder, uint32_t depth);

/* Encode the next frame, which is copied once. `time` is that of struct video_frame. Blocks while the
 * encoder takes no more. */
bool muxed_write(struct muxed_file *file, const void *const planes[COX_VIDEO_PLANES_MAX],
                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], int64_t time, struct error *error);

struct muxed_written {
    uint64_t bytes;   /* of the file */
    uint64_t damaged; /* packets of the source: copied unchanged, or unreadable */
};

/* Write what the encoder still holds and the rest of what is copied, and give the file its name.
 * Sets `*file` to NULL, also on failure. */
bool muxed_finish(struct muxed_file **file, struct muxed_written *written, struct error *error);

/* Close; no file is left. Accepts NULL. */
void muxed_abandon(struct muxed_file **file);

/* Join pieces that were encoded in the same way, in their order, and copy what else
 * `params->source` holds. The encoder's fields, `start` and `piece` are not read. The field
 * `frames` counts the frames of all pieces. Frames have the times of the source. On failure,
 * `*misfit` is true if the pieces cannot be joined, so that another try would not help. */
bool muxed_join(const char *path, const struct muxed_params *params, const char *const pieces[],
                uint32_t count, struct muxed_written *written, bool *misfit, struct error *error);

/* Bytes written until now. */
uint64_t muxed_bytes(const struct muxed_file *file);

/* How many streams are copied; the encoder's name. */
uint32_t muxed_copied(const struct muxed_file *file);
const char *muxed_encoder(const struct muxed_file *file);

#endif
