/* What session creation and submission refuse, and the reason in the log.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/rig_play.h"
#include <math.h>
#include <string.h>

TestSuite(engine_refuse, .timeout = 300);

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};

/* A valid session for each kind of row access. Each test makes one field invalid. */
struct recipe {
    struct cox__binding bindings[COX_BUFFERS_MAX + 1];
    struct cox__variant variants[2];
    struct cox__arg args[COX_ARGUMENTS_MAX + 1];
    struct cox__stage stages[COX_FUSED_MAX + 1];
    struct cox__session_spec params;
};

static void recipe_fill(struct recipe *recipe)
{
    *recipe = (struct recipe){
        .bindings =
            {
                {.name = "rows in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = 16},
                {.name = "rows out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = 16},
                {.name = "around", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = 16, .halo_rows = 2},
                {.name = "table", .row_access = COX__WHOLE, .access = COX__READ, .bytes = 256},
                {.name = "sums",
                 .row_access = COX__REDUCE,
                 .access = COX__WRITE,
                 .bytes = 1024,
                 .merge = rig_merge_sum},
            },
        .variants = {{.source = "fake"}},
        .args = {COX__ARG_BUFFER(0), COX__ARG_PARAMS(struct rig_params), COX__ARG_ORIGIN(2), COX__ARG_LOCAL(64)},
        .params = {.rows = 60,
                   .binding_count = 5,
                   .bindings = recipe->bindings,
                   .stage_count = 1,
                   .stages = recipe->stages,
                   .params_bytes = sizeof(struct rig_params)},
    };
    for (int i = 0; i <= COX_FUSED_MAX; i++)
        recipe->stages[i] = (struct cox__stage){.kernel = "rig_map",
                                                .variant_count = 1,
                                                .variants = recipe->variants,
                                                .arg_count = 4,
                                                .args = recipe->args};
}

static void refused(struct rig *rig, struct recipe *recipe, cox_status status, const char *logged)
{
    cox_session *session = (cox_session *)&session;
    cr_assert_eq(cox__session_create(rig_runtime(rig), &recipe->params, &session), status, "%s", logged);
    cr_assert_null(session, "%s", logged);
    cr_assert(rig_logged(rig, logged), "not in the log: %s\n%s", logged, rig_log(rig));
    if (status != COX_E_BUILD)
        cr_assert_eq(rig_logged_times(rig, "\n"), 1, "%s", rig_log(rig));
}

static struct rig *rig;
static struct recipe recipe;

/* One invalid field: `spoil` is a statement that changes `recipe`. */
#define REFUSES_WITH(status, logged, ...)          \
    do {                                           \
        begin(&pair);                              \
        __VA_ARGS__;                               \
        refused(rig, &recipe, status, logged);     \
        cr_assert(fake_await_gone(rig_fake(rig))); \
        END(rig);                                  \
    } while (0)
#define REFUSES(logged, ...) REFUSES_WITH(COX_E_INVALID, logged, __VA_ARGS__)

/* Create a session from the unchanged recipe. */
static cox_session *accepted(void)
{
    cox_session *session = NULL;
    cr_assert_eq(cox__session_create(rig_runtime(rig), &recipe.params, &session), COX_OK, "%s", rig_log(rig));
    return session;
}

static void begin(const struct fake_params *devices)
{
    rig = rig_new(devices);
    recipe_fill(&recipe);
}

static void end(cox_session *session)
{
    cox_session_destroy(&session);
    END(rig);
}

Test(engine_refuse, the_recipe_itself_is_accepted)
{
    begin(&pair);
    end(accepted());
}

Test(engine_refuse, the_largest_local_and_item_sizes_are_accepted)
{
    begin(&pair);
    recipe.variants[0] = (struct cox__variant){
        .source = "fake", .local_columns = 65536, .local_rows = 65536, .item_columns = 65536, .item_rows = 65536};
    end(accepted());
    REFUSES("local size 65537 x 0", recipe.variants[0].local_columns = 65537);
    REFUSES("local size 0 x 65537", recipe.variants[0].local_rows = 65537);
    REFUSES("item size 65537 x 0", recipe.variants[0].item_columns = 65537);
    REFUSES("item size 0 x 65537", recipe.variants[0].item_rows = 65537);
}

Test(engine_refuse, more_rows_than_an_int_counts)
{
    begin(&pair);
    recipe.params.rows = INT32_MAX;
    end(accepted());
    REFUSES("a frame of 2147483648 rows; allowed: 1 to 2147483647", recipe.params.rows = INT32_MAX + 1u);
}

Test(engine_refuse, null_for_the_runtime_or_a_buffer)
{
    static const struct cox_host_info no_host;
    struct cox_device_info device;
    struct cox_platform_info platform;
    struct cox_host_info host;
    cox_buffer *buffer = (cox_buffer *)&buffer;
    cox_runtime *runtime = NULL;
    _Alignas(64) unsigned char memory[64];
    cr_assert_eq(cox_runtime_device_count(NULL), 0);
    cr_assert_eq(cox_runtime_device_info(NULL, 0, &device), COX_E_INVALID);
    cr_assert_eq(cox_runtime_platform_count(NULL), 0);
    cr_assert_eq(cox_runtime_platform_info(NULL, 0, &platform), COX_E_INVALID);
    cr_assert_eq(cox_runtime_left_out(NULL, 0, &(struct cox_left_out){.name = ""}), COX_E_INVALID);
    cr_assert_eq(cox_runtime_pitch_bytes(NULL, 64), 0);
    memset(&host, 0x5a, sizeof host);
    cox_runtime_host_info(NULL, &host);
    cr_assert_arr_eq(&host, &no_host, sizeof host);
    cr_assert_eq(cox_buffer_create(NULL, 64, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_wrap(NULL, memory, 64, NULL, NULL, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    cr_assert_null(cox_buffer_data(NULL));
    cr_assert_eq(cox_buffer_bytes(NULL), 0);
    cox_buffer_destroy(NULL);
    cox_buffer_destroy(&buffer);
    cox_runtime_destroy(NULL);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(NULL, NULL), COX_E_INVALID);
}

Test(engine_refuse, null_pointers)
{
    begin(&pair);
    cox_session *session = (cox_session *)&session;
    cr_assert_eq(cox__session_create(rig_runtime(rig), NULL, &session), COX_E_INVALID);
    cr_assert_null(session);
    cr_assert(rig_logged(rig, "cox_session_create: params is NULL"));
    cr_assert_eq(cox__session_create(rig_runtime(rig), &recipe.params, NULL), COX_E_INVALID);
    cr_assert(rig_logged(rig, "cox_session_create: out is NULL"));
    cr_assert_eq(cox__session_create(NULL, &recipe.params, &session), COX_E_INVALID);
    cr_assert_eq(cox__session_submit(NULL, &(const struct cox__frame_spec){0}, rig_done, rig), COX_E_INVALID);
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 16, NULL), COX_E_INVALID);
    cr_assert(rig_logged(rig, "cox_buffer_create: out is NULL"));
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), &recipe, 16, NULL, NULL, NULL), COX_E_INVALID);
    cr_assert(rig_logged(rig, "cox_buffer_wrap: out is NULL"));
    END(rig);
    REFUSES("bindings: 5 given, as NULL; allowed: 1 to 12", recipe.params.bindings = NULL);
    REFUSES("stages: 1 given, as NULL; allowed: 1 to 8", recipe.params.stages = NULL);
    REFUSES("stage 0 has no kernel name", recipe.stages[0].kernel = NULL);
    REFUSES("stage 0 has no kernel name", recipe.stages[0].kernel = "");
    REFUSES("variants: 1 given, as NULL; allowed: 1 to 32", recipe.stages[0].variants = NULL);
    REFUSES("stage 0 (rig_map), variant 0 has no source", recipe.variants[0].source = NULL);
    REFUSES("arguments: 4 given, as NULL; allowed: 0 to 24", recipe.stages[0].args = NULL);
    REFUSES("devices: 1 given, as NULL; allowed: 1 to 32", recipe.params.device_count = 1);
}

Test(engine_refuse, counts_that_are_zero_or_too_large)
{
    REFUSES("a frame of 0 rows; allowed: 1 to 2147483647", recipe.params.rows = 0);
    REFUSES("a frame of 2147483648 rows; allowed: 1 to", recipe.params.rows = (uint32_t)INT32_MAX + 1);
    REFUSES("bindings: 0 given; allowed: 1 to 12", recipe.params.binding_count = 0);
    REFUSES("bindings: 13 given; allowed: 1 to 12", recipe.params.binding_count = COX_BUFFERS_MAX + 1);
    REFUSES("stages: 0 given; allowed: 1 to 8", recipe.params.stage_count = 0);
    REFUSES("stages: 9 given; allowed: 1 to 8", recipe.params.stage_count = COX_FUSED_MAX + 1);
    REFUSES("variants: 0 given; allowed: 1 to 32", recipe.stages[0].variant_count = 0);
    REFUSES("arguments: 25 given; allowed: 0 to 24", recipe.stages[0].arg_count = COX_ARGUMENTS_MAX + 1);
    REFUSES("in_flight is 17; allowed: 0 to 16", recipe.params.in_flight = COX_IN_FLIGHT_MAX + 1);
    REFUSES("2049 bytes of parameters; allowed: 0 to 2048", recipe.params.params_bytes = COX_CONSTANTS_BYTES_MAX + 1);
    REFUSES("stage 0 (rig_map) has 4294967295 columns; allowed: 0 to 2147483647",
            recipe.stages[0].columns = UINT32_MAX);
    REFUSES("local size 0 x 4294967295, item size 0 x 0; allowed: 0 to 65536 each",
            recipe.variants[0].local_rows = UINT32_MAX);
    REFUSES("local size 0 x 0, item size 4294967295 x 0; allowed", recipe.variants[0].item_columns = UINT32_MAX);
    REFUSES("stage 1 has no kernel name", recipe.params.stage_count = 2, recipe.stages[1].kernel = NULL);
}

Test(engine_refuse, contracts_that_do_not_hold_together)
{
    REFUSES("buffer 2 (around): row access HALO, but it is written", recipe.bindings[2].access = COX__WRITE);
    REFUSES("around", recipe.bindings[2].access = COX__READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES("buffer 2 (around): a pitch of 0 bytes; allowed: 1 to", recipe.bindings[2].pitch_bytes = 0);
    REFUSES("(around): halo_rows is 4294967295; allowed: 0 to 2147483647", recipe.bindings[2].halo_rows = UINT32_MAX);
    REFUSES("buffer 0 (rows in): halo_rows is 1, which needs row access HALO, not ROWS",
            recipe.bindings[0].halo_rows = 1);
    REFUSES("(table): halo_rows is 2, which needs row access HALO, not WHOLE", recipe.bindings[3].halo_rows = 2);
    REFUSES("(sums): halo_rows is 3, which needs row access HALO, not REDUCE", recipe.bindings[4].halo_rows = 3);
    REFUSES("(around): halo_rows is 4294967295; allowed: 0 to 2147483647", recipe.bindings[2].halo_below = UINT32_MAX);
    REFUSES("(table): halo_rows is 2, which needs row access HALO, not WHOLE", recipe.bindings[3].halo_above = 2);
    REFUSES("(rows in): reads_all needs row access ROWS and access READ_WRITE", recipe.bindings[0].reads_all = true);
    REFUSES("rows with its border, and 0 bytes before them", recipe.bindings[0].border_below = INT32_MAX);
    REFUSES("rows with its border, and 18446744073709551615 bytes before", recipe.bindings[0].offset_bytes = SIZE_MAX);
    REFUSES("buffer 3 (table): row access WHOLE, but it is written", recipe.bindings[3].access = COX__WRITE);
    REFUSES("table", recipe.bindings[3].access = COX__READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES("(table): a size of 0 bytes; allowed: 1 to 9223372036854775807", recipe.bindings[3].bytes = 0);
    REFUSES("(sums): row access REDUCE needs access WRITE and a merge", recipe.bindings[4].access = COX__READ);
    REFUSES("sums", recipe.bindings[4].access = COX__READ_WRITE, recipe.params.allow_in_place = true);
    REFUSES("(sums): row access REDUCE needs access WRITE and a merge", recipe.bindings[4].merge = NULL);
    REFUSES("(sums): a size of 0 bytes; allowed: 1 to", recipe.bindings[4].bytes = 0);
    REFUSES("rows out", recipe.bindings[1].access = COX__READ_WRITE);
    REFUSES("allow_in_place", recipe.bindings[1].access = COX__READ_WRITE);
    REFUSES("buffer 0 (rows in): a pitch of 0 bytes; allowed: 1 to", recipe.bindings[0].pitch_bytes = 0);
    REFUSES("rows in", recipe.bindings[0].pitch_bytes = SIZE_MAX / 8);
    REFUSES("(rows in): unknown row access 9 or access 0; allowed: 0 to 3 and 0 to 2",
            recipe.bindings[0].row_access = (enum cox__row_access)9);
    REFUSES("(rows in): unknown row access 0 or access 9", recipe.bindings[0].access = (enum cox__access)9);
    REFUSES("together", recipe.bindings[3].bytes = SIZE_MAX / 2);
    REFUSES("together", recipe.bindings[3].bytes = recipe.bindings[4].bytes = SIZE_MAX / 4 + 1);
    REFUSES("together", recipe.bindings[0].pitch_bytes = SIZE_MAX / 2 / 60);
    REFUSES("buffer 1", recipe.bindings[1].name = NULL, recipe.bindings[1].pitch_bytes = 0);
}

Test(engine_refuse, arguments_that_lead_nowhere)
{
    REFUSES("argument 0: unknown buffer 5; the session has 5", recipe.args[0].index = 5);
    REFUSES("argument 2: unknown buffer 5; the session has 5", recipe.args[2].index = 5);
    REFUSES("argument 1: 9 bytes at offset 0, but there are only 8 bytes of",
            recipe.args[1].bytes = sizeof(struct rig_params) + 1);
    REFUSES("argument 1: 8 bytes at offset 1, but there are only 8 bytes of", recipe.args[1].offset = 1);
    REFUSES("argument 1", recipe.args[1].offset = SIZE_MAX);
    REFUSES("argument 1", recipe.args[1].bytes = 0);
    REFUSES("argument 3: local memory of 0 bytes; allowed: 1 or more", recipe.args[3].bytes = 0);
    REFUSES("argument 3: unknown kind 99; allowed: 0 to 9", recipe.args[3].kind = (enum cox__arg_kind)99);
}

static struct cox__arg image_of(uint32_t binding, size_t format, size_t columns)
{
    return (struct cox__arg){COX__ARG_KIND_IMAGE, binding, format, columns};
}

Test(engine_refuse, images_of_what_is_written_or_has_no_rows)
{
    REFUSES("argument 3: unknown buffer 5; the session has 5", recipe.args[3] = image_of(5, 1, 4));
    REFUSES("argument 3: buffer 1 (rows out) is written by the pass", recipe.args[3] = image_of(1, 1, 4));
    REFUSES("argument 3: buffer 4 (sums) is written by the pass", recipe.args[3] = image_of(4, 1, 4));
    REFUSES("argument 3: an image of 0 columns, of buffer 0", recipe.args[3] = image_of(0, 1, 0));
    REFUSES("argument 3: an image of 2147483648 columns", recipe.args[3] = image_of(0, 1, (size_t)INT32_MAX + 1));
    REFUSES("buffer 3 (table) with a pitch of 0 bytes", recipe.args[3] = image_of(3, 1, 4));
    REFUSES("buffer 3 (table) with a pitch of 257 bytes", recipe.args[3] = image_of(3, 1, 4),
            recipe.bindings[3].pitch_bytes = 257);
    REFUSES("argument 3: buffer 2 (around) is already an image of another format", recipe.args[0] = image_of(2, 1, 4),
            recipe.args[3] = image_of(2, 2, 4));
    REFUSES("stage 1, argument 0: buffer 2 (around) is already an image of another format",
            recipe.args[3] = image_of(2, 1, 4), recipe.args[0] = image_of(2, 1, 5), recipe.params.stage_count = 2,
            recipe.stages[0].args++, recipe.stages[0].arg_count--);
}

Test(engine_refuse, images_that_are_as_they_should_be_are_accepted)
{
    begin(&pair);
    recipe.args[0] = image_of(2, 1, 4);
    recipe.args[2] = image_of(3, 2, 4);
    recipe.args[3] = image_of(2, 1, 4);
    recipe.bindings[3].pitch_bytes = 256;
    end(accepted());
}

Test(engine_refuse, devices_that_are_not_there)
{
    static const uint32_t twice[] = {1, 1}, beyond[] = {0, 2};
    REFUSES("devices: device 1 is listed twice", recipe.params.device_count = 2, recipe.params.devices = twice);
    REFUSES("devices: unknown device 2; the runtime has 2 devices", recipe.params.device_count = 2,
            recipe.params.devices = beyond);
    REFUSES("devices: 1000 given; allowed: 1 to 32", recipe.params.device_count = 1000, recipe.params.devices = beyond);
}

Test(engine_refuse, policies_that_are_not_there)
{
    struct cox_policy policy = rig_policy;
    REFUSES_WITH(COX_E_NOT_FOUND, "unknown policy 'guesswork'; policies: adaptive, chunks, static, single",
                 recipe.params.policy = "guesswork");
    policy.split = NULL;
    REFUSES("custom policy playback lacks its function split", recipe.params.custom_policy = &policy);
    policy.init = NULL;
    REFUSES("playback lacks its function init", recipe.params.custom_policy = &policy);
    policy.state_bytes = NULL;
    REFUSES("playback lacks its function state_bytes", recipe.params.custom_policy = &policy);
    policy.name = NULL;
    REFUSES("lacks a name", recipe.params.custom_policy = &policy);
    static const double ratios[] = {0.5, 0.6};
    REFUSES("policy static rejects its options for 2 devices", recipe.params.policy = "static",
            recipe.params.policy_options = &(const struct cox_policy_options){.ratios = ratios, .ratio_count = 2});
    REFUSES("policy single rejects its options for 2 devices", recipe.params.policy = "single",
            recipe.params.policy_options = &(const struct cox_policy_options){.device = 3});
}

Test(engine_refuse, a_share_to_verify_that_is_none)
{
    REFUSES("verify is 1.5; allowed: 0 to 1", recipe.params.verify = 1.5);
    REFUSES("verify is -0.5; allowed: 0 to 1", recipe.params.verify = -0.5);
    REFUSES("verify is nan; allowed: 0 to 1", recipe.params.verify = NAN);
}

static size_t too_much(uint32_t device_count)
{
    (void)device_count;
    return SIZE_MAX / 2;
}

Test(engine_refuse, a_policy_whose_state_has_no_room)
{
    struct cox_policy policy = rig_policy;
    policy.state_bytes = too_much;
    REFUSES_WITH(COX_E_NOMEM, "policy playback: no memory for 9223372036854775807 bytes of state",
                 recipe.params.custom_policy = &policy);
}

Test(engine_refuse, a_kernel_that_does_not_build_anywhere)
{
    REFUSES_WITH(COX_E_BUILD, "rig_nothing", recipe.stages[0].kernel = "rig_nothing");
}

/* ---- frames ---- */

static cox_status submit(cox_session *session, cox_buffer *const *buffers, uint32_t count)
{
    return cox__session_submit(session,
                               &(const struct cox__frame_spec){.buffers = buffers,
                                                               .buffer_count = count,
                                                               .params = &(const struct rig_params){.columns = 16}},
                               rig_done, rig);
}

Test(engine_refuse, frames_with_the_wrong_buffers)
{
    static const char *const names[] = {"rows in", "rows out", "around", "table", "sums"};
    static const size_t exact[] = {960, 960, 960, 256, 1024};
    begin(&pair);
    recipe.params.in_flight = 1;
    cox_session *session = accepted();
    cox_buffer *buffers[5], *shorter[5], *mixed[5];
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(cox_buffer_create(rig_runtime(rig), exact[i], &buffers[i]), COX_OK);
        cr_assert_eq(cox_buffer_create(rig_runtime(rig), exact[i] - 1, &shorter[i]), COX_OK);
    }
    cr_assert_eq(cox__session_submit(session, NULL, rig_done, rig), COX_E_INVALID);
    cr_assert(rig_logged(rig, "a frame needs 5 buffers; 0 given, as NULL"));
    cr_assert_eq(submit(session, NULL, 5), COX_E_INVALID);
    for (uint32_t count = 0; count < 8; count++)
        if (count != 5)
            cr_assert_eq(submit(session, buffers, count), COX_E_INVALID);
    for (int i = 0; i < 5; i++) {
        memcpy(mixed, buffers, sizeof mixed);
        cr_assert_not(rig_logged(rig, names[i]));
        mixed[i] = shorter[i];
        cr_assert_eq(submit(session, mixed, 5), COX_E_INVALID);
        cr_assert(rig_logged(rig, names[i]));
        mixed[i] = NULL;
        cr_assert_eq(submit(session, mixed, 5), COX_E_INVALID);
    }
    memcpy(mixed, buffers, sizeof mixed);
    mixed[1] = mixed[0];
    cr_assert_eq(submit(session, mixed, 5), COX_E_INVALID);
    mixed[1] = buffers[1];
    mixed[2] = mixed[0]; /* allowed, because both are only read */
    cr_assert_eq(submit(session, mixed, 5), COX_OK);
    cr_assert_eq(cox__session_run(session,
                                  &(const struct cox__frame_spec){.buffers = buffers,
                                                                  .buffer_count = 5,
                                                                  .params = &(const struct rig_params){.columns = 16}}),
                 COX_OK);
    /* No parameters means zeros: no column is touched. */
    unsigned char *out = memset(cox_buffer_data(buffers[1]), 0x42, exact[1]);
    cr_assert_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 5}),
                 COX_OK);
    for (size_t i = 0; i < exact[1]; i++)
        cr_assert_eq(out[i], 0x42);
    cr_assert_eq(rig_done_count(rig), 1);
    for (int i = 0; i < 5; i++) {
        cox_buffer_destroy(&buffers[i]);
        cox_buffer_destroy(&shorter[i]);
    }
    end(session);
}

/* The log has one line that contains this text. */
static void has_said(cox_status status, cox_status wanted, const cox_buffer *buffer, const char *logged)
{
    static uint32_t lines;
    cr_assert_eq(status, wanted, "%s", logged);
    cr_assert_null(buffer, "%s", logged);
    cr_assert(rig_logged(rig, logged), "not in the log: %s\n%s", logged, rig_log(rig));
    cr_assert_eq(rig_logged_times(rig, "\n"), ++lines, "%s", rig_log(rig));
}

#define BUFFER_REFUSED(wanted, logged, ...)            \
    do {                                               \
        buffer = (cox_buffer *)&buffer;                \
        const cox_status status_ = (__VA_ARGS__);      \
        has_said(status_, (wanted), buffer, (logged)); \
    } while (0)

Test(engine_refuse, buffers_that_are_none)
{
    rig = rig_new(&pair);
    cox_runtime *runtime = rig_runtime(rig);
    cox_buffer *buffer;
    _Alignas(64) unsigned char memory[128];
    BUFFER_REFUSED(COX_E_INVALID, "cox_buffer_create: 0 bytes; allowed: 1 to 9223372036854775807",
                   cox_buffer_create(runtime, 0, &buffer));
    BUFFER_REFUSED(COX_E_INVALID, "cox_buffer_create: 9223372036854775808 bytes; allowed: 1 to",
                   cox_buffer_create(runtime, SIZE_MAX / 2 + 1, &buffer));
    BUFFER_REFUSED(COX_E_INVALID, "cox_buffer_wrap: 63 bytes at (nil); allowed: 1 to 9223372036854775807, not at",
                   cox_buffer_wrap(runtime, NULL, 63, NULL, NULL, &buffer));
    BUFFER_REFUSED(COX_E_INVALID, "cox_buffer_wrap: 0 bytes at",
                   cox_buffer_wrap(runtime, memory, 0, NULL, NULL, &buffer));
    BUFFER_REFUSED(COX_E_INVALID, "cox_buffer_wrap: 9223372036854775808 bytes at",
                   cox_buffer_wrap(runtime, memory, SIZE_MAX / 2 + 1, NULL, NULL, &buffer));
    FAKE_FAULT(rig_fake(rig), .kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
    BUFFER_REFUSED(COX_E_NOMEM, "cox_buffer_create: 100 bytes: out of host memory",
                   cox_buffer_create(runtime, 100, &buffer));
    FAKE_FAULT(rig_fake(rig), .kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
    BUFFER_REFUSED(COX_E_NOMEM, "cox_buffer_wrap: 64 bytes: out of host memory",
                   cox_buffer_wrap(runtime, memory, 64, NULL, NULL, &buffer));
    buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_create(NULL, 16, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    cr_assert_eq(cox_buffer_wrap(runtime, memory + 16, 64, NULL, NULL, &buffer), COX_OK);
    cr_assert_eq(cox_buffer_data(buffer), (void *)(memory + 16));
    cox_buffer_destroy(&buffer);
    cr_assert_null(buffer);
    END(rig);
}

Test(engine_refuse, a_warm_up_without_memory)
{
    struct play play = play_begin(&pair, 100, 10, 64, 3, &(const struct cox__session_spec){.in_flight = 3});
    FAKE_FAULT(play.fake, .kind = FAKE_MEM_FAILS, .status = COX_E_NOMEM);
    cr_assert_eq(cox_session_warm(play.session, NULL), COX_E_NOMEM);
    cr_assert_str_eq(rig_log(play.rig), "cox_session_warm: buffer 0 (in), 6400 bytes: out of host memory\n");
    cr_assert_eq(cox_session_warm(play.session, NULL), COX_OK);
    play_frames(&play, 0, 6, 3);
    play_end(&play);
}

Test(engine_refuse, a_device_index_past_the_end)
{
    rig = rig_new(&pair);
    struct cox_device_info info;
    memset(&info, 0x5a, sizeof info);
    cr_assert_eq(cox_runtime_device_count(rig_runtime(rig)), 2);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 2, &info), COX_E_NOT_FOUND);
    cr_assert_eq(info.name[0], 0x5a);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 1, &info), COX_OK);
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
    struct play play = play_begin(&devices, 100, 10, 13, 2,
                                  &(const struct cox__session_spec){.in_flight = 1}); /* 4096 > 100 */
    cr_assert_eq(rig_info(play.session).row_alignment, 100);
    cr_assert(rig_logged(play.rig, "rows cannot be split: the row alignment is 100 of 100 rows\n"));
    cr_assert(rig_logged(play.rig,
                         "buffer 0 (in): a pitch of 4096 instead of 13 bytes reduces the row alignment to 1 ("));
    cr_assert(rig_logged(play.rig,
                         "buffer 1 (out): a pitch of 4096 instead of 13 bytes reduces the row alignment to 1 ("));
    play_frames(&play, 0, 10, 2);
    play_end(&play);
}

#define FEW "few splits are possible: the row alignment is "
#define MEND(buffer, pitch, row_alignment)                                                                    \
    "buffer " buffer ": a pitch of 64 instead of " pitch " bytes reduces the row alignment to " row_alignment \
    " (see cox_runtime_pitch_bytes)\n"
#define NO_MEND " rows; the cause is row divisors or the rows of work-groups, not a pitch\n"

/* The first device needs an alignment of 64 bytes. */
Test(engine_refuse, a_granule_above_an_eighth_of_the_rows_is_told_with_the_pitches_that_mend_it)
{
    static const struct {
        uint32_t rows;
        size_t pitches[3]; /* of the recipe's bindings with rows */
        uint32_t local_rows, row_alignment;
        const char *logged; /* NULL: nothing about the row alignment */
    } cases[] = {
        {64, {64, 64, 64}, 1, 1, NULL},
        {64, {64, 8, 64}, 1, 8, NULL}, /* an eighth of the rows */
        {63, {64, 8, 64}, 1, 8, FEW "8 of 63 rows\n" MEND("1 (rows out)", "8", "1")},
        {60, {32, 64, 20}, 1, 16, FEW "16 of 60 rows\n" MEND("0 (rows in)", "32", "1") MEND("2 (around)", "20", "1")},
        {60, {64, 64, 64}, 16, 16, FEW "16 of 60" NO_MEND},
        {60, {32, 64, 20}, 16, 16, FEW "16 of 60" NO_MEND},
        {60, {32, 64, 20}, 3, 48, FEW "48 of 60 rows\n" MEND("0 (rows in)", "32", "3") MEND("2 (around)", "20", "3")},
        {7, {64, 64, 64}, 1, 1, NULL}, /* the smallest possible */
    };
    struct fake_params devices = pair;
    devices.devices[0].align_bytes = 64;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        begin(&devices);
        recipe.params.rows = cases[c].rows;
        recipe.variants[0].local_rows = cases[c].local_rows;
        for (int i = 0; i < 3; i++)
            recipe.bindings[i].pitch_bytes = cases[c].pitches[i];
        cox_session *session = accepted();
        cr_assert_eq(rig_info(session).row_alignment, cases[c].row_alignment, "case %zu", c);
        if (cases[c].logged)
            cr_assert_str_eq(rig_log(rig), cases[c].logged, "case %zu: %s", c, rig_log(rig));
        else
            cr_assert_not(rig_logged(rig, "row alignment"), "case %zu: %s", c, rig_log(rig));
        end(session);
    }
}

Test(engine_refuse, a_session_of_one_device_may_have_any_granule)
{
    struct fake_params devices = pair;
    devices.devices[0].align_bytes = 4096;
    begin(&devices);
    recipe.params.devices = (const uint32_t[]){0};
    recipe.params.device_count = 1;
    cox_session *session = accepted();
    cr_assert_not(rig_logged(rig, "row alignment"), "%s", rig_log(rig));
    end(session);
}
