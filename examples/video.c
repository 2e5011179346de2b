/* A player of HDR films on an SDR screen: FFmpeg decodes, Coxswain maps, SDL shows. No sound.
 *   cc video.c $(pkg-config --cflags --libs coxswain sdl2 libavformat libavcodec libavutil) &&
 *       ./a.out FILM
 * Keys: left and right seek by ten seconds, q ends. With a second FILE the mapped frames are
 * written there instead, as raw yuv420p.
 *
 * `--hwdec NAME` before FILM decodes with a device (auto, cuda, vaapi, ...). If the device fails,
 * software goes on after the last frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include <SDL.h>
#include <coxswain/coxswain.h>
#include <coxswain/libav.h>
#include <libavformat/avformat.h>
#include <stdio.h>

struct player {
    AVFormatContext *film;
    const AVCodec *codec;
    AVCodecContext *decoder;
    const char *hwdec; /* the device that decodes; NULL = none */
    int64_t sent;      /* the time of the last frame; INT64_MIN = there was none */
    int64_t skip;      /* frames up to this time were mapped before */
    int video;
    AVPacket *packet;
    AVFrame *decoded, *mapped;
    cox_runtime *runtime;
    struct cox_av_map map;
    FILE *raw; /* NULL = show */
    SDL_Window *window;
    SDL_Renderer *renderer;
    SDL_Texture *texture;
    double began, first, time; /* seconds: `began` of the clock, the others of the film */
    double seek;               /* seconds to seek by; 0 = none */
    bool quit;
};

static int open_decoder(struct player *p)
{
    p->decoder = avcodec_alloc_context3(p->codec);
    if (!p->decoder)
        return AVERROR(ENOMEM);

    int code = avcodec_parameters_to_context(p->decoder, p->film->streams[p->video]->codecpar);
    p->decoder->thread_count = 0;
    cox_av_map_attach(&p->map, p->decoder); /* it decodes into memory that the devices read */
    if (code < 0)
        return code;

    if (p->hwdec) {
        code = cox_av_map_attach_device(&p->map, p->decoder, p->codec, p->hwdec);
        if (code < 0) {
            fprintf(stderr, "%s: %s; decoded in software\n", p->hwdec, av_err2str(code));
            p->hwdec = NULL;
        }
    }
    return avcodec_open2(p->decoder, p->codec, NULL);
}

static int open_film(struct player *p, const char *path)
{
    int code = avformat_open_input(&p->film, path, NULL, NULL);
    if (code >= 0)
        code = avformat_find_stream_info(p->film, NULL);
    if (code >= 0)
        code = p->video = av_find_best_stream(p->film, AVMEDIA_TYPE_VIDEO, -1, -1, &p->codec, 0);
    if (code < 0)
        return code;

    p->packet = av_packet_alloc();
    p->decoded = av_frame_alloc();
    p->mapped = av_frame_alloc();
    if (!p->packet || !p->decoded || !p->mapped)
        return AVERROR(ENOMEM);
    return open_decoder(p);
}

static void write_raw(struct player *p, const AVFrame *frame)
{
    for (int plane = 0; plane < 3; plane++) {
        const int half = plane > 0, width = (frame->width + half) >> half;
        for (int row = 0; row < (frame->height + half) >> half; row++)
            fwrite(frame->data[plane] + (ptrdiff_t)row * frame->linesize[plane], 1, (size_t)width,
                   p->raw);
    }
}

static void open_window(struct player *p, int width, int height)
{
    SDL_Init(SDL_INIT_VIDEO);
    SDL_CreateWindowAndRenderer(width, height, SDL_WINDOW_RESIZABLE, &p->window, &p->renderer);
    SDL_SetYUVConversionMode(SDL_YUV_CONVERSION_BT709);
    p->texture = SDL_CreateTexture(p->renderer, SDL_PIXELFORMAT_IYUV, SDL_TEXTUREACCESS_STREAMING,
                                   width, height);
}

/* Wait until it is time for the frame. */
static void wait_for_time(struct player *p, const AVFrame *frame)
{
    const double now = (double)SDL_GetTicks64() / 1e3;
    p->time = (double)frame->best_effort_timestamp * av_q2d(p->film->streams[p->video]->time_base);
    if (p->began <= 0) {
        p->began = now;
        p->first = p->time;
    }

    const double early = p->time - p->first - (now - p->began);
    if (early > 0 && early < 10)
        SDL_Delay((Uint32)(early * 1e3));
}

static void handle_keys(struct player *p)
{
    SDL_Event event;
    while (SDL_PollEvent(&event)) {
        if (event.type == SDL_QUIT)
            p->quit = true;
        if (event.type != SDL_KEYDOWN)
            continue;

        if (event.key.keysym.sym == SDLK_q)
            p->quit = true;
        else if (event.key.keysym.sym == SDLK_RIGHT)
            p->seek += 10;
        else if (event.key.keysym.sym == SDLK_LEFT)
            p->seek -= 10;
    }
}

static void show(struct player *p, const AVFrame *frame)
{
    if (!p->window)
        open_window(p, frame->width, frame->height);
    wait_for_time(p, frame);

    SDL_UpdateYUVTexture(p->texture, NULL, frame->data[0], frame->linesize[0], frame->data[1],
                         frame->linesize[1], frame->data[2], frame->linesize[2]);
    SDL_RenderCopy(p->renderer, p->texture, NULL, NULL);
    SDL_RenderPresent(p->renderer);
    handle_keys(p);
}

/* No more frames for now, or at all, is no error. */
static int unless_empty(int code)
{
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF ? 0 : code;
}

/* Map a frame (NULL = the last one was before) and show the frames that are ready. */
static int map(struct player *p, const AVFrame *frame)
{
    int code = cox_av_send_frame(&p->map, frame);
    while (code >= 0 && !p->quit && (code = cox_av_receive_frame(&p->map, p->mapped)) >= 0) {
        if (p->raw)
            write_raw(p, p->mapped);
        else
            show(p, p->mapped);
        av_frame_unref(p->mapped);
    }

    return unless_empty(code);
}

/* The device has failed: go on in software, from the last key frame. */
static int back_off(struct player *p, int why)
{
    fprintf(stderr, "%s: %s; decoded in software from here on\n", p->hwdec, av_err2str(why));
    p->hwdec = NULL;
    p->skip = p->sent;
    avcodec_free_context(&p->decoder);

    const int code = av_seek_frame(p->film, p->video, p->sent, AVSEEK_FLAG_BACKWARD);
    return code < 0 ? code : open_decoder(p);
}

static int decode(struct player *p, const AVPacket *packet)
{
    int code = avcodec_send_packet(p->decoder, packet);
    while (code >= 0 && !p->quit && (code = avcodec_receive_frame(p->decoder, p->decoded)) >= 0) {
        const int64_t time = p->decoded->best_effort_timestamp;
        if (time > p->skip || time == AV_NOPTS_VALUE) {
            code = map(p, p->decoded);
            if (code >= 0)
                p->sent = time;
        }
        av_frame_unref(p->decoded);
    }

    code = unless_empty(code);
    return code < 0 && code != AVERROR_INVALIDDATA && p->hwdec ? back_off(p, code) : code;
}

static void seek(struct player *p)
{
    const int64_t target = (int64_t)((p->time + p->seek) * AV_TIME_BASE);
    av_seek_frame(p->film, -1, target, p->seek < 0 ? AVSEEK_FLAG_BACKWARD : 0);
    avcodec_flush_buffers(p->decoder);
    cox_av_map_flush(&p->map);
    p->began = p->seek = 0;
    p->sent = p->skip = INT64_MIN;
}

static int play(struct player *p)
{
    int code = 0;
    const char *hwdec;
    do {
        while (code >= 0 && !p->quit && av_read_frame(p->film, p->packet) >= 0) {
            if (p->packet->stream_index == p->video)
                code = decode(p, p->packet);
            av_packet_unref(p->packet);
            if (p->seek < 0 || p->seek > 0)
                seek(p);
        }

        hwdec = p->hwdec;
        if (code >= 0 && !p->quit)
            code = decode(p, NULL);
    } while (hwdec != p->hwdec); /* the device failed at the end */
    if (code >= 0 && !p->quit)
        code = map(p, NULL);
    return code;
}

int main(int argc, char **argv)
{
    struct player p = {.sent = INT64_MIN, .skip = INT64_MIN};
    if (argc > 2 && !strcmp(argv[1], "--hwdec")) {
        p.hwdec = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc > 2)
        p.raw = fopen(argv[2], "wb");
    if (argc < 2 || (argc > 2 && !p.raw))
        return fprintf(stderr, "usage: player [--hwdec NAME] FILM [RAW.yuv]\n"), 2;

    int code = cox_av_error(cox_runtime_create(NULL, &p.runtime));
    if (code >= 0)
        code = cox_av_map_open(&p.map, p.runtime, NULL, NULL);
    if (code >= 0)
        code = open_film(&p, argv[1]);
    if (code >= 0)
        code = play(&p);
    if (code < 0)
        fprintf(stderr, "%s: %s\n", argv[1], av_err2str(code));

    av_frame_free(&p.decoded);
    av_frame_free(&p.mapped);
    av_packet_free(&p.packet);
    avcodec_free_context(&p.decoder);
    avformat_close_input(&p.film);
    cox_av_map_close(&p.map);
    cox_runtime_destroy(&p.runtime);
    SDL_Quit();
    return (p.raw && fclose(p.raw)) || code < 0;
}
