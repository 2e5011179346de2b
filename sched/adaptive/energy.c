/* Least energy within the deadline, found by trials.
 *
 * Candidates. With two or three usable devices the candidates are:
 * - Every device set in balance.
 * - If there is a deadline, every set in which all devices but one are filled up to the deadline.
 *   The remaining device takes the rest.
 *
 * If time and energy are linear in the rows, the best split is one of these. With more devices the
 * candidates are:
 * - The neighbours of the kept candidate: one device less or more, one of them with the rest.
 * - Single devices.
 * - All devices, with one of them taking the rest.
 *
 * Step by step the search can reach every set.
 *
 * Deadline. A deadline limits the latency, but a split determines the frame time, which is a
 * frame's period; frames in flight wait for each other. So the bound on the frame time is the
 * deadline times the recent ratio of period to latency. If frames have several deadlines, the
 * shortest recent one applies to all. A candidate is tried if its predicted frame time is within
 * the bound by MARGIN standard deviations. It is kept as long as its predicted time is within the
 * bound at all. Each recent miss adds MISS_MARGIN deviations to the distance that filled devices
 * keep from the bound. After a miss the caller's own split is used for OWN_FRAMES frames, twice as
 * many after each further miss.
 *
 * Measuring. A meter counts in ticks, so the reading of one frame may hold the energy of several
 * ticks or of none. Means are taken over blocks of at least BLOCK_FRAMES frames and BLOCK_TICKS
 * ticks. The frames of one candidate in a row are its turn. The first frames of a turn do not
 * count, because they run at the same time as the last ones of the turn before. Between two trials
 * the kept candidate is measured again, so that both sides of a comparison are recent. A trial ends
 * when the difference is beyond twice its standard error, or after BLOCK_MOST blocks. A candidate
 * that needs less energy by GAIN is adopted.
 *
 * Pauses. The trials of the first round follow each other without a pause. A round that changes
 * nothing doubles the pause before each trial of the next one. A candidate sits out one round for
 * each 1 / PASS by which it needed more energy. If the kept candidate's own energy changes by
 * CHANGE, the search begins again.
 *
 * A meter that gives no readings, or only zero for a second, cannot decide. Until it reads again,
 * every choice is the caller's own split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "energy.h"
#include "split/clip.h"
#include "split/strict_fp.h"

#include <math.h>
#include <string.h>

static const double MARGIN = 2;        /* standard deviations */
static const double MISS_MARGIN = 0.5; /* added for each recent miss */
static const double NOISE_GUESS = 0.05;
static const double NOISE_MOST = 0.25;
static const double TICK_NS = 1e6; /* shortest tick assumed of a meter */
static const double TICK_MOST_NS = 250e6;
static const double BLOCK_TICKS = 16;
static const double BLOCK_MOST = 4;
/* A relative loss that ends a trial before its first block is full. */
static const double EARLY_LOSS = 0.25;
static const double GAIN = 0.01;
static const double CHANGE = 0.15;
static const double PASS = 8;
static const double LATENCY_GAIN = 1.0 / 32;
static const double SILENT_NS = 1e9;
static const double READING_MOST = 1e9; /* joules a frame; larger values are not readings */
/* Least gain, relative to the frame time, that moves a candidate in balance. */
static const double MOVE_GAIN = 0.01;
static const double MOVE_ROWS = 0.03; /* of the frame: least change that moves filled devices */

enum {
    BLOCK_FRAMES = 8,
    BLOCK_FRAMES_MOST = 256, /* frames so short that they cannot fill the ticks */
    EARLY_FRAMES = 4,
    WINDOW_FRAMES = 128, /* frames of the kept candidate after which the older ones count half */
    READ_FRAMES = 8,
    SILENT_FRAMES = 16,
    PASS_MOST = 16, /* rounds */
    PAUSE_MIN = 64,
    PAUSE_MAX = 1024,
    OWN_FRAMES = 4,
    MISSES_MAX = 6,
    DEADLINE_FRAMES = 32, /* for a deadline to be forgotten, at least */
    CLEAN_FRAMES = 64,    /* within the deadline, for one miss to be forgotten */
    LOOKS = 4,            /* candidates looked at in one frame */
    EXHAUSTIVE = 3,       /* devices up to which every candidate is tried */
};

static bool same(struct cox__energy_candidate a, struct cox__energy_candidate b)
{
    return a.devices == b.devices && a.rest == b.rest;
}

static uint32_t count_bits(uint32_t bits)
{
    uint32_t count = 0;

    for (; bits; bits &= bits - 1)
        count++;

    return count;
}

/* --- the split of a candidate, and its time --- */

static double noise_of(const struct cox__energy_costs *costs, uint32_t device)
{
    if (!costs->noise || !(costs->noise[device] >= 0)) /* NaN too */
        return NOISE_GUESS;
    return cox__min(costs->noise[device], NOISE_MOST);
}

/* The costs that apply to the candidate: of one device alone, or of devices that co-run. */
static const struct cox_cost *table_of(const struct cox__energy_costs *costs,
                                       struct cox__energy_candidate candidate)
{
    if (costs->alone && count_bits(candidate.devices) == 1)
        return costs->alone;
    return costs->together;
}

static double device_ns(const struct cox_cost *cost, uint32_t rows)
{
    if (rows == 0)
        return 0;
    return cost->fixed_ns + cost->ns_per_row * (double)rows;
}

/* The frame time of rows; with `margins` deviations, the time it should rarely exceed. */
static double predict(const struct cox_sched_view *view, const struct cox__energy_costs *costs,
                      const struct cox_cost *table, const uint32_t *rows, double margins)
{
    double ns = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        ns = fmax(ns, device_ns(&table[d], rows[d]) * (1 + margins * noise_of(costs, d)));

    return ns;
}

static bool is_cost(const struct cox_cost *cost)
{
    return cost->fixed_ns >= 0 && cost->ns_per_row > 0 && isfinite(cost->fixed_ns) &&
           isfinite(cost->ns_per_row);
}

/* The distance, in deviations, that filled devices keep from the deadline. */
static double fill_margins(const struct cox__energy *energy)
{
    return MARGIN + MISS_MARGIN * energy->misses;
}

/* The rows with which the devices of a set finish together. False: there are none. */
static bool balance(const struct cox_sched_view *view, const struct cox_cost *table,
                    uint32_t devices, uint32_t *rows)
{
    struct cox_cost some[COX_DEVICES_MAX];

    for (uint32_t d = 0; d < view->device_count; d++) {
        some[d] = table[d];
        some[d].usable = (devices >> d & 1) != 0;
    }

    return cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, some,
                         view->device_count, rows) >= 0;
}

/* The least rows of a band. */
static uint32_t least_rows(const struct cox_sched_view *view)
{
    return cox__max_u32(view->min_band_rows, view->row_alignment);
}

/* Fill all devices but the rest up to the deadline, in device order. False if nothing is left for
 * the rest, or a band would be too short. */
static bool fill(const struct cox__energy *energy, const struct cox_sched_view *view,
                 const struct cox__energy_costs *costs, const struct cox_cost *table,
                 struct cox__energy_candidate candidate, uint32_t *rows)
{
    uint32_t rest = candidate.rest - 1, left = view->rows, most = rest;
    uint32_t least = least_rows(view);

    for (uint32_t d = 0; d < view->device_count; d++) {
        rows[d] = 0;
        if (d == rest || !(candidate.devices >> d & 1))
            continue;

        double ns = energy->bound_ns / (1 + fill_margins(energy) * noise_of(costs, d)) -
                    table[d].fixed_ns;
        double fit = ns / table[d].ns_per_row;
        if (!is_cost(&table[d]) || !(fit >= least) || fit >= left)
            return false;

        rows[d] = (uint32_t)fit / view->row_alignment * view->row_alignment;
        left -= rows[d];
        if (rows[d] < least)
            return false;

        if (most == rest || rows[d] > rows[most])
            most = d;
    }
    if (left == 0 || !is_cost(&table[rest]))
        return false;

    /* The rest is too short for a band: move rows to it from the device with most. */
    if (left < least) {
        uint32_t move = (least - left + view->row_alignment - 1) / view->row_alignment *
                        view->row_alignment;

        if (most == rest || rows[most] < move + least)
            return false;
        rows[most] -= move;
        left += move;
    }

    rows[rest] = left;
    return true;
}

/* The rows of a candidate that is not the caller's own. False if it has none. */
static bool candidate_rows(const struct cox__energy *energy, const struct cox_sched_view *view,
                           const struct cox__energy_costs *costs,
                           struct cox__energy_candidate candidate, uint32_t *rows)
{
    if ((candidate.devices & ~energy->usable) != 0)
        return false;

    const struct cox_cost *table = table_of(costs, candidate);
    if (candidate.rest)
        return fill(energy, view, costs, table, candidate, rows);
    return balance(view, table, candidate.devices, rows);
}

/* --- the list of candidates --- */

/* The position-th usable device. */
static uint32_t nth_device(uint32_t usable, uint32_t position)
{
    uint32_t d = 0;
    for (;; d++)
        if ((usable >> d & 1) && position-- == 0)
            return d;
}

static uint32_t candidate_count(const struct cox__energy *energy)
{
    uint32_t n = count_bits(energy->usable);
    if (n < 2)
        return 0;
    if (n <= EXHAUSTIVE)
        return ((1u << n) - 1) * (n + 1);
    return 4 * n + 2;
}

/* The candidate with this index. It may be impossible (`rest` not among `devices`), or the kept
 * candidate. */
static struct cox__energy_candidate candidate_at(const struct cox__energy *energy, uint32_t index)
{
    uint32_t usable = energy->usable, n = count_bits(usable);
    struct cox__energy_candidate candidate = {0};

    if (n <= EXHAUSTIVE) {
        uint32_t set = index / (n + 1) + 1, rest = index % (n + 1);

        for (uint32_t i = 0; i < n; i++)
            if (set >> i & 1)
                candidate.devices |= 1u << nth_device(usable, i);

        if (rest < n)
            candidate.rest = 1 + nth_device(usable, rest);

        return candidate;
    }

    uint32_t kept = energy->kept.devices;
    if (kept == 0)
        kept = usable;

    if (index >= 4 * n) {
        candidate.devices = index == 4 * n ? kept : usable;
        return candidate;
    }

    uint32_t device = nth_device(usable, index % n);
    switch (index / n) {
    case 0:
        candidate.devices = kept ^ 1u << device;
        break;
    case 1:
        candidate = (struct cox__energy_candidate){.devices = kept, .rest = 1 + device};
        break;
    case 2:
        candidate.devices = 1u << device;
        break;
    default:
        candidate = (struct cox__energy_candidate){.devices = usable, .rest = 1 + device};
    }
    return candidate;
}

/* All devices in balance are replaced by the caller's own split, which does the same with better
 * predictions. */
static struct cox__energy_candidate normal(const struct cox__energy *energy,
                                           struct cox__energy_candidate candidate)
{
    if (candidate.rest == 0 && candidate.devices == energy->usable)
        candidate.devices = 0;
    return candidate;
}

/* Whether the candidate is another one, possible, and predicted to meet the deadline. */
static bool worth_trying(const struct cox__energy *energy, const struct cox_sched_view *view,
                         const struct cox__energy_costs *costs,
                         struct cox__energy_candidate candidate)
{
    uint32_t rows[COX_DEVICES_MAX];

    if (same(candidate, energy->kept))
        return false;
    if (candidate.devices == 0)
        return candidate.rest == 0 && energy->kept.devices != 0;
    if (candidate.rest && (energy->deadline_ns == 0 || count_bits(candidate.devices) < 2 ||
                           !(candidate.devices >> (candidate.rest - 1) & 1)))
        return false;

    if (!candidate_rows(energy, view, costs, candidate, rows))
        return false;

    for (uint32_t d = 0; d < view->device_count; d++)
        if ((candidate.devices >> d & 1) && rows[d] == 0)
            return false; /* it equals the candidate of fewer devices */

    return energy->deadline_ns == 0 ||
           predict(view, costs, table_of(costs, candidate), rows, MARGIN) <= energy->bound_ns;
}

/* --- measuring --- */

static void add(struct cox__energy_sums *sums, double joules, double ns)
{
    sums->frames += 1;
    sums->joules += joules;
    sums->squares += joules * joules;
    sums->ns += ns;
}

static double mean(const struct cox__energy_sums *sums)
{
    return sums->joules / sums->frames;
}

/* Of the energy of a frame. */
static double variance_of_mean(const struct cox__energy_sums *sums)
{
    double m = mean(sums);
    double variance = sums->squares / sums->frames - m * m;
    if (variance > 0)
        return variance / (sums->frames - 1);
    return 0;
}

/* Whether the sums hold `blocks` blocks. */
static bool has_blocks(const struct cox__energy *energy, const struct cox__energy_sums *sums,
                       double blocks)
{
    return sums->frames >= BLOCK_FRAMES * blocks &&
           (sums->ns >= BLOCK_TICKS * energy->tick_ns * blocks ||
            sums->frames >= BLOCK_FRAMES_MOST * blocks);
}

/* Whether the meter gives readings. While it does not, every choice is the caller's own split. */
static bool is_metered(const struct cox__energy *energy)
{
    return energy->read_frames >= READ_FRAMES;
}

/* --- the search --- */

static void restart_search(struct cox__energy *energy)
{
    energy->trial = false;
    energy->settled = false;
    energy->looked = 0;
    energy->pause = 0;
    energy->wait = 0;
}

/* Keep the caller's own split, and search again. */
static void fall_back(struct cox__energy *energy)
{
    memset(energy->pass, 0, sizeof energy->pass);
    energy->kept = (struct cox__energy_candidate){0};
    energy->kept_sums = (struct cox__energy_sums){0};
    energy->kept_joules = 0;
    restart_search(energy);
}

static void end_trial(struct cox__energy *energy)
{
    energy->trial = false;
    energy->wait = energy->pause;
}

static void lose_trial(struct cox__energy *energy)
{
    double more = PASS * (mean(&energy->tried_sums) / mean(&energy->kept_sums) - 1);
    double rounds = 0;
    if (more >= PASS_MOST)
        rounds = PASS_MOST;
    else if (more >= 1)
        rounds = more;
    energy->pass[energy->cursor] = (uint8_t)rounds;
    end_trial(energy);
}

static void adopt_tried(struct cox__energy *energy)
{
    energy->kept = energy->tried;
    energy->kept_sums = energy->tried_sums;
    energy->kept_joules = mean(&energy->tried_sums);
    restart_search(energy);
    /* With many devices, the new candidate has other neighbours. */
    if (count_bits(energy->usable) > EXHAUSTIVE)
        memset(energy->pass, 0, sizeof energy->pass);
}

static void judge_trial(struct cox__energy *energy)
{
    const struct cox__energy_sums *tried = &energy->tried_sums, *kept = &energy->kept_sums;
    if (tried->frames < EARLY_FRAMES)
        return;

    double more = mean(tried) - mean(kept);
    double error = sqrt(variance_of_mean(tried) + variance_of_mean(kept));

    bool full = has_blocks(energy, tried, 1);
    if (!full) {
        if (tried->ns >= BLOCK_TICKS / 4 * energy->tick_ns && more > EARLY_LOSS * mean(kept) &&
            more > 4 * error)
            lose_trial(energy);
        return;
    }

    bool last = has_blocks(energy, tried, BLOCK_MOST);
    if (more < -GAIN * mean(kept) && (last || more < -2 * error))
        adopt_tried(energy);
    else if (last || more > 2 * error)
        lose_trial(energy);
}

/* A whole round has changed nothing: begin the next one, with a longer pause before each trial. */
static void end_round(struct cox__energy *energy)
{
    energy->looked = 0;
    energy->settled = true;
    if (energy->pause > 0)
        energy->pause = cox__double_pause(energy->pause, PAUSE_MAX);
    else
        energy->pause = PAUSE_MIN;
    energy->wait = energy->pause;
}

/* Begin the next trial if a candidate is worth one; look at LOOKS candidates in a frame. */
static void look(struct cox__energy *energy, const struct cox_sched_view *view,
                 const struct cox__energy_costs *costs)
{
    uint32_t count = candidate_count(energy);

    for (uint32_t i = 0; i < LOOKS && count > 0; i++) {
        if (energy->looked >= count) {
            end_round(energy);
            return;
        }

        energy->cursor = (energy->cursor + 1) % count;
        energy->looked++;
        if (energy->pass[energy->cursor] > 0) {
            energy->pass[energy->cursor]--;
            continue;
        }

        struct cox__energy_candidate candidate = candidate_at(energy, energy->cursor);
        candidate = normal(energy, candidate);
        if (worth_trying(energy, view, costs, candidate)) {
            energy->tried = candidate;
            energy->tried_sums = (struct cox__energy_sums){0};
            energy->trial = true;
            return;
        }
    }
}

/* Judge the trial in progress, or begin one when its time has come. */
static void search(struct cox__energy *energy, const struct cox_sched_view *view,
                   const struct cox__energy_costs *costs)
{
    if (energy->trial)
        judge_trial(energy);
    if (energy->trial)
        return;

    if (energy->wait > 0)
        energy->wait--;

    if (!has_blocks(energy, &energy->kept_sums, 1))
        return;

    double joules = mean(&energy->kept_sums);
    if (fabs(joules - energy->kept_joules) > CHANGE * energy->kept_joules) {
        if (energy->kept_joules > 0) {
            restart_search(energy);
            memset(energy->pass, 0, sizeof energy->pass);
            energy->kept_sums = (struct cox__energy_sums){0};
        }
        energy->kept_joules = joules;
    } else if (energy->wait == 0) {
        look(energy, view, costs);
    }
}

/* --- turns --- */

/* Whether each device has nearly as many rows as before, and none exceeds the deadline. */
static bool is_near(const struct cox__energy *energy, const struct cox_sched_view *view,
                    const struct cox__energy_costs *costs, const struct cox_cost *table,
                    const uint32_t *rows)
{
    bool near = true;

    for (uint32_t d = 0; d < view->device_count; d++) {
        uint32_t before = energy->rows[d], now = rows[d];
        uint32_t change = cox__max_u32(before, now) - cox__min_u32(before, now);
        double ns = device_ns(&table[d], before) * (1 + fill_margins(energy) * noise_of(costs, d));
        near = near && (double)change <= MOVE_ROWS * view->rows && !(ns > energy->bound_ns);
    }
    return near;
}

/* The rows of the candidate in this frame: those of its last frame as long as they are good enough.
 * False if no rows are within the deadline. */
static bool rows_now(const struct cox__energy *energy, const struct cox_sched_view *view,
                     const struct cox__energy_costs *costs, struct cox__energy_candidate candidate,
                     struct cox__energy_choice *out)
{
    const struct cox_cost *table = table_of(costs, candidate);

    if (!candidate_rows(energy, view, costs, candidate, out->rows))
        return false;

    out->predicted_ns = predict(view, costs, table, out->rows, 0);
    if (energy->deadline_ns > 0 && out->predicted_ns > energy->bound_ns)
        return false;

    if (!energy->has_rows || !same(energy->turn, candidate))
        return true;

    uint64_t sum = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        sum += energy->rows[d];

    double ns_before = predict(view, costs, table, energy->rows, 0);
    bool good = ns_before <= (1 + MOVE_GAIN) * out->predicted_ns;
    if (candidate.rest)
        good = is_near(energy, view, costs, table, out->rows);

    if (sum == view->rows && good && (energy->deadline_ns == 0 || ns_before <= energy->bound_ns)) {
        memcpy(out->rows, energy->rows, sizeof out->rows);
        out->predicted_ns = ns_before;
    }
    return true;
}

/* Note whose turn it is, and which rows the frame got. */
static void take_turn(struct cox__energy *energy, const struct cox_sched_view *view,
                      struct cox__energy_candidate candidate, const struct cox__energy_choice *out)
{
    if (!same(energy->turn, candidate)) {
        energy->turn = candidate;
        energy->serial++;
        energy->turn_frames = 0;
        if (!energy->trial)
            energy->kept_sums = (struct cox__energy_sums){0};
    }

    energy->has_rows = candidate.devices != 0;
    memcpy(energy->rows, out->rows, sizeof energy->rows);
    uint32_t skip = view->in_flight;
    if (skip == 0)
        skip = 2;

    energy->ring[view->frame % COX__ENERGY_RING].frame_plus_1 = view->frame + 1;
    energy->ring[view->frame % COX__ENERGY_RING].serial = energy->serial;
    energy->ring[view->frame % COX__ENERGY_RING].counts = energy->turn_frames >= skip;

    if (energy->turn_frames < skip)
        energy->turn_frames++;
}

/* Note which devices are usable. A change begins the search again. */
static void note_devices(struct cox__energy *energy, const struct cox_sched_view *view)
{
    uint32_t usable = 0;
    for (uint32_t d = 0; d < view->device_count && d < COX_DEVICES_MAX; d++)
        if (view->devices[d].usable)
            usable |= 1u << d;

    if (usable != energy->usable)
        fall_back(energy);
    energy->usable = usable;
}

/* The shorter of two times; 0 = none. */
static double shorter(double a_ns, double b_ns)
{
    if (a_ns == 0)
        return b_ns;
    if (b_ns == 0)
        return a_ns;
    return fmin(a_ns, b_ns);
}

/* The shortest deadline of the last frames, DEADLINE_FRAMES to twice as many: a search for each of
 * several deadlines would learn from too few frames. */
static double least_deadline(struct cox__energy *energy, double deadline_ns)
{
    if (energy->deadline_frames == DEADLINE_FRAMES) {
        energy->before_ns = energy->since_ns;
        energy->since_ns = 0;
        energy->deadline_frames = 0;
    }

    energy->deadline_frames++;
    energy->since_ns = shorter(energy->since_ns, deadline_ns);
    return shorter(energy->before_ns, energy->since_ns);
}

/* Whether the choice is a trial, the split of least energy, or only the caller's own split. */
static enum cox__energy_role role_of(const struct cox__energy *energy,
                                     struct cox__energy_candidate candidate)
{
    if (energy->trial)
        return COX__ENERGY_TRIAL;
    if (candidate.devices != 0 || energy->settled)
        return COX__ENERGY_LEAST;
    return COX__ENERGY_OWN;
}

void cox__energy_init(struct cox__energy *energy)
{
    *energy = (struct cox__energy){.share = 1, .tick_ns = TICK_NS};
}

void cox__energy_choose(struct cox__energy *energy, const struct cox_sched_view *view,
                        const struct cox__energy_costs *costs, struct cox__energy_choice *out)
{
    static const struct cox__energy_candidate own = {0};
    *out = (struct cox__energy_choice){.own = true, .predicted_ns = costs->own_ns};
    energy->deadline_ns = least_deadline(energy, (double)view->deadline_ns);
    energy->bound_ns = energy->deadline_ns * energy->share;
    note_devices(energy, view);

    if (!is_metered(energy) || energy->own_frames > 0) {
        if (energy->own_frames > 0)
            energy->own_frames--;
        energy->trial = false;
        take_turn(energy, view, own, out);
        return;
    }
    search(energy, view, costs);

    /* A tried or kept candidate without rows within the deadline is given up. */
    struct cox__energy_candidate candidate = energy->trial ? energy->tried : energy->kept;
    struct cox__energy_choice rows = {.role = COX__ENERGY_LEAST};
    if (energy->trial && candidate.devices != 0 &&
        !rows_now(energy, view, costs, candidate, &rows)) {
        end_trial(energy);
        candidate = energy->kept;
    }
    if (!energy->trial && candidate.devices != 0 &&
        !rows_now(energy, view, costs, candidate, &rows)) {
        fall_back(energy);
        candidate = own;
    }

    if (candidate.devices != 0)
        *out = rows;
    out->role = role_of(energy, candidate);
    take_turn(energy, view, candidate, out);
}

void cox__energy_forget(struct cox__energy *energy, uint64_t frame)
{
    if (energy->ring[frame % COX__ENERGY_RING].frame_plus_1 != frame + 1)
        return;
    energy->ring[frame % COX__ENERGY_RING].frame_plus_1 = 0;
    energy->turn_frames = 0;
    energy->has_rows = false;
}

/* Learn about the meter from this frame's reading. Returns whether there is a reading. */
static bool read_meter(struct cox__energy *energy, double joules, double ns)
{
    bool reading = joules >= 0 && joules <= READING_MOST; /* false for NaN */

    if (!reading) {
        energy->unread_frames++;
        energy->zero_frames = 0;
        energy->zero_ns = 0;
    } else {
        energy->zero_frames++;
        energy->zero_ns += ns;
    }

    /* A reading after a row of zeros shows how long a tick is. */
    if (reading && joules > 0) {
        if (energy->read_frames > 0 && energy->zero_frames > 1 && energy->zero_ns > energy->tick_ns)
            energy->tick_ns = fmin(energy->zero_ns, TICK_MOST_NS);

        energy->unread_frames = 0;
        energy->zero_frames = 0;
        energy->zero_ns = 0;
        energy->read_frames += energy->read_frames < READ_FRAMES;
    } else if (energy->unread_frames >= SILENT_FRAMES ||
               (energy->zero_frames >= SILENT_FRAMES && energy->zero_ns >= SILENT_NS)) {
        energy->unread_frames = 0;
        energy->read_frames = 0;
        fall_back(energy);
    }

    return reading;
}

/* Learn how long frames wait for each other. The first frames of a session do not count, because
 * they wait for the warm-up. */
static void learn_share(struct cox__energy *energy, const struct cox_frame_measurement *frame)
{
    if (!is_metered(energy))
        return;

    energy->latency_ns += LATENCY_GAIN * ((double)frame->latency_ns - energy->latency_ns);
    energy->period_ns += LATENCY_GAIN * ((double)frame->period_ns - energy->period_ns);

    energy->share = 1;
    if (energy->latency_ns > energy->period_ns)
        energy->share = energy->period_ns / energy->latency_ns;
}

/* Add a frame to the sums of the kept candidate; older frames count less and less. */
static void add_kept(struct cox__energy *energy, double joules, double ns)
{
    struct cox__energy_sums *sums = &energy->kept_sums;

    if (sums->frames >= WINDOW_FRAMES && has_blocks(energy, sums, 2)) {
        sums->frames /= 2;
        sums->joules /= 2;
        sums->squares /= 2;
        sums->ns /= 2;
    }
    add(sums, joules, ns);
}

void cox__energy_observe(struct cox__energy *energy, const struct cox_frame_measurement *frame)
{
    double ns = (double)frame->period_ns;

    learn_share(energy, frame);
    bool reading = read_meter(energy, frame->joules, ns);

    uint32_t at = (uint32_t)(frame->frame % COX__ENERGY_RING);
    if (energy->ring[at].frame_plus_1 != frame->frame + 1 ||
        energy->ring[at].serial != energy->serial)
        return;
    bool counts = energy->ring[at].counts;
    energy->ring[at].frame_plus_1 = 0;

    bool tried = energy->trial && same(energy->turn, energy->tried);
    bool kept = !energy->trial && same(energy->turn, energy->kept);

    if (frame->deadline_ns > 0 && frame->latency_ns > frame->deadline_ns) {
        energy->clean = 0;
        if (tried) {
            end_trial(energy);
            return;
        }
        if (kept && energy->turn.devices != 0) {
            energy->own_frames = (uint32_t)OWN_FRAMES << energy->misses;
            energy->misses += energy->misses < MISSES_MAX;
            return;
        }
    } else if (++energy->clean >= CLEAN_FRAMES) {
        energy->clean = 0;
        energy->misses -= energy->misses > 0;
    }

    if (!counts || !reading)
        return;
    if (tried)
        add(&energy->tried_sums, frame->joules, ns);
    else if (kept)
        add_kept(energy, frame->joules, ns);
}
