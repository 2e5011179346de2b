/* The session engine: what happens to a frame between cox_session_submit and its callback. engine.c moves bands and
 * frames, engine_policy.c asks and tells the policy, engine_warmup.c times each device alone, engine_spare.c keeps the second
 * set of buffers, on which engine_shadow.c measures, engine_late.c has late bands done again and engine_verify.c checks;
 * engine_health.c takes devices out and brings them back.
 *
 * Who may touch what. An application thread owns a slot from taking it (under `lock`) until it pushes the slot's request;
 * from then until the slot is put back (under `lock`) it is the engine's. `units`, the policy state, `order` and everything
 * below the line "engine only" is touched under the runtime's guard alone while a frame is under way.
 * `lock` guards what is above that line, and what cox_session_info reads. It is a leaf: no callback and no backend
 * call runs under it.
 *
 * A frame's slot goes FREE -> (application fills it) -> request -> RUNNING -> delivered -> FREE.
 * A band goes PENDING -> RUNNING (occupies a lane of its unit) -> DONE, or FAILED, which adds PENDING bands on
 * other units for the same rows. A frame's pool is rows without a band: what a unit takes of it becomes PENDING bands.
 * While no unit is usable, PENDING bands wait on one that is not.
 *
 * A RUNNING band that is late gets stand-ins: bands of the same frame on the spare buffers. Whoever is done first counts; the
 * other FAILS, and a lane that is still at a band that does not count is a straggler: neither frame nor band knows of it any more,
 * but the memory that it may write to is in use until it has ended, or has been given up.
 *
 * A unit that is lost leaves its struct cox__unit and its lanes behind as a wreck, to be destroyed once they have ended, or have
 * been given up, and gets new ones when its device works again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_ENGINE_H
#define COX_RUNTIME_ENGINE_H

#include "backend.h"
#include "guard.h"
#include "log.h"
#include "loop.h"
#include "pipeline.h"
#include "topology.h"
#include "warden.h"

#include <pthread.h>
#include <semaphore.h>

struct cox_runtime {
    struct cox__log log;
    char *cache_dir;                /* NULL = nothing is kept from run to run */
    struct cox__topology *topology; /* NULL over a backend that is not OpenCL */
    struct cox__backend *backend;
    struct cox__loop *loop;
    struct cox__mpsc jobs;         /* finished jobs, posted by the backend */
    struct cox__mpsc requests;     /* frames and detachments, from application threads */
    _Atomic uint64_t next_step_ns; /* when the scheduler thread looks again without being woken; UINT64_MAX = never */

    /* One of the threads that wait in cox_session_run takes the devices' posts itself: `runner` says that it is there. */
    atomic_bool runner;
    sem_t runner_wake;

    /* Held while the engine moves: by the scheduler thread for a step, by a thread inside cox_session_run for what it does
     * in its place. */
    struct cox__guard *guard;
    struct cox__mpsc_node *posts; /* jobs and requests that were taken off their queues and not seen to yet */
    struct cox__mpsc_node *arrivals;
    bool interrupted;           /* the guard was seized: units may not have been flushed */
    uint64_t active_ns;         /* when the last step did something */
    struct cox_session *active; /* sessions that have had a frame, linked by next_active */
    atomic_uint wild;           /* stragglers of all sessions, and haunts */
    struct cox__haunt *haunts;  /* memory that devices which were given up may still use */

    bool draining; /* somebody waits for stragglers, to free memory */

    struct cox__warden *warden;
};

struct cox__haunt {
    struct cox__haunt *next;
    struct cox__mem *mem;
};

struct cox_buffer {
    struct cox_runtime *runtime;
    struct cox__mem *mem;
};

/* Those of the split, what is done again of them, what is checked of them. */
enum { COX__SLOT_BANDS_MAX = 4 * COX_BANDS_MAX };

enum cox__band_state { COX__BAND_PENDING, COX__BAND_RUNNING, COX__BAND_DONE, COX__BAND_FAILED };

struct cox__band_run {
    enum cox__band_state state;
    bool chunk;         /* handed out by the policy's `next` to a unit that had a band of the frame before */
    bool spare;         /* works on the spare buffers */
    bool check;         /* spare: only to be compared; else it counts instead of `origin` */
    bool checked;       /* has been compared, or is not to be */
    uint32_t origin;    /* spare: the band whose rows, or part of them, it does */
    uint32_t stand_ins; /* spare bands that have to be done for it */
    void *partials;     /* REDUCE results, all bindings one after the other; kept for later frames */
};

struct cox__slot;

struct cox__request {
    struct cox__mpsc_node node;
    struct cox_session *session;
    struct cox__slot *slot; /* NULL = detach the session */
};

/* What a slot's bands are for. */
enum cox__slot_kind { COX__SLOT_FRAME, COX__SLOT_WARMUP, COX__SLOT_SHADOW };

enum cox__dispute_stage {
    COX__DISPUTE_NONE,
    COX__DISPUTE_THIRD, /* a third device does the rows */
    COX__DISPUTE_FIRST, /* there is none: the device whose band it is does them again, */
    COX__DISPUTE_SECOND /* then the one that checked it */
};

/* Two devices disagree about a band of a frame. */
struct cox__dispute {
    enum cox__dispute_stage stage;
    uint32_t band;
    uint32_t first_row; /* of the rows in question */
    uint32_t rows;
    uint32_t rival; /* the unit that checked it */
    bool repeated;  /* the band's unit gives the same rows again */
    bool open;      /* nobody has told yet who is right */
    unsigned char of_band[32];
    unsigned char of_rival[32];
};

struct cox__slot {
    struct cox__request request;
    struct cox__slot *next_free;

    uint64_t index;
    uint64_t submit_ns;
    struct cox__mem *mems[COX_BINDINGS_MAX];
    unsigned char params[COX_PARAMS_MAX];
    cox_done_fn *done;
    void *user;

    enum cox__slot_kind kind;
    bool started;
    bool awaited; /* by cox_session_run: no callback of the application's */
    cox_status status;
    uint64_t start_ns;
    uint64_t end_ns;
    enum cox_reason reason;
    uint64_t predicted_ns;
    uint64_t rival_ns;
    double joules;
    uint32_t pool_rows;      /* that the split left to be handed out */
    uint32_t pool_first_row; /* of what is still there: */
    uint32_t pool_left;
    uint32_t declined;                 /* a bit for each unit: wants nothing of the pool */
    uint32_t served;                   /* a bit for each unit: has had a band */
    struct cox_band shadow;            /* wished for, not begun; rows 0 = none */
    uint32_t at_work[COX_DEVICES_MAX]; /* bands that are PENDING or RUNNING, by unit */
    uint32_t unfinished;               /* their sum */
    bool verified;                     /* its bands have been sampled */
    struct cox__dispute dispute;
    uint32_t band_count;
    struct cox__band_run bands[COX__SLOT_BANDS_MAX];
    struct cox_band_report reports[COX__SLOT_BANDS_MAX]; /* parallel to bands */
};

struct cox__lane {
    struct cox__job job;
    bool busy;
    bool near;       /* the answer cannot be far: ask again soon */
    bool planned;    /* flushed: its deadlines are set */
    bool late;       /* past `due_ns` */
    bool urgent;     /* late, and its unit is stalled or lost: stand-ins at any price */
    bool distrusted; /* its unit gives wrong rows: what it is at does not count */
    bool straggler;  /* at a band that does not count any more: job.slot and job.band mean nothing */
    bool on_spare;
    uint32_t unit;  /* of the session */
    uint32_t polls; /* times asked */
    uint64_t frame;
    struct cox__wreck *wreck; /* that it is part of; NULL = it is the unit's */
    uint64_t submit_ns;
    uint64_t poll_ns;  /* when to ask the device even though nothing was posted */
    uint64_t end_ns;   /* when it should have ended */
    uint64_t limit_ns; /* from when it could begin until it is late */
    uint64_t due_ns;   /* it is late then; if it is, when to look for stand-ins again */
    uint64_t give_up_ns;
    struct cox__mem *mems[COX_BINDINGS_MAX]; /* what the job works on, whatever becomes of the frame */
    unsigned char params[COX_PARAMS_MAX];
};

/* What a lost unit leaves behind. */
struct cox__wreck {
    struct cox__wreck *next;
    struct cox_session *session;
    struct cox__unit *unit;
    struct cox__lane *lanes;
    uint64_t room_ns; /* until then its device is not tried again beside it */
    /* A thread is kept in a driver call about the unit, of which nothing may be asked meanwhile. */
    struct cox__captive *captive;
    bool unflushed;
    bool given_up;
    bool sent; /* to the warden */
    atomic_bool buried;
};

/* A try to make a lost unit anew, on the warden's thread. */
struct cox__probe {
    struct cox_session *session;
    uint32_t device;
    struct cox__unit *unit; /* results, once `done` */
    uint32_t max_rows;
    cox_status status;
    atomic_bool done;
};

/* Who may hold the guard. */
enum cox__role {
    COX__ROLE_LOOP,   /* the scheduler thread */
    COX__ROLE_HELPER, /* one inside cox_session_run, before it waits */
    COX__ROLE_RUNNER  /* the one that takes the devices' posts while it waits */
};

/* How long a device's bands have been seen to take, as an affine function of their rows: exponential means. */
struct cox__ask {
    double rows;
    double ns;        /* 0 = nothing seen */
    double rows_rows; /* mean square and mean product of the distances from those means */
    double rows_ns;
};

/* One device in one session. */
struct cox__session_unit {
    struct cox__unit *unit;
    uint32_t device; /* index in the runtime */
    struct cox_device_info info;
    uint32_t max_rows;
    bool usable; /* guarded by lock, like all to `returned`: health is good */
    uint64_t solo_ns;
    enum cox_health health;
    uint32_t late;
    uint32_t lost;
    uint32_t returned;
    bool blocks_in_submit; /* runs kernels inside the enqueue call: comes last */
    bool unflushed;
    uint64_t last_end_ns; /* when its last band ended */
    /* NVIDIA's driver calls back up to 20 ms late: such a device is asked when its band should be over. */
    bool ask;
    struct cox__ask asked;
    double leeway;              /* late only after so many times the usual; grows with false alarms */
    uint32_t ended;             /* bands since the unit was made */
    uint32_t overtaken;         /* bands in a row that were so late that they did not count */
    struct cox__wreck *remains; /* made in time */
    struct cox__lane *lanes;    /* NULL = it is lost */
    struct cox__probe *probe;
    uint64_t probe_ns; /* when to try it again */
    uint64_t pause_ns; /* between the last two tries */
    uint64_t back_ns;  /* when it came back last */
    uint64_t done_ns;  /* when a band of it was done last */
    bool proving;      /* made anew; must show on the spare buffers that it works */
};

/* Warm-up runs: for each unit a first run that compiles, then timed ones. */
struct cox__warmup {
    bool finished;
    uint32_t unit;
    uint32_t run;
    uint64_t spent_ns;  /* in timed runs of this unit */
    uint64_t submit_ns; /* how long submitting the run under way took */
    struct cox__slot *slot;
    bool owns_mem[COX_BINDINGS_MAX]; /* the slot works on a private copy of this binding */
};

enum cox__spare_stage { COX__SPARE_NONE, COX__SPARE_BEING_MADE, COX__SPARE_READY, COX__SPARE_UNAVAILABLE };

/* A second set of frame buffers, made at the first use, on which devices can do rows beside the frame's. It serves one frame,
 * or one shadow, at a time. */
struct cox__spare {
    _Atomic enum cox__spare_stage stage; /* while it is being made, `mems` are the warden's */
    struct cox__mem *mems[COX_BINDINGS_MAX];
    const struct cox__slot *owner; /* whose rows are in it, while `users` is not 0, */
    uint64_t frame;                /* and which frame that is */
    uint32_t users;                /* bands that are to be done on it or have results there, and stragglers */
    bool whole;                    /* the tables are copied */
    bool haunted;                  /* a device that was given up may still write to it: to be made anew */
    uint32_t made;                 /* so many times */
    uint64_t wait_ns;              /* while it is being made: until when frames wait for it */
};

/* A band on the spare buffers that no frame waits for. */
struct cox__shadow {
    struct cox__slot *slot; /* NULL = none yet */
    bool busy;              /* counted in `under_way` */
    bool proof;             /* of a unit made anew */
    bool compare;           /* its rows must have this digest */
    unsigned char digest[32];
    uint32_t unit; /* that is at work on it */
};

/* What recall.c knows of a session; set by create, read by destroy and cox_session_info. */
struct cox__recall {
    bool on;       /* what the session measures is to be kept */
    bool recalled; /* it began with what an earlier one measured */
    uint32_t order[COX_DEVICES_MAX];
    unsigned char key[32];
};

struct cox_session {
    struct cox_runtime *runtime;
    struct cox__pipeline pipeline;
    struct cox_policy policy;
    void *policy_state;
    uint32_t min_band_rows;
    uint32_t in_flight;
    cox_report_fn *report;
    void *report_user;
    cox_meter_fn *meter;
    void *meter_user;
    double verify;
    uint64_t give_up_ns;
    size_t partial_bytes; /* of all REDUCE bindings */
    uint32_t unit_count;
    uint32_t lane_count; /* of each unit */
    struct cox__session_unit units[COX_DEVICES_MAX];
    struct cox__recall recall;

    pthread_mutex_t lock;
    pthread_cond_t slot_free; /* for submitters */
    pthread_cond_t delivered; /* a callback has returned, or the session was detached */
    struct cox__slot *slots;
    struct cox__slot *free_slots;
    uint64_t next_index;
    uint32_t under_way; /* submitted frames whose callback has not returned, and a shadow whose report has not */
    uint64_t frames_done;
    bool settle;
    bool no_backup;
    bool dead; /* no device has been usable for as long as one is waited for */
    bool detached;

    /* engine only */
    bool attached;
    bool any_blocks; /* some unit runs kernels inside the enqueue call */
    bool has_last_split;
    bool closing;        /* nothing is begun any more */
    bool trouble;        /* some unit is not good, or there are stragglers, wrecks, probes or late bands */
    bool verify_refused; /* said that there is nobody to check a band */
    uint32_t order_first;
    uint32_t order_count;
    uint32_t stragglers;
    struct cox_session *next_active;
    struct cox__warmup warmup;
    struct cox__slot *order[COX_IN_FLIGHT_MAX]; /* ring of frames in submission order */
    struct cox_split last_split;
    uint64_t refused_splits;
    uint64_t refused_grants;
    uint64_t delivered_end_ns; /* latest end of a delivered frame */
    double meter_joules;       /* read when the part of the time began that belongs to the oldest frame under way */
    struct cox__spare spare;
    struct cox__shadow shadow;
    struct cox__wreck *wrecks;
    uint64_t deserted_ns; /* when the last usable unit was lost; 0 = a band has been done since */
    struct cox_band_report sorted[COX__SLOT_BANDS_MAX];
};

/* One step of the scheduler thread over every session; the loop's `step`. */
uint64_t cox__engine_step(void *runtime);

/* A driver call about the unit does not return; the guard's `seized` and `after`. */
void cox__engine_seized(void *runtime, void *session, void *unit, int role, struct cox__captive *captive);
void cox__engine_seized_since(void *runtime);

/* What the policy sees. Fills `devices` (COX_DEVICES_MAX) and points `view` to it. */
void cox__engine_view(const struct cox_session *session, uint64_t frame, struct cox_sched_device *devices,
                      struct cox_sched_view *view);

/* Give the policy what an earlier session knew, a model for each unit: after its init, before the first frame. False = it
 * takes none. */
bool cox__engine_recall(struct cox_session *session, const struct cox_device_model *models);

/* Ask the policy what it knows, a model for each unit: while nothing is under way. False = it tells nothing. */
bool cox__engine_models(const struct cox_session *session, struct cox_device_model *models);

/* Give a unit of the session a backend's unit and lanes. Errors: COX_E_DEVICE_MEMORY (its bands would be too many), COX_E_NOMEM;
 * then it has neither, and `made` stays the caller's. While no other thread knows the session, or by the engine. */
cox_status cox__unit_install(struct cox_session *session, uint32_t unit, struct cox__unit *made, uint32_t max_rows);

/* Free the spare buffers. When nothing is under way, the units are gone and the engine does not know the session any more. */
void cox__engine_drop_spare(struct cox_session *session);

/* The same for what warm-up made for itself and could not free. */
void cox__engine_drop_warmup(struct cox_session *session);

/* Have nothing begun any more, and wait until nothing of the session is under way on a device or with the warden: no straggler,
 * wreck or probe. False: some driver call does not return; what the session owns must stay. Not from the scheduler thread. */
bool cox__engine_close(struct cox_session *session);

/* Destroy memory that no frame uses: waits for stragglers that may write to it, and gives it up where a device that was given
 * up may. Not from the scheduler thread. */
void cox__engine_drop_mem(struct cox_runtime *runtime, struct cox__mem *mem);

/* Post a finished job; the backend's `post`. */
void cox__engine_post(void *runtime, struct cox__job *job);

/* Hand a request to the scheduler thread. Returns whether the thread must be woken for it. Any thread. */
bool cox__engine_request(struct cox_runtime *runtime, struct cox__request *request);

/* Do for the scheduler thread what it would do with the requests that are queued, up to handing bands to the devices, and
 * wake it if there is more to do than to wait for them. Spares a caller that waits anyway a change of threads. Not from
 * the scheduler thread. */
void cox__engine_help(struct cox_runtime *runtime);

/* Wait until `*done`, taking the devices' posts in the scheduler thread's place. False, before that, if another thread does so, or
 * this one was kept by a driver for too long. Not from the scheduler thread. */
bool cox__engine_await(struct cox_runtime *runtime, atomic_bool *done);

/* Some thread's `*done` has been set. */
void cox__engine_awaited(struct cox_runtime *runtime);

#endif
