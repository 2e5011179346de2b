/* tpacf: histograms of the angles between points of the sky, as unit vectors.
 *
 * Data set 0 is observed, the others are random. Three histograms count the pairs within the
 * observed set, between that and each random set, and within each random set. Bin b has the pairs
 * whose dot product is at least edges[b], and smaller than edges[b - 1].
 *
 * Geometry: one work-item per point of any set, GROUP per work-group.
 * Defines: GROUP; BINS, at most 64.
 * Access: all points, all edges; any counter.
 * Dot products are not contracted: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

/* The first bin whose edge is not above `dot`. The last edge is below -1. */
static int bin_of(float dot, constant float *edges)
{
    int low = 0, high = BINS - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (dot >= edges[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

kernel void tpacf(global const float *xs, global const float *ys, global const float *zs,
                  constant float *edges, global uint *histograms, int set_points, int sets)
{
    local uint counters[3 * BINS];
    for (int b = get_local_id(0); b < 3 * BINS; b += GROUP)
        counters[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    const int total = set_points * sets;
    const int point = get_global_id(0);
    if (point < total) {
        const int set = point / set_points;
        const float x = xs[point], y = ys[point], z = zs[point];

        /* Pairs within the point's own set. */
        local uint *own = counters + (set == 0 ? 0 : 2 * BINS);
        for (int j = point + 1; j < (set + 1) * set_points; j++)
            atomic_inc(&own[bin_of(x * xs[j] + y * ys[j] + z * zs[j], edges)]);

        /* Pairs of an observed point with all random points. */
        if (set == 0)
            for (int j = set_points; j < total; j++)
                atomic_inc(&counters[BINS + bin_of(x * xs[j] + y * ys[j] + z * zs[j], edges)]);
    }

    barrier(CLK_LOCAL_MEM_FENCE);
    for (int b = get_local_id(0); b < 3 * BINS; b += GROUP)
        if (counters[b])
            atomic_add(&histograms[b], counters[b]);
}
