/* A spec says completely what a session runs: bindings by index, the arguments of each kernel, and
 * how each pass uses each binding. The file runtime/api/resolve.c makes a spec of a session's
 * public parameters. The library's own pipelines and most tests are written as specs.
 *
 * A pass of a spec is a public pass with those that are fused to it: one stage for each. Fields
 * that are not explained here mean what they mean in cox_session_params.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_SPEC_H
#define COX_BASE_SPEC_H

#include <coxswain/session.h>

/* Room for what a pipeline of the library points to. */
struct cox__pipeline_storage {
    uint64_t word[2560];
};

/* Which rows of a buffer a band uses. */
enum cox__row_access {
    COX__ROWS = 0,  /* the band's own rows */
    COX__HALO = 1,  /* reads rows r - halo_above .. r + halo_below, clipped at the frame's edge */
    COX__WHOLE = 2, /* reads the whole buffer; no device writes it in this pass */
    /* Each band writes its own partial result, zeroed before. The host merges them in row order. */
    COX__REDUCE = 3,
};

enum cox__access { COX__READ = 0, COX__WRITE = 1, COX__READ_WRITE = 2 };

/* What becomes of an element that a pass leaves alone in rows that it writes. */
enum cox__coverage {
    COX__COVERS_UNKNOWN = 0, /* it keeps its value or becomes zero; devices clear their memory */
    COX__COVERS_ALL = 1,     /* there is no such element: a promise that only check mode tests */
    COX__COVERS_SOME = 2,    /* it keeps its value: devices get the rows first */
};

/* One buffer of the frame. A kernel should take a COX__READ binding as a pointer to const: a
 * write to it would change what other devices read. The log warns of a kernel that does not. */
struct cox__binding {
    const char *name; /* for messages; may be NULL. Copied. */
    enum cox__row_access row_access;

    /* ROWS: any. WHOLE: COX__READ. REDUCE: COX__WRITE. HALO: COX__READ, or COX__READ_WRITE for
     * scratch that is each band's own. */
    enum cox__access access;

    enum cox__coverage coverage; /* ROWS with WRITE; of others it is not read */
    size_t pitch_bytes;          /* ROWS, HALO */

    /* ROWS, HALO: bytes of a row that are copied and compared, at its start; 0 = pitch_bytes. */
    size_t row_bytes;

    /* ROWS, HALO: bytes before the first row, and rows above and below the frame's */
    size_t offset_bytes;
    uint32_t border_above;
    uint32_t border_below;

    uint32_t row_divisor; /* ROWS, HALO: frame rows per buffer row; 0 = 1 */
    uint32_t halo_rows;   /* HALO: in buffer rows, on both sides */

    /* HALO: the same on one side. The larger number counts. */
    uint32_t halo_above;
    uint32_t halo_below;

    /* ROWS with READ_WRITE: a band reads all rows, and writes its own. Kernels get memory that
     * begins at row 0. */
    bool reads_all;

    uint32_t element_bytes; /* what the kernels' pointers point to; 0 = unknown */

    size_t bytes;        /* WHOLE, REDUCE */
    cox_merge_fn *merge; /* REDUCE */
    void *merge_user;

    /* Memory of the library. A pass writes it and later passes read it. With HALO and READ_WRITE it
     * is each band's own: the first stage that takes it writes it, and later stages of the same
     * pass only read it. The engine cannot check that; sessions of the public API do. */
    bool scratch;
    bool stays; /* as in cox_buffer_layout */
};

/* What a kernel's argument gets. */
enum cox__arg_kind {
    COX__ARG_KIND_BUFFER = 0, /* global T *: the band's first row in memory of binding `index` */
    COX__ARG_KIND_PARAMS = 1, /* T: `bytes` of the frame's parameters from `offset` */
    COX__ARG_KIND_FIRST = 2,  /* int: the band's first row, counted in rows of the pass */
    COX__ARG_KIND_ROWS = 3,   /* int: the band's number of rows */
    COX__ARG_KIND_FRAME = 4,  /* int: all rows */

    /* int: the buffer row at which the memory of binding `index` begins. It lies before the band
     * for HALO. It is 0 if the device keeps a frame's rows between passes, and in an absolute pass.
     * The kernel finds buffer row r at r - origin. */
    COX__ARG_KIND_ORIGIN = 5,

    COX__ARG_KIND_LOCAL = 6,   /* local T *: `bytes` of local memory */
    COX__ARG_KIND_COLUMNS = 7, /* int: the stage's columns */

    /* read_only image2d_t: the rows that COX__ARG_KIND_BUFFER would point to. `offset` is
     * OpenCL's channel order times 65536 plus its channel type, `bytes` the columns. */
    COX__ARG_KIND_IMAGE = 8,

    COX__ARG_KIND_VALUE = 9, /* int: `offset` */
};

/* One argument of a kernel. Fields that its kind does not use are 0. The macros are
 * initialisers. */
struct cox__arg {
    enum cox__arg_kind kind;
    uint32_t index;
    size_t offset;
    size_t bytes;
};

/* clang-format off */
#define COX__ARG_BUFFER(binding) {COX__ARG_KIND_BUFFER, (binding), 0, 0}
#define COX__ARG_PARAMS(type) {COX__ARG_KIND_PARAMS, 0, 0, sizeof(type)}
#define COX__ARG_FIELD(type, field) \
    {COX__ARG_KIND_PARAMS, 0, offsetof(type, field), sizeof(((type *)0)->field)}
#define COX__ARG_FIRST_ROW {COX__ARG_KIND_FIRST, 0, 0, 0}
#define COX__ARG_ROWS {COX__ARG_KIND_ROWS, 0, 0, 0}
#define COX__ARG_FRAME_ROWS {COX__ARG_KIND_FRAME, 0, 0, 0}
#define COX__ARG_ORIGIN(binding) {COX__ARG_KIND_ORIGIN, (binding), 0, 0}
#define COX__ARG_LOCAL(size) {COX__ARG_KIND_LOCAL, 0, 0, (size)}
#define COX__ARG_COLUMNS {COX__ARG_KIND_COLUMNS, 0, 0, 0}
#define COX__ARG_IMAGE(binding, order, type, columns) \
    {COX__ARG_KIND_IMAGE, (binding), ((size_t)(order) << 16) | (size_t)(type), (columns)}
/* clang-format on */

/* The form of a kernel for some devices. */
struct cox__variant {
    uint32_t device_plus_1;    /* 1 + the runtime's index of its only device; 0 = by type */
    enum cox_device_type type; /* 0 = any device that has no other variant */
    const char *source;        /* copied, as are the next five fields */
    const char *options;       /* NULL = none */

    /* Lists; NULL = none. Of the headers, only those that the source uses are copied. */
    const struct cox_source *headers;
    const struct cox_source *libraries;

    /* The kernel compiled ahead of time, which the device takes (takes_code of the backend). NULL =
     * none. If the driver refuses it in the end, `source` is compiled, unless it is `declared`: a
     * declaration only. */
    const void *code;
    size_t code_bytes;
    bool declared;

    /* Work-items of a group. 0 and 0: the size that the kernel requires, or else the library's
     * choice for each device (opencl/work_group.c). One 0 = 1. A device that does not allow the
     * size leaves the session. */
    uint32_t local_columns;
    uint32_t local_rows;

    uint32_t item_columns; /* columns and rows of one work-item; 0 = 1 */
    uint32_t item_rows;

    /* Groups of any size give the same results, so the local size is halved until the device allows
     * it. No effect if the kernel uses local memory or requires its size. */
    bool any_local;
};

enum { COX__ARG_TEXT_BYTES = 64 };

/* What the text of a source says about an argument of its kernel. */
struct cox__arg_text {
    char name[COX__ARG_TEXT_BYTES];
    char type[COX__ARG_TEXT_BYTES]; /* of a pointer: what it points to */
    bool read_only;                 /* the kernel only reads it, though it may not be const */
};

/* One kernel launch over a band. Stages of a pass run in order on each band.
 *
 * A stage may read through HALO what an earlier stage of the pass wrote, if the binding is
 * scratch with HALO and READ_WRITE. The earlier stage then runs over the rows that are read on
 * both sides too. It writes no other binding, and reads through HALO (0 rows will do) or WHOLE. */
struct cox__stage {
    const char *kernel; /* copied */
    uint32_t columns;   /* 0 = 1 */
    bool one_dimension; /* dimension 0 runs over the rows; there are no columns */
    uint32_t variant_count;
    uint32_t arg_count;
    const struct cox__variant *variants;
    const struct cox__arg *args;

    /* One for each argument: the kernel must compile to these names and types. NULL = unknown. */
    const struct cox__arg_text *texts;

    bool local_arrays; /* the kernel's body declares local memory */
};

/* How a pass uses a binding, in place of what the session says. Passes that use a binding by
 * rows agree on its bytes. Scratch is written before it is read. A binding that is REDUCE in the
 * session is REDUCE in one pass, and WHOLE in others; no other binding is REDUCE. */
struct cox__pass_binding {
    uint32_t binding; /* index in cox__session_spec.bindings */
    enum cox__row_access row_access;
    enum cox__access access;
    enum cox__coverage coverage;
    uint32_t row_divisor; /* ROWS, HALO: rows of the pass per buffer row; 0 = 1 */
    uint32_t halo_rows;
    uint32_t halo_above;
    uint32_t halo_below;
    bool reads_all;
};

/* One pass over the frame. All rows of a pass are written before the next one starts. */
struct cox__pass_spec {
    const char *name; /* for messages; may be NULL. Copied. */
    uint32_t rows;    /* 0 = the session's */
    bool absolute;    /* as in cox_pass */
    uint32_t use_count;
    const struct cox__pass_binding *uses; /* none: all, as the session has them */
    uint32_t stage_count;
    const struct cox__stage *stages;

    /* Devices that run the pass, by the runtime's index. If none of them is active, the others
     * run it. 0 = all. */
    uint32_t device_count;
    const uint32_t *devices;

    const char *policy;     /* NULL = the session's; a pass with its own shares no split */
    cox_pass_done_fn *done; /* NULL = none */
    void *done_user;
};

/* The first device can take frames: COX_OK. Or none will: the status that cox_session_create would
 * have returned. Runs once, on the scheduler thread, after create has set `*out`, perhaps before it
 * has returned.
 *
 * Devices begin as COX_DEVICE_JOINING while all kernels compile in the background. Frames wait
 * for the first device. Each other device first repeats some rows of a frame
 * (COX_DEVICE_PROBATION), in place of a warm-up. A device on which a kernel does not build is
 * COX_DEVICE_ABSENT for good; then the session saves no timings. */
typedef void cox__ready_fn(void *user, cox_status status);

/* Read only during cox__session_create; everything is copied. */
struct cox__session_spec {
    uint32_t rows;
    uint32_t binding_count;
    uint32_t stage_count;
    const struct cox__binding *bindings;
    const struct cox__stage *stages; /* of the only pass, if pass_count is 0 */
    uint32_t pass_count;
    const struct cox__pass_spec *passes;
    size_t params_bytes;
    bool allow_in_place; /* a ROWS binding may be COX__READ_WRITE; its bands are not repeated */

    const char *policy;
    const struct cox_policy *custom_policy;
    const struct cox_policy_options *policy_options;
    uint32_t min_band_rows;
    uint32_t in_flight;
    uint32_t device_count; /* 0 = all */
    const uint32_t *devices;
    bool split_each_pass;
    bool no_warmup;
    cox__ready_fn *ready; /* not NULL: compile in the background */
    void *ready_user;
    cox_session *warm_start;
    bool no_profile;
    double verify;
    bool check;
    uint64_t device_timeout_ns;
    cox_meter_fn *meter;
    void *meter_user;
    cox_report_fn *report;
    void *report_user;
    bool profile;
};

/* A frame with a buffer for each binding, NULL for scratch. Copied by submit. */
struct cox__frame_spec {
    cox_buffer *const *buffers;
    uint32_t buffer_count;
    const void *params; /* NULL = zeros */
    bool nowait;
    uint64_t deadline_ns;
    enum cox_late late;

    /* Compute nothing. Bring the rows of the only buffer, which stays on devices, to the host's
     * memory. */
    bool fetch;
};

/* cox_session_create, _submit and _run, for specs. */
cox_status cox__session_create(cox_runtime *runtime, const struct cox__session_spec *spec,
                               cox_session **out);
cox_status cox__session_submit(cox_session *session, const struct cox__frame_spec *frame,
                               cox_done_fn *done, void *user);
cox_status cox__session_run(cox_session *session, const struct cox__frame_spec *frame);

#endif
