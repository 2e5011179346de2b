/* The codes of an SDR frame in another format, for frames that already have the colours of the
 * output: no light, no R'G'B', no filter of the chroma.
 *
 * Formula, for each sample: code * scale + offset. Chroma has its own scale and offset. The
 * result is rounded and dithered as in frame.cl, and limited to the codes of the depth. So codes
 * outside the nominal range stay.
 *
 * Geometry. Dimension 0 runs over items of COX_ITEM columns (0 = the whole row), an even number.
 * Dimension 1 runs over pairs of rows of the band. Any local size.
 *
 * Build defines, as in frame.cl: COX_WIDTH (only the alignment of rows, see samples.clh), COX_ITEM,
 * COX_DITHER, COX_IN_LAYOUT, COX_IN_BYTES, COX_IN_SHIFT, COX_OUT_LAYOUT, COX_OUT_BYTES,
 * COX_OUT_SHIFT; COX_SUB_X, COX_SUB_Y of both sides. Access: inputs ROWS read, or chroma of 4:2:0
 * HALO read, each from its buffer row `origin_...`; outputs ROWS write. Numerics: see detmath.clh.
 * Each result depends on one sample and its place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "video/samples.clh"

struct codes_params {
    int width, height;
    int in_pitch[3], out_pitch[3]; /* bytes */
    float luma_scale, luma_offset; /* also of colours */
    float chroma_scale, chroma_offset;
    float most; /* the largest code */
};

#if COX_IN_BYTES == 1
typedef uchar in_sample;
#else
typedef placed_ushort in_sample;
#endif
#if COX_OUT_BYTES == 1
typedef uchar out_sample;
#else
typedef ushort out_sample;
#endif

/* The planes of the parts Y', Cb and Cr, or R, G and B: pointers to their rows, and the first
 * row there. */
#if IN_PLANES == 1
#define IN_PART_0 in_0
#define IN_ORIGIN_0 origin_0
#define IN_PART_1 in_0
#define IN_ORIGIN_1 origin_0
#define IN_PART_2 in_0
#define IN_ORIGIN_2 origin_0
#elif IN_PLANES == 2
#define IN_PART_0 in_0
#define IN_ORIGIN_0 origin_0
#define IN_PART_1 in_1
#define IN_ORIGIN_1 origin_1
#define IN_PART_2 in_1
#define IN_ORIGIN_2 origin_1
#elif IN_GBR
#define IN_PART_0 in_2
#define IN_ORIGIN_0 origin_2
#define IN_PART_1 in_0
#define IN_ORIGIN_1 origin_0
#define IN_PART_2 in_1
#define IN_ORIGIN_2 origin_1
#else
#define IN_PART_0 in_0
#define IN_ORIGIN_0 origin_0
#define IN_PART_1 in_1
#define IN_ORIGIN_1 origin_1
#define IN_PART_2 in_2
#define IN_ORIGIN_2 origin_2
#endif
#if OUT_PLANES == 1
#define OUT_PART_0 out_0
#define OUT_PART_1 out_0
#define OUT_PART_2 out_0
#elif OUT_PLANES == 2
#define OUT_PART_0 out_0
#define OUT_PART_1 out_1
#define OUT_PART_2 out_1
#elif OUT_GBR
#define OUT_PART_0 out_2
#define OUT_PART_1 out_0
#define OUT_PART_2 out_1
#else
#define OUT_PART_0 out_0
#define OUT_PART_1 out_1
#define OUT_PART_2 out_2
#endif

/* Where a part lies: the number of its plane, the first sample of a row, and the distance to the
 * next one. Layout and part are constants, so all of it folds. */
struct part {
    int plane, first, step;
};

INLINE struct part part_of(int layout, int which)
{
    struct part part = {which, 0, 1};
    if (layout == 1 && which > 0) {
        part.plane = 1;
        part.first = which - 1;
        part.step = 2;
    } else if (layout == 2 || layout == 3) {
        part.plane = 0;
        part.first = layout == 3 ? 2 - which : which;
        part.step = 4;
    } else if (layout == 4) {
        part.plane = (which + 2) % 3;
    } else if (layout == 5) {
        part.plane = 0;
    }
    return part;
}

/* Sample i of a part's row. */
INLINE uint code_at(__global const uchar *row, int which, int i)
{
#if IN_V210
    return component(row, which ? 4 * i + 2 * (which - 1) : 2 * i + 1);
#else
    const struct part part = part_of(COX_IN_LAYOUT, which);
    return (uint)((__global const in_sample *)row)[part.first + part.step * i] >> COX_IN_SHIFT;
#endif
}

/* The step of the pattern of frame.cl, or what rounds to the nearest code. */
INLINE float threshold(int x, int y)
{
#if COX_DITHER
    return MULADD((float)BAYER(x ^ y, y), 0x1p-6f, 0x1p-7f);
#else
    return 0.5f;
#endif
}

/* Samples `begin` .. `end` of a part's row, which is row `y` of the frame's plane. */
INLINE void one_row(__global const uchar *from, __global uchar *to, int which, int begin, int end,
                    int y, const struct codes_params *k)
{
    const struct part part = part_of(COX_OUT_LAYOUT, which);
    const bool chroma = which > 0 && !IN_RGBA && !IN_GBR;
    const float scale = chroma ? k->chroma_scale : k->luma_scale;
    const float offset = chroma ? k->chroma_offset : k->luma_offset;
    const float most = k->most;
    __global out_sample *row = (__global out_sample *)to;

    for (int i = begin; i < end; i++) {
        float x = MULADD((float)code_at(from, which, i), scale, offset) + threshold(i, y);
        x = x > 0.0f ? x : 0.0f;
        x = x < most ? x : most;
        row[part.first + part.step * i] = (out_sample)((int)x << COX_OUT_SHIFT);
    }
}

/* A part of the band's rows `y` .. `end_y`, of which there are at most two. `y` is even. */
INLINE void one_part(__global const uchar *in, __global uchar *out, int which, int begin, int end,
                     int y, int end_y, int first, int origin, const struct codes_params *k)
{
    const size_t in_pitch = (size_t)k->in_pitch[part_of(COX_IN_LAYOUT, which).plane];
    const size_t out_pitch = (size_t)k->out_pitch[part_of(COX_OUT_LAYOUT, which).plane];

    if (COX_SUB_X && which > 0) {
        begin = begin / 2;
        end = (end + 1) / 2;
    }
    if (COX_SUB_Y && which > 0) {
        const int row = (first + y) / 2;
        one_row(in + (size_t)(row - origin) * in_pitch, out + (size_t)(y / 2) * out_pitch, which,
                begin, end, row, k);
        return;
    }
    for (; y < end_y; y++)
        one_row(in + (size_t)(first + y - origin) * in_pitch, out + (size_t)y * out_pitch, which,
                begin, end, first + y, k);
}

__kernel void codes(__global const uchar *in_0,
#if IN_PLANES > 1
                    __global const uchar *in_1,
#endif
#if IN_PLANES > 2
                    __global const uchar *in_2,
#endif
                    __global uchar *out_0,
#if OUT_PLANES > 1
                    __global uchar *out_1,
#endif
#if OUT_PLANES > 2
                    __global uchar *out_2,
#endif
                    struct codes_params params, int first, int rows, int origin_0
#if IN_PLANES > 1
                    , int origin_1
#endif
#if IN_PLANES > 2
                    , int origin_2
#endif
)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct codes_params p = params;
    const struct codes_params *k = &p;
    const int begin = (int)get_global_id(0) * COX_ITEM;
    const int end = COX_ITEM ? min(begin + COX_ITEM, k->width) : k->width;
    const int y = 2 * (int)get_global_id(1), end_y = min(y + 2, rows);
    if (y >= rows)
        return;

    one_part(IN_PART_0, OUT_PART_0, 0, begin, end, y, end_y, first, IN_ORIGIN_0, k);
    one_part(IN_PART_1, OUT_PART_1, 1, begin, end, y, end_y, first, IN_ORIGIN_1, k);
    one_part(IN_PART_2, OUT_PART_2, 2, begin, end, y, end_y, first, IN_ORIGIN_2, k);

#if OUT_RGBA
    for (int r = y; r < end_y; r++) {
        __global out_sample *row = (__global out_sample *)(out_0 + (size_t)r * k->out_pitch[0]);
        for (int x = begin; x < end; x++)
            row[4 * x + 3] = (out_sample)~0u;
    }
#endif
}
