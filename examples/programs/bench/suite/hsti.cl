/* hsti: a histogram whose input is split between work-groups. Each has counters in local memory.
 *
 * Geometry: EACH samples per work-item, GROUP work-items per work-group.
 * Defines: GROUP, EACH, BINS.
 * Access: each sample once; any counter. Samples have 12 bits.
 * Integers: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void hsti(global const uint *samples, global uint *histogram, int count)
{
    local uint counters[BINS];
    const int lid = get_local_id(0);
    for (int bin = lid; bin < BINS; bin += GROUP)
        counters[bin] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const int first = (int)get_group_id(0) * GROUP * EACH;
    for (int k = 0; k < EACH; k++) {
        const int i = first + k * GROUP + lid;
        if (i < count)
            atomic_inc(&counters[samples[i] * BINS >> 12]);
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    for (int bin = lid; bin < BINS; bin += GROUP)
        if (counters[bin])
            atomic_add(&histogram[bin], counters[bin]);
}
