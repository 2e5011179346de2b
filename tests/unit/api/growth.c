/* Applications that were built from older or newer headers than the library: shorter and longer structs, wider arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "unit/engine/map_test.h"
#include <coxswain/video.h>

TestSuite(growth, .timeout = 60);

enum { ROWS = 90, COLUMNS = 16 };

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};

/* The struct as a later version has it: one field more. */
#define LATER(type)    \
    struct {           \
        type known;    \
        uint64_t more; \
    }

/* A session of rig_map as an application from a later version fills it in. */
struct later {
    LATER(struct cox_session_params) params;
    LATER(struct cox_policy_options) options;
    LATER(struct cox_policy) policy;
    LATER(struct cox_binding) bindings[2];
    LATER(struct cox_stage) stages[1];
    LATER(struct cox_variant) variants[2];
    LATER(struct cox_arg) args[2];
};

static struct later later;

static void fill_later(void)
{
    memset(&later, 0, sizeof later);
    later.options.known = (struct cox_policy_options){.struct_size = sizeof later.options};
    later.policy.known = rig_policy;
    later.policy.known.struct_size = sizeof later.policy;
    later.bindings[0].known = (struct cox_binding){.name = "in", .access = COX_READ, .pitch_bytes = COLUMNS};
    later.bindings[1].known = (struct cox_binding){.name = "out", .access = COX_WRITE, .pitch_bytes = COLUMNS};
    later.variants[0].known = (struct cox_variant){.source = "fake", .type = COX_DEVICE_GPU};
    later.variants[1].known = (struct cox_variant){.source = "fake"};
    later.args[0].known = (struct cox_arg)COX_ARG_BUFFER(0);
    later.args[1].known = (struct cox_arg)COX_ARG_PARAMS(struct rig_params);
    later.stages[0].known = (struct cox_stage){.kernel = "rig_map",
                                               .variant_count = 2,
                                               .variant_stride = sizeof later.variants[0],
                                               .variants = &later.variants[0].known,
                                               .arg_count = 2,
                                               .arg_stride = sizeof later.args[0],
                                               .args = &later.args[0].known};
    later.params.known = (struct cox_session_params){.struct_size = sizeof later.params,
                                                     .rows = ROWS,
                                                     .binding_count = 2,
                                                     .binding_stride = sizeof later.bindings[0],
                                                     .bindings = &later.bindings[0].known,
                                                     .stage_count = 1,
                                                     .stage_stride = sizeof later.stages[0],
                                                     .stages = &later.stages[0].known,
                                                     .params_bytes = sizeof(struct rig_params),
                                                     .custom_policy = &later.policy.known,
                                                     .policy_options = &later.options.known,
                                                     .in_flight = 3};
}

static const uint32_t halves[][2] = {{0, 40}, {1, 50}};

Test(growth, a_later_applications_session_runs_while_it_uses_nothing_new)
{
    open_rig(&pair, ROWS, COLUMNS, 6);
    rig_split_count = 0;
    rig_add_split(2, halves);
    fill_later();
    create_session(&later.params.known);
    memset(&later, 0x5a, sizeof later); /* it was copied */
    rig_play(rig, frames, session, 0, 6);
    close_rig();
}

Test(growth, what_a_later_application_uses_that_is_new_is_refused_and_the_log_says_where)
{
    const struct {
        uint64_t *more;
        const char *logged;
    } all[] = {{&later.params.more, "cox_session_params: "}, {&later.options.more, "cox_policy_options: "},
               {&later.policy.more, "cox_policy: "},         {&later.bindings[1].more, "bindings: "},
               {&later.stages[0].more, "stages: "},          {&later.variants[1].more, "variants: "},
               {&later.args[1].more, "arguments: "}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        open_rig(&pair, ROWS, COLUMNS, 1);
        fill_later();
        *all[i].more = 1ull << 63;
        cr_assert_eq(cox_session_create(rig_runtime(rig), &later.params.known, &session), COX_E_UNSUPPORTED);
        cr_assert_null(session);
        cr_assert(rig_logged(rig, all[i].logged), "%s: %s", all[i].logged, rig_log(rig));
        close_rig();
    }
}

Test(growth, a_size_that_was_never_set_is_refused)
{
    open_rig(&pair, ROWS, COLUMNS, 1);
    fill_later();
    later.params.known.struct_size = SIZE_MAX;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &later.params.known, &session), COX_E_UNSUPPORTED);
    fill_later();
    later.params.known.binding_stride = UINT32_MAX;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &later.params.known, &session), COX_E_UNSUPPORTED);
    close_rig();
}

static char runtime_log[256];

static void keep_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user, (void)level;
    strncpy(runtime_log, line, sizeof runtime_log - 1);
}

Test(growth, a_runtime_and_frames_of_a_later_application)
{
    LATER(struct cox_runtime_params) params = {.known = {.struct_size = sizeof params, .log = keep_line}, .more = 1};
    cox_runtime *runtime = (cox_runtime *)&params;
    cr_assert_eq(cox_runtime_create(&runtime, &params.known), COX_E_UNSUPPORTED);
    cr_assert_null(runtime);
    cr_assert_not_null(strstr(runtime_log, "cox_runtime_params: "), "%s", runtime_log);

    open_rig(&pair, ROWS, COLUMNS, 1);
    open_session(COX_SESSION_PARAMS());
    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    LATER(struct cox_frame)
    frame = {
        .known = {.struct_size = sizeof frame, .buffers = buffers, .buffer_count = 2, .params = &frames->params[0]}};
    cr_assert_eq(cox_session_run(session, &frame.known), COX_OK);
    cr_assert_str_empty(rig_check(frames, 0));
    frame.more = 1;
    cr_assert_eq(cox_session_run(session, &frame.known), COX_E_UNSUPPORTED);
    cr_assert(rig_logged(rig, "cox_frame: "));
    close_rig();
}

/* An older application's struct ends before `field`; what lies behind it is something else. */
#define ENDS_BEFORE(type, pointer, field)                                                              \
    do {                                                                                               \
        memset((char *)(pointer) + offsetof(type, field), 0x5a, sizeof(type) - offsetof(type, field)); \
        (pointer)->struct_size = offsetof(type, field);                                                \
    } while (0)

static bool pool_offered;

static cox_status split_and_look(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    pool_offered |= view->pool;
    return rig_policy.split(state, view, out);
}

Test(growth, what_an_older_application_does_not_know_is_zero)
{
    open_rig(&pair, ROWS, COLUMNS, 6);
    struct cox_policy policy = rig_policy;
    struct cox_policy_options options = {.ratio_count = 2};
    rig_split_count = 0;
    rig_add_split(2, halves);
    policy.split = split_and_look;
    ENDS_BEFORE(struct cox_policy, &policy, observe);
    ENDS_BEFORE(struct cox_policy_options, &options, device);
    fill_later();
    later.params.known.custom_policy = &policy;
    later.params.known.policy_options = &options;
    ENDS_BEFORE(struct cox_session_params, &later.params.known, min_band_rows);
    later.stages[0].known.arg_stride = offsetof(struct cox_arg, offset);
    later.stages[0].known.args = (const struct cox_arg *)(const uint32_t[4]){COX_ARG_KIND_BUFFER, 0, COX_ARG_KIND_ROWS};
    create_session(&later.params.known);
    const struct cox_session_info info = rig_info(session);
    cr_assert_eq(info.in_flight, 2, "the default");
    cr_assert_eq(info.device_count, 2);
    rig_play(rig, frames, session, 0, 6);
    cr_assert(!pool_offered, "the policy has no `next`");

    cox_buffer *const buffers[] = {frames->in[0], frames->out[0]};
    struct cox_frame frame = {.buffers = buffers, .buffer_count = 2};
    ENDS_BEFORE(struct cox_frame, &frame, params);
    cr_assert_eq(cox_session_run(session, &frame), COX_OK);
    close_rig();
}

Test(growth, infos_are_filled_as_far_as_the_application_knows_them)
{
    open_rig(&pair, ROWS, COLUMNS, 1);
    LATER(struct cox_device_info) info;
    memset(&info, 0x5a, sizeof info);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 1, &info.known, sizeof info), COX_OK);
    cr_assert_str_eq(info.known.name, "fake 1");
    cr_assert_eq(info.more, 0);
    memset(&info, 0x5a, sizeof info);
    cr_assert_eq(cox_runtime_device_info(rig_runtime(rig), 1, &info.known, offsetof(struct cox_device_info, platform)),
                 COX_OK);
    cr_assert_str_eq(info.known.name, "fake 1");
    cr_assert_eq(info.known.platform[0], 0x5a);
    close_rig();
}

static bool sized;

static void check_report(void *user, const struct cox_frame_report *report)
{
    (void)user;
    sized &= report->struct_size == sizeof *report;
}

static cox_status check_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)state;
    sized &= view->struct_size == sizeof *view && options->struct_size == sizeof *options;
    return COX_OK;
}

static cox_status check_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    (void)state;
    sized &= view->struct_size == sizeof *view && out->struct_size == sizeof *out;
    out->pool_rows = view->rows;
    return COX_OK;
}

static void check_next(void *state, const struct cox_sched_view *view, const struct cox_offer *offer,
                       struct cox_grant *out)
{
    (void)state;
    sized &= view->struct_size == sizeof *view && offer->struct_size == sizeof *offer &&
             out->struct_size == sizeof *out;
    out->rows = offer->rows;
}

static void check_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    sized &= measurement->struct_size == sizeof *measurement;
}

static void check_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    sized &= measurement->struct_size == sizeof *measurement;
}

Test(growth, policies_and_reports_see_how_much_the_library_knows)
{
    struct cox_policy policy = COX_SIZED(struct cox_policy);
    policy.name = "checks";
    policy.state_bytes = rig_policy.state_bytes;
    policy.init = check_init;
    policy.split = check_split;
    policy.next = check_next;
    policy.observe = check_observe;
    policy.observe_frame = check_observe_frame;
    open_rig(&pair, ROWS, COLUMNS, 3);
    sized = true;
    open_session(COX_SESSION_PARAMS(.custom_policy = &policy, .report = check_report));
    rig_play(rig, frames, session, 0, 3);
    cr_assert(sized);
    close_rig();
    for (uint32_t i = 0; cox_policy_at(i); i++)
        cr_assert_eq(cox_policy_at(i)->struct_size, sizeof(struct cox_policy));
}

Test(growth, tone_mapping_takes_shapes_and_settings_of_any_size)
{
    LATER(struct cox_tonemap_shape)
    picture = {
        .known = {.struct_size = sizeof picture, .width = 8, .height = 8, .in_pitch_bytes = 64, .out_pitch_bytes = 32}};
    LATER(struct cox_tonemap_settings) settings = {.known = {.struct_size = sizeof settings}};
    struct cox_tonemap_storage storage;
    struct cox_tonemap_params block;
    struct cox_session_params session = {0};
    cr_assert_eq(cox_tonemap_mapping(&picture.known, &storage, &session), COX_OK);
    cr_assert_eq(session.binding_stride, sizeof(struct cox_binding));
    cr_assert_eq(session.stages[0].arg_stride, sizeof(struct cox_arg));
    cr_assert_eq(cox_tonemap_prepare(&picture.known, &settings.known, &block), COX_OK);
    settings.more = 1;
    cr_assert_eq(cox_tonemap_prepare(&picture.known, &settings.known, &block), COX_E_UNSUPPORTED);
    ENDS_BEFORE(struct cox_tonemap_settings, &settings.known, peak);
    cr_assert_eq(cox_tonemap_prepare(&picture.known, &settings.known, &block), COX_OK);
    picture.more = 1;
    cr_assert_eq(cox_tonemap_mapping(&picture.known, &storage, &session), COX_E_UNSUPPORTED);
    cr_assert_eq(cox_tonemap_analysis(&picture.known, &storage, &session), COX_E_UNSUPPORTED);

    const struct cox_video_format format = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
    LATER(struct cox_video_shape)
    film = {.known = {.struct_size = sizeof film,
                      .width = 8,
                      .height = 8,
                      .in = format,
                      .out = format,
                      .in_pitch_bytes = {64, 64, 64},
                      .out_pitch_bytes = {64, 64, 64}}};
    LATER(struct cox_video_settings) how = {.known = {.struct_size = sizeof how}};
    struct cox_video_storage room;
    struct cox_video_params frame;
    cr_assert_eq(cox_video_mapping(&film.known, true, &room, &session), COX_OK);
    cr_assert_eq(cox_video_prepare(&film.known, &how.known, &frame), COX_OK);
    how.more = 1;
    cr_assert_eq(cox_video_prepare(&film.known, &how.known, &frame), COX_E_UNSUPPORTED);
    film.more = 1;
    cr_assert_eq(cox_video_mapping(&film.known, true, &room, &session), COX_E_UNSUPPORTED);
    film.more = 0;
    film.known.in.reserved[4] = 1;
    cr_assert_eq(cox_video_analysis(&film.known, &room, &session), COX_E_INVALID);
}
