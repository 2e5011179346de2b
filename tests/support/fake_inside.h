/* Shared by the files of the scripted devices:
 *
 *   fake_backend.c  the backend's operations
 *   fake_band.c     what a band does to memory, and checks of that
 *   fake_time.c     the clocks
 *   fake_script.c   faults, the record, and functions for tests
 *
 * One mutex guards everything, except where a comment says otherwise. A band's state changes and its post is made
 * while the mutex is held. So poll cannot report an end whose post is still to come, unless a fault asks for that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_INSIDE_H
#define COX_TESTS_FAKE_INSIDE_H

#include "engine/state.h"
#include "fake_backend.h"
#include "fake_handover.h"
#include <pthread.h>
#include <stdlib.h>

enum { EVENTS_MAX = 4096, INSTANCES_MAX = 1024, FAULTS_MAX = 64, SLOTS_MAX = 256 };

enum slot_state { SLOT_FREE = 0, SLOT_QUEUED, SLOT_RUNNING, SLOT_ENDED };

/* A copy of the job, made when it was submitted. */
struct work {
    uint32_t slot;
    uint32_t band;
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
    enum cox__job_kind kind;
    uint32_t resident, homed, copied_out, set;
    unsigned char kept[COX_BUFFERS_MAX];
    uint32_t range_count, back_count;
    struct cox__job_range ranges[COX__JOB_RANGES_MAX], back[COX__JOB_BACK_MAX];
    const void *frame;
    bool of_frame;  /* an application's frame in its own memory, not a check */
    uint64_t index; /* the frame's number, if `of_frame` */
    const void *session;
    const void *out; /* the beginning of the first binding that is written, or of the first one if none is */
    struct cox__mem *mems[COX_BUFFERS_MAX];
    unsigned char params[COX_CONSTANTS_BYTES_MAX];
};

struct slot {
    struct cox__instance *instance;
    struct cox__job *job; /* not used after the instance was abandoned */
    struct work work;
    enum slot_state state;
    struct fake_fault fate[FAKE_KINDS]; /* by kind; its `kind` is 0 unless that fault has struck */
    bool failed;
    bool fails;
    bool failing;        /* one command has failed, others have not ended */
    bool hung;           /* never ends */
    uint32_t parts_left; /* to be enqueued by job_continue */
    uint64_t kernel_ns;
    uint64_t in_ns;
    uint64_t out_ns;
    uint64_t submit_ns;
    uint32_t number;   /* order of submission, for queues */
    struct slot *next; /* real time: the next one in the device's queue */
    uint64_t due_ns;   /* real time: when it ends; 0 = not started */
    void *partial[COX_BUFFERS_MAX];
};

/* A driver's context. Its bands run one after the other. */
struct context {
    uint64_t in_free;
    uint64_t kernel_free;
    uint64_t out_free;
};

struct cox__instance {
    struct fake *fake;
    uint32_t device;
    struct context *context;
    struct context own;
    bool dead;      /* existed when the device died */
    bool abandoned; /* no posts for its bands any more */
    bool isolated;  /* a thread is stuck in one of its driver calls */
    bool unsettled; /* a thread was stuck in one, and no flush has followed */
    bool gone;      /* destroyed, but a band has not ended */
    struct cox__pipeline pipeline;
    fake_kernel_fn *kernels[COX_PASSES_MAX][COX_FUSED_MAX];
    uint32_t max_rows[COX_PASSES_MAX];
    uint32_t slot_count;
    uint32_t queued;
    uint32_t resident;
    unsigned char **sets;                 /* [set * COX_BUFFERS_MAX + binding]: memory of whole frames */
    unsigned char *kept[COX_BUFFERS_MAX]; /* memory of buffers that stay from frame to frame */
    cox__ended_fn *ended; /* instance_destroy's callback, to be called once `gone` and all bands have ended */
    void *ended_ctx;
    struct slot slots[];
};

struct cox__mem {
    struct cox__mem_link link;
    struct fake *fake;
    unsigned char *data;
    size_t bytes;
    bool wrapped;
    unsigned char *device_data; /* not NULL: the memory lies on device `home` */
    uint32_t home;
    bool must_acquire, acquired;
    bool kept;             /* leaked by mem_abandon */
    bool destroyed;        /* destroyed while a device used it, a violation; kept so that the test can report it */
    struct cox__mem *next; /* next of the kept ones */
};

enum event_kind { EVENT_START, EVENT_END, EVENT_POST };

struct event {
    uint64_t time_ns;
    uint64_t order;
    enum event_kind kind;
    struct slot *slot;
};

struct device {
    struct fake *fake;
    struct fake_device script;
    struct context context;
    uint64_t jobs;
    bool dead;         /* the shared context of the device's instances is lost */
    uint64_t alive_ns; /* earliest time at which fresh contexts can be created */
    /* for real time */
    pthread_t thread;
    pthread_cond_t wake;
    struct slot *first, *last;
};

struct fake {
    struct cox__backend base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct cox__post post;
    struct cox__log *log;
    uint32_t device_count;
    struct device devices[FAKE_DEVICES_MAX];
    uint32_t kernel_count;
    struct fake_kernel kernels[FAKE_KERNELS_MAX];
    bool real_time;
    bool held;
    bool made;
    bool destroyed;
    bool stopping;
    bool unblocked;
    uint32_t blocked; /* threads in blocking calls */
    _Atomic uint64_t clock_ns;
    uint64_t order;
    uint32_t submits;
    uint32_t running; /* bands flushed and not ended */
    uint32_t alive;
    uint32_t abandoned; /* allocations */
    struct fake_handover *handover;

    uint32_t event_count;
    struct event events[EVENTS_MAX];
    uint32_t instance_count;
    struct cox__instance *instances[INSTANCES_MAX];
    struct cox__mem *kept; /* leaked by mem_abandon */
    uint32_t struck[FAKE_KINDS];
    uint32_t fault_count;
    struct fake_fault faults[FAULTS_MAX];

    uint64_t calls;
    size_t record_count, record_room;
    struct fake_record *record;
    uint32_t violations;
    char violation[512];
};

static inline struct fake *fake_of(struct cox__backend *backend)
{
    return (struct fake *)backend;
}

static inline uint64_t add_ns(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t max_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether this fault has struck the band. */
static inline bool fate(const struct slot *slot, enum fake_fault_kind kind)
{
    return slot->fate[kind].kind != 0;
}

static inline bool is_under_way(const struct slot *slot)
{
    return slot->state == SLOT_QUEUED || slot->state == SLOT_RUNNING;
}

static inline const struct cox__pass *pass_of(const struct cox__instance *instance, const struct work *work)
{
    return &instance->pipeline.passes[work->pass];
}

static inline struct fake_handover_band handover_of(const struct work *work)
{
    return (struct fake_handover_band){work->frame, work->session,   work->index,
                                       work->pass,  work->first_row, work->rows};
}

/* ---- fake_script.c ---- */

void fake__violate(struct fake *fake, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fake__note(struct fake *fake, enum fake_step step, uint32_t device, const struct slot *slot, bool failed);
void fake__note_instance(struct fake *fake, enum fake_step step, uint32_t device, bool fresh, bool failed);

/* The fault of this kind that strikes now, or NULL. */
const struct fake_fault *fake__strike(struct fake *fake, enum fake_fault_kind kind, uint32_t device);

/* Draw the faults and the duration of the slot's band. */
void fake__draw_faults(struct fake *fake, struct slot *slot);

/* ---- fake_band.c ---- */

/* Write the band's results. In real time it runs without the lock. */
void fake__execute(struct slot *slot, bool failed);

/* Whether the band can run at all. Records a violation if not. */
bool fake__check_job(struct fake *fake, const struct cox__instance *instance, const struct work *work);
void fake__check_memory(const struct slot *slot);
void fake__check_flushed(struct fake *fake, const char *what);

/* ---- fake_time.c ---- */

bool fake__is_at_work(const struct cox__instance *instance);
void fake__tell_ended(struct cox__instance *instance);
void fake__drop_events(struct fake *fake, const struct slot *slot);
void fake__leave_queue(struct device *device, const struct slot *slot);
void fake__start_band(struct fake *fake, struct device *device, struct slot *slot);
void fake__run_inside(struct fake *fake, struct slot *slot);
void fake__block(struct fake *fake, uint64_t delay_ns);
void fake__take_time(struct fake *fake, uint64_t delay_ns);
bool fake__advance(struct cox__backend *backend, uint64_t deadline_ns);

/* Real time: the thread of a device. */
void *fake__serve(void *device);

/* ---- fake_backend.c ---- */

uint32_t fake__row_alignment(struct fake *fake, const struct cox__pass *pass, uint32_t device);

#endif
