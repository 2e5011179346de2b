/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "journal.h"
#include "common/by_first.h"
#include "common/outfile.h"
#include "tonemap/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether a line is the name of a piece that is still wanted. */
static bool counts(const char *line, const struct scenes *scenes, uint64_t encoding,
                   uint64_t frames, struct frame_range *range)
{
    struct scenes_piece piece;
    char wanted[VIDEO_PIECE_BYTES];
    if (!scenes_piece_read(&piece, line) || !piece.count || piece.first + piece.count > frames)
        return false;

    scenes_piece(scenes, piece.first, piece.count, encoding, wanted);
    *range = (struct frame_range){piece.first, piece.count};
    return !strcmp(line, wanted);
}

/* Read the ranges of the lines that count. Without a file there are none. */
static bool read_lines(const char *path, const struct scenes *scenes, uint64_t encoding,
                       uint64_t frames, struct frame_range **done, uint64_t *count)
{
    struct profile_text text;
    uint64_t kept = 0;
    if (access(path, F_OK))
        return true;

    if (!profile_text_open(&text, path))
        return false;
    for (char *line; (line = profile_text_line(&text)) && text.is_ended;) {
        struct frame_range range;
        if (!counts(line, scenes, encoding, frames, &range))
            continue;
        struct frame_range *all = realloc(*done, (*count + 1) * sizeof *all);
        if (!all) {
            profile_text_close(&text);
            return message_error("out of memory");
        }
        *done = all;
        all[(*count)++] = range;
    }
    profile_text_close(&text);
    if (*count)
        qsort(*done, *count, sizeof **done, by_first);

    for (uint64_t i = 0; i < *count; i++)
        if (!kept || (*done)[i].first >= (*done)[kept - 1].first + (*done)[kept - 1].count)
            (*done)[kept++] = (*done)[i];
    *count = kept;

    return true;
}

/* Replace the file by the lines that count. */
static bool write_lines(const char *path, const struct scenes *scenes, uint64_t encoding,
                        const struct frame_range *done, uint64_t count)
{
    struct outfile *file;
    struct error error;
    char name[VIDEO_PIECE_BYTES];
    if (!outfile_open(&file, path, &error))
        return message_file_error(path, &error);

    for (uint64_t i = 0; i < count; i++) {
        scenes_piece(scenes, done[i].first, done[i].count, encoding, name);
        fprintf(outfile_stream(file), "%s\n", name);
    }

    return outfile_finish(&file, &error) || message_file_error(path, &error);
}

/* Without this a power failure could bring the old file back. */
static bool synchronise_folder(const char *path)
{
    char folder[4096] = ".";
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path) + 1, path);

    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool good = fd >= 0 && (!fsync(fd) || errno == EINVAL || errno == EROFS);
    if (!good)
        message_error("%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return good;
}

bool journal_begin(struct journal *journal, const char *path, const struct scenes *scenes,
                   uint64_t encoding, uint64_t frames, struct frame_range **done, uint64_t *count)
{
    *journal = (struct journal){path, -1};

    *done = NULL;
    *count = 0;
    if (!read_lines(path, scenes, encoding, frames, done, count) ||
        !write_lines(path, scenes, encoding, *done, *count) || !synchronise_folder(path))
        return false;

    journal->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return journal->fd >= 0 || message_error("%s: cannot be opened: %s", path, strerror(errno));
}

bool journal_add(struct journal *journal, const char *piece)
{
    char line[VIDEO_PIECE_BYTES + 1];
    const int bytes = snprintf(line, sizeof line, "%s\n", piece);
    errno = ENOSPC; /* if only a part of the line is written */

    if (write(journal->fd, line, (size_t)bytes) == bytes && !fdatasync(journal->fd))
        return true;
    return message_error("%s: cannot be written: %s", journal->path, strerror(errno));
}

void journal_end(struct journal *journal)
{
    if (journal->fd >= 0)
        close(journal->fd);
    journal->fd = -1;
}
