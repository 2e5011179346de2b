/* Containers (Matroska, MP4 and so on) through libavformat, decoded by libavcodec.
 *
 * The first frame is decoded on opening, since it says what the container may not: samples, colours, mastering display.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "common/cache_folder.h"
#include "libav_frames.h"
#include "libav_index.h"

#include <fcntl.h>
#include <inttypes.h>
#include <libavutil/dovi_meta.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/pixdesc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before the first frame some damage is usual: a recording begins wherever it was begun. */
enum { DAMAGED_AT_FIRST_MAX = 1000 };

/* Frames that are lent at once. */
enum { LENT_MAX = 32 };

struct libav {
    AVFormatContext *container;
    AVCodecContext *decoder;
    AVPacket *packet;
    AVFrame *frame;
    int stream;
    enum AVPixelFormat samples; /* of the first frame */
    int64_t position;           /* in the file, of the last packet; -1 = unknown */
    int64_t
        time; /* of the frame before, in ticks of the stream's time base; AV_NOPTS_VALUE = unknown */
    int64_t shortest_ticks, longest_ticks; /* from one frame to the next; 0 = not known yet */
    struct libav_index index;              /* once it was needed */
    bool sought;
    uint64_t access; /* the place that was begun from last */
    char *path;
    char
        cut[64]; /* what to say of a file that is shorter than the container says; "" = it is not */
    uint32_t
        damaged; /* times that something could not be decoded before the first frame, or after a fault */
    bool begun;   /* a frame has been decoded */
    bool waiting; /* `frame` has been decoded and not been read */
    /* What ended the stream too early. Said when the frames that the decoder still holds are out. */
    const char *fault; /* NULL = nothing */
    int fault_code;
    struct video_threads threads; /* the decoder's own */
    uint64_t
        threads_first_ns; /* their processor time at the first call of libav_maker, if `asked` */
    bool asked;
    struct cox_av_pool *_Atomic pool; /* what the decoder decodes into; NULL = memory of libav's */
    AVFrame *lent[LENT_MAX];
};

/* --- What libav calls things -------------------------------------------------------------------------------------- */

static const char *name_or(const char *name)
{
    return name ? name : "unknown";
}

/* What libav says of an error, after where it was. Returns VIDEO_READ_ERROR. */
static enum video_read fail_frame(const struct video_input *input, const char *what, int code,
                                  struct error *error)
{
    const struct libav *libav = input->state;
    char why[96] = "";
    if (code)
        lib.av_strerror(code, why, sizeof why);
    error_set(error, "frame %" PRIu64 " (the first is 0), at or after byte %" PRId64 ": %s%s%s",
              input->next_frame, libav->position < 0 ? 0 : libav->position, what, code ? ": " : "",
              why);
    return VIDEO_READ_ERROR;
}

/* --- Whether it is one -------------------------------------------------------------------------------------------- */

static bool known_container(const AVInputFormat *format)
{
    return format && lib.av_match_list(format->name, libav_containers, ',');
}

/* More of a regular file than has been looked at, since some formats take more to be told. */
static size_t look_further(const char *path, uint8_t *bytes, size_t most)
{
    struct stat about;
    size_t count = 0;
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
    if (fd < 0)
        return 0;
    if (!fstat(fd, &about) && S_ISREG(about.st_mode)) {
        ssize_t got = pread(fd, bytes, most, 0);
        count = got < 0 ? 0 : (size_t)got;
    }
    close(fd);
    return count;
}

/* Without libav to say so: opening then tells why it cannot be loaded. */
static bool looks_like_container(const uint8_t *bytes, size_t count)
{
    return count >= 12 && (!memcmp(bytes, "\x1a\x45\xdf\xa3", 4) || !memcmp(bytes + 4, "ftyp", 4));
}

bool video_libav_knows(const char *path, const uint8_t *bytes, size_t count)
{
    enum { LOOK_BYTES = 1 << 16 };
    if (!libav_load())
        return looks_like_container(bytes, count);
    uint8_t *buffer = calloc(1, LOOK_BYTES + AVPROBE_PADDING_SIZE);
    if (!buffer)
        return false;
    size_t further = look_further(path, buffer, LOOK_BYTES);
    if (further < count) {
        memcpy(buffer, bytes, count);
        further = count;
    }
    AVProbeData data = {.filename = "", .buf = buffer, .buf_size = (int)further};
    int score = AVPROBE_SCORE_RETRY - 1;
    bool known = known_container(lib.av_probe_input_format2(&data, 1, &score));
    free(buffer);
    return known;
}

/* --- Decoding ----------------------------------------------------------------------------------------------------- */

static int is_cancelled(void *user)
{
    struct video_input *input = user;
    return atomic_load(&input->source.cancelled);
}

/* From here on the decoder gives what it has, and gets no more. */
static enum video_read drain(struct video_input *input, const char *fault, int code,
                             struct error *error)
{
    struct libav *libav = input->state;
    if (fault && !libav->fault) {
        libav->fault = fault;
        libav->fault_code = code;
    }
    /* What it says may be of a packet before. */
    code = lib.avcodec_send_packet(libav->decoder, NULL);
    if (code == AVERROR_EOF || !code)
        return VIDEO_READ_FRAME;
    if (!libav->fault) {
        libav->fault = "cannot be decoded";
        libav->fault_code = code;
    }
    return ++libav->damaged > DAMAGED_AT_FIRST_MAX ? fail_frame(input, libav->fault, code, error)
                                                   : VIDEO_READ_FRAME;
}

/* Whether damage here is one that ends the stream. */
static bool matters(struct libav *libav)
{
    return libav->begun || ++libav->damaged > DAMAGED_AT_FIRST_MAX;
}

/* The next packet of the video to the decoder, or that there are no more. */
static enum video_read feed(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    int code = lib.av_read_frame(libav->container, libav->packet);
    if (is_cancelled(input)) {
        lib.av_packet_unref(libav->packet);
        return VIDEO_READ_CANCELLED;
    }
    if (code == AVERROR_EOF)
        return drain(input, *libav->cut ? libav->cut : NULL, 0, error);
    if (code < 0)
        return drain(input, "cannot be read", code, error);
    bool ours = libav->packet->stream_index == libav->stream;
    bool damaged = libav->packet->flags & AV_PKT_FLAG_CORRUPT;
    if (ours) {
        if (libav->packet->pos >= 0)
            libav->position = libav->packet->pos;
        code = lib.avcodec_send_packet(libav->decoder, libav->packet);
    }
    lib.av_packet_unref(libav->packet);
    if (ours && damaged && matters(libav))
        return drain(input, "damaged or not whole", 0, error);
    if (ours && code < 0 && matters(libav))
        return drain(input, "cannot be decoded", code, error);
    return VIDEO_READ_FRAME;
}

/* The next frame to `frame`. */
static enum video_read decode(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    int code;
    while ((code = lib.avcodec_receive_frame(libav->decoder, libav->frame))) {
        enum video_read result = VIDEO_READ_FRAME;
        if (code == AVERROR_EOF)
            return libav->fault ? fail_frame(input, libav->fault, libav->fault_code, error)
                                : VIDEO_READ_END;
        if (code == AVERROR(EAGAIN))
            result = feed(input, error);
        else if (libav->fault && ++libav->damaged > DAMAGED_AT_FIRST_MAX)
            return fail_frame(input, "cannot be decoded", code, error);
        else if (!libav->fault && matters(libav))
            result = drain(input, "cannot be decoded", code, error);
        if (result != VIDEO_READ_FRAME)
            return result;
    }
    if (libav->frame->decode_error_flags || libav->frame->flags & AV_FRAME_FLAG_CORRUPT)
        return fail_frame(input, "damaged", 0, error);
    libav->begun = true;
    return VIDEO_READ_FRAME;
}

/* Whether a frame is of the first one's size and samples; else `what` says what changes. */
static bool same_picture(const struct video_input *input, const AVFrame *frame, char *what,
                         size_t bytes)
{
    const struct libav *libav = input->state;
    const struct video_format *format = &input->format;
    struct cox_video_format pixel;
    if (frame->width != (int)format->width || frame->height != (int)format->height) {
        snprintf(what, bytes, "the picture's size changes from %u x %u to %d x %d", format->width,
                 format->height, frame->width, frame->height);
        return false;
    }
    if (cox_av_format(frame->format, &pixel) >= 0 && pixel.depth == format->pixel.depth &&
        pixel.layout == format->pixel.layout &&
        pixel.chroma_x_log2 == format->pixel.chroma_x_log2 &&
        pixel.chroma_y_log2 == format->pixel.chroma_y_log2)
        return true;
    snprintf(what, bytes, "the picture's samples change from %s to %s",
             name_or(lib.av_get_pix_fmt_name(libav->samples)),
             name_or(lib.av_get_pix_fmt_name(frame->format)));
    return false;
}

/* Times are whole ticks, so equal ones differ by up to one; two in a hundred is what cameras' clocks waver by. */
static void note_time(struct video_input *input, int64_t time)
{
    struct libav *libav = input->state;
    const int64_t before = libav->time;
    libav->time = time;
    if (time == AV_NOPTS_VALUE || before == AV_NOPTS_VALUE || time <= before)
        return;
    const int64_t ticks = time - before;
    if (!libav->shortest_ticks || ticks < libav->shortest_ticks)
        libav->shortest_ticks = ticks;
    if (ticks > libav->longest_ticks)
        libav->longest_ticks = ticks;
    const int64_t differ = libav->longest_ticks - libav->shortest_ticks;
    if (differ > 1 && differ > libav->shortest_ticks / 50)
        atomic_store(&input->rate_varies, true);
}

/* --- Seeking ------------------------------------------------------------------------------------------------------ */

/* Reading less takes no time. */
enum { KEPT_LEAST_BYTES = 1 << 26 };

/* Where indexes of files like this one are kept; NULL: they are not. */
static const char *index_folder(const char *path, struct file_identity *file, char *folder,
                                size_t bytes)
{
    struct stat about;
    struct error error;
    return !stat(path, &about) && about.st_size >= KEPT_LEAST_BYTES &&
                   file_identify(path, file, &error)
               ? cache_folder(folder, bytes)
               : NULL;
}

/* Read the file once for where its frames are, or find what was read of it before. */
static enum libav_indexed index_file(struct video_input *input, struct libav_index *index,
                                     struct error *error)
{
    struct libav *libav = input->state;
    struct file_identity file;
    char place[4096];
    const char *folder = index_folder(libav->path, &file, place, sizeof place);
    if (folder && libav_index_load(index, folder, &file, libav->stream))
        return LIBAV_INDEXED;
    AVFormatContext *container =
        libav_open_container(libav->path, (AVIOInterruptCB){is_cancelled, input}, error);
    if (!container)
        return LIBAV_INDEX_FAILED;
    enum libav_indexed result = LIBAV_NO_INDEX;
    if ((unsigned)libav->stream < container->nb_streams) { /* as when it was opened first */
        for (unsigned i = 0; i < container->nb_streams; i++)
            if ((int)i != libav->stream)
                container->streams[i]->discard = AVDISCARD_ALL;
        result = libav_index_read(index, container, libav->stream, error);
    }
    lib.avformat_close_input(&container);
    if (folder && result == LIBAV_INDEXED)
        libav_index_keep(index, folder, &file, libav->stream);
    return result;
}

/* Begin anew at the packet of an access. False: the container does not go there. */
static bool begin_at(struct libav *libav, const struct libav_access *access)
{
    lib.avcodec_flush_buffers(libav->decoder);
    lib.av_frame_unref(libav->frame);
    libav->waiting = libav->begun = false;
    libav->damaged = 0;
    libav->fault = NULL;
    if (lib.av_seek_frame(libav->container, libav->stream, access->seek, AVSEEK_FLAG_BACKWARD) < 0)
        return false;
    while (lib.av_read_frame(libav->container, libav->packet) >= 0) {
        const bool there = libav->packet->stream_index == libav->stream &&
                           libav->packet->pts == access->time &&
                           libav->packet->flags & AV_PKT_FLAG_KEY;
        const int code = there ? lib.avcodec_send_packet(libav->decoder, libav->packet) : 0;
        lib.av_packet_unref(libav->packet);
        if (there)
            return code >= 0;
    }
    return false;
}

/* Decode up to the frame of that time, which then waits. VIDEO_READ_END: it does not come from here whole. */
static enum video_read decode_to(struct video_input *input, int64_t time, struct error *error)
{
    struct libav *libav = input->state;
    for (;;) {
        libav->begun = false; /* of the frames before, some may lack what they need */
        const int code = lib.avcodec_receive_frame(libav->decoder, libav->frame);
        if (code == AVERROR(EAGAIN)) {
            const enum video_read result = feed(input, error);
            if (result != VIDEO_READ_FRAME)
                return result;
        } else if (code == AVERROR_EOF || (code < 0 && ++libav->damaged > DAMAGED_AT_FIRST_MAX)) {
            return VIDEO_READ_END;
        } else if (code >= 0 && libav->frame->best_effort_timestamp >= time) {
            libav->begun = libav->waiting = libav->frame->best_effort_timestamp == time &&
                                            !libav->frame->decode_error_flags &&
                                            !(libav->frame->flags & AV_FRAME_FLAG_CORRUPT);
            return libav->begun ? VIDEO_READ_FRAME : VIDEO_READ_END;
        }
        lib.av_frame_unref(libav->frame);
    }
}

/* Decode the frame that is to be the next one: from the last place before `libav->access` from which that can be done,
 * or, where it does not come whole from there, one before it. Encoders may say too much of a key frame, and decoders
 * lose frames behind one. */
static enum video_read decode_from(struct video_input *input, uint64_t frame, struct error *error)
{
    struct libav *libav = input->state;
    enum video_read result = VIDEO_READ_END;
    while (result == VIDEO_READ_END && libav->access > 0)
        if (begin_at(libav, &libav->index.access[--libav->access]))
            result = decode_to(input, libav->index.times[frame], error);
    if (result != VIDEO_READ_END)
        return result;
    error_set(error, "frame %" PRIu64 " (the first is 0) cannot be decoded", frame);
    return VIDEO_READ_ERROR;
}

/* After seeking: the frame that was decoded, or the end, is what comes next. */
static enum video_read check_order(struct video_input *input, enum video_read result,
                                   struct error *error)
{
    const struct libav *libav = input->state;
    const uint64_t next = input->next_frame;
    if (next >= libav->index.frame_count || result == VIDEO_READ_CANCELLED ||
        result == VIDEO_READ_ERROR ||
        (result == VIDEO_READ_FRAME &&
         libav->frame->best_effort_timestamp == libav->index.times[next]))
        return result;
    return decode_from(input, next, error);
}

static bool libav_seek(struct video_input *input, uint64_t frames, enum video_read *result,
                       struct error *error)
{
    struct libav *libav = input->state;
    struct libav_index *index = &libav->index;
    switch (index->frame_count ? LIBAV_INDEXED : index_file(input, index, error)) {
    case LIBAV_NO_INDEX:
        return false;
    case LIBAV_INDEX_FAILED:
        *result = is_cancelled(input) ? VIDEO_READ_CANCELLED : VIDEO_READ_ERROR;
        return true;
    default:
        break;
    }
    libav->access = frames < index->frame_count ? libav_index_find(index, frames) : 0;
    libav->sought = libav->access > 0;
    if (!libav->sought) /* reading is as quick, and tells what there is to tell of the end */
        return false;
    libav->access++;
    *result = decode_from(input, frames, error);
    return true;
}

static bool libav_count(struct video_input *input, uint64_t *frames, struct error *error)
{
    struct libav *libav = input->state;
    const enum libav_indexed result = libav->index.frame_count
                                          ? LIBAV_INDEXED
                                          : index_file(input, &libav->index, error);
    *frames = libav->index.frame_count;
    return result == LIBAV_INDEXED ||
           (result == LIBAV_NO_INDEX &&
            error_set(
                error,
                "how many frames it has is not known: they have no times of their own; put it into a "
                "container first (ffmpeg -i IN -c copy OUT.mkv)"));
}

/* The next frame to `frame`, if it is what the first one was; `passed_over`: nobody wants it. */
static enum video_read next_frame(struct video_input *input, bool passed_over, struct error *error)
{
    struct libav *libav = input->state;
    enum video_read result = libav->waiting ? VIDEO_READ_FRAME : decode(input, error);
    if (libav->sought)
        result = check_order(input, result, error);
    if (result != VIDEO_READ_FRAME)
        return result;
    libav->waiting = false;
    const AVFrame *frame = libav->frame;
    char what[128];
    if (!same_picture(input, frame, what, sizeof what))
        return fail_frame(input, what, 0, error);
    input->time = frame->best_effort_timestamp;
    note_time(input, passed_over ? AV_NOPTS_VALUE : frame->best_effort_timestamp);
    return VIDEO_READ_FRAME;
}

static void copy_rows(const struct video_planes *planes, const AVFrame *from, void *const memory[],
                      const size_t pitch_bytes[])
{
    for (uint32_t p = 0; p < planes->count; p++)
        for (uint32_t row = 0; row < planes->plane[p].rows; row++)
            memcpy((uint8_t *)memory[p] + row * pitch_bytes[p],
                   from->data[p] + (ptrdiff_t)row * from->linesize[p], planes->plane[p].row_bytes);
}

static enum video_read libav_read(struct video_input *input, void *const memory[],
                                  const size_t pitch_bytes[], struct error *error)
{
    struct libav *libav = input->state;
    const enum video_read result = next_frame(input, !memory, error);
    if (result != VIDEO_READ_FRAME)
        return result;
    if (memory)
        copy_rows(&input->planes, libav->frame, memory, pitch_bytes);
    lib.av_frame_unref(libav->frame);
    return VIDEO_READ_FRAME;
}

/* --- Lending ------------------------------------------------------------------------------------------------------ */

/* An AVCodecContext.get_buffer2. */
static int get_buffer(AVCodecContext *decoder, AVFrame *frame, int flags)
{
    struct libav *libav = decoder->opaque;
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    if (pool && frame->format == libav->samples)
        return cox_av_pool_get_buffer2(pool, decoder, frame, flags);
    return lib.avcodec_default_get_buffer2(decoder, frame, flags);
}

/* The decoder has frames already, and wants others like them. */
static bool libav_lend(struct video_input *input, cox_runtime *runtime, size_t pitch_bytes[])
{
    struct libav *libav = input->state;
    const AVFrame *first = libav->frame;
    bool good = libav->waiting && libav->decoder->codec->capabilities & AV_CODEC_CAP_DR1;
    for (uint32_t p = 0; p < input->planes.count; p++) {
        good = good && first->linesize[p] > 0 && first->linesize[p] % COX_AV_ALIGN_BYTES == 0;
        pitch_bytes[p] = good ? (size_t)first->linesize[p] : 0;
    }
    struct cox_av_pool *pool = good && video_pitch_suits(runtime, &input->planes, pitch_bytes)
                                   ? cox_av_pool_create(runtime)
                                   : NULL;
    if (pool)
        memcpy(pool->pitch_bytes, pitch_bytes, sizeof pool->pitch_bytes);
    atomic_store(&libav->pool, pool);
    return pool != NULL;
}

/* A place for a frame that is lent; NULL: there are too many. */
static AVFrame **find_lent(struct libav *libav, const void *data)
{
    for (uint32_t i = 0; i < LENT_MAX; i++)
        if (data ? libav->lent[i] && libav->lent[i]->data[0] == data : !libav->lent[i])
            return &libav->lent[i];
    return NULL;
}

/* The buffers in which a frame begins; false where it is not of the pool, or is a window of what was decoded. */
static bool find_planes(struct cox_av_pool *pool, const AVFrame *frame, uint32_t count,
                        cox_buffer *planes[])
{
    bool found = cox_av_pool_find(pool, frame, planes);
    for (uint32_t p = 0; p < count && found; p++)
        found = frame->data[p] == cox_buffer_data(planes[p]);
    return found;
}

/* The frame where it has been decoded; of the few that were begun before frames were lent, or that the decoder has put
 * elsewhere, a copy. */
static AVFrame *lend_frame(struct video_input *input, cox_buffer *planes[])
{
    struct libav *libav = input->state;
    struct cox_av_pool *pool = atomic_load(&libav->pool);
    AVFrame *lent = lib.av_frame_alloc();
    if (!lent)
        return NULL;
    if (find_planes(pool, libav->frame, input->planes.count, planes)) {
        lib.av_frame_move_ref(lent, libav->frame);
        return lent;
    }
    lent->width = libav->frame->width;
    lent->height = libav->frame->height;
    lent->format = libav->frame->format;
    if (cox_av_pool_get(pool, lent, lent->width, lent->height) < 0 ||
        !cox_av_pool_find(pool, lent, planes)) {
        lib.av_frame_free(&lent);
        return NULL;
    }
    void *memory[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    for (uint32_t p = 0; p < input->planes.count; p++) {
        memory[p] = lent->data[p];
        pitch_bytes[p] = (size_t)lent->linesize[p];
    }
    copy_rows(&input->planes, libav->frame, memory, pitch_bytes);
    lib.av_frame_unref(libav->frame);
    return lent;
}

static enum video_read libav_borrow(struct video_input *input, cox_buffer *planes[],
                                    struct error *error)
{
    AVFrame **place = find_lent(input->state, NULL);
    const enum video_read result = next_frame(input, false, error);
    if (result != VIDEO_READ_FRAME)
        return result;
    AVFrame *lent = place ? lend_frame(input, planes) : NULL;
    if (!lent)
        return fail_frame(input, "no memory for it", 0, error);
    *place = lent;
    return VIDEO_READ_FRAME;
}

/* What is decoded is no file. */
static bool libav_kept(const struct video_input *input, cox_buffer *const planes[],
                       struct error *error)
{
    (void)input, (void)planes, (void)error;
    return true;
}

static void libav_give_back(struct video_input *input, cox_buffer *planes[])
{
    AVFrame **place = find_lent(input->state, cox_buffer_data(planes[0]));
    if (place)
        lib.av_frame_free(place);
}

/* The decoder holds frames until it ends. */
static void libav_reclaim(struct video_input *input)
{
    struct libav *libav = input->state;
    struct cox_av_pool *pool = atomic_exchange(&libav->pool, NULL);
    lib.av_frame_unref(libav->frame);
    lib.avcodec_free_context(&libav->decoder);
    cox_av_pool_unref(&pool);
}

static const struct video_lender lender = {.lend = libav_lend,
                                           .borrow = libav_borrow,
                                           .kept = libav_kept,
                                           .give_back = libav_give_back,
                                           .reclaim = libav_reclaim};

/* --- What the stream says of itself ------------------------------------------------------------------------------- */

static const void *frame_data(const AVFrame *frame, enum AVFrameSideDataType type, size_t bytes)
{
    const AVFrameSideData *found = lib.av_frame_get_side_data(frame, type);
    return found && found->size >= bytes ? found->data : NULL;
}

static bool is_interlaced(const AVFrame *frame)
{
#ifdef AV_FRAME_FLAG_INTERLACED
    return frame->flags & AV_FRAME_FLAG_INTERLACED;
#else
    return frame->interlaced_frame;
#endif
}

static void take_light(struct video_format *format, const AVMasteringDisplayMetadata *display,
                       const AVContentLightMetadata *content)
{
    if (display && display->has_luminance && display->max_luminance.den)
        format->mastering_peak_nits = fmax(av_q2d(display->max_luminance), 0);
    if (content)
        format->max_cll_nits = content->MaxCLL;
}

/* The frame's word counts before the container's. */
static void take_metadata(struct video_format *format, const AVStream *stream, const AVFrame *frame)
{
    take_light(format,
               libav_stream_data(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
                                 offsetof(AVMasteringDisplayMetadata, has_luminance)),
               libav_stream_data(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
                                 sizeof(AVContentLightMetadata)));
    take_light(format,
               frame_data(frame, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
                          sizeof(AVMasteringDisplayMetadata)),
               frame_data(frame, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
                          sizeof(AVContentLightMetadata)));
}

static void take_range_and_site(struct video_format *format, const AVCodecParameters *container,
                                const AVFrame *frame)
{
    enum AVColorRange range = frame->color_range ? frame->color_range : container->color_range;
    enum AVChromaLocation site = frame->chroma_location ? frame->chroma_location
                                                        : container->chroma_location;
    format->has_range = range == AVCOL_RANGE_MPEG || range == AVCOL_RANGE_JPEG;
    if (format->has_range)
        format->pixel.range = range == AVCOL_RANGE_JPEG ? COX_RANGE_FULL : COX_RANGE_LIMITED;
    format->pixel.site = cox_av_site(site);
}

/* Transfer, primaries and matrix. What this program would show in wrong colours is refused. */
static bool take_colours(struct video_format *format, const AVCodecParameters *container,
                         const AVFrame *frame, enum AVColorTransferCharacteristic *transfer,
                         struct error *error)
{
    enum AVColorPrimaries primaries = frame->color_primaries;
    enum AVColorSpace matrix = frame->colorspace;
    *transfer = frame->color_trc;
    if (primaries == AVCOL_PRI_UNSPECIFIED || !primaries)
        primaries = container->color_primaries;
    if (*transfer == AVCOL_TRC_UNSPECIFIED || !*transfer)
        *transfer = container->color_trc;
    if (matrix == AVCOL_SPC_UNSPECIFIED)
        matrix = container->color_space;
    format->has_transfer = *transfer == AVCOL_TRC_SMPTE2084 || *transfer == AVCOL_TRC_ARIB_STD_B67;
    format->transfer = *transfer == AVCOL_TRC_ARIB_STD_B67 ? COX_TRANSFER_HLG : COX_TRANSFER_PQ;
    bool wide = primaries == AVCOL_PRI_BT2020 ||
                (primaries == AVCOL_PRI_UNSPECIFIED && matrix == AVCOL_SPC_BT2020_NCL);
    bool narrow = primaries == AVCOL_PRI_BT709 ||
                  (primaries == AVCOL_PRI_UNSPECIFIED && matrix == AVCOL_SPC_BT709);
    format->has_primaries = wide || narrow;
    format->primaries = narrow ? COX_PRIMARIES_BT709 : COX_PRIMARIES_BT2020;
    const enum cox_video_layout layout = format->pixel.layout;
    const bool rgb = layout == COX_VIDEO_RGBA || layout == COX_VIDEO_BGRA ||
                     layout == COX_VIDEO_GBR;
    if (!(rgb && matrix == AVCOL_SPC_RGB) && matrix != AVCOL_SPC_UNSPECIFIED &&
        matrix != AVCOL_SPC_BT2020_NCL && matrix != AVCOL_SPC_BT709)
        return error_set(error,
                         "its colours are coded as %s: only bt2020nc and bt709 are supported",
                         name_or(lib.av_color_space_name(matrix)));
    return true;
}

/* Its base layer alone is no picture that anybody should see: it wants Dolby's own transformation. */
static bool is_dolby_only(const AVStream *stream)
{
    const AVDOVIDecoderConfigurationRecord *dolby =
        libav_stream_data(stream, AV_PKT_DATA_DOVI_CONF,
                          offsetof(AVDOVIDecoderConfigurationRecord,
                                   dv_bl_signal_compatibility_id) +
                              1);
    return dolby && dolby->dv_profile == 5;
}

static uint64_t count_frames(const AVFormatContext *container, const AVStream *stream,
                             AVRational rate)
{
    if (stream->nb_frames > 0)
        return (uint64_t)stream->nb_frames;
    if (rate.num <= 0 || rate.den <= 0)
        return 0;
    int64_t frames = 0;
    if (stream->duration > 0)
        frames = lib.av_rescale_q(stream->duration, stream->time_base, av_inv_q(rate));
    else if (container->duration > 0)
        frames = lib.av_rescale_q(container->duration, AV_TIME_BASE_Q, av_inv_q(rate));
    return frames > 0 ? (uint64_t)frames : 0;
}

static struct video_rational rational(AVRational r)
{
    if (r.num <= 0 || r.den <= 0)
        return (struct video_rational){0, 0};
    return (struct video_rational){(uint32_t)r.num, (uint32_t)r.den};
}

static bool describe(struct video_input *input, struct error *error)
{
    struct libav *libav = input->state;
    const AVFrame *frame = libav->frame;
    AVStream *stream = libav->container->streams[libav->stream];
    struct video_format *format = &input->format;
    enum AVColorTransferCharacteristic transfer;
    if (cox_av_format(frame->format, &format->pixel) < 0)
        return error_set(
            error,
            "samples of the format %s are not supported: convert them first (ffmpeg -i IN -pix_fmt yuv420p10le OUT)",
            name_or(lib.av_get_pix_fmt_name(frame->format)));
    if (is_interlaced(frame))
        return error_set(error,
                         "interlaced video: deinterlace it first (ffmpeg -i IN -vf bwdif OUT)");
    if (is_dolby_only(stream))
        return error_set(
            error, "Dolby Vision of profile 5, which has no HDR10 picture in it, is not supported");
    if (frame->width <= 0 || frame->height <= 0)
        return error_set(error, "the frames have no pixels");
    if (!video_planes_of(&input->planes, &format->pixel, (uint64_t)frame->width,
                         (uint64_t)frame->height, error) ||
        !take_colours(format, stream->codecpar, frame, &transfer, error))
        return false;
    libav->samples = frame->format;
    format->width = (uint32_t)frame->width;
    format->height = (uint32_t)frame->height;
    format->interlacing = 'p';
    AVRational rate = lib.av_guess_frame_rate(libav->container, stream, NULL);
    format->rate = rational(rate);
    format->tick = rational(stream->time_base);
    format->aspect = rational(lib.av_guess_sample_aspect_ratio(libav->container, stream,
                                                               libav->frame));
    format->frames = count_frames(libav->container, stream, rate);
    take_range_and_site(format, stream->codecpar, frame);
    const AVDictionaryEntry *piece = lib.av_dict_get(libav->container->metadata, "COXSWAIN_PIECE",
                                                     NULL, 0);
    if (piece)
        snprintf(format->piece, sizeof format->piece, "%s", piece->value);
    take_metadata(format, stream, frame);
    char prefix[64];
    int name = (int)strcspn(libav->container->iformat->name, ",");
    bool said = format->has_transfer || transfer == AVCOL_TRC_UNSPECIFIED;
    format->other_transfer = !said;
    snprintf(prefix, sizeof prefix, "%.16s in %.*s%s%.16s",
             lib.avcodec_get_name(libav->decoder->codec_id), name < 16 ? name : 16,
             libav->container->iformat->name, said ? "" : ", transfer ",
             said ? "" : name_or(lib.av_color_transfer_name(transfer)));
    video_describe(format, prefix);
    return true;
}

/* A number of Matroska's: the leading zeros of the first byte say how many bytes follow. All ones = unknown; that and
 * what is damaged give 0. */
static uint64_t ebml_size(const uint8_t *bytes, size_t count, size_t *at)
{
    if (*at >= count || !bytes[*at])
        return 0;
    int more = __builtin_clz(bytes[*at]) - 24;
    uint64_t value = bytes[(*at)++] & (0x7fU >> more), ones = (UINT64_C(1) << (7 * (more + 1))) - 1;
    for (int i = 0; i < more; i++) {
        if (*at >= count)
            return 0;
        value = value << 8 | bytes[(*at)++];
    }
    return value == ones ? 0 : value;
}

/* How many bytes of a Matroska file are missing from its end, which libavformat says nothing of. */
static uint64_t missing_bytes(const char *path)
{
    uint8_t bytes[512];
    struct stat about;
    size_t count = look_further(path, bytes, sizeof bytes), at = 4;
    if (count < 16 || memcmp(bytes, "\x1a\x45\xdf\xa3", 4) || stat(path, &about))
        return 0;
    uint64_t head = ebml_size(bytes, count, &at);
    if (head > count || at + head + 4 > count || memcmp(bytes + at + head, "\x18\x53\x80\x67", 4))
        return 0;
    at += (size_t)head + 4;
    uint64_t body = ebml_size(bytes, count, &at), there = (uint64_t)about.st_size;
    return body && body < INT64_MAX && at + body > there ? at + body - there : 0;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static bool open_decoder(struct libav *libav, struct error *error)
{
    const AVCodec *codec = NULL;
    int stream = lib.av_find_best_stream(libav->container, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (stream == AVERROR_DECODER_NOT_FOUND)
        return error_set(error, "there is no decoder for its video");
    if (stream < 0 || !codec)
        return error_set(error, "it holds no video");
    libav->stream = stream;
    for (unsigned i = 0; i < libav->container->nb_streams; i++)
        if ((int)i != stream)
            libav->container->streams[i]->discard = AVDISCARD_ALL;
    libav->decoder = lib.avcodec_alloc_context3(codec);
    if (!libav->decoder)
        return error_set(error, "out of memory");
    int code = lib.avcodec_parameters_to_context(libav->decoder,
                                                 libav->container->streams[stream]->codecpar);
    libav->decoder->thread_count = 0; /* as many as there are cores */
    libav->decoder->max_pixels = (int64_t)VIDEO_PIXELS_MAX;
    libav->decoder->opaque = libav;
    libav->decoder->get_buffer2 = get_buffer;
#if LIBAVCODEC_VERSION_MAJOR < 60 /* later versions take it for granted */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    libav->decoder->thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
    struct video_threads before;
    video_threads_list(&before);
    if (code >= 0)
        code = lib.avcodec_open2(libav->decoder, codec, NULL);
    video_threads_list(&libav->threads);
    video_threads_without(&libav->threads, &before);
    return code < 0 ? libav_fail("its video cannot be decoded", code, error) : true;
}

static void libav_close(struct video_input *input)
{
    struct libav *libav = input->state;
    lib.av_frame_free(&libav->frame);
    lib.av_packet_free(&libav->packet);
    lib.avcodec_free_context(&libav->decoder);
    lib.avformat_close_input(&libav->container);
    libav_index_free(&libav->index);
    free(libav->path);
    free(libav);
    input->state = NULL;
}

static bool is_regular(const char *path)
{
    struct stat about;
    return strcmp(path, "-") && !stat(path, &about) && S_ISREG(about.st_mode);
}

static bool libav_open(struct video_input *input, struct error *error)
{
    if (!is_regular(input->path))
        return error_set(error,
                         "a container is read from a file only, not from standard input or a pipe: "
                         "let ffmpeg make y4m of it (-strict -1 -f yuv4mpegpipe -)");
    if (!libav_load())
        return error_set(error, "containers cannot be read: %s", libav_loading_error);
    struct libav *libav = calloc(1, sizeof *libav);
    if (!libav)
        return error_set(error, "out of memory");
    input->state = libav;
    libav->position = -1;
    libav->time = AV_NOPTS_VALUE;
    uint64_t missing = missing_bytes(input->path);
    if (missing)
        snprintf(libav->cut, sizeof libav->cut,
                 "the file is cut off, %" PRIu64 " bytes are missing", missing);
    libav->path = strdup(input->path);
    input->cut = missing > 0;
    libav->packet = lib.av_packet_alloc();
    libav->frame = lib.av_frame_alloc();
    if (!libav->path || !libav->packet || !libav->frame) {
        error_set(error, "out of memory");
        goto fail;
    }
    libav->container = libav_open_container(input->path, (AVIOInterruptCB){is_cancelled, input},
                                            error);
    if (!libav->container || !open_decoder(libav, error))
        goto fail;
    switch (decode(input, error)) {
    case VIDEO_READ_FRAME:
        break;
    case VIDEO_READ_END:
        error_set(error, "there is not one whole frame in it");
        goto fail;
    default:
        goto fail;
    }
    libav->waiting = true;
    if (describe(input, error))
        return true;
fail:
    libav_close(input);
    return false;
}

/* The decoder's threads are those that opening it started. */
static void libav_maker(struct video_input *input, struct video_maker *maker)
{
    struct libav *libav = input->state;
    const uint64_t ns = video_threads_cpu_ns(&libav->threads);
    if (!libav->asked)
        libav->threads_first_ns = ns;
    libav->asked = true;
    maker->kind = VIDEO_MAKER_DECODER;
    maker->cpu_ns = ns > libav->threads_first_ns ? ns - libav->threads_first_ns : 0;
    snprintf(maker->name, sizeof maker->name, "%s", lib.avcodec_get_name(libav->decoder->codec_id));
}

const struct video_reader video_reader_libav = {.open = libav_open,
                                                .read = libav_read,
                                                .count = libav_count,
                                                .seek = libav_seek,
                                                .close = libav_close,
                                                .lender = &lender,
                                                .maker = libav_maker};

#endif
