/* cox-bench start: how soon a session takes frames. The session tone-maps 1080p video. The
 * command measures the time of cox_session_create, and the time until the first frame is delivered.
 * That frame is submitted at once. Turns with COX_WARMUP_BACKGROUND and without it alternate. Each
 * turn uses a new runtime without a kernel store, and the drivers keep no compiled kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "json_members.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"
#include "stream_frames.h"

#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 5, FORMS = 2 };

enum form_kind { FORM_BLOCKING, FORM_BACKGROUND };
static const char *const form_names[FORMS] = {"blocking", "background"};
static const double bar_ms = 5;

struct form {
    double create_ms[TURNS], first_ms[TURNS];
};

/* Drivers read these when they load. */
static void keep_no_kernels(void)
{
    setenv("POCL_KERNEL_CACHE", "0", 1);
    setenv("CUDA_CACHE_DISABLE", "1", 1);
    setenv("NEO_CACHE_PERSISTENT", "0", 1);
    setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
    setenv("AMD_COMGR_CACHE", "0", 1);
}

static cox_status start(cox_runtime *runtime, const struct bench_options *options,
                        struct form *form, uint32_t turn, enum cox_warmup warmup)
{
    static struct stream_frames frames;
    const struct bench_options of = {.width = bench_value(options->width, 1920),
                                     .height = bench_value(options->height, 1080)};
    struct cox_constants constants;
    cox_pipeline *pipeline = NULL;
    cox_session *session = NULL;

    if (!stream_frames_make(&frames, runtime, &of, 1))
        return COX_E_NOMEM;
    cox_status status = stream_frames_mapping(&frames, &pipeline, &constants);

    const uint64_t began = now_ns();
    if (status == COX_OK)
        status = bench_session_create(runtime,
                                      &(const struct cox_session_params){.pipeline = pipeline,
                                                                         .warmup = warmup},
                                      &session);
    form->create_ms[turn] = (double)(now_ns() - began) / 1e6;
    if (status == COX_OK)
        status = cox_session_run(session, &(const struct cox_frame){.buffers = frames.buffers[0],
                                                                    .constants = &constants});
    form->first_ms[turn] = (double)(now_ns() - began) / 1e6;

    bench_session_destroy(&session);
    cox_pipeline_destroy(&pipeline);
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
        printf("%-10s cox_session_create returned after %8.2f ms, first frame after %8.2f "
               "ms (medians of %d; slowest return %.2f ms)\n",
               form_names[f], quantile_of(forms[f].create_ms, TURNS, 0.5),
               quantile_of(forms[f].first_ms, TURNS, 0.5), TURNS,
               quantile_of(forms[f].create_ms, TURNS, 1));

    printf("bar: in the background, return within %g ms, %s\n", bar_ms, met ? "met" : "missed");
}

bool bench_start(const struct bench_options *options, bool *met)
{
    static struct form forms[FORMS];

    keep_no_kernels();
    for (uint32_t n = 0; n < TURNS * FORMS; n++) {
        const int f = (int)(n % FORMS);
        cox_runtime *runtime = NULL;
        if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &runtime))
            return false;

        const enum cox_warmup warmup = f == FORM_BACKGROUND ? COX_WARMUP_BACKGROUND
                                                            : COX_WARMUP_FIRST_FRAME;
        cox_status status = start(runtime, options, &forms[f], n / FORMS, warmup);
        cox_runtime_destroy(&runtime);
        if (!bench_good(status, NULL))
            return false;
    }

    *met = quantile_of(forms[FORM_BACKGROUND].create_ms, TURNS, 0.5) <= bar_ms;
    if (options->json)
        print_json(forms);
    else
        print_text(forms, *met);

    return true;
}
