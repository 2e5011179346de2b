/* The mean of 3 x 3 pixels with weights 1 2 1, 2 4 2, 1 2 1 over 16. Pixels outside are copies of
 * the edge.
 *
 * Geometry: two dimensions, except for edges_border. In edges_each and edges_padded each work-item
 * does one pixel, without a guard. The same holds for edges_halo, with local size TILE x TILE. The
 * kernel edges_interior has at least width - 2 by height - 2 items, and edges_pad has at least
 * width + 2 by height + 2. The kernel edges_border has one dimension and at least
 * 2 (width + height) - 4 items. Surplus items do nothing.
 * Defines: TILE; IMAGES if the device has images.
 * Access: edges_padded reads an input with one more pixel at each side. Each pixel of `out` is
 * written once.
 * Numerics: in all forms the same sums of products by powers of two.
 * SPDX-License-Identifier: Apache-2.0 */
#define MEAN(AT)                                                   \
    (((AT(-1, -1) + AT(1, -1)) + (AT(-1, 1) + AT(1, 1)) +          \
      2.0f * ((AT(0, -1) + AT(-1, 0)) + (AT(1, 0) + AT(0, 1))) +   \
      4.0f * AT(0, 0)) *                                           \
     0.0625f)

#define CLAMPED(i, j) \
    in[(size_t)clamp(y + (j), 0, height - 1) * width + clamp(x + (i), 0, width - 1)]
kernel void edges_each(global const float *restrict in, global float *restrict out, int width,
                       int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[(size_t)y * width + x] = MEAN(CLAMPED);
}

#define PADDED(i, j) in[(size_t)(y + 1 + (j)) * (width + 2) + x + 1 + (i)]
kernel void edges_padded(global const float *restrict in, global float *restrict out, int width,
                         int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[(size_t)y * width + x] = MEAN(PADDED);
}

kernel void edges_pad(global const float *restrict in, global float *restrict out, int width,
                      int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x < width + 2 && y < height + 2)
        out[(size_t)y * (width + 2) + x] =
            in[(size_t)clamp(y - 1, 0, height - 1) * width + clamp(x - 1, 0, width - 1)];
}

#define IN_TILE(i, j) tile[b + 1 + (j)][a + 1 + (i)]
kernel void edges_halo(global const float *restrict in, global float *restrict out, int width,
                       int height)
{
    local float tile[TILE + 2][TILE + 2];
    const int a = get_local_id(0), b = get_local_id(1);
    const int left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    for (int j = b; j < TILE + 2; j += TILE)
        for (int i = a; i < TILE + 2; i += TILE)
            tile[j][i] = in[(size_t)clamp(top + j - 1, 0, height - 1) * width +
                            clamp(left + i - 1, 0, width - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[(size_t)(top + b) * width + left + a] = MEAN(IN_TILE);
}

#define INSIDE(i, j) in[(size_t)(y + (j)) * width + x + (i)]
kernel void edges_interior(global const float *restrict in, global float *restrict out, int width,
                           int height)
{
    const int x = get_global_id(0) + 1, y = get_global_id(1) + 1;
    if (x < width - 1 && y < height - 1)
        out[(size_t)y * width + x] = MEAN(INSIDE);
}

/* The top and bottom rows come first, then the rest of both sides. */
kernel void edges_border(global const float *restrict in, global float *restrict out, int width,
                         int height)
{
    const int n = get_global_id(0), side = n - 2 * width;
    int x = 0, y = 1 + side / 2;
    if (side < 0) {
        x = n % width;
        y = n < width ? 0 : height - 1;
    } else if (side % 2) {
        x = width - 1;
    }

    if (side < 2 * (height - 2))
        out[(size_t)y * width + x] = MEAN(CLAMPED);
}

#ifdef IMAGES
constant sampler_t nearest =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
constant sampler_t between =
    CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;

#define SAMPLED(i, j) read_imagef(in, nearest, (int2)(x + (i), y + (j))).x
kernel void image_mean(read_only image2d_t in, global float *restrict out, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[(size_t)y * width + x] = MEAN(SAMPLED);
}

/* Four values halfway between pixels: the weights are the same. */
#define HALFWAY(i, j) read_imagef(in, between, (float2)(x + 0.5f + (i), y + 0.5f + (j))).x
kernel void image_mean_linear(read_only image2d_t in, global float *restrict out, int width,
                              int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[(size_t)y * width + x] = ((HALFWAY(-0.5f, -0.5f) + HALFWAY(0.5f, -0.5f)) +
                                  (HALFWAY(-0.5f, 0.5f) + HALFWAY(0.5f, 0.5f))) * 0.25f;
}

kernel void image_copy(read_only image2d_t in, global float *restrict out, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    out[(size_t)y * width + x] = SAMPLED(0, 0);
}
#endif

kernel void buffer_copy(global const float *restrict in, global float *restrict out, int width,
                        int height)
{
    const size_t at = (size_t)get_global_id(1) * width + get_global_id(0);
    out[at] = in[at];
}
