/* A kernel that no cache has seen: NONCE is another number at each build.
 *
 * Geometry: one dimension, an item a value, no guard.
 * SPDX-License-Identifier: Apache-2.0 */
kernel void cold(global const uint *restrict in, global uint *restrict out)
{
    out[get_global_id(0)] = in[get_global_id(0)] ^ NONCE;
}
