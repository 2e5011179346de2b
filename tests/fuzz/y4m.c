/* Fuzz target: y4m and raw frames. Reading must not crash or write beyond a row. After the end or an error, each
 * further read gives the same answer.
 *
 * An input that begins with "Y" is read as y4m. In any other the first four bytes choose the raw format, width,
 * height, and how much longer than a row the pitch is. The frames follow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "media/video.h"

/* Larger frames only make the target slow. */
enum { FRAME_BYTES_MAX = 1 << 15, FRAMES_MAX = 4, FILL = 0xa5 };

struct frame {
    uint32_t planes;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    size_t pitch[COX_VIDEO_PLANES_MAX];
    void *memory[COX_VIDEO_PLANES_MAX];
};

/* Returns false if the frame is too large. */
static bool frame_make(struct frame *frame, const struct video_format *format, size_t extra)
{
    uint64_t bytes = 0;
    memset(frame, 0, sizeof *frame);
    frame->planes = cox_video_planes(&format->pixel, format->width, format->height, frame->plane);
    CHECK(frame->planes >= 1 && frame->planes <= COX_VIDEO_PLANES_MAX);
    for (uint32_t p = 0; p < frame->planes; p++) {
        frame->pitch[p] = frame->plane[p].row_bytes + extra;
        bytes += (uint64_t)frame->pitch[p] * frame->plane[p].rows;
    }
    if (bytes > FRAME_BYTES_MAX)
        return false;
    for (uint32_t p = 0; p < frame->planes; p++) {
        size_t all = frame->pitch[p] * frame->plane[p].rows;
        frame->memory[p] = malloc(all);
        CHECK(frame->memory[p]);
        memset(frame->memory[p], FILL, all);
    }
    return true;
}

static void frame_check(const struct frame *frame)
{
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++) {
            const uint8_t *bytes = (const uint8_t *)frame->memory[p] + row * frame->pitch[p];
            for (size_t i = frame->plane[p].row_bytes; i < frame->pitch[p]; i++)
                CHECK(bytes[i] == FILL);
        }
}

static void frame_free(struct frame *frame)
{
    for (uint32_t p = 0; p < frame->planes; p++)
        free(frame->memory[p]);
}

static void check_format(const struct video_format *format)
{
    CHECK(format->width >= 1 && format->width <= VIDEO_SIDE_MAX);
    CHECK(format->height >= 1 && format->height <= VIDEO_SIDE_MAX);
    CHECK((uint64_t)format->width * format->height <= VIDEO_PIXELS_MAX);
    CHECK(!format->rate.num == !format->rate.den && !format->aspect.num == !format->aspect.den);
    CHECK(format->interlacing == 'p' || format->interlacing == '?');
    CHECK(*format->text && memchr(format->text, 0, sizeof format->text));
    for (const char *c = format->text; *c; c++) /* it is printed, so it must be printable */
        CHECK(*c >= ' ' && *c <= '~');
}

/* Returns the number of frames read. */
static uint64_t read_all(struct video_input *input, size_t extra)
{
    struct error error = {""}, again = {""};
    struct frame frame;
    uint64_t frames = 0;
    enum video_read result = VIDEO_READ_FRAME;
    if (!frame_make(&frame, video_input_format(input), extra))
        return 0;
    while (frames < FRAMES_MAX &&
           (result = video_input_read(input, frame.memory, frame.pitch, &error)) == VIDEO_READ_FRAME) {
        frames++;
        frame_check(&frame);
    }
    CHECK(result != VIDEO_READ_CANCELLED);
    CHECK((result == VIDEO_READ_ERROR) == (*error.text != 0));
    if (result != VIDEO_READ_FRAME)
        CHECK(video_input_read(input, frame.memory, frame.pitch, &again) == result && !strcmp(error.text, again.text));
    frame_check(&frame);
    frame_free(&frame);
    return frames;
}

/* Skipping frames must reach the end at the same place as reading them. */
static void skip_all(const uint8_t *data, size_t size, const struct video_raw *raw, uint64_t frames)
{
    struct error error = {""};
    struct video_input *input;
    if (frames == 0 || frames == FRAMES_MAX)
        return;
    CHECK(video_input_open_memory(&input, data, size, raw, &error));
    CHECK(video_input_skip(input, frames, &error) == VIDEO_READ_FRAME);
    CHECK(video_input_skip(input, 1, &error) != VIDEO_READ_FRAME);
    video_input_close(&input);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"nv12",    "p010",        "p016",      "yuv420p",   "yuv422p",
                                        "yuv444p", "yuv420p10le", "yuv422p12", "yuv444p16", "rgba16f"};
    struct video_raw raw = {0};
    struct video_input *input;
    struct error error = {""};
    size_t extra = 4;
    if (size < 4)
        return 0;
    if (data[0] != 'Y') {
        raw.given = true;
        CHECK(video_raw_find(names[data[0] % (sizeof names / sizeof names[0])], &raw));
        raw.width = data[1];
        raw.height = data[2];
        extra = data[3];
        data += 4;
        size -= 4;
    }
    if (!video_input_open_memory(&input, data, size, &raw, &error)) {
        CHECK(!input && *error.text);
        return 0;
    }
    check_format(video_input_format(input));
    uint64_t frames = read_all(input, extra);
    video_input_close(&input);
    CHECK(!input);
    skip_all(data, size, &raw, frames);
    return 0;
}
