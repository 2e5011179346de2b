/* Prefix sums along the rows of a plane of integers; and facts about whole rows.
 *
 * Formula of prefix_sums:  out(x, y) = sum of in(0, y) .. in(x, y), modulo 2^32.
 * Formula of row_facts, with the samples of row y:
 *     out(0, y) = their sum
 *     out(1, y) = whether any is not 0 (0 or 1)
 *     out(2, y) = whether all are not 0 (0 or 1)
 *     out(3, y) = the last one
 *     out(4, y) = the sum of the samples before the last one
 *
 * Geometry: a work-group of COX_GROUP by 1 goes through a row, COX_GROUP samples at a time;
 * dimension 1 over the band's rows.
 *
 * Build defines: COX_SAMPLE_BYTES 1 or 2, COX_GROUP (a power of two, at least 16). Sizes and
 * pitches are parameters. Access: `in` ROWS read, `out` ROWS write; both begin at the row their
 * `origin` says. Numerics: integers only, so the three ways give the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "filter/scan.clh"

#if COX_SAMPLE_BYTES == 1
typedef uchar sample;
#else
typedef ushort sample;
#endif

struct scan_params {
    int width, height;
    int in_pitch, out_pitch;
};

__kernel __attribute__((reqd_work_group_size(COX_GROUP, 1, 1))) void
prefix_sums(__global const uchar *in, __global uchar *out, int in_origin, int out_origin,
            struct scan_params k, int first, int rows)
{
    __local uint room[COX_ROOM];
    const int y = first + (int)get_group_id(1);
    __global const sample *src = (__global const sample *)(in + (size_t)(y - in_origin) *
                                                                    (size_t)k.in_pitch);
    __global uint *dst = (__global uint *)(out + (size_t)(y - out_origin) * (size_t)k.out_pitch);
    uint before = 0;
    for (int begin = 0; begin < k.width; begin += COX_GROUP) {
        const int x = begin + (int)get_local_id(0);
        const uint sum = before + group_scan(x < k.width ? src[x] : 0, room);
        if (x < k.width)
            dst[x] = sum;
        before = group_broadcast(sum, COX_GROUP - 1, room);
    }
}

__kernel __attribute__((reqd_work_group_size(COX_GROUP, 1, 1))) void
row_facts(__global const uchar *in, __global uchar *out, int in_origin, int out_origin,
          struct scan_params k, int first, int rows)
{
    __local uint room[COX_ROOM];
    const int y = first + (int)get_group_id(1);
    __global const sample *src = (__global const sample *)(in + (size_t)(y - in_origin) *
                                                                    (size_t)k.in_pitch);
    __global uint *dst = (__global uint *)(out + (size_t)(y - out_origin) * (size_t)k.out_pitch);
    uint sum = 0, any = 0, all = 1, last = 0, before_last = 0;
    for (int begin = 0; begin < k.width; begin += COX_GROUP) {
        const int x = begin + (int)get_local_id(0), end = min(k.width - begin, COX_GROUP) - 1;
        const uint here = x < k.width ? src[x] : 0;
        last = group_broadcast(here, end, room);
        before_last = sum + group_broadcast(group_scan_before(here, room), end, room);
        sum += group_reduce(here, room);
        any |= group_any(here, room);
        all &= group_all(x >= k.width || here, room);
    }
    if (get_local_id(0) == 0) {
        dst[0] = sum;
        dst[1] = any;
        dst[2] = all;
        dst[3] = last;
        dst[4] = before_last;
    }
}
