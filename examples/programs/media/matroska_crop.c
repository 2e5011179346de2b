/* A file consists of elements: number, length, content. The crop is in Segment/Tracks/TrackEntry/Video,
 * near the beginning. Nothing in the file is trusted.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "matroska_crop.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_BYTES = 1 << 18 };
enum {
    ID_SEGMENT = 0x18538067,
    ID_TRACKS = 0x1654ae6b,
    ID_TRACK = 0xae,
    ID_VIDEO = 0xe0,
    ID_BOTTOM = 0x54aa,
    ID_TOP = 0x54bb,
    ID_LEFT = 0x54cc,
    ID_RIGHT = 0x54dd,
    ID_DISPLAY_WIDTH = 0x54b0,
    ID_DISPLAY_HEIGHT = 0x54ba,
};

/* What is left of the content of an element. */
struct span {
    const uint8_t *at, *end;
};

/* Read a number whose first byte says how long it is. `mask`: without the bits that say so. */
static bool read_number(struct span *in, bool mask, uint64_t *value)
{
    if (in->at == in->end || !*in->at)
        return false;

    const int more = __builtin_clz(*in->at) - 24;
    if (in->end - in->at <= more)
        return false;
    *value = mask ? *in->at & (0x7fU >> more) : *in->at;
    in->at++;
    for (int i = 0; i < more; i++)
        *value = *value << 8 | *in->at++;
    if (mask && *value == (UINT64_C(1) << (7 * (more + 1))) - 1)
        *value = UINT64_MAX; /* unknown: up to the end */
    return true;
}

/* Move behind the next element. Its content may go on behind what was read of the file. */
static bool next_element(struct span *in, uint64_t *id, struct span *content)
{
    uint64_t length;
    if (!read_number(in, false, id) || !read_number(in, true, &length))
        return false;

    const uint64_t left = (uint64_t)(in->end - in->at);
    *content = (struct span){in->at, in->at + (length < left ? length : left)};
    in->at = content->end;
    return true;
}

static bool find_element(struct span in, uint64_t wanted, struct span *content)
{
    uint64_t id;
    while (next_element(&in, &id, content))
        if (id == wanted)
            return true;
    return false;
}

/* 0 if there is no such element, or no possible value. */
static uint64_t value_of(struct span video, uint64_t id)
{
    enum { VALUE_BYTES = 4 };
    struct span content;
    uint64_t value = 0;
    if (find_element(video, id, &content) && content.end - content.at <= VALUE_BYTES)
        while (content.at < content.end)
            value = value << 8 | *content.at++;
    return value;
}

static bool read_crop(struct span video, struct matroska_crop *crop)
{
    *crop = (struct matroska_crop){.left = value_of(video, ID_LEFT),
                                   .right = value_of(video, ID_RIGHT),
                                   .top = value_of(video, ID_TOP),
                                   .bottom = value_of(video, ID_BOTTOM),
                                   .display_width = value_of(video, ID_DISPLAY_WIDTH),
                                   .display_height = value_of(video, ID_DISPLAY_HEIGHT)};
    return crop->left || crop->right || crop->top || crop->bottom;
}

static bool find_crop(struct span file, uint32_t video, struct matroska_crop *crop)
{
    struct span segment, tracks, track, content;
    uint64_t id;
    if (!find_element(file, ID_SEGMENT, &segment) || !find_element(segment, ID_TRACKS, &tracks))
        return false;

    while (next_element(&tracks, &id, &track))
        if (id == ID_TRACK && find_element(track, ID_VIDEO, &content) && !video--)
            return read_crop(content, crop);
    return false;
}

bool matroska_crop(const char *path, uint32_t video, struct matroska_crop *crop)
{
    struct stat about;
    uint8_t *bytes = malloc(LOOK_BYTES);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t count = 0;
    if (bytes && fd >= 0 && !fstat(fd, &about) && S_ISREG(about.st_mode))
        count = pread(fd, bytes, LOOK_BYTES, 0);

    const bool found = count > 0 && find_crop((struct span){bytes, bytes + count}, video, crop);
    if (fd >= 0)
        close(fd);
    free(bytes);
    return found;
}
