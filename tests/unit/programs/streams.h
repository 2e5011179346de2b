/* Streams of frames for the tests of video. A test builds them byte by byte, or opens a file. The memory of a frame
 * has a canary behind each row.
 *
 * Static storage is enough for objects that a test has once, because Criterion runs each test in its own process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_STREAMS_H
#define COX_TESTS_STREAMS_H

#include "media/video.h"
#include "unit/programs/bytes.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static const char clip_path[] = COX_TEST_SOURCE_DIR "/examples/data/stilllife_pq_480x270.y4m";

/* The message of the last call that failed. */
static struct error said;

static inline void expect_said(const char *words, const char *about)
{
    cr_expect(strstr(said.text, words), "%s: \"%s\" lacks \"%s\"", about, said.text, words);
}

/* --- Bytes of frames ---------------------------------------------------------------------------------------------- */

/* Byte `i` of frame `frame`. No two frames and no two rows are equal. */
static inline uint8_t sample(uint64_t frame, uint64_t i)
{
    uint64_t v = (frame * UINT64_C(0x9e3779b97f4a7c15)) ^ (i * UINT64_C(0xbf58476d1ce4e5b9));
    return (uint8_t)(v >> 29);
}

static inline void put_frame(struct bytes *b, uint64_t frame, uint64_t frame_bytes)
{
    for (uint64_t i = 0; i < frame_bytes; i++) {
        uint8_t byte = sample(frame, i);
        put(b, &byte, 1);
    }
}

/* A stream of frames. It stays valid until the next one is built. */
static inline struct bytes *make_stream(const char *header, const char *marker, uint64_t frames, uint64_t frame_bytes)
{
    static struct bytes b;
    b.count = 0;
    put_text(&b, header);
    for (uint64_t f = 0; f < frames; f++) {
        put_text(&b, marker);
        put_frame(&b, f, frame_bytes);
    }
    return &b;
}

/* --- A frame in memory, with a canary behind every row ------------------------------------------------------------ */

enum { CANARY = 0xa5 };

struct frame {
    uint32_t planes;
    struct cox_video_plane plane[COX_VIDEO_PLANES_MAX];
    size_t pitch[COX_VIDEO_PLANES_MAX];
    void *memory[COX_VIDEO_PLANES_MAX];
};

/* Rows are `extra` bytes longer than necessary. */
static inline struct frame frame_make(const struct video_format *format, size_t extra)
{
    struct frame frame = {0};
    frame.planes = cox_video_planes(&format->pixel, format->width, format->height, frame.plane);
    cr_assert(frame.planes > 0);
    for (uint32_t p = 0; p < frame.planes; p++) {
        frame.pitch[p] = frame.plane[p].row_bytes + extra;
        frame.memory[p] = malloc(frame.pitch[p] * frame.plane[p].rows);
        cr_assert(frame.memory[p] != NULL);
        memset(frame.memory[p], CANARY, frame.pitch[p] * frame.plane[p].rows);
    }
    return frame;
}

static inline void frame_free(struct frame *frame)
{
    for (uint32_t p = 0; p < frame->planes; p++)
        free(frame->memory[p]);
}

/* The samples with packed rows, as in a stream; checks the canaries. They stay valid until the next call. */
static inline const struct bytes *frame_pack(const struct frame *frame)
{
    static struct bytes b;
    b.count = 0;
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++) {
            const uint8_t *bytes = (const uint8_t *)frame->memory[p] + row * frame->pitch[p];
            put(&b, bytes, frame->plane[p].row_bytes);
            for (size_t i = frame->plane[p].row_bytes; i < frame->pitch[p]; i++)
                if (bytes[i] != CANARY)
                    cr_assert_fail("plane %u, row %u was written past its end", p, row);
        }
    return &b;
}

/* --- Ways to read a stream ---------------------------------------------------------------------------------------- */

enum way { MEMORY, FILE_PATH, PIPE, WAYS };
static const char *const way_names[] = {"memory", "file", "pipe"};

/* A thread that writes bytes to a pipe, `step` at a time, and closes it. */
struct giver {
    pthread_t thread;
    int fd;
    const struct bytes *bytes;
    size_t step;
};

static inline void *give(void *user)
{
    struct giver *giver = user;
    for (size_t at = 0; at < giver->bytes->count;) {
        size_t left = giver->bytes->count - at;
        ssize_t gone = write(giver->fd, giver->bytes->data + at, left < giver->step ? left : giver->step);
        if (gone < 0 && errno == EINTR)
            continue;
        if (gone < 0)
            break; /* the other end is closed */
        at += (size_t)gone;
    }
    close(giver->fd);
    return NULL;
}

static inline void giver_start(struct giver *giver, int fd, const struct bytes *bytes, size_t step)
{
    signal(SIGPIPE, SIG_IGN); /* a reader may close its end early */
    *giver = (struct giver){.fd = fd, .bytes = bytes, .step = step};
    cr_assert_eq(pthread_create(&giver->thread, NULL, give, giver), 0);
}

/* Create a file without a name, and set a path to it. */
static inline int make_file(char path[64])
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    cr_assert(fd >= 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* --- The input ---------------------------------------------------------------------------------------------------- */

/* The open stream, if any, and memory for one of its frames. */
static struct stream {
    enum way way;
    int fd;
    struct giver giver;
    struct video_input *input;
    struct frame frame;
} stream = {.fd = -1};

static inline void stream_close(void)
{
    video_input_close(&stream.input);
    cr_assert(stream.input == NULL);
    if (stream.fd >= 0)
        close(stream.fd);
    if (stream.way == PIPE)
        pthread_join(stream.giver.thread, NULL);
    frame_free(&stream.frame);
    stream = (struct stream){.fd = -1};
}

/* Open a path instead of the current stream. Returns whether it could be opened. */
static inline bool stream_try_path(const char *path, const struct video_raw *raw, size_t extra)
{
    stream_close();
    said.text[0] = '\0';
    if (!video_input_open(&stream.input, path, raw, &said))
        return false;
    stream.frame = frame_make(video_input_format(stream.input), extra);
    return true;
}

static inline void stream_open_path(const char *path, const struct video_raw *raw, size_t extra)
{
    cr_assert(stream_try_path(path, raw, extra), "%s: %s", path, said.text);
}

/* Open these bytes in this way; from a pipe, `step` at a time. */
static inline bool stream_try(enum way way, const struct bytes *bytes, size_t step, const struct video_raw *raw)
{
    int ends[2];
    char path[64];
    stream_close();
    said.text[0] = '\0';
    stream.way = way;
    if (way == MEMORY)
        return video_input_open_memory(&stream.input, bytes->data, bytes->count, raw, &said);
    if (way == FILE_PATH) {
        stream.fd = make_file(path);
        cr_assert_eq(write(stream.fd, bytes->data, bytes->count), (ssize_t)bytes->count);
    } else {
        cr_assert_eq(pipe(ends), 0);
        stream.fd = ends[0];
        giver_start(&stream.giver, ends[1], bytes, step);
        snprintf(path, sizeof path, "/proc/self/fd/%d", stream.fd);
    }
    return video_input_open(&stream.input, path, raw, &said);
}

static inline void stream_open(enum way way, const struct bytes *bytes, size_t step, const struct video_raw *raw,
                               size_t extra)
{
    cr_assert(stream_try(way, bytes, step, raw), "%s: %s", way_names[way], said.text);
    stream.frame = frame_make(video_input_format(stream.input), extra);
}

static inline enum video_read stream_read(void)
{
    return video_input_read(stream.input, stream.frame.memory, stream.frame.pitch, &said);
}

static inline enum video_read stream_skip(uint64_t frames)
{
    return video_input_skip(stream.input, frames, &said);
}

/* The next frame can be read and equals frame `number` of make_stream. */
static inline void expect_frame(uint64_t number)
{
    cr_assert_eq(stream_read(), VIDEO_READ_FRAME, "frame %" PRIu64 ": %s", number, said.text);
    const struct bytes *b = frame_pack(&stream.frame);
    for (size_t i = 0; i < b->count; i++)
        if (b->data[i] != sample(number, i))
            cr_assert_fail("frame %" PRIu64 ", byte %zu: %u instead of %u", number, i, b->data[i], sample(number, i));
}

/* The frames 0 to `frames` - 1 can be read, and then the end, twice. */
static inline void expect_frames(uint64_t frames)
{
    for (uint64_t f = 0; f < frames; f++)
        expect_frame(f);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(stream_read(), VIDEO_READ_END);
}

/* Read `frames` frames and the end in each of these ways. */
static inline void expect_stream(const struct bytes *bytes, const struct video_raw *raw, uint64_t frames, size_t extra,
                                 size_t step)
{
    for (enum way way = 0; way < WAYS; way++) {
        stream_open(way, bytes, step, raw, extra);
        const uint64_t told = video_input_format(stream.input)->frames;
        cr_expect_eq(told, way == PIPE ? 0 : frames, "%s: %" PRIu64, way_names[way], told);
        expect_frames(frames);
    }
}

static inline struct video_raw raw_of(const char *name, uint32_t width, uint32_t height)
{
    struct video_raw raw = {.given = true, .width = width, .height = height};
    cr_assert(video_raw_find(name, &raw), "%s", name);
    return raw;
}

/* --- Signals that interrupt --------------------------------------------------------------------------------------- */

static inline void do_nothing(int number)
{
    (void)number;
}

/* From here on, every blocking call is interrupted repeatedly. */
static inline void interrupt_often(void)
{
    struct sigaction action = {.sa_handler = do_nothing};
    struct itimerval timer = {.it_value.tv_usec = 500, .it_interval.tv_usec = 500};
    cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
    cr_assert_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

#endif
