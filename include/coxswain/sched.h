/* Policies: which device computes which rows. Splits, measurements, and the policies that decide.
 *
 * Everything here is plain C over plain structs: no OpenCL, no threads, no clock, no allocation. A
 * policy decides from earlier measurements. Equal measurements give equal splits on every machine.
 *
 * A field `device`, and an index into an array of devices, is an index into the session's devices:
 * cox_session_info.devices[i]. That entry's `device` is the runtime's index.
 *
 * Thread-safety: no function here keeps state outside its arguments. Different threads may use
 * different states at the same time. One state must be used by one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_SCHED_H
#define COXSWAIN_SCHED_H

#include <coxswain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    COX_DEVICES_MAX = 32, /* devices in one session */
    COX_BANDS_MAX = 128,  /* bands in one split */
};

/* A contiguous range of rows for one device and one frame: first_row to first_row + rows - 1. */
struct cox_band {
    uint32_t device; /* index into the session's devices */
    uint32_t first_row;
    uint32_t rows;
};

/* Why the policy chose a split. The values are part of the ABI: append values, never renumber
 * them. */
#define COX_REASON_MAP(X)                                                                         \
    X(COX_REASON_NONE, 0, "none")                                                                 \
    X(COX_REASON_FIRST, 1, "first frame: no measurement yet")                                     \
    X(COX_REASON_GIVEN, 2, "ratios given by the user")                                            \
    X(COX_REASON_SINGLE, 3, "one device by request")                                              \
    X(COX_REASON_BALANCED, 4, "moved towards equal finish times")                                 \
    X(COX_REASON_KEPT, 5, "kept: the predicted gain is too small to move")                        \
    X(COX_REASON_DROPPED, 6, "a device left out: it would only delay the frame")                  \
    X(COX_REASON_DEVICES, 7, "the set of usable devices changed")                                 \
    X(COX_REASON_WARMUP, 8, "warm-up, with some rows or the whole frame")                         \
    X(COX_REASON_RERUN, 9, "rows of a failed band, run again elsewhere")                          \
    X(COX_REASON_PROBE, 10, "a small band that measures a device that was left out")              \
    X(COX_REASON_CALIBRATION, 11, "calibration: bands that separate fixed cost and cost per row") \
    X(COX_REASON_PROFILE, 12, "from the measurements of an earlier run")                          \
    X(COX_REASON_CHANGED, 13, "moved at once: a device or the content has changed")               \
    X(COX_REASON_DITHER, 14, "moved slightly to learn")                                           \
    X(COX_REASON_SUBSET, 15, "fewer devices: together they slow each other down")                 \
    X(COX_REASON_TRIAL, 16, "trial of another way to split")                                      \
    X(COX_REASON_ENERGY, 17, "least energy within the deadline")                                  \
    X(COX_REASON_ON_DEMAND, 18, "handed out on demand")                                           \
    X(COX_REASON_SHARED, 19, "rows stay where the previous pass had them")

/* The reasons of COX_REASON_MAP. */
enum cox_reason {
#define COX_REASON_ENUM(name, value, text) name = value,
    COX_REASON_MAP(COX_REASON_ENUM)
#undef COX_REASON_ENUM
};

/* The text of a reason. "unknown reason" for any other value. The string is static. */
COX_API const char *cox_reason_text(enum cox_reason reason);

/* The bands and the pool of one frame. Bands are in ascending row order, do not overlap, and are
 * not empty. Bands and pool together cover every row once. A device may have no band, one or
 * several.
 *
 * A policy gets this struct zeroed and fills in what it decides. */
struct cox_split {
    uint32_t band_count;
    enum cox_reason reason;
    uint64_t predicted_ns; /* frame time that the policy expects; 0 = no prediction */

    /* Expected frame time of the rejected alternative: the other split, old or new, or the other
     * set of devices. 0 = no prediction. */
    uint64_t rejected_ns;

    /* The pool: rows that the policy's `assign` hands out while the frame runs, from the front.
     * pool_rows 0 = no pool. Both ends are multiples of the row alignment, except at the frame's
     * end. */
    uint32_t pool_first_row;
    uint32_t pool_rows;

    /* The shadow: a device without a band repeats these rows, only to be measured. rows 0 = no
     * shadow. It works on copies and has no output. The frame does not wait for it. It is aligned
     * like a band. While it is under way its device requests no rows of the pool.
     *
     * There is no shadow, and no measurement, in these cases:
     *   Another shadow is under way.
     *   The pool of an earlier frame needs the device.
     *   The device computes inside the enqueue call.
     *   There is no memory for it. */
    struct cox_band shadow;

    /* When each device should finish its bands, after the frame's start. 0 = no prediction. */
    uint64_t device_ns[COX_DEVICES_MAX];

    struct cox_band bands[COX_BANDS_MAX];
};

/* What a policy may know about a device besides its own measurements. Structs that policies get in
 * arrays keep their size: new facts about a device will be in a further array. */
struct cox_sched_device {
    bool usable; /* false: must not get rows (left the session, quarantined) */
    double hint; /* relative speed, guessed from the device's description, > 0 */

    /* One whole frame on this device alone, from the warm-up. Slow kernels: computed from a part of
     * the rows. 0 = unknown. */
    uint64_t single_device_ns;
};

/* What is to be split. Valid only during the call. */
struct cox_sched_view {
    uint64_t frame;         /* index of the frame, from 0 */
    uint32_t rows;          /* rows of the frame, >= 1 */
    uint32_t row_alignment; /* bands begin at multiples of it, >= 1 */

    /* Fewest rows of a band, unless it is the frame's only band. 0 = one row alignment. */
    uint32_t min_band_rows;

    uint32_t device_count;                  /* 1 to COX_DEVICES_MAX */
    const struct cox_sched_device *devices; /* index: the session's devices */

    /* Frames that may be split before the first of them is measured. 0 = unknown. */
    uint32_t in_flight;

    bool pool;   /* a split may leave rows to `assign` */
    bool shadow; /* a split may ask for a shadow */

    /* Set in `split` and `assign`. The first is the frame's deadline after its submission, 0 = no
     * deadline. The second is the time since its submission. */
    uint64_t deadline_ns;
    uint64_t waited_ns;

    /* Time to bring one row to another device, once. 0 = rows do not stay on devices from frame to
     * frame (cox_buffer_layout.stays). */
    double move_ns;
};

/* What a device is doing while a frame runs. */
struct cox_progress {
    uint32_t rows;      /* of this frame, under way on the device; 0 = no rows */
    uint32_t first_row; /* of its oldest band under way */
    uint64_t since_ns;  /* time since it began that band */
};

/* A device that has nothing left to do for the frame requests rows of the pool. */
struct cox_chunk_request {
    uint32_t device;     /* index into the session's devices */
    uint32_t first_row;  /* the chunk begins here */
    uint32_t rows;       /* left in the pool, >= 1 */
    uint64_t elapsed_ns; /* since the frame started */

    /* This device must take rows: no other device is at work, and none will be asked. The device
     * may have declined rows before, if the devices that were at work then have been lost. */
    bool last;

    const struct cox_progress *progress; /* one for each of view->device_count devices */
};

/* The answer to a request. */
struct cox_chunk {
    /* A multiple of the row alignment, or all rows that are left. 0 = no rows, and the device does
     * not request rows again for this frame.
     *
     * A frame has at most COX_BANDS_MAX bands, including those of the split but not cut or repeated
     * ones. A chunk that is too small for this limit is enlarged. */
    uint32_t rows;
    uint64_t predicted_ns; /* how long the chunk should take; 0 = no prediction */
};

/* What one band of one frame cost.
 *
 * If several passes share a split, this is what a device took for its bands of all these passes.
 * Then times are sums, and rows are those of one pass.
 *
 * Times are host wall times, except where a field says otherwise. */
struct cox_measurement {
    uint64_t frame;
    uint32_t device; /* index into the session's devices */
    uint32_t first_row;
    uint32_t rows;

    /* From when the device could start the band to its end, by the device's clock if known. */
    uint64_t wall_ns;

    /* The time before that, behind the device's earlier bands: from the frame's start, or from when
     * the rows were handed out. */
    uint64_t queue_ns;

    /* The kernels, by OpenCL's profiling events. 0 = absent, implausible or not asked for. */
    uint64_t kernel_ns;

    /* From the band's end to when the engine noticed it. 0 = at once, or not known. */
    uint64_t late_ns;

    uint32_t flags; /* of COX_MEASURED_... */
};

/* Flags of a cox_measurement. */
enum {
    /* handed out by `assign`, and not the device's first band of the frame */
    COX_MEASURED_CHUNK = 1,
    COX_MEASURED_SHADOW = 2, /* a shadow; may come after its frame */
    /* failed or timed out: the band would have taken wall_ns or more */
    COX_MEASURED_UNFINISHED = 4,
};

/* What one whole frame cost. Comes after the frame's bands, in the order of frames. Failed frames
 * are left out. */
struct cox_frame_measurement {
    uint64_t frame;
    uint64_t wall_ns; /* from its start to its last band's end */

    /* The part of it in which no earlier frame was under way: what a stream of such frames pays. */
    uint64_t period_ns;

    double joules;        /* used by the machine during period_ns; negative = unknown */
    uint64_t latency_ns;  /* from its submission to its delivery */
    uint64_t deadline_ns; /* of its delivery, after its submission; 0 = no deadline */
};

/* What a session measured about a device, kept for the next session of the same kind. */
struct cox_device_profile {
    double frames;           /* measured frames; 0 = nothing is known, ignore the other fields */
    double fixed_ns;         /* of a frame's first band */
    double launch_ns;        /* of each further band */
    double ns_per_row;       /* in the set of devices in use */
    double single_device_ns; /* one whole frame on this device alone; 0 = unknown */
    double share;            /* of the rows, in the split in use; 0 = left out */
};

/* What the policy minimises. */
enum cox_objective {
    COX_OBJECTIVE_THROUGHPUT = 0, /* the time between deliveries */

    /* Joules per frame, as long as frames meet their deadline. If frames have different deadlines,
     * the shortest recent one counts. Needs a meter (cox_session_params.meter). Without readings it
     * is COX_OBJECTIVE_THROUGHPUT. */
    COX_OBJECTIVE_ENERGY = 1,

    COX_OBJECTIVE_LATENCY = 2, /* the time of each frame from its submission to its callback */
};

/* Options that a policy may read. A policy ignores fields that it does not use. */
struct cox_policy_options {
    /* "static": each device's share of the rows, with sum 1 (within 0.002). In the order of the
     * session's devices. NULL = equal shares. Read only during init. */
    const double *ratios;
    uint32_t ratio_count; /* elements of `ratios`; must equal device_count */

    /* "single": 1 + the index into the session's devices; 0 = the fastest device measured */
    uint32_t device;
    enum cox_objective objective; /* "adaptive" */

    /* When each frame must be delivered, after its submission. 0 = no deadline. A frame may have
     * its own (cox_frame.deadline_ns). Late frames are still delivered, unless
     * cox_frame.late says otherwise. Reports have each frame's deadline and delivery.
     *
     * With COX_OBJECTIVE_THROUGHPUT, "adaptive" uses one device alone if that surely meets the
     * deadline. Else it hands out a part of the rows of long frames while they run. */
    uint64_t deadline_ns;
    uint32_t chunk_rows; /* "chunks"; 0 = a 32nd of the frame */

    /* For `init` of a custom policy. The library does not read it. */
    void *user;
};

/* A policy: measurements in, splits out. `name`, `state_bytes`, `init` and `split` are required.
 *
 * All functions are called on one thread at a time. They must neither allocate nor block. The
 * library copies this struct, but not what it points to: `name` must outlive every session with
 * this policy. */
struct cox_policy {
    const char *name;

    /* Bytes of state for that number of devices. The state is aligned like malloc's memory, and
     * zeroed before init. */
    size_t (*state_bytes)(uint32_t device_count);

    /* Prepare a zeroed state. Errors: COX_E_INVALID (the options do not fit the view). */
    cox_status (*init)(void *state, const struct cox_sched_view *view,
                       const struct cox_policy_options *options);

    /* Decide the split of frame view->frame, into a zeroed `out`.
     *
     * If cox_split_check does not accept it, or the function fails, the log has a warning. The
     * frame then has the last good split, or equal shares. */
    cox_status (*split)(void *state, const struct cox_sched_view *view, struct cox_split *out);

    /* Learn from a completed band. Called once per band, not for warm-up runs. Frames come in the
     * order in which they complete. Several frames may be split before the first of them is
     * observed. May be NULL. */
    void (*observe)(void *state, const struct cox_measurement *measurement);

    /* All functions below may be NULL. */

    /* Give a free device a chunk of the frame's pool. Called while frame view->frame runs, each
     * time a device is free. If the chunk is invalid, the device gets all rows of the request. A
     * chunk is invalid if it has too many rows, is misaligned, or is empty although `last` is set.
     * A policy without this function cannot leave rows in the pool. */
    void (*assign)(void *state, const struct cox_sched_view *view,
                   const struct cox_chunk_request *offer, struct cox_chunk *out);

    /* Learn from a completed frame, after its bands. */
    void (*observe_frame)(void *state, const struct cox_frame_measurement *measurement);

    /* Start with what an earlier session measured: device_count profiles. Called after init and
     * before the first split. */
    void (*load_profile)(void *state, const struct cox_sched_view *view,
                         const struct cox_device_profile *profiles);

    /* Fill device_count profiles, which are zeroed, with what is known about the devices now. */
    void (*save_profile)(const void *state, const struct cox_sched_view *view,
                         struct cox_device_profile *profiles);
};

/* The built-in policies, in display order:
 *   adaptive  the default: models each device's fixed and per-row time, leaves out devices that
 *             only delay frames, tries other splits for some frames and keeps the better one
 *   chunks    each device takes chunks of equal size while the frame runs
 *   static    cox_policy_options.ratios, or equal shares
 *   single    one device, cox_policy_options.device
 *
 * `cox_policy_at` returns NULL for an index past the end. `cox_policy_find` returns NULL for an
 * unknown name, and the default for NULL. */
COX_API const struct cox_policy *cox_policy_at(uint32_t index);
COX_API const struct cox_policy *cox_policy_find(const char *name);

/* Check that `split` is a valid split of `view`:
 *   Bands are in ascending order, do not overlap, and are not empty.
 *   Bands and pool together are complete.
 *   Boundaries are multiples of the row alignment.
 *   Only usable devices have rows.
 *   There is a pool or shadow only if the view allows it.
 * min_band_rows is not enforced: shorter bands are slow, not wrong.
 *
 * Returns COX_OK, or COX_E_POLICY with one sentence in `why` that names the offending band. `why`
 * is always terminated. It may be NULL if `why_bytes` is 0. */
COX_API cox_status cox_split_check(const struct cox_split *split, const struct cox_sched_view *view,
                                   char *why, size_t why_bytes);

/* One device of the cost model t(n) = fixed_ns + ns_per_row * n for n > 0, t(0) = 0. */
struct cox_cost {
    bool usable;
    double fixed_ns;   /* >= 0, finite */
    double ns_per_row; /* > 0, finite */
};

/* Find the split that minimises the time of the slowest device, max_d t_d(n_d). The result is
 * exact.
 *
 * Each n_d is 0 or at least `min_band_rows` (0 = one row alignment). The frame's only band may be
 * shorter. Each n_d is a multiple of the row alignment, except on one device: the one that holds
 * the frame's end also takes the remainder of rows % row_alignment.
 *
 * Fills rows_out[device_count], with sum `rows`, and returns the frame time in nanoseconds. Returns
 * a negative number, and fills in zeros, in these cases:
 *   No device is usable.
 *   `rows` or `row_alignment` is 0.
 *   `device_count` is 0, or more than COX_DEVICES_MAX.
 *   The costs of a usable device are outside the ranges of cox_cost.
 *   They are so extreme that a frame time would not be finite.
 *
 * Source: water-filling over devices sorted by fixed cost, with exact integer rounding by greedy
 * completion. If min_band_rows binds, bisection over the frame time. sched/split/waterfill.c says
 * why that needs no search of subsets.
 * Cost: O(n^2) for n devices. It is n times that if `rows` is not a multiple of the row alignment,
 * and about 60 times that if min_band_rows binds. Allocates nothing. */
COX_API double cox_waterfill(uint32_t rows, uint32_t row_alignment, uint32_t min_band_rows,
                             const struct cox_cost *costs, uint32_t device_count,
                             uint32_t *rows_out);

#ifdef __cplusplus
}
#endif
#endif
