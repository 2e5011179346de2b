/* The estimate of one device's costs, learned from its launches: a Kalman filter on
 *
 *     t = first [the device's first launch of a frame] + launch [a further one] + ns_per_row * work
 *
 * with relative noise. The covariance is kept as U D U' (Bierman), which stays positive whatever is measured.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ADAPTIVE_ESTIMATOR_H
#define COX_ADAPTIVE_ESTIMATOR_H

#include <stdbool.h>

/* The three unknowns. */
enum { COX__FIRST, COX__LAUNCH, COX__PER_ROW, COX__UNKNOWNS };

struct cox__estimate {
    double x[COX__UNKNOWNS]; /* ns, ns, ns per row; x[COX__PER_ROW] 0 = nothing known */
    double u[COX__UNKNOWNS]; /* above U's diagonal: (0,1), (0,2), (1,2) */
    double d[COX__UNKNOWNS];
    double variance;               /* of the relative jitter of a launch */
    double drift;                  /* variance by which the common scale moves in a frame, relative */
    double first_mean_square;      /* mean square of the relative residuals of first launches */
    double normalised_mean_square; /* mean square of the normalised residuals; 1 = as large as the variance says */
    double last;                   /* normalised residual of the last frame */
    double up, down;               /* CUSUM over these residuals */
    double suspected_change;       /* measured over predicted of a slow first launch; 0 = no suspicion */
    bool suspected_unfinished;     /* that launch did not finish: it would have taken longer still */
    double launches;               /* learned from */
    double frames;                 /* first launches learned from */
};

/* One launch. */
struct cox__sample {
    bool further;         /* not the device's first of the frame */
    bool unfinished;      /* it would have taken `ns` or more */
    double work;          /* rows of mean cost */
    double work_variance; /* relative variance of the time because the work is not known exactly */
    double ns;
};

/* An estimate that knows nothing. */
void cox__estimate_init(struct cox__estimate *estimate);

/* Begin with the time of `work` rows, right within `sd` (relative). The fixed costs are assumed to be a small part of
 * `frame_ns`, the time of a frame shared by all devices. */
void cox__estimate_begin(struct cox__estimate *estimate, double ns, double work, double sd, double frame_ns);

/* Begin with the costs of a device profile, right within `sd`. */
void cox__estimate_load(struct cox__estimate *estimate, double first, double launch, double ns_per_row, double sd);

/* Go on to the next frame: the estimate becomes less certain. */
void cox__estimate_age(struct cox__estimate *estimate);

/* Multiply all costs by `factor`, which is right within `sd` (relative). */
void cox__estimate_scale(struct cox__estimate *estimate, double factor, double sd);

/* Multiply the cost per row by `factor`. */
void cox__estimate_stretch(struct cox__estimate *estimate, double factor);

/* The time of a launch, and the relative variance of that time as an estimate of the mean. */
double cox__estimate_ns(const struct cox__estimate *estimate, bool further, double work);
double cox__estimate_error(const struct cox__estimate *estimate, bool further, double work);

/* The residual of a launch. */
struct cox__residual {
    double predicted_ns;
    double ratio;    /* measured over predicted */
    double variance; /* expected of the ratio */
};
void cox__estimate_compare(const struct cox__estimate *estimate, const struct cox__sample *sample,
                           struct cox__residual *residual);

/* Learn from a launch; residuals beyond three deviations are clipped to that. Returns the clipped relative residual,
 * and in `*variance` the variance that was expected of it. */
double cox__estimate_learn(struct cox__estimate *estimate, const struct cox__sample *sample, double *variance);

/* Tell how the device did in a frame: the mean normalised residual of its launches. Residuals of consecutive frames
 * with the same sign speed up the drift, and a run of them makes the scale uncertain again; then true is returned. With
 * `rows_change` residuals are the rows', and nothing is concluded from them. */
bool cox__estimate_trend(struct cox__estimate *estimate, double deviations, bool rows_change);

/* Accept a change of the device: the costs are scaled so that they fit this launch. */
void cox__estimate_jump(struct cox__estimate *estimate, const struct cox__sample *sample, double sd);

#endif
