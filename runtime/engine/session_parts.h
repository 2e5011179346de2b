/* The parts of struct cox_session (state.h): one struct for each feature. The comment above a
 * struct says which lock guards it and which files edit it. The head of state.h explains the locks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_ENGINE_SESSION_PARTS_H
#define COX_ENGINE_SESSION_PARTS_H

#include "backend.h"
#include "pipeline.h"
#include "row_set.h"

#include <pthread.h>

struct cox__frame;
struct cox__submission;

/* ---- requests ---- */

enum cox__request_kind {
    COX__REQUEST_FRAME,
    COX__REQUEST_JOIN,
    COX__REQUEST_WARM,
    COX__REQUEST_DETACH
};

/* A request from an application's thread to the scheduler thread. */
struct cox__request {
    struct cox__mpsc_node node;
    enum cox__request_kind kind;
    struct cox_session *session;
    struct cox__frame *frame; /* COX__REQUEST_FRAME */
};

/* ---- constant once other threads know the session ---- */

/* What create was asked for, and what follows from it. Set by api/session.c, then constant. */
struct cox__settings {
    uint32_t min_band_rows;
    uint32_t in_flight;
    double verify;              /* the share of bands that a second device repeats */
    uint64_t deadline_ns;       /* of frames without their own; 0 = none */
    uint64_t device_timeout_ns; /* 0 = by each device's own history */
    bool polls_closely;         /* as the runtime, unless time does not matter */
};

/* Measurements that come from an earlier session. Set by store/device_profile.c for create, then
 * constant. Read by destroy and cox_session_info. */
struct cox__profile {
    bool save;      /* save what the session measures */
    bool is_loaded; /* it began with the measurements of an earlier session */
    uint32_t order[COX_DEVICES_MAX];
    struct cox_device_profile loaded[COX_PASSES_MAX][COX_DEVICES_MAX];
    unsigned char key[32];
};

/* ---- guarded by the session's lock ---- */

/* The frame slots; the lock guards all but `all`. admission.c takes slots and puts them back. */
struct cox__frame_slots {
    struct cox__frame *all; /* in_flight + 1, constant */
    struct cox__frame *free;
    struct cox__frame *reserved;     /* for a frame that a callback submits; NULL = in use */
    struct cox__submission *waiting; /* for a free slot, the oldest first */
};

/* A session's frames in numbers, guarded by the lock. api/session.c counts submitted frames,
 * deliver.c counts delivered ones, and probation.c counts shadow runs. */
struct cox__counts {
    uint64_t next_index; /* of the next frame */
    /* Submitted frames whose callback has not returned, plus `ready` until it has returned, plus a
     * shadow run that was not reported. */
    uint32_t under_way;
    uint64_t done;
    uint64_t failed; /* of them, with a status other than COX_OK */
    cox_status
        unseen_failure; /* the first of a frame without a callback; cox_session_wait takes it */
    /* Frames with a lower index are cancelled. Written under the lock, read without it. */
    _Atomic uint64_t cancel_before;
};

/* The state that threads in cox_session_warm wait for.
 *
 *   with the first frame:   COLD --------------------------------> WARM, WARM_IN_VAIN
 *   with cox_session_warm:  COLD, NOTHING_TO_WARM <--> WARMING --> WARM, WARM_IN_VAIN
 *
 * Back from WARMING: there is no memory for the runs. WARM and WARM_IN_VAIN may change into each
 * other: if the first frame comes before cox_session_warm's request, the end is noted twice. */
enum cox__session_warmth {
    COX__SESSION_COLD,
    /* There is one device, or the application disabled the warm-up with the first frame. */
    COX__SESSION_NOTHING_TO_WARM,
    COX__SESSION_WARMING, /* cox_session_warm asks, or asked and left because no device is active */
    COX__SESSION_WARM,
    COX__SESSION_WARM_IN_VAIN /* no device was left */
};

/* What cox_session_warm waits for, guarded by the lock. Set by create and cox_session_warm
 * (api/session.c), and by warmup.c at the end of the runs. */
struct cox__warmth {
    enum cox__session_warmth state;
    uint32_t waiting; /* threads inside cox_session_warm */
};

/* ---- engine only ---- */

/* Frames under way, and one that a callback has submitted. */
enum { COX__ORDER_MAX = COX_IN_FLIGHT_MAX + 1 };

/* The frames under way, in submission order. Engine only. order.h edits the ring: step.c adds
 * frames, and deliver.c takes the oldest one off. */
struct cox__order {
    uint32_t first;
    uint32_t count;
    struct cox__frame *ring[COX__ORDER_MAX];
    /* When the first frame that may still begin expires; UINT64_MAX = none. Set by step.c. */
    uint64_t expiry_ns;
};

/* Events from a lower level to the step, in the order in which the step handles them. */
enum cox__event_kind {
    COX__EVENT_DEVICE_FAILED,   /* device, status */
    COX__EVENT_BAND_FAILED,     /* frame, band, status */
    COX__EVENT_BAND_DONE,       /* frame, band */
    COX__EVENT_PROBATION_RESULT /* device, status */
};

struct cox__event {
    enum cox__event_kind kind;
    uint32_t device;
    struct cox__frame *frame;
    uint32_t band;
    cox_status status;
};

/* The step handles all events before it reuses a slot or delivers a frame, and before it abandons a
 * second lost queue. So there is at most one for each slot of the devices' queues and of one lost
 * queue, and two for each device. */
enum { COX__EVENTS_MAX = (COX_DEVICES_MAX + 1) * COX_IN_FLIGHT_MAX + 2 * COX_DEVICES_MAX };

/* A session's events that were not handled yet, the oldest first. Engine only; event.h edits it. */
struct cox__events {
    uint32_t count;
    struct cox__event list[COX__EVENTS_MAX];
};

struct cox__pass_group; /* split/together.h */

/* How one pass divides its rows among devices. Engine only. api/sharing.c chooses the policy and
 * the devices; later policy.c alone edits the struct. */
struct cox__sharing {
    struct cox_policy policy;
    void *state; /* the policy's; NULL = the pass uses the split of another one, `lead` */

    /* Successive passes that share a split: the first of them, and their number. `together` sums
     * their measurements for the policy; only the first of several passes has it. */
    uint32_t lead;
    uint32_t count;
    struct cox__pass_group *together;

    /* devices that do the pass while one of them is active, a bit for each */
    uint32_t devices;
    bool has_last_split;
    struct cox_split last_split;
    uint64_t refused_splits;
    uint64_t refused_grants;
    uint64_t last_end_ns; /* latest end of the pass */
};

/*   WAITING <--> BORROWED ------> FINISHED
 *      |             v              ^ | (cox_session_warm asks before the first frame)
 *      |      BORROWED_ASKED -------' |
 *      v             v                |
 *    ASKED <---------'----------------'
 *      '--> OWN --> FINISHED
 *
 * Back from BORROWED and BORROWED_ASKED: the first frame is cancelled. */
enum cox__warmup_state {
    COX__WARMUP_WAITING,  /* for the first frame */
    COX__WARMUP_BORROWED, /* runs on the buffers of the first frame */
    /* The same, and cox_session_warm has asked in the meantime: `given` is not needed yet. */
    COX__WARMUP_BORROWED_ASKED,
    /* cox_session_warm asked: the runs begin or go on with `given`, without waiting for a frame. */
    COX__WARMUP_ASKED,
    COX__WARMUP_OWN,     /* runs on `given` */
    COX__WARMUP_FINISHED /* or the session does no warm-up */
};

/* What a device runs next in the warm-up of a pass.
 *
 *   COMPILE ---> SLICE ---> DONE
 *    |   '--> WHOLE <-'      ^
 *    |          '------------|
 *    '-----------------------' */
enum cox__measure_state {
    COX__MEASURE_COMPILE, /* a slice, in which some drivers compile */
    COX__MEASURE_SLICE,   /* a slice to be timed */
    COX__MEASURE_WHOLE,   /* the whole pass, while no other device runs */
    COX__MEASURE_DONE
};

/* How the warm-up times one device in one pass. Engine only; measure.c edits it. */
struct cox__measure {
    enum cox__measure_state state;
    uint32_t rows;      /* of the pass */
    uint32_t unit;      /* slices begin and end at multiples of it */
    uint32_t most;      /* rows of a slice */
    uint32_t slice;     /* rows of the next one */
    uint32_t last_rows; /* of the slice before; 0 = none was timed */
    uint64_t last_ns;
    bool only;         /* the session's only device */
    uint64_t known_ns; /* for the whole pass, from a device profile; 0 = unknown */
    uint32_t runs;     /* of the whole pass; how many, their time, and the shortest one */
    uint64_t spent_ns;
    uint64_t whole_ns;
};

/* What the warm-up's run under way is. */
enum cox__warmup_run {
    COX__WARMUP_SLICES, /* one band for each of several devices, in different rows */
    COX__WARMUP_WHOLE,  /* a whole pass on one device */
    COX__WARMUP_FILL    /* a whole pass on all devices, because a later pass reads what it writes */
};

/* Warm-up runs. The devices are timed in one pass after the other; measure.c says what each device
 * runs. Engine only; warmup.c edits the struct. cox_session_warm fills in `request`, `given` and
 * `params` before it sends the request. */
struct cox__warmup {
    enum cox__warmup_state state;
    bool used; /* a frame or cox_session_warm's request has arrived; set by step.c */
    struct cox__request request;                   /* from cox_session_warm, */
    struct cox__mem *given[COX_BUFFERS_MAX];       /* with memory for the runs */
    unsigned char params[COX_CONSTANTS_BYTES_MAX]; /* and parameters */
    bool owns_mem[COX_BUFFERS_MAX];                /* the memory of this binding is not borrowed */

    struct cox__frame *frame;
    enum cox__warmup_run run;
    uint32_t pass;      /* in which the devices are timed now; see `begun` */
    bool begun;         /* `measures` is set for the pass */
    uint32_t failed;    /* devices that the warm-up goes on without, a bit for each */
    uint32_t filled;    /* passes whose results are in the memory of the runs */
    uint32_t holders;   /* devices that keep the results of all earlier passes, a bit for each */
    uint32_t ran_whole; /* devices that have run this pass whole on this memory */
    struct cox__measure measures[COX_DEVICES_MAX];
    uint64_t submit_ns[COX_DEVICES_MAX]; /* how long submitting the device's last run took */
};

/* A session whose devices join in the background. Set by create before it sends the request, then
 * engine only; deliver.c calls `ready`. */
struct cox__joining {
    struct cox__request request;
    cox__ready_fn *ready; /* NULL = none, or it was called */
    void *user;
};

/*   NONE -> ALLOCATING -> READY -> TAINTED -> ALLOCATING
 *                 '--> UNAVAILABLE <--'         (too often) */
enum cox__spare_state {
    COX__SPARE_NONE,
    COX__SPARE_ALLOCATING, /* by the worker thread, which then owns `mems` */
    COX__SPARE_READY,
    COX__SPARE_TAINTED, /* a lost device may still write to them */
    COX__SPARE_UNAVAILABLE
};

/* A second set of frame buffers for checks and shadow runs, allocated at the first use. It serves
 * one frame or one shadow run at a time. Engine only, except that the worker thread owns `mems`
 * while the state is ALLOCATING. spare.c edits the struct; reaper.c may set the state TAINTED. */
struct cox__spare {
    _Atomic enum cox__spare_state state;
    struct cox__mem *mems[COX_BUFFERS_MAX];
    const struct cox__frame *owner; /* while `users` is not 0: the frame slot that it serves */
    uint64_t frame_index;           /* the number of the frame in that slot */
    uint32_t users;                 /* bands that will run on it or have results in it */
    bool whole;                     /* the WHOLE bindings are copied */
    uint32_t made;                  /* how often it was allocated */
    uint64_t wait_ns;               /* ALLOCATING: until when frames wait for it */
};

/* A band on the spare buffers that no frame waits for. Engine only; probation.c edits it. */
struct cox__shadow {
    struct cox__frame *frame; /* NULL = none yet */
    uint32_t device;
    bool busy;      /* counted in `under_way` */
    bool probation; /* of a rebuilt device; else the policy asked for a measurement */
    bool compare;   /* its rows must have this digest */
    unsigned char digest[32];
};

/* Scratch rows that devices recently read from the host; a part of struct cox__residency. The band
 * that writes these rows copies them out at once, so that no band waits for a fetch. There are two
 * generations; a new one replaces the older. */
struct cox__handed_over {
    uint32_t newest; /* generation */
    uint64_t frames; /* since it began */
    struct cox__row_set rows[2][COX_BUFFERS_MAX];
};

/* What outlives a buffer: where its newest rows are. The buffer refers to it, and so do the
 * sessions whose devices keep rows of it. */
struct cox__buffer_life {
    atomic_uint refs;
    atomic_bool ended;                          /* the buffer is gone */
    _Atomic(const struct cox_session *) keeper; /* its devices may have newer rows than the host */
};

/* Device memory for a buffer that stays, and where the rows of the buffer are. */
struct cox__kept {
    struct cox__buffer_life *life; /* the buffer's; NULL = free */
    uint64_t content;              /* of the buffer, when its rows were noted */
    uint64_t used;                 /* number of the last frame that used it */
    uint32_t frames;               /* that use it now */
    size_t pitch_bytes;            /* of its rows */
    uint32_t all_rows;
    struct cox__row_set *rows; /* by place */
};

/* Rows that devices keep from pass to pass, and from frame to frame. Engine only. residency.c edits
 * it, and directory.c edits `kept`. */
struct cox__residency {
    bool keeps_nothing; /* a frame's kept rows were in too many pieces */
    bool one_split;     /* all passes use one split; by api/sharing.c, then constant */
    double byte_ns;     /* to copy one byte from a device to the host, by fetches; 0 = unknown */
    struct cox__handed_over handed_over;
    struct cox__kept kept[COX_BUFFERS_MAX]; /* as many as pipeline.kept_count */
};

/* What step.c must look after, and lost devices. Engine only. */
struct cox__recovery {
    /* Some device is not active, there are lost queues, or a worker thread allocates: step.c looks
     * after them. Every file that begins with one of these sets it; step.c alone clears it. */
    bool attention;
    struct cox__queue *lost_queues; /* edited by reaper.c */
    /* When the last active device was lost; 0 = a band has ended well since. Edited by device.c. */
    uint64_t no_device_since_ns;
};

/* The application's energy meter. Engine only; policy.c reads the meter and keeps the reading. */
struct cox__energy {
    cox_meter_fn *meter; /* NULL = none */
    void *user;
    double joules; /* its reading when the period of the oldest frame under way began */
};

/* The application's report function. Engine only; frame.c sorts the bands and calls it. */
struct cox__reporting {
    cox_report_fn *report; /* NULL = none */
    void *user;
    struct cox_band_report *sorted; /* room for all bands of a frame */
};

/* Warnings that the log already has. Engine only, once other threads know the session. */
struct cox__warned {
    bool unverified;     /* that a band cannot be checked; by verify.c */
    uint32_t no_verdict; /* why a vote convicts no device, a bit for each reason; by verify.c */
    uint32_t writable;   /* about bindings, a bit for each; by making.c and create */
};

#endif
