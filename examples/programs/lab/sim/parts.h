/* What the files of the simulator share: simulate.c asks and tells the policy, handout.c gives rows to devices, queue.c
 * has their queues, machine.c the engine's thread and the time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_PARTS_H
#define COX_EXAMPLES_LAB_SIM_PARTS_H

#include "simulate.h"

enum {
    LAB_QUEUE_BANDS = 2, /* given to a device and not noticed to have ended */
    LAB_QUEUE_MAX = LAB_QUEUE_BANDS + 1,
    /* A frame has at most COX_BANDS_MAX bands and chunks, each of which ends once; each device is lost at most once and
     * gives back what it had. */
    LAB_RANGES_MAX = 2 * COX_BANDS_MAX + 2 * COX_DEVICES_MAX,
    LAB_MEASURED_MAX = 2 * COX_BANDS_MAX + 4 * COX_DEVICES_MAX,
};

enum lab_kind {
    LAB_BAND,  /* of the split */
    LAB_CHUNK, /* handed out by `next`, or taken from a device that was lost */
    LAB_SHADOW /* only to be measured */
};

struct lab_range {
    uint32_t first_row;
    uint32_t rows;
};

struct lab_shape {
    uint32_t rows, granule;
};

/* Rows of a pass and who did them. */
struct lab_done {
    uint32_t count, rows; /* of the pass */
    struct cox_band bands[LAB_RANGES_MAX];
};

/* A frame under way, in one of its passes. All times of a `sim` are nanoseconds since `base_ns`. */
struct lab_run {
    bool open;
    uint64_t frame;
    struct lab_shape shapes[COX_PASSES_MAX];
    double submit_ns; /* when the application handed it over */
    double began_ns;  /* its first pass */
    uint32_t pass;    /* the rest is this pass's */
    bool between;     /* it is done, and the next one begins at `ready_ns` */
    double ready_ns;
    struct lab_done done, before; /* `before`: of the pass before */
    struct lab_done oracle;       /* the oracle's rows, of the pass before */
    uint32_t rows, granule;
    struct cox_split split;
    double start_ns, end_ns;
    double split_ns;            /* when the pass began whose split it has */
    uint32_t done_rows;         /* of bands that the engine knows to have ended */
    bool asks[COX_DEVICES_MAX]; /* the device will be offered rows of the pool */
    uint32_t bands_next
        [COX_DEVICES_MAX]; /* of the split, the first that may be the device's and is not in a queue */
    uint32_t queued[COX_DEVICES_MAX];   /* bands and chunks in the device's queue */
    uint32_t launches[COX_DEVICES_MAX]; /* begun or in the queue */
    uint32_t stalled
        [COX_DEVICES_MAX]; /* of `launches` and `queued`: the thread has been held up before this one */
    double eligible_ns
        [COX_DEVICES_MAX]; /* since when the device may have bands of this frame; < 0 = it may not */
    struct lab_range pool[LAB_RANGES_MAX]; /* rows for the devices that are free first */
    uint32_t pool_next, pool_end;
    uint32_t launch_count;
    uint32_t bands_left; /* of the split, in no queue yet */
    uint32_t measured_count;
    struct cox_measurement measured[LAB_MEASURED_MAX];
    uint32_t measured_passes[LAB_MEASURED_MAX]; /* parallel: of a shadow, perhaps another */
    struct lab_sim_frame *out;
};

struct lab_task {
    enum lab_kind kind;
    struct lab_run *run; /* a shadow may outlive it: then it is another frame's */
    struct lab_launch launch;
    double queued_ns; /* its wait counts from here on */
    bool begun;
    double since_ns;
    bool ended;
    double ended_ns;
    double known_ns; /* when an engine that sleeps takes note of the end */
    double alone_ns; /* left before the copying; without a link all of it */
    struct lab_link link;
};

struct lab_worker {
    bool alive;  /* it answers */
    bool usable; /* the session thinks so */
    uint32_t ask_in, ask_pause;
    double
        lost_ns; /* when the session takes it out of use; HUGE_VAL = it answers, or has no rows */
    uint32_t task_count;
    struct lab_task
        tasks[LAB_QUEUE_MAX]; /* in order: those that ended, the one that runs, those that wait */
    double known_ns;          /* when the end of its latest band was noticed */
    double busy_ns;           /* since the latest frame was delivered */
};

/* How the rows of one pass of the frames are shared out. */
struct lab_sharing {
    const struct lab_world *world;
    void *state;                     /* the policy's */
    double solo_ns[COX_DEVICES_MAX]; /* of warm-up, for `solo_rows` */
    uint32_t solo_rows;
    struct cox_split split; /* the latest */
    bool split_made;
    struct lab_oracle before; /* of the frame before */
    struct lab_oracle scratch;
    struct lab_done scratch_before; /* for which `scratch` was found */
    double ended_ns;                /* the latest end of the pass that the policy was told */
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
    bool warmed[COX_DEVICES_MAX]; /* whether the session has seen the device's solo time */
    struct cox_sched_view view;

    /* Frames under way: frame f is runs[f % run_count]. */
    struct lab_run *runs;
    uint32_t run_count;
    uint64_t started, delivered; /* frames */
    struct lab_sim_frame *out;   /* world->frames */

    double base_ns, now_ns;
    double delivered_ns; /* when the latest frame was delivered */
    double ready_ns;     /* when the next frame may be started */
    bool asleep;         /* the engine's thread */
    double free_ns;      /* its latest action takes until then */
    double stall_ns;     /* that it was held up in it */
};

/* --- queue.c --- */

/* The band or shadow that the device is at; NULL if it has none. */
struct lab_task *lab_queue_running(struct lab_worker *worker);

/* Whether a shadow is in the queue, not ended. */
bool lab_queue_has_shadow(const struct lab_worker *worker);

/* More of a launch of these rows in this pass, since other devices did some of them in the pass before. */
double lab_queue_moved_ns(const struct lab_sim *sim, uint32_t pass, uint32_t pass_rows,
                          const struct lab_done *before, uint32_t device, uint32_t first_row,
                          uint32_t rows);

/* Whether a further band may be given to the device. */
bool lab_queue_has_room(const struct lab_worker *worker);

void lab_queue_remove(struct lab_worker *worker, uint32_t at);
void lab_queue_add(struct lab_sim *sim, struct lab_run *run, uint32_t d, enum lab_kind kind,
                   double queued_ns, uint32_t first_row, uint32_t rows);

/* The device begins what it has waiting, if it has nothing else to do. */
void lab_queue_begin_next(struct lab_sim *sim, uint32_t d);

/* `end_ns`: when it ended, or the session gave it up. */
void lab_queue_measure(struct lab_sim *sim, const struct lab_task *task, double end_ns,
                       uint32_t flags);

struct lab_run *lab_run_of(const struct lab_sim *sim, uint64_t frame);

/* What is left of work that is not done. */
#define LAB_LEAST_NS 1e-3

/* The device is taken out of use: what it is at, and what it has waiting, goes to the pools. What it ended, ended. */
void lab_machine_lose(struct lab_sim *sim, uint32_t d);

/* --- machine.c, handout.c --- */

/* The application has its core where a device has nothing to do. */
void lab_machine_note_idle(struct lab_sim *sim);

/* Whether the application hands over a further frame when it has the time. */
bool lab_machine_may_start(const struct lab_sim *sim);

/* Let devices and time go on to the next thing that happens. False if nothing ever will, which a world that keeps its
 * word does not do. */
bool lab_machine_advance(struct lab_sim *sim);

/* Whether the engine's thread can act now: it is awake, free, and not kept from its core. */
bool lab_machine_awake(struct lab_sim *sim);

/* Take note of the band that ended first, if there is one. Returns whether there was. */
bool lab_machine_notice(struct lab_sim *sim);

/* Give one device something to do: a band, or rows of a pool. Returns whether there was something. */
bool lab_machine_dispatch(struct lab_sim *sim);

/* A pass whose split is run->split begins: its pool, its shadow, what is known of its devices. */
void lab_machine_begin(struct lab_sim *sim, struct lab_run *run);

/* A device does not answer from now on, or does again. */
void lab_machine_set_alive(struct lab_sim *sim, uint32_t device, bool alive);

/* The usable device that is best alone in the pass; device_count if there is none. */
uint32_t lab_machine_best(const struct lab_sim *sim, uint32_t pass);

/* With no usable device left, all are asked at once. */
void lab_machine_ask_all_if_none(struct lab_sim *sim);

static inline uint64_t lab_whole(double ns)
{
    return ns >= 0 && ns < 1e19 ? (uint64_t)(ns + 0.5) : 0;
}

#endif
