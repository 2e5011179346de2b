/* A world for the simulator (lab/sim/), made from a recorded session: to see what other policies
 * would have done.
 *
 * A launch costs what device_costs.h estimates, times a factor of its frame: the recorded time over
 * the estimate. So disturbances and chance return at the same frames. If a device had several bands
 * in a frame, each of them tells its speed at that moment. A first band as long as several gets
 * their times together. A further one gets the factor of the band with the same number. Without
 * rows in a frame the factor comes from a shadow. Without a shadow it comes from neighbours in time
 * in the same phase, or from the solo sessions of the phase. docs/reference/cox-lab.md lists what
 * a replay cannot know.
 *
 * Each pass has its own costs and factors, from the bands of that pass. They include rows that move
 * between passes.
 *
 * Thread-safety: a replay is used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPLAY_H
#define COX_EXAMPLES_LAB_REPLAY_H

#include "device_costs.h"
#include "lab/sim/simulate.h"

struct lab_replay {
    struct lab_world world;
    struct lab_replay_fit fits[COX_DEVICES_MAX];
    double *overhead_ns; /* of each frame, beyond its longest device: add it to simulated times */
    struct lab_replay *next_pass; /* of the frames' next pass, without overheads; NULL = none */
    /* The rest is private. */
    const struct lab_replay_data *data;
    const struct lab_replay_session *session;
    uint32_t *rows;      /* of each frame */
    double *factors;     /* frame by frame, one for each device, as recorded */
    double *levels;      /* the same without chance */
    uint32_t *answering; /* frame by frame, a bit for each device that answers */
    uint32_t *profiled;  /* a bit for each device whose bands tell its speed during the frame */
    const struct lab_replay_frame **recorded; /* NULL for a frame that is missing */
};

/* Whether a session can be replayed; else `why` says in one sentence, whose subject is "it", what
 * it lacks. */
bool lab_replay_possible(const struct lab_replay_session *session, char *why, size_t why_bytes);

/* `data` must outlive it; `session` is one of its sessions. False with one sentence in `why` if it
 * cannot be replayed; `*out` is NULL then. */
bool lab_replay_create(const struct lab_replay_data *data, const struct lab_replay_session *session,
                       struct lab_replay **out, char *why, size_t why_bytes);

/* Sets to NULL; NULL is accepted. */
void lab_replay_destroy(struct lab_replay **replay);

/* The simulator's options of the recorded session. Points into the session. */
void lab_replay_options(const struct lab_replay *replay, struct lab_sim_options *options);

/* A policy by its recorded name: NAME, or NAME:no-pool, which hands out no rows while a frame runs.
 * `name` must outlive it. False if there is no such policy. */
bool lab_replay_policy(const char *name, struct cox_policy *policy);

/* --- Decisions -------------------------------------------------------------------------------- */

/* The result of asking a policy again with the recorded calls. */
struct lab_replay_decisions {
    bool taped;           /* false: there are no calls, the rest is meaningless */
    bool complete;        /* false: calls are missing on the tape, the later ones were not asked */
    uint64_t splits;      /* asked again */
    uint64_t grants;      /* rows handed out on demand, asked again */
    uint64_t different;   /* answers that differ from the recorded ones */
    uint64_t first_frame; /* of the first of them */
    /* The recorded and the new answer of the first of them. */
    char recorded[400], answered[400];
};

struct sqlite3;

/* False if the session cannot be read or the policy refuses its options, with a sentence in
 * `why`. */
bool lab_replay_decide(struct sqlite3 *db, const struct lab_replay_session *session,
                       const struct cox_policy *policy, struct lab_replay_decisions *decisions,
                       char *why, size_t why_bytes);

#endif
