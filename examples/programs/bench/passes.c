/* cox-bench passes: what passes cost and what they are worth. Every entrant has a turn of a few frames in each round,
 * in an order that changes; figures are medians of the rounds.
 *
 *   empty     each device alone, one blocking frame after the other: a second pass over one row that does nothing
 *   blur      a separable blur as one pass (overlap), as two (exchange), and as two sessions by hand
 *   guided    a guided filter, in passes
 *   placed    the passes of the blur on a device each
 * SPDX-License-Identifier: Apache-2.0 */
#include "shared.h"
#include "common/json.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, IN_FLIGHT = 3, SETS = IN_FLIGHT + 1, FRAMES_DEFAULT = 24, BUFFERS = 3 };
/* `adaptive` beside an H200 needs about 100 to find out that the processor is in its way. */
enum { LEARN_FRAMES = 150 };
enum { ENTRANTS_MAX = 5 * COX_DEVICES_MAX + 16, RESULTS_MAX = COX_DEVICES_MAX + 12 };

static const double bar_empty_us = 30; /* of a processor */
static const double bar_efficiency = 0.93;
static const double bar_by_hand = 1.3;
static const double bar_placed = 0.95;
static const double bar_best = 0.99;

/* How an entrant's frames are done. */
enum way {
    STREAM,   /* one session, IN_FLIGHT frames under way */
    BLOCKING, /* one session, one frame after the other; timed each for itself */
    BY_HAND,  /* two sessions, one after the other for each frame */
    CHAINED,  /* two sessions, frames of both under way: they have their buffers in turn */
};

struct entrant {
    char name[80];
    enum way way;
    cox_session *sessions[2];
    uint32_t buffer_count;
    bool between; /* what is between two passes is a buffer, not scratch */
    bool of_all;  /* devices: a policy shares rows out */
    const void *params;
    double ns[ROUNDS]; /* a frame: mean of the turn; BLOCKING: median */
};

struct result {
    char name[120];
    const char *unit;
    double value, low, high;
    double bar; /* 0 = none */
    bool at_most;
};

struct bench {
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    uint32_t width, height, frames;
    cox_buffer *buffers
        [SETS]
        [BUFFERS]; /* input, output, what is between: the same for all, so that caches favour none */
    struct entrant entrants[ENTRANTS_MAX];
    uint32_t entrant_count;
    struct result results[RESULTS_MAX];
    uint32_t result_count;
    double *times;
    atomic_int failed; /* a status */
    struct quiet quiet;
};

/* ---- entrants ---- */

static const char *name_of(const struct bench *bench, uint32_t device)
{
    return device < bench->device_count ? bench->devices[device].name : "all devices";
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

/* A session of the entrant's on one device, or on all if `device` is their number. */
static bool open_session(struct bench *bench, struct entrant *entrant,
                         const struct cox_session_params *from, uint32_t device)
{
    struct cox_session_params params = *from;
    params.in_flight = IN_FLIGHT;
    params.device_count = device < bench->device_count;
    params.devices = &device;
    entrant->buffer_count = params.binding_count;
    const cox_status status = cox_session_create(bench->runtime, &params,
                                                 &entrant->sessions[entrant->sessions[0] != NULL]);
    return status == COX_OK || bench_fail("%s: %s", entrant->name, cox_status_text(status));
}

/* ---- turns ---- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct bench *bench = user;
    (void)frame;
    if (status)
        atomic_store(&bench->failed, status);
}

static bool do_frame(struct bench *bench, const struct entrant *entrant, cox_session *session,
                     uint32_t set)
{
    cox_buffer *buffers[COX_BINDINGS_MAX] = {bench->buffers[set][0], bench->buffers[set][1],
                                             entrant->between ? bench->buffers[set][2] : NULL};
    const struct cox_frame frame = {
        .buffers = buffers, .buffer_count = entrant->buffer_count, .params = entrant->params};
    const bool waits = entrant->way == BLOCKING || entrant->way == BY_HAND;
    const cox_status status = waits ? cox_session_run(session, &frame)
                                    : cox_session_submit(session, &frame, on_done, bench);
    return status == COX_OK || bench_fail("%s: %s", entrant->name, cox_status_text(status));
}

static bool take_turn(struct bench *bench, struct entrant *entrant, uint32_t frames, double *ns)
{
    const uint64_t begin = now_ns();
    for (uint32_t f = 0; f < frames; f++) {
        const uint64_t start = now_ns();
        for (int s = 0; s < 2 && entrant->sessions[s]; s++)
            if (!do_frame(bench, entrant, entrant->sessions[s], f % SETS))
                return false;
        bench->times[f] = (double)(now_ns() - start);
    }
    for (int s = 0; s < 2 && entrant->sessions[s]; s++)
        cox_session_wait(entrant->sessions[s]);
    *ns = (double)(now_ns() - begin) / frames;
    if (entrant->way == BLOCKING)
        *ns = figures_quantile(bench->times, frames, 0.5);
    const cox_status status = (cox_status)atomic_load(&bench->failed);
    return status == COX_OK || bench_fail("%s: %s", entrant->name, cox_status_text(status));
}

static bool run_rounds(struct bench *bench)
{
    const uint32_t count = bench->entrant_count;
    double ignored;
    for (uint32_t e = 0; e < count; e++) { /* compilation, warm-up, what a policy learns at first */
        const uint32_t turns = bench->entrants[e].of_all ? LEARN_FRAMES / bench->frames + 2 : 2;
        for (uint32_t i = 0; i < turns; i++)
            if (!take_turn(bench, &bench->entrants[e], bench->frames, &ignored))
                return false;
    }
    for (uint32_t round = 0; round < ROUNDS;) {
        quiet_begin(&bench->quiet);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t at = (i + round) % count;
            struct entrant *entrant = &bench->entrants[round % 2 ? count - 1 - at : at];
            if (!take_turn(bench, entrant, IN_FLIGHT, &ignored) || /* to have it going */
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
    return figures_median_of(entrant->ns, ROUNDS, scratch);
}

/* Keeps the median of the rounds' values, with the least and the most; sorts them. */
static void add_result(struct bench *bench, const char *name, const char *unit,
                       double values[ROUNDS], double bar, bool at_most)
{
    struct result *result = &bench->results[bench->result_count++];
    snprintf(result->name, sizeof result->name, "%s", name);
    result->unit = unit;
    result->value = figures_quantile(values, ROUNDS, 0.5);
    result->low = values[0];
    result->high = values[ROUNDS - 1];
    result->bar = bar;
    result->at_most = at_most;
}

/* ---- an empty second pass ---- */

static const char empty_source[] = "kernel void empty_kernel(global const float *in)\n{\n}\n";

static bool add_empty(struct bench *bench, const struct work_shape *shape,
                      const struct work_params *params, struct work_pipeline *pipeline)
{
    static const struct cox_variant variant = {.source = empty_source};
    static const struct cox_arg args[] = {COX_ARG_BUFFER(0)};
    static const struct cox_stage stage = {.kernel = "empty_kernel",
                                           .columns = 1,
                                           .variant_count = 1,
                                           .variants = &variant,
                                           .arg_count = 1,
                                           .args = args};
    static const struct cox_use uses[] = {{.binding = 0, .contract = COX_WHOLE}};
    struct cox_session_params one = {.policy = "single"};
    work_pipeline_fill(pipeline, shape, -1, 1, &one);
    const struct cox_pass passes[] = {
        {.name = "work", .stage_count = one.stage_count, .stages = one.stages},
        {.name = "nothing",
         .rows = 1,
         .use_count = 1,
         .uses = uses,
         .stage_count = 1,
         .stages = &stage}};
    struct cox_session_params two = one;
    two.stage_count = 0;
    two.stages = NULL;
    two.pass_count = 2;
    two.passes = passes;
    for (uint32_t d = 0; d < bench->device_count; d++)
        for (int second = 0; second < 2; second++) {
            struct entrant *entrant = add(bench, BLOCKING,
                                          second ? "with an empty pass" : "without", d);
            entrant->params = params;
            if (!open_session(bench, entrant, second ? &two : &one, d))
                return false;
        }
    return true;
}

/* `first`: the entrants of the group begin there. */
static void judge_empty(struct bench *bench, const struct entrant *first)
{
    for (uint32_t d = 0; d < bench->device_count; d++, first += 2) {
        char name[120];
        double more_us[ROUNDS];
        for (int r = 0; r < ROUNDS; r++)
            more_us[r] = (first[1].ns[r] - first[0].ns[r]) / 1e3;
        snprintf(name, sizeof name, "an empty second pass, %.40s", name_of(bench, d));
        add_result(bench, name, "us", more_us,
                   bench->devices[d].type == COX_DEVICE_CPU ? bar_empty_us : 0, true);
    }
}

/* ---- filters ---- */

/* A filter's session and its parameters. */
struct filter {
    struct cox_filter_shape shape;
    struct cox_filter_storage storage;
    struct cox_session_params session;
    struct cox_filter_params params;
};

static struct cox_filter_shape plane(const struct bench *bench, enum cox_filter_sample sample,
                                     uint32_t radius, enum cox_filter_form form)
{
    const size_t bytes = sample == COX_FILTER_FLOAT ? 4 : 1;
    const size_t pitch_bytes = cox_runtime_pitch_bytes(bench->runtime, bench->width * bytes);
    return (struct cox_filter_shape){.width = bench->width,
                                     .height = bench->height,
                                     .sample = sample,
                                     .in_pitch_bytes = pitch_bytes,
                                     .out_pitch_bytes = pitch_bytes,
                                     .radius_x = radius,
                                     .radius_y = radius,
                                     .form = form};
}

static bool make_blur(const struct bench *bench, uint32_t radius, enum cox_filter_form form,
                      struct filter *filter)
{
    filter->shape = plane(bench, COX_FILTER_FLOAT, radius, form);
    cox_status status = cox_filter_separable(&filter->shape, &filter->storage, &filter->session);
    if (status == COX_OK)
        status = bench_blur_prepare(&filter->shape, &filter->params);
    return status == COX_OK || bench_fail("blur: %s", cox_status_text(status));
}

static bool make_guided(const struct bench *bench, struct filter *filter)
{
    filter->shape = plane(bench, COX_FILTER_8, 8, COX_FILTER_EXCHANGE);
    cox_status status = cox_filter_guided(&filter->shape, &filter->storage, &filter->session);
    if (status == COX_OK)
        status = cox_filter_guided_prepare(&filter->shape, 0.01f, &filter->params);
    return status == COX_OK || bench_fail("guided filter: %s", cox_status_text(status));
}

static bool add_stream(struct bench *bench, const char *what, const struct filter *filter,
                       uint32_t device)
{
    struct entrant *entrant = add(bench, STREAM, what, device);
    entrant->params = &filter->params;
    return open_session(bench, entrant, &filter->session, device);
}

/* One of two passes as a session of its own. */
static bool open_pass(struct bench *bench, struct entrant *entrant,
                      const struct cox_session_params *both, int pass, uint32_t device)
{
    struct cox_session_params params = *both;
    struct cox_binding bindings[COX_BINDINGS_MAX];
    memcpy(bindings, both->bindings, both->binding_count * sizeof *bindings);
    bindings[2].scratch = false;
    params.bindings = bindings;
    params.pass_count = 1;
    params.passes = &both->passes[pass];
    entrant->between = true;
    return open_session(bench, entrant, &params, device);
}

/* The two passes as two sessions, what is between in a buffer of the application's. `devices`: of each. */
static bool add_sessions(struct bench *bench, const char *what, enum way way,
                         const struct filter *filter, const uint32_t devices[2])
{
    struct entrant *entrant = add(bench, way, what, devices[0]);
    entrant->params = &filter->params;
    for (int s = 0; s < 2; s++)
        if (!open_pass(bench, entrant, &filter->session, s, devices[s]))
            return false;
    return true;
}

/* Each device alone, then all: 0 to device_count. */
static bool add_all(struct bench *bench, const char *what, const struct filter *filter)
{
    for (uint32_t d = bench->device_count == 1; d <= bench->device_count; d++)
        if (!add_stream(bench, what, filter, d))
            return false;
    return true;
}

static bool add_blur(struct bench *bench, const char *const names[4], const struct filter *overlap,
                     const struct filter *exchange)
{
    const uint32_t all[2] = {bench->device_count, bench->device_count};
    return add_all(bench, names[0], overlap) && add_all(bench, names[1], exchange) &&
           add_sessions(bench, names[2], BY_HAND, exchange, all) &&
           add_sessions(bench, names[3], CHAINED, exchange, all);
}

/* Entrants of add_all that are one device alone. */
static uint32_t alone_count(const struct bench *bench)
{
    return bench->device_count == 1 ? 0 : bench->device_count;
}

/* All devices over the best one alone, and over all their speeds together. */
static void judge_all(struct bench *bench, const char *what, const struct entrant *first,
                      double bar_of_efficiency)
{
    const uint32_t alone = alone_count(bench);
    char name[120];
    double best[ROUNDS], efficiency[ROUNDS];
    for (int r = 0; r < ROUNDS && alone; r++) {
        double least = 0, sum = 0;
        for (uint32_t d = 0; d < alone; d++) {
            sum += 1 / first[d].ns[r];
            least = d == 0 || first[d].ns[r] < least ? first[d].ns[r] : least;
        }
        best[r] = least / first[alone].ns[r];
        efficiency[r] = 1 / (sum * first[alone].ns[r]);
    }
    if (!alone)
        return;
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
    char name[120];
    double ratios[2][ROUNDS];
    judge_all(bench, names[0], overlap, bar_efficiency);
    judge_all(bench, names[1], exchange, bar_efficiency);
    for (int r = 0; r < ROUNDS; r++) {
        const double one = overlap[alone].ns[r], two = exchange[alone].ns[r],
                     least = one < two ? one : two;
        ratios[0][r] = by_hand[0].ns[r] / least;
        ratios[1][r] = by_hand[1].ns[r] / least;
    }
    for (int k = 0; k < 2; k++) {
        snprintf(name, sizeof name, "the quicker form over %.60s", names[2 + k]);
        add_result(bench, name, "times", ratios[k], k == 0 ? bar_by_hand : 0, false);
    }
}

/* ---- a device for each pass ---- */

struct placed {
    struct filter filter;
    struct cox_pass passes[2];
    uint32_t devices[2];
};

static bool add_placed(struct bench *bench, struct placed *placed)
{
    if (!make_blur(bench, 15, COX_FILTER_EXCHANGE, &placed->filter))
        return false;
    for (uint32_t p = 0; p < 2; p++) {
        struct entrant *entrant = add(bench, STREAM,
                                      p == 0 ? "first pass alone" : "second pass alone", p);
        entrant->params = &placed->filter.params;
        if (!open_pass(bench, entrant, &placed->filter.session, (int)p, p))
            return false;
        placed->devices[p] = p;
        placed->passes[p] = placed->filter.session.passes[p];
        placed->passes[p].device_count = 1;
        placed->passes[p].devices = &placed->devices[p];
    }
    placed->filter.session.passes = placed->passes;
    return add_stream(bench, "each pass on a device", &placed->filter, bench->device_count);
}

static void judge_placed(struct bench *bench, const struct entrant *first)
{
    double ratios[ROUNDS];
    for (int r = 0; r < ROUNDS; r++)
        ratios[r] = (first[0].ns[r] > first[1].ns[r] ? first[0].ns[r] : first[1].ns[r]) /
                    first[2].ns[r];
    add_result(bench, "each pass on a device, over the slower one's alone", "times", ratios,
               bar_placed, false);
}

/* ---- the whole ---- */

static bool meets(const struct result *result)
{
    return result->bar <= 0 ||
           (result->at_most ? result->value <= result->bar : result->value >= result->bar);
}

static void print_text(const struct bench *bench, const struct machine *machine)
{
    printf("machine: %s, %u hardware threads, %s, load %.2f\n", machine->cpu, machine->cpus,
           machine->system, machine->load);
    printf(
        "passes: filters of %u x %u; %d rounds of %u frames of each after %d, in turn; %d in flight\n",
        bench->width, bench->height, ROUNDS, bench->frames, IN_FLIGHT, IN_FLIGHT);
    if (quiet_others(&bench->quiet) >= 0)
        printf(
            "other programs used %.2f processors meanwhile; %u disturbed rounds were done again\n",
            quiet_others(&bench->quiet), bench->quiet.again);
    if (quiet_busy(&bench->quiet))
        printf("The machine was BUSY: the figures say little.\n");
    printf("\n%-72s %12s\n", "", "ms a frame");
    for (uint32_t e = 0; e < bench->entrant_count; e++)
        printf("  %-70s %12.3f\n", bench->entrants[e].name, median(&bench->entrants[e]) / 1e6);
    putchar('\n');
    for (uint32_t i = 0; i < bench->result_count; i++) {
        const struct result *r = &bench->results[i];
        printf("%s: %.3f %s (%.3f .. %.3f)", r->name, r->value, r->unit, r->low, r->high);
        if (r->bar > 0)
            printf(", at %s %.2f: %s", r->at_most ? "most" : "least", r->bar,
                   meets(r) ? "met" : "MISSED");
        putchar('\n');
    }
}

static void print_json(const struct bench *bench, const struct machine *machine)
{
    struct json json;
    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_key(&json, "benchmark");
    json_string(&json, "passes");
    machine_json(machine, &json);
    json_key(&json, "others_cpus");
    json_number(&json, quiet_others(&bench->quiet));
    json_key(&json, "width");
    json_unsigned(&json, bench->width);
    json_key(&json, "height");
    json_unsigned(&json, bench->height);
    json_key(&json, "entrants");
    json_open_array(&json, false);
    for (uint32_t e = 0; e < bench->entrant_count; e++) {
        json_open_object(&json, true);
        json_key(&json, "name");
        json_string(&json, bench->entrants[e].name);
        json_key(&json, "ms");
        json_number(&json, median(&bench->entrants[e]) / 1e6);
        json_close_object(&json);
    }
    json_close_array(&json);
    json_key(&json, "results");
    json_open_array(&json, false);
    for (uint32_t i = 0; i < bench->result_count; i++) {
        const struct result *r = &bench->results[i];
        json_open_object(&json, true);
        json_key(&json, "name");
        json_string(&json, r->name);
        json_key(&json, r->unit);
        json_number(&json, r->value);
        json_key(&json, "least");
        json_number(&json, r->low);
        json_key(&json, "most");
        json_number(&json, r->high);
        json_key(&json, "met");
        json_bool(&json, meets(r));
        json_close_object(&json);
    }
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
}

static const char *const blur_names[2][4] = {
    {"blur of radius 3, overlap", "blur of radius 3, exchange",
     "blur of radius 3, two sessions one after the other",
     "blur of radius 3, two sessions chained"},
    {"blur of radius 15, overlap", "blur of radius 15, exchange",
     "blur of radius 15, two sessions one after the other",
     "blur of radius 15, two sessions chained"}};

/* What the sessions are made of; larger than a stack should be. */
struct parts {
    struct work_shape work;
    struct work_params work_params;
    struct work_pipeline pipeline;
    struct filter blurs[2][2]; /* by radius and form */
    struct filter guided;
    struct placed placed;
};

static bool measure(struct bench *bench, struct parts *parts)
{
    static const uint32_t radii[2] = {3, 15};
    const struct entrant *empty, *blurs[2], *guided, *placed = NULL;
    empty = &bench->entrants[bench->entrant_count];
    bool good = add_empty(bench, &parts->work, &parts->work_params, &parts->pipeline);
    for (int k = 0; k < 2 && good; k++) {
        blurs[k] = &bench->entrants[bench->entrant_count];
        good = make_blur(bench, radii[k], COX_FILTER_OVERLAP, &parts->blurs[k][0]) &&
               make_blur(bench, radii[k], COX_FILTER_EXCHANGE, &parts->blurs[k][1]) &&
               add_blur(bench, blur_names[k], &parts->blurs[k][0], &parts->blurs[k][1]);
    }
    guided = &bench->entrants[bench->entrant_count];
    good = good && make_guided(bench, &parts->guided) &&
           add_all(bench, "guided filter", &parts->guided);
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
    parts->work_params = work_params_of(&parts->work);
    size_t bytes = cox_runtime_pitch_bytes(bench->runtime, bench->width * sizeof(float)) *
                   bench->height;
    if (bytes < parts->work.pitch_bytes * SIDE)
        bytes = parts->work.pitch_bytes * SIDE;
    for (int s = 0; s < SETS; s++) {
        for (int b = 0; b < BUFFERS; b++) {
            const cox_status status = cox_buffer_create(bench->runtime, bytes,
                                                        &bench->buffers[s][b]);
            if (status)
                return bench_fail("%s", cox_status_text(status));
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
    const cox_status status =
        cox_runtime_create(&bench->runtime, &(const struct cox_runtime_params){
                                                .devices = options->devices, .log = bench_log});
    if (status)
        return bench_fail("%s", cox_status_text(status));
    bench->device_count = cox_runtime_device_count(bench->runtime);
    for (uint32_t d = 0; d < bench->device_count; d++)
        cox_runtime_device_info(bench->runtime, d, &bench->devices[d]);
    bench->width = options->width ? options->width : 1920;
    bench->height = options->height ? options->height : 1080;
    bench->frames = options->frames ? options->frames : FRAMES_DEFAULT;
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
            cox_session_destroy(&bench->entrants[e].sessions[s]);
    for (int b = 0; b < SETS * BUFFERS; b++)
        cox_buffer_destroy(&bench->buffers[b / BUFFERS][b % BUFFERS]);
    cox_runtime_destroy(&bench->runtime);
    free(bench->times);
    free(bench);
    free(parts);
    return good;
}
