/* Video in and out: an input yields frames, an output takes frames, plane by plane with the caller's row pitches, so
 * that samples go straight between the file and memory that devices work on.
 *
 * In: YUV4MPEG2 (y4m), raw frames of a size that is given, and what libavformat and libavcodec read where they are
 * built in. Out: y4m, raw NV12 and P010, nothing. Files are untrusted: every size is checked before it is believed, and
 * a bad file gives an error that names the offset, never a crash.
 *
 * Thread-safety: one input or output from one thread at a time; video_input_cancel from any thread or signal handler.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_H
#define VIDEO_H

#include "picture.h" /* struct error */

#include <coxswain/runtime.h>
#include <coxswain/video.h>

enum { VIDEO_SIDE_MAX = 65536, VIDEO_FRAMES_MAX = INT32_MAX };
#define VIDEO_PIXELS_MAX (UINT64_C(1) << 29)

struct video_rational {
    uint32_t num, den; /* 0, 0 or 0:0 = unknown */
};

enum { VIDEO_PIECE_BYTES = 128 };

/* What a stream is. */
struct video_format {
    uint32_t width, height;
    struct cox_video_format pixel;
    struct video_rational rate; /* frames per second */
    struct video_rational
        tick; /* seconds, which frames' times count; 0:0 = the stream gives no times */
    struct video_rational aspect; /* of a sample */
    char
        interlacing; /* y4m's letter: 'p' progressive, '?' unknown; t, b, m: refused by the reader */
    /* What the stream itself says, if it says so. */
    bool has_range, has_transfer, has_primaries;
    bool
        other_transfer; /* it names a transfer curve that is none of ours: it is no HDR video. `text` has the name */
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    double
        mastering_peak_nits; /* of the mastering display, as the stream says: it may be nonsense; 0 = unknown */
    double max_cll_nits; /* brightest pixel of the film, likewise; 0 = unknown */
    bool light;          /* half floats of linear light */
    uint64_t frames;     /* 0 = unknown (a pipe) */
    char piece
        [VIDEO_PIECE_BYTES]; /* which piece of which film it is, as its writer said; "" = none */
    char text[96];           /* for people: "y4m, 4:2:0, 10 bits" */
};

/* How to read a stream that does not describe itself. */
struct video_raw {
    bool given; /* the input is raw */
    uint32_t width, height;
    struct cox_video_format pixel;
    bool light;                 /* half floats of linear light */
    struct video_rational rate; /* 0 = 25 */
};

/* "p010", "nv16", "yuv420p", "yuv420p10", "yuv444p12", "gbrp10", "bgra64", "v210", "rgba16f" and the like, limited
 * range (of R'G'B' the full one), left-sited chroma: sets `pixel` and `light`. False if there is no such format.
 * `video_raw_names` is the list, for messages. */
bool video_raw_find(const char *name, struct video_raw *raw);
extern const char video_raw_names[];

/* How many bytes a row has in files: the plane's, but of v210 a multiple of 128. */
size_t video_row_bytes(const struct cox_video_format *pixel, const struct cox_video_plane *plane);

struct video_input;

/* What the first bytes of a file or standard input are. */
enum video_kind { VIDEO_KIND_NONE = 0, VIDEO_KIND_Y4M, VIDEO_KIND_CONTAINER };

/* Whether the content of `path` is video: looks at its first bytes. Standard input ("-") is looked at without losing
 * any of it: where it cannot be sought in, the bytes are kept and given to whichever open comes next. A file that
 * cannot be read is VIDEO_KIND_NONE; opening it says why. Pictures (OpenEXR, Radiance, PFM) are VIDEO_KIND_NONE; what
 * is neither is VIDEO_KIND_CONTAINER where libavformat is built in and knows it. */
enum video_kind video_kind_of(const char *path);

/* Open `path` ("-" is standard input). `raw->given`: as raw frames; otherwise by content: y4m, or a container where
 * libavformat is built in. `*out` is NULL unless true is returned. */
bool video_input_open(struct video_input **out, const char *path, const struct video_raw *raw,
                      struct error *error);

/* As above, a y4m or raw stream from memory that must stay until the input is closed; for tests. */
bool video_input_open_memory(struct video_input **out, const void *data, size_t bytes,
                             const struct video_raw *raw, struct error *error);

const struct video_format *video_input_format(const struct video_input *input);

enum video_read {
    VIDEO_READ_FRAME = 1,
    VIDEO_READ_END = 0,
    VIDEO_READ_ERROR = -1,     /* also: the last frame is not whole; the planes are undefined */
    VIDEO_READ_CANCELLED = -2, /* video_input_cancel */
};

/* The next frame into `planes` (as many as cox_video_planes says). Blocks for the data. An error's text names the frame
 * and the byte offset. */
enum video_read video_input_read(struct video_input *input,
                                 void *const planes[COX_VIDEO_PLANES_MAX],
                                 const size_t pitch_bytes[COX_VIDEO_PLANES_MAX],
                                 struct error *error);

/* Pass over `frames` frames; ends early at the end of the stream. Files are sought in, pipes read. */
enum video_read video_input_skip(struct video_input *input, uint64_t frames, struct error *error);

/* Whether the file is as long as it says, or as whole frames are. */
bool video_input_whole(const struct video_input *input);

/* How many frames there are, exactly: of a file that is whole; containers are read once for it. Before the first frame
 * is read. False, and `error` says why: it cannot be told, of a pipe for one, or the file cannot be read. */
bool video_input_count(struct video_input *input, uint64_t *frames, struct error *error);

/* --- Frames lent instead of copied ---
 *
 * Of y4m and raw files a frame's buffers are the file's own memory, which processors alone read well; of containers,
 * what the decoder has written to. */

/* From here on frames come by video_input_borrow, in buffers of the runtime with rows `pitch_bytes` apart, which is
 * set. Before the first frame. False, and they are to be read as ever: the input or the devices are not made for it. */
bool video_input_lend(struct video_input *input, cox_runtime *runtime,
                      size_t pitch_bytes[COX_VIDEO_PLANES_MAX]);

/* The next frame. Its buffers are to be read only, and go back by video_input_return. Otherwise as video_input_read. */
enum video_read video_input_borrow(struct video_input *input,
                                   cox_buffer *planes[COX_VIDEO_PLANES_MAX], struct error *error);

/* Whether a frame is still what the input had: false where a file was cut or its disk failed meanwhile, which `error`
 * says. To be asked when the frame has been used; from any thread. */
bool video_input_kept(const struct video_input *input,
                      cox_buffer *const planes[COX_VIDEO_PLANES_MAX], struct error *error);

/* A frame is not used any more, nor is any that came before it. Sets `planes` to NULL. From the thread that borrows. */
void video_input_return(struct video_input *input, cox_buffer *planes[COX_VIDEO_PLANES_MAX]);

/* All frames are back, and the runtime may go: none can be borrowed any more. NULL is accepted, and an input that lends
 * nothing. */
void video_input_reclaim(struct video_input *input);

/* --- */

/* When the frame that was read last is to be shown, in ticks of the format. From the thread that reads. */
#define VIDEO_NO_TIME INT64_MIN
int64_t video_input_time(const struct video_input *input);

/* Whether the frames that were read (not those passed over) do not follow each other in equal times. Only containers
 * give times. From any thread. */
bool video_input_rate_varies(const struct video_input *input);

/* What makes the frames. */
enum video_maker_kind {
    VIDEO_MAKER_UNKNOWN = 0, /* a pipe of which that is not known */
    VIDEO_MAKER_FILE,        /* nothing does: they are read as they are */
    VIDEO_MAKER_DECODER,     /* threads of this process */
    VIDEO_MAKER_PROCESS,     /* the program that writes to the pipe */
};
enum { VIDEO_NAME_BYTES = 32 };
struct video_maker {
    enum video_maker_kind kind;
    char name[VIDEO_NAME_BYTES]; /* of the decoder ("hevc") or the program ("ffmpeg") */
    uint64_t
        cpu_ns; /* processor time since the first call: of the decoder's own threads (the reading one not counted),
                        of the program up to the last call before its end */
};

/* From one thread at a time; frames may be read on another meanwhile. The first call looks for the program. */
void video_input_maker(struct video_input *input, struct video_maker *maker);

/* From now on reads return VIDEO_READ_CANCELLED, one that waits for a pipe included. Async-signal-safe. */
void video_input_cancel(struct video_input *input);

void video_input_close(struct video_input **input);

enum video_output_kind { VIDEO_OUTPUT_Y4M = 0, VIDEO_OUTPUT_RAW, VIDEO_OUTPUT_NULL };

struct video_output;

/* Start an output. Y4M writes a header from `format` (its size, rate, aspect, pixel). Files that exist are replaced;
 * they grow under their own name, since what was written before an interruption is wanted. "-" is standard output.
 * `*out` is NULL unless true is returned. */
bool video_output_open(struct video_output **out, const char *path, enum video_output_kind kind,
                       const struct video_format *format, struct error *error);

/* How the bytes of an output follow each other: a header, then frames of one length. False: there is no such output. */
struct video_layout {
    char header[400]; /* of y4m: a line of text */
    size_t header_bytes;
    uint64_t frame_bytes; /* with what marks a frame */
};
bool video_output_layout(struct video_layout *layout, enum video_output_kind kind,
                         const struct video_format *format, struct error *error);

/* Where the output's owner writes the frames itself, such as into a file that several processes share. The offset is
 * counted from the first frame that the output is given; each call is one frame. Called by video_output_write. */
struct video_place {
    bool (*write)(void *user, uint64_t offset, const void *bytes, size_t count,
                  struct error *error);
    void *user;
};

/* As video_output_open, of y4m or raw frames. The header is not written: that is the owner's. The struct is copied. */
bool video_output_open_place(struct video_output **out, const struct video_place *place,
                             enum video_output_kind kind, const struct video_format *format,
                             struct error *error);

bool video_output_write(struct video_output *output, const void *const planes[COX_VIDEO_PLANES_MAX],
                        const size_t pitch_bytes[COX_VIDEO_PLANES_MAX], struct error *error);

/* Close. The output is gone in any case (set to NULL). A frame that could not be written whole is cut off a file, so
 * that it ends with a whole one. */
bool video_output_finish(struct video_output **output, struct error *error);

#endif
