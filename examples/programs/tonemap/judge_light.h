/* Frames as a display shows them: rows of samples become I, T and P (ITU-R BT.2124).
 *
 * Light is that of BT.1886 with white at 100 cd/m2 and black at 0, the reference display of BT.2124
 * for SDR; frames coded as sRGB (stills) have its curve. PQ is absolute. Chroma of 4:2:0 and 4:2:2 is repeated.
 * The tables are rounded to float, and all other steps are exact operations of IEEE 754 in a fixed
 * order, so that every machine gets the same numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_JUDGE_LIGHT_H
#define TONEMAP_JUDGE_LIGHT_H

#include <coxswain/video.h>
#include <stdbool.h>
#include <stdint.h>

/* How frames are coded. */
struct judge_coding {
    struct cox_video_format pixel; /* any layout but V210 */
    enum cox_primaries primaries;
    enum cox_matrix matrix; /* of Y'CbCr; auto follows the primaries */
    enum cox_encoding curve;
    double peak_nits; /* of PQ's display */
};

struct judge_frame {
    const void *planes[COX_VIDEO_PLANES_MAX];
    size_t pitch_bytes[COX_VIDEO_PLANES_MAX];
};

/* Luma in 1/64 of the codes of limited range with 8 bits, from black on. */
enum { JUDGE_LUMA_UNITS = 64 };

/* A row of pixels. The counts grow with each row. In PQ the display's peak counts instead of 1. */
struct judge_row {
    float *i, *t, *p;
    int32_t *luma;
    uint64_t white, black; /* pixels that have a colour at 1, and at 0, to half a code of 8 bits */
};

struct judge_light;

/* NULL = out of memory. */
struct judge_light *judge_light_create(uint32_t width);
void judge_light_destroy(struct judge_light **light);

/* All further rows are coded like this. */
void judge_light_set(struct judge_light *light, const struct judge_coding *coding);

void judge_light_row(struct judge_light *light, const struct judge_frame *frame, uint32_t y,
                     struct judge_row *row);

#endif
