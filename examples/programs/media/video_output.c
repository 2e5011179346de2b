/* Video out: y4m, raw frames, nothing. Rows go from the caller's memory to the file without a copy.
 * If the output's owner writes, each frame is gathered first.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20 };

/* Before each frame of y4m. */
static const char marker[] = "FRAME\n";
enum { MARKER_BYTES = sizeof marker - 1 };

struct video_output {
    enum video_output_kind kind;
    struct video_planes planes;
    int fd;                   /* -1 = nothing is written, or the owner writes */
    struct video_place place; /* the owner's; all zeros = no owner */
    uint8_t *frame;           /* with a place: the frame that its next call writes */
    bool regular;
    uint64_t base;    /* offset of our first byte in the file */
    uint64_t whole;   /* bytes from there to the end of the last whole frame */
    uint64_t written; /* bytes from there that were written */
    uint64_t frames;
    int failure; /* errno of the write that failed; 0 = none */
};

/* y4m's name of a format, such as "420mpeg2". False if it has none. */
static bool y4m_colours(const struct cox_video_format *pixel, char name[16])
{
    static const char *const sites[] = {
        [COX_CHROMA_LEFT] = "mpeg2", [COX_CHROMA_CENTER] = "jpeg", [COX_CHROMA_TOP_LEFT] = "paldv"};
    if (pixel->layout != COX_VIDEO_PLANAR || (pixel->msb_aligned && pixel->depth < 16))
        return false;

    int chroma = 422;
    if (!pixel->chroma_x_log2)
        chroma = 444;
    else if (pixel->chroma_y_log2)
        chroma = 420;

    if (pixel->depth > 8)
        snprintf(name, 16, "%dp%u", chroma, pixel->depth);
    else if (chroma == 420)
        snprintf(name, 16, "420%s", sites[pixel->chroma_location]);
    else
        snprintf(name, 16, "%d", chroma);
    return true;
}

static bool fail_to_write(struct video_output *output, int failure, struct error *error)
{
    output->failure = failure;
    return error_set(error,
                     "cannot be written, at byte %" PRIu64 ", frame %" PRIu64
                     " (the first is 0): %s",
                     output->written, output->frames, strerror(failure));
}

static void gather_pieces(struct video_output *output, const struct iovec *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(output->frame + (output->written - output->whole), pieces[i].iov_base,
               pieces[i].iov_len);
        output->written += pieces[i].iov_len;
    }
}

/* Write all of the pieces, which are changed. */
static bool write_pieces(struct video_output *output, struct iovec *pieces, size_t count,
                         struct error *error)
{
    if (output->frame) {
        gather_pieces(output, pieces, count);
        return true;
    }

    while (count) {
        ssize_t bytes = writev(output->fd, pieces, (int)count);
        if (bytes < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = output->fd, .events = POLLOUT};
            (void)poll(&wait, 1, -1);
            continue;
        }
        if (bytes < 0 && errno == EINTR)
            continue;
        if (bytes <= 0)
            return fail_to_write(output, bytes ? errno : EIO, error);
        output->written += (uint64_t)bytes;
        pieces = video_rows_advance(pieces, &count, (size_t)bytes);
    }

    return true;
}

bool video_output_layout(struct video_layout *layout, enum video_output_kind kind,
                         const struct video_format *format, struct error *error)
{
    struct video_planes planes;
    char colours[16];

    *layout = (struct video_layout){.header_bytes = 0};
    if (!video_planes_of(&planes, &format->pixel, format->width, format->height, error))
        return false;
    layout->frame_bytes = planes.frame_bytes;
    if (kind != VIDEO_OUTPUT_Y4M)
        return true;
    if (!y4m_colours(&format->pixel, colours))
        return error_set(error, "y4m cannot hold these samples; it needs planes of Y', Cb and Cr");

    const char interlacing = format->interlacing == '?' ? '?' : 'p';
    const char *range = format->pixel.range == COX_RANGE_FULL ? "FULL" : "LIMITED";
    const char *piece = *format->piece ? " XCOXSWAIN=" : "";
    const int length = snprintf(layout->header, sizeof layout->header,
                                "YUV4MPEG2 W%u H%u F%u:%u I%c A%u:%u C%s XCOLORRANGE=%s%s%s\n",
                                format->width, format->height, format->rate.num, format->rate.den,
                                interlacing, format->aspect.num, format->aspect.den, colours, range,
                                piece, format->piece);
    layout->header_bytes = (size_t)length;
    layout->frame_bytes += MARKER_BYTES;
    return true;
}

/* Pipes and devices are opened in place, like files. */
static int open_place(const char *path)
{
    if (!strcmp(path, "-"))
        return fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
}

static bool open_file(struct video_output *output, const char *path, struct error *error)
{
    struct stat about;
    if (!*path)
        return error_set(error, "an empty name");
    output->fd = open_place(path);
    if (output->fd < 0 || fstat(output->fd, &about)) {
        if (errno == EISDIR)
            return error_set(error, "is a directory");
        return error_set(error, "cannot be written: %s", strerror(errno));
    }

    output->regular = S_ISREG(about.st_mode);
    if (!output->regular) {
        (void)fcntl(output->fd, F_SETPIPE_SZ, PIPE_BYTES);
        return true;
    }

    /* Standard output may be a file that holds something already: do not cut that. */
    off_t here = about.st_size;
    if (!(fcntl(output->fd, F_GETFL) & O_APPEND))
        here = lseek(output->fd, 0, SEEK_CUR);
    output->base = here < 0 ? 0 : (uint64_t)here;
    return true;
}

/* Cut the file at the end of the last whole frame. */
static bool cut(const struct video_output *output)
{
    if (!output->regular || output->written == output->whole)
        return true;
    off_t end = (off_t)(output->base + output->whole);
    return !ftruncate(output->fd, end) && lseek(output->fd, end, SEEK_SET) == end;
}

static struct video_output *make(enum video_output_kind kind, const struct video_format *format,
                                 struct video_layout *layout, struct error *error)
{
    struct video_output *output = calloc(1, sizeof *output);
    if (!output) {
        error_set(error, "out of memory");
        return NULL;
    }

    output->fd = -1;
    output->kind = kind;
    if (video_output_layout(layout, kind, format, error) &&
        video_planes_of(&output->planes, &format->pixel, format->width, format->height, error))
        return output;
    free(output);
    return NULL;
}

bool video_output_open(struct video_output **out, const char *path, enum video_output_kind kind,
                       const struct video_format *format, struct error *error)
{
    struct video_layout layout;

    *out = NULL;
    struct video_output *output = make(kind, format, &layout, error);
    if (!output)
        return false;
    if (kind != VIDEO_OUTPUT_NULL && !open_file(output, path, error))
        goto fail;
    struct iovec header = {layout.header, layout.header_bytes};
    if (layout.header_bytes && !write_pieces(output, &header, 1, error)) {
        (void)!cut(output);
        goto fail;
    }
    output->whole = output->written;
    *out = output;
    return true;

fail:
    if (output->fd >= 0)
        close(output->fd);
    free(output);
    return false;
}

bool video_output_open_place(struct video_output **out, const struct video_place *place,
                             enum video_output_kind kind, const struct video_format *format,
                             struct error *error)
{
    struct video_layout layout;

    *out = NULL;
    struct video_output *output = make(kind, format, &layout, error);
    if (!output)
        return false;
    output->place = *place;
    output->frame = malloc(layout.frame_bytes);
    if (!output->frame) {
        free(output);
        return error_set(error, "out of memory");
    }
    *out = output;
    return true;
}

static bool write_rows(struct video_output *output, const void *const planes[],
                       const size_t pitch_bytes[], struct error *error)
{
    /* A write only reads its pieces, though their type is not const. */
    void *memory[COX_VIDEO_PLANES_MAX] = {0};
    struct video_rows rows = {0};
    struct iovec pieces[VIDEO_PIECES];
    size_t count;

    memcpy(memory, planes, output->planes.count * sizeof memory[0]);
    while ((count = video_rows_next(&rows, &output->planes, memory, pitch_bytes, pieces)))
        if (!write_pieces(output, pieces, count, error))
            return false;
    return true;
}

bool video_output_write(struct video_output *output, const void *const planes[COX_VIDEO_PLANES_MAX],
                        const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], struct error *error)
{
    if (output->failure)
        return fail_to_write(output, output->failure, error);
    if (!video_rows_fit(&output->planes, pitch_bytes, error))
        return false;
    if (output->kind == VIDEO_OUTPUT_Y4M) {
        struct iovec begin = {(void *)marker, MARKER_BYTES};
        if (!write_pieces(output, &begin, 1, error))
            return false;
    }
    if ((output->fd >= 0 || output->frame) && !write_rows(output, planes, pitch_bytes, error))
        return false;
    if (output->frame && !output->place.write(output->place.user, output->whole, output->frame,
                                              (size_t)(output->written - output->whole), error)) {
        output->failure = EIO;
        return false;
    }

    output->whole = output->written;
    output->frames++;

    return true;
}

bool video_output_finish(struct video_output **out, struct error *error)
{
    struct video_output *output = *out;

    *out = NULL;
    bool good = true;

    if (output->failure)
        good = fail_to_write(output, output->failure, error);
    if (output->fd >= 0) {
        bool whole = cut(output);
        if (!whole && good)
            good = error_set(error, "cannot be truncated to complete frames: %s", strerror(errno));
        if (close(output->fd) && good)
            good = error_set(error, "cannot be written: %s", strerror(errno));
    }
    free(output->frame);
    free(output);
    return good;
}
