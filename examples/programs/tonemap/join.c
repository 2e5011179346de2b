/* cox-tonemap join: the pieces of a film, one behind the other, in the order of their frames. Encoded ones go into one
 * file, with what else the source holds; those of y4m are written one after the other, for another program to encode.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "tonemap/ends_with.h"
#include "common/by_first.h"
#include "media/muxed.h"
#include "files.h"
#include "jobs.h"
#include "range.h"
#include "scenes.h"
#include "words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct piece {
    struct scenes_piece name; /* which begins with its first frame, for by_first */
    const char *path;
    struct video_format format;
};

/* What can be read but not opened is damaged. */
static bool look_at(struct piece *piece)
{
    static const struct video_raw none;
    struct video_input *input;
    struct file_identity identity;
    struct error error, unread;
    if (!video_input_open(&input, piece->path, &none, &error))
        return file_identify(piece->path, &identity, &unread)
                   ? misfit("%s: is no piece, or damaged: %s", piece->path, error.text)
                   : complain_about(piece->path, &error);
    piece->format = *video_input_format(input);
    const bool is_whole = video_input_whole(input);
    video_input_close(&input);
    if (!is_whole)
        return misfit("%s: is cut off", piece->path);
    return scenes_piece_read(&piece->name, piece->format.piece) ||
           misfit("%s: is no piece: cox-tonemap map has not written it", piece->path);
}

static bool is_y4m(const struct piece *piece)
{
    return !strncmp(piece->format.text, "y4m", 3);
}

static bool fit_together(const struct piece *pieces, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (is_y4m(&pieces[i]) != is_y4m(&pieces[0]))
            return misfit("%s and %s do not go together: one is y4m, the other is encoded",
                          pieces[0].path, pieces[i].path);
        const struct scenes_piece *before = &pieces[i - 1].name, *piece = &pieces[i].name;
        if (piece->profile != before->profile)
            return misfit(
                "%s and %s do not go together: they are of other films, or mapped otherwise",
                pieces[i - 1].path, pieces[i].path);
        if (!range_follows("piece", pieces[i - 1].path, before->first + before->count,
                           pieces[i].path, piece->first))
            return false;
    }
    const struct scenes_piece *first = &pieces[0].name, *newest = &pieces[count - 1].name;
    const uint64_t end = newest->first + newest->count,
                   film_end = first->film_first + first->film_count;
    if (first->first > first->film_first)
        return misfit("the frames %" PRIu64 " to %" PRIu64 " are in no piece: before %s",
                      first->film_first, first->first - 1, pieces[0].path);
    if (end < film_end)
        return misfit("the frames %" PRIu64 " to %" PRIu64 " are in no piece: behind %s", end,
                      film_end - 1, pieces[count - 1].path);
    return true;
}

/* Whether the pieces have the light that a file of scenes says, and the source is the film that they are of. */
static bool are_of(const struct piece *pieces, uint32_t count, const struct options *options)
{
    struct scenes scenes;
    struct file_identity source;
    struct error error;
    char name[VIDEO_PIECE_BYTES];
    if (options->source && !file_identify(options->source, &source, &error))
        return complain_about(options->source, &error);
    if (options->source && source.hash != pieces[0].name.source)
        return misfit("%s: is not the film that %s is of", options->source, pieces[0].path);
    if (!options->scenes)
        return true;
    if (!scenes_read(&scenes, options->scenes))
        return false;
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++) {
        scenes_piece(&scenes, pieces[i].name.first, pieces[i].name.count, pieces[i].name.encoding,
                     name);
        good =
            !strcmp(name, pieces[i].format.piece) ||
            misfit(
                "%s: is not what %s says: it was mapped before that was changed, or is of another film",
                pieces[i].path, options->scenes);
    }
    scenes_free(&scenes);
    return good;
}

/* --- y4m ---------------------------------------------------------------------------------------------------------- */

/* The header without its piece's name: the same in all. */
static bool read_header(FILE *from, char *line, size_t bytes)
{
    if (!fgets(line, (int)bytes, from))
        return false;
    char *name = strstr(line, " XCOXSWAIN="), *end = name ? strpbrk(name + 1, " \n") : NULL;
    if (end)
        memmove(name, end, strlen(end) + 1);
    return end != NULL;
}

/* The frames of a piece, and its header if it is the first, to the file `path`. */
static bool append_piece(const struct piece *piece, FILE *to, const char *path, char header[2048])
{
    static char bytes[1 << 20];
    char line[2048];
    size_t got = 0;
    FILE *from = fopen(piece->path, "rb");
    if (!from)
        return complain("%s: cannot be opened: %s", piece->path, strerror(errno));
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
        return misfit("%s: is of another size or format than the pieces before it", piece->path);
    if (ferror(to))
        return complain("%s: cannot be written: %s", path, strerror(why));
    return read || complain("%s: cannot be read: %s", piece->path, strerror(why));
}

static bool join_y4m(const struct piece *pieces, uint32_t count, const char *path)
{
    struct outfile *file;
    struct error error;
    char header[2048] = "";
    for (uint32_t i = 0; i < count; i++)
        if (pieces[i].format.frames != pieces[i].name.count)
            return misfit("%s: has %" PRIu64 " frames, and not %" PRIu64 " as it says",
                          pieces[i].path, pieces[i].format.frames, pieces[i].name.count);
    if (!outfile_open(&file, path, &error))
        return complain_about(path, &error);
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = append_piece(&pieces[i], outfile_stream(file), path, header);
    if (!good) {
        outfile_abandon(&file);
        return false;
    }
    return outfile_finish(&file, &error) || complain_about(path, &error);
}

/* --- Containers --------------------------------------------------------------------------------------------------- */

static bool join_encoded(const struct piece *pieces, uint32_t count, uint64_t frames,
                         const struct options *options, const char *container)
{
    struct error error;
    uint64_t bytes;
    bool is_misfit;
    const char **paths = calloc(count, sizeof *paths);
    if (!paths)
        return complain("out of memory");
    for (uint32_t i = 0; i < count; i++)
        paths[i] = pieces[i].path;
    /* y4m and raw frames have nothing beside their frames. */
    const bool copies = options->source && video_kind_of(options->source) == VIDEO_KIND_CONTAINER;
    const struct muxed_params params = {.container = container,
                                        .source = copies ? options->source : NULL,
                                        .frames = frames,
                                        .left_out = warn_about,
                                        .user = (void *)options->output};
    const bool good = muxed_join(options->output, &params, paths, count, &bytes, &is_misfit,
                                 &error);
    free(paths);
    if (!good && is_misfit)
        return misfit("%s: %s", options->output, error.text);
    return good || complain_about(options->output, &error);
}

/* --- All ---------------------------------------------------------------------------------------------------------- */

static bool join_all(struct piece *pieces, uint32_t count, const struct options *options)
{
    const char *path = options->output;
    qsort(pieces, count, sizeof *pieces, by_first);
    if (!fit_together(pieces, count) || !are_of(pieces, count, options))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (outfile_same_place(pieces[i].path, path))
            return complain("%s: is one of the pieces; give the output another name", path);
    if (options->source && outfile_same_place(options->source, path))
        return complain("%s: is the source; give the output another name", path);
    const uint64_t first = pieces[0].name.first;
    const uint64_t frames = pieces[count - 1].name.first + pieces[count - 1].name.count - first;
    const bool y4m = is_y4m(&pieces[0]);
    if (!files_may_write(options))
        return false;
    if (y4m && options->source)
        return misfit("--source is for encoded pieces, and y4m has pictures only");
    if (!y4m && !ends_with(path, ".mkv") && !ends_with(path, ".mp4"))
        return misfit("%s: encoded pieces are joined to .mkv or .mp4", path);
    const bool good = y4m ? join_y4m(pieces, count, path)
                          : join_encoded(pieces, count, frames, options,
                                         ends_with(path, ".mp4") ? "mp4" : "matroska");
    if (good)
        say("written   %s (%u piece%s, frames %" PRIu64 " to %" PRIu64 ")\n", path, count,
            count == 1 ? "" : "s", first, first + frames - 1);
    return good;
}

bool join_job(const struct options *options)
{
    const uint32_t count = options->input_count;
    struct piece *pieces = calloc(count, sizeof *pieces);
    bool good = true;
    if (!pieces)
        return complain("out of memory");
    for (uint32_t i = 0; good && i < count; i++) {
        pieces[i].path = options->inputs[i];
        good = look_at(&pieces[i]);
    }
    good = good && join_all(pieces, count, options);
    free(pieces);
    return good;
}
