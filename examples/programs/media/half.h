/* IEEE-754 half precision (binary16) in integer arithmetic, for reading pictures.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HALF_H
#define HALF_H

#include <stdint.h>
#include <string.h>

enum { HALF_ONE = 0x3c00 };

static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = (half >> 10) & 31;
    uint32_t fraction = half & 0x3ff;
    uint32_t bits;

    if (exponent == 31) {
        bits = sign | 0x7f800000 | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        float value = (float)fraction * 0x1p-24f; /* exact */
        memcpy(&bits, &value, sizeof bits);
        bits |= sign;
    }

    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Rounds to nearest even. Finite values beyond the range become the largest finite half: a
 * conversion must not create infinities. */
static inline uint16_t half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000)
        return sign | 0x7e00;
    if (magnitude == 0x7f800000)
        return sign | 0x7c00;
    if (magnitude >= 0x477fe000) /* 65504 */
        return sign | 0x7bff;
    if (magnitude < 0x33000000) /* below half of the least subnormal */
        return sign;

    uint32_t kept, rest, tie;
    if (magnitude < 0x38800000) { /* subnormal */
        uint32_t shift = 126 - (magnitude >> 23);
        uint32_t fraction = (magnitude & 0x7fffff) | 0x800000;
        kept = fraction >> shift;
        rest = fraction & ((1u << shift) - 1);
        tie = 1u << (shift - 1);
    } else {
        uint32_t rebased = magnitude - (112u << 23);
        kept = rebased >> 13;
        rest = rebased & 0x1fff;
        tie = 0x1000;
    }

    if (rest > tie || (rest == tie && (kept & 1)))
        kept++;
    return sign | (uint16_t)kept;
}

#endif
