/* SPDX-License-Identifier: Apache-2.0 */
#include "part.h"
#include "messages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "end COUNT LAST CHECK", of fixed length, so that it is found from the end of the file. */
#define END_LINE "end %20" PRIu64 " %d %016" PRIx64 "\n"
enum { END_BYTES = 4 + 20 + 1 + 1 + 1 + 16 + 1, NUMBER_BYTES = 5 };

/* --- What changes from frame to frame --- */

enum { COLOURS = 7 };

static void get_colours(const struct cox_video_shape *shape, const struct film_steering *steering,
                        uint32_t to[COLOURS])
{
    const uint32_t colours[] = {shape->transfer, shape->primaries, shape->matrix,
                                shape->gamut,    shape->in.range,  shape->in.chroma_location};
    memcpy(to, colours, sizeof colours);
    memcpy(&to[COLOURS - 1], &steering->known_peak_nits, sizeof *to);
}

/* False if there are no such colours. */
static bool set_colours(struct profile *profile, const uint32_t from[COLOURS])
{
    struct cox_video_shape *shape = &profile->shape;
    if (from[0] > COX_TRANSFER_SDR || from[1] > COX_PRIMARIES_BT601_625 ||
        from[2] > COX_MATRIX_BT601 || from[3] > COX_GAMUT_HUE || from[4] > COX_RANGE_FULL ||
        from[5] > COX_CHROMA_TOP_LEFT)
        return false;

    shape->transfer = from[0];
    shape->primaries = from[1];
    shape->matrix = from[2];
    shape->gamut = from[3];
    shape->in.range = from[4];
    shape->in.chroma_location = from[5];
    memcpy(&profile->steering.known_peak_nits, &from[COLOURS - 1], sizeof *from);
    return true;
}

/* --- Writing --- */

static bool cannot_write(const struct part_writer *part)
{
    return message_error("%s: cannot be written: %s", part->path, strerror(errno));
}

/* A failure is printed once. Frames in flight may follow it. */
static bool put(struct part_writer *part, const void *bytes, size_t count)
{
    if (part->failed)
        return false;

    part->hash = hash_bytes(part->hash, bytes, count);
    part->failed = fwrite(bytes, 1, count, outfile_stream(part->file)) != count;
    return !part->failed || cannot_write(part);
}

bool part_begin(struct part_writer *part, const char *path, const struct profile *profile,
                uint64_t first)
{
    struct error error;
    char head[PROFILE_BYTES], line[40];
    *part = (struct part_writer){.path = path, .now = *profile, .hash = HASH_START};

    const size_t bytes = profile_format(profile, "part", head);
    const int length = snprintf(line, sizeof line, "first %" PRIu64 "\n", first);
    if (!outfile_open(&part->file, path, &error))
        return message_file_error(path, &error);

    return put(part, head, bytes) && put(part, line, (size_t)length);
}

static size_t write_number(uint8_t *bytes, uint32_t number)
{
    size_t count = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[count++] = (uint8_t)(number | 0x80);
    bytes[count++] = (uint8_t)number;
    return count;
}

bool part_add(struct part_writer *part, const struct film_plan *plan,
              const uint32_t histogram[COX_VIDEO_BINS])
{
    uint8_t bytes[NUMBER_BYTES * (1 + COLOURS + COX_VIDEO_BINS)];
    uint32_t before[COLOURS], colours[COLOURS];
    struct profile *now = &part->now;
    size_t count = 0;

    get_colours(&now->shape, &now->steering, before);
    get_colours(&plan->shape, &plan->steering, colours);
    now->shape = plan->shape;
    now->steering = plan->steering;

    const bool changes = memcmp(before, colours, sizeof colours);
    count += write_number(bytes, changes);
    for (int i = 0; changes && i < COLOURS; i++)
        count += write_number(bytes + count, colours[i]);
    for (int bin = 0; bin < COX_VIDEO_BINS; bin++)
        count += write_number(bytes + count, histogram[bin]);

    part->count++;
    return put(part, bytes, count);
}

bool part_finish(struct part_writer *part, uint64_t count, bool last)
{
    struct error error;
    if (fprintf(outfile_stream(part->file), END_LINE, count, last, part->hash) != END_BYTES) {
        cannot_write(part);
        outfile_abandon(&part->file);
        return false;
    }

    return outfile_finish(&part->file, &error) || message_file_error(part->path, &error);
}

void part_abandon(struct part_writer *part)
{
    outfile_abandon(&part->file);
}

/* --- Reading --- */

/* Read the last line, and remove it from the text. */
static bool read_end(struct part *part)
{
    struct profile_text *text = &part->text;
    uint64_t check;
    int last = 0, length = 0;

    if (text->bytes < END_BYTES)
        return message_incompatible("%s: truncated", text->path);
    const char *end = text->text + text->bytes - END_BYTES;
    const int read = sscanf(end, "end %" SCNu64 " %d %" SCNx64 "%n", &part->count, &last, &check,
                            &length);
    if (read != 3 || length != END_BYTES - 1)
        return message_incompatible("%s: truncated, or not a part written by cox-tonemap analyse",
                                    text->path);
    text->bytes -= END_BYTES;

    part->last = last;
    if (hash_bytes(HASH_START, text->text, text->bytes) != check)
        return message_incompatible("%s: damaged: its checksum differs", text->path);

    text->text[text->bytes] = 0;
    return true;
}

bool part_is_there(const char *path)
{
    char end[END_BYTES + 1] = "";
    FILE *file = fopen(path, "rb");

    const bool there = file && !fseek(file, -END_BYTES, SEEK_END) &&
                       fread(end, 1, END_BYTES, file) == END_BYTES && !strncmp(end, "end ", 4) &&
                       end[END_BYTES - 1] == '\n';

    if (file)
        fclose(file);
    return there;
}

static bool read_head(struct part *part)
{
    if (!read_end(part) || !profile_read(&part->profile, "part", &part->text))
        return false;

    char *line = profile_text_line(&part->text), rest;
    if (!line || sscanf(line, "first %" SCNu64 "%c", &part->first, &rest) != 1)
        return profile_text_wrong(&part->text, "expected 'first FRAME'");

    uint64_t most = VIDEO_FRAMES_MAX;
    if (part->profile.steering.on)
        most = (part->text.bytes - part->text.at) / COX_VIDEO_BINS;
    if (part->first > VIDEO_FRAMES_MAX || part->count > most || part->count > VIDEO_FRAMES_MAX)
        return message_incompatible("%s: damaged: an impossible range of %" PRIu64
                                    " frames, the first is %" PRIu64,
                                    part->text.path, part->count, part->first);
    return true;
}

bool part_open(struct part *part, const char *path)
{
    *part = (struct part){.first = 0};
    if (!profile_text_open(&part->text, path))
        return false;

    if (read_head(part))
        return true;
    part_close(part);
    return false;
}

void part_close(struct part *part)
{
    profile_text_close(&part->text);
}

static bool read_number(struct part *part, uint32_t *number)
{
    struct profile_text *text = &part->text;
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;

    do {
        if (text->at == text->bytes || shift > 28)
            return message_incompatible("%s: damaged: histograms are missing", text->path);
        byte = (uint8_t)text->text[text->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);

    *number = (uint32_t)value;
    return value <= UINT32_MAX ||
           message_incompatible("%s: damaged: impossible counts", text->path);
}

static bool read_colours(struct part *part)
{
    uint32_t changes = 0, colours[COLOURS];
    if (!read_number(part, &changes))
        return false;

    for (int i = 0; changes && i < COLOURS; i++)
        if (!read_number(part, &colours[i]))
            return false;
    return !changes || set_colours(&part->profile, colours) ||
           message_incompatible("%s: damaged: impossible colours", part->text.path);
}

bool part_next(struct part *part, uint32_t histogram[COX_VIDEO_BINS])
{
    if (!read_colours(part))
        return false;

    for (int bin = 0; bin < COX_VIDEO_BINS; bin++)
        if (!read_number(part, &histogram[bin]))
            return false;
    return true;
}
