/* Analysis of one picture: the histogram of luminance, for exposure and peak.
 *
 * Formula: Y = 0.2126 R + 0.7152 G + 0.0722 B. The colours are those that picture.cl takes, before
 * any exposure.
 *     Y < 2^-16           word 1024 (black) counts it
 *     otherwise           word min(floor(32 (log2 Y + 16)), 1023) counts it
 *     word 1025           the bits of the largest Y (positive floats order like integers)
 *
 * Geometry: dimension 0 over COX_LANES columns, each taking every COX_LANES-th group of COX_WIDTH
 * pixels of a row, dimension 1 over groups of COX_ITEM_ROWS rows. A work-group is COX_GROUP by 1
 * and gathers its counts in local memory (COX_GROUP > 1) or private memory (1) first: a device's
 * global atomics cost more than everything else here.
 *
 * Build defines: COX_WIDTH (detmath.clh), COX_LANES, COX_GROUP, COX_ITEM_ROWS, COX_COLUMNS,
 * COX_IN_PITCH (bytes), COX_IN_FLOAT. Access: `in` ROWS read, beginning at the band's first row;
 * `histogram` REDUCE, zeroed before. Numerics: see detmath.clh; the counts are integers, so the
 * order and the cut do not matter.
 * SPDX-License-Identifier: Apache-2.0 */
#include "math/detmath.clh"
#include "tonemap/pixels.clh"

#define COX_BINS 1024
#define COX_WORDS (COX_BINS + 2)

/* The word that counts each pixel and, in *bits, its luminance. */
static inline sint histogram_bin(real r, real g, real b, sint *bits)
{
    const real y = det_luminance(r, g, b);
    const real scaled = MULADD(det_log2(det_max(y, REAL(0x1p-20f))), REAL(32.0f), REAL(512.0f));
    const sint bin = TO_SINT(det_min(scaled, REAL(1023.0f)));
    *bits = AS_SINT(y);
    return PICK(y < REAL(0x1p-16f), SINT(COX_BINS), max(bin, SINT(0)));
}

__kernel __attribute__((reqd_work_group_size(COX_GROUP, 1, 1))) void
histogram(__global const uchar *in, __global uint *histogram, int rows)
{
    const int lane = (int)get_local_id(0);
    const int first = (int)get_global_id(1) * COX_ITEM_ROWS;
    const int end = min(first + COX_ITEM_ROWS, rows);
    int largest = 0;
#if COX_GROUP > 1
    __local uint counts[COX_WORDS];
    for (int i = lane; i < COX_WORDS; i += COX_GROUP)
        counts[i] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    uint counts[COX_WORDS];
    for (int i = 0; i < COX_WORDS; i++)
        counts[i] = 0;
#endif
    for (int y = first; y < end; y++) {
        __global const uint *src = (__global const uint *)(in + (size_t)y * COX_IN_PITCH);
        for (int x = (int)get_global_id(0) * COX_WIDTH; x < COX_COLUMNS;
             x += COX_LANES * COX_WIDTH) {
            struct pixels px;
            sint bits;
#if COX_WIDTH == 1
            LOAD(src + x * COX_IN_WORDS);
            UNPACK_COLOUR(px);
            const int bin = histogram_bin(px.r, px.g, px.b, &bits);
            largest = max(largest, bits);
#if COX_GROUP > 1
            atomic_inc(&counts[bin]);
#else
            counts[bin]++;
#endif
#else
            int lanes[COX_WIDTH], luminance[COX_WIDTH];
            const int n = min(COX_COLUMNS - x, COX_WIDTH);
            if (n == COX_WIDTH) {
                LOAD(src + x * COX_IN_WORDS);
                UNPACK_COLOUR(px);
            } else {
                uint words[COX_WIDTH * COX_IN_WORDS];
                for (int i = 0; i < COX_WIDTH * COX_IN_WORDS; i++)
                    words[i] = i < n * COX_IN_WORDS ? src[x * COX_IN_WORDS + i] : 0;
                LOAD(words);
                UNPACK_COLOUR(px);
            }
            COX_VSTORE(histogram_bin(px.r, px.g, px.b, &bits), 0, lanes);
            COX_VSTORE(bits, 0, luminance);
            for (int i = 0; i < n; i++) {
                counts[lanes[i]]++;
                largest = max(largest, luminance[i]);
            }
#endif
        }
    }
#if COX_GROUP > 1
    atomic_max(&counts[COX_BINS + 1], (uint)largest);
    barrier(CLK_LOCAL_MEM_FENCE);
#else
    counts[COX_BINS + 1] = (uint)largest;
#endif
    for (int i = lane; i <= COX_BINS; i += COX_GROUP)
        if (counts[i] != 0)
            atomic_add(&histogram[i], counts[i]);
    if (lane == 0)
        atomic_max(&histogram[COX_BINS + 1], counts[COX_BINS + 1]);
}
