/* Shared by the files of the fault-injecting OpenCL layer: layer.c and the folder layer/.
 *
 * Threads: `lock` guards everything here. "Under the lock" means that the caller holds it; other functions lock it
 * themselves. It is not held across a call into a driver, since some drivers run kernels and callbacks inside an
 * enqueue. The only exception is clRetainCommandQueue.
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

extern cl_icd_dispatch next; /* the table to which calls are passed on */
extern pthread_mutex_t lock;

/* now_ns: the layer's clock, which times the faults. real_ns: a clock that no program can stop. */
uint64_t now_ns(void);
uint64_t real_ns(void);
bool clock_stands(void);
void sleep_ns(uint64_t ns); /* by the layer's clock */
void poll_pause(void);      /* for POLL_NS by the real clock */

/* The functions that replace those of the driver. Each file of layer/ has those of its subject. */
#define X(name, classes) __typeof__(name) fault_##name;
FAULT_CALLS(X)
#undef X

/* ---- plan.c: the current plan, and which of its lines affect a call ---- */

struct line {
    struct fault_line plan;
    uint64_t devices;         /* of the known devices, those that match */
    uint64_t matched, chosen; /* calls that match; calls that were chosen */
    _Atomic uint64_t struck;  /* faults that happened */
};

/* The lines of the plan chosen for one call. */
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

/* Under the lock: a new device is known. */
void plans_learn(uint32_t device);

/* Whether the plan has lines that make devices vanish. Then no thread may be inside a driver when that happens. */
bool may_vanish(void);

struct context;

/* A call on a set of devices. Chooses the faults, and hangs if one says so. Returns the error to answer instead of
 * calling the driver, or CL_SUCCESS. */
cl_int arrive(int call, uint64_t set, const struct context *context, bool gives_event, struct faults *faults);

/* The same for a call that is not a command: on a set of devices, or on an object or NULL. */
cl_int arrive_on(int call, uint64_t set, const struct context *context);
cl_int arrive_at(int call, const void *handle);

/* ---- devices.c ---- */

/* A sub-device is identified by its parent's number and its place among the sub-devices created with it. So it is
 * the same one when it is created again. A set of devices has a bit for each entry of this array. */
struct device {
    uint32_t number;
    int sub; /* -1 = not a sub-device */
    cl_device_type type;
    uint64_t back_ns; /* end of the time in which it is gone */
    cl_int code;      /* answer of calls until then; 0 = the default */
    bool gone;
    bool gateless; /* cannot wait for user events: it would deadlock */
    char name[256];
};
extern struct device devices[DEVICES_MAX];
extern uint32_t device_count;

static inline uint64_t bit(uint32_t device)
{
    return UINT64_C(1) << device;
}

/* The set of these devices. Unknown devices are added first. */
uint64_t set_of(const cl_device_id *ids, cl_uint count);

/* Under the lock: the devices of the set vanish, with everything in their contexts. */
void vanish(uint64_t set, const struct fault_line *line);

/* Under the lock: the error of a call on these devices because they are gone, or 0. */
cl_int gone_code(int call, uint64_t set, const struct context *context);

/* ---- objects.c: objects of the application ---- */

enum type { TYPE_DEVICE, TYPE_CONTEXT, TYPE_QUEUE, TYPE_MEM, TYPE_PROGRAM, TYPE_KERNEL, TYPE_EVENT, TYPE_OTHER };

struct context {
    unsigned refs;
    uint64_t devices, dead;
    bool stuck; /* commands held back when its device vanished never run */
};

struct queue {
    unsigned refs;
    cl_command_queue handle;
    bool alive; /* not yet released by the application */
    cl_context context_handle;
    struct context *context;
    uint32_t device;
    struct flush_gate *flush_gates;
    unsigned unseen;      /* commands whose end the application never sees */
    uint64_t last_end_ns; /* of a slowed command; real time */
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
    cl_event head; /* TAILED: the command's own event, else NULL */
    bool profile_told, query_told, status_told;
    bool doomed;        /* its device vanished before the application saw its end */
    uint64_t doomed_ns; /* real time, as is the next field */
    uint64_t enqueued_ns;
    cl_int doom_code;
    uint64_t stretch_ns; /* added to the end time if no marker follows the command */
};

/* A kernel with wrong results: the next read of one of its ranges returns wrong bits, once. */
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
    struct object *next; /* next one in its hash bucket */
    const void *handle;
    enum type type;
    unsigned refs; /* of the application */
    uint64_t devices;
    struct context *context;
    struct queue *queue;
    struct mem *mem;
    struct command *command;
    cl_mem *args; /* of a kernel */
};

/* Under the lock: the object with this handle; NULL if it is NULL, unknown or of another type. */
struct object *find_any(const void *handle);
struct object *find_object(const void *handle, enum type type);

/* Under the lock: add an object. enter_from: it gets the devices and the context of the object `from`. */
struct object *enter_object(const void *handle, enum type type, uint64_t of_devices, struct context *context);
struct object *enter_from(const void *handle, enum type type, const void *from);

/* Add an object, made from another one, that needs no other fields. NULL is accepted. */
void made(const void *handle, enum type type, const void *from);

/* The application has released the object once. */
void released(const void *handle);

/* The queue, or the event's command, with a new reference; NULL if unknown. */
struct queue *queue_of(const void *handle);
void put_queue(struct queue *queue);
struct command *command_of(cl_event event);
void put_command(struct command *command);

/* Under the lock. Driver objects that become free at a command's end are released by release_spent, which runs
 * without the lock. */
void context_put(struct context *context);
void command_put(struct command *command);
void release_spent(void);
void taint_free(struct taint *taint);

/* Under the lock: the devices of the set are gone. The command, or all commands of known objects, end with this
 * error; 0 = the default. */
void doom(struct command *command, uint64_t set, cl_int code);
void doom_objects(uint64_t set, cl_int code);

/* ---- ticker.c: delayed actions ---- */

/* A region of host memory, in rows. */
struct region {
    char *host;
    size_t row_bytes, rows, slices, row_pitch, slice_pitch;
};

/* The bits to flip in a command's result on the host. */
struct flips {
    struct line *line;
    size_t offset; /* of the region in the command's result */
    struct region region;
};

/* A callback of the application that passes through the layer. */
struct callback {
    struct callback *prev, *next; /* in the list of pending ones */
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    void *user;
    cl_event event; /* retained */
    struct command *command;
    bool made;     /* called because its device vanished; a later call of the driver is ignored */
    cl_int status; /* of a late callback */
};

enum job_kind {
    JOB_OPEN, /* at due_ns, open the gate */
    JOB_KEEP, /* when the head has ended, release the queue */
    JOB_TAIL, /* when the head has ended, apply its faults, then open the gate */
    JOB_CALL  /* at due_ns, call the callback */
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

/* Under the lock: adds a copy of the job. */
void add_job(const struct job *job);

/* The command has ended. Apply its faults and set the job's due_ns, at which the application sees the end. */
void begin_tail(struct job *job);

/* Under the lock, as doom_objects. */
void doom_jobs(uint64_t set, cl_int code);

/* Under the lock: callbacks of doomed commands must be called soon. */
void look_for_doomed(void);

/* Wait until everything due by `now` has happened. */
void wait_for_due(uint64_t now);

/* Stop all actions before the drivers end. Gates stay closed, and commands that never run stay where they are. */
void stop_ticker(void);

/* Create a gate, which is a user event. On failure it prints a message to standard error and returns NULL. */
cl_event new_gate(const struct queue *queue);
void open_gate(cl_event gate);

/* ---- events.c ---- */

/* The command's status according to the driver. */
cl_int real_status(cl_event event);

/* The status that the application sees. `visible` needs the lock, and gets the driver's status as `real`. */
cl_int visible_status(cl_event event);
cl_int visible(struct command *command, cl_int real);

/* ---- callbacks.c ---- */

/* Call the application's callback with the status and as often as the plan says, then free `callback`. */
void deliver(struct callback *callback, cl_int status);

/* Call the callbacks of commands whose device vanished. Returns whether some are left. */
bool deliver_doomed(void);

/* Under the lock, as doom_objects. */
void doom_callbacks(uint64_t set, cl_int code);

/* ---- wait.c ---- */

void open_flush_gates(struct queue *queue);
void pass_flush(const void *handle); /* `handle` may be a queue or any other object */

/* Whether the device has vanished since the queue's context was created. */
bool is_dead(struct queue *queue);

/* Like clWaitForEvents, but by polling, since the driver does not know the layer's false answers. */
cl_int wait_by_asking(cl_uint count, const cl_event *events);

/* ---- commands.c ---- */

/* A command on its way to the driver, with the arguments that replace the application's. */
struct issue {
    int call;
    struct queue *queue; /* NULL = unknown to the layer: the command passes unchanged */
    struct faults faults;
    struct flips flips; /* bits to flip in its result */
    cl_bool blocking, wait_here;
    cl_uint wait_count;
    const cl_event *wait;
    cl_event *own_wait;
    cl_event event, *event_place, *wanted; /* the driver's event; where the driver writes it; where the application
                                            * wants it */
    cl_event gate, flush_gate;
    bool skip; /* enqueue a marker instead */
};

#define WAIT cl_uint wait_count, const cl_event *wait, cl_event *event
#define REST issue.wait_count, issue.wait, issue.event_place

/* Begin a command. Returns the error to answer, or CL_SUCCESS. */
cl_int issue_begin(struct issue *issue, int call, cl_command_queue handle, cl_bool blocking, WAIT);

/* Call this once `flips` is known: completes the command's wait list. */
void issue_prepare(struct issue *issue);

/* Enqueue a marker in place of the command. */
cl_int issue_marker(struct issue *issue, cl_command_queue queue);

/* The driver has returned `code`. Returns the answer for the application. */
cl_int issue_end(struct issue *issue, cl_int code);

/* No action. */
#define PLAIN (void)0

/* Defines a command. `before` and `after` handle wrong results, before the driver is called and after it has
 * accepted. */
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

/* Flip bits in the region, in different bytes if there are enough. */
void flip(const struct flips *flips);

#endif
