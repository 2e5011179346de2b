/* cox-bench overhead: the library on one device against hand-written OpenCL, in turn in one
 * process.
 *
 * Each form runs several frames before the next form has its turn. A GPU needs 140 us to switch
 * contexts (NVIDIA H200), so the first frames of a turn are not timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "device_list.h"
#include "hand.h"
#include "heap.h"
#include "json_members.h"
#include "lines.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAD = 2, TURN = 8 }; /* frames of a turn: not timed, timed */
enum {
    STRETCH_NS = 300000000,
    BLOCKS = 10,
    WARM_TURNS = 4,
    HEAP_FRAMES = 300,
    CALLS_FRAMES = 200,
    FRAMES_DEFAULT = 2000
};

static const double bar_p50_us = 15.0;
static const double bar_p99_ratio = 2.0;
static const double bar_noticed_us = 30.0; /* where a core is reserved */

static const struct {
    uint32_t columns, rows;
    int32_t work;
} sizes[] = {{64, 64, 16}, {256, 256, 16}, {480, 1080, 16}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* What is timed: nanoseconds from the first call. */
enum {
    LIBRARY_RUN,
    LIBRARY_RUN_NOTICED,
    LIBRARY_TAKEN,
    LIBRARY_ENDED,
    LIBRARY_NOTICED,
    LIBRARY_CALLBACK,
    LIBRARY_VISIBLE,
    HAND_FINISH,
    HAND_CALLBACK,
    HAND_CALLBACK_VISIBLE,
    HAND_LEAN,
    SERIES
};

/* The forms that take turns: the hand-written ones, and the library's. */
enum { RUN = BENCH_HAND_FORMS, SUBMIT, TAKERS };

static const struct {
    const char *name, *key;
    uint32_t form;
} series[SERIES] = {
    [LIBRARY_RUN] = {"library, blocking: visible", "library_blocking_visible", RUN},
    [LIBRARY_RUN_NOTICED] = {"library, blocking: noticed after", "library_blocking_noticed_after",
                             RUN},
    [LIBRARY_TAKEN] = {"library, asynchronous: scheduler has it", "library_async_taken", SUBMIT},
    [LIBRARY_ENDED] = {"library, asynchronous: ended", "library_async_ended", SUBMIT},
    [LIBRARY_NOTICED] = {"library, asynchronous: noticed after", "library_async_noticed_after",
                         SUBMIT},
    [LIBRARY_CALLBACK] = {"library, asynchronous: callback", "library_async_callback", SUBMIT},
    [LIBRARY_VISIBLE] = {"library, asynchronous: visible", "library_async_visible", SUBMIT},
    [HAND_FINISH] = {"hand-written, blocking: visible", "hand_blocking_visible", BENCH_HAND_FINISH},
    [HAND_CALLBACK] = {"hand-written, asynchronous: callback", "hand_async_callback",
                       BENCH_HAND_CALLBACK},
    [HAND_CALLBACK_VISIBLE] = {"hand-written, asynchronous: visible", "hand_async_visible",
                               BENCH_HAND_CALLBACK},
    [HAND_LEAN] = {"hand-written, without mapping: visible", "hand_unmapped_visible",
                   BENCH_HAND_LEAN},
};

struct result {
    struct cox_device_info device;
    struct work_shape shape;
    uint32_t frames;
    bool has[SERIES];
    double p50_us[SERIES], p99_us[SERIES];
    double more_us;                   /* blocking, p50: the library minus hand-written */
    double more_low_us, more_high_us; /* the same for the blocks */
    double p99_ratio;
    double callback_more_us;
    bool reserved;         /* a core feeds the devices */
    bool noticed;          /* the device's clock gives the ends of at least 99 % of the frames */
    double clock_error_us; /* the largest error of that clock */
    bool same_output;
    bool heap_counted;
    uint64_t heap_library;                   /* in HEAP_FRAMES frames */
    double heap_others, heap_others_by_hand; /* per frame */
    struct bench_calls calls, calls_by_hand; /* zeros if not asked for */
    const char *forms[BENCH_HAND_FORMS];
};

/* Everything for the measurement of one shape on one device. */
struct stand {
    struct work_shape shape;
    struct work_constants constants;
    struct work_pipeline pipeline;
    cox_session *session;
    cox_buffer *buffers[3]; /* ends with NULL */
    /* Each form and the library have their own buffers, so that caches favour none. */
    struct bench_hand *hand[BENCH_HAND_FORMS];
    /* Written by the scheduler thread. The runtime and this program use the same clock. */
    _Atomic uint64_t start_ns, end_ns, noticed_ns, done_ns;
    _Atomic uint64_t clock_error_ns; /* the largest of all frames */
    _Atomic uint32_t unknown_ends;   /* frames whose end the device's clock did not give */
    atomic_int status;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct stand *stand = user;
    (void)frame;
    atomic_store(&stand->done_ns, now_ns());
    atomic_store(&stand->status, status);
}

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct stand *stand = user;

    if (report->warmup || report->shadow)
        return;
    atomic_store(&stand->start_ns, report->total.start_ns);
    atomic_store(&stand->end_ns, report->total.end_ns);
    atomic_store(&stand->noticed_ns, report->bands[0].noticed_ns);

    const uint64_t error_ns = report->bands[0].clock_error_ns;
    if (error_ns == UINT64_MAX)
        atomic_fetch_add(&stand->unknown_ends, 1);
    else if (error_ns > atomic_load(&stand->clock_error_ns))
        atomic_store(&stand->clock_error_ns, error_ns);
}

static double noticed_after(const struct stand *stand)
{
    return (double)atomic_load(&stand->noticed_ns) - (double)atomic_load(&stand->end_ns);
}

/* The blocking form: cox_session_run. */
static bool library_run(struct stand *stand, double *ns)
{
    const struct cox_frame frame = {.buffers = stand->buffers, .constants = &stand->constants};
    uint64_t begin = now_ns();
    cox_status status = cox_session_run(stand->session, &frame);
    ns[LIBRARY_RUN] = (double)(now_ns() - begin);
    ns[LIBRARY_RUN_NOTICED] = noticed_after(stand);

    return bench_good(status, "a frame of the library");
}

/* The asynchronous form: cox_session_submit with a callback, then cox_session_wait. */
static bool library_frame(struct stand *stand, double *ns)
{
    const struct cox_frame frame = {.buffers = stand->buffers, .constants = &stand->constants};
    uint64_t begin = now_ns();
    cox_status status = cox_session_submit(stand->session, &frame, on_done, stand);

    if (status == COX_OK) {
        cox_session_wait(stand->session);
        ns[LIBRARY_VISIBLE] = (double)(now_ns() - begin);
        ns[LIBRARY_TAKEN] = (double)(atomic_load(&stand->start_ns) - begin);
        ns[LIBRARY_ENDED] = (double)(atomic_load(&stand->end_ns) - begin);
        ns[LIBRARY_NOTICED] = noticed_after(stand);
        ns[LIBRARY_CALLBACK] = (double)(atomic_load(&stand->done_ns) - begin);
        status = (cox_status)atomic_load(&stand->status);
    }

    return bench_good(status, "a frame of the library");
}

static bool stand_create(struct stand *stand, cox_runtime *runtime, uint32_t device,
                         const struct cox_device_info *info)
{
    const struct bench_device_list devices = bench_device_list(&device, 1);
    struct cox_session_params params = {
        .policy = "single", .devices = devices.text, .report = on_report, .report_user = stand};

    work_pipeline_fill(&stand->pipeline, &stand->shape, -1, 1, &params);
    stand->constants = work_constants_of(&stand->shape);
    size_t bytes = stand->shape.rows * stand->shape.pitch_bytes;
    cox_status status = bench_session_create(runtime, &params, &stand->session);
    for (int i = 0; i < 2 && status == COX_OK; i++)
        status = cox_buffer_create(runtime, bytes, &stand->buffers[i]);
    if (!bench_good(status, info->name))
        return false;
    work_input_fill(cox_buffer_data(stand->buffers[0]), &stand->shape);
    for (int f = 0; f < BENCH_HAND_FORMS; f++) {
        stand->hand[f] = bench_hand_create(info, &stand->shape);
        if (!stand->hand[f])
            return false;
        work_input_fill(bench_hand_input(stand->hand[f]), &stand->shape);
    }

    return true;
}

static void stand_destroy(struct stand *stand)
{
    bench_session_destroy(&stand->session);
    cox_buffer_destroy(&stand->buffers[0]);
    cox_buffer_destroy(&stand->buffers[1]);
    for (int f = 0; f < BENCH_HAND_FORMS; f++)
        bench_hand_destroy(&stand->hand[f]);
}

/* A frame of one form. */
static bool frame_of(struct stand *stand, uint32_t form, double *ns)
{
    if (form == RUN)
        return library_run(stand, ns);
    if (form == SUBMIT)
        return library_frame(stand, ns);

    const struct bench_hand_times times = bench_hand_frame(stand->hand[form],
                                                           (enum bench_hand_form)form);
    if (form == BENCH_HAND_CALLBACK) {
        ns[HAND_CALLBACK_VISIBLE] = (double)times.visible_ns;
        ns[HAND_CALLBACK] = (double)times.callback_ns;
    } else {
        const int visible = form == BENCH_HAND_FINISH ? HAND_FINISH : HAND_LEAN;
        ns[visible] = (double)times.visible_ns;
    }

    return times.visible_ns != 0;
}

/* Run TURN frames of each form. The order changes, so that each form follows each other form in
 * turn. The times go to `values[series]` from index `at`; NULL = do not keep them. */
static bool round_of(struct stand *stand, uint32_t turn, double *const *values, uint32_t at)
{
    _Static_assert(TAKERS == 5, "the strides 1 to 4 have no divisor in common with 5");
    double ns[SERIES] = {0};
    for (uint32_t i = 0; i < TAKERS; i++) {
        const uint32_t form = (turn / 4 + i * (1 + turn % 4)) % TAKERS;
        if (form < BENCH_HAND_FORMS &&
            !bench_hand_has(stand->hand[form], (enum bench_hand_form)form))
            continue;
        for (uint32_t f = 0; f < LEAD + TURN; f++) {
            if (!frame_of(stand, form, ns))
                return false;
            for (int s = 0; values && f >= LEAD && s < SERIES; s++)
                if (series[s].form == form)
                    values[s][at + f - LEAD] = ns[s];
        }
    }

    return true;
}

/* Compute the result's figures from `values[series][frame]`, which it sorts. */
static void evaluate(struct result *result, double *values[SERIES], double *scratch)
{
    size_t count = result->frames, block = count / BLOCKS;

    for (uint32_t b = 0; b < BLOCKS && block > 0; b++) {
        double more = (median_of(values[LIBRARY_RUN] + b * block, block, scratch) -
                       median_of(values[HAND_FINISH] + b * block, block, scratch)) /
                      1e3;
        if (b == 0)
            result->more_low_us = result->more_high_us = more;
        result->more_low_us = fmin(result->more_low_us, more);
        result->more_high_us = fmax(result->more_high_us, more);
    }

    for (int s = 0; s < SERIES; s++) {
        result->p50_us[s] = quantile_of(values[s], count, 0.50) / 1e3;
        result->p99_us[s] = quantile_of(values[s], count, 0.99) / 1e3;
    }

    result->more_us = result->p50_us[LIBRARY_RUN] - result->p50_us[HAND_FINISH];
    result->callback_more_us = result->p50_us[LIBRARY_CALLBACK] - result->p50_us[HAND_CALLBACK];
    result->p99_ratio = result->p99_us[LIBRARY_RUN] / result->p99_us[HAND_FINISH];
}

/* Count the allocations of frames, first with the library, then with hand-written OpenCL. */
static bool count_heap(struct stand *stand, cox_runtime *runtime, struct result *result)
{
    if (!bench_heap_possible())
        return true;

    /* Check that the counter sees the library at all. */
    cox_buffer *control = NULL;
    bench_heap_start();
    cox_status status = cox_buffer_create(runtime, 4096, &control);
    struct bench_heap_count count = bench_heap_stop();
    cox_buffer_destroy(&control);
    result->heap_counted = status == COX_OK && count.library > 0;
    if (!result->heap_counted)
        return true;

    bench_heap_start();
    for (int i = 0; i < HEAP_FRAMES; i++) {
        double ignored[SERIES];
        if (!library_frame(stand, ignored))
            return false;
    }

    count = bench_heap_stop();
    result->heap_library = count.library;
    result->heap_others = (double)count.others / HEAP_FRAMES;

    bench_heap_start();
    for (int i = 0; i < HEAP_FRAMES; i++)
        if (bench_hand_frame(stand->hand[BENCH_HAND_FINISH], BENCH_HAND_FINISH).visible_ns == 0)
            return false;
    result->heap_others_by_hand = (double)bench_heap_stop().others / HEAP_FRAMES;

    return true;
}

/* Count the driver calls of the blocking forms. */
static bool count_calls(struct stand *stand, struct result *result)
{
    double ignored[SERIES];
    bool good = true;

    bench_calls_start(true);
    for (int i = 0; good && i < CALLS_FRAMES; i++)
        good = library_run(stand, ignored);
    result->calls = bench_calls_stop();

    bench_calls_start(true);
    for (int i = 0; good && i < CALLS_FRAMES; i++)
        good = bench_hand_frame(stand->hand[BENCH_HAND_FINISH], BENCH_HAND_FINISH).visible_ns != 0;
    result->calls_by_hand = bench_calls_stop();

    return good;
}

static bool same_output(const struct stand *stand)
{
    const char *ours = cox_buffer_data(stand->buffers[1]),
               *theirs = (const char *)bench_hand_output(stand->hand[BENCH_HAND_FINISH]);

    for (uint32_t r = 0; r < stand->shape.rows; r++)
        if (memcmp(ours + r * stand->shape.pitch_bytes, theirs + r * stand->shape.pitch_bytes,
                   (size_t)stand->shape.columns * WORK_ITEM_BYTES) != 0)
            return false;

    return true;
}

static bool measure(cox_runtime *runtime, uint32_t device, struct quiet *quiet, bool calls,
                    struct result *result)
{
    struct stand stand = {.shape = result->shape};
    double *memory = calloc((SERIES + 1) * (size_t)result->frames, sizeof *memory);
    double *values[SERIES] = {0};
    bool good = memory || bench_fail("out of memory");

    good = good && stand_create(&stand, runtime, device, &result->device);
    for (uint32_t i = 0; good && i < WARM_TURNS; i++)
        good = round_of(&stand, i, NULL, 0);

    atomic_store(&stand.clock_error_ns, 0);
    atomic_store(&stand.unknown_ends, 0);
    for (int s = 0; memory && s < SERIES; s++)
        values[s] = memory + (size_t)s * result->frames;

    /* Stretches are long enough to notice other programs. */
    for (uint32_t kept = 0; good && kept < result->frames;) {
        uint32_t i = kept;
        quiet_begin(quiet);
        uint64_t begin = now_ns();
        while (good && i < result->frames && now_ns() - begin < STRETCH_NS) {
            good = round_of(&stand, i / TURN, values, i);
            i += TURN;
        }
        if (quiet_keep(quiet))
            kept = i;
    }

    if (good) {
        for (int f = 0; f < BENCH_HAND_FORMS; f++)
            result->forms[f] = bench_hand_describe(stand.hand[f], (enum bench_hand_form)f);
        result->noticed = atomic_load(&stand.unknown_ends) <= result->frames / 100;
        result->clock_error_us = (double)atomic_load(&stand.clock_error_ns) / 1e3;
        for (int s = 0; s < SERIES; s++)
            result->has[s] = true;
        result->has[HAND_LEAN] = bench_hand_has(stand.hand[BENCH_HAND_LEAN], BENCH_HAND_LEAN);
        result->has[LIBRARY_RUN_NOTICED] = result->has[LIBRARY_NOTICED] = result->noticed;
        evaluate(result, values, memory + SERIES * (size_t)result->frames);
        good = count_heap(&stand, runtime, result) && (!calls || count_calls(&stand, result));
        result->same_output = same_output(&stand);
    }

    free(memory);
    stand_destroy(&stand);
    return good;
}

static bool meets_noticed(const struct result *r)
{
    return r->p99_us[LIBRARY_RUN_NOTICED] <= bar_noticed_us &&
           r->p99_us[LIBRARY_NOTICED] <= bar_noticed_us;
}

static bool meets(const struct result *r)
{
    return (!r->noticed || !r->reserved || meets_noticed(r)) && r->more_us <= bar_p50_us &&
           r->p99_ratio <= bar_p99_ratio && r->heap_counted && r->heap_library == 0 &&
           r->same_output;
}

static void text_result(const struct result *r)
{
    printf("\n%s (%s %s, %s), %s memory\n", r->device.name, r->device.platform, r->device.driver,
           cox_device_type_name(r->device.type), cox_memory_mode_name(r->device.mode));
    printf("  frames of %u rows x %u float4, %.0f KiB in and the same out; %u of each form, "
           "in turns\n",
           r->shape.rows, r->shape.columns, (double)(r->shape.rows * r->shape.pitch_bytes) / 1024,
           r->frames);
    printf("  %-40s %10s %10s\n", "us from submit", "p50", "p99");
    for (int s = 0; s < SERIES; s++)
        if (r->has[s])
            printf("  %-40s %10.1f %10.1f\n", series[s].name, r->p50_us[s], r->p99_us[s]);

    printf(
        "  blocking, p50 over hand-written: %+.1f us (%d blocks: %+.1f to %+.1f); bar +%.0f: %s\n",
        r->more_us, BLOCKS, r->more_low_us, r->more_high_us, bar_p50_us,
        bench_verdict(r->more_us <= bar_p50_us));
    printf("  blocking, p99 over hand-written: x %.2f; bar x %.0f: %s\n", r->p99_ratio,
           bar_p99_ratio, bench_verdict(r->p99_ratio <= bar_p99_ratio));
    printf("  asynchronous, p50 of the callback over the hand-written one: %+.1f us\n",
           r->callback_more_us);
    if (!r->noticed)
        printf("  noticed after its end: unknown, because the device's clock cannot be read\n");
    else if (r->reserved)
        printf("  noticed after its end, p99, by the device's clock (accurate to %.1f us): "
               "bar %.0f us: %s\n",
               r->clock_error_us, bar_noticed_us, bench_verdict(meets_noticed(r)));
    else
        printf("  noticed after its end, by the device's clock (accurate to %.1f us): no "
               "bar without a reserved core\n",
               r->clock_error_us);

    if (r->heap_counted)
        printf("  heap allocations of the library: %" PRIu64 " in %d frames; bar 0: %s\n"
               "  (drivers and this program: %.1f per frame with the library, %.1f by hand)\n",
               r->heap_library, HEAP_FRAMES, bench_verdict(r->heap_library == 0), r->heap_others,
               r->heap_others_by_hand);
    else
        printf("  heap allocations: this build cannot count them\n");

    if (bench_calls_sum(&r->calls, BENCH_CALL_COMMAND)) {
        bench_calls_print(&r->calls, "library, blocking", CALLS_FRAMES);
        bench_calls_print(&r->calls_by_hand, "hand-written, blocking", CALLS_FRAMES);
    }

    printf("  output: %s\n", r->same_output ? "the same bits" : "DIFFERENT");
}

static void json_result(struct json *json, const struct result *r)
{
    json_open_object(json, false);
    json_member_string(json, "device", r->device.name);
    json_member_string(json, "platform", r->device.platform);
    json_member_string(json, "driver", r->device.driver);
    json_member_string(json, "mode", cox_memory_mode_name(r->device.mode));
    json_member_unsigned(json, "rows", r->shape.rows);
    json_member_unsigned(json, "row_bytes", (uint64_t)r->shape.columns * WORK_ITEM_BYTES);
    json_member_unsigned(json, "frames", r->frames);

    for (int s = 0; s < SERIES; s++) {
        if (!r->has[s])
            continue;
        json_member_object(json, series[s].key, true);
        json_member_number(json, "p50_us", r->p50_us[s]);
        json_member_number(json, "p99_us", r->p99_us[s]);
        json_close_object(json);
    }

    json_member_number(json, "p50_more_us", r->more_us);
    member_range(json, "p50_more_us_blocks", r->more_low_us, r->more_high_us);
    json_member_number(json, "p99_ratio", r->p99_ratio);
    json_member_number(json, "callback_more_us", r->callback_more_us);
    member_known(json, "clock_error_us", r->noticed, r->clock_error_us);
    member_known(json, "library_allocations_per_frame", r->heap_counted,
                 (double)r->heap_library / HEAP_FRAMES);
    json_member_unsigned(json, "same_output", r->same_output);
    json_member_unsigned(json, "met", meets(r));
    json_close_object(json);
}

static void print_text(const struct machine *machine, const struct quiet *quiet,
                       const struct result *results, uint32_t count)
{
    bench_print_machine(machine);
    bench_print_quiet(quiet, "stretches");
    printf("hand-written, blocking: %s\n", results[0].forms[BENCH_HAND_FINISH]);
    printf("hand-written, asynchronous: %s\n", results[0].forms[BENCH_HAND_CALLBACK]);
    printf("hand-written, without mapping: %s\n", results[0].forms[BENCH_HAND_LEAN]);
    printf("heap: all calls of malloc, calloc, realloc and the aligned variants; a call "
           "counts for the library if its\n"
           "caller, outside the C library, is libcoxswain, libuv or hwloc\n");
    for (uint32_t i = 0; i < count; i++)
        text_result(&results[i]);
}

static void print_json(const struct machine *machine, const struct quiet *quiet,
                       const struct result *results, uint32_t count)
{
    struct json json;

    json_report_begin(&json, "overhead", machine);
    member_quiet(&json, "stretches_again", quiet);
    json_member_array(&json, "results", false);
    for (uint32_t i = 0; i < count; i++)
        json_result(&json, &results[i]);
    json_close_array(&json);
    json_report_end(&json);
}

bool bench_overhead(const struct bench_options *options, bool *met)
{
    struct machine machine;
    cox_runtime *runtime = NULL;

    machine_read(&machine);
    if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &runtime))
        return false;

    uint32_t devices = cox_runtime_device_count(runtime), count = 0;
    struct cox_host_info host;
    struct quiet quiet;
    cox_runtime_host_info(runtime, &host);
    quiet_start(&quiet, options->quiet_s);
    struct result *results = calloc(devices * (size_t)SIZES, sizeof *results);
    if (!results) {
        cox_runtime_destroy(&runtime);
        return bench_fail("out of memory");
    }

    bool good = true;
    *met = true;

    for (uint32_t d = 0; good && d < devices; d++) {
        for (uint32_t s = 0; good && s < SIZES; s++) {
            struct result *result = &results[count++];
            cox_runtime_device_info(runtime, d, &result->device);
            result->shape = (struct work_shape){
                .columns = sizes[s].columns,
                .rows = sizes[s].rows,
                .work = sizes[s].work,
                .pitch_bytes = cox_runtime_pitch_bytes(runtime,
                                                       (size_t)sizes[s].columns * WORK_ITEM_BYTES)};
            result->reserved = host.reserved;
            result->frames = bench_value(options->frames, FRAMES_DEFAULT);
            result->frames = (result->frames + TURN - 1) / TURN * TURN;
            good = measure(runtime, d, &quiet, options->calls, result);
            *met &= good && meets(result);
        }
    }

    if (good && count > 0) {
        if (options->json)
            print_json(&machine, &quiet, results, count);
        else
            print_text(&machine, &quiet, results, count);
    }

    free(results);
    cox_runtime_destroy(&runtime);
    return good;
}
