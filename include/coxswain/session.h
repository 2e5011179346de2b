/* A session: a stream of frames of one shape through one pipeline, split over the runtime's devices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_SESSION_H
#define COXSWAIN_SESSION_H

#include <coxswain/runtime.h>
#include <coxswain/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bindings of a session, stages of a pass, arguments of a stage, bytes of the per-frame parameters, frames in
 * flight; and passes of a session. */
enum {
    COX_BINDINGS_MAX = 12,
    COX_STAGES_MAX = 8,
    COX_ARGS_MAX = 24,
    COX_PARAMS_MAX = 2048,
    COX_IN_FLIGHT_MAX = 16
};
enum { COX_PASSES_MAX = 8 };

/* How a pass touches a buffer with respect to its band. */
enum cox_contract {
    COX_ROWS = 0, /* row r of the band touches row r of the buffer */
    /* reads rows r - halo_rows .. r + halo_rows, clipped at the frame's edge; see
     * cox_binding.scratch */
    COX_HALO = 1,
    COX_WHOLE = 2, /* every device reads all of it; not written in this pass */
    /* every band writes its own partial, zeroed before; the host merges them in row order */
    COX_REDUCE = 3,
};

/* What a pass does with a buffer. */
enum cox_access { COX_READ = 0, COX_WRITE = 1, COX_READ_WRITE = 2 };

/* Merge `partial` into `into` (the frame's buffer, zeroed before the first), `bytes` both. Runs on the scheduler
 * thread or on one inside cox_session_run, one call at a time, bands in row order. The number of partials depends on
 * the split: the operation must be exact and associative for results not to depend on it (integers, minimum,
 * maximum). */
typedef void cox_merge_fn(void *into, const void *partial, size_t bytes, void *user);

/* One buffer of the frame as the pipeline sees it. A kernel should take a COX_READ one as a pointer
 * to const, since a write to it would change what other devices read. The log warns of a kernel
 * that does not, if the driver reports it. */
struct cox_binding {
    const char *name; /* for messages; may be NULL. Copied. */
    enum cox_contract contract;

    /* ROWS: any; WHOLE: COX_READ; HALO: COX_READ, or COX_READ_WRITE for scratch that is each band's own; REDUCE:
     * COX_WRITE. */
    enum cox_access access;
    size_t pitch_bytes; /* ROWS, HALO: bytes from one buffer row to the next */
    uint32_t
        row_divisor;     /* ROWS, HALO: frame rows per buffer row, e.g. 2 for 4:2:0 chroma; 0 = 1 */
    uint32_t halo_rows;  /* HALO: in buffer rows */
    size_t bytes;        /* WHOLE, REDUCE: size */
    cox_merge_fn *merge; /* REDUCE */
    void *merge_user;

    /* Memory of the library's: the frame gives NULL for it. What a pass writes there by rows, or reduces to it, later
     * passes read. With HALO and READ_WRITE it is each band's own instead: a stage writes it, later stages of the same
     * pass read it, and what the band needs beyond its own rows it computes itself (see cox_stage). */
    bool scratch;
};

enum cox_arg_kind {
    /* __global T *: the first row in memory of binding `index` for this band */
    COX_ARG_KIND_BUFFER = 0,
    COX_ARG_KIND_PARAMS = 1, /* T by value: `bytes` of the frame's parameters from `offset` */
    /* int: the band's first row, of the frame, or of the pass if cox_pass.rows is set */
    COX_ARG_KIND_FIRST = 2,
    COX_ARG_KIND_ROWS = 3,  /* int: the band's number of such rows */
    COX_ARG_KIND_FRAME = 4, /* int: all such rows */

    /* int: the buffer row at which binding `index`'s memory begins: before the band for HALO, and at 0 where a device
     * keeps a frame's rows between passes. A kernel that takes it finds buffer row r at r - origin, of ROWS too. */
    COX_ARG_KIND_ORIGIN = 5,

    COX_ARG_KIND_LOCAL = 6,   /* __local T *: `bytes` of local memory */
    COX_ARG_KIND_COLUMNS = 7, /* int: the stage's columns */

    /* read_only image2d_t: the rows that COX_ARG_KIND_BUFFER would point to, copied into an image, for samplers. Made
     * with COX_ARG_IMAGE of coxswain/opencl.h, which says more: `offset` is OpenCL's channel order times 65536, plus
     * its channel type, `bytes` the columns. */
    COX_ARG_KIND_IMAGE = 8,
};

/* One argument of a kernel. What its kind does not use is 0. The macros are initialisers. */
struct cox_arg {
    enum cox_arg_kind kind;
    uint32_t index;
    size_t offset;
    size_t bytes;
};
#define COX_ARG_BUFFER(binding)              \
    {                                        \
        COX_ARG_KIND_BUFFER, (binding), 0, 0 \
    }
#define COX_ARG_PARAMS(struct_type)                    \
    {                                                  \
        COX_ARG_KIND_PARAMS, 0, 0, sizeof(struct_type) \
    }
#define COX_ARG_FIELD(struct_type, field)                                                       \
    {                                                                                           \
        COX_ARG_KIND_PARAMS, 0, offsetof(struct_type, field), sizeof(((struct_type *)0)->field) \
    }
#define COX_ARG_FIRST_ROW           \
    {                               \
        COX_ARG_KIND_FIRST, 0, 0, 0 \
    }
#define COX_ARG_ROWS               \
    {                              \
        COX_ARG_KIND_ROWS, 0, 0, 0 \
    }
#define COX_ARG_FRAME_ROWS          \
    {                               \
        COX_ARG_KIND_FRAME, 0, 0, 0 \
    }
#define COX_ARG_ORIGIN(binding)              \
    {                                        \
        COX_ARG_KIND_ORIGIN, (binding), 0, 0 \
    }
#define COX_ARG_LOCAL(size)              \
    {                                    \
        COX_ARG_KIND_LOCAL, 0, 0, (size) \
    }
#define COX_ARG_COLUMNS               \
    {                                 \
        COX_ARG_KIND_COLUMNS, 0, 0, 0 \
    }

/* A kernel in the form that suits one kind of device. Every variant of a stage takes the same arguments and must
 * give the same results. */
struct cox_variant {
    /* 1 + index of the one runtime device it is for, before one by type; 0 = by type */
    uint32_t device_plus_1;
    enum cox_device_type
        type;            /* the devices it is for; 0 = any device without a more specific variant */
    const char *source;  /* OpenCL C; copied */
    const char *options; /* build options; NULL = none; copied */

    /* Local size in work-items; 0 = 1. The global size is padded to a multiple of it: guard in the kernel with
     * get_global_id against columns and rows. Halved on a device that allows no such group, unless the kernel uses
     * local memory or requires its size. */
    uint32_t local_columns;
    uint32_t local_rows;

    uint32_t item_columns; /* columns and rows that one work-item covers; 0 = 1 */
    uint32_t item_rows;
};

/* One kernel launch over the band: dimension 0 runs over columns, dimension 1 over the band's rows. Stages run in
 * order on each band.
 *
 * A stage may read through HALO what an earlier one of the same pass wrote, if that is a scratch binding with HALO and
 * READ_WRITE: the earlier stage then runs over as many more rows on both sides as are read, clipped at the frame's
 * edge, and its FIRST and ROWS say so. It may write no other binding, and reads through HALO (0 rows will do) or WHOLE,
 * since it needs more rows of its input too. Anything else that needs rows of other bands is a pass of its own. */
struct cox_stage {
    const char *kernel; /* copied */
    uint32_t columns;   /* 0 = 1 */
    uint32_t variant_count;
    uint32_t arg_count;
    const struct cox_variant *variants;
    const struct cox_arg *args;
};

/* How a pass touches one of the session's bindings. What that one says of access, row_divisor and halo_rows does not
 * count then. Passes that use a binding by rows agree on its bytes. Scratch is written before it is read. What the
 * session has as REDUCE is used as REDUCE, by one pass, or as WHOLE, and nothing else as REDUCE. */
struct cox_use {
    uint32_t binding; /* index in cox_session_params.bindings */
    enum cox_contract contract;
    enum cox_access access; /* as in cox_binding; WHOLE, HALO: of what earlier passes wrote, too */
    uint32_t row_divisor;   /* ROWS, HALO: rows of the pass per buffer row; 0 = 1 */
    uint32_t halo_rows;     /* HALO: in buffer rows */
};

/* What a pass's function may look at and change. Valid during the call only. */
struct cox_pass_result {
    uint64_t frame;
    uint32_t pass;
    uint32_t buffer_count;
    void *const *
        buffers; /* per binding: the frame's memory; to be read: what the pass reduced; NULL for a band's own */
    void *params; /* the frame's parameter block, as later passes will get it: may be changed */
};

/* When every row of a pass is there, the last one's too, and its REDUCE results are merged: a histogram becomes a
 * curve. On the scheduler thread or on one inside cox_session_run, one call at a time; for frames that have
 * not failed. It may be called again for the same frame, with the parameters as they were before the pass, where a
 * device that was lost, or computed wrongly, makes the frame begin anew: the same input must give the same result. Must
 * be quick and must not call the session. */
typedef void cox_pass_done_fn(void *user, const struct cox_pass_result *end);

/* One pass over the frame: bands of rows, each running all stages. A frame's passes run one after the other; in
 * between, every row is there for all devices. Successive ones of as many rows share a split
 * (cox_session_params.split_each_pass). Passes of several frames in flight overlap. */
struct cox_pass {
    const char *name; /* for messages; may be NULL. Copied. */
    uint32_t rows;    /* of the pass, as of a frame; 0 = the session's */
    uint32_t use_count;
    /* the bindings that its stages touch; none: all, as cox_binding has them */
    const struct cox_use *uses;
    uint32_t stage_count;
    const struct cox_stage *stages;

    /* Devices of the session that do it, by their index in the runtime, as long as one of them is active; then the
     * others do it. 0 = all. */
    uint32_t device_count;
    const uint32_t *devices;

    const char *policy;     /* NULL = the session's; a pass that names a policy shares no split */
    cox_pass_done_fn *done; /* NULL = none */
    void *done_user;
};

/* What one band cost. Times in nanoseconds of the runtime's monotonic clock. Keeps its size: what is new about a band
 * will stand in a further array of the report. */
struct cox_band_report {
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    /* 0 = first; > 0 = run again, since a device failed, exceeded its timeout or gave wrong rows */
    uint32_t attempt;

    /* Not COX_OK: the band's rows do not count, and a later attempt at them follows. COX_E_TIMEOUT: the device
     * exceeded its timeout; COX_E_MISMATCH: the rows were wrong, or made of what an earlier pass had wrong. */
    cox_status status;

    bool on_demand;     /* handed out while the frame ran */
    uint64_t submit_ns; /* when the scheduler began to enqueue it */
    uint64_t end_ns;    /* its end, by the device's clock or as observed; see cox_band_notice */
    uint64_t wall_ns;   /* as in cox_measurement */
    uint64_t queue_ns;
    uint64_t kernel_ns; /* as in cox_measurement; staged: of sessions with `profile` */
    /* staged: the device's own profile of the copies; else 0. In: of sessions with `profile` */
    uint64_t copy_in_ns;
    uint64_t copy_out_ns;
    uint64_t predicted_ns; /* what the policy expected wall_ns to be; 0 = it did not say */
};

/* How the end of a band was learnt. Keeps its size, as above. */
struct cox_band_notice {
    uint64_t noticed_ns; /* when the library knew that the band had ended: end_ns or later */

    /* end_ns is the device's own time, told on the runtime's clock, right to so many nanoseconds. UINT64_MAX: end_ns is
     * when the host learnt of it, by the driver's callback or a poll. */
    uint64_t clock_error_ns;
};

/* What one pass of a frame was. Keeps its size, as above. */
struct cox_pass_report {
    uint64_t start_ns; /* it was split */
    uint64_t end_ns;   /* its last band was in */
    enum cox_reason reason;
    uint64_t predicted_ns;
    uint64_t rejected_ns; /* as in cox_split */
    uint32_t pool_rows;   /* handed out while the pass ran */
};

/* What one frame cost. Valid during the call only. */
struct cox_frame_report {
    /* from 0 in submission order; warm-up runs have the index of the frame they precede */
    uint64_t index;
    bool warmup; /* a warm-up run of one device, not a delivered frame */

    /* One band done again on copies to measure a device or to let it back in, not a delivered frame; see
     * cox_split.shadow. */
    bool shadow;

    cox_status status;
    uint64_t submit_ns; /* cox_session_submit took the frame */
    uint64_t start_ns;  /* the scheduler took it */
    uint64_t end_ns;    /* its last band was in */

    /* When its callback is called: after the callbacks of all frames before it. For a frame that is
     * not the application's: end_ns. */
    uint64_t delivered_ns;
    uint64_t deadline_ns; /* for that, from submit_ns; 0 = none */
    /* of the first pass, or of a later one if something was done again there */
    enum cox_reason reason;
    uint64_t predicted_ns; /* of the passes together, as the next two */
    uint64_t rejected_ns;  /* as in cox_split */
    uint32_t pool_rows;    /* handed out while the frame ran */

    /* By the session's meter, over the part of the frame that no earlier frame was under way; negative = unknown. */
    double joules;

    uint32_t band_count;
    const struct cox_band_report *bands;   /* in row order; re-runs after what they replace */
    const struct cox_band_notice *notices; /* parallel to bands */
    /* parallel to bands: the pass of each; bands are in order of passes first */
    const uint32_t *band_passes;
    uint32_t pass_count; /* up to the last one that began */
    const struct cox_pass_report *passes;
};

/* Called before the frame's `done`, for every frame, warm-up run and shadow (that may be after its frame's): on the
 * scheduler thread, or on one inside cox_session_run; one call at a time. Must be quick and must not call the session
 * back. */
typedef void cox_report_fn(void *user, const struct cox_frame_report *report);

/* Joules used so far by the machine, or by what of it matters; only differences count. Negative = cannot be read now.
 * Called on the scheduler thread or on one inside cox_session_run when a frame starts or ends; must be quick. */
typedef double cox_meter_fn(void *user);

/* The session's first device can take frames: COX_OK. Or none ever will: the status that cox_session_create would have
 * returned without `ready`. Runs exactly once, on the scheduler thread, as cox_done_fn does and with the same limits;
 * perhaps before cox_session_create has returned, but after it has set `*out`.
 *
 * In such a session each device begins as COX_DEVICE_JOINING while its kernels are made in the background, all devices
 * at once. Frames may be submitted at once; they wait for the first device, which takes all of their rows, and `ready`
 * runs before the callback of any. The others join as they get ready: each does some rows beside a frame first
 * (COX_DEVICE_PROBATION), which takes the place of the warm-up, so that no frame waits for its first launch. The first
 * frame is not preceded by warm-up runs, so devices are measured as they go unless a device profile or a `warm_start`
 * has told of them; cox_session_warm waits until every device has joined, or cannot.
 *
 * A device on which a kernel does not build is COX_DEVICE_ABSENT for good, with the log lines of cox_session_create;
 * such a session saves no device profile. If all are, frames end with COX_E_NO_DEVICE, and so does cox_session_submit
 * from then on; the session is there to be destroyed. */
typedef void cox_ready_fn(void *user, cox_status status);

/* Thread-safety: cox_session_submit and cox_session_info from any thread; create and destroy are as for the
 * runtime. */
typedef struct cox_session cox_session;

/* Zero in every optional field means the default. Read only during cox_session_create; everything is copied. */
struct cox_session_params {
    uint32_t rows; /* frame rows, 1 .. INT32_MAX */
    uint32_t binding_count;
    uint32_t stage_count;
    const struct cox_binding *bindings;
    const struct cox_stage *stages;

    /* Size of the per-frame parameter block, at most COX_PARAMS_MAX. A kernel may take parts of it: every device takes
     * 1024 bytes of arguments (CL_DEVICE_MAX_PARAMETER_SIZE), some more. */
    size_t params_bytes;

    const char *policy;                              /* NULL = "adaptive" */
    const struct cox_policy *custom_policy;          /* not NULL: used instead of `policy` */
    const struct cox_policy_options *policy_options; /* NULL = the defaults */
    uint32_t min_band_rows;                          /* 0 = one row alignment */
    uint32_t in_flight;                              /* frames under way at once; 0 = 2 */
    uint32_t device_count; /* devices of the runtime that take part; 0 = all */
    const uint32_t *devices;
    /* a ROWS binding may be COX_READ_WRITE; a band that fails is then not re-run */
    bool allow_in_place;
    /* no warm-up runs before the first frame, which then pays for compilation; see
     * cox_session_warm */
    bool no_warmup;

    /* Neither load the device profiles that an earlier session saved nor save any; see cox_runtime_params.cache_dir. */
    bool no_profile;

    /* 0 .. 1: share of the bands that another device does once more before the frame is delivered, to be compared bit
     * for bit: for kernels that give the same bits everywhere. See docs/guide/faults.md. */
    double verify;

    /* A device that has not ended a band after so much more than expected (ten times the expected time, if that is
     * more) is given up, and its rows are done again by another one. 0 = follows the device: ten times the longest of
     * its bands, between 1 s and 10 s; first launches, which may compile, are given 20 s more, and the only active
     * device all of that ten times. Time in which the process could not run is added, up to nine of these limits. */
    uint64_t device_timeout_ns;

    cox_meter_fn *meter; /* NULL = energy is not known */
    void *meter_user;
    cox_report_fn *report; /* NULL = no reports */
    void *report_user;

    /* Staged devices: time the kernels and the copies in too, for the reports. Every command then costs more: 7 us each
     * on an NVIDIA H200. */
    bool profile;

    /* The passes of a frame. 0: one, of `stages`; else `stages` has none. */
    uint32_t pass_count;
    const struct cox_pass *passes;

    /* True: all that a pass writes is copied from staged devices to the host's memory, and what the next one reads
     * from there. Else these devices keep what several passes touch, for each frame in flight and one more, if they
     * have room for it, and only what another device reads is copied. A binding is kept if every kernel that is given
     * rows of it also takes its COX_ARG_ORIGIN. Nothing is kept with `verify`, or where a pass changes something in
     * place or overwrites an input. */
    bool copy_between_passes;

    /* True: each pass is split for itself. Else successive passes of as many rows, with neither `devices` nor a
     * `policy` of their own, share one split, unless the policy hands out rows on demand or their multiples of the row alignment leave too
     * few splits in common: so rows stay on the devices that have them. The policy is told what a device took for all
     * of them, as if they were one pass, when the last is over; it can have no shadow. */
    bool split_each_pass;

    /* A session of the same runtime, of other rows or pitches: where a stream changes its size or format. What it has
     * measured of the same devices and policy is what this one begins with, scaled to the bytes of its frames, unless
     * the cache_dir has what one of just this shape measured; with the same kernels there is no warm-up either. It may
     * have frames under way, and is not needed any more once cox_session_create has returned. NULL = none. */
    cox_session *warm_start;

    /* Not NULL: cox_session_create compiles nothing and returns at once; see cox_ready_fn. `ready_user` is for it. */
    cox_ready_fn *ready;
    void *ready_user;
};

/* Build the kernels on every device, check the contracts, prepare frame slots. `*out` is NULL
 * unless COX_OK. A device on which a kernel does not build leaves the session. Its log line holds
 * the compiler's output.
 *
 * The log also warns in two cases:
 *   bands can begin only at few rows: the line says which pitch mends it
 *   a kernel could write what it only reads (see cox_binding): once for each binding
 *
 * Blocks: for compilation, unless cox_session_params.ready is set. That function then gets
 * COX_E_BUILD, COX_E_DEVICE_MEMORY and a device's other errors.
 * Errors:
 *   COX_E_INVALID      an argument is NULL. A shape, contract or argument does not hold together,
 *                      or a kernel takes other arguments. The warm_start is of another runtime.
 *                      The call is made from a callback, or in a child process after fork. The log
 *                      says which.
 *   COX_E_UNSUPPORTED  a kernel fits no device
 *   COX_E_NOT_FOUND    no policy has that name
 *   COX_E_BUILD        a kernel builds on no device
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_session_create(cox_runtime *runtime,
                                                     const struct cox_session_params *params,
                                                     cox_session **out);

/* How far cox_session_warm is: `done` of `total` devices are warm. On the calling thread of cox_session_warm; must not
 * destroy the session. */
typedef void cox_warm_fn(void *user, uint32_t done, uint32_t total);

/* Have every device do a frame now, in the library's memory, so that the session's first frame
 * costs no more than the others. The devices compile first, which some drivers do at the first
 * launch. Several devices are then timed. Without this call the first frame waits for both, unless
 * there is one device alone or `no_warmup` is set. The call has no effect after the first frame.
 *
 * The buffers are all zeros. `params` is the parameter block as in a frame, since kernel times may
 * depend on it; NULL = zeros. `progress` may be NULL.
 *
 * Blocks: for compilation, and some ten milliseconds for each device.
 * Errors: COX_E_INVALID (NULL; from a callback, or in a child process after fork: the log says
 * which), COX_E_NOMEM, COX_E_NO_DEVICE (every device is quarantined or absent). Thread-safety: safe
 * from any thread, callbacks aside. */
COX_API COX_MUST_CHECK cox_status cox_session_warm(cox_session *session, const void *params,
                                                   cox_warm_fn *progress, void *user);

/* Wait for everything under way, then destroy and set to NULL; NULL is accepted. Kernels that are being made for
 * devices that join are waited for too, and `ready`, which must not read `*session` meanwhile. Otherwise quick after
 * cox_session_cancel, but for kernels that were compiled for this session and go to cox_runtime_params.cache_dir now:
 * some drivers compile once more for that.
 *
 * Does nothing but a line in the log, and leaves *session, from a callback, while a thread is inside cox_session_warm,
 * and in a child process after fork. */
COX_API void cox_session_destroy(cox_session **session);

/* What becomes of a frame that misses its deadline. Values are ABI: append, never renumber. */
enum cox_late {
    COX_LATE_DELIVER = 0, /* it is done all the same */

    /* What of the frame has not begun on a device when its deadline passes is not done any more. If there is such, the
     * frame ends with COX_E_LATE, in its turn, once the devices have ended what they are at; a frame all of which has
     * begun is delivered, late. */
    COX_LATE_DROP = 1,
};

/* One frame: a buffer for each binding, in binding order (NULL for scratch), and the parameter block. Copied by
 * submit. */
struct cox_frame {
    cox_buffer *const *buffers;
    uint32_t buffer_count;
    const void *params; /* params_bytes; NULL = zeros */
    bool nowait;        /* COX_E_BUSY instead of blocking */

    /* When it is to be delivered, from its submission; 0 = cox_policy_options.deadline_ns, UINT64_MAX = at no time. */
    uint64_t deadline_ns;

    enum cox_late late;
};

/* The frame is done: `status` is COX_OK and every row is written, or an error and the outputs are undefined:
 * COX_E_DEVICE_LOST, COX_E_MISMATCH, COX_E_MEMORY_UNSAFE, COX_E_CANCELLED, COX_E_LATE, COX_E_DEVICE_MEMORY, COX_E_NOMEM,
 * COX_E_NO_DEVICE (none could join, see cox_ready_fn). Runs exactly once per submitted frame, on the scheduler thread,
 * frames in submission order. May submit one frame to the same session, which has a place for it; more, or to other
 * sessions, may be COX_E_BUSY, since nothing blocks there. May cancel, and destroy buffers; must not wait for a thread
 * that is inside cox_session_run.
 *
 * What was delivered is final: no device writes the frame's outputs any more, and what one still read of its inputs
 * would change nothing. A device that hangs for longer than cox_session_params.device_timeout_ns is given up, though it
 * may wake and write: its frame then ends in fresh memory (cox_buffer_data), or, if an output is wrapped memory, with
 * COX_E_MEMORY_UNSAFE, as do all later frames with that buffer. Destroy it then; cox_released_fn says when its memory may be
 * used again. */
typedef void cox_done_fn(void *user, uint64_t frame, cox_status status);

/* Submit one frame. Returns at once. The buffers belong to the session until `done` has run, and
 * may be destroyed at any time (cox_buffer_destroy). `done` may be NULL.
 *
 * A buffer may be in several frames under way, of any sessions of the runtime. A frame that writes
 * it starts after all earlier frames with that buffer are delivered. A frame that reads it starts
 * after all earlier writers are delivered. If one of these writers failed, a frame that reads the
 * rows it was to write ends with the same status.
 *
 * Blocks only while `in_flight` frames are under way and `frame->nowait` is unset.
 * Errors:
 *   COX_E_INVALID    an argument is NULL. The number of buffers is wrong. A buffer is shorter than
 *                    the session's rows need, is of another runtime, or is written and given twice.
 *                    `late` is no cox_late. The call is made in a child process after fork. The log
 *                    says which.
 *   COX_E_NO_DEVICE  every device is quarantined or absent
 *   COX_E_BUSY
 * On an error `done` does not run. Thread-safety: safe from any thread, callbacks included. */
COX_API COX_MUST_CHECK cox_status cox_session_submit(cox_session *session,
                                                     const struct cox_frame *frame,
                                                     cox_done_fn *done, void *user);

/* Submit one frame and wait for it: the frame's status, or submit's. Quicker than waiting by hand:
 * the caller gives the frame to the devices and takes their answer itself. Policies may run on it.
 * The call blocks if a driver hangs, though other devices finish its frame. Errors: COX_E_INVALID
 * too from a callback, and in a child process after fork. */
COX_API COX_MUST_CHECK cox_status cox_session_run(cox_session *session,
                                                  const struct cox_frame *frame);

/* Wait until no frame and no shadow is under way, and `ready` has run.  Errors: COX_E_INVALID (NULL; from a callback
 * on the scheduler thread, or in a child process after fork: the log says which). */
COX_API cox_status cox_session_wait(cox_session *session);

/* End the frames that were submitted until now soon: what has not begun on a device is not done any more. Each one's
 * callback comes, in order, with COX_E_CANCELLED or an earlier error; only where it was about to come with COX_OK,
 * as before. Does not block; frames may be submitted at once.
 * Errors: COX_E_INVALID (NULL, a child process after fork). Thread-safety: safe from any thread, callbacks included. */
COX_API cox_status cox_session_cancel(cox_session *session);

/* Whether a device takes part in a session. Values are ABI: append, never renumber. */
enum cox_device_state {
    COX_DEVICE_ACTIVE = 0, /* gets rows */
    /* has failed, exceeded its timeout or given wrong rows; bands it still holds may end */
    COX_DEVICE_DRAINING = 1,
    /* waits to be tried again, after pauses that double up to half a minute */
    COX_DEVICE_QUARANTINED = 2,
    COX_DEVICE_REBUILDING = 3, /* gets a new context and new kernels, in the background */
    /* does some rows of a frame on spare buffers, to show that it works */
    COX_DEVICE_PROBATION = 4,
    /* gets its kernels, in the background, and has no part yet: cox_session_params.ready */
    COX_DEVICE_JOINING = 5,
    COX_DEVICE_ABSENT = 6, /* could not join, as the log says, and is not tried again */
};

/* "active", "draining", "quarantined", "rebuilding", "on probation", "joining", "absent"; "unknown" for any other
 * value. Static storage. */
COX_API const char *cox_device_state_name(enum cox_device_state state);

/* A device in a session. Keeps its size: what is new will stand in a further array of cox_session_info. */
struct cox_session_device {
    uint32_t device; /* index in the runtime */
    /* a shared device that comes back gets a new context, and is mapped from then on */
    enum cox_memory_mode mode;
    enum cox_device_state state;
    uint32_t lost;             /* times that it went out, */
    uint32_t returned;         /* and came back */
    uint64_t single_device_ns; /* one whole frame alone, from warm-up; 0 = not measured */
    /* most rows in one launch, bounded by the device's memory; 0 = it has not joined */
    uint32_t max_rows;
};

struct cox_session_info {
    uint32_t row_alignment; /* every band boundary but the frame's end is a multiple of it */
    bool profile_loaded;    /* began with what an earlier session or its warm_start measured */
    uint32_t in_flight;
    char policy[32];
    uint64_t frames_done;   /* delivered, with whatever status */
    uint64_t frames_late;   /* of them: delivered after their deadline, with COX_OK */
    uint64_t worst_late_ns; /* the most of these, after it */
    uint32_t device_count;
    struct cox_session_device devices[COX_DEVICES_MAX];
    /* parallel to devices: bands are wrapped or copied */
    enum cox_host_memory host_memory[COX_DEVICES_MAX];
    uint64_t frames_dropped; /* of frames_done: ended with COX_E_LATE; see cox_late */
};

/* Never waits for a device. All zeros for NULL, and in a child process after fork. Thread-safety: safe from any
 * thread. */
COX_API void cox_session_info(cox_session *session, struct cox_session_info *info);

#ifdef __cplusplus
}
#endif
#endif
