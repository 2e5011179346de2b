/* Portable float maps: "PF" (colour) and "Pf" (grey), rows bottom-up. The scale's sign tells the
 * byte order. Its magnitude is a unit that no two programs agree on, and is not applied.
 * SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pfm {
    size_t offset; /* of the first pixel */
    uint32_t channels;
    bool little_endian;
};

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool pfm_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 3 && data[0] == 'P' && (data[1] == 'F' || data[1] == 'f') && is_space(data[2]);
}

/* Read a word of the header, skipping comments; "" if no word is left. `*at` moves behind it. */
static void next_word(const struct picture_input *input, size_t *at, char word[32])
{
    size_t i = *at, length = 0;
    while (i < input->bytes && (is_space(input->data[i]) || input->data[i] == '#')) {
        if (input->data[i] == '#')
            while (i < input->bytes && input->data[i] != '\n')
                i++;
        else
            i++;
    }

    while (i < input->bytes && !is_space(input->data[i]) && length < 31)
        word[length++] = (char)input->data[i++];
    word[length] = 0;
    *at = i;
}

static bool word_to_size(const char *word, int64_t *value)
{
    size_t digits = strspn(word, "0123456789");
    if (!digits || word[digits] || digits > 10)
        return false;
    *value = strtoll(word, NULL, 10);
    return true;
}

static bool pfm_open(struct picture_input *input, struct error *error)
{
    char word[32], *end;
    int64_t width = 0, height = 0;
    size_t at = 2;

    next_word(input, &at, word);
    bool good = word_to_size(word, &width);
    next_word(input, &at, word);
    good = word_to_size(word, &height) && good;
    next_word(input, &at, word);
    double scale = strtod(word, &end);
    if (!good || !*word || *end || !isfinite(scale) || scale == 0 || at >= input->bytes)
        return error_set(error, "a damaged PFM header");
    if (input->data[at] == '\r' && at + 1 < input->bytes && input->data[at + 1] == '\n')
        at++;
    at++;
    if (!picture_check_size(width, height, error))
        return false;

    uint32_t channels = input->data[1] == 'F' ? 3 : 1;
    uint64_t needed = (uint64_t)width * (uint64_t)height * channels * 4;
    if (input->bytes - at < needed)
        return error_set(error, "truncated: it has %llu of %llu bytes of pixels",
                         (unsigned long long)(input->bytes - at), (unsigned long long)needed);
    if (input->bytes - at > needed)
        return error_set(error, "damaged: %llu bytes follow its pixels",
                         (unsigned long long)(input->bytes - at - needed));

    struct pfm *pfm = calloc(1, sizeof *pfm);
    if (!pfm)
        return error_set(error, "out of memory");
    pfm->offset = at;
    pfm->channels = channels;
    pfm->little_endian = scale < 0;

    input->state = pfm;
    input->format.width = (uint32_t)width;
    input->format.height = (uint32_t)height;
    input->format.pixel = COX_PIXEL_RGBA_FLOAT;
    snprintf(input->format.text, sizeof input->format.text, "PFM, %s, %s-endian",
             channels == 3 ? "colour" : "grey", scale < 0 ? "little" : "big");
    return true;
}

static float load_float(const uint8_t *p, bool little_endian)
{
    const int first_shift = little_endian ? 0 : 24, step = little_endian ? 8 : -8;
    uint32_t bits = 0;
    float value;

    for (int i = 0; i < 4; i++)
        bits |= (uint32_t)p[i] << (first_shift + i * step);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool pfm_read(struct picture_input *input, uint8_t *pixels, size_t pitch_bytes,
                     struct error *error)
{
    (void)error;
    const struct pfm *pfm = input->state;
    const uint32_t width = input->format.width, height = input->format.height;
    const uint32_t apart = pfm->channels == 3 ? 4 : 0; /* a grey one is read three times */
    const uint8_t *from = input->data + pfm->offset;

    for (uint32_t y = 0; y < height; y++) {
        float *row = (float *)(void *)(pixels + (size_t)(height - 1 - y) * pitch_bytes);
        for (uint32_t x = 0; x < width; x++, from += 4 * (size_t)pfm->channels) {
            for (uint32_t c = 0; c < 3; c++)
                row[x * 4 + c] = load_float(from + apart * c, pfm->little_endian);
            row[x * 4 + 3] = 1.0f;
        }
    }
    return true;
}

static void pfm_close(struct picture_input *input)
{
    free(input->state);
}

const struct picture_kind picture_kind_pfm = {pfm_matches, pfm_open, pfm_read, pfm_close, NULL};
