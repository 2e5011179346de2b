/* Video in and out: what is read is what is in the stream, from a file, a pipe or memory; what is written is what was
 * given; and no stream, however bad, does more than fail with words that say where.
 *
 * The streams here are put together byte by byte. Those in containers are made with ffmpeg, where it is installed.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/peek.h"
#include "common/picture.h"
#include "common/video.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

struct bytes {
    uint8_t *data;
    size_t count, capacity;
};

static void put(struct bytes *b, const void *data, size_t count)
{
    if (!count)
        return; /* nothing may be NULL */
    if (b->count + count > b->capacity) {
        b->capacity = (b->count + count) * 2;
        b->data = realloc(b->data, b->capacity);
        if (!b->data)
            abort();
    }
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

static void put_text(struct bytes *b, const char *text)
{
    put(b, text, strlen(text));
}

/* Byte `i` of frame `frame`: no two frames, and no two rows, look alike. */
static uint8_t sample(uint64_t frame, uint64_t i)
{
    uint64_t v = (frame * UINT64_C(0x9e3779b97f4a7c15)) ^ (i * UINT64_C(0xbf58476d1ce4e5b9));
    return (uint8_t)(v >> 29);
}

static void put_frame(struct bytes *b, uint64_t frame, uint64_t frame_bytes)
{
    for (uint64_t i = 0; i < frame_bytes; i++) {
        uint8_t byte = sample(frame, i);
        put(b, &byte, 1);
    }
}

static struct bytes make_y4m(const char *header, const char *marker, uint64_t frames, uint64_t frame_bytes)
{
    struct bytes b = {0};
    put_text(&b, header);
    for (uint64_t f = 0; f < frames; f++) {
        put_text(&b, marker);
        put_frame(&b, f, frame_bytes);
    }
    return b;
}

static struct bytes load_file(const char *path)
{
    struct bytes b = {0};
    FILE *f = fopen(path, "rb");
    cr_assert(f != NULL, "%s cannot be opened", path);
    uint8_t block[65536];
    size_t got;
    while ((got = fread(block, 1, sizeof block, f)))
        put(&b, block, got);
    fclose(f);
    return b;
}

/* --- A frame in memory, with a canary behind every row ------------------------------------------------------------ */

enum { CANARY = 0xa5 };

struct frame {
    uint32_t planes;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    size_t pitch[COX_VIDEO_PLANES_MAX];
    void *memory[COX_VIDEO_PLANES_MAX];
    uint64_t bytes; /* of the samples */
};

static struct frame frame_make(const struct video_format *format, size_t extra)
{
    struct frame frame = {0};
    frame.planes = cox_video_planes(&format->pixel, format->width, format->height, frame.plane);
    cr_assert(frame.planes > 0);
    for (uint32_t p = 0; p < frame.planes; p++) {
        frame.pitch[p] = frame.plane[p].row_bytes + extra;
        frame.memory[p] = malloc(frame.pitch[p] * frame.plane[p].rows);
        cr_assert(frame.memory[p] != NULL);
        memset(frame.memory[p], CANARY, frame.pitch[p] * frame.plane[p].rows);
        frame.bytes += (uint64_t)frame.plane[p].row_bytes * frame.plane[p].rows;
    }
    return frame;
}

static void frame_free(struct frame *frame)
{
    for (uint32_t p = 0; p < frame->planes; p++)
        free(frame->memory[p]);
}

/* The samples, rows packed, as they stand in a stream; checks the canaries. */
static struct bytes frame_pack(const struct frame *frame)
{
    struct bytes b = {0};
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++) {
            const uint8_t *bytes = (const uint8_t *)frame->memory[p] + row * frame->pitch[p];
            put(&b, bytes, frame->plane[p].row_bytes);
            for (size_t i = frame->plane[p].row_bytes; i < frame->pitch[p]; i++)
                cr_assert_eq(bytes[i], CANARY, "plane %u, row %u was left behind its end", p, row);
        }
    return b;
}

static void expect_samples(const struct frame *frame, uint64_t number)
{
    struct bytes b = frame_pack(frame);
    cr_assert_eq(b.count, frame->bytes);
    for (size_t i = 0; i < b.count; i++)
        if (b.data[i] != sample(number, i))
            cr_assert_fail("frame %" PRIu64 ", byte %zu: %u instead of %u", number, i, b.data[i], sample(number, i));
    free(b.data);
}

static const void *const *readable(const struct frame *frame)
{
    return (const void *const *)(const void *)frame->memory;
}

/* --- Ways for a stream to come ------------------------------------------------------------------------------------ */

enum way { MEMORY, FILE_PATH, PIPE, WAYS };
static const char *const way_names[] = {"memory", "file", "pipe"};

/* Gives bytes to a pipe, `step` at a time, and closes it. */
struct giver {
    pthread_t thread;
    int fd;
    const struct bytes *bytes;
    size_t step;
};

static void *give(void *user)
{
    struct giver *giver = user;
    for (size_t at = 0; at < giver->bytes->count;) {
        size_t left = giver->bytes->count - at;
        ssize_t gone = write(giver->fd, giver->bytes->data + at, left < giver->step ? left : giver->step);
        if (gone < 0 && errno == EINTR)
            continue;
        if (gone < 0)
            break; /* the other end is closed */
        at += (size_t)gone;
    }
    close(giver->fd);
    return NULL;
}

static void giver_start(struct giver *giver, int fd, const struct bytes *bytes, size_t step)
{
    signal(SIGPIPE, SIG_IGN); /* a reader that has seen enough closes its end */
    *giver = (struct giver){.fd = fd, .bytes = bytes, .step = step};
    cr_assert_eq(pthread_create(&giver->thread, NULL, give, giver), 0);
}

struct stream {
    enum way way;
    char path[64];
    int fd;
    struct giver giver;
    struct video_input *input;
};

static bool stream_open(struct stream *stream, enum way way, const struct bytes *bytes, size_t step,
                        const struct video_raw *raw, struct picture_error *error)
{
    int ends[2];
    *stream = (struct stream){.way = way, .fd = -1};
    if (way == MEMORY)
        return video_input_open_memory(&stream->input, bytes->data, bytes->count, raw, error);
    if (way == FILE_PATH) {
        stream->fd = memfd_create("stream", MFD_CLOEXEC);
        cr_assert_eq(write(stream->fd, bytes->data, bytes->count), (ssize_t)bytes->count);
    } else {
        cr_assert_eq(pipe(ends), 0);
        stream->fd = ends[0];
        giver_start(&stream->giver, ends[1], bytes, step);
    }
    snprintf(stream->path, sizeof stream->path, "/proc/self/fd/%d", stream->fd);
    return video_input_open(&stream->input, stream->path, raw, error);
}

static void stream_close(struct stream *stream)
{
    video_input_close(&stream->input);
    cr_assert(stream->input == NULL);
    if (stream->fd >= 0)
        close(stream->fd);
    if (stream->way == PIPE)
        pthread_join(stream->giver.thread, NULL);
}

static struct video_raw raw_of(const char *name, uint32_t width, uint32_t height)
{
    struct video_raw raw = {.given = true, .width = width, .height = height};
    cr_assert(video_raw_find(name, &raw), "%s", name);
    return raw;
}

/* Reads `frames` frames of samples, then the end, twice. */
static void expect_stream(const struct bytes *bytes, const struct video_raw *raw, uint64_t frames, size_t extra,
                          size_t step)
{
    for (enum way way = 0; way < WAYS; way++) {
        struct stream stream;
        struct picture_error error = {""};
        cr_assert(stream_open(&stream, way, bytes, step, raw, &error), "%s: %s", way_names[way], error.text);
        const struct video_format *format = video_input_format(stream.input);
        cr_expect_eq(format->frames, way == PIPE ? 0 : frames, "%s: %" PRIu64, way_names[way], format->frames);
        struct frame frame = frame_make(format, extra);
        for (uint64_t f = 0; f < frames; f++) {
            cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME, "%s: %s",
                         way_names[way], error.text);
            expect_samples(&frame, f);
        }
        for (int i = 0; i < 2; i++)
            cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_END);
        frame_free(&frame);
        stream_close(&stream);
    }
}

static void expect_words(const char *text, const char *words, const char *about)
{
    cr_expect(strstr(text, words), "%s: \"%s\" lacks \"%s\"", about, text, words);
}

/* --- y4m: the header ---------------------------------------------------------------------------------------------- */

static bool open_text(const char *header, struct video_format *format, struct picture_error *error)
{
    struct video_input *input = NULL;
    bool opened = video_input_open_memory(&input, header, strlen(header), NULL, error);
    cr_assert_eq(opened, input != NULL);
    if (opened)
        *format = *video_input_format(input);
    video_input_close(&input);
    return opened;
}

Test(y4m, says_what_its_header_says)
{
    static const struct {
        const char *tags;
        uint32_t depth, x_log2, y_log2;
        enum cox_chroma_site site;
        const char *text;
    } cases[] = {
        {"", 8, 1, 1, COX_SITE_CENTRE, "y4m, 4:2:0, 8 bits"},
        {" C420jpeg", 8, 1, 1, COX_SITE_CENTRE, "y4m, 4:2:0, 8 bits"},
        {" C420mpeg2", 8, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C420", 8, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C420paldv", 8, 1, 1, COX_SITE_TOP_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C422", 8, 1, 0, COX_SITE_LEFT, "y4m, 4:2:2, 8 bits"},
        {" C444", 8, 0, 0, COX_SITE_LEFT, "y4m, 4:4:4, 8 bits"},
        {" C420p9", 9, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 9 bits"},
        {" C420p10", 10, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 10 bits"},
        {" C420p12", 12, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 12 bits"},
        {" C420p14", 14, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 14 bits"},
        {" C420p16", 16, 1, 1, COX_SITE_LEFT, "y4m, 4:2:0, 16 bits"},
        {" C422p10", 10, 1, 0, COX_SITE_LEFT, "y4m, 4:2:2, 10 bits"},
        {" C422p12", 12, 1, 0, COX_SITE_LEFT, "y4m, 4:2:2, 12 bits"},
        {" C422p16", 16, 1, 0, COX_SITE_LEFT, "y4m, 4:2:2, 16 bits"},
        {" C444p10", 10, 0, 0, COX_SITE_LEFT, "y4m, 4:4:4, 10 bits"},
        {" C444p12", 12, 0, 0, COX_SITE_LEFT, "y4m, 4:4:4, 12 bits"},
        {" C444p16", 16, 0, 0, COX_SITE_LEFT, "y4m, 4:4:4, 16 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct video_format format;
        struct picture_error error = {""};
        char header[128];
        snprintf(header, sizeof header, "YUV4MPEG2 W1917 H1081%s\n", cases[i].tags);
        cr_assert(open_text(header, &format, &error), "%s: %s", header, error.text);
        cr_expect_eq(format.width, 1917);
        cr_expect_eq(format.height, 1081);
        cr_expect_eq(format.pixel.layout, COX_VIDEO_PLANAR);
        cr_expect_eq(format.pixel.depth, cases[i].depth, "%s", header);
        cr_expect_not(format.pixel.high_bits);
        cr_expect_eq(format.pixel.chroma_x_log2, cases[i].x_log2, "%s", header);
        cr_expect_eq(format.pixel.chroma_y_log2, cases[i].y_log2, "%s", header);
        cr_expect_eq(format.pixel.site, cases[i].site, "%s", header);
        cr_expect_eq(format.pixel.range, COX_RANGE_LIMITED);
        cr_expect_str_eq(format.text, cases[i].text);
        cr_expect(!format.has_range && !format.has_transfer && !format.has_primaries);
        cr_expect(format.rate.num == 0 && format.rate.den == 0 && format.aspect.num == 0 && format.aspect.den == 0);
        cr_expect_eq(format.interlacing, '?');
    }
}

Test(y4m, reads_rate_aspect_interlacing_and_range)
{
    struct video_format f;
    struct picture_error error = {""};
    cr_assert(open_text("YUV4MPEG2 W2 H4 F24000:1001 Ip A128:117 C420p10 XYSCSS=420P10 XCOLORRANGE=FULL\n", &f,
                        &error));
    cr_expect(f.rate.num == 24000 && f.rate.den == 1001 && f.aspect.num == 128 && f.aspect.den == 117);
    cr_expect(f.interlacing == 'p' && f.has_range && f.pixel.range == COX_RANGE_FULL);
    cr_expect_str_eq(f.text, "y4m, 4:2:0, 10 bits, full range");
    /* In any order, spaces doubled, unknown extensions and letters ignored. */
    cr_assert(open_text("YUV4MPEG2  XCOLORRANGE=LIMITED C444  A0:0 I? F0:0 Xsome/comment,W9 Zother X H65536 W1 \n", &f,
                        &error),
              "%s", error.text);
    cr_expect(f.rate.num == 0 && f.rate.den == 0 && f.aspect.num == 0 && f.aspect.den == 0 && f.interlacing == '?');
    cr_expect(f.has_range && f.pixel.range == COX_RANGE_LIMITED && f.width == 1 && f.height == 65536);
    cr_assert(open_text("YUV4MPEG2 W1 H1 F4294967295:4294967295\n", &f, &error));
    cr_expect(f.rate.num == UINT32_MAX && f.rate.den == UINT32_MAX);
    cr_assert(open_text("YUV4MPEG2 W65536 H8192\n", &f, &error)); /* as many pixels as may be */
}

Test(y4m, refuses_a_bad_header_and_says_where)
{
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"", "it ends within the y4m header, at byte 0"},
        {"YUV4", "it ends within the y4m header, at byte 4"},
        {"YUV4MPEG2 W4 H4", "it ends within the y4m header, at byte 15"},
        {"YUV4MPEG W4 H4\n", "does not begin with YUV4MPEG2"},
        {"YUV4MPEG22 W4 H4\n", "does not begin with YUV4MPEG2"},
        {"YUV4MPEG2\n", "no width is given"},
        {"YUV4MPEG2 H4\n", "no width is given"},
        {"YUV4MPEG2 W4\n", "no height is given"},
        {"YUV4MPEG2 W0 H4\n", "at byte 10: \"W0\": a side is a number from 1 to 65536"},
        {"YUV4MPEG2 W4 H0\n", "at byte 13: \"H0\": a side is a number from 1 to 65536"},
        {"YUV4MPEG2 W-4 H4\n", "at byte 10: \"W-4\""},
        {"YUV4MPEG2 W+4 H4\n", "at byte 10: \"W+4\""},
        {"YUV4MPEG2 W H4\n", "at byte 10: \"W\""},
        {"YUV4MPEG2 W4x H4\n", "at byte 10: \"W4x\""},
        {"YUV4MPEG2 W4.5 H4\n", "at byte 10: \"W4.5\""},
        {"YUV4MPEG2 W65537 H4\n", "at byte 10: \"W65537\""},
        {"YUV4MPEG2 W4294967300 H4\n", "at byte 10: \"W4294967300\""},
        {"YUV4MPEG2 W18446744073709551620 H4\n", "at byte 10: \"W18446744073709551620\""},
        {"YUV4MPEG2 W4 H99999999999999999999999999999999999999999999999999\n", "at byte 13"},
        {"YUV4MPEG2 W65536 H8193\n", "too large: 65536 x 8193"},
        {"YUV4MPEG2 W65536 H65536\n", "too large: 65536 x 65536"},
        {"YUV4MPEG2 W4 H4 F25\n", "at byte 16: \"F25\": not a ratio"},
        {"YUV4MPEG2 W4 H4 F25:\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F25:0\n", "at byte 16: \"F25:0\""},
        {"YUV4MPEG2 W4 H4 F0:1\n", "at byte 16: \"F0:1\""},
        {"YUV4MPEG2 W4 H4 F-25:1\n", "at byte 16: \"F-25:1\""},
        {"YUV4MPEG2 W4 H4 F25:1:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F4294967296:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 A1:0\n", "at byte 16: \"A1:0\": not a ratio"},
        {"YUV4MPEG2 W4 H4 A1/1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 It\n", "at byte 16: \"It\": interlaced video"},
        {"YUV4MPEG2 W4 H4 Ib\n", "interlaced video"},
        {"YUV4MPEG2 W4 H4 Im\n", "interlaced video"},
        {"YUV4MPEG2 W4 H4 Ix\n", "unknown interlacing"},
        {"YUV4MPEG2 W4 H4 I\n", "unknown interlacing"},
        {"YUV4MPEG2 W4 H4 Ipp\n", "unknown interlacing"},
        {"YUV4MPEG2 W4 H4 Cmono\n", "at byte 16: \"Cmono\": video without chroma"},
        {"YUV4MPEG2 W4 H4 Cmono10\n", "video without chroma"},
        {"YUV4MPEG2 W4 H4 C444alpha\n", "\"C444alpha\": video with an alpha plane"},
        {"YUV4MPEG2 W4 H4 C411\n", "\"C411\": not 4:2:0, 4:2:2 or 4:4:4"},
        {"YUV4MPEG2 W4 H4 C440\n", "\"C440\""},
        {"YUV4MPEG2 W4 H4 C\n", "\"C\""},
        {"YUV4MPEG2 W4 H4 C420p\n", "\"C420p\""},
        {"YUV4MPEG2 W4 H4 C420p8\n", "\"C420p8\""},
        {"YUV4MPEG2 W4 H4 C420p11\n", "\"C420p11\""},
        {"YUV4MPEG2 W4 H4 C420p100\n", "\"C420p100\""},
        {"YUV4MPEG2 W4 H4 C420p17\n", "\"C420p17\""},
        {"YUV4MPEG2 W4 H4 C420jpegx\n", "\"C420jpegx\""},
        {"YUV4MPEG2 W4 H4 XCOLORRANGE=\n", "at byte 16: \"XCOLORRANGE=\": neither LIMITED nor FULL"},
        {"YUV4MPEG2 W4 H4 XCOLORRANGE=full\n", "neither LIMITED nor FULL"},
        {"YUV4MPEG2 W4 H4 C\x1b[2J\n", "C?[2J"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct video_format format;
        struct picture_error error = {""};
        cr_expect_not(open_text(cases[i].header, &format, &error), "%s", cases[i].header);
        expect_words(error.text, cases[i].words, cases[i].header);
    }
}

Test(y4m, refuses_a_header_with_a_zero_byte_or_without_end)
{
    static const char zero[] = "YUV4MPEG2 W4\0 H4\n";
    struct video_input *input;
    struct picture_error error = {""};
    cr_expect_not(video_input_open_memory(&input, zero, sizeof zero - 1, NULL, &error));
    expect_words(error.text, "at byte 12: a zero byte", "zero");
    struct bytes b = {0};
    put_text(&b, "YUV4MPEG2 W4 H4 X");
    for (int i = 0; i < 100000; i++)
        put(&b, "x", 1);
    for (enum way way = 0; way < WAYS; way++) {
        struct stream stream;
        cr_expect_not(stream_open(&stream, way, &b, 4096, NULL, &error));
        expect_words(error.text, "begins at byte 0 does not end", way_names[way]);
        stream_close(&stream);
    }
    free(b.data);
}

/* --- y4m: frames -------------------------------------------------------------------------------------------------- */

Test(y4m, reads_every_format_at_odd_sizes_from_everywhere)
{
    static const struct {
        const char *name;
        uint32_t x_log2, y_log2, bytes;
    } cases[] = {{"420jpeg", 1, 1, 1}, {"422", 1, 0, 1},    {"444", 0, 0, 1},
                 {"420p10", 1, 1, 2},  {"422p12", 1, 0, 2}, {"444p16", 0, 0, 2}};
    static const uint32_t sizes[][2] = {{1, 1}, {2, 2}, {5, 3}, {16, 8}, {33, 17}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            uint64_t w = sizes[s][0], h = sizes[s][1];
            uint64_t cw = (w + cases[c].x_log2) >> cases[c].x_log2, ch = (h + cases[c].y_log2) >> cases[c].y_log2;
            char header[128];
            snprintf(header, sizeof header, "YUV4MPEG2 W%" PRIu64 " H%" PRIu64 " F25:1 C%s\n", w, h, cases[c].name);
            struct bytes b = make_y4m(header, "FRAME\n", 3, cases[c].bytes * (w * h + 2 * cw * ch));
            expect_stream(&b, NULL, 3, 0, 1); /* a byte at a time */
            expect_stream(&b, NULL, 3, 12, 7);
            free(b.data);
        }
}

Test(y4m, reads_1917x1081_packed_and_with_longer_rows)
{
    uint64_t frame_bytes = 2 * (1917 * 1081 + 2 * 959 * 541);
    struct bytes b = make_y4m("YUV4MPEG2 W1917 H1081 F25:1 C420p10\n", "FRAME\n", 2, frame_bytes);
    expect_stream(&b, NULL, 2, 0, 100003);
    expect_stream(&b, NULL, 2, 64, 65536);
    free(b.data);
}

Test(y4m, passes_over_the_parameters_of_a_frame)
{
    struct bytes b = make_y4m("YUV4MPEG2 W3 H3 C444\n", "FRAME Ipp Xcomment=a b\n", 3, 27);
    for (enum way way = 0; way < WAYS; way++) {
        struct stream stream;
        struct picture_error error = {""};
        cr_assert(stream_open(&stream, way, &b, 1, NULL, &error));
        struct frame frame = frame_make(video_input_format(stream.input), 4);
        for (uint64_t f = 0; f < 3; f++) {
            cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME, "%s",
                         error.text);
            expect_samples(&frame, f);
        }
        cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_END);
        frame_free(&frame);
        stream_close(&stream);
    }
    free(b.data);
}

Test(y4m, refuses_endless_parameters_of_a_frame)
{
    struct bytes b = {0};
    put_text(&b, "YUV4MPEG2 W1 H1\nFRAME ");
    for (int i = 0; i < 5000; i++)
        put(&b, "x", 1);
    struct stream stream;
    struct picture_error error = {""};
    cr_assert(stream_open(&stream, MEMORY, &b, 1, NULL, &error));
    struct frame frame = frame_make(video_input_format(stream.input), 0);
    cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_ERROR);
    expect_words(error.text, "begins at byte 16 does not end", "parameters");
    frame_free(&frame);
    stream_close(&stream);
    free(b.data);
}

Test(y4m, a_bad_frame_marker_is_an_error_that_names_frame_and_offset)
{
    static const char *const markers[] = {"FRAMES\n", "frame\n", "FRAM\n\n", "FRAME\r\n", "\0\0\0\0\0\0"};
    for (size_t m = 0; m < sizeof markers / sizeof markers[0]; m++)
        for (enum way way = 0; way < WAYS; way++) {
            struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24); /* 21 bytes, then 30 a frame */
            put(&b, markers[m], 6);
            put_frame(&b, 2, 24);
            struct stream stream;
            struct picture_error error = {""}, again = {""};
            cr_assert(stream_open(&stream, way, &b, 5, NULL, &error));
            struct frame frame = frame_make(video_input_format(stream.input), 0);
            for (int f = 0; f < 2; f++)
                cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
            cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_ERROR);
            cr_expect_str_eq(error.text, "frame 2 (the first is 0), byte 81: no frame begins here (FRAME is missing)");
            cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &again), VIDEO_READ_ERROR);
            cr_expect_str_eq(again.text, error.text);
            cr_expect_eq(video_input_skip(stream.input, 1, &again), VIDEO_READ_ERROR);
            frame_free(&frame);
            stream_close(&stream);
            free(b.data);
        }
}

Test(y4m, a_second_header_is_an_error_that_names_both_sizes)
{
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"YUV4MPEG2 W6 H8 F25:1 C444\n", "the picture's size changes from 4 x 2 to 6 x 8"},
        {"YUV4MPEG2 C444 H2 W40", "the picture's size changes from 4 x 2 to 40 x 2"}, /* the stream ends there */
        {"YUV4MPEG2 W4 H2 C444\n", "another y4m header, of a second stream"},
        {"YUV4MPEG2 W99999999999 H2\n", "another y4m header, of a second stream"},
        {"YUV4MPEG2", "another y4m header, of a second stream"},
        {"YUV4MPEG3 W6 H8\n", "no frame begins here (FRAME is missing)"},
        {"YUV4MP", "no frame begins here (FRAME is missing)"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (enum way way = 0; way < WAYS; way++) {
            struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24); /* 21 bytes, then 30 a frame */
            put_text(&b, cases[c].header);
            struct stream stream;
            struct picture_error error = {""}, again = {""};
            char words[128];
            snprintf(words, sizeof words, "frame 2 (the first is 0), byte 81: %s", cases[c].words);
            cr_assert(stream_open(&stream, way, &b, 5, NULL, &error));
            struct frame frame = frame_make(video_input_format(stream.input), 0);
            for (int f = 0; f < 2; f++)
                cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
            cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_ERROR);
            cr_expect_str_eq(error.text, words);
            cr_expect_eq(video_input_skip(stream.input, 1, &again), VIDEO_READ_ERROR);
            cr_expect_str_eq(again.text, error.text);
            frame_free(&frame);
            stream_close(&stream);
            free(b.data);
        }
}

/* A stream of two frames that was cut off at `cut`: what reading and skipping say. */
static void expect_cut(const struct bytes *whole, size_t cut, size_t head, size_t marker, enum way way, bool skip)
{
    struct bytes b = {.data = whole->data, .count = cut};
    struct stream stream;
    struct picture_error error = {""};
    size_t each = (whole->count - head) / 2, begin = head;
    cr_assert(stream_open(&stream, way, &b, 3, NULL, &error), "%s", error.text);
    struct frame frame = frame_make(video_input_format(stream.input), 4);
    for (uint64_t f = 0; begin + each <= cut; f++, begin += each) {
        enum video_read result = skip ? video_input_skip(stream.input, 1, &error)
                                      : video_input_read(stream.input, frame.memory, frame.pitch, &error);
        cr_assert_eq(result, VIDEO_READ_FRAME, "cut at %zu: %s", cut, error.text);
        if (!skip)
            expect_samples(&frame, f);
    }
    enum video_read result = skip ? video_input_skip(stream.input, 1, &error)
                                  : video_input_read(stream.input, frame.memory, frame.pitch, &error);
    if (begin == cut) {
        cr_expect_eq(result, VIDEO_READ_END, "%s, cut at %zu", way_names[way], cut);
    } else {
        char words[256];
        /* Where the marker is cut off, how long it would have been is not known: the least. */
        size_t missing = begin + each - cut;
        if (cut - begin > 6 && cut - begin < marker)
            missing = each - marker + 1;
        else if (cut - begin <= 6)
            missing = each - marker + (cut - begin < 6 ? 6 - (cut - begin) : marker == 6 ? 0 : 1);
        snprintf(words, sizeof words,
                 "frame %zu (the first is 0), which begins at byte %zu, is not whole: the stream ends at byte %zu, %zu "
                 "bytes are missing",
                 (begin - head) / each, begin, cut, missing);
        cr_expect_eq(result, VIDEO_READ_ERROR, "%s, cut at %zu", way_names[way], cut);
        cr_expect_str_eq(error.text, words, "%s, cut at %zu", way_names[way], cut);
    }
    frame_free(&frame);
    stream_close(&stream);
}

Test(y4m, cut_off_at_any_byte_gives_the_whole_frames_and_then_says_what_is_missing)
{
    static const char header[] = "YUV4MPEG2 W3 H2 C420p10\n";
    static const char *const markers[] = {"FRAME\n", "FRAME Ip\n"};
    for (size_t m = 0; m < 2; m++) {
        struct bytes b = make_y4m(header, markers[m], 2, 2 * (6 + 4));
        for (size_t cut = 0; cut < sizeof header - 1; cut++) {
            struct bytes part = {.data = b.data, .count = cut};
            struct picture_error error = {""};
            struct video_input *input;
            char words[64];
            snprintf(words, sizeof words, "it ends within the y4m header, at byte %zu", cut);
            cr_expect_not(video_input_open_memory(&input, part.data, part.count, NULL, &error));
            expect_words(error.text, words, "header");
        }
        for (size_t cut = sizeof header - 1; cut <= b.count; cut++)
            for (enum way way = 0; way < WAYS; way++) {
                expect_cut(&b, cut, sizeof header - 1, strlen(markers[m]), way, false);
                expect_cut(&b, cut, sizeof header - 1, strlen(markers[m]), way, true);
            }
        free(b.data);
    }
}

Test(y4m, a_file_that_shrinks_while_it_is_read_is_an_error)
{
    struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 3, 24);
    struct stream stream;
    struct picture_error error = {""};
    cr_assert(stream_open(&stream, FILE_PATH, &b, 0, NULL, &error));
    struct frame frame = frame_make(video_input_format(stream.input), 0);
    cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
    cr_assert_eq(ftruncate(stream.fd, 21 + 30 + 10), 0);
    cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_ERROR);
    expect_words(error.text, "frame 1", "shrunk");
    expect_words(error.text, "20 bytes are missing", "shrunk");
    frame_free(&frame);
    stream_close(&stream);
    free(b.data);
}

Test(y4m, skips_frames_and_goes_on_behind_them)
{
    struct bytes b = make_y4m("YUV4MPEG2 W33 H17 C422\n", "FRAME\n", 9, 33 * 17 + 2 * 17 * 17);
    for (enum way way = 0; way < WAYS; way++) {
        struct stream stream;
        struct picture_error error = {""};
        cr_assert(stream_open(&stream, way, &b, 1000, NULL, &error));
        struct frame frame = frame_make(video_input_format(stream.input), 0);
        cr_assert_eq(video_input_skip(stream.input, 0, &error), VIDEO_READ_FRAME);
        cr_assert_eq(video_input_skip(stream.input, 3, &error), VIDEO_READ_FRAME);
        cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
        expect_samples(&frame, 3);
        cr_assert_eq(video_input_skip(stream.input, 4, &error), VIDEO_READ_FRAME);
        cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
        expect_samples(&frame, 8);
        cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_END);
        frame_free(&frame);
        stream_close(&stream);
        cr_assert(stream_open(&stream, way, &b, 1000, NULL, &error));
        cr_assert_eq(video_input_skip(stream.input, UINT64_MAX, &error), VIDEO_READ_END);
        stream_close(&stream);
    }
    free(b.data);
}

Test(y4m, refuses_memory_with_rows_that_are_too_short)
{
    struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 1, 24);
    struct stream stream;
    struct picture_error error = {""};
    cr_assert(stream_open(&stream, MEMORY, &b, 0, NULL, &error));
    struct frame frame = frame_make(video_input_format(stream.input), 0);
    frame.pitch[2] = 3;
    cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_ERROR);
    expect_words(error.text, "plane 2", "short rows");
    frame.pitch[2] = 4; /* that was the caller's fault, not the stream's */
    cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
    frame_free(&frame);
    stream_close(&stream);
    free(b.data);
}

/* --- Raw frames --------------------------------------------------------------------------------------------------- */

Test(raw, finds_the_formats_by_their_names)
{
    static const struct {
        const char *name;
        enum cox_video_layout layout;
        uint32_t depth;
        bool high_bits;
        uint32_t x_log2, y_log2;
    } cases[] = {
        {"nv12", COX_VIDEO_SEMI_PLANAR, 8, false, 1, 1},    {"p010", COX_VIDEO_SEMI_PLANAR, 10, true, 1, 1},
        {"p010le", COX_VIDEO_SEMI_PLANAR, 10, true, 1, 1},  {"p012", COX_VIDEO_SEMI_PLANAR, 12, true, 1, 1},
        {"p016", COX_VIDEO_SEMI_PLANAR, 16, false, 1, 1},   {"yuv420p", COX_VIDEO_PLANAR, 8, false, 1, 1},
        {"yuv420p10", COX_VIDEO_PLANAR, 10, false, 1, 1},   {"yuv420p10le", COX_VIDEO_PLANAR, 10, false, 1, 1},
        {"yuv420p12", COX_VIDEO_PLANAR, 12, false, 1, 1},   {"yuv420p16", COX_VIDEO_PLANAR, 16, false, 1, 1},
        {"yuv422p", COX_VIDEO_PLANAR, 8, false, 1, 0},      {"yuv422p10", COX_VIDEO_PLANAR, 10, false, 1, 0},
        {"yuv422p14le", COX_VIDEO_PLANAR, 14, false, 1, 0}, {"yuv444p", COX_VIDEO_PLANAR, 8, false, 0, 0},
        {"yuv444p12", COX_VIDEO_PLANAR, 12, false, 0, 0},   {"yuv444p16le", COX_VIDEO_PLANAR, 16, false, 0, 0},
        {"rgba16f", COX_VIDEO_RGBA, 16, false, 0, 0},       {"rgbaf16le", COX_VIDEO_RGBA, 16, false, 0, 0},
        {"nv16", COX_VIDEO_SEMI_PLANAR, 8, false, 1, 0},    {"p210", COX_VIDEO_SEMI_PLANAR, 10, true, 1, 0},
        {"p210le", COX_VIDEO_SEMI_PLANAR, 10, true, 1, 0},  {"p216le", COX_VIDEO_SEMI_PLANAR, 16, false, 1, 0},
        {"v210", COX_VIDEO_V210, 10, false, 1, 0},          {"gbrp", COX_VIDEO_GBR, 8, false, 0, 0},
        {"gbrp10le", COX_VIDEO_GBR, 10, false, 0, 0},       {"gbrp16", COX_VIDEO_GBR, 16, false, 0, 0},
        {"rgba", COX_VIDEO_RGBA, 8, false, 0, 0},           {"rgba64le", COX_VIDEO_RGBA, 16, false, 0, 0},
        {"bgra", COX_VIDEO_BGRA, 8, false, 0, 0},           {"bgra64", COX_VIDEO_BGRA, 16, false, 0, 0},
    };
    static const char *const none[] = {"",
                                       "yuv",
                                       "yuv420",
                                       "yuv411p",
                                       "yuv420p11",
                                       "yuv420p8",
                                       "P010",
                                       "p010be",
                                       "nv21",
                                       "yuv420p10be",
                                       "yuv420p100",
                                       "rgb24",
                                       "le",
                                       "gbrp11",
                                       "gbrpf32",
                                       "nv24",
                                       "bgr0",
                                       "rgba16fx",
                                       "yuv444p10lelelelelelelele",
                                       "yuv420p 10"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct video_raw raw = raw_of(cases[i].name, 0, 0);
        const struct cox_video_format pixel = raw.pixel;
        const bool rgb = pixel.layout == COX_VIDEO_RGBA || pixel.layout == COX_VIDEO_BGRA ||
                         pixel.layout == COX_VIDEO_GBR;
        cr_expect_eq(pixel.layout, cases[i].layout, "%s", cases[i].name);
        cr_expect_eq(pixel.depth, cases[i].depth, "%s", cases[i].name);
        cr_expect_eq(pixel.high_bits, cases[i].high_bits, "%s", cases[i].name);
        cr_expect_eq(pixel.chroma_x_log2, cases[i].x_log2, "%s", cases[i].name);
        cr_expect_eq(pixel.chroma_y_log2, cases[i].y_log2, "%s", cases[i].name);
        cr_expect_eq(pixel.site, COX_SITE_LEFT, "%s", cases[i].name);
        cr_expect_eq(pixel.range, rgb ? COX_RANGE_FULL : COX_RANGE_LIMITED, "%s", cases[i].name);
        cr_expect_eq(raw.light, strstr(cases[i].name, "16f") || strstr(cases[i].name, "f16"), "%s", cases[i].name);
    }
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        cr_expect_not(video_raw_find(none[i], &(struct video_raw){0}), "%s", none[i]);
    cr_expect(strstr(video_raw_names, "p010") && strstr(video_raw_names, "rgba16f"));
}

Test(raw, reads_frames_of_the_size_given)
{
    static const struct {
        const char *name;
        uint64_t bytes; /* of 5 x 3 */
    } cases[] = {{"nv12", 15 + 12},    {"p010", 2 * (15 + 12)}, {"yuv420p", 15 + 12}, {"yuv420p10", 2 * (15 + 12)},
                 {"yuv422p", 15 + 18}, {"yuv444p12", 2 * 45},   {"rgba16f", 8 * 15},  {"nv16", 15 + 18},
                 {"gbrp10", 2 * 45},   {"bgra", 4 * 15}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct video_raw raw = raw_of(cases[i].name, 5, 3);
        struct bytes b = make_y4m("", "", 3, cases[i].bytes);
        expect_stream(&b, &raw, 3, 0, 1);
        expect_stream(&b, &raw, 3, 20, 11);
        free(b.data);
    }
}

Test(raw, has_the_rate_that_is_given_or_25)
{
    struct video_raw raw = raw_of("p010", 4, 4);
    struct video_input *input;
    struct picture_error error;
    cr_assert(video_input_open_memory(&input, "", 0, &raw, &error));
    cr_expect_eq(video_input_format(input)->rate.num, 25);
    cr_expect_eq(video_input_format(input)->rate.den, 1);
    cr_expect_str_eq(video_input_format(input)->text, "raw, semi-planar 4:2:0, 10 bits");
    video_input_close(&input);
    raw.rate = (struct video_rational){30000, 1001};
    raw.pixel.range = COX_RANGE_FULL;
    cr_assert(video_input_open_memory(&input, "", 0, &raw, &error));
    cr_expect_eq(video_input_format(input)->rate.num, 30000);
    cr_expect_eq(video_input_format(input)->pixel.range, COX_RANGE_FULL);
    video_input_close(&input);
}

Test(raw, a_last_frame_that_is_not_whole_is_an_error)
{
    struct video_raw raw = raw_of("nv12", 4, 4); /* 24 bytes */
    struct bytes b = make_y4m("", "", 2, 24);
    for (size_t cut = 0; cut < b.count; cut++)
        for (int pass = 0; pass < 2 * WAYS; pass++) {
            bool skip = pass & 1;
            struct bytes part = {.data = b.data, .count = cut};
            struct stream stream;
            struct picture_error error = {""};
            cr_assert(stream_open(&stream, (enum way)(pass / 2), &part, 5, &raw, &error));
            struct frame frame = frame_make(video_input_format(stream.input), 0);
            enum video_read result;
            size_t frames = 0;
            while ((result = skip ? video_input_skip(stream.input, 1, &error)
                                  : video_input_read(stream.input, frame.memory, frame.pitch, &error)) ==
                   VIDEO_READ_FRAME)
                frames++;
            cr_expect_eq(frames, cut / 24);
            cr_expect_eq(result, cut % 24 ? VIDEO_READ_ERROR : VIDEO_READ_END);
            if (cut % 24) {
                char words[64];
                snprintf(words, sizeof words, "%zu bytes are missing", 24 - cut % 24);
                expect_words(error.text, words, "raw");
            }
            frame_free(&frame);
            stream_close(&stream);
        }
    free(b.data);
}

Test(raw, refuses_sizes_that_are_not_sane)
{
    static const uint32_t sizes[][2] = {{0, 4},     {4, 0},        {65537, 1},
                                        {1, 65537}, {65536, 8193}, {UINT32_MAX, UINT32_MAX}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct video_raw raw = raw_of("rgba16f", sizes[i][0], sizes[i][1]);
        struct video_input *input;
        struct picture_error error = {""};
        cr_expect_not(video_input_open_memory(&input, "", 0, &raw, &error));
        cr_expect(*error.text && !input);
    }
    struct video_raw raw = raw_of("nv12", 4, 4);
    struct video_input *input;
    struct picture_error error = {""};
    raw.pixel.depth = 7;
    cr_expect_not(video_input_open_memory(&input, "", 0, &raw, &error));
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Standard input becomes a pipe with these bytes. */
static void pipe_to_standard_input(struct giver *giver, const struct bytes *bytes, size_t step)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    giver_start(giver, ends[1], bytes, step);
}

static void expect_frames_of(struct video_input *input, uint64_t frames)
{
    struct picture_error error = {""};
    struct frame frame = frame_make(video_input_format(input), 0);
    for (uint64_t f = 0; f < frames; f++) {
        cr_assert_eq(video_input_read(input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME, "%s", error.text);
        expect_samples(&frame, f);
    }
    cr_assert_eq(video_input_read(input, frame.memory, frame.pitch, &error), VIDEO_READ_END);
    frame_free(&frame);
}

Test(opening, standard_input_is_looked_at_without_losing_any_of_it)
{
    static const size_t steps[] = {1, 5, 40, 100000};
    for (size_t s = 0; s < 4; s++)
        for (int looks = 0; looks < 3; looks++) {
            struct bytes b = make_y4m("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 4, 3 * 33 * 17);
            struct giver giver;
            struct video_input *input;
            struct picture_error error = {""};
            pipe_to_standard_input(&giver, &b, steps[s]);
            for (int i = 0; i < looks; i++)
                cr_assert_eq(video_kind_of("-"), VIDEO_KIND_Y4M);
            cr_assert(video_input_open(&input, "-", NULL, &error), "%s", error.text);
            expect_frames_of(input, 4);
            video_input_close(&input);
            pthread_join(giver.thread, NULL);
            free(b.data);
        }
    cr_expect(fcntl(STDIN_FILENO, F_GETFD) >= 0, "standard input was closed");
}

Test(opening, raw_frames_on_standard_input_follow_what_was_looked_at)
{
    struct video_raw raw = raw_of("yuv444p", 33, 17);
    struct bytes b = make_y4m("", "", 4, 3 * 33 * 17);
    struct giver giver;
    struct video_input *input;
    struct picture_error error = {""};
    pipe_to_standard_input(&giver, &b, 700);
    cr_assert_eq(video_kind_of("-"), VIDEO_KIND_NONE);
    cr_assert(video_input_open(&input, "-", &raw, &error), "%s", error.text);
    expect_frames_of(input, 4);
    video_input_close(&input);
    pthread_join(giver.thread, NULL);
    free(b.data);
}

Test(opening, a_picture_on_standard_input_is_left_to_the_picture_reader)
{
    struct bytes b = {0};
    put_text(&b, "PF\n100 50\n-1.0\n");
    for (int i = 0; i < 100 * 50 * 3; i++) {
        float value = (float)i;
        put(&b, &value, 4);
    }
    for (int looks = 0; looks < 2; looks++) {
        struct giver giver;
        struct picture_input *picture;
        struct picture_error error = {""};
        static float pixels[50][100][4];
        pipe_to_standard_input(&giver, &b, 1000);
        for (int i = 0; i < looks; i++)
            cr_assert_eq(video_kind_of("-"), VIDEO_KIND_NONE);
        cr_assert(picture_input_open(&picture, "-", PICTURE_ALPHA_BLACK, &error), "%s", error.text);
        cr_assert_eq(picture_input_read(picture, pixels, sizeof pixels[0], &error), PICTURE_READ_FRAME);
        cr_expect_eq(pixels[49][0][0], 0.0f);
        cr_expect_eq(pixels[0][99][2], 100 * 50 * 3 - 1.0f);
        picture_input_close(&picture);
        pthread_join(giver.thread, NULL);
    }
    free(b.data);
}

Test(opening, a_short_picture_on_standard_input_is_a_picture)
{
    struct bytes b = {0};
    put_text(&b, "Pf 1 1 -1\n");
    put(&b, &(float){0.5f}, 4);
    struct giver giver;
    struct picture_input *picture;
    struct picture_error error = {""};
    pipe_to_standard_input(&giver, &b, 1);
    cr_assert_eq(video_kind_of("-"), VIDEO_KIND_NONE);
    cr_assert(picture_input_open(&picture, "-", PICTURE_ALPHA_BLACK, &error), "%s", error.text);
    picture_input_close(&picture);
    pthread_join(giver.thread, NULL);
    free(b.data);
}

Test(opening, a_pipe_with_a_name_is_looked_at_without_losing_any_of_it)
{
    struct bytes b = make_y4m("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 2, 3 * 33 * 17);
    int ends[2];
    char path[64];
    struct giver giver;
    struct video_input *input;
    struct picture_error error = {""};
    cr_assert_eq(pipe(ends), 0);
    giver_start(&giver, ends[1], &b, 100);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    cr_assert_eq(video_kind_of(path), VIDEO_KIND_Y4M);
    cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
    expect_frames_of(input, 2);
    video_input_close(&input);
    pthread_join(giver.thread, NULL);
    free(b.data);
}

Test(opening, a_file_on_standard_input_is_read_from_where_it_stands)
{
    struct bytes b = {0}, video = make_y4m("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 3, 3 * 33 * 17);
    put_text(&b, "something else");
    put(&b, video.data, video.count);
    int fd = memfd_create("stream", 0);
    cr_assert_eq(write(fd, b.data, b.count), (ssize_t)b.count);
    cr_assert_eq(lseek(fd, 14, SEEK_SET), 14);
    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    struct video_input *input;
    struct picture_error error = {""};
    cr_assert_eq(video_kind_of("-"), VIDEO_KIND_Y4M);
    cr_assert(video_input_open(&input, "-", NULL, &error), "%s", error.text);
    cr_expect_eq(video_input_format(input)->frames, 3);
    expect_frames_of(input, 3);
    video_input_close(&input);
    free(b.data);
    free(video.data);
}

Test(opening, says_why_a_file_cannot_be_opened)
{
    struct video_raw raw = raw_of("nv12", 4, 4);
    struct video_input *input;
    struct picture_error error = {""};
    cr_expect_not(video_input_open(&input, "/nowhere/to/be.found", NULL, &error));
    expect_words(error.text, "cannot be opened: No such file", "missing");
    cr_expect_not(video_input_open(&input, "/nowhere/to/be.found", &raw, &error));
    expect_words(error.text, "cannot be opened: No such file", "missing, raw");
    cr_expect_not(video_input_open(&input, "/tmp", NULL, &error));
    expect_words(error.text, "is a directory", "directory");
    cr_expect_not(video_input_open(&input, "/tmp", &raw, &error));
    expect_words(error.text, "is a directory", "directory, raw");
    cr_expect_not(video_input_open(&input, "/dev/null", NULL, &error));
    expect_words(error.text, "it is empty", "nothing");
    cr_expect_not(video_input_open(&input, "/proc/self/status", NULL, &error));
    expect_words(error.text, "neither y4m nor a container", "text");
    cr_expect_not(video_input_open(&input, COX_TEST_SOURCE_DIR "/examples/data/StillLife.exr", NULL, &error));
    expect_words(error.text, "it is a picture, not video", "picture");
    cr_expect_eq(video_kind_of("/nowhere/to/be.found"), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of("/tmp"), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of("/dev/null"), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of("/proc/self/status"), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of(COX_TEST_SOURCE_DIR "/examples/data/StillLife.exr"), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of(COX_TEST_SOURCE_DIR "/LICENSE"), VIDEO_KIND_NONE);
    video_input_close(&input); /* NULL */
}

/* --- What makes the frames ---------------------------------------------------------------------------------------- */

/* A shell that computes without end and has the pipe open for writing. Returns when it has begun to run. */
static pid_t start_busy_writer(int write_end)
{
    int began[2];
    char byte;
    cr_assert_eq(pipe2(began, O_CLOEXEC), 0);
    pid_t child = fork();
    if (!child) {
        dup2(write_end, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
        _exit(1);
    }
    cr_assert_gt(child, 0);
    close(began[1]);
    cr_assert_eq(read(began[0], &byte, 1), 0); /* closed by the exec */
    close(began[0]);
    return child;
}

Test(maker, of_a_pipe_is_the_program_that_writes_to_it, .timeout = 300)
{
    int ends[2];
    struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    cr_assert_eq(write(ends[1], b.data, b.count), (ssize_t)b.count);
    pid_t child = start_busy_writer(ends[1]);
    struct picture_error error = {""};
    struct video_input *input;
    struct video_maker maker;
    cr_assert(video_input_open(&input, "-", NULL, &error), "%s", error.text);
    do
        video_input_maker(input, &maker);
    while (maker.kind == VIDEO_MAKER_PROCESS && !maker.cpu_ns); /* until it has run on */
    cr_expect_eq(maker.kind, VIDEO_MAKER_PROCESS);
    cr_expect_str_eq(maker.name, "sh");
    cr_expect_gt(maker.cpu_ns, 0u);
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    const uint64_t before_ns = maker.cpu_ns;
    video_input_maker(input, &maker); /* what is known of a program that has ended stays */
    cr_expect_eq(maker.kind, VIDEO_MAKER_PROCESS);
    cr_expect_str_eq(maker.name, "sh");
    cr_expect_geq(maker.cpu_ns, before_ns);
    close(ends[1]);
    video_input_close(&input);
    free(b.data);
}

Test(maker, of_a_pipe_that_no_other_program_writes_to_is_not_known)
{
    struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    struct stream stream;
    struct picture_error error = {""};
    static const enum video_maker_kind expected[] = {VIDEO_MAKER_FILE, VIDEO_MAKER_FILE, VIDEO_MAKER_UNKNOWN};
    for (enum way way = 0; way < WAYS; way++) {
        struct video_maker maker;
        cr_assert(stream_open(&stream, way, &b, 5, NULL, &error));
        video_input_maker(stream.input, &maker);
        cr_expect_eq(maker.kind, expected[way], "%s", way_names[way]);
        cr_expect_str_eq(maker.name, "");
        cr_expect_eq(maker.cpu_ns, 0u);
        stream_close(&stream);
    }
    free(b.data);
}

/* --- Cancelling --------------------------------------------------------------------------------------------------- */

static struct video_input *volatile cancelled;

static void *cancel_later(void *user)
{
    (void)user;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    video_input_cancel(cancelled);
    return NULL;
}

static void cancel_on_signal(int number)
{
    (void)number;
    video_input_cancel(cancelled);
}

/* An input that waits for a pipe in the midst of frame 1. */
static struct frame open_waiting(int ends[2], struct video_input **input)
{
    struct bytes b = make_y4m("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 2, 3 * 33 * 17);
    struct picture_error error = {""};
    char path[64];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], b.data, b.count - 100), (ssize_t)b.count - 100);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    cr_assert(video_input_open(input, path, NULL, &error), "%s", error.text);
    struct frame frame = frame_make(video_input_format(*input), 4);
    cr_assert_eq(video_input_read(*input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
    expect_samples(&frame, 0);
    cancelled = *input;
    free(b.data);
    return frame;
}

static void close_waiting(int ends[2], struct video_input **input, struct frame *frame)
{
    struct picture_error error = {""};
    cr_expect_eq(video_input_read(*input, frame->memory, frame->pitch, &error), VIDEO_READ_CANCELLED);
    cr_expect_eq(video_input_skip(*input, 1, &error), VIDEO_READ_CANCELLED);
    cr_expect_str_eq(error.text, "");
    frame_free(frame);
    video_input_close(input);
    close(ends[0]);
    close(ends[1]);
}

Test(cancelling, ends_a_read_that_waits_for_a_pipe, .timeout = 300)
{
    for (int skip = 0; skip < 2; skip++) {
        int ends[2];
        struct video_input *input;
        struct picture_error error = {""};
        struct frame frame = open_waiting(ends, &input);
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, cancel_later, NULL), 0);
        enum video_read result = skip ? video_input_skip(input, 1, &error)
                                      : video_input_read(input, frame.memory, frame.pitch, &error);
        cr_expect_eq(result, VIDEO_READ_CANCELLED);
        pthread_join(thread, NULL);
        close_waiting(ends, &input, &frame);
    }
}

Test(cancelling, works_from_a_signal_handler_that_restarts_calls, .timeout = 300)
{
    int ends[2];
    struct video_input *input;
    struct picture_error error = {""};
    struct frame frame = open_waiting(ends, &input);
    struct sigaction action = {.sa_handler = cancel_on_signal, .sa_flags = SA_RESTART};
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    struct itimerval timer = {.it_value.tv_usec = 50000};
    cr_assert_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
    cr_expect_eq(video_input_read(input, frame.memory, frame.pitch, &error), VIDEO_READ_CANCELLED);
    close_waiting(ends, &input, &frame);
}

Test(cancelling, holds_for_files_too)
{
    struct bytes b = make_y4m("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    for (enum way way = 0; way < WAYS; way++) {
        struct stream stream;
        struct picture_error error = {""};
        cr_assert(stream_open(&stream, way, &b, 100, NULL, &error));
        struct frame frame = frame_make(video_input_format(stream.input), 0);
        cr_assert_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_FRAME);
        video_input_cancel(stream.input);
        cr_expect_eq(video_input_read(stream.input, frame.memory, frame.pitch, &error), VIDEO_READ_CANCELLED);
        frame_free(&frame);
        stream_close(&stream);
    }
    free(b.data);
}

/* --- Signals that interrupt --------------------------------------------------------------------------------------- */

static void do_nothing(int number)
{
    (void)number;
}

/* From here on, every call that waits is interrupted again and again. */
static void interrupt_often(void)
{
    struct sigaction action = {.sa_handler = do_nothing};
    struct itimerval timer = {.it_value.tv_usec = 500, .it_interval.tv_usec = 500};
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    cr_assert_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

Test(interruptions, lose_nothing_that_is_read, .timeout = 300)
{
    struct bytes b = make_y4m("YUV4MPEG2 W333 H171 C444p10\n", "FRAME\n", 4, 6 * 333 * 171);
    interrupt_often();
    expect_stream(&b, NULL, 4, 4, 500);
    free(b.data);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static struct video_format format_of(const char *raw_name, uint32_t width, uint32_t height)
{
    struct video_format format = {
        .width = width, .height = height, .rate = {24000, 1001}, .aspect = {1, 1}, .interlacing = 'p'};
    format.pixel = raw_of(raw_name, width, height).pixel;
    return format;
}

static void frame_fill(struct frame *frame, uint64_t number)
{
    uint64_t i = 0;
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++)
            for (size_t x = 0; x < frame->plane[p].row_bytes; x++)
                ((uint8_t *)frame->memory[p])[row * frame->pitch[p] + x] = sample(number, i++);
}

/* A file without a name, by a path. */
static int make_file(char path[64])
{
    int fd = memfd_create("output", MFD_CLOEXEC);
    cr_assert(fd >= 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void write_frames(const char *path, enum video_output_kind kind, const struct video_format *format,
                         uint64_t frames, size_t extra)
{
    struct video_output *output;
    struct picture_error error = {""};
    struct frame frame = frame_make(format, extra);
    cr_assert(video_output_open(&output, path, kind, format, &error), "%s", error.text);
    for (uint64_t f = 0; f < frames; f++) {
        frame_fill(&frame, f);
        cr_assert(video_output_write(output, readable(&frame), frame.pitch, &error), "%s", error.text);
    }
    cr_assert(video_output_finish(&output, &error), "%s", error.text);
    cr_assert(output == NULL);
    frame_free(&frame);
}

static void expect_file(const char *path, const char *header, const char *marker, uint64_t frames, uint64_t frame_bytes)
{
    struct bytes got = load_file(path), want = make_y4m(header, marker, frames, frame_bytes);
    cr_assert_eq(got.count, want.count, "%zu bytes instead of %zu", got.count, want.count);
    cr_assert_eq(memcmp(got.data, want.data, want.count), 0);
    free(got.data);
    free(want.data);
}

Test(writing, y4m_is_what_the_format_says)
{
    static const struct {
        const char *samples;
        enum cox_chroma_site site;
        enum cox_range range;
        const char *tags;
        uint64_t bytes; /* of 5 x 3 */
    } cases[] = {
        {"yuv420p", COX_SITE_LEFT, COX_RANGE_LIMITED, "C420mpeg2 XCOLORRANGE=LIMITED", 27},
        {"yuv420p", COX_SITE_CENTRE, COX_RANGE_LIMITED, "C420jpeg XCOLORRANGE=LIMITED", 27},
        {"yuv420p", COX_SITE_TOP_LEFT, COX_RANGE_FULL, "C420paldv XCOLORRANGE=FULL", 27},
        {"yuv422p", COX_SITE_LEFT, COX_RANGE_LIMITED, "C422 XCOLORRANGE=LIMITED", 33},
        {"yuv444p", COX_SITE_LEFT, COX_RANGE_FULL, "C444 XCOLORRANGE=FULL", 45},
        {"yuv420p10", COX_SITE_LEFT, COX_RANGE_LIMITED, "C420p10 XCOLORRANGE=LIMITED", 54},
        {"yuv422p10", COX_SITE_LEFT, COX_RANGE_LIMITED, "C422p10 XCOLORRANGE=LIMITED", 66},
        {"yuv444p12", COX_SITE_LEFT, COX_RANGE_LIMITED, "C444p12 XCOLORRANGE=LIMITED", 90},
        {"yuv420p16", COX_SITE_LEFT, COX_RANGE_LIMITED, "C420p16 XCOLORRANGE=LIMITED", 54},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t extra = 0; extra <= 12; extra += 12) {
            char path[64], header[128];
            int fd = make_file(path);
            struct video_format format = format_of(cases[i].samples, 5, 3);
            format.pixel.site = cases[i].site;
            format.pixel.range = cases[i].range;
            write_frames(path, VIDEO_OUTPUT_Y4M, &format, 3, extra);
            snprintf(header, sizeof header, "YUV4MPEG2 W5 H3 F24000:1001 Ip A1:1 %s\n", cases[i].tags);
            expect_file(path, header, "FRAME\n", 3, cases[i].bytes);
            struct video_input *input;
            struct picture_error error = {""};
            cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
            const struct video_format *back = video_input_format(input);
            cr_expect_eq(back->pixel.range, cases[i].range);
            cr_expect_eq(back->pixel.site, cases[i].site, "%s", cases[i].tags);
            cr_expect_eq(back->pixel.depth, format.pixel.depth);
            cr_expect(back->has_range && back->rate.num == 24000 && back->aspect.num == 1 && back->interlacing == 'p');
            expect_frames_of(input, 3);
            video_input_close(&input);
            close(fd);
        }
}

Test(writing, y4m_says_so_where_something_is_unknown)
{
    char path[64];
    int fd = make_file(path);
    struct video_format format = format_of("yuv444p", 2, 2);
    format.rate = format.aspect = (struct video_rational){0, 0};
    format.interlacing = '?';
    write_frames(path, VIDEO_OUTPUT_Y4M, &format, 0, 0);
    expect_file(path, "YUV4MPEG2 W2 H2 F0:0 I? A0:0 C444 XCOLORRANGE=LIMITED\n", "", 0, 0);
    close(fd);
}

Test(writing, raw_frames_are_nothing_but_samples)
{
    static const char *const samples[] = {"nv12", "p010", "yuv420p", "yuv444p10", "rgba16f"};
    static const uint64_t bytes[] = {27, 54, 27, 90, 120};
    for (size_t i = 0; i < 5; i++) {
        char path[64];
        int fd = make_file(path);
        struct video_format format = format_of(samples[i], 5, 3);
        write_frames(path, VIDEO_OUTPUT_RAW, &format, 3, 4 * i);
        expect_file(path, "", "", 3, bytes[i]);
        close(fd);
    }
}

Test(writing, many_rows_with_gaps_go_out_whole)
{
    char path[64];
    int fd = make_file(path);
    struct video_format format = format_of("yuv420p10", 3, 5001); /* more rows than go out at once */
    write_frames(path, VIDEO_OUTPUT_RAW, &format, 2, 2);
    expect_file(path, "", "", 2, 2 * (3 * 5001 + 2 * 2 * 2501));
    close(fd);
}

Test(writing, nothing_is_written_where_nothing_is_wanted)
{
    struct video_format format = format_of("p010", 64, 48);
    write_frames("/nowhere/to/be.found", VIDEO_OUTPUT_NULL, &format, 5, 0);
    write_frames("/dev/null", VIDEO_OUTPUT_RAW, &format, 5, 0);
}

Test(writing, replaces_a_file_that_is_there)
{
    char path[64];
    int fd = make_file(path);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(write(fd, "something else", 14), 14);
    struct video_format format = format_of("yuv420p", 5, 3);
    write_frames(path, VIDEO_OUTPUT_RAW, &format, 2, 0);
    expect_file(path, "", "", 2, 27);
    close(fd);
}

Test(writing, goes_to_standard_output_after_what_is_there)
{
    for (int append = 0; append < 2; append++) {
        char path[64];
        int fd = make_file(path), before = dup(STDOUT_FILENO);
        cr_assert_eq(write(fd, "before ", 7), 7);
        if (append) {
            cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
            cr_assert_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
        }
        cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
        struct video_format format = format_of("yuv420p", 5, 3);
        write_frames("-", VIDEO_OUTPUT_RAW, &format, 2, 4);
        bool open_still = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
        dup2(before, STDOUT_FILENO);
        close(before);
        cr_expect(open_still);
        expect_file(path, "before ", "", 2, 27);
        close(fd);
    }
}

Test(writing, refuses_what_y4m_cannot_hold)
{
    static const char *const samples[] = {"nv12", "p010", "rgba16f"};
    for (size_t i = 0; i < 3; i++) {
        struct video_format format = format_of(samples[i], 4, 4);
        struct video_output *output;
        struct picture_error error = {""};
        char path[64];
        int fd = make_file(path);
        cr_assert_eq(write(fd, "mine", 4), 4);
        cr_expect_not(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, &format, &error));
        cr_expect(output == NULL);
        expect_words(error.text, "y4m cannot hold these samples", samples[i]);
        expect_file(path, "mine", "", 0, 0); /* refused before it is touched */
        close(fd);
    }
}

Test(writing, says_why_it_cannot_begin)
{
    struct video_format format = format_of("yuv420p", 4, 4);
    struct video_output *output;
    struct picture_error error = {""};
    cr_expect_not(video_output_open(&output, "/nowhere/to/be.found", VIDEO_OUTPUT_RAW, &format, &error));
    expect_words(error.text, "cannot be written: No such file", "missing");
    cr_expect_not(video_output_open(&output, "/tmp", VIDEO_OUTPUT_RAW, &format, &error));
    expect_words(error.text, "is a directory", "directory");
    cr_expect_not(video_output_open(&output, "", VIDEO_OUTPUT_RAW, &format, &error));
    expect_words(error.text, "an empty name", "no name");
    format.width = 0;
    cr_expect_not(video_output_open(&output, "/dev/null", VIDEO_OUTPUT_RAW, &format, &error));
    expect_words(error.text, "no pixels", "size");
}

Test(writing, a_full_device_is_an_error)
{
    struct video_format format = format_of("yuv420p", 64, 48);
    struct video_output *output;
    struct picture_error error = {""};
    cr_expect_not(video_output_open(&output, "/dev/full", VIDEO_OUTPUT_Y4M, &format, &error)); /* the header */
    expect_words(error.text, "No space left on device", "header");
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, "/dev/full", VIDEO_OUTPUT_RAW, &format, &error));
    for (int i = 0; i < 2; i++) {
        cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
        expect_words(error.text, "frame 0 (the first is 0): No space left on device", "frame");
    }
    error.text[0] = 0;
    cr_expect_not(video_output_finish(&output, &error));
    expect_words(error.text, "No space left on device", "finish");
    frame_free(&frame);
}

/* What an output's owner was given. */
struct taken {
    uint8_t bytes[20000];
    uint64_t calls, end, refused_at;
};

static bool take_frame(void *user, uint64_t offset, const void *bytes, size_t count, struct picture_error *error)
{
    struct taken *taken = user;
    if (taken->calls == taken->refused_at) {
        snprintf(error->text, sizeof error->text, "no place");
        return false;
    }
    cr_assert_leq(offset + count, sizeof taken->bytes);
    memcpy(taken->bytes + offset, bytes, count);
    taken->end = offset + count;
    taken->calls++;
    return true;
}

Test(writing, an_owner_gets_each_frame_at_once)
{
    static const enum video_output_kind kinds[] = {VIDEO_OUTPUT_Y4M, VIDEO_OUTPUT_RAW};
    for (size_t k = 0; k < 2; k++) {
        struct video_format format = format_of("yuv420p", 64, 48);
        struct video_layout layout;
        struct video_output *output;
        struct picture_error error = {""};
        struct taken taken = {.refused_at = 3};
        struct frame frame = frame_make(&format, 4); /* with padding */
        char path[64];
        int fd = make_file(path);
        write_frames(path, kinds[k], &format, 3, 4);
        struct bytes file = load_file(path);
        cr_assert(video_output_layout(&layout, kinds[k], &format, &error), "%s", error.text);
        cr_assert_eq(file.count, layout.header_bytes + 3 * layout.frame_bytes);
        cr_expect_eq(memcmp(file.data, layout.header, layout.header_bytes), 0);
        cr_assert(video_output_open_place(&output, &(struct video_place){take_frame, &taken}, kinds[k], &format,
                                          &error));
        for (uint64_t f = 0; f < 3; f++) {
            frame_fill(&frame, f);
            cr_assert(video_output_write(output, readable(&frame), frame.pitch, &error), "%s", error.text);
            cr_expect_eq(taken.calls, f + 1);
        }
        cr_assert_eq(taken.end, file.count - layout.header_bytes);
        cr_expect_eq(memcmp(taken.bytes, file.data + layout.header_bytes, taken.end), 0);
        cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
        expect_words(error.text, "no place", "refused");
        taken.refused_at = 0; /* what failed once is not gone on with */
        cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
        cr_expect_eq(taken.calls, 3);
        cr_expect_not(video_output_finish(&output, &error));
        frame_free(&frame);
        free(file.data);
        close(fd);
    }
}

/* A file may grow to the middle of frame 2, and no further. */
static void write_to_a_limit(const char *path, enum video_output_kind kind, uint64_t limit)
{
    struct video_format format = format_of("yuv420p", 64, 48); /* 4608 bytes */
    struct video_output *output;
    struct picture_error error = {""};
    struct frame frame = frame_make(&format, 4);
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, before.rlim_max}), 0);
    cr_assert(video_output_open(&output, path, kind, &format, &error), "%s", error.text);
    int frames = 0;
    for (;; frames++) {
        frame_fill(&frame, (uint64_t)frames);
        if (!video_output_write(output, readable(&frame), frame.pitch, &error))
            break;
    }
    setrlimit(RLIMIT_FSIZE, &before);
    /* What failed once is not gone on with, though there were room now: there would be half a frame in the midst. */
    cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
    bool finished = video_output_finish(&output, &error);
    cr_expect_eq(frames, 2);
    cr_expect_not(finished);
    expect_words(error.text, "File too large", path);
    frame_free(&frame);
}

Test(writing, a_frame_that_does_not_fit_is_cut_off)
{
    char path[64];
    int fd = make_file(path);
    close(fd); /* memory files know no limit */
    snprintf(path, sizeof path, "/tmp/coxswain-test-XXXXXX");
    fd = mkstemp(path);
    cr_assert(fd >= 0);
    static const char header[] = "YUV4MPEG2 W64 H48 F24000:1001 Ip A1:1 C420mpeg2 XCOLORRANGE=LIMITED\n";
    uint64_t each = 4608 + 6;
    /* In the middle of the third frame; in its marker; at its first byte. */
    for (uint64_t more = 0; more <= 2000; more = more ? more * 10 : 1) {
        write_to_a_limit(path, VIDEO_OUTPUT_Y4M, sizeof header - 1 + 2 * each + more);
        expect_file(path, header, "FRAME\n", 2, 4608);
    }
    write_to_a_limit(path, VIDEO_OUTPUT_RAW, 2 * 4608 + 1000);
    expect_file(path, "", "", 2, 4608);
    close(fd);
    unlink(path);
}

Test(writing, of_a_standard_output_with_something_in_it_only_our_own_part_is_cut)
{
    char path[64] = "/tmp/coxswain-test-XXXXXX";
    int fd = mkstemp(path), before = dup(STDOUT_FILENO);
    for (int append = 0; append < 2; append++) {
        cr_assert_eq(ftruncate(fd, 0), 0);
        cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
        cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
        cr_assert_eq(write(fd, "before ", 7), 7);
        if (append) {
            cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
            cr_assert_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
        }
        fflush(stdout);
        cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
        write_to_a_limit("-", VIDEO_OUTPUT_RAW, 7 + 2 * 4608 + 1000);
        fflush(stdout);
        cr_assert_eq(write(STDOUT_FILENO, " after", 6), 6); /* lands behind what is left */
        dup2(before, STDOUT_FILENO);
        struct bytes got = load_file(path);
        cr_assert_eq(got.count, 7 + 2 * 4608 + 6, "%zu", got.count);
        cr_expect_eq(memcmp(got.data, "before ", 7), 0);
        for (size_t i = 0; i < 4608; i++)
            cr_assert(got.data[7 + i] == sample(0, i) && got.data[7 + 4608 + i] == sample(1, i));
        cr_expect_eq(memcmp(got.data + 7 + 2 * 4608, " after", 6), 0);
        free(got.data);
    }
    close(before);
    close(fd);
    unlink(path);
}

/* Takes bytes from a pipe, `step` at a time, `most` in all. */
struct taker {
    pthread_t thread;
    int fd;
    long pause_ns; /* before each */
    size_t step, most;
    struct bytes got;
};

static void *take(void *user)
{
    struct taker *taker = user;
    uint8_t block[4096];
    while (taker->got.count < taker->most) {
        size_t left = taker->most - taker->got.count;
        if (taker->pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = taker->pause_ns}, NULL);
        ssize_t came = read(taker->fd, block, left < taker->step ? left : taker->step);
        if (came < 0 && errno == EINTR)
            continue;
        if (came <= 0)
            break;
        put(&taker->got, block, (size_t)came);
    }
    close(taker->fd);
    return NULL;
}

static int taker_start(struct taker *taker, size_t step, size_t most, long pause_ns, char path[64])
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    *taker = (struct taker){.fd = ends[0], .pause_ns = pause_ns, .step = step, .most = most};
    snprintf(path, 64, "/proc/self/fd/%d", ends[1]);
    cr_assert_eq(pthread_create(&taker->thread, NULL, take, taker), 0);
    return ends[1];
}

static void expect_taken(struct taker *taker, uint64_t frames, uint64_t frame_bytes)
{
    struct bytes want = make_y4m("", "", frames, frame_bytes);
    pthread_join(taker->thread, NULL);
    cr_assert_eq(taker->got.count, want.count);
    cr_assert_eq(memcmp(taker->got.data, want.data, want.count), 0);
    free(taker->got.data);
    free(want.data);
}

Test(writing, a_slow_pipe_gets_everything, .timeout = 300)
{
    struct video_format format = format_of("yuv420p10", 333, 171);
    uint64_t frame_bytes = 2 * (333 * 171 + 2 * 167 * 86);
    for (int pass = 0; pass < 3; pass++) {
        char path[64];
        struct taker taker;
        if (pass == 2) /* while it waits, mostly */
            interrupt_often();
        int end = taker_start(&taker, pass == 2 ? 4096 : 777, SIZE_MAX, pass == 2 ? 2000000 : 0, path);
        int before = dup(STDOUT_FILENO);
        if (pass == 1) { /* as a parent may have left it */
            cr_assert_eq(fcntl(end, F_SETFL, O_NONBLOCK), 0);
            dup2(end, STDOUT_FILENO);
            strcpy(path, "-");
        }
        write_frames(path, VIDEO_OUTPUT_RAW, &format, 12, pass == 1 ? 6 : 0);
        dup2(before, STDOUT_FILENO);
        close(before);
        close(end);
        expect_taken(&taker, 12, frame_bytes);
    }
}

Test(writing, a_pipe_that_closes_early_is_an_error, .timeout = 300)
{
    struct video_format format = format_of("yuv420p10", 333, 171);
    struct video_output *output;
    struct picture_error error = {""};
    struct taker taker;
    char path[64];
    signal(SIGPIPE, SIG_IGN);
    int end = taker_start(&taker, 4096, 100000, 0, path);
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, &format, &error), "%s", error.text);
    close(end);
    int frames = 0;
    while (frames < 100 && video_output_write(output, readable(&frame), frame.pitch, &error))
        frames++;
    cr_expect_lt(frames, 100);
    expect_words(error.text, "Broken pipe", "write");
    cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
    cr_expect_not(video_output_finish(&output, &error));
    expect_words(error.text, "Broken pipe", "finish");
    pthread_join(taker.thread, NULL);
    free(taker.got.data);
    frame_free(&frame);
}

Test(writing, refuses_memory_with_rows_that_are_too_short)
{
    struct video_format format = format_of("nv12", 8, 8);
    struct video_output *output;
    struct picture_error error = {""};
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, "", VIDEO_OUTPUT_NULL, &format, &error));
    frame.pitch[1] = 7;
    cr_expect_not(video_output_write(output, readable(&frame), frame.pitch, &error));
    expect_words(error.text, "plane 1", "short rows");
    cr_expect(video_output_finish(&output, &error));
    frame_free(&frame);
}

/* --- A real clip -------------------------------------------------------------------------------------------------- */

static const char clip_path[] = COX_TEST_SOURCE_DIR "/examples/data/stilllife_pq_480x270.y4m";

Test(clip, goes_through_unchanged)
{
    struct video_input *input;
    struct video_output *output;
    struct picture_error error = {""};
    char path[64];
    int fd = make_file(path);
    cr_assert_eq(video_kind_of(clip_path), VIDEO_KIND_Y4M);
    cr_assert(video_input_open(&input, clip_path, NULL, &error), "%s", error.text);
    const struct video_format *format = video_input_format(input);
    cr_expect(format->width == 480 && format->height == 270 && format->frames == 3 && format->pixel.depth == 10);
    struct frame frame = frame_make(format, 32);
    cr_assert(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, format, &error), "%s", error.text);
    while (video_input_read(input, frame.memory, frame.pitch, &error) == VIDEO_READ_FRAME)
        cr_assert(video_output_write(output, readable(&frame), frame.pitch, &error), "%s", error.text);
    cr_assert(video_output_finish(&output, &error), "%s", error.text);
    struct bytes in = load_file(clip_path), out = load_file(path);
    size_t in_head = (size_t)((uint8_t *)memchr(in.data, '\n', in.count) - in.data);
    size_t out_head = (size_t)((uint8_t *)memchr(out.data, '\n', out.count) - out.data);
    cr_assert_eq(in.count - in_head, out.count - out_head);
    cr_expect_eq(memcmp(in.data + in_head, out.data + out_head, in.count - in_head), 0);
    frame_free(&frame);
    free(in.data);
    free(out.data);
    video_input_close(&input);
    close(fd);
}
