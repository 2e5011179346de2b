/* Which devices work together. Co-running is not free: memory bandwidth, power and cores are shared, so fewer devices
 * may be faster than all. What a set of devices costs is only known by trying it; at best each device is as fast in
 * it as alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_COMPANY_H
#define COX_SCHED_COMPANY_H

#include <coxswain/sched.h>

enum { COX__SETS = 16 }; /* remembered */

struct cox__set {
    uint32_t devices;               /* a bit each; 0 = free entry */
    bool known;                     /* `slower` is */
    uint64_t due;                   /* frame from which on it may be tried again */
    uint32_t pause;                 /* frames until then after the next trial that fails */
    double slower[COX_DEVICES_MAX]; /* each device than alone */
};

struct cox__company {
    uint32_t in_use; /* the set that the devices' models are of */
    uint64_t due;    /* frame from which on another set may be tried */
    uint32_t next;   /* entry to give up next */
    uint32_t cursor; /* next set to look at */

    uint32_t trial;                    /* the set being tried; 0 = none */
    uint64_t trial_of;                 /* its last frame, the one that counts */
    uint32_t left;                     /* frames of the trial still to be split */
    uint32_t seen;                     /* devices measured in it */
    double ns[COX_DEVICES_MAX];        /* by its devices, */
    double predicted[COX_DEVICES_MAX]; /* and by their models in the set in use */
    struct cox__set sets[COX__SETS];
};

/* What is known of a set; NULL = nothing. */
const struct cox__set *cox__company_find(const struct cox__company *company, uint32_t devices);

/* The entry of a set, new if need be. */
struct cox__set *cox__company_entry(struct cox__company *company, uint32_t devices);

/* The set has lost against another one: its next trial, of so many frames, comes after a pause that doubles; that of any
 * other set after one that grows with what was lost, as a share of a frame. */
void cox__company_lost(struct cox__company *company, uint32_t devices, uint64_t frame, uint32_t trial_frames,
                       double loss);

#endif
