/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void json_begin(struct json *json, FILE *stream)
{
    *json = (struct json){.stream = stream};
}

void json_end(struct json *json)
{
    fputc('\n', json->stream);
}

static void new_line(const struct json *json)
{
    fputc('\n', json->stream);
    for (unsigned i = 0; i < json->depth; i++)
        fputs("  ", json->stream);
}

/* Write what comes before any value or key. */
static void separate(struct json *json)
{
    if (json->after_key) {
        json->after_key = false;
        return;
    }

    if (json->filled[json->depth])
        fputc(',', json->stream);
    if (json->depth && !json->flat[json->depth])
        new_line(json);
    else if (json->filled[json->depth])
        fputc(' ', json->stream);

    json->filled[json->depth] = true;
}

static void open_level(struct json *json, char bracket, bool flat)
{
    separate(json);
    fputc(bracket, json->stream);
    bool inherited = json->flat[json->depth];
    if (json->depth + 1 < JSON_DEPTH_MAX)
        json->depth++;
    json->filled[json->depth] = false;
    json->flat[json->depth] = flat || inherited;
}

static void close_level(struct json *json, char bracket)
{
    bool break_line = json->filled[json->depth] && !json->flat[json->depth];
    if (json->depth)
        json->depth--;
    if (break_line)
        new_line(json);
    fputc(bracket, json->stream);
}

void json_open_object(struct json *json, bool flat)
{
    open_level(json, '{', flat);
}

void json_open_array(struct json *json, bool flat)
{
    open_level(json, '[', flat);
}

void json_close_object(struct json *json)
{
    close_level(json, '}');
}

void json_close_array(struct json *json)
{
    close_level(json, ']');
}

/* Length of the UTF-8 character at `s`, 0 if it is not one. */
static unsigned utf8_length(const unsigned char *s, uint32_t *character)
{
    unsigned bytes;
    *character = text_character(s, &bytes);
    if (*character == 0xFFFD && bytes == 1)
        return 0;
    return bytes;
}

/* \uNNNN, two for a character that UTF-16 needs two for. */
static void put_escape(FILE *stream, uint32_t character)
{
    if (character < 0x10000) {
        fprintf(stream, "\\u%04" PRIx32, character);
        return;
    }

    character -= 0x10000;
    fprintf(stream, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + (character >> 10),
            0xDC00 + (character & 0x3FF));
}

static void put_string(FILE *stream, const char *text)
{
    fputc('"', stream);

    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        uint32_t character;
        unsigned length = utf8_length(s, &character);
        if (*s == '"' || *s == '\\')
            fprintf(stream, "\\%c", *s);
        else if (length && !text_presentable(character))
            put_escape(stream, character);
        else if (length)
            fwrite(s, 1, length, stream);
        else {
            fputs("\\ufffd", stream);
            length = 1;
        }
        s += length;
    }

    fputc('"', stream);
}

void json_key(struct json *json, const char *key)
{
    separate(json);
    put_string(json->stream, key);
    fputs(": ", json->stream);
    json->after_key = true;
}

void json_string(struct json *json, const char *text)
{
    separate(json);
    put_string(json->stream, text);
}

void json_unsigned(struct json *json, uint64_t value)
{
    separate(json);
    fprintf(json->stream, "%" PRIu64, value);
}

void json_us(struct json *json, uint64_t ns)
{
    separate(json);
    fprintf(json->stream, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}

void json_number(struct json *json, double value)
{
    if (!isfinite(value) || fabs(value) > 1e15) {
        json_null(json);
        return;
    }
    separate(json);
    double magnitude = fabs(value);
    uint64_t whole = (uint64_t)magnitude;
    uint64_t millionths = (uint64_t)llround((magnitude - (double)whole) * 1e6);

    if (millionths == 1000000) {
        whole++;
        millionths = 0;
    }
    bool negative = value < 0 && (whole || millionths);

    fprintf(json->stream, "%s%" PRIu64 ".%06" PRIu64, negative ? "-" : "", whole, millionths);
}

void json_null(struct json *json)
{
    separate(json);
    fputs("null", json->stream);
}

void json_bool(struct json *json, bool value)
{
    separate(json);
    fputs(value ? "true" : "false", json->stream);
}

void json_member_string(struct json *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

void json_member_unsigned(struct json *json, const char *key, uint64_t value)
{
    json_key(json, key);
    json_unsigned(json, value);
}

void json_member_us(struct json *json, const char *key, uint64_t ns)
{
    json_key(json, key);
    json_us(json, ns);
}

void json_member_number(struct json *json, const char *key, double value)
{
    json_key(json, key);
    json_number(json, value);
}

void json_member_bool(struct json *json, const char *key, bool value)
{
    json_key(json, key);
    json_bool(json, value);
}

void json_member_object(struct json *json, const char *key, bool flat)
{
    json_key(json, key);
    json_open_object(json, flat);
}

void json_member_array(struct json *json, const char *key, bool flat)
{
    json_key(json, key);
    json_open_array(json, flat);
}
