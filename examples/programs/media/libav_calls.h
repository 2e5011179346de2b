/* FFmpeg's libraries, loaded when they are first needed. With their dependencies they are over a
 * hundred libraries: loading them with the program would cost every run 0.1 s and 30 MB.
 *
 * Thread-safety: libav_load from one thread at a time; the functions of `lib` as FFmpeg says.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_CALLS_H
#define LIBAV_CALLS_H

#include "common/error.h"

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/hwcontext.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>

#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
#define LIBAV_SIDE_DATA(X) X(av_packet_side_data_get) X(av_packet_side_data_new)
#else
#define LIBAV_SIDE_DATA(X) X(av_stream_get_side_data) X(av_stream_new_side_data)
#endif

#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(61, 13, 100)
#define LIBAV_SUPPORTED(X) X(avcodec_get_supported_config)
#else
#define LIBAV_SUPPORTED(X)
#endif

#define LIBAV_FUNCTIONS(X)             \
    X(av_buffer_create)                \
    X(av_buffer_ref)                   \
    X(av_buffer_unref)                 \
    X(av_codec_is_decoder)             \
    X(av_codec_is_encoder)             \
    X(av_codec_iterate)                \
    X(av_color_primaries_name)         \
    X(av_color_range_name)             \
    X(av_color_space_name)             \
    X(av_color_transfer_name)          \
    X(av_dict_copy)                    \
    X(av_dict_free)                    \
    X(av_dict_get)                     \
    X(av_dict_set)                     \
    X(av_find_best_stream)             \
    X(av_frame_alloc)                  \
    X(av_frame_clone)                  \
    X(av_frame_copy_props)             \
    X(av_frame_apply_cropping)         \
    X(av_frame_free)                   \
    X(av_frame_get_buffer)             \
    X(av_frame_get_side_data)          \
    X(av_frame_is_writable)            \
    X(av_frame_move_ref)               \
    X(av_frame_remove_side_data)       \
    X(av_frame_unref)                  \
    X(av_free)                         \
    X(av_freep)                        \
    X(av_get_media_type_string)        \
    X(av_get_pix_fmt)                  \
    X(av_get_pix_fmt_name)             \
    X(av_guess_frame_rate)             \
    X(av_guess_sample_aspect_ratio)    \
    X(av_hwdevice_ctx_create)          \
    X(av_hwdevice_find_type_by_name)   \
    X(av_hwdevice_get_type_name)       \
    X(av_hwdevice_iterate_types)       \
    X(av_hwframe_ctx_alloc)            \
    X(av_hwframe_ctx_init)             \
    X(av_hwframe_get_buffer)           \
    X(av_hwframe_transfer_data)        \
    X(av_interleaved_write_frame)      \
    X(av_log_set_callback)             \
    X(av_log_set_level)                \
    X(av_malloc)                       \
    X(av_mallocz)                      \
    X(av_match_list)                   \
    X(av_opt_find)                     \
    X(av_opt_set)                      \
    X(av_packet_alloc)                 \
    X(av_packet_free)                  \
    X(av_packet_rescale_ts)            \
    X(av_packet_unref)                 \
    X(av_pix_fmt_desc_get)             \
    X(av_probe_input_format2)          \
    X(av_read_frame)                   \
    X(av_reduce)                       \
    X(av_rescale_q)                    \
    X(av_seek_frame)                   \
    X(av_strerror)                     \
    X(av_stristr)                      \
    X(av_write_trailer)                \
    X(avcodec_align_dimensions2)       \
    X(avcodec_alloc_context3)          \
    X(avcodec_default_get_buffer2)     \
    X(avcodec_find_encoder)            \
    X(avcodec_find_encoder_by_name)    \
    X(avcodec_flush_buffers)           \
    X(avcodec_free_context)            \
    X(avcodec_get_class)               \
    X(avcodec_get_hw_config)           \
    X(avcodec_get_name)                \
    X(avcodec_open2)                   \
    X(avcodec_parameters_copy)         \
    X(avcodec_parameters_from_context) \
    X(avcodec_parameters_to_context)   \
    X(avcodec_receive_frame)           \
    X(avcodec_receive_packet)          \
    X(avcodec_send_frame)              \
    X(avcodec_send_packet)             \
    X(avcodec_version)                 \
    X(avformat_alloc_context)          \
    X(avformat_alloc_output_context2)  \
    X(avformat_close_input)            \
    X(avformat_find_stream_info)       \
    X(avformat_free_context)           \
    X(avformat_new_stream)             \
    X(avformat_open_input)             \
    X(avformat_query_codec)            \
    X(avformat_version)                \
    X(avformat_write_header)           \
    X(avio_alloc_context)              \
    X(avio_close_dyn_buf)              \
    X(avio_context_free)               \
    X(avio_flush)                      \
    X(avio_open_dyn_buf)               \
    X(avutil_version)                  \
    LIBAV_SIDE_DATA(X)                 \
    LIBAV_SUPPORTED(X)

#define LIBAV_POINTER(name) __typeof__(name) *name;
struct libav_calls {
    LIBAV_FUNCTIONS(LIBAV_POINTER)
};
extern struct libav_calls lib;

/* Sets `lib`, once. False: `libav_loading_error` says why. */
bool libav_load(void);
extern char libav_loading_error[160];

/* The containers that are accepted: libavformat's names, separated by commas. */
extern const char libav_containers[];

/* error_set with `what` and libav's text for `code`. Returns false. */
bool libav_fail(const char *what, int code, struct error *error);

/* The largest frame that is decoded if only the streams' formats are wanted. */
#define LIBAV_LOOK_PIXELS (UINT64_C(1) << 25)

/* The colours of a stream. Each may be unspecified. */
struct libav_colours {
    enum AVColorPrimaries primaries;
    enum AVColorTransferCharacteristic transfer;
    enum AVColorSpace matrix;
    enum AVColorRange range;
    enum AVChromaLocation site;
};
extern const struct libav_colours libav_no_colours; /* nothing is named */

/* The colours that a container itself names, by stream. libavformat replaces them in its own
 * structs when it looks at the streams' frames, also by "unspecified". */
struct libav_named {
    struct libav_colours *streams; /* free() it */
    unsigned count;                /* a stream that was found later has none */
};

/* Open the untrusted file `path` and look at its streams. Only the protocol "file" is allowed, no
 * format that names further files, and no frame of more than `pixels_max`. Sets `named` unless it
 * is NULL. NULL on failure, and nothing is left open. */
AVFormatContext *libav_open_container(const char *path, uint64_t pixels_max,
                                      AVIOInterruptCB interrupt, struct libav_named *named,
                                      struct error *error);

/* The number of the film's stream: `*wanted`, or the best one if that is NULL. Covers and thumbnails
 * are chosen only if there is nothing else. Sets `*codec`. -1: `error` says why. */
int libav_choose_video(AVFormatContext *container, const uint32_t *wanted, const AVCodec **codec,
                       struct error *error);

/* Read no stream but this one. */
void libav_discard_others(AVFormatContext *container, int stream);

/* Side data of a stream, at least `bytes` long. NULL if the stream has no such data. The stream
 * owns it. */
const void *libav_stream_data(const AVStream *stream, enum AVPacketSideDataType type, size_t bytes);

#endif
