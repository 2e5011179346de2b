/* A scripted set of devices for the session engine: cost models on a virtual clock (or on the real one, for race
 * tests), kernels that are C functions working on real memory, faults on cue, and a record of what the engine did.
 *
 * It is stricter than any driver: nothing starts before a flush, a failed band leaves garbage in its output, a band
 * that hangs reads and writes only when it ends at last, and leaves garbage if its instance was abandoned meanwhile,
 * and every step outside the backend's contract is noted as a violation. Two bands under way never work on the same
 * rows if one writes them, unless the instance of one was abandoned or both run one after the other in one context.
 * A frame's passes run one after the other, and no band of them reads what an earlier pass should have written and has
 * not.
 *
 * Thread-safety: everything here is safe from any thread, except fake_free, which must be the last call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_BACKEND_H
#define COX_TESTS_FAKE_BACKEND_H

#include "specs.h"
#include "engine/backend.h"
#include <stdlib.h>

/* Memory that was asked for; without it the program ends. */
static inline void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

enum { FAKE_DEVICES_MAX = 8, FAKE_KERNELS_MAX = 16 };

/* What a fake kernel sees of its band, with the meaning of the kernel arguments of session.h. */
struct fake_args {
    const struct cox__pass *pass;
    const struct cox__stage *stage;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    uint32_t frame_rows;
    unsigned char *data[COX_BUFFERS_MAX]; /* first row in memory; REDUCE: the zeroed partial; WHOLE: its beginning */
    uint32_t origin[COX_BUFFERS_MAX];     /* buffer row at which data begins */
    const void *params;
};

typedef void fake_kernel_fn(const struct fake_args *args);

/* A stage's kernel is found by its name; an unknown name does not build. */
struct fake_kernel {
    const char *name;
    fake_kernel_fn *fn;
};

/* A device takes fixed_ns + ns_per_row * rows per band. Zero means: named "fake N", driver "1", CPU, mapped, alignment
 * 4, no bound. */
struct fake_device {
    const char *name;
    const char *driver;
    enum cox_device_type type;
    enum cox_memory_mode mode;
    enum cox_host_memory host_memory;
    uint32_t align_bytes;
    uint32_t max_rows;
    uint32_t compute_units;
    double fixed_ns;
    double ns_per_row;
    double copy_in_ns_per_row; /* staged: on their own timelines, so that they overlap the kernels */
    double copy_out_ns_per_row;
    double jitter;      /* each cost times 1 + jitter * u, u uniform in -1 .. 1, the same in every run */
    bool inside_submit; /* runs the band inside job_submit */
    bool no_profile;
    bool keeps_nothing;     /* staged: no memory for what passes hand on */
    uint32_t writable_args; /* a bit for each argument that all kernels take as a pointer to what is not const */
};

struct fake_params {
    uint32_t device_count;
    struct fake_device devices[FAKE_DEVICES_MAX];
    uint32_t kernel_count;
    struct fake_kernel kernels[FAKE_KERNELS_MAX];
    bool real_time; /* one thread per device that sleeps; no virtual clock */
    bool driven;    /* the virtual clock moves only with fake_pass, and the engine takes it for a real one */
    bool held;      /* begin with the clock held */
};

struct fake;

/* Prepare a fake. Pass it as `user` of fake_make to cox__runtime_create_with; it outlives the runtime. Aborts the test
 * on allocation failure, as everything here does. */
struct fake *fake_new(const struct fake_params *params);
void fake_free(struct fake **fake);
cox_status fake_make(void *user, struct cox__post post, struct cox__log *log, struct cox__backend **out);

enum fake_fault_kind {
    /* job_submit returns `status`. */
    FAKE_SUBMIT_FAILS = 1,
    /* The band ends with FAILED, its output is garbage. */
    FAKE_EVENT_FAILS,
    /* A command of the band fails when the band should end, but others of it end, with garbage, only `delay_ns` later;
     * UINT64_MAX = never. Posted both times. */
    FAKE_FAILS_LATE,
    /* This band and all that its device has under way fail, and what is submitted later to the instances of that time.
     * Fresh instances can be had again after `delay_ns`; 0 = never. */
    FAKE_DEVICE_DIES,
    /* The band ends `delay_ns` later than it should; UINT64_MAX = never. It reads and writes only then. */
    FAKE_HANGS,
    /* Looks good, but in the first `factor` rows of each output (0 = one) a bit is wrong, the same one when the rows
     * are done again. */
    FAKE_CORRUPTS,
    /* The same in the last byte of each row of its outputs, which kernels may leave alone. */
    FAKE_STRAYS,
    /* The profile says that the kernels took `delay_ns`; 0 = ages. */
    FAKE_LIES_PROFILE,
    /* The band claims to have ended `delay_ns` before it was submitted. */
    FAKE_END_EARLY,
    /* job_submit takes `delay_ns`. */
    FAKE_SUBMIT_BLOCKS,
    /* The band ends in time, but is not posted; is posted twice; is posted when it starts and again when it ends; is
     * posted `delay_ns` after it ended. */
    FAKE_NO_POST,
    FAKE_POST_TWICE,
    FAKE_POST_EARLY,
    FAKE_POST_LATE,
    /* The band takes `factor` times as long. */
    FAKE_SLOW,
    /* instance_create returns `status`. */
    FAKE_INSTANCE_FAILS,
    /* mem_create returns `status`; device is ignored. */
    FAKE_MEM_FAILS,
    /* instance_create takes `delay_ns`, then returns `status` unless that is COX_OK; instance_destroy of an abandoned
     * instance takes `delay_ns`. UINT64_MAX = until fake_unblock, in real time only. */
    FAKE_INSTANCE_BLOCKS,
    FAKE_DESTROY_BLOCKS,
    /* The driver keeps the thread for `delay_ns` of real time, whatever the clock, in job_submit, in instance_flush, or
     * in job_poll of a band under way; UINT64_MAX = until fake_unblock. */
    FAKE_SUBMIT_STUCK,
    FAKE_FLUSH_STUCK,
    FAKE_POLL_STUCK,
    FAKE_KINDS
};

/* Strikes `count` times (0 = once, UINT32_MAX = for ever) from the `skip`-th matching call after it was added. */
struct fake_fault {
    enum fake_fault_kind kind;
    uint32_t device;
    uint32_t skip;
    uint32_t count;
    cox_status status;
    uint64_t delay_ns;
    double factor;
};
void fake_script(struct fake *fake, const struct fake_fault *fault);

/* The same of a fault that is written down in the call. */
#define FAKE_FAULT(fake, ...) fake_script(fake, &(const struct fake_fault){__VA_ARGS__})

/* How often faults have struck so far. */
uint32_t fake_struck(struct fake *fake);
uint32_t fake_struck_by(struct fake *fake, enum fake_fault_kind kind);

/* Stop the virtual clock: bands can be submitted but none ends. Release also wakes the engine. */
void fake_hold(struct fake *fake);
void fake_release(struct fake *fake);

/* Block (in real time) until so many bands are under way, for at most two minutes. Returns whether they are. */
bool fake_await_running(struct fake *fake, uint32_t bands);

/* Block likewise until no object is alive: buffers go in the background. */
bool fake_await_gone(struct fake *fake);

/* Block likewise until so many calls block that take their time by script, and let all of them go, now and later. */
bool fake_await_blocked(struct fake *fake, uint32_t calls);
uint32_t fake_blocked(struct fake *fake);
void fake_unblock(struct fake *fake);

/* Whether the runtime has destroyed its backend. It may not while a call blocks; such a fake is never freed. */
bool fake_destroyed(struct fake *fake);

uint64_t fake_now(struct fake *fake);

/* Driven: when the next thing happens by itself, UINT64_MAX = nothing will; and let the clock run up to a time. */
uint64_t fake_next(struct fake *fake);
void fake_pass(struct fake *fake, uint64_t until_ns);

/* Whether a band that has not been given up has yet to end and works on the memory. */
bool fake_at_work(struct fake *fake, const struct cox__mem *mem);

enum fake_step {
    FAKE_STEP_SUBMIT = 1,
    FAKE_STEP_FLUSH,
    FAKE_STEP_POLL,
    FAKE_STEP_END,
    FAKE_STEP_POST,
    FAKE_STEP_WAIT,
    FAKE_STEP_CREATE, /* from here on: of an instance */
    FAKE_STEP_ISOLATE,
    FAKE_STEP_ABANDON,
    FAKE_STEP_DESTROY,
};

/* One step of the record, in the order in which it happened. Fields of a job are zero where there is none. */
struct fake_record {
    enum fake_step step;
    uint64_t time_ns;
    uint32_t device;
    uint32_t slot;
    uint32_t first_row;
    uint32_t rows;
    uint32_t band;
    const void *frame;
    const void *session;
    const void *out; /* a job's memory: where the first binding that is written begins, or the first one if none is */
    uint32_t pass;
    bool fetch;           /* a job that copies out rows that its device keeps */
    uint32_t kept;        /* bindings that stay on the device, a bit for each */
    uint32_t copied_rows; /* of bindings of which the device keeps rows: so many are copied in; a fetch: out */
    uint32_t back_rows;   /* of what stays, so many rows are copied out all the same */
    bool failed;          /* END: the band failed; SUBMIT, CREATE: refused */
    bool fresh;           /* CREATE, ABANDON, DESTROY: an instance with a context of its own */
};

/* A copy of the record so far; free() it. */
struct fake_record *fake_take_record(struct fake *fake, size_t *count);
void fake_clear_record(struct fake *fake);

/* Steps of a kind in the record, of one device or, with UINT32_MAX, of all. */
uint32_t fake_steps(struct fake *fake, enum fake_step step, uint32_t device);

/* Steps outside the contract so far; the first one in words, "" if there is none (valid until fake_free). */
uint32_t fake_violations(struct fake *fake);
const char *fake_violation(struct fake *fake);

/* Objects alive: host allocations and instances. */
uint32_t fake_alive(struct fake *fake);

/* Memory leaked by mem_abandon, so far. */
uint32_t fake_abandoned(struct fake *fake);

#endif
