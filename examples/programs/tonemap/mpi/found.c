/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "found.h"
#include "common/by_first.h"
#include "media/video.h"
#include "tonemap/ends_with.h"
#include "tonemap/part.h"
#include "tonemap/messages.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether a file is a part of this film. */
static bool is_part(const struct found_what *what, const char *path, struct frame_range *range)
{
    struct part part;
    if (!part_is_there(path) || !part_open(&part, path))
        return false;

    const bool fits = profile_equal(&part.profile, what->profile);
    *range = (struct frame_range){part.first, part.count};
    part_close(&part);
    return fits && range->count;
}

/* Whether a file is a piece of this film with the light of the scenes. */
static bool is_piece(const struct found_what *what, const char *path, struct frame_range *range)
{
    static const struct video_raw none;
    struct video_input *input;
    struct error error;
    struct scenes_piece piece;
    char name[VIDEO_PIECE_BYTES], wanted[VIDEO_PIECE_BYTES];
    if (!video_input_open(&input, path, &none, &error))
        return false;

    snprintf(name, sizeof name, "%s", video_input_format(input)->piece);
    video_input_close(&input);
    if (!scenes_piece_read(&piece, name))
        return false;

    scenes_piece(what->scenes, piece.first, piece.count, what->encoding, wanted);
    *range = (struct frame_range){piece.first, piece.count};
    return !strcmp(name, wanted) && range->count;
}

static bool matches(const struct found_what *what, const char *path, struct frame_range *range)
{
    if (what->scenes)
        return ends_with(path, ".mkv") && is_piece(what, path, range);

    return ends_with(path, ".part") && is_part(what, path, range);
}

/* By first frame, then the longer one first, so that each search gives the same result. */
static int by_frames(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    const int order = by_first(a, b);
    if (order)
        return order;

    return (one->range.count < other->range.count) - (one->range.count > other->range.count);
}

void founds_forget(struct founds *founds)
{
    for (uint64_t i = 0; i < founds->count; i++)
        free(founds->all[i].path);
    free(founds->all);

    *founds = (struct founds){0};
}

static bool add(struct founds *founds, const char *path, struct frame_range range)
{
    struct found *all = realloc(founds->all, (founds->count + 1) * sizeof *all);
    if (!all)
        return false;

    founds->all = all;
    all[founds->count] = (struct found){range, strdup(path)};
    return all[founds->count++].path;
}

/* Remove files that overlap with the one before them; `all` is sorted. */
static void remove_overlaps(struct founds *founds)
{
    uint64_t kept = 0, next = 0;
    for (uint64_t i = 0; i < founds->count; i++) {
        const struct found found = founds->all[i];
        if (found.range.first < next) {
            free(found.path);
            continue;
        }
        next = found.range.first + found.range.count;
        founds->all[kept++] = found;
    }

    founds->count = kept;
}

bool founds_look(struct founds *founds, const char *folder, const struct found_what *what)
{
    bool good = true;
    *founds = (struct founds){0};
    DIR *dir = opendir(folder);
    if (!dir)
        return message_error("%s: %s", folder, strerror(errno));

    for (struct dirent *entry; good && (entry = readdir(dir));) {
        char path[4096 + sizeof entry->d_name + 1];
        struct frame_range range = {0};
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (matches(what, path, &range))
            good = add(founds, path, range);
    }
    closedir(dir);
    if (!good) {
        founds_forget(founds);
        return message_error("out of memory");
    }

    if (founds->count)
        qsort(founds->all, founds->count, sizeof *founds->all, by_frames);
    remove_overlaps(founds);
    return true;
}
