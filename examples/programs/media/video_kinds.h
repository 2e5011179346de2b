/* What each kind of video implements behind video.h: y4m, raw frames, containers.
 *
 * video_open.c chooses the kind, video_input.c calls it through these tables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_KINDS_H
#define VIDEO_KINDS_H

#include "identity.h"
#include "video_format.h"
#include "video_producer.h"
#include "video_source.h"

/* How a kind lends frames: video.h's functions of these names. */
struct video_lender {
    bool (*lend)(struct video_input *input, cox_runtime *runtime, size_t pitch_bytes[]);
    enum video_read (*borrow)(struct video_input *input, cox_buffer *planes[], struct error *error);
    bool (*kept)(const struct video_input *input, cox_buffer *const planes[], struct error *error);
    void (*give_back)(struct video_input *input, cox_buffer *planes[]);
    void (*reclaim)(struct video_input *input);
};

/* Whether frames with these pitches can be split among the devices: a plane needs enough rows at
 * which every device's sub-buffers may begin. */
bool video_pitch_suits(const cox_runtime *runtime, const struct video_planes *planes,
                       const size_t pitch_bytes[]);

/* y4m and raw files, mapped (video_lend.c). */
extern const struct video_lender video_lender_file;

struct video_reader {
    bool from_source; /* reads from `source`, which is opened before */

    /* Read the header; fill `format`, `planes`, `state`. On failure nothing is left allocated. */
    bool (*open)(struct video_input *input, struct error *error);

    /* Read the next frame, or skip it if `memory` is NULL. */
    enum video_read (*read)(struct video_input *input, void *const memory[],
                            const size_t pitch_bytes[], struct error *error);

    /* video_input_count; NULL = the format has the count. */
    bool (*count)(struct video_input *input, uint64_t *frames, struct error *error);

    /* The number of the first frame after `seconds` by the frames' times. False: they are not
     * known, or `*result` says why they cannot be read. NULL = never known. */
    bool (*after)(struct video_input *input, double seconds, uint64_t *frame,
                  enum video_read *result, struct error *error);

    /* Go on to frame `frame` without reading all before it. VIDEO_READ_END if there are fewer.
     * False, and nothing is skipped: the stream cannot seek there. NULL = reading is as fast. */
    bool (*seek)(struct video_input *input, uint64_t frame, enum video_read *result,
                 struct error *error);
    void (*close)(struct video_input *input); /* NULL = nothing to do */
    const struct video_lender *lender;

    /* video_input_producer; NULL = the file itself, or what writes to the source. */
    void (*producer)(struct video_input *input, struct video_producer *producer);

    /* video_input_notice; NULL = this kind has no notices. */
    bool (*notice)(struct video_input *input, uint32_t n, char *text, size_t bytes);
};

struct video_input {
    const struct video_reader *reader;
    const char *path;       /* during open only */
    const uint32_t *stream; /* during open only: of struct video_raw; NULL = the best one */
    const char *hwdec;      /* during open only: of struct video_raw */
    void (*tell)(void *user, const char *what); /* of struct video_raw; NULL = nobody listens */
    void *tell_user;
    int watch_fd;             /* of the file; -1 = it is not watched */
    struct file_state opened; /* when it was opened */
    uint64_t memory_max;      /* of struct video_raw */
    bool no_cache;
    bool goes_on; /* after damage, see struct video_raw */
    bool damaged; /* and there was some */
    struct video_format format;
    struct video_planes planes;
    struct video_source source; /* containers use it for cancelling only */
    uint64_t next_frame;
    bool cut;                     /* the file ends before it should */
    uint64_t samples;             /* y4m and raw: the offset of the last frame's samples */
    cox_runtime *lends_to;        /* NULL = frames are read */
    struct video_frame frame;     /* the last one; only containers change it */
    struct video_writers writers; /* of video_input_producer alone */
    atomic_bool rate_varies;
    bool failed; /* every further read fails the same way */
    struct error error;
    void *state; /* the kind's own */
};

/* End watching the file for changes. */
void video_input_unwatch(struct video_input *input);

extern const struct video_reader video_reader_y4m;
extern const struct video_reader video_reader_raw;

/* y4m and raw: read or skip the samples of a frame that began at byte `begin`; its header has been
 * read. VIDEO_READ_END if there is no byte of it. */
enum video_read video_read_samples(struct video_input *input, uint64_t begin, void *const memory[],
                                   const size_t pitch_bytes[], struct error *error);

/* The frame that begins at byte `begin` lacks `missing` bytes. Returns VIDEO_READ_ERROR. */
enum video_read video_fail_truncated(const struct video_input *input, uint64_t begin,
                                     uint64_t missing, struct error *error);

#if COX_HAVE_LIBAV
extern const struct video_reader video_reader_libav;

/* Whether libavformat takes the content for a container that holds video. */
bool video_libav_knows(const char *path, const uint8_t *bytes, size_t count);
#endif

#endif
