/* What a launch costs on one device: t = s (theta + w) for w rows' worth of work.
 *
 * `theta` is the fixed cost of a launch, in rows. A scalar Kalman filter learns it from pairs of
 * launches of different size. `s` is the nanoseconds per row. It is not white noise, because its
 * changes from frame to frame are small and stay. So three averages of it are kept: slow, quick and
 * immediate. The average with the least recent error is used. Errors right after a slow measurement
 * and right after a quick one are kept apart. An average that follows is right after a change of
 * the device and wrong after an outlier, and the errors show which of the two is usual.
 *
 * All arithmetic is + - * / and sqrt: the same measurements give the same splits on every machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_SPEED_H
#define COX_ADAPTIVE_SPEED_H

#include <stdbool.h>
#include <stdint.h>

enum { COX__LEVELS = 3 };

/* Zeroed: nothing is known. */
struct cox__speed {
    uint32_t frames;           /* learned from */
    double level[COX__LEVELS]; /* averages of s; 0 = not known */
    /* Mean square of the logarithm of measured over predicted. */
    double error[COX__LEVELS];
    double theta, theta_variance;
    double last_ns, last_work; /* the last launch; last_work 0 = none */
};

/* A device's launches of one frame, added up. */
struct cox__busy {
    uint32_t launches;
    double work;
    double ns;
};

/* Begin with a time of `ns` for a launch of `work`. What was learned about theta stays. */
void cox__speed_begin(struct cox__speed *speed, double ns, double work);

/* Begin with what an earlier session measured. */
void cox__speed_load(struct cox__speed *speed, double fixed_ns, double ns_per_row);

/* The level of the average in use, in nanoseconds per row; 0 = nothing is known. */
double cox__speed_level(const struct cox__speed *speed);

/* Relative standard deviation of a frame's measurement from its prediction. */
double cox__speed_noise(const struct cox__speed *speed);

/* Time of `launches` launches that do `work` together. */
double cox__speed_ns(const struct cox__speed *speed, double launches, double work);

/* Learn theta from one launch. Called for each launch of a frame, before cox__speed_learn. */
void cox__speed_contrast(struct cox__speed *speed, double ns, double work);

/* Learn the level from all launches of a frame. */
void cox__speed_learn(struct cox__speed *speed, const struct cox__busy *busy);

#endif
