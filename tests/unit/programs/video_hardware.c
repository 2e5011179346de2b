/* Decoding by a scripted device. Its functions replace some of libavcodec and libavutil. A decoder in software makes
 * its frames, which count as the device's until they are transferred. It refuses or fails where a test wants.
 *
 * What must hold: the frames are those of software, none is lost or repeated, and one line says what happened.
 *
 * The films are made with ffmpeg. If it or an encoder is missing, tests are skipped.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/hardware.h"
#include "media/video.h"
#include "support/folder.h"
#include "unit/programs/streams.h"

#include <coxswain/coxswain.h>
#include <stdatomic.h>

#if COX_HAVE_LIBAV

#include "media/libav_hardware.h"

enum { FRAMES = 60, WIDTH = 96, HEIGHT = 64, SAMPLES = WIDTH * HEIGHT * 3 / 2, NEVER = 1000000 };

/* --- The scripted device ------------------------------------------------------------------------------------------ */

static struct libav_calls real;
static struct {
    int fail_open;                               /* the code with which opening fails; 0 = it opens */
    unsigned refuse, fail_decode, fail_transfer; /* at the device's frame of this number */
    enum AVPixelFormat samples;
    bool overlaps; /* a transfer waits until the decoder is two frames ahead */

    const AVCodecContext *decoder; /* the device's; NULL = none is open */
    enum AVPixelFormat (*get_format)(AVCodecContext *, const enum AVPixelFormat *);
    AVHWFramesContext frames;
    unsigned opened, transferred;
    atomic_uint decoded, sent;
    atomic_bool drained;
    const void *last_memory; /* that a frame was transferred to */
} device;

static const AVCodecHWConfig config = {.pix_fmt = AV_PIX_FMT_CUDA,
                                       .methods = AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX,
                                       .device_type = AV_HWDEVICE_TYPE_CUDA};

static const AVCodecHWConfig *get_config(const AVCodec *codec, int i)
{
    (void)codec;
    return i ? NULL : &config;
}

static void release_nothing(void *user, uint8_t *data)
{
    (void)user, (void)data;
}

static int open_device(AVBufferRef **out, enum AVHWDeviceType type, const char *name, AVDictionary *options, int flags)
{
    static uint8_t byte;
    (void)name, (void)options, (void)flags;
    cr_expect_eq(type, AV_HWDEVICE_TYPE_CUDA);
    device.opened++;
    if (device.fail_open)
        return device.fail_open;
    *out = real.av_buffer_create(&byte, 1, release_nothing, NULL, 0);
    return 0;
}

/* libavcodec asks for the format; the program wants the device's. The decoder in software continues without it. */
static enum AVPixelFormat choose_software(AVCodecContext *decoder, const enum AVPixelFormat *formats)
{
    while (real.av_pix_fmt_desc_get(*formats)->flags & AV_PIX_FMT_FLAG_HWACCEL)
        formats++;
    const enum AVPixelFormat both[] = {*formats, AV_PIX_FMT_CUDA, AV_PIX_FMT_NONE};
    const enum AVPixelFormat one[] = {AV_PIX_FMT_VULKAN, *formats, AV_PIX_FMT_NONE};
    cr_expect_eq(device.get_format(decoder, both), AV_PIX_FMT_CUDA);
    cr_expect_eq(device.get_format(decoder, one), *formats);
    return *formats;
}

static int open_decoder(AVCodecContext *decoder, const AVCodec *codec, AVDictionary **options)
{
    if (decoder->hw_device_ctx) {
        real.av_buffer_unref(&decoder->hw_device_ctx);
        device.decoder = decoder;
        device.get_format = decoder->get_format;
        decoder->get_format = choose_software;
    }
    return real.avcodec_open2(decoder, codec, options);
}

static void free_decoder(AVCodecContext **decoder)
{
    if (*decoder == device.decoder)
        device.decoder = NULL;
    real.avcodec_free_context(decoder);
}

static int send_packet(AVCodecContext *decoder, const AVPacket *packet)
{
    if (decoder == device.decoder && !packet)
        atomic_store(&device.drained, true);
    return real.avcodec_send_packet(decoder, packet);
}

static int receive_frame(AVCodecContext *decoder, AVFrame *frame)
{
    if (decoder == device.decoder && atomic_load(&device.decoded) >= device.fail_decode)
        return AVERROR_EXTERNAL;
    const int code = real.avcodec_receive_frame(decoder, frame);
    if (code || decoder != device.decoder)
        return code;

    if (atomic_fetch_add(&device.decoded, 1) >= device.refuse)
        return 0;
    decoder->sw_pix_fmt = frame->format;
    device.frames.sw_format = device.samples;
    frame->format = AV_PIX_FMT_CUDA;
    frame->hw_frames_ctx = real.av_buffer_create((void *)&device.frames, sizeof device.frames, release_nothing, NULL,
                                                 0);
    return 0;
}

/* Planes of samples of `bits` bits, in the upper bits of 16; Cb and Cr interleaved. */
static void interleave(uint8_t *const to[], const int to_pitch[], const uint8_t *const from[], const int from_pitch[],
                       int bits)
{
    for (int p = 0; p < 3; p++)
        for (int y = 0; y < (p ? HEIGHT / 2 : HEIGHT); y++)
            for (int x = 0; x < (p ? WIDTH / 2 : WIDTH); x++) {
                uint16_t sample;
                const int plane = p ? 1 : 0, place = p ? 2 * x + p - 1 : x;
                memcpy(&sample, from[p] + (ptrdiff_t)y * from_pitch[p] + 2 * x, 2);
                sample = (uint16_t)(sample << (16 - bits));
                memcpy(to[plane] + (ptrdiff_t)y * to_pitch[plane] + 2 * place, &sample, 2);
            }
}

static int transfer(AVFrame *to, const AVFrame *from, int flags)
{
    (void)flags;
    const unsigned n = device.transferred++;
    while (device.overlaps && n && atomic_load(&device.decoded) < n + 2 && !atomic_load(&device.drained))
        usleep(100);
    if (n == device.fail_transfer)
        return AVERROR(EIO);

    cr_expect(from->format == AV_PIX_FMT_CUDA && to->format == (int)device.samples);
    interleave(to->data, to->linesize, (const uint8_t *const *)from->data, from->linesize,
               device.samples == AV_PIX_FMT_P010LE ? 10 : 12);
    device.last_memory = to->data[0];
    return 0;
}

static void script(void)
{
    cr_assert(libav_load());
    real = lib;
    lib.avcodec_get_hw_config = get_config;
    lib.av_hwdevice_ctx_create = open_device;
    lib.avcodec_open2 = open_decoder;
    lib.avcodec_free_context = free_decoder;
    lib.avcodec_send_packet = send_packet;
    lib.avcodec_receive_frame = receive_frame;
    lib.av_hwframe_transfer_data = transfer;
}

/* A device without faults. */
static void reset(void)
{
    memset(&device, 0, sizeof device);
    device.refuse = device.fail_decode = device.fail_transfer = NEVER;
    device.samples = AV_PIX_FMT_P010LE;
}

static void begin(void)
{
    make_folder();
    reset();
}

static void end(void)
{
    stream_close();
    remove_folder();
}

TestSuite(hardware, .init = begin, .fini = end, .timeout = 600);

/* --- Films -------------------------------------------------------------------------------------------------------- */

#define SOURCE "-f lavfi -i testsrc2=size=96x64:rate=24:duration=3 -frames:v 60 "
#define PQ "-color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc "
#define X265 "-pix_fmt yuv420p10le -c:v libx265 -preset ultrafast -x265-params log-level=none:keyint=12:bframes=3"

static void make_film(const char *options, const char *name)
{
    skip_unless(shell(FFMPEG SOURCE PQ "%s %s", options, name), "ffmpeg cannot make %s", name);
}

/* What software decodes, laid out as the device does. */
static struct {
    unsigned count;
    int64_t times[FRAMES];
    uint16_t samples[FRAMES][SAMPLES];
} expected;

static void decode_in_software(const char *name, int bits)
{
    stream_open_path(in_folder(name), NULL, 0);
    for (expected.count = 0; stream_read() == VIDEO_READ_FRAME; expected.count++) {
        const uint8_t *packed = frame_pack(&stream.frame)->data;
        const uint8_t *const from[] = {packed, packed + 2 * WIDTH * HEIGHT, packed + 5 * WIDTH * HEIGHT / 2};
        uint16_t *to = expected.samples[expected.count];
        uint8_t *const planes[] = {(void *)to, (void *)(to + WIDTH * HEIGHT)};
        interleave(planes, (const int[]){2 * WIDTH, 2 * WIDTH}, from, (const int[]){2 * WIDTH, WIDTH, WIDTH}, bits);
        expected.times[expected.count] = video_input_frame(stream.input)->time;
        cr_assert_lt(expected.count, FRAMES);
    }
    cr_assert_str_empty(said.text, "%s", said.text);
}

static struct {
    char line[VIDEO_NOTICE_BYTES];
    unsigned lines;
} told;

static void tell(void *user, const char *what)
{
    cr_expect_eq(user, &told);
    snprintf(told.line, sizeof told.line, "%s", what);
    told.lines++;
}

static const struct video_raw by_device = {.hwdec = "cuda", .tell = tell, .tell_user = &told, .goes_on = true};

static void open_by_device(const char *name)
{
    memset(&told, 0, sizeof told);
    stream_open_path(in_folder(name), &by_device, 20);
}

static void expect_told(const char *words)
{
    cr_expect_eq(told.lines, 1, "%u lines, \"%s\"", told.lines, told.line);
    cr_expect(strstr(told.line, words), "\"%s\" lacks \"%s\"", told.line, words);
}

static void expect_same(unsigned n)
{
    cr_assert_lt(n, expected.count);
    cr_assert_eq(video_input_frame(stream.input)->time, expected.times[n], "frame %u", n);
    const struct bytes *got = frame_pack(&stream.frame);
    cr_assert_eq(got->count, sizeof expected.samples[n]);
    cr_assert_eq(memcmp(got->data, expected.samples[n], got->count), 0, "frame %u differs", n);
}

/* Every frame from `first` on comes, and then the end. Nothing is wrong with the film. */
static void expect_rest(unsigned first)
{
    char notice[VIDEO_NOTICE_BYTES];
    for (unsigned n = first; n < expected.count; n++) {
        cr_assert_eq(stream_read(), VIDEO_READ_FRAME, "frame %u: %s", n, said.text);
        expect_same(n);
    }
    cr_assert_eq(stream_read(), VIDEO_READ_END, "%s", said.text);
    cr_expect_not(video_input_damaged(stream.input));
    cr_expect_not(video_input_notice(stream.input, 0, notice, sizeof notice), "%s", notice);
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

Test(hardware, frames_are_those_of_software_and_transfers_overlap_decoding)
{
    make_film(X265 ":max-cll=900,100", "film.mkv");
    script();
    decode_in_software("film.mkv", 10);
    const struct video_format software = *video_input_format(stream.input);
    device.overlaps = true;
    open_by_device("film.mkv");

    const struct video_format *format = video_input_format(stream.input);
    cr_expect_eq(format->pixel.layout, COX_VIDEO_SEMI_PLANAR);
    cr_expect(format->pixel.depth == 10 && format->pixel.msb_aligned);
    cr_expect(video_colours_equal(&format->colours, &software.colours));
    cr_expect_eq(format->colours.max_cll_nits, 900);
    cr_expect(strstr(format->text, "hevc (cuda)"), "%s", format->text);
    expect_rest(0);
    cr_expect_eq(told.lines, 0, "%s", told.line);
    cr_expect_eq(device.transferred, expected.count);
}

Test(hardware, twelve_bits_in_sixteen_keep_their_depth)
{
    make_film("-pix_fmt yuv420p12le -c:v ffv1", "film.mkv");
    script();
    decode_in_software("film.mkv", 12);
    device.samples = AV_PIX_FMT_P016LE;
    open_by_device("film.mkv");

    const struct cox_video_format *pixel = &video_input_format(stream.input)->pixel;
    cr_expect(pixel->depth == 12 && pixel->msb_aligned && pixel->layout == COX_VIDEO_SEMI_PLANAR);
    expect_rest(0);

    reset();
    device.samples = AV_PIX_FMT_P016LE;
    device.fail_decode = 20;
    open_by_device("film.mkv");
    expect_rest(0);
    expect_told("from frame 20");
}

Test(hardware, a_device_that_cannot_decode_the_film_is_not_used)
{
    static const struct {
        int open;
        unsigned refuse, decode, transfer;
        const char *told;
    } cases[] = {
        {AVERROR(ENODEV), NEVER, NEVER, NEVER, "decoded in software (cuda: No such device)"},
        {0, 0, NEVER, NEVER, "decoded in software (cuda: it does not decode this profile"},
        {0, NEVER, 0, NEVER, "decoded in software (cuda: it failed"},
        {0, NEVER, NEVER, 0, "decoded in software (cuda: a frame cannot be transferred: Input/output error)"},
    };
    make_film(X265, "film.mkv");
    script();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        reset();
        device.fail_open = cases[i].open;
        device.refuse = cases[i].refuse;
        device.fail_decode = cases[i].decode;
        device.fail_transfer = cases[i].transfer;
        open_by_device("film.mkv");
        expect_told(cases[i].told);
        cr_expect_eq(video_input_format(stream.input)->pixel.layout, COX_VIDEO_PLANAR);
        unsigned frames = 0;
        while (stream_read() == VIDEO_READ_FRAME)
            frames++;
        cr_expect_eq(frames, FRAMES);
        cr_expect_eq(told.lines, 1);
    }
}

static void fail_at(int kind, unsigned frame)
{
    unsigned *const which[] = {&device.refuse, &device.fail_decode, &device.fail_transfer};
    reset();
    *which[kind] = frame;
}

Test(hardware, a_failure_in_mid_film_loses_and_repeats_no_frame)
{
    static const unsigned frames[] = {1, 2, 11, 12, 13, 30, FRAMES - 1};
    static const char *const films[] = {X265, X265 ":open-gop=0", "-pix_fmt yuv420p10le -c:v ffv1"};
    char words[32];
    script();
    for (size_t film = 0; film < 3; film++) {
        make_film(films[film], "film.mkv");
        decode_in_software("film.mkv", 10);
        for (int kind = 0; kind < 3; kind++)
            for (size_t f = 0; f < sizeof frames / sizeof frames[0]; f++) {
                fail_at(kind, frames[f]);
                open_by_device("film.mkv");
                expect_rest(0);
                snprintf(words, sizeof words, "from frame %u ", frames[f]);
                expect_told(words);
            }
    }
}

Test(hardware, a_failure_while_seeking_is_no_different)
{
    make_film(X265, "film.mkv");
    script();
    decode_in_software("film.mkv", 10);
    for (int kind = 0; kind < 3; kind++)
        for (unsigned fail = 1; fail < 16; fail++) {
            fail_at(kind, fail);
            open_by_device("film.mkv");
            cr_assert_eq(stream_skip(31), VIDEO_READ_FRAME, "%s", said.text);
            expect_rest(31);
            expect_told("in software from frame ");
        }
}

Test(hardware, seeking_forgets_what_was_queued)
{
    make_film(X265, "film.mkv");
    script();
    decode_in_software("film.mkv", 10);
    open_by_device("film.mkv");
    for (unsigned n = 0; n < 3; n++) {
        cr_assert_eq(stream_read(), VIDEO_READ_FRAME);
        expect_same(n);
    }
    cr_assert_eq(stream_skip(40), VIDEO_READ_FRAME);
    expect_rest(43);
    cr_expect_eq(told.lines, 0);
}

Test(hardware, without_times_the_film_ends_where_the_device_fails)
{
    make_film(X265, "film.hevc");
    script();
    decode_in_software("film.hevc", 10);
    device.fail_decode = 20;
    open_by_device("film.hevc");
    for (unsigned n = 0; n < 20; n++)
        cr_assert_eq(stream_read(), VIDEO_READ_FRAME, "%s", said.text);
    cr_expect_eq(stream_read(), VIDEO_READ_ERROR);
    expect_said("frame 20", "the error");
    expect_said("--hwdec none", "the error");
}

Test(hardware, frames_are_transferred_to_the_memory_that_is_lent)
{
    cox_runtime *runtime = NULL;
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};
    cox_buffer *planes[COX_VIDEO_PLANES_MAX] = {NULL};
    make_film(X265, "film.mkv");
    if (cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu"}, &runtime) != COX_OK)
        cr_skip_test("skipped, because there is no device cpu");
    script();
    decode_in_software("film.mkv", 10);

    for (unsigned fail = 20; fail <= NEVER; fail += NEVER - 20) {
        reset();
        device.fail_transfer = fail;
        open_by_device("film.mkv");
        cr_assert(video_input_lend(stream.input, runtime, pitch_bytes));
        for (unsigned n = 0; n < expected.count; n++) {
            cr_assert_eq(video_input_borrow(stream.input, planes, &said), VIDEO_READ_FRAME, "%s", said.text);
            for (int p = 0; p < 2; p++)
                for (unsigned row = 0; row < (p ? HEIGHT / 2 : HEIGHT); row++)
                    cr_assert_eq(memcmp((uint8_t *)cox_buffer_data(planes[p]) + row * pitch_bytes[p],
                                        expected.samples[n] + p * WIDTH * HEIGHT + row * WIDTH, 2 * WIDTH),
                                 0, "frame %u, plane %d, row %u", n, p, row);
            if (fail == NEVER && n + 1 == expected.count)
                cr_expect_eq(cox_buffer_data(planes[0]), device.last_memory);
            video_input_return(stream.input, planes);
        }
        cr_expect_eq(video_input_borrow(stream.input, planes, &said), VIDEO_READ_END);
        video_input_reclaim(stream.input);
        stream_close();
    }
    cox_runtime_destroy(&runtime);
}

Test(hardware, unknown_devices_are_refused_with_a_list)
{
    cr_expect(hardware_find("none", &said) && hardware_find("auto", &said));
    cr_expect(hardware_find("vaapi:/dev/dri/renderD129", &said), "%s", said.text);
    cr_expect_not(hardware_find("nonsense", &said));
    expect_said("unknown device 'nonsense'", "the error");
    expect_said("vaapi", "the error");
}

#endif
