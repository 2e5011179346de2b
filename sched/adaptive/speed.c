/* The cost of launches on one device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "speed.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>

/* Parts of a measurement in the slow, the quick and the immediate average. */
static const double gains[COX__LEVELS] = {0.1, 0.45, 1};
static const double ERROR_GAIN = 0.03; /* part of a measurement in the mean squares of errors */
static const double ERROR_FIRST[COX__LEVELS] = {1.1e-3, 1e-3, 1.2e-3};
static const double THETA_FIRST = 0.02; /* of the work of the first measurement */
static const double THETA_ERROR = 0.6;  /* standard deviation of that */
/* Variance that each launch adds, relative to the launch's work squared. */
static const double THETA_DRIFT = 1e-4;
/* Variance of a contrast, over that of a launch: rows differ too. */
static const double THETA_NOISE = 8;
static const double UNLIKE = 0.3; /* least relative difference of work that makes a contrast */
/* A launch of less work than this many theta tells theta, not the level. */
static const double SMALL = 2;
static const double SMALL_GAIN = 0.5; /* how far it moves theta */
static const double NS_LEAST = 1e-6, NS_MOST = 1e20;

enum {
    GUESSED = 2, /* frames until the first level is forgotten */
    JUDGED = 4,  /* frames until errors count */
};

/* An approximation of the logarithm of a ratio, good for small ones; within -2 and 2. */
static double log_ratio(double ratio)
{
    return 2 * (ratio - 1) / (ratio + 1);
}

void cox__speed_begin(struct cox__speed *speed, double ns, double work)
{
    if (!(speed->theta_variance > 0)) {
        speed->theta = THETA_FIRST * work;
        speed->theta_variance = THETA_ERROR * THETA_ERROR * work * work;
    }

    for (int k = 0; k < COX__LEVELS; k++) {
        speed->level[k] = cox__clip(ns / (speed->theta + work), NS_LEAST, NS_MOST);
        speed->error[k] = ERROR_FIRST[k];
    }
}

void cox__speed_load(struct cox__speed *speed, double fixed_ns, double ns_per_row)
{
    const double level = cox__clip(ns_per_row, NS_LEAST, NS_MOST);
    speed->theta = cox__clip(fixed_ns / level, 0, 1e12);
    speed->theta_variance = 0.1 * speed->theta * speed->theta + 1;
    cox__speed_begin(speed, level * (speed->theta + 1), 1);
}

/* The average that has had the least error. */
static int believed(const struct cox__speed *speed)
{
    int best = 0;

    for (int k = 1; k < COX__LEVELS; k++)
        if (speed->error[k] < speed->error[best])
            best = k;

    return best;
}

double cox__speed_level(const struct cox__speed *speed)
{
    return speed->level[believed(speed)];
}

double cox__speed_noise(const struct cox__speed *speed)
{
    return sqrt(speed->error[believed(speed)]);
}

double cox__speed_ns(const struct cox__speed *speed, double launches, double work)
{
    return cox__speed_level(speed) * (launches * speed->theta + work);
}

void cox__speed_contrast(struct cox__speed *speed, double ns, double work)
{
    const double before_ns = speed->last_ns, before = speed->last_work;
    speed->last_ns = ns;
    speed->last_work = work;

    if (!(before > 0) || !(speed->theta_variance > 0))
        return;

    /* Kalman filter: the variance grows with each launch. */
    speed->theta_variance = cox__min(speed->theta_variance + THETA_DRIFT * work * work,
                                     work * work);
    if (work < before * (1 + UNLIKE) && before < work * (1 + UNLIKE))
        return;

    /* Measure theta by ns / (theta + work) = before_ns / (theta + before). */
    const double mean_ns = (ns + before_ns) / 2, noise = cox__max(cox__speed_noise(speed), 0.02);
    const double slope = (ns - before_ns) / mean_ns;
    const double measured = (before_ns * work - ns * before) / mean_ns;
    const double variance = THETA_NOISE * noise * noise * (speed->theta + work) *
                            (speed->theta + before);

    const double innovation = slope * slope * speed->theta_variance + variance;
    const double off = cox__clip(measured - slope * speed->theta, -3 * sqrt(innovation),
                                 3 * sqrt(innovation));

    const double gain = speed->theta_variance * slope / innovation;
    const double theta = cox__max(0, speed->theta + gain * off);

    /* Moving time from the rows to the fixed cost must not change predictions at this size. */
    for (int k = 0; k < COX__LEVELS; k++)
        speed->level[k] = cox__clip(speed->level[k] * (speed->theta + work) / (theta + work),
                                    NS_LEAST, NS_MOST);

    speed->theta = theta;
    speed->theta_variance *= 1 - gain * slope;
}

/* Learn theta from small launches. The fixed cost is most of their time: from a level that they
 * gave, a larger launch would be predicted far too short or too long. Returns whether they are
 * small. */
static bool learn_small(struct cox__speed *speed, double ns, double work)
{
    const double level = cox__speed_level(speed);
    if (!(level > 0) || work >= SMALL * speed->theta)
        return false;

    speed->theta = cox__max(0, speed->theta + SMALL_GAIN * (ns / level - work - speed->theta));
    return true;
}

void cox__speed_learn(struct cox__speed *speed, const struct cox__busy *busy)
{
    if (learn_small(speed, busy->ns / busy->launches, busy->work / busy->launches))
        return;

    const double level = busy->ns / (busy->launches * speed->theta + busy->work);
    if (!(level > NS_LEAST && level < NS_MOST))
        return;

    for (int k = 0; k < COX__LEVELS; k++) {
        const double e = log_ratio(level / speed->level[k]);
        if (speed->frames >= JUDGED)
            speed->error[k] += ERROR_GAIN * (e * e - speed->error[k]);

        /* (1 + part) / (1 - part) is about e to the gain times e. */
        const double part = gains[k] * e / 2;
        if (speed->frames < GUESSED || gains[k] >= 1)
            speed->level[k] = level;
        else
            speed->level[k] = speed->level[k] * (1 + part) / (1 - part);
    }

    speed->frames++;
}
