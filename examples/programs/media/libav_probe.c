/* Whether a file is a container, and whether it is whole: what the first bytes say.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char matroska_magic[] = "\x1a\x45\xdf\xa3";
enum { MAGIC_BYTES = 4 };

/* Some formats need more bytes than PEEK_BYTES to be recognised. 0 if it is not a regular file. */
static size_t read_beginning(const char *path, uint8_t *bytes, size_t most)
{
    struct stat about;
    ssize_t got = 0;

    if (!strcmp(path, "-"))
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return 0;

    if (!fstat(fd, &about) && S_ISREG(about.st_mode))
        got = pread(fd, bytes, most, 0);
    close(fd);
    return got < 0 ? 0 : (size_t)got;
}

/* Used if libav cannot be loaded: opening the file then reports why. */
static bool looks_like_container(const uint8_t *bytes, size_t count)
{
    return count >= 12 &&
           (!memcmp(bytes, matroska_magic, MAGIC_BYTES) || !memcmp(bytes + 4, "ftyp", 4));
}

bool video_libav_knows(const char *path, const uint8_t *bytes, size_t count)
{
    enum { LOOK_BYTES = 1 << 16 };
    if (!libav_load())
        return looks_like_container(bytes, count);

    uint8_t *buffer = calloc(1, LOOK_BYTES + AVPROBE_PADDING_SIZE);
    if (!buffer)
        return looks_like_container(bytes, count);
    size_t found = read_beginning(path, buffer, LOOK_BYTES);
    if (found < count) {
        memcpy(buffer, bytes, count);
        found = count;
    }

    AVProbeData data = {.filename = "", .buf = buffer, .buf_size = (int)found};
    int score = AVPROBE_SCORE_RETRY - 1;
    const AVInputFormat *format = lib.av_probe_input_format2(&data, 1, &score);
    free(buffer);
    return format && lib.av_match_list(format->name, libav_containers, ',');
}

/* A length in Matroska: the leading zeros of the first byte say how many bytes follow. All ones
 * mean "unknown". 0 for that and for damage. */
static uint64_t ebml_size(const uint8_t *bytes, size_t count, size_t *at)
{
    if (*at >= count || !bytes[*at])
        return 0;

    const int more = __builtin_clz(bytes[*at]) - 24;
    const uint64_t unknown = (UINT64_C(1) << (7 * (more + 1))) - 1;
    uint64_t value = bytes[(*at)++] & (0x7fU >> more);
    for (int i = 0; i < more; i++) {
        if (*at >= count)
            return 0;
        value = value << 8 | bytes[(*at)++];
    }
    return value == unknown ? 0 : value;
}

/* How many bytes are missing from the end of a Matroska file. */
static uint64_t missing_of_matroska(const uint8_t *bytes, size_t count, uint64_t there)
{
    static const char segment[] = "\x18\x53\x80\x67";
    size_t at = MAGIC_BYTES;
    if (count < 16 || memcmp(bytes, matroska_magic, MAGIC_BYTES))
        return 0;

    const uint64_t head = ebml_size(bytes, count, &at);
    if (head > count || at + head + MAGIC_BYTES > count ||
        memcmp(bytes + at + head, segment, MAGIC_BYTES))
        return 0;

    at += (size_t)head + MAGIC_BYTES;
    const uint64_t body = ebml_size(bytes, count, &at);
    if (!body || body >= INT64_MAX || at + body <= there)
        return 0;
    return at + body - there;
}

/* The same for MPEG-TS: packets of 188 bytes, which begin with a sync byte. Discs and cameras put
 * a time of 4 bytes before each, broadcasters 16 bytes of correction behind it. */
static uint64_t missing_of_mpegts(const uint8_t *bytes, size_t count, uint64_t there)
{
    static const struct {
        size_t packet, sync;
    } kinds[] = {{188, 0}, {192, 4}, {204, 0}};
    enum { SYNC = 0x47, PACKETS = 4 };

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t found = 0;
        for (size_t at = kinds[k].sync; at < count && found < PACKETS && bytes[at] == SYNC;
             at += kinds[k].packet)
            found++;

        const uint64_t rest = there % kinds[k].packet;
        if (found == PACKETS)
            return rest ? kinds[k].packet - rest : 0;
    }
    return 0;
}

uint64_t libav_missing_bytes(const char *path)
{
    uint8_t bytes[1024];
    struct stat about;
    const size_t count = read_beginning(path, bytes, sizeof bytes);
    if (stat(path, &about))
        return 0;

    const uint64_t there = (uint64_t)about.st_size;
    const uint64_t missing = missing_of_matroska(bytes, count, there);
    return missing ? missing : missing_of_mpegts(bytes, count, there);
}

#endif
