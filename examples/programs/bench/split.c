/* cox-bench split: two devices, one with several times the work per row. Every round runs one frame
 * of every static split, of each device alone, and of the policy. The static splits lie around the
 * balanced one, and the best of them is the oracle. The policy runs twice: as sessions start by
 * default, and from an even split without the warm-up times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "common/work.h"
#include "json_members.h"
#include "lines.h"
#include "message.h"
#include "session.h"
#include "split_policies.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 480,
    COLUMNS = 128,
    ROUNDS_DEFAULT = 200,
    BLOCKS = 8,
    CALIBRATIONS = 15,
    SETTLED_FRAMES = 10
};

static const double frame_target_ns = 9e6; /* of the balanced split */
static const double bar_frame_ms = 5.0;
static const double bar_efficiency = 0.93;
static const double bar_oracle = 1.03;
static const uint32_t bar_frames = 10;

/* Rows of the first device, relative to the balance of the two devices' times alone. */
static const int offsets[] = {-24, -16, -11, -7, -5, -3, -2, -1, 0, 1, 2, 3, 5, 7, 11, 16, 24};
enum { STATIC = sizeof offsets / sizeof offsets[0] };

/* What takes part in a round. */
enum { ALONE_0 = STATIC, ALONE_1, POLICY, POLICY_BLIND, CONTESTANTS };

/* --- sessions --- */

/* A session. The scheduler thread writes the other fields before a frame is done. */
struct lane {
    cox_session *session;
    _Atomic uint32_t first_rows; /* of the last frame: rows of the first device */
    _Atomic uint64_t wall_ns[2]; /* of the last frame: what each device's band took */
};

struct bench {
    cox_runtime *runtime;
    struct cox_device_info devices[2];
    struct work_shape shape;
    struct work_pipeline pipeline;
    struct cox_session_params session; /* what all sessions share */
    struct lane sweep, policy, blind;
    /* Shared by all sessions, so that caches favour none; ends with NULL. */
    cox_buffer *buffers[3];
    uint32_t rounds;
    struct quiet quiet;
    uint32_t balance;            /* rows of the first device in the balanced split */
    double *values[CONTESTANTS]; /* ns from submit to result, per round */
    uint32_t *shares[2];         /* POLICY, POLICY_BLIND: rows of the first device, by frame */
    uint32_t share_count[2];
    double *memory;
};

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct lane *lane = user;

    if (report->warmup || report->shadow)
        return;

    uint64_t wall_ns[2] = {0};
    uint32_t rows = 0;
    for (uint32_t b = 0; b < report->band_count; b++) {
        const struct cox_band_report *band = &report->bands[b];
        if (band->device == 0)
            rows += band->rows;
        if (band->device < 2)
            wall_ns[band->device] += band->wall_ns;
    }

    for (uint32_t d = 0; d < 2; d++)
        if (wall_ns[d])
            atomic_store(&lane->wall_ns[d], wall_ns[d]);

    atomic_store(&lane->first_rows, rows);
}

static bool lane_create(struct bench *bench, struct lane *lane, const struct cox_policy *policy)
{
    struct cox_session_params params = bench->session;

    params.devices = "#0,#1";
    params.custom_policy = policy;
    params.report = on_report;
    params.report_user = lane;
    cox_status status = bench_session_create(bench->runtime, &params, &lane->session);

    return bench_good(status, "session");
}

static bool lane_frame(struct bench *bench, struct lane *lane, double *ns)
{
    const struct work_constants constants = work_constants_of(&bench->shape);
    const struct cox_frame frame = {.buffers = bench->buffers, .constants = &constants};
    uint64_t begin = now_ns();
    cox_status status = cox_session_run(lane->session, &frame);
    *ns = (double)(now_ns() - begin);

    return bench_good(status, "frame");
}

static bool sweep_frame(struct bench *bench, uint32_t first_rows, double *ns)
{
    split_sweep_set(first_rows);
    return lane_frame(bench, &bench->sweep, ns);
}

/* --- measuring --- */

/* Rows of the first device if device `d` works alone. */
static uint32_t alone_rows(int d)
{
    return d == 0 ? ROWS : 0;
}

/* Measure each device alone, in turn; medians. */
static bool measure_alone(struct bench *bench, double *ns)
{
    double values[2][CALIBRATIONS];

    for (int i = 0; i < CALIBRATIONS; i++)
        for (int d = 0; d < 2; d++)
            if (!sweep_frame(bench, alone_rows(d), &values[d][i]))
                return false;

    for (int d = 0; d < 2; d++)
        ns[d] = quantile_of(values[d], CALIBRATIONS, 0.5);

    return true;
}

/* Choose the work so that a balanced frame takes frame_target_ns, and the rows that balance it. */
static bool calibrate(struct bench *bench)
{
    double ns[2];

    bench->shape.work = 64;
    for (int step = 0; step < 6; step++) {
        if (!measure_alone(bench, ns))
            return false;
        double together = 1.0 / (1.0 / ns[0] + 1.0 / ns[1]);
        if (together > 0.9 * frame_target_ns && together < 1.2 * frame_target_ns)
            break;
        double work = bench->shape.work * frame_target_ns / together;
        bench->shape.work = (int32_t)fmin(fmax(work, 1), 1e7);
    }

    /* Both devices may be slower together, by different factors. */
    double share = ns[1] / (ns[0] + ns[1]);
    for (int step = 0; step < 3; step++) {
        double values[2][CALIBRATIONS], ignored;
        bench->balance = (uint32_t)(share * ROWS + 0.5);
        for (int i = 0; i < CALIBRATIONS; i++) {
            if (!sweep_frame(bench, bench->balance, &ignored))
                return false;
            for (int d = 0; d < 2; d++)
                values[d][i] = (double)atomic_load(&bench->sweep.wall_ns[d]);
        }
        double per_row[2] = {quantile_of(values[0], CALIBRATIONS, 0.5) / bench->balance,
                             quantile_of(values[1], CALIBRATIONS, 0.5) / (ROWS - bench->balance)};
        share = per_row[1] / (per_row[0] + per_row[1]);
    }

    return true;
}

static bool calibrate_quietly(struct bench *bench)
{
    do {
        quiet_begin(&bench->quiet);
        if (!calibrate(bench))
            return false;
    } while (!quiet_keep(&bench->quiet));

    return true;
}

static uint32_t static_rows(const struct bench *bench, int index)
{
    int rows = (int)bench->balance + offsets[index];

    if (rows < 1)
        return 1;
    if (rows > ROWS - 1)
        return ROWS - 1;

    return (uint32_t)rows;
}

static bool contestant_frame(struct bench *bench, int who, uint32_t round)
{
    double *ns = &bench->values[who][round];

    if (who < STATIC)
        return sweep_frame(bench, static_rows(bench, who), ns);
    if (who == ALONE_0 || who == ALONE_1)
        return sweep_frame(bench, alone_rows(who - ALONE_0), ns);

    struct lane *lane = who == POLICY ? &bench->policy : &bench->blind;
    if (!lane_frame(bench, lane, ns))
        return false;

    uint32_t *count = &bench->share_count[who - POLICY];
    if (*count < bench->rounds)
        bench->shares[who - POLICY][(*count)++] = atomic_load(&lane->first_rows);

    return true;
}

static bool run_rounds(struct bench *bench)
{
    /* These have no divisor in common with CONTESTANTS, so the order changes from round to
     * round. */
    static const uint32_t strides[] = {1, 2, 4, 5, 8, 10, 11, 13, 16, 17, 19, 20};
    _Static_assert(CONTESTANTS == 21, "other strides are needed");

    /* The first use of a split creates its band objects. */
    for (int i = 0; i < STATIC; i++) {
        double ignored;
        if (!sweep_frame(bench, static_rows(bench, i), &ignored))
            return false;
    }

    for (uint32_t round = 0; round < bench->rounds;) {
        quiet_begin(&bench->quiet);
        uint32_t stride = strides[round % (sizeof strides / sizeof strides[0])];
        for (uint32_t i = 0; i < CONTESTANTS; i++)
            if (!contestant_frame(bench, (int)((round + i * stride) % CONTESTANTS), round))
                return false;
        round += quiet_keep(&bench->quiet);
    }

    return true;
}

/* --- results --- */

enum { ORACLE_MS, POLICY_MS, ALONE_0_MS, ALONE_1_MS, EFFICIENCY, EXCESS, SPANS };

struct span {
    double value, low, high; /* of all frames; minimum and maximum of the blocks */
};

struct result {
    int oracle; /* index of the static split */
    struct span spans[SPANS];
    double static_ms[STATIC];
    double smooth_ms[STATIC], smooth_least_ms; /* the sweep without noise, to judge single splits */
    double policy_p99_ms, oracle_p99_ms;
    uint32_t settled[2]; /* UINT32_MAX = never */
    uint32_t changes[2], late_changes[2];
    uint32_t usual_rows;
    double others; /* processors used by other programs */
    bool same_output;
};

static double block_median(const struct bench *bench, int who, uint32_t from, uint32_t to,
                           double *scratch)
{
    return median_of(bench->values[who] + from, to - from, scratch);
}

/* Weighted means of five neighbours, 1 2 3 2 1. */
static void smooth(struct result *r)
{
    for (int i = 0; i < STATIC; i++) {
        double sum = 0, weights = 0;
        for (int j = i - 2; j <= i + 2; j++) {
            if (j < 0 || j >= STATIC)
                continue;
            double weight = 3 - abs(i - j);
            sum += weight * r->static_ms[j];
            weights += weight;
        }
        r->smooth_ms[i] = sum / weights;
        if (i == 0 || r->smooth_ms[i] < r->smooth_least_ms)
            r->smooth_least_ms = r->smooth_ms[i];
    }
}

/* Time of a split by the smoothed sweep, between its points; infinite outside. */
static double swept_ms(const struct bench *bench, const struct result *r, uint32_t rows)
{
    for (int i = 0; i < STATIC; i++) {
        uint32_t at = static_rows(bench, i);
        if (at == rows)
            return r->smooth_ms[i];
        if (i > 0 && rows < at && rows > static_rows(bench, i - 1)) {
            uint32_t before = static_rows(bench, i - 1);
            double t = (double)(rows - before) / (at - before);
            return r->smooth_ms[i - 1] + t * (r->smooth_ms[i] - r->smooth_ms[i - 1]);
        }
    }

    return INFINITY;
}

/* Find the first of SETTLED_FRAMES frames in a row whose split is within the bar of the best one,
 * by the smoothed sweep. */
static void settle(const struct bench *bench, struct result *r, int which)
{
    const uint32_t *shares = bench->shares[which];
    uint32_t good = 0;

    r->settled[which] = UINT32_MAX;
    for (uint32_t f = 0; f < bench->share_count[which]; f++) {
        if (swept_ms(bench, r, shares[f]) <= bar_oracle * r->smooth_least_ms)
            good++;
        else
            good = 0;
        if (good == SETTLED_FRAMES && r->settled[which] == UINT32_MAX)
            r->settled[which] = f + 1 - SETTLED_FRAMES;
        if (f > 0 && shares[f] != shares[f - 1]) {
            r->changes[which]++;
            r->late_changes[which] += f > bar_frames;
        }
    }
}

/* The number of rows that the first device had most often. */
static uint32_t usual_rows(const uint32_t *shares, uint32_t count)
{
    uint32_t frames[ROWS + 1] = {0}, usual = 0;
    for (uint32_t f = 0; f < count; f++)
        if (++frames[shares[f]] > frames[usual])
            usual = shares[f];
    return usual;
}

static void widen(struct span *span, double value, bool first)
{
    if (first)
        span->low = span->high = value;
    span->low = fmin(span->low, value);
    span->high = fmax(span->high, value);
}

/* Find out whether the policy's split and one device alone give the same bits. */
static bool compare_output(struct bench *bench, bool *same)
{
    size_t bytes = bench->shape.rows * bench->shape.pitch_bytes;
    void *out = cox_buffer_data(bench->buffers[1]), *alone = malloc(bytes);
    double ignored;

    if (!alone)
        return bench_fail("out of memory");

    bool good = sweep_frame(bench, ROWS, &ignored);
    if (good) {
        memcpy(alone, out, bytes);
        memset(out, 0, bytes);
        good = lane_frame(bench, &bench->policy, &ignored);
        *same = good && memcmp(alone, out, bytes) == 0;
    }

    free(alone);
    return good;
}

/* The figures of frames `from` to `to`; the policy's first `skip` frames do not count. */
static void find_values(const struct bench *bench, const struct result *r, uint32_t from,
                        uint32_t to, uint32_t skip, double *scratch, double values[SPANS])
{
    uint32_t late = from;

    if (from < skip && skip < to)
        late = skip;

    values[ORACLE_MS] = block_median(bench, r->oracle, from, to, scratch) / 1e6;
    values[POLICY_MS] = block_median(bench, POLICY, late, to, scratch) / 1e6;
    values[ALONE_0_MS] = block_median(bench, ALONE_0, from, to, scratch) / 1e6;
    values[ALONE_1_MS] = block_median(bench, ALONE_1, from, to, scratch) / 1e6;
    values[EFFICIENCY] = 1.0 / (values[POLICY_MS] *
                                (1.0 / values[ALONE_0_MS] + 1.0 / values[ALONE_1_MS]));
    values[EXCESS] = values[POLICY_MS] / values[ORACLE_MS];
}

static void evaluate(struct bench *bench, struct result *r, double *scratch)
{
    uint32_t n = bench->rounds, skip = n / 4;
    double values[SPANS];

    if (bar_frames < skip)
        skip = bar_frames;

    for (int i = 0; i < STATIC; i++) {
        r->static_ms[i] = block_median(bench, i, 0, n, scratch) / 1e6;
        if (r->static_ms[i] < r->static_ms[r->oracle])
            r->oracle = i;
    }

    for (uint32_t b = 0; b < BLOCKS; b++) {
        find_values(bench, r, n * b / BLOCKS, n * (b + 1) / BLOCKS, skip, scratch, values);
        for (int i = 0; i < SPANS; i++)
            widen(&r->spans[i], values[i], b == 0);
    }

    find_values(bench, r, 0, n, skip, scratch, values);
    for (int i = 0; i < SPANS; i++)
        r->spans[i].value = values[i];

    smooth(r);
    settle(bench, r, 0);
    settle(bench, r, 1);
    r->usual_rows = usual_rows(bench->shares[0], bench->share_count[0]);
    r->others = quiet_others(&bench->quiet);
    r->policy_p99_ms = quantile_of(bench->values[POLICY] + skip, n - skip, 0.99) / 1e6;
    r->oracle_p99_ms = quantile_of(bench->values[r->oracle], n, 0.99) / 1e6;
}

static bool meets(const struct result *r)
{
    /* At the end of the sweep the best split may be outside of it. */
    const bool inside = r->oracle > 0 && r->oracle < STATIC - 1;

    return inside && r->spans[POLICY_MS].value >= bar_frame_ms &&
           r->spans[EFFICIENCY].value >= bar_efficiency && r->spans[EXCESS].value <= bar_oracle &&
           r->settled[0] <= bar_frames && r->settled[1] <= bar_frames && r->same_output;
}

/* --- output --- */

static void print_settled(const struct result *r, int which, const char *how)
{
    if (r->settled[which] == UINT32_MAX)
        printf("  %s: never; bar %u frames: MISSED\n", how, bar_frames);
    else
        printf("  %s: after %u frames; bar %u: %s (%u changes of the split, %u of them after frame "
               "%u)\n",
               how, r->settled[which], bar_frames, bench_verdict(r->settled[which] <= bar_frames),
               r->changes[which], r->late_changes[which], bar_frames);
}

static void print_sweep(const struct bench *bench, const struct result *r)
{
    printf("  static splits, rows of device 0: ms\n   ");
    for (int i = 0; i < STATIC; i++) {
        if (i > 0)
            putchar(',');
        if (i > 0 && i % 6 == 0)
            printf("\n   ");
        printf(" %u: %.3f", static_rows(bench, i), r->static_ms[i]);
        if (i == r->oracle)
            printf(" (oracle)");
    }

    putchar('\n');
}

static void print_text(const struct bench_options *options, const struct machine *machine,
                       const struct bench *bench, const struct result *r)
{
    const double works[2] = {1, options->ratio};
    struct cox_session_info info;

    cox_session_info(bench->policy.session, &info);
    bench_print_machine(machine);

    for (int d = 0; d < 2; d++)
        printf("device %d: %s (%s %s), %u compute units, %s memory, work x %g\n", d,
               bench->devices[d].name, bench->devices[d].platform, bench->devices[d].driver,
               bench->devices[d].compute_units, cox_memory_mode_name(bench->devices[d].mode),
               works[d]);

    printf("frames of %u rows x %u float4, granule %u, policy %s; %u rounds, each with one "
           "frame of every split;\n"
           "median times from submission to result, in brackets the least and greatest of "
           "%d blocks\n",
           bench->shape.rows, bench->shape.columns, info.row_alignment, info.policy, bench->rounds,
           BLOCKS);
    bench_print_quiet(&bench->quiet, "rounds");
    putchar('\n');
    for (int d = 0; d < 2; d++)
        printf("  device %d alone  %8.3f ms  [%.3f, %.3f]\n", d, r->spans[ALONE_0_MS + d].value,
               r->spans[ALONE_0_MS + d].low, r->spans[ALONE_0_MS + d].high);

    print_sweep(bench, r);
    printf("  oracle          %8.3f ms  [%.3f, %.3f], p99 %.3f\n", r->spans[ORACLE_MS].value,
           r->spans[ORACLE_MS].low, r->spans[ORACLE_MS].high, r->oracle_p99_ms);
    printf("  %-14s  %8.3f ms  [%.3f, %.3f], p99 %.3f; usually %u rows on device 0\n\n",
           info.policy, r->spans[POLICY_MS].value, r->spans[POLICY_MS].low,
           r->spans[POLICY_MS].high, r->policy_p99_ms, r->usual_rows);
    printf("  frame time %.2f ms; at least %.0f: %s\n", r->spans[POLICY_MS].value, bar_frame_ms,
           bench_verdict(r->spans[POLICY_MS].value >= bar_frame_ms));
    printf("  efficiency %.3f [%.3f, %.3f]; bar %.2f: "
           "%s\n",
           r->spans[EFFICIENCY].value, r->spans[EFFICIENCY].low, r->spans[EFFICIENCY].high,
           bar_efficiency, bench_verdict(r->spans[EFFICIENCY].value >= bar_efficiency));
    printf("  T / T_oracle %.3f [%.3f, %.3f]; bar %.2f: "
           "%s\n",
           r->spans[EXCESS].value, r->spans[EXCESS].low, r->spans[EXCESS].high, bar_oracle,
           bench_verdict(r->spans[EXCESS].value <= bar_oracle));
    if (r->oracle == 0 || r->oracle == STATIC - 1)
        printf("  the oracle is at the end of the sweep, so T / T_oracle is unreliable: MISSED\n");
    print_settled(r, 0, "converged, from a normal start");
    print_settled(r, 1, "converged, from an even split");
    printf("  output: %s\n", r->same_output ? "the same bits" : "DIFFERENT");
}

static void json_span(struct json *json, const char *key, const struct span *span)
{
    json_member_object(json, key, true);
    json_member_number(json, "value", span->value);
    json_member_number(json, "block_min", span->low);
    json_member_number(json, "block_max", span->high);
    json_close_object(json);
}

static void json_settled(struct json *json, const char *key, uint32_t frames)
{
    json_key(json, key);
    if (frames == UINT32_MAX)
        json_null(json);
    else
        json_unsigned(json, frames);
}

static void print_json(const struct bench_options *options, const struct machine *machine,
                       const struct bench *bench, const struct result *r)
{
    struct cox_session_info info;

    cox_session_info(bench->policy.session, &info);
    struct json json;
    json_report_begin(&json, "split", machine);
    json_member_array(&json, "devices", true);
    for (int d = 0; d < 2; d++)
        json_string(&json, bench->devices[d].name);
    json_close_array(&json);
    json_member_number(&json, "work_ratio", options->ratio);
    json_member_string(&json, "policy", info.policy);
    json_member_unsigned(&json, "rows", bench->shape.rows);
    json_member_unsigned(&json, "granule", info.row_alignment);
    json_member_unsigned(&json, "rounds", bench->rounds);
    json_member_number(&json, "others_cpus", r->others);
    json_member_unsigned(&json, "rounds_again", bench->quiet.again);
    json_span(&json, "device_0_alone_ms", &r->spans[ALONE_0_MS]);
    json_span(&json, "device_1_alone_ms", &r->spans[ALONE_1_MS]);
    json_member_array(&json, "static", false);

    for (int i = 0; i < STATIC; i++) {
        json_open_object(&json, true);
        json_member_unsigned(&json, "device_0_rows", static_rows(bench, i));
        json_member_number(&json, "ms", r->static_ms[i]);
        json_close_object(&json);
    }

    json_close_array(&json);
    json_member_unsigned(&json, "oracle_rows", static_rows(bench, r->oracle));
    json_span(&json, "oracle_ms", &r->spans[ORACLE_MS]);
    json_span(&json, "policy_ms", &r->spans[POLICY_MS]);
    json_member_unsigned(&json, "policy_rows", r->usual_rows);
    json_span(&json, "efficiency", &r->spans[EFFICIENCY]);
    json_span(&json, "t_over_oracle", &r->spans[EXCESS]);
    json_settled(&json, "converged_after_frames", r->settled[0]);
    json_settled(&json, "converged_after_frames_from_even", r->settled[1]);
    json_member_unsigned(&json, "split_changes", r->changes[0]);
    json_member_unsigned(&json, "same_output", r->same_output);
    json_member_unsigned(&json, "met", meets(r));
    json_report_end(&json);
}

static bool prepare(struct bench *bench, const struct bench_options *options)
{
    const char *devices = "cpu:2x1";

    if (options->devices)
        devices = options->devices;

    cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                                              .log = bench_log},
                                           &bench->runtime);
    if (status)
        return bench_fail("devices '%s': %s", devices, cox_status_text(status));
    if (cox_runtime_device_count(bench->runtime) < 2)
        return bench_fail("--devices '%s': two devices are needed", devices);

    for (uint32_t d = 0; d < 2; d++)
        cox_runtime_device_info(bench->runtime, d, &bench->devices[d]);

    bench->shape = (struct work_shape){
        .columns = COLUMNS,
        .rows = ROWS,
        .work = 64,
        .pitch_bytes = cox_runtime_pitch_bytes(bench->runtime, (size_t)COLUMNS * WORK_ITEM_BYTES)};
    const int slow = options->ratio > 1 ? 1 : -1; /* -1 = no device has more work */
    work_pipeline_fill(&bench->pipeline, &bench->shape, slow, (int)options->ratio, &bench->session);

    quiet_start(&bench->quiet, options->quiet_s);
    bench->rounds = bench_value(options->frames, ROUNDS_DEFAULT);
    size_t n = bench->rounds;
    bench->memory = calloc(n * (CONTESTANTS + 1), sizeof *bench->memory);
    for (int i = 0; i < 2; i++)
        bench->shares[i] = calloc(n, sizeof *bench->shares[i]);
    if (!bench->memory || !bench->shares[0] || !bench->shares[1])
        return bench_fail("out of memory");

    for (int i = 0; i < CONTESTANTS; i++)
        bench->values[i] = bench->memory + n * (size_t)i;
    for (int i = 0; i < 2; i++) {
        status = cox_buffer_create(bench->runtime, bench->shape.rows * bench->shape.pitch_bytes,
                                   &bench->buffers[i]);
        if (!bench_good(status, "buffer"))
            return false;
    }

    work_input_fill(cox_buffer_data(bench->buffers[0]), &bench->shape);

    const struct cox_policy *policy = options->policies[0];
    if (!policy)
        policy = cox_policy_find(NULL);
    split_blind_use(policy);

    /* Start with the sweep: it calibrates the work that the warm-up of the other sessions
     * measures. */
    return lane_create(bench, &bench->sweep, &split_sweep_policy) && calibrate_quietly(bench) &&
           lane_create(bench, &bench->policy, policy) &&
           lane_create(bench, &bench->blind, &split_blind_policy);
}

bool bench_split(const struct bench_options *options, bool *met)
{
    if (options->policies[1])
        return bench_fail("--policy: split measures only one policy");

    struct machine machine;
    machine_read(&machine);
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return bench_fail("out of memory");

    struct result result = {0};
    bool good = prepare(bench, options) && run_rounds(bench) &&
                compare_output(bench, &result.same_output);
    if (good) {
        evaluate(bench, &result, bench->memory + (size_t)bench->rounds * CONTESTANTS);
        *met = meets(&result);
        if (options->json)
            print_json(options, &machine, bench, &result);
        else
            print_text(options, &machine, bench, &result);
    }

    bench_session_destroy(&bench->blind.session);
    bench_session_destroy(&bench->policy.session);
    bench_session_destroy(&bench->sweep.session);
    cox_buffer_destroy(&bench->buffers[0]);
    cox_buffer_destroy(&bench->buffers[1]);
    cox_runtime_destroy(&bench->runtime);
    free(bench->memory);
    free(bench->shares[0]);
    free(bench->shares[1]);
    free(bench);
    return good;
}
