/* SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct libav_hardware_entry *entry_of(struct libav_hardware *hardware, uint64_t n)
{
    return &hardware->queue[n % LIBAV_HARDWARE_AHEAD];
}

/* --- The transfer thread ---------------------------------------------------------------------- */

/* Memory for a frame that comes from the device: where it is lent from, if frames are lent. */
static int get_memory(struct libav *libav, AVFrame *to)
{
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    if (pool)
        return cox_av_pool_get(pool, to, to->width, to->height);
    return lib.av_frame_get_buffer(to, 0);
}

/* Replace a frame in the device's memory by one in the host's. */
static int transfer(struct libav *libav, AVFrame **frame)
{
    AVFrame *from = *frame, *to = lib.av_frame_alloc();
    if (!to)
        return AVERROR(ENOMEM);

    const AVHWFramesContext *kept = (const void *)from->hw_frames_ctx->data;
    to->format = kept->sw_format;
    to->width = from->width;
    to->height = from->height;

    int code = get_memory(libav, to);
    if (code >= 0)
        code = lib.av_hwframe_transfer_data(to, from, 0);
    if (code >= 0)
        code = lib.av_frame_copy_props(to, from);
    if (code >= 0) /* devices crop only on the right and at the bottom */
        code = lib.av_frame_apply_cropping(to, AV_FRAME_CROP_UNALIGNED);
    if (code < 0) {
        lib.av_frame_free(&to);
        return code;
    }

    lib.av_frame_free(frame);
    *frame = to;
    return 0;
}

static void *transfer_frames(void *user)
{
    struct libav_hardware *hardware = user;

    pthread_mutex_lock(&hardware->lock);
    for (;;) {
        while (!hardware->ends && hardware->transferred == hardware->pushed)
            pthread_cond_wait(&hardware->pushed_one, &hardware->lock);
        if (hardware->ends)
            break;

        struct libav_hardware_entry *entry = entry_of(hardware, hardware->transferred);
        pthread_mutex_unlock(&hardware->lock);
        if (!entry->code)
            entry->cause = transfer(hardware->libav, &entry->frame);
        if (entry->cause)
            entry->code = LIBAV_HARDWARE_FAILED;

        pthread_mutex_lock(&hardware->lock);
        hardware->transferred++;
        pthread_cond_signal(&hardware->transferred_one);
    }
    pthread_mutex_unlock(&hardware->lock);

    return NULL;
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static struct libav_hardware *start(struct libav *libav, const AVCodec *codec,
                                    enum AVHWDeviceType type, enum AVPixelFormat format,
                                    AVBufferRef *device)
{
    struct libav_hardware *hardware = calloc(1, sizeof *hardware);
    if (!hardware)
        return NULL;

    *hardware = (struct libav_hardware){.type = type,
                                        .name = lib.av_hwdevice_get_type_name(type),
                                        .codec = codec,
                                        .format = format,
                                        .ahead = 1,
                                        .libav = libav,
                                        .lock = PTHREAD_MUTEX_INITIALIZER,
                                        .pushed_one = PTHREAD_COND_INITIALIZER,
                                        .transferred_one = PTHREAD_COND_INITIALIZER};
    hardware->decoded = lib.av_frame_alloc();
    if (!hardware->decoded ||
        pthread_create(&hardware->thread, NULL, transfer_frames, hardware) != 0) {
        lib.av_frame_free(&hardware->decoded);
        free(hardware);
        return NULL;
    }

    hardware->device = device;
    return hardware;
}

struct libav_hardware *libav_hardware_open(struct libav *libav, const AVCodec *usual,
                                           struct libav_devices *wanted)
{
    while (wanted->next < wanted->count) {
        const enum AVHWDeviceType type = wanted->types[wanted->next++];
        enum AVPixelFormat format = AV_PIX_FMT_NONE;
        char why[LIBAV_WHY_BYTES];

        const AVCodec *codec = libav_device_decoder(usual, type, &format);
        if (!codec) {
            if (wanted->count == 1)
                libav_devices_refuse(wanted, type,
                                     "libavcodec has no decoder of this codec for it");
            continue;
        }

        AVBufferRef *device = libav_device_open(type, wanted->which, why, sizeof why);
        if (!device) {
            libav_devices_refuse(wanted, type, why);
            continue;
        }

        struct libav_hardware *hardware = start(libav, codec, type, format, device);
        if (hardware)
            return hardware;
        lib.av_buffer_unref(&device);
        libav_devices_refuse(wanted, type, "out of memory");
    }

    return NULL;
}

/* AVCodecContext.get_format. libavcodec asks again, without the device's format, if the device
 * refuses the stream. */
static enum AVPixelFormat choose_format(AVCodecContext *decoder, const enum AVPixelFormat *formats)
{
    const struct libav *libav = decoder->opaque;
    for (const enum AVPixelFormat *f = formats; *f != AV_PIX_FMT_NONE; f++)
        if (*f == libav->hardware->format)
            return *f;

    for (const enum AVPixelFormat *f = formats; *f != AV_PIX_FMT_NONE; f++)
        if (!(lib.av_pix_fmt_desc_get(*f)->flags & AV_PIX_FMT_FLAG_HWACCEL))
            return *f;
    return AV_PIX_FMT_NONE;
}

bool libav_hardware_attach(struct libav_hardware *hardware, AVCodecContext *decoder)
{
    decoder->hw_device_ctx = lib.av_buffer_ref(hardware->device);
    decoder->get_format = choose_format;
    decoder->extra_hw_frames = LIBAV_HARDWARE_AHEAD + 1; /* the queue's, and `decoded` */
    decoder->thread_count = LIBAV_HARDWARE_THREADS;
    return decoder->hw_device_ctx;
}

/* Wait for the transfer thread, then release everything that is queued. */
static void clear(struct libav_hardware *hardware)
{
    pthread_mutex_lock(&hardware->lock);
    while (hardware->transferred < hardware->pushed)
        pthread_cond_wait(&hardware->transferred_one, &hardware->lock);
    for (; hardware->popped < hardware->pushed; hardware->popped++)
        lib.av_frame_free(&entry_of(hardware, hardware->popped)->frame);
    pthread_mutex_unlock(&hardware->lock);

    lib.av_frame_unref(hardware->decoded);
    hardware->closed = hardware->failed;
}

void libav_hardware_close(struct libav_hardware **out)
{
    struct libav_hardware *hardware = *out;
    if (!hardware)
        return;
    *out = NULL;
    clear(hardware);

    pthread_mutex_lock(&hardware->lock);
    hardware->ends = true;
    pthread_cond_signal(&hardware->pushed_one);
    pthread_mutex_unlock(&hardware->lock);
    pthread_join(hardware->thread, NULL);

    pthread_cond_destroy(&hardware->pushed_one);
    pthread_cond_destroy(&hardware->transferred_one);
    pthread_mutex_destroy(&hardware->lock);
    lib.av_frame_free(&hardware->decoded);
    lib.av_buffer_unref(&hardware->device);
    free(hardware);
}

/* --- Packets in, frames out ------------------------------------------------------------------- */

/* Whether an error of the decoder comes from the device. A damaged stream gives INVALIDDATA, with
 * and without a device. */
static bool is_failure(int code)
{
    return code < 0 && code != AVERROR(EAGAIN) && code != AVERROR_EOF &&
           code != AVERROR_INVALIDDATA;
}

/* Queue the frame in `decoded`, or an error. */
static void push(struct libav_hardware *hardware, AVFrame *frame, int code)
{
    pthread_mutex_lock(&hardware->lock);
    *entry_of(hardware, hardware->pushed) = (struct libav_hardware_entry){.frame = frame,
                                                                          .code = code};
    hardware->pushed++;
    pthread_cond_signal(&hardware->pushed_one);
    pthread_mutex_unlock(&hardware->lock);
}

/* The device failed, or refused the stream: nothing follows. There is room for one entry. */
static void fail(struct libav_hardware *hardware, int code, const char *what)
{
    char text[96], first[LIBAV_MESSAGE_BYTES];
    lib.av_strerror(code, text, sizeof text);
    if (libav_complaints_count(&hardware->libav->complaints, first, sizeof first))
        snprintf(hardware->why, sizeof hardware->why, "%s: %s", what, first);
    else
        snprintf(hardware->why, sizeof hardware->why, "%s%s%s", what, code ? ": " : "",
                 code ? text : "");

    hardware->closed = hardware->failed = true;
    push(hardware, NULL, LIBAV_HARDWARE_FAILED);
}

static uint64_t queued(const struct libav_hardware *hardware)
{
    return hardware->pushed - hardware->popped;
}

/* Queue what the decoder has now. False: it needs another packet. */
static bool pull(struct libav_hardware *hardware, AVCodecContext *decoder)
{
    const int code = lib.avcodec_receive_frame(decoder, hardware->decoded);
    if (code == AVERROR(EAGAIN))
        return false;
    if (code == AVERROR_EOF) {
        hardware->closed = true;
    } else if (is_failure(code)) {
        fail(hardware, code, "it failed");
    } else if (code < 0) {
        push(hardware, NULL, code);
    } else if (hardware->decoded->format != (int)hardware->format) {
        fail(hardware, 0, "it does not decode this profile or size");
    } else {
        AVFrame *frame = lib.av_frame_alloc();
        if (frame)
            lib.av_frame_move_ref(frame, hardware->decoded);
        push(hardware, frame, frame ? 0 : AVERROR(ENOMEM));
    }

    lib.av_frame_unref(hardware->decoded);
    return true;
}

/* Give out the first entry. A failure stays in the queue. */
static int pop(struct libav_hardware *hardware, AVFrame *frame)
{
    pthread_mutex_lock(&hardware->lock);
    while (hardware->transferred == hardware->popped)
        pthread_cond_wait(&hardware->transferred_one, &hardware->lock);
    struct libav_hardware_entry *entry = entry_of(hardware, hardware->popped);
    const int code = entry->code;
    if (code != LIBAV_HARDWARE_FAILED)
        hardware->popped++;
    pthread_mutex_unlock(&hardware->lock);

    if (!code)
        lib.av_frame_move_ref(frame, entry->frame);
    if (code != LIBAV_HARDWARE_FAILED) {
        lib.av_frame_free(&entry->frame);
        return code;
    }

    if (entry->cause) {
        char text[96];
        lib.av_strerror(entry->cause, text, sizeof text);
        snprintf(hardware->why, sizeof hardware->why, "a frame cannot be transferred: %s", text);
    }
    hardware->closed = hardware->failed = hardware->stopped = true;
    return code;
}

int libav_send(struct libav *libav, const AVPacket *packet)
{
    struct libav_hardware *hardware = libav->hardware;
    if (hardware && hardware->failed) /* software gets it again */
        return 0;

    const int code = lib.avcodec_send_packet(libav->decoder, packet);
    if (!hardware || !is_failure(code))
        return code;
    fail(hardware, code, "it failed");
    return 0;
}

int libav_receive_frame(struct libav *libav, AVFrame *frame)
{
    struct libav_hardware *hardware = libav->hardware;
    if (!hardware)
        return lib.avcodec_receive_frame(libav->decoder, frame);

    while (!hardware->closed && queued(hardware) < hardware->ahead)
        if (!pull(hardware, libav->decoder))
            return AVERROR(EAGAIN);
    if (queued(hardware))
        return pop(hardware, frame);
    hardware->stopped = hardware->failed; /* a seek has emptied the queue */
    return hardware->failed ? LIBAV_HARDWARE_FAILED : AVERROR_EOF;
}

void libav_flush(struct libav *libav)
{
    if (libav->hardware)
        clear(libav->hardware);
    lib.avcodec_flush_buffers(libav->decoder);
}

#endif
