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
    *part = (struct part_writer){.path = path, .hash = HASH_START};

    const size_t bytes = profile_format(profile, "part", head);
    const int length = snprintf(line, sizeof line, "first %" PRIu64 "\n", first);
    if (!outfile_open(&part->file, path, &error))
        return message_file_error(path, &error);

    return put(part, head, bytes) && put(part, line, (size_t)length);
}

bool part_add(struct part_writer *part, const uint32_t histogram[COX_VIDEO_BINS])
{
    uint8_t bytes[NUMBER_BYTES * COX_VIDEO_BINS];
    size_t count = 0;

    for (int bin = 0; bin < COX_VIDEO_BINS; bin++) {
        uint32_t rest = histogram[bin];
        for (; rest >= 0x80; rest >>= 7)
            bytes[count++] = (uint8_t)(rest | 0x80);
        bytes[count++] = (uint8_t)rest;
    }

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

bool part_next(struct part *part, uint32_t histogram[COX_VIDEO_BINS])
{
    struct profile_text *text = &part->text;

    for (int bin = 0; bin < COX_VIDEO_BINS; bin++) {
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

        if (value > UINT32_MAX)
            return message_incompatible("%s: damaged: impossible counts", text->path);
        histogram[bin] = (uint32_t)value;
    }
    return true;
}
