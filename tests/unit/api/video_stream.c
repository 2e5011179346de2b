/* Streams of frames in all kinds of application memory, on real devices, through the public headers. A stream's
 * output is compared with that of a separate session, which maps the same pictures in buffers of the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/captured_log.h"
#include <CL/cl.h>
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 322, HEIGHT = 180, FRAMES_MAX = 16, PICTURES_MAX = 64 };

static const struct cox_video_format p10 = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
static const struct cox_video_format p8 = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
static const struct cox_video_format rgba8 = {.layout = COX_VIDEO_RGBA, .depth = 8, .range = COX_RANGE_FULL};

/* Memory of one picture, in one of the layouts that applications use. */
struct picture {
    struct cox_video_image image;
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    uint32_t plane_count;
    char *block;
    size_t block_bytes;
};

/* Objects of a test. Those that are not NULL at its end are destroyed then. */
static cox_runtime *runtime, *other_runtime;
static cox_video_stream *stream;
static struct picture pictures[PICTURES_MAX];
static uint32_t picture_count;

/* Two devices if the processor has two cores, otherwise one. */
static cox_runtime *open_runtime(void)
{
    static const char *const devices[] = {"cpu:2x1", NULL};
    cox_runtime *opened = NULL;
    cox_status status = COX_E_NO_DEVICE;
    for (int i = 0; i < 2 && status; i++)
        status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices[i],
                                                                       .log = on_log,
                                                                       .log_level = COX_LOG_DEBUG},
                                    &opened);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device: %s", cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s\n%s", cox_status_name(status), logged);
    return opened;
}

static void setup(void)
{
    runtime = open_runtime();
}

static void teardown(void)
{
    cox_video_stream_destroy(&stream);
    cr_assert_null(stream);
    while (picture_count > 0) {
        cox_video_image_destroy(&pictures[--picture_count].image);
        free(pictures[picture_count].block);
    }
    cox_runtime_destroy(&runtime);
    cox_runtime_destroy(&other_runtime);
    cr_assert(!runtime && !other_runtime, "something was not released");
}

TestSuite(video_stream, .init = setup, .fini = teardown, .timeout = 600);

/* ---- The compiler, which is called before the driver's ---- */

static atomic_bool no_compiler; /* clBuildProgram fails */

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program, void *), void *user)
{
    static __typeof__(&clBuildProgram) next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clBuildProgram");
    return no_compiler ? CL_COMPILER_NOT_AVAILABLE : next(program, count, devices, options, notify, user);
}

/* While `holds`, the first thread that makes kernels goes on, and others wait for `let_go`. */
static atomic_bool holds;
static atomic_uint threads_making;
static sem_t let_go;

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    static __typeof__(&clCreateKernel) next;
    static _Thread_local bool seen;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clCreateKernel");
    if (holds && !seen && threads_making++)
        sem_wait(&let_go);
    seen = true;
    return next(program, name, code);
}

/* ---- Pictures ---- */

struct layout {
    size_t lead_bytes; /* before the first row of each plane */
    size_t gap_bytes;  /* between rows */
    bool bottom_up;
};

enum { UNTOUCHED = 0xA5 };

static struct picture *new_picture(const struct cox_video_format *format, uint32_t width, uint32_t height)
{
    cr_assert_lt(picture_count, PICTURES_MAX);
    struct picture *picture = &pictures[picture_count++];
    picture->image = (struct cox_video_image){.format = *format, .width = width, .height = height};
    picture->plane_count = cox_video_planes(format, width, height, picture->planes);
    return picture;
}

static struct picture *lay_out(const struct cox_video_format *format, const struct layout *layout)
{
    struct picture *picture = new_picture(format, WIDTH, HEIGHT);
    size_t at[COX_VIDEO_PLANES_MAX];
    for (uint32_t p = 0; p < picture->plane_count; p++) {
        at[p] = picture->block_bytes + layout->lead_bytes;
        picture->block_bytes = at[p] + (picture->planes[p].row_bytes + layout->gap_bytes) * picture->planes[p].rows;
    }
    picture->block = aligned_alloc(4096, (picture->block_bytes + 4095) / 4096 * 4096);
    memset(picture->block, UNTOUCHED, picture->block_bytes);
    for (uint32_t p = 0; p < picture->plane_count; p++) {
        const ptrdiff_t pitch = (ptrdiff_t)(picture->planes[p].row_bytes + layout->gap_bytes);
        picture->image.data[p] = picture->block + at[p] +
                                 (layout->bottom_up ? pitch * (picture->planes[p].rows - 1) : 0);
        picture->image.pitch_bytes[p] = layout->bottom_up ? -pitch : pitch;
    }
    return picture;
}

static struct picture *in_buffers_of(cox_runtime *of, const struct cox_video_format *format, uint32_t width,
                                     uint32_t height)
{
    struct picture *picture = new_picture(format, width, height);
    cr_assert_eq(cox_video_image_create(of, format, width, height, &picture->image), COX_OK);
    return picture;
}

static struct picture *in_buffers(const struct cox_video_format *format)
{
    return in_buffers_of(runtime, format, WIDTH, HEIGHT);
}

static unsigned char *row_of(const struct cox_video_image *image, uint32_t p, uint32_t row)
{
    return (unsigned char *)image->data[p] + (ptrdiff_t)row * image->pitch_bytes[p];
}

/* The same `which` gives the same samples in any layout. */
static void paint(const struct picture *picture, unsigned which)
{
    const unsigned mask = (1u << picture->image.format.depth) - 1;
    for (uint32_t p = 0; p < picture->plane_count; p++)
        for (uint32_t row = 0; row < picture->planes[p].rows; row++) {
            unsigned char *to = row_of(&picture->image, p, row);
            for (size_t x = 0; x < picture->planes[p].row_bytes / 2; x++) {
                const unsigned code = (unsigned)(x * 7 + row * 13 + p * 101 + which * 211) * 3 & mask;
                to[2 * x] = (unsigned char)code;
                to[2 * x + 1] = (unsigned char)(code >> 8);
            }
        }
}

static bool same_samples(const struct picture *a, const struct picture *b)
{
    for (uint32_t p = 0; p < a->plane_count; p++)
        for (uint32_t row = 0; row < a->planes[p].rows; row++)
            if (memcmp(row_of(&a->image, p, row), row_of(&b->image, p, row), a->planes[p].row_bytes) != 0)
                return false;
    return a->plane_count == b->plane_count;
}

/* Whether all bytes outside the samples are unchanged. */
static bool untouched_between(const struct picture *picture)
{
    char *copy = malloc(picture->block_bytes);
    memcpy(copy, picture->block, picture->block_bytes);
    for (uint32_t p = 0; p < picture->plane_count; p++)
        for (uint32_t row = 0; row < picture->planes[p].rows; row++)
            memset(copy + ((char *)row_of(&picture->image, p, row) - picture->block), UNTOUCHED,
                   picture->planes[p].row_bytes);
    bool good = true;
    for (size_t i = 0; i < picture->block_bytes; i++)
        good &= (unsigned char)copy[i] == UNTOUCHED;
    free(copy);
    return good;
}

/* ---- The expected output ---- */

/* Map a film of the pictures `first` to `first + count - 1` as cox-tonemap does by default. The earlier frames set
 * a frame's curve. The first frame sets its own. */
static void map_plainly(unsigned first, unsigned count, bool follow, struct picture *const *out)
{
    const struct picture *in = in_buffers(&p10);
    struct cox_video_shape shape = {.width = WIDTH,
                                    .height = HEIGHT,
                                    .in = p10,
                                    .out = p8,
                                    .desaturate_highlights = true,
                                    .dither = COX_DITHER_ORDERED,
                                    .gamut = COX_GAMUT_COMPRESS};
    struct cox__pipeline_storage storage;
    struct cox_constants params;
    struct cox_video_settings settings = {0};
    struct cox_adaptation_state steer = {0};
    struct cox__session_spec about = {0};
    cox_session *session = NULL;
    cox_buffer *histogram = NULL;
    for (uint32_t p = 0; p < in->plane_count; p++) {
        shape.in_pitch_bytes[p] = (size_t)in->image.pitch_bytes[p];
        shape.out_pitch_bytes[p] = (size_t)out[0]->image.pitch_bytes[p];
    }
    cr_assert_eq(cox__video_mapping(&shape, true, &storage, &about), COX_OK);
    cr_assert_eq(cox__session_create(runtime, &about, &session), COX_OK, "%s", logged);
    cr_assert_eq(cox_buffer_create(runtime, COX_VIDEO_HISTOGRAM_BYTES, &histogram), COX_OK);
    for (unsigned n = 0; n < count; n++) {
        paint(in, first + n);
        cox_buffer *buffers[] = {in->image.memory[0],
                                 in->image.memory[1],
                                 in->image.memory[2],
                                 out[n]->image.memory[0],
                                 out[n]->image.memory[1],
                                 out[n]->image.memory[2],
                                 histogram};
        const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = 7, .params = &params};
        for (int time = n == 0 && follow ? 0 : 1; time < 2; time++) {
            cr_assert_eq(cox_video_prepare(&shape, &settings, &params), COX_OK);
            cr_assert_eq(cox__session_run(session, &frame), COX_OK);
            if (follow && (n > 0 || time == 0))
                cox_video_adapt(&steer, &shape, cox_buffer_data(histogram), &settings);
        }
    }
    cox_session_destroy(&session);
    cox_buffer_destroy(&histogram);
}

/* ---- Sending ---- */

static void open_stream(const struct cox_tonemap_options *look)
{
    cox_video_stream_destroy(&stream);
    cr_assert_eq(cox_video_stream_create(runtime, NULL, look, &stream), COX_OK, "%s", logged);
}

static void send(const struct picture *in, const struct picture *out)
{
    const cox_status status = cox_video_stream_send(stream, &in->image, &out->image, (void *)out);
    cr_assert_eq(status, COX_OK, "%s\n%s", cox_status_name(status), logged);
}

static struct cox_video_result receive(void)
{
    struct cox_video_result result;
    cr_assert_eq(cox_video_stream_receive(stream, true, &result), COX_OK);
    cr_assert_eq(result.status, COX_OK, "%s\n%s", cox_status_name(result.status), logged);
    return result;
}

static struct cox_video_result map(const struct picture *in, const struct picture *out)
{
    send(in, out);
    return receive();
}

static struct cox_video_stream_info info_now(void)
{
    struct cox_video_stream_info info;
    cox_video_stream_info(stream, &info);
    return info;
}

static struct cox_session_info session_now(void)
{
    struct cox_session_info info;
    cox_video_stream_session_info(stream, &info);
    return info;
}

static const struct cox_tonemap_options given = {.peak = COX_PEAK_FIXED};

/* ---- Tests ---- */

Test(video_stream, a_film_is_mapped_as_by_a_session_of_its_own)
{
    enum { FRAMES = 6 };
    struct picture *plain[FRAMES], *in[FRAMES], *out[FRAMES];
    for (int n = 0; n < FRAMES; n++) {
        plain[n] = in_buffers(&p8);
        in[n] = in_buffers(&p10);
        out[n] = in_buffers(&p8);
        paint(in[n], (unsigned)n);
    }
    for (int follow = 0; follow < 2; follow++) {
        map_plainly(0, FRAMES, follow, plain);
        open_stream(follow ? NULL : &given);
        for (int n = 0; n < FRAMES; n++)
            send(in[n], out[n]);
        for (int n = 0; n < FRAMES; n++) {
            const struct cox_video_result result = receive();
            cr_expect_eq(result.user, out[n]);
            cr_expect_eq(result.frame, (uint64_t)n);
            cr_expect_eq(result.bytes_copied_in + result.bytes_copied_out, 0);
            cr_expect(same_samples(plain[n], out[n]), "frame %d, follow %d", n, follow);
            cr_expect_eq(result.scene_peak_nits > 0, follow);
        }
        struct cox_video_result none;
        cr_expect_eq(cox_video_stream_receive(stream, true, &none), COX_E_NOT_FOUND);
        const struct cox_video_stream_info info = info_now();
        cr_expect_eq(info.sessions_made, 1);
        cr_expect_eq(info.bytes_copied_in + info.bytes_copied_out, 0);
        cr_expect_eq(session_now().frames_done, (uint64_t)(FRAMES + follow));
    }
}

/* How often each frame of a stream was reported, without warm-up runs. */
static uint32_t reported[FRAMES_MAX];

static void count_report(void *user, const struct cox_frame_report *report)
{
    (void)user;
    if (!report->warmup && report->index < FRAMES_MAX)
        reported[report->index]++;
}

Test(video_stream, each_frame_is_reported_once_by_its_number)
{
    enum { FRAMES = 5 };
    cr_assert_eq(cox_video_stream_create(runtime, &(const struct cox_session_params){.report = count_report}, NULL,
                                         &stream),
                 COX_OK);
    for (int n = 0; n < FRAMES; n++) {
        struct picture *in = in_buffers(&p10);
        paint(in, (unsigned)n);
        send(in, in_buffers(&p8));
    }
    for (int n = 0; n < FRAMES; n++)
        receive();
    cox_video_stream_destroy(&stream); /* after this call no report comes */

    for (int n = 0; n < FRAMES_MAX; n++)
        cr_expect_eq(reported[n], n < FRAMES, "frame %d: %u times", n, reported[n]);
}

Test(video_stream, planes_anywhere_give_the_same_picture_and_nothing_else_is_touched)
{
    static const struct {
        const char *name;
        struct layout layout;
        bool is_copied_everywhere;
    } ways[] = {
        {"packed and aligned", {0, 0, false}, false},
        {"apart", {64, 60, false}, false},
        {"at an odd address", {33, 44, false}, false},
        {"an odd pitch", {16, 3, false}, true},
        {"bottom up", {0, 32, true}, true},
        {"bottom up, an odd pitch, at an odd address", {17, 5, true}, true},
    };
    struct picture *plain = in_buffers(&p8);
    map_plainly(3, 1, false, &plain);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        struct picture *in = lay_out(&p10, &ways[w].layout), *out = lay_out(&p8, &ways[w].layout);
        paint(in, 3);
        open_stream(&given);
        const struct cox_video_result result = map(in, out);
        cr_expect(same_samples(plain, out), "%s", ways[w].name);
        cr_expect(untouched_between(in), "%s", ways[w].name);
        cr_expect(untouched_between(out), "%s", ways[w].name);
        if (ways[w].is_copied_everywhere) {
            uint64_t bytes = 0;
            for (uint32_t p = 0; p < in->plane_count; p++)
                bytes += in->planes[p].row_bytes * in->planes[p].rows;
            cr_expect_eq(result.bytes_copied_in, bytes, "%s", ways[w].name);
            cr_expect_eq(result.bytes_copied_out, bytes / 2, "%s", ways[w].name);
        }
        const struct cox_video_stream_info info = info_now();
        cr_expect_eq(info.bytes_copied_in, result.bytes_copied_in);
        cr_expect_eq(info.frames_copied_in, result.bytes_copied_in > 0);
        cr_expect_eq(info.frames_copied_out, result.bytes_copied_out > 0);
    }
}

Test(video_stream, a_window_of_a_larger_frame_is_mapped_alone)
{
    enum { LEFT = 22, ABOVE = 12 };
    struct picture *plain = in_buffers(&p8), *out = in_buffers(&p8);
    struct picture *large = in_buffers_of(runtime, &p10, WIDTH + 64, HEIGHT + 64);
    map_plainly(5, 1, false, &plain);
    struct picture window = *large;
    window.image.width = WIDTH;
    window.image.height = HEIGHT;
    window.plane_count = cox_video_planes(&p10, WIDTH, HEIGHT, window.planes);
    for (uint32_t p = 0; p < window.plane_count; p++)
        window.image.data[p] = row_of(&large->image, p, ABOVE >> (p > 0)) + 2 * (LEFT >> (p > 0));
    paint(&window, 5);
    open_stream(&given);
    map(&window, out);
    cr_expect(same_samples(plain, out));
}

/* A stream that alternates between two sizes keeps one session for each, and frames stay in order. */
Test(video_stream, size_format_and_look_change_in_mid_stream)
{
    struct picture *in[FRAMES_MAX], *out[FRAMES_MAX];
    open_stream(&given);
    for (int n = 0; n < FRAMES_MAX; n++) {
        const uint32_t divisor = n / 2 % 2 ? 2 : 1;
        in[n] = in_buffers_of(runtime, &p10, WIDTH / divisor, HEIGHT / divisor);
        out[n] = in_buffers_of(runtime, n < FRAMES_MAX - 1 ? &p8 : &rgba8, WIDTH / divisor, HEIGHT / divisor);
        paint(in[n], (unsigned)n % 4);
        send(in[n], out[n]);
    }
    for (int n = 0; n < FRAMES_MAX; n++) {
        cr_expect_eq(receive().user, out[n]);
        if (n >= 4 && n < FRAMES_MAX - 1)
            cr_expect(same_samples(out[n], out[n % 4]), "frame %d", n);
    }
    const struct cox_video_stream_info info = info_now();
    cr_expect_eq(info.sessions_made, 3);
    cr_expect_eq(info.bytes_copied_in + info.bytes_copied_out, 0);
    cr_assert_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.op = COX_OPERATOR_BT2390,
                                                                                  .peak = COX_PEAK_FIXED}),
                 COX_OK);
    map(in[0], out[1]);
    cr_expect_not(same_samples(out[0], out[1]));
}

/* Some programs do not set the padding of a struct to zero. */
Test(video_stream, padding_of_structs_makes_no_other_shape)
{
    struct picture *in = in_buffers(&p10), *out = in_buffers(&p8);
    open_stream(&given);
    paint(in, 0);
    for (int n = 0; n < 3; n++) {
        struct cox_video_format dirty;
        memset(&dirty, 17 * n, sizeof dirty);
        dirty.layout = p10.layout;
        dirty.depth = p10.depth;
        dirty.msb_aligned = p10.msb_aligned;
        dirty.chroma_x_log2 = p10.chroma_x_log2;
        dirty.chroma_y_log2 = p10.chroma_y_log2;
        dirty.chroma_location = p10.chroma_location;
        dirty.range = p10.range;
        memcpy(&in->image.format, &dirty, sizeof dirty);
        map(in, out);
    }
    cr_expect_eq(info_now().sessions_made, 1);
}

/* The first frame with another pitch is copied, the second one is not. */
Test(video_stream, pitches_that_stay_are_taken_over)
{
    static const int order[] = {0, 1, 0, 1, 1, 1, 0, 1};
    static const int copied[] = {0, 1, 0, 1, 0, 0, 0, 0};
    struct picture *usual = in_buffers(&p10), *out = in_buffers(&p8);
    struct picture *wide = in_buffers_of(runtime, &p10, 2 * WIDTH, HEIGHT);
    wide->image.width = WIDTH;
    wide->plane_count = cox_video_planes(&p10, WIDTH, HEIGHT, wide->planes);
    paint(usual, 1);
    paint(wide, 1);
    open_stream(&given);
    for (size_t n = 0; n < sizeof order / sizeof *order; n++)
        cr_expect_eq(map(order[n] ? wide : usual, out).bytes_copied_in > 0, copied[n], "frame %zu", n);
}

Test(video_stream, a_restart_forgets_the_light_of_before)
{
    enum { FRAMES = 3 };
    struct picture *plain[FRAMES], *in = in_buffers(&p10), *out = in_buffers(&p8);
    for (int n = 0; n < FRAMES; n++)
        plain[n] = in_buffers(&p8);
    map_plainly(7, FRAMES, true, plain);
    open_stream(NULL);
    for (unsigned n = 0; n < 5; n++) { /* another film */
        memset(in->image.data[0], 16 + (int)n, (size_t)in->image.pitch_bytes[0] * HEIGHT);
        map(in, out);
    }
    for (unsigned n = 0; n < FRAMES; n++) {
        paint(in, 7 + n);
        if (n == 0)
            cox_video_stream_restart(stream);
        cr_assert_eq(cox_video_stream_send(stream, &in->image, &out->image, NULL), COX_OK);
        receive();
        cr_expect(same_samples(plain[n], out), "frame %u", n);
    }
}

Test(video_stream, a_frame_that_is_refused_leaves_the_curve)
{
    struct picture *in = in_buffers(&p10), *out = in_buffers(&p8);
    struct cox_video_result results[2];
    for (unsigned refused = 0; refused < 2; refused++) {
        open_stream(NULL);
        for (unsigned n = 0; n < 3; n++) {
            paint(in, n);
            map(in, out);
        }
        struct cox_video_image wrong = out->image, same = out->image;
        wrong.format.depth = 9;
        wrong.format.msb_aligned = true;
        wrong.format.layout = COX_VIDEO_V210;
        if (refused) { /* the second time, the output is the input */
            cr_assert_neq(cox_video_stream_send(stream, &in->image, &wrong, NULL), COX_OK);
            cr_assert_neq(cox_video_stream_send(stream, &same, &same, NULL), COX_OK);
        }
        paint(in, 3);
        results[refused] = map(in, out);
    }
    cr_expect_eq(results[0].cut, results[1].cut);
    cr_expect_eq(results[0].peak_nits, results[1].peak_nits);
    cr_expect_eq(results[0].gain, results[1].gain);
}

/* A picture that was decoded into a buffer without spare rows, with some columns on the left cut off. */
Test(video_stream, a_window_to_the_end_of_its_buffer_is_mapped)
{
    struct picture *whole = in_buffers(&p10), window = *whole;
    struct picture *outs[] = {in_buffers_of(runtime, &p8, WIDTH - 16, HEIGHT),
                              in_buffers_of(runtime, &p8, WIDTH - 16, HEIGHT)};
    open_stream(&given);
    paint(whole, 1);
    window.image.width -= 16;
    for (uint32_t p = 0; p < 3; p++)
        window.image.data[p] = (char *)whole->image.data[p] + (p ? 16 : 32);
    for (int known = 0; known < 2; known++) {
        for (uint32_t p = 0; p < 3; p++)
            window.image.memory[p] = known ? whole->image.memory[p] : NULL;
        map(&window, outs[known]);
    }
    cr_expect(same_samples(outs[0], outs[1]));
    window.image.pitch_bytes[0] += 4; /* puts its last row outside of the buffer */
    cr_expect_eq(cox_video_stream_send(stream, &window.image, &outs[0]->image, NULL), COX_E_INVALID);
}

/* Frames' own gain and peak are added, and are limited to the valid range. */
Test(video_stream, every_gain_that_there_is_goes_with_light_that_is_found)
{
    static const float gains[] = {0x1p-32f, 0x1p-9f, 0x1p9f, 0x1p32f};
    struct picture *in = in_buffers(&p10), *out = in_buffers(&p8);
    open_stream(NULL);
    for (unsigned n = 0; n < 4; n++) {
        const struct cox_video_settings settings = {.gain = gains[n]};
        cr_assert_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.settings = settings}), COX_OK);
        paint(in, n);
        const struct cox_video_result result = map(in, out);
        cr_expect(result.gain >= 0x1p-32f && result.gain <= 0x1p32f, "%g", (double)result.gain);
        cr_expect(result.peak_nits >= 1 && result.peak_nits <= 1e6f, "%g", (double)result.peak_nits);
    }
}

/* A stream that was prepared has its session when the first frame comes. */
Test(video_stream, it_can_be_prepared_for_frames_to_come)
{
    const struct layout layout = {0, 64, false};
    struct picture *in = lay_out(&p10, &layout), *out = lay_out(&p8, &layout);
    struct cox_video_image in_to_come = in->image, out_to_come = out->image;
    open_stream(&(const struct cox_tonemap_options){.peak = COX_PEAK_CURRENT});
    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++)
        in_to_come.data[p] = out_to_come.data[p] = NULL;
    cr_assert_eq(cox_video_stream_prepare(stream, &in_to_come, &out_to_come), COX_OK, "%s", logged);
    cr_expect_gt(session_now().device_count, 0);
    in_to_come.width = 0;
    cr_expect_eq(cox_video_stream_prepare(stream, &in_to_come, &out_to_come), COX_E_INVALID);
    cr_expect_eq(cox_video_stream_prepare(stream, NULL, &out_to_come), COX_E_INVALID);
    cr_expect_eq(cox_video_stream_prepare(NULL, &in->image, &out->image), COX_E_INVALID);
    paint(in, 2);
    const struct cox_video_result result = map(in, out);
    cr_expect_gt(result.scene_peak_nits, 0);
    cr_expect(result.cut);
    cr_expect_eq(info_now().sessions_made, 1);
}

static const struct cox_session_params in_background = {.warmup = COX_WARMUP_BACKGROUND};

static void open_in_background(const struct cox_tonemap_options *look)
{
    cox_video_stream_destroy(&stream);
    cr_assert_eq(cox_video_stream_create(runtime, &in_background, look, &stream), COX_OK, "%s", logged);
}

static uint32_t devices_in(enum cox_device_state state)
{
    const struct cox_session_info info = session_now();
    uint32_t count = 0;
    for (uint32_t d = 0; d < info.device_count; d++)
        count += info.devices[d].state == state;
    return count;
}

/* One device compiles until the test lets it go. The stream does not wait for it. */
Test(video_stream, a_slow_device_delays_no_frame)
{
    enum { FRAMES = 3 };
    struct picture *plain[FRAMES], *in = in_buffers(&p10), *out = in_buffers(&p8);
    if (cox_runtime_device_count(runtime) < 2)
        cr_skip_test("skipped, because the processor has one core");
    for (int n = 0; n < FRAMES; n++)
        plain[n] = in_buffers(&p8);
    map_plainly(0, FRAMES, true, plain);

    sem_init(&let_go, 0, 0);
    holds = true;
    open_in_background(NULL);
    cr_assert_eq(cox_video_stream_prepare(stream, &in->image, &out->image), COX_OK, "%s", logged);
    for (int n = 0; n < FRAMES; n++) {
        paint(in, (unsigned)n);
        map(in, out);
        cr_expect(same_samples(plain[n], out), "frame %d", n);
        cr_expect_eq(devices_in(COX_DEVICE_ACTIVE), 1);
        cr_expect_eq(devices_in(COX_DEVICE_JOINING), 1);
    }

    sem_post(&let_go);
    cox_video_stream_destroy(&stream);
    cr_expect_eq(threads_making, 2);
    sem_destroy(&let_go);
}

/* Without a device the calls fail as they do if they wait for all devices. */
Test(video_stream, a_stream_in_the_background_says_why_no_device_starts)
{
    struct picture *in = in_buffers(&p10), *out = in_buffers(&p8);
    no_compiler = true;
    for (int background = 0; background < 2; background++) {
        if (background)
            open_in_background(NULL);
        else
            open_stream(NULL);
        cr_expect_eq(cox_video_stream_prepare(stream, &in->image, &out->image), COX_E_BUILD, "%s", logged);
        cr_expect_eq(cox_video_stream_send(stream, &in->image, &out->image, NULL), COX_E_BUILD, "%s", logged);
        cr_expect_eq(info_now().sessions_made, 0);
    }

    no_compiler = false;
    paint(in, 1);
    map(in, out);
    cr_expect_eq(info_now().sessions_made, 1);
}

/* ---- Waiting ---- */

Test(video_stream, the_descriptor_is_readable_while_a_frame_can_be_received)
{
    struct picture *in = in_buffers(&p10), *out[2] = {in_buffers(&p8), in_buffers(&p8)};
    struct cox_video_result result;
    open_stream(&given);
    struct pollfd waits = {.fd = cox_video_stream_descriptor(stream), .events = POLLIN};
    paint(in, 0);
    cr_expect_eq(poll(&waits, 1, 0), 0);
    cr_expect_eq(cox_video_stream_receive(stream, false, &result), COX_E_NOT_FOUND);
    send(in, out[0]);
    send(in, out[1]);
    for (int n = 0; n < 2; n++) {
        cr_assert_eq(poll(&waits, 1, 60000), 1, "frame %d did not come", n);
        cr_assert_eq(cox_video_stream_receive(stream, false, &result), COX_OK);
        cr_expect_eq(result.user, out[n]);
    }
    cr_expect_eq(poll(&waits, 1, 0), 0);
}

struct sender {
    struct picture *in, *out[FRAMES_MAX];
    int frames;
};

static void *send_all(void *user)
{
    const struct sender *sender = user;
    for (int n = 0; n < sender->frames; n++)
        send(sender->in, sender->out[n % FRAMES_MAX]);
    return NULL;
}

Test(video_stream, one_thread_sends_while_another_receives)
{
    struct sender sender = {.in = in_buffers(&p10), .frames = 200};
    for (int n = 0; n < FRAMES_MAX; n++)
        sender.out[n] = in_buffers(&p8);
    paint(sender.in, 0);
    open_stream(NULL);
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, send_all, &sender), 0);
    for (uint64_t n = 0; n < (uint64_t)sender.frames;) {
        struct cox_video_result result;
        const cox_status status = cox_video_stream_receive(stream, true, &result);
        if (status == COX_E_NOT_FOUND) /* the sender has not got there yet */
            continue;
        cr_assert_eq(status, COX_OK);
        cr_assert_eq(result.frame, n++);
        if (n % 50 == 0)
            cox_video_stream_cancel(stream);
    }
    pthread_join(thread, NULL);
}

Test(video_stream, destroying_it_gives_back_what_was_not_received)
{
    const struct layout layout = {8, 8, false};
    struct picture *in = lay_out(&p10, &layout), *out = lay_out(&p8, &layout);
    open_stream(&given);
    paint(in, 0);
    for (int n = 0; n < 5; n++)
        send(in, out);
}

/* ---- Errors ---- */

Test(video_stream, a_frame_that_is_none_is_refused_and_the_stream_goes_on)
{
    other_runtime = open_runtime();
    const struct picture *in = in_buffers(&p10), *out = in_buffers(&p8);
    const struct picture *strange = in_buffers_of(other_runtime, &p10, WIDTH, HEIGHT);
    struct cox_video_image bad;
    open_stream(&given);
#define REFUSED(status, ...)                                                                              \
    do {                                                                                                  \
        bad = in->image;                                                                                  \
        __VA_ARGS__;                                                                                      \
        cr_expect_eq(cox_video_stream_send(stream, &bad, &out->image, NULL), status, "%s", #__VA_ARGS__); \
    } while (0)
    REFUSED(COX_E_INVALID, bad.width = 0);
    REFUSED(COX_E_INVALID, bad.format.depth = 7);
    REFUSED(COX_E_INVALID, bad.data[1] = NULL);
    REFUSED(COX_E_INVALID, bad.pitch_bytes[2] = 2);
    REFUSED(COX_E_INVALID, bad.pitch_bytes[0] = 0);
    REFUSED(COX_E_INVALID, bad.pitch_bytes[0] *= 2);
    REFUSED(COX_E_INVALID, bad.data[0] = (char *)bad.data[0] - 4);
    REFUSED(COX_E_INVALID, bad.data[0] = (char *)bad.data[0] + (size_t)bad.pitch_bytes[0]);
    REFUSED(COX_E_INVALID, bad.pitch_bytes[0] = -bad.pitch_bytes[0]);
    REFUSED(COX_E_INVALID, bad.memory[0] = strange->image.memory[0], bad.data[0] = strange->image.data[0]);
    REFUSED(COX_E_INVALID, bad.transfer = (enum cox_transfer)9);
    REFUSED(COX_E_INVALID, bad.transfer = COX_TRANSFER_LINEAR);
    cr_expect_eq(cox_video_stream_send(stream, &in->image, NULL, NULL), COX_E_INVALID);
    cr_expect_eq(cox_video_stream_send(stream, NULL, &out->image, NULL), COX_E_INVALID);
    cr_expect_eq(cox_video_stream_send(NULL, &in->image, &out->image, NULL), COX_E_INVALID);
    cr_expect_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.op = COX_OPERATOR_EXPOSURE}),
                 COX_E_INVALID);
    cr_expect_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.dither = (enum cox_tristate)3}),
                 COX_E_INVALID);
    cr_expect_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.peak = (enum cox_peak_source)3}),
                 COX_E_INVALID);
    cr_expect_eq(cox_video_stream_set(stream, &(const struct cox_tonemap_options){.settings.sdr_white_nits = 0.5f}),
                 COX_E_INVALID);
    /* A table needs its buffer, a fixed peak, and an operator that it can replace. */
    const struct cox_tonemap_options table = {
        .peak = COX_PEAK_FIXED, .lut_points = 5, .lut_table = out->image.memory[1]};
    for (int wrong = 0; wrong < 5; wrong++) {
        struct cox_tonemap_options bad_table = table;
        bad_table.peak = wrong == 0 ? COX_PEAK_CURRENT : COX_PEAK_FIXED;
        bad_table.lut_points = wrong == 1 ? 0 : wrong == 2 ? 130 : 5;
        bad_table.lut_table = wrong == 3 ? NULL : table.lut_table;
        bad_table.op = wrong == 4 ? COX_OPERATOR_LOCAL : COX_OPERATOR_HABLE;
        cr_expect_eq(cox_video_stream_set(stream, &bad_table), COX_E_INVALID, "%d", wrong);
    }
    cr_expect_eq(map(in, out).frame, 0);
}
