/* cox-tonemap join: the pieces of a film become one file, in the order of their frames. Encoded
 * pieces go into one container, with sound and subtitles of the source; y4m pieces are
 * concatenated, for another program to encode.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/by_first.h"
#include "common/outfile.h"
#include "ends_with.h"
#include "files.h"
#include "jobs.h"
#include "media/muxed.h"
#include "range.h"
#include "scenes.h"
#include "messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    struct scenes_piece name; /* the first field: its first frame is the key of by_first */
    const char *path;
    struct video_format format;
};

/* Open a piece and read its name. A file that can be read but not opened as video is damaged. */
static bool look_at(struct piece *piece)
{
    static const struct video_raw none;
    struct video_input *input;
    struct file_identity identity;
    struct error error, unread;
    if (!video_input_open(&input, piece->path, &none, &error)) {
        if (file_identify(piece->path, &identity, &unread))
            return message_incompatible("%s: not a piece, or damaged: %s", piece->path, error.text);
        return message_file_error(piece->path, &error);
    }

    piece->format = *video_input_format(input);
    const bool is_whole = video_input_whole(input);
    video_input_close(&input);
    if (!is_whole)
        return message_incompatible("%s: truncated", piece->path);

    return scenes_piece_read(&piece->name, piece->format.piece) ||
           message_incompatible("%s: not a piece written by cox-tonemap map", piece->path);
}

static bool is_y4m(const struct piece *piece)
{
    return !strncmp(piece->format.text, "y4m", 3);
}

/* Whether the pieces are of one film and contiguous, from its first frame to its last. */
static bool check_pieces(const struct piece *pieces, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (is_y4m(&pieces[i]) != is_y4m(&pieces[0]))
            return message_incompatible(
                "%s and %s cannot be joined: one is y4m, the other is encoded", pieces[0].path,
                pieces[i].path);

        const struct scenes_piece *before = &pieces[i - 1].name, *piece = &pieces[i].name;
        if (piece->profile != before->profile)
            return message_incompatible(
                "%s and %s cannot be joined: they have different films or settings",
                pieces[i - 1].path, pieces[i].path);
        if (!range_follows("piece", pieces[i - 1].path, before->first + before->count,
                           pieces[i].path, piece->first))
            return false;
    }

    const struct scenes_piece *first = &pieces[0].name, *last = &pieces[count - 1].name;
    const uint64_t end = last->first + last->count,
                   film_end = first->film_first + first->film_count;

    if (first->first > first->film_first)
        return message_incompatible("frames %" PRIu64 " to %" PRIu64
                                    " are missing: no piece before %s",
                                    first->film_first, first->first - 1, pieces[0].path);
    if (end < film_end)
        return message_incompatible("frames %" PRIu64 " to %" PRIu64
                                    " are missing: no piece after %s",
                                    end, film_end - 1, pieces[count - 1].path);

    return true;
}

/* Whether the pieces have the light of a scene file, and are of the source's film. */
static bool check_scenes_and_source(const struct piece *pieces, uint32_t count,
                                    const struct options *options)
{
    struct scenes scenes;
    struct file_identity source;
    struct error error;
    if (options->source && !file_identify(options->source, &source, &error))
        return message_file_error(options->source, &error);
    if (options->source && source.hash != pieces[0].name.source)
        return message_incompatible("%s: not the film of piece %s", options->source,
                                    pieces[0].path);

    if (!options->scenes)
        return true;
    if (!scenes_read(&scenes, options->scenes))
        return false;
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        const struct scenes_piece *piece = &pieces[i].name;
        char name[VIDEO_PIECE_BYTES];
        scenes_piece(&scenes, piece->first, piece->count, piece->encoding, name);
        good =
            !strcmp(name, pieces[i].format.piece) ||
            message_incompatible(
                "%s: does not match %s: the scene file was changed after the piece was mapped, or "
                "the piece is from another film",
                pieces[i].path, options->scenes);
    }

    scenes_free(&scenes);
    return good;
}

/* --- y4m --- */

/* Read the header, and take out the piece's name: the rest is the same in all pieces. */
static bool read_header(FILE *from, char *line, size_t bytes)
{
    if (!fgets(line, (int)bytes, from))
        return false;

    char *name = strstr(line, " XCOXSWAIN=");
    char *end = name ? strpbrk(name + 1, " \n") : NULL;
    if (end)
        memmove(name, end, strlen(end) + 1);
    return end;
}

/* Copy the frames of a piece, and its header if it is the first, to the file `path`. */
static bool append_piece(const struct piece *piece, FILE *to, const char *path, char header[2048])
{
    static char bytes[1 << 20];
    char line[2048];
    size_t got = 0;
    FILE *from = fopen(piece->path, "rb");
    if (!from)
        return message_error("%s: cannot be opened: %s", piece->path, strerror(errno));

    bool good = read_header(from, line, sizeof line);
    if (good && !*header) {
        strcpy(header, line);
        good = fputs(header, to) >= 0;
    }
    const bool same = good && !strcmp(line, header);
    while (same && (got = fread(bytes, 1, sizeof bytes, from)) > 0 &&
           fwrite(bytes, 1, got, to) == got)
        continue;

    const bool read = same && feof(from) && !ferror(from);
    const int why = errno;
    fclose(from);

    if (good && !same)
        return message_incompatible("%s: its size or format differs from the pieces before it",
                                    piece->path);
    if (ferror(to))
        return message_error("%s: cannot be written: %s", path, strerror(why));

    return read || message_error("%s: cannot be read: %s", piece->path, strerror(why));
}

static bool join_y4m(const struct piece *pieces, uint32_t count, const char *path, bool overwrite)
{
    struct outfile *file;
    struct error error;
    char header[2048] = "";
    for (uint32_t i = 0; i < count; i++)
        if (pieces[i].format.frames != pieces[i].name.count)
            return message_incompatible("%s: has %" PRIu64 " frames, but its header says %" PRIu64,
                                        pieces[i].path, pieces[i].format.frames,
                                        pieces[i].name.count);

    if (!outfile_open(&file, path, &error))
        return message_file_error(path, &error);
    if (!overwrite)
        outfile_keep_existing(file);
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = append_piece(&pieces[i], outfile_stream(file), path, header);
    if (!good) {
        outfile_abandon(&file);
        return false;
    }

    return outfile_finish(&file, &error) || message_file_error(path, &error);
}

/* --- Containers --- */

static bool join_encoded(const struct piece *pieces, uint32_t count, uint64_t frames,
                         const struct options *options, const char *container)
{
    struct error error;
    struct muxed_written written;
    bool incompatible;
    const char *source = options->source;
    const enum video_kind kind = source ? video_kind_of(source) : VIDEO_KIND_NONE;
    if (kind == VIDEO_KIND_UNREADABLE)
        return message_error("%s: cannot be read: %s", source, strerror(errno));
    if (kind != VIDEO_KIND_CONTAINER)
        source = NULL; /* y4m and raw frames have no other streams to copy */

    const char **paths = calloc(count, sizeof *paths);
    if (!paths)
        return message_error("out of memory");
    for (uint32_t i = 0; i < count; i++)
        paths[i] = pieces[i].path;

    const struct muxed_params params = {.container = container,
                                        .source = source,
                                        .frames = frames,
                                        .keep_existing = !options->overwrite,
                                        .left_out = message_file_warning,
                                        .user = (void *)options->output};
    const bool good = muxed_join(options->output, &params, paths, count, &written, &incompatible,
                                 &error);

    free(paths);
    if (!good && incompatible)
        return message_incompatible("%s: %s", options->output, error.text);
    if (good && written.damaged)
        message_warning("%s: %" PRIu64 " damaged packet%s of sound or subtitles", source,
                        written.damaged, plural(written.damaged));

    return good || message_file_error(options->output, &error);
}

/* --- All --- */

static bool join_all(struct piece *pieces, uint32_t count, const struct options *options)
{
    const char *path = options->output;
    qsort(pieces, count, sizeof *pieces, by_first);
    if (!check_pieces(pieces, count) || !check_scenes_and_source(pieces, count, options))
        return false;

    for (uint32_t i = 0; i < count; i++)
        if (outfile_same_place(pieces[i].path, path))
            return message_error(
                "%s: output and one of the pieces are the same file; give the output another name",
                path);

    if (options->source && outfile_same_place(options->source, path))
        return message_error(
            "%s: output and --source are the same file; give the output another name", path);

    const uint64_t first = pieces[0].name.first;
    const uint64_t frames = pieces[count - 1].name.first + pieces[count - 1].name.count - first;
    const bool y4m = is_y4m(&pieces[0]);

    if (!files_may_write(options))
        return false;
    if (y4m && options->source)
        return message_incompatible("--source is for encoded pieces; y4m holds only video");
    if (!y4m && !ends_with(path, ".mkv") && !ends_with(path, ".mp4"))
        return message_incompatible("%s: encoded pieces need a .mkv or .mp4 output", path);

    bool good;
    if (y4m)
        good = join_y4m(pieces, count, path, options->overwrite);
    else
        good = join_encoded(pieces, count, frames, options,
                            ends_with(path, ".mp4") ? "mp4" : "matroska");
    if (good)
        say("written   %s (%u piece%s, frames %" PRIu64 " to %" PRIu64 ")\n", path, count,
            plural(count), first, first + frames - 1);
    return good;
}

bool join_job(const struct options *options)
{
    const uint32_t count = options->input_count;
    struct piece *pieces = calloc(count, sizeof *pieces);
    bool good = true;
    if (!pieces)
        return message_error("out of memory");

    for (uint32_t i = 0; good && i < count; i++) {
        pieces[i].path = options->inputs[i];
        good = look_at(&pieces[i]);
    }

    good = good && join_all(pieces, count, options);
    free(pieces);
    return good;
}
