/* The engine's data: runtime, session, frames, bands, devices and their queues, with the states
 * that each goes through. The parts of a session are in session_parts.h.
 *
 * Ownership. An application's thread takes a frame slot (under `lock`) and owns it until it
 * pushes the slot's request. From then on the engine owns the slot, until the slot is put back
 * (under `lock`).
 * Only the thread that holds the engine lock (engine/failure/watchdog.h) touches what is marked
 * "engine only". It is the scheduler thread, a thread inside cox_session_run, or the watchdog's
 * thread after it has revoked the lock.
 *
 * A session's `lock` guards what is marked "guarded by `lock`", and the fields of a device that
 * cox_session_info reads. It is a leaf: no callback and no backend call runs under it.
 *
 * Each state is an enum. One function changes it and knows the legal changes (transitions.c). A
 * vote's state is changed by verify.c alone.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_STATE_H
#define COX_ENGINE_STATE_H

#include "base/log.h"
#include "backend.h"
#include "host/loop.h"
#include "host/topology.h"
#include "engine/failure/watchdog.h"
#include "host/worker.h"
#include "pipeline.h"
#include "session_parts.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

/* ---- bands ---- */

/* Room for the bands of a pass's split, for repeats after failures, and for checks. */
enum { COX__PASS_BANDS_MAX = 4 * COX_BANDS_MAX };

/*            submitted            flushed
 *   PLANNED ---------> QUEUED ---------> RUNNING ----> DONE
 *    |   ^               |  |               |  |        |
 *    |   '- refused -----'  '-------------->|--'        | its device is found to compute wrongly
 *    v                      v               v           v
 *   FAILED <--------------------------------------------'
 *
 * A failed band never runs again: its rows become a new band. */
enum cox__band_state {
    COX__BAND_PLANNED, /* waits for a queue slot of its device */
    COX__BAND_QUEUED,  /* enqueued, not flushed yet */
    COX__BAND_RUNNING, /* flushed: the device may have begun it, and its deadline is set */
    COX__BAND_DONE,    /* its rows are written */
    COX__BAND_FAILED   /* its rows do not count */
};

enum cox__band_kind {
    COX__BAND_ROWS, /* rows of the frame */
    /* Rows of the frame that the policy's `assign` gave to a device which already had a band. */
    COX__BAND_CHUNK,
    COX__BAND_CHECK, /* the rows of `origin` again, on the spare buffers, only for comparison */
    /* Transfers, which do no rows of the pass: */
    COX__BAND_FETCH,   /* copies rows from its device to host memory; see residency.h */
    COX__BAND_PUSH,    /* copies rows from host memory to a buffer on its device; see home.h */
    COX__BAND_ACQUIRE, /* acquires a buffer on its device, */
    COX__BAND_RELEASE  /* or releases it */
};

/* The engine's data of a band. Its report is in the parallel struct cox_band_report. */
struct cox__band {
    enum cox__band_state state;
    enum cox__band_kind kind;
    uint32_t pass;
    /* COX__BAND_CHECK: the band whose rows are done again, all or some; transfers: binding */
    uint32_t origin;
    uint32_t moved_first, moved_count; /* transfers: buffer rows of that binding */
    bool checked;                      /* was compared, or needs no check */
    void *partials; /* REDUCE results, all bindings one after the other; kept for later frames */
};

/* ---- frames ---- */

struct cox__frame;

/* The purpose of a frame slot's bands. */
enum cox__frame_kind { COX__FRAME_OF_APPLICATION, COX__FRAME_WARMUP, COX__FRAME_SHADOW };

/* If two devices disagree about a band, a vote decides what is faulty: the band's owner, its peer,
 * or the kernel. verify.c has the table.
 *
 *   NONE -> WAITING -> OWNER -> PEER -> NONE
 *                                 '---> THIRD or AGAIN -> NONE
 *   OWNER, PEER, THIRD, AGAIN -> UNDECIDED (the voter was lost) -> NONE (a new check agrees), or a
 *                                                                  new vote */
enum cox__vote_state {
    COX__VOTE_NONE,
    COX__VOTE_WAITING, /* until no other band uses the spare buffers */
    COX__VOTE_OWNER,   /* the band's owner repeats the rows, */
    COX__VOTE_PEER,    /* then its peer, */
    COX__VOTE_THIRD,   /* a third device, */
    COX__VOTE_AGAIN,   /* or the device of the two that has contradicted itself */
    COX__VOTE_UNDECIDED
};

/* The results that a vote compares, in the order in which devices compute them. */
enum cox__vote_run {
    COX__RUN_OWNER,
    COX__RUN_PEER,
    COX__RUN_OWNER_AGAIN,
    COX__RUN_PEER_AGAIN,
    COX__RUN_LAST, /* in state THIRD or AGAIN */
    COX__RUNS
};

struct cox__vote {
    enum cox__vote_state state;
    uint32_t band;
    uint32_t first_row; /* the rows in question */
    uint32_t rows;
    uint32_t peer;       /* the device that checked the band */
    uint32_t voter;      /* the device that repeats the rows now */
    bool lost;           /* one of the two could not repeat its result */
    size_t bytes;        /* of one result: its rows, then its partials */
    size_t row_bytes;    /* of its rows */
    unsigned char *runs; /* COX__RUNS results, one after the other; NULL = no vote */
};

struct cox__relocation;

/* Which rows of a frame are where. Engine only; residency.c edits it. */
struct cox__held {
    bool keeps; /* devices keep rows of the frame from pass to pass */
    uint32_t device_count;
    uint32_t count;
    struct cox__row_set *rows; /* by binding and place; NULL = the session keeps no rows */
    /* The rows of bindings that stay, in place of those in `rows`; NULL = it does not stay, or not
     * in this frame. */
    struct cox__kept *kept[COX_BUFFERS_MAX];
    bool write_through; /* everything that is written is copied out */

    /* Bindings whose buffer lies on a device, a bit for each; by home.c. */
    uint32_t homed;
    uint32_t home[COX_BUFFERS_MAX]; /* that device, of the session */
    uint32_t to_acquire;            /* of them: must be acquired before any band uses them */
    uint32_t to_release;            /* of them: were acquired */
    bool read_through;              /* all that bands read is copied to the host's memory first */
};

/* Rows of the pass under way that the policy assigns while the pass runs. Engine only; policy.c
 * edits it. frame.c notes which devices are served. The files that end a pass early (recover.c,
 * residency.c) empty it. */
struct cox__frame_pool {
    uint32_t first_row; /* the first row that is still in the pool */
    uint32_t left;      /* rows that are still in the pool */
    uint32_t declined;  /* a bit for each device that takes no more rows of the pool */
    uint32_t served;    /* a bit for each device that got a band */
};

/* A frame slot: one frame from cox_session_submit to its callback. */
struct cox__frame {
    struct cox__request request;
    struct cox__frame *next_free;
    const struct cox__pipeline *pipeline; /* the session's */

    uint64_t index;
    uint64_t submit_ns;
    uint64_t deadline_ns; /* for its delivery, from submit_ns; 0 = none */
    uint64_t expiry_ns;   /* no band of it starts after this; UINT64_MAX = no expiry */
    uint64_t number;      /* in the order of submission to the runtime */
    cox_buffer *buffers[COX_BUFFERS_MAX]; /* of an application's frame */
    /* The frame's turn for each buffer: a number, see cox_buffer. Set when the engine receives the
     * frame. */
    uint64_t turns[COX_BUFFERS_MAX];
    struct cox__relocation *relocation; /* under way; NULL = none */
    /* the buffers' memory when the frame started, or after its relocation */
    struct cox__mem *mems[COX_BUFFERS_MAX];
    struct cox__mem *scratch[COX_BUFFERS_MAX]; /* the frame slot's own, for scratch bindings */
    unsigned char params[COX_CONSTANTS_BYTES_MAX];
    /* as the application gave them; only in sessions with several passes */
    unsigned char given_params[COX_CONSTANTS_BYTES_MAX];
    cox_done_fn *done;
    void *user;
    bool awaited; /* a thread in cox_session_run waits for it: the application has no callback */
    /* It computes nothing, but brings the rows of its only buffer to the host's memory. */
    bool fetch;

    uint32_t set; /* number of the frame slot: devices have separate memory for each */
    struct cox__held held;

    enum cox__frame_kind kind;
    bool started;
    cox_status status;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t delivered_ns;
    double joules;

    uint32_t pass;       /* the one under way */
    uint32_t first_band; /* of that pass */
    /* Of a split's bands. It grows when the frame starts over. */
    uint32_t attempt;
    /* Rows of an earlier pass are wrong or lost: the frame starts over when its bands have
     * ended. */
    bool again;
    struct cox_pass_report passes[COX_PASSES_MAX]; /* up to the one under way */

    struct cox__frame_pool pool;
    struct cox_band shadow; /* the shadow run that the split asks for; rows 0 = none, or begun */

    /* bands that are PLANNED, QUEUED or RUNNING, by device, without transfers */
    uint32_t at_work[COX_DEVICES_MAX];
    uint32_t unfinished; /* their sum, with transfers */
    bool sampled;        /* the bands to check were drawn */
    struct cox__vote vote;
    uint32_t band_count; /* of all passes so far, the earlier ones first */
    uint32_t band_max;
    struct cox__band *bands;
    struct cox_band_report *reports; /* parallel to bands */
};

/* ---- queues ---- */

struct cox__queue;

/*   FREE -> BUSY -> FREE
 *             '--> ORPHANED -> FREE (the command did end)
 *                     '------> ABANDONED, until the queue is gone */
enum cox__slot_state {
    COX__SLOT_FREE,
    COX__SLOT_BUSY, /* holds a band of a device that takes part */
    /* Holds a band of a lost device. It counts if it ends in time and used no kept rows. */
    COX__SLOT_ORPHANED,
    COX__SLOT_ABANDONED /* holds no band any more, but the device may still touch `mems` */
};

/* One band at a time on a device. */
struct cox__queue_slot {
    struct cox__job job;
    struct cox__queue *queue;
    enum cox__slot_state state;
    bool on_spare;
    uint64_t frame_index;
    uint64_t submit_ns;
    uint64_t poll_ns;  /* when to poll even though the device posted nothing */
    bool posted_early; /* the post came before the event's status: the band is about to end */
    uint64_t end_ns;   /* when the band should end */
    uint64_t limit_ns; /* time limit, from when the band can begin */
    uint64_t deadline_ns;
    /* Slots whose bands were submitted earlier, have not ended, and copy rows that this band may
     * read; a bit for each. */
    uint32_t copiers;
    uint64_t run_queue_delay_ns; /* the watchdog's count when the deadline was last set */
    uint64_t grace_ns;           /* how far the deadline was moved */
    bool spared;                 /* it was moved because the device is the only one */
    /* Copies, because a stuck thread must not read a frame that has moved on. */
    struct cox__mem *mems[COX_BUFFERS_MAX]; /* NULL = the band's pass does not touch the binding */
    uint32_t written;                       /* bindings that the band writes, a bit for each */
    unsigned char params[COX_CONSTANTS_BYTES_MAX];
};

/*   LIVE -> DRAINING -> DESTROYING -> GONE
 *               '-> ABANDONED -'
 *
 * Back from DESTROYING to ABANDONED: the worker thread could not take the task. A lost queue is on
 * the session's list, or on the runtime's when the session is gone, until it is GONE. */
enum cox__queue_state {
    COX__QUEUE_LIVE,     /* belongs to its device */
    COX__QUEUE_DRAINING, /* its device is lost; its bands may still end */
    /* A band missed its last deadline: the engine waits for none of its bands any more. It stays so
     * while a thread is inside the driver. */
    COX__QUEUE_ABANDONED,
    COX__QUEUE_DESTROYING, /* the worker thread destroys the instance */
    COX__QUEUE_GONE
};

/* A device instance (the backend's part of one device in one session) and its queue slots. */
struct cox__queue {
    /* changed from DESTROYING to GONE by the worker thread, or by a device's thread */
    _Atomic enum cox__queue_state state;
    /* in the session's list of lost queues, or later in the runtime's */
    struct cox__queue *next;
    struct cox_runtime *runtime;
    struct cox_session *session; /* NULL = it was destroyed in the meantime */
    uint32_t device;             /* of the session */
    uint32_t slot_count;
    struct cox__instance *instance;
    struct cox__queue_slot *slots;
    bool unflushed;
    bool unfinished; /* a job of it may have parts that are not enqueued yet */
    bool convicted;  /* the device computes wrongly: the queue's remaining bands do not count */
    /* The thread that is stuck in a driver call of the instance; NULL = none. Until it returns, do
     * not call the instance. */
    struct cox__stuck_thread *stuck;
    uint64_t rebuild_after_ns; /* until then the device gets no second instance */
};

/* ---- devices ---- */

/* Observed times of a device's bands, as an affine function of their rows: exponential means. */
struct cox__timing {
    double rows;
    double ns;        /* 0 = nothing observed */
    double rows_rows; /* mean square and mean product of the distances from those means */
    double rows_ns;
    double least_rows; /* of the band with the least time per row */
    double least_ns;
};

/* The engine's knowledge of a device in one pass. */
struct cox__device_pass {
    struct cox__timing timing;
    uint32_t ended; /* bands since the device's instance was made */
    bool agreed;    /* another device has confirmed a band of it; by verify.c */
    /* Guarded by the session's lock: */
    uint32_t max_rows;
    uint64_t single_device_ns;
};

/* A device's instance that a worker thread creates. */
struct cox__device_init {
    struct cox_session *session;
    uint32_t device; /* of the runtime */
    uint32_t slot_count;
    bool fresh;                     /* on a new context */
    struct cox__instance *instance; /* results, once `done` */
    uint32_t max_rows[COX_PASSES_MAX];
    cox_status status;
    atomic_bool done;
};

/* One device in one session. Its state is enum cox_device_state (session.h):
 *
 *        the first
 *   JOINING --> ACTIVE --> DRAINING --> QUARANTINED <--> REBUILDING --> PROBATION --> ACTIVE
 *    |  |                                                              ^  '--> DRAINING
 *    |  '---- the others ----------------------------------------------'
 *    v
 *   ABSENT
 */
struct cox__device {
    struct cox__queue *queue; /* NULL = it is lost */
    uint32_t device;          /* index in the runtime */
    uint32_t slot_count;      /* of its queues */
    /* Guarded by the session's lock: */
    struct cox_device_info info;
    enum cox_device_state state;
    uint32_t lost;
    uint32_t returned;

    uint64_t enqueue_ns;   /* usual time of enqueueing a part of a band */
    bool blocks_in_submit; /* runs kernels inside the enqueue call: its bands are submitted last */
    uint32_t resident;     /* bindings of which its instance keeps rows, a bit for each */
    /* its driver's callbacks come late (20 ms with NVIDIA), so the engine polls */
    bool polled;
    struct cox__device_pass passes[COX_PASSES_MAX];
    uint64_t longest_ns; /* the device's longest band in this session, without first launches */
    uint64_t last_end_ns;
    uint64_t last_done_ns;
    struct cox__device_init *making;
    cox_status join_status; /* why it is ABSENT */
    bool overran;           /* it was lost because of its timeout; edited by reaper.c */
    uint64_t retry_ns;      /* when to rebuild it */
    uint64_t pause_ns;      /* between the last two retries: the back-off */
    uint64_t return_ns;     /* when it last came back */
};

/* The session's devices. Engine only, except for the fields of a device that the lock guards: the
 * engine changes those under the lock and reads them without. The list is complete before another
 * thread knows the session. The heads of device.c, making.c, timing.c and warmup.c say which fields
 * they own. */
struct cox__devices {
    uint32_t count;
    bool any_blocks; /* some device runs kernels inside the enqueue call; edited by warmup.c */
    struct cox__device list[COX_DEVICES_MAX];
};

/* ---- session and runtime ---- */

struct cox__check;

/* One of the threads in cox_session_run may take the devices' posts: the inline poller. Atomic;
 * engine.c edits it. */
struct cox__inline_poller {
    atomic_bool present;
    _Atomic uint64_t due_ns; /* its next poll; UINT64_MAX = none */
    sem_t wake;
};

/* Queues and memory that remain of lost devices and destroyed sessions. Only a thread that holds
 * the engine lock may touch them, except `abandoned`. reaper.c edits the queues, memory.c the
 * memory. */
struct cox__lost {
    struct cox__queue *gone;  /* queues that reaper.c will free */
    struct cox__queue *stray; /* queues of sessions that were destroyed */
    atomic_uint abandoned;    /* queues with ABANDONED slots; read without the lock */
    struct cox__mem *kept;    /* unused memory that a lost device may still touch; see memory.c */
};

/* Unused memory that the worker thread will destroy. Guarded by its own lock, a leaf; memory.c
 * edits it. */
struct cox__release {
    pthread_mutex_t lock;
    pthread_cond_t given_back; /* frames do not use some buffers any more; from buffers.c */
    struct cox__mem *list;
    bool has_task;    /* a release task is under way */
    bool in_released; /* it is inside an application's `released` function, */
    pthread_t thread; /* on this thread */
};

struct cox__import;

/* DMA-BUFs of which the application has buffers. Guarded by its own lock, a leaf; api/import.c
 * edits it. */
struct cox__imports {
    pthread_mutex_t lock;
    struct cox__import *list;
};

/* What the application has not destroyed yet. Atomic; api/ counts. */
struct cox__alive {
    atomic_uint sessions;
    atomic_uint buffers;
};

/* A session is a composition of parts: one struct for each feature. Give a function the part that
 * it works on. */
struct cox_session {
    struct cox_runtime *runtime;

    /* constant once other threads know the session */
    struct cox__settings settings;
    struct cox__pipeline pipeline;
    struct cox__profile profile;
    struct cox__check *check; /* check/check.h; NULL = no check mode */

    /* guarded by `lock` */
    pthread_mutex_t lock;
    pthread_cond_t delivered; /* a callback has returned, or the session was detached */
    struct cox__frame_slots slots;
    struct cox__counts counts;
    struct cox__warmth warmth;
    bool detached;
    /* The session has waited for an active device for too long. The engine changes it under the
     * lock, and reads it without. */
    bool no_device;

    /* engine only, except for the fields of a device that `lock` guards */
    struct cox__devices devices;

    /* engine only */
    bool attached; /* to the runtime's list of active sessions */
    struct cox_session *next_active;
    bool closing; /* no new work starts */
    struct cox__order order;
    struct cox__events events;
    struct cox__sharing sharing[COX_PASSES_MAX];
    struct cox__joining joining;
    struct cox__warmup warmup;
    struct cox__recovery recovery;
    struct cox__spare spare;
    struct cox__shadow shadow;
    struct cox__residency residency;
    struct cox__energy energy;
    struct cox__reporting reporting;
    struct cox__warned warned;
};

struct cox_runtime {
    struct cox__log log;
    char *cache_dir;                /* NULL = nothing is stored from run to run */
    struct cox__topology *topology; /* NULL over a backend that is not OpenCL */
    struct cox__backend *backend;
    struct cox__loop *loop;
    struct cox__worker *worker;
    struct cox__watchdog *watchdog;
    struct cox__mpsc jobs;     /* finished jobs, posted by the backend */
    struct cox__mpsc requests; /* frames and detachments, from application threads */
    enum cox_arithmetic arithmetic;
    bool polls_closely; /* there is a core for polling devices without a pause */
    bool polls_inline;  /* the inline poller polls devices; else only the scheduler thread does */
    /* when the scheduler thread looks again without being woken; UINT64_MAX = never */
    _Atomic uint64_t next_step_ns;
    atomic_bool spins; /* the scheduler thread looks for requests without a pause */

    struct cox__inline_poller inline_poller;

    /* engine only */
    /* jobs and requests that were taken from their queues but not handled yet */
    struct cox__mpsc_node *posts;
    struct cox__mpsc_node *arrivals;
    bool closing;               /* no thread takes a turn any more */
    bool interrupted;           /* the lock was revoked: queues may not have been flushed */
    struct cox_session *active; /* sessions that have had a frame, linked by next_active */
    struct cox__lost lost;

    /* not guarded by the engine lock */
    _Atomic uint64_t frames_submitted; /* to all sessions */
    struct cox__alive alive;
    atomic_bool left_session; /* a session was leaked because a driver call hung */
    pid_t pid;
    struct cox__release release;
    struct cox__imports imports;
};

/* Frames that share a buffer take turns, in order of arrival. A writer starts after all earlier
 * users of the buffer finish. A reader starts after all earlier writers finish. A use lasts from
 * the frame's arrival until its delivery.
 *
 * The counts decide whose turn it is. No later use ends before a writer does. So it is the writer's
 * turn when as many uses have ended as had arrived before it. For a reader the same holds with the
 * writes. */
struct cox_buffer {
    struct cox_runtime *runtime;
    size_t bytes;
    bool wrapped;
    bool read_only;         /* the memory cannot be written */
    struct cox__sync *sync; /* what surrounds each use (sync.h); NULL = nothing. Constant */
    /* The application's, and one for each submitted frame with the buffer. */
    atomic_uint refs;
    atomic_uint leaving; /* references of frames whose callback runs */
    /* changed by relocate.c alone; NULL = the application has it back */
    _Atomic(struct cox__mem *) mem;

    /* for a buffer that stays on devices; NULL = no session keeps it */
    _Atomic(struct cox__buffer_life *) life;
    _Atomic uint64_t changes; /* cox_buffer_changed; added to `content` */

    /* engine only */
    uint64_t uses, uses_ended;
    uint64_t writes, writes_ended;
    uint64_t content; /* counts the frames that have written it */
    /* permanent: a lost device could write to it, and it could not be relocated */
    bool unsafe;
    /* frames submitted before this one expect rows that a failed frame did not write */
    uint64_t failed_before;
    cox_status failed;
};

/* ---- small readers ---- */

static inline uint64_t cox__engine_now(const struct cox_runtime *runtime)
{
    return runtime->backend->ops->now_ns(runtime->backend);
}

static inline bool cox__frame_is_cancelled(const struct cox__counts *counts,
                                           const struct cox__frame *frame)
{
    return frame->index < atomic_load(&counts->cancel_before);
}

/* Set the status of a frame that was cancelled after it began, unless it has failed. */
static inline void cox__frame_note_cancel(const struct cox__counts *counts,
                                          struct cox__frame *frame)
{
    if (frame->status == COX_OK && cox__frame_is_cancelled(counts, frame))
        frame->status = COX_E_CANCELLED;
}

/* The frame's pass that is under way. */
static inline const struct cox__pass *cox__frame_pass(const struct cox__frame *frame)
{
    return &frame->pipeline->passes[frame->pass];
}

static inline bool cox__frame_is_in_last_pass(const struct cox__frame *frame)
{
    return frame->pass + 1 == frame->pipeline->pass_count;
}

/* A whole frame on this device alone; 0 = not measured. */
static inline uint64_t cox__device_alone_ns(const struct cox__device *device, uint32_t pass_count)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < pass_count; p++) {
        const uint64_t single_device_ns = device->passes[p].single_device_ns;
        if (!single_device_ns)
            return 0;
        sum += single_device_ns;
    }

    return sum;
}

static inline bool cox__device_is_active(const struct cox__device *device)
{
    return device->state == COX_DEVICE_ACTIVE;
}

/* Whether a band only moves rows, or acquires or releases a buffer. */
static inline bool cox__band_is_transfer(const struct cox__band *band)
{
    return band->kind >= COX__BAND_FETCH;
}

/* Whether a band does rows of its frame's pass. */
static inline bool cox__band_is_of_split(const struct cox__band *band)
{
    return band->kind == COX__BAND_ROWS || band->kind == COX__BAND_CHUNK;
}

/* A walk over the session's queues: those of its devices, then the lost ones. A queue that is lost
 * during the walk may be met twice. */
struct cox__queue_walk {
    uint32_t at; /* zeroed = at the beginning */
    struct cox__queue *queue;
};

static inline bool cox__queue_next(const struct cox_session *session, struct cox__queue_walk *walk)
{
    while (walk->at < session->devices.count)
        if ((walk->queue = session->devices.list[walk->at++].queue))
            return true;

    const bool first_lost = walk->at++ == session->devices.count;
    walk->queue = first_lost ? session->recovery.lost_queues : walk->queue->next;

    return walk->queue != NULL;
}

/* Whether the device may be polled for the slot's band. */
static inline bool cox__slot_can_be_polled(const struct cox__queue_slot *slot)
{
    return (slot->state == COX__SLOT_BUSY || slot->state == COX__SLOT_ORPHANED) &&
           !slot->queue->stuck;
}

#endif
