/* Opening video: the first bytes tell the kind.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "picture_kinds.h"
#include "video_kinds.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool begins(const uint8_t *bytes, size_t count, const char *with)
{
    size_t length = strlen(with);
    return count >= length && !memcmp(bytes, with, length);
}

static bool is_picture(const uint8_t *bytes, size_t count)
{
    return picture_kind_of(bytes, count) != NULL;
}

static enum video_kind kind_of(const char *path, const uint8_t *bytes, size_t count)
{
    if (begins(bytes, count, "YUV4MPEG2"))
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
    if (!peek_look(path, bytes, &count))
        return VIDEO_KIND_UNREADABLE;
    return kind_of(path, bytes, count);
}

/* What the file is instead, if that helps a person. */
static bool fail_unknown(const uint8_t *bytes, size_t count, struct error *error)
{
    if (!count)
        return error_set(error, "it is empty");
    if (is_picture(bytes, count))
        return error_set(error, "it is a picture, not a video");
#if !COX_HAVE_LIBAV
    const char *container = NULL;

    if (begins(bytes, count, "\x1a\x45\xdf\xa3"))
        container = "Matroska";
    else if (count >= 12 && !memcmp(bytes + 4, "ftyp", 4))
        container = "MP4";

    if (container)
        return error_set(error, "it is a %s file, and this program was built without libavformat",
                         container);
#endif
    return error_set(error,
                     "unknown video format: not y4m or a known container (for raw frames use "
                     "--size and --format)");
}

/* Set `reader` by the content. */
static bool choose_kind(struct video_input *input, const char *path, struct error *error)
{
    uint8_t bytes[PEEK_BYTES];
    size_t count;
    if (!peek_look(path, bytes, &count)) {
        input->reader = &video_reader_y4m; /* opening it reports why it cannot be read */
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

    input->watch_fd = -1;
    input->frame.time = VIDEO_NO_TIME;
    video_source_open_memory(&input->source, NULL, 0);
    return input;
}

void video_input_unwatch(struct video_input *input)
{
    if (input->watch_fd >= 0)
        close(input->watch_fd);
    input->watch_fd = -1;
}

/* Remember the file as it is now, to notice changes. */
static void watch(struct video_input *input)
{
    if (strcmp(input->path, "-"))
        input->watch_fd = open(input->path, O_PATH | O_CLOEXEC);
    else
        input->watch_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (!file_state_of(input->watch_fd, &input->opened))
        video_input_unwatch(input); /* a pipe's writer must see that its reader has gone */
}

/* Read the header. Frames have its colours, unless the reader finds others. */
static bool open_reader(struct video_input *input, struct error *error)
{
    if (!input->reader->open(input, error))
        return false;

    struct video_format *format = &input->format;
    format->colours.range = format->pixel.range;
    format->colours.chroma_location = format->pixel.chroma_location;
    input->frame.colours = format->colours;
    return true;
}

bool video_input_open(struct video_input **out, const char *path, const struct video_raw *raw,
                      struct error *error)
{
    *out = NULL;
    struct video_input *input = allocate(error);
    if (!input)
        return false;

    input->path = path;
    watch(input);
    input->format.file_bytes = input->opened.bytes;
    if (raw) {
        input->memory_max = raw->memory_max;
        input->goes_on = raw->goes_on;
        input->hwdec = raw->hwdec;
        input->tell = raw->tell;
        input->tell_user = raw->tell_user;
        if (raw->has_stream)
            input->stream = &raw->stream;
    }
    if (raw && raw->given)
        take_raw(input, raw);
    else if (!choose_kind(input, path, error))
        goto fail;
    if (input->reader->from_source && !video_source_open(&input->source, path, error))
        goto fail;
    if (!open_reader(input, error))
        goto fail;

    input->path = NULL;
    input->stream = NULL;
    input->hwdec = NULL;
    *out = input;
    return true;

fail:
    video_source_close(&input->source);
    video_input_unwatch(input);
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
    if (!open_reader(input, error)) {
        free(input);
        return false;
    }

    *out = input;
    return true;
}
