/* SPDX-License-Identifier: Apache-2.0 */
#include "html.h"
#include "common/outfile.h"
#include "text.h"

#include <coxswain/version.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool html_save(const struct html *html, const char *path, struct error *error)
{
    struct outfile *file;
    if (!outfile_open(&file, path, error))
        return false;

    FILE *to = outfile_stream(file);
    if (fwrite(html->text, 1, html->length, to) != html->length || fflush(to) != 0) {
        int problem = errno; /* abandoning the file changes errno */
        outfile_abandon(&file);
        return error_set(error, "cannot be written: %s", strerror(problem));
    }
    return outfile_finish(&file, error);
}

void html_free(struct html *html)
{
    free(html->text);
    *html = (struct html){0};
}

/* Make room for `bytes` more and the terminator. */
static bool reserve(struct html *html, size_t bytes)
{
    if (html->failed || bytes > SIZE_MAX / 4 - html->length) {
        html->failed = true;
        return false;
    }

    size_t needed = html->length + bytes + 1;
    if (needed <= html->capacity)
        return true;

    size_t capacity = html->capacity ? html->capacity : 4096;
    while (capacity < needed)
        capacity *= 2;
    char *text = realloc(html->text, capacity);
    if (!text) {
        html->failed = true;
        return false;
    }
    html->text = text;
    html->capacity = capacity;
    return true;
}

static void append(struct html *html, const char *text, size_t bytes)
{
    if (!reserve(html, bytes))
        return;
    memcpy(html->text + html->length, text, bytes);
    html->length += bytes;
    html->text[html->length] = 0;
}

void html_raw(struct html *html, const char *text)
{
    append(html, text, strlen(text));
}

void html_append(struct html *html, const struct html *other)
{
    html->failed |= other->failed;
    if (other->text)
        append(html, other->text, other->length);
}

void html_format(struct html *html, const char *format, ...)
{
    va_list args, again;

    va_start(args, format);
    va_copy(again, args);
    int bytes = vsnprintf(NULL, 0, format, args);

    va_end(args);
    if (bytes < 0)
        html->failed = true;
    else if (reserve(html, (size_t)bytes)) {
        vsnprintf(html->text + html->length, (size_t)bytes + 1, format, again);
        html->length += (size_t)bytes;
    }
    va_end(again);
}

/* What is written instead of a character; NULL = the character itself. */
static const char *escape_of(uint32_t character)
{
    switch (character) {
    case '\t':
    case '\n':
    case '\r':
        return " ";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '&':
        return "&amp;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case 0xFFFD: /* also what text_character gives for bytes that are not UTF-8 */
        return "\xEF\xBF\xBD";
    default:
        return text_presentable(character) ? NULL : "\xEF\xBF\xBD";
    }
}

void html_text_cut(struct html *html, const char *text, unsigned characters)
{
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    unsigned bytes;

    for (unsigned written = 0; *from; from += bytes, written++) {
        uint32_t character = text_character(from, &bytes);
        if (written + 1 >= characters && from[bytes]) {
            html_raw(html, "…");
            return;
        }
        const char *escape = escape_of(character);
        if (escape)
            html_raw(html, escape);
        else
            append(html, (const char *)from, bytes);
    }
}

void html_text_middle(struct html *html, const char *text, unsigned characters)
{
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    unsigned count = 0, bytes, tail = characters / 3;

    for (const unsigned char *at = from; *at; at += bytes, count++)
        text_character(at, &bytes);
    if (count <= characters) {
        html_text(html, text);
        return;
    }

    html_text_cut(html, text, characters - tail);
    for (unsigned i = 0; i < count - tail; i++, from += bytes)
        text_character(from, &bytes);
    html_text(html, (const char *)from);
}

void html_text(struct html *html, const char *text)
{
    html_text_cut(html, text, UINT_MAX);
}

void html_coordinate(struct html *html, double value)
{
    char text[32];
    if (!isfinite(value) || fabs(value) < 0.05) {
        html_raw(html, "0");
        return;
    }
    int length = snprintf(text, sizeof text, "%.1f", fmin(fmax(value, -1e6), 1e6));

    if (text[length - 1] == '0')
        text[length - 2] = 0;
    html_raw(html, text);
}

void html_begin(struct html *html, const char *title, const char *program,
                const char *const styles[])
{
    html_raw(html, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n"
                   "<head><meta charset=\"utf-8\"/>"
                   "<meta http-equiv=\"Content-Security-Policy\" "
                   "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
                   "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>"
                   "<meta name=\"color-scheme\" content=\"light dark\"/>"
                   "<meta name=\"generator\" content=\"");
    html_text(html, program);
    html_raw(html, ", Coxswain ");
    html_text(html, cox_version());
    html_raw(html, "\"/><title>");
    html_text(html, title);
    html_format(html, " · %s</title>\n<style>\n", program);

    for (; *styles; styles++)
        html_raw(html, *styles);
    html_raw(html, "</style></head>\n<body><main>\n");
}
