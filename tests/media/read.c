/* Reads a film or picture as the programs do, and prints what they would have had:
 *
 *   frame HASH      for each frame
 *   notice TEXT     for each notice
 *   error TEXT      if reading failed; the exit status is then 1
 *
 * media_read [--size WxH --format NAME] [--start N] [--go-on] [--meanwhile cut|grow|flip FRAME] FILE
 *
 * --go-on reads on after damage. --meanwhile changes the file before the frame is read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "media/identity.h"
#include "media/picture.h"
#include "media/video.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
    const char *path;
    struct video_raw raw;
    uint64_t start;
    const char *change; /* NULL = nothing changes */
    uint64_t change_at;
};

static int fail(const char *why)
{
    printf("error %s\n", why);
    return 1;
}

/* Damage three quarters of the way through the file. */
static void change_file(const char *path, const char *how)
{
    const int fd = open(path, O_RDWR);
    struct stat about;
    if (fd < 0 || fstat(fd, &about))
        exit(2);

    const off_t place = about.st_size / 4 * 3;
    char bytes[64] = {0};
    bool done = false;
    if (!strcmp(how, "cut"))
        done = !ftruncate(fd, place);
    else if (!strcmp(how, "grow"))
        done = pwrite(fd, bytes, sizeof bytes, about.st_size) == sizeof bytes;
    else
        done = pwrite(fd, bytes, sizeof bytes, place) == sizeof bytes;
    close(fd);
    if (!done)
        exit(2);
}

static uint64_t hash_rows(uint64_t hash, const uint8_t *rows, size_t row_bytes, size_t pitch_bytes, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++)
        hash = hash_bytes(hash, rows + r * pitch_bytes, row_bytes);
    return hash;
}

/* --- Video --- */

static enum video_read read_frames(struct video_input *input, const struct request *request, struct error *error)
{
    const struct video_format *format = video_input_format(input);
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(&format->pixel, format->width, format->height, planes);
    void *memory[COX_VIDEO_PLANES_MAX] = {NULL};
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0}, row_bytes[COX_VIDEO_PLANES_MAX] = {0};
    for (uint32_t p = 0; p < count; p++) {
        row_bytes[p] = planes[p].row_bytes;
        pitch_bytes[p] = video_row_bytes(&format->pixel, &planes[p]);
        memory[p] = malloc(pitch_bytes[p] * planes[p].rows);
        if (!memory[p])
            exit(2);
    }

    enum video_read result = VIDEO_READ_FRAME;
    if (request->start)
        result = video_input_skip(input, request->start, error);
    for (uint64_t n = 0; result == VIDEO_READ_FRAME; n++) {
        if (request->change && n == request->change_at)
            change_file(request->path, request->change);
        result = video_input_read(input, memory, pitch_bytes, error);
        if (result != VIDEO_READ_FRAME)
            break;
        uint64_t hash = HASH_START;
        for (uint32_t p = 0; p < count; p++)
            hash = hash_rows(hash, memory[p], row_bytes[p], pitch_bytes[p], planes[p].rows);
        printf("frame %016" PRIx64 "\n", hash);
    }

    for (uint32_t p = 0; p < count; p++)
        free(memory[p]);
    return result;
}

static int read_video(const struct request *request)
{
    struct video_input *input;
    struct error error;
    char notice[VIDEO_NOTICE_BYTES];
    if (!video_input_open(&input, request->path, &request->raw, &error))
        return fail(error.text);

    video_input_without_cache(input);
    const enum video_read result = read_frames(input, request, &error);
    for (uint32_t n = 0; video_input_notice(input, n, notice, sizeof notice); n++)
        printf("notice %s\n", notice);
    video_input_close(&input);
    return result == VIDEO_READ_END ? 0 : fail(error.text);
}

/* --- Pictures --- */

static int read_picture(const struct request *request)
{
    struct picture_input *input;
    struct error error;
    if (!picture_input_open(&input, request->path, PICTURE_ALPHA_BLACK, NULL, &error))
        return fail(error.text);

    const struct picture_format *format = picture_input_format(input);
    const size_t pitch_bytes = (size_t)format->width * (format->pixel == COX_PIXEL_RGBA_FLOAT ? 16 : 8);
    uint8_t *pixels = malloc(pitch_bytes * format->height);
    if (!pixels)
        exit(2);

    const enum picture_read result = picture_input_read(input, pixels, pitch_bytes, &error);
    if (result == PICTURE_READ_FRAME)
        printf("frame %016" PRIx64 "\n", hash_rows(HASH_START, pixels, pitch_bytes, pitch_bytes, format->height));
    free(pixels);
    picture_input_close(&input);
    return result == PICTURE_READ_FRAME ? 0 : fail(error.text);
}

int main(int argc, char **argv)
{
    struct request request = {.path = argv[argc - 1]};
    for (int i = 1; i + 1 < argc; i++) {
        if (!strcmp(argv[i], "--go-on"))
            request.raw.goes_on = true;
        else if (!strcmp(argv[i], "--size"))
            request.raw.given = sscanf(argv[++i], "%ux%u", &request.raw.width, &request.raw.height) == 2;
        else if (!strcmp(argv[i], "--format") && !video_raw_find(argv[++i], &request.raw))
            return 2;
        else if (!strcmp(argv[i], "--start"))
            request.start = strtoull(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--meanwhile") && i + 3 < argc) {
            request.change = argv[++i];
            request.change_at = strtoull(argv[++i], NULL, 10);
        }
    }

    if (request.raw.given || video_kind_of(request.path) != VIDEO_KIND_NONE)
        return read_video(&request);
    return read_picture(&request);
}
