/* canny: edges of a picture, by four kernels. Smooth it; find the gradient's size and direction;
 * keep the largest sizes across each edge; keep strong edges, and their weak neighbours.
 *
 * Geometry: one work-item per pixel. canny_gauss and canny_sobel have work-groups of TILE x TILE,
 * which load a tile with one more pixel on each side.
 * Defines: TILE.
 * Access: pixels with one on each side, clamped at the picture's edges.
 * Integers: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
enum { ACROSS, RISING, UPRIGHT, FALLING }; /* directions of a gradient */

static uchar pixel(global const uchar *in, int x, int y, int width, int height)
{
    return in[clamp(y, 0, height - 1) * width + clamp(x, 0, width - 1)];
}

static void load(local uchar tile[TILE + 2][TILE + 2], global const uchar *in, int width,
                 int height)
{
    const int left = (int)get_group_id(0) * TILE - 1;
    const int top = (int)get_group_id(1) * TILE - 1;
    const int item = get_local_id(1) * TILE + get_local_id(0);

    for (int i = item; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
        const int x = i % (TILE + 2), y = i / (TILE + 2);
        tile[y][x] = pixel(in, left + x, top + y, width, height);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

kernel void canny_gauss(global const uchar *in, global uchar *smooth, int width, int height)
{
    local uchar tile[TILE + 2][TILE + 2];
    load(tile, in, width, height);

    const int x = get_global_id(0), y = get_global_id(1);
    const int i = get_local_id(0) + 1, j = get_local_id(1) + 1;
    if (x >= width || y >= height)
        return;

    const int above = tile[j - 1][i - 1] + 2 * tile[j - 1][i] + tile[j - 1][i + 1];
    const int own = tile[j][i - 1] + 2 * tile[j][i] + tile[j][i + 1];
    const int below = tile[j + 1][i - 1] + 2 * tile[j + 1][i] + tile[j + 1][i + 1];
    smooth[y * width + x] = (above + 2 * own + below + 8) / 16;
}

kernel void canny_sobel(global const uchar *smooth, global uchar *gradient, global uchar *direction,
                        int width, int height)
{
    local uchar tile[TILE + 2][TILE + 2];
    load(tile, smooth, width, height);

    const int x = get_global_id(0), y = get_global_id(1);
    const int i = get_local_id(0) + 1, j = get_local_id(1) + 1;
    if (x >= width || y >= height)
        return;

    const int right = tile[j - 1][i + 1] + 2 * tile[j][i + 1] + tile[j + 1][i + 1];
    const int left = tile[j - 1][i - 1] + 2 * tile[j][i - 1] + tile[j + 1][i - 1];
    const int above = tile[j - 1][i - 1] + 2 * tile[j - 1][i] + tile[j - 1][i + 1];
    const int below = tile[j + 1][i - 1] + 2 * tile[j + 1][i] + tile[j + 1][i + 1];
    const int gx = right - left, gy = below - above;
    const int ax = abs(gx), ay = abs(gy);

    /* The tangents of 22.5 and 67.5 degrees, times 32768. */
    int toward = (gx > 0) == (gy > 0) ? FALLING : RISING;
    if (ay * 32768 < ax * 13573)
        toward = ACROSS;
    else if (ay * 32768 > ax * 79109)
        toward = UPRIGHT;

    gradient[y * width + x] = min(ax + ay, 255);
    direction[y * width + x] = toward;
}

kernel void canny_thin(global const uchar *gradient, global const uchar *direction,
                       global uchar *thin, int width, int height)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    int dx = 1, dy = 0;
    switch (direction[y * width + x]) {
    case RISING:
        dy = -1;
        break;
    case UPRIGHT:
        dx = 0;
        dy = 1;
        break;
    case FALLING:
        dy = 1;
        break;
    }

    const uchar own = gradient[y * width + x];
    const bool largest = own > pixel(gradient, x - dx, y - dy, width, height) &&
                         own >= pixel(gradient, x + dx, y + dy, width, height);
    thin[y * width + x] = largest ? own : 0;
}

kernel void canny_hysteresis(global const uchar *thin, global uchar *edges, int width, int height,
                             int low, int high)
{
    const int x = get_global_id(0), y = get_global_id(1);
    if (x >= width || y >= height)
        return;

    const int own = thin[y * width + x];
    bool edge = own >= high;
    if (!edge && own >= low)
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -1; dx <= 1; dx++)
                edge = edge || pixel(thin, x + dx, y + dy, width, height) >= high;
    edges[y * width + x] = edge ? 255 : 0;
}
