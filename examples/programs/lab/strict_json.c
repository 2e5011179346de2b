/* SPDX-License-Identifier: Apache-2.0 */
#include "strict_json.h"
#include "common/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool strict_refuse(const struct strict_place *at, const char *key, const char *format, ...)
{
    struct strict_reader *reader = at->reader;
    const char *dot = "";
    char text[200];
    va_list args;

    if (reader->failed)
        return false;
    reader->failed = true;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    if (at->path[0] && key)
        dot = ".";
    if (!at->path[0] && !key)
        key = "the file";
    if (reader->why && reader->why_bytes > 0)
        snprintf(reader->why, reader->why_bytes, "%s: %s%s%s: %s", reader->file, at->path, dot,
                 key ? key : "", text);
    return false;
}

/* Of a key that the file does not have. */
static bool is_optional(const struct strict_place *at, const char *key, bool must)
{
    if (must)
        return strict_refuse(at, key, "missing");
    return !at->reader->failed;
}

static bool is_key(const char *key, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(key, *known) == 0)
            return true;
    return false;
}

static bool refuse_key(const struct strict_place *at, const char *key)
{
    char shown[40];

    snprintf(shown, sizeof shown, "%.36s", key);
    for (char *c = shown; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    return strict_refuse(at, NULL, "unknown key \"%s\"", shown);
}

bool strict_enter(struct strict_place *at, struct strict_reader *reader, json_t *value,
                  const char *const *known, const char *format, uint32_t index)
{
    const char *mark = format ? strchr(format, '#') : NULL;
    const char *key;
    json_t *member;

    *at = (struct strict_place){.reader = reader, .object = value};
    if (mark)
        snprintf(at->path, sizeof at->path, "%.*s%" PRIu32 "%s", (int)(mark - format), format,
                 index, mark + 1);
    else if (format)
        snprintf(at->path, sizeof at->path, "%s", format);

    if (!json_is_object(value))
        return strict_refuse(at, NULL, "must be an object");
    json_object_foreach(value, key, member)
    {
        (void)member;
        if (!is_key(key, known))
            return refuse_key(at, key);
    }
    return true;
}

bool strict_number(const struct strict_place *at, const char *key, bool must, double low,
                   double high, double *out)
{
    json_t *value = json_object_get(at->object, key);

    if (!value)
        return is_optional(at, key, must);
    if (!json_is_number(value))
        return strict_refuse(at, key, "must be a number");

    double found = json_number_value(value);
    if (!(found >= low && found <= high))
        return strict_refuse(at, key, "must be from %g to %g, not %g", low, high, found);

    *out = found;
    return !at->reader->failed;
}

bool strict_integer(const struct strict_place *at, const char *key, bool must, uint64_t low,
                    uint64_t high, uint64_t *out)
{
    json_t *value = json_object_get(at->object, key);

    if (!value)
        return is_optional(at, key, must);
    if (!json_is_integer(value))
        return strict_refuse(at, key, "must be a whole number");

    json_int_t found = json_integer_value(value);
    if (found < 0 || (uint64_t)found < low || (uint64_t)found > high)
        return strict_refuse(at, key,
                             "must be from %" PRIu64 " to %" PRIu64 ", not %" JSON_INTEGER_FORMAT,
                             low, high, found);

    *out = (uint64_t)found;
    return !at->reader->failed;
}

bool strict_boolean(const struct strict_place *at, const char *key, bool *out)
{
    json_t *value = json_object_get(at->object, key);

    if (!value)
        return !at->reader->failed;
    if (!json_is_boolean(value))
        return strict_refuse(at, key, "must be true or false");

    *out = json_is_true(value);
    return !at->reader->failed;
}

bool strict_is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

bool strict_string(const struct strict_place *at, const char *key, bool must, size_t bytes,
                   char *out)
{
    json_t *value = json_object_get(at->object, key);

    if (!value)
        return is_optional(at, key, must);

    const char *text = json_string_value(value);
    if (!text)
        return strict_refuse(at, key, "must be a string");

    size_t length = strlen(text);
    if (length == 0 || length >= bytes)
        return strict_refuse(at, key, "must have from 1 to %zu bytes", bytes - 1);
    if (!strict_is_printable(text))
        return strict_refuse(at, key, "must not contain control characters");

    memcpy(out, text, length + 1);
    return !at->reader->failed;
}

json_t *strict_array(const struct strict_place *at, const char *key, bool must, size_t most)
{
    json_t *value = json_object_get(at->object, key);

    if (!value) {
        if (must)
            strict_refuse(at, key, "missing");
        return NULL;
    }

    if (!json_is_array(value)) {
        strict_refuse(at, key, "must be an array");
        return NULL;
    }
    if (json_array_size(value) < 1 || json_array_size(value) > most) {
        strict_refuse(at, key, "must have from 1 to %zu entries, not %zu", most,
                      json_array_size(value));
        return NULL;
    }
    return value;
}

/* Jansson leaves out a character of a string if it gets no memory for it, and says nothing. */
static _Thread_local bool no_memory;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    no_memory |= !memory;
    return memory;
}

json_t *strict_parse(struct strict_reader *reader, const char *text, size_t bytes, size_t bytes_max)
{
    const struct strict_place top = {.reader = reader};
    json_error_t error;

    if (bytes > bytes_max) {
        strict_refuse(&top, NULL, "must have at most %zu bytes", bytes_max);
        return NULL;
    }

    json_set_alloc_funcs(allocate, free);
    no_memory = false;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (no_memory) {
        json_decref(root);
        strict_refuse(&top, NULL, "out of memory");
        return NULL;
    }
    if (!root && !reader->failed) {
        char plain[4 * JSON_ERROR_TEXT_LENGTH]; /* it quotes the file, with its line feeds */

        reader->failed = true;
        if (reader->why && reader->why_bytes > 0)
            snprintf(reader->why, reader->why_bytes, "%s:%d:%d: %s", reader->file, error.line,
                     error.column, text_plain(error.text, plain, sizeof plain));
    }
    return root;
}

/* NULL with the reason unless it is a regular file. */
static FILE *open_regular(const char *path, char *why, size_t why_bytes)
{
    struct stat st;
    FILE *file = NULL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        snprintf(why, why_bytes, "%s: not a regular file", path);
    else if (fd < 0 || !(file = fdopen(fd, "rb")))
        snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
    if (!file && fd >= 0)
        close(fd);
    return file;
}

char *strict_read_file(const char *path, size_t bytes_max, size_t *bytes, char *why,
                       size_t why_bytes)
{
    FILE *file = open_regular(path, why, why_bytes);
    if (!file)
        return NULL;

    char *text = malloc(bytes_max + 2);
    *bytes = 0;
    if (text)
        *bytes = fread(text, 1, bytes_max + 1, file);
    else
        snprintf(why, why_bytes, "%s: out of memory", path);

    if (text && ferror(file)) {
        snprintf(why, why_bytes, "%s: cannot read", path);
        free(text);
        text = NULL;
    }
    if (text)
        text[*bytes] = '\0';
    fclose(file);
    return text;
}
