/* Video in and out: an input yields frames, an output takes frames, plane by plane with the
 * caller's row pitches. Samples go straight between the file and memory that devices work on.
 *
 * In: YUV4MPEG2 (y4m), raw frames of a given size, and containers if libavformat is built in. Out:
 * y4m, raw frames, nothing. Files are untrusted: every size is checked before use, and a bad file
 * gives an error that names the offset, never a crash.
 *
 * Thread-safety: one input or output from one thread at a time; video_input_cancel from any thread
 * or signal handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_H
#define VIDEO_H

#include "common/error.h"

#include <coxswain/dolby.h>
#include <coxswain/runtime.h>
#include <coxswain/video.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VIDEO_SIDE_MAX = 65536, VIDEO_FRAMES_MAX = INT32_MAX };
#define VIDEO_PIXELS_MAX (UINT64_C(1) << 29)

struct video_rational {
    uint32_t num, den; /* 0, 0 or 0:0 = unknown */
};

enum { VIDEO_PIECE_BYTES = 128 };

/* Which colours frames have, as their stream names them. A stream may change them at any frame. */
struct video_colours {
    bool has_range, has_transfer, has_primaries;
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    enum cox_matrix matrix;
    enum cox_color_range range;
    enum cox_chroma_location chroma_location;

    /* A named transfer that is neither PQ nor HLG, so that the frames are not HDR. Named primaries
     * that the library does not have. Then has_transfer or has_primaries is false. "" = none. */
    char other_transfer[24], other_primaries[24];
    bool is_sdr; /* the other transfer is one of SDR (cox_av_curve_is_sdr) */

    /* Frames are reshaped (Dolby Vision), which gives PQ and BT.2020. The range is that of the codes
     * before. */
    bool reshapes;

    double mastering_peak_nits; /* of the mastering display; not checked; 0 = unknown */
    double max_cll_nits;        /* the brightest pixel; not checked; 0 = unknown */
    double scene_peak_nits;     /* by Dolby Vision's level 1 or HDR10+; 0 = unknown */
};

bool video_colours_equal(const struct video_colours *a, const struct video_colours *b);

/* How a frame becomes upright: rows and columns are exchanged first, then the result is mirrored. */
struct video_turn {
    bool transposed;
    bool flip_x, flip_y; /* left and right, top and bottom change places */
    bool odd;            /* the container says another angle, which is not supported */
};

struct video_format {
    uint32_t width, height;
    struct cox_video_format pixel;
    struct video_rational rate;   /* frames per second */
    struct video_rational tick;   /* unit of frames' times, in seconds; 0:0 = there are no times */
    struct video_rational aspect; /* of a sample */
    struct video_turn turn;       /* makes the picture upright */
    char interlacing;             /* y4m's letter: 'p' progressive, '?' unknown */

    struct video_colours colours; /* of the first frame; `pixel` has its range and location too */
    bool can_name_colours;        /* a container */
    uint32_t dolby_profile;       /* of Dolby Vision; 0 = none */
    bool has_full_enhancement;    /* Dolby Vision's FEL, which is not decoded */
    bool usually_sdr;             /* its codec and size are hardly ever HDR */
    char conflict[192]; /* where container and first frame name different colours; "" = nowhere */

    bool light;                    /* half floats of linear light */
    uint64_t frames;               /* 0 = unknown (a pipe) */
    uint64_t file_bytes;           /* 0 = unknown */
    char piece[VIDEO_PIECE_BYTES]; /* which piece of which film, from its writer; "" = none */
    char text[96];                 /* for people: "y4m, 4:2:0, 10 bits" */
};

/* How to read a stream: what it does not say itself, and how much memory it may take. */
struct video_raw {
    bool given; /* the input is raw */
    uint32_t width, height;
    struct cox_video_format pixel;
    bool light;                 /* half floats of linear light */
    struct video_rational rate; /* 0 = 25 */
    uint64_t memory_max;        /* bytes for decoding, see memory_limit; 0 = the default */

    bool has_stream; /* containers: which stream; otherwise the best one */
    uint32_t stream;

    /* Containers: the device that decodes, as --hwdec names it; NULL = none. It must be one that
     * hardware_find knows. If it cannot decode the film, or fails later, software decodes, and
     * `tell` gets one line about it. From the thread that opens or reads. */
    const char *hwdec;
    void (*tell)(void *user, const char *what); /* NULL = nobody listens */
    void *tell_user;

    /* Containers: after damage, give out what the decoder still makes of them. Ask
     * video_input_damaged after the last read. False: damage is an error. */
    bool goes_on;
};

/* Set `pixel` and `light` from a name such as "p010", "yuv420p10", "gbrp10", "bgra64", "v210" or
 * "rgba16f". Range is limited (full for R'G'B'), chroma is left-sited. False if there is no such
 * format. `video_raw_names` is the list, for messages. */
bool video_raw_find(const char *name, struct video_raw *raw);
extern const char video_raw_names[];

/* The bytes of a row in files: the plane's, but a multiple of 128 for v210. */
size_t video_row_bytes(const struct cox_video_format *pixel, const struct cox_video_plane *plane);

/* Choose the pitches of buffers for these planes. If every device can split such frames, the pitch
 * is the length of the rows: planes without gaps are read and copied in one piece. Otherwise it is
 * cox_runtime_pitch_bytes. */
void video_pitch_choose(const cox_runtime *runtime, const struct cox_video_plane planes[],
                        uint32_t count, size_t pitch_bytes[]);

struct video_input;

enum video_kind {
    VIDEO_KIND_NONE = 0,
    VIDEO_KIND_Y4M,
    VIDEO_KIND_CONTAINER,
    VIDEO_KIND_UNREADABLE, /* errno says why */
};

/* Whether the content of `path` is video, from its first bytes. Nothing is lost of standard input
 * ("-") or a pipe: the next open gets the bytes. VIDEO_KIND_NONE also for pictures. */
enum video_kind video_kind_of(const char *path);

/* Open `path` ("-" is standard input): as raw frames if `raw->given`, else by content. `*out` is
 * NULL unless true is returned. */
bool video_input_open(struct video_input **out, const char *path, const struct video_raw *raw,
                      struct error *error);

/* The same for a y4m or raw stream in memory, which must stay until the input is closed. For
 * tests. */
bool video_input_open_memory(struct video_input **out, const void *data, size_t bytes,
                             const struct video_raw *raw, struct error *error);

const struct video_format *video_input_format(const struct video_input *input);

enum video_read {
    VIDEO_READ_FRAME = 1,
    VIDEO_READ_END = 0,
    VIDEO_READ_ERROR = -1,     /* also if the last frame is not whole; the planes are undefined */
    VIDEO_READ_CANCELLED = -2, /* video_input_cancel */
};

/* Read the next frame into `planes`, as many as cox_video_planes says. Blocks for the data. An
 * error's text names the frame and the byte offset. */
enum video_read video_input_read(struct video_input *input,
                                 void *const planes[COX_VIDEO_PLANES_MAX],
                                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                                 struct error *error);

/* Skip `frames` frames; ends early at the end of the stream. Files seek, pipes are read. */
enum video_read video_input_skip(struct video_input *input, uint64_t frames, struct error *error);

/* False if the file is shorter than its header says, or ends within a frame. */
bool video_input_whole(const struct video_input *input);

/* Keep no index of a container's frames in the cache folder, and use none. Call this first. */
void video_input_without_cache(struct video_input *input);

/* What may be wrong with the frames although reading went on: gaps in their times, errors that a
 * decoder concealed, a file that changed meanwhile. Ask after the last read. `n` counts from 0;
 * false: there is no such notice. The text does not name the file. */
enum { VIDEO_NOTICE_BYTES = 320 };
bool video_input_notice(struct video_input *input, uint32_t n, char *text, size_t bytes);

/* Whether frames are damaged or missing for certain although reading went on. */
bool video_input_damaged(const struct video_input *input);

/* Count the frames exactly, before the first one is read. Reads a container once for this. False,
 * and `error` says why, for pipes, for files that are cut off or cannot be read. */
bool video_input_count(struct video_input *input, uint64_t *frames, struct error *error);

/* The frame that is shown `seconds` after the first one began: by the frames' times, or by `rate`, or
 * by the format's rate if that is 0:0. Call this before the first frame is read. False, and `error`
 * says why, if there is no such frame. */
bool video_input_frame_at(struct video_input *input, double seconds, struct video_rational rate,
                          uint64_t *frame, struct error *error);

/* --- Frames lent instead of copied ----------------------------------------------------------
 *
 * A frame's buffers are the file's own memory (y4m, raw; for CPU devices only) or the memory that
 * the decoder wrote to (containers). */

/* From here on frames come by video_input_borrow, in buffers of the runtime. Call this before the
 * first frame. Sets the pitches. False if the input or the devices do not allow it: frames are then
 * read as usual. */
bool video_input_lend(struct video_input *input, cox_runtime *runtime,
                      size_t pitch_bytes[COX_VIDEO_PLANES_MAX]);

/* As video_input_read, but lends the next frame. Do not write to its buffers; give them back with
 * video_input_return. */
enum video_read video_input_borrow(struct video_input *input,
                                   cox_buffer *planes[COX_VIDEO_PLANES_MAX], struct error *error);

/* Whether a lent frame still holds what the input had. False, and `error` says why, if the file was
 * cut or its disk failed meanwhile. Ask this after the frame was used; from any thread. */
bool video_input_kept(const struct video_input *input,
                      cox_buffer *const planes[COX_VIDEO_PLANES_MAX], struct error *error);

/* Give back a frame, after all frames before it. Sets `planes` to NULL. From the thread that
 * borrows. */
void video_input_return(struct video_input *input, cox_buffer *planes[COX_VIDEO_PLANES_MAX]);

/* End lending: all frames are back, and the runtime may be destroyed. Accepts NULL, and an input
 * that lends nothing. */
void video_input_reclaim(struct video_input *input);

/* --- What frames carry, and what produces them ------------------------------------------------ */

/* What a frame carries along with its samples. */
#define VIDEO_NO_TIME INT64_MIN
struct video_frame {
    int64_t time; /* when it is shown, in ticks of the format */
    struct video_colours colours;
    struct cox_dolby_frame dolby; /* if `colours.reshapes` */
    bool has_hdr10plus;
    struct cox_hdr10plus_curve hdr10plus;
};

/* The last frame that was read or skipped. From the thread that reads. */
const struct video_frame *video_input_frame(const struct video_input *input);

/* Whether the intervals between the frames that were read (not skipped) differ. Only containers
 * have times. From any thread. */
bool video_input_rate_varies(const struct video_input *input);

enum video_producer_kind {
    VIDEO_PRODUCER_UNKNOWN = 0, /* a pipe whose writer is not known */
    VIDEO_PRODUCER_FILE,        /* none: frames are read as they are */
    VIDEO_PRODUCER_DECODER,     /* threads of this process */
    VIDEO_PRODUCER_PROCESS,     /* the program that writes to the pipe */
};
enum { VIDEO_NAME_BYTES = 32 };
struct video_producer {
    enum video_producer_kind kind;
    char name[VIDEO_NAME_BYTES]; /* of the decoder ("hevc") or the program ("ffmpeg") */

    /* Processor time since the first query: of the decoder's own threads, without the one that
     * reads; or of the program, up to the last query before its end. */
    uint64_t cpu_ns;
};

/* What produces the frames. From one thread at a time, while another may read frames. The first
 * call looks for the program. */
void video_input_producer(struct video_input *input, struct video_producer *producer);

/* From now on reads return VIDEO_READ_CANCELLED, also one that waits for a pipe now.
 * Async-signal-safe. */
void video_input_cancel(struct video_input *input);

void video_input_close(struct video_input **input);

enum video_output_kind { VIDEO_OUTPUT_Y4M = 0, VIDEO_OUTPUT_RAW, VIDEO_OUTPUT_NULL };

struct video_output;

/* Start an output. Y4M writes a header from `format`. A file that exists is replaced. The file
 * grows under its own name, so that an interrupted film can be used. The path "-" is standard
 * output. On failure, `*out` is NULL. */
bool video_output_open(struct video_output **out, const char *path, enum video_output_kind kind,
                       const struct video_format *format, struct error *error);

/* The layout of an output: a header, then frames of one length. False: no such output. */
struct video_layout {
    char header[400]; /* of y4m: a line of text */
    size_t header_bytes;
    uint64_t frame_bytes; /* with the marker before a frame */
};
bool video_output_layout(struct video_layout *layout, enum video_output_kind kind,
                         const struct video_format *format, struct error *error);

/* For an owner that writes the frames itself, for example to a file that several processes share.
 * Each video_output_write calls `write` once. The offset counts from the output's first frame. */
struct video_place {
    bool (*write)(void *user, uint64_t offset, const void *bytes, size_t count,
                  struct error *error);
    void *user;
};

/* As video_output_open, for y4m or raw frames. The owner writes the header. The struct is
 * copied. */
bool video_output_open_place(struct video_output **out, const struct video_place *place,
                             enum video_output_kind kind, const struct video_format *format,
                             struct error *error);

bool video_output_write(struct video_output *output, const void *const planes[COX_VIDEO_PLANES_MAX],
                        const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], struct error *error);

/* Close the output and set it to NULL, also on failure. A file ends with a whole frame: one that
 * could not be written whole is cut off. */
bool video_output_finish(struct video_output **output, struct error *error);

#endif
