/* The devices that libavutil knows, and the decoders that use them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_hardware.h"
#include "libav_messages.h"

#include <stdio.h>
#include <string.h>

/* "cuda, vaapi, vulkan" */
static void list_names(char *text, size_t bytes)
{
    size_t used = 0;
    enum AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
    *text = 0;
    while ((type = lib.av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE && used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "",
                                 lib.av_hwdevice_get_type_name(type));
}

static void want(struct libav_devices *wanted, enum AVHWDeviceType type)
{
    for (uint32_t i = 0; i < wanted->count; i++)
        if (wanted->types[i] == type)
            return;
    if (wanted->count < LIBAV_DEVICES_MAX)
        wanted->types[wanted->count++] = type;
}

/* Interfaces that are made for decoding come first, then all others. */
static void want_all(struct libav_devices *wanted)
{
    static const enum AVHWDeviceType first[] = {AV_HWDEVICE_TYPE_CUDA, AV_HWDEVICE_TYPE_VAAPI,
                                                AV_HWDEVICE_TYPE_VDPAU};
    enum AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE, known[LIBAV_DEVICES_MAX];
    uint32_t count = 0;
    while ((type = lib.av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE &&
           count < LIBAV_DEVICES_MAX)
        known[count++] = type;

    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        for (uint32_t k = 0; k < count; k++)
            if (known[k] == first[i])
                want(wanted, known[k]);
    for (uint32_t k = 0; k < count; k++)
        want(wanted, known[k]);
}

bool libav_devices_wanted(struct libav_devices *wanted, const char *hwdec, struct error *error)
{
    char name[LIBAV_DEVICE_BYTES], names[160];
    *wanted = (struct libav_devices){0};
    if (!hwdec || !strcmp(hwdec, "none"))
        return true;
    if (!strcmp(hwdec, "auto")) {
        want_all(wanted);
        return true;
    }

    const size_t length = strcspn(hwdec, ":");
    snprintf(name, sizeof name, "%.*s", (int)length, hwdec);
    const enum AVHWDeviceType type = lib.av_hwdevice_find_type_by_name(name);
    if (type == AV_HWDEVICE_TYPE_NONE) {
        list_names(names, sizeof names);
        return error_set(error, "unknown device '%s'; expected none, auto or one of %s", name,
                         names);
    }

    want(wanted, type);
    if (hwdec[length])
        snprintf(wanted->which, sizeof wanted->which, "%s", hwdec + length + 1);
    return true;
}

void libav_devices_refuse(struct libav_devices *wanted, enum AVHWDeviceType type, const char *why)
{
    const size_t used = strlen(wanted->why);
    snprintf(wanted->why + used, sizeof wanted->why - used, "%s%s: %s", used ? "; " : "",
             lib.av_hwdevice_get_type_name(type), why);
}

AVBufferRef *libav_device_open(enum AVHWDeviceType type, const char *which, char *why, size_t bytes)
{
    AVBufferRef *device = NULL;
    char reason[LIBAV_MESSAGE_BYTES], text[96];

    libav_messages_keep(reason, sizeof reason);
    const int code = lib.av_hwdevice_ctx_create(&device, type, which && *which ? which : NULL, NULL,
                                                0);
    libav_messages_keep(NULL, 0);
    if (code >= 0)
        return device;

    snprintf(text, sizeof text, "no such device was found");
    if (code != AVERROR_EXTERNAL)
        lib.av_strerror(code, text, sizeof text);
    snprintf(why, bytes, "%s", *reason ? reason : text);
    return NULL;
}

/* Whether this decoder takes an AVCodecContext.hw_device_ctx of the type. */
static bool takes_device(const AVCodec *codec, enum AVHWDeviceType type, enum AVPixelFormat *format)
{
    const AVCodecHWConfig *config;
    for (int i = 0; !codec->wrapper_name && (config = lib.avcodec_get_hw_config(codec, i)); i++)
        if (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX &&
            config->device_type == type) {
            *format = config->pix_fmt;
            return true;
        }
    return false;
}

const AVCodec *libav_device_decoder(const AVCodec *usual, enum AVHWDeviceType type,
                                    enum AVPixelFormat *format)
{
    if (takes_device(usual, type, format))
        return usual;

    /* Libraries such as libdav1d decode in software only. */
    const AVCodec *codec;
    void *state = NULL;
    while ((codec = lib.av_codec_iterate(&state)))
        if (lib.av_codec_is_decoder(codec) && codec->id == usual->id &&
            takes_device(codec, type, format))
            return codec;
    return NULL;
}

#endif
