/* Fuzz target: scene files and parts. Reading must not crash, and the result must be consistent. An input
 * that begins with "coxswain-p" is read as a part.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "tonemap/part.h"
#include "tonemap/profile.h"
#include "tonemap/scenes.h"
#include "tonemap/source.h"

#include <sys/mman.h>
#include <tonemap/messages.h>
#include <unistd.h>

/* Replaces messages.c, which would print every error. */
bool message_error(const char *format, ...)
{
    (void)format;
    return false;
}

bool message_incompatible(const char *format, ...)
{
    (void)format;
    return false;
}

void message_warning(const char *format, ...)
{
    (void)format;
}

bool message_file_error(const char *path, const struct error *error)
{
    (void)path, (void)error;
    return false;
}

void message_file_warning(void *path, const char *what)
{
    (void)path, (void)what;
}

static void check_profile(const struct profile *profile)
{
    CHECK(profile->shape.width >= 1 && profile->shape.width <= VIDEO_SIDE_MAX);
    CHECK(profile->arithmetic == COX_ARITHMETIC_MULADD || profile->arithmetic == COX_ARITHMETIC_FMA);
    CHECK(profile_equal(profile, profile));
}

static void read_part(const char *path)
{
    static uint32_t histogram[COX_VIDEO_BINS];
    struct part part;
    if (!part_open(&part, path))
        return;
    check_profile(&part.profile);
    for (uint64_t n = 0; part.profile.steering.on && n < part.count && part_next(&part, histogram); n++)
        continue;
    part_close(&part);
}

/* A file that was read has plausible values, and the name of its piece can be read back. */
static void read_scenes(const char *path)
{
    struct scenes scenes;
    if (!scenes_read(&scenes, path))
        return;
    check_profile(&scenes.profile);
    for (uint64_t i = 0; i < scenes.count; i++) {
        const struct scenes_light *light = scenes_of(&scenes, scenes.first + i);
        CHECK(light && light->peak_nits >= 1 && light->peak_nits <= 1e6f && light->gain > 0);
    }
    CHECK(!scenes_of(&scenes, scenes.first + scenes.count));
    if (scenes.count) {
        struct scenes_piece piece;
        char name[VIDEO_PIECE_BYTES];
        scenes_piece(&scenes, scenes.first, scenes.count, 7, name);
        CHECK(scenes_piece_read(&piece, name) && piece.first == scenes.first && piece.count == scenes.count);
    }
    scenes_free(&scenes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    const int fd = memfd_create("scenes", 0);
    CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (size > 10 && !memcmp(data, "coxswain-p", 10))
        read_part(path);
    else
        read_scenes(path);
    close(fd);
    return 0;
}
