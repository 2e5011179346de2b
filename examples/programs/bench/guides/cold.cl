/* A kernel that no cache has: NONCE is a new number in each build.
 *
 * Geometry: one dimension, one value per work-item, no guard.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void cold(global const uint *restrict in, global uint *restrict out)
{
    out[get_global_id(0)] = in[get_global_id(0)] ^ NONCE;
}
