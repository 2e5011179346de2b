/* Which devices work together. Co-running is not free: memory bandwidth, power and cores are shared, so fewer devices may be
 * faster than all. What a set of devices costs is only known by trying it.
 *
 * A set's `factor` is how much slower its devices are in it than alone: 1 for a single device. Models of devices are those of
 * the set in use; for another set they are scaled by the ratio of the factors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_COMPANY_H
#define COX_SCHED_COMPANY_H

#include <stdbool.h>
#include <stdint.h>

enum { COX__SETS = 24 }; /* remembered */

struct cox__set {
    uint32_t devices; /* a bit each; 0 = free entry */
    double factor;    /* 0 = not known */
    uint64_t due;     /* frame from which on it may be tried again */
    uint32_t pause;   /* frames until then after the next trial that fails */
};

struct cox__company {
    struct cox__set sets[COX__SETS];
    uint32_t next;    /* entry to give up next */
    uint64_t due;     /* frame from which on any set may be tried */
    uint32_t in_use;  /* the set of the devices' models */
    uint32_t trial;   /* being tried; 0 = none */
    uint32_t left;    /* frames of the trial still to be split */
    uint32_t pending; /* and to be observed */
    double ns;        /* the trial's measured time, sum */
    double predicted; /* and what was predicted for it */
    uint32_t measured;
};

/* What is known of a set; NULL = nothing. */
const struct cox__set *cox__company_find(const struct cox__company *company, uint32_t devices);

/* The entry of a set, new if need be. */
struct cox__set *cox__company_entry(struct cox__company *company, uint32_t devices);

/* Its factor, or what it may be at best: that of a known set inside of it, else 1. */
double cox__company_factor(const struct cox__company *company, uint32_t devices);

/* A trial of the set has lost: the next one after a pause that doubles. */
void cox__company_lost(struct cox__company *company, uint32_t devices, uint64_t frame);

#endif
