/* One session, simulated. A frame runs from event to event: a launch ends, or a device that does not answer is taken
 * out. Between events every device that works does so at the rate 1 / slowdown of the devices that work at that moment.
 * SPDX-License-Identifier: Apache-2.0 */
#include "simulate.h"
#include "oracle.h"
#include "lab/strict_fp.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A device that does not answer is waited for by this share of its prediction and DEAD_NS more. */
static const double DEAD_SHARE = 0.25;
static const double DEAD_NS = 1e6;
/* Where there is no prediction: so many times the best device's time for a whole frame. */
static const double DEAD_TIMES = 10;
enum {
    ASK_PAUSE_MAX = 8, /* frames between two questions to a device that does not answer */
    /* A frame has at most COX_BANDS_MAX bands and chunks, each of which ends once; each device is lost at most once and
     * gives back what it had. */
    RANGES_MAX = 2 * COX_BANDS_MAX + 2 * COX_DEVICES_MAX,
    MEASURED_MAX = 2 * COX_BANDS_MAX + 4 * COX_DEVICES_MAX,
    BANDS_TEXT = 400
};

enum kind {
    NOTHING,
    BAND,  /* of the split */
    CHUNK, /* handed out by `next`, or taken from a device that was lost */
    SHADOW /* only to be measured */
};

struct range {
    uint32_t first_row;
    uint32_t rows;
};

struct worker {
    bool alive;  /* it answers */
    bool usable; /* the session thinks so */
    bool open;   /* it will be asked for rows of the pool */
    uint32_t ask_in, ask_pause;

    enum kind kind;
    struct lab_launch launch;
    double left_ns; /* alone */
    double since_ns;
    double lost_ns; /* when the session takes it out of use; HUGE_VAL = it answers, or has no rows */

    uint32_t bands_next; /* of the split, the first that may be its own and has not begun */
    uint32_t launches;   /* in this frame */
    double busy_ns;
};

struct batch {
    bool full;
    uint32_t count;
    struct cox_measurement measured[MEASURED_MAX];
    struct cox_frame_measurement frame;
};

struct sim {
    const struct lab_world *world;
    const struct cox_policy *policy;
    const struct lab_sim_options *options;
    void *state;
    struct batch *batches; /* one for each frame in flight */
    uint32_t batch_count;
    char *why;
    size_t why_bytes;

    struct worker workers[COX_DEVICES_MAX];
    struct cox_sched_device devices[COX_DEVICES_MAX];
    double solo_ns[COX_DEVICES_MAX]; /* of warm-up, for `solo_rows` */
    bool warmed[COX_DEVICES_MAX];    /* whether the session has seen the device's solo time */
    uint32_t solo_rows;
    struct cox_sched_view view;
    struct cox_split split;
    bool split_made;
    struct lab_oracle before; /* of the frame before */

    /* The frame under way. */
    struct batch *batch;
    double now_ns;
    double dead_ns;
    uint32_t done_rows;
    struct range pool[RANGES_MAX]; /* rows for the devices that are free first */
    uint32_t pool_next, pool_end;
    uint32_t launches;
    struct lab_sim_frame *out;
};

const struct cox_policy lab_hindsight = {.name = "hindsight"};

bool lab_policy_find(const char *name, const struct cox_policy **policy)
{
    bool oracle = strcmp(name, "oracle") == 0;
    *policy = oracle ? NULL : strcmp(name, lab_hindsight.name) == 0 ? &lab_hindsight : cox_policy_find(name);
    return oracle || *policy;
}

/* --- small things --- */

static uint64_t whole(double ns)
{
    return ns >= 0 && ns < 1e19 ? (uint64_t)(ns + 0.5) : 0;
}

static bool counts(const struct worker *worker)
{
    return worker->kind == BAND || worker->kind == CHUNK;
}

/* The device's next band that has not begun, from `at` on; band_count if there is none. */
static uint32_t band_from(const struct sim *sim, uint32_t device, uint32_t at)
{
    while (at < sim->split.band_count && sim->split.bands[at].device != device)
        at++;
    return at;
}

/* When a device with rows from `from_ns` on is taken out of use. */
static double lost_at(const struct sim *sim, uint32_t device, double from_ns, uint64_t predicted_ns)
{
    if (sim->workers[device].alive)
        return HUGE_VAL;
    return from_ns + (predicted_ns > 0 ? (double)predicted_ns * (1 + DEAD_SHARE) + DEAD_NS : sim->dead_ns);
}

static struct cox_measurement *measure(struct sim *sim, uint32_t flags)
{
    struct batch *batch = sim->batch;
    if (batch->count == MEASURED_MAX)
        return NULL;
    struct cox_measurement *measured = &batch->measured[batch->count++];
    *measured = (struct cox_measurement){.flags = flags};
    return measured;
}

static void measure_worker(struct sim *sim, const struct worker *worker, uint32_t flags)
{
    const struct lab_launch *launch = &worker->launch;
    if (worker->kind == CHUNK && launch->launch > 0)
        flags |= COX_MEASURED_CHUNK;
    struct cox_measurement *measured = measure(sim, flags);
    if (!measured)
        return;
    double wall_ns = sim->now_ns - worker->since_ns;
    measured->frame = launch->frame;
    measured->device = launch->device;
    measured->first_row = launch->first_row;
    measured->rows = launch->rows;
    measured->wall_ns = whole(wall_ns);
    measured->queue_ns = worker->kind == BAND ? whole(worker->since_ns) : 0;
    if (sim->world->kernel_part && !(flags & COX_MEASURED_UNFINISHED))
        measured->kernel_ns = whole(wall_ns * sim->world->kernel_part(sim->world->ctx, launch));
}

/* --- work --- */

static void start(struct sim *sim, uint32_t d, enum kind kind, uint32_t first_row, uint32_t rows)
{
    struct worker *worker = &sim->workers[d];
    worker->kind = kind;
    worker->since_ns = sim->now_ns;
    worker->launch = (struct lab_launch){.frame = sim->view.frame,
                                         .device = d,
                                         .first_row = first_row,
                                         .rows = rows,
                                         .launch = kind == SHADOW ? 0 : worker->launches,
                                         .shadow = kind == SHADOW};
    worker->left_ns = fmax(1e-3, sim->world->launch_ns(sim->world->ctx, &worker->launch));
    if (kind == SHADOW)
        return;
    worker->launches++;
    sim->out->launches++;
}

static struct cox_progress progress_of(const struct sim *sim, uint32_t d)
{
    const struct worker *worker = &sim->workers[d];
    struct cox_progress progress = {0};
    uint32_t at = band_from(sim, d, worker->bands_next);
    if (counts(worker))
        progress = (struct cox_progress){.rows = worker->launch.rows,
                                         .first_row = worker->launch.first_row,
                                         .since_ns = whole(sim->now_ns - worker->since_ns)};
    else if (at < sim->split.band_count)
        progress.first_row = sim->split.bands[at].first_row;
    for (; at < sim->split.band_count; at = band_from(sim, d, at + 1))
        progress.rows += sim->split.bands[at].rows;
    return progress;
}

static bool has_band(const struct sim *sim, uint32_t d)
{
    return band_from(sim, d, sim->workers[d].bands_next) < sim->split.band_count;
}

/* No device but `d` is at work or will be asked. */
static bool is_last(const struct sim *sim, uint32_t d)
{
    for (uint32_t i = 0; i < sim->view.device_count; i++) {
        const struct worker *other = &sim->workers[i];
        if (i != d && other->usable && (other->open || counts(other) || has_band(sim, i)))
            return false;
    }
    return true;
}

/* Ask the policy; the rows that it grants of `range`, 0 = none. */
static uint32_t ask(struct sim *sim, uint32_t d, const struct range *range, uint64_t *predicted_ns)
{
    struct cox_progress progress[COX_DEVICES_MAX];
    for (uint32_t i = 0; i < sim->view.device_count; i++)
        progress[i] = progress_of(sim, i);
    struct cox_offer offer = {.device = d,
                              .first_row = range->first_row,
                              .rows = range->rows,
                              .elapsed_ns = whole(sim->now_ns),
                              .last = is_last(sim, d),
                              .progress = progress};
    struct cox_grant grant = {0};
    sim->policy->next(sim->state, &sim->view, &offer, &grant);
    uint32_t granule = sim->view.granule;
    *predicted_ns = grant.predicted_ns;
    if (grant.rows > offer.rows || (grant.rows % granule != 0 && grant.rows != offer.rows) ||
        (grant.rows == 0 && offer.last)) {
        *predicted_ns = 0;
        return offer.rows;
    }
    if (grant.rows == 0)
        return 0;
    uint32_t room = sim->launches < COX_BANDS_MAX ? COX_BANDS_MAX - sim->launches : 1;
    uint64_t least = ((uint64_t)offer.rows + room - 1) / room;
    if (grant.rows < least) {
        *predicted_ns = 0;
        least = (least + granule - 1) / granule * granule;
        return least > offer.rows ? offer.rows : (uint32_t)least;
    }
    return grant.rows;
}

static void take(struct sim *sim, uint32_t d, struct range *range, uint32_t rows, uint64_t predicted_ns)
{
    start(sim, d, CHUNK, range->first_row, rows);
    sim->launches++;
    range->first_row += rows;
    range->rows -= rows;
    sim->workers[d].lost_ns = lost_at(sim, d, sim->now_ns, predicted_ns);
}

/* The usable device that is best alone. */
static uint32_t best_usable(const struct sim *sim)
{
    uint32_t best = sim->view.device_count;
    for (uint32_t d = 0; d < sim->view.device_count; d++)
        if (sim->workers[d].usable && (best == sim->view.device_count || sim->solo_ns[d] < sim->solo_ns[best]))
            best = d;
    return best;
}

/* Something to do for a free device. Returns whether there was. */
static bool serve(struct sim *sim, uint32_t d)
{
    struct worker *worker = &sim->workers[d];
    uint32_t at = band_from(sim, d, worker->bands_next);
    if (at < sim->split.band_count) {
        const struct cox_band *band = &sim->split.bands[at];
        worker->bands_next = at + 1;
        start(sim, d, BAND, band->first_row, band->rows);
        return true;
    }
    while (sim->pool_next < sim->pool_end && sim->pool[sim->pool_next].rows == 0)
        sim->pool_next++;
    if (sim->pool_next == sim->pool_end)
        return false;
    struct range *range = &sim->pool[sim->pool_next];
    if (!sim->policy || !sim->policy->next) {
        if (d != best_usable(sim))
            return false;
        take(sim, d, range, range->rows, 0);
        return true;
    }
    if (!worker->open)
        return false;
    uint64_t predicted_ns = 0;
    uint32_t rows = ask(sim, d, range, &predicted_ns);
    worker->open = rows > 0;
    if (rows > 0)
        take(sim, d, range, rows, predicted_ns);
    return rows > 0;
}

static void serve_all(struct sim *sim)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t d = 0; d < sim->view.device_count; d++) {
            const struct worker *worker = &sim->workers[d];
            if (worker->usable && worker->kind == NOTHING)
                again |= serve(sim, d);
        }
    }
}

/* --- lost --- */

static void add_to_pool(struct sim *sim, uint32_t first_row, uint32_t rows)
{
    if (sim->pool_end < RANGES_MAX && rows > 0)
        sim->pool[sim->pool_end++] = (struct range){.first_row = first_row, .rows = rows};
}

/* What the device is at, and what it has waiting, goes to the pool. */
static void give_back(struct sim *sim, uint32_t d)
{
    const struct worker *worker = &sim->workers[d];
    if (counts(worker))
        add_to_pool(sim, worker->launch.first_row, worker->launch.rows);
    for (uint32_t at = band_from(sim, d, worker->bands_next); at < sim->split.band_count;
         at = band_from(sim, d, at + 1))
        add_to_pool(sim, sim->split.bands[at].first_row, sim->split.bands[at].rows);
}

/* With no usable device left, all are asked at once. */
static void ask_all_if_none(struct sim *sim)
{
    if (best_usable(sim) < sim->view.device_count)
        return;
    for (uint32_t d = 0; d < sim->view.device_count; d++)
        sim->workers[d].usable = sim->workers[d].alive;
}

static void lose(struct sim *sim, uint32_t d)
{
    struct worker *worker = &sim->workers[d];
    if (counts(worker))
        measure_worker(sim, worker, COX_MEASURED_UNFINISHED);
    give_back(sim, d);
    worker->kind = NOTHING;
    worker->usable = false;
    worker->lost_ns = HUGE_VAL;
    worker->bands_next = sim->split.band_count;
    worker->ask_in = worker->ask_pause = 1;
    ask_all_if_none(sim);
    for (uint32_t i = 0; i < sim->view.device_count; i++)
        sim->workers[i].open = true;
}

/* --- a frame --- */

static void complete(struct sim *sim, uint32_t d)
{
    struct worker *worker = &sim->workers[d];
    if (counts(worker)) {
        measure_worker(sim, worker, 0);
        sim->out->rows[d] += worker->launch.rows;
        sim->done_rows += worker->launch.rows;
    } else if (worker->kind == SHADOW) {
        measure_worker(sim, worker, COX_MEASURED_SHADOW);
    }
    worker->kind = NOTHING;
}

/* Go to the next event. False if there is none, which a world that keeps its word does not have. */
static bool advance(struct sim *sim)
{
    const struct lab_world *world = sim->world;
    uint32_t active = 0;
    for (uint32_t d = 0; d < world->device_count; d++)
        if (sim->workers[d].alive && sim->workers[d].kind != NOTHING)
            active |= 1u << d;
    double slower[COX_DEVICES_MAX], ends_ns[COX_DEVICES_MAX];
    double next_ns = HUGE_VAL;
    for (uint32_t d = 0; d < world->device_count; d++) {
        const struct worker *worker = &sim->workers[d];
        if (active & 1u << d) {
            slower[d] = world->slowdown ? world->slowdown(world->ctx, sim->view.frame, d, active) : 1;
            ends_ns[d] = sim->now_ns + worker->left_ns * slower[d];
            next_ns = fmin(next_ns, ends_ns[d]);
        }
        if (worker->usable)
            next_ns = fmin(next_ns, worker->lost_ns);
    }
    if (!(next_ns < HUGE_VAL))
        return false;
    double step_ns = next_ns - sim->now_ns;
    sim->now_ns = next_ns;
    for (uint32_t d = 0; d < world->device_count; d++) {
        if (!(active & 1u << d))
            continue;
        struct worker *worker = &sim->workers[d];
        worker->busy_ns += step_ns;
        if (ends_ns[d] <= next_ns)
            complete(sim, d);
        else
            worker->left_ns = fmax(1e-3, worker->left_ns - step_ns / slower[d]);
    }
    for (uint32_t d = 0; d < world->device_count; d++)
        if (sim->workers[d].usable && sim->workers[d].lost_ns <= next_ns)
            lose(sim, d);
    return true;
}

static double expected(const struct sim *sim, uint32_t d, uint32_t first_row, uint32_t rows, uint32_t launch)
{
    struct lab_launch asked = {
        .frame = sim->view.frame, .device = d, .first_row = first_row, .rows = rows, .launch = launch};
    return sim->world->expected_ns(sim->world->ctx, &asked);
}

/* The frame's time if the pool is shared out so that all end together; negative if a band is on a device that does not
 * answer. */
static double expected_frame(const struct sim *sim)
{
    const struct cox_split *split = &sim->split;
    const struct lab_world *world = sim->world;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t launches[COX_DEVICES_MAX] = {0};
    for (uint32_t i = 0; i < split->band_count; i++) {
        const struct cox_band *band = &split->bands[i];
        if (!sim->workers[band->device].alive)
            return -1;
        work_ns[band->device] += expected(sim, band->device, band->first_row, band->rows, launches[band->device]++);
    }
    double ns = lab_makespan(world, sim->view.frame, work_ns);
    if (split->pool_rows == 0)
        return ns;

    double begin_ns[COX_DEVICES_MAX], row_ns[COX_DEVICES_MAX], slower[COX_DEVICES_MAX];
    uint32_t all = 0;
    for (uint32_t d = 0; d < world->device_count; d++)
        if (sim->workers[d].usable && sim->workers[d].alive)
            all |= 1u << d;
    double high = HUGE_VAL;
    for (uint32_t d = 0; d < world->device_count; d++) {
        if (!(all & 1u << d))
            continue;
        double whole_ns = expected(sim, d, split->pool_first_row, split->pool_rows, launches[d]);
        uint32_t half = split->pool_rows / 2;
        row_ns[d] = half == 0 ? whole_ns
                              : (whole_ns - expected(sim, d, split->pool_first_row, half, launches[d])) /
                                    (split->pool_rows - half);
        row_ns[d] = fmax(row_ns[d], 1e-6);
        begin_ns[d] = work_ns[d] + fmax(0, whole_ns - row_ns[d] * split->pool_rows);
        slower[d] = world->slowdown ? world->slowdown(world->ctx, sim->view.frame, d, all) : 1;
        high = fmin(high, (begin_ns[d] + row_ns[d] * split->pool_rows) * slower[d]);
    }
    double low = 0;
    for (int step = 0; step < 40; step++) {
        double middle = low + (high - low) / 2;
        double rows = 0;
        for (uint32_t d = 0; d < world->device_count; d++)
            if (all & 1u << d)
                rows += fmax(0, (middle / slower[d] - begin_ns[d]) / row_ns[d]);
        if (rows >= split->pool_rows)
            high = middle;
        else
            low = middle;
    }
    return fmax(ns, high);
}

/* Run the frame of sim->split. */
static cox_status run_frame(struct sim *sim)
{
    const struct cox_split *split = &sim->split;
    sim->done_rows = 0;
    sim->pool_next = sim->pool_end = 0;
    sim->launches = split->band_count;
    add_to_pool(sim, split->pool_first_row, split->pool_rows);
    double best_ns = HUGE_VAL;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct worker *worker = &sim->workers[d];
        if (worker->usable)
            best_ns = fmin(best_ns, sim->solo_ns[d]);
        worker->open = true;
        worker->since_ns -= sim->now_ns; /* of a shadow that an earlier frame left */
        worker->bands_next = 0;
        worker->launches = 0;
        worker->busy_ns = 0;
    }
    sim->now_ns = 0;
    sim->dead_ns = best_ns * sim->view.rows / sim->solo_rows * DEAD_TIMES;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        uint64_t predicted_ns = split->device_ns[d] > 0 ? split->device_ns[d] : split->predicted_ns;
        sim->workers[d].lost_ns = has_band(sim, d) ? lost_at(sim, d, 0, predicted_ns) : HUGE_VAL;
    }
    const struct cox_band *shadow = &split->shadow;
    if (shadow->rows > 0 && sim->workers[shadow->device].kind == NOTHING)
        start(sim, shadow->device, SHADOW, shadow->first_row, shadow->rows);

    for (;;) {
        serve_all(sim);
        if (sim->done_rows == sim->view.rows)
            return COX_OK;
        if (!advance(sim))
            return COX_E_INVALID;
    }
}

/* --- the session --- */

/* Policy, frame, what is wrong, and the bands, once a run. */
static void describe_refusal(struct sim *sim, const struct cox_split *split, const char *what)
{
    if (!sim->why || sim->why_bytes == 0 || sim->why[0])
        return;
    char bands[BANDS_TEXT] = "";
    size_t used = 0;
    uint32_t count = split->band_count < COX_BANDS_MAX ? split->band_count : COX_BANDS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const struct cox_band *band = &split->bands[i];
        int more = snprintf(bands + used, sizeof bands - used, "%s%" PRIu32 ":%" PRIu32 "+%" PRIu32, i ? " " : "",
                            band->device, band->first_row, band->rows);
        if (more < 0 || (size_t)more >= sizeof bands - used) {
            memcpy(bands + sizeof bands - 4, "...", 4);
            break;
        }
        used += (size_t)more;
    }
    char pool[64] = "";
    if (split->pool_rows > 0)
        snprintf(pool, sizeof pool, ", pool %" PRIu32 "+%" PRIu32, split->pool_first_row, split->pool_rows);
    snprintf(sim->why, sim->why_bytes, "policy '%s', frame %" PRIu64 ": %s (device:first row+rows: %s%s)",
             sim->policy->name, sim->view.frame, what, bands, pool);
}

static void whole_frame(const struct sim *sim, struct cox_split *split)
{
    *split = (struct cox_split){.band_count = 1, .reason = COX_REASON_SINGLE};
    split->bands[0] = (struct cox_band){.device = best_usable(sim), .rows = sim->view.rows};
}

static struct cox_split split_of_oracle(const struct sim *sim, const struct lab_oracle *oracle)
{
    struct cox_split split = {.reason = COX_REASON_GIVEN, .predicted_ns = whole(oracle->expected_ns)};
    uint32_t first_row = 0;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        if (oracle->rows[d] == 0)
            continue;
        split.bands[split.band_count++] = (struct cox_band){
            .device = d, .first_row = first_row, .rows = oracle->rows[d]};
        first_row += oracle->rows[d];
    }
    return split;
}

/* The oracle and hindsight. */
static void decide_by_oracle(struct sim *sim, const struct lab_oracle *oracle)
{
    sim->split = split_of_oracle(sim, sim->policy ? &sim->before : oracle);
    if (cox_split_check(&sim->split, &sim->view, NULL, 0))
        sim->split = split_of_oracle(sim, oracle);
    sim->before = *oracle;
}

static cox_status decide(struct sim *sim)
{
    struct cox_split split = {0};
    char what[160] = "";
    cox_status status = sim->policy->split(sim->state, &sim->view, &split);
    if (status)
        snprintf(what, sizeof what, "no split: %s", cox_status_text(status));
    else
        status = cox_split_check(&split, &sim->view, what, sizeof what);
    if (status == COX_OK && split.pool_rows > 0 && !sim->policy->next) {
        snprintf(what, sizeof what, "rows are left in a pool, and the policy has no function that hands them out");
        status = COX_E_POLICY;
    }
    if (status == COX_OK) {
        sim->split = split;
        sim->split_made = true;
        return COX_OK;
    }
    describe_refusal(sim, &split, what);
    sim->out->refused = 1;
    if (!sim->split_made)
        return COX_E_POLICY;
    sim->split.shadow.rows = 0;
    if (cox_split_check(&sim->split, &sim->view, NULL, 0))
        whole_frame(sim, &sim->split);
    return COX_OK;
}

static void deliver(struct sim *sim, struct batch *batch)
{
    if (!batch->full || !sim->policy)
        return;
    for (uint32_t i = 0; i < batch->count && sim->policy->observe; i++)
        sim->policy->observe(sim->state, &batch->measured[i]);
    if (sim->policy->observe_frame)
        sim->policy->observe_frame(sim->state, &batch->frame);
    batch->full = false;
}

static bool begin_frame(struct sim *sim, uint64_t frame)
{
    bool alive[COX_DEVICES_MAX] = {false};
    uint32_t rows = 0, granule = 0;
    bool any = false;
    sim->world->begin_frame(sim->world->ctx, frame, &rows, &granule, alive);
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct worker *worker = &sim->workers[d];
        any |= alive[d];
        worker->alive = alive[d];
        if (!worker->alive)
            worker->kind = NOTHING; /* what it was at is lost with it */
        if (frame == 0) {
            worker->usable = worker->alive;
            worker->ask_in = worker->ask_pause = 1;
        }
        if (sim->policy == &lab_hindsight)
            worker->ask_in = 1;
        if (worker->usable || --worker->ask_in > 0)
            continue;
        worker->usable = worker->alive;
        worker->ask_pause = 2 * worker->ask_pause < ASK_PAUSE_MAX ? 2 * worker->ask_pause : ASK_PAUSE_MAX;
        worker->ask_in = worker->ask_pause;
    }
    ask_all_if_none(sim);
    sim->view.frame = frame;
    sim->view.rows = rows;
    sim->view.granule = granule;
    return any && rows > 0 && granule > 0 && rows <= INT32_MAX && granule <= rows;
}

/* What the policy may know of the devices. */
static void show_devices(struct sim *sim, bool warmed_up)
{
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct cox_sched_device *device = &sim->devices[d];
        device->usable = sim->workers[d].usable;
        device->hint = sim->world->hints ? sim->world->hints[d] : 1;
        bool known = warmed_up && sim->warmed[d] && !sim->options->no_solo;
        device->solo_ns = known ? whole(sim->solo_ns[d] * sim->view.rows / sim->solo_rows) : 0;
    }
}

static void warm_up(struct sim *sim)
{
    sim->solo_rows = sim->view.rows;
    for (uint32_t d = 0; d < sim->view.device_count; d++) {
        struct lab_launch launch = {.device = d, .rows = sim->view.rows, .launch = LAB_LAUNCH_WARMUP};
        sim->solo_ns[d] = sim->world->launch_ns(sim->world->ctx, &launch);
        sim->warmed[d] = sim->workers[d].alive;
    }
}

/* As in the runtime, before the warm-up. */
static cox_status init_policy(struct sim *sim)
{
    show_devices(sim, false);
    cox_status status = COX_OK;
    if (sim->policy->init)
        status = sim->policy->init(sim->state, &sim->view, &sim->options->policy);
    if (status == COX_OK && sim->options->profiles && sim->policy->load_profile)
        sim->policy->load_profile(sim->state, &sim->view, sim->options->profiles);
    return status;
}

static const struct lab_oracle *oracle_of(struct sim *sim, uint64_t frame, struct lab_oracle *scratch)
{
    const struct lab_world *world = sim->world;
    uint64_t condition = world->condition ? world->condition(world->ctx, frame) : 0;
    struct lab_oracle *oracle = sim->options->oracles ? &sim->options->oracles[frame] : scratch;
    if (condition != 0 && oracle->condition == condition)
        return oracle;
    /* Constant stretches: what the frame before found. */
    const struct lab_oracle *before = sim->options->oracles && frame > 0 ? oracle - 1 : scratch;
    if (condition != 0 && before->condition == condition) {
        *oracle = *before;
        return oracle;
    }
    bool alive[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < world->device_count; d++)
        alive[d] = sim->workers[d].alive;
    lab_oracle_find(world, frame, sim->view.rows, sim->view.granule, alive, oracle);
    oracle->condition = condition;
    return oracle;
}

/* What oracle and best device would have needed, with the chance of this frame. */
static void compare(struct sim *sim, const struct lab_oracle *oracle)
{
    const struct lab_world *world = sim->world;
    uint64_t frame = sim->view.frame;
    double work_ns[COX_DEVICES_MAX] = {0};
    uint32_t first_row = 0;
    for (uint32_t d = 0; d < world->device_count; d++) {
        struct lab_launch launch = {.frame = frame, .device = d, .first_row = first_row, .rows = oracle->rows[d]};
        if (launch.rows > 0)
            work_ns[d] = world->launch_ns(world->ctx, &launch);
        first_row += launch.rows;
        sim->out->oracle_rows[d] = launch.rows;
    }
    sim->out->oracle_ns = lab_makespan(world, frame, work_ns);
    sim->out->oracle_expected_ns = oracle->expected_ns;
    struct lab_launch solo = {.frame = frame, .device = oracle->solo, .rows = sim->view.rows};
    double slower = world->slowdown ? world->slowdown(world->ctx, frame, solo.device, 1u << solo.device) : 1;
    sim->out->solo_ns = world->launch_ns(world->ctx, &solo) * slower;
}

static bool same_bands(const struct cox_split *a, const struct cox_split *b)
{
    return a->band_count == b->band_count && a->pool_rows == b->pool_rows &&
           (a->pool_rows == 0 || a->pool_first_row == b->pool_first_row) &&
           memcmp(a->bands, b->bands, a->band_count * sizeof a->bands[0]) == 0;
}

static cox_status run(struct sim *sim, struct lab_sim_frame *out)
{
    const struct lab_world *world = sim->world;
    struct lab_oracle scratch = {0};
    struct cox_split before = {0};
    for (uint64_t frame = 0; frame < world->frames; frame++) {
        sim->out = &out[frame];
        *sim->out = (struct lab_sim_frame){.joules = -1};
        if (!begin_frame(sim, frame))
            return COX_E_INVALID;
        if (frame == 0)
            warm_up(sim);
        if (frame == 0 && sim->policy) {
            cox_status status = init_policy(sim);
            if (status)
                return status;
        }
        show_devices(sim, true);
        sim->batch = &sim->batches[frame % sim->batch_count];
        deliver(sim, sim->batch);
        sim->batch->count = 0;

        const struct lab_oracle *oracle = oracle_of(sim, frame, &scratch);
        compare(sim, oracle);
        if (sim->policy && sim->policy != &lab_hindsight) {
            cox_status status = decide(sim);
            if (status)
                return status;
        } else {
            decide_by_oracle(sim, oracle);
        }
        sim->out->moved = frame > 0 && !same_bands(&before, &sim->split);
        before = sim->split;
        sim->out->reason = sim->split.reason;
        sim->out->predicted_ns = (double)sim->split.predicted_ns;
        sim->out->alternative_ns = (double)sim->split.alternative_ns;
        sim->out->expected_ns = expected_frame(sim);
        cox_status ran = run_frame(sim);
        if (ran)
            return ran;

        sim->out->wall_ns = sim->now_ns;
        if (sim->out->expected_ns < 0)
            sim->out->expected_ns = sim->now_ns;
        double busy_ns[COX_DEVICES_MAX];
        for (uint32_t d = 0; d < world->device_count; d++)
            busy_ns[d] = sim->workers[d].busy_ns;
        if (world->end_frame)
            sim->out->joules = world->end_frame(world->ctx, frame, busy_ns, sim->now_ns);
        sim->batch->frame = (struct cox_frame_measurement){
            .frame = frame, .wall_ns = whole(sim->now_ns), .period_ns = whole(sim->now_ns), .joules = sim->out->joules};
        sim->batch->full = true;
    }
    for (uint32_t i = 0; i < sim->batch_count; i++) /* the oldest first */
        deliver(sim, &sim->batches[(world->frames + i) % sim->batch_count]);
    return COX_OK;
}

cox_status lab_simulate(const struct lab_world *world, const struct cox_policy *policy,
                        const struct lab_sim_options *options, uint64_t seed, struct lab_sim_frame *out, char *why,
                        size_t why_bytes)
{
    static const struct lab_sim_options defaults;
    options = options ? options : &defaults;
    if (why && why_bytes > 0)
        why[0] = '\0';
    if (world->device_count == 0 || world->device_count > COX_DEVICES_MAX || world->frames == 0)
        return COX_E_INVALID;
    uint32_t in_flight = options->in_flight ? options->in_flight : 1;
    if (in_flight > 64)
        return COX_E_INVALID;
    struct sim *sim = calloc(1, sizeof *sim);
    cox_status status = COX_E_NOMEM;
    if (!sim)
        return status;
    *sim = (struct sim){.world = world,
                        .policy = policy,
                        .options = options,
                        .why = why,
                        .why_bytes = why_bytes,
                        .batch_count = in_flight,
                        .view = {.device_count = world->device_count,
                                 .devices = sim->devices,
                                 .min_band_rows = options->min_band_rows,
                                 .in_flight = in_flight,
                                 .pool = policy && policy->next && !options->no_pool,
                                 .shadow = !options->no_shadow}};
    sim->batches = calloc(in_flight, sizeof *sim->batches);
    size_t bytes = policy && policy->state_bytes ? policy->state_bytes(world->device_count) : 0;
    sim->state = calloc(1, bytes ? bytes : 1);
    if (sim->batches && sim->state) {
        world->begin_run(world->ctx, seed);
        status = run(sim, out);
    }
    free(sim->state);
    free(sim->batches);
    free(sim);
    return status;
}
