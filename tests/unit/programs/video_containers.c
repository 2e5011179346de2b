/* Video in containers:
 *   The frames are the encoded ones.
 *   Colours and light are those that the stream declares.
 *   A file that is truncated, damaged or of another kind only causes an error.
 *
 * The files are made with ffmpeg from the clip in examples/data. If the clip or an encoder is missing, tests are
 * skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/video.h"
#include "support/folder.h"
#include "unit/programs/streams.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#if COX_HAVE_LIBAV

enum { CLIP_FRAMES = 3 };

static void end(void)
{
    stream_close();
    remove_folder();
}

TestSuite(containers, .init = make_folder, .fini = end, .timeout = 600);

/* Run ffmpeg on the clip. */
__attribute__((format(printf, 1, 2))) static bool encode(const char *format, ...)
{
    char options[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(options, sizeof options, format, args);
    va_end(args);
    return shell(FFMPEG "-i '%s' %s", clip_path, options);
}

#define NEED_FFMPEG() skip_unless(shell("ffmpeg -version"), "ffmpeg is not installed")
#define NEED_X265() skip_unless(encode("-frames:v 1 -c:v libx265 x.mkv"), "ffmpeg has no libx265")

static void open_film(const char *name)
{
    cr_assert_eq(video_kind_of(in_folder(name)), VIDEO_KIND_CONTAINER, "%s", name);
    stream_open_path(in_folder(name), NULL, 20);
}

static void expect_refused(const char *name, const char *words)
{
    struct video_input *input;
    said.text[0] = '\0';
    cr_expect_not(video_input_open(&input, in_folder(name), NULL, &said), "%s", name);
    expect_said(words, name);
    cr_expect(input == NULL);
}

/* The next frame is frame `number` of frames.raw. */
static void expect_raw(size_t number)
{
    const struct bytes *raw = load_file(in_folder("frames.raw"));
    cr_assert_eq(stream_read(), VIDEO_READ_FRAME, "%s", said.text);
    const struct bytes *got = frame_pack(&stream.frame);
    cr_assert_leq((number + 1) * got->count, raw->count);
    cr_assert_eq(memcmp(got->data, raw->data + number * got->count, got->count), 0, "frame %zu", number);
}

/* The number of frames before the end or an error. Once an error has come it must stay. */
static int count_frames(bool *failed)
{
    enum video_read result;
    int frames = 0;
    while ((result = stream_read()) == VIDEO_READ_FRAME)
        frames++;
    *failed = result == VIDEO_READ_ERROR;
    cr_expect_eq(stream_read(), result);
    return frames;
}

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
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *samples = cases[i].samples;
        cr_assert(encode("-vf scale=61:35,format=%s -c:v %s %s -vf scale=61:35,format=%s -f rawvideo frames.raw",
                         samples, cases[i].encoder, cases[i].file, samples),
                  "%s", samples);
        open_film(cases[i].file);
        const struct video_format *format = video_input_format(stream.input);
        cr_expect(format->width == 61 && format->height == 35);
        cr_expect_eq(format->pixel.depth, cases[i].depth, "%s", samples);
        cr_expect_eq(format->pixel.layout, cases[i].layout, "%s", samples);
        cr_expect(cases[i].layout < COX_VIDEO_RGBA || format->pixel.range == COX_RANGE_FULL, "%s", samples);
        cr_expect_not(format->pixel.msb_aligned); /* no file holds P010; some decoders return it */
        cr_expect_eq(format->pixel.chroma_x_log2, cases[i].x_log2, "%s", samples);
        cr_expect_eq(format->pixel.chroma_y_log2, cases[i].y_log2, "%s", samples);
        cr_expect(format->rate.num == 24 * format->rate.den && format->interlacing == 'p');
        /* If the container does not count its frames, the duration gives an estimate, which may lack the last
         * frame. */
        cr_expect(format->frames == CLIP_FRAMES || format->frames == CLIP_FRAMES - 1, "%s", cases[i].file);
        for (size_t f = 0; f < CLIP_FRAMES; f++)
            expect_raw(f);
        for (int n = 0; n < 2; n++)
            cr_expect_eq(stream_read(), VIDEO_READ_END);
    }
}

Test(containers, skip_frames_and_go_on_behind_them)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv -f rawvideo frames.raw"));
    open_film("a.mkv");
    cr_expect_eq(stream_skip(2), VIDEO_READ_FRAME);
    expect_raw(2);
    cr_expect_eq(stream_skip(1), VIDEO_READ_END);
}

Test(containers, say_transfer_primaries_range_and_site)
{
    static const struct {
        const char *options;
        bool has_transfer, has_primaries, has_range;
        enum cox_transfer transfer;
        enum cox_primaries primaries;
        enum cox_color_range range;
    } cases[] = {
        {"color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc:range=tv", true, true, true, COX_TRANSFER_PQ,
         COX_PRIMARIES_BT2020, COX_RANGE_LIMITED},
        {"color_trc=arib-std-b67:color_primaries=bt2020:colorspace=bt2020nc:range=pc", true, true, true,
         COX_TRANSFER_HLG, COX_PRIMARIES_BT2020, COX_RANGE_FULL},
        {"color_trc=bt709:color_primaries=bt709:colorspace=bt709:range=tv", false, true, true, COX_TRANSFER_PQ,
         COX_PRIMARIES_BT709, COX_RANGE_LIMITED},
    };
    NEED_FFMPEG();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *options = cases[i].options;
        /* The frames declare their colours, and the encoder gets the same options, because FFmpeg 7 would convert
         * the frames otherwise. */
        cr_assert(encode("-vf setparams=%s -color_range %s -c:v ffv1 a.mkv", options,
                         cases[i].range == COX_RANGE_FULL ? "pc" : "tv"),
                  "%s", options);
        open_film("a.mkv");
        const struct video_format *format = video_input_format(stream.input);
        cr_expect_eq(format->colours.has_transfer, cases[i].has_transfer, "%s", options);
        cr_expect(!format->colours.has_transfer || format->colours.transfer == cases[i].transfer, "%s", options);
        cr_expect_eq(format->colours.has_primaries, cases[i].has_primaries, "%s", options);
        cr_expect_eq(format->colours.primaries, cases[i].primaries, "%s", options);
        cr_expect_eq(format->colours.has_range, cases[i].has_range, "%s", options);
        cr_expect_eq(format->pixel.range, cases[i].range, "%s", options);
        cr_expect(format->colours.mastering_peak_nits == 0 && format->colours.max_cll_nits == 0);
        cr_expect(cases[i].has_transfer || !strcmp(format->colours.other_transfer, "bt709"), "%s", options);
        cr_expect_eq(format->colours.is_sdr, !cases[i].has_transfer, "%s", options);
    }
    cr_assert(encode("-vf setparams=colorspace=unknown -c:v ffv1 a.mkv"));
    open_film("a.mkv");
    cr_expect_not(video_input_format(stream.input)->colours.has_transfer);
    cr_expect_not(video_input_format(stream.input)->colours.has_primaries);
    cr_expect_eq(video_input_format(stream.input)->pixel.chroma_location, COX_CHROMA_LEFT);
}

/* The film is in BT.2020 and PQ, and declares this light. */
static void open_bright(const char *name, double peak, double brightest)
{
    open_film(name);
    const struct video_format *format = video_input_format(stream.input);
    cr_expect(format->colours.has_transfer && format->colours.transfer == COX_TRANSFER_PQ, "%s", name);
    cr_expect(format->colours.has_primaries && format->colours.primaries == COX_PRIMARIES_BT2020, "%s", name);
    cr_expect_eq(format->colours.mastering_peak_nits, peak, "%s: %g", name, format->colours.mastering_peak_nits);
    cr_expect_eq(format->colours.max_cll_nits, brightest, "%s: %g", name, format->colours.max_cll_nits);
}

Test(containers, give_the_light_of_the_mastering_display)
{
    static const char *const names[] = {"a.mkv", "c.ts", "d.hevc", "b.mp4"};
    NEED_FFMPEG();
    NEED_X265();
    cr_assert(encode("-c:v libx265 -pix_fmt yuv420p10le -x265-params 'log-level=none:lossless=1:colorprim=bt2020:"
                     "transfer=smpte2084:colormatrix=bt2020nc:chromaloc=2:master-display=G(13250,34500)B(7500,3000)"
                     "R(34000,16000)WP(15635,16450)L(40000000,50):max-cll=1234,300' a.mkv -f rawvideo frames.raw"));
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        cr_assert(!n || shell(FFMPEG "-i a.mkv -c copy %s", names[n]));
        open_bright(names[n], 4000, 1234);
        cr_expect(strstr(video_input_format(stream.input)->text, "hevc"), "%s", names[n]);
        if (n == 3) {
            cr_expect_eq(video_input_format(stream.input)->pixel.chroma_location, COX_CHROMA_TOP_LEFT);
            cr_expect_eq(video_input_format(stream.input)->frames, CLIP_FRAMES);
            for (size_t f = 0; f < CLIP_FRAMES; f++)
                expect_raw(f);
        }
    }
}

/* --- A Matroska file built byte by byte, with contents that ffmpeg does not write --------------------------------- */

/* The lowest `count` bytes, most significant first. */
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

/* An element that contains others. `content` is freed. */
static void put_master(struct bytes *b, uint32_t id, struct bytes *content)
{
    put_element(b, id, content->data, content->count);
    free(content->data);
}

static void put_unsigned(struct bytes *b, uint32_t id, uint64_t value)
{
    struct bytes n = {0};
    put_number(&n, value, 8);
    put_master(b, id, &n);
}

static void put_float(struct bytes *b, uint32_t id, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, 8);
    put_unsigned(b, id, bits);
}

static void put_word(struct bytes *b, uint32_t id, const char *word)
{
    put_element(b, id, word, strlen(word));
}

enum { SMALL_BYTES = 16 * 8 * 3 / 2 };

/* One frame of 16 x 8 with 8 bits, in BT.2020 and PQ. The light is in cd/m2. 0: no profile of Dolby Vision. */
static void write_matroska(const char *name, double peak, uint64_t max_cll, uint32_t dolby_profile)
{
    struct bytes file = {0}, head = {0}, light = {0}, colour = {0}, video = {0}, track = {0}, tracks = {0};
    struct bytes info = {0}, block = {0}, cluster = {0}, segment = {0};
    put_word(&head, 0x4282, "matroska");
    put_master(&file, 0x1a45dfa3, &head);
    static const double chromaticities[] = {.708, .292, .17, .797, .131, .046, .3127, .329};
    for (uint32_t i = 0; i < 8; i++)
        put_float(&light, 0x55d1 + i, chromaticities[i]);
    put_float(&light, 0x55d9, peak);
    put_float(&light, 0x55da, 0.005);
    put_unsigned(&colour, 0x55b1, 9);  /* BT.2020 with non-constant luminance */
    put_unsigned(&colour, 0x55b9, 1);  /* limited range */
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
        struct bytes mapping = {0};
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
    write_file(in_folder(name), file.data, file.count);
    free(file.data);
}

Test(containers, give_the_light_that_the_container_alone_knows)
{
    static const struct {
        double peak;
        uint64_t max_cll;
        double expected_peak, expected_max_cll;
    } cases[] = {{1000, 640, 1000, 640}, {4000, 10000, 4000, 10000}, {1e9, 65535, 1e9, 65535}, {-5, 0, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_matroska("a.mkv", cases[i].peak, cases[i].max_cll, 0);
        open_bright("a.mkv", cases[i].expected_peak, cases[i].expected_max_cll);
        cr_expect(video_input_format(stream.input)->colours.has_range);
        cr_assert_eq(stream_read(), VIDEO_READ_FRAME, "%s", said.text);
        for (uint32_t x = 0; x < 16; x++)
            cr_expect_eq(((const uint8_t *)stream.frame.memory[0])[7 * stream.frame.pitch[0] + x], 7 * 16 + x);
        cr_expect_eq(stream_read(), VIDEO_READ_END);
    }
}

Test(containers, of_dolby_vision_are_read_where_they_hold_an_ordinary_picture)
{
    write_matroska("a.mkv", 1000, 640, 5);
    expect_refused("a.mkv", "Dolby Vision without an HDR10 picture, and its metadata are missing");
    write_matroska("a.mkv", 1000, 640, 8);
    open_film("a.mkv");
}

Test(containers, are_refused_where_the_picture_would_be_wrong_or_there_is_none)
{
    static const struct {
        const char *input; /* NULL: the clip */
        const char *options, *words;
    } cases[] = {
        {NULL, "-pix_fmt gbrap10le -c:v ffv1", "unsupported sample format gbrap10le"},
        {NULL, "-pix_fmt gray -c:v ffv1", "unsupported sample format gray"},
        {NULL, "-pix_fmt yuva420p -c:v ffv1", "unsupported sample format yuva420p"},
        {NULL, "-vf setparams=colorspace=ictcp -c:v ffv1", "unsupported colour matrix ictcp"},
        {NULL, "-vf setparams=colorspace=bt2020c -c:v ffv1", "unsupported colour matrix bt2020c"},
        {NULL, "-pix_fmt yuv420p -c:v mpeg4 -flags +ildct+ilme -top 1", "interlaced video"},
        {"-f lavfi -i sine=d=1", "-c:a pcm_s16le", "it has no video stream"},
    };
    NEED_FFMPEG();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (cases[i].input)
            cr_assert(shell(FFMPEG "%s %s a.mkv", cases[i].input, cases[i].options));
        else
            cr_assert(encode("%s a.mkv", cases[i].options), "%s", cases[i].options);
        expect_refused("a.mkv", cases[i].words);
    }
}

Test(containers, that_name_other_files_are_none)
{
    static const char *const names[] = {"list.ffconcat", "list.m3u8"};
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    cr_assert(encode("-pix_fmt yuv420p -c:v mpeg2video a.ts"));
    cr_assert(shell("printf 'ffconcat version 1.0\\nfile a.mkv\\n' >list.ffconcat && "
                    "printf '#EXTM3U\\n#EXT-X-TARGETDURATION:1\\n#EXTINF:1,\\na.ts\\n#EXT-X-ENDLIST\\n' >list.m3u8"));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        cr_expect_eq(video_kind_of(in_folder(names[i])), VIDEO_KIND_NONE);
        expect_refused(names[i], "not y4m or a known container");
    }
}

Test(containers, that_come_through_a_pipe_are_refused_with_what_to_do)
{
    struct video_input *input;
    int ends[2];
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], load_file(in_folder("a.mkv"))->data, 1000), 1000);
    cr_assert_eq(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    cr_expect_eq(video_kind_of("-"), VIDEO_KIND_CONTAINER);
    cr_expect_not(video_input_open(&input, "-", NULL, &said));
    expect_said("a container must be a file", "pipe");
    expect_said("yuv4mpegpipe", "pipe");
}

Test(containers, cut_off_give_the_frames_that_are_there_and_then_an_error)
{
    NEED_FFMPEG();
    /* One container declares its length, the other lists its frames at the front. */
    cr_assert(encode("-c:v ffv1 -g 1 a.mkv"));
    cr_assert(encode("-c:v mpeg4 -q:v 2 -pix_fmt yuv420p -g 1 -movflags +faststart b.mp4"));
    /* The decoder of this file does not notice that the last packet is incomplete. */
    bool more = encode("-c:v libx265 -x265-params log-level=none:keyint=1 -movflags +faststart c.mp4");
    static const char *const names[] = {"a.mkv", "b.mp4", "c.mp4"};
    for (int n = 0; n < 2 + more; n++) {
        const struct bytes *whole = load_file(in_folder(names[n]));
        for (size_t percent = 5; percent < 100; percent += 5) {
            bool failed = true;
            write_file(in_folder("cut"), whole->data, whole->count * percent / 100);
            if (!stream_try_path(in_folder("cut"), NULL, 20)) {
                cr_expect_lt(percent, 60, "%s, %zu %%: %s", names[n], percent, said.text); /* the first frame ends */
                cr_expect(*said.text);
                continue;
            }
            const size_t frames = (size_t)count_frames(&failed);
            cr_expect(failed, "%s, %zu %%: %zu frames and no error", names[n], percent, frames);
            cr_expect(frames >= percent / 40 && frames <= 1 + percent / 30, "%s, %zu %%: %zu", names[n], percent,
                      frames);
            expect_said("(the first is 0)", names[n]);
        }
    }
}

/* Three copies of the clip's frames, with the times that `filter` sets. Skip `skipped` frames, read `frames`
 * frames, and return whether their times vary. */
static bool varies(const char *filter, const char *file, uint64_t skipped, int frames)
{
    cr_assert(encode("-vf \"scale=64:48,loop=2:%d:0,settb=1/24,%s\" -fps_mode passthrough -c:v mpeg4 %s", CLIP_FRAMES,
                     filter, file));
    cr_assert(shell("test $(ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 %s) = %d",
                    file, 3 * CLIP_FRAMES));
    open_film(file);
    cr_expect_eq(stream_skip(skipped), VIDEO_READ_FRAME);
    for (int f = 0; f < frames; f++)
        cr_expect_eq(stream_read(), VIDEO_READ_FRAME, "%s of %s: frame %d: %s", filter, file, f, said.text);
    const bool result = video_input_rate_varies(stream.input);
    return result;
}

Test(containers, say_whether_their_rate_varies)
{
    static const char constant[] = "setpts=N", dropped[] = "setpts=N+gte(N\\,5)";
    static const struct {
        const char *filter, *file;
        uint64_t skipped;
        int frames;
        bool varies;
    } cases[] = {
        {constant, "a.mkv", 0, 9, false}, /* a tick of Matroska is 1 ms, so 41.667 ms are 41 or 42 ticks */
        {constant, "a.mp4", 0, 9, false},
        {dropped, "b.mkv", 0, 9, true},
        {dropped, "b.mp4", 0, 8, true},  /* FFmpeg 7 ends this file's edit list before the last frame */
        {dropped, "b.mkv", 0, 5, false}, /* up to there the times do not vary */
        {dropped, "b.mkv", 5, 4, false}, /* nor do they after it */
        {"setpts=N+max(N-4\\,0)", "c.mkv", 0, 9, true},
    };
    NEED_FFMPEG();
    skip_unless(encode("-frames:v 1 -fps_mode passthrough -c:v mpeg4 x.mkv"), "ffmpeg has no -fps_mode");
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        cr_expect_eq(varies(cases[i].filter, cases[i].file, cases[i].skipped, cases[i].frames), cases[i].varies,
                     "%s of %s, %d from %d", cases[i].filter, cases[i].file, cases[i].frames, (int)cases[i].skipped);
}

Test(containers, name_their_decoder_and_its_processor_time)
{
    /* More frames than the decoder's threads can have decoded when the file is open. */
    enum { TIMES = 20 };
    struct video_producer producer;
    cpu_set_t cpus;
    bool failed;
    NEED_FFMPEG();
    NEED_X265();
    cr_assert(encode("-vf loop=%d:%d:0 -c:v libx265 a.mkv", TIMES - 1, CLIP_FRAMES));
    open_film("a.mkv");
    video_input_producer(stream.input, &producer);
    cr_expect_eq(producer.kind, VIDEO_PRODUCER_DECODER);
    cr_expect_str_eq(producer.name, "hevc");
    cr_expect_eq(producer.cpu_ns, 0u);
    const int frames = count_frames(&failed);
    cr_expect(!*said.text && frames == TIMES * CLIP_FRAMES, "%d frames, %s", frames, said.text);
    video_input_producer(stream.input, &producer);
    cr_assert_eq(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    if (CPU_COUNT(&cpus) > 1) /* otherwise the decoder has no extra threads */
        cr_expect_gt(producer.cpu_ns, 0u);
}

/* Read two clips with these encodings, joined into one file. Returns the number of frames before the error. */
static int read_joined(const char *first, const char *second)
{
    bool failed;
    cr_assert(encode("%s a.ts", first) && encode("%s b.ts", second) && shell("cat a.ts b.ts >c.ts"));
    open_film("c.ts");
    const int frames = count_frames(&failed);
    /* At the change the decoder drops the frame that it holds back. */
    cr_expect(failed && frames >= CLIP_FRAMES - 1 && frames <= CLIP_FRAMES, "%d frames", frames);
    return frames;
}

Test(containers, whose_size_or_samples_change_give_an_error_there)
{
    char words[128];
    NEED_FFMPEG();
    const int frames = read_joined("-pix_fmt yuv420p -vf scale=64:48 -c:v mpeg2video",
                                   "-pix_fmt yuv420p -vf scale=128:96 -c:v mpeg2video");
    int length = snprintf(words, sizeof words, "frame %d (the first is 0), at or after byte ", frames);
    cr_expect(!strncmp(said.text, words, (size_t)length), "%s", said.text);
    expect_said(": the picture's size changes from 64 x 48 to 128 x 96", "size");
    NEED_X265();
    read_joined("-pix_fmt yuv420p -vf scale=64:48 -c:v libx265", "-pix_fmt yuv420p10le -vf scale=64:48 -c:v libx265");
    expect_said(": the picture's samples change from yuv420p to yuv420p10le", "samples");
}

Test(containers, that_are_damaged_do_no_more_than_fail)
{
    static const char *const names[] = {"a.mkv", "b.mp4"};
    uint32_t random = 1;
    NEED_FFMPEG();
    cr_assert(encode("-vf scale=64:48 -pix_fmt yuv420p10le -c:v ffv1 a.mkv"));
    cr_assert(encode("-vf scale=64:48 -pix_fmt yuv420p -c:v mpeg4 b.mp4"));
    for (int n = 0; n < 2; n++) {
        struct bytes *file = load_file(in_folder(names[n]));
        for (int round = 0; round < 100; round++) {
            size_t spot[3];
            uint8_t was[3];
            bool failed = true;
            for (int i = 0; i < 3; i++) {
                random = random * 1664525 + 1013904223;
                spot[i] = (random >> 8) % (round % 2 ? file->count : 600);
                was[i] = file->data[spot[i]];
                file->data[spot[i]] ^= (uint8_t)(1 + (random >> 25));
            }
            write_file(in_folder("damaged"), file->data, file->count);
            if (stream_try_path(in_folder("damaged"), NULL, 20))
                cr_expect_leq(count_frames(&failed), 100);
            cr_expect(!failed || *said.text);
            for (int i = 2; i >= 0; i--)
                file->data[spot[i]] = was[i];
        }
    }
}

Test(containers, can_be_cancelled)
{
    NEED_FFMPEG();
    cr_assert(encode("-c:v ffv1 a.mkv"));
    open_film("a.mkv");
    cr_expect_eq(stream_read(), VIDEO_READ_FRAME);
    video_input_cancel(stream.input);
    cr_expect_eq(stream_read(), VIDEO_READ_CANCELLED);
    cr_expect_eq(stream_skip(1), VIDEO_READ_CANCELLED);
}

#else

Test(containers, are_named_where_they_cannot_be_read, .init = make_folder, .fini = remove_folder)
{
    static const uint8_t matroska[32] = {0x1a, 0x45, 0xdf, 0xa3};
    struct video_input *input;
    write_file(in_folder("a.mkv"), matroska, sizeof matroska);
    cr_expect_eq(video_kind_of(in_folder("a.mkv")), VIDEO_KIND_NONE);
    cr_expect_not(video_input_open(&input, in_folder("a.mkv"), NULL, &said));
    expect_said("a Matroska file, and this program was built without libavformat", "a.mkv");
}

#endif
