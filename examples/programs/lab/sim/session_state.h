/* The state of a simulated session, and what the files of the simulator offer each other. Each file
 * calls only files below it in this list:
 *
 *   simulate.c       calls the policy and delivers frames
 *   pass_oracle.c    finds the oracle's split of a pass
 *   virtual_time.c   moves the clock and the engine's thread
 *   handout.c        gives rows to devices
 *   device_queue.c   holds the devices' queues and makes measurements
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_SESSION_STATE_H
#define COX_EXAMPLES_LAB_SIM_SESSION_STATE_H

#include "simulate.h"

enum {
    LAB_QUEUE_BANDS = 2, /* given to a device, their end not noticed yet */
    LAB_QUEUE_MAX = LAB_QUEUE_BANDS + 1,
    /* A frame has at most COX_BANDS_MAX bands and chunks. Each ends once. Each device is lost at
     * most once and returns the rows that it had. */
    LAB_RANGES_MAX = 2 * COX_BANDS_MAX + 2 * COX_DEVICES_MAX,
    LAB_MEASURED_MAX = 2 * COX_BANDS_MAX + 4 * COX_DEVICES_MAX,
};

/* Time that a device needs at least for work that is not done. */
#define LAB_LEAST_NS 1e-3

enum lab_kind {
    LAB_BAND,  /* of the split */
    LAB_CHUNK, /* granted by `next`, or taken over from a lost device */
    LAB_SHADOW /* only a measurement */
};

struct lab_range {
    uint32_t first_row;
    uint32_t rows;
};

struct lab_shape {
    uint32_t rows, row_alignment;
};

/* Which device did which rows of a pass. */
struct lab_done {
    uint32_t count;
    uint32_t rows; /* of the pass */
    struct cox_band bands[LAB_RANGES_MAX];
};

/* A frame under way, in one of its passes. All times of a `sim` are nanoseconds since `base_ns`.
 * From `rows` on, the fields describe the current pass. */
struct lab_run {
    bool open;
    uint64_t frame;
    struct lab_shape shapes[COX_PASSES_MAX];
    double submit_ns; /* the application submitted it */
    double began_ns;  /* its first pass */
    uint32_t pass;
    bool between; /* the pass before is done; `pass` begins at `ready_ns` */
    double ready_ns;
    struct lab_done done, before; /* of this pass, of the pass before */
    struct lab_done oracle;       /* rows of the oracle's devices in the pass before */

    uint32_t rows, row_alignment;
    struct cox_split split;
    double start_ns, end_ns;
    double split_ns;            /* start of the pass whose split it uses */
    uint32_t done_rows;         /* of bands whose end the engine has noticed */
    bool asks[COX_DEVICES_MAX]; /* the device will be offered rows of the pool */
    /* The first band of the split that may be the device's and is in no queue. */
    uint32_t bands_next[COX_DEVICES_MAX];
    uint32_t queued[COX_DEVICES_MAX];   /* bands and chunks in the device's queue */
    uint32_t launches[COX_DEVICES_MAX]; /* that began */
    /* 1 + index of the latest launch before which the thread was held up. */
    uint32_t stalled[COX_DEVICES_MAX];
    /* Since when the device may have bands of this frame; negative = not yet. */
    double eligible_ns[COX_DEVICES_MAX];
    struct lab_range pool[LAB_RANGES_MAX]; /* rows for the devices that are free first */
    uint32_t pool_next, pool_end;
    uint32_t launch_count;
    uint32_t bands_left; /* of the split, in no queue yet */
    uint32_t measured_count;
    struct cox_measurement measured[LAB_MEASURED_MAX];
    uint32_t measured_passes[LAB_MEASURED_MAX]; /* a shadow may be of another pass */
    struct lab_sim_frame *out;
};

struct lab_task {
    enum lab_kind kind;
    struct lab_run *run; /* a shadow may outlive its frame; this is then another one */
    struct lab_launch launch;
    double queued_ns; /* its waiting time begins here */
    double given_ns;  /* the device got it */
    bool begun;
    double since_ns;
    bool ended;
    double ended_ns;
    double known_ns; /* when a sleeping engine notices the end */
    double alone_ns; /* time left before the copy; all of it without a link */
    struct lab_link link;
};

struct lab_worker {
    bool alive;  /* it answers */
    bool usable; /* the session believes that it answers */
    uint32_t ask_in, ask_pause;
    double lost_ns; /* when the session takes it out of use; HUGE_VAL = never */
    uint32_t task_count;
    struct lab_task tasks[LAB_QUEUE_MAX]; /* in order: ended, running, waiting */
    double known_ns;                      /* when the end of its latest band was noticed */
    double busy_ns;                       /* since the latest delivery */
};

/* How the rows of one pass are split, frame after frame. */
struct lab_sharing {
    const struct lab_world *world;
    void *state;                              /* the policy's */
    double single_device_ns[COX_DEVICES_MAX]; /* of the warm-up, for `solo_rows` */
    uint32_t solo_rows;
    struct cox_split split; /* the latest */
    bool split_made;
    struct lab_oracle before; /* of the frame before */
    struct lab_oracle scratch;
    struct lab_done scratch_before; /* the pass before, for which `scratch` was found */
    double ended_ns;                /* the latest end of the pass that the policy knows */
};

struct lab_sim {
    const struct lab_world *world; /* of the first pass */
    const struct cox_policy *policy;
    const struct lab_sim_options *options;
    uint32_t pass_count;
    struct lab_sharing sharing[COX_PASSES_MAX];
    char *why;
    size_t why_bytes;

    struct lab_worker workers[COX_DEVICES_MAX];
    struct cox_sched_device devices[COX_DEVICES_MAX];
    bool warmed[COX_DEVICES_MAX]; /* the session has measured the device's solo time */
    struct cox_sched_view view;
    uint32_t order[COX_DEVICES_MAX]; /* devices, as the engine serves them */

    /* Frames under way: frame f is runs[f % run_count]. */
    struct lab_run *runs;
    uint32_t run_count;
    uint64_t started, delivered; /* frames */
    struct lab_sim_frame *out;   /* world->frames */

    double base_ns, now_ns;
    double delivered_ns; /* the latest delivery */
    double ended_ns;     /* the latest end of a delivered frame */
    double ready_ns;     /* when the next frame may start */
    bool asleep;         /* the engine's thread */
    double free_ns;      /* end of its latest action */
    double stall_ns;     /* how long that action was held up */
    double enqueue_ns;   /* what it took to enqueue a band */
};

static inline uint64_t lab_whole(double ns)
{
    if (!(ns >= 0 && ns < 1e19))
        return 0;
    return (uint64_t)(ns + 0.5);
}

static inline struct lab_run *lab_run_of(const struct lab_sim *sim, uint64_t frame)
{
    return &sim->runs[frame % sim->run_count];
}

/* --- pass_oracle.c --- */

/* The oracle's split of the run's current pass. Valid until the next call for this pass. */
const struct lab_oracle *lab_pass_oracle(struct lab_sim *sim, const struct lab_run *run);

/* Add to run->out what the oracle and the best single device need for the pass in this frame. */
void lab_pass_compare(const struct lab_sim *sim, const struct lab_run *run,
                      const struct lab_oracle *oracle);

/* The expected time of the pass if all devices finish the pool at the same time; negative if a band
 * is on a device that does not answer. */
double lab_pass_expected_ns(const struct lab_sim *sim, const struct lab_run *run);

struct cox_split lab_pass_oracle_split(const struct lab_sim *sim, const struct lab_oracle *oracle);

/* --- handout.c --- */

/* Give one device a band, or rows of a pool. Returns whether there was something to give. */
bool lab_handout_dispatch(struct lab_sim *sim);

/* Begin a pass with the split run->split: fill its pool and start its shadow. */
void lab_handout_begin(struct lab_sim *sim, struct lab_run *run);

/* Take the device out of use. Its running and waiting rows go to the pools. */
void lab_handout_lose(struct lab_sim *sim, uint32_t device);

/* From now on the device answers, or does not. */
void lab_handout_set_alive(struct lab_sim *sim, uint32_t device, bool alive);

/* The usable device that is fastest alone in the pass; device_count if all are lost. */
uint32_t lab_handout_best(const struct lab_sim *sim, uint32_t pass);

/* If no usable device is left, ask all devices at once. */
void lab_handout_ask_all_if_none(struct lab_sim *sim);

/* --- virtual_time.c --- */

/* The application submits its next frame earlier if a device is idle. */
void lab_time_note_idle(struct lab_sim *sim);

/* Whether the application submits a further frame once it has had its time. */
bool lab_time_may_start(const struct lab_sim *sim);

/* When it submits the next frame, if there is room. */
double lab_time_ready_ns(const struct lab_sim *sim);

/* Move devices and clock to the next event. False if nothing will ever happen again. */
bool lab_time_advance(struct lab_sim *sim);

/* Whether the engine's thread can act now: awake, free, and not kept from its core. */
bool lab_time_engine_awake(struct lab_sim *sim);

/* Notice the band that ended first. Returns whether there was one. */
bool lab_time_notice(struct lab_sim *sim);

/* --- device_queue.c --- */

/* The device's current task; NULL if it is idle. */
struct lab_task *lab_queue_running(struct lab_worker *worker);

/* Whether a shadow is in the queue and has not ended. */
bool lab_queue_has_shadow(const struct lab_worker *worker);

/* Whether the device may get a further band. */
bool lab_queue_has_room(const struct lab_worker *worker);

void lab_queue_add(struct lab_sim *sim, struct lab_run *run, uint32_t device, enum lab_kind kind,
                   double queued_ns, uint32_t first_row, uint32_t rows);
void lab_queue_remove(struct lab_worker *worker, uint32_t at);

/* Start the device's next task if it is idle. */
void lab_queue_begin_next(struct lab_sim *sim, uint32_t device);

/* Record a measurement. `end_ns`: when the task ended, or when the session gave it up. */
void lab_queue_measure(struct lab_sim *sim, const struct lab_task *task, double end_ns,
                       uint32_t flags);

/* Extra time of a launch for rows that other devices did in the pass before. */
double lab_queue_moved_ns(const struct lab_sim *sim, uint32_t pass, uint32_t pass_rows,
                          const struct lab_done *before, uint32_t device, uint32_t first_row,
                          uint32_t rows);

#endif
