/* Transposition of a plane of 4-byte or 16-byte pixels.
 *
 * Formula: out(y, x) = in(x, y)
 *
 * A tile goes through local memory, so that `in` is read and `out` written along rows. Each row of
 * the tile has one pixel more, so that the pixels of a column lie in different banks. Groups take
 * the tiles along diagonals, so that groups that run at the same time do not all write to one
 * partition of the device's memory (Ruetsch, Micikevicius: Optimizing Matrix Transpose in CUDA,
 * 2009).
 *
 * Geometry: dimension 0 over the columns of `out` (`height`), dimension 1 over the band's rows of
 * it. Groups of COX_TILE by COX_GROUP_ROWS work-items, each of which takes COX_TILE /
 * COX_GROUP_ROWS pixels of a tile of COX_TILE by COX_TILE; bands begin at multiples of COX_TILE.
 *
 * Build defines: COX_PIXEL_BYTES 4 or 16, COX_TILE, COX_GROUP_ROWS. Sizes and pitches are
 * parameters. Access: `in` WHOLE read, `out` ROWS write, beginning at the rows their `origin` says:
 * the pass has the columns of `in` as rows. Numerics: none, bits are copied.
 * SPDX-License-Identifier: Apache-2.0 */

#if COX_PIXEL_BYTES == 4
typedef uint pixel;
#else
typedef uint4 pixel;
#endif

struct transpose_params {
    int width, height; /* of `in` */
    int in_pitch, out_pitch;
};

#define IN(x, y) \
    (*((__global const pixel *)(in + (size_t)((y) - in_origin) * (size_t)k.in_pitch) + (x)))
#define OUT(x, y) \
    (*((__global pixel *)(out + (size_t)((y) - out_origin) * (size_t)k.out_pitch) + (x)))

/* The tile whose first pixel is (x0, y0) of `out`. */
static inline void take_tile(__global const uchar *in, __global uchar *out, int in_origin,
                             int out_origin, struct transpose_params k, int x0, int y0, int end,
                             __local pixel *tile, int tile_pitch)
{
    const int lx = (int)get_local_id(0), ly = (int)get_local_id(1);
    for (int i = ly; i < COX_TILE; i += COX_GROUP_ROWS)
        if (y0 + lx < end && x0 + i < k.height)
            tile[i * tile_pitch + lx] = IN(y0 + lx, x0 + i);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = ly; i < COX_TILE; i += COX_GROUP_ROWS)
        if (x0 + lx < k.height && y0 + i < end)
            OUT(x0 + lx, y0 + i) = tile[lx * tile_pitch + i];
}

__kernel __attribute__((reqd_work_group_size(COX_TILE, COX_GROUP_ROWS, 1))) void
transpose(__global const uchar *in, __global uchar *out, int in_origin, int out_origin,
          struct transpose_params params, int first, int rows)
{
    /* before any branch: llvmpipe reads arguments as if all lanes took the branch */
    const struct transpose_params k = params;
    __local pixel tile[COX_TILE * (COX_TILE + 1)];
    const int wide = (int)get_num_groups(0), high = (int)get_num_groups(1);
    const int number = (int)get_group_id(1) * wide + (int)get_group_id(0);
    /* No remainder: together with the quotient, the compiled code cannot run under Oclgrind when it
     * looks for uninitialised values. */
    const int diagonal = number / high, down = number - diagonal * high,
              across = (diagonal + down) % wide;
    take_tile(in, out, in_origin, out_origin, k, across * COX_TILE, first + down * COX_TILE,
              first + rows, tile, COX_TILE + 1);
}
