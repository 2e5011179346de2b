/* Dolby Vision's metadata of each frame. In HEVC the decoder gives it with the frame. In AV1 it is a
 * message in the frame's packet, and is kept here until the frame comes.
 *
 * A frame without metadata repeats those of the frame before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <libavutil/dovi_meta.h>
#include <stdlib.h>
#include <string.h>

/* --- AV1 --- */

/* More than the frames that a decoder holds. */
enum { KEPT = 64 };

struct libav_dolby_kept {
    struct libav_dolby_message {
        int64_t time;
        bool sent, damaged;
        struct cox_dolby_frame frame;
    } messages[KEPT];
    uint32_t count;                /* messages so far */
    struct cox_dolby_frame before; /* in the order of decoding; profile 0 = none */
};

/* A number of AV1 in groups of 7 bits (leb128). False at the end of the bytes. */
static bool read_leb128(const uint8_t *bytes, size_t count, size_t *at, uint64_t *value)
{
    *value = 0;
    for (unsigned i = 0; i < 8 && *at < count; i++) {
        const uint8_t byte = bytes[(*at)++];
        *value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* Keep the message of a metadata OBU if it is Dolby's. */
static void keep_message(struct libav_dolby_kept *kept, int64_t time, const uint8_t *bytes,
                         size_t count)
{
    enum { ITU_T_T35 = 4 };
    static const uint8_t dolby[] = {0xb5, 0x00, 0x3b, 0x00, 0x00, 0x08, 0x00};
    uint64_t type;
    size_t at = 0;
    if (!read_leb128(bytes, count, &at, &type) || type != ITU_T_T35 || count - at < sizeof dolby ||
        memcmp(bytes + at, dolby, sizeof dolby) != 0)
        return;

    struct libav_dolby_message *message = &kept->messages[kept->count++ % KEPT];
    const struct cox_dolby_frame *before = kept->before.profile ? &kept->before : NULL;
    *message = (struct libav_dolby_message){.time = time, .sent = true};
    message->damaged = cox_dolby_read_av1(bytes + at, count - at, before, &message->frame) !=
                       COX_OK;
    if (!message->damaged)
        kept->before = message->frame;
}

void libav_dolby_packet(struct libav *libav, const AVPacket *packet)
{
    enum { METADATA = 5 };
    const uint8_t *bytes = packet->data;
    const size_t count = packet->size > 0 ? (size_t)packet->size : 0;
    if (libav->decoder->codec_id != AV_CODEC_ID_AV1 || packet->pts == AV_NOPTS_VALUE)
        return;
    if (!libav->kept)
        libav->kept = calloc(1, sizeof *libav->kept);

    /* Units of the open bitstream (OBU). */
    for (size_t at = 0; libav->kept && at < count;) {
        const uint8_t head = bytes[at++];
        uint64_t size = 0;
        if (head & 0x04) /* an extension */
            at++;
        if (head & 0x80 || !(head & 0x02) || !read_leb128(bytes, count, &at, &size) ||
            size > count - at)
            return;
        if ((head >> 3 & 15) == METADATA)
            keep_message(libav->kept, packet->pts, bytes + at, (size_t)size);
        at += (size_t)size;
    }
}

static cox_status take_message(const struct libav *libav, struct cox_dolby_frame *dolby)
{
    for (uint32_t i = 0; libav->kept && i < KEPT; i++) {
        const struct libav_dolby_message *message = &libav->kept->messages[i];
        if (!message->sent || message->time != libav->frame->pts)
            continue;
        if (message->damaged)
            return COX_E_INVALID;
        *dolby = message->frame;
    }
    return COX_OK;
}

/* --- Every codec --- */

/* Whether the container says that its frames have no ordinary colours. */
static bool is_dolby_only(const struct libav *libav)
{
    enum {
        LEAST_BYTES = offsetof(AVDOVIDecoderConfigurationRecord, dv_bl_signal_compatibility_id)
    };
    const AVDOVIDecoderConfigurationRecord *record =
        libav_stream_data(libav->container->streams[libav->stream], AV_PKT_DATA_DOVI_CONF,
                          LEAST_BYTES + 1);

    return record && (record->dv_profile == 5 ||
                      (record->dv_profile == 10 && !record->dv_bl_signal_compatibility_id));
}

static cox_status read_metadata(const struct libav *libav, struct cox_dolby_frame *dolby)
{
    const AVFrameSideData *data = lib.av_frame_get_side_data(libav->frame,
                                                             AV_FRAME_DATA_DOVI_RPU_BUFFER);
    const struct cox_dolby_frame *before = dolby->profile ? dolby : NULL;
    if (data)
        return cox_dolby_read_hevc(data->data, data->size, before, dolby);
    return take_message(libav, dolby);
}

bool libav_take_dolby(struct libav *libav, struct error *error)
{
    struct cox_dolby_frame *dolby = &libav->dolby;
    const cox_status status = read_metadata(libav, dolby);
    if (status != COX_OK)
        return error_set(error, "its Dolby Vision metadata are damaged or not supported");

    if (is_dolby_only(libav) && !dolby->profile)
        return error_set(error,
                         "Dolby Vision without an HDR10 picture, and its metadata are missing");
    if (dolby->profile == 5 && !dolby->has_colours)
        return error_set(error, "Dolby Vision of profile 5 without the matrices of its colours");
    return true;
}

bool libav_dolby_reshapes(const struct libav *libav)
{
    return libav->dolby.profile && !libav->dolby.has_residual;
}

void libav_dolby_restart(struct libav *libav)
{
    libav->dolby = (struct cox_dolby_frame){0};
    if (libav->kept)
        memset(libav->kept, 0, sizeof *libav->kept);
}

#endif
