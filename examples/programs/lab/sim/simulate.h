/* The simulator: runs a policy, the code that the library links, on devices that are a few numbers.
 *
 * Time is virtual: nanoseconds as doubles. The policy splits a frame, and each device does its
 * bands one after the other. Idle devices are offered rows of the pool (`next`). The frame ends
 * when every row is done. The cost of a band comes from a `lab_world`: a scenario file (scenario.h)
 * or a recorded session (lab/replay/world.h). All arithmetic is + - * / and sqrt on doubles without
 * contraction: the same seed gives the same result on every machine.
 *
 * What is simulated of the runtime:
 *   - Frames: A frame is split when the frame `in_flight` before it is delivered. Frames are
 *     delivered in order. Their measurements reach the policy on delivery.
 *   - Queues: A device has at most two bands in its queue, those of earlier frames first. It starts
 *     the next band at once. A band that takes long is waited for.
 *   - Pool: While a frame's pool is not empty, devices that may take rows of it get no band of a
 *     later frame. A frame has at most COX_BANDS_MAX bands and chunks. Grants that are too small
 *     for that are raised.
 *   - Engine: One thread splits, notices ends and hands out rows. Each action takes `busy_ns`.
 *     Enqueueing a band takes `submit_ns` more: the device works meanwhile, but the next device
 *     waits. Devices with a small `submit_ns` are served first. After sleeping the thread is
 *     `wake_ns` late.
 *   - Copies ahead: A device can do a part of a launch (`ahead_ns`) while it works at the band
 *     before.
 *   - Passes: A frame does its passes one after the other. Each pass has its own split and its own
 *     state of the policy. Between two passes there is a pause (`before_ns`). Rows that another
 *     device did in the pass before cost more (`moved_row_ns`).
 *   - Contention: Devices that work at the same time slow each other down (`slowdown`).
 *   - Shadows: A shadow runs on its device, which is offered no rows meanwhile. The frame does not
 *     wait for it.
 *   - Deaths: A device that dies does not end its band. The session takes it out of use (`usable` =
 *     false) 25 % and 1 ms after the band's prediction. The prediction is that of the grant for a
 *     chunk, else `device_ns`, else the frame's. Without a prediction, the session takes the device
 *     out of use after ten times the best device's time for a whole frame. Its rows go to the pool
 *     of `next`, else to the best usable device. The policy observes the band as unfinished. The
 *     session asks the device again after 1, 2, 4, 8, 8, ... frames, and at once if no other device
 *     is left. If the device answers, it is usable.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_H
#define COX_EXAMPLES_LAB_SIM_H

#include <coxswain/session.h>

enum {
    /* As `launch`: the whole of frame 0 on one device, before the session. */
    LAB_LAUNCH_WARMUP = 0x7fffffff,
    LAB_IN_FLIGHT_MAX = 64,
};

/* Some rows on a device. */
struct lab_launch {
    uint64_t frame;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    uint32_t launch; /* 0 = the device's first of this frame's pass */
    uint32_t pass;
    bool shadow;
};

/* The part of a launch, at its end, that copies over a link which devices share. */
struct lab_link {
    uint32_t link;    /* 1 .. COX_DEVICES_MAX; 0 = none */
    double ns;        /* at the link's full rate */
    double beside_ns; /* computing at the same time */
};

/* What is simulated. `ctx` may change while frames run (a device warms up); `begin_run` resets
 * it. */
struct lab_world {
    void *ctx;
    uint32_t device_count; /* 1 .. COX_DEVICES_MAX */
    uint64_t frames;
    void (*begin_run)(void *ctx, uint64_t seed);

    /* Called once before each frame: its rows and row alignment, and which devices answer. Up to
     * LAB_IN_FLIGHT_MAX frames are under way. */
    void (*begin_frame)(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *row_alignment,
                        bool *alive);

    /* Nanoseconds of work without contention, with the chance of this launch. The chance depends
     * only on seed, frame, device and `launch`, not on the policy. */
    double (*launch_ns)(void *ctx, const struct lab_launch *launch);

    /* The same without chance and outliers: what an oracle knows. */
    double (*expected_ns)(void *ctx, const struct lab_launch *launch);

    /* How much slower a device is, >= 1, while the devices in `active` (a bit each) work, itself
     * included. May be NULL, as all below. */
    double (*slowdown)(void *ctx, uint64_t frame, uint32_t device, uint32_t active);

    /* The part of a launch's time that the device's profile shows; NULL = it has no profile. */
    double (*kernel_part)(void *ctx, const struct lab_launch *launch);

    /* A frame ended: busy nanoseconds of each device, time of the frame. Returns joules; negative =
     * not modelled. */
    double (*end_frame)(void *ctx, uint64_t frame, const double *busy_ns, double wall_ns);

    /* The part of a launch that the device can do while it works at the band before. */
    double (*ahead_ns)(void *ctx, const struct lab_launch *launch);

    /* The copy within a launch that takes `ns`. */
    void (*copying)(void *ctx, const struct lab_launch *launch, double ns, struct lab_link *out);

    /* How long the sleeping engine needs to notice the end of a launch, while `others` work. */
    double (*wake_ns)(void *ctx, const struct lab_launch *ended, uint32_t others);

    /* How long after a delivery the application submits this frame, which had to wait for room. Paced:
     * after the frame's turn. */
    double (*hand_over_ns)(void *ctx, uint64_t frame);

    /* A frame's turn comes at this pace, as from a camera. If there is no room, the frame waits, and
     * its latency counts from its turn. 0 = not paced. */
    double submit_period_ns;

    /* It does not wait longer than this while a device is idle; 0 = no limit. */
    double hand_over_idle_ns;

    /* Which devices (a bit each), and whether the engine's thread, are kept from work at `now_ns`,
     * which never goes back in a run. Returns when that changes, later than `now_ns`. */
    double (*stolen)(void *ctx, double now_ns, uint32_t *devices, bool *engine);

    /* How long the engine's thread is held up before it gives a device its `given`th band of a
     * frame. Meanwhile the devices of `working` work. `handed_out`: the rows are the pool's. */
    double (*stall_ns)(void *ctx, uint64_t frame, uint32_t device, uint32_t given, bool handed_out,
                       uint32_t working);

    /* Every `pause_frames` frames the application waits for all deliveries; 0 = never. */
    uint64_t pause_frames;
    double busy_ns; /* of each action of the engine's thread */

    /* What enqueueing a band on each device costs this thread; NULL = nothing. */
    const double *submit_ns;
    bool host_clock; /* measurements end when the engine notices the band's end */

    /* Frames with the same number have the same `expected_ns` and `slowdown`, so the oracle is
     * searched once for them; 0 = no other frame is like this one. Called after begin_frame. */
    uint64_t (*condition)(void *ctx, uint64_t frame);

    /* Relative speeds of the devices, guessed before any measurement; NULL = all 1. */
    const double *hints;

    /* The next pass of a frame, with the same devices and frames; NULL = none. At most
     * COX_PASSES_MAX in all. The first pass alone says which devices answer and counts joules. */
    const struct lab_world *next_pass;
    const char *name;    /* of this pass; NULL = none */
    double before_ns;    /* pause between the pass before and this one */
    double moved_row_ns; /* extra time of a row that another device did in the pass before */
};

/* How much slower a device is while the devices in `active` work. */
static inline double lab_world_slowdown(const struct lab_world *world, uint64_t frame,
                                        uint32_t device, uint32_t active)
{
    return world->slowdown ? world->slowdown(world->ctx, frame, device, active) : 1;
}

/* The oracle's result for a frame. lab_simulate keeps it for worlds with `condition`.
 * Zeroed = unknown. */
struct lab_oracle {
    uint64_t condition;
    double expected_ns;
    uint32_t solo; /* the best single device */
    uint32_t rows[COX_DEVICES_MAX];
};

struct lab_sim_options {
    uint32_t in_flight; /* 0 = 1; at most LAB_IN_FLIGHT_MAX */
    uint32_t min_band_rows;
    bool no_pool;         /* a policy may not use `next` */
    bool no_shadow;       /* a policy may not use shadows */
    bool split_each_pass; /* passes with the same rows do not share a split */
    bool no_oracle;       /* do not compute oracle, best device and expected time */
    struct cox_policy_options policy;
    const struct cox_device_profile *profiles; /* for each device; NULL = none is loaded */

    /* The splits of world->frames frames, which are used instead of the policy's; NULL = none. */
    const struct cox_split *splits;

    /* A cache of world->frames entries, zeroed before the first run, for all runs of the same
     * world. It changes no result. NULL = none. */
    struct lab_oracle *oracles;
};

/* One frame. Times, rows and launches are sums over its passes; `reason` is the first pass's. */
struct lab_sim_frame {
    double wall_ns; /* from the split to the end of the last band */

    /* From the delivery before to this one: the cost of the frame in a stream. Equal to wall_ns
     * with one frame in flight and no engine. */
    double period_ns;

    /* The part of wall_ns in which no earlier frame was under way: the period of a recorded frame.
     * The application's time between two frames is in period_ns, but not here. */
    double exposed_ns;

    /* The oracle's split is the best fixed split by `expected_ns`, with one band for each device of
     * the best set of devices. This is its time with the chance of this frame. */
    double oracle_ns;
    double oracle_expected_ns; /* the same without chance */
    double single_device_ns;   /* the best single device by `expected_ns`, with chance */

    /* The time of the policy's bands, with the pool shared out perfectly, without chance. The
     * excess over oracle_expected_ns is the policy's fault. wall_ns if a band is on a device that
     * does not answer. */
    double expected_ns;
    double predicted_ns; /* 0 = the policy made no prediction */
    double rejected_ns;
    double joules;     /* negative = not modelled */
    double latency_ns; /* from the submission to the delivery */
    uint32_t reason;
    uint32_t refused; /* 1 = the policy's split was refused: the last good one was used */
    uint32_t moved;   /* 1 = the split has other bands than that of the frame before */
    uint32_t launches;
    uint32_t rows[COX_DEVICES_MAX]; /* done by each device */
    uint32_t oracle_rows[COX_DEVICES_MAX];
};

/* Hindsight uses the oracle's split of the frame before: the best that a policy can do that knows
 * everything but the frame to come, and expects no change. None of its functions is called. */
extern const struct cox_policy lab_hindsight;

/* Find a policy by name, "hindsight" and "oracle" included. For the oracle `*policy` is NULL.
 * False if there is no policy of that name. */
bool lab_policy_find(const char *name, const struct cox_policy **policy);

/* Run `policy` over the whole world and fill `out[world->frames]`. `policy` NULL = the oracle.
 *
 * An invalid split is refused, and the last good one is used. If that one does not fit the frame,
 * the best device alone is used. `why` describes the first refused split, also with COX_OK. It is
 * empty if no split was refused.
 *
 * Errors:
 *   COX_E_INVALID  the policy refuses its options, or the world has no valid frame or no device
 *   COX_E_NOMEM
 *   COX_E_POLICY   a split was refused before there was a good one */
cox_status lab_simulate(const struct lab_world *world, const struct cox_policy *policy,
                        const struct lab_sim_options *options, uint64_t seed,
                        struct lab_sim_frame *out, char *why, size_t why_bytes);

#endif
