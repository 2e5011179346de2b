/* What other policies would have done with a recorded session: a world for the simulator, made from what was recorded.
 *
 * Each device costs what device_costs.h says, times a factor for each frame: what it took then over what the model says. A
 * disturbance so comes again at the frames where it was, and so does chance. Where a device had several bands in a
 * frame, each says how fast it was then: a first band that is as long as several gets what these got together, a
 * further one what the further one of the same number got. Where a device had no rows, its factor comes from
 * a shadow, else from its neighbours in time in the same phase, else from the solo sessions of the phase.
 * docs/guide/cox-lab.md says what that cannot know.
 *
 * Each pass of a frame has devices of its own, so to say: costs and factors come from that pass's bands. What rows cost
 * that move between passes is in them.
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
    double *
        overhead_ns; /* of each frame, beyond its longest device: to be added to what the simulator says */
    struct lab_replay *
        next_pass; /* what the frame's next pass is made of, without overheads; NULL = there is none */
    /* The rest is the world's own. */
    const struct lab_replay_data *data;
    const struct lab_replay_session *session;
    uint32_t *rows;      /* of each frame */
    double *factors;     /* frame by frame, one for each device, as recorded */
    double *levels;      /* the same without chance */
    uint32_t *answering; /* frame by frame, a bit for each device that answers */
    uint32_t
        *profiled; /* a bit for each device whose bands say how its speed changed in the frame */
    const struct lab_replay_frame **recorded; /* NULL for a frame that is missing */
};

/* Whether a session has what a replay of it needs; else `why` says in one sentence, whose subject is "it", what it
 * lacks. */
bool lab_replay_possible(const struct lab_replay_session *session, char *why, size_t why_bytes);

/* `data` must outlive it; `session` is one of its sessions. `*out` is NULL unless true is returned; else `why` says in
 * one sentence why nothing can be replayed. */
bool lab_replay_create(const struct lab_replay_data *data, const struct lab_replay_session *session,
                       struct lab_replay **out, char *why, size_t why_bytes);

/* Sets to NULL; NULL is accepted. */
void lab_replay_destroy(struct lab_replay **replay);

/* The simulator's options as the session was recorded. Points into the session. */
void lab_replay_options(const struct lab_replay *replay, struct lab_sim_options *options);

/* A policy by its recorded name: NAME, or NAME:no-pool, which may not hand out rows while a frame runs. `name` must
 * outlive it. False if there is none. */
bool lab_replay_policy(const char *name, struct cox_policy *policy);

/* --- Decisions ---------------------------------------------------------------------------------------------------- */

/* What comes of asking a policy again, with the very calls that were recorded. */
struct lab_replay_decisions {
    bool taped;      /* false: there are no calls, the rest says nothing */
    bool complete;   /* false: calls are missing on the tape, what comes after them was not asked */
    uint64_t splits; /* asked again */
    uint64_t grants; /* rows handed out on demand, asked again */
    uint64_t different;   /* answers that are not those that were recorded */
    uint64_t first_frame; /* of the first such */
    /* Its answers, as recorded and as given now. */
    char recorded[400], answered[400];
};

struct sqlite3;

/* False if the session cannot be read or the policy refuses its options, with a sentence in `why`. */
bool lab_replay_decide(struct sqlite3 *db, const struct lab_replay_session *session,
                       const struct cox_policy *policy, struct lab_replay_decisions *decisions,
                       char *why, size_t why_bytes);

#endif
