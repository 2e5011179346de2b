/* A machine as a few numbers, estimated from a recorded run: what a scenario (lab/sim/scenario.h) needs to forecast it.
 * docs/guide/cox-lab.md says how.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FIT_ESTIMATE_H
#define COX_EXAMPLES_LAB_FIT_ESTIMATE_H

#include "lab/replay/recorded_run.h"
#include "lab/sim/scenario.h"

struct lab_fit_device {
    size_t bands; /* it is made from; 0 = the device never had rows and takes no part */
    double fixed_ns, launch_ns, row_ns; /* as in a scenario; row_ns at the mean level */
    double jitter;                  /* between launches of one frame, or of neighbouring frames */
    double level_change, level_lag; /* 0 = the level does not wander */
    double jump_frames, jump_sigma; /* 0 = it does not jump */
    struct lab_scenario_tail launch_tail;
    double *trace; /* the level in each frame, over its mean; NULL = unknown */
};

struct lab_fit {
    uint32_t rows, granule, in_flight;
    uint64_t frames; /* of the longest session */
    uint32_t device_count;
    char device_names[COX_DEVICES_MAX][LAB_NAME_MAX]; /* unlike each other */
    struct lab_fit_device devices[COX_DEVICES_MAX];
    size_t trace_count; /* frames of each trace */
    double slowdown;    /* while two devices work; 1 = none */
    bool host_clock;
    double busy_ns;
    struct lab_scenario_wake engine, application; /* without `beside` */
    double
        hand_over_idle_ns; /* the application waits at most so long after a device has nothing to do */
    uint64_t pause_frames;
};

/* False if the run has not what is needed, with a sentence in `why` whose subject is "the run". lab_fit_free it. */
bool lab_fit_estimate(const struct lab_replay_data *data, struct lab_fit *out, char *why,
                      size_t why_bytes);

/* Whether the session is a policy's and has bands with times; that of a simulation's oracle has none. */
bool lab_fit_is_policy(const struct lab_replay_session *session);

/* The traces; `fit` itself is the caller's. */
void lab_fit_free(struct lab_fit *fit);

/* The scenario as a file's text; NULL = out of memory. With `traces` the levels are those recorded, else chance like
 * them. free() it. */
char *lab_fit_write(const struct lab_fit *fit, const char *name, const char *text, bool traces);

#endif
