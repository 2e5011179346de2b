/* Reading and lending frames of any kind of video.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"
#include "video_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Skipping fewer frames reads them. */
enum { SEEK_LEAST = 8 };

const struct video_format *video_input_format(const struct video_input *input)
{
    return &input->format;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* False after an error, which is final, and after a cancel; `*result` says which. */
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

/* Whether the file is shorter than it was when it was opened: then this end is not the film's. */
static bool was_truncated(const struct video_input *input, struct error *error)
{
    struct file_state state;
    if (!file_state_of(input->watch_fd, &state) || state.bytes >= input->opened.bytes)
        return false;

    error_set(error, "the file was truncated to %" PRIu64 " bytes while it was read", state.bytes);
    return true;
}

/* Count a frame that was read, and keep an error. */
static enum video_read count_frame(struct video_input *input, enum video_read result,
                                   struct error *error)
{
    if (result == VIDEO_READ_FRAME && ++input->next_frame > VIDEO_FRAMES_MAX) {
        error_set(error, "more than %d frames", VIDEO_FRAMES_MAX);
        result = VIDEO_READ_ERROR;
    }

    if (result == VIDEO_READ_END && was_truncated(input, error))
        result = VIDEO_READ_ERROR;
    if (result == VIDEO_READ_ERROR) {
        input->failed = true;
        input->error = *error;
    }
    return result;
}

/* Read the next frame into `memory`, or skip it if that is NULL. */
static enum video_read next(struct video_input *input, void *const memory[],
                            const size_t pitch_bytes[], struct error *error)
{
    enum video_read result;
    if (!may_read(input, &result, error))
        return result;
    result = input->reader->read(input, memory, pitch_bytes, error);
    return count_frame(input, result, error);
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

enum video_read video_input_skip(struct video_input *input, uint64_t frames, struct error *error)
{
    enum video_read result = VIDEO_READ_FRAME;
    const uint64_t to = input->next_frame + frames;
    if (frames >= SEEK_LEAST && input->reader->seek && may_read(input, &result, error) &&
        input->reader->seek(input, to, &result, error)) {
        if (result == VIDEO_READ_FRAME)
            input->next_frame = to - 1;
        return count_frame(input, result, error);
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

void video_input_without_cache(struct video_input *input)
{
    input->no_cache = true;
}

static bool has_changed(const struct video_input *input)
{
    struct file_state state;
    return file_state_of(input->watch_fd, &state) &&
           (state.modified_ns != input->opened.modified_ns || state.bytes != input->opened.bytes);
}

bool video_input_notice(struct video_input *input, uint32_t n, char *text, size_t bytes)
{
    if (has_changed(input) && !n--) {
        snprintf(text, bytes, "the file changed while it was read");
        return true;
    }
    return input->reader->notice && input->reader->notice(input, n, text, bytes);
}

bool video_input_damaged(const struct video_input *input)
{
    return input->damaged;
}

bool video_input_count(struct video_input *input, uint64_t *frames, struct error *error)
{
    *frames = input->format.frames;
    if (input->cut)
        return error_set(error, "truncated: its last frame is incomplete");
    if (input->reader->count)
        return input->reader->count(input, frames, error);
    return *frames ||
           error_set(error, "unknown number of frames: it is empty, or not a regular file");
}

bool video_input_frame_at(struct video_input *input, double seconds, struct video_rational rate,
                          uint64_t *frame, struct error *error)
{
    enum video_read result = VIDEO_READ_FRAME;
    if (input->reader->after && input->reader->after(input, seconds, frame, &result, error)) {
        *frame -= *frame > 0; /* shown until then */
        return true;
    }
    if (result != VIDEO_READ_FRAME)
        return false;

    if (!rate.num)
        rate = input->format.rate;
    if (!rate.num || !rate.den)
        return error_set(error, "has no frame rate to find a time with; use frame numbers");

    /* Times with few digits, such as 0.33 for the second of three frames, are just below it. */
    const double number = seconds * rate.num / rate.den + 0.01;
    *frame = number < VIDEO_FRAMES_MAX ? (uint64_t)number : VIDEO_FRAMES_MAX;
    return true;
}

/* --- Lending ---------------------------------------------------------------------------------- */

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
    if (!may_read(input, &result, error))
        return result;
    result = input->reader->lender->borrow(input, planes, error);
    return count_frame(input, result, error);
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

const struct video_frame *video_input_frame(const struct video_input *input)
{
    return &input->frame;
}

bool video_input_rate_varies(const struct video_input *input)
{
    return atomic_load(&input->rate_varies);
}

void video_input_cancel(struct video_input *input)
{
    const int before = errno;
    const uint64_t one = 1;

    atomic_store(&input->source.cancelled, true);
    if (input->source.cancel_fd >= 0)
        (void)!write(input->source.cancel_fd, &one, sizeof one);
    errno = before;
}

void video_input_close(struct video_input **input)
{
    if (!*input)
        return;

    if ((*input)->reader->close)
        (*input)->reader->close(*input);
    video_source_close(&(*input)->source);
    video_input_unwatch(*input);
    free(*input);
    *input = NULL;
}
