/* Frames that are lent: a file's own memory says what reading it says, wherever its frames begin, and a file that is
 * cut meanwhile is an error and no signal; what a decoder gives stays as it is for as long as it is lent.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/mapped_file.h"
#include "common/video.h"

#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 48, FRAMES = 5, SAMPLES = WIDTH * HEIGHT * 3 / 2, FRAME_BYTES = 2 * SAMPLES };

static cox_runtime *open_cpu(const char *devices)
{
    cox_runtime *runtime = NULL;
    struct cox_device_info info;
    if (cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.devices = devices)) != COX_OK)
        cr_skip_test("skipped, because there is no device %s", devices);
    if (cox_runtime_device_info(runtime, 0, &info, sizeof info) != COX_OK ||
        info.host_memory != COX_HOST_MEMORY_WRAPPED) {
        cox_runtime_destroy(&runtime);
        cr_skip_test("skipped, because the driver does not wrap memory");
    }
    return runtime;
}

static uint8_t byte_of(unsigned frame, size_t i)
{
    return (uint8_t)((frame * 2654435761u ^ (uint32_t)i * 2246822519u) >> 21);
}

/* A y4m of 10 bits, whose header has `filler` bytes more: frames begin at another address each time. Pages of `lead`
 * bytes are before it. */
static int make_file(const char *filler, uint32_t lead, char path[64])
{
    const int fd = memfd_create("film", MFD_CLOEXEC);
    FILE *file = fdopen(dup(fd), "wb");
    cr_assert(file != NULL);
    for (uint32_t i = 0; i < lead; i++)
        fputc('x', file);
    fprintf(file, "YUV4MPEG2 W%d H%d F24:1 Ip C420p10 X%s\n", WIDTH, HEIGHT, filler);
    for (unsigned frame = 0; frame < FRAMES; frame++) {
        fputs("FRAME\n", file);
        for (size_t i = 0; i < FRAME_BYTES; i++)
            fputc(byte_of(frame, i), file);
    }
    cr_assert_eq(fclose(file), 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static struct video_input *open_lending(const char *path, cox_runtime *runtime)
{
    struct video_input *input;
    struct picture_error error = {""};
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};
    cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
    cr_assert(video_input_lend(input, runtime, pitch_bytes));
    cr_assert(pitch_bytes[0] == 2 * WIDTH && pitch_bytes[1] == WIDTH && pitch_bytes[2] == WIDTH);
    return input;
}

static void borrow(struct video_input *input, cox_buffer *planes[COX_VIDEO_PLANES_MAX])
{
    struct picture_error error = {""};
    cr_assert_eq(video_input_borrow(input, planes, &error), VIDEO_READ_FRAME, "%s", error.text);
}

static void close_all(struct video_input **input, cox_runtime **runtime)
{
    video_input_reclaim(*input);
    cox_runtime_destroy(runtime);
    video_input_close(input);
}

static bool is_frame(cox_buffer *const planes[], unsigned frame)
{
    static const size_t bytes[] = {2 * WIDTH * HEIGHT, WIDTH * HEIGHT / 2, WIDTH * HEIGHT / 2};
    size_t at = 0;
    for (int p = 0; p < 3; p++) {
        const uint8_t *data = cox_buffer_data(planes[p]);
        for (size_t i = 0; i < bytes[p]; i++)
            if (data[i] != byte_of(frame, at++))
                return false;
    }
    return true;
}

Test(lending, a_file_gives_the_frames_that_it_has_wherever_they_begin)
{
    for (uint32_t lead = 0; lead < 2; lead++)
        for (const char *filler = "abc"; *filler; filler++) {
            cox_runtime *runtime = open_cpu("cpu");
            char path[64];
            const int fd = make_file(filler, 4099 * lead, path);
            cox_buffer *planes[2][COX_VIDEO_PLANES_MAX] = {{NULL}};
            struct picture_error error = {""};
            cr_assert_eq(lseek(fd, 4099 * lead, SEEK_SET), 4099 * lead);
            if (lead) /* standard input that stands somewhere */
                cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
            struct video_input *input = open_lending(lead ? "-" : path, runtime);
            for (unsigned frame = 0; frame < FRAMES; frame++) {
                cox_buffer **here = planes[frame % 2], **before = planes[(frame + 1) % 2];
                borrow(input, here);
                cr_assert(is_frame(here, frame), "frame %u behind %s", frame, filler);
                cr_assert(!before[0] || is_frame(before, frame - 1));
                cr_assert(video_input_kept(input, here, &error));
                video_input_return(input, before);
                cr_assert_eq(before[0], NULL);
            }
            cr_assert_eq(video_input_borrow(input, planes[FRAMES % 2], &error), VIDEO_READ_END);
            video_input_return(input, planes[(FRAMES - 1) % 2]);
            close_all(&input, &runtime);
            close(fd);
        }
}

Test(lending, frames_may_be_passed_over_first)
{
    cox_runtime *runtime = open_cpu("cpu");
    char path[64];
    const int fd = make_file("a", 0, path);
    cox_buffer *planes[COX_VIDEO_PLANES_MAX] = {NULL};
    struct picture_error error = {""};
    struct video_input *input = open_lending(path, runtime);
    cr_assert_eq(video_input_skip(input, 3, &error), VIDEO_READ_FRAME);
    borrow(input, planes);
    cr_assert(is_frame(planes, 3));
    video_input_return(input, planes);
    close_all(&input, &runtime);
    close(fd);
}

/* Frame 1 is borrowed, the file cut at `bytes` from its end, and then the frame's memory is read. */
static void cut_file(off_t from_end, const char *words)
{
    cox_runtime *runtime = open_cpu("cpu");
    char path[64];
    const int fd = make_file("a", 0, path);
    cox_buffer *planes[2][COX_VIDEO_PLANES_MAX] = {{NULL}};
    struct picture_error error = {""};
    struct video_input *input = open_lending(path, runtime);
    borrow(input, planes[0]);
    borrow(input, planes[1]);
    const off_t all = lseek(fd, 0, SEEK_END), end = all - (FRAMES - 2) * (FRAME_BYTES + 6);
    cr_assert_eq(ftruncate(fd, end - from_end), 0);
    (void)is_frame(planes[1], 1); /* no signal */
    cr_assert(is_frame(planes[0], 0));
    cr_assert(video_input_kept(input, planes[0], &error), "%s", error.text);
    cr_assert_not(video_input_kept(input, planes[1], &error));
    cr_expect(strstr(error.text, words), "%s", error.text);
    video_input_return(input, planes[0]);
    video_input_return(input, planes[1]);
    cr_expect_neq(video_input_borrow(input, planes[0], &error), VIDEO_READ_FRAME);
    close_all(&input, &runtime);
    close(fd);
}

Test(lending, a_file_that_is_cut_by_pages_is_an_error_and_no_signal)
{
    cut_file(FRAME_BYTES - 100, "was cut to");
}

Test(lending, a_file_that_is_cut_by_a_byte_is_an_error)
{
    cut_file(1, "was cut to");
}

Test(lending, a_file_that_is_cut_and_grows_again_is_an_error_where_pages_were_missing)
{
    char path[64];
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    const int fd = make_file("a", (uint32_t)(8 * page_bytes), path);
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
    cr_assert_eq(data[2 * page_bytes + 808], 0); /* the least one counts */
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

/* Of a child that touches a page behind another file's end. */
static int status_of_foreign_touch(bool with_handler)
{
    const pid_t child = fork();
    if (!child) {
        char path[64];
        const int fd = make_file("a", 0, path), other = memfd_create("other", MFD_CLOEXEC);
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
    cox_runtime *runtime = open_cpu("cpu");
    static const char film[] = "YUV4MPEG2 W2 H2 C420\nFRAME\nabcdef";
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    struct picture_error error = {""};
    struct video_input *input;
    cr_assert(video_input_open_memory(&input, film, sizeof film - 1, NULL, &error));
    cr_expect_not(video_input_lend(input, runtime, pitch_bytes), "memory");
    video_input_close(&input);
    int ends[2];
    char path[64];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], film, sizeof film - 1), (ssize_t)sizeof film - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
    cr_expect_not(video_input_lend(input, runtime, pitch_bytes), "a pipe");
    video_input_reclaim(input); /* nothing to do */
    video_input_close(&input);
    cox_runtime_destroy(&runtime);
}

/* --- Containers --------------------------------------------------------------------------------------------------- */

#if COX_HAVE_LIBAV

static uint64_t digest(cox_buffer *const planes[], const struct video_format *format, const size_t pitch_bytes[])
{
    struct cox_video_plane about[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(&format->pixel, format->width, format->height, about);
    uint64_t hash = 1469598103934665603u;
    for (uint32_t p = 0; p < count; p++)
        for (uint32_t row = 0; row < about[p].rows; row++)
            for (size_t i = 0; i < about[p].row_bytes; i++)
                hash = (hash ^ ((uint8_t *)cox_buffer_data(planes[p]))[row * pitch_bytes[p] + i]) * 1099511628211u;
    return hash;
}

/* The digests of the film's frames, read as usual. */
static uint32_t read_digests(const char *path, cox_runtime *runtime, uint64_t digests[], uint32_t most)
{
    struct video_input *input;
    struct picture_error error = {""};
    struct cox_video_plane about[COX_VIDEO_PLANES_MAX];
    cox_buffer *planes[COX_VIDEO_PLANES_MAX] = {NULL};
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
    void *memory[COX_VIDEO_PLANES_MAX];
    uint32_t frames = 0;
    cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
    const struct video_format *format = video_input_format(input);
    const uint32_t count = cox_video_planes(&format->pixel, format->width, format->height, about);
    for (uint32_t p = 0; p < count; p++) {
        pitch_bytes[p] = about[p].row_bytes;
        cr_assert_eq(cox_buffer_create(runtime, pitch_bytes[p] * about[p].rows, &planes[p]), COX_OK);
        memory[p] = cox_buffer_data(planes[p]);
    }
    while (frames < most && video_input_read(input, memory, pitch_bytes, &error) == VIDEO_READ_FRAME)
        digests[frames++] = digest(planes, format, pitch_bytes);
    for (uint32_t p = 0; p < count; p++)
        cox_buffer_destroy(&planes[p]);
    video_input_close(&input);
    return frames;
}

enum { HELD = 4, MOST = 64 };

/* Frames are held while the decoder goes on, and looked at when they go back. */
static void expect_lent(const char *encoding)
{
    static const char clip[] = COX_TEST_SOURCE_DIR "/examples/data/stilllife_pq_480x270.y4m";
    char command[1000], path[] = "/tmp/coxswain-lend-XXXXXX.mkv";
    const int fd = mkstemps(path, 4);
    cr_assert(fd >= 0);
    close(fd);
    snprintf(command, sizeof command,
             "ffmpeg -nostdin -v error -y -i '%s' -vf loop=10:3,rotate=n/9,%s '%s' >/dev/null 2>&1", clip, encoding,
             path);
    if (system(command)) {
        unlink(path);
        cr_skip_test("skipped, because ffmpeg cannot: %s", encoding);
    }
    cox_runtime *runtime = open_cpu("cpu");
    uint64_t digests[MOST];
    const uint32_t frames = read_digests(path, runtime, digests, MOST);
    cr_assert_gt(frames, 2 * HELD);
    struct video_input *input;
    struct picture_error error = {""};
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX] = {0};
    cox_buffer *planes[HELD][COX_VIDEO_PLANES_MAX] = {{NULL}};
    cr_assert(video_input_open(&input, path, NULL, &error), "%s", error.text);
    const struct video_format *format = video_input_format(input);
    cr_assert(video_input_lend(input, runtime, pitch_bytes));
    for (uint32_t frame = 0; frame < frames + HELD; frame++) {
        cox_buffer **slot = planes[frame % HELD];
        if (slot[0]) {
            cr_expect(video_input_kept(input, slot, &error));
            cr_expect_eq(digest(slot, format, pitch_bytes), digests[frame - HELD], "%s: frame %u", encoding,
                         frame - HELD);
        }
        video_input_return(input, slot);
        cr_expect_eq(video_input_borrow(input, slot, &error), frame < frames ? VIDEO_READ_FRAME : VIDEO_READ_END);
    }
    close_all(&input, &runtime);
    unlink(path);
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
