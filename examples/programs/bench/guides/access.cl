/* Orders of access in global and in local memory.
 *
 * Geometry: one dimension, no guard; one value per work-item. local_*: work-groups of GROUP items.
 * fill_*: 8 values per work-item.
 * Defines: GROUP; GATHER, the order in global memory, with LOG_STRIDE; STRIDE in local memory.
 * Access: each value of `out` is written once. The kernel gather reads each value of `in` once. The
 * kernel local_strides reads 1024 values to fill its local memory. Each of its work-items reads 128
 * of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifdef GATHER
/* Goes down the columns of rows with 2^LOG_STRIDE values, so that neighbours are that far apart.
 * There are 2^log_count values. */
size_t place(size_t i, int log_count)
{
    const size_t last = ((size_t)1 << log_count) - 1;
#if GATHER == 0 && LOG_STRIDE == 0
    return i;
#elif GATHER == 0
    return ((i << LOG_STRIDE) & last) | (i >> (log_count - LOG_STRIDE));
#elif GATHER == 1 /* not aligned to cache lines */
    return i + 1;
#elif GATHER == 2
    return last - i;
#else /* an odd factor scatters neighbours */
    return (i * 2654435761u) & last;
#endif
}

kernel void gather(global const float *restrict in, global float *restrict out, int log_count)
{
    const size_t i = get_global_id(0);
    out[i] = in[place(i, log_count)];
}

kernel void scatter(global const float *restrict in, global float *restrict out, int log_count)
{
    const size_t i = get_global_id(0);
    out[place(i, log_count)] = in[i];
}
#endif

#ifdef STRIDE
enum { KEPT = 1024, READS = 128 };

kernel void local_strides(global const float *restrict in, global float *restrict out)
{
    local float kept[KEPT];
    const int id = get_local_id(0);
    for (int n = id; n < KEPT; n += GROUP)
        kept[n] = in[n];
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0;
    for (int n = 0; n < READS; n++)
        sum += kept[(id * STRIDE + n) & (KEPT - 1)];
    out[get_global_id(0)] = sum;
}
#endif

enum { EACH = 8, CHUNK = EACH * GROUP };

#define REVERSED(from)               \
    for (int n = 0; n < EACH; n++)   \
        out[first + n * GROUP + id] = from[CHUNK - 1 - (n * GROUP + id)];

kernel void fill_by_one(global const float *restrict in, global float *restrict out)
{
    local float kept[CHUNK];
    const int id = get_local_id(0);
    const size_t first = get_group_id(0) * CHUNK;
    if (id == 0)
        for (int n = 0; n < CHUNK; n++)
            kept[n] = in[first + n];
    barrier(CLK_LOCAL_MEM_FENCE);
    REVERSED(kept)
}

kernel void fill_by_chunks(global const float *restrict in, global float *restrict out)
{
    local float kept[CHUNK];
    const int id = get_local_id(0);
    const size_t first = get_group_id(0) * CHUNK;
    for (int n = 0; n < EACH; n++)
        kept[id * EACH + n] = in[first + id * EACH + n];
    barrier(CLK_LOCAL_MEM_FENCE);
    REVERSED(kept)
}

kernel void fill_side_by_side(global const float *restrict in, global float *restrict out)
{
    local float kept[CHUNK];
    const int id = get_local_id(0);
    const size_t first = get_group_id(0) * CHUNK;
    for (int n = 0; n < EACH; n++)
        kept[n * GROUP + id] = in[first + n * GROUP + id];
    barrier(CLK_LOCAL_MEM_FENCE);
    REVERSED(kept)
}

kernel void fill_by_copy(global const float *restrict in, global float *restrict out)
{
    local float kept[CHUNK];
    const int id = get_local_id(0);
    const size_t first = get_group_id(0) * CHUNK;
    event_t copied = async_work_group_copy(kept, in + first, CHUNK, 0);
    wait_group_events(1, &copied);
    REVERSED(kept)
}

kernel void fill_nothing(global const float *restrict in, global float *restrict out)
{
    const int id = get_local_id(0);
    const size_t first = get_group_id(0) * CHUNK;
    global const float *from = in + first;
    REVERSED(from)
}
