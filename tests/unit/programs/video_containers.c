/* Video in containers: the frames are those that were encoded, the colours and the light those that the stream says,
 * and a file that is cut off, damaged or of another kind does no more than fail.
 *
 * The files are made with ffmpeg from the clip in examples/data; where it, or an encoder, is missing, tests are
 * skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/video.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if COX_HAVE_LIBAV

static const char clip[] = COX_TEST_SOURCE_DIR "/examples/data/stilllife_pq_480x270.y4m";
enum { CLIP_FRAMES = 3 };

static char scratch[64];

static void make_scratch(void)
{
    strcpy(scratch, "/tmp/coxswain-test-XXXXXX");
    cr_assert(mkdtemp(scratch) != NULL);
}

static void remove_scratch(void)
{
    DIR *dir = opendir(scratch);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", scratch, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(scratch);
}

TestSuite(containers, .init = make_scratch, .fini = remove_scratch, .timeout = 600);

/* A shell command with the scratch folder as the current one; whether it succeeds. */
__attribute__((format(printf, 1, 2))) static bool shell(const char *format, ...)
{
    char command[2000];
    int length = snprintf(command, sizeof command, "cd '%s' && exec >/dev/null 2>&1 && ", scratch);
    va_list args;
    va_start(args, format);
    vsnprintf(command + length, sizeof command - (size_t)length, format, args);
    va_end(args);
    return system(command) == 0;
}

/* ffmpeg on the clip. */
static bool encode(const char *options)
{
    return shell("ffmpeg -nostdin -v error -y -i '%s' %s", clip, options);
}

#define skip_unless(x, why)                        \
    do {                                           \
        if (!(x))                                  \
            cr_skip_test("skipped, because " why); \
    } while (0)

#define NEED_FFMPEG() skip_unless(shell("ffmpeg -version"), "ffmpeg is not installed")
#define NEED_X265() skip_unless(encode("-frames:v 1 -c:v libx265 x.mkv"), "ffmpeg has no libx265")

static const char *in_scratch(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch, name);
    return path;
}

static struct video_input *open_file(const char *name)
{
    struct video_input *input;
    struct picture_error error = {""};
    cr_assert_eq(video_kind_of(in_scratch(name)), VIDEO_KIND_CONTAINER, "%s", name);
    cr_assert(video_input_open(&input, in_scratch(name), NULL, &error), "%s: %s", name, error.text);
    return input;
}

static void expect_refused(const char *name, const char *words)
{
    struct video_input *input;
    struct picture_error error = {""};
    cr_expect_not(video_input_open(&input, in_scratch(name), NULL, &error), "%s", name);
    cr_expect(strstr(error.text, words), "%s: \"%s\" lacks \"%s\"", name, error.text, words);
    cr_expect(input == NULL);
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

struct frame {
    uint32_t planes;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    size_t pitch[COX_VIDEO_PLANES_MAX];
    void *memory[COX_VIDEO_PLANES_MAX];
};

static struct frame frame_make(const struct video_format *format)
{
    struct frame frame = {0};
    frame.planes = cox_video_planes(&format->pixel, format->width, format->height, frame.plane);
    cr_assert(frame.planes > 0);
    for (uint32_t p = 0; p < frame.planes; p++) {
        frame.pitch[p] = frame.plane[p].row_bytes + 20;
        frame.memory[p] = calloc(frame.plane[p].rows, frame.pitch[p]);
        cr_assert(frame.memory[p] != NULL);
        memset(frame.memory[p], 0xa5, frame.pitch[p] * frame.plane[p].rows);
    }
    return frame;
}

static void frame_free(struct frame *frame)
{
    for (uint32_t p = 0; p < frame->planes; p++)
        free(frame->memory[p]);
}

static enum video_read read_frame(struct video_input *input, struct frame *frame, struct picture_error *error)
{
    return video_input_read(input, frame->memory, frame->pitch, error);
}

/* Against the next frame of a file of raw frames. */
static void expect_next(const struct frame *frame, FILE *raw)
{
    static uint8_t row[65536];
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t y = 0; y < frame->plane[p].rows; y++) {
            const uint8_t *got = (const uint8_t *)frame->memory[p] + y * frame->pitch[p];
            cr_assert_eq(fread(row, 1, frame->plane[p].row_bytes, raw), frame->plane[p].row_bytes);
            cr_assert_eq(memcmp(got, row, frame->plane[p].row_bytes), 0, "plane %u, row %u", p, y);
            for (size_t i = frame->plane[p].row_bytes; i < frame->pitch[p]; i++)
                cr_assert_eq(got[i], 0xa5);
        }
}

/* How many frames come out, until the end or, if `failed`, an error. */
static int count_frames(struct video_input *input, bool *failed, struct picture_error *error)
{
    struct frame frame = frame_make(video_input_format(input));
    enum video_read result;
    int frames = 0;
    while ((result = read_frame(input, &frame, error)) == VIDEO_READ_FRAME)
        frames++;
    *failed = result == VIDEO_READ_ERROR;
    cr_expect_eq(read_frame(input, &frame, error), result); /* and so it stays */
    frame_free(&frame);
    return frames;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

Test(containers, give_the_frames_that_were_encoded)
{
    static const struct {
        const char *samples, *encoder, *file;
        uint32_t depth;
        enum cox_video_layout layout;
        uint32_t x_log2, y_log2;
    } cases[] = {
        {"yuv420p", "ffv1", "a.mkv", 8, COX_VIDEO_PLANAR, 1, 1},
        {"yuv422p", "ffv1", "b.mkv", 8, COX_VIDEO_PLANAR, 1, 0},
        {"yuv444p", "ffv1", "c.mkv", 8, COX_VIDEO_PLANAR, 0, 0},
        {"yuv420p10le", "ffv1", "d.mkv", 10, COX_VIDEO_PLANAR, 1, 1},
        {"yuv422p10le", "ffv1", "e.mkv", 10, COX_VIDEO_PLANAR, 1, 0},
        {"yuv444p10le", "ffv1", "f.mkv", 10, COX_VIDEO_PLANAR, 0, 0},
        {"yuv420p12le", "ffv1", "g.mkv", 12, COX_VIDEO_PLANAR, 1, 1},
        {"yuv422p12le", "ffv1", "h.mkv", 12, COX_VIDEO_PLANAR, 1, 0},
        {"yuv444p12le", "ffv1", "i.mkv", 12, COX_VIDEO_PLANAR, 0, 0},
        {"yuv444p16le", "ffv1", "j.mkv", 16, COX_VIDEO_PLANAR, 0, 0},
        {"nv12", "rawvideo", "k.nut", 8, COX_VIDEO_SEMI_PLANAR, 1, 1},
        {"gbrp10le", "ffv1", "l.mkv", 10, COX_VIDEO_GBR, 0, 0},
        {"gbrp16le", "ffv1", "m.mkv", 16, COX_VIDEO_GBR, 0, 0},
        {"rgba64le", "rawvideo", "n.nut", 16, COX_VIDEO_RGBA, 0, 0},
        {"bgra64le", "rawvideo", "o.nut", 16, COX_VIDEO_BGRA, 0, 0},
    };
    NEED_FFMPEG();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char options[300];
        snprintf(options, sizeof options,
                 "-vf scale=61:35,format=%s -c:v %s %s -vf scale=61:35,format=%s -f rawvideo frames.raw",
                 cases[i].samples, cases[i].encoder, cases[i].file, cases[i].samples);
        cr_assert(encode(options), "%s", options);
        struct video_input *input = open_file(cases[i].file);
        const struct video_format *format = video_input_format(input);
        cr_expect(format->width == 61 && format->height == 35);
        cr_expect_eq(format->pixel.depth, cases[i].depth, "%s", cases[i].samples);
        cr_expect_eq(format->pixel.layout, cases[i].layout, "%s", cases[i].samples);
        cr_expect(cases[i].layout < COX_VIDEO_RGBA || format->pixel.range == COX_RANGE_FULL, "%s", cases[i].samples);
        cr_expect_not(format->pixel.high_bits); /* no file holds P010: it is what some decoders give */
        cr_expect_eq(format->pixel.chroma_x_log2, cases[i].x_log2, "%s", cases[i].samples);
        cr_expect_eq(format->pixel.chroma_y_log2, cases[i].y_log2, "%s", cases[i].samples);
        cr_expect(format->rate.num == 24 * format->rate.den && format->interlacing == 'p');
        /* Where the container does not count them: an estimate by the duration, which may lack the last one. */
        cr_expect(format->frames == CLIP_FRAMES || format->frames == CLIP_FRAMES - 1, "%s", cases[i].file);
        FILE *raw = fopen(in_scratch("frames.raw"), "rb");
        struct frame frame = frame_make(format);
        struct picture_error error = {""};
        for (int f = 0; f < CLIP_FRAMES; f++) {
            cr_assert_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME, "%s", error.text);
            expect_next(&frame, raw);
        }
        cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_END);
        cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_END);
        fclose(raw);
        frame_free(&frame);
        video_input_close(&input);
    }
}

Test(containers, skip_frames_and_go_on_behind_them)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv -f rawvideo frames.raw"));
    struct video_input *input = open_file("a.mkv");
    struct frame frame = frame_make(video_input_format(input));
    struct picture_error error = {""};
    FILE *raw = fopen(in_scratch("frames.raw"), "rb");
    cr_assert_eq(fseek(raw, 2 * (480 * 270 * 3 / 2) * 2, SEEK_SET), 0);
    cr_expect_eq(video_input_skip(input, 2, &error), VIDEO_READ_FRAME);
    cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME);
    expect_next(&frame, raw);
    cr_expect_eq(video_input_skip(input, 1, &error), VIDEO_READ_END);
    fclose(raw);
    frame_free(&frame);
    video_input_close(&input);
}

Test(containers, say_transfer_primaries_range_and_site)
{
    static const struct {
        const char *options;
        bool has_transfer, has_primaries, has_range;
        enum cox_transfer transfer;
        enum cox_primaries primaries;
        enum cox_range range;
    } cases[] = {
        {"color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc:range=tv", true, true, true, COX_TRANSFER_PQ,
         COX_PRIMARIES_BT2020, COX_RANGE_LIMITED},
        {"color_trc=arib-std-b67:color_primaries=bt2020:colorspace=bt2020nc:range=pc", true, true, true,
         COX_TRANSFER_HLG, COX_PRIMARIES_BT2020, COX_RANGE_FULL},
        {"color_trc=bt709:color_primaries=bt709:colorspace=bt709:range=tv", false, true, true, COX_TRANSFER_PQ,
         COX_PRIMARIES_BT709, COX_RANGE_LIMITED},
    };
    NEED_FFMPEG();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char options[300];
        /* The frames say so themselves, and the encoder is asked for what they say: else FFmpeg 7 converts. */
        snprintf(options, sizeof options, "-vf setparams=%s -color_range %s -c:v ffv1 a.mkv", cases[i].options,
                 cases[i].range == COX_RANGE_FULL ? "pc" : "tv");
        cr_assert(encode(options), "%s", options);
        struct video_input *input = open_file("a.mkv");
        const struct video_format *format = video_input_format(input);
        cr_expect_eq(format->has_transfer, cases[i].has_transfer, "%s", options);
        cr_expect(!format->has_transfer || format->transfer == cases[i].transfer, "%s", options);
        cr_expect_eq(format->has_primaries, cases[i].has_primaries, "%s", options);
        cr_expect_eq(format->primaries, cases[i].primaries, "%s", options);
        cr_expect_eq(format->has_range, cases[i].has_range, "%s", options);
        cr_expect_eq(format->pixel.range, cases[i].range, "%s", options);
        cr_expect(format->mastering_peak_nits == 0 && format->max_cll_nits == 0);
        cr_expect(cases[i].has_transfer || strstr(format->text, "transfer bt709"), "%s", format->text);
        video_input_close(&input);
    }
    cr_assert(encode("-vf setparams=colorspace=unknown -c:v ffv1 a.mkv"));
    struct video_input *input = open_file("a.mkv");
    cr_expect_not(video_input_format(input)->has_transfer);
    cr_expect_not(video_input_format(input)->has_primaries);
    cr_expect_eq(video_input_format(input)->pixel.site, COX_SITE_LEFT);
    video_input_close(&input);
}

static void expect_light(const char *name, double peak, double brightest)
{
    struct video_input *input = open_file(name);
    const struct video_format *format = video_input_format(input);
    cr_expect(format->has_transfer && format->transfer == COX_TRANSFER_PQ, "%s", name);
    cr_expect(format->has_primaries && format->primaries == COX_PRIMARIES_BT2020, "%s", name);
    cr_expect_eq(format->mastering_peak_nits, peak, "%s: %g", name, format->mastering_peak_nits);
    cr_expect_eq(format->max_cll_nits, brightest, "%s: %g", name, format->max_cll_nits);
    cr_expect(strstr(format->text, "hevc"), "%s", format->text);
    video_input_close(&input);
}

Test(containers, give_the_light_of_the_mastering_display)
{
    NEED_FFMPEG();
    NEED_X265();
    cr_assert(encode("-c:v libx265 -pix_fmt yuv420p10le -x265-params 'log-level=none:lossless=1:colorprim=bt2020:"
                     "transfer=smpte2084:colormatrix=bt2020nc:chromaloc=2:master-display=G(13250,34500)B(7500,3000)"
                     "R(34000,16000)WP(15635,16450)L(40000000,50):max-cll=1234,300' a.mkv -f rawvideo frames.raw"));
    expect_light("a.mkv", 4000, 1234);
    cr_assert(shell("ffmpeg -nostdin -v error -y -i a.mkv -c copy b.mp4 && "
                    "ffmpeg -nostdin -v error -y -i a.mkv -c copy c.ts && "
                    "ffmpeg -nostdin -v error -y -i a.mkv -c copy d.hevc"));
    expect_light("b.mp4", 4000, 1234);
    expect_light("c.ts", 4000, 1234);
    expect_light("d.hevc", 4000, 1234);
    struct video_input *input = open_file("b.mp4");
    cr_expect_eq(video_input_format(input)->pixel.site, COX_SITE_TOP_LEFT);
    cr_expect_eq(video_input_format(input)->frames, CLIP_FRAMES);
    struct frame frame = frame_make(video_input_format(input));
    struct picture_error error = {""};
    FILE *raw = fopen(in_scratch("frames.raw"), "rb");
    for (int f = 0; f < CLIP_FRAMES; f++) {
        cr_assert_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME, "%s", error.text);
        expect_next(&frame, raw);
    }
    fclose(raw);
    frame_free(&frame);
    video_input_close(&input);
}

/* --- A Matroska file put together byte by byte: what ffmpeg does not write ---------------------------------------- */

struct bytes {
    uint8_t data[4096];
    size_t count;
};

static void put(struct bytes *b, const void *data, size_t count)
{
    cr_assert(b->count + count <= sizeof b->data);
    memcpy(b->data + b->count, data, count);
    b->count += count;
}

/* The lowest `count` bytes, the highest first. */
static void put_number(struct bytes *b, uint64_t value, size_t count)
{
    while (count--) {
        uint8_t byte = (uint8_t)(value >> 8 * count);
        put(b, &byte, 1);
    }
}

static void put_element(struct bytes *b, uint32_t id, const void *data, size_t count)
{
    put_number(b, id, id > 0xffffff ? 4 : id > 0xffff ? 3 : id > 0xff ? 2 : 1);
    put_number(b, UINT64_C(1) << 56 | count, 8);
    put(b, data, count);
}

static void put_master(struct bytes *b, uint32_t id, const struct bytes *content)
{
    put_element(b, id, content->data, content->count);
}

static void put_unsigned(struct bytes *b, uint32_t id, uint64_t value)
{
    struct bytes n = {.count = 0};
    put_number(&n, value, 8);
    put_master(b, id, &n);
}

static void put_float(struct bytes *b, uint32_t id, double value)
{
    struct bytes n = {.count = 0};
    uint64_t bits;
    memcpy(&bits, &value, 8);
    put_number(&n, bits, 8);
    put_master(b, id, &n);
}

static void put_word(struct bytes *b, uint32_t id, const char *word)
{
    put_element(b, id, word, strlen(word));
}

enum { SMALL_BYTES = 16 * 8 * 3 / 2 };

/* One frame of 16 x 8, 8 bits, BT.2020 and PQ; the light in cd/m2; a profile of Dolby Vision, 0 = none. */
static void write_matroska(const char *name, double peak, uint64_t max_cll, uint32_t dolby_profile)
{
    struct bytes file = {.count = 0}, head = {.count = 0}, light = {.count = 0}, colour = {.count = 0};
    struct bytes video = {.count = 0}, track = {.count = 0}, tracks = {.count = 0}, info = {.count = 0};
    struct bytes block = {.count = 0}, cluster = {.count = 0}, segment = {.count = 0};
    put_word(&head, 0x4282, "matroska");
    put_master(&file, 0x1a45dfa3, &head);
    static const double chromaticities[] = {.708, .292, .17, .797, .131, .046, .3127, .329};
    for (uint32_t i = 0; i < 8; i++)
        put_float(&light, 0x55d1 + i, chromaticities[i]);
    put_float(&light, 0x55d9, peak);
    put_float(&light, 0x55da, 0.005);
    put_unsigned(&colour, 0x55b1, 9);  /* BT.2020, not of constant luminance */
    put_unsigned(&colour, 0x55b9, 1);  /* limited */
    put_unsigned(&colour, 0x55ba, 16); /* PQ */
    put_unsigned(&colour, 0x55bb, 9);
    put_unsigned(&colour, 0x55bc, max_cll);
    put_unsigned(&colour, 0x55bd, 1);
    put_master(&colour, 0x55d0, &light);
    put_unsigned(&video, 0xb0, 16);
    put_unsigned(&video, 0xba, 8);
    put_word(&video, 0x2eb524, "I420");
    put_master(&video, 0x55b0, &colour);
    put_unsigned(&track, 0xd7, 1);
    put_unsigned(&track, 0x73c5, 1);
    put_unsigned(&track, 0x83, 1);
    put_word(&track, 0x86, "V_UNCOMPRESSED");
    put_unsigned(&track, 0x23e383, 40000000);
    put_master(&track, 0xe0, &video);
    if (dolby_profile) {
        uint8_t record[24] = {1, 0, (uint8_t)(dolby_profile << 1), 6 << 3 | 5, dolby_profile == 5 ? 0 : 1 << 4};
        struct bytes mapping = {.count = 0};
        put_unsigned(&mapping, 0x41e7, 0x64766343); /* dvcC */
        put_element(&mapping, 0x41ed, record, sizeof record);
        put_master(&track, 0x41e4, &mapping);
    }
    put_master(&tracks, 0xae, &track);
    put_unsigned(&info, 0x2ad7b1, 1000000);
    put_number(&block, 0x81000080, 4);
    for (uint32_t i = 0; i < SMALL_BYTES; i++)
        put_number(&block, i, 1);
    put_unsigned(&cluster, 0xe7, 0);
    put_master(&cluster, 0xa3, &block);
    put_master(&segment, 0x1549a966, &info);
    put_master(&segment, 0x1654ae6b, &tracks);
    put_master(&segment, 0x1f43b675, &cluster);
    put_master(&file, 0x18538067, &segment);
    FILE *out = fopen(in_scratch(name), "wb");
    cr_assert(out && fwrite(file.data, 1, file.count, out) == file.count);
    fclose(out);
}

Test(containers, give_the_light_that_the_container_alone_knows)
{
    static const struct {
        double peak;
        uint64_t max_cll;
        double expected_peak, expected_max_cll;
    } cases[] = {{1000, 640, 1000, 640}, {4000, 10000, 4000, 10000}, {1e9, 65535, 1e9, 65535}, {-5, 0, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_matroska("a.mkv", cases[i].peak, cases[i].max_cll, 0);
        struct video_input *input = open_file("a.mkv");
        const struct video_format *format = video_input_format(input);
        cr_expect(format->has_transfer && format->transfer == COX_TRANSFER_PQ && format->has_range);
        cr_expect(format->has_primaries && format->primaries == COX_PRIMARIES_BT2020);
        cr_expect_eq(format->mastering_peak_nits, cases[i].expected_peak, "%g", format->mastering_peak_nits);
        cr_expect_eq(format->max_cll_nits, cases[i].expected_max_cll, "%g", format->max_cll_nits);
        struct frame frame = frame_make(format);
        struct picture_error error = {""};
        cr_assert_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME, "%s", error.text);
        for (uint32_t x = 0; x < 16; x++)
            cr_expect_eq(((const uint8_t *)frame.memory[0])[7 * frame.pitch[0] + x], 7 * 16 + x);
        cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_END);
        frame_free(&frame);
        video_input_close(&input);
    }
}

Test(containers, of_dolby_vision_are_read_where_they_hold_an_ordinary_picture)
{
    write_matroska("a.mkv", 1000, 640, 5);
    expect_refused("a.mkv", "Dolby Vision of profile 5");
    write_matroska("a.mkv", 1000, 640, 8);
    struct video_input *input = open_file("a.mkv");
    video_input_close(&input);
}

Test(containers, are_refused_where_the_picture_would_be_wrong)
{
    NEED_FFMPEG();
    cr_assert(encode("-pix_fmt gbrap10le -c:v ffv1 rgba.mkv"));
    expect_refused("rgba.mkv", "samples of the format gbrap10le are not supported");
    cr_assert(encode("-pix_fmt gray -c:v ffv1 grey.mkv"));
    expect_refused("grey.mkv", "samples of the format gray are not supported");
    cr_assert(encode("-pix_fmt yuva420p -c:v ffv1 alpha.mkv"));
    expect_refused("alpha.mkv", "samples of the format yuva420p are not supported");
    cr_assert(encode("-vf setparams=colorspace=ictcp -c:v ffv1 ictcp.mkv"));
    expect_refused("ictcp.mkv", "its colours are coded as ictcp");
    cr_assert(encode("-vf setparams=colorspace=bt2020c -c:v ffv1 bt2020c.mkv"));
    expect_refused("bt2020c.mkv", "its colours are coded as bt2020c");
    cr_assert(encode("-pix_fmt yuv420p -c:v mpeg4 -flags +ildct+ilme -top 1 interlaced.mkv"));
    expect_refused("interlaced.mkv", "interlaced video");
}

Test(containers, without_video_are_refused)
{
    NEED_FFMPEG();
    cr_assert(shell("ffmpeg -nostdin -v error -y -f lavfi -i sine=d=1 -c:a pcm_s16le sound.mkv"));
    expect_refused("sound.mkv", "it holds no video");
}

Test(containers, that_name_other_files_are_none)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    cr_assert(encode("-pix_fmt yuv420p -c:v mpeg2video a.ts"));
    cr_assert(shell("printf 'ffconcat version 1.0\\nfile a.mkv\\n' >list.ffconcat && "
                    "printf '#EXTM3U\\n#EXT-X-TARGETDURATION:1\\n#EXTINF:1,\\na.ts\\n#EXT-X-ENDLIST\\n' >list.m3u8"));
    cr_expect_eq(video_kind_of(in_scratch("list.ffconcat")), VIDEO_KIND_NONE);
    cr_expect_eq(video_kind_of(in_scratch("list.m3u8")), VIDEO_KIND_NONE);
    expect_refused("list.ffconcat", "neither y4m nor a container");
    expect_refused("list.m3u8", "neither y4m nor a container");
}

Test(containers, that_come_through_a_pipe_are_refused_with_what_to_do)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    struct video_input *input;
    struct picture_error error = {""};
    int ends[2];
    uint8_t head[1000];
    int fd = open(in_scratch("a.mkv"), O_RDONLY);
    cr_assert_eq(read(fd, head, sizeof head), (ssize_t)sizeof head);
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], head, sizeof head), (ssize_t)sizeof head);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    cr_expect_eq(video_kind_of("-"), VIDEO_KIND_CONTAINER);
    cr_expect_not(video_input_open(&input, "-", NULL, &error));
    cr_expect(strstr(error.text, "from a file only") && strstr(error.text, "yuv4mpegpipe"), "%s", error.text);
    close(fd);
}

Test(containers, cut_off_give_the_frames_that_are_there_and_then_an_error)
{
    NEED_FFMPEG();
    /* A container that says how long it is, and one that lists its frames at the front. */
    cr_assert(encode("-c:v ffv1 -g 1 a.mkv"));
    cr_assert(encode("-c:v mpeg4 -q:v 2 -pix_fmt yuv420p -g 1 -movflags +faststart b.mp4"));
    /* One whose decoder would not see that the last packet is not whole. */
    bool more = encode("-c:v libx265 -x265-params log-level=none:keyint=1 -movflags +faststart c.mp4");
    static const char *const names[] = {"a.mkv", "b.mp4", "c.mp4"};
    for (int n = 0; n < 2 + more; n++) {
        struct stat about;
        cr_assert_eq(stat(in_scratch(names[n]), &about), 0);
        for (int percent = 5; percent < 100; percent += 5) {
            struct video_input *input;
            struct picture_error error = {""};
            bool failed = true;
            cr_assert(shell("head -c %ld %s >cut", (long)about.st_size * percent / 100, names[n]));
            if (!video_input_open(&input, in_scratch("cut"), NULL, &error)) {
                cr_expect_lt(percent, 60, "%s, %d %%: %s", names[n], percent, error.text); /* the first frame's end */
                cr_expect(*error.text);
                continue;
            }
            int frames = count_frames(input, &failed, &error);
            cr_expect(failed, "%s, %d %%: %d frames and no error", names[n], percent, frames);
            cr_expect(frames >= percent / 40 && frames <= 1 + percent / 30, "%s, %d %%: %d", names[n], percent, frames);
            cr_expect(strstr(error.text, "(the first is 0)"), "%s", error.text);
            video_input_close(&input);
        }
    }
}

/* The clip's frames three times over, with the times that `filter` gives them: reads `frames` of them after passing
 * over `skipped`. */
static bool varies(const char *filter, const char *file, int skipped, int frames)
{
    cr_assert(shell("ffmpeg -nostdin -v error -y -i '%s' -vf \"scale=64:48,loop=2:%d:0,settb=1/24,%s\" "
                    "-fps_mode passthrough -c:v mpeg4 %s",
                    clip, CLIP_FRAMES, filter, file));
    cr_assert(shell("test $(ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 %s) = %d",
                    file, 3 * CLIP_FRAMES));
    struct video_input *input = open_file(file);
    struct frame frame = frame_make(video_input_format(input));
    struct picture_error error = {""};
    cr_expect_eq(video_input_skip(input, (uint64_t)skipped, &error), VIDEO_READ_FRAME);
    for (int f = 0; f < frames; f++)
        cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME, "%s of %s: frame %d: %s", filter, file, f,
                     error.text);
    const bool result = video_input_rate_varies(input);
    frame_free(&frame);
    video_input_close(&input);
    return result;
}

Test(containers, say_whether_their_rate_varies)
{
    NEED_FFMPEG();
    skip_unless(encode("-frames:v 1 -fps_mode passthrough -c:v mpeg4 x.mkv"), "ffmpeg has no -fps_mode");
    static const char constant[] = "setpts=N", dropped[] = "setpts=N+gte(N\\,5)";
    cr_expect_not(varies(constant, "a.mkv", 0, 9)); /* Matroska's ticks are 1 ms, 41.667 ms are 41 or 42 of them */
    cr_expect_not(varies(constant, "a.mp4", 0, 9));
    cr_expect(varies(dropped, "b.mkv", 0, 9));
    cr_expect(varies(dropped, "b.mp4", 0, 8));     /* FFmpeg 7 ends this file's edit list before the last frame */
    cr_expect_not(varies(dropped, "b.mkv", 0, 5)); /* up to there it does not */
    cr_expect_not(varies(dropped, "b.mkv", 5, 4)); /* nor after it */
    cr_expect(varies("setpts=N+max(N-4\\,0)", "c.mkv", 0, 9));
}

Test(containers, name_their_decoder_and_its_processor_time)
{
    NEED_FFMPEG();
    NEED_X265();
    /* More frames than the decoder's threads can have done by the time that the file is open. */
    enum { TIMES = 20 };
    cr_assert(shell("ffmpeg -nostdin -v error -y -i '%s' -vf loop=%d:%d:0 -c:v libx265 a.mkv", clip, TIMES - 1,
                    CLIP_FRAMES));
    struct video_input *input = open_file("a.mkv");
    struct frame frame = frame_make(video_input_format(input));
    struct picture_error error = {""};
    struct video_maker maker;
    int frames = 0;
    video_input_maker(input, &maker);
    cr_expect_eq(maker.kind, VIDEO_MAKER_DECODER);
    cr_expect_str_eq(maker.name, "hevc");
    cr_expect_eq(maker.cpu_ns, 0u);
    while (read_frame(input, &frame, &error) == VIDEO_READ_FRAME)
        frames++;
    cr_expect(!*error.text && frames == TIMES * CLIP_FRAMES, "%d frames, %s", frames, error.text);
    video_input_maker(input, &maker);
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1) /* else the decoder has no threads of its own */
        cr_expect_gt(maker.cpu_ns, 0u);
    frame_free(&frame);
    video_input_close(&input);
}

/* Read two clips, encoded so, put end to end: how many frames come before the error. */
static int read_joined(const char *first, const char *second, struct picture_error *error)
{
    cr_assert(encode(first));
    cr_assert(encode(second));
    cr_assert(shell("cat a.ts b.ts >c.ts"));
    struct video_input *input = open_file("c.ts");
    bool failed;
    const int frames = count_frames(input, &failed, error);
    /* The decoder drops the frame that it holds back at the change. */
    cr_expect(failed && frames >= CLIP_FRAMES - 1 && frames <= CLIP_FRAMES, "%d frames", frames);
    video_input_close(&input);
    return frames;
}

Test(containers, whose_size_changes_give_an_error_there)
{
    NEED_FFMPEG();
    struct picture_error error = {""};
    const int frames = read_joined("-pix_fmt yuv420p -vf scale=64:48 -c:v mpeg2video a.ts",
                                   "-pix_fmt yuv420p -vf scale=128:96 -c:v mpeg2video b.ts", &error);
    char words[128];
    int length = snprintf(words, sizeof words, "frame %d (the first is 0), at or after byte ", frames);
    cr_expect(!strncmp(error.text, words, (size_t)length), "%s", error.text);
    cr_expect(strstr(error.text, ": the picture's size changes from 64 x 48 to 128 x 96"), "%s", error.text);
}

Test(containers, whose_samples_change_give_an_error_there)
{
    NEED_FFMPEG();
    NEED_X265();
    struct picture_error error = {""};
    read_joined("-pix_fmt yuv420p -vf scale=64:48 -c:v libx265 a.ts",
                "-pix_fmt yuv420p10le -vf scale=64:48 -c:v libx265 b.ts", &error);
    cr_expect(strstr(error.text, ": the picture's samples change from yuv420p to yuv420p10le"), "%s", error.text);
}

Test(containers, that_are_damaged_do_no_more_than_fail)
{
    NEED_FFMPEG();
    cr_assert(encode("-vf scale=64:48 -pix_fmt yuv420p10le -c:v ffv1 a.mkv"));
    cr_assert(encode("-vf scale=64:48 -pix_fmt yuv420p -c:v mpeg4 b.mp4"));
    static const char *const names[] = {"a.mkv", "b.mp4"};
    static uint8_t bytes[1 << 20];
    uint32_t random = 1;
    for (int n = 0; n < 2; n++) {
        FILE *file = fopen(in_scratch(names[n]), "rb");
        size_t count = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (int round = 0; round < 100; round++) {
            struct video_input *input;
            struct picture_error error = {""};
            size_t spot[3];
            uint8_t was[3];
            for (int i = 0; i < 3; i++) {
                random = random * 1664525 + 1013904223;
                spot[i] = (random >> 8) % (round % 2 ? count : 600);
                was[i] = bytes[spot[i]];
                bytes[spot[i]] ^= (uint8_t)(1 + (random >> 25));
            }
            file = fopen(in_scratch("damaged"), "wb");
            fwrite(bytes, 1, count, file);
            fclose(file);
            if (video_input_open(&input, in_scratch("damaged"), NULL, &error)) {
                bool failed;
                cr_expect_leq(count_frames(input, &failed, &error), 100);
                cr_expect(!failed || *error.text);
            } else {
                cr_expect(*error.text);
            }
            video_input_close(&input);
            for (int i = 2; i >= 0; i--)
                bytes[spot[i]] = was[i];
        }
    }
}

Test(containers, can_be_cancelled)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    struct video_input *input = open_file("a.mkv");
    struct frame frame = frame_make(video_input_format(input));
    struct picture_error error = {""};
    cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_FRAME);
    video_input_cancel(input);
    cr_expect_eq(read_frame(input, &frame, &error), VIDEO_READ_CANCELLED);
    cr_expect_eq(video_input_skip(input, 1, &error), VIDEO_READ_CANCELLED);
    frame_free(&frame);
    video_input_close(&input);
}

#else

Test(containers, are_named_where_they_cannot_be_read)
{
    static const uint8_t matroska[32] = {0x1a, 0x45, 0xdf, 0xa3};
    char path[] = "/tmp/coxswain-test-XXXXXX";
    struct video_input *input;
    struct picture_error error = {""};
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, matroska, sizeof matroska), (ssize_t)sizeof matroska);
    cr_expect_eq(video_kind_of(path), VIDEO_KIND_NONE);
    cr_expect_not(video_input_open(&input, path, NULL, &error));
    cr_expect(strstr(error.text, "a Matroska file, and this program was built without libavformat"), "%s", error.text);
    close(fd);
    unlink(path);
}

#endif
