/* How a run goes. Every session is made before the first frame. The frames come in blocks: each policy in turn does its
 * next few, then each device alone and the swept splits do some, all under the same disturbances, so that what happens
 * on the machine meanwhile hits all alike. Disturbances start and end between blocks, when no frame is under way.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "measure.h"
#include "common/figures.h"
#include "common/machine.h"
#include "common/now.h"
#include "common/quiet.h"
#include "lab/commands.h"
#include "disturb_cpus.h"
#include "disturb_quota.h"
#include "energy.h"
#include "lab/plain.h"
#include "lab/store/database.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 8,         /* frames of a policy in a row */
    TURN = 4,          /* frames of a reference in a row; the first one finds the caches full of something else */
    BALANCE_STEPS = 3, /* towards equal finish times, before the sweep */
    BALANCE_FRAMES = 9,
    REFINE_EVERY = 2,  /* rounds: the sweep looks closer around the best split */
    PROPOSE_EVERY = 3, /* rounds: policies' splits are swept, too */
    TURNS = 12,        /* of splits in a round, at least */
    SECOND_CHANCE = 6, /* rounds: splits that looked bad get another turn; they may have met with noise */
    OFTEN = 128,       /* rounds at the beginning: in each of them it is decided what has turns */
    SELDOM = 96,       /* rounds between two such decisions later: they take longer with more samples */
    WORK_STEPS = 6,
    WORK_MOST = 10000000,
    DELAY_STEPS_MOST = 1 << 28
};

static const double work_frame_ns = 9e6;  /* of the kernel `work`, balanced */
static const double probe_ns = 150e6;     /* of work on a device, to see which threads do it */
static const double delay_probe_ns = 2e6; /* a delay that stands out from the noise */

/* --- Interruption ------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupts;

static void on_signal(int number)
{
    if (++interrupts > 1) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* One session and its frames. What reports write is read when no frame is under way. */
struct lane {
    cox_session *session;
    struct lab_session *recorded; /* where its next frames are recorded; NULL = nowhere */
    uint32_t number;              /* of its buffers */
    uint64_t submitted, last_end_ns;
    struct lab_run_frame *frames; /* of a policy; NULL for the references */
    double turn_ns[BLOCK];        /* of the references: the frames of the turn */
    uint32_t turn_count;
    uint32_t rows[COX_DEVICES_MAX];    /* of the last frame */
    uint64_t wall_ns[COX_DEVICES_MAX]; /* of each device's last band in the last frame */
};

struct run {
    const struct lab_run_options *options;
    struct machine machine;
    struct lab_disturber *disturber;
    struct lab_store *store;
    struct lab_energy *energy;
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct lab_kernel *kernel;
    int32_t delay_steps[LAB_DISTURBANCES_MAX];
    bool artificial[LAB_DISTURBANCES_MAX];
    char notes[LAB_DISTURBANCES_MAX][320];
    uint32_t phase_count;
    struct lab_phase phases[LAB_PHASES_MAX];
    struct lane references, policies[LAB_RUN_POLICIES_MAX];
    struct lab_sweep sweep; /* of the phase under way */
    struct lab_session *swept[LAB_CANDIDATES_MAX];
    bool taken[LAB_CANDIDATES_MAX];      /* which of its candidates have turns; new ones do */
    struct lab_run_reference *reference; /* of each phase */
    struct quiet quiet;
    uint64_t rounds;
    int64_t number; /* in the database; 0 = nothing is recorded */
    bool failed;
};

static uint64_t hash_split(const struct cox_frame_report *report)
{
    uint64_t hash = 14695981039346656037u;
    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        if (!band->on_demand && band->attempt == 0)
            hash = (hash ^ ((uint64_t)band->device << 40 ^ (uint64_t)band->first_row << 8 ^ band->rows)) *
                   1099511628211u;
    }
    return hash;
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct lane *lane = user;
    if (lane->recorded)
        lab_session_frame(lane->recorded, report);
    if (report->warmup || report->shadow)
        return;
    uint64_t from = report->start_ns > lane->last_end_ns ? report->start_ns : lane->last_end_ns;
    double ns = report->end_ns > from ? (double)(report->end_ns - from) : 0;
    lane->last_end_ns = report->end_ns;
    memset(lane->rows, 0, sizeof lane->rows);
    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        lane->rows[band->device] += band->status == COX_OK ? band->rows : 0;
        lane->wall_ns[band->device] = band->wall_ns;
    }
    if (lane->frames) {
        lane->frames[report->index] = (struct lab_run_frame){
            .ns = ns, .joules = report->joules, .split = hash_split(report), .failed = report->status != COX_OK};
        return;
    }
    if (report->status == COX_OK && lane->turn_count < BLOCK)
        lane->turn_ns[lane->turn_count++] = ns;
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)user; /* the report says it all */
    (void)frame;
    (void)status;
}

static double meter(void *user)
{
    return lab_energy_joules(user);
}

static bool open_lane(struct run *run, struct lane *lane, const struct cox_policy *policy)
{
    const struct lab_run_options *options = run->options;
    struct cox_session_params params = {
        .custom_policy = policy,
        .policy_options = COX_POLICY_OPTIONS(.objective = options->objective, .deadline_ns = options->deadline_ns),
        .in_flight = options->in_flight,
        .no_profile = true,
        .meter = run->energy ? meter : NULL,
        .meter_user = run->energy,
        .report = on_report,
        .report_user = lane};
    lab_kernel_pipeline(run->kernel, &params);
    cox_status status = cox_session_create(run->runtime, &params, &lane->session);
    return status == COX_OK || lab_fail("policy %s: %s", policy->name, cox_status_text(status));
}

static bool is_over(const struct run *run)
{
    return run->failed || interrupts;
}

/* Frames of one session; false once the run is over. */
static bool run_frames(struct run *run, struct lane *lane, uint64_t count)
{
    for (uint64_t i = 0; i < count && !is_over(run); i++) {
        struct cox_frame frame = lab_kernel_frame(run->kernel, lane->number, lane->submitted++);
        cox_status status = run->options->in_flight == 1 ? cox_session_run(lane->session, &frame)
                                                         : cox_session_submit(lane->session, &frame, on_done, lane);
        if (status == COX_E_NO_DEVICE || status == COX_E_INVALID || status == COX_E_NOMEM)
            run->failed = !lab_fail("a frame: %s", cox_status_text(status));
    }
    if (run->options->in_flight != 1)
        cox_session_wait(lane->session);
    lab_store_write(run->store);
    return !is_over(run);
}

/* --- References --------------------------------------------------------------------------------------------------- */

/* Frames of one static split, in lane->turn_ns. */
static bool run_split(struct run *run, const uint32_t *rows, uint64_t count)
{
    run->references.turn_count = 0;
    lab_sweep_choose(rows, run->device_count);
    return run_frames(run, &run->references, count);
}

/* Frames of a reference in a row, and how many of them are left out at the start. Streams are as long as a policy's. */
static uint32_t turn_frames(const struct run *run)
{
    return run->options->in_flight == 1 ? TURN : BLOCK;
}

static uint32_t turn_skipped(const struct run *run)
{
    return run->options->in_flight == 1 ? 1 : 0;
}

/* The recording of a candidate's frames in a phase: made when its first frame comes. */
static struct lab_session *recording_of(struct run *run, uint32_t candidate, uint32_t phase)
{
    double ratios[COX_DEVICES_MAX];
    struct lab_store_session session = {.kind = candidate < run->device_count ? LAB_SESSION_SOLO : LAB_SESSION_SWEEP,
                                        .device = candidate,
                                        .phase_plus_1 = phase + 1};
    if (!run->swept[candidate]) {
        if (session.kind == LAB_SESSION_SWEEP) {
            for (uint32_t d = 0; d < run->device_count; d++)
                ratios[d] = (double)run->sweep.candidates[candidate].rows[d] / run->sweep.rows;
            session.ratios = ratios;
            session.ratio_count = run->device_count;
        }
        run->swept[candidate] = lab_store_begin_session(run->store, &session);
    }
    return run->swept[candidate];
}

static bool take_turn(struct run *run, uint32_t candidate, uint32_t phase)
{
    struct lane *lane = &run->references;
    lane->recorded = recording_of(run, candidate, phase);
    bool good = run_split(run, run->sweep.candidates[candidate].rows, turn_frames(run));
    lane->recorded = NULL;
    for (uint32_t i = turn_skipped(run); good && i < lane->turn_count; i++)
        if (!lab_sweep_add(&run->sweep, candidate, lane->turn_ns[i]))
            run->failed = !lab_fail("out of memory");
    return !is_over(run);
}

/* Each device's rows per nanosecond when all of them work, found from their times alone. */
static bool balance(struct run *run, double *speed)
{
    for (uint32_t d = 0; d < run->device_count; d++) {
        struct lab_spread solo = lab_spread_of(run->sweep.candidates[d].ns, run->sweep.candidates[d].count);
        speed[d] = solo.p50_ns > 0 ? run->sweep.rows / solo.p50_ns : 0;
    }
    for (int step = 0; step < BALANCE_STEPS && run->device_count > 1; step++) {
        double per_row[COX_DEVICES_MAX][BALANCE_FRAMES];
        uint32_t rows[COX_DEVICES_MAX], all = run->device_count >= 32 ? UINT32_MAX : (1u << run->device_count) - 1;
        lab_sweep_balance(&run->sweep, speed, all, rows);
        for (int i = 0; i < BALANCE_FRAMES; i++) {
            if (!run_split(run, rows, 1))
                return false;
            for (uint32_t d = 0; d < run->device_count; d++)
                per_row[d][i] = rows[d] ? (double)run->references.wall_ns[d] / rows[d] : 0;
        }
        for (uint32_t d = 0; d < run->device_count; d++) {
            double ns = figures_quantile(per_row[d], BALANCE_FRAMES, 0.5);
            speed[d] = ns > 0 ? 1 / ns : speed[d];
        }
    }
    return true;
}

static bool begin_sweep(struct run *run, uint32_t phase)
{
    struct cox_session_info info;
    double speed[COX_DEVICES_MAX];
    cox_session_info(run->references.session, &info, sizeof info);
    memset(run->swept, 0, sizeof run->swept);
    lab_sweep_begin(&run->sweep, run->device_count, lab_kernel_rows(run->kernel), info.granule,
                    turn_frames(run) - turn_skipped(run));
    for (int turn = 0; turn < 2; turn++)
        for (uint32_t d = 0; d < run->device_count; d++)
            if (!take_turn(run, d, phase))
                return false;
    if (!balance(run, speed))
        return false;
    lab_sweep_spread(&run->sweep, speed);
    return true;
}

/* Which references have turns until this is asked again. Once the first splits have fallen behind, the others get
 * theirs. */
static bool choose_turns(struct run *run, uint32_t round)
{
    struct lab_spread spreads[LAB_CANDIDATES_MAX];
    bool chance = round % SECOND_CHANCE == 0 && round < OFTEN;
    if (!lab_sweep_spreads(&run->sweep, spreads)) {
        run->failed = true;
        return lab_fail("out of memory");
    }
    for (uint32_t c = 0; c < LAB_CANDIDATES_MAX; c++)
        run->taken[c] = c >= run->sweep.count || chance || lab_sweep_wanted(&run->sweep, c, spreads);
    return true;
}

/* One turn of every reference that still matters. */
static bool sweep_round(struct run *run, uint32_t phase, uint32_t round)
{
    if (round == 0 && !begin_sweep(run, phase))
        return false;
    if (round % REFINE_EVERY == REFINE_EVERY - 1 && round < OFTEN)
        lab_sweep_refine(&run->sweep);
    if (round % PROPOSE_EVERY == 1) /* no policy is to know a better split than the sweep */
        for (uint32_t i = 0; i < run->options->policy_count; i++)
            lab_sweep_propose(&run->sweep, run->policies[i].rows);
    if ((round < OFTEN || round % SELDOM == 0) && !choose_turns(run, round))
        return false;
    for (uint32_t turns = 0; turns < TURNS;) {
        uint32_t before = turns;
        for (uint32_t i = 0; i < run->sweep.count; i++) {
            uint32_t candidate = (i + round) % run->sweep.count;
            bool alone = candidate < run->device_count;
            if (!run->taken[candidate] || (alone && before > 0))
                continue;
            if (!take_turn(run, candidate, phase))
                return false;
            turns += !alone;
        }
        if (turns == before)
            break;
    }
    return true;
}

static void record_reference(struct run *run, uint32_t phase, int32_t device, const struct lab_spread *spread,
                             const double *ratios)
{
    lab_store_reference(run->store, phase, device, spread->p50_ns, spread->count, ratios,
                        ratios ? run->device_count : 0);
    lab_store_reference_mean(run->store, phase, device, spread->mean_ns);
    lab_store_reference_p90(run->store, phase, device, spread->p90_ns);
}

static bool end_sweep(struct run *run, uint32_t phase)
{
    struct lab_run_reference *reference = &run->reference[phase];
    double ratios[COX_DEVICES_MAX];
    if (!lab_run_reference_of(&run->sweep, reference))
        return lab_fail("phase %u: there is nothing to compare with", phase);
    for (uint32_t d = 0; d < run->device_count; d++) {
        ratios[d] = (double)reference->oracle_rows[d] / run->sweep.rows;
        record_reference(run, phase, (int32_t)d, &reference->solo[d], NULL);
    }
    record_reference(run, phase, LAB_REFERENCE_ORACLE, &reference->oracle.spread, ratios);
    lab_sweep_end(&run->sweep);
    return true;
}

/* --- Phases ------------------------------------------------------------------------------------------------------- */

static void show_progress(const struct run *run, uint32_t phase, uint64_t frame)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rphase %u of %u, %s: frame %" PRIu64 " of %" PRIu64 " \033[K", phase + 1, run->phase_count,
                run->phases[phase].text, frame, run->options->frames);
}

static void clear_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

/* Blocks of the policies, none if there are no frames left, and a round of the references. */
static bool run_round(struct run *run, uint32_t phase, uint32_t round, uint64_t first, uint64_t end)
{
    uint32_t policies = run->options->policy_count;
    lab_sweep_mark(&run->sweep);
    quiet_begin(&run->quiet);
    for (uint32_t i = 0; i < policies && first < end; i++)
        if (!run_frames(run, &run->policies[(i + run->rounds) % policies], end - first))
            return false;
    if (!sweep_round(run, phase, round))
        return false;
    run->rounds++;
    if (quiet_keep(&run->quiet))
        return true;
    for (uint32_t i = 0; i < policies; i++)
        for (uint64_t f = first; f < end; f++)
            run->policies[i].frames[f].disturbed = true;
    lab_sweep_undo(&run->sweep);
    return true;
}

static bool begin_phase(struct run *run, uint32_t phase)
{
    char why[320];
    int32_t steps = 0;
    uint32_t active = run->phases[phase].active;
    for (uint32_t i = 0; i < run->options->disturbance_count; i++)
        if (active >> i & 1 && run->delay_steps[i] > steps)
            steps = run->delay_steps[i];
    lab_kernel_set_delay(run->kernel, steps);
    return lab_disturber_set(run->disturber, active, why, sizeof why) || lab_fail("%s", why);
}

static bool run_phase(struct run *run, uint32_t phase)
{
    const struct lab_phase *p = &run->phases[phase];
    uint32_t round = 0;
    if (!begin_phase(run, phase))
        return false;
    for (uint64_t first = p->first_frame; first < p->end_frame || round < run->options->rounds; round++) {
        uint64_t end = p->end_frame - first > BLOCK ? first + BLOCK : p->end_frame;
        show_progress(run, phase, end);
        if (!run_round(run, phase, round, first, end))
            return false;
        first = end;
    }
    return end_sweep(run, phase);
}

/* --- Before the first frame --------------------------------------------------------------------------------------- */

/* Time of one device alone, in frames that count for nothing: their median, or their least, which other programs change
 * least. */
static bool measure_alone(struct run *run, uint32_t device, double share, double *ns)
{
    uint32_t rows[COX_DEVICES_MAX] = {0};
    rows[device] = lab_kernel_rows(run->kernel);
    if (!run_split(run, rows, BLOCK))
        return false;
    *ns = figures_quantile(run->references.turn_ns, run->references.turn_count, share);
    return *ns > 0 || lab_fail("device %u does no frame alone", device);
}

/* Choose the work so that a balanced frame takes long enough to be measured. */
static bool choose_work(struct run *run)
{
    for (int step = 0; step < WORK_STEPS; step++) {
        double rate = 0, ns;
        for (uint32_t d = 0; d < run->device_count; d++) {
            if (!measure_alone(run, d, 0.5, &ns))
                return false;
            rate += 1 / ns;
        }
        if (1 / rate > 0.9 * work_frame_ns && 1 / rate < 1.2 * work_frame_ns)
            break;
        double work = lab_kernel_work(run->kernel) * work_frame_ns * rate;
        lab_kernel_set_work(run->kernel, work < 1 ? 1 : work > WORK_MOST ? WORK_MOST : (int32_t)work);
    }
    return true;
}

/* How many steps of the artificial delay take so long. */
static bool choose_delay(struct run *run, uint32_t device, double us, int32_t *steps)
{
    double without, with = 0;
    int32_t probe = 1024;
    lab_kernel_set_delay(run->kernel, 0);
    if (!measure_alone(run, device, 0, &without))
        return false;
    for (; probe < DELAY_STEPS_MOST; probe *= 2) {
        lab_kernel_set_delay(run->kernel, probe);
        if (!measure_alone(run, device, 0, &with))
            return false;
        if (with - without > delay_probe_ns && with > 1.2 * without)
            break;
    }
    lab_kernel_set_delay(run->kernel, 0);
    double wanted = probe * us * 1e3 / (with - without);
    if (!(with > without) || wanted > DELAY_STEPS_MOST)
        return lab_fail("the artificial delay of device %u cannot be made so long", device);
    *steps = wanted < 1 ? 1 : (int32_t)wanted;
    return true;
}

/* The CPUs on which the first CPU device computes; 0 = unknown. */
static uint32_t find_cpus(struct run *run, uint16_t *cpus)
{
    uint32_t count = 0, device = 0;
    double ns;
    while (device < run->device_count && run->devices[device].type != COX_DEVICE_CPU)
        device++;
    struct lab_threads *before = device < run->device_count ? lab_threads_read() : NULL;
    bool good = before != NULL;
    for (uint64_t until = now_ns() + (uint64_t)probe_ns; good && now_ns() < until;)
        good = measure_alone(run, device, 0.5, &ns);
    if (good)
        count = lab_threads_cpus(before, cpus, LAB_HOG_CPUS_MAX);
    lab_threads_free(&before);
    return count;
}

static bool wants(const struct lab_run_options *options, enum lab_disturb_kind kind)
{
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        if (options->disturbances[i].kind == kind)
            return true;
    return false;
}

static bool cannot_disturb(const struct lab_disturbance *disturbance, const char *why)
{
    return lab_fail("--disturb %s: %s; with --fallback-delay MICROSECONDS device 0 would be delayed instead",
                    disturbance->text, why);
}

/* What can be refused before a device is opened is. */
static bool can_disturb(const struct lab_run_options *options)
{
    char why[320];
    for (uint32_t i = 0; i < options->disturbance_count && options->fallback_us <= 0; i++)
        if (!lab_disturbance_possible(&options->disturbances[i], why, sizeof why))
            return cannot_disturb(&options->disturbances[i], why);
    return true;
}

static bool prepare_disturbances(struct run *run)
{
    const struct lab_run_options *options = run->options;
    const struct cox_device_info *gpu = NULL;
    uint16_t cpus[LAB_HOG_CPUS_MAX];
    uint32_t which, cpu_count = wants(options, LAB_HOG) ? find_cpus(run, cpus) : 0;
    char why[320];
    for (uint32_t d = 0; d < run->device_count && !gpu; d++)
        if (run->devices[d].type == COX_DEVICE_GPU)
            gpu = &run->devices[d];
    while (!is_over(run) && !lab_disturber_prepare(run->disturber, cpus, cpu_count, gpu, &which, why, sizeof why)) {
        if (options->fallback_us <= 0)
            return cannot_disturb(&options->disturbances[which], why);
        lab_fail("--disturb %s: %s; device 0 is delayed by %g us instead", options->disturbances[which].text, why,
                 options->fallback_us);
        lab_disturber_drop(run->disturber, which);
        run->artificial[which] = true;
        snprintf(run->notes[which], sizeof run->notes[which], "artificial, %g us on device 0, because: %.200s",
                 options->fallback_us, why);
        if (!choose_delay(run, 0, options->fallback_us, &run->delay_steps[which]))
            return false;
    }
    for (uint32_t i = 0; i < options->disturbance_count && !is_over(run); i++) {
        const struct lab_disturbance *d = &options->disturbances[i];
        if (d->kind == LAB_DELAY) {
            run->artificial[i] = true;
            snprintf(run->notes[i], sizeof run->notes[i], "artificial: work in each launch on device %u", d->device);
            if (!choose_delay(run, d->device, d->delay_us, &run->delay_steps[i]))
                return false;
        } else if (!run->artificial[i]) {
            snprintf(run->notes[i], sizeof run->notes[i], "%.300s", lab_disturber_note(run->disturber, i));
        }
    }
    return !is_over(run);
}

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    lab_fail("%s", line);
}

/* The device that artificial delays are for; all of them must mean the same. */
static bool delayed_device(const struct lab_run_options *options, bool *delayed, uint32_t *device)
{
    *delayed = options->fallback_us > 0;
    *device = 0;
    for (uint32_t i = 0; i < options->disturbance_count; i++) {
        const struct lab_disturbance *d = &options->disturbances[i];
        if (d->kind != LAB_DELAY)
            continue;
        if (*delayed && *device != d->device)
            return lab_fail("--disturb %s: only one device can be delayed in a run", d->text);
        *delayed = true;
        *device = d->device;
    }
    return true;
}

static bool open_devices(struct run *run)
{
    const struct lab_run_options *options = run->options;
    struct lab_kernel_params params = {.kind = options->kernel,
                                       .columns = options->columns,
                                       .rows = options->rows,
                                       .lanes = 1 + options->policy_count,
                                       .slots = options->in_flight,
                                       .ratio = options->ratio};
    char why[320];
    if (!delayed_device(options, &params.delayed, &params.delay_device))
        return false;
    cox_status status = cox_runtime_create(&run->runtime,
                                           COX_RUNTIME_PARAMS(.devices = options->devices, .log = on_log));
    if (status != COX_OK)
        return lab_fail("devices '%s': %s", options->devices ? options->devices : "all", cox_status_text(status));
    run->device_count = cox_runtime_device_count(run->runtime);
    for (uint32_t d = 0; d < run->device_count; d++)
        cox_runtime_device_info(run->runtime, d, &run->devices[d], sizeof run->devices[d]);
    if (params.delayed && params.delay_device >= run->device_count)
        return lab_fail("there is no device %u to delay, there are %u", params.delay_device, run->device_count);
    if (!lab_kernel_open(run->runtime, &params, &run->kernel, why, sizeof why))
        return lab_fail("%s", why);
    return open_lane(run, &run->references, &lab_sweep_policy);
}

static bool open_policies(struct run *run)
{
    for (uint32_t i = 0; i < run->options->policy_count && !is_over(run); i++) {
        struct lane *lane = &run->policies[i];
        const struct cox_policy *policy = &run->options->policies[i].policy;
        lane->number = 1 + i;
        lane->frames = calloc((size_t)run->options->frames, sizeof *lane->frames);
        if (!lane->frames)
            return lab_fail("out of memory");
        lane->recorded = lab_store_begin_session(run->store, &(const struct lab_store_session){
                                                                 .kind = LAB_SESSION_POLICY, .policy = policy->name});
        if (!open_lane(run, lane, lab_session_tape(lane->recorded, policy)))
            return false;
    }
    return !is_over(run);
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

static void begin_recording(struct run *run)
{
    const struct lab_run_options *options = run->options;
    struct cox_session_info info;
    char system[320];
    cox_session_info(run->references.session, &info, sizeof info);
    snprintf(system, sizeof system, "%s, %s, %u hardware threads", run->machine.system, run->machine.cpu,
             run->machine.cpus);
    run->number = lab_store_begin_run(run->store, &(const struct lab_store_run){
                                                      .source = "devices",
                                                      .system = system,
                                                      .command = options->command,
                                                      .kernel = lab_kernel_name(options->kernel),
                                                      .columns = lab_kernel_columns(run->kernel),
                                                      .rows = lab_kernel_rows(run->kernel),
                                                      .granule = info.granule,
                                                      .in_flight = options->in_flight,
                                                      .frames = options->frames,
                                                      .objective = options->objective,
                                                      .deadline_ns = options->deadline_ns,
                                                      .meter = run->energy ? lab_energy_name(run->energy) : NULL});
    for (uint32_t d = 0; d < run->device_count; d++)
        lab_store_device(run->store, d, &run->devices[d]);
    for (uint32_t p = 0; p < run->phase_count; p++)
        lab_store_phase(run->store, p, run->phases[p].first_frame, run->phases[p].end_frame, run->phases[p].text);
    for (uint32_t i = 0; i < options->disturbance_count; i++) {
        const struct lab_disturbance *d = &options->disturbances[i];
        lab_store_disturbance(run->store, i, lab_disturb_kind_name(d->kind), d->text, d->first_frame, d->end_frame,
                              !run->artificial[i], run->notes[i]);
    }
}

static void print_head(const struct run *run)
{
    const struct lab_run_options *options = run->options;
    char texts[3][1024]; /* what drivers say, fit for a terminal */
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", run->machine.cpu, run->machine.cpus,
           run->machine.system, run->machine.load);
    for (uint32_t d = 0; d < run->device_count; d++) {
        const struct cox_device_info *device = &run->devices[d];
        printf("device %u: %s (%s %s), %u compute unit%s, %s memory\n", d,
               lab_plain(device->name, texts[0], sizeof texts[0]),
               lab_plain(device->platform, texts[1], sizeof texts[1]),
               lab_plain(device->driver, texts[2], sizeof texts[2]), device->compute_units,
               device->compute_units == 1 ? "" : "s", cox_memory_mode_name(device->mode));
    }
    printf("kernel: %s, %u x %u", lab_kernel_name(options->kernel), lab_kernel_columns(run->kernel),
           lab_kernel_rows(run->kernel));
    if (lab_kernel_has_work(run->kernel))
        printf(", %" PRId32 " rounds in each item, device 1 %u times", lab_kernel_work(run->kernel), options->ratio);
    printf("; %" PRIu64 " frames of each policy, %u in flight; %.2f GB of frames in memory\n", options->frames,
           options->in_flight, lab_kernel_gigabytes(run->kernel));
    for (uint32_t i = 0; i < options->disturbance_count; i++)
        printf("disturbance: %s, %s%s\n", options->disturbances[i].text, run->artificial[i] ? "" : "real, ",
               run->notes[i][0] ? lab_plain(run->notes[i], texts[0], sizeof texts[0]) : "for the whole process");
    if (run->energy)
        printf("energy: %s\n", lab_energy_name(run->energy));
    if (run->number)
        printf("recorded: %s, run %" PRId64 "\n", options->output, run->number);
    fflush(stdout);
}

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* The meter, or a word about why there is none. Returns an exit status. */
static int open_meter(struct run *run)
{
    char why[600];
    if (lab_energy_open(run->options->powercap, &run->energy, why, sizeof why))
        return LAB_OK;
    if (run->options->objective == COX_OBJECTIVE_ENERGY) {
        lab_fail("--objective energy: %s", why);
        return LAB_USAGE;
    }
    printf("energy: not measured; %s\n", why);
    return LAB_OK;
}

/* Energy is the processor's: rows moved to a card of its own vanish from the meter. */
static void warn_of_meter(const struct run *run)
{
    for (uint32_t d = 0; d < run->device_count && run->energy; d++)
        if (run->devices[d].mode == COX_MODE_STAGED)
            lab_fail("the meter is the processor's: what device %u (%s) uses is not in it", d, run->devices[d].name);
}

static bool start(struct run *run)
{
    const struct lab_run_options *options = run->options;
    if (!open_devices(run))
        return false;
    if (lab_kernel_has_work(run->kernel) && !choose_work(run))
        return false;
    if (!prepare_disturbances(run))
        return false;
    warn_of_meter(run);
    begin_recording(run);
    print_head(run);
    size_t children;
    quiet_start(&run->quiet, options->quiet_s);
    run->quiet.children = lab_disturber_children(run->disturber, &children);
    run->quiet.child_count = children;
    return open_policies(run);
}

static void print_quiet(const struct run *run)
{
    double others = quiet_others(&run->quiet);
    if (others >= 0)
        printf("\nother programs used %.2f processors meanwhile; %u of %" PRIu64 " rounds were left out for them\n",
               others, run->quiet.again, run->rounds);
    if (quiet_busy(&run->quiet))
        printf("The machine was BUSY: the figures say little.\n");
}

static bool finish(struct run *run, bool *met)
{
    const struct lab_run_options *options = run->options;
    struct lab_run_figures *figures = calloc((size_t)options->policy_count * run->phase_count, sizeof *figures);
    bool good = figures != NULL;
    for (uint32_t i = 0; good && i < options->policy_count; i++)
        for (uint32_t p = 0; good && p < run->phase_count; p++)
            good = lab_run_figures_of(run->policies[i].frames, run->phases[p].first_frame, run->phases[p].end_frame,
                                      &run->reference[p], &figures[i * run->phase_count + p]);
    if (good) {
        print_quiet(run);
        lab_run_print(stdout, &(const struct lab_run_table){.options = options,
                                                            .device_count = run->device_count,
                                                            .phase_count = run->phase_count,
                                                            .phases = run->phases,
                                                            .references = run->reference,
                                                            .figures = figures,
                                                            .rows = lab_kernel_rows(run->kernel)});
        *met = lab_run_judge(figures, run->reference, run->phases, run->phase_count).met;
        lab_store_finish_run(run->store);
    }
    free(figures);
    return good || lab_fail("out of memory");
}

static void close_run(struct run *run)
{
    lab_sweep_end(&run->sweep);
    for (uint32_t i = 0; i < run->options->policy_count; i++) {
        cox_session_destroy(&run->policies[i].session);
        free(run->policies[i].frames);
    }
    cox_session_destroy(&run->references.session);
    lab_disturber_stop(&run->disturber);
    lab_kernel_close(&run->kernel);
    cox_runtime_destroy(&run->runtime);
    lab_energy_close(&run->energy);
    free(run->reference);
}

/* With everything that must be there before OpenCL is touched. Returns an exit status. */
static int run_all(struct run *run)
{
    const struct lab_run_options *options = run->options;
    char why[600];
    bool met = false;
    lab_quota_tidy(NULL); /* of runs that were killed */
    if (!can_disturb(options))
        return LAB_BAD;
    if (!lab_disturber_start(options->disturbances, options->disturbance_count, &run->disturber, why, sizeof why) ||
        !lab_store_open(options->output, &run->store, why, sizeof why)) {
        lab_fail("%s", why);
        return LAB_BAD;
    }
    int status = open_meter(run);
    if (status != LAB_OK)
        return status;
    bool good = start(run);
    for (uint32_t p = 0; good && p < run->phase_count; p++)
        good = run_phase(run, p);
    clear_progress();
    if (run->number) /* of a run that was interrupted, too */
        lab_store_load(run->store, quiet_others(&run->quiet), quiet_busy(&run->quiet));
    if (good)
        good = finish(run, &met);
    if (good && (fflush(stdout) != 0 || ferror(stdout)))
        good = lab_fail("standard output: %s", strerror(errno));
    if (good)
        return options->check && !met ? LAB_MISSED : LAB_OK;
    if (!interrupts)
        return LAB_BAD;
    if (run->number)
        lab_fail("interrupted; what was recorded is in %s", options->output);
    else
        lab_fail("interrupted before the first frame; nothing was recorded");
    return LAB_INTERRUPTED;
}

int lab_run(const struct lab_run_options *options)
{
    struct run *run = calloc(1, sizeof *run);
    char why[600];
    if (run)
        run->reference = calloc(LAB_PHASES_MAX, sizeof *run->reference);
    if (!run || !run->reference) {
        free(run);
        lab_fail("out of memory");
        return LAB_BAD;
    }
    run->options = options;
    run->phase_count = lab_phases(options->disturbances, options->disturbance_count, options->frames, run->phases);
    machine_read(&run->machine);
    catch_signals();
    int status = run_all(run);
    /* The sessions first: until they are gone, reports may come. */
    struct lab_store *store = run->store;
    close_run(run);
    if (!lab_store_close(&store, why, sizeof why)) {
        lab_fail("%s", why);
        status = status == LAB_OK || status == LAB_MISSED ? LAB_BAD : status;
    }
    free(run);
    return status;
}
