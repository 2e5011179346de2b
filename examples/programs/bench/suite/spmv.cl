/* spmv: a sparse matrix, as compressed rows, times a vector.
 *
 *   out[r] = sum of values[j] * vec[cols[j]] for j from row_starts[r] to row_starts[r + 1] - 1
 *
 * Geometry: spmv_scalar has one work-item per row. spmv_vector has WIDTH work-items per row, and
 * GROUP per work-group. Each adds every WIDTH-th value. Then halves of the sums are added.
 * Defines: GROUP and WIDTH, powers of two.
 * Access: row_starts by rows and one more; the row's values and columns; any element of vec.
 * Order of additions is fixed and nothing is contracted: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void spmv_scalar(global const float *values, global const int *cols,
                        global const int *row_starts, global const float *vec, global float *out,
                        int dim)
{
    const int row = get_global_id(0);
    if (row >= dim)
        return;

    float sum = 0;
    for (int j = row_starts[row]; j < row_starts[row + 1]; j++)
        sum += values[j] * vec[cols[j]];
    out[row] = sum;
}

kernel void spmv_vector(global const float *values, global const int *cols,
                        global const int *row_starts, global const float *vec, global float *out,
                        int dim)
{
    local float sums[GROUP];
    const int lid = get_local_id(0);
    const int lane = lid % WIDTH;
    const int row = (int)get_group_id(0) * (GROUP / WIDTH) + lid / WIDTH;

    float sum = 0;
    if (row < dim)
        for (int j = row_starts[row] + lane; j < row_starts[row + 1]; j += WIDTH)
            sum += values[j] * vec[cols[j]];
    sums[lid] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int half_width = WIDTH / 2; half_width > 0; half_width /= 2) {
        if (lane < half_width)
            sums[lid] += sums[lid + half_width];
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    if (lane == 0 && row < dim)
        out[row] = sums[lid];
}
