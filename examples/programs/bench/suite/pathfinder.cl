/* pathfinder: the cheapest way down a wall of costs. From each cell, a way goes to one of the three
 * cells below: left, middle or right.
 *
 *   sum[x] = wall[y][x] + min(sum[x - 1], sum[x], sum[x + 1]), for STEPS rows y of the wall
 *
 * Geometry: work-groups of GROUP, which do all steps in local memory. With each step, the columns
 * that a group knows become fewer by one on each side. It writes the middle GROUP - 2 * STEPS.
 * Defines: GROUP, STEPS.
 * Access: wall from row `start`; the group's columns of sums, and STEPS on each side.
 * Integers: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void pathfinder(global const int *wall, global const int *sums, global int *result, int cols,
                       int start)
{
    local int cells[2][GROUP];
    const int lid = get_local_id(0);
    const int x = (int)get_group_id(0) * (GROUP - 2 * STEPS) - STEPS + lid;
    const bool inside = x >= 0 && x < cols;

    cells[0][lid] = inside ? sums[x] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int step = 0; step < STEPS; step++) {
        local const int *from = cells[step & 1];
        local int *to = cells[(step & 1) ^ 1];

        if (inside && lid > step && lid < GROUP - 1 - step) {
            int least = from[lid];
            if (x > 0)
                least = min(least, from[lid - 1]);
            if (x < cols - 1)
                least = min(least, from[lid + 1]);
            to[lid] = wall[(size_t)(start + step) * cols + x] + least;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (inside && lid >= STEPS && lid < GROUP - STEPS)
        result[x] = cells[STEPS & 1][lid];
}
