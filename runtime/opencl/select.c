/* Parsing and matching of the device selection language; see cox_runtime_create.
 * SPDX-License-Identifier: Apache-2.0 */
#include "select.h"

#include <coxswain/sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NUMBER_MAX = 65535 };

/* A piece of the selection text: not terminated. */
struct span {
    const char *at;
    size_t length;
};

__attribute__((format(printf, 3, 4))) static cox_status refuse(char *why, size_t why_bytes,
                                                               const char *format, ...)
{
    if (why && why_bytes > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(why, why_bytes, format, args);
        va_end(args);
    }
    return COX_E_INVALID;
}

/* ASCII only, in every locale: device names are UTF-8 or ASCII. */
static char lower(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct span trim(struct span span)
{
    while (span.length > 0 && is_space(span.at[0])) {
        span.at++;
        span.length--;
    }
    while (span.length > 0 && is_space(span.at[span.length - 1]))
        span.length--;
    return span;
}

static bool equals(struct span span, const char *word)
{
    if (strlen(word) != span.length)
        return false;

    for (size_t i = 0; i < span.length; i++) {
        if (lower(span.at[i]) != word[i])
            return false;
    }
    return true;
}

/* Cut `span` at the last `mark` and put the rest behind it into `tail`. Without a mark: false, and
 * nothing changes. */
static bool cut(struct span *span, char mark, struct span *tail)
{
    for (size_t i = span->length; i-- > 0;) {
        if (span->at[i] == mark) {
            *tail = trim((struct span){span->at + i + 1, span->length - i - 1});
            *span = trim((struct span){span->at, i});
            return true;
        }
    }
    return false;
}

/* Read a decimal number that fills the span, at most NUMBER_MAX. */
static bool number(struct span span, uint32_t *out)
{
    if (span.length == 0)
        return false;

    uint32_t value = 0;
    for (size_t i = 0; i < span.length; i++) {
        if (!is_digit(span.at[i]))
            return false;

        value = value * 10 + (uint32_t)(span.at[i] - '0');
        if (value > NUMBER_MAX)
            return false;
    }

    *out = value;
    return true;
}

/* Read two numbers with `mark` between them. */
static bool number_pair(struct span span, char mark, uint32_t *first, uint32_t *second)
{
    struct span tail;
    for (size_t i = 0; i < span.length; i++) {
        if (lower(span.at[i]) == mark) {
            tail = (struct span){span.at + i + 1, span.length - i - 1};
            return number((struct span){span.at, i}, first) && number(tail, second);
        }
    }
    return false;
}

/* Digits on both sides of one dot: the user means P.D, even if a number is out of range. */
static bool looks_like_index(struct span span)
{
    size_t dots = 0;
    for (size_t i = 0; i < span.length; i++) {
        if (span.at[i] == '.')
            dots++;
        else if (!is_digit(span.at[i]))
            return false;
    }
    return dots == 1 && span.length >= 3 && span.at[0] != '.' && span.at[span.length - 1] != '.';
}

/* Take the memory mode and the sub-devices off the end of the entry. */
static cox_status parse_suffixes(struct span *span, struct cox__select_entry *entry, char *why,
                                 size_t why_bytes)
{
    static const enum cox_memory_mode modes[] = {COX_MODE_SHARED, COX_MODE_MAPPED, COX_MODE_STAGED};
    static const char *const mode_words[] = {"shared", "mapped", "staged"};
    struct span tail;

    if (cut(span, '=', &tail)) {
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
            if (equals(tail, mode_words[i]))
                entry->mode = modes[i];
        }
        if (entry->mode == 0)
            return refuse(why, why_bytes,
                          "'%s': unknown memory mode after '='; allowed: shared, mapped or staged",
                          entry->written);
    }

    if (cut(span, ':', &tail)) {
        if (!number_pair(tail, 'x', &entry->subdevices, &entry->units) || entry->subdevices == 0 ||
            entry->units == 0)
            return refuse(
                why, why_bytes,
                "'%s': sub-devices are written :NxC, for N sub-devices with C compute units each, "
                "as in cpu:2x1",
                entry->written);
        if (entry->subdevices > COX_DEVICES_MAX)
            return refuse(why, why_bytes, "'%s': at most %d sub-devices", entry->written,
                          COX_DEVICES_MAX);
    }

    if (memchr(span->at, '=', span->length) || memchr(span->at, ':', span->length))
        return refuse(why, why_bytes,
                      "'%s': an entry has at most one ':NxC', then at most one '=mode'",
                      entry->written);
    return COX_OK;
}

/* Parse what selects the devices: all, a type, an index or a part of a name. */
static cox_status parse_kind(struct span span, struct cox__select_entry *entry, char *why,
                             size_t why_bytes)
{
    static const struct {
        const char *word;
        enum cox_device_type type;
    } types[] = {
        {"cpu", COX_DEVICE_CPU}, {"gpu", COX_DEVICE_GPU}, {"accelerator", COX_DEVICE_ACCELERATOR}};

    if (span.length == 0 || equals(span, "all")) {
        entry->kind = COX__SELECT_ALL;
        return COX_OK;
    }

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (equals(span, types[i].word)) {
            entry->kind = COX__SELECT_TYPE;
            entry->type = types[i].type;
            return COX_OK;
        }
    }

    if (looks_like_index(span)) {
        entry->kind = COX__SELECT_INDEX;
        if (!number_pair(span, '.', &entry->platform, &entry->device))
            return refuse(why, why_bytes, "'%s': platform and device numbers are at most %d",
                          entry->written, NUMBER_MAX);
        return COX_OK;
    }

    if (span.length >= sizeof entry->text)
        return refuse(why, why_bytes, "'%s': the name is too long; at most %zu characters",
                      entry->written, sizeof entry->text - 1);

    entry->kind = COX__SELECT_TEXT;
    for (size_t i = 0; i < span.length; i++)
        entry->text[i] = lower(span.at[i]);
    return COX_OK;
}

static cox_status parse_entry(struct span span, struct cox__select_entry *entry, char *why,
                              size_t why_bytes)
{
    memset(entry, 0, sizeof *entry);
    span = trim(span);

    if (span.length == 0)
        return refuse(why, why_bytes, "the device selection has an empty entry (a comma too many)");
    if (span.length >= sizeof entry->written)
        return refuse(why, why_bytes,
                      "the entry '%.40s...' of the device selection is longer than %zu characters",
                      span.at, sizeof entry->written - 1);
    memcpy(entry->written, span.at, span.length);

    const cox_status status = parse_suffixes(&span, entry, why, why_bytes);
    if (status)
        return status;
    return parse_kind(span, entry, why, why_bytes);
}

cox_status cox__cl_select_parse(const char *text, struct cox__selection *out, char *why,
                                size_t why_bytes)
{
    if (why && why_bytes > 0)
        why[0] = '\0';
    if (!out)
        return refuse(why, why_bytes, "cox__cl_select_parse: out is NULL");

    memset(out, 0, sizeof *out);
    if (!text || text[0] == '\0') {
        out->count = 1; /* the zeroed entry is ALL */
        memcpy(out->entries[0].written, "all", sizeof "all");
        return COX_OK;
    }

    for (const char *at = text;; at++) {
        struct span span = {at, strcspn(at, ",")};
        if (out->count == COX__SELECT_MAX) {
            out->count = 0;
            return refuse(why, why_bytes, "the device selection has more than %d entries",
                          COX__SELECT_MAX);
        }

        cox_status status = parse_entry(span, &out->entries[out->count], why, why_bytes);
        if (status != COX_OK) {
            out->count = 0;
            return status;
        }

        out->count++;
        at += span.length;
        if (*at == '\0')
            return COX_OK;
    }
}

/* Whether `text` contains `part`, which is in lower case. */
static bool contains(const char *text, const char *part)
{
    for (;; text++) {
        size_t i = 0;
        while (part[i] && lower(text[i]) == part[i])
            i++;

        if (!part[i])
            return true;
        if (!*text)
            return false;
    }
}

bool cox__cl_select_match(const struct cox__select_entry *entry, const struct cox_device_info *info)
{
    if (!entry || !info)
        return false;

    switch (entry->kind) {
    case COX__SELECT_ALL:
        return true;
    case COX__SELECT_TYPE:
        return info->type == entry->type;
    case COX__SELECT_INDEX:
        return info->platform_index == entry->platform && info->device_index == entry->device;
    case COX__SELECT_TEXT:
        return contains(info->name, entry->text) || contains(info->platform, entry->text);
    }
    return false;
}
