/* Splits, measurements and policies: the part of Coxswain that decides.
 *
 * Everything here is plain C over plain structs: no OpenCL, no thread, no clock, no allocation. A policy is
 * a function of what was measured before; the same measurements give the same splits on every machine.
 *
 * Thread-safety: no function here keeps state outside its arguments; different states may be used from
 * different threads at the same time, one state from one thread at a time.
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

/* A contiguous range of rows given to one device for one frame: rows first_row .. first_row + rows - 1. */
struct cox_band {
    uint32_t device; /* index into the session's devices */
    uint32_t first_row;
    uint32_t rows;
};

/* Why a split is what it is. Values are ABI: append, never renumber. */
#define COX_REASON_MAP(X)                                                                          \
    X(COX_REASON_NONE, 0, "none")                                                                  \
    X(COX_REASON_FIRST, 1, "first frame: no measurement yet")                                      \
    X(COX_REASON_GIVEN, 2, "ratios given by the user")                                             \
    X(COX_REASON_SINGLE, 3, "one device by request")                                               \
    X(COX_REASON_BALANCED, 4, "moved towards equal finish times")                                  \
    X(COX_REASON_KEPT, 5, "kept: the predicted gain is too small to move")                         \
    X(COX_REASON_DROPPED, 6, "a device left out: it would only delay the frame")                   \
    X(COX_REASON_DEVICES, 7, "the set of usable devices changed")                                  \
    X(COX_REASON_WARMUP, 8, "warm-up of one device with the whole frame")                          \
    X(COX_REASON_RERUN, 9, "rows of a failed band, run again elsewhere")                           \
    X(COX_REASON_PROBE, 10, "a small band for a device that was left out, to see how it does now") \
    X(COX_REASON_CALIBRATION, 11, "calibration: bands that tell fixed cost from cost per row")     \
    X(COX_REASON_PROFILE, 12, "from what an earlier run measured")                                 \
    X(COX_REASON_CHANGED, 13, "moved at once: a device or the content has changed")                \
    X(COX_REASON_DITHER, 14, "moved a little to learn")                                            \
    X(COX_REASON_SUBSET, 15, "fewer devices: together they slow each other down")                  \
    X(COX_REASON_TRIAL, 16, "trial of another way to split")                                       \
    X(COX_REASON_ENERGY, 17, "least energy within the deadline")                                   \
    X(COX_REASON_ON_DEMAND, 18, "handed out on demand")                                            \
    X(COX_REASON_SHARED, 19, "rows stay where the pass before had them")

enum cox_reason {
#define COX_REASON_ENUM(name, value, text) name = value,
    COX_REASON_MAP(COX_REASON_ENUM)
#undef COX_REASON_ENUM
};

/* The text of a reason; "unknown reason" for any other value. Static storage. */
COX_API const char *cox_reason_text(enum cox_reason reason);

/* One frame's bands and pool: bands in ascending row order, non-overlapping, none empty; bands and pool together cover
 * every row once. A device may have no band, or several. A policy gets it zeroed and fills in what it decides. */
struct cox_split {
    uint32_t band_count;
    enum cox_reason reason;
    uint64_t predicted_ns; /* frame time that the policy expects; 0 = it does not say */

    /* Frame time that it expected of the alternative: the split that was kept or left, or the other device set; 0 = it
     * does not say. */
    uint64_t rejected_ns;

    /* The pool: rows that the policy's `assign` hands out, from the front, while the frame runs; pool_rows 0 = none. Both
     * ends are multiples of the row alignment, except the frame's end. */
    uint32_t pool_first_row;
    uint32_t pool_rows;

    /* The shadow; rows 0 = none. A device without a band does these rows once more, on copies and without an output,
     * only to be measured. The frame does not wait for it. Aligned like a band.
     *
     * It is not done, and nothing is measured, if a shadow is under way already, if an earlier frame's pool needs the
     * device, if the device computes inside the enqueue call, or if there is no memory. While it is under way its
     * device is offered no rows. */
    struct cox_band shadow;

    /* When each device should finish its bands, from the frame's start; 0 = the policy does not say. */
    uint64_t device_ns[COX_DEVICES_MAX];

    struct cox_band bands[COX_BANDS_MAX];
};

/* What a policy may know of a device besides its own measurements. Structs that policies get in arrays keep their size:
 * what is new about a device will stand in a further array. */
struct cox_sched_device {
    bool usable; /* false: must not get rows (left the session, quarantined) */
    double hint; /* relative speed guessed from the device's description, > 0 */
    uint64_t
        single_device_ns; /* time of one whole frame on this device alone, from warm-up; 0 = unknown */
};

/* What is to be split. Valid during the call only. */
struct cox_sched_view {
    uint64_t frame;         /* index of the frame, from 0 */
    uint32_t rows;          /* rows of the frame, >= 1 */
    uint32_t row_alignment; /* every band boundary but the frame's end is a multiple of it, >= 1 */
    /* least rows of a band, unless it is the frame's only one; 0 = one row alignment */
    uint32_t min_band_rows;
    uint32_t device_count; /* 1 .. COX_DEVICES_MAX */
    const struct cox_sched_device *devices;
    /* frames that may be split before the first of them is observed; 0 = unknown */
    uint32_t in_flight;
    bool pool;   /* a split may leave rows to `assign` */
    bool shadow; /* a split may ask for a shadow */

    /* In `split` and `assign`: when the frame is to be delivered, from its submission, 0 = at no time; and how long ago
     * it was submitted. */
    uint64_t deadline_ns;
    uint64_t waited_ns;
};

/* What a device is doing while a frame runs. */
struct cox_progress {
    uint32_t rows;      /* of this frame under way on it; 0 = it has none */
    uint32_t first_row; /* of the oldest band under way */
    uint64_t since_ns;  /* how long ago it began that band */
};

/* Rows of the pool offered to a device that has nothing left to do for the frame. */
struct cox_chunk_request {
    uint32_t device;
    uint32_t first_row;  /* the device gets rows from here on */
    uint32_t rows;       /* left in the pool, >= 1 */
    uint64_t elapsed_ns; /* since the frame began */

    /* No other device is at work or will be asked: this one must take rows. It may have declined an offer before, if
     * the devices that were at work then have been lost. */
    bool last;

    const struct cox_progress *progress; /* of view->device_count devices */
};

/* The answer to an offer. */
struct cox_chunk {
    /* A multiple of the row alignment, or all that is left. 0 = none, and the device is not asked again for this frame. A
     * frame has at most COX_BANDS_MAX bands, those of the split among them (cut and repeated ones aside): a grant too
     * small to come out with that is enlarged. */
    uint32_t rows;
    uint64_t predicted_ns; /* how long they should take; 0 = the policy does not say */
};

/* What one band of one frame cost, or what a device took for its bands of several passes that share a split: then times
 * are sums, and rows those of one pass. Times are host wall times unless they say otherwise. */
struct cox_measurement {
    uint64_t frame;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    /* from when the device could start this band to its end, by the device's clock if known */
    uint64_t wall_ns;
    /* before that, since the frame began or it was handed out: behind the device's earlier bands */
    uint64_t queue_ns;
    /* the device's own profile of the kernels; 0 = absent, implausible or not asked for */
    uint64_t kernel_ns;
    uint32_t flags; /* of COX_MEASURED_... */
};

enum {
    COX_MEASURED_CHUNK =
        1, /* handed out by `assign`, and not the device's first band of the frame */
    COX_MEASURED_SHADOW = 2, /* a shadow; may come after its frame */
    /* failed or timed out: the band would have taken wall_ns or more */
    COX_MEASURED_UNFINISHED = 4,
};

/* What one whole frame cost, told after its bands, in the order of frames. Frames that failed are not told. */
struct cox_frame_measurement {
    uint64_t frame;
    uint64_t wall_ns; /* from its start to its last band's end */
    /* the part of it that no earlier frame was under way: what a stream of such frames pays */
    uint64_t period_ns;
    double joules;        /* used by the machine during the period; negative = unknown */
    uint64_t latency_ns;  /* from its submission to its delivery */
    uint64_t deadline_ns; /* for that; 0 = none */
};

/* What a session measured of a device, kept for the next session of the same kind. */
struct cox_device_profile {
    /* measured frames behind it; 0 = nothing is known, and the other fields do not count */
    double frames;
    double fixed_ns;         /* of the first band of a frame */
    double launch_ns;        /* of every further band */
    double ns_per_row;       /* in the device set in use */
    double single_device_ns; /* a whole frame alone; 0 = unknown */
    double share;            /* of the rows in the split in use; 0 = left out */
};

/* What the policy minimises. */
enum cox_objective {
    COX_OBJECTIVE_THROUGHPUT = 0, /* the time between deliveries */
    /* Joules a frame, as long as frames are delivered within their deadline; where they have several, within the
     * shortest of late. Needs a meter (cox_session_params.meter); without readings it is COX_OBJECTIVE_THROUGHPUT. */
    COX_OBJECTIVE_ENERGY = 1,
    COX_OBJECTIVE_LATENCY = 2, /* the time of each frame from its submission to its callback */
};

/* Options that a policy may read; fields it does not use are ignored. */
struct cox_policy_options {
    /* `static`: share of rows per device, summing to 1 (within 0.002); NULL = equal shares. Read during init only. */
    const double *ratios;
    uint32_t ratio_count; /* devices that `ratios` covers; must equal device_count */
    uint32_t device;      /* `single`: 1 + index of the device; 0 = the fastest one measured */
    enum cox_objective objective; /* `adaptive` */

    /* When each frame is to be delivered, from its submission; 0 = at no time. A frame may have its own
     * (cox_frame.deadline_ns). Frames that are late are delivered as well, unless cox_frame.late says otherwise, and
     * counted (cox_session_info). */
    uint64_t deadline_ns;
    uint32_t chunk_rows; /* `chunks`: 0 = a 32nd of the frame */
};

/* A policy: history in, split out. All functions are called on one thread at a time, never allocate, never
 * block. The library copies the struct but not what it points to: `name` must outlive every user. */
struct cox_policy {
    const char *name;

    /* Bytes of state needed for so many devices. Aligned like malloc's memory, zeroed before init. */
    size_t (*state_bytes)(uint32_t device_count);

    /* Prepare a zeroed state. Errors: COX_E_INVALID (the options do not fit the view). */
    cox_status (*init)(void *state, const struct cox_sched_view *view,
                       const struct cox_policy_options *options);

    /* Decide the split of frame view->frame, into a zeroed `out`. Must give a split that cox_split_check accepts. */
    cox_status (*split)(void *state, const struct cox_sched_view *view, struct cox_split *out);

    /* Learn from a completed band. Called once per band, frames in completion order; several frames may be
     * split before the first of them is observed. May be NULL. */
    void (*observe)(void *state, const struct cox_measurement *measurement);

    /* All below may be NULL. */

    /* Hand out rows of the frame's pool to a device that is free. Called while frame view->frame runs, each time such a
     * device is found. An invalid answer (too many rows, misaligned, none when offer->last) is taken as all rows
     * offered. A policy without it cannot leave rows in the pool. */
    void (*assign)(void *state, const struct cox_sched_view *view,
                   const struct cox_chunk_request *offer, struct cox_chunk *out);

    /* Learn from a completed frame, after its bands. */
    void (*observe_frame)(void *state, const struct cox_frame_measurement *measurement);

    /* Begin with what an earlier session measured: device_count profiles, after init, before the first split. */
    void (*load_profile)(void *state, const struct cox_sched_view *view,
                         const struct cox_device_profile *profiles);

    /* Fill device_count profiles, which are zeroed before, with what is known of the devices now. */
    void (*save_profile)(const void *state, const struct cox_sched_view *view,
                         struct cox_device_profile *profiles);
};

/* The built-in policies, in display order: "adaptive" (the default), "ewma", "chunks",
 * "hguided", "last-frame", "mean10", "static", "single", "inter-frame".
 * `cox_policy_at` returns NULL past the end, `cox_policy_find` NULL for an unknown name (NULL name = default). */
COX_API const struct cox_policy *cox_policy_at(uint32_t index);
COX_API const struct cox_policy *cox_policy_find(const char *name);

/* Check that `split` is a split of `view`: ascending, non-overlapping, complete together with the pool, aligned to the
 * row alignment, only usable devices, no empty band, a pool or shadow only where the view allows it. min_band_rows is not
 * enforced: shorter bands are slow, not wrong.
 *
 * Returns COX_OK, or COX_E_POLICY with one sentence in `why` that names the offending band (always terminated; may be
 * NULL with bytes 0). */
COX_API cox_status cox_split_check(const struct cox_split *split, const struct cox_sched_view *view,
                                   char *why, size_t why_bytes);

/* One device of the cost model t(n) = fixed_ns + ns_per_row * n for n > 0, t(0) = 0. */
struct cox_cost {
    bool usable;
    double fixed_ns;   /* >= 0, finite */
    double ns_per_row; /* > 0, finite */
};

/* Exact minimiser of max_d t_d(n_d) over all splits with n_d = 0 or n_d >= min_band_rows (0 = one
 * row alignment). Every n_d is a multiple of the row alignment, except on one device: the one that holds the
 * frame's end takes the remainder of rows % row alignment. The frame's only band may be shorter than
 * min_band_rows.
 *
 * Fills `rows_out[device_count]`, summing to `rows`, and returns the frame time in nanoseconds. It
 * returns a negative number, and fills in zeros, in these cases:
 *   no device is usable
 *   `rows` or `row alignment` is 0
 *   there is no device, or more than COX_DEVICES_MAX
 *   a usable device's costs are not as in cox_cost, or so extreme that a frame time would not be
 *    finite
 *
 * Source: water-filling over devices sorted by fixed cost, with exact integer rounding by greedy
 * completion. Where min_band_rows binds, bisection over the frame time. Why that needs no search of
 * subsets: sched/split/waterfill.c.
 * Cost: O(n^2) for n devices, n times that if `rows` is not a multiple of the row alignment, and about 60
 * times that where min_band_rows binds. Allocates nothing. */
COX_API double cox_waterfill(uint32_t rows, uint32_t row_alignment, uint32_t min_band_rows,
                             const struct cox_cost *costs, uint32_t device_count,
                             uint32_t *rows_out);

#ifdef __cplusplus
}
#endif
#endif
