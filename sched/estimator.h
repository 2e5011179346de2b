/* What one device's time is made of, learned from its launches: a Kalman filter on
 *
 *     t = first [its first launch of a frame] + launch [a further one] + ns_per_row * work
 *
 * with relative noise. The covariance is kept as U D U' (Bierman), which stays positive whatever is measured.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_ESTIMATOR_H
#define COX_SCHED_ESTIMATOR_H

#include <stdbool.h>

/* The three unknowns. */
enum { COX__FIRST, COX__LAUNCH, COX__PER_ROW, COX__UNKNOWNS };

struct cox__estimate {
    double x[COX__UNKNOWNS]; /* ns, ns, ns per row; x[COX__PER_ROW] 0 = nothing known */
    double u[COX__UNKNOWNS]; /* above U's diagonal: (0,1), (0,2), (1,2) */
    double d[COX__UNKNOWNS];
    double variance;         /* of the relative jitter of a launch */
    double drift;            /* variance by which the common scale moves in a frame, relative */
    double surprise;         /* mean square of what the first launches' predictions were off, relative */
    double last;             /* the last first launch's normalised residual */
    double up, down;         /* CUSUM over these */
    double suspect;          /* a launch took this many times as long as predicted: an outlier or a change; 0 = none */
    bool suspect_unfinished; /* it took at least that */
    double launches;         /* learned from */
    double frames;           /* first launches learned from */
};

/* One launch. */
struct cox__sample {
    bool further;         /* not the device's first of the frame */
    bool unfinished;      /* it would have taken `ns` or more */
    double work;          /* rows of mean cost */
    double work_variance; /* how uncertain the work is: relative, squared */
    double ns;
};

enum cox__lesson {
    COX__LEARNED,
    COX__SUSPECTED, /* nothing was learned: it may have been an outlier */
    COX__CHANGED,   /* the device is not what it was */
};

/* Nothing known. */
void cox__estimate_init(struct cox__estimate *estimate);

/* Begin with the time of a frame of `work` rows, right within `sd` (relative), of which the fixed part is small. */
void cox__estimate_begin(struct cox__estimate *estimate, double ns, double work, double sd);

/* Begin with a model, right within `sd`. */
void cox__estimate_recall(struct cox__estimate *estimate, double first, double launch, double ns_per_row, double sd);

/* A frame later. */
void cox__estimate_age(struct cox__estimate *estimate);

/* Everything takes `factor` times as long, within `sd` (relative). */
void cox__estimate_scale(struct cox__estimate *estimate, double factor, double sd);

/* Rows of mean cost take `factor` times as long. */
void cox__estimate_stretch(struct cox__estimate *estimate, double factor);

/* The time of a launch, and the variance of that as an estimate of the mean (relative). */
double cox__estimate_ns(const struct cox__estimate *estimate, bool further, double work);
double cox__estimate_error(const struct cox__estimate *estimate, bool further, double work);

/* Learn from a launch. `*residual` is the clipped relative residual that was learned from and `*variance` what its variance was
 * expected to be; both 0 if nothing was learned. */
enum cox__lesson cox__estimate_learn(struct cox__estimate *estimate, const struct cox__sample *sample, double *residual,
                                     double *variance);

#endif
