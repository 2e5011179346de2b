/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "media/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of --to, from OUTPUT_PNG on. All but "null" are endings of file names, too. */
static const char *const kind_names[] = {"png", "y4m", "nv12", "p010", "null",
                                         "mkv", "mp4", "jpg",  NULL};

static const char *const step_names[] = {"", "analyse", "steer", "map", "join", NULL};

bool options_refuse(struct options_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);

    return false;
}

int options_find_word(const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return i;

    return -1;
}

const char *options_name_ending(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot || dot == path || strchr(dot, '/'))
        return "";

    return dot + 1;
}

enum output_kind options_find_kind(const char *name)
{
    const int word = options_find_word(name, kind_names);
    if (word < 0)
        return OUTPUT_NAME;

    return (enum output_kind)(OUTPUT_PNG + word);
}

const char *options_kind_name(enum output_kind kind)
{
    return kind_names[kind - OUTPUT_PNG];
}

const char *options_step_name(enum film_step step)
{
    return step_names[step];
}

enum film_step options_find_step(const char *name)
{
    const int step = options_find_word(name, step_names);
    if (step < 0)
        return FILM_WHOLE;

    return (enum film_step)step;
}

enum output_kind options_kind_by_name(const char *output)
{
    const enum output_kind kind = options_find_kind(options_name_ending(output));
    if (picture_is_jpeg(output))
        return OUTPUT_JPEG;
    if (kind != OUTPUT_NAME && kind != OUTPUT_NULL)
        return kind;
    if (!strcmp(output, "null:"))
        return OUTPUT_NULL;
    if (!strcmp(output, "-"))
        return OUTPUT_Y4M;

    return OUTPUT_NAME;
}

bool options_want_video(const struct options *options)
{
    const enum output_kind kind = options_kind_by_name(options->output);
    return kind != OUTPUT_NAME && kind != OUTPUT_PNG && kind != OUTPUT_JPEG &&
           strcmp(options->output, "-") != 0;
}

bool options_want_raw(const struct options *options)
{
    return options->to == OUTPUT_NV12 || options->to == OUTPUT_P010;
}

bool options_want_finished(const struct options *options)
{
    return options->to == OUTPUT_MKV || options->to == OUTPUT_MP4;
}

uint64_t options_encoding(const struct options *options)
{
    const char *const values[] = {options->encoder, options->crf, options->preset};
    uint64_t hash = HASH_START;
    for (int i = 0; i < 3; i++) {
        const char *value = values[i] ? values[i] : "";
        hash = hash_bytes(hash, value, strlen(value) + 1);
    }

    return hash;
}

/* A part of a time: digits only, `most` of them. */
static bool read_digits(const char **at, size_t most, uint64_t *value)
{
    const size_t digits = strspn(*at, "0123456789");
    if (!digits || digits > most)
        return false;
    *value = strtoull(*at, NULL, 10);
    *at += digits;
    return true;
}

bool options_next_frame(const char **list, struct frame_place *place)
{
    const char *at = *list;
    uint64_t parts[3] = {0};
    uint32_t count = 0;
    double fraction = 0;
    *place = (struct frame_place){0};
    if (!*at)
        return false;

    do {
        if (!read_digits(&at, 9, &parts[count]))
            return false;
        count++;
    } while (*at == ':' && count < 3 && *at++);
    if (count > 1 && *at == '.') {
        const size_t digits = strspn(at + 1, "0123456789");
        for (size_t i = digits; i > 0; i--)
            fraction = (fraction + (at[i] - '0')) / 10;
        at += digits + 1;
    }
    for (uint32_t i = 1; i < count; i++)
        if (parts[i] > 59)
            return false;

    place->timed = count > 1;
    place->frame = parts[0];
    for (uint32_t i = 0; i < count && place->timed; i++)
        place->seconds = place->seconds * 60 + (double)parts[i];
    place->seconds += fraction;
    if (*at == ',' && at[1])
        at++;
    else if (*at)
        return false;
    *list = at;
    return place->timed || place->frame <= VIDEO_FRAMES_MAX;
}

const char *options_number_pattern(const char *output)
{
    const char *found = NULL;
    for (const char *at = strchr(output, '%'); at; at = strchr(at + 1, '%')) {
        const size_t digits = strspn(at + 1, "0123456789");
        if (at[1 + digits] == 'd' && (!digits || (digits == 2 && at[1] == '0')))
            found = at;
    }
    return found;
}

void options_policy_names(char *text, size_t bytes)
{
    const char *separator = "";
    const struct cox_policy *policy;
    size_t used = 0;
    for (uint32_t i = 0; (policy = cox_policy_at(i)) && used < bytes; i++) {
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", separator, policy->name);
        separator = ", ";
    }
}
