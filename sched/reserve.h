/* How much of a frame to keep back. Decided by replay: for each frame it is known when each device was done with its
 * band, hence what the frame would have taken with a smaller or a larger band.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_RESERVE_H
#define COX_SCHED_RESERVE_H

#include <stdint.h>

enum { COX__RESERVES = 6 };

struct cox__reserve {
    double loss[COX__RESERVES]; /* mean, of the frame time */
    double frames;
    uint32_t in_use;
};

void cox__reserve_init(struct cox__reserve *reserve);

/* The share of the frame's time that a band ends early. */
double cox__reserve_share(const struct cox__reserve *reserve);

/* A frame of which `share` was kept back, which should have taken `level_ns` with no device waiting, took until
 * `latest_ns` for the last band to end. A further launch of every device costs `launch_ns` of the frame's time. */
void cox__reserve_learn(struct cox__reserve *reserve, double share, double level_ns, double latest_ns,
                        double launch_ns);

#endif
