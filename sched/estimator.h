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
    double unrest;           /* mean square of the normalised residuals: 1 = noise is what the variance says */
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
    double work_variance; /* of the time, for what is not known of the work; relative */
    double ns;
};

/* Nothing known. */
void cox__estimate_init(struct cox__estimate *estimate);

/* Begin with the time of `work` rows, right within `sd` (relative), of which the fixed part is small: hardly more than
 * `frame_ns`, the time of a frame shared by all devices. */
void cox__estimate_begin(struct cox__estimate *estimate, double ns, double work, double sd, double frame_ns);

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

/* How a launch compares with what was predicted of it. */
struct cox__surprise {
    double ns;       /* predicted */
    double ratio;    /* measured over predicted */
    double variance; /* expected of the ratio */
};
void cox__estimate_compare(const struct cox__estimate *estimate, const struct cox__sample *sample,
                           struct cox__surprise *surprise);

/* Learn from a launch that is as expected, more or less: residuals beyond three deviations are clipped to that. Returns the
 * residual, relative and clipped, and what its variance was expected to be. */
double cox__estimate_learn(struct cox__estimate *estimate, const struct cox__sample *sample, double *variance);

/* How the device did in a frame, in deviations: the mean of its launches. Two frames that point the same way speed up
 * the drift, and a run of them opens the scale again; then true. */
bool cox__estimate_trend(struct cox__estimate *estimate, double deviations, bool rows_change);

/* The device is not what it was: the scale is whatever makes this launch right. */
void cox__estimate_jump(struct cox__estimate *estimate, const struct cox__sample *sample, double sd);

#endif
