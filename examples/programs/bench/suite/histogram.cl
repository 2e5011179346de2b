/* histogram: how often each value occurs. The final counts are bytes that saturate at 255.
 *
 * Geometry: histogram_main has one work-item per sample, histogram_final one per bin.
 * Access: one sample, any counter; one counter, one byte.
 * Integers: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void histogram_main(global const uint *samples, global uint *counters, int count)
{
    const int i = get_global_id(0);
    if (i < count)
        atomic_inc(&counters[samples[i]]);
}

kernel void histogram_final(global const uint *counters, global uchar *histogram, int bins)
{
    const int bin = get_global_id(0);
    if (bin < bins)
        histogram[bin] = min(counters[bin], 255u);
}
