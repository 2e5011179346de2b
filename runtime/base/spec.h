/* What a session runs, with everything said: bindings by index, the arguments of each kernel, how each pass touches each
 * binding. cox__signature makes it of a session's parameters, and the library's own pipelines are written in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_SPEC_H
#define COX_BASE_SPEC_H

#include <coxswain/session.h>

/* Room for what a pipeline of the library points to. */
struct cox__pipeline_storage {
    uint64_t word[2048];
};

/* How a pass touches a buffer with respect to its band. */
enum cox__row_access {
    COX__ROWS = 0, /* row r of the band touches row r of the buffer */
    /* reads rows r - halo_rows .. r + halo_rows, clipped at the frame's edge; see
     * cox__binding.scratch */
    COX__HALO = 1,
    COX__WHOLE = 2, /* every device reads all of it; not written in this pass */
    /* every band writes its own partial, zeroed before; the host merges them in row order */
    COX__REDUCE = 3,
};

/* What a pass does with a buffer. */
enum cox__access { COX__READ = 0, COX__WRITE = 1, COX__READ_WRITE = 2 };

/* One buffer of the frame as the pipeline sees it. A kernel should take a COX__READ one as a pointer
 * to const, since a write to it would change what other devices read. The log warns of a kernel
 * that does not, if the driver reports it. */
struct cox__binding {
    const char *name; /* for messages; may be NULL. Copied. */
    enum cox__row_access row_access;

    /* ROWS: any; WHOLE: COX__READ; HALO: COX__READ, or COX__READ_WRITE for scratch that is each band's own; REDUCE:
     * COX__WRITE. */
    enum cox__access access;
    size_t pitch_bytes; /* ROWS, HALO: bytes from one buffer row to the next */
    uint32_t
        row_divisor;     /* ROWS, HALO: frame rows per buffer row, e.g. 2 for 4:2:0 chroma; 0 = 1 */
    uint32_t halo_rows;  /* HALO: in buffer rows */
    size_t bytes;        /* WHOLE, REDUCE: size */
    cox_merge_fn *merge; /* REDUCE */
    void *merge_user;

    /* Memory of the library's: the frame gives NULL for it. What a pass writes there by rows, or reduces to it, later
     * passes read. With HALO and READ_WRITE it is each band's own instead: a stage writes it, later stages of the same
     * pass read it, and what the band needs beyond its own rows it computes itself (see cox__stage). */
    bool scratch;
};

enum cox__arg_kind {
    /* __global T *: the first row in memory of binding `index` for this band */
    COX__ARG_KIND_BUFFER = 0,
    COX__ARG_KIND_PARAMS = 1, /* T by value: `bytes` of the frame's parameters from `offset` */
    /* int: the band's first row, of the frame, or of the pass if cox__pass_spec.rows is set */
    COX__ARG_KIND_FIRST = 2,
    COX__ARG_KIND_ROWS = 3,  /* int: the band's number of such rows */
    COX__ARG_KIND_FRAME = 4, /* int: all such rows */

    /* int: the buffer row at which binding `index`'s memory begins: before the band for HALO, and at 0 where a device
     * keeps a frame's rows between passes. A kernel that takes it finds buffer row r at r - origin, of ROWS too. */
    COX__ARG_KIND_ORIGIN = 5,

    COX__ARG_KIND_LOCAL = 6,   /* __local T *: `bytes` of local memory */
    COX__ARG_KIND_COLUMNS = 7, /* int: the stage's columns */

    /* read_only image2d_t: the rows that COX__ARG_KIND_BUFFER would point to, copied into an image, for samplers. Made
     * with COX__ARG_IMAGE of coxswain/opencl.h, which says more: `offset` is OpenCL's channel order times 65536, plus
     * its channel type, `bytes` the columns. */
    COX__ARG_KIND_IMAGE = 8,

    COX__ARG_KIND_VALUE = 9, /* int: `offset` */
};

/* One argument of a kernel. What its kind does not use is 0. The macros are initialisers. */
struct cox__arg {
    enum cox__arg_kind kind;
    uint32_t index;
    size_t offset;
    size_t bytes;
};
#define COX__ARG_BUFFER(binding)              \
    {                                         \
        COX__ARG_KIND_BUFFER, (binding), 0, 0 \
    }
#define COX__ARG_PARAMS(struct_type)                    \
    {                                                   \
        COX__ARG_KIND_PARAMS, 0, 0, sizeof(struct_type) \
    }
#define COX__ARG_FIELD(struct_type, field)                                                       \
    {                                                                                            \
        COX__ARG_KIND_PARAMS, 0, offsetof(struct_type, field), sizeof(((struct_type *)0)->field) \
    }
#define COX__ARG_FIRST_ROW           \
    {                                \
        COX__ARG_KIND_FIRST, 0, 0, 0 \
    }
#define COX__ARG_ROWS               \
    {                               \
        COX__ARG_KIND_ROWS, 0, 0, 0 \
    }
#define COX__ARG_FRAME_ROWS          \
    {                                \
        COX__ARG_KIND_FRAME, 0, 0, 0 \
    }
#define COX__ARG_ORIGIN(binding)              \
    {                                         \
        COX__ARG_KIND_ORIGIN, (binding), 0, 0 \
    }
#define COX__ARG_LOCAL(size)              \
    {                                     \
        COX__ARG_KIND_LOCAL, 0, 0, (size) \
    }
#define COX__ARG_COLUMNS               \
    {                                  \
        COX__ARG_KIND_COLUMNS, 0, 0, 0 \
    }

#define COX__ARG_IMAGE(binding, order, type, columns)                                       \
    {                                                                                       \
        COX__ARG_KIND_IMAGE, (binding), ((size_t)(order) << 16) | (size_t)(type), (columns) \
    }

/* A kernel in the form that suits one kind of device. Every variant of a stage takes the same arguments and must
 * give the same results. */
struct cox__variant {
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
struct cox__stage {
    const char *kernel; /* copied */
    uint32_t columns;   /* 0 = 1 */
    uint32_t variant_count;
    uint32_t arg_count;
    const struct cox__variant *variants;
    const struct cox__arg *args;
};

/* How a pass touches one of the session's bindings. What that one says of access, row_divisor and halo_rows does not
 * count then. Passes that use a binding by rows agree on its bytes. Scratch is written before it is read. What the
 * session has as REDUCE is used as REDUCE, by one pass, or as WHOLE, and nothing else as REDUCE. */
struct cox__pass_binding {
    uint32_t binding; /* index in cox__session_spec.bindings */
    enum cox__row_access row_access;
    enum cox__access
        access;           /* as in cox__binding; WHOLE, HALO: of what earlier passes wrote, too */
    uint32_t row_divisor; /* ROWS, HALO: rows of the pass per buffer row; 0 = 1 */
    uint32_t halo_rows;   /* HALO: in buffer rows */
};

/* One pass over the frame: bands of rows, each running all stages. A frame's passes run one after the other; in
 * between, every row is there for all devices. Successive ones of as many rows share a split
 * (cox__session_spec.split_each_pass). Passes of several frames in flight overlap. */
struct cox__pass_spec {
    const char *name; /* for messages; may be NULL. Copied. */
    uint32_t rows;    /* of the pass, as of a frame; 0 = the session's */
    uint32_t use_count;
    /* the bindings that its stages touch; none: all, as cox__binding has them */
    const struct cox__pass_binding *uses;
    uint32_t stage_count;
    const struct cox__stage *stages;

    /* Devices of the session that do it, by their index in the runtime, as long as one of them is active; then the
     * others do it. 0 = all. */
    uint32_t device_count;
    const uint32_t *devices;

    const char *policy;     /* NULL = the session's; a pass that names a policy shares no split */
    cox_pass_done_fn *done; /* NULL = none */
    void *done_user;
};

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
typedef void cox__ready_fn(void *user, cox_status status);

/* Zero in every optional field means the default. Read only during cox_session_create; everything is copied. */
struct cox__session_spec {
    uint32_t rows; /* frame rows, 1 .. INT32_MAX */
    uint32_t binding_count;
    uint32_t stage_count;
    const struct cox__binding *bindings;
    const struct cox__stage *stages;

    /* Size of the per-frame parameter block, at most COX_CONSTANTS_BYTES_MAX. A kernel may take parts of it: every device takes
     * 1024 bytes of arguments (CL_DEVICE_MAX_PARAMETER_SIZE), some more. */
    size_t params_bytes;

    const char *policy;                              /* NULL = "adaptive" */
    const struct cox_policy *custom_policy;          /* not NULL: used instead of `policy` */
    const struct cox_policy_options *policy_options; /* NULL = the defaults */
    uint32_t min_band_rows;                          /* 0 = one row alignment */
    uint32_t in_flight;                              /* frames under way at once; 0 = 2 */
    uint32_t device_count; /* devices of the runtime that take part; 0 = all */
    const uint32_t *devices;
    /* a ROWS binding may be COX__READ_WRITE; a band that fails is then not re-run */
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
    const struct cox__pass_spec *passes;

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

    /* Not NULL: cox_session_create compiles nothing and returns at once; see cox__ready_fn. `ready_user` is for it. */
    cox__ready_fn *ready;
    void *ready_user;
};

/* One frame: a buffer for each binding, in binding order (NULL for scratch), and the parameter block. Copied by
 * submit. */
struct cox__frame_spec {
    cox_buffer *const *buffers;
    uint32_t buffer_count;
    const void *params; /* params_bytes; NULL = zeros */
    bool nowait;        /* COX_E_BUSY instead of blocking */

    /* When it is to be delivered, from its submission; 0 = cox_policy_options.deadline_ns, UINT64_MAX = at no time. */
    uint64_t deadline_ns;

    enum cox_late late;
};

/* cox_session_create and its kind, for what is written as a spec. */
cox_status cox__session_create(cox_runtime *runtime, const struct cox__session_spec *spec,
                               cox_session **out);
cox_status cox__session_submit(cox_session *session, const struct cox__frame_spec *frame,
                               cox_done_fn *done, void *user);
cox_status cox__session_run(cox_session *session, const struct cox__frame_spec *frame);

#endif
