/* Decoded frames, checked and copied to the caller's memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <stdio.h>
#include <string.h>

/* Whether a frame has the first one's size and samples; else `what` says what changes. */
static bool same_picture(const struct video_input *input, const AVFrame *frame, char *what,
                         size_t bytes)
{
    const struct libav *libav = input->state;
    const struct video_format *format = &input->format;
    struct cox_video_format pixel;

    if (frame->width != (int)format->width || frame->height != (int)format->height) {
        snprintf(what, bytes, "the picture's size changes from %u x %u to %d x %d", format->width,
                 format->height, frame->width, frame->height);
        return false;
    }

    if (libav_samples_of(libav, frame, &pixel) >= 0 && pixel.depth == format->pixel.depth &&
        pixel.layout == format->pixel.layout &&
        pixel.chroma_x_log2 == format->pixel.chroma_x_log2 &&
        pixel.chroma_y_log2 == format->pixel.chroma_y_log2)
        return true;
    snprintf(what, bytes, "the picture's samples change from %s to %s",
             libav_name(lib.av_get_pix_fmt_name(libav->samples)),
             libav_name(lib.av_get_pix_fmt_name(frame->format)));
    return false;
}

/* Find out whether the frame rate varies. Times are whole ticks, so equal intervals differ by up to
 * one tick; clocks of cameras waver by two in a hundred. */
static void note_time(struct video_input *input, int64_t time)
{
    struct libav *libav = input->state;
    const int64_t before = libav->time;
    libav->time = time;
    if (time == AV_NOPTS_VALUE || before == AV_NOPTS_VALUE || time <= before ||
        (before < 0 && time > INT64_MAX + before)) /* the interval is no int64_t */
        return;

    const int64_t ticks = time - before;
    if (!libav->shortest_ticks || ticks < libav->shortest_ticks)
        libav->shortest_ticks = ticks;
    if (ticks > libav->longest_ticks)
        libav->longest_ticks = ticks;

    const int64_t differ = libav->longest_ticks - libav->shortest_ticks;
    if (differ > 1 && differ > libav->shortest_ticks / 50)
        atomic_store(&input->rate_varies, true);
}

/* Gaps before the first frame that is wanted do not count. */
static void note_gap(struct video_input *input, bool skipped)
{
    struct libav *libav = input->state;
    if (skipped)
        libav->gaps.before = FRAME_GAPS_NO_TIME;
    frame_gaps_add(&libav->gaps, input->next_frame, input->frame.time);
}

/* After damage a frame repeats the metadata of the frame before. */
static bool take_dolby(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    if (libav_take_dolby(libav, error))
        return true;
    if (!input->goes_on || !libav->dolby.profile)
        return false;

    libav_note_harm(input, error->text, 0);
    libav->damage.places++;
    return true;
}

enum video_read libav_next_frame(struct video_input *input, bool skipped, struct error *error)
{
    struct libav *libav = input->state;
    const enum video_read result = libav_decode_next(input, error);
    if (result != VIDEO_READ_FRAME)
        return result;

    char what[128];
    libav->waiting = false;
    if (!same_picture(input, libav->frame, what, sizeof what))
        return libav_fail_frame(input, what, 0, error);

    struct video_frame *about = &input->frame;
    struct error wrong;
    if (!take_dolby(input, &wrong) || !libav_take_colours(&about->colours, libav, &wrong))
        return libav_fail_frame(input, wrong.text, 0, error);

    about->dolby = libav->dolby;
    libav_take_hdr10plus(about, libav->frame);
    about->time = libav->frame->best_effort_timestamp;
    note_time(input, skipped ? AV_NOPTS_VALUE : about->time);
    note_gap(input, skipped);
    return VIDEO_READ_FRAME;
}

void libav_copy_rows(const struct video_planes *planes, const AVFrame *from, void *const memory[],
                     const size_t pitch_bytes[])
{
    for (uint32_t p = 0; p < planes->count; p++)
        for (uint32_t row = 0; row < planes->plane[p].rows; row++)
            memcpy((uint8_t *)memory[p] + row * pitch_bytes[p],
                   from->data[p] + (ptrdiff_t)row * from->linesize[p], planes->plane[p].row_bytes);
}

enum video_read libav_read(struct video_input *input, void *const memory[],
                           const size_t pitch_bytes[], struct error *error)
{
    struct libav *libav = input->state;
    const enum video_read result = libav_next_frame(input, !memory, error);
    if (result != VIDEO_READ_FRAME)
        return result;

    if (memory)
        libav_copy_rows(&input->planes, libav->frame, memory, pitch_bytes);
    lib.av_frame_unref(libav->frame);
    return VIDEO_READ_FRAME;
}

#endif
