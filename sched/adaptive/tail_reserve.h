/* How large the tail reserve of a frame should be: the share of the frame's time that its bands are planned to end
 * before the frame does, so that the last rows can go to the devices that turn out to be free.
 *
 * The share is chosen by replay: of every frame it is known when each device was done with its band, hence what the
 * frame would have taken with a smaller or a larger share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_TAIL_RESERVE_H
#define COX_ADAPTIVE_TAIL_RESERVE_H

#include <stdint.h>

enum { COX__TAIL_RESERVES = 6 }; /* shares to choose from */

struct cox__tail_reserve {
    double loss[COX__TAIL_RESERVES]; /* mean of what each share costs, over the frame time */
    double frames;
    uint32_t in_use;
};

void cox__tail_reserve_init(struct cox__tail_reserve *reserve);

/* The share in use. */
double cox__tail_reserve_share(const struct cox__tail_reserve *reserve);

/* Learn from a frame whose bands were planned with `share`. With no device waiting it would have taken `level_ns`; its
 * longest band took `latest_ns`. One further launch of every device costs `launch_ns` of the frame's time. */
void cox__tail_reserve_learn(struct cox__tail_reserve *reserve, double share, double level_ns, double latest_ns,
                             double launch_ns);

#endif
