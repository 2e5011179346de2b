/* A replay: the options of `cox-lab replay`, and the result for each policy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPLAY_JOB_H
#define COX_EXAMPLES_LAB_REPLAY_JOB_H

#include "world.h"

enum { REPLAY_POLICIES_MAX = 32, REPLAY_WHY_MAX = 640 };

enum replay_format { REPLAY_TABLE, REPLAY_CSV, REPLAY_JSON };

struct replay_options {
    const char *path;
    int64_t run;      /* 0 = the last */
    const char *base; /* NULL = every recorded policy */
    uint32_t policy_count;
    struct cox_policy policies[REPLAY_POLICIES_MAX];
    enum replay_format format;
    bool decisions;
};

/* Frame times of one policy. */
struct replay_times {
    double *ns;
    size_t count;
};

struct replay_figures {
    size_t frames;
    double mean_ns, p50_ns, p99_ns;
};

/* The result for one policy in all sessions of the base. */
struct replay_outcome {
    struct cox_policy policy;
    struct replay_figures replayed;
    double over_oracle;             /* mean over mean, in the replay */
    double own_ns;                  /* sum of frame times, replayed in its own sessions */
    double own_recorded_ns;         /* sum of frame times, recorded in them */
    struct replay_figures recorded; /* in its own sessions; frames 0 = it was not recorded */
    uint64_t refused;
    char why[REPLAY_WHY_MAX]; /* why it could not be replayed; "" = it was */
};

struct replay_job {
    const struct replay_options *options;
    struct sqlite3 *db;
    struct lab_replay_data *data;
    size_t base_sessions;
    struct replay_outcome outcomes[REPLAY_POLICIES_MAX];
    uint32_t outcome_count;
    const struct lab_replay *first; /* of the base's first session, for the figures of devices */
};

/* Replay and print all policies in the sessions of the base, and each in its own. Returns an exit
 * status. */
int lab__replay_policies(struct replay_job *job);

/* outcomes.c */

void lab__replay_print(const struct replay_job *job);

#endif
