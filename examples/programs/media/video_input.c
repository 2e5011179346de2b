/* Opening video: tells the kind by the first bytes; what y4m and raw frames share.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture_kinds.h"
#include "video_kinds.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool begins(const uint8_t *bytes, size_t count, const char *with)
{
    size_t length = strlen(with);
    return count >= length && !memcmp(bytes, with, length);
}

static bool is_y4m(const uint8_t *bytes, size_t count)
{
    return begins(bytes, count, "YUV4MPEG2");
}

static bool is_picture(const uint8_t *bytes, size_t count)
{
    return picture_kind_exr.matches(bytes, count) || picture_kind_hdr.matches(bytes, count) ||
           picture_kind_pfm.matches(bytes, count);
}

static enum video_kind kind_of(const char *path, const uint8_t *bytes, size_t count)
{
    if (is_y4m(bytes, count))
        return VIDEO_KIND_Y4M;
#if COX_HAVE_LIBAV
    if (count && !is_picture(bytes, count) && video_libav_knows(path, bytes, count))
        return VIDEO_KIND_CONTAINER;
#else
    (void)path;
#endif
    return VIDEO_KIND_NONE;
}

enum video_kind video_kind_of(const char *path)
{
    uint8_t bytes[PEEK_BYTES];
    size_t count;
    return peek_look(path, bytes, &count) ? kind_of(path, bytes, count) : VIDEO_KIND_NONE;
}

void video_describe(struct video_format *format, const char *prefix)
{
    const struct cox_video_format *pixel = &format->pixel;
    const char *chroma = !pixel->chroma_x_log2 ? "4:4:4" : pixel->chroma_y_log2 ? "4:2:0" : "4:2:2";
    if (format->light)
        snprintf(format->text, sizeof format->text, "%s, RGBA, half", prefix);
    else if (pixel->layout == COX_VIDEO_RGBA || pixel->layout == COX_VIDEO_BGRA)
        snprintf(format->text, sizeof format->text, "%s, %s, %u bits", prefix,
                 pixel->layout == COX_VIDEO_BGRA ? "BGRA" : "RGBA", pixel->depth);
    else
        snprintf(format->text, sizeof format->text, "%s, %s%s, %u bits%s", prefix,
                 pixel->layout == COX_VIDEO_SEMI_PLANAR ? "semi-planar "
                 : pixel->layout == COX_VIDEO_V210      ? "v210, "
                                                        : "",
                 pixel->layout == COX_VIDEO_GBR ? "R'G'B' in planes" : chroma, pixel->depth,
                 pixel->range == COX_RANGE_FULL ? ", full range" : "");
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* What a file is that is none of ours, as far as it helps a person. */
static bool fail_unknown(const uint8_t *bytes, size_t count, struct error *error)
{
    if (!count)
        return error_set(error, "it is empty");
    if (is_picture(bytes, count))
        return error_set(error, "it is a picture, not video");
#if !COX_HAVE_LIBAV
    bool matroska = begins(bytes, count, "\x1a\x45\xdf\xa3");
    if (matroska || (count >= 12 && !memcmp(bytes + 4, "ftyp", 4)))
        return error_set(error, "it is a %s file, and this program was built without libavformat",
                         matroska ? "Matroska" : "MP4");
#endif
    return error_set(
        error,
        "it is neither y4m nor a container that is known here (raw frames need their size and "
        "format said)");
}

/* By content: sets `reader`. */
static bool choose_kind(struct video_input *input, const char *path, struct error *error)
{
    uint8_t bytes[PEEK_BYTES];
    size_t count;
    if (!peek_look(path, bytes, &count)) {
        input->reader = &video_reader_y4m; /* opening it says why it cannot be read */
        return true;
    }
    switch (kind_of(path, bytes, count)) {
    case VIDEO_KIND_Y4M:
        input->reader = &video_reader_y4m;
        return true;
#if COX_HAVE_LIBAV
    case VIDEO_KIND_CONTAINER:
        input->reader = &video_reader_libav;
        return true;
#endif
    default:
        return fail_unknown(bytes, count, error);
    }
}

static void take_raw(struct video_input *input, const struct video_raw *raw)
{
    input->reader = &video_reader_raw;
    input->format.width = raw->width;
    input->format.height = raw->height;
    input->format.pixel = raw->pixel;
    input->format.light = raw->light;
    input->format.rate = raw->rate;
}

static struct video_input *allocate(struct error *error)
{
    struct video_input *input = calloc(1, sizeof *input);
    if (!input) {
        error_set(error, "out of memory");
        return NULL;
    }
    input->time = VIDEO_NO_TIME;
    video_source_open_memory(&input->source, NULL, 0);
    return input;
}

bool video_input_open(struct video_input **out, const char *path, const struct video_raw *raw,
                      struct error *error)
{
    *out = NULL;
    struct video_input *input = allocate(error);
    if (!input)
        return false;
    input->path = path;
    if (raw && raw->given)
        take_raw(input, raw);
    else if (!choose_kind(input, path, error))
        goto fail;
    if ((input->reader == &video_reader_y4m || input->reader == &video_reader_raw) &&
        !video_source_open(&input->source, path, error))
        goto fail;
    if (!input->reader->open(input, error))
        goto fail;
    input->path = NULL;
    *out = input;
    return true;
fail:
    video_source_close(&input->source);
    free(input);
    return false;
}

bool video_input_open_memory(struct video_input **out, const void *data, size_t bytes,
                             const struct video_raw *raw, struct error *error)
{
    *out = NULL;
    struct video_input *input = allocate(error);
    if (!input)
        return false;
    video_source_open_memory(&input->source, data, bytes);
    if (raw && raw->given)
        take_raw(input, raw);
    else
        input->reader = &video_reader_y4m;
    if (!input->reader->open(input, error)) {
        free(input);
        return false;
    }
    *out = input;
    return true;
}

const struct video_format *video_input_format(const struct video_input *input)
{
    return &input->format;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

enum video_read video_fail_truncated(const struct video_input *input, uint64_t begin,
                                     uint64_t missing, struct error *error)
{
    error_set(error,
              "frame %" PRIu64 " (the first is 0), which begins at byte %" PRIu64
              ", is not whole: the stream ends at "
              "byte %" PRIu64 ", %" PRIu64 " bytes are missing",
              input->next_frame, begin, input->source.offset, missing);
    return VIDEO_READ_ERROR;
}

enum video_read video_read_samples(struct video_input *input, uint64_t begin, void *const memory[],
                                   const size_t pitch_bytes[], struct error *error)
{
    struct video_source *source = &input->source;
    uint64_t first = source->offset, frame_bytes = input->planes.frame_bytes;
    enum video_read result = VIDEO_READ_FRAME;
    input->samples = first;
    if (!memory) {
        uint64_t got;
        result = video_source_skip(source, frame_bytes, &got, error);
    } else {
        struct video_rows rows = {0};
        struct iovec pieces[VIDEO_PIECES];
        size_t count;
        while (result == VIDEO_READ_FRAME &&
               (count = video_rows_next(&rows, &input->planes, memory, pitch_bytes, pieces))) {
            uint64_t got;
            result = video_source_read(source, pieces, count, &got, error);
        }
        if (result == VIDEO_READ_FRAME)
            video_source_ahead(source, frame_bytes);
    }
    uint64_t came = source->offset - first;
    if (result != VIDEO_READ_END || (!came && begin == first))
        return result;
    return video_fail_truncated(input, begin, frame_bytes - came, error);
}

/* Whether there is sense in going on; else *result says why not. What went wrong once goes on being wrong. */
static bool may_read(const struct video_input *input, enum video_read *result, struct error *error)
{
    if (input->failed) {
        *error = input->error;
        *result = VIDEO_READ_ERROR;
        return false;
    }
    *result = VIDEO_READ_CANCELLED;
    return !atomic_load(&input->source.cancelled);
}

/* What came of a frame. */
static enum video_read counted(struct video_input *input, enum video_read result,
                               struct error *error)
{
    if (result == VIDEO_READ_FRAME && ++input->next_frame > VIDEO_FRAMES_MAX) {
        error_set(error, "more than %d frames", VIDEO_FRAMES_MAX);
        result = VIDEO_READ_ERROR;
    }
    if (result == VIDEO_READ_ERROR) {
        input->failed = true;
        input->error = *error;
    }
    return result;
}

/* The next frame to `memory`, or nowhere. */
static enum video_read next(struct video_input *input, void *const memory[],
                            const size_t pitch_bytes[], struct error *error)
{
    enum video_read result;
    return may_read(input, &result, error)
               ? counted(input, input->reader->read(input, memory, pitch_bytes, error), error)
               : result;
}

enum video_read video_input_read(struct video_input *input,
                                 void *const planes[COX_VIDEO_PLANES_MAX],
                                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                                 struct error *error)
{
    if (!video_rows_fit(&input->planes, pitch_bytes, error))
        return VIDEO_READ_ERROR;
    return next(input, planes, pitch_bytes, error);
}

/* To pass over fewer frames they are read. */
enum { SEEK_LEAST = 8 };

enum video_read video_input_skip(struct video_input *input, uint64_t frames, struct error *error)
{
    enum video_read result = VIDEO_READ_FRAME;
    if (frames >= SEEK_LEAST && !input->next_frame && input->reader->seek &&
        may_read(input, &result, error) && input->reader->seek(input, frames, &result, error)) {
        input->next_frame = result == VIDEO_READ_FRAME ? frames - 1 : 0;
        return counted(input, result, error);
    }
    result = VIDEO_READ_FRAME;
    for (uint64_t i = 0; i < frames && result == VIDEO_READ_FRAME; i++)
        result = next(input, NULL, NULL, error);
    return result;
}

bool video_input_whole(const struct video_input *input)
{
    return !input->cut;
}

bool video_input_count(struct video_input *input, uint64_t *frames, struct error *error)
{
    *frames = input->format.frames;
    if (input->cut)
        return error_set(error, "the file is cut off: its last frame is not whole");
    if (input->reader->count)
        return input->reader->count(input, frames, error);
    return *frames ||
           error_set(error, "how many frames it has is not known: it is no file, or an empty one");
}

/* --- Lending ------------------------------------------------------------------------------------------------------ */

bool video_input_lend(struct video_input *input, cox_runtime *runtime,
                      size_t pitch_bytes[COX_VIDEO_PLANES_MAX])
{
    if (!input->reader->lender->lend(input, runtime, pitch_bytes))
        return false;
    input->lends_to = runtime;
    return true;
}

enum video_read video_input_borrow(struct video_input *input,
                                   cox_buffer *planes[COX_VIDEO_PLANES_MAX], struct error *error)
{
    enum video_read result;
    return may_read(input, &result, error)
               ? counted(input, input->reader->lender->borrow(input, planes, error), error)
               : result;
}

bool video_input_kept(const struct video_input *input,
                      cox_buffer *const planes[COX_VIDEO_PLANES_MAX], struct error *error)
{
    return input->reader->lender->kept(input, planes, error);
}

void video_input_return(struct video_input *input, cox_buffer *planes[COX_VIDEO_PLANES_MAX])
{
    if (planes[0])
        input->reader->lender->give_back(input, planes);
    for (uint32_t p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        planes[p] = NULL;
}

void video_input_reclaim(struct video_input *input)
{
    if (!input || !input->lends_to)
        return;
    input->reader->lender->reclaim(input);
    input->lends_to = NULL;
}

int64_t video_input_time(const struct video_input *input)
{
    return input->time;
}

bool video_input_rate_varies(const struct video_input *input)
{
    return atomic_load(&input->rate_varies);
}

void video_input_cancel(struct video_input *input)
{
    int before = errno;
    atomic_store(&input->source.cancelled, true);
    if (input->source.cancel_fd >= 0) {
        uint64_t one = 1;
        (void)!write(input->source.cancel_fd, &one, sizeof one);
    }
    errno = before;
}

void video_input_close(struct video_input **input)
{
    if (!*input)
        return;
    if ((*input)->reader->close)
        (*input)->reader->close(*input);
    video_source_close(&(*input)->source);
    free(*input);
    *input = NULL;
}
