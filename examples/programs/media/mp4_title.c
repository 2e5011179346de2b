/* A file consists of boxes: length, type, content. The title is in moov/trak/udta/name, the number of
 * the track in moov/trak/tkhd. Nothing in the file is trusted.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "mp4_title.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BOXES_MAX = 100000 };

/* The content of a box, or a part of the file that consists of boxes. */
struct span {
    int fd;
    uint64_t at, end;
    uint32_t boxes; /* that were read, in all */
};

static uint64_t number(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Read the head of the next box and move behind the box. False at the end, and if it is damaged. */
static bool next_box(struct span *in, char type[4], struct span *content)
{
    uint8_t head[16];
    const uint64_t left = in->end - in->at;
    size_t head_bytes = 8;
    if (left < 8 || ++in->boxes > BOXES_MAX || pread(in->fd, head, 8, (off_t)in->at) != 8)
        return false;

    uint64_t length = number(head, 4);
    memcpy(type, head + 4, 4);
    if (length == 1) {
        head_bytes = 16;
        if (left < 16 || pread(in->fd, head, 16, (off_t)in->at) != 16)
            return false;
        length = number(head + 8, 8);
    } else if (!length) {
        length = left;
    }
    if (length < head_bytes || length > left)
        return false;

    *content = (struct span){in->fd, in->at + head_bytes, in->at + length, 0};
    in->at += length;
    return true;
}

/* The first box of this type. */
static bool find_box(struct span in, const char *wanted, struct span *content)
{
    char type[4];
    while (next_box(&in, type, content))
        if (!memcmp(type, wanted, 4))
            return true;
    return false;
}

/* The number of a track; 0 = unknown. */
static uint32_t number_of(const struct span *trak)
{
    struct span header;
    uint8_t bytes[24];
    if (!find_box(*trak, "tkhd", &header) || header.end - header.at < sizeof bytes ||
        pread(header.fd, bytes, sizeof bytes, (off_t)header.at) != sizeof bytes)
        return 0;

    const bool long_times = bytes[0] == 1;
    return (uint32_t)number(bytes + (long_times ? 20 : 12), 4);
}

static bool read_title(const struct span *trak, char *title, size_t bytes)
{
    struct span user, name;
    if (!find_box(*trak, "udta", &user) || !find_box(user, "name", &name))
        return false;

    size_t count = (size_t)(name.end - name.at);
    if (count >= bytes)
        count = bytes - 1;
    if (pread(name.fd, title, count, (off_t)name.at) != (ssize_t)count)
        return false;
    title[count] = '\0';
    return *title;
}

static bool find_title(struct span file, uint32_t track, char *title, size_t bytes)
{
    struct span movie, trak;
    char type[4];
    if (!find_box(file, "moov", &movie))
        return false;

    while (next_box(&movie, type, &trak))
        if (!memcmp(type, "trak", 4) && number_of(&trak) == track)
            return read_title(&trak, title, bytes);
    return false;
}

bool mp4_title(const char *path, uint32_t track, char *title, size_t bytes)
{
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return false;

    bool found = false;
    if (!fstat(fd, &about) && S_ISREG(about.st_mode))
        found = find_title((struct span){fd, 0, (uint64_t)about.st_size, 0}, track, title, bytes);
    close(fd);
    return found;
}
