/* A file that threads read in parallel has the contents that preadv returns.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "media/video_team.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

TestSuite(video_team, .timeout = 600);

enum { FILE_BYTES = 9 * 1000 * 1000 + 7, PIECES = 900 };

static unsigned char film[FILE_BYTES];      /* the contents of the file */
static unsigned char untouched[FILE_BYTES]; /* the contents of the memory before reading */

static int make_file(void)
{
    const int fd = memfd_create("film", MFD_CLOEXEC);
    cr_assert(fd >= 0);
    memset(untouched, 0xee, sizeof untouched);
    for (size_t i = 0; i < FILE_BYTES; i++)
        film[i] = (unsigned char)(i * 2654435761u >> 13);
    cr_assert_eq(pwrite(fd, film, FILE_BYTES, 0), FILE_BYTES);
    return fd;
}

/* Cut `bytes` into pieces, of uneven sizes if there are several, each with a gap behind it. */
static int cut(struct iovec *pieces, unsigned char *memory, size_t bytes, int count)
{
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        const size_t even = bytes / (size_t)count, odd = even / 2 * (size_t)(i % 2);
        const size_t size = i == count - 1 ? bytes - done : even - odd;
        pieces[i] = (struct iovec){memory + done + 16 * (size_t)i, size};
        done += size;
    }
    return count;
}

/* The first `came` bytes are those of the file from `offset` on, and nothing was written behind them. */
static void check(const struct iovec *pieces, int count, size_t offset, size_t came)
{
    size_t at = 0;
    for (int i = 0; i < count; at += pieces[i++].iov_len) {
        const size_t bytes = pieces[i].iov_len, left = at < came ? came - at : 0, here = left < bytes ? left : bytes;
        const unsigned char *is = pieces[i].iov_base;
        cr_assert(!here || !memcmp(is, film + offset + at, here), "of the %zu bytes at %zu", here, offset + at);
        cr_assert(!memcmp(is + here, untouched, bytes - here), "behind the %zu bytes at %zu", here, offset + at);
    }
}

Test(video_team, reads_what_is_there)
{
    static const size_t sizes[] = {1, 5000, (1 << 20) - 1, 2 << 20, (4 << 20) + 3, 8500000};
    static const size_t offsets[] = {
        0, 13, 4 << 20, FILE_BYTES - 2500000, FILE_BYTES - 10, FILE_BYTES, FILE_BYTES + 100};
    static const int counts[] = {1, 3, PIECES};
    const int fd = make_file();
    unsigned char *memory = malloc(sizes[5] + 16 * PIECES);
    struct iovec pieces[PIECES];
    for (uint32_t threads = 0; threads <= 8; threads += 2 + threads) {
        struct video_team *team = video_team_create(threads);
        cr_assert_eq(team != NULL, threads > 0);
        for (size_t s = 0; s < 6; s++)
            for (size_t o = 0; o < 7; o++)
                for (size_t c = 0; c < 3; c++) {
                    if (sizes[s] < (size_t)counts[c])
                        continue;
                    memset(memory, 0xee, sizes[5] + 16 * PIECES);
                    const int count = cut(pieces, memory, sizes[s], counts[c]);
                    const size_t left = offsets[o] < FILE_BYTES ? FILE_BYTES - offsets[o] : 0;
                    const size_t there = left < sizes[s] ? left : sizes[s];
                    cr_assert_eq(video_team_read(team, fd, pieces, count, (off_t)offsets[o]), (ssize_t)there);
                    check(pieces, count, offsets[o], there);
                }
        video_team_destroy(&team);
        cr_assert_null(team);
    }
    free(memory);
    close(fd);
}

Test(video_team, says_why_it_cannot_read)
{
    struct video_team *team = video_team_create(3);
    unsigned char *memory = malloc(5 << 20);
    const struct iovec piece = {memory, 5 << 20};
    const int fd = open("/", O_RDONLY | O_CLOEXEC);
    errno = 0;
    cr_assert_eq(video_team_read(team, fd, &piece, 1, 0), -1);
    cr_assert_eq(errno, EISDIR);
    close(fd);
    cr_assert_eq(video_team_read(team, fd, &piece, 1, 0), -1);
    cr_assert_eq(errno, EBADF);
    free(memory);
    video_team_destroy(&team);
    video_team_destroy(&team);
}
