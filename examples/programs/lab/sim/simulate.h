/* The simulator: runs a policy, the very code that the library links, against devices that are a few numbers.
 *
 * Time is virtual, in nanoseconds as doubles. A frame begins, the policy splits it, each device works through its bands
 * one after the other, free devices are offered rows of the pool (`next`), and the frame ends when every row is done.
 * What a band costs comes from a `lab_world`: a scenario file (scenario.h) or a recorded session (lab/replay/world.h).
 * All arithmetic is + - * / and sqrt on doubles without contraction: the same seed gives the same result on every
 * machine.
 *
 * What is simulated of the runtime:
 *   - a frame is split when the frame `in_flight` before it has been delivered; its bands are put behind those of
 *     earlier frames in their devices' queues, at most two bands to a device at a time, and a device begins the next
 *     one in its queue at once;
 *   - while a frame's pool is not empty, devices that may take of it get no band of a later frame;
 *   - one thread splits, takes note of what has ended and hands out rows; each takes it `busy_ns`, and where it sleeps
 *     it comes `wake_ns` late;
 *   - a frame of several passes does one after the other, each split for itself by a policy's state of its own; between
 *     two there is a pause (`before_ns`), and rows that another device did in the pass before cost more
 *     (`moved_row_ns`);
 *   - frames are delivered in order; their measurements reach the policy then;
 *   - devices slow each other down while they work at the same time (`slowdown`), at the rate of that moment;
 *   - a shadow runs on its device beside the frame, which does not wait for it; the device is offered nothing
 *     meanwhile;
 *   - a band that takes long is waited for;
 *   - a device that dies does not end its band. The runtime takes it out of the session (`usable` = false) 25 % and 1
 *     ms after the band's prediction (that of `device_ns`, else the frame's, for a chunk the grant's), or, without a
 *     prediction, at ten times the whole frame's time on the best device; its rows go to the pool of `next`, else to
 *     the best usable device, and the policy hears of the band as unfinished. It asks the device again after 1, 2, 4,
 *     8, 8, ... frames and makes it usable when it answers; at once when no other device is left;
 *   - bands and chunks of a frame are at most COX_BANDS_MAX: a smaller grant than what that leaves room for is raised.
 *
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_SIM_H
#define COX_EXAMPLES_LAB_SIM_H

#include <coxswain/session.h>

enum {
    LAB_LAUNCH_WARMUP =
        0x7fffffff, /* as `launch`: the whole of frame 0 alone, before the session */
    LAB_IN_FLIGHT_MAX = 64,
};

/* One launch of some rows on a device. */
struct lab_launch {
    uint64_t frame;
    uint32_t device;
    uint32_t first_row;
    uint32_t rows;
    uint32_t launch; /* 0 = the device's first of this frame's pass */
    uint32_t pass;
    bool shadow;
};

/* The part of a launch that copies over a link which devices share: `ns` at the link's full rate, at the launch's end;
 * `beside_ns` of computing go on meanwhile. */
struct lab_link {
    uint32_t link; /* 1 .. COX_DEVICES_MAX; 0 = it shares none */
    double ns, beside_ns;
};

/* What there is to be simulated. `ctx` may change while frames run (a device warms up); `begin_run` puts it back. */
struct lab_world {
    void *ctx;
    uint32_t device_count; /* 1 .. COX_DEVICES_MAX */
    uint64_t frames;
    void (*begin_run)(void *ctx, uint64_t seed);
    /* Called once before each frame; up to LAB_IN_FLIGHT_MAX frames are then under way. Rows and granule of the frame,
     * and which devices answer. */
    void (*begin_frame)(void *ctx, uint64_t frame, uint32_t *rows, uint32_t *granule, bool *alive);
    /* Nanoseconds of work, alone and with this launch's share of chance (the same for the same seed, frame, device and
     * `launch`, whatever the policy did before). */
    double (*launch_ns)(void *ctx, const struct lab_launch *launch);
    /* The same without chance, and without what the scenario calls an outlier: what an oracle knows. */
    double (*expected_ns)(void *ctx, const struct lab_launch *launch);
    /* By how much a device is slower while the devices in `active` (a bit each, itself included) work; >= 1. */
    double (*slowdown)(void *ctx, uint64_t frame, uint32_t device, uint32_t active);
    /* The part of a launch's time that the device's own profile of the kernels shows. NULL = it has no profile. */
    double (*kernel_part)(void *ctx, const struct lab_launch *launch);
    /* A frame is over: busy nanoseconds of each device, the frame's time. Returns joules; negative = not modelled. */
    double (*end_frame)(void *ctx, uint64_t frame, const double *busy_ns, double wall_ns);
    /* All below may be NULL or 0. */

    /* Where a launch that takes `ns` copies. */
    void (*copying)(void *ctx, const struct lab_launch *launch, double ns, struct lab_link *out);
    /* How long the engine's thread, asleep, needs to notice the end of a launch, while the devices of `others` work. */
    double (*wake_ns)(void *ctx, const struct lab_launch *ended, uint32_t others);
    /* How long after a delivery the application hands over this frame, for which there was no room before. */
    double (*hand_over_ns)(void *ctx, uint64_t frame);
    /* But at most so long after a device has nothing to do; 0 = as above. */
    double hand_over_idle_ns;
    /* Devices (a bit each) and whether the engine's thread are kept from work at `now_ns`, which never goes back in a
     * run. Returns when that changes next, later than `now_ns`. */
    double (*stolen)(void *ctx, double now_ns, uint32_t *devices, bool *engine);
    /* How long the engine's thread is held up before it gives a device its `given`th band of a frame, one of the split
     * or rows of the pool, while the devices of `working` work. */
    double (*stall_ns)(void *ctx, uint64_t frame, uint32_t device, uint32_t given, bool handed_out,
                       uint32_t working);
    /* Before every so many frames the application waits until all are delivered; 0 = it does not. */
    uint64_t pause_frames;
    double busy_ns;  /* that each deed of the engine's thread takes it */
    bool host_clock; /* a band ends when the engine takes note of it, as far as measurements go */
    /* Frames of the same number answer `expected_ns` and `slowdown` alike, so the oracle need be sought
     * once for them; 0 = like no other. Called after begin_frame. */
    uint64_t (*condition)(void *ctx, uint64_t frame);
    const double *
        hints; /* relative speeds guessed before any measurement, one for each device; NULL = all 1 */

    /* A frame's next pass, with the same devices and frames; NULL = there is none. At most COX_PASSES_MAX in all. Of
     * it count the functions that are about a launch or a frame, but for which devices answer and joules. */
    const struct lab_world *next_pass;
    const char *name; /* of this pass; NULL = it has none */
    double before_ns; /* from the end of the pass before to its beginning */
    double
        moved_row_ns; /* more for each row of a launch that another device did in the pass before */
};

/* What the oracle does with a frame; what lab_simulate keeps of it for worlds with `condition`. Zeroed = unknown. */
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
    bool no_shadow;       /* nor shadows */
    bool no_solo;         /* the policy is not told what devices took alone in warm-up */
    bool split_each_pass; /* passes of as many rows do not share a split */
    bool no_oracle; /* oracle, best device and expected time are not looked for: the fields say 0 */
    struct cox_policy_options policy;
    const struct cox_device_profile *profiles; /* for each device; NULL = none is loaded */
    /* world->frames entries, zeroed before the first run and kept between runs over the same world: saves time, changes
     * nothing. NULL = none. */
    struct lab_oracle *oracles;
};

/* What became of one frame, of all its passes: times, rows and launches are sums, `reason` is the first pass's. */
struct lab_sim_frame {
    double wall_ns; /* from the split to the last band's end */
    /* From the delivery before to this one: what a stream of such frames pays. Equals wall_ns with one frame in flight
     * and no engine. */
    double period_ns;
    /* The oracle's split, with the same chance: the best fixed split of the best set of devices by `expected_ns`, one
     * band a device, and what it then takes. */
    double oracle_ns;
    double oracle_expected_ns; /* the same without chance */
    double solo_ns;            /* the best single device by `expected_ns`, with the same chance */
    /* What the policy's bands and pool would take if the pool were shared out perfectly, without chance: the excess
     * over oracle_expected_ns is the policy's fault. A band on a device that does not answer: wall_ns. */
    double expected_ns;
    double predicted_ns; /* 0 = the policy did not say */
    double alternative_ns;
    double joules;     /* negative = not modelled */
    double latency_ns; /* from when the application handed the frame over to its delivery */
    uint32_t reason;
    uint32_t refused; /* 1 = the policy's split was no split: the last good one was used */
    uint32_t moved;   /* 1 = the bands of the split are not those of the frame before */
    uint32_t launches;
    uint32_t rows[COX_DEVICES_MAX]; /* done by each device */
    uint32_t oracle_rows[COX_DEVICES_MAX];
};

/* Stands for the best fixed split of the frame before, where that fits: the best that a policy can do which knows
 * everything but the frame to come, decides before it begins and expects no change. None of its functions is called. */
extern const struct cox_policy lab_hindsight;

/* The policy of that name, "hindsight" and "oracle" among them; `*policy` is NULL for the oracle. False if there is
 * none. */
bool lab_policy_find(const char *name, const struct cox_policy **policy);

/* Run `policy` over the whole world. `out` has world->frames entries. `policy` NULL = the oracle itself. A split that
 * is none is refused; the last good one goes on, or, where that does not fit the frame, the best device alone. `why`
 * then names policy, frame and bands of the first such split, also with COX_OK; else it is empty.
 * Errors: COX_E_INVALID (the policy refuses its options, or a world that gives no frame or no device that answers),
 * COX_E_NOMEM, COX_E_POLICY (a refused split before there was a good one). */
cox_status lab_simulate(const struct lab_world *world, const struct cox_policy *policy,
                        const struct lab_sim_options *options, uint64_t seed,
                        struct lab_sim_frame *out, char *why, size_t why_bytes);

#endif
