/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "scenes.h"
#include "common/outfile.h"
#include "messages.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The limits of the library (cox_video_prepare). */
static const float PEAK_LEAST = 1, PEAK_MOST = 1e6f, GAIN_LEAST = 0x1p-32f, GAIN_MOST = 0x1p32f;

static float within(float value, float least, float most)
{
    return fminf(fmaxf(value, least), most);
}

void scenes_light_set(struct scenes_light *light, float peak_nits, float gain)
{
    light->peak_nits = within(peak_nits, PEAK_LEAST, PEAK_MOST);
    light->gain = within(gain, GAIN_LEAST, GAIN_MOST);
}

bool scenes_make(struct scenes *scenes, uint64_t count)
{
    scenes->count = count;
    scenes->light = calloc(count ? count : 1, sizeof *scenes->light);
    return scenes->light || message_error("out of memory");
}

void scenes_free(struct scenes *scenes)
{
    free(scenes->light);
    scenes->light = NULL;
}

const struct scenes_light *scenes_of(const struct scenes *scenes, uint64_t frame)
{
    if (frame < scenes->first || frame - scenes->first >= scenes->count)
        return NULL;

    return &scenes->light[frame - scenes->first];
}

static uint64_t hash_profile(const struct profile *profile)
{
    char text[PROFILE_BYTES];
    return hash_bytes(HASH_START, text, profile_format(profile, "scenes", text));
}

void scenes_piece(const struct scenes *scenes, uint64_t first, uint64_t count, uint64_t encoding,
                  char text[VIDEO_PIECE_BYTES])
{
    uint64_t light = HASH_START;
    for (uint64_t frame = first; frame < first + count; frame++) {
        const struct scenes_light *of = scenes_of(scenes, frame);
        float values[2] = {0, 0};
        if (of) {
            values[0] = of->peak_nits;
            values[1] = of->gain;
        }
        light = hash_bytes(light, values, sizeof values);
    }
    snprintf(text, VIDEO_PIECE_BYTES,
             "%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%016" PRIx64 ":%016" PRIx64
             ":%016" PRIx64 ":%016" PRIx64,
             first, count, scenes->first, scenes->count, scenes->profile.source.hash,
             hash_profile(&scenes->profile), light, encoding);
}

bool scenes_piece_read(struct scenes_piece *piece, const char *text)
{
    char rest;
    return sscanf(text,
                  "%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNu64 ":%" SCNx64 ":%" SCNx64 ":%" SCNx64
                  ":%" SCNx64 "%c",
                  &piece->first, &piece->count, &piece->film_first, &piece->film_count,
                  &piece->source, &piece->profile, &piece->light, &piece->encoding, &rest) == 8 &&
           piece->first <= VIDEO_FRAMES_MAX && piece->count <= VIDEO_FRAMES_MAX &&
           piece->film_first <= VIDEO_FRAMES_MAX && piece->film_count <= VIDEO_FRAMES_MAX;
}

static bool same(float a, float b)
{
    return a <= b && a >= b;
}

bool scenes_write(const struct scenes *scenes, const char *path)
{
    struct outfile *file;
    struct error error;
    if (!outfile_open(&file, path, &error))
        return message_file_error(path, &error);

    FILE *to = outfile_stream(file);
    profile_write(&scenes->profile, "scenes", to);
    fprintf(to, "frames %" PRIu64 " %" PRIu64 "%s\n", scenes->first, scenes->count,
            scenes->last ? " end" : "");

    for (uint64_t i = 0; i < scenes->count; i++) {
        const struct scenes_light *light = &scenes->light[i];
        if (!i || light->begins)
            fprintf(to, "scene %" PRIu64 "\n", scenes->first + i);
        if (!i || light->begins || !same(light->peak_nits, light[-1].peak_nits) ||
            !same(light->gain, light[-1].gain))
            fprintf(to, "%" PRIu64 " %.9g %.9g\n", scenes->first + i, (double)light->peak_nits,
                    (double)light->gain);
    }

    fprintf(to, "end\n");
    return outfile_finish(&file, &error) || message_file_error(path, &error);
}

/* --- Reading --- */

/* The state of reading a file. */
struct reading {
    struct scenes *scenes;
    struct profile_text text;
    uint64_t done;             /* frames that have their light */
    struct scenes_light light; /* from frame `done` on; a peak of 0 = no line yet */
    float peak_nits, gain;     /* the scene's own; 0 = none */
    bool begins;
};

/* Give the frames before `frame` the light of the last line. */
static bool go_to(struct reading *reading, uint64_t frame)
{
    struct scenes *scenes = reading->scenes;
    if (frame < scenes->first + reading->done || frame > scenes->first + scenes->count)
        return profile_text_wrong(
            &reading->text, "the frame does not exist, or does not follow the frames before it");

    for (; scenes->first + reading->done < frame; reading->done++) {
        struct scenes_light *light = &scenes->light[reading->done];
        *light = reading->light;
        if (reading->peak_nits > 0)
            light->peak_nits = reading->peak_nits;
        if (reading->gain > 0)
            light->gain = reading->gain;
        if (light->peak_nits <= 0 || light->gain <= 0)
            return profile_text_wrong(&reading->text,
                                      "the frames before this line have no peak and gain");

        light->begins = reading->begins;
        reading->begins = false;
    }
    return true;
}

/* Read a number between two limits at `*at`, and move `*at` behind it. */
static bool read_number(char **at, float least, float most, float *value)
{
    char *end;
    *value = strtof(*at, &end);
    const bool good = end != *at && *value >= least && *value <= most;

    *at = end;
    return good;
}

static bool read_scene(struct reading *reading, char *at)
{
    char *end;
    const uint64_t frame = strtoull(at, &end, 10);
    if (end == at)
        return profile_text_wrong(&reading->text, "expected 'scene FRAME'");
    if (!go_to(reading, frame))
        return false;

    reading->begins = true;
    reading->peak_nits = reading->gain = 0;

    for (at = end; *at;) {
        bool good = false;
        at += strspn(at, " ");
        if (!strncmp(at, "peak ", 5)) {
            at += 5;
            good = read_number(&at, PEAK_LEAST, PEAK_MOST, &reading->peak_nits);
        } else if (!strncmp(at, "gain ", 5)) {
            at += 5;
            good = read_number(&at, GAIN_LEAST, GAIN_MOST, &reading->gain);
        }

        if (!good || (*at && *at != ' '))
            return profile_text_wrong(&reading->text,
                                      "expected 'scene FRAME [peak NITS] [gain GAIN]'");
        at += strspn(at, " ");
    }
    return true;
}

static bool read_light(struct reading *reading, char *at)
{
    struct scenes_light light = {0};
    char *end;
    const uint64_t frame = strtoull(at, &end, 10);
    const bool good = end != at && *end == ' ' && *at != '-';
    at = end;

    if (!good || !read_number(&at, PEAK_LEAST, PEAK_MOST, &light.peak_nits) || *at != ' ' ||
        !read_number(&at, GAIN_LEAST, GAIN_MOST, &light.gain) || *at)
        return profile_text_wrong(&reading->text, "expected 'FRAME PEAK GAIN'");
    if (!go_to(reading, frame))
        return false;

    reading->light = light;
    return true;
}

/* The next line that is neither empty nor a comment. */
static char *next_line(struct reading *reading)
{
    char *line;
    do
        line = profile_text_line(&reading->text);
    while (line && (!*line || *line == '#'));
    return line;
}

static bool read_frames(struct reading *reading)
{
    struct scenes *scenes = reading->scenes;
    for (char *line; (line = next_line(reading));) {
        if (!strcmp(line, "end"))
            return go_to(reading, scenes->first + scenes->count) &&
                   (!next_line(reading) ||
                    profile_text_wrong(&reading->text, "unexpected line after 'end'"));
        if (!reading->text.is_ended)
            break;

        bool good;
        if (!strncmp(line, "scene ", 6))
            good = read_scene(reading, line + 6);
        else
            good = read_light(reading, line);
        if (!good)
            return false;
    }

    return message_incompatible("%s: truncated: the line 'end' is missing", reading->text.path);
}

/* The line "frames FIRST COUNT [end]". */
static bool read_count(struct reading *reading, uint64_t *count)
{
    struct scenes *scenes = reading->scenes;
    const char *line = profile_text_line(&reading->text);
    char word[8] = "", rest;
    int read = 0;
    if (line)
        read = sscanf(line, "frames %" SCNu64 " %" SCNu64 " %7s %c", &scenes->first, count, word,
                      &rest);

    scenes->last = read == 3 && !strcmp(word, "end");
    return ((read == 2 || scenes->last) && *count <= SCENES_FRAMES_MAX &&
            scenes->first <= VIDEO_FRAMES_MAX) ||
           profile_text_wrong(&reading->text, "expected 'frames FIRST COUNT [end]'");
}

bool scenes_read(struct scenes *scenes, const char *path)
{
    struct reading reading = {.scenes = scenes};
    uint64_t count = 0;
    *scenes = (struct scenes){.first = 0};
    if (!profile_text_open(&reading.text, path))
        return false;

    const bool good = profile_read(&scenes->profile, "scenes", &reading.text) &&
                      read_count(&reading, &count) && scenes_make(scenes, count) &&
                      read_frames(&reading);
    profile_text_close(&reading.text);
    if (!good)
        scenes_free(scenes);
    return good;
}
