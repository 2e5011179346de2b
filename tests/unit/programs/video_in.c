/* Video input from a file, a pipe or memory: frames are those in the stream, and an invalid stream only causes an
 * error, whose message names the place. Streams are built byte by byte. Those in containers are made with ffmpeg,
 * if it is installed.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/picture.h"
#include "media/video.h"
#include "unit/programs/streams.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

TestSuite(y4m, .fini = stream_close);
TestSuite(raw, .fini = stream_close);
TestSuite(opening, .fini = stream_close);
TestSuite(producer, .fini = stream_close, .timeout = 600);
TestSuite(cancelling, .fini = stream_close, .timeout = 600);
TestSuite(interruptions, .fini = stream_close, .timeout = 600);

/* --- y4m: the header ---------------------------------------------------------------------------------------------- */

static bool open_text(const char *header, struct video_format *format)
{
    struct video_input *input = NULL;
    bool opened = video_input_open_memory(&input, header, strlen(header), NULL, &said);
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
        enum cox_chroma_location chroma_location;
        const char *text;
    } cases[] = {
        {"", 8, 1, 1, COX_CHROMA_CENTER, "y4m, 4:2:0, 8 bits"},
        {" C420jpeg", 8, 1, 1, COX_CHROMA_CENTER, "y4m, 4:2:0, 8 bits"},
        {" C420mpeg2", 8, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C420", 8, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C420paldv", 8, 1, 1, COX_CHROMA_TOP_LEFT, "y4m, 4:2:0, 8 bits"},
        {" C422", 8, 1, 0, COX_CHROMA_LEFT, "y4m, 4:2:2, 8 bits"},
        {" C444", 8, 0, 0, COX_CHROMA_LEFT, "y4m, 4:4:4, 8 bits"},
        {" C420p9", 9, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 9 bits"},
        {" C420p10", 10, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 10 bits"},
        {" C420p12", 12, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 12 bits"},
        {" C420p14", 14, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 14 bits"},
        {" C420p16", 16, 1, 1, COX_CHROMA_LEFT, "y4m, 4:2:0, 16 bits"},
        {" C422p10", 10, 1, 0, COX_CHROMA_LEFT, "y4m, 4:2:2, 10 bits"},
        {" C422p12", 12, 1, 0, COX_CHROMA_LEFT, "y4m, 4:2:2, 12 bits"},
        {" C422p16", 16, 1, 0, COX_CHROMA_LEFT, "y4m, 4:2:2, 16 bits"},
        {" C444p10", 10, 0, 0, COX_CHROMA_LEFT, "y4m, 4:4:4, 10 bits"},
        {" C444p12", 12, 0, 0, COX_CHROMA_LEFT, "y4m, 4:4:4, 12 bits"},
        {" C444p16", 16, 0, 0, COX_CHROMA_LEFT, "y4m, 4:4:4, 16 bits"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct video_format format;
        char header[128];
        snprintf(header, sizeof header, "YUV4MPEG2 W1917 H1081%s\n", cases[i].tags);
        cr_assert(open_text(header, &format), "%s: %s", header, said.text);
        cr_expect_eq(format.width, 1917);
        cr_expect_eq(format.height, 1081);
        cr_expect_eq(format.pixel.layout, COX_VIDEO_PLANAR);
        cr_expect_eq(format.pixel.depth, cases[i].depth, "%s", header);
        cr_expect_not(format.pixel.msb_aligned);
        cr_expect_eq(format.pixel.chroma_x_log2, cases[i].x_log2, "%s", header);
        cr_expect_eq(format.pixel.chroma_y_log2, cases[i].y_log2, "%s", header);
        cr_expect_eq(format.pixel.chroma_location, cases[i].chroma_location, "%s", header);
        cr_expect_eq(format.pixel.range, COX_RANGE_LIMITED);
        cr_expect_str_eq(format.text, cases[i].text);
        cr_expect(!format.colours.has_range && !format.colours.has_transfer && !format.colours.has_primaries);
        cr_expect(format.rate.num == 0 && format.rate.den == 0 && format.aspect.num == 0 && format.aspect.den == 0);
        cr_expect_eq(format.interlacing, '?');
    }
}

Test(y4m, reads_rate_aspect_interlacing_and_range)
{
    struct video_format f;
    cr_assert(open_text("YUV4MPEG2 W2 H4 F24000:1001 Ip A128:117 C420p10 XYSCSS=420P10 XCOLORRANGE=FULL\n", &f));
    cr_expect(f.rate.num == 24000 && f.rate.den == 1001 && f.aspect.num == 128 && f.aspect.den == 117);
    cr_expect(f.interlacing == 'p' && f.colours.has_range && f.pixel.range == COX_RANGE_FULL);
    cr_expect_str_eq(f.text, "y4m, 4:2:0, 10 bits, full range");
    /* Extensions in any order, double spaces, and unknown extensions and letters, which are ignored. */
    cr_assert(open_text("YUV4MPEG2  XCOLORRANGE=LIMITED C444  A0:0 I? F0:0 Xsome/comment,W9 Zother X H65536 W1 \n", &f),
              "%s", said.text);
    cr_expect(f.rate.num == 0 && f.rate.den == 0 && f.aspect.num == 0 && f.aspect.den == 0 && f.interlacing == '?');
    cr_expect(f.colours.has_range && f.pixel.range == COX_RANGE_LIMITED && f.width == 1 && f.height == 65536);
    cr_assert(open_text("YUV4MPEG2 W1 H1 F4294967295:4294967295\n", &f));
    cr_expect(f.rate.num == UINT32_MAX && f.rate.den == UINT32_MAX);
    cr_assert(open_text("YUV4MPEG2 W65536 H8192\n", &f)); /* the largest number of pixels */
}

Test(y4m, refuses_a_bad_header_and_says_where)
{
    static const struct {
        const char *header, *words;
    } cases[] = {
        {"", "it ends inside the y4m header, at byte 0"},
        {"YUV4", "it ends inside the y4m header, at byte 4"},
        {"YUV4MPEG2 W4 H4", "it ends inside the y4m header, at byte 15"},
        {"YUV4MPEG W4 H4\n", "does not begin with YUV4MPEG2"},
        {"YUV4MPEG22 W4 H4\n", "does not begin with YUV4MPEG2"},
        {"YUV4MPEG2\n", "missing width"},
        {"YUV4MPEG2 H4\n", "missing width"},
        {"YUV4MPEG2 W4\n", "missing height"},
        {"YUV4MPEG2 W0 H4\n", "at byte 10: \"W0\": width and height must be from 1 to 65536"},
        {"YUV4MPEG2 W4 H0\n", "at byte 13: \"H0\": width and height must be from 1 to 65536"},
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
        {"YUV4MPEG2 W4 H4 F25\n", "at byte 16: \"F25\": expected a ratio"},
        {"YUV4MPEG2 W4 H4 F25:\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F25:0\n", "at byte 16: \"F25:0\""},
        {"YUV4MPEG2 W4 H4 F0:1\n", "at byte 16: \"F0:1\""},
        {"YUV4MPEG2 W4 H4 F-25:1\n", "at byte 16: \"F-25:1\""},
        {"YUV4MPEG2 W4 H4 F25:1:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 F4294967296:1\n", "at byte 16"},
        {"YUV4MPEG2 W4 H4 A1:0\n", "at byte 16: \"A1:0\": expected a ratio"},
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
        {"YUV4MPEG2 W4 H4 C411\n", "\"C411\": expected 4:2:0, 4:2:2 or 4:4:4"},
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
        {"YUV4MPEG2 W4 H4 C\x1b[2J\n", "C\\x1b[2J"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct video_format format;
        cr_expect_not(open_text(cases[i].header, &format), "%s", cases[i].header);
        expect_said(cases[i].words, cases[i].header);
    }
}

Test(y4m, refuses_a_header_with_a_zero_byte_or_without_end)
{
    static const char zero[] = "YUV4MPEG2 W4\0 H4\n";
    struct bytes b = {0};
    put(&b, zero, sizeof zero - 1);
    cr_expect_not(stream_try(MEMORY, &b, 0, NULL));
    expect_said("at byte 12: a zero byte", "zero");
    b.count = 0;
    put_text(&b, "YUV4MPEG2 W4 H4 X");
    put_times(&b, "x", 100000);
    for (enum way way = 0; way < WAYS; way++) {
        cr_expect_not(stream_try(way, &b, 4096, NULL));
        expect_said("begins at byte 0 is longer than", way_names[way]);
    }
    stream_close();
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
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            uint64_t w = sizes[s][0], h = sizes[s][1];
            uint64_t cw = (w + cases[c].x_log2) >> cases[c].x_log2, ch = (h + cases[c].y_log2) >> cases[c].y_log2;
            char header[128];
            snprintf(header, sizeof header, "YUV4MPEG2 W%" PRIu64 " H%" PRIu64 " F25:1 C%s\n", w, h, cases[c].name);
            struct bytes *b = make_stream(header, "FRAME\n", 3, cases[c].bytes * (w * h + 2 * cw * ch));
            expect_stream(b, NULL, 3, 0, 1); /* one byte at a time */
            expect_stream(b, NULL, 3, 12, 7);
        }
}

Test(y4m, reads_1917x1081_packed_and_with_longer_rows)
{
    uint64_t frame_bytes = 2 * (1917 * 1081 + 2 * 959 * 541);
    struct bytes *b = make_stream("YUV4MPEG2 W1917 H1081 F25:1 C420p10\n", "FRAME\n", 2, frame_bytes);
    expect_stream(b, NULL, 2, 0, 100003);
    expect_stream(b, NULL, 2, 64, 65536);
}

Test(y4m, passes_over_the_parameters_of_a_frame)
{
    struct bytes *b = make_stream("YUV4MPEG2 W3 H3 C444\n", "FRAME Ipp Xcomment=a b\n", 3, 27);
    for (enum way way = 0; way < WAYS; way++) {
        stream_open(way, b, 1, NULL, 4);
        expect_frames(3);
    }
}

Test(y4m, refuses_endless_parameters_of_a_frame)
{
    struct bytes *b = make_stream("YUV4MPEG2 W1 H1\nFRAME ", "", 0, 0);
    put_times(b, "x", 5000);
    stream_open(MEMORY, b, 1, NULL, 0);
    cr_expect_eq(stream_read(), VIDEO_READ_ERROR);
    expect_said("begins at byte 16 is longer than", "parameters");
}

/* The data where the third frame should begin is invalid. The error names the frame and the offset, and stays. */
Test(y4m, what_is_no_frame_is_an_error_that_says_where_and_what_it_is)
{
    static const char none[] = "FRAME is missing", second[] = "a second y4m stream begins";
    static const struct {
        const char *bytes;
        size_t count; /* 0: up to the zero byte */
        uint64_t frame_bytes;
        const char *words;
    } cases[] = {
        {"FRAMES\n", 6, 24, none},
        {"frame\n", 6, 24, none},
        {"FRAM\n\n", 6, 24, none},
        {"FRAME\r\n", 6, 24, none},
        {"\0\0\0\0\0\0", 6, 24, none},
        {"YUV4MPEG2 W6 H8 F25:1 C444\n", 0, 0, "the picture's size changes from 4 x 2 to 6 x 8"},
        {"YUV4MPEG2 C444 H2 W40", 0, 0, "the picture's size changes from 4 x 2 to 40 x 2"}, /* the stream ends here */
        {"YUV4MPEG2 W4 H2 C444\n", 0, 0, second},
        {"YUV4MPEG2 W99999999999 H2\n", 0, 0, second},
        {"YUV4MPEG2", 0, 0, second},
        {"YUV4MPEG3 W6 H8\n", 0, 0, none},
        {"YUV4MP", 0, 0, none},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++)
        for (enum way way = 0; way < WAYS; way++) {
            struct bytes *b = make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24); /* 21 bytes, then 30 a frame */
            char words[128];
            put(b, cases[c].bytes, cases[c].count ? cases[c].count : strlen(cases[c].bytes));
            put_frame(b, 2, cases[c].frame_bytes);
            snprintf(words, sizeof words, "frame 2 (the first is 0), byte 81: %s", cases[c].words);
            stream_open(way, b, 5, NULL, 0);
            for (int f = 0; f < 2; f++)
                cr_assert_eq(stream_read(), VIDEO_READ_FRAME);
            for (int again = 0; again < 3; again++) {
                said.text[0] = '\0';
                cr_expect_eq(again < 2 ? stream_read() : stream_skip(1), VIDEO_READ_ERROR);
                cr_expect_str_eq(said.text, words, "%s, time %d", way_names[way], again);
            }
        }
}

/* A stream of two frames that ends at `cut`: what reading and skipping report. Raw frames have no marker. */
static void expect_cut(const struct bytes *whole, const struct video_raw *raw, size_t cut, size_t head, size_t marker,
                       enum way way, bool skip)
{
    struct bytes b = {.data = whole->data, .count = cut};
    size_t each = (whole->count - head) / 2, begin = head;
    stream_open(way, &b, 3, raw, 4);
    for (uint64_t f = 0; begin + each <= cut; f++, begin += each) {
        if (skip)
            cr_assert_eq(stream_skip(1), VIDEO_READ_FRAME, "cut at %zu: %s", cut, said.text);
        else
            expect_frame(f);
    }
    const enum video_read result = skip ? stream_skip(1) : stream_read();
    cr_expect_eq(result, begin == cut ? VIDEO_READ_END : VIDEO_READ_ERROR, "%s, cut at %zu", way_names[way], cut);
    if (begin != cut) {
        char words[256];
        /* If the end is in the marker, the marker's full length is not known, so its least length counts. */
        size_t missing = begin + each - cut;
        if (cut - begin > 6 && cut - begin < marker)
            missing = each - marker + 1;
        else if (marker && cut - begin <= 6)
            missing = each - marker + (cut - begin < 6 ? 6 - (cut - begin) : marker == 6 ? 0 : 1);
        snprintf(
            words, sizeof words,
            "frame %zu (the first is 0), which begins at byte %zu, is incomplete: the stream ends at byte %zu, %zu "
            "bytes are missing",
            (begin - head) / each, begin, cut, missing);
        cr_expect_str_eq(said.text, words, "%s, cut at %zu", way_names[way], cut);
    }
}

Test(y4m, cut_off_at_any_byte_gives_the_whole_frames_and_then_says_what_is_missing)
{
    static const char header[] = "YUV4MPEG2 W3 H2 C420p10\n";
    static const char *const markers[] = {"FRAME\n", "FRAME Ip\n"};
    for (size_t m = 0; m < 2; m++) {
        struct bytes *b = make_stream(header, markers[m], 2, 2 * (6 + 4));
        for (size_t cut = 0; cut < sizeof header - 1; cut++) {
            struct video_input *input;
            char words[64];
            snprintf(words, sizeof words, "it ends inside the y4m header, at byte %zu", cut);
            cr_expect_not(video_input_open_memory(&input, b->data, cut, NULL, &said));
            expect_said(words, "header");
        }
        for (size_t cut = sizeof header - 1; cut <= b->count; cut++)
            for (int pass = 0; pass < 2 * WAYS; pass++)
                expect_cut(b, NULL, cut, sizeof header - 1, strlen(markers[m]), (enum way)(pass / 2), pass % 2);
    }
}

Test(y4m, a_file_that_shrinks_while_it_is_read_is_an_error)
{
    stream_open(FILE_PATH, make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 3, 24), 0, NULL, 0);
    cr_assert_eq(stream_read(), VIDEO_READ_FRAME);
    cr_assert_eq(ftruncate(stream.fd, 21 + 30 + 10), 0);
    cr_expect_eq(stream_read(), VIDEO_READ_ERROR);
    expect_said("frame 1", "shrunk");
    expect_said("20 bytes are missing", "shrunk");
}

Test(y4m, skips_frames_and_goes_on_behind_them)
{
    struct bytes *b = make_stream("YUV4MPEG2 W33 H17 C422\n", "FRAME\n", 9, 33 * 17 + 2 * 17 * 17);
    for (enum way way = 0; way < WAYS; way++) {
        stream_open(way, b, 1000, NULL, 0);
        cr_assert_eq(stream_skip(0), VIDEO_READ_FRAME);
        cr_assert_eq(stream_skip(3), VIDEO_READ_FRAME);
        expect_frame(3);
        cr_assert_eq(stream_skip(4), VIDEO_READ_FRAME);
        expect_frame(8);
        cr_assert_eq(stream_read(), VIDEO_READ_END);
        stream_open(way, b, 1000, NULL, 0);
        cr_assert_eq(stream_skip(UINT64_MAX), VIDEO_READ_END);
    }
}

Test(y4m, refuses_memory_with_rows_that_are_too_short)
{
    stream_open(MEMORY, make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 1, 24), 0, NULL, 0);
    stream.frame.pitch[2] = 3;
    cr_expect_eq(stream_read(), VIDEO_READ_ERROR);
    expect_said("plane 2", "short rows");
    stream.frame.pitch[2] = 4; /* the caller's error, not the stream's */
    cr_expect_eq(stream_read(), VIDEO_READ_FRAME);
}

/* --- Raw frames --------------------------------------------------------------------------------------------------- */

Test(raw, finds_the_formats_by_their_names)
{
    static const struct {
        const char *name;
        enum cox_video_layout layout;
        uint32_t depth;
        bool msb_aligned;
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
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct video_raw raw = raw_of(cases[i].name, 0, 0);
        const struct cox_video_format pixel = raw.pixel;
        const bool rgb = pixel.layout == COX_VIDEO_RGBA || pixel.layout == COX_VIDEO_BGRA ||
                         pixel.layout == COX_VIDEO_GBR;
        cr_expect_eq(pixel.layout, cases[i].layout, "%s", cases[i].name);
        cr_expect_eq(pixel.depth, cases[i].depth, "%s", cases[i].name);
        cr_expect_eq(pixel.msb_aligned, cases[i].msb_aligned, "%s", cases[i].name);
        cr_expect_eq(pixel.chroma_x_log2, cases[i].x_log2, "%s", cases[i].name);
        cr_expect_eq(pixel.chroma_y_log2, cases[i].y_log2, "%s", cases[i].name);
        cr_expect_eq(pixel.chroma_location, COX_CHROMA_LEFT, "%s", cases[i].name);
        cr_expect_eq(pixel.range, rgb ? COX_RANGE_FULL : COX_RANGE_LIMITED, "%s", cases[i].name);
        cr_expect_eq(raw.light, strstr(cases[i].name, "16f") || strstr(cases[i].name, "f16"), "%s", cases[i].name);
    }
    for (size_t i = 0; i < COUNT_OF(none); i++)
        cr_expect_not(video_raw_find(none[i], &(struct video_raw){0}), "%s", none[i]);
    cr_expect(strstr(video_raw_names, "p010") && strstr(video_raw_names, "rgba16f"));
}

Test(raw, reads_frames_of_the_size_given)
{
    static const struct {
        const char *name;
        uint64_t bytes; /* of 5 x 3 pixels */
    } cases[] = {{"nv12", 15 + 12},    {"p010", 2 * (15 + 12)}, {"yuv420p", 15 + 12}, {"yuv420p10", 2 * (15 + 12)},
                 {"yuv422p", 15 + 18}, {"yuv444p12", 2 * 45},   {"rgba16f", 8 * 15},  {"nv16", 15 + 18},
                 {"gbrp10", 2 * 45},   {"bgra", 4 * 15}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct video_raw raw = raw_of(cases[i].name, 5, 3);
        struct bytes *b = make_stream("", "", 3, cases[i].bytes);
        expect_stream(b, &raw, 3, 0, 1);
        expect_stream(b, &raw, 3, 20, 11);
    }
}

Test(raw, has_the_rate_that_is_given_or_25)
{
    struct video_raw raw = raw_of("p010", 4, 4);
    struct video_input *input;
    cr_assert(video_input_open_memory(&input, "", 0, &raw, &said));
    cr_expect_eq(video_input_format(input)->rate.num, 25);
    cr_expect_eq(video_input_format(input)->rate.den, 1);
    cr_expect_str_eq(video_input_format(input)->text, "raw, semi-planar 4:2:0, 10 bits");
    video_input_close(&input);
    raw.rate = (struct video_rational){30000, 1001};
    raw.pixel.range = COX_RANGE_FULL;
    cr_assert(video_input_open_memory(&input, "", 0, &raw, &said));
    cr_expect_eq(video_input_format(input)->rate.num, 30000);
    cr_expect_eq(video_input_format(input)->pixel.range, COX_RANGE_FULL);
    video_input_close(&input);
}

Test(raw, a_last_frame_that_is_not_whole_is_an_error)
{
    const struct video_raw raw = raw_of("nv12", 4, 4); /* 24 bytes */
    struct bytes *b = make_stream("", "", 2, 24);
    for (size_t cut = 0; cut < b->count; cut++)
        for (int pass = 0; pass < 2 * WAYS; pass++)
            expect_cut(b, &raw, cut, 0, 0, (enum way)(pass / 2), pass % 2);
}

Test(raw, refuses_sizes_that_are_not_sane)
{
    static const struct {
        uint32_t width, height;
        const char *name;
        uint32_t depth; /* 0: that of the format */
    } cases[] = {{0, 4, "rgba16f", 0},     {4, 0, "rgba16f", 0},        {65537, 1, "rgba16f", 0},
                 {1, 65537, "rgba16f", 0}, {65536, 8193, "rgba16f", 0}, {UINT32_MAX, UINT32_MAX, "rgba16f", 0},
                 {4, 4, "nv12", 7}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct video_raw raw = raw_of(cases[i].name, cases[i].width, cases[i].height);
        struct video_input *input;
        if (cases[i].depth)
            raw.pixel.depth = cases[i].depth;
        said.text[0] = '\0';
        cr_expect_not(video_input_open_memory(&input, "", 0, &raw, &said), "%u x %u", raw.width, raw.height);
        cr_expect(*said.text && !input);
    }
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

static void expect_frames_of(const char *path, const struct video_raw *raw, uint64_t frames)
{
    stream_open_path(path, raw, 0);
    expect_frames(frames);
    stream_close();
}

/* Raw frames begin with the bytes that were read to detect the format. */
Test(opening, standard_input_is_looked_at_without_losing_any_of_it)
{
    static const size_t steps[] = {1, 5, 40, 700, 100000};
    const struct video_raw raw = raw_of("yuv444p", 33, 17);
    for (int as_raw = 0; as_raw < 2; as_raw++) {
        struct bytes *b = make_stream(as_raw ? "" : "YUV4MPEG2 W33 H17 C444\n", as_raw ? "" : "FRAME\n", 4,
                                      3 * 33 * 17);
        for (size_t s = 0; s < COUNT_OF(steps); s++)
            for (int looks = 0; looks < 3; looks++) {
                struct giver giver;
                pipe_to_standard_input(&giver, b, steps[s]);
                for (int i = 0; i < looks; i++)
                    cr_assert_eq(video_kind_of("-"), as_raw ? VIDEO_KIND_NONE : VIDEO_KIND_Y4M);
                expect_frames_of("-", as_raw ? &raw : NULL, 4);
                pthread_join(giver.thread, NULL);
            }
    }
    cr_expect(fcntl(STDIN_FILENO, F_GETFD) >= 0, "standard input was closed");
}

Test(opening, a_picture_on_standard_input_is_left_to_the_picture_reader)
{
    static const struct {
        const char *header;
        int width, height, samples, looks;
        size_t step;
    } cases[] = {{"PF\n100 50\n-1.0\n", 100, 50, 3, 0, 1000},
                 {"PF\n100 50\n-1.0\n", 100, 50, 3, 1, 1000},
                 {"Pf 1 1 -1\n", 1, 1, 1, 1, 1}}; /* shorter than the bytes that are read to detect the format */
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        const int width = cases[c].width, height = cases[c].height, count = width * height * cases[c].samples;
        struct bytes *b = make_stream(cases[c].header, "", 0, 0);
        struct giver giver;
        struct picture_input *picture;
        static float pixels[50][100][4];
        for (int i = 0; i < count; i++)
            put(b, &(float){(float)i}, 4);
        pipe_to_standard_input(&giver, b, cases[c].step);
        for (int i = 0; i < cases[c].looks; i++)
            cr_assert_eq(video_kind_of("-"), VIDEO_KIND_NONE);
        cr_assert(picture_input_open(&picture, "-", PICTURE_ALPHA_BLACK, NULL, &said), "%s", said.text);
        cr_assert_eq(picture_input_read(picture, pixels, sizeof pixels[0], &said), PICTURE_READ_FRAME);
        cr_expect_eq(pixels[height - 1][0][0], 0.0f);
        cr_expect_eq(pixels[0][width - 1][2], (float)(count - 1));
        picture_input_close(&picture);
        pthread_join(giver.thread, NULL);
    }
}

Test(opening, a_pipe_with_a_name_is_looked_at_without_losing_any_of_it)
{
    int ends[2];
    char path[64];
    struct giver giver;
    cr_assert_eq(pipe(ends), 0);
    giver_start(&giver, ends[1], make_stream("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 2, 3 * 33 * 17), 100);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    cr_assert_eq(video_kind_of(path), VIDEO_KIND_Y4M);
    expect_frames_of(path, NULL, 2);
    pthread_join(giver.thread, NULL);
}

Test(opening, a_file_on_standard_input_is_read_from_where_it_stands)
{
    struct bytes *b = make_stream("something elseYUV4MPEG2 W33 H17 C444\n", "FRAME\n", 3, 3 * 33 * 17);
    char path[64];
    int fd = make_file(path);
    cr_assert_eq(write(fd, b->data, b->count), (ssize_t)b->count);
    cr_assert_eq(lseek(fd, 14, SEEK_SET), 14);
    cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    cr_assert_eq(video_kind_of("-"), VIDEO_KIND_Y4M);
    stream_open_path("-", NULL, 0);
    cr_expect_eq(video_input_format(stream.input)->frames, 3);
    expect_frames(3);
}

Test(opening, says_why_a_file_cannot_be_opened)
{
    static const char picture[] = COX_TEST_SOURCE_DIR "/examples/data/StillLife.exr";
    static const struct {
        const char *path, *words, *raw_words; /* NULL: this way of opening is not tried */
    } cases[] = {{"/nowhere/to/be.found", "cannot be opened: No such file", "cannot be opened: No such file"},
                 {"/tmp", "is a directory", "is a directory"},
                 {"/dev/null", "it is empty", NULL},
                 {"/proc/self/status", "not y4m or a known container", NULL},
                 {picture, "it is a picture, not a video", NULL},
                 {COX_TEST_SOURCE_DIR "/LICENSE", NULL, NULL}};
    const struct video_raw raw = raw_of("nv12", 4, 4);
    struct video_input *input = NULL;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        for (int as_raw = 0; as_raw < 2; as_raw++) {
            const char *words = as_raw ? cases[i].raw_words : cases[i].words;
            if (!words)
                continue;
            cr_expect_not(video_input_open(&input, cases[i].path, as_raw ? &raw : NULL, &said));
            expect_said(words, cases[i].path);
        }
        const enum video_kind kind = i < 2 ? VIDEO_KIND_UNREADABLE : VIDEO_KIND_NONE;
        cr_expect_eq(video_kind_of(cases[i].path), kind, "%s", cases[i].path);
    }
    video_input_close(&input); /* *input is NULL: does nothing */
}

/* --- The process that writes the frames --------------------------------------------------------------------------- */

/* Start a shell that computes until this process ends, with the pipe open for writing. Returns after it has started
 * to run. */
static pid_t start_busy_writer(int write_end)
{
    int began[2];
    char byte;
    cr_assert_eq(pipe2(began, O_CLOEXEC), 0);
    pid_t child = fork();
    if (!child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(write_end, STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", "while :; do :; done", (char *)NULL);
        _exit(1);
    }
    cr_assert_gt(child, 0);
    close(began[1]);
    cr_assert_eq(read(began[0], &byte, 1), 0); /* exec closes it */
    close(began[0]);
    return child;
}

Test(producer, of_a_pipe_is_the_program_that_writes_to_it)
{
    int ends[2];
    struct bytes *b = make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    cr_assert_eq(write(ends[1], b->data, b->count), (ssize_t)b->count);
    pid_t child = start_busy_writer(ends[1]);
    struct video_producer producer;
    stream_open_path("-", NULL, 0);
    const time_t wait_ends = time(NULL) + 300;
    do {
        video_input_producer(stream.input, &producer);
        cr_assert_lt(time(NULL), wait_ends, "the shell has no processor time");
    } while (producer.kind == VIDEO_PRODUCER_PROCESS && !producer.cpu_ns); /* until the shell has used processor time */
    cr_expect_eq(producer.kind, VIDEO_PRODUCER_PROCESS);
    cr_expect_str_eq(producer.name, "sh");
    cr_expect_gt(producer.cpu_ns, 0u);
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    const uint64_t before_ns = producer.cpu_ns;
    video_input_producer(stream.input, &producer); /* the last figures of a program that has ended stay */
    cr_expect_eq(producer.kind, VIDEO_PRODUCER_PROCESS);
    cr_expect_str_eq(producer.name, "sh");
    cr_expect_geq(producer.cpu_ns, before_ns);
    close(ends[1]);
}

Test(producer, of_a_pipe_that_no_other_program_writes_to_is_not_known)
{
    struct bytes *b = make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    static const enum video_producer_kind expected[] = {VIDEO_PRODUCER_FILE, VIDEO_PRODUCER_FILE,
                                                        VIDEO_PRODUCER_UNKNOWN};
    for (enum way way = 0; way < WAYS; way++) {
        struct video_producer producer;
        stream_open(way, b, 5, NULL, 0);
        video_input_producer(stream.input, &producer);
        cr_expect_eq(producer.kind, expected[way], "%s", way_names[way]);
        cr_expect_str_eq(producer.name, "");
        cr_expect_eq(producer.cpu_ns, 0u);
    }
}

/* --- Cancelling --------------------------------------------------------------------------------------------------- */

/* A thread that waits for a pipe in the middle of frame 1, and the cancellation. */
static struct {
    int write_end;
    bool by_signal;
    pthread_t reader;
    long reader_id;
} waiting;

static void cancel_on_signal(int number)
{
    (void)number;
    video_input_cancel(stream.input);
}

/* Cancel when the kernel says that the reader sleeps. */
static void *cancel_the_sleeper(void *user)
{
    char path[64], state = 0;
    (void)user;
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", waiting.reader_id);
    for (const time_t wait_ends = time(NULL) + 120; state != 'S' && time(NULL) < wait_ends;) {
        FILE *file = fopen(path, "r");
        if (!file || fscanf(file, "%*[^)]) %c", &state) != 1)
            break;
        fclose(file);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (waiting.by_signal)
        pthread_kill(waiting.reader, SIGUSR1);
    else
        video_input_cancel(stream.input);
    return state == 'S' ? user : NULL;
}

static void expect_cancelled(bool by_signal, bool skip)
{
    struct bytes *b = make_stream("YUV4MPEG2 W33 H17 C444\n", "FRAME\n", 2, 3 * 33 * 17);
    int ends[2];
    char path[64];
    pthread_t thread;
    void *slept;
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], b->data, b->count - 100), (ssize_t)b->count - 100);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    stream_open_path(path, NULL, 4);
    expect_frame(0);
    waiting.by_signal = by_signal;
    waiting.reader = pthread_self();
    waiting.reader_id = syscall(SYS_gettid);
    cr_assert_eq(pthread_create(&thread, NULL, cancel_the_sleeper, &waiting), 0);
    cr_expect_eq(skip ? stream_skip(1) : stream_read(), VIDEO_READ_CANCELLED);
    pthread_join(thread, &slept);
    cr_assert(slept, "the reader did not begin to wait");
    cr_expect_eq(stream_read(), VIDEO_READ_CANCELLED);
    cr_expect_eq(stream_skip(1), VIDEO_READ_CANCELLED);
    cr_expect_str_eq(said.text, "");
    stream_close();
    close(ends[0]);
    close(ends[1]);
}

Test(cancelling, ends_a_read_that_waits_for_a_pipe)
{
    expect_cancelled(false, false);
    expect_cancelled(false, true);
}

Test(cancelling, works_from_a_signal_handler_that_restarts_calls)
{
    struct sigaction action = {.sa_handler = cancel_on_signal, .sa_flags = SA_RESTART};
    cr_assert_eq(sigaction(SIGUSR1, &action, NULL), 0);
    expect_cancelled(true, false);
}

Test(cancelling, holds_for_files_too)
{
    struct bytes *b = make_stream("YUV4MPEG2 W4 H2 C444\n", "FRAME\n", 2, 24);
    for (enum way way = 0; way < WAYS; way++) {
        stream_open(way, b, 100, NULL, 0);
        cr_assert_eq(stream_read(), VIDEO_READ_FRAME);
        video_input_cancel(stream.input);
        cr_expect_eq(stream_read(), VIDEO_READ_CANCELLED);
    }
}

Test(interruptions, lose_nothing_that_is_read)
{
    interrupt_often();
    expect_stream(make_stream("YUV4MPEG2 W333 H171 C444p10\n", "FRAME\n", 4, 6 * 333 * 171), NULL, 4, 4, 500);
}
