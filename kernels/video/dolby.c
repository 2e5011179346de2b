/* Dolby Vision's metadata: a header, the reshaping of each component, the colours of the result,
 * and blocks about the scene.
 *
 * Bits are read from the first byte's high bit on. A reader that reaches the end gives zeros and
 * notes it, so that each part is checked once.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/curve.h"
#include "reshape.h"
#include "scene.h"
#include <coxswain/dolby.h>
#include <math.h>
#include <string.h>

enum { RPU_BYTES_MAX = 4096, LOG2_DENOM_MAX = 23 };

/* --- Bits --- */

struct bits {
    const uint8_t *bytes;
    size_t count, position; /* in bits */
    bool failed;            /* the end was reached, or a code was too long */
};

static uint32_t read_bits(struct bits *bits, unsigned count)
{
    uint32_t value = 0;
    if (bits->count - bits->position < count) {
        bits->position = bits->count;
        bits->failed = true;
        return 0;
    }

    for (unsigned i = 0; i < count; i++, bits->position++)
        value = value << 1 | (bits->bytes[bits->position / 8] >> (7 - bits->position % 8) & 1);
    return value;
}

static bool read_flag(struct bits *bits)
{
    return read_bits(bits, 1) != 0;
}

/* Exp-Golomb codes, ue(v) and se(v) of ITU-T H.265. */
static uint32_t read_unsigned(struct bits *bits)
{
    unsigned zeros = 0;
    while (!bits->failed && !read_flag(bits))
        zeros++;

    if (zeros > 31) {
        bits->failed = true;
        return 0;
    }
    return (1u << zeros) - 1 + read_bits(bits, zeros);
}

static int32_t read_signed(struct bits *bits)
{
    const uint32_t code = read_unsigned(bits);
    const int32_t half = (int32_t)(code / 2 + code % 2);
    return code % 2 ? half : -half;
}

/* --- Header and curves --- */

/* What the later parts need of the header. */
struct header {
    bool is_float; /* coefficients are floats of 32 bits */
    unsigned log2_denom, base_bits, enhancement_bits, result_bits;
    bool has_residual, has_short_colours;
};

static double read_coefficient(struct bits *bits, const struct header *header, bool is_signed)
{
    if (header->is_float) {
        const uint32_t word = read_bits(bits, 32);
        float value;
        memcpy(&value, &word, sizeof value);
        return (double)value;
    }

    double whole = 0;
    if (is_signed)
        whole = read_signed(bits);
    else
        whole = read_unsigned(bits);
    return whole + ldexp(read_bits(bits, header->log2_denom), -(int)header->log2_denom);
}

/* The profile that a header and the range of the base layer imply. */
static uint32_t profile_of(uint32_t rpu_profile, bool full_range, bool scaled_enhancement,
                           const struct header *header)
{
    if (rpu_profile == 0)
        return full_range ? 5 : 0;
    if (rpu_profile != 1)
        return 0;
    if (!header->has_residual || !scaled_enhancement)
        return 8;
    return header->result_bits == 12 ? 7 : 4;
}

static bool read_header(struct bits *bits, struct header *header, struct cox_dolby_frame *out)
{
    enum { TYPE = 2, NO_DEPTHS = 0x700, SHORT_COLOURS = 1 };
    bool full_range = false, scaled_enhancement = false;

    if (read_bits(bits, 6) != TYPE)
        return false;
    const uint32_t format = read_bits(bits, 11);
    const uint32_t profile = read_bits(bits, 4);
    (void)read_bits(bits, 4); /* level */
    if (!read_flag(bits))     /* without the description of the sequence */
        return false;

    (void)read_flag(bits); /* explicit filter of chroma */
    const uint32_t type = read_bits(bits, 2);
    header->is_float = type == 1;
    if (type == 0)
        header->log2_denom = read_unsigned(bits);
    (void)read_bits(bits, 2); /* normalised */
    full_range = read_flag(bits);
    if (type > 1 || header->log2_denom > LOG2_DENOM_MAX || format & NO_DEPTHS)
        return false;

    const uint32_t base = read_unsigned(bits), enhancement = read_unsigned(bits) & 0xff;
    const uint32_t result = read_unsigned(bits);
    if (base > 8 || enhancement > 8 || result > 8)
        return false;
    header->base_bits = base + 8;
    header->enhancement_bits = enhancement + 8;
    header->result_bits = result + 8;

    (void)read_flag(bits); /* filter of the base layer */
    header->has_short_colours = read_bits(bits, 3) == SHORT_COLOURS;
    scaled_enhancement = read_flag(bits);
    header->has_residual = !read_flag(bits);

    out->profile = profile_of(profile, full_range, scaled_enhancement, header);
    out->has_residual = header->has_residual;
    return !bits->failed;
}

/* Pivots are sent as differences. */
static bool read_pivots(struct bits *bits, const struct header *header,
                        struct cox_reshape_curve *curve)
{
    const uint32_t pieces = read_unsigned(bits) + 1;
    const double unit = ldexp(1, -(int)header->base_bits);
    uint32_t pivot = 0;
    if (pieces > COX_RESHAPE_PIECES_MAX)
        return false;

    *curve = (struct cox_reshape_curve){.piece_count = pieces};
    for (uint32_t i = 0; i <= pieces; i++) {
        pivot += read_bits(bits, header->base_bits);
        if (i == 0)
            curve->least = pivot * unit;
        else if (i < pieces)
            curve->piece[i].from = pivot * unit;
    }
    curve->most = pivot * unit;
    return !bits->failed;
}

static bool read_polynomial(struct bits *bits, const struct header *header, double *c)
{
    const uint32_t order = read_unsigned(bits) + 1;
    if (order > 2 || (order == 1 && read_flag(bits))) /* linear interpolation has no description */
        return false;

    for (uint32_t i = 0; i <= order; i++)
        c[i] = read_coefficient(bits, header, true);
    return true;
}

static bool read_mmr(struct bits *bits, const struct header *header, double *c)
{
    const uint32_t order = read_bits(bits, 2) + 1;
    if (order > 3)
        return false;

    c[0] = read_coefficient(bits, header, true);
    for (uint32_t j = 0; j < order; j++)
        for (uint32_t i = 0; i < 7; i++)
            c[1 + 3 * i + j] = read_coefficient(bits, header, true);
    return true;
}

static bool read_curve(struct bits *bits, const struct header *header,
                       struct cox_reshape_curve *curve)
{
    for (uint32_t i = 0; i < curve->piece_count; i++) {
        struct cox_reshape_piece *piece = &curve->piece[i];
        const uint32_t kind = read_unsigned(bits);
        bool good = false;

        if (kind == COX_RESHAPE_POLYNOMIAL) {
            good = read_polynomial(bits, header, piece->c);
        } else if (kind == COX_RESHAPE_MMR) {
            piece->kind = COX_RESHAPE_MMR;
            good = read_mmr(bits, header, piece->c);
        }
        if (!good || bits->failed)
            return false;
    }
    return true;
}

/* The quantisation of the residual: it does nothing if the enhancement layer is minimal. */
static bool read_residual(struct bits *bits, const struct header *header)
{
    bool is_full = false;

    for (int component = 0; component < 3; component++) {
        const uint32_t offset = read_bits(bits, header->enhancement_bits);
        const double most = read_coefficient(bits, header, false);
        const double slope = read_coefficient(bits, header, false);
        const double threshold = read_coefficient(bits, header, false);
        is_full |= offset > 0 || most < 1 || most > 1 || slope > 0 || threshold > 0;
    }
    return is_full;
}

static bool read_mapping(struct bits *bits, const struct header *header,
                         struct cox_dolby_frame *out)
{
    enum { LINEAR_DEAD_ZONE = 0, MAPPING_MAX = 15 };

    out->mapping = read_unsigned(bits);
    const uint32_t colour_space = read_unsigned(bits), chroma_format = read_unsigned(bits);
    if (out->mapping > MAPPING_MAX || colour_space || chroma_format)
        return false;

    for (int i = 0; i < 3; i++)
        if (!read_pivots(bits, header, &out->reshape.curve[i]))
            return false;
    if (header->has_residual) {
        if (read_bits(bits, 3) != LINEAR_DEAD_ZONE)
            return false;
        (void)read_bits(bits, header->base_bits); /* its two pivots */
        (void)read_bits(bits, header->base_bits);
    }
    const uint32_t across = read_unsigned(bits), down = read_unsigned(bits);
    if (across || down) /* more than one partition */
        return false;

    for (int i = 0; i < 3; i++)
        if (!read_curve(bits, header, &out->reshape.curve[i]))
            return false;
    out->is_full_enhancement = header->has_residual && read_residual(bits, header);
    return !bits->failed;
}

/* --- Colours and the scene --- */

/* The light of a code of 12 bits, by ST 2084. */
static float nits_of(uint32_t code)
{
    return (float)(COX__PQ_NITS * cox__curve_pq_light(code / 4095.0));
}

/* Cone responses (Hunt, Pointer, Estevez; white of D65 is 1, 1, 1) to R, G, B of BT.2020. */
static const double from_cones[9] = {3.06440818,  -2.16596505, 0.10155687,  -0.65613375, 1.78557256,
                                     -0.12943881, 0.01736070,  -0.04724461, 1.02988392};

/* The colours of an ordinary picture: Y'CbCr of BT.2020, limited range. */
static void set_usual_colours(struct cox_video_reshape *reshape)
{
    static const double usual[9] = {1, 0, 1.4746, 1, -0.16455313, -0.57135313, 1, 1.8814, 0};
    const double luma = 256.0 / 219, chroma = 256.0 / 224;

    for (int i = 0; i < 9; i++) {
        reshape->signal_matrix[i] = usual[i] * (i % 3 ? chroma : luma);
        reshape->light_matrix[i] = i % 4 == 0;
    }
    reshape->signal_offset[0] = 16.0 / 256;
    reshape->signal_offset[1] = reshape->signal_offset[2] = 0.5;
}

static double read_fixed(struct bits *bits, int fraction)
{
    const uint32_t code = read_bits(bits, 16);
    return ldexp((double)code - (code >= 0x8000 ? 65536.0 : 0.0), -fraction);
}

/* Matrices. The signal's largest code counts as 1. */
static bool read_matrices(struct bits *bits, const struct header *header,
                          struct cox_dolby_frame *out)
{
    enum { PQ = 65535 };
    struct cox_video_reshape *reshape = &out->reshape;
    const double codes = ldexp(1, (int)header->result_bits), unit = codes / (codes - 1);
    const int offset_fraction = out->profile == 4 ? 30 : 28;
    double cones[9];

    for (int i = 0; i < 9; i++)
        reshape->signal_matrix[i] = read_fixed(bits, 13) * unit;
    for (int i = 0; i < 3; i++)
        reshape->signal_offset[i] = ldexp(read_bits(bits, 32), -offset_fraction);
    for (int i = 0; i < 9; i++)
        cones[i] = read_fixed(bits, 14);

    cox__reshape_product(from_cones, cones, reshape->light_matrix);

    const uint32_t eotf = read_bits(bits, 16);
    (void)read_bits(bits, 32); /* its parameters */
    (void)read_bits(bits, 32);
    (void)read_bits(bits, 5 + 2 + 2 + 2); /* depth, colour space, chroma, range */
    (void)read_bits(bits, 12);            /* black of the display */
    out->source_peak_nits = nits_of(read_bits(bits, 12));
    (void)read_bits(bits, 10); /* diagonal of the display */
    out->has_colours = true;
    return eotf == PQ;
}

/* Blocks of one byte more than `length`. */
static void read_blocks(struct bits *bits, struct cox_dolby_frame *out)
{
    enum { SCENE = 1, SCENE_BYTES = 5 };
    const uint32_t blocks = read_unsigned(bits);

    bits->position += (8 - bits->position % 8) % 8;
    for (uint32_t i = 0; i < blocks && !bits->failed; i++) {
        const uint32_t length = read_unsigned(bits), level = read_bits(bits, 8);
        if (length > (bits->count - bits->position) / 8)
            bits->failed = true;
        if (bits->failed)
            return;

        const size_t end = bits->position + (size_t)length * 8;
        if (level == SCENE && length >= SCENE_BYTES) {
            (void)read_bits(bits, 12); /* the darkest light */
            out->scene_peak_nits = nits_of(read_bits(bits, 12));
            out->scene_average_nits = nits_of(read_bits(bits, 12));
        }
        bits->position = end;
    }
}

static bool read_colours(struct bits *bits, const struct header *header,
                         struct cox_dolby_frame *out)
{
    enum { COLOURS_MAX = 15 };

    const uint32_t affected = read_unsigned(bits), current = read_unsigned(bits);
    (void)read_unsigned(bits); /* whether a scene begins */
    if (affected > COLOURS_MAX || current > COLOURS_MAX ||
        (!header->has_short_colours && !read_matrices(bits, header, out)))
        return false;

    read_blocks(bits, out);
    return !bits->failed;
}

/* --- The whole --- */

/* CRC-32 of MPEG-2. */
static uint32_t checksum_of(const uint8_t *bytes, size_t count)
{
    uint32_t sum = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        sum ^= (uint32_t)bytes[i] << 24;
        for (int bit = 0; bit < 8; bit++)
            sum = sum << 1 ^ (sum >> 31 ? 0x04c11db7 : 0);
    }
    return sum;
}

/* Take the checksum and the last byte off. False if they are wrong. */
static bool take_end(const uint8_t *bytes, size_t *count)
{
    enum { LAST = 0x80, END_BYTES = 5 };

    while (*count && !bytes[*count - 1])
        --*count;
    if (*count <= END_BYTES || bytes[*count - 1] != LAST)
        return false;

    const uint8_t *sum = bytes + *count - END_BYTES;
    const uint32_t sent = (uint32_t)sum[0] << 24 | (uint32_t)sum[1] << 16 | (uint32_t)sum[2] << 8 |
                          sum[3];
    *count -= END_BYTES;
    return sent == 0 || sent == checksum_of(bytes, *count);
}

/* Read the metadata after byte 25. */
static cox_status read_metadata(const uint8_t *bytes, size_t count,
                                const struct cox_dolby_frame *before, struct cox_dolby_frame *out)
{
    struct cox_dolby_frame frame = {0};
    struct header header = {0};
    set_usual_colours(&frame.reshape);
    if (before)
        frame = *before;
    frame.scene_peak_nits = frame.scene_average_nits = 0;
    if (!take_end(bytes, &count))
        return COX_E_INVALID;

    struct bits bits = {.bytes = bytes, .count = count * 8};
    if (!read_header(&bits, &header, &frame))
        return COX_E_INVALID;

    const bool has_colours = read_flag(&bits);
    if (read_flag(&bits)) { /* the curves are repeated */
        const uint32_t mapping = read_unsigned(&bits);
        if (!before || mapping != before->mapping || !before->reshape.curve[0].piece_count)
            return COX_E_NOT_FOUND;
    } else if (!read_mapping(&bits, &header, &frame)) {
        return COX_E_INVALID;
    }
    if (has_colours && !read_colours(&bits, &header, &frame))
        return COX_E_INVALID;

    uint8_t table[COX_VIDEO_RESHAPE_BYTES];
    if (bits.failed || cox_video_reshape_table(&frame.reshape, table) != COX_OK)
        return COX_E_INVALID;
    *out = frame;
    return COX_OK;
}

cox_status cox_dolby_read_hevc(const uint8_t *bytes, size_t count,
                               const struct cox_dolby_frame *before, struct cox_dolby_frame *out)
{
    enum { PREFIX = 25 };
    uint8_t plain[RPU_BYTES_MAX];
    size_t length = 0, zeros = 0;
    if (!bytes || !out || count < 1 || count > sizeof plain || bytes[0] != PREFIX)
        return COX_E_INVALID;

    /* Without the emulation prevention bytes: a 3 after two zeros. */
    for (size_t i = 1; i < count; i++) {
        const bool prevents = zeros >= 2 && bytes[i] == 3;
        zeros = bytes[i] ? 0 : zeros + 1;
        if (!prevents)
            plain[length++] = bytes[i];
    }
    return read_metadata(plain, length, before, out);
}

/* A number of variable length in steps of 8 bits, as ETSI TS 102 366 (annex H) has it. */
static uint32_t read_variable(struct bits *bits)
{
    uint32_t value = 0;
    for (int i = 0; i < 3; i++) {
        value += read_bits(bits, 8);
        if (!read_flag(bits))
            return value;
        value = (value + 1) << 8;
    }
    bits->failed = true;
    return 0;
}

cox_status cox_dolby_read_av1(const uint8_t *bytes, size_t count,
                              const struct cox_dolby_frame *before, struct cox_dolby_frame *out)
{
    /* The United States, Dolby, and its code for this metadata. Then 27 bits of the container. */
    static const uint8_t start[] = {0xb5, 0x00, 0x3b, 0x00, 0x00, 0x08, 0x00};
    enum { CONTAINER = 0x1be6841 };
    uint8_t plain[RPU_BYTES_MAX];
    if (!bytes || !out || count < sizeof start || memcmp(bytes, start, sizeof start) != 0)
        return COX_E_INVALID;

    struct bits bits = {.bytes = bytes, .count = count * 8, .position = 8 * sizeof start};
    if (read_bits(&bits, 27) != CONTAINER)
        return COX_E_INVALID;

    /* The message does not begin at a whole byte. */
    const uint32_t length = read_variable(&bits);
    if (bits.failed || length > sizeof plain)
        return COX_E_INVALID;
    for (uint32_t i = 0; i < length; i++)
        plain[i] = (uint8_t)read_bits(&bits, 8);
    if (bits.failed)
        return COX_E_INVALID;
    return read_metadata(plain, length, before, out);
}
