/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware.h"

#if COX_HAVE_LIBAV

#include "libav_hardware.h"
#include "libav_encoding.h"

#include <string.h>

enum { LINE_BYTES = 1024 };

static bool load(struct error *error)
{
    return libav_load() || error_set(error, "libavcodec cannot be used: %s", libav_loading_error);
}

bool hardware_find(const char *hwdec, struct error *error)
{
    struct libav_devices wanted;
    if (!strcmp(hwdec, "none"))
        return true;
    return load(error) && libav_devices_wanted(&wanted, hwdec, error);
}

static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length)
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
            return true;
    return false;
}

/* The codecs that a type of device decodes; "" = none. */
static void list_codecs(enum AVHWDeviceType type, char *text, size_t bytes)
{
    const AVCodec *codec;
    enum AVPixelFormat format;
    void *state = NULL;
    size_t used = 0;
    *text = 0;

    while ((codec = lib.av_codec_iterate(&state)) && used < bytes) {
        const char *name = lib.avcodec_get_name(codec->id);
        if (codec->type == AVMEDIA_TYPE_VIDEO && lib.av_codec_is_decoder(codec) &&
            libav_device_decoder(codec, type, &format) && !has_word(text, name))
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "", name);
    }
}

static void list_devices(FILE *to)
{
    enum AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
    while ((type = lib.av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE) {
        char codecs[LINE_BYTES], why[LIBAV_WHY_BYTES] = "opens";
        AVBufferRef *device = libav_device_open(type, NULL, why, sizeof why);
        lib.av_buffer_unref(&device);

        list_codecs(type, codecs, sizeof codecs);
        fprintf(to, "device    %-10s %s; decodes %s\n", lib.av_hwdevice_get_type_name(type), why,
                *codecs ? codecs : "nothing");
    }
}

static void list_encoders(FILE *to)
{
    const AVCodec *codec;
    void *state = NULL;
    while ((codec = lib.av_codec_iterate(&state))) {
        struct error error = {"opens"};
        if (codec->type != AVMEDIA_TYPE_VIDEO || !lib.av_codec_is_encoder(codec) ||
            !libav_encoder_is_hardware(codec))
            continue;

        libav_encoder_try(codec, &error);
        fprintf(to, "encoder   %-16s %s\n", codec->name, error.text);
    }
}

bool hardware_list(FILE *to, struct error *error)
{
    if (!load(error))
        return false;
    list_devices(to);
    list_encoders(to);
    return true;
}

#else

#include <string.h>

bool hardware_find(const char *hwdec, struct error *error)
{
    return !strcmp(hwdec, "none") ||
           error_set(error, "this program was built without libavcodec, which knows the devices");
}

bool hardware_list(FILE *to, struct error *error)
{
    (void)to;
    return error_set(error, "this program was built without libavcodec");
}

#endif
