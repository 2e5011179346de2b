/* cox-bench start: how soon a session takes frames. The session tone-maps 1080p video. The
 * command measures the time of cox_session_create, and the time until the first frame is delivered.
 * That frame is submitted at once. Turns with `ready` and without it alternate. Each turn uses a
 * new runtime without a kernel store, and kernels that the driver has not seen before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "json_members.h"
#include "message.h"
#include "open_runtime.h"
#include "stream_frames.h"

#include <stdio.h>

enum { TURNS = 5, FORMS = 2, OPTIONS_BYTES = 512 };

enum form_kind { FORM_BLOCKING, FORM_READY };
static const char *const form_names[FORMS] = {"blocking", "ready"};
static const double bar_ms = 5;

struct form {
    double create_ms[TURNS], first_ms[TURNS];
};

static void on_ready(void *user, cox_status status)
{
    (void)user;
    (void)status;
}

/* A video pipeline whose kernels have a unique build option, so that no cache has them. */
struct fresh {
    struct cox_session_params params;
    struct cox_stage stages[COX_FUSED_MAX];
    struct cox_variant variants[COX_FUSED_MAX][COX_DEVICES_MAX];
    char options[COX_FUSED_MAX][COX_DEVICES_MAX][OPTIONS_BYTES];
};

static void make_fresh(struct fresh *fresh, const struct cox_session_params *from)
{
    static unsigned count;
    const unsigned long long number = (unsigned long long)now_ns() + count++;

    fresh->params = *from;
    fresh->params.stages = fresh->stages;

    for (uint32_t s = 0; s < from->stage_count; s++) {
        fresh->stages[s] = from->stages[s];
        fresh->stages[s].variants = fresh->variants[s];
        for (uint32_t v = 0; v < from->stages[s].variant_count; v++) {
            const char *options = from->stages[s].variants[v].options;
            fresh->variants[s][v] = from->stages[s].variants[v];
            if (!options)
                options = "";
            snprintf(fresh->options[s][v], OPTIONS_BYTES, "%s -DBENCH_START=%lluull", options,
                     number);
            fresh->variants[s][v].options = fresh->options[s][v];
        }
    }
}

static cox_status start(cox_runtime *runtime, const struct bench_options *options,
                        struct form *form, uint32_t turn, bool ready)
{
    static struct stream_frames frames;
    static struct fresh fresh; /* too large for a stack */
    const struct bench_options of = {.width = bench_value(options->width, 1920),
                                     .height = bench_value(options->height, 1080)};
    cox_session *session = NULL;

    if (!stream_frames_make(&frames, runtime, &of, 1))
        return COX_E_NOMEM;
    make_fresh(&fresh, &frames.pipeline);
    if (ready)
        fresh.params.ready = on_ready;
    const uint64_t began = now_ns();
    cox_status status = cox_session_create(runtime, &fresh.params, &session);
    form->create_ms[turn] = (double)(now_ns() - began) / 1e6;
    if (status == COX_OK)
        status = cox_session_run(session, &(const struct cox_frame){
                                              .buffers = frames.buffers[0],
                                              .buffer_count = fresh.params.binding_count,
                                              .params = &frames.params});
    form->first_ms[turn] = (double)(now_ns() - began) / 1e6;
    cox_session_destroy(&session);
    stream_frames_free(&frames);

    return status;
}

static void print_json(struct form *forms)
{
    struct json json;

    json_begin(&json, stdout);
    json_open_object(&json, false);

    for (int f = 0; f < FORMS; f++) {
        json_member_object(&json, form_names[f], true);
        json_member_number(&json, "create_ms", quantile_of(forms[f].create_ms, TURNS, 0.5));
        json_member_number(&json, "create_ms_worst", quantile_of(forms[f].create_ms, TURNS, 1));
        json_member_number(&json, "first_frame_ms", quantile_of(forms[f].first_ms, TURNS, 0.5));
        json_close_object(&json);
    }

    json_report_end(&json);
}

static void print_text(struct form *forms, bool met)
{
    for (int f = 0; f < FORMS; f++)
        printf(
            "%-9s cox_session_create returned after %8.2f ms, the first frame came after %8.2f ms "
            "(medians of %d; "
            "worst return %.2f ms)\n",
            form_names[f], quantile_of(forms[f].create_ms, TURNS, 0.5),
            quantile_of(forms[f].first_ms, TURNS, 0.5), TURNS,
            quantile_of(forms[f].create_ms, TURNS, 1));

    printf("bar: with ready it returns within %g ms, %s\n", bar_ms, met ? "met" : "missed");
}

bool bench_start(const struct bench_options *options, bool *met)
{
    static struct form forms[FORMS];

    for (uint32_t n = 0; n < TURNS * FORMS; n++) {
        const int f = (int)(n % FORMS);
        cox_runtime *runtime = NULL;
        if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &runtime))
            return false;

        cox_status status = start(runtime, options, &forms[f], n / FORMS, f == FORM_READY);
        cox_runtime_destroy(&runtime);
        if (!bench_good(status, NULL))
            return false;
    }

    *met = quantile_of(forms[FORM_READY].create_ms, TURNS, 0.5) <= bar_ms;
    if (options->json)
        print_json(forms);
    else
        print_text(forms, *met);

    return true;
}
