/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "found.h"
#include "common/by_first.h"
#include "tonemap/ends_with.h"
#include "media/video.h"
#include "tonemap/part.h"
#include "tonemap/words.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether a file is a part of this film as it is to look, or a piece of it with the light that it has now. */
static bool look_at(const struct found_what *what, const char *path, struct frame_range *range)
{
    static const struct video_raw none;
    struct part part;
    struct video_input *input;
    struct error error;
    struct scenes_piece piece;
    char name[VIDEO_PIECE_BYTES];
    if (!what->scenes) {
        if (!part_is_there(path) || !part_open(&part, path))
            return false;
        const bool fits = profile_equal(&part.profile, what->profile);
        *range = (struct frame_range){part.first, part.count};
        part_close(&part);
        return fits && range->count;
    }
    if (!video_input_open(&input, path, &none, &error))
        return false;
    snprintf(name, sizeof name, "%s", video_input_format(input)->piece);
    video_input_close(&input);
    if (!scenes_piece_read(&piece, name))
        return false;
    char wanted[VIDEO_PIECE_BYTES];
    scenes_piece(what->scenes, piece.first, piece.count, what->encoding, wanted);
    *range = (struct frame_range){piece.first, piece.count};
    return !strcmp(name, wanted) && range->count;
}

/* The longer one first where two begin at the same frame: each look finds the same. */
static int by_frames(const void *a, const void *b)
{
    const struct found *one = a, *other = b;
    const int order = by_first(a, b);
    return order
               ? order
               : (one->range.count < other->range.count) - (one->range.count > other->range.count);
}

void founds_forget(struct founds *founds)
{
    for (uint64_t i = 0; i < founds->count; i++)
        free(founds->all[i].path);
    free(founds->all);
    *founds = (struct founds){0};
}

bool founds_look(struct founds *founds, const char *folder, const struct found_what *what)
{
    const char *end = what->scenes ? ".mkv" : ".part";
    uint64_t kept = 0, next = 0;
    *founds = (struct founds){0};
    DIR *dir = opendir(folder);
    if (!dir)
        return complain("%s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096 + sizeof entry->d_name + 1];
        struct frame_range range;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (!ends_with(entry->d_name, end) || !look_at(what, path, &range))
            continue;
        struct found *all = realloc(founds->all, (founds->count + 1) * sizeof *all);
        char *copy = strdup(path);
        if (all)
            founds->all = all;
        if (!all || !copy) {
            free(copy);
            closedir(dir);
            founds_forget(founds);
            return complain("out of memory");
        }
        founds->all[founds->count++] = (struct found){range, copy};
    }
    closedir(dir);
    if (founds->count)
        qsort(founds->all, founds->count, sizeof *founds->all, by_frames);
    for (uint64_t i = 0; i < founds->count; i++) {
        if (founds->all[i].range.first < next) {
            free(founds->all[i].path);
            continue;
        }
        next = founds->all[i].range.first + founds->all[i].range.count;
        founds->all[kept++] = founds->all[i];
    }
    founds->count = kept;
    return true;
}
