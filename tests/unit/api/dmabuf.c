/* Buffers of DMA-BUFs on real devices: each access lies between start and end (support/dmabuf_audit.h), and results are
 * those of the library's own memory. Each case runs on a memfd. If the machine has /dev/udmabuf, it also runs on real
 * DMA-BUFs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include "support/dmabuf_audit.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

enum { W = 64, H = 192, BYTES = W * H };

static cox_runtime *runtime;
static cox_session *session;
static cox_video_stream *stream;
static cox_buffer *buffers[8];

struct set_up {
    char devices[24];
    bool real;
};

static struct set_up set_ups[] = {
    {"cpu", false}, {"cpu:2x1", false},  {"cpu=staged", false}, {"cpu:2x1=staged", false}, {"cpu:2x1=mapped", false},
    {"cpu", true},  {"cpu=staged", true}};

#define ON_EACH_SET_UP(suite, name)                                                           \
    ParameterizedTestParameters(suite, name)                                                  \
    {                                                                                         \
        return cr_make_param_array(struct set_up, set_ups, sizeof set_ups / sizeof *set_ups); \
    }                                                                                         \
    ParameterizedTest(const struct set_up *on, suite, name)

static void open_on(const struct set_up *on)
{
    if (on->real && !dmabuf_can_be_real())
        cr_skip_test("skipped, because there is no /dev/udmabuf; memfds were checked");
    const cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = on->devices, .log = on_log}, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND ||
        status == COX_E_INVALID)
        cr_skip_test("skipped, because there is no OpenCL device %s: %s", on->devices, cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s", logged);
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_video_stream_destroy(&stream);
    for (uint32_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
        cox_buffer_destroy(&buffers[b]);
    cox_runtime_destroy(&runtime);
    cr_assert(!runtime, "something was not released");
    cr_expect_str_empty(dmabufs_wrong());
    for (uint32_t i = 0; i < dmabufs.count; i++)
        cr_expect_eq(dmabufs.list[i].starts && !dmabufs.list[i].ends, 0);
    dmabufs_end();
}

TestSuite(dmabuf, .fini = teardown, .timeout = 300);

static struct dmabuf *new_dmabuf(size_t bytes, bool real)
{
    struct dmabuf *dmabuf = dmabuf_new(bytes, real);
    cr_assert_not_null(dmabuf);
    return dmabuf;
}

/* Import a part, and watch it. */
static cox_buffer *import(struct dmabuf *dmabuf, size_t offset, size_t bytes)
{
    cox_buffer *buffer = NULL;
    cr_assert_eq(cox_buffer_import_dmabuf(runtime, dmabuf->fd, offset, bytes, NULL, NULL, &buffer), COX_OK, "%s",
                 logged);
    cr_assert_eq(cox_buffer_bytes(buffer), bytes);
    dmabuf_watch(dmabuf, cox_buffer_data(buffer), bytes);
    return buffer;
}

/* ---- sessions ---- */

static const char stir[] =
    "kernel void stir(global const uchar *from, int from_first_row, global uchar *to, int to_first_row, int columns,\n"
    "                 int rows, int first_row, int frame_rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1), r = first_row + y;\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    int down = min(r + 1, frame_rows - 1) - from_first_row;\n"
    "    to[(r - to_first_row) * columns + x] = from[(r - from_first_row) * columns + x] * 3 + from[down * columns + x];\n"
    "}\n";

static void open_session(bool stays, bool check)
{
    const struct cox_session_params params = {
        .columns = W,
        .rows = H,
        .passes = COX_LIST(struct cox_pass,
                           {.source = stir,
                            .arguments = COX_LIST(struct cox_argument, {.name = "from", .halo_rows = 1})}),
        .buffers = COX_LIST(struct cox_buffer_layout, {.name = "from", .stays = stays}, {.name = "to", .stays = stays}),
        .in_flight = 3,
        .check = check,
    };
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);
}

static void paint(char *data, unsigned seed)
{
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (char)((i * 7 + seed * 31) * 2654435761u >> 13);
}

static bool is_stirred(const char *in, const char *out)
{
    bool good = true;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            good &= (unsigned char)out[y * W + x] ==
                    (unsigned char)(in[y * W + x] * 3 + in[(y < H - 1 ? y + 1 : y) * W + x]);
    return good;
}

static cox_status run(cox_buffer *from, cox_buffer *to)
{
    return cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(from, to)});
}

/* An input and an output, each in a DMA-BUF of its own. */
static struct dmabuf *make_two(const struct set_up *on)
{
    for (int b = 0; b < 2; b++)
        buffers[b] = import(new_dmabuf(BYTES, on->real), 0, BYTES);
    paint(dmabufs.list[0].own, 1);
    return dmabufs.list;
}

ON_EACH_SET_UP(dmabuf, devices_touch_it_only_between_start_and_end)
{
    open_on(on);
    open_session(false, false);
    const struct dmabuf *two = make_two(on);
    for (unsigned n = 0; n < 5; n++) {
        paint(two[0].own, n);
        cr_assert_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
        cr_expect(is_stirred(two[0].own, two[1].own), "frame %u", n);
        cr_expect_eq(two[0].starts, n + 1);
        cr_expect_eq(two[1].ends, n + 1);
    }
}

static void count_done(void *user, uint64_t frame, cox_status status)
{
    *(unsigned *)user += status == COX_OK;
    if (!frame && dmabufs.list[1].open) /* the output, which only this frame uses */
        dmabuf_complain("open in the callback", 0, dmabufs.list[1].open);
}

/* Frames share their input, and some read what the frame before wrote. */
ON_EACH_SET_UP(dmabuf, frames_in_flight_share_it)
{
    unsigned done = 0;
    open_on(on);
    open_session(false, false);
    struct dmabuf *two = make_two(on);
    buffers[2] = import(new_dmabuf(BYTES, on->real), 0, BYTES);
    buffers[3] = import(new_dmabuf(BYTES, on->real), 0, BYTES);
    for (unsigned n = 0; n < 12; n++) {
        const bool reads_last = n % 3 == 2;
        const struct cox_frame frame = {.buffers = COX_BUFFERS(buffers[reads_last ? 2 : 0], buffers[reads_last ? 3
                                                                                                    : n        ? 2
                                                                                                               : 1])};
        cr_assert_eq(cox_session_submit(session, &frame, count_done, &done), COX_OK, "%s", logged);
    }
    cr_assert_eq(cox_session_wait(session), COX_OK, "%s", logged);
    cr_expect_eq(done, 12);
    cr_expect(is_stirred(two[0].own, two[1].own));
    cr_expect(is_stirred(two[0].own, two[2].own));
    cr_expect(is_stirred(two[2].own, two[3].own));
}

ON_EACH_SET_UP(dmabuf, cancelled_frames_end_their_access)
{
    open_on(on);
    open_session(false, false);
    make_two(on);
    for (unsigned n = 0; n < 3; n++)
        cr_assert_eq(cox_session_submit(session, &(struct cox_frame){.buffers = COX_BUFFERS(buffers[0], buffers[1])},
                                        NULL, NULL),
                     COX_OK);
    cox_session_cancel(session);
    cox_session_destroy(&session);
    cr_expect_str_empty(dmabufs_wrong());
}

ON_EACH_SET_UP(dmabuf, rows_that_stay_on_devices_are_fetched_between_start_and_end)
{
    open_on(on);
    open_session(true, false);
    const struct dmabuf *two = make_two(on);
    cr_assert_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
    cr_assert_eq(cox_session_fetch(session, buffers[1]), COX_OK, "%s", logged);
    cr_expect(is_stirred(two[0].own, two[1].own));
    cr_expect_eq(two[1].starts, 2);
}

ON_EACH_SET_UP(dmabuf, check_mode_reads_it_between_start_and_end)
{
    open_on(on);
    open_session(false, true);
    const struct dmabuf *two = make_two(on);
    cr_assert_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
    cr_expect(is_stirred(two[0].own, two[1].own));
}

/* ---- parts ---- */

/* Three planes, the second at an odd offset inside a page: their access begins once and ends once. */
ON_EACH_SET_UP(dmabuf, parts_of_one_dmabuf_begin_and_end_together)
{
    open_on(on);
    open_session(false, false);
    struct dmabuf *all = new_dmabuf(3 * (size_t)BYTES, on->real);
    const size_t at = BYTES + 4 * 37;
    buffers[0] = import(all, 0, BYTES);
    buffers[1] = import(all, at, BYTES);
    paint(all->own, 3);
    memset(all->own + at + BYTES, 0x5A, 64);
    cr_assert_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
    cr_expect(is_stirred(all->own, all->own + at));
    cr_expect_eq(all->own[at + BYTES], 0x5A);
    cr_expect_eq(all->ends, 1);
    cr_expect_leq(all->starts, 2, "reading, then writing too");
}

static unsigned released_count;

static void note_released(void *user)
{
    (*(unsigned *)user)++;
}

Test(dmabuf, the_descriptor_stays_the_callers_and_released_runs_once)
{
    open_on(&set_ups[0]);
    struct dmabuf *dmabuf = new_dmabuf(BYTES, false);
    const int own = fcntl(dmabuf->fd, F_DUPFD_CLOEXEC, 0);
    cr_assert_eq(cox_buffer_import_dmabuf(runtime, own, 0, BYTES, note_released, &released_count, &buffers[0]), COX_OK);
    cr_expect_eq(close(own), 0);
    dmabuf_watch(dmabuf, cox_buffer_data(buffers[0]), BYTES);
    open_session(false, false);
    cr_assert_eq(cox_buffer_create(runtime, BYTES, &buffers[1]), COX_OK);
    cr_assert_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
    dmabuf_unwatch(dmabuf);
    for (int b = 0; b < 2; b++)
        cox_buffer_destroy(&buffers[b]);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cr_expect_eq(released_count, 1);
}

Test(dmabuf, other_memory_is_refused)
{
    open_on(&set_ups[0]);
    const struct dmabuf *dmabuf = new_dmabuf(BYTES, false);
    const int other = memfd_create("other", MFD_CLOEXEC);
    const struct {
        int fd;
        size_t offset, bytes;
    } bad[] = {{-1, 0, 1},
               {other, 0, 1},
               {dmabuf->fd, 0, 0},
               {dmabuf->fd, 0, SIZE_MAX},
               {dmabuf->fd, SIZE_MAX, 1},
               {dmabuf->fd, 0, dmabuf->bytes + 1},
               {dmabuf->fd, dmabuf->bytes, 1}};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        logged[0] = '\0';
        cr_expect_eq(cox_buffer_import_dmabuf(runtime, bad[i].fd, bad[i].offset, bad[i].bytes, NULL, NULL, &buffers[0]),
                     COX_E_INVALID, "case %u", i);
        cr_expect_null(buffers[0]);
        cr_expect_neq(logged[0], '\0', "case %u", i);
    }
    cr_expect_eq(cox_buffer_import_dmabuf(NULL, dmabuf->fd, 0, 1, NULL, NULL, &buffers[0]), COX_E_INVALID);
    cr_expect_eq(cox_buffer_import_dmabuf(runtime, dmabuf->fd, 0, 1, NULL, NULL, NULL), COX_E_INVALID);
    close(other);
}

/* A second descriptor of the memory, only for reading. */
static int only_for_reading(const struct dmabuf *dmabuf)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", dmabuf->fd);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

Test(dmabuf, a_descriptor_for_reading_is_read_and_never_written)
{
    open_on(&set_ups[2]);
    open_session(false, false);
    const struct dmabuf *two = make_two(&set_ups[2]);
    const int fd = only_for_reading(&two[0]);
    cr_assert_eq(cox_buffer_import_dmabuf(runtime, fd, 0, BYTES, NULL, NULL, &buffers[2]), COX_OK, "%s", logged);
    close(fd);
    cr_assert_eq(run(buffers[2], buffers[1]), COX_OK, "%s", logged);
    cr_expect(is_stirred(two[0].own, two[1].own));
    cr_expect_eq(run(buffers[1], buffers[2]), COX_E_INVALID);
    cr_expect(strstr(logged, "only for reading"), "%s", logged);
    cr_expect_str_empty(dmabufs_wrong(), "a refused frame leaves no access open");
}

/* ---- errors ---- */

Test(dmabuf, interrupted_calls_are_repeated)
{
    static const int errors[] = {EINTR, EAGAIN};
    open_on(&set_ups[0]);
    open_session(false, false);
    make_two(&set_ups[0]);
    for (unsigned i = 0; i < 4; i++) {
        dmabufs_fail(i < 2 ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END, errors[i % 2], 3);
        cr_expect_eq(run(buffers[0], buffers[1]), COX_OK, "case %u: %s", i, logged);
        cr_expect_eq(dmabufs.fail_times, 0);
    }
}

Test(dmabuf, a_frame_whose_access_cannot_begin_is_refused)
{
    open_on(&set_ups[0]);
    open_session(false, false);
    const struct dmabuf *two = make_two(&set_ups[0]);
    for (unsigned n = 0; n < 2; n++) { /* the input's, the output's */
        dmabufs_fail(DMA_BUF_SYNC_START, EIO, 1);
        cr_expect_eq(run(buffers[n], buffers[!n]), COX_E_SYSTEM);
        cr_expect(strstr(logged, "DMA_BUF_IOCTL_SYNC (start)"), "%s", logged);
        cr_expect_str_empty(dmabufs_wrong());
    }
    cr_expect_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
    cr_expect(is_stirred(two[0].own, two[1].own));
}

Test(dmabuf, a_frame_whose_access_cannot_end_fails)
{
    open_on(&set_ups[0]);
    open_session(false, false);
    make_two(&set_ups[0]);
    dmabufs_fail(DMA_BUF_SYNC_END, EIO, 1);
    cr_expect_eq(run(buffers[0], buffers[1]), COX_E_SYSTEM);
    cr_expect(strstr(logged, "DMA_BUF_IOCTL_SYNC (end)"), "%s", logged);
    cr_expect_eq(run(buffers[0], buffers[1]), COX_OK, "%s", logged);
}

/* ---- streams ---- */

enum { WIDTH = 322, HEIGHT = 180, UV_PITCH = 896, Y_PITCH = 768 };

static const struct cox_video_format p010 = {
    .layout = COX_VIDEO_SEMI_PLANAR, .depth = 10, .msb_aligned = true, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
static const struct cox_video_format nv12 = {
    .layout = COX_VIDEO_SEMI_PLANAR, .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};

/* Both planes are in one DMA-BUF, with other pitches; luma begins behind a header, chroma inside a page. */
struct picture {
    struct dmabuf *dmabuf;
    struct cox_video_image image;
    size_t at[2];
};

static struct picture in_one_dmabuf(const struct cox_video_format *format, cox_buffer **whole, bool real)
{
    struct picture picture = {.dmabuf = new_dmabuf(1 << 19, real), .at = {64, 64 + Y_PITCH * HEIGHT + 36}};
    *whole = import(picture.dmabuf, 0, picture.dmabuf->bytes);
    picture.image = (struct cox_video_image){
        .format = *format, .width = WIDTH, .height = HEIGHT, .pitch_bytes = {Y_PITCH, UV_PITCH}};
    for (int p = 0; p < 2; p++) {
        picture.image.memory[p] = *whole;
        picture.image.data[p] = (char *)cox_buffer_data(*whole) + picture.at[p];
    }
    return picture;
}

static uint32_t rows_of(int p)
{
    return p ? HEIGHT / 2 : HEIGHT;
}

static void paint_picture(unsigned char *plane, size_t pitch, int p, unsigned seed)
{
    for (uint32_t y = 0; y < rows_of(p); y++)
        for (uint32_t x = 0; x < WIDTH; x++) {
            const unsigned code = (x * 3 + y * 5 + (unsigned)p * 77 + seed * 19) % 900 + 64;
            plane[y * pitch + 2 * x] = (unsigned char)(code << 6);
            plane[y * pitch + 2 * x + 1] = (unsigned char)(code >> 2);
        }
}

static void map(const struct cox_video_image *in, const struct cox_video_image *out, struct cox_video_result *result)
{
    cr_assert_eq(cox_video_stream_send(stream, in, out, NULL), COX_OK, "%s", logged);
    cr_assert_eq(cox_video_stream_receive(stream, true, result), COX_OK);
    cr_assert_eq(result->status, COX_OK, "%s", logged);
}

static bool same_rows(const char *a, size_t a_pitch, const char *b, size_t b_pitch, int p)
{
    bool same = true;
    for (uint32_t y = 0; y < rows_of(p); y++)
        same &= memcmp(a + y * a_pitch, b + y * b_pitch, WIDTH) == 0;
    return same;
}

/* The whole pipeline: bars are looked for, the light is measured, and rows are copied if devices need that. */
ON_EACH_SET_UP(dmabuf, a_stream_takes_planes_at_offsets)
{
    struct cox_video_image plain_in = {0}, plain_out = {0};
    struct cox_video_result result;
    open_on(on);
    cr_assert_eq(cox_video_image_create(runtime, &p010, WIDTH, HEIGHT, &plain_in), COX_OK);
    cr_assert_eq(cox_video_image_create(runtime, &nv12, WIDTH, HEIGHT, &plain_out), COX_OK);
    const struct picture in = in_one_dmabuf(&p010, &buffers[0], on->real),
                         out = in_one_dmabuf(&nv12, &buffers[1], on->real);
    for (enum cox_peak_source peak = COX_PEAK_PREVIOUS; peak <= COX_PEAK_FIXED; peak++) {
        const struct cox_tonemap_options options = {.peak = peak};
        cr_assert_eq(cox_video_stream_create(runtime, NULL, &options, &stream), COX_OK, "%s", logged);
        for (int p = 0; p < 2; p++) {
            paint_picture((unsigned char *)in.dmabuf->own + in.at[p], (size_t)in.image.pitch_bytes[p], p, peak);
            paint_picture(plain_in.data[p], (size_t)plain_in.pitch_bytes[p], p, peak);
        }
        map(&plain_in, &plain_out, &result);
        const uint32_t before = in.dmabuf->starts;
        for (int time = 0; time < 2; time++) { /* the stream takes the second frame's pitches */
            cox_video_stream_restart(stream);
            map(&in.image, &out.image, &result);
        }
        cr_expect_eq(in.dmabuf->starts, before + 2, "one start for all runs of a frame");
        cr_expect_eq(result.bytes_copied_in > 0, strstr(on->devices, "staged") != NULL);
        for (int p = 0; p < 2; p++)
            cr_expect(same_rows(plain_out.data[p], (size_t)plain_out.pitch_bytes[p], out.dmabuf->own + out.at[p],
                                (size_t)out.image.pitch_bytes[p], p),
                      "peak %u, plane %d", (unsigned)peak, p);
        cox_video_stream_destroy(&stream);
    }
    cox_video_image_destroy(&plain_in);
    cox_video_image_destroy(&plain_out);
}

/* With a buffer for each plane nothing is copied, whatever the devices are. */
ON_EACH_SET_UP(dmabuf, a_plane_that_is_a_buffer_is_not_copied)
{
    struct cox_video_result result;
    open_on(on);
    struct picture in = in_one_dmabuf(&p010, &buffers[0], on->real), out = in_one_dmabuf(&nv12, &buffers[1], on->real);
    for (int p = 0; p < 2; p++) {
        const size_t in_bytes = (size_t)in.image.pitch_bytes[p] * rows_of(p),
                     out_bytes = (size_t)out.image.pitch_bytes[p] * rows_of(p);
        in.image.memory[p] = buffers[2 + p] = import(in.dmabuf, in.at[p], in_bytes);
        out.image.memory[p] = buffers[4 + p] = import(out.dmabuf, out.at[p], out_bytes);
        in.image.data[p] = cox_buffer_data(buffers[2 + p]);
        out.image.data[p] = cox_buffer_data(buffers[4 + p]);
        paint_picture((unsigned char *)in.dmabuf->own + in.at[p], (size_t)in.image.pitch_bytes[p], p, 5);
    }
    cr_assert_eq(cox_video_stream_create(runtime, NULL, NULL, &stream), COX_OK, "%s", logged);
    for (int n = 0; n < 3; n++) {
        map(&in.image, &out.image, &result);
        cr_expect_eq(result.bytes_copied_in + result.bytes_copied_out, 0, "frame %d", n);
    }
    cr_expect_eq(out.dmabuf->ends, 3);
}

Test(dmabuf, a_stream_reports_an_access_that_cannot_begin_or_end)
{
    struct cox_video_result result;
    open_on(&set_ups[2]);
    const struct picture in = in_one_dmabuf(&p010, &buffers[0], false), out = in_one_dmabuf(&nv12, &buffers[1], false);
    cr_assert_eq(cox_video_stream_create(runtime, NULL, NULL, &stream), COX_OK, "%s", logged);
    for (uint32_t skip = 0; skip < 2; skip++) {
        dmabufs_fail(DMA_BUF_SYNC_START, EIO, 1);
        cr_expect_eq(cox_video_stream_send(stream, &in.image, &out.image, NULL), COX_E_SYSTEM);
        cr_expect_str_empty(dmabufs_wrong());
    }
    cr_assert_eq(cox_video_stream_send(stream, &in.image, &out.image, NULL), COX_OK, "%s", logged);
    dmabufs_fail(DMA_BUF_SYNC_END, EIO, 1);
    cr_assert_eq(cox_video_stream_receive(stream, true, &result), COX_OK);
    cr_expect_eq(result.status, COX_E_SYSTEM);
    map(&in.image, &out.image, &result);
}
