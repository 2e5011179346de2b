/* Scripted devices for tests of the session engine. They have:
 *   A cost model, on a virtual clock or, for race tests, on the real one.
 *   Kernels that are C functions and work on real memory.
 *   Faults on request, and a record of what the engine did.
 *
 * The fake is stricter than any driver:
 *   Nothing starts before a flush.
 *   A failed band leaves garbage in its output.
 *   A band that hangs reads and writes only when it ends, and leaves garbage if its instance was abandoned
 *     meanwhile.
 *   Every step outside the backend's contract is recorded as a violation.
 *   Two bands in progress must not use the same rows if one writes them. Exceptions: the instance of one was
 *     abandoned, or both run in one context, one after the other.
 *   Passes of a frame run one after the other. A band must not read rows that an earlier pass has yet to write.
 *
 * Thread-safety: any thread, except fake_free, which must be the last call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_FAKE_BACKEND_H
#define COX_TESTS_FAKE_BACKEND_H

#include "specs.h"
#include "engine/backend.h"
#include <stdlib.h>

/* Returns the memory that the expression allocates; ends the program if it is NULL. A test in which allocations of
 * the library fail (tests/fuzz/heap.h) lets those succeed that are made while fake_must_depth is not 0. */
extern _Thread_local volatile uint32_t fake_must_depth; /* volatile: compilers know what malloc does */
#define must(memory) fake_must_end((fake_must_depth++, (memory)))
static inline void *fake_must_end(void *memory)
{
    fake_must_depth--;
    if (!memory)
        abort();
    return memory;
}

enum { FAKE_DEVICES_MAX = 8, FAKE_KERNELS_MAX = 16 };

/* The part of a band that a fake kernel gets. It has the meaning of the kernel arguments in session.h. */
struct fake_args {
    const struct cox__pass *pass;
    const struct cox__stage *stage;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    uint32_t frame_rows;
    unsigned char *data[COX_BUFFERS_MAX]; /* first row; REDUCE: the zeroed partial result; WHOLE: the beginning */
    uint32_t origin[COX_BUFFERS_MAX];     /* buffer row at which `data` begins */
    const void *params;
};

typedef void fake_kernel_fn(const struct fake_args *args);

/* Kernels are found by name. A stage with an unknown name fails to build. */
struct fake_kernel {
    const char *name;
    fake_kernel_fn *fn;
};

/* A device takes fixed_ns + ns_per_row * rows per band. Fields that are zero mean: name "fake N", driver "1", CPU,
 * mapped, alignment 4, no maximum of rows. */
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
    double copy_in_ns_per_row; /* staged: copies have their own timelines, so they overlap kernels */
    double copy_out_ns_per_row;
    double jitter;      /* each cost is multiplied by 1 + jitter * u, u uniform in -1 .. 1, the same in every run */
    bool inside_submit; /* bands run inside job_submit */
    uint32_t parts;     /* of a job that is enqueued in parts; 0 = 1 */
    bool no_profile;
    bool keeps_nothing;     /* staged: no memory for rows that passes hand over */
    uint32_t writable_args; /* a bit for each argument that all kernels take as a pointer to non-const */
};

struct fake_params {
    uint32_t device_count;
    struct fake_device devices[FAKE_DEVICES_MAX];
    uint32_t kernel_count;
    struct fake_kernel kernels[FAKE_KERNELS_MAX];
    bool real_time; /* one sleeping thread per device instead of a virtual clock */
    bool driven;    /* only fake_pass moves the virtual clock, and the engine treats it as a real clock */
    bool held;      /* the clock is held at the start */
};

struct fake;

/* Create a fake. Pass it as `user` of fake_make to cox__runtime_create_with. It must outlive the runtime. All
 * functions here abort the test if memory runs out. */
struct fake *fake_new(const struct fake_params *params);
void fake_free(struct fake **fake);
cox_status fake_make(void *user, struct cox__post post, struct cox__log *log, struct cox__backend **out);

enum fake_fault_kind {
    /* job_submit returns `status`. */
    FAKE_SUBMIT_FAILS = 1,
    /* The band ends with FAILED and leaves garbage in its output. */
    FAKE_EVENT_FAILS,
    /* A command of the band fails when the band should end. Its other commands end, with garbage, `delay_ns` later;
     * UINT64_MAX = never. Both moments are posted. */
    FAKE_FAILS_LATE,
    /* This band and all others in progress on its device fail, and so does later work on the instances that exist
     * now. Fresh instances can be created after `delay_ns`; 0 = never. */
    FAKE_DEVICE_DIES,
    /* The band ends `delay_ns` late, and reads and writes only then; UINT64_MAX = never. */
    FAKE_HANGS,
    /* The band succeeds, but one bit is wrong in each of the first `factor` rows of each output (0 = one row). A
     * repetition of the rows has the same wrong bit. */
    FAKE_CORRUPTS,
    /* Like FAKE_CORRUPTS, but in the last byte of each row, which kernels need not write. */
    FAKE_STRAYS,
    /* The profile reports a kernel time of `delay_ns`; 0 = extremely long. */
    FAKE_LIES_PROFILE,
    /* The band's end is reported as `delay_ns` before its submission. */
    FAKE_END_EARLY,
    /* The end is reported as `delay_ns` later than it is. UINT64_MAX = at the last moment of the clock. */
    FAKE_END_LATE,
    /* job_submit takes `delay_ns`. */
    FAKE_SUBMIT_BLOCKS,
    /* The band ends in time, but its post is missing, is sent twice, is sent at the start as well, or is `delay_ns`
     * late. */
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
    /* instance_create takes `delay_ns`, then fails with `status` unless that is COX_OK. instance_destroy of an
     * abandoned instance takes `delay_ns`. UINT64_MAX = until fake_unblock, in real time only. */
    FAKE_INSTANCE_BLOCKS,
    FAKE_DESTROY_BLOCKS,
    /* job_submit, job_continue, instance_flush, or job_poll of a band in progress blocks the thread for `delay_ns` of
     * real time, with any clock. UINT64_MAX = until fake_unblock. */
    FAKE_SUBMIT_STUCK,
    FAKE_CONTINUE_STUCK, /* only of devices with parts */
    FAKE_FLUSH_STUCK,
    FAKE_POLL_STUCK,
    FAKE_KINDS
};

/* Strikes `count` times (0 = once, UINT32_MAX = always), from the `skip`-th matching call after it was added. */
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

/* Like fake_script, with the fields of the fault as arguments. */
#define FAKE_FAULT(fake, ...) fake_script(fake, &(const struct fake_fault){__VA_ARGS__})

/* Number of faults that have struck so far. */
uint32_t fake_struck(struct fake *fake);
uint32_t fake_struck_by(struct fake *fake, enum fake_fault_kind kind);

/* Stop the virtual clock: bands can be submitted, but none ends. Release also wakes the engine. */
void fake_hold(struct fake *fake);
void fake_release(struct fake *fake);

/* Wait in real time, at most two minutes, until `bands` bands are in progress. Returns whether they are. */
bool fake_await_running(struct fake *fake, uint32_t bands);

/* Wait likewise until no object is alive. Buffers are destroyed in the background. */
bool fake_await_gone(struct fake *fake);

/* Wait likewise until `calls` calls block because of a fault. fake_unblock ends these, and no later call blocks. */
bool fake_await_blocked(struct fake *fake, uint32_t calls);
uint32_t fake_blocked(struct fake *fake);
void fake_unblock(struct fake *fake);

/* Whether the runtime has destroyed its backend. It cannot while a call blocks; then the fake is never freed. */
bool fake_destroyed(struct fake *fake);

uint64_t fake_now(struct fake *fake);

/* Driven clock. fake_next: time of the next event, UINT64_MAX = none. fake_pass: advance the clock to a time. */
uint64_t fake_next(struct fake *fake);
void fake_pass(struct fake *fake, uint64_t until_ns);

/* Whether a band that was not given up still works on the memory. */
bool fake_at_work(struct fake *fake, const struct cox__mem *mem);

enum fake_step {
    FAKE_STEP_SUBMIT = 1,
    FAKE_STEP_CONTINUE,
    FAKE_STEP_FLUSH,
    FAKE_STEP_POLL,
    FAKE_STEP_END,
    FAKE_STEP_POST,
    FAKE_STEP_WAIT,
    FAKE_STEP_CREATE, /* this one and those below: of an instance */
    FAKE_STEP_ISOLATE,
    FAKE_STEP_ABANDON,
    FAKE_STEP_DESTROY,
};

/* One step of the record. Steps are in the order in which they happened. Fields of a job are zero in other steps. */
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
    const void *out; /* a job's memory: the beginning of the first binding that it writes, or of the first one if
                      * it writes none */
    uint32_t pass;
    uint32_t kind;        /* enum cox__job_kind */
    uint32_t kept;        /* bindings that stay on the device, a bit for each */
    uint32_t copied_rows; /* rows of resident bindings that are copied in; of a fetch: out */
    uint32_t back_rows;   /* rows of resident bindings that are copied out as well */
    bool failed;          /* END: the band failed; SUBMIT, CREATE: refused */
    bool fresh;           /* CREATE, ABANDON, DESTROY: an instance with its own context */
};

/* A copy of the record so far. The caller frees it. */
struct fake_record *fake_take_record(struct fake *fake, size_t *count);
void fake_clear_record(struct fake *fake);

/* Number of steps of a kind, of one device, or of all devices if `device` is UINT32_MAX. */
uint32_t fake_steps(struct fake *fake, enum fake_step step, uint32_t device);

/* Number of steps outside the contract so far, and a text for the first one, "" if none (valid until fake_free). */
uint32_t fake_violations(struct fake *fake);
const char *fake_violation(struct fake *fake);

/* Number of calls of the backend by the engine so far, apart from those that only ask for a property. */
uint64_t fake_calls(struct fake *fake);

/* Number of live objects: host allocations and instances. */
uint32_t fake_alive(struct fake *fake);

/* Number of allocations leaked by mem_abandon so far. */
uint32_t fake_abandoned(struct fake *fake);

/* A buffer that lies on a device (engine/home.h), filled with garbage. `acquired`: frames must acquire and release it.
 * A device that was lost reaches it no more. */
cox_buffer *fake_home_buffer(cox_runtime *runtime, uint32_t device, size_t bytes, bool acquired);
unsigned char *fake_home_data(const cox_buffer *buffer);
bool fake_home_has_host(const cox_buffer *buffer);

#endif
