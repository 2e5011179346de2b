/* Policies: who gets which rows. Plain C over plain structs: no OpenCL, no threads, no clock, no
 * allocation. Equal measurements give equal splits on every machine.
 *
 * Thread-safety: no function here keeps state outside its arguments.
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

/* Rows first_row to first_row + rows - 1, for one device. */
struct cox_band {
    uint32_t device; /* index into the session's devices */
    uint32_t first_row;
    uint32_t rows;
};

/* Why the policy chose this split. */
enum cox_reason {
    COX_REASON_NONE = 0,
    COX_REASON_FIRST,     /* no measurement yet */
    COX_REASON_GIVEN,     /* fixed by the user */
    COX_REASON_BALANCED,  /* moved towards equal finish times */
    COX_REASON_KEPT,      /* the predicted gain is too small */
    COX_REASON_DROPPED,   /* a device would only delay the frame */
    COX_REASON_DEVICES,   /* the set of usable devices changed */
    COX_REASON_PROBE,     /* a small band measures a device */
    COX_REASON_PROFILE,   /* from an earlier run's timings */
    COX_REASON_CHANGED,   /* a device or the content changed */
    COX_REASON_TRIAL,     /* tries another split */
    COX_REASON_ENERGY,    /* least energy within the deadline */
    COX_REASON_ON_DEMAND, /* assigned while the frame runs */
    COX_REASON_SHARED,    /* follows the pass before */
};

/* One English phrase. Static. */
COX_API const char *cox_reason_text(enum cox_reason reason);

/* The bands of one frame, in row order. Bands and pool cover every row once. */
struct cox_split {
    uint32_t band_count;
    struct cox_band bands[COX_BANDS_MAX];
    enum cox_reason reason;
    uint64_t predicted_ns; /* expected frame time; 0 = unknown */
    uint64_t rejected_ns;  /* expected time of the split that was rejected; 0 = none */
    uint64_t device_ns[COX_DEVICES_MAX]; /* expected finish of each device; 0 = unknown */

    /* Rows that `assign` hands out while the frame runs; pool_rows 0 = none. */
    uint32_t pool_first_row;
    uint32_t pool_rows;

    /* Rows that a device without a band repeats, only to be measured; rows 0 = none. */
    struct cox_band shadow;
};

struct cox_sched_device {
    bool usable;        /* false: must get no rows */
    double hint;        /* relative speed, guessed from the device's description */
    uint64_t single_ns; /* one whole frame on this device alone, from the warm-up; 0 = unknown */
};

/* What is to be split. Valid during the call. */
struct cox_sched_view {
    void *user;     /* the policy's */
    uint64_t frame; /* from 0 */
    uint32_t rows;
    uint32_t row_alignment; /* bands begin at multiples of it */
    uint32_t min_band_rows;
    uint32_t in_flight; /* frames that may be split before the first one is measured */
    uint32_t device_count;
    const struct cox_sched_device *devices;
    bool pool;            /* the split may have a pool */
    bool shadow;          /* the split may have a shadow */
    uint64_t deadline_ns; /* after submission; 0 = none */
    uint64_t waited_ns;   /* since submission */
};

/* A device that is free asks for rows of the pool. */
struct cox_chunk_request {
    uint32_t device;
    uint32_t first_row;  /* the chunk begins here */
    uint32_t rows;       /* left in the pool */
    uint64_t elapsed_ns; /* since the frame started */
    bool last;           /* no other device is busy: this one must take rows */
};

/* The answer: `rows` is a multiple of row_alignment, or all that is left. 0 = none for this device. */
struct cox_chunk {
    uint32_t rows;
    uint64_t predicted_ns;
};

enum {
    COX_MEASURED_CHUNK = 1, /* from the pool, and not the device's first band of the frame */
    COX_MEASURED_SHADOW = 2,
    COX_MEASURED_UNFINISHED = 4, /* failed; the band would have taken wall_ns or more */
};

/* What one band cost. */
struct cox_measurement {
    uint64_t frame;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    uint64_t wall_ns;   /* from when the device could start the band to its end */
    uint64_t queue_ns;  /* before that: waiting behind earlier bands */
    uint64_t kernel_ns; /* by the device's profile; 0 = unknown */
    uint32_t flags;
};

/* What one frame cost. */
struct cox_frame_measurement {
    uint64_t frame;
    uint64_t wall_ns;    /* start to last band's end */
    uint64_t period_ns;  /* the part in which no earlier frame was under way */
    uint64_t latency_ns; /* submission to delivery */
    uint64_t deadline_ns;
    double joules; /* during period_ns; negative = unknown */
};

/* What is kept of a device for the next session. frames 0 = nothing is known. */
struct cox_device_profile {
    double frames;
    double fixed_ns;  /* of a frame's first band */
    double launch_ns; /* of each further band */
    double ns_per_row;
    double single_ns;
    double share; /* of the rows, in the last split */
};

enum cox_objective {
    COX_OBJECTIVE_THROUGHPUT = 0,
    COX_OBJECTIVE_ENERGY = 1, /* least joules per frame within the deadline; needs a meter */
    COX_OBJECTIVE_LATENCY = 2,
};

struct cox_policy_options {
    const double
        *ratios; /* "static": share of each device, in the runtime's order, sum 1; NULL = equal */
    uint32_t ratio_count;
    uint32_t device;              /* "single": 1 + index of the device; 0 = the fastest */
    enum cox_objective objective; /* "adaptive" */
    uint64_t deadline_ns;         /* of every frame, after its submission; 0 = none */
    uint32_t chunk_rows;          /* "chunks"; 0 = a 32nd of the frame */
};

/* A policy. `init` and `split` are required. Functions run on one thread at a time. They must neither
 * allocate nor block. `name` must outlive every session with this policy. */
struct cox_policy {
    const char *name;
    void *user; /* for the policy itself: in cox_sched_view.user */

    /* Bytes of state for that many devices. NULL = none. The state is zeroed before init. */
    size_t (*state_bytes)(uint32_t device_count);

    cox_status (*init)(void *state, const struct cox_sched_view *view,
                       const struct cox_policy_options *options);

    /* Fill `out`, which is zeroed. */
    cox_status (*split)(void *state, const struct cox_sched_view *view, struct cox_split *out);

    /* Learn from a band, and from a frame. Several frames may be split before the first is measured. */
    void (*observe)(void *state, const struct cox_measurement *measurement);
    void (*observe_frame)(void *state, const struct cox_frame_measurement *measurement);

    /* Assign rows of the pool to a free device. */
    void (*assign)(void *state, const struct cox_sched_view *view,
                   const struct cox_chunk_request *request, struct cox_chunk *out);

    /* Start with, or save, one profile per device. */
    void (*load_profile)(void *state, const struct cox_sched_view *view,
                         const struct cox_device_profile *profiles);
    void (*save_profile)(const void *state, const struct cox_sched_view *view,
                         struct cox_device_profile *profiles);
};

/* The built-in policy of that name: "adaptive", "static", "single", "chunks". NULL for any other name. */
COX_API const struct cox_policy *cox_policy_find(const char *name);

/* Check a split: complete, in order, aligned, only usable devices.
 *
 * Returns COX_OK or COX_E_POLICY, with one sentence in `why`, which may be NULL. */
COX_API cox_status cox_split_check(const struct cox_split *split, const struct cox_sched_view *view,
                                   char *why, size_t why_bytes);

/* The time of n rows on a device: fixed_ns + ns_per_row * n, or 0 for 0 rows. */
struct cox_cost {
    bool usable;
    double fixed_ns;
    double ns_per_row;
};

/* The split that minimises the slowest device's time. Fills `rows` for each device of the view and
 * returns the frame time in ns, or a negative number if no device is usable.
 *
 * Source: water-filling over devices sorted by fixed cost; sched/split/waterfill.c says why it is exact. */
COX_API double cox_waterfill(const struct cox_sched_view *view, const struct cox_cost *costs,
                             uint32_t *rows);

#ifdef __cplusplus
}
#endif
#endif
