/* SPDX-License-Identifier: Apache-2.0 */
#if COX_HAVE_LIBAV

#include "libav_calls.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char libav_containers[] =
    "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,mpegts,mpeg,mxf,nut,avi,flv,ivf,obu,ogg,asf,"
    "hevc,h264,av1,vvc";
struct libav_calls lib;
char libav_loading_error[160];

/* Set one pointer of `lib`. ISO C cannot convert an object pointer to a function pointer, so its
 * bytes are copied. */
static bool find(void *handle, const char *name, void *pointer)
{
    void *found = dlsym(handle, name);
    memcpy(pointer, &found, sizeof found);
    return found;
}

#define LIBAV_FIND(name) found = find(handle, #name, &lib.name) && found;

static bool load(void)
{
    void *handle = dlopen("libavformat.so." AV_STRINGIFY(LIBAVFORMAT_VERSION_MAJOR),
                          RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        snprintf(libav_loading_error, sizeof libav_loading_error, "%s",
                 why ? why : "libavformat is missing");
        return false;
    }

    /* dlsym also searches its dependencies, among them the other two libraries. */
    bool found = true;
    LIBAV_FUNCTIONS(LIBAV_FIND)
    if (!found || lib.avformat_version() >> 16 != LIBAVFORMAT_VERSION_MAJOR ||
        lib.avcodec_version() >> 16 != LIBAVCODEC_VERSION_MAJOR ||
        lib.avutil_version() >> 16 != LIBAVUTIL_VERSION_MAJOR) {
        snprintf(libav_loading_error, sizeof libav_loading_error,
                 "libavformat, libavcodec and libavutil have incompatible versions");
        return false;
    }

    lib.av_log_set_level(AV_LOG_QUIET); /* this program reports each error once */
    return true;
}

bool libav_load(void)
{
    static bool tried, loaded;
    if (!tried)
        loaded = load();
    tried = true;
    return loaded;
}

bool libav_fail(const char *what, int code, struct error *error)
{
    char why[96];
    lib.av_strerror(code, why, sizeof why);
    return error_set(error, "%s: %s", what, why);
}

/* Look at the streams, for which libav decodes frames. */
static int find_streams(AVFormatContext *container, uint64_t pixels_max)
{
    char pixels[24];
    const unsigned count = container->nb_streams; /* more may be found: they have no options */
    AVDictionary **options = calloc(count + 1, sizeof(AVDictionary *));
    if (!options)
        return AVERROR(ENOMEM);

    snprintf(pixels, sizeof pixels, "%" PRIu64, pixels_max);
    for (unsigned i = 0; i < count; i++)
        lib.av_dict_set(&options[i], "max_pixels", pixels, 0);
    const int code = lib.avformat_find_stream_info(container, options);

    for (unsigned i = 0; i < count; i++)
        lib.av_dict_free(&options[i]);
    free(options);
    return code;
}

static bool note_colours(struct libav_named *named, const AVFormatContext *container)
{
    named->count = 0;
    named->streams = calloc(container->nb_streams + 1, sizeof *named->streams);
    if (!named->streams)
        return false;

    for (; named->count < container->nb_streams; named->count++) {
        const AVCodecParameters *from = container->streams[named->count]->codecpar;
        named->streams[named->count] = (struct libav_colours){
            .primaries = from->color_primaries,
            .transfer = from->color_trc,
            .matrix = from->color_space,
            .range = from->color_range,
            .site = from->chroma_location,
        };
    }
    return true;
}

AVFormatContext *libav_open_container(const char *path, uint64_t pixels_max,
                                      AVIOInterruptCB interrupt, struct libav_named *named,
                                      struct error *error)
{
    size_t bytes = strlen(path) + sizeof "file:";
    char *url = malloc(bytes);
    AVFormatContext *container = lib.avformat_alloc_context();
    if (!url || !container) {
        free(url);
        lib.avformat_close_input(&container);
        error_set(error, "out of memory");
        return NULL;
    }

    snprintf(url, bytes, "file:%s", path);
    container->interrupt_callback = interrupt;
    AVDictionary *options = NULL;
    int code = AVERROR(ENOMEM);

    /* Nothing is opened without these limits. */
    if (lib.av_dict_set(&options, "protocol_whitelist", "file", 0) >= 0 &&
        lib.av_dict_set(&options, "format_whitelist", libav_containers, 0) >= 0)
        code = lib.avformat_open_input(&container, url, NULL, &options);
    lib.av_dict_free(&options);
    free(url);
    if (code < 0) {
        libav_fail("the container cannot be opened", code, error);
        lib.avformat_close_input(&container);
        return NULL;
    }

    code = AVERROR(ENOMEM);
    if (!named || note_colours(named, container))
        code = find_streams(container, pixels_max);
    if (code < 0) {
        if (named) {
            free(named->streams);
            named->streams = NULL;
        }
        libav_fail("the container cannot be read", code, error);
        lib.avformat_close_input(&container);
    }
    return container;
}

void libav_discard_others(AVFormatContext *container, int stream)
{
    for (unsigned i = 0; i < container->nb_streams; i++)
        if ((int)i != stream)
            container->streams[i]->discard = AVDISCARD_ALL;
}

const void *libav_stream_data(const AVStream *stream, enum AVPacketSideDataType type, size_t bytes)
{
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    const AVPacketSideData *found =
        lib.av_packet_side_data_get(stream->codecpar->coded_side_data,
                                    stream->codecpar->nb_coded_side_data, type);

    return found && found->size >= bytes ? found->data : NULL;
#else
    size_t size = 0;
    const void *found = lib.av_stream_get_side_data(stream, type, &size);
    return size >= bytes ? found : NULL;
#endif
}

#endif
