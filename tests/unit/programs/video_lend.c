/* Frames that are lent:
 *   A file's mapped memory equals what reading it gives, wherever its frames begin.
 *   A file that is truncated meanwhile causes an error and no signal.
 *   A decoder's frame does not change while it is lent.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/mapped_file.h"
#include "media/video.h"
#include "support/folder.h"
#include "unit/programs/streams.h"

#include <coxswain/coxswain.h>
#include <sys/wait.h>

enum { WIDTH = 64, HEIGHT = 48, FRAMES = 5, SAMPLES = WIDTH * HEIGHT * 3 / 2, FRAME_BYTES = 2 * SAMPLES };

static cox_runtime *runtime;
static struct video_input *input;

static void close_all(void)
{
    stream_close();
    video_input_reclaim(input);
    cox_runtime_destroy(&runtime);
    video_input_close(&input);
}

TestSuite(lending, .fini = close_all, .timeout = 600);

static void open_cpu(void)
{
    struct cox_device_info info;
    if (cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu"}, &runtime) != COX_OK)
        cr_skip_test("skipped, because there is no device cpu");
    if (cox_runtime_device_info(runtime, 0, &info) != COX_OK || info.host_memory != COX_HOST_MEMORY_WRAPPED) {
        cox_runtime_destroy(&runtime);
        cr_skip_test("skipped, because the driver does not wrap memory");
    }
}

/* A y4m film of 10 bits. `filler` makes its header longer, so that frames begin at other addresses. `lead` bytes
 * precede it. */
static int make_film(const char *filler, int lead, char path[64])
{
    char header[100];
    const int fd = make_file(path);
    snprintf(header, sizeof header, "YUV4MPEG2 W%d H%d F24:1 Ip C420p10 X%s\n", WIDTH, HEIGHT, filler);
    const struct bytes *film = make_stream(header, "FRAME\n", FRAMES, FRAME_BYTES);
    struct bytes all = {0};
    put_times(&all, "x", lead);
    put(&all, film->data, film->count);
    cr_assert_eq(write(fd, all.data, all.count), (ssize_t)all.count);
    free(all.data);
    return fd;
}

static void open_lending(const char *path)
{
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};
    cr_assert(video_input_open(&input, path, NULL, &said), "%s", said.text);
    cr_assert(video_input_lend(input, runtime, pitch_bytes));
    cr_assert(pitch_bytes[0] == 2 * WIDTH && pitch_bytes[1] == WIDTH && pitch_bytes[2] == WIDTH);
}

static void borrow(cox_buffer *planes[COX_VIDEO_PLANES_MAX])
{
    cr_assert_eq(video_input_borrow(input, planes, &said), VIDEO_READ_FRAME, "%s", said.text);
}

static bool is_frame(cox_buffer *const planes[], unsigned frame)
{
    static const size_t bytes[] = {2 * WIDTH * HEIGHT, WIDTH * HEIGHT / 2, WIDTH * HEIGHT / 2};
    size_t at = 0;
    for (int p = 0; p < 3; p++) {
        const uint8_t *data = cox_buffer_data(planes[p]);
        for (size_t i = 0; i < bytes[p]; i++)
            if (data[i] != sample(frame, at++))
                return false;
    }
    return true;
}

Test(lending, a_file_gives_the_frames_that_it_has_wherever_they_begin)
{
    for (int lead = 0; lead <= 4099; lead += 4099)
        for (const char *filler = "abc"; *filler; filler++) {
            char path[64];
            cox_buffer *planes[2][COX_VIDEO_PLANES_MAX] = {{NULL}};
            open_cpu();
            const int fd = make_film(filler, lead, path);
            cr_assert_eq(lseek(fd, lead, SEEK_SET), lead);
            if (lead) /* standard input that is not at its start */
                cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
            open_lending(lead ? "-" : path);
            for (unsigned frame = 0; frame < FRAMES; frame++) {
                cox_buffer **here = planes[frame % 2], **before = planes[(frame + 1) % 2];
                borrow(here);
                cr_assert(is_frame(here, frame), "frame %u behind %s", frame, filler);
                cr_assert(!before[0] || is_frame(before, frame - 1));
                cr_assert(video_input_kept(input, here, &said));
                video_input_return(input, before);
                cr_assert_eq(before[0], NULL);
            }
            cr_assert_eq(video_input_borrow(input, planes[FRAMES % 2], &said), VIDEO_READ_END);
            video_input_return(input, planes[(FRAMES - 1) % 2]);
            close_all();
            close(fd);
        }
}

Test(lending, buffers_have_no_gaps_if_bands_can_begin_often)
{
    static const struct {
        size_t row_bytes;
        uint32_t rows;
        bool tight;
    } cases[] = {{3840, 1080, true}, {3842, 1080, false}, {484, 100, false}};
    open_cpu();
    for (int c = 0; c < 3; c++) {
        const struct cox_video_plane planes[] = {{.row_bytes = 7680, .rows = 2160},
                                                 {.row_bytes = cases[c].row_bytes, .rows = cases[c].rows}};
        size_t pitch_bytes[2];
        video_pitch_choose(runtime, planes, 2, pitch_bytes);
        for (int p = 0; p < 2; p++) {
            const size_t row_bytes = planes[p].row_bytes, padded = cox_runtime_pitch_bytes(runtime, row_bytes);
            cr_expect_eq(pitch_bytes[p], cases[c].tight ? row_bytes : padded, "case %d, plane %d", c, p);
        }
    }
}

Test(lending, frames_may_be_passed_over_first)
{
    char path[64];
    cox_buffer *planes[COX_VIDEO_PLANES_MAX] = {NULL};
    open_cpu();
    make_film("a", 0, path);
    open_lending(path);
    cr_assert_eq(video_input_skip(input, 3, &said), VIDEO_READ_FRAME);
    borrow(planes);
    cr_assert(is_frame(planes, 3));
    video_input_return(input, planes);
}

/* Frame 1 is borrowed. Then the file is truncated inside it, by pages or by a byte, and the frame's memory is read. */
Test(lending, a_file_that_is_cut_is_an_error_and_no_signal)
{
    static const off_t from_end[] = {FRAME_BYTES - 100, 1};
    for (int i = 0; i < 2; i++) {
        char path[64];
        cox_buffer *planes[2][COX_VIDEO_PLANES_MAX] = {{NULL}};
        open_cpu();
        const int fd = make_film("a", 0, path);
        open_lending(path);
        borrow(planes[0]);
        borrow(planes[1]);
        const off_t all = lseek(fd, 0, SEEK_END), end = all - (FRAMES - 2) * (FRAME_BYTES + 6);
        cr_assert_eq(ftruncate(fd, end - from_end[i]), 0);
        (void)is_frame(planes[1], 1); /* no signal */
        cr_assert(is_frame(planes[0], 0));
        cr_assert(video_input_kept(input, planes[0], &said), "%s", said.text);
        cr_assert_not(video_input_kept(input, planes[1], &said));
        expect_said("was truncated to", "cut");
        video_input_return(input, planes[0]);
        video_input_return(input, planes[1]);
        cr_expect_neq(video_input_borrow(input, planes[0], &said), VIDEO_READ_FRAME);
        close_all();
        close(fd);
    }
}

Test(lending, a_file_that_is_cut_and_grows_again_is_an_error_where_pages_were_missing)
{
    char path[64];
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    const int fd = make_film("a", (int)(8 * page_bytes), path);
    const uint64_t bytes = (uint64_t)lseek(fd, 0, SEEK_END);
    struct mapped_file *map = mapped_file_open(fd, 0, bytes);
    uint64_t offset = 0;
    cr_assert_not_null(map);
    const volatile char *data = mapped_file_at(map, 0, 1);
    cr_assert_not(mapped_file_torn(map, &offset));
    cr_assert_eq(ftruncate(fd, (off_t)page_bytes + 904), 0);
    cr_assert_eq(data[4 * page_bytes + 3616], 0);
    cr_assert(mapped_file_torn(map, &offset));
    cr_assert_eq(offset, 4 * page_bytes);
    cr_assert_eq(data[7 * page_bytes + 1328], 0);
    cr_assert(mapped_file_torn(map, &offset) && offset == 4 * page_bytes);
    cr_assert_eq(data[2 * page_bytes + 808], 0); /* the lowest one counts */
    cr_assert(mapped_file_torn(map, &offset) && offset == 2 * page_bytes);
    cr_assert_null(mapped_file_at(map, bytes, 1));
    cr_assert_null(mapped_file_open(fd, 0, 5000), "a second one");
    mapped_file_close(&map);
    close(fd);
}

static volatile sig_atomic_t caught;

static void on_bus(int number)
{
    caught = number;
    _exit(42);
}

/* The exit status of a child that touches a page behind the end of another file. */
static int status_of_foreign_touch(bool with_handler)
{
    const pid_t child = fork();
    if (!child) {
        char path[64];
        const int fd = make_film("a", 0, path), other = memfd_create("other", MFD_CLOEXEC);
        signal(SIGBUS, with_handler ? on_bus : SIG_DFL);
        struct mapped_file *map = mapped_file_open(fd, 0, 5000);
        const volatile char *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, other, 0);
        if (!map || page == MAP_FAILED)
            _exit(1);
        _exit(page[0] == 0 ? 2 : 3);
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return status;
}

Test(lending, a_bus_error_that_is_none_of_ours_does_what_it_did_before)
{
    const int died = status_of_foreign_touch(false), handled = status_of_foreign_touch(true);
    cr_expect(WIFSIGNALED(died) && WTERMSIG(died) == SIGBUS, "%x", died);
    cr_expect(WIFEXITED(handled) && WEXITSTATUS(handled) == 42, "%x", handled);
}

Test(lending, what_is_no_file_of_its_own_lends_nothing)
{
    const struct bytes *film = make_stream("YUV4MPEG2 W2 H2 C420\n", "FRAME\n", 1, 6);
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    open_cpu();
    for (enum way way = 0; way < WAYS; way++) {
        if (way == FILE_PATH)
            continue;
        stream_open(way, film, 100, NULL, 0);
        cr_expect_not(video_input_lend(stream.input, runtime, pitch_bytes), "%s", way_names[way]);
        video_input_reclaim(stream.input); /* does nothing */
    }
}

/* --- Containers --------------------------------------------------------------------------------------------------- */

#if COX_HAVE_LIBAV

static uint64_t digest(const void *const planes[], const struct frame *frame, const size_t pitch_bytes[])
{
    uint64_t hash = 1469598103934665603u;
    for (uint32_t p = 0; p < frame->planes; p++)
        for (uint32_t row = 0; row < frame->plane[p].rows; row++)
            for (size_t i = 0; i < frame->plane[p].row_bytes; i++)
                hash = (hash ^ ((const uint8_t *)planes[p])[row * pitch_bytes[p] + i]) * 1099511628211u;
    return hash;
}

enum { HELD = 4, MOST = 64 };

/* Hold frames while the decoder continues, and check them before they are returned. */
static void expect_lent(const char *encoding)
{
    uint64_t digests[MOST];
    uint32_t frames = 0;
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};
    cox_buffer *planes[HELD][COX_VIDEO_PLANES_MAX] = {{NULL}};
    make_folder();
    const bool made = shell(FFMPEG "-i '%s' -vf loop=10:3,rotate=n/9,%s a.mkv", clip_path, encoding);
    skip_unless(made, "ffmpeg cannot: %s", encoding);
    open_cpu();
    stream_open_path(in_folder("a.mkv"), NULL, 0);
    while (frames < MOST && stream_read() == VIDEO_READ_FRAME)
        digests[frames++] = digest((const void *const *)stream.frame.memory, &stream.frame, stream.frame.pitch);
    cr_assert_gt(frames, 2 * HELD);
    cr_assert(video_input_open(&input, in_folder("a.mkv"), NULL, &said), "%s", said.text);
    cr_assert(video_input_lend(input, runtime, pitch_bytes));
    for (uint32_t frame = 0; frame < frames + HELD; frame++) {
        cox_buffer **slot = planes[frame % HELD];
        if (slot[0]) {
            const void *data[COX_VIDEO_PLANES_MAX] = {NULL};
            for (uint32_t p = 0; p < stream.frame.planes; p++)
                data[p] = cox_buffer_data(slot[p]);
            cr_expect(video_input_kept(input, slot, &said));
            cr_expect_eq(digest(data, &stream.frame, pitch_bytes), digests[frame - HELD], "%s: frame %u", encoding,
                         frame - HELD);
        }
        video_input_return(input, slot);
        cr_expect_eq(video_input_borrow(input, slot, &said), frame < frames ? VIDEO_READ_FRAME : VIDEO_READ_END);
    }
    close_all();
    remove_folder();
}

Test(lending, of_what_is_decoded_in_slices_stays_as_it_is, .timeout = 600)
{
    expect_lent("format=yuv422p10le -c:v ffv1 -slices 4");
}

Test(lending, of_what_refers_to_other_frames_stays_as_it_is, .timeout = 600)
{
    expect_lent(
        "scale=322:182,format=yuv420p10le -c:v libx265 -preset ultrafast -x265-params log-level=none:bframes=3");
    expect_lent("scale=322:182,format=yuv420p -c:v libx264 -preset fast");
}

#endif
