/* Video output: the written bytes are the given ones, and a frame that could not be written completely is cut off.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/video.h"
#include "unit/programs/streams.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

/* The test's file, and its output. */
static char path[64];
static int fd = -1;
static struct video_output *output;

static void close_file(void)
{
    stream_close();
    if (fd >= 0)
        close(fd);
}

/* Begin another file. */
static void new_file(void)
{
    close_file();
    fd = make_file(path);
}

TestSuite(writing, .fini = close_file, .timeout = 600);

static struct video_format format_of(const char *raw_name, uint32_t width, uint32_t height)
{
    struct video_format format = {
        .width = width, .height = height, .rate = {24000, 1001}, .aspect = {1, 1}, .interlacing = 'p'};
    format.pixel = raw_of(raw_name, width, height).pixel;
    return format;
}

static void frame_fill(struct frame *frame, uint64_t number)
{
    uint64_t i = 0;
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++)
            for (size_t x = 0; x < frame->plane[p].row_bytes; x++)
                ((uint8_t *)frame->memory[p])[row * frame->pitch[p] + x] = sample(number, i++);
}

static bool write_frame(const struct frame *frame)
{
    return video_output_write(output, (const void *const *)(const void *)frame->memory, frame->pitch, &said);
}

static void write_frames(const char *to, enum video_output_kind kind, const struct video_format *format,
                         uint64_t frames, size_t extra)
{
    struct frame frame = frame_make(format, extra);
    cr_assert(video_output_open(&output, to, kind, format, &said), "%s", said.text);
    for (uint64_t f = 0; f < frames; f++) {
        frame_fill(&frame, f);
        cr_assert(write_frame(&frame), "%s", said.text);
    }
    cr_assert(video_output_finish(&output, &said), "%s", said.text);
    cr_assert(output == NULL);
    frame_free(&frame);
}

static void expect_file(const char *header, const char *marker, uint64_t frames, uint64_t frame_bytes)
{
    struct bytes *got = load_file(path), *want = make_stream(header, marker, frames, frame_bytes);
    cr_assert_eq(got->count, want->count, "%zu bytes instead of %zu", got->count, want->count);
    cr_assert_eq(memcmp(got->data, want->data, want->count), 0);
}

Test(writing, y4m_is_what_the_format_says)
{
    static const struct {
        const char *samples;
        enum cox_chroma_location chroma_location;
        enum cox_color_range range;
        const char *tags;
        uint64_t bytes; /* of 5 x 3 */
    } cases[] = {
        {"yuv420p", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C420mpeg2 XCOLORRANGE=LIMITED", 27},
        {"yuv420p", COX_CHROMA_CENTER, COX_RANGE_LIMITED, "C420jpeg XCOLORRANGE=LIMITED", 27},
        {"yuv420p", COX_CHROMA_TOP_LEFT, COX_RANGE_FULL, "C420paldv XCOLORRANGE=FULL", 27},
        {"yuv422p", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C422 XCOLORRANGE=LIMITED", 33},
        {"yuv444p", COX_CHROMA_LEFT, COX_RANGE_FULL, "C444 XCOLORRANGE=FULL", 45},
        {"yuv420p10", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C420p10 XCOLORRANGE=LIMITED", 54},
        {"yuv422p10", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C422p10 XCOLORRANGE=LIMITED", 66},
        {"yuv444p12", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C444p12 XCOLORRANGE=LIMITED", 90},
        {"yuv420p16", COX_CHROMA_LEFT, COX_RANGE_LIMITED, "C420p16 XCOLORRANGE=LIMITED", 54},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (size_t extra = 0; extra <= 12; extra += 12) {
            char header[128];
            new_file();
            struct video_format format = format_of(cases[i].samples, 5, 3);
            format.pixel.chroma_location = cases[i].chroma_location;
            format.pixel.range = cases[i].range;
            write_frames(path, VIDEO_OUTPUT_Y4M, &format, 3, extra);
            snprintf(header, sizeof header, "YUV4MPEG2 W5 H3 F24000:1001 Ip A1:1 %s\n", cases[i].tags);
            expect_file(header, "FRAME\n", 3, cases[i].bytes);
            stream_open_path(path, NULL, 0);
            const struct video_format *back = video_input_format(stream.input);
            cr_expect_eq(back->pixel.range, cases[i].range);
            cr_expect_eq(back->pixel.chroma_location, cases[i].chroma_location, "%s", cases[i].tags);
            cr_expect_eq(back->pixel.depth, format.pixel.depth);
            cr_expect(back->colours.has_range && back->rate.num == 24000 && back->aspect.num == 1 &&
                      back->interlacing == 'p');
            expect_frames(3);
        }
}

Test(writing, y4m_says_so_where_something_is_unknown)
{
    new_file();
    struct video_format format = format_of("yuv444p", 2, 2);
    format.rate = format.aspect = (struct video_rational){0, 0};
    format.interlacing = '?';
    write_frames(path, VIDEO_OUTPUT_Y4M, &format, 0, 0);
    expect_file("YUV4MPEG2 W2 H2 F0:0 I? A0:0 C444 XCOLORRANGE=LIMITED\n", "", 0, 0);
}

Test(writing, raw_frames_are_nothing_but_samples_and_replace_what_is_there)
{
    static const struct {
        const char *samples;
        uint32_t width, height;
        size_t extra;
        uint64_t frames, bytes;
    } cases[] = {{"nv12", 5, 3, 0, 3, 27},
                 {"p010", 5, 3, 4, 3, 54},
                 {"yuv420p", 5, 3, 8, 3, 27},
                 {"yuv444p10", 5, 3, 12, 3, 90},
                 {"rgba16f", 5, 3, 16, 3, 120},
                 {"yuv420p", 5, 3, 0, 2, 27},
                 /* more rows than one write takes, with gaps */
                 {"yuv420p10", 3, 5001, 2, 2, 2 * (3 * 5001 + 2 * 2 * 2501)}};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        for (int there = 0; there < 2; there++) {
            new_file();
            for (int n = 0; n < 1000 * there; n++)
                cr_assert_eq(write(fd, "something else", 14), 14);
            struct video_format format = format_of(cases[i].samples, cases[i].width, cases[i].height);
            write_frames(path, VIDEO_OUTPUT_RAW, &format, cases[i].frames, cases[i].extra);
            expect_file("", "", cases[i].frames, cases[i].bytes);
        }
}

Test(writing, nothing_is_written_where_nothing_is_wanted)
{
    struct video_format format = format_of("p010", 64, 48);
    write_frames("/nowhere/to/be.found", VIDEO_OUTPUT_NULL, &format, 5, 0);
    write_frames("/dev/null", VIDEO_OUTPUT_RAW, &format, 5, 0);
}

/* The file becomes standard output, and "before " precedes what is written. It is opened for appending, or is
 * positioned at its end. Returns the former standard output. */
static int be_standard_output(bool append)
{
    fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    cr_assert_eq(ftruncate(fd, 0), 0);
    cr_assert_eq(fcntl(fd, F_SETFL, 0), 0);
    cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
    cr_assert_eq(write(fd, "before ", 7), 7);
    if (append) {
        cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
        cr_assert_eq(fcntl(fd, F_SETFL, O_APPEND), 0);
    }
    cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
    return before;
}

static void end_standard_output(int before)
{
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
}

Test(writing, goes_to_standard_output_after_what_is_there)
{
    new_file();
    for (int append = 0; append < 2; append++) {
        const int before = be_standard_output(append);
        struct video_format format = format_of("yuv420p", 5, 3);
        write_frames("-", VIDEO_OUTPUT_RAW, &format, 2, 4);
        bool open_still = fcntl(STDOUT_FILENO, F_GETFD) >= 0;
        end_standard_output(before);
        cr_expect(open_still);
        expect_file("before ", "", 2, 27);
    }
}

Test(writing, refuses_what_y4m_cannot_hold)
{
    static const char *const samples[] = {"nv12", "p010", "rgba16f"};
    for (size_t i = 0; i < 3; i++) {
        struct video_format format = format_of(samples[i], 4, 4);
        new_file();
        cr_assert_eq(write(fd, "mine", 4), 4);
        cr_expect_not(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, &format, &said));
        cr_expect(output == NULL);
        expect_said("y4m cannot hold these samples", samples[i]);
        expect_file("mine", "", 0, 0); /* refused before the file is changed */
    }
}

Test(writing, says_why_it_cannot_begin)
{
    static const struct {
        const char *path;
        enum video_output_kind kind;
        uint32_t width;
        const char *words;
    } cases[] = {{"/nowhere/to/be.found", VIDEO_OUTPUT_RAW, 4, "cannot be written: No such file"},
                 {"/tmp", VIDEO_OUTPUT_RAW, 4, "is a directory"},
                 {"", VIDEO_OUTPUT_RAW, 4, "an empty name"},
                 {"/dev/null", VIDEO_OUTPUT_RAW, 0, "no pixels"},
                 {"/dev/full", VIDEO_OUTPUT_Y4M, 64, "No space left on device"}}; /* for the header */
    struct video_format format = format_of("yuv420p", 4, 4);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        format.width = cases[i].width;
        cr_expect_not(video_output_open(&output, cases[i].path, cases[i].kind, &format, &said));
        expect_said(cases[i].words, cases[i].path);
    }
}

Test(writing, a_full_device_is_an_error)
{
    struct video_format format = format_of("yuv420p", 64, 48);
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, "/dev/full", VIDEO_OUTPUT_RAW, &format, &said));
    for (int i = 0; i < 2; i++) {
        cr_expect_not(write_frame(&frame));
        expect_said("frame 0 (the first is 0): No space left on device", "frame");
    }
    said.text[0] = 0;
    cr_expect_not(video_output_finish(&output, &said));
    expect_said("No space left on device", "finish");
    frame_free(&frame);
}

/* What the owner of an output was given. */
struct taken {
    uint8_t bytes[20000];
    uint64_t calls, end, refused_at;
};

static bool take_frame(void *user, uint64_t offset, const void *bytes, size_t count, struct error *error)
{
    struct taken *taken = user;
    if (taken->calls == taken->refused_at) {
        snprintf(error->text, sizeof error->text, "no place");
        return false;
    }
    cr_assert_leq(offset + count, sizeof taken->bytes);
    memcpy(taken->bytes + offset, bytes, count);
    taken->end = offset + count;
    taken->calls++;
    return true;
}

Test(writing, an_owner_gets_each_frame_at_once)
{
    static const enum video_output_kind kinds[] = {VIDEO_OUTPUT_Y4M, VIDEO_OUTPUT_RAW};
    struct video_format format = format_of("yuv420p", 64, 48);
    struct frame frame = frame_make(&format, 4); /* with padding */
    for (size_t k = 0; k < 2; k++) {
        struct video_layout layout;
        struct taken taken = {.refused_at = 3};
        new_file();
        write_frames(path, kinds[k], &format, 3, 4);
        struct bytes *file = load_file(path);
        cr_assert(video_output_layout(&layout, kinds[k], &format, &said), "%s", said.text);
        cr_assert_eq(file->count, layout.header_bytes + 3 * layout.frame_bytes);
        cr_expect_eq(memcmp(file->data, layout.header, layout.header_bytes), 0);
        const struct video_place place = {take_frame, &taken};
        cr_assert(video_output_open_place(&output, &place, kinds[k], &format, &said));
        for (uint64_t f = 0; f < 3; f++) {
            frame_fill(&frame, f);
            cr_assert(write_frame(&frame), "%s", said.text);
            cr_expect_eq(taken.calls, f + 1);
        }
        cr_assert_eq(taken.end, file->count - layout.header_bytes);
        cr_expect_eq(memcmp(taken.bytes, file->data + layout.header_bytes, taken.end), 0);
        cr_expect_not(write_frame(&frame));
        expect_said("no place", "refused");
        taken.refused_at = 0; /* after a failure nothing more is written */
        cr_expect_not(write_frame(&frame));
        cr_expect_eq(taken.calls, 3);
        cr_expect_not(video_output_finish(&output, &said));
    }
    frame_free(&frame);
}

/* A file may grow to the middle of frame 2, and no further. */
static void write_to_a_limit(const char *to, enum video_output_kind kind, uint64_t limit)
{
    struct video_format format = format_of("yuv420p", 64, 48); /* 4608 bytes */
    struct frame frame = frame_make(&format, 4);
    struct rlimit before;
    uint64_t frames = 0;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, before.rlim_max}), 0);
    cr_assert(video_output_open(&output, to, kind, &format, &said), "%s", said.text);
    for (frame_fill(&frame, 0); write_frame(&frame); frame_fill(&frame, frames))
        frames++;
    setrlimit(RLIMIT_FSIZE, &before);
    /* After a failure nothing more is written, even if there is space again. Otherwise there would be half a frame
     * in the middle. */
    cr_expect_not(write_frame(&frame));
    bool finished = video_output_finish(&output, &said);
    cr_expect_eq(frames, 2);
    cr_expect_not(finished);
    expect_said("File too large", to);
    frame_free(&frame);
}

/* Memory files do not obey the limit. */
static void new_limited_file(void)
{
    strcpy(path, "/tmp/coxswain-test-XXXXXX");
    fd = mkstemp(path);
    cr_assert(fd >= 0);
}

Test(writing, a_frame_that_does_not_fit_is_cut_off)
{
    new_limited_file();
    static const char header[] = "YUV4MPEG2 W64 H48 F24000:1001 Ip A1:1 C420mpeg2 XCOLORRANGE=LIMITED\n";
    uint64_t each = 4608 + 6;
    /* The limit is in the middle of the third frame, in its marker, and at its first byte. */
    for (uint64_t more = 0; more <= 2000; more = more ? more * 10 : 1) {
        write_to_a_limit(path, VIDEO_OUTPUT_Y4M, sizeof header - 1 + 2 * each + more);
        expect_file(header, "FRAME\n", 2, 4608);
    }
    write_to_a_limit(path, VIDEO_OUTPUT_RAW, 2 * 4608 + 1000);
    expect_file("", "", 2, 4608);
    unlink(path);
}

Test(writing, of_a_standard_output_with_something_in_it_only_our_own_part_is_cut)
{
    new_limited_file();
    for (int append = 0; append < 2; append++) {
        const int before = be_standard_output(append);
        write_to_a_limit("-", VIDEO_OUTPUT_RAW, 7 + 2 * 4608 + 1000);
        fflush(stdout);
        cr_assert_eq(write(STDOUT_FILENO, " after", 6), 6); /* is written after the remaining bytes */
        end_standard_output(before);
        struct bytes *got = load_file(path), *want = make_stream("before ", "", 2, 4608);
        put_text(want, " after");
        cr_assert_eq(got->count, want->count, "%zu", got->count);
        cr_expect_eq(memcmp(got->data, want->data, want->count), 0);
    }
    unlink(path);
}

/* A thread that reads from a pipe, `step` bytes at a time, `most` in all. */
struct taker {
    pthread_t thread;
    int fd;
    long pause_ns; /* before each read */
    size_t step, most;
    struct bytes got;
};

static void *take(void *user)
{
    struct taker *taker = user;
    uint8_t block[4096];
    while (taker->got.count < taker->most) {
        size_t left = taker->most - taker->got.count;
        if (taker->pause_ns)
            nanosleep(&(struct timespec){.tv_nsec = taker->pause_ns}, NULL);
        ssize_t came = read(taker->fd, block, left < taker->step ? left : taker->step);
        if (came < 0 && errno == EINTR)
            continue;
        if (came <= 0)
            break;
        put(&taker->got, block, (size_t)came);
    }
    close(taker->fd);
    return NULL;
}

static int taker_start(struct taker *taker, size_t step, size_t most, long pause_ns)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    *taker = (struct taker){.fd = ends[0], .pause_ns = pause_ns, .step = step, .most = most};
    snprintf(path, 64, "/proc/self/fd/%d", ends[1]);
    cr_assert_eq(pthread_create(&taker->thread, NULL, take, taker), 0);
    return ends[1];
}

static void expect_taken(struct taker *taker, uint64_t frames, uint64_t frame_bytes)
{
    struct bytes *want = make_stream("", "", frames, frame_bytes);
    pthread_join(taker->thread, NULL);
    cr_assert_eq(taker->got.count, want->count);
    cr_assert_eq(memcmp(taker->got.data, want->data, want->count), 0);
    free(taker->got.data);
}

Test(writing, a_slow_pipe_gets_everything, .timeout = 300)
{
    struct video_format format = format_of("yuv420p10", 333, 171);
    uint64_t frame_bytes = 2 * (333 * 171 + 2 * 167 * 86);
    for (int pass = 0; pass < 3; pass++) {
        struct taker taker;
        if (pass == 2) /* most often while the writer waits */
            interrupt_often();
        int end = taker_start(&taker, pass == 2 ? 4096 : 777, SIZE_MAX, pass == 2 ? 2000000 : 0);
        int before = dup(STDOUT_FILENO);
        if (pass == 1) { /* as a parent process may have left it */
            cr_assert_eq(fcntl(end, F_SETFL, O_NONBLOCK), 0);
            dup2(end, STDOUT_FILENO);
            strcpy(path, "-");
        }
        write_frames(path, VIDEO_OUTPUT_RAW, &format, 12, pass == 1 ? 6 : 0);
        dup2(before, STDOUT_FILENO);
        close(before);
        close(end);
        expect_taken(&taker, 12, frame_bytes);
    }
}

Test(writing, a_pipe_that_closes_early_is_an_error, .timeout = 300)
{
    struct video_format format = format_of("yuv420p10", 333, 171);
    struct taker taker;
    signal(SIGPIPE, SIG_IGN);
    int end = taker_start(&taker, 4096, 100000, 0);
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, &format, &said), "%s", said.text);
    close(end);
    int frames = 0;
    while (frames < 100 && write_frame(&frame))
        frames++;
    cr_expect_lt(frames, 100);
    expect_said("Broken pipe", "write");
    cr_expect_not(write_frame(&frame));
    cr_expect_not(video_output_finish(&output, &said));
    expect_said("Broken pipe", "finish");
    pthread_join(taker.thread, NULL);
    free(taker.got.data);
    frame_free(&frame);
}

Test(writing, refuses_memory_with_rows_that_are_too_short)
{
    struct video_format format = format_of("nv12", 8, 8);
    struct frame frame = frame_make(&format, 0);
    cr_assert(video_output_open(&output, "", VIDEO_OUTPUT_NULL, &format, &said));
    frame.pitch[1] = 7;
    cr_expect_not(write_frame(&frame));
    expect_said("plane 1", "short rows");
    cr_expect(video_output_finish(&output, &said));
    frame_free(&frame);
}

Test(writing, a_real_clip_goes_through_unchanged)
{
    new_file();
    cr_assert_eq(video_kind_of(clip_path), VIDEO_KIND_Y4M);
    stream_open_path(clip_path, NULL, 32);
    const struct video_format *format = video_input_format(stream.input);
    cr_expect(format->width == 480 && format->height == 270 && format->frames == 3 && format->pixel.depth == 10);
    cr_assert(video_output_open(&output, path, VIDEO_OUTPUT_Y4M, format, &said), "%s", said.text);
    while (stream_read() == VIDEO_READ_FRAME)
        cr_assert(write_frame(&stream.frame), "%s", said.text);
    cr_assert(video_output_finish(&output, &said), "%s", said.text);
    struct bytes *in = load_file(clip_path), *out = load_file(path);
    size_t in_head = (size_t)((uint8_t *)memchr(in->data, '\n', in->count) - in->data);
    size_t out_head = (size_t)((uint8_t *)memchr(out->data, '\n', out->count) - out->data);
    cr_assert_eq(in->count - in_head, out->count - out_head);
    cr_expect_eq(memcmp(in->data + in_head, out->data + out_head, in->count - in_head), 0);
}
