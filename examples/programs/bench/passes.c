/* cox-bench passes: what passes cost and what they gain. Every entrant has a turn of a few frames
 * in each round, in an order that changes. Figures are medians of the rounds.
 *
 *   empty     a second pass of one row that does nothing: each device alone, with blocking frames
 *   blur      a separable blur as one pass (overlap), as two passes (exchange), and as two sessions
 *   guided    a guided filter, in passes
 *   placed    the blur with one device for each pass
 * SPDX-License-Identifier: Apache-2.0 */
#include "blur.h"
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "common/work.h"
#include "device_list.h"
#include "json_members.h"
#include "lines.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"
#include "plane.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, IN_FLIGHT = 3, SETS = IN_FLIGHT + 1, FRAMES_DEFAULT = 24 };
enum { IN, OUT, BETWEEN, BUFFERS }; /* of a set; BETWEEN is between two sessions */
/* With an H200, `adaptive` needs about 100 frames to find out that the CPU only slows it down. */
enum { LEARN_FRAMES = 150 };
enum { ENTRANTS_MAX = 5 * COX_DEVICES_MAX + 16, RESULTS_MAX = COX_DEVICES_MAX + 12 };

static const double bar_empty_us = 30; /* on a CPU */
static const double bar_efficiency = 0.93;
static const double bar_by_hand = 1.3;
static const double bar_placed = 0.95;
static const double bar_best = 0.99;

/* How the frames of an entrant run. */
enum way {
    STREAM,   /* one session, IN_FLIGHT frames in flight */
    BLOCKING, /* one session, one frame after the other, timed one by one */
    BY_HAND,  /* two sessions, one after the other for each frame */
    CHAINED,  /* two sessions with frames in flight, which use the buffers in turn */
};

struct entrant {
    char name[80];
    enum way way;
    cox_session *sessions[2];
    uint32_t session_count;
    uint32_t reads[2], writes[2]; /* the sessions' buffers */
    bool of_all;                  /* a policy splits the rows over all devices */
    const void *constants;
    double ns[ROUNDS]; /* of a frame: the mean of the turn; BLOCKING: the median */
};

struct result {
    char name[120];
    const char *unit;
    double value, low, high;
    double bar; /* 0 = no bar */
    bool at_most;
};

struct bench {
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    uint32_t width, height, frames;
    /* Shared by all entrants, so that caches favour none. */
    cox_buffer *buffers[SETS][BUFFERS];
    struct entrant entrants[ENTRANTS_MAX];
    uint32_t entrant_count;
    struct result results[RESULTS_MAX];
    uint32_t result_count;
    double *times;
    atomic_int failed; /* a status */
    struct quiet quiet;
};

/* --- entrants --- */

static const char *name_of(const struct bench *bench, uint32_t device)
{
    if (device >= bench->device_count)
        return "all devices";

    return bench->devices[device].name;
}

static struct entrant *add(struct bench *bench, enum way way, const char *what, uint32_t device)
{
    struct entrant *entrant = &bench->entrants[bench->entrant_count++];
    char who[25];

    entrant->way = way;
    entrant->of_all = device >= bench->device_count && bench->device_count > 1;
    snprintf(who, sizeof who, "%.24s", name_of(bench, device));
    snprintf(entrant->name, sizeof entrant->name, "%.50s, %s", what, who);

    return entrant;
}

/* Open a session of the entrant on one device, or on all of them if `device` is their number. */
static bool open_session(struct bench *bench, struct entrant *entrant,
                         const struct cox_session_params *from, uint32_t device, uint32_t reads,
                         uint32_t writes)
{
    const struct bench_device_list devices = bench_device_list(&device, 1);
    const uint32_t s = entrant->session_count++;
    struct cox_session_params params = *from;

    params.in_flight = IN_FLIGHT;
    if (device < bench->device_count)
        params.devices = devices.text;
    entrant->reads[s] = reads;
    entrant->writes[s] = writes;
    const cox_status status = bench_session_create(bench->runtime, &params, &entrant->sessions[s]);

    return bench_good(status, entrant->name);
}

/* --- turns --- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct bench *bench = user;
    (void)frame;
    if (status)
        atomic_store(&bench->failed, status);
}

static bool do_frame(struct bench *bench, const struct entrant *entrant, uint32_t session,
                     uint32_t set)
{
    cox_buffer *const *buffers = bench->buffers[set];
    const struct cox_frame frame = {
        .buffers = COX_BUFFERS(buffers[entrant->reads[session]], buffers[entrant->writes[session]]),
        .constants = entrant->constants};
    cox_status status;
    if (entrant->way == BLOCKING || entrant->way == BY_HAND)
        status = cox_session_run(entrant->sessions[session], &frame);
    else
        status = cox_session_submit(entrant->sessions[session], &frame, on_done, bench);

    return bench_good(status, entrant->name);
}

static bool take_turn(struct bench *bench, struct entrant *entrant, uint32_t frames, double *ns)
{
    const uint64_t begin = now_ns();

    for (uint32_t f = 0; f < frames; f++) {
        const uint64_t start = now_ns();
        for (uint32_t s = 0; s < entrant->session_count; s++)
            if (!do_frame(bench, entrant, s, f % SETS))
                return false;
        bench->times[f] = (double)(now_ns() - start);
    }

    for (uint32_t s = 0; s < entrant->session_count; s++)
        cox_session_wait(entrant->sessions[s]);
    *ns = (double)(now_ns() - begin) / frames;
    if (entrant->way == BLOCKING)
        *ns = quantile_of(bench->times, frames, 0.5);
    const cox_status status = (cox_status)atomic_load(&bench->failed);

    return bench_good(status, entrant->name);
}

static bool run_rounds(struct bench *bench)
{
    const uint32_t count = bench->entrant_count;
    double ignored;

    /* Compile, warm up, and let policies learn. */
    for (uint32_t e = 0; e < count; e++) {
        uint32_t turns = 2;
        if (bench->entrants[e].of_all)
            turns += LEARN_FRAMES / bench->frames;
        for (uint32_t i = 0; i < turns; i++)
            if (!take_turn(bench, &bench->entrants[e], bench->frames, &ignored))
                return false;
    }

    for (uint32_t round = 0; round < ROUNDS;) {
        quiet_begin(&bench->quiet);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = (i + round) % count;
            if (round % 2)
                at = count - 1 - at;

            /* The first frames of a turn fill the pipeline. */
            struct entrant *entrant = &bench->entrants[at];
            if (!take_turn(bench, entrant, IN_FLIGHT, &ignored) ||
                !take_turn(bench, entrant, bench->frames, &entrant->ns[round]))
                return false;
        }
        round += quiet_keep(&bench->quiet);
    }

    return true;
}

static double median(const struct entrant *entrant)
{
    double scratch[ROUNDS];
    return median_of(entrant->ns, ROUNDS, scratch);
}

/* Keep the median, minimum and maximum of the values, which it sorts. */
static void add_result(struct bench *bench, const char *name, const char *unit,
                       double values[ROUNDS], double bar, bool at_most)
{
    struct result *result = &bench->results[bench->result_count++];

    snprintf(result->name, sizeof result->name, "%s", name);
    result->unit = unit;
    result->value = quantile_of(values, ROUNDS, 0.5);
    result->low = values[0];
    result->high = values[ROUNDS - 1];
    result->bar = bar;
    result->at_most = at_most;
}

/* --- an empty second pass --- */

static const char empty_source[] = "kernel void empty_kernel(global const float4 *in)\n{\n}\n";

static bool add_empty(struct bench *bench, const struct work_shape *shape,
                      const struct work_constants *constants)
{
    static const struct cox_argument whole[] = {{.name = "in", .whole = true}, {0}};
    struct work_pipeline pipeline;
    struct cox_session_params one = {.policy = "single"};

    work_pipeline_fill(&pipeline, shape, -1, 1, &one);
    const struct cox_pass passes[] = {
        one.passes[0],
        {.source = empty_source, .name = "nothing", .columns = 1, .rows = 1, .arguments = whole},
        {0}};
    struct cox_session_params two = one;
    two.passes = passes;

    static const char *const names[2] = {"without", "with an empty pass"};
    const struct cox_session_params *const forms[2] = {&one, &two};
    for (uint32_t d = 0; d < bench->device_count; d++)
        for (int form = 0; form < 2; form++) {
            struct entrant *entrant = add(bench, BLOCKING, names[form], d);
            entrant->constants = constants;
            if (!open_session(bench, entrant, forms[form], d, IN, OUT))
                return false;
        }

    return true;
}

/* `first`: the first entrant of the group. */
static void judge_empty(struct bench *bench, const struct entrant *first)
{
    for (uint32_t d = 0; d < bench->device_count; d++, first += 2) {
        char name[120];
        double more_us[ROUNDS], bar = 0;

        for (int r = 0; r < ROUNDS; r++)
            more_us[r] = (first[1].ns[r] - first[0].ns[r]) / 1e3;
        snprintf(name, sizeof name, "an empty second pass, %.40s", name_of(bench, d));
        if (bench->devices[d].type == COX_DEVICE_CPU)
            bar = bar_empty_us;
        add_result(bench, name, "us", more_us, bar, true);
    }
}

/* --- filters --- */

static void make_blur(const struct bench *bench, uint32_t radius, bool fused,
                      struct bench_blur *blur)
{
    const size_t pitch_bytes = cox_runtime_pitch_bytes(bench->runtime,
                                                       bench->width * sizeof(float));

    bench_blur_make(blur, bench->width, bench->height, pitch_bytes, radius, fused);
}

static bool make_guided(const struct bench *bench, cox_pipeline **pipeline,
                        struct cox_constants *constants)
{
    const size_t pitch_bytes = cox_runtime_pitch_bytes(bench->runtime, bench->width);
    const struct cox_filter_shape shape = {.width = bench->width,
                                           .height = bench->height,
                                           .sample = COX_FILTER_8,
                                           .in_pitch_bytes = pitch_bytes,
                                           .out_pitch_bytes = pitch_bytes,
                                           .radius_x = 8,
                                           .radius_y = 8,
                                           .form = COX_FILTER_EXCHANGE};

    cox_status status = cox_filter_guided(&shape, pipeline);
    if (status == COX_OK)
        status = cox_filter_guided_prepare(&shape, 0.01f, constants);

    return bench_good(status, "guided filter");
}

static bool add_stream(struct bench *bench, const char *what,
                       const struct cox_session_params *session, const void *constants,
                       uint32_t device)
{
    struct entrant *entrant = add(bench, STREAM, what, device);
    entrant->constants = constants;
    return open_session(bench, entrant, session, device, IN, OUT);
}

/* Open a session with one of two passes. */
static bool open_pass(struct bench *bench, struct entrant *entrant, const struct bench_blur *both,
                      uint32_t pass, uint32_t device)
{
    static const uint32_t reads[2] = {IN, BETWEEN}, writes[2] = {BETWEEN, OUT};
    struct bench_blur half;

    entrant->constants = &both->constants;
    bench_blur_make_half(&half, both, pass);

    return open_session(bench, entrant, &half.session, device, reads[pass], writes[pass]);
}

/* Add the two passes as two sessions on all devices, with a buffer of the application between
 * them. */
static bool add_sessions(struct bench *bench, const char *what, enum way way,
                         const struct bench_blur *both)
{
    struct entrant *entrant = add(bench, way, what, bench->device_count);

    return open_pass(bench, entrant, both, 0, bench->device_count) &&
           open_pass(bench, entrant, both, 1, bench->device_count);
}

/* Add each device alone if there are several, then all of them. */
static bool add_all(struct bench *bench, const char *what, const struct cox_session_params *session,
                    const void *constants)
{
    for (uint32_t d = bench->device_count == 1; d <= bench->device_count; d++)
        if (!add_stream(bench, what, session, constants, d))
            return false;
    return true;
}

static bool add_blur(struct bench *bench, const char *const names[4],
                     const struct bench_blur *overlap, const struct bench_blur *exchange)
{
    return add_all(bench, names[0], &overlap->session, &overlap->constants) &&
           add_all(bench, names[1], &exchange->session, &exchange->constants) &&
           add_sessions(bench, names[2], BY_HAND, exchange) &&
           add_sessions(bench, names[3], CHAINED, exchange);
}

/* How many entrants of add_all are one device alone. */
static uint32_t alone_count(const struct bench *bench)
{
    if (bench->device_count == 1)
        return 0;

    return bench->device_count;
}

/* Compare all devices with the best one alone, and with the sum of their speeds. */
static void judge_all(struct bench *bench, const char *what, const struct entrant *first,
                      double bar_of_efficiency)
{
    const uint32_t alone = alone_count(bench);
    char name[120];
    double best[ROUNDS], efficiency[ROUNDS];

    if (!alone)
        return;

    for (int r = 0; r < ROUNDS; r++) {
        double least = first[0].ns[r], sum = 0;
        for (uint32_t d = 0; d < alone; d++) {
            sum += 1 / first[d].ns[r];
            least = fmin(least, first[d].ns[r]);
        }
        best[r] = least / first[alone].ns[r];
        efficiency[r] = 1 / (sum * first[alone].ns[r]);
    }

    snprintf(name, sizeof name, "%.50s: all devices over the best one alone", what);
    add_result(bench, name, "times", best, bar_best, false);
    snprintf(name, sizeof name, "%.50s: all devices over the sum of their speeds", what);
    add_result(bench, name, "times", efficiency, bar_of_efficiency, false);
}

static void judge_blur(struct bench *bench, const char *const names[4], const struct entrant *first)
{
    const uint32_t alone = alone_count(bench);
    const struct entrant *overlap = first, *exchange = first + alone + 1,
                         *by_hand = exchange + alone + 1;
    const double bars[2] = {bar_by_hand, 0};
    char name[120];
    double ratios[2][ROUNDS];

    judge_all(bench, names[0], overlap, bar_efficiency);
    judge_all(bench, names[1], exchange, bar_efficiency);

    for (int r = 0; r < ROUNDS; r++) {
        const double least = fmin(overlap[alone].ns[r], exchange[alone].ns[r]);
        ratios[0][r] = by_hand[0].ns[r] / least;
        ratios[1][r] = by_hand[1].ns[r] / least;
    }

    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "the faster form over %.60s", names[2 + k]);
        add_result(bench, name, "times", ratios[k], bars[k], false);
    }
}

/* --- a device for each pass --- */

static bool add_placed(struct bench *bench, struct bench_blur *placed)
{
    static const char *const names[2] = {"first pass alone", "second pass alone"};
    static const char *const devices[2] = {"#0", "#1"};

    make_blur(bench, 15, false, placed);

    for (uint32_t p = 0; p < 2; p++) {
        struct entrant *entrant = add(bench, STREAM, names[p], p);
        if (!open_pass(bench, entrant, placed, p, p))
            return false;
    }

    for (uint32_t p = 0; p < 2; p++)
        placed->passes[p].devices = devices[p];

    return add_stream(bench, "each pass on a device", &placed->session, &placed->constants,
                      bench->device_count);
}

static void judge_placed(struct bench *bench, const struct entrant *first)
{
    double ratios[ROUNDS];
    for (int r = 0; r < ROUNDS; r++)
        ratios[r] = fmax(first[0].ns[r], first[1].ns[r]) / first[2].ns[r];
    add_result(bench, "each pass on a device, over the slower one's alone", "times", ratios,
               bar_placed, false);
}

/* --- the whole --- */

static bool meets(const struct result *result)
{
    if (result->bar <= 0)
        return true;
    if (result->at_most)
        return result->value <= result->bar;

    return result->value >= result->bar;
}

static void print_text(const struct bench *bench, const struct machine *machine)
{
    bench_print_machine(machine);
    printf("passes: filters of %u x %u; %d rounds of %u frames of each after %d, in "
           "turns; %d in flight\n",
           bench->width, bench->height, ROUNDS, bench->frames, IN_FLIGHT, IN_FLIGHT);
    bench_print_quiet(&bench->quiet, "rounds");
    printf("\n%-72s %12s\n", "", "ms per frame");
    for (uint32_t e = 0; e < bench->entrant_count; e++)
        printf("  %-70s %12.3f\n", bench->entrants[e].name, median(&bench->entrants[e]) / 1e6);

    putchar('\n');
    for (uint32_t i = 0; i < bench->result_count; i++) {
        const struct result *r = &bench->results[i];
        printf("%s: %.3f %s (%.3f .. %.3f)", r->name, r->value, r->unit, r->low, r->high);
        if (r->bar > 0)
            printf(", at %s %.2f: %s", r->at_most ? "most" : "least", r->bar,
                   bench_verdict(meets(r)));
        putchar('\n');
    }
}

static void print_json(const struct bench *bench, const struct machine *machine)
{
    struct json json;

    json_report_begin(&json, "passes", machine);
    json_member_number(&json, "others_cpus", quiet_others(&bench->quiet));
    json_member_unsigned(&json, "width", bench->width);
    json_member_unsigned(&json, "height", bench->height);
    json_member_array(&json, "entrants", false);

    for (uint32_t e = 0; e < bench->entrant_count; e++) {
        json_open_object(&json, true);
        json_member_string(&json, "name", bench->entrants[e].name);
        json_member_number(&json, "ms", median(&bench->entrants[e]) / 1e6);
        json_close_object(&json);
    }

    json_close_array(&json);
    json_member_array(&json, "results", false);

    for (uint32_t i = 0; i < bench->result_count; i++) {
        const struct result *r = &bench->results[i];
        json_open_object(&json, true);
        json_member_string(&json, "name", r->name);
        json_member_number(&json, r->unit, r->value);
        json_member_number(&json, "least", r->low);
        json_member_number(&json, "most", r->high);
        json_member_bool(&json, "met", meets(r));
        json_close_object(&json);
    }

    json_close_array(&json);
    json_report_end(&json);
}

static const char *const blur_names[2][4] = {
    {"blur of radius 3, overlap", "blur of radius 3, exchange",
     "blur of radius 3, two sessions one after the other",
     "blur of radius 3, two sessions chained"},
    {"blur of radius 15, overlap", "blur of radius 15, exchange",
     "blur of radius 15, two sessions one after the other",
     "blur of radius 15, two sessions chained"}};

/* What the sessions run, and their constants. */
struct parts {
    struct work_shape work;
    struct work_constants work_constants;
    struct bench_blur blurs[2][2]; /* by radius; overlap, exchange */
    struct bench_blur placed;
    cox_pipeline *guided;
    struct cox_constants guided_constants;
};

static bool measure(struct bench *bench, struct parts *parts)
{
    static const uint32_t radii[2] = {3, 15};
    const struct entrant *empty, *blurs[2], *guided, *placed = NULL;

    empty = &bench->entrants[bench->entrant_count];
    bool good = add_empty(bench, &parts->work, &parts->work_constants);
    for (int k = 0; k < 2 && good; k++) {
        blurs[k] = &bench->entrants[bench->entrant_count];
        make_blur(bench, radii[k], true, &parts->blurs[k][0]);
        make_blur(bench, radii[k], false, &parts->blurs[k][1]);
        good = add_blur(bench, blur_names[k], &parts->blurs[k][0], &parts->blurs[k][1]);
    }

    guided = &bench->entrants[bench->entrant_count];
    good = good && make_guided(bench, &parts->guided, &parts->guided_constants) &&
           add_all(bench, "guided filter",
                   &(const struct cox_session_params){.pipeline = parts->guided},
                   &parts->guided_constants);
    if (bench->device_count > 1) {
        placed = &bench->entrants[bench->entrant_count];
        good = good && add_placed(bench, &parts->placed);
    }

    if (!good || !run_rounds(bench))
        return false;
    judge_empty(bench, empty);
    judge_blur(bench, blur_names[0], blurs[0]);
    judge_blur(bench, blur_names[1], blurs[1]);
    judge_all(bench, "guided filter", guided, 0);
    if (placed)
        judge_placed(bench, placed);

    return true;
}

static bool prepare(struct bench *bench, struct parts *parts)
{
    enum { SIDE = 256 };
    parts->work = (struct work_shape){
        .columns = SIDE,
        .rows = SIDE,
        .work = 16,
        .pitch_bytes = cox_runtime_pitch_bytes(bench->runtime, SIDE * WORK_ITEM_BYTES)};
    parts->work_constants = work_constants_of(&parts->work);
    size_t bytes = cox_runtime_pitch_bytes(bench->runtime, bench->width * sizeof(float)) *
                   bench->height;
    if (bytes < parts->work.pitch_bytes * SIDE)
        bytes = parts->work.pitch_bytes * SIDE;
    for (int s = 0; s < SETS; s++) {
        for (int b = 0; b < BUFFERS; b++) {
            const cox_status status = cox_buffer_create(bench->runtime, bytes,
                                                        &bench->buffers[s][b]);
            if (!bench_good(status, NULL))
                return false;
        }
        bench_plane_fill(cox_buffer_data(bench->buffers[s][0]), bytes / sizeof(float));
    }

    bench->times = calloc(2 * (size_t)bench->frames, sizeof *bench->times);

    return bench->times || bench_fail("out of memory");
}

static bool run(struct bench *bench, struct parts *parts, const struct bench_options *options,
                bool *met)
{
    struct machine machine;

    machine_read(&machine);
    if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &bench->runtime))
        return false;

    bench->device_count = cox_runtime_device_count(bench->runtime);
    for (uint32_t d = 0; d < bench->device_count; d++)
        cox_runtime_device_info(bench->runtime, d, &bench->devices[d]);

    bench->width = bench_value(options->width, 1920);
    bench->height = bench_value(options->height, 1080);
    bench->frames = bench_value(options->frames, FRAMES_DEFAULT);
    quiet_start(&bench->quiet, options->quiet_s);
    if (!prepare(bench, parts) || !measure(bench, parts))
        return false;
    *met = true;
    for (uint32_t i = 0; i < bench->result_count; i++)
        *met &= meets(&bench->results[i]);
    if (options->json)
        print_json(bench, &machine);
    else
        print_text(bench, &machine);

    return true;
}

bool bench_passes(const struct bench_options *options, bool *met)
{
    struct bench *bench = calloc(1, sizeof *bench);
    struct parts *parts = calloc(1, sizeof *parts);

    *met = false;
    if (!bench || !parts) {
        free(bench);
        free(parts);
        return bench_fail("out of memory");
    }

    const bool good = run(bench, parts, options, met);
    for (uint32_t e = 0; e < bench->entrant_count; e++)
        for (int s = 0; s < 2; s++)
            bench_session_destroy(&bench->entrants[e].sessions[s]);

    for (int b = 0; b < SETS * BUFFERS; b++)
        cox_buffer_destroy(&bench->buffers[b / BUFFERS][b % BUFFERS]);

    cox_pipeline_destroy(&parts->guided);
    cox_runtime_destroy(&bench->runtime);
    free(bench->times);
    free(bench);
    free(parts);
    return good;
}
