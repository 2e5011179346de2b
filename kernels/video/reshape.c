/* The table of a frame's reshaping, for reshape.clh.
 *
 * Pure: no allocation, no OpenCL, no clock, no state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "reshape.h"

#include <math.h>
#include <string.h>

enum { PIECE_WORDS = 24, CURVE_WORDS = 4 + COX_RESHAPE_PIECES_MAX * PIECE_WORDS };
enum { TABLE_WORDS = 3 * CURVE_WORDS + 3 * 4 };

_Static_assert(TABLE_WORDS * sizeof(float) == COX_VIDEO_RESHAPE_BYTES, "the size of the table");

/* Whether all values are small enough that no sum overflows. False for a NaN. */
static bool are_small(const double *values, int count)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(values[i]) < 0x1p16))
            return false;
    return true;
}

static bool curve_ok(const struct cox_reshape_curve *curve)
{
    if (curve->piece_count < 1 || curve->piece_count > COX_RESHAPE_PIECES_MAX ||
        !(curve->least >= 0 && curve->least < curve->most && curve->most <= 1))
        return false;

    double before = 0;
    for (uint32_t i = 0; i < curve->piece_count; i++) {
        const struct cox_reshape_piece *piece = &curve->piece[i];
        if (!(piece->from >= before && piece->from <= 1) || (i == 0 && piece->from > 0) ||
            (unsigned)piece->kind > COX_RESHAPE_MMR || !are_small(piece->c, COX_RESHAPE_FACTORS))
            return false;
        before = piece->from;
    }
    return true;
}

bool cox__reshape_ok(const struct cox_video_reshape *reshape)
{
    return reshape && curve_ok(&reshape->curve[0]) && curve_ok(&reshape->curve[1]) &&
           curve_ok(&reshape->curve[2]) && are_small(reshape->signal_matrix, 9) &&
           are_small(reshape->signal_offset, 3) && are_small(reshape->light_matrix, 9);
}

void cox__reshape_product(const double a[9], const double b[9], double product[9])
{
    for (int row = 0; row < 3; row++)
        for (int column = 0; column < 3; column++) {
            double sum = 0;
            for (int i = 0; i < 3; i++)
                sum += a[3 * row + i] * b[3 * i + column];
            product[3 * row + column] = sum;
        }
}

static void write_curve(const struct cox_reshape_curve *curve, float *words)
{
    words[0] = (float)curve->piece_count;
    words[1] = (float)curve->least;
    words[2] = (float)curve->most;

    for (uint32_t i = 0; i < curve->piece_count; i++) {
        const struct cox_reshape_piece *piece = &curve->piece[i];
        float *to = words + 4 + i * PIECE_WORDS;
        to[0] = (float)piece->from;
        to[1] = (float)piece->kind;
        for (int c = 0; c < COX_RESHAPE_FACTORS; c++)
            to[2 + c] = (float)piece->c[c];
    }
}

cox_status cox_video_reshape_table(const struct cox_video_reshape *reshape, void *table)
{
    float words[TABLE_WORDS] = {0};
    if (!table || !cox__reshape_ok(reshape))
        return COX_E_INVALID;

    for (int i = 0; i < 3; i++)
        write_curve(&reshape->curve[i], words + i * CURVE_WORDS);

    /* The kernel needs the signal of PQ from -1 to 1. */
    for (int row = 0; row < 3; row++) {
        float *to = words + 3 * CURVE_WORDS + 4 * row;
        double offset = 0;
        for (int i = 0; i < 3; i++) {
            const double factor = reshape->signal_matrix[3 * row + i];
            to[i] = (float)(2 * factor);
            offset += factor * reshape->signal_offset[i];
        }
        to[3] = (float)(-2 * offset - 1);
    }

    memcpy(table, words, sizeof words);
    return COX_OK;
}
