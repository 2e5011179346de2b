/* kmeans: the nearest centre of each point, by the squared distance.
 *
 * Geometry: one work-item per point.
 * Access: the point's features, all centres, one membership.
 * Order of additions is fixed and nothing is contracted: all devices agree.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma OPENCL FP_CONTRACT OFF

kernel void kmeans_assign(global const float *features, global const float *centres,
                          global int *membership, int points, int clusters, int dimensions)
{
    const int point = get_global_id(0);
    if (point >= points)
        return;

    int nearest = 0;
    float least = FLT_MAX;
    for (int c = 0; c < clusters; c++) {
        float distance = 0;
        for (int d = 0; d < dimensions; d++) {
            const float difference =
                features[(size_t)point * dimensions + d] - centres[c * dimensions + d];
            distance += difference * difference;
        }
        if (distance < least) {
            least = distance;
            nearest = c;
        }
    }
    membership[point] = nearest;
}
