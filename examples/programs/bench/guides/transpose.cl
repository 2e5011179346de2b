/* out[x][y] = in[y][x].
 *
 * Geometry: two dimensions, one pixel per work-item, no guard. Both sides are multiples of TILE.
 * With local memory, the local size is TILE x TILE.
 * Defines: TILE; PAD: unused values at the end of each row of the tile, which spread a column over
 * the banks.
 * Access: each pixel of `in` is read once, each of `out` written once.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void transpose_reading_rows(global const float *restrict in, global float *restrict out,
                                   int width, int height)
{
    const size_t x = get_global_id(0), y = get_global_id(1);
    out[x * height + y] = in[y * width + x];
}

kernel void transpose_writing_rows(global const float *restrict in, global float *restrict out,
                                   int width, int height)
{
    const size_t y = get_global_id(0), x = get_global_id(1);
    out[x * height + y] = in[y * width + x];
}

kernel void transpose_local(global const float *restrict in, global float *restrict out, int width,
                            int height)
{
    local float tile[TILE][TILE + PAD];
    const size_t i = get_local_id(0), j = get_local_id(1);
    const size_t x = get_group_id(0) * TILE, y = get_group_id(1) * TILE;
    tile[j][i] = in[(y + j) * width + x + i];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(x + j) * height + y + i] = tile[i][j];
}
