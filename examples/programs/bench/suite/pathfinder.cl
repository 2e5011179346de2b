/* pathfinder: the cheapest way down a wall of costs. From each cell, a way goes to one of
 * the three cells below: left, middle or right.
 *
 *   sum[x] = wall[y][x] + min(sum[x - 1], sum[x], sum[x + 1]), for STEPS rows y of the wall
 *
 * Geometry: one work-item per column of the wall, GROUP per work-group. A work-group does all steps
 * in local memory. It also computes STEPS columns on either side, one fewer with each step.
 * Defines: GROUP, STEPS.
 * Access: wall is read from row `start`, sums by columns with STEPS on either side.
 * Integers: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void pathfinder(global const int *wall, global const int *sums, global int *result, int cols,
                       int start)
{
    local int cells[2][GROUP + 2 * STEPS];
    const int width = GROUP + 2 * STEPS;
    const int lid = get_local_id(0);
    const int first = (int)get_group_id(0) * GROUP - STEPS;

    for (int i = lid; i < width; i += GROUP)
        cells[0][i] = sums[clamp(first + i, 0, cols - 1)];
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int step = 0; step < STEPS; step++) {
        local const int *from = cells[step & 1];
        local int *to = cells[(step & 1) ^ 1];

        for (int i = lid; i < width; i += GROUP) {
            const int x = first + i;
            if (i <= step || i >= width - 1 - step || x < 0 || x >= cols)
                continue;

            int least = from[i];
            if (x > 0)
                least = min(least, from[i - 1]);
            if (x < cols - 1)
                least = min(least, from[i + 1]);
            to[i] = wall[(size_t)(start + step) * cols + x] + least;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    const int x = get_global_id(0);
    if (x < cols)
        result[x] = cells[STEPS & 1][lid + STEPS];
}
