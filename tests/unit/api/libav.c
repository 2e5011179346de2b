/* The functions of coxswain/libav.h, compiled into this program as into any application, with FFmpeg's own
 * decoders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "real.h"
#include <coxswain/libav.h>

enum { WIDTH = 322, HEIGHT = 182, FRAMES = 12 };

/* Objects of a test. open_map opens the map, and what is left at the end is freed then. */
static struct cox_av_map map;
static AVFrame *frame, *mapped;

static void open_map(const struct cox_tonemap_options *look)
{
    open_runtime(NULL);
    cr_assert_eq(cox_av_map_open(&map, runtime, NULL, look), 0);
}

static void teardown(void)
{
    if (runtime)
        cox_av_map_close(&map);
    av_frame_free(&frame);
    av_frame_free(&mapped);
    close_all();
}

static void paint(AVFrame *frame, unsigned which)
{
    for (int p = 0; p < 3; p++)
        for (int row = 0; row < (p ? (HEIGHT + 1) / 2 : HEIGHT); row++) {
            uint8_t *to = frame->data[p] + (ptrdiff_t)row * frame->linesize[p];
            for (int x = 0; x < (p ? (WIDTH + 1) / 2 : WIDTH); x++) {
                const unsigned code = ((unsigned)(x * 5 + row * 3 + p * 97) + which * 61) & 1023;
                to[2 * x] = (uint8_t)code;
                to[2 * x + 1] = (uint8_t)(code >> 8);
            }
        }
}

static AVFrame *make_frame(unsigned which)
{
    AVFrame *frame = av_frame_alloc();
    frame->format = AV_PIX_FMT_YUV420P10LE;
    frame->width = WIDTH;
    frame->height = HEIGHT;
    frame->color_trc = AVCOL_TRC_SMPTE2084;
    frame->color_primaries = AVCOL_PRI_BT2020;
    frame->colorspace = AVCOL_SPC_BT2020_NCL;
    frame->pts = which;
    cr_assert_geq(av_frame_get_buffer(frame, 0), 0);
    paint(frame, which);
    return frame;
}

static void add_light(int nits)
{
    AVMasteringDisplayMetadata *display = av_mastering_display_metadata_create_side_data(frame);
    display->max_luminance = (AVRational){nits, 1};
    display->has_luminance = 1;
}

static void setup(void)
{
    frame = make_frame(0);
    mapped = av_frame_alloc();
}

TestSuite(libav, .init = setup, .fini = teardown, .timeout = 600);

static bool same_samples(const AVFrame *a, const AVFrame *b)
{
    for (int p = 0; p < 3; p++)
        for (int row = 0; row < (p ? (HEIGHT + 1) / 2 : HEIGHT); row++)
            if (memcmp(a->data[p] + (ptrdiff_t)row * a->linesize[p], b->data[p] + (ptrdiff_t)row * b->linesize[p],
                       p ? (WIDTH + 1) / 2 : WIDTH) != 0)
                return false;
    return true;
}

/* Send all frames, and receive the results in order into `to`. */
static void map_all(struct cox_av_map *by, AVFrame *const *frames, AVFrame **to)
{
    int received = 0;
    for (int n = 0; n <= FRAMES; n++) {
        cr_assert_eq(cox_av_send_frame(by, n < FRAMES ? frames[n] : NULL), 0, "%s", logged);
        for (int code = 0; code >= 0;) {
            AVFrame *got = av_frame_alloc();
            code = cox_av_receive_frame(by, got);
            if (code >= 0) {
                cr_assert_lt(received, FRAMES);
                cr_expect_eq(got->pts, received);
                to[received++] = got;
                continue;
            }
            cr_assert_eq(code, n < FRAMES ? AVERROR(EAGAIN) : AVERROR_EOF);
            av_frame_free(&got);
        }
    }
    cr_assert_eq(received, FRAMES);
}

static void free_frames(AVFrame **frames)
{
    for (int n = 0; n < FRAMES; n++)
        av_frame_free(&frames[n]);
}

static struct cox_video_stream_info info_of(const struct cox_av_map *of)
{
    struct cox_video_stream_info info;
    cox_video_stream_info(of->stream, &info);
    return info;
}

/* Take all frames that the decoder has. */
static void take_decoded(AVCodecContext *decoder, AVFrame **decoded, int *got)
{
    AVFrame *next = av_frame_alloc();
    while (avcodec_receive_frame(decoder, next) >= 0) {
        cr_assert_lt(*got, FRAMES);
        decoded[(*got)++] = next;
        next = av_frame_alloc();
    }
    av_frame_free(&next);
}

/* Encode the frames with ffv1, and decode them into the map's memory. */
static void recode(AVFrame *const *frames, AVFrame **decoded)
{
    AVCodecContext *encoder = avcodec_alloc_context3(avcodec_find_encoder(AV_CODEC_ID_FFV1));
    AVCodecContext *decoder = avcodec_alloc_context3(avcodec_find_decoder(AV_CODEC_ID_FFV1));
    AVPacket *packet = av_packet_alloc();
    encoder->width = decoder->width = WIDTH;
    encoder->height = decoder->height = HEIGHT;
    encoder->pix_fmt = AV_PIX_FMT_YUV420P10LE;
    encoder->time_base = (AVRational){1, 25};
    encoder->color_trc = AVCOL_TRC_SMPTE2084;
    cox_av_map_attach(&map, decoder);
    cr_assert_geq(avcodec_open2(encoder, NULL, NULL), 0);
    cr_assert_geq(avcodec_open2(decoder, NULL, NULL), 0);
    int got = 0;
    for (int n = 0; n <= FRAMES; n++) {
        cr_assert_geq(avcodec_send_frame(encoder, n < FRAMES ? frames[n] : NULL), 0);
        while (avcodec_receive_packet(encoder, packet) >= 0) {
            cr_assert_geq(avcodec_send_packet(decoder, packet), 0);
            av_packet_unref(packet);
            take_decoded(decoder, decoded, &got);
        }
    }
    avcodec_send_packet(decoder, NULL);
    take_decoded(decoder, decoded, &got);
    cr_assert_eq(got, FRAMES);
    av_packet_free(&packet);
    avcodec_free_context(&encoder);
    avcodec_free_context(&decoder);
}

Test(libav, frames_of_the_pool_are_not_copied_and_give_what_others_give)
{
    struct cox_av_map other;
    AVFrame *frames[FRAMES], *decoded[FRAMES], *results[FRAMES], *expected[FRAMES];
    for (unsigned n = 0; n < FRAMES; n++)
        frames[n] = make_frame(n);
    open_map(NULL);
    cr_assert_eq(cox_av_map_open(&other, runtime, NULL, NULL), 0);
    recode(frames, decoded);
    for (int n = 0; n < FRAMES; n++) {
        cox_buffer *planes[COX_VIDEO_PLANES_MAX];
        cr_expect(cox_av_pool_find(map.pool, decoded[n], planes));
        cr_expect_not(cox_av_pool_find(map.pool, frames[n], planes));
    }
    map_all(&map, decoded, results);
    map_all(&other, frames, expected);
    cr_expect_eq(info_of(&map).bytes_copied_in + info_of(&map).bytes_copied_out, 0);
    cr_expect_eq(info_of(&other).bytes_copied_out, 0);
    for (int n = 0; n < FRAMES; n++)
        cr_expect(same_samples(results[n], expected[n]), "frame %d", n);
    cox_av_map_close(&map); /* frames may outlive the map */
    cox_av_map_close(&other);
    free_frames(decoded);
    free_frames(results);
    free_frames(expected);
    free_frames(frames);
    map = (struct cox_av_map){0};
}

/* Memory for such frames in an OpenCL device of libavutil. NULL = not available. */
static AVBufferRef *make_device_memory(const AVFrame *from)
{
    AVBufferRef *device = NULL;
    av_log_set_level(AV_LOG_QUIET);
    if (av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_OPENCL, NULL, NULL, 0) < 0)
        return NULL;
    AVBufferRef *frames = av_hwframe_ctx_alloc(device);
    AVHWFramesContext *about = (AVHWFramesContext *)(void *)frames->data;
    about->format = AV_PIX_FMT_OPENCL;
    about->sw_format = from->format;
    about->width = from->width;
    about->height = from->height;
    av_buffer_unref(&device);
    if (av_hwframe_ctx_init(frames) < 0)
        av_buffer_unref(&frames);
    return frames;
}

/* The frame as a decoder would leave it there. */
static AVFrame *put_on_device(AVBufferRef *memory, const AVFrame *from)
{
    AVFrame *to = av_frame_alloc();
    cr_assert_geq(av_hwframe_get_buffer(memory, to, 0), 0);
    cr_assert_geq(av_hwframe_transfer_data(to, from, 0), 0);
    cr_assert_geq(av_frame_copy_props(to, from), 0);
    return to;
}

Test(libav, frames_in_the_memory_of_a_device_are_transferred_once)
{
    struct cox_av_map other;
    AVFrame *frames[FRAMES], *away[FRAMES], *results[FRAMES], *expected[FRAMES];
    frame->format = AV_PIX_FMT_YUV420P16LE; /* libavutil has no 10 bits in OpenCL */
    AVBufferRef *memory = make_device_memory(frame);
    if (!memory)
        cr_skip_test("skipped, because libavutil finds no OpenCL device for such frames");
    for (unsigned n = 0; n < FRAMES; n++) {
        frames[n] = make_frame(n);
        frames[n]->format = frame->format;
        frames[n]->crop_left = 2;
        frames[n]->crop_bottom = 4;
        away[n] = put_on_device(memory, frames[n]);
    }
    open_map(NULL);
    cr_assert_eq(cox_av_map_open(&other, runtime, NULL, NULL), 0);
    map_all(&map, away, results);
    map_all(&other, frames, expected);
    cr_expect_eq(info_of(&map).bytes_copied_in, 0);
    for (int n = 0; n < FRAMES; n++)
        for (int row = 0; row < HEIGHT - 4; row++)
            cr_expect_eq(memcmp(results[n]->data[0] + (ptrdiff_t)row * results[n]->linesize[0],
                                expected[n]->data[0] + (ptrdiff_t)row * expected[n]->linesize[0], WIDTH - 2),
                         0, "frame %d, row %d", n, row);
    cox_av_map_close(&other);
    free_frames(results);
    free_frames(expected);
    free_frames(away);
    free_frames(frames);
    av_buffer_unref(&memory);
}

Test(libav, a_decoder_stays_in_software_if_there_is_no_such_device)
{
    const AVCodec *codec = avcodec_find_decoder(AV_CODEC_ID_FFV1);
    AVCodecContext *decoder = avcodec_alloc_context3(codec);
    open_map(NULL);
    cox_av_map_attach(&map, decoder);
    cr_expect_eq(cox_av_map_attach_device(&map, decoder, codec, "nonsense"), AVERROR(EINVAL));
    cr_expect_eq(cox_av_map_attach_device(&map, decoder, codec, "drm"), AVERROR(ENOSYS));
    cr_expect(!decoder->hw_device_ctx && decoder->get_format != cox_av_map_get_format_);
    avcodec_free_context(&decoder);
}

Test(libav, a_mapped_frame_says_that_it_is_sdr)
{
    add_light(1000);
    frame->sample_aspect_ratio = (AVRational){4, 3};
    frame->pts = 77;
    open_map(NULL);
    map.format = AV_PIX_FMT_NV12;
    map.width = WIDTH / 2;
    map.height = HEIGHT / 2;
    cr_assert_eq(cox_av_send_frame(&map, frame), 0, "%s", logged);
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_assert_eq(cox_av_receive_frame(&map, mapped), 0, "%s", logged);
    cr_expect_eq(mapped->format, AV_PIX_FMT_NV12);
    cr_expect_eq(mapped->width, WIDTH / 2);
    cr_expect_eq(mapped->color_trc, AVCOL_TRC_BT709);
    cr_expect_eq(mapped->color_primaries, AVCOL_PRI_BT709);
    cr_expect_eq(mapped->colorspace, AVCOL_SPC_BT709);
    cr_expect_eq(mapped->color_range, AVCOL_RANGE_MPEG);
    cr_expect_eq(mapped->pts, 77);
    cr_expect_eq(mapped->sample_aspect_ratio.num, 4);
    cr_expect_null(av_frame_get_side_data(mapped, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA));
    cr_expect_not_null(av_frame_get_side_data(frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA));
}

Test(libav, images_have_what_frames_say)
{
    struct cox_video_image image;
    add_light(4000);
    frame->chroma_location = AVCHROMA_LOC_TOPLEFT;
    frame->color_range = AVCOL_RANGE_JPEG;
    frame->crop_left = 4;
    frame->crop_top = 6;
    frame->crop_bottom = 8;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.width, WIDTH - 4);
    cr_expect_eq(image.height, HEIGHT - 14);
    cr_expect_eq(image.data[0], frame->data[0] + 6 * frame->linesize[0] + 8);
    cr_expect_eq(image.data[2], frame->data[2] + 3 * frame->linesize[2] + 4);
    cr_expect_eq(image.format.depth, 10);
    cr_expect_eq(image.format.chroma_location, COX_CHROMA_TOP_LEFT);
    cr_expect_eq(image.format.range, COX_RANGE_FULL);
    cr_expect_eq(image.transfer, COX_TRANSFER_PQ);
    cr_expect_eq(image.peak_nits, 4000.0f);
    frame->color_trc = AVCOL_TRC_ARIB_STD_B67;
    frame->color_primaries = AVCOL_PRI_BT709;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.transfer, COX_TRANSFER_HLG);
    cr_expect_eq(image.primaries, COX_PRIMARIES_BT709);
    cr_expect_eq(image.matrix, COX_MATRIX_BT2020);
    cr_expect(cox_av_is_hdr(frame));
    frame->color_trc = AVCOL_TRC_BT709;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.transfer, COX_TRANSFER_SDR);
    cr_expect_not(cox_av_is_hdr(frame));
    frame->color_primaries = AVCOL_PRI_UNSPECIFIED;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.primaries, COX_PRIMARIES_BT2020, "those of the matrix");
    frame->colorspace = AVCOL_SPC_UNSPECIFIED;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.primaries, COX_PRIMARIES_BT709);
    frame->colorspace = AVCOL_SPC_BT2020_NCL;
    frame->chroma_location = AVCHROMA_LOC_TOP;
    cr_assert_eq(cox_av_image(frame, &image), 0);
    cr_expect_eq(image.format.chroma_location, COX_CHROMA_CENTER);
    frame->colorspace = AVCOL_SPC_BT2020_CL;
    cr_expect_eq(cox_av_image(frame, &image), AVERROR(ENOSYS));
    frame->colorspace = AVCOL_SPC_BT2020_NCL;
    frame->format = AV_PIX_FMT_VAAPI;
    cr_expect_eq(cox_av_image(frame, &image), AVERROR(ENOSYS));
}

Test(libav, colours_that_would_be_mapped_otherwise_than_said_are_refused)
{
    static const struct {
        enum AVColorTransferCharacteristic transfer;
        enum AVColorPrimaries primaries;
        enum AVColorSpace matrix;
        bool known;
    } table[] = {
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_NCL, true},
        {AVCOL_TRC_ARIB_STD_B67, AVCOL_PRI_BT709, AVCOL_SPC_BT709, true},
        {AVCOL_TRC_UNSPECIFIED, AVCOL_PRI_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, true},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT2020, AVCOL_SPC_RGB, true},
        {AVCOL_TRC_BT709, AVCOL_PRI_BT709, AVCOL_SPC_BT709, true},
        {AVCOL_TRC_GAMMA28, AVCOL_PRI_BT470BG, AVCOL_SPC_BT470BG, true},
        {AVCOL_TRC_LOG, AVCOL_PRI_BT709, AVCOL_SPC_BT709, false},
        {AVCOL_TRC_LINEAR, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_NCL, false},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT2020, AVCOL_SPC_BT709, true},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT709, AVCOL_SPC_BT2020_NCL, true},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_SMPTE432, AVCOL_SPC_UNSPECIFIED, true},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_SMPTE170M, AVCOL_SPC_SMPTE170M, true},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_FILM, AVCOL_SPC_BT2020_NCL, false},
        {AVCOL_TRC_SMPTE2084, AVCOL_PRI_BT2020, AVCOL_SPC_BT2020_CL, false},
    };
    open_map(NULL);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        frame->color_trc = table[i].transfer;
        frame->color_primaries = table[i].primaries;
        frame->colorspace = table[i].matrix;
        cr_expect_eq(cox_av_colours_are_known(frame), table[i].known, "case %zu", i);
        if (table[i].matrix != AVCOL_SPC_RGB) /* but the frame's format is not RGB */
            cr_expect_eq(cox_av_send_frame(&map, frame), table[i].known ? 0 : AVERROR(ENOSYS), "case %zu", i);
    }
}

/* An advert in an HDR broadcast: the frames around it are what they are without it. */
Test(libav, sdr_passes_between_hdr_frames)
{
    AVFrame *results[3], *alone = av_frame_alloc(), *sdr = make_frame(1);
    sdr->color_trc = AVCOL_TRC_BT709;
    sdr->color_primaries = AVCOL_PRI_BT709;
    sdr->colorspace = AVCOL_SPC_BT709;
    open_map(NULL);
    map.format = AV_PIX_FMT_YUV420P10LE;
    for (int n = 0; n < 3; n++) {
        results[n] = av_frame_alloc();
        cr_assert_eq(cox_av_send_frame(&map, n == 1 ? sdr : frame), 0, "%s", logged);
        for (int code = AVERROR(EAGAIN); code == AVERROR(EAGAIN);)
            code = cox_av_receive_frame(&map, results[n]);
    }
    for (int y = 0; y < HEIGHT; y++)
        cr_assert_arr_eq(results[1]->data[0] + (ptrdiff_t)y * results[1]->linesize[0],
                         sdr->data[0] + (ptrdiff_t)y * sdr->linesize[0], 2 * WIDTH, "row %d", y);
    cox_av_map_flush(&map);
    cr_assert_eq(cox_av_send_frame(&map, frame), 0);
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_assert_eq(cox_av_receive_frame(&map, alone), 0);
    cr_expect(same_samples(results[0], alone));
    cr_expect(same_samples(results[2], alone));
    for (int n = 0; n < 3; n++)
        av_frame_free(&results[n]);
    av_frame_free(&alone);
    av_frame_free(&sdr);
}

/* Windows, fields and swapped planes of frames in the pool give the same result as the same samples in other
 * memory. */
/* Metadata of Dolby Vision (support/dolby.py): profile 5, whose curves are lines; and profile 7. */
static const uint8_t profile_5[] = {
    0x19, 0x08, 0x09, 0x00, 0x40, 0x61, 0xb6, 0x50, 0x6f, 0x00, 0x3f, 0xf8, 0x01, 0xff, 0xc0, 0x0f, 0xff, 0xd0, 0xcc,
    0xcc, 0xdc, 0xcc, 0xcc, 0xda, 0x19, 0x99, 0x9b, 0xcc, 0xcc, 0xcf, 0x3f, 0x33, 0x33, 0x48, 0x66, 0x66, 0x6f, 0x20,
    0x00, 0x03, 0x1f, 0x06, 0x91, 0x20, 0x00, 0xfc, 0x5b, 0x04, 0x43, 0x20, 0x00, 0x01, 0x0b, 0xea, 0x57, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x08, 0x00, 0x00, 0x03, 0x00, 0x08, 0x00, 0x00, 0x03, 0x00, 0x42, 0xb9, 0xfe, 0xa3, 0xfe, 0xa3,
    0xfe, 0xa3, 0x42, 0xb9, 0xfe, 0xa3, 0xfe, 0xa3, 0xfe, 0xa3, 0x42, 0xb9, 0xff, 0xff, 0x00, 0x00, 0x03, 0x00, 0x00,
    0x03, 0x00, 0x00, 0x03, 0x00, 0x00, 0x60, 0x20, 0x7d, 0xce, 0x01, 0x54, 0x4b, 0x27, 0xb9, 0xd1, 0x80,
};
static const uint8_t profile_7[] = {
    0x19, 0x08, 0x09, 0x08, 0x40, 0x61, 0x36, 0x50, 0xae, 0xc0, 0x05, 0x55, 0x55, 0x55, 0x60, 0x07, 0xff, 0x00,
    0x3f, 0xf0, 0x00, 0x7f, 0xfd, 0x41, 0x47, 0xae, 0x7f, 0x44, 0x39, 0xd1, 0x32, 0x53, 0x54, 0x75, 0x46, 0x17,
    0x82, 0x28, 0xf3, 0xc0, 0x3c, 0x81, 0x50, 0x12, 0xbd, 0xdc, 0x83, 0x1c, 0xd2, 0x43, 0xeb, 0x9a, 0x00, 0x00,
    0x03, 0x01, 0x00, 0x00, 0x03, 0x00, 0xd0, 0x00, 0x00, 0x08, 0x00, 0x00, 0x03, 0x00, 0x00, 0x80, 0x00, 0x00,
    0x40, 0x00, 0x00, 0x40, 0x00, 0x00, 0x03, 0x00, 0x08, 0x00, 0x00, 0x04, 0x00, 0x00, 0x04, 0x00, 0x00, 0x03,
    0x00, 0x00, 0x80, 0x00, 0x00, 0x40, 0x00, 0x00, 0x40, 0x00, 0x00, 0x72, 0x56, 0x60, 0x00, 0x03, 0x5e, 0xa2,
    0x56, 0x6f, 0x9f, 0xce, 0xb1, 0xc2, 0x56, 0x64, 0x4c, 0xa0, 0x00, 0x00, 0x10, 0x00, 0x00, 0x03, 0x00, 0x80,
    0x00, 0x00, 0x03, 0x00, 0x80, 0x00, 0x00, 0x03, 0x01, 0xc3, 0x62, 0x24, 0x30, 0x18, 0x60, 0xa5, 0xe3, 0x08,
    0xe0, 0x51, 0x40, 0x00, 0x00, 0x1a, 0x63, 0xe5, 0xaf, 0xff, 0xf0, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00,
    0x00, 0x03, 0x00, 0x06, 0x02, 0x07, 0xdc, 0xe0, 0x15, 0x40, 0xdc, 0x39, 0xca, 0x6c, 0x80,
};

static void add_dolby(AVFrame *to, const uint8_t *bytes, size_t count)
{
    av_frame_remove_side_data(to, AV_FRAME_DATA_DOVI_RPU_BUFFER);
    AVFrameSideData *data = av_frame_new_side_data(to, AV_FRAME_DATA_DOVI_RPU_BUFFER, count);
    cr_assert_not_null(data);
    memcpy(data->data, bytes, count);
}

/* Map the frame alone. */
static void map_frame(void)
{
    cox_av_map_flush(&map);
    av_frame_unref(mapped);
    cr_assert_eq(cox_av_send_frame(&map, frame), 0, "%s", logged);
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_assert_eq(cox_av_receive_frame(&map, mapped), 0);
}

Test(libav, frames_with_dolby_vision_are_reshaped)
{
    struct cox_dolby_frame dolby = {0};
    AVFrame *plain = av_frame_alloc();
    open_map(&(struct cox_tonemap_options){.peak = COX_PEAK_FIXED});
    map_frame();
    cr_assert_eq(av_frame_ref(plain, mapped), 0);

    cr_expect_eq(cox_av_dolby(frame, &dolby), 0);
    add_dolby(frame, profile_5, sizeof profile_5);
    cr_expect_eq(cox_av_dolby(frame, &dolby), 1);
    cr_expect_eq(dolby.profile, 5);
    cr_expect(dolby.has_colours);

    /* Its own colours say nothing: later versions of FFmpeg name a matrix that the library does not have. */
    frame->color_trc = AVCOL_TRC_BT709;
    frame->colorspace = AVCOL_SPC_ICTCP;
    map_frame();
    cr_expect(!same_samples(plain, mapped), "the frame was not reshaped");
    cr_expect_null(av_frame_get_side_data(mapped, AV_FRAME_DATA_DOVI_RPU_BUFFER));

    /* An enhancement layer is not decoded, so that the base layer is shown. */
    frame->color_trc = AVCOL_TRC_SMPTE2084;
    frame->colorspace = AVCOL_SPC_BT2020_NCL;
    add_dolby(frame, profile_7, sizeof profile_7);
    cr_expect_eq(cox_av_dolby(frame, &dolby), 0);
    map_frame();
    cr_expect(same_samples(plain, mapped), "the base layer was reshaped");

    add_dolby(frame, profile_5, sizeof profile_5 - 8);
    cox_av_map_flush(&map);
    cr_expect_eq(cox_av_send_frame(&map, frame), AVERROR_INVALIDDATA);
    av_frame_free(&plain);
}

Test(libav, views_of_frames_in_the_pool_are_mapped_alike)
{
    enum { VIEWS = 4 };
    struct cox_tonemap_options look = {.peak = COX_PEAK_FIXED};
    AVFrame *pooled = av_frame_alloc();
    open_map(&look);
    av_frame_copy_props(pooled, frame);
    pooled->format = frame->format;
    pooled->width = WIDTH;
    pooled->height = HEIGHT;
    cr_assert_eq(cox_av_pool_get(map.pool, pooled, WIDTH, HEIGHT), 0);
    cr_assert_geq(av_frame_copy(pooled, frame), 0);
    for (int view = 0; view < VIEWS; view++) {
        AVFrame *from[] = {av_frame_clone(frame), av_frame_clone(pooled)}, *to[2];
        for (int i = 0; i < 2; i++) {
            AVFrame *its = from[i];
            to[i] = av_frame_alloc();
            if (view == 1)
                its->crop_left = 2;
            if (view == 2) { /* the bottom field */
                its->height = HEIGHT / 4 * 2;
                for (int p = 0; p < 3; p++) {
                    its->data[p] += its->linesize[p];
                    its->linesize[p] *= 2;
                }
            }
            if (view == 3) {
                uint8_t *swapped = its->data[1];
                its->data[1] = its->data[2];
                its->data[2] = swapped;
            }
            cr_assert_eq(cox_av_send_frame(&map, its), 0, "view %d, %s: %s", view, i ? "pool" : "plain", logged);
            while (cox_av_receive_frame(&map, to[i]) == AVERROR(EAGAIN))
                continue;
        }
        cr_assert(to[0]->width == to[1]->width && to[0]->height == to[1]->height);
        for (int p = 0; p < 3; p++)
            for (int row = 0; row < to[0]->height >> !!p; row++)
                cr_expect_arr_eq(to[0]->data[p] + (ptrdiff_t)row * to[0]->linesize[p],
                                 to[1]->data[p] + (ptrdiff_t)row * to[1]->linesize[p], (size_t)(to[0]->width >> !!p),
                                 "view %d, plane %d, row %d", view, p, row);
        for (int i = 0; i < 2; i++) {
            av_frame_free(&from[i]);
            av_frame_free(&to[i]);
        }
    }
    av_frame_free(&pooled);
}

Test(libav, crops_that_leave_nothing_are_refused_and_others_are_used_up)
{
    open_map(NULL);
    static const size_t crops[][2] = {{(size_t)-8, 16}, {WIDTH, 0}, {WIDTH / 2, WIDTH / 2 + 1}, {(size_t)1 << 32, 0}};
    for (size_t i = 0; i < sizeof crops / sizeof crops[0]; i++) {
        frame->crop_left = crops[i][0];
        frame->crop_right = crops[i][1];
        cr_expect_eq(cox_av_send_frame(&map, frame), AVERROR(ERANGE), "case %zu", i);
    }
    frame->crop_left = 16;
    frame->crop_right = 0;
    map.width = WIDTH; /* scaled back to the original width */
    cr_assert_eq(cox_av_send_frame(&map, frame), 0);
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_expect_eq(cox_av_send_frame(&map, frame), AVERROR_EOF);
    cr_assert_eq(cox_av_receive_frame(&map, mapped), 0);
    cr_expect_eq(mapped->crop_left, 0);
    cr_expect_eq(mapped->width, WIDTH);
    cr_expect_eq(av_cmp_q(mapped->sample_aspect_ratio, av_make_q(WIDTH - 16, WIDTH)), 0);
    cr_expect_eq(cox_av_receive_frame(&map, mapped), AVERROR_EOF, "unref gives the frame back");
}

Test(libav, many_that_are_sent_have_to_be_received)
{
    open_map(NULL);
    int sent = 0, code;
    while ((code = cox_av_send_frame(&map, frame)) >= 0)
        cr_assert_lt(++sent, 1000);
    cr_expect_eq(code, AVERROR(EAGAIN));
    cox_av_map_flush(&map);
    cr_expect_eq(cox_av_receive_frame(&map, mapped), AVERROR(EAGAIN));
    cr_assert_eq(cox_av_send_frame(&map, frame), 0);
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_expect_eq(cox_av_receive_frame(&map, mapped), 0);
    av_frame_unref(mapped);
    cr_expect_eq(cox_av_receive_frame(&map, mapped), AVERROR_EOF);
    frame->height = HEIGHT / 2; /* a change of size, then an invalid frame; both leave the map usable */
    cox_av_map_flush(&map);
    cr_assert_eq(cox_av_send_frame(&map, frame), 0);
    frame->format = AV_PIX_FMT_YUV420P9BE;
    cr_expect_eq(cox_av_send_frame(&map, frame), AVERROR(ENOSYS));
    frame->format = AV_PIX_FMT_YUV420P10LE;
    cr_assert_eq(cox_av_send_frame(&map, NULL), 0);
    cr_assert_eq(cox_av_receive_frame(&map, mapped), 0);
    cr_expect_eq(mapped->height, HEIGHT / 2);
}
