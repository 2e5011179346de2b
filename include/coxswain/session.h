/* Sessions: frames of one shape, run through a list of kernels, split over all devices.
 *
 * A frame is cut into bands of rows, one or more per device. Each kernel runs on each band.
 *
 *     static const char invert[] =
 *         "kernel void invert(global const uint *in, global uint *out, int columns, int rows)\n"
 *         "{\n"
 *         "    int x = get_global_id(0), y = get_global_id(1);\n"
 *         "    if (x < columns && y < rows)\n"
 *         "        out[y * columns + x] = ~in[y * columns + x];\n"
 *         "}\n";
 *
 *     cox_status s = cox_run(runtime, invert, 2048, 1080, COX_ARGS(in, out));
 *
 * For frames that repeat, create a session and buffers. This kernel also reads the rows above and
 * below its own. In the top band, in_first_row is 0.
 *
 *     static const char blur[] =
 *         "kernel void blur(global const float *in, int in_first_row, global float *out,\n"
 *         "                 int columns, int rows, int first_row, int frame_rows)\n"
 *         "{\n"
 *         "    int x = get_global_id(0), y = get_global_id(1), row = first_row + y;\n"
 *         "    if (x >= columns || y >= rows) return;\n"
 *         "    int up = max(row - 1, 0), down = min(row + 1, frame_rows - 1);\n"
 *         "    out[y * columns + x] = (in[(up - in_first_row) * columns + x] +\n"
 *         "                            in[(down - in_first_row) * columns + x]) / 2;\n"
 *         "}\n";
 *
 *     const struct cox_session_params params = {
 *         .columns = 2048,
 *         .rows = 1080,
 *         .passes = COX_LIST(struct cox_pass,
 *                            {.source = blur,
 *                             .arguments = COX_LIST(struct cox_argument,
 *                                                   {.name = "in", .halo_rows = 1})})};
 *     cox_status s = cox_session_create(runtime, &params, &session);
 *     if (!s) s = cox_buffer_create(runtime, 2048 * 1080 * sizeof(float), &in);
 *     if (!s) s = cox_buffer_create(runtime, 2048 * 1080 * sizeof(float), &out);
 *     while (!s && read_frame(cox_buffer_data(in)))
 *         s = cox_session_run(session, &(struct cox_frame){.buffers = COX_BUFFERS(in, out)});
 *
 * The kernel's signature says what each argument is.
 *
 *   parameter                   what it gets
 *   global const T *NAME        the buffer NAME, read
 *   global T *NAME              the buffer NAME, written: each element of the band's rows
 *   int NAME_first_row          the buffer row at which NAME points: the band's first row, or the
 *                               first of its halo rows (cox_argument.halo_rows)
 *   int NAME_pitch              elements of type T from one row of NAME to the next
 *   read_only image2d_t NAME    the buffer NAME as an image; see cox_buffer_layout
 *   local T *NAME               local memory; see cox_argument.local_bytes
 *   int columns                 the pass's columns
 *   int rows                    the rows of this band
 *   int first_row               the pass's row at which this band begins
 *   int frame_rows              all rows of the pass
 *   T NAME                      the field NAME of the frame's constants; see cox_field
 *   T constants                 all of the frame's constants, as one struct
 *
 * T may be a type of OpenCL C, a typedef or `struct S`. A table of constants is a struct with an
 * array. Sizes must match on both sides. Images must be `read_only image2d_t`. Samplers, pipes and
 * images of other kinds cannot be parameters; declare a sampler as a constant in the source.
 *
 * A kernel must write every element of its rows of a buffer that it writes. An element that it
 * leaves alone is undefined: it keeps its old value or becomes zero, which depends on the device.
 * It never shows another buffer or an earlier frame, unless cox_argument.writes_all is set. In
 * scratch it may also have a value from an earlier frame of the session. Elements that must keep
 * their values need cox_argument.partial. For the bytes between rows see
 * cox_buffer_layout.row_bytes.
 *
 * A kernel adds to a merged buffer (cox_buffer_layout.merge). Each band has a separate copy, which
 * starts with zeros.
 *
 * The qualifiers restrict and volatile and the address space constant are accepted. Devices limit
 * the number and size of constant pointers. A device leaves the session if it allows fewer, or if a
 * whole buffer is larger. A larger buffer by rows limits the rows of its bands. A name has at most
 * 63 characters. The names of this table come before fields of the same name.
 *
 * The library reads the source without a preprocessor: a signature that macros make cannot be read.
 * If a driver reports other names, kinds or types than the source's text, the session is refused.
 *
 * Dimension 0 of the work-items runs over columns, dimension 1 over the band's rows. The global
 * size is padded to the local size, so a kernel must compare its ids with `columns` and `rows`. If
 * a work-item computes several columns or rows (cox_pass.item_columns), multiply the ids first.
 *
 * Without columns (cox_session_params.columns 0) there is one dimension, and it runs over the rows.
 * A kernel that is written for the whole frame runs unchanged: see cox_pass.absolute.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_SESSION_H
#define COXSWAIN_SESSION_H

#include <coxswain/runtime.h>
#include <coxswain/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COX_BUFFERS_MAX = 12,   /* buffers of a session */
    COX_PASSES_MAX = 8,     /* passes of a session; a group of fused passes counts as one */
    COX_FUSED_MAX = 8,      /* passes of a group: the first one and those fused with it */
    COX_ARGUMENTS_MAX = 24, /* parameters of a kernel */

    /* Bytes of a frame's constants. Many devices take no more than 1024. */
    COX_CONSTANTS_BYTES_MAX = 2048,

    COX_IN_FLIGHT_MAX = 16, /* frames under way at once */
};

/* A list of structs, as an argument or an initialiser: COX_LIST(struct cox_pass, {...}, {...}).
 *
 * It is an array with one more element, of zeros, which ends the list. A list of passes ends where
 * `source`, `kernel` and `code` are all NULL, one of variants where `source` and `code` are. Other
 * lists end where `name` is NULL.
 *
 * The array lives until the end of the enclosing block, like those of COX_BUFFERS and COX_ARGS. An
 * array inside a struct, one element longer than its content, works too. The macro is for C. In
 * C++, give the array a name. */
#define COX_LIST(type, ...) ((const type[]){__VA_ARGS__, {0}})

/* ---- callbacks ----
 *
 * The callbacks of this header, of runtime.h and of sched.h.
 *
 *   callback           thread                                   may call
 *   cox_log_fn         Any thread, several at once.             Nothing of the library.
 *   cox_released_fn    Library thread, or cox_runtime_destroy.  Functions that create and destroy
 *                                                               buffers.
 *   cox_done_fn        Scheduler thread.                        Functions of buffers,
 *                                                               cox_session_submit and
 *                                                               cox_session_cancel. Must not block.
 *   cox_report_fn      Scheduler thread, or cox_session_run.    Nothing of the session.
 *   cox_pass_done_fn   Scheduler thread, or cox_session_run.    Nothing of the session.
 *   cox_merge_fn       Scheduler thread, or cox_session_run.    Nothing of the session.
 *   cox_meter_fn       Scheduler thread, or cox_session_run.    Nothing of the session. Must be
 *                                                               quick.
 *   cox_policy         One thread at a time.                    Nothing of the session. Must not
 *                                                               allocate or block.
 *
 * Check mode (cox_session_params.check) calls cox_pass_done_fn and cox_merge_fn inside
 * cox_session_submit too, several times for each frame. */

/* ---- run one kernel once ---- */

/* Pointers in the order of the kernel's parameters: COX_ARGS(in, out, &sigma). Leave out `columns`,
 * `rows`, `first_row`, `frame_rows`, NAME_first_row and NAME_pitch.
 *
 * A global pointer takes an array of columns x rows elements. A scalar or vector takes a pointer to
 * its value. */
#define COX_ARGS(...) ((const void *const[]){__VA_ARGS__, NULL})

/* Compile a kernel, run it over `columns` x `rows` work-items on all devices, and wait.
 *
 * With 0 columns there is one dimension, as in a session.
 *
 * This function compiles each time, and splits the rows by the devices' descriptions. For frames
 * that repeat, and for kernels that read other rows than their own, create a session.
 *
 * Blocks until the result is complete. Not from a callback.
 *
 * Errors: those of cox_session_create and cox_session_run. */
COX_API COX_MUST_CHECK cox_status cox_run(cox_runtime *runtime, const char *source,
                                          uint32_t columns, uint32_t rows, const void *const *args);

/* ---- what a session runs ---- */

/* A text of OpenCL C that a session's sources use: a header or a library. */
struct cox_source {
    const char *name; /* of a header: as in #include "NAME", relative and without ".." */
    const char *text;
};

/* What a kernel's signature cannot say about one of its arguments. A buffer without an entry is
 * read, or written, by rows: row r of the band uses row r of the buffer. */
struct cox_argument {
    const char *name;   /* as in the kernel; any other name is an error */
    const char *buffer; /* the session's buffer; NULL = that of the same name */

    /* The kernel reads this many more buffer rows above and below. At the edges of the frame, or of
     * the buffer's border, there are fewer: the kernel clamps. It takes NAME_first_row,
     * unless its pass is absolute. */
    uint32_t halo_rows;

    /* The same for one side. The larger of this and halo_rows counts. */
    uint32_t halo_above;
    uint32_t halo_below;

    bool whole; /* reads the whole buffer; merged buffers are always read whole */

    /* The kernel only reads the buffer, though its pointer is not const. Check mode finds a kernel
     * that writes it. */
    bool read_only;

    /* The kernel also reads what was there before. A band that fails then fails its frame.
     *
     * With `whole`, it reads rows anywhere and writes the band's rows. The pointer begins at row 0,
     * and NAME_first_row is 0. Rows of other bands that it reads must not be written in this
     * pass. */
    bool in_place;

    /* The kernel may leave elements of its rows alone; they keep their values. Staged devices copy
     * the rows in first. The kernel does not read them, so a band that fails can be repeated.
     *
     * Not for merged buffers, and not for scratch between fused passes. An earlier pass must have
     * written other scratch. */
    bool partial;

    /* The kernel writes every element of its rows, whatever the input. GPUs then need not clear the
     * rows first, which saves about 7 us per band and buffer. Check mode finds elements that the
     * kernel leaves alone. Without it they may show an earlier frame. */
    bool writes_all;

    uint32_t row_divisor; /* pass rows per buffer row; 0 = that of the buffer */
    size_t local_bytes;   /* of a `local` parameter */
};

/* Called when all rows of a pass are written and merged, for example to make a curve from a
 * histogram.
 *
 * `buffers` has the memory of all of the session's buffers, also scratch, in the order of
 * cox_session_params.buffers. Read only. NULL = scratch between fused passes. `constants` is the
 * frame's own copy: change it to hand a result, such as a curve, to later passes. Both are valid
 * during the call.
 *
 * If a device fails, the frame may start again, and this function is called again. Equal input must
 * give equal results.
 *
 * Runs on the scheduler thread or inside cox_session_run. Must not call the session. */
typedef void cox_pass_done_fn(void *user, void *const *buffers, void *constants);

/* One kernel over all rows. A frame is a list of passes. A pass starts when the pass before it has
 * written all rows. Successive passes with equal rows share a split (see
 * cox_session_params.split_each_pass). */
struct cox_pass {
    const char *source;  /* OpenCL C; NULL = the source of the pass before */
    const char *kernel;  /* NULL = the only kernel in `source` */
    const char *options; /* for the compiler; NULL = none */

    /* The kernel compiled ahead of time: SPIR-V, or the content of a file that cox_compile wrote.
     * It is linked with no library. A device that does not take it compiles `source`.
     *
     * `source` may only declare the kernel: "kernel void k(global const float *in, ...);". Set the
     * local size then, if the kernel counts on it. A device that does not take the code uses the
     * next variant, or leaves the session. The log says why. */
    const void *code;
    size_t code_bytes;

    uint32_t columns; /* 0 = the session's */
    uint32_t rows;    /* 0 = the session's */

    /* The kernel is written for one device and the whole frame. On every device, row r of a buffer
     * is row r of the frame. NAME_first_row and `first_row` are 0, and `rows` is `frame_rows`. Ids
     * count from the frame's first work-item. Group ids and sizes that `source` asks for are those
     * of one launch over the whole frame.
     *
     * A band begins at a multiple of local_rows x item_rows, and only the frame's last band is
     * padded. If neither the pass nor the kernel states a local size, nothing is padded:
     * work-groups at the edge are smaller. If the kernel asks for its group (get_group_id and
     * others), all have the same size. If the kernel requires a size with more than one row, state
     * it in local_columns and local_rows, too.
     *
     * Staged devices, which have separate memory, allocate the whole buffer. They copy only the
     * rows that a band uses, so halos must be declared as for other passes.
     *
     * Images must be read whole. `code` is refused. Passes that are fused with this one must be
     * absolute too. Scratch that they hand on takes as much device memory as a whole frame. */
    bool absolute;

    /* Local size in work-items. A kernel may count on it: a device that does not allow it leaves
     * the session, with a warning. One 0 = 1.
     *
     * 0 and 0 = the size that the kernel requires (reqd_work_group_size). If it requires none, any
     * size will do, and the library chooses: 64 work-items on a CPU and 256 on other devices, or
     * fewer if the driver allows fewer. A device keeps its size for all frames. If the kernel uses
     * local memory, its size must be stated or required. */
    uint32_t local_columns;
    uint32_t local_rows;

    /* Columns and rows that one work-item computes; the kernel must agree. 0 = 1. In one dimension
     * local_columns and item_columns must be 0. */
    uint32_t item_columns;
    uint32_t item_rows;

    const struct cox_argument *arguments; /* COX_LIST; NULL = the signature says all */

    /* COX_LIST: the same kernel in forms that suit some devices, with the same name, parameters and
     * results. A device uses the first variant whose `devices` names it, else this pass. A variant
     * that names none of the machine's devices is ignored. Its `source`, its `code` or both are
     * required. Also read are its `options` and its local and item sizes. Other fields are
     * refused. */
    const struct cox_pass *variants;

    /* Run on each band directly after the pass before it in the list, without waiting for other
     * bands. A pass and those that are fused with it form a group. Devices exchange rows before the
     * first pass of a group only.
     *
     * The first pass of a group says rows, devices, policy and `done` for all; in the others these
     * are an error. Columns, options, local sizes and item sizes are each pass's own.
     *
     * What one pass of a group writes for a later one is scratch, and each band has its own. The
     * writing pass writes no other buffer. No other pass writes that scratch, so eight steps need
     * seven scratch buffers. No other group uses it.
     *
     * The writing pass also computes the halo rows that later passes read. Declare each pass's own
     * halo; the library adds them up. `rows` and `first_row` include the additional rows, unless
     * the pass is absolute.
     *
     * A kernel of such a group takes NAME_first_row of the scratch, and of every buffer that it
     * reads by rows. It finds buffer row `row` at (row - NAME_first_row). Absolute passes need
     * none. */
    bool fused;

    const char *name;    /* for messages; NULL = the kernel's */
    const char *devices; /* as in cox_session_params; NULL = the session's */
    const char *policy;  /* NULL = the session's; a pass that names a policy shares no split */

    cox_pass_done_fn *done; /* NULL = no function */
    void *done_user;
};

/* Combine the results of two bands: into[i] = into[i] + partial[i], or the minimum, or the maximum.
 *
 * The number of bands varies, so the operation must be exact and associative. `into` is zeroed
 * before the first call. Bands come in row order.
 *
 * Runs on the scheduler thread or inside cox_session_run. */
typedef void cox_merge_fn(void *into, const void *partial, size_t bytes, void *user);

/* One buffer of a frame. */
struct cox_buffer_layout {
    const char *name; /* as in the kernels */

    /* Bytes per row. 0 = columns x the element of the kernel's pointer. Required if that type is
     * not one of OpenCL C, and for a buffer that kernels take only as an image. To let bands begin
     * at any row, use a pitch from cox_runtime_pitch_bytes. */
    size_t pitch_bytes;

    /* Bytes of a row that belong to the frame. 0 = pitch_bytes. The library never changes the bytes
     * behind them, up to the pitch. A kernel must not use them. Not for merged buffers. */
    size_t row_bytes;

    uint32_t row_divisor; /* frame rows per buffer row, such as 2 for the chroma of 4:2:0; 0 = 1 */

    /* Bytes before the first row. The library neither copies nor changes them. In an absolute pass
     * the pointer begins before them. Not for merged buffers, images and buffers that stay. */
    size_t offset_bytes;

    /* Rows that the buffer has above and below those of the frame. Kernels read them as halo rows,
     * and the library never changes them. They have negative numbers above: NAME_first_row is at
     * least -border_above. In an absolute pass the pointer begins at the first of them. To compute
     * some rows of a larger buffer, make the others its border.
     *
     * Not for merged buffers, and not for scratch between fused passes. */
    uint32_t border_above;
    uint32_t border_below;

    /* Size of a buffer that is read whole or merged. Required for merged buffers. For others, 0 =
     * pitch x rows, with the border and the bytes before it, and a smaller size is an error. If
     * kernels read halo rows below, further rows are a border, as in a list of row starts. */
    size_t bytes;

    cox_merge_fn *merge; /* each band writes its own zeroed copy; the copies are then merged */
    void *merge_user;

    /* The library allocates this buffer, and frames do not give it. For what one pass writes or
     * merges, and later passes or cox_pass.done read. */
    bool scratch;

    /* Rows stay on the devices that read or wrote them, from frame to frame. Other devices, and the
     * host's memory, get rows only when they need them. For tables that seldom change, and for
     * iterations in which one frame reads what the frame before has written.
     *
     * The application calls cox_buffer_changed when it has written the memory, and
     * cox_session_fetch before it reads what frames wrote. Devices keep as many buffers as there
     * are bindings that stay. Kernels that take the buffer by rows take NAME_first_row too, unless
     * their pass is absolute.
     *
     * If a device is lost with the only copy of a row, frames that read the row end with
     * COX_E_DEVICE_LOST. Without effect if cox_session_params.verify is set. */
    bool stays;

    /* For image parameters: OpenCL's channel order and type (CL_R, CL_UNSIGNED_INT8), and the
     * pixels of a row. coxswain/opencl.h says more. 0 = no image. */
    uint32_t image_order;
    uint32_t image_type;
    uint32_t image_columns;
};

/* A field of the frame's constants, which kernels take by value under this name. */
struct cox_field {
    const char *name;
    size_t offset;
    size_t bytes;
};

/* A cox_field for one field of the constants' struct: COX_FIELD(struct constants, sigma). */
#define COX_FIELD(type, field)                                    \
    {                                                             \
#field, offsetof(type, field), sizeof(((type *)0)->field) \
    }

/* ---- reports ---- */

/* What one band cost. Times are in nanoseconds of the runtime's monotonic clock. */
struct cox_band_report {
    uint32_t device; /* index into the session's devices (cox_session_info.devices) */
    uint32_t pass;
    uint32_t first_row;
    uint32_t rows;
    uint32_t attempt;  /* 0 = the first; more = repeated after a failure */
    cox_status status; /* not COX_OK: these rows were repeated, see the next attempt */
    bool on_demand;    /* assigned while the frame ran */
    uint64_t submit_ns;
    uint64_t end_ns;
    uint64_t noticed_ns; /* when the library noticed the end: end_ns or later */

    /* Error of end_ns. UINT64_MAX = end_ns is when the host noticed the end. */
    uint64_t clock_error_ns;

    uint64_t wall_ns; /* this field and the next two: as in cox_measurement */
    uint64_t queue_ns;
    uint64_t kernel_ns;

    /* Copies of staged devices, if cox_session_params.profile is set. */
    uint64_t copy_in_ns;
    uint64_t copy_out_ns;

    uint64_t predicted_ns; /* 0 = the policy made no prediction */
};

/* What one pass of a frame cost. */
struct cox_pass_report {
    uint64_t start_ns;
    uint64_t end_ns;
    enum cox_reason reason;
    uint64_t predicted_ns;
    uint64_t rejected_ns; /* predicted time of the rejected split; 0 = no prediction */
    uint32_t pool_rows;   /* rows assigned while the pass ran */
};

/* What one frame cost. Valid during the call. A warm-up run or a shadow has the index of the frame
 * that it goes with. */
struct cox_frame_report {
    uint64_t index; /* from 0, in submission order */
    bool warmup;    /* a warm-up run before frame `index`: one pass, or some rows of it */
    bool shadow;    /* a repeated band that measures or tests a device */
    cox_status status;
    uint64_t submit_ns;

    /* All passes together. It starts when the scheduler thread begins the frame. */
    struct cox_pass_report total;

    uint64_t delivered_ns; /* the callback runs now */
    uint64_t deadline_ns;  /* after submit_ns; 0 = no deadline */
    double joules;         /* negative = unknown */
    uint32_t band_count;
    uint32_t pass_count;

    /* By pass, then by row. Repeated bands come after those that they replace. */
    const struct cox_band_report *bands;

    const struct cox_pass_report *passes; /* fewer than the session's if the frame failed early */
};

/* Receives the report of every frame, warm-up run and shadow. Called before the frame's callback.
 *
 * Runs on the scheduler thread or inside cox_session_run. Must not call the session. */
typedef void cox_report_fn(void *user, const struct cox_frame_report *report);

/* Returns the joules that the machine has used so far. Only differences count. Negative = unknown
 * now.
 *
 * Runs on the scheduler thread or inside cox_session_run. Must be quick. */
typedef double cox_meter_fn(void *user);

/* ---- the session ---- */

/* Runs frames of one shape through a list of passes, on its devices.
 *
 * Thread-safety: cox_session_submit, cox_session_run, cox_session_wait, cox_session_cancel and
 * cox_session_info may be called from any thread. What callbacks may call is in the table above. */
typedef struct cox_session cox_session;

/* Passes that the library provides. cox_video_mapping, cox_tonemap_mapping, cox_filter_separable
 * and others make one. A session copies it, so it may be destroyed after cox_session_create.
 *
 * Thread-safety: one thread at a time. */
typedef struct cox_pipeline cox_pipeline;

/* The constants of one frame for a cox_pipeline. Opaque. `cox_frame.constants` points to one.
 *
 * cox_video_prepare, cox_tonemap_prepare and cox_filter_separable_prepare and its neighbours fill
 * it, for the shape of the pipeline. The kernels trust the sizes in it. */
struct cox_constants {
    uint64_t word[COX_CONSTANTS_BYTES_MAX / 8];
};

/* Make every device run the kernels' variant for devices of `type`, to compare variants. Kernels
 * may have one for CPUs and one for GPUs. Call it before the session is created.
 *
 * Errors: COX_E_INVALID (NULL) */
COX_API cox_status cox_pipeline_use_variant(cox_pipeline *pipeline, enum cox_device_type type);

/* Destroy the pipeline and set *pipeline to NULL. Accepts NULL. */
COX_API void cox_pipeline_destroy(cox_pipeline **pipeline);

/* What happens before the first frame. */
enum cox_warmup {
    /* The first frame waits until each device has compiled the kernels and is timed. A kernel that
     * takes longer than 40 ms per frame is timed on a part of the rows, on all devices at once. A
     * session on one device has no warm-up run. */
    COX_WARMUP_FIRST_FRAME = 0,
    COX_WARMUP_NONE = 1, /* the first frame is slow on devices that compile late */

    /* cox_session_create compiles nothing and returns at once. Frames start on the first device
     * that is ready. Other devices join later. If no device can join, frames end with
     * COX_E_NO_DEVICE. */
    COX_WARMUP_BACKGROUND = 2,
};

/* `rows` and `passes` are required, or `pipeline` instead. Zero in any other field means the
 * default. Read only during cox_session_create. Everything is copied. */
struct cox_session_params {
    /* 0 = one dimension: dimension 0 of the work-items runs over the rows. A row is then an element
     * of each buffer, unless its pitch_bytes says otherwise, and `columns` is 1. Passes that set
     * cox_pass.columns have two dimensions. */
    uint32_t columns;
    uint32_t rows;
    const struct cox_pass *passes; /* COX_LIST */
    const cox_pipeline *pipeline;  /* instead of the other fields down to `constants_bytes` */

    /* COX_LIST of all buffers, in the order in which frames give them. NULL = the buffers that
     * kernels name, in the order in which they are first named. */
    const struct cox_buffer_layout *buffers;

    /* COX_LIST: headers for all sources. The compiler sees those whose names appear in a source.
     * The cache does not notice changes of files that the option -I finds. */
    const struct cox_source *headers;

    /* COX_LIST: sources that are compiled with each kernel's options, and linked with it. A kernel
     * may be defined in one of them if its pass's `source` declares it. */
    const struct cox_source *libraries;

    const struct cox_field *fields; /* COX_LIST: constants; a kernel takes each, or all */
    size_t constants_bytes;         /* size of the constants' struct */

    /* Which of the runtime's devices take part. NULL = all. A comma-separated list of
     *   all | cpu | gpu | accelerator   devices of that type
     *   #N                              the runtime's device N (cox_runtime_device_info)
     *   P.D or TEXT                     as in cox_runtime_params.devices */
    const char *devices;

    uint32_t in_flight;     /* frames under way at once; 0 = 2 */
    uint32_t min_band_rows; /* 0 = row_alignment */

    const char *policy;                              /* NULL = "adaptive" */
    const struct cox_policy *custom_policy;          /* used instead of `policy` */
    const struct cox_policy_options *policy_options; /* NULL = defaults */

    /* True: every pass has its own split.
     *
     * False: successive passes with equal rows share a split if they name neither devices nor a
     * policy. Rows then stay on the devices that have them. The policy sees such passes as one. */
    bool split_each_pass;

    enum cox_warmup warmup;

    /* A session of the same runtime with other rows or pitches. The new session starts with its
     * timings, scaled. With the same kernels there is no warm-up. `warm_start` may have frames
     * under way. NULL = no such session. */
    cox_session *warm_start;
    bool no_profile; /* neither load nor save timings in cache_dir */

    /* The share of bands that a second device repeats, to compare every bit. 0 to 1.
     *
     * If the results differ, both devices repeat the rows. A device that is shown to be wrong is
     * given up, and its rows are done again. Otherwise the frame ends with COX_E_MISMATCH.
     *
     * The log says what may be wrong. It is a device or the kernel. Such a kernel is not
     * deterministic, reads rows beyond its own, or reads what its output held before. */
    double verify;

    /* Check mode, to test kernels before they are shipped. Before each frame, every pass runs many
     * times on copies of the frame's buffers, in one band and in random bands, on each device.
     * Memory that a band must not read holds random bytes. Check mode finds these mistakes:
     *   Rows are read beyond halo_rows, or written beyond the band.
     *   No work-item writes an element, or an element is read before it is written.
     *   Results depend on the bands, on the device, or on the order of work-groups.
     *   Work-items beyond `columns` and `rows` have an effect.
     *   An input is written, a merged sum is not exact, or a `done` function is not pure.
     *
     * Each finding has a log line of level COX_LOG_ERROR, at most 8 for a frame. The frame then
     * does not run: cox_session_run and cox_session_submit return COX_E_MISMATCH.
     *
     * A checked frame first waits for the session's earlier frames. It takes many times as long as
     * a frame, and memory for about forty copies of its buffers. Use small frames, of a few hundred
     * rows with real content. A kernel that reads or writes far beyond the frame can still end the
     * process. Races that show in no run are not found. */
    bool check;

    /* A device is given up if it exceeds its expected time by this much, or by ten times the
     * expected time if that is more. Other devices then repeat its rows.
     *
     * Some drivers compile in a device's first launch of a pass, so this launch has 20 s more. All
     * devices begin it at once. If a kernel never ends, the first frame thus ends after this
     * timeout and 20 s, with COX_E_DEVICE_LOST.
     *
     * Time during which the process could not run is excluded: at most nine times this timeout,
     * and 20 s of the compiler's.
     *
     * 0 = ten times the device's longest band, between 1 s and 10 s. Each of the first sixteen
     * bands then has 20 s more, and time is excluded up to nine times the limit. */
    uint64_t device_timeout_ns;

    cox_meter_fn *meter;
    void *meter_user;
    cox_report_fn *report;
    void *report_user;
    /* Time kernels and copies of staged devices too. Kernels of other devices are always timed.
     * Costs about 7 us per command. */
    bool profile;
};

/* Create a session, and compile its kernels for every device. *out is NULL on an error.
 *
 * A device leaves the session in these cases, with a warning:
 *   A kernel does not compile for it. The log has the compiler's output.
 *   It does not allow the work-groups that the session or a kernel states.
 *   It has too little local or constant memory for a kernel, or no image of that format.
 *
 * Blocks for compilation, except with COX_WARMUP_BACKGROUND.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID      A shape, name or argument does not fit, or no pass uses a listed buffer, a
 *                      listed field or the constants. The call is made from a callback, or in a
 *                      child process after fork.
 *   COX_E_NOT_FOUND    No policy has that name. Or an entry of `devices` names no device.
 *   COX_E_BUILD        A kernel compiles on no device.
 *   COX_E_UNSUPPORTED  No device can run a kernel.
 *   COX_E_DEVICE_MEMORY, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_session_create(cox_runtime *runtime,
                                                     const struct cox_session_params *params,
                                                     cox_session **out);

/* What to compile ahead of time. `source` is required. For a session to find the result, all fields
 * must be equal to those of its pass, and headers and libraries to its own. */
struct cox_compile_params {
    const char *source;
    const char *options;
    const struct cox_source *headers;   /* as in cox_session_params */
    const struct cox_source *libraries; /* as in cox_session_params */

    /* A file to write, whose content is for cox_pass.code: a binary for each device. It suits the
     * same devices, drivers and version of the library alone. It is written as `output`.tmp and
     * renamed when it is whole, so an existing file is never lost. NULL = no file. */
    const char *output;
};

/* Compile a source for every device of the runtime, before a session needs it. The cache
 * (cox_runtime_params.cache_dir) keeps the result. `cox-devices --compile FILE` calls this.
 *
 * A device on which the source does not compile is left out, with a line in the log. PoCL still
 * compiles once more at the first launch with a new local size. Blocks for compilation. Not from a
 * callback.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID  `runtime`, `params` or `source` is NULL. A name of a header is not allowed. The
 *                  call is made from a callback, or in a child process after fork.
 *   COX_E_BUILD    The source compiles on no device.
 *   COX_E_SYSTEM   `output` cannot be written. The cache may have the result.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_compile(cox_runtime *runtime,
                                              const struct cox_compile_params *params);

/* Wait for frames under way, destroy the session, and set *session to NULL. Accepts NULL. To be
 * quick, call cox_session_cancel first.
 *
 * Only writes a log line, and leaves *session as it was, in these cases:
 *   The call comes from a callback.
 *   A thread is inside cox_session_warm.
 *   The call is made in a child process after fork. */
COX_API void cox_session_destroy(cox_session **session);

/* Compile and time the kernels on every device now, with buffers of zeros. The first frame is then
 * not slower than others. `constants` is as in a frame. No effect after the first frame.
 *
 * Blocks until all devices have run. Not from a callback.
 *
 * Errors:
 *   COX_E_INVALID    `session` is NULL. The call is made from a callback, or in a child process
 *                    after fork.
 *   COX_E_NO_DEVICE  Every device has failed, or cannot run the kernels.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_session_warm(cox_session *session, const void *constants);

/* What happens to a frame that misses its deadline. */
enum cox_late {
    COX_LATE_DELIVER = 0, /* it is completed */
    COX_LATE_DROP = 1,    /* it ends with COX_E_LATE, unless all of it has started */
};

/* The buffers of a frame: COX_BUFFERS(in, out). */
#define COX_BUFFERS(...) ((cox_buffer *const[]){__VA_ARGS__, NULL})

/* One frame. `buffers` and `data` follow the order of cox_session_params.buffers, without
 * scratch. */
struct cox_frame {
    cox_buffer *const *buffers; /* COX_BUFFERS */

    /* COX_ARGS: plain memory, used instead of `buffers`. Only for cox_session_run.
     * cox_session_submit refuses it, because frames in plain memory could not be ordered. */
    const void *const *data;

    const void *constants; /* copied by submit; NULL = zeros */
    bool nowait;           /* return COX_E_BUSY instead of blocking */

    /* After submission. 0 = cox_policy_options.deadline_ns, UINT64_MAX = no deadline. */
    uint64_t deadline_ns;
    enum cox_late late;
};

/* The frame is done. If `status` is COX_OK, every row is written and no device will write it again.
 * Otherwise the output is undefined:
 *   COX_E_DEVICE_LOST, COX_E_NO_DEVICE   No device could compute the frame.
 *   COX_E_MISMATCH                       `verify` found different results.
 *   COX_E_MEMORY_UNSAFE                  A hung device may still write to plain or wrapped memory.
 *   COX_E_CANCELLED, COX_E_LATE, COX_E_DEVICE_MEMORY, COX_E_NOMEM
 *
 * Runs once per frame, on the scheduler thread, in submission order. The frame's slot is free by
 * then: one frame may be submitted to the same session without blocking. May use buffers and
 * cancel. Must be quick; a short lock or a signal to another thread is fine. */
typedef void cox_done_fn(void *user, uint64_t frame, cox_status status);

/* Submit one frame and return at once. `done` may be NULL. `frame` and its lists are copied.
 *
 * The memory belongs to the session until `done` has run. A buffer may be in several frames under
 * way, of any sessions of the runtime:
 *   A frame that writes it starts after all earlier frames with this buffer are delivered.
 *   A frame that reads it starts after all earlier frames that write it are delivered. If one of
 *   these failed, it ends with the same status.
 *
 * Blocks only while `in_flight` frames are under way and `nowait` is not set, and while other
 * hardware works on a DMA-BUF (cox_buffer_import_dmabuf).
 *
 * Errors, for which `done` does not run:
 *   COX_E_INVALID    A buffer is missing, too short, or of another runtime. Or `data` is set.
 *   COX_E_BUSY       All slots are taken, and `nowait` is set or the call comes from a callback.
 *   COX_E_NO_DEVICE  Every device has failed.
 *   COX_E_SYSTEM     The access to a DMA-BUF could not be started.
 *   COX_E_MISMATCH   cox_session_params.check found a mistake in a kernel.
 *   COX_E_NOMEM, COX_E_DEVICE_MEMORY, COX_E_DEVICE_LOST   The check could not run.
 *
 * Thread-safety: any thread, callbacks too. */
COX_API COX_MUST_CHECK cox_status cox_session_submit(cox_session *session,
                                                     const struct cox_frame *frame,
                                                     cox_done_fn *done, void *user);

/* Submit one frame and wait for it. Faster than cox_session_submit and cox_session_wait. Returns
 * the frame's status, or an error of cox_session_submit.
 *
 * Blocks until the frame is done. Not from a callback. */
COX_API COX_MUST_CHECK cox_status cox_session_run(cox_session *session,
                                                  const struct cox_frame *frame);

/* Wait until no frame is under way and all callbacks have run. Returns the status of the first
 * frame without a callback that failed since the previous call. Frames with a callback do not
 * count.
 *
 * Not from a callback. */
COX_API cox_status cox_session_wait(cox_session *session);

/* Bring the newest rows of a buffer that stays on devices (cox_buffer_layout.stays) to the host's
 * memory. The rows stay on the devices too. Other sessions may use the buffer then.
 *
 * Blocks until frames under way are done. Not from a callback.
 *
 * Errors:
 *   COX_E_INVALID      NULL, or a buffer of another runtime or one that lies on a device
 *                      (cox_opencl_buffer). The call is made from a callback.
 *   COX_E_DEVICE_LOST  A lost device had the only copy of some rows. The content is undefined.
 *   Those of a frame that should have written the buffer. */
COX_API COX_MUST_CHECK cox_status cox_session_fetch(cox_session *session, cox_buffer *buffer);

/* End all frames under way soon. Their callbacks run with COX_E_CANCELLED, in order. Does not
 * block. */
COX_API cox_status cox_session_cancel(cox_session *session);

/* Whether a device takes part in a session.
 *
 * The changes of state:
 *   ACTIVE -> DRAINING -> QUARANTINED -> REBUILDING -> PROBATION -> ACTIVE
 *   REBUILDING -> QUARANTINED   The device could not be rebuilt.
 *   PROBATION -> DRAINING       It failed again.
 *   JOINING -> ACTIVE           The first device that is ready.
 *   JOINING -> PROBATION        The other devices.
 *   JOINING -> ABSENT           It cannot run the kernels.
 * A device starts as ACTIVE, or as JOINING with COX_WARMUP_BACKGROUND. */
enum cox_device_state {
    COX_DEVICE_ACTIVE = 0,      /* gets rows */
    COX_DEVICE_DRAINING = 1,    /* has failed; its bands may still end */
    COX_DEVICE_QUARANTINED = 2, /* is tried again after a pause */
    COX_DEVICE_REBUILDING = 3,  /* gets a new context and new kernels */
    COX_DEVICE_PROBATION = 4,   /* repeats some rows to show that it works */
    COX_DEVICE_JOINING = 5,     /* compiles; see COX_WARMUP_BACKGROUND */
    COX_DEVICE_ABSENT = 6,      /* cannot run the kernels */
};

/* The name of a state: "active", "draining" and so on. The string is static. */
COX_API const char *cox_device_state_name(enum cox_device_state state);

/* One device of a session. */
struct cox_session_device {
    uint32_t device; /* the runtime's index (cox_runtime_device_info) */
    enum cox_memory_mode mode;
    enum cox_device_state state;
    uint32_t lost;             /* times that it failed */
    uint32_t returned;         /* times that it came back */
    uint64_t single_device_ns; /* one whole frame on this device alone, measured or computed from
                                * a part of the rows; 0 = not measured */
    uint32_t max_rows;         /* most rows of one band; 0 = the device has not joined */
};

/* The state of a session. */
struct cox_session_info {
    uint32_t row_alignment; /* bands begin at multiples of it */
    char policy[32];
    uint64_t frames_done;   /* delivered, with any status */
    uint64_t frames_failed; /* of them, with a status other than COX_OK */
    uint32_t device_count;

    /* Other `device` numbers of a session are indices into this array. */
    struct cox_session_device devices[COX_DEVICES_MAX];
};

/* Describe a session. Never blocks. All zeros if `session` is NULL.
 *
 * Thread-safety: any thread. */
COX_API void cox_session_info(cox_session *session, struct cox_session_info *info);

#ifdef __cplusplus
}
#endif
#endif
