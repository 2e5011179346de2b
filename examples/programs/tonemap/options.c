/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"
#include "media/identity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The values of --to, from OUTPUT_PNG on. All but "null" are endings of file names, too. */
static const char *const kind_names[] = {"png", "y4m", "nv12", "p010", "null", "mkv", "mp4", NULL};

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
    return kind != OUTPUT_NAME && kind != OUTPUT_PNG && strcmp(options->output, "-") != 0;
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
