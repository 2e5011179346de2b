/* What the parts of the scripted devices share: fake_backend.c has the backend's operations, fake_band.c what a band
 * does to memory and must not, fake_time.c the clocks, fake_script.c faults, the record, and what tests ask.
 *
 * One mutex guards everything but what a comment says. The state of a band changes and its post is made under one hold
 * of it, so that poll cannot report the end of a band whose post is still to come, unless the script asks for that.
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

/* What the job said when it was submitted. */
struct work {
    uint32_t slot;
    uint32_t band;
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
    bool preserve;
    bool fetch;
    uint32_t resident, copied_out, set;
    uint32_t range_count, back_count;
    struct cox__job_range ranges[COX__JOB_RANGES_MAX], back[COX__JOB_BACK_MAX];
    const void *frame;
    bool of_frame;  /* it does the rows of a frame of the application's in that frame's memory, */
    uint64_t index; /* of this number */
    const void *session;
    const void *out; /* where the first binding that is written begins; of a job that writes none, the first one */
    struct cox__mem *mems[COX_BUFFERS_MAX];
    unsigned char params[COX_CONSTANTS_BYTES_MAX];
};

struct slot {
    struct cox__instance *instance;
    struct cox__job *job; /* not touched any more once the instance is abandoned */
    struct work work;
    enum slot_state state;
    struct fake_fault fate[FAKE_KINDS]; /* by kind, which is 0 where none has struck */
    bool failed;
    bool fails;
    bool failing; /* a command of it has failed, the others have not ended */
    bool hung;    /* for ever */
    uint64_t kernel_ns;
    uint64_t in_ns;
    uint64_t out_ns;
    uint64_t submit_ns;
    uint32_t number;   /* order of submission, for queues */
    struct slot *next; /* real time: behind it in the device's queue */
    uint64_t due_ns;   /* real time: when it ends; 0 = it has not begun */
    void *partial[COX_BUFFERS_MAX];
};

/* A driver's context: its bands run one after the other. */
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
    bool dead;      /* was there when the device died */
    bool abandoned; /* its bands are not posted any more */
    bool isolated;  /* a thread is stuck in a driver call of it */
    bool unsettled; /* a thread was stuck in one, and it has not been flushed since */
    bool gone;      /* destroyed, but a band of it is still to happen */
    struct cox__pipeline pipeline;
    fake_kernel_fn *kernels[COX_PASSES_MAX][COX_FUSED_MAX];
    uint32_t max_rows[COX_PASSES_MAX];
    uint32_t slot_count;
    uint32_t queued;
    uint32_t resident;
    unsigned char **sets; /* [set * COX_BUFFERS_MAX + binding]: memory of whole frames */
    cox__ended_fn *ended; /* instance_destroy's, once `gone` */
    void *ended_ctx;
    struct slot slots[];
};

struct cox__mem {
    struct cox__mem_link link;
    struct fake *fake;
    unsigned char *data;
    size_t bytes;
    bool wrapped;
    bool kept;      /* leaked by mem_abandon */
    bool destroyed; /* though a device works on it, which is a violation: kept so that the test lives to say so */
    struct cox__mem *next; /* of the kept ones */
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
    bool dead;         /* the context that instances share is lost */
    uint64_t alive_ns; /* from then on fresh contexts can be had again */
    /* real time */
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
    uint32_t blocked; /* threads inside a call that blocks */
    _Atomic uint64_t clock_ns;
    uint64_t order;
    uint32_t submits;
    uint32_t running; /* flushed and not ended */
    uint32_t alive;
    uint32_t abandoned; /* memory */
    struct fake_handover *handover;

    uint32_t event_count;
    struct event events[EVENTS_MAX];
    uint32_t instance_count;
    struct cox__instance *instances[INSTANCES_MAX];
    struct cox__mem *kept; /* leaked by mem_abandon */
    uint32_t struck[FAKE_KINDS];
    uint32_t fault_count;
    struct fake_fault faults[FAULTS_MAX];

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

/* Whether the fault has struck the band. */
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

/* A fault of this kind that strikes now; NULL = none. */
const struct fake_fault *fake__strike(struct fake *fake, enum fake_fault_kind kind, uint32_t device);

/* What happens to the slot's band, and how long it takes. */
void fake__draw_faults(struct fake *fake, struct slot *slot);

/* ---- fake_band.c ---- */

/* What the band leaves in memory. In real time without the lock. */
void fake__execute(struct slot *slot, bool failed);

/* Whether the band can be run at all. */
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

/* Real time: a device's thread. */
void *fake__serve(void *device);

/* ---- fake_backend.c ---- */

uint32_t fake__row_alignment(struct fake *fake, const struct cox__pass *pass, uint32_t device);

#endif
