/* The references of the policies, measured in turns with them: each device alone and a sweep of
 * static splits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/quantiles.h"
#include "lab/commands.h"
#include "state.h"

enum {
    BALANCE_STEPS = 3, /* towards equal finish times, before the sweep */
    BALANCE_FRAMES = 9,
    MIN_TURNS = 12, /* of splits in a round */

    /* In rounds: */
    REFINE_EVERY = 2,  /* sweep closer around the best split */
    PROPOSE_EVERY = 3, /* sweep the policies' splits, too */
    SECOND_CHANCE = 6, /* give slow splits another turn: they may have met with noise */
    OFTEN = 128,       /* choose the splits in each of the first rounds */
    SELDOM = 96        /* later choose them this often: more samples take longer to evaluate */
};

bool lab__run_split(struct run *run, const uint32_t *rows, uint64_t count)
{
    run->references.turn_count = 0;
    lab_sweep_choose(rows, run->device_count);
    return lab__run_frames(run, &run->references, count);
}

bool lab__run_measure_alone(struct run *run, uint32_t device, double share, double *ns)
{
    uint32_t rows[COX_DEVICES_MAX] = {0};

    rows[device] = lab_kernel_rows(run->kernel);
    if (!lab__run_split(run, rows, lab__run_block(run->options)))
        return false;
    *ns = quantile_of(run->references.turn_ns, run->references.turn_count, share);
    return *ns > 0 || lab_fail("device %u: cannot compute a frame alone", device);
}

/* --- Turns ------------------------------------------------------------------------------------ */

/* Frames of a reference in a row. With several in flight a turn is as long as a policy's block. */
static uint32_t turn_frames(const struct run *run)
{
    if (run->options->in_flight == 1)
        return LAB_RUN_TURN;
    return lab__run_block(run->options);
}

/* How many of them are dropped at the start. */
static uint32_t turn_skipped(const struct run *run)
{
    return run->options->in_flight == 1;
}

/* The recording of a candidate's frames in a phase, made for its first frame. */
static struct lab_session *recording_of(struct run *run, uint32_t candidate, uint32_t phase)
{
    const struct lab_sweep *sweep = &run->at->sweep;
    double ratios[COX_DEVICES_MAX];
    struct lab_store_session session = {
        .kind = LAB_SESSION_SOLO, .device = candidate, .phase_plus_1 = phase + 1};

    if (run->at->recorded[candidate])
        return run->at->recorded[candidate];
    if (candidate >= run->device_count) {
        for (uint32_t d = 0; d < run->device_count; d++)
            ratios[d] = (double)sweep->candidates[candidate].rows[d] / sweep->rows;
        session.kind = LAB_SESSION_SWEEP;
        session.ratios = ratios;
        session.ratio_count = run->device_count;
        if (candidate < sweep->kept)
            session.policy = "curve";
    }

    run->at->recorded[candidate] = lab_store_begin_session(run->command->store, &session);
    return run->at->recorded[candidate];
}

static bool take_turn(struct run *run, uint32_t candidate, uint32_t phase)
{
    struct lane *lane = &run->references;

    lane->recorded = recording_of(run, candidate, phase);
    bool good = lab__run_split(run, run->at->sweep.candidates[candidate].rows, turn_frames(run));
    lane->recorded = NULL;

    for (uint32_t i = turn_skipped(run); good && i < lane->turn_count; i++)
        if (!lab_sweep_add(&run->at->sweep, candidate, lane->turn_ns[i]))
            run->failed = !lab_fail("out of memory");
    return !lab__run_is_over(run);
}

/* Measure each device's rows per nanosecond when all devices work, starting from their times
 * alone. */
static bool balance(struct run *run, double *speed)
{
    const struct lab_sweep *sweep = &run->at->sweep;

    for (uint32_t d = 0; d < run->device_count; d++) {
        double ns = lab_spread_of(sweep->candidates[d].ns, sweep->candidates[d].count).p50_ns;
        speed[d] = ns > 0 ? sweep->rows / ns : 0;
    }

    for (int step = 0; step < BALANCE_STEPS && run->device_count > 1; step++) {
        double per_row[COX_DEVICES_MAX][BALANCE_FRAMES] = {{0}};
        uint32_t rows[COX_DEVICES_MAX];

        lab_sweep_balance(sweep, speed, lab_sweep_all(sweep), rows);
        for (int i = 0; i < BALANCE_FRAMES; i++) {
            if (!lab__run_split(run, rows, 1))
                return false;
            for (uint32_t d = 0; d < run->device_count; d++)
                if (rows[d])
                    per_row[d][i] = (double)run->references.wall_ns[d] / rows[d];
        }

        for (uint32_t d = 0; d < run->device_count; d++) {
            double ns = quantile_of(per_row[d], BALANCE_FRAMES, 0.5);
            if (ns > 0)
                speed[d] = 1 / ns;
        }
    }

    return true;
}

static bool begin_sweep(struct run *run, uint32_t phase)
{
    struct cox_session_info info;
    double speed[COX_DEVICES_MAX];

    cox_session_info(run->references.session, &info);
    lab_sweep_begin(&run->at->sweep, run->device_count, lab_kernel_rows(run->kernel),
                    info.row_alignment, turn_frames(run) - turn_skipped(run));

    for (int turn = 0; turn < 2; turn++)
        for (uint32_t d = 0; d < run->device_count; d++)
            if (!take_turn(run, d, phase))
                return false;

    if (!balance(run, speed))
        return false;

    if (run->options->curve)
        lab_sweep_curve(&run->at->sweep, speed, run->options->curve);
    lab_sweep_spread(&run->at->sweep, speed);

    return true;
}

/* Choose the references that have turns until the next choice. In rounds of second chances all of
 * them do. */
static bool choose_turns(struct run *run, uint32_t round)
{
    struct lab_spread spreads[LAB_CANDIDATES_MAX];
    bool chance = round % SECOND_CHANCE == 0 && round < OFTEN;

    if (!lab_sweep_spreads(&run->at->sweep, spreads)) {
        run->failed = true;
        return lab_fail("out of memory");
    }

    for (uint32_t c = 0; c < LAB_CANDIDATES_MAX; c++)
        run->at->taken[c] = c >= run->at->sweep.count || chance ||
                            lab_sweep_wanted(&run->at->sweep, c, spreads);
    return true;
}

bool lab__run_sweep_round(struct run *run, uint32_t phase)
{
    uint32_t round = run->at->rounds++;

    if (round == 0 && !begin_sweep(run, phase))
        return false;

    if (round % REFINE_EVERY == REFINE_EVERY - 1 && round < OFTEN)
        lab_sweep_refine(&run->at->sweep);

    if (round % PROPOSE_EVERY == 1) /* so that no policy knows a better split than the sweep */
        for (uint32_t i = 0; i < run->options->policy_count; i++)
            lab_sweep_propose(&run->at->sweep, run->policies[i].rows);

    if ((round < OFTEN || round % SELDOM == 0) && !choose_turns(run, round))
        return false;

    /* Kept candidates have one turn. The others have turns until there are enough. */
    for (uint32_t turns = 0; turns < MIN_TURNS;) {
        uint32_t before = turns;
        for (uint32_t i = 0; i < run->at->sweep.count; i++) {
            uint32_t candidate = (i + round) % run->at->sweep.count;
            bool kept = candidate < run->at->sweep.kept;

            if (!run->at->taken[candidate] || (kept && before > 0))
                continue;
            if (!take_turn(run, candidate, phase))
                return false;
            turns += !kept;
        }

        if (turns == before)
            break;
    }

    return true;
}

static void record_reference(struct run *run, uint32_t phase, int32_t device,
                             const struct lab_spread *spread, const double *ratios)
{
    struct lab_store *store = run->command->store;
    const uint32_t ratio_count = ratios ? run->device_count : 0;

    lab_store_reference(store, phase, device, spread->p50_ns, spread->count, ratios, ratio_count);
    lab_store_reference_mean(store, phase, device, spread->mean_ns);
    lab_store_reference_p90(store, phase, device, spread->p90_ns);
}

bool lab__run_refer(struct run *run, uint32_t phase)
{
    struct lab_run_reference *reference = &run->reference[phase];
    double ratios[COX_DEVICES_MAX];

    if (!lab_run_reference_of(&run->at->sweep, reference))
        return lab_fail("phase %u: no reference frames were measured", phase);

    for (uint32_t d = 0; d < run->device_count; d++) {
        ratios[d] = (double)reference->oracle_rows[d] / run->at->sweep.rows;
        record_reference(run, phase, (int32_t)d, &reference->solo[d], NULL);
    }

    record_reference(run, phase, LAB_REFERENCE_ORACLE, &reference->oracle.spread, ratios);
    return true;
}
