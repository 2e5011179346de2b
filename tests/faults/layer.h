/* What the parts of the fault-injecting OpenCL layer share. Included by layer.c and by what is in layer/ only.
 *
 * Threads: `lock` guards everything here. It is not held across a call into a driver, but for clRetainCommandQueue,
 * since some run the kernel and the callbacks inside the enqueue. "Under the lock" says that the caller holds it; all
 * else takes it by itself.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_LAYER_FAULT_H
#define COX_TESTS_LAYER_FAULT_H

#undef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_layer.h>

#include "plan.h"
#include "support/layer_info.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAULT_EXPORT __attribute__((visibility("default")))

enum { DEVICES_MAX = 64, ARGS_MAX = 128, POLL_NS = 200000 };

/* ---- layer.c ---- */

extern cl_icd_dispatch next; /* where the calls go on to */
extern pthread_mutex_t lock;

/* The layer's clock, by which faults begin and end, and one that no program can stop. */
uint64_t now_ns(void);
uint64_t real_ns(void);
bool clock_stands(void);
void sleep_ns(uint64_t ns); /* by the layer's clock */
void poll_pause(void);      /* for POLL_NS of the other */

/* What is called in the driver's place, in the file of its matter. */
#define X(name, classes) __typeof__(name) fault_##name;
FAULT_CALLS(X)
#undef X

/* ---- plan.c: the plan in force, and which of its lines a call suffers ---- */

struct line {
    struct fault_line plan;
    uint64_t devices;         /* of the known ones, those that it is about */
    uint64_t matched, chosen; /* calls that it is about; those that it picked */
    _Atomic uint64_t struck;  /* faults that have really happened */
};

/* What has been picked for one call. */
struct faults {
    struct line *by[FAULT_KINDS];
};

static inline void struck(struct line *line)
{
    atomic_fetch_add_explicit(&line->struck, 1, memory_order_relaxed);
}

/* Exported: see control.h. */
int cox_fault_load(const char *text, char *why, size_t why_bytes);
uint64_t cox_fault_count(unsigned line, int what);
int cox_fault_write(const char *path);
uint64_t cox_fault_advance(uint64_t ns);

/* Under the lock: a device has become known. */
void plans_learn(uint32_t device);

/* With a plan in which devices vanish nobody may be inside a driver when it happens. */
bool may_vanish(void);

struct context;

/* A call on a set of devices: which faults does it suffer? Hangs if it is to. Returns the error that it is to answer
 * with instead of going on to the driver, or CL_SUCCESS. */
cl_int arrive(int call, uint64_t set, const struct context *context, bool gives_event, struct faults *faults);

/* A call that is no command: on a set of devices; on an object, or on nothing. */
cl_int arrive_on(int call, uint64_t set, const struct context *context);
cl_int arrive_at(int call, const void *handle);

/* ---- devices.c ---- */

/* A sub-device is told by its parent's number and its place among those made with it, so that it is the same one when
 * it is made again. A set of devices is a bit for each entry here. */
struct device {
    uint32_t number;
    int sub; /* -1 = no sub-device */
    cl_device_type type;
    uint64_t back_ns; /* when it is gone: until then */
    cl_int code;      /* what calls answer meanwhile; 0 = the usual */
    bool gone;
    bool gateless; /* user events stop it for ever */
    char name[256];
};
extern struct device devices[DEVICES_MAX];
extern uint32_t device_count;

static inline uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

/* The set of these devices; those not seen before are looked for. */
uint64_t set_of(const cl_device_id *ids, cl_uint count);

/* Under the lock: the devices of the set are gone, and with them all that their contexts hold. */
void vanish(uint64_t set, const struct fault_line *line);

/* Under the lock: what a call on these devices must answer since they are gone, or 0. */
cl_int gone_code(int call, uint64_t set, const struct context *context);

/* ---- objects.c: what the application has made ---- */

enum type { TYPE_DEVICE, TYPE_CONTEXT, TYPE_QUEUE, TYPE_MEM, TYPE_PROGRAM, TYPE_KERNEL, TYPE_EVENT, TYPE_OTHER };

struct context {
    unsigned refs;
    uint64_t devices, dead;
    bool stuck; /* what was held back when its device vanished is held for ever */
};

struct queue {
    unsigned refs;
    cl_command_queue handle;
    bool alive; /* the application has not released it */
    cl_context context_handle;
    struct context *context;
    uint32_t device;
    struct flush_gate *flush_gates;
    unsigned unseen;      /* commands that never end as far as anybody can see */
    uint64_t last_end_ns; /* of a slowed command; real */
};

struct flush_gate {
    struct flush_gate *next;
    cl_event gate;
};

enum hold { FREE, HELD, TAILED };

struct command {
    unsigned refs;
    int call;
    struct queue *queue;
    struct faults faults;
    enum hold hold;
    cl_event head; /* TAILED: of the command itself, else NULL */
    bool profile_told, query_told, status_told;
    bool doomed;        /* its device vanished before the application saw its end */
    uint64_t doomed_ns; /* real, as the next */
    uint64_t enqueued_ns;
    cl_int doom_code;
    uint64_t stretch_ns; /* of its end, where no marker behind it tells of that */
};

/* Kernels that are to have given wrong results: the next read of one of these ranges shows it. */
struct lie {
    unsigned refs;
    struct line *line;
    bool told;
};
struct taint {
    struct taint *next;
    struct lie *lie;
    size_t from, to; /* in the root buffer */
};
struct mem {
    unsigned refs;
    struct mem *root; /* itself, or the parent */
    size_t from, bytes;
    cl_mem_flags flags;
    struct taint *taints; /* of a root */
};

struct object {
    struct object *next; /* in its bucket */
    const void *handle;
    enum type type;
    unsigned refs; /* the application's */
    uint64_t devices;
    struct context *context;
    struct queue *queue;
    struct mem *mem;
    struct command *command;
    cl_mem *args; /* of a kernel */
};

/* Under the lock: what is known of the handle; NULL if it is NULL, unknown or of another type. */
struct object *find_any(const void *handle);
struct object *find_object(const void *handle, enum type type);

/* Under the lock: enter an object, or one made from another: of the same devices, in the same context. */
struct object *enter_object(const void *handle, enum type type, uint64_t of_devices, struct context *context);
struct object *enter_from(const void *handle, enum type type, const void *from);

/* One made from another that has nothing else to it. NULL is accepted. */
void made(const void *handle, enum type type, const void *from);

/* The application has let go of the object once more. */
void released(const void *handle);

/* The queue or the event's command, with a reference of the caller's; NULL if the layer does not know it. */
struct queue *queue_of(const void *handle);
void put_queue(struct queue *queue);
struct command *command_of(cl_event event);
void put_command(struct command *command);

/* Under the lock. What a command's end brings with it waits for release_spent, which is not. */
void context_put(struct context *context);
void command_put(struct command *command);
void release_spent(void);
void taint_free(struct taint *taint);

/* Under the lock: the devices of the set are gone, so the command, or all that objects know of, ends with this error; 0
 * = the usual. */
void doom(struct command *command, uint64_t set, cl_int code);
void doom_objects(uint64_t set, cl_int code);

/* ---- ticker.c: what happens later ---- */

/* A region of host memory, in rows. */
struct region {
    char *host;
    size_t row_bytes, rows, slices, row_pitch, slice_pitch;
};

/* What a command brings to the host, for those that corrupt it. */
struct flips {
    struct line *line;
    size_t offset; /* of the region in what the command brings */
    struct region region;
};

/* A callback of the application's on its way through the layer. */
struct callback {
    struct callback *prev, *next; /* until it is made */
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *user;
    cl_event event; /* retained */
    struct command *command;
    bool made;     /* because its device vanished: the driver's call, if it comes, is for nothing */
    cl_int status; /* of a late one */
};

enum job_kind {
    JOB_OPEN, /* at due_ns open the gate */
    JOB_KEEP, /* once the head has ended let go of the queue */
    JOB_TAIL, /* once the head has ended do what is to be done, then open the gate */
    JOB_CALL  /* at due_ns make the callback */
};

struct job {
    struct job *next;
    enum job_kind kind;
    uint64_t due_ns;
    cl_event gate, head;
    cl_command_queue queue;
    struct command *command;
    struct callback *callback;
    struct flips flips;
    bool ended;
};

/* Under the lock: the job is copied. */
void add_job(const struct job *job);

/* The command has ended: what comes between that and its being seen, until the job's due_ns. */
void begin_tail(struct job *job);

/* Under the lock, as doom_objects. */
void doom_jobs(uint64_t set, cl_int code);

/* Under the lock: callbacks of doomed commands are to be made. */
void look_for_doomed(void);

/* Until all that was to happen until then has. */
void wait_for_due(uint64_t now);

/* Before the drivers go: nothing happens any more. Gates that are closed stay so; what was never to run does not. */
void stop_ticker(void);

/* Gates are user events. NULL, and a word on standard error, if there is none to be had. */
cl_event new_gate(const struct queue *queue);
void open_gate(cl_event gate);

/* ---- events.c ---- */

/* What the driver says of the command. */
cl_int real_status(cl_event event);

/* What the application is to see of it; under the lock: of a command whose driver says `real`. */
cl_int visible_status(cl_event event);
cl_int visible(struct command *command, cl_int real);

/* ---- callbacks.c ---- */

/* Call the application, as often and with what the plan says; the callback is over. */
void deliver(struct callback *callback, cl_int status);

/* Make the callbacks of what went with a device. Returns whether some are still to come. */
bool deliver_doomed(void);

/* Under the lock, as doom_objects. */
void doom_callbacks(uint64_t set, cl_int code);

/* ---- wait.c ---- */

void open_flush_gates(struct queue *queue);
void pass_flush(const void *handle); /* whatever it is */

/* Whether its device vanished since its context was made. */
bool is_dead(struct queue *queue);

/* As clWaitForEvents, by asking: the driver does not know the lies. */
cl_int wait_by_asking(cl_uint count, const cl_event *events);

/* ---- commands.c ---- */

/* A command on its way to the driver: what it is to be given instead of what the application gave. */
struct issue {
    int call;
    struct queue *queue; /* NULL = one that the layer does not know: it is passed on as it is */
    struct faults faults;
    struct flips flips; /* what it brings to the host */
    cl_bool blocking, wait_here;
    cl_uint wait_count;
    const cl_event *wait;
    cl_event *own_wait;
    cl_event event, *event_place, *wanted; /* the driver's; where it writes it; where the application wants it */
    cl_event gate, flush_gate;
    bool skip; /* a marker instead */
};

#define WAIT cl_uint wait_count, const cl_event *wait, cl_event *event
#define REST issue.wait_count, issue.wait, issue.event_place

/* Begin a command. Returns the error that it is to answer with, or CL_SUCCESS. */
cl_int issue_begin(struct issue *issue, int call, cl_command_queue handle, cl_bool blocking, WAIT);

/* What there is to corrupt is known too: have the command wait for what it is to wait for. */
void issue_prepare(struct issue *issue);

/* The marker that the driver is given instead of the command. */
cl_int issue_marker(struct issue *issue, cl_command_queue queue);

/* The driver has answered. Returns what the application is answered. */
cl_int issue_end(struct issue *issue, cl_int code);

/* Nothing is to be done. */
#define PLAIN (void)0

/* A command, with what is to be done about wrong results before the driver has it, and once it has taken it. */
#define COMMAND(name, block, decl, args, before, after)                                              \
    cl_int CL_API_CALL fault_##name decl                                                             \
    {                                                                                                \
        struct issue issue;                                                                          \
        cl_int code = issue_begin(&issue, FAULT_CALL_##name, queue, block, wait_count, wait, event); \
        if (code)                                                                                    \
            return code;                                                                             \
        before;                                                                                      \
        issue_prepare(&issue);                                                                       \
        code = issue.skip ? issue_marker(&issue, queue) : next.name args;                            \
        if (code == CL_SUCCESS)                                                                      \
            after;                                                                                   \
        return issue_end(&issue, code);                                                              \
    }

/* ---- corrupt.c ---- */

/* Flip bits here and there in the region, each of another byte as long as there are enough. */
void flip(const struct flips *flips);

#endif
