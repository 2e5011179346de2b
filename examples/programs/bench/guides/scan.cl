/* Inclusive sums of segments: out[i] = in[first of its segment] + ... + in[i], modulo 2^32.
 *
 * Geometry: one dimension, no guard. scan_alone: one segment per work-item. scan_steps: one segment
 * per work-group of LENGTH / 4 items. The others: one segment per work-group of LENGTH items.
 * Defines: LENGTH, a power of two; COLLECTIVE and SUBGROUPS if the device has such functions.
 * Access: each value is read once and written once.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void scan_alone(global const uint *restrict in, global uint *restrict out)
{
    const size_t first = get_global_id(0) * LENGTH;
    uint sum = 0;
    for (int n = 0; n < LENGTH; n++) {
        sum += in[first + n];
        out[first + n] = sum;
    }
}

/* The step doubles: each item adds the value `step` places before it (W. D. Hillis, G. L. Steele,
 * 1986). There are two arrays, because a step reads the values of the step before. `sum` becomes
 * the item's sum. */
#define SCAN_BY_DOUBLING(sum, sums, id, count)             \
    sums[0][id] = sum;                                     \
    barrier(CLK_LOCAL_MEM_FENCE);                          \
    for (int step = 1, from = 0; step < count; step *= 2) { \
        if (id >= step)                                    \
            sum += sums[from][id - step];                  \
        from ^= 1;                                         \
        sums[from][id] = sum;                              \
        barrier(CLK_LOCAL_MEM_FENCE);                      \
    }

kernel void scan_by_hand(global const uint *restrict in, global uint *restrict out)
{
    local uint sums[2][LENGTH];
    const int id = get_local_id(0);
    uint sum = in[get_global_id(0)];
    SCAN_BY_DOUBLING(sum, sums, id, LENGTH)
    out[get_global_id(0)] = sum;
}

kernel void scan_steps(global const uint *restrict in, global uint *restrict out)
{
    local uint sums[2][LENGTH / 4];
    const int id = get_local_id(0);
    uint4 values = vload4(get_global_id(0), in);
    values.y += values.x;
    values.z += values.y;
    values.w += values.z;
    uint sum = values.w;
    SCAN_BY_DOUBLING(sum, sums, id, LENGTH / 4)
    vstore4(values + (sum - values.w), get_global_id(0), out);
}

#ifdef COLLECTIVE
kernel void scan_work_group(global const uint *restrict in, global uint *restrict out)
{
    out[get_global_id(0)] = work_group_scan_inclusive_add(in[get_global_id(0)]);
}
#endif

#ifdef SUBGROUPS
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
kernel void scan_subgroups(global const uint *restrict in, global uint *restrict out)
{
    local uint totals[LENGTH];
    const uint sum = sub_group_scan_inclusive_add(in[get_global_id(0)]);
    if (get_sub_group_local_id() == get_sub_group_size() - 1)
        totals[get_sub_group_id()] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    uint before = 0;
    for (uint g = 0; g < get_sub_group_id(); g++)
        before += totals[g];
    out[get_global_id(0)] = before + sum;
}
#endif
