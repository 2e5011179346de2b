/* Containers (Matroska, MP4 and others): opened by libavformat, decoded by libavcodec.
 *
 * Opening decodes the first frame. It says what the container may leave out: samples, colours,
 * mastering display.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "common/host_machine.h"
#include "common/least.h"
#include "libav_input.h"
#include "memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void limit_memory(struct video_input *input)
{
    struct libav *libav = input->state;
    libav->memory_max = memory_limit(input->format.file_bytes, input->memory_max);
    libav->pixels_max = least(libav->memory_max / (LIBAV_PIXEL_BYTES * LIBAV_HELD_FRAMES),
                              VIDEO_PIXELS_MAX);
}

/* Covers are streams of libavformat, but no video tracks. */
static void read_crop(struct libav *libav)
{
    uint32_t video = 0;
    for (int i = 0; i < libav->stream; i++) {
        const AVStream *stream = libav->container->streams[i];
        video += stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
                 !(stream->disposition & AV_DISPOSITION_ATTACHED_PIC);
    }

    if (!matroska_crop(libav->path, video, &libav->crop))
        libav->crop = (struct matroska_crop){0};
}

static bool open_decoder(struct video_input *input, const struct libav_named *named,
                         struct libav_devices *wanted, struct error *error)
{
    struct libav *libav = input->state;
    const int stream = libav_choose_video(libav->container, input->stream, &libav->codec, error);
    if (stream < 0)
        return false;

    const AVCodecParameters *about = libav->container->streams[stream]->codecpar;
    if ((uint64_t)about->width * (uint64_t)about->height > libav->pixels_max)
        return error_set(error,
                         "frames of %d x %d pixels need more memory than a file of this size may "
                         "ask for; use --max-memory GIB if it is right",
                         about->width, about->height);

    libav->stream = stream;
    libav->named = libav_no_colours;
    if ((unsigned)stream < named->count) /* FLV has no streams before its first packets */
        libav->named = named->streams[stream];
    read_crop(libav);
    libav_discard_others(libav->container, stream);

    /* The decoder's threads are those that opening it starts. */
    struct video_threads before;
    video_threads_list(&before);
    libav->hardware = libav_hardware_open(libav, libav->codec, wanted);
    const bool opened = libav_open_decoder(libav, error);
    video_threads_list(&libav->threads);
    video_threads_without(&libav->threads, &before);
    return opened;
}

static void close_input(struct video_input *input)
{
    struct libav *libav = input->state;
    libav_hardware_close(&libav->hardware);
    lib.av_frame_free(&libav->frame);
    lib.av_packet_free(&libav->packet);
    lib.avcodec_free_context(&libav->decoder);
    lib.avformat_close_input(&libav->container);

    libav_index_free(&libav->index);
    free(libav->kept);
    libav_complaints_end(&libav->complaints);
    free(libav->path);
    free(libav);
    input->state = NULL;
}

static bool is_regular(const char *path)
{
    struct stat about;
    return strcmp(path, "-") && !stat(path, &about) && S_ISREG(about.st_mode);
}

static bool decode_first(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    const enum video_read result = libav_decode(input, error);
    if (result == VIDEO_READ_END)
        return error_set(error, "it has no complete frame");

    libav->skipped = libav->damaged;
    libav->waiting = result == VIDEO_READ_FRAME;
    if (!libav->waiting)
        return false;

    bool keyed;
    libav->errors_before = libav_complaints_begun(&libav->complaints);
    libav->missing_before = frame_damage_lost(&libav->damage, libav->frame->best_effort_timestamp,
                                              &keyed);
    input->damaged |= input->goes_on && keyed;
    return true;
}

/* The first frame has been decoded by a device. False: the program cannot use its frames. */
static bool accept_hardware(struct libav *libav)
{
    struct cox_video_format pixel;
    const AVPixFmtDescriptor *samples = lib.av_pix_fmt_desc_get(libav->decoder->sw_pix_fmt);
    if (!samples || cox_av_format(libav->frame->format, &pixel) < 0)
        return false;

    libav->hardware_bits = (uint32_t)samples->comp[0].depth;
    libav->hardware->ahead = LIBAV_HARDWARE_AHEAD;
    return true;
}

/* The hardware could not decode the first frame, or what it gives cannot be used. */
static void refuse_hardware(const struct libav *libav, struct libav_devices *wanted)
{
    const struct libav_hardware *hardware = libav->hardware;
    libav_devices_refuse(wanted, hardware->type,
                         *hardware->why ? hardware->why : "it does not decode the first frame");
}

/* Open the input with the next device that is wanted, or in software after the last one. False,
 * and `*again`, if the device cannot decode it. */
static bool open_with(struct video_input *input, struct libav_devices *wanted, bool *again,
                      struct error *error)
{
    *again = false;
    struct libav_named named = {0};
    struct libav *libav = calloc(1, sizeof *libav);
    if (!libav)
        return error_set(error, "out of memory");
    input->state = libav;
    libav_complaints_begin(&libav->complaints);
    libav->position = -1;
    libav->time = libav->last_dts = AV_NOPTS_VALUE;
    const uint64_t missing = libav_missing_bytes(input->path);
    input->cut = missing > 0;
    if (input->cut)
        snprintf(libav->cut, sizeof libav->cut,
                 "the file is truncated, %" PRIu64 " bytes are missing", missing);

    libav->path = strdup(input->path);
    libav->packet = lib.av_packet_alloc();
    libav->frame = lib.av_frame_alloc();
    if (!libav->path || !libav->packet || !libav->frame) {
        error_set(error, "out of memory");
        goto fail;
    }

    limit_memory(input);
    const AVIOInterruptCB interrupt = {libav_is_cancelled, input};
    libav_messages_about(&libav->complaints);
    libav->container = libav_open_container(input->path, libav->pixels_max, interrupt, &named,
                                            error);
    libav_messages_about(NULL);
    const bool opened = libav->container && open_decoder(input, &named, wanted, error);
    free(named.streams);
    if (opened && decode_first(input, error) && (!libav->hardware || accept_hardware(libav)) &&
        libav_describe(input, error)) {
        libav_notice_begin(input);
        return true;
    }

fail:
    *again = libav->hardware != NULL;
    if (libav->hardware)
        refuse_hardware(libav, wanted);
    close_input(input);
    return false;
}

static bool open_input(struct video_input *input, struct error *error)
{
    struct libav_devices wanted;
    if (!is_regular(input->path))
        return error_set(
            error, "a container must be a file, not standard input or a pipe; convert it to y4m "
                   "with ffmpeg (-strict -1 -f yuv4mpegpipe -)");
    if (!libav_load())
        return error_set(error, "containers cannot be read: %s", libav_loading_error);
    if (!libav_devices_wanted(&wanted, input->hwdec, error))
        return false;

    bool opened, again = false;
    do
        opened = open_with(input, &wanted, &again, error);
    while (!opened && again);

    const struct libav *libav = input->state;
    if (opened && wanted.count && !libav->hardware)
        libav_tell(input, "decoded in software (%s)",
                   *wanted.why ? wanted.why : "libavcodec has no other decoder of this codec");
    return opened;
}

static void find_producer(struct video_input *input, struct video_producer *producer)
{
    struct libav *libav = input->state;
    const uint64_t ns = video_threads_cpu_ns(&libav->threads);
    if (!libav->asked)
        libav->threads_first_ns = ns;
    libav->asked = true;

    producer->kind = VIDEO_PRODUCER_DECODER;
    producer->cpu_ns = ns > libav->threads_first_ns ? ns - libav->threads_first_ns : 0;
    snprintf(producer->name, sizeof producer->name, "%s", lib.avcodec_get_name(libav->codec->id));
}

const struct video_reader video_reader_libav = {.open = open_input,
                                                .read = libav_read,
                                                .count = libav_count,
                                                .after = libav_after,
                                                .seek = libav_seek,
                                                .close = close_input,
                                                .lender = &libav_lender,
                                                .producer = find_producer,
                                                .notice = libav_notice};

#endif
