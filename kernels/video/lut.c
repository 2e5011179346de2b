/* The table of a frame's look-up table, for lut.clh.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/video.h>
#include <math.h>

enum { HEAD_WORDS = 8, POINT_WORDS = 4 };

static size_t point_count(uint32_t points)
{
    return (size_t)points * points * points;
}

size_t cox_video_lut_bytes(uint32_t points)
{
    if (points < 2 || points > COX_LUT_POINTS_MAX)
        return 0;
    return (HEAD_WORDS + POINT_WORDS * point_count(points)) * sizeof(float);
}

/* Small enough that no sum overflows. False for a NaN. */
static bool is_small(float value)
{
    return fabsf(value) < 0x1p16f;
}

/* Without values that become denormal numbers in a sum: devices treat those differently. */
static float without_dust(float value)
{
    if (fabsf(value) < 0x1p-40f)
        return 0;
    return value;
}

/* The ends of the domain of component `c`. False if they are out of range. */
static bool domain_of(const struct cox_video_lut *lut, int c, double *least, double *most)
{
    bool given = false;
    for (int i = 0; i < 3; i++)
        given |= lut->domain_least[i] != 0.0f || lut->domain_most[i] != 0.0f;

    *least = 0;
    *most = 1;
    if (given) {
        *least = (double)lut->domain_least[c];
        *most = (double)lut->domain_most[c];
    }
    return is_small((float)*least) && is_small((float)*most) && *most - *least >= 0x1p-10;
}

cox_status cox_video_lut_table(const struct cox_video_lut *lut, void *table)
{
    float *words = table;
    if (!lut || !table || !lut->colors || !cox_video_lut_bytes(lut->points))
        return COX_E_INVALID;

    for (int c = 0; c < 3; c++) {
        double least, most;
        if (!domain_of(lut, c, &least, &most))
            return COX_E_INVALID;
        const double factor = (lut->points - 1) / (most - least);
        words[c] = (float)factor;
        words[4 + c] = (float)(-least * factor);
    }
    words[3] = words[7] = 0;

    const size_t count = point_count(lut->points);
    for (size_t i = 0; i < count; i++) {
        float *to = words + HEAD_WORDS + i * POINT_WORDS;
        for (int c = 0; c < 3; c++) {
            if (!is_small(lut->colors[3 * i + (size_t)c]))
                return COX_E_INVALID;
            to[c] = without_dust(lut->colors[3 * i + (size_t)c]);
        }
        to[3] = 0;
    }
    return COX_OK;
}
