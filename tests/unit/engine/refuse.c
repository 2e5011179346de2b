/* What session creation and submission refuse, and that the log says why.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/rig_play.h"
#include <stdlib.h>
#include <string.h>

TestSuite(engine_refuse, .timeout = 300);

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};

/* A valid session of each contract, for a test to spoil. */
struct recipe {
    struct cox_binding bindings[COX_BINDINGS_MAX + 1];
    struct cox_variant variants[2];
    struct cox_arg args[COX_ARGS_MAX + 1];
    struct cox_stage stages[COX_STAGES_MAX + 1];
    struct cox_session_params params;
};

static void recipe_fill(struct recipe *recipe)
{
    memset(recipe, 0, sizeof *recipe);
    recipe->bindings[0] = (struct cox_binding){
        .name = "rows in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = 16};
    recipe->bindings[1] = (struct cox_binding){
        .name = "rows out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = 16};
    recipe->bindings[2] = (struct cox_binding){
        .name = "around", .contract = COX_HALO, .access = COX_READ, .pitch_bytes = 16, .halo_rows = 2};
    recipe->bindings[3] = (struct cox_binding){
        .name = "table", .contract = COX_WHOLE, .access = COX_READ, .bytes = 256};
    recipe->bindings[4] = (struct cox_binding){
        .name = "sums", .contract = COX_REDUCE, .access = COX_WRITE, .bytes = 1024, .merge = rig_merge_sum};
    recipe->variants[0] = (struct cox_variant){.source = "fake"};
    recipe->args[0] = (struct cox_arg)COX_ARG_BUFFER(0);
    recipe->args[1] = (struct cox_arg)COX_ARG_PARAMS(struct rig_params);
    recipe->args[2] = (struct cox_arg)COX_ARG_ORIGIN(2);
    recipe->args[3] = (struct cox_arg)COX_ARG_LOCAL(64);
    for (int i = 0; i <= COX_STAGES_MAX; i++)
        recipe->stages[i] = (struct cox_stage){.kernel = "rig_map",
                                               .variant_count = 1,
                                               .variants = recipe->variants,
                                               .arg_count = 4,
                                               .args = recipe->args};
    recipe->params = (struct cox_session_params){.rows = 60,
                                                 .binding_count = 5,
                                                 .bindings = recipe->bindings,
                                                 .stage_count = 1,
                                                 .stages = recipe->stages,
                                                 .params_bytes = sizeof(struct rig_params)};
}

static void refused(struct rig *rig, struct recipe *recipe, cox_status status, const char *logged)
{
    cox_session *session = (cox_session *)&session;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &recipe->params, &session), status, "%s", logged);
    cr_assert_null(session, "%s", logged);
    cr_assert(rig_logged(rig, logged), "not in the log: %s\n%s", logged, rig_log(rig));
}

static struct rig *rig;
static struct recipe recipe;

/* One spoiled field: `spoil` is a statement on `recipe`. */
#define REFUSES(status, logged, ...)                \
    do {                                            \
        rig = rig_new(&pair);                       \
        recipe_fill(&recipe);                       \
        __VA_ARGS__;                                \
        refused(rig, &recipe, status, logged);      \
        cr_assert_eq(fake_alive(rig_fake(rig)), 0); \
        END(rig);                                   \
    } while (0)

Test(engine_refuse, the_recipe_itself_is_accepted)
{
    rig = rig_new(&pair);
    recipe_fill(&recipe);
    cox_session *session = NULL;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &recipe.params, &session), COX_OK, "%s", rig_log(rig));
    cox_session_destroy(&session);
    END(rig);
}

Test(engine_refuse, null_pointers)
{
    rig = rig_new(&pair);
    recipe_fill(&recipe);
    cox_session *session = (cox_session *)&session;
    cr_assert_eq(cox_session_create(rig_runtime(rig), NULL, &session), COX_E_INVALID);
    cr_assert_null(session);
    cr_assert_eq(cox_session_create(rig_runtime(rig), &recipe.params, NULL), COX_E_INVALID);
    cr_assert_eq(cox_session_create(NULL, &recipe.params, &session), COX_E_INVALID);
    cr_assert_eq(cox_session_submit(NULL, &(const struct cox_frame){0}, rig_done, rig), COX_E_INVALID);
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 16, NULL), COX_E_INVALID);
    cr_assert_eq(cox_runtime_create(NULL, NULL), COX_E_INVALID);
    cox_runtime *none = NULL;
    cox_runtime_destroy(&none);
    cox_runtime_destroy(NULL);
    cox_buffer *buffer = NULL;
    cox_buffer_destroy(&buffer);
    cox_buffer_destroy(NULL);
    END(rig);
    REFUSES(COX_E_INVALID, "binding", recipe.params.bindings = NULL);
    REFUSES(COX_E_INVALID, "stage", recipe.params.stages = NULL);
    REFUSES(COX_E_INVALID, "kernel", recipe.stages[0].kernel = NULL);
    REFUSES(COX_E_INVALID, "kernel", recipe.stages[0].kernel = "");
    REFUSES(COX_E_INVALID, "variants", recipe.stages[0].variants = NULL);
    REFUSES(COX_E_INVALID, "source", recipe.variants[0].source = NULL);
    REFUSES(COX_E_INVALID, "argument", recipe.stages[0].args = NULL);
    REFUSES(COX_E_INVALID, "device", recipe.params.device_count = 1);
}

Test(engine_refuse, counts_that_are_zero_or_too_large)
{
    REFUSES(COX_E_INVALID, "0 rows", recipe.params.rows = 0);
    REFUSES(COX_E_INVALID, "rows", recipe.params.rows = (uint32_t)INT32_MAX + 1);
    REFUSES(COX_E_INVALID, "bindings", recipe.params.binding_count = 0);
    REFUSES(COX_E_INVALID, "bindings", recipe.params.binding_count = COX_BINDINGS_MAX + 1);
    REFUSES(COX_E_INVALID, "stages", recipe.params.stage_count = 0);
    REFUSES(COX_E_INVALID, "stages", recipe.params.stage_count = COX_STAGES_MAX + 1);
    REFUSES(COX_E_INVALID, "variants", recipe.stages[0].variant_count = 0);
    REFUSES(COX_E_INVALID, "arguments", recipe.stages[0].arg_count = COX_ARGS_MAX + 1);
    REFUSES(COX_E_INVALID, "in flight", recipe.params.in_flight = COX_IN_FLIGHT_MAX + 1);
    REFUSES(COX_E_INVALID, "parameters", recipe.params.params_bytes = COX_PARAMS_MAX + 1);
    REFUSES(COX_E_INVALID, "columns", recipe.stages[0].columns = UINT32_MAX);
    REFUSES(COX_E_INVALID, "size", recipe.variants[0].local_rows = UINT32_MAX);
    REFUSES(COX_E_INVALID, "size", recipe.variants[0].item_columns = UINT32_MAX);
    REFUSES(COX_E_INVALID, "stage 1", recipe.params.stage_count = 2, recipe.stages[1].kernel = NULL);
}

Test(engine_refuse, contracts_that_do_not_hold_together)
{
    REFUSES(COX_E_INVALID, "around", recipe.bindings[2].access = COX_WRITE);
    REFUSES(COX_E_INVALID, "around", recipe.bindings[2].access = COX_READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES(COX_E_INVALID, "around", recipe.bindings[2].pitch_bytes = 0);
    REFUSES(COX_E_INVALID, "around", recipe.bindings[2].halo_rows = UINT32_MAX);
    REFUSES(COX_E_INVALID, "table", recipe.bindings[3].access = COX_WRITE);
    REFUSES(COX_E_INVALID, "table", recipe.bindings[3].access = COX_READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES(COX_E_INVALID, "table", recipe.bindings[3].bytes = 0);
    REFUSES(COX_E_INVALID, "sums", recipe.bindings[4].access = COX_READ);
    REFUSES(COX_E_INVALID, "sums", recipe.bindings[4].access = COX_READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES(COX_E_INVALID, "sums", recipe.bindings[4].merge = NULL);
    REFUSES(COX_E_INVALID, "sums", recipe.bindings[4].bytes = 0);
    REFUSES(COX_E_INVALID, "rows out", recipe.bindings[1].access = COX_READ_WRITE);
    REFUSES(COX_E_INVALID, "allow_in_place", recipe.bindings[1].access = COX_READ_WRITE);
    REFUSES(COX_E_INVALID, "rows in", recipe.bindings[0].pitch_bytes = 0);
    REFUSES(COX_E_INVALID, "rows in", recipe.bindings[0].pitch_bytes = SIZE_MAX / 8);
    REFUSES(COX_E_INVALID, "rows in", recipe.bindings[0].contract = (enum cox_contract)9);
    REFUSES(COX_E_INVALID, "rows in", recipe.bindings[0].access = (enum cox_access)9);
    REFUSES(COX_E_INVALID, "together", recipe.bindings[3].bytes = SIZE_MAX / 2);
    REFUSES(COX_E_INVALID, "together", recipe.bindings[3].bytes = recipe.bindings[4].bytes = SIZE_MAX / 4 + 1);
    REFUSES(COX_E_INVALID, "together", recipe.bindings[0].pitch_bytes = SIZE_MAX / 2 / 60);
    REFUSES(COX_E_INVALID, "binding 1", recipe.bindings[1].name = NULL, recipe.bindings[1].pitch_bytes = 0);
}

Test(engine_refuse, arguments_that_lead_nowhere)
{
    REFUSES(COX_E_INVALID, "argument 0", recipe.args[0].index = 5);
    REFUSES(COX_E_INVALID, "argument 2", recipe.args[2].index = 5);
    REFUSES(COX_E_INVALID, "argument 1", recipe.args[1].bytes = sizeof(struct rig_params) + 1);
    REFUSES(COX_E_INVALID, "argument 1", recipe.args[1].offset = 1);
    REFUSES(COX_E_INVALID, "argument 1", recipe.args[1].offset = SIZE_MAX);
    REFUSES(COX_E_INVALID, "argument 1", recipe.args[1].bytes = 0);
    REFUSES(COX_E_INVALID, "argument 3", recipe.args[3].bytes = 0);
    REFUSES(COX_E_INVALID, "argument 3", recipe.args[3].kind = (enum cox_arg_kind)99);
}

Test(engine_refuse, devices_that_are_not_there)
{
    static const uint32_t twice[] = {1, 1}, beyond[] = {0, 2};
    REFUSES(COX_E_INVALID, "twice", recipe.params.device_count = 2, recipe.params.devices = twice);
    REFUSES(COX_E_INVALID, "device 2", recipe.params.device_count = 2, recipe.params.devices = beyond);
    REFUSES(COX_E_INVALID, "devices", recipe.params.device_count = 1000, recipe.params.devices = beyond);
}

Test(engine_refuse, policies_that_are_not_there)
{
    struct cox_policy policy = rig_policy;
    REFUSES(COX_E_NOT_FOUND, "guesswork", recipe.params.policy = "guesswork");
    policy.split = NULL;
    REFUSES(COX_E_INVALID, "policy", recipe.params.custom_policy = &policy);
    policy = rig_policy;
    policy.name = NULL;
    REFUSES(COX_E_INVALID, "policy", recipe.params.custom_policy = &policy);
    static const double ratios[] = {0.5, 0.6};
    REFUSES(COX_E_INVALID, "static", recipe.params.policy = "static",
            recipe.params.policy_options = COX_POLICY_OPTIONS(.ratios = ratios, .ratio_count = 2));
    REFUSES(COX_E_INVALID, "single", recipe.params.policy = "single",
            recipe.params.policy_options = COX_POLICY_OPTIONS(.device = 3));
}

Test(engine_refuse, a_kernel_that_does_not_build_anywhere)
{
    REFUSES(COX_E_BUILD, "rig_nothing", recipe.stages[0].kernel = "rig_nothing");
}

/* ---- frames ---- */

Test(engine_refuse, frames_with_the_wrong_buffers)
{
    rig = rig_new(&pair);
    recipe_fill(&recipe);
    recipe.params.in_flight = 1;
    cox_session *session = NULL;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &recipe.params, &session), COX_OK);
    static const size_t exact[] = {960, 960, 960, 256, 1024};
    cox_buffer *buffers[5], *shorter[5];
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(cox_buffer_create(rig_runtime(rig), exact[i], &buffers[i]), COX_OK);
        cr_assert_eq(cox_buffer_create(rig_runtime(rig), exact[i] - 1, &shorter[i]), COX_OK);
    }
    const struct rig_params params = {.columns = 16};
    cr_assert_eq(cox_session_submit(session, NULL, rig_done, rig), COX_E_INVALID);
    cr_assert_eq(cox_session_submit(session, &(const struct cox_frame){.buffer_count = 5, .params = &params}, rig_done,
                                    rig),
                 COX_E_INVALID);
    for (uint32_t count = 0; count < 8; count++)
        if (count != 5)
            cr_assert_eq(cox_session_submit(session,
                                            &(const struct cox_frame){
                                                .buffers = buffers, .buffer_count = count, .params = &params},
                                            rig_done, rig),
                         COX_E_INVALID);
    static const char *const names[] = {"rows in", "rows out", "around", "table", "sums"};
    for (int i = 0; i < 5; i++) {
        cox_buffer *mixed[5];
        memcpy(mixed, buffers, sizeof mixed);
        const struct cox_frame frame = {.buffers = mixed, .buffer_count = 5, .params = &params};
        cr_assert_not(rig_logged(rig, names[i]));
        mixed[i] = shorter[i];
        cr_assert_eq(cox_session_submit(session, &frame, rig_done, rig), COX_E_INVALID);
        cr_assert(rig_logged(rig, names[i]));
        mixed[i] = NULL;
        cr_assert_eq(cox_session_submit(session, &frame, rig_done, rig), COX_E_INVALID);
    }
    cox_buffer *same[5];
    memcpy(same, buffers, sizeof same);
    same[1] = same[0];
    cr_assert_eq(cox_session_submit(session,
                                    &(const struct cox_frame){.buffers = same, .buffer_count = 5, .params = &params},
                                    rig_done, rig),
                 COX_E_INVALID);
    memcpy(same, buffers, sizeof same);
    same[2] = same[0]; /* both read: allowed */
    cr_assert_eq(cox_session_submit(session,
                                    &(const struct cox_frame){.buffers = same, .buffer_count = 5, .params = &params},
                                    rig_done, rig),
                 COX_OK);
    cr_assert_eq(cox_session_run(session,
                                 &(const struct cox_frame){.buffers = buffers, .buffer_count = 5, .params = &params}),
                 COX_OK);
    /* No parameters means zeros: no column is touched. */
    memset(cox_buffer_data(buffers[1]), 0x42, exact[1]);
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.buffers = buffers, .buffer_count = 5}), COX_OK);
    for (size_t i = 0; i < exact[1]; i++)
        cr_assert_eq(((unsigned char *)cox_buffer_data(buffers[1]))[i], 0x42);
    cr_assert_eq(rig_done_count(rig), 1);
    cox_session_destroy(&session);
    for (int i = 0; i < 5; i++) {
        cox_buffer_destroy(&buffers[i]);
        cox_buffer_destroy(&shorter[i]);
    }
    END(rig);
}

Test(engine_refuse, buffers_that_are_none)
{
    rig = rig_new(&pair);
    cox_buffer *buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 0, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_create(NULL, 16, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    _Alignas(64) unsigned char memory[128];
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), NULL, 64, &buffer), COX_E_INVALID);
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), memory, 0, &buffer), COX_E_INVALID);
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), memory + 8, 64, &buffer), COX_E_INVALID);
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), memory + 16, 64, &buffer), COX_OK);
    cr_assert_eq(cox_buffer_data(buffer), (void *)(memory + 16));
    cox_buffer_destroy(&buffer);
    cr_assert_null(buffer);
    END(rig);
}

Test(engine_refuse, a_device_index_past_the_end)
{
    rig = rig_new(&pair);
    struct cox_device_info info;
    memset(&info, 0x5a, sizeof info);
    cr_assert_eq(cox_runtime_device_count(rig_runtime(rig)), 2);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 2, &info, sizeof info), COX_E_NOT_FOUND);
    cr_assert_eq(info.name[0], 0x5a);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 1, &info, sizeof info), COX_OK);
    cr_assert_str_eq(info.name, "fake 1");
    END(rig);
}

Test(engine_refuse, pitches_that_do_not_exist)
{
    struct fake_params devices = pair;
    devices.devices[1].align_bytes = 512;
    rig = rig_new(&devices);
    cr_assert_eq(cox_runtime_pitch_bytes(rig_runtime(rig), 0), 0);
    cr_assert_eq(cox_runtime_pitch_bytes(rig_runtime(rig), SIZE_MAX), 0);
    cr_assert_eq(cox_runtime_pitch_bytes(rig_runtime(rig), 1), 512);
    cr_assert_eq(cox_runtime_pitch_bytes(rig_runtime(rig), 512), 512);
    cr_assert_eq(cox_runtime_pitch_bytes(rig_runtime(rig), 513), 1024);
    END(rig);
}

Test(engine_refuse, a_frame_that_cannot_be_split_runs_whole_and_the_log_says_why)
{
    struct fake_params devices = pair;
    devices.devices[0].align_bytes = 4096;
    rig = rig_new(&devices);
    struct rig_frames *frames = rig_frames_new(rig, 100, 10, 13, 2); /* granule 4096 > 100 */
    cox_session *session = NULL;
    cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.in_flight = 1), &session), COX_OK);
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    cr_assert_eq(info.granule, 100);
    cr_assert(rig_logged(rig, "cannot be split"));
    for (uint32_t i = 0; i < 10; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_wait(session);
    for (uint32_t i = 0; i < 2; i++)
        cr_assert_str_empty(rig_check(frames, i));
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    END(rig);
}
