/* Pictures that a test builds, changes and decodes; for the tests of picture input.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_DECODING_H
#define COX_TESTS_DECODING_H

#include "media/half.h"
#include "media/picture.h"
#include "unit/programs/bytes.h"

/* The file that a test builds. */
static struct bytes made;

static inline void make(const void *data, size_t bytes)
{
    made.count = 0;
    put(&made, data, bytes);
}

static inline void put_u8(struct bytes *b, uint8_t value)
{
    put(b, &value, 1);
}

static inline void put_u32(struct bytes *b, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        put_u8(b, (uint8_t)(value >> 8 * i));
}

static inline void put_u64(struct bytes *b, uint64_t value)
{
    put_u32(b, (uint32_t)value);
    put_u32(b, (uint32_t)(value >> 32));
}

static inline void put_float(struct bytes *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, 4);
    put_u32(b, bits);
}

/* Overwrite the bytes at this place. */
static inline void patch_u32(uint8_t *at, uint32_t value)
{
    put_u32(&(struct bytes){at, 0, 4}, value);
}

/* --- A decoded picture, in memory with a canary behind every row -------------------------------------------------- */

enum { CANARY_BYTES = 24 };

/* The picture that was decoded last. */
static struct {
    struct picture_format format;
    uint8_t *pixels;
    size_t pitch;
    struct error error;
    bool opened, read;
} decoded;

static inline void decode(const void *data, size_t bytes, enum picture_alpha alpha)
{
    struct picture_input *input = NULL;
    free(decoded.pixels);
    memset(&decoded, 0, sizeof decoded);
    decoded.opened = picture_input_open_memory(&input, data, bytes, alpha, NULL, &decoded.error);
    cr_assert_eq(decoded.opened, input != NULL);
    if (!decoded.opened)
        return;
    const struct picture_format *format = picture_input_format(input);
    decoded.format = *format;
    cr_assert(format->width > 0 && format->height > 0);
    if ((uint64_t)format->width * format->height > 4000000) { /* a plausible size that is too large for this test */
        picture_input_close(&input);
        return;
    }
    const size_t row = (size_t)format->width * (format->pixel == COX_PIXEL_RGBA_HALF ? 8 : 16);
    decoded.pitch = row + CANARY_BYTES;
    decoded.pixels = malloc(decoded.pitch * format->height);
    cr_assert(decoded.pixels != NULL);
    memset(decoded.pixels, 0xa5, decoded.pitch * format->height);
    decoded.read = picture_input_read(input, decoded.pixels, decoded.pitch, &decoded.error) == PICTURE_READ_FRAME;
    if (decoded.read)
        cr_assert_eq(picture_input_read(input, decoded.pixels, decoded.pitch, &decoded.error), PICTURE_READ_END);
    for (uint32_t y = 0; y < format->height; y++)
        for (size_t i = row; i < decoded.pitch; i++)
            cr_assert_eq(decoded.pixels[y * decoded.pitch + i], 0xa5, "row %u was written past its end", y);
    picture_input_close(&input);
    cr_assert(input == NULL);
}

/* Decode the file that was built. It must be a picture. */
static inline void decode_made(void)
{
    decode(made.data, made.count, PICTURE_ALPHA_BLACK);
    cr_assert(decoded.read, "%s", decoded.error.text);
}

static inline void refuse(const char *words, const char *what)
{
    decode(made.data, made.count, PICTURE_ALPHA_BLACK);
    cr_expect_not(decoded.read, "%s was read", what);
    cr_expect(strstr(decoded.error.text, words) != NULL, "%s: '%s' does not say '%s'", what, decoded.error.text, words);
}

static inline float at(uint32_t x, uint32_t y, int c)
{
    const void *row = decoded.pixels + y * decoded.pitch;
    if (decoded.format.pixel == COX_PIXEL_RGBA_HALF)
        return half_to_float(((const uint16_t *)row)[4 * x + c]);
    return ((const float *)row)[4 * x + c];
}

static inline void expect_pixel(uint32_t x, uint32_t y, float r, float g, float b, float a)
{
    const float expected[4] = {r, g, b, a};
    for (int c = 0; c < 4; c++)
        cr_expect_eq(at(x, y, c), expected[c], "%u, %u, channel %d: %g", x, y, c, (double)at(x, y, c));
}

/* Decode a copy that has exactly this length, so that the address sanitizer finds reads past its end. `change`, if
 * given, modifies the copy first. */
static inline void decode_copy(size_t bytes, size_t head, void (*change)(uint8_t *data, size_t bytes, size_t head),
                               enum picture_alpha alpha)
{
    uint8_t *copy = malloc(bytes);
    memcpy(copy, made.data, bytes);
    if (change)
        change(copy, bytes, head);
    decode(copy, bytes, alpha);
    free(copy);
}

/* --- Mutations ---------------------------------------------------------------------------------------------------- */

static uint64_t random_state = 0x9e3779b97f4a7c15;

static inline uint32_t random_below(uint32_t bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 32) * bound >> 32);
}

/* Change some bytes, more often in the header at the front, sometimes to extreme values. */
static inline void mutate(uint8_t *data, size_t bytes, size_t head)
{
    static const uint8_t extreme[] = {0, 1, 0x7f, 0x80, 0xff};
    uint32_t changes = 1 + random_below(4);
    while (changes--) {
        size_t area = random_below(4) && head < bytes ? head : bytes;
        uint8_t *byte = data + random_below((uint32_t)area);
        *byte = random_below(2) ? extreme[random_below(5)] : (uint8_t)random_below(256);
    }
}

/* Decoding a changed file must give an error with a message, or pixels inside their rows (decode checks this). */
static inline void mutate_and_decode(size_t head, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        size_t bytes = random_below(4) ? made.count : 1 + random_below((uint32_t)made.count);
        decode_copy(bytes, head, mutate, random_below(2) ? PICTURE_ALPHA_BLACK : PICTURE_ALPHA_STRAIGHT);
        if (!decoded.opened)
            cr_assert(decoded.error.text[0]);
    }
}

#endif
