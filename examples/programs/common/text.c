/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdio.h>
#include <string.h>

uint32_t text_character(const unsigned char *text, unsigned *bytes)
{
    static const struct {
        unsigned char mask, head;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};

    for (unsigned form = 0; form < 4; form++) {
        if ((text[0] & forms[form].mask) != forms[form].head)
            continue;
        uint32_t character = text[0] & (unsigned char)~forms[form].mask;
        for (unsigned i = 1; i <= form; i++) {
            if ((text[i] & 0xC0) != 0x80) /* the terminator too: nothing is read past it */
                goto none;
            character = character << 6 | (text[i] & 0x3FU);
        }
        if (character < forms[form].least || character > 0x10FFFF ||
            (character >= 0xD800 && character < 0xE000))
            goto none;
        *bytes = form + 1;
        return character;
    }

none:
    *bytes = 1;

    return 0xFFFD;
}

bool text_presentable(uint32_t character)
{
    if (character < 0x20 || (character >= 0x7F && character < 0xA0))
        return false;
    if (character == 0x061C || (character >= 0x200B && character <= 0x200F) ||
        (character >= 0x2028 && character <= 0x202E) ||
        (character >= 0x2060 && character <= 0x206F))
        return false;
    return character != 0xFEFF && character < 0xE0000 && (character & 0xFFFE) != 0xFFFE;
}

size_t text_escape(const unsigned char *text, const char *allowed, unsigned *bytes,
                   char out[TEXT_ESCAPED_MAX + 1])
{
    enum { ESCAPED = 4 };
    const uint32_t character = text_character(text, bytes);
    const bool invalid = character == 0xFFFD && *bytes == 1;
    if ((text_presentable(character) && !invalid) || (*text && strchr(allowed, *text))) {
        memcpy(out, text, *bytes);
        return *bytes;
    }

    for (unsigned i = 0; i < *bytes; i++)
        snprintf(out + (size_t)ESCAPED * i, ESCAPED + 1, "\\x%02x", (unsigned)text[i]);
    return (size_t)ESCAPED * *bytes;
}

const char *text_plain(const char *text, char *out, size_t out_bytes)
{
    const unsigned char *from = (const unsigned char *)(text ? text : "");
    char escaped[TEXT_ESCAPED_MAX + 1];
    size_t at = 0;

    for (unsigned bytes; *from; from += bytes) {
        const size_t needed = text_escape(from, "", &bytes, escaped);
        if (at + needed >= out_bytes)
            break;
        memcpy(out + at, escaped, needed);
        at += needed;
    }

    if (out_bytes)
        out[at] = '\0';
    return out;
}
