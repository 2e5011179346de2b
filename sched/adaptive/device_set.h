/* What is known of device sets: how much slower each device is in a set than alone, and when a set may be tried.
 *
 * Devices that run together slow each other down: they share memory bandwidth, power and cores. So fewer devices may be
 * faster than all. The cost of a set is known only after a frame has tried it; at best every device is as fast in the
 * set as it is alone. A device set is a mask with one bit per device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_DEVICE_SET_H
#define COX_ADAPTIVE_DEVICE_SET_H

#include <coxswain/sched.h>

enum { COX__DEVICE_SETS = 16 }; /* remembered */

struct cox__device_set {
    uint32_t devices;               /* a bit each; 0 = free entry */
    bool known;                     /* `slower` is known */
    uint64_t due;                   /* the first frame that may try the set again */
    uint32_t pause;                 /* frames until then after the next trial that fails */
    double slower[COX_DEVICES_MAX]; /* the factor by which each device is slower in the set than alone */
};

struct cox__device_sets {
    uint32_t in_use; /* the set that the devices' estimates are of */
    uint64_t due;    /* the first frame that may try any other set of several devices */
    uint32_t next;   /* the entry to replace next */
    uint32_t cursor; /* the device with which the search for a candidate goes on */

    uint32_t trial;                             /* the set that is being tried; 0 = none */
    uint64_t trial_last;                        /* the last frame of the trial: the one that is measured */
    uint32_t trial_left;                        /* frames of the trial that are still to be split */
    uint32_t trial_seen;                        /* devices measured in it, a bit each */
    double trial_ns[COX_DEVICES_MAX];           /* what each device's launches took in that frame, */
    double trial_predicted_ns[COX_DEVICES_MAX]; /* and what its estimate, of the set in use, says of them */
    struct cox__device_set entries[COX__DEVICE_SETS];
};

/* The entry of a set; NULL = nothing is known of it. */
const struct cox__device_set *cox__device_sets_find(const struct cox__device_sets *sets, uint32_t devices);

/* The entry of a set, made if there is none. */
struct cox__device_set *cox__device_sets_entry(struct cox__device_sets *sets, uint32_t devices);

/* Record that a trial has not been won by the set `devices`. Its next trial, of `trial_frames` frames, comes after a
 * pause that doubles each time; a trial of any other set after a pause in proportion to `loss`, the share of a frame's
 * time that the trial has cost. */
void cox__device_sets_lost(struct cox__device_sets *sets, uint32_t devices, uint64_t frame, uint32_t trial_frames,
                           double loss);

#endif
