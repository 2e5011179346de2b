/* The decoder of a film: its threads, memory and limits, in hardware or in software.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "common/host_machine.h"
#include "libav_input.h"

/* The decoder's threads: 0 = one per core. Each thread needs a frame, so that a small file with
 * large frames gets fewer threads. */
static int threads_for(const struct libav *libav)
{
    const AVCodecParameters *about = libav->container->streams[libav->stream]->codecpar;
    const uint64_t pixels = (uint64_t)about->width * (uint64_t)about->height;
    const uint64_t frames = libav->memory_max / (LIBAV_PIXEL_BYTES * (pixels + 1));
    if (frames >= LIBAV_HELD_FRAMES + machine_cpus())
        return 0;
    return frames > LIBAV_HELD_FRAMES ? (int)(frames - LIBAV_HELD_FRAMES) : 1;
}

/* AVCodecContext.get_buffer2 */
static int get_buffer(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct libav *libav = decoder->opaque;
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    if (pool && frame->format == libav->samples)
        return cox_av_pool_get_buffer2(pool, decoder, frame, flags);
    return lib.avcodec_default_get_buffer2(decoder, frame, flags);
}

static void configure(struct libav *libav)
{
    libav->decoder->thread_count = threads_for(libav);
    libav->decoder->err_recognition = AV_EF_CRCCHECK;
    libav->decoder->max_pixels = (int64_t)libav->pixels_max;
    libav->decoder->opaque = libav;
    libav->decoder->get_buffer2 = get_buffer;
#if LIBAVCODEC_VERSION_MAJOR < 60 /* later versions always assume it */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    libav->decoder->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

bool libav_open_decoder(struct libav *libav, struct error *error)
{
    struct libav_hardware *hardware = libav->hardware;
    const AVCodec *codec = hardware ? hardware->codec : libav->codec;
    libav->decoder = lib.avcodec_alloc_context3(codec);
    if (!libav->decoder)
        return error_set(error, "out of memory");

    int code =
        lib.avcodec_parameters_to_context(libav->decoder,
                                          libav->container->streams[libav->stream]->codecpar);
    configure(libav);
    if (hardware && !libav_hardware_attach(hardware, libav->decoder))
        return error_set(error, "out of memory");

    if (code >= 0)
        code = lib.avcodec_open2(libav->decoder, codec, NULL);
    return code >= 0 || libav_fail("its video cannot be decoded", code, error);
}

#endif
