/* The public API on real OpenCL devices, PoCL by default, through public headers only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

TestSuite(api, .timeout = 600);

enum { ROWS = 200, COLUMNS = 150, POOL = 5 };

static cox_runtime *open_runtime(const char *devices, const char *cache_dir)
{
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&runtime,
                                                 COX_RUNTIME_PARAMS(.devices = devices, .cache_dir = cache_dir,
                                                                    .log = on_log, .log_level = COX_LOG_DEBUG));
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device: %s", cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s\n%s", cox_status_name(status), logged);
    cr_assert_not_null(runtime);
    return runtime;
}

/* ---- arithmetic ---- */

/* What rounding a product costs; nothing if both are rounded. */
static const char told_source[] = "#pragma OPENCL FP_CONTRACT OFF\n"
                                  "kernel void told(global const float *in, global float *out, int columns) {\n"
                                  "    int x = get_global_id(0);\n"
                                  "    if (x >= columns) return;\n"
                                  "#ifdef COX_FMA\n"
                                  "    out[x] = fma(in[x], in[x], -in[x] * in[x]);\n"
                                  "#else\n"
                                  "    out[x] = in[x] * in[x] + -in[x] * in[x];\n"
                                  "#endif\n"
                                  "}\n";

/* Whether programs of this runtime were built with COX_FMA. */
static bool kernels_use_fma(cox_runtime *runtime)
{
    enum { COLUMNS = 64 };
    const size_t pitch = cox_runtime_pitch_bytes(runtime, COLUMNS * sizeof(float));
    const struct cox_binding bindings[] = {{.name = "in", .access = COX_READ, .pitch_bytes = pitch},
                                           {.name = "out", .access = COX_WRITE, .pitch_bytes = pitch}};
    const struct cox_arg args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_COLUMNS};
    const struct cox_variant variant = {.source = told_source};
    const struct cox_stage stage = {
        .kernel = "told", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 3, .args = args};
    cox_session *session = NULL;
    cox_buffer *buffers[2] = {NULL, NULL};
    cr_assert_eq(cox_session_create(runtime,
                                    COX_SESSION_PARAMS(.rows = 1, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage, .no_warmup = true),
                                    &session),
                 COX_OK, "%s", logged);
    for (int b = 0; b < 2; b++)
        cr_assert_eq(cox_buffer_create(runtime, pitch, &buffers[b]), COX_OK);
    float *in = cox_buffer_data(buffers[0]);
    for (int x = 0; x < COLUMNS; x++)
        in[x] = 3.0f + (float)x * 0x1p-20f;
    const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2};
    cr_assert_eq(cox_session_run(session, &frame), COX_OK);
    bool any = false;
    for (int x = 0; x < COLUMNS; x++)
        any |= ((const float *)cox_buffer_data(buffers[1]))[x] != 0;
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
    return any;
}

Test(real_devices, one_arithmetic_serves_all_devices, .timeout = 600)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    bool all_fast = true, all_have = true;
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        cr_assert_eq(cox_runtime_device_info(runtime, d, &info, sizeof info), COX_OK);
        all_fast &= info.fma == COX_FMA_FAST;
        all_have &= info.fma != COX_FMA_NONE;
    }
    cr_assert_eq(cox_runtime_arithmetic(runtime), all_fast ? COX_ARITHMETIC_FMA : COX_ARITHMETIC_MULADD);
    cr_assert_eq(kernels_use_fma(runtime), all_fast);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.arithmetic = COX_ARITHMETIC_MULADD)), COX_OK);
    cr_assert_eq(cox_runtime_arithmetic(runtime), COX_ARITHMETIC_MULADD);
    cr_assert_not(kernels_use_fma(runtime));
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.arithmetic = COX_ARITHMETIC_FMA)),
                 all_have ? COX_OK : COX_E_UNSUPPORTED);
    cr_assert_eq(cox_runtime_arithmetic(runtime), all_have ? COX_ARITHMETIC_FMA : COX_ARITHMETIC_AUTO);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.arithmetic = (enum cox_arithmetic)3)), COX_E_INVALID);
}

/* ---- a pipeline: out = in * 2654435761 + add + row ---- */

static const char source[] =
    "kernel void stir(global const uint *in, global uint *out, int columns, int first, int rows, int pitch, uint add) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * pitch + x] = in[y * pitch + x] * 2654435761u + add + (uint)(first + y);\n"
    "}\n";

struct mix_params {
    int32_t pitch;
    uint32_t add;
};

struct scene {
    cox_runtime *runtime;
    cox_session *session;
    size_t pitch;
    cox_buffer *in[POOL];
    cox_buffer *out[POOL];
    struct mix_params params[POOL];
    uint32_t done;
    uint32_t disorder;
    uint32_t bad;
};

static const struct cox_arg mix_args[] = {COX_ARG_BUFFER(0),
                                          COX_ARG_BUFFER(1),
                                          COX_ARG_COLUMNS,
                                          COX_ARG_FIRST_ROW,
                                          COX_ARG_ROWS,
                                          COX_ARG_FIELD(struct mix_params, pitch),
                                          COX_ARG_FIELD(struct mix_params, add)};

static cox_status create_mix(cox_runtime *runtime, size_t pitch, const char *code, const char *kernel,
                             uint32_t arg_count, const struct cox_session_params *extra, cox_session **out)
{
    const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = pitch},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = pitch}};
    const struct cox_variant variant = {.source = code, .local_columns = 32};
    const struct cox_stage stage = {.kernel = kernel,
                                    .columns = COLUMNS,
                                    .variant_count = 1,
                                    .variants = &variant,
                                    .arg_count = arg_count,
                                    .args = mix_args};
    struct cox_session_params params = *extra;
    params.rows = ROWS;
    params.binding_count = 2;
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &stage;
    params.params_bytes = sizeof(struct mix_params);
    return cox_session_create(runtime, &params, out);
}

static void scene_open(struct scene *scene, cox_runtime *runtime, const struct cox_session_params *extra)
{
    memset(scene, 0, sizeof *scene);
    scene->runtime = runtime;
    scene->pitch = cox_runtime_pitch_bytes(runtime, COLUMNS * 4);
    for (uint32_t i = 0; i < POOL; i++) {
        cr_assert_eq(cox_buffer_create(runtime, ROWS * scene->pitch, &scene->in[i]), COX_OK);
        cr_assert_eq(cox_buffer_create(runtime, ROWS * scene->pitch, &scene->out[i]), COX_OK);
        uint32_t *data = cox_buffer_data(scene->in[i]);
        for (size_t e = 0; e < ROWS * scene->pitch / 4; e++)
            data[e] = (uint32_t)e * 40503u + i;
        scene->params[i] = (struct mix_params){(int32_t)(scene->pitch / 4), 1000 * i};
    }
    cr_assert_eq(create_mix(runtime, scene->pitch, source, "stir", 7, extra, &scene->session), COX_OK, "%s", logged);
}

static void scene_close(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    for (uint32_t i = 0; i < POOL; i++) {
        cox_buffer_destroy(&scene->in[i]);
        cox_buffer_destroy(&scene->out[i]);
    }
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    scene->disorder += frame != scene->done;
    scene->bad += status != COX_OK;
    scene->done++;
}

static cox_status submit(struct scene *scene, uint32_t index, bool nowait, cox_done_fn *done, void *user)
{
    const uint32_t i = index % POOL;
    cox_buffer *const buffers[] = {scene->in[i], scene->out[i]};
    const struct cox_frame frame = {
        .buffers = buffers, .buffer_count = 2, .params = &scene->params[i], .nowait = nowait};
    return cox_session_submit(scene->session, &frame, done, user);
}

static void check(struct scene *scene, uint32_t index)
{
    const uint32_t i = index % POOL;
    const uint32_t *in = cox_buffer_data(scene->in[i]), *out = cox_buffer_data(scene->out[i]);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const size_t at = r * scene->pitch / 4 + c;
            cr_assert_eq(out[at], in[at] * 2654435761u + scene->params[i].add + r, "frame %u, row %u, column %u", index,
                         r, c);
        }
}

/* ---- the runtime ---- */

Test(api, a_runtime_describes_its_devices_platforms_and_processor)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    const uint32_t count = cox_runtime_device_count(runtime);
    cr_assert_geq(count, 1);
    char ids[COX_DEVICES_MAX][192];
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info;
        cr_assert_eq(cox_runtime_device_info(runtime, d, &info, sizeof info), COX_OK);
        cr_assert_neq(info.name[0], 0);
        cr_assert_neq(info.platform[0], 0);
        cr_assert_str_neq(cox_device_type_name(info.type), "unknown");
        cr_assert_str_neq(cox_memory_mode_name(info.mode), "unknown");
        cr_assert_geq(info.compute_units, 1);
        cr_assert_geq(info.parent_units, info.compute_units);
        cr_assert_geq(info.max_work_group, 1);
        cr_assert_geq(info.base_align_bytes, 1);
        /* Measured: on a busy machine what is wrapped may look copied. */
        cr_assert_neq(info.host_memory, COX_HOST_MEMORY_UNKNOWN);
        cr_assert(info.mode != COX_MODE_STAGED || info.host_memory == COX_HOST_MEMORY_COPIED);
        cr_assert_gt(info.max_alloc_bytes, 0);
        for (uint32_t e = 0; e < d; e++)
            cr_assert_str_neq(ids[e], info.id, "a device is listed twice");
        memcpy(ids[d], info.id, sizeof ids[d]);
    }
    cr_assert_geq(cox_runtime_platform_count(runtime), 1);
    struct cox_platform_info platform;
    for (uint32_t p = 0; p < cox_runtime_platform_count(runtime); p++) {
        cr_assert_eq(cox_runtime_platform_info(runtime, p, &platform, sizeof platform), COX_OK);
        cr_assert_neq(platform.name[0], 0);
    }
    cr_assert_eq(cox_runtime_platform_info(runtime, 1000, &platform, sizeof platform), COX_E_NOT_FOUND);
    struct cox_host_info host;
    cox_runtime_host_info(runtime, &host, sizeof host);
    cr_assert_geq(host.cores, 1);
    cr_assert_geq(host.cpus, host.cores);
    cr_assert_neq(host.reserve_reason[0], 0);
    cox_runtime_destroy(&runtime);
    cr_assert_null(runtime);
}

Test(api, a_staged_device_works_on_copies)
{
    cox_runtime *runtime = open_runtime("cpu=staged", NULL);
    struct cox_device_info info;
    cr_assert_eq(cox_runtime_device_info(runtime, 0, &info, sizeof info), COX_OK);
    cr_expect_eq(info.host_memory, COX_HOST_MEMORY_COPIED);
    cox_runtime_destroy(&runtime);
}

Test(api, defaults_need_no_parameters)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    const uint32_t count = cox_runtime_device_count(runtime);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&runtime, NULL), COX_OK);
    cr_assert_eq(cox_runtime_device_count(runtime), count);
    cox_runtime_destroy(&runtime);
}

Test(api, a_selection_that_finds_nothing_or_is_none_is_refused_with_a_reason)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    cox_runtime_destroy(&runtime);
    static const struct {
        const char *devices;
        cox_status status;
    } wrong[] = {{"no-such-device", COX_E_NOT_FOUND},
                 {"0.999", COX_E_NOT_FOUND},
                 {"999.0", COX_E_NOT_FOUND},
                 {"all,no-such-device", COX_E_NOT_FOUND},
                 {"all:0x1", COX_E_INVALID},
                 {"all=elsewhere", COX_E_INVALID},
                 {"all:2x", COX_E_INVALID}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        logged[0] = 0;
        runtime = (cox_runtime *)&runtime;
        cr_assert_eq(cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.devices = wrong[i].devices, .log = on_log)),
                     wrong[i].status, "%s", wrong[i].devices);
        cr_assert_null(runtime);
        cr_assert_neq(logged[0], 0, "%s: nothing in the log", wrong[i].devices);
    }
}

Test(api, the_log_reports_no_more_than_it_was_asked_for)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    cox_runtime_destroy(&runtime);
    logged[0] = 0;
    cr_assert_eq(cox_runtime_create(&runtime, COX_RUNTIME_PARAMS(.log = on_log, .log_level = COX_LOG_ERROR)), COX_OK);
    cox_runtime_destroy(&runtime);
    cr_assert_str_empty(logged);
}

Test(api, buffers_are_page_aligned_zeroed_and_described)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    cox_buffer *buffer = NULL;
    cr_assert_eq(cox_buffer_create(runtime, 12345, &buffer), COX_OK);
    const unsigned char *data = cox_buffer_data(buffer);
    cr_assert_eq((uintptr_t)data % 4096, 0);
    for (size_t i = 0; i < 12345; i++)
        cr_assert_eq(data[i], 0);
    struct cox_buffer_info info;
    cox_buffer_info(buffer, &info, sizeof info);
    cr_assert_eq(info.bytes, 12345);
    cr_assert_not(info.wrapped);
    cr_assert(info.zero_copy);
    cox_buffer_destroy(&buffer);
    cr_assert_null(buffer);
    cr_assert_eq(cox_buffer_create(runtime, 0, &buffer), COX_E_INVALID);
    cr_assert_eq(cox_buffer_create(runtime, SIZE_MAX, &buffer), COX_E_INVALID);
    cr_assert_eq(cox_buffer_create(runtime, SIZE_MAX / 4, &buffer), COX_E_NOMEM);
    cr_assert_null(buffer);
    static _Alignas(16) char memory[16];
    cr_assert_eq(cox_buffer_wrap(runtime, memory, SIZE_MAX, NULL, NULL, &buffer), COX_E_INVALID);
    cr_assert_null(buffer);
    const size_t pitch = cox_runtime_pitch_bytes(runtime, 1001);
    cr_assert_geq(pitch, 1001);
    cr_assert_lt(pitch, 1001 + 4096);
    cox_runtime_destroy(&runtime);
}

/* ---- sessions ---- */

Test(api, frames_come_back_in_order_complete_and_right)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    for (uint32_t in_flight = 1; in_flight < POOL; in_flight++) {
        struct scene scene;
        scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = in_flight));
        for (uint32_t i = 0; i < 40; i++) {
            cr_assert_eq(submit(&scene, i, false, on_done, &scene), COX_OK);
            if (i % POOL == POOL - 1) {
                cox_session_wait(scene.session);
                for (uint32_t k = 0; k < POOL; k++) {
                    check(&scene, k);
                    memset(cox_buffer_data(scene.out[k]), 0, ROWS * scene.pitch);
                }
            }
        }
        struct cox_session_info info;
        cox_session_info(scene.session, &info, sizeof info);
        cr_assert_eq(info.in_flight, in_flight);
        cr_assert_eq(info.frames_done, 40);
        cr_assert_str_eq(info.policy, cox_policy_at(0)->name);
        cr_assert_eq(info.devices[0].solo_ns > 0, info.device_count > 1, "one device alone is not timed");
        scene_close(&scene);
        cr_assert_eq(scene.done, 40);
        cr_assert_eq(scene.disorder, 0);
        cr_assert_eq(scene.bad, 0);
    }
    cox_runtime_destroy(&runtime);
}

Test(api, a_kernel_that_does_not_compile_is_an_error_with_the_compilers_words_in_the_log)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    cox_session *session = (cox_session *)&session;
    logged[0] = 0;
    cr_assert_eq(create_mix(runtime, 1024, "kernel void stir(global uint *a) { a[0] = no_such_name; }", "stir", 7,
                            COX_SESSION_PARAMS(), &session),
                 COX_E_BUILD);
    cr_assert_null(session);
    cr_assert_not_null(strstr(logged, "no_such_name"), "%s", logged);
    cr_assert_eq(create_mix(runtime, 1024, source, "another", 7, COX_SESSION_PARAMS(), &session), COX_E_BUILD);
    cr_assert_null(session);
    cr_assert_not_null(strstr(logged, "no kernel another"), "%s", logged);
    cr_assert_eq(create_mix(runtime, 1024, source, "stir", 6, COX_SESSION_PARAMS(), &session), COX_E_INVALID);
    cr_assert_null(session);
    cr_assert_not_null(strstr(logged, "7 arguments"), "%s", logged);
    cox_runtime_destroy(&runtime);
}

Test(api, an_argument_of_another_size_is_refused_before_the_first_frame)
{
    static const struct {
        const char *kernel;
        const char *says;
    } wrong[] = {
        {"kernel void stir(int in, global uint *out, int columns, int first, int rows, int pitch, uint add) {}\n",
         "does not take a buffer (8 bytes) as argument 0"},
        {"kernel void stir(global const uint *in, global uint *out, long columns, int first, int rows, int pitch,\n"
         "    uint add) {}\n",
         "does not take an int (4 bytes) as argument 2"},
        {"kernel void stir(global const uint *in, global uint *out, int columns, int first, int rows, int pitch,\n"
         "    ulong4 add) {}\n",
         "does not take a parameter (4 bytes) as argument 6"}};
    cox_runtime *runtime = open_runtime("cpu", NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cox_session *session = (cox_session *)&session;
        logged[0] = 0;
        cr_assert_eq(create_mix(runtime, 1024, wrong[i].kernel, "stir", 7, COX_SESSION_PARAMS(), &session),
                     COX_E_INVALID, "%zu", i);
        cr_assert_null(session);
        cr_assert_not_null(strstr(logged, wrong[i].says), "%s", logged);
    }
    cox_runtime_destroy(&runtime);
}

Test(api, a_kernel_that_requires_another_group_size_is_refused_before_the_first_frame)
{
    static const char requires[] =
        "kernel __attribute__((reqd_work_group_size(16, 1, 1))) void stir(global const uint *in, global uint *out,\n"
        "    int columns, int first, int rows, int pitch, uint add) {}\n";
    cox_runtime *runtime = open_runtime("cpu", NULL);
    cox_session *session;
    cr_assert_eq(create_mix(runtime, 1024, requires, "stir", 7, COX_SESSION_PARAMS(), &session), COX_E_INVALID);
    cr_assert_not_null(strstr(logged, "requires groups of 16 x 1 x 1, not 32 x 1"), "%s", logged);
    cox_runtime_destroy(&runtime);
}

Test(api, a_halo_may_be_larger_than_the_frame)
{
    const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_HALO, .access = COX_READ, .pitch_bytes = 65536, .halo_rows = INT32_MAX},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = 65536}};
    const struct cox_variant variant = {.source = source, .local_columns = 32};
    const struct cox_stage stage = {.kernel = "stir",
                                    .columns = COLUMNS,
                                    .variant_count = 1,
                                    .variants = &variant,
                                    .arg_count = 7,
                                    .args = mix_args};
    cox_runtime *runtime = open_runtime("cpu", NULL);
    cox_session *session;
    cr_assert_eq(cox_session_create(runtime,
                                    COX_SESSION_PARAMS(.rows = 64, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage,
                                                       .params_bytes = sizeof(struct mix_params)),
                                    &session),
                 COX_OK, "%s", logged);
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    cr_assert_eq(info.devices[0].max_rows, 64);
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
}

struct chain {
    struct scene *scene;
    uint32_t submitted;
    uint32_t done;
    uint32_t wrong;
};

static void submit_next(void *user, uint64_t frame, cox_status status)
{
    struct chain *chain = user;
    chain->wrong += frame != chain->done || status != COX_OK;
    chain->done++;
    if (chain->submitted < 100) {
        chain->wrong += submit(chain->scene, chain->submitted, false, submit_next, chain) != COX_OK;
        chain->submitted++;
    }
}

Test(api, the_callback_may_submit_the_next_frame)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    struct scene scene;
    scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 2));
    struct chain chain = {.scene = &scene, .submitted = 1};
    cr_assert_eq(submit(&scene, 0, false, submit_next, &chain), COX_OK);
    cox_session_wait(scene.session);
    cr_assert_eq(chain.done, 100);
    cr_assert_eq(chain.wrong, 0);
    for (uint32_t i = 0; i < POOL; i++)
        check(&scene, i);
    scene_close(&scene);
    cox_runtime_destroy(&runtime);
}

Test(api, nowait_never_blocks_and_loses_nothing)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    struct scene scene;
    scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 1));
    uint32_t accepted = 0, busy = 0;
    while (accepted < 20) {
        const cox_status status = submit(&scene, accepted, true, on_done, &scene);
        cr_assert(status == COX_OK || status == COX_E_BUSY);
        accepted += status == COX_OK;
        busy += status == COX_E_BUSY;
    }
    cr_assert_gt(busy, 0);
    cox_session_wait(scene.session);
    cr_assert_eq(scene.done, 20);
    cr_assert_eq(scene.disorder + scene.bad, 0);
    scene_close(&scene);
    cox_runtime_destroy(&runtime);
}

Test(api, destroy_waits_for_frames_in_flight)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    for (int round = 0; round < 5; round++) {
        struct scene scene;
        scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 4, .no_warmup = round % 2));
        for (uint32_t i = 0; i < 4; i++)
            cr_assert_eq(submit(&scene, i, false, on_done, &scene), COX_OK);
        cox_session_destroy(&scene.session);
        cr_assert_eq(scene.done, 4);
        for (uint32_t i = 0; i < 4; i++)
            check(&scene, i);
        scene_close(&scene);
    }
    cox_runtime_destroy(&runtime);
}

Test(api, two_runtimes_work_side_by_side)
{
    cox_runtime *runtimes[2] = {open_runtime(NULL, NULL), open_runtime(NULL, NULL)};
    struct scene scenes[2];
    for (int r = 0; r < 2; r++)
        scene_open(&scenes[r], runtimes[r], COX_SESSION_PARAMS(.in_flight = 2));
    for (uint32_t i = 0; i < 20; i++)
        for (int r = 0; r < 2; r++)
            cr_assert_eq(submit(&scenes[r], i, false, on_done, &scenes[r]), COX_OK);
    for (int r = 0; r < 2; r++) {
        cox_session_wait(scenes[r].session);
        for (uint32_t i = 0; i < POOL; i++)
            check(&scenes[r], i);
        cr_assert_eq(scenes[r].done, 20);
        scene_close(&scenes[r]);
        cox_runtime_destroy(&runtimes[r]);
    }
}

static struct cox_frame_report reports[256];
static struct cox_band_report report_bands[256][COX_DEVICES_MAX];
static uint32_t report_count;

static void on_report(void *user, const struct cox_frame_report *report)
{
    (void)user;
    if (report_count < 256 && report->band_count <= COX_DEVICES_MAX) {
        memcpy(report_bands[report_count], report->bands, report->band_count * sizeof *report->bands);
        reports[report_count] = *report;
        reports[report_count].bands = report_bands[report_count];
    }
    report_count++;
}

Test(api, reports_hold_plausible_times)
{
    cox_runtime *runtime = open_runtime(NULL, NULL);
    struct scene scene;
    scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 2, .report = on_report));
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(submit(&scene, i, false, on_done, &scene), COX_OK);
    cox_session_wait(scene.session);
    const uint32_t devices = cox_runtime_device_count(runtime);
    cr_assert_geq(report_count, 20 + (devices > 1 ? 2 * devices : 0));
    uint64_t index = 0;
    for (uint32_t i = 0; i < report_count; i++) {
        const struct cox_frame_report *report = &reports[i];
        cr_assert_eq(report->status, COX_OK);
        cr_assert_leq(report->submit_ns, report->start_ns);
        cr_assert_lt(report->start_ns, report->end_ns);
        if (report->shadow)
            continue;
        uint32_t row = 0;
        for (uint32_t b = 0; b < report->band_count; b++) {
            const struct cox_band_report *band = &report->bands[b];
            cr_assert_eq(band->first_row, row);
            row += band->rows;
            cr_assert_geq(band->submit_ns, report->start_ns);
            cr_assert_leq(band->end_ns, report->end_ns);
            cr_assert_gt(band->wall_ns, 0);
            cr_assert_leq(band->wall_ns + band->queue_ns, band->end_ns - band->submit_ns + 1);
            cr_assert_leq(band->kernel_ns, band->end_ns - band->submit_ns);
        }
        cr_assert_eq(row, ROWS);
        if (!report->warmup)
            cr_assert_eq(report->index, index++);
    }
    cr_assert_eq(index, 20);
    scene_close(&scene);
    cox_runtime_destroy(&runtime);
}

/* ---- a process that cannot run ---- */

static const char slow_source[] = "kernel void slow(global uint *out, uint turns) {\n"
                                  "    uint x = get_global_id(1);\n"
                                  "    for (uint i = 0; i < turns; i++)\n"
                                  "        x = x * 1664525u + 1013904223u;\n"
                                  "    out[get_global_id(1)] = x;\n"
                                  "}\n";

static uint64_t run_slow(cox_session *session, cox_buffer *out, uint32_t turns)
{
    struct timespec begin, end;
    const struct cox_frame frame = {.buffers = &out, .buffer_count = 1, .params = &turns};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    cr_assert_eq(cox_session_run(session, &frame), COX_OK, "%s", logged);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (uint64_t)(end.tv_sec - begin.tv_sec) * 1000000000u + (uint64_t)end.tv_nsec - (uint64_t)begin.tv_nsec;
}

/* For longer than the time limit of a band that is under way. */
static void stop_this_process(uint32_t after_us, uint32_t us)
{
    const pid_t self = getpid(), other = fork();
    if (other == 0) {
        usleep(after_us);
        kill(self, SIGSTOP);
        usleep(us);
        kill(self, SIGCONT);
        _exit(0);
    }
    cr_assert_gt(other, 0);
}

Test(api, a_process_that_was_stopped_gives_no_device_up)
{
    cox_runtime *runtime = open_runtime("cpu:1x1", NULL);
    cox_session *session;
    cox_buffer *out;
    const struct cox_binding bindings[] = {
        {.name = "out", .access = COX_WRITE, .contract = COX_ROWS, .pitch_bytes = sizeof(uint32_t)}};
    const struct cox_variant variants[] = {{.source = slow_source}};
    const struct cox_arg args[] = {COX_ARG_BUFFER(0), {COX_ARG_KIND_PARAMS, 0, 0, sizeof(uint32_t)}};
    const struct cox_stage stages[] = {
        {.kernel = "slow", .variant_count = 1, .variants = variants, .arg_count = 2, .args = args}};
    cr_assert_eq(cox_session_create(runtime,
                                    COX_SESSION_PARAMS(.rows = 1, .binding_count = 1, .bindings = bindings,
                                                       .stage_count = 1, .stages = stages,
                                                       .params_bytes = sizeof(uint32_t), .no_profile = true,
                                                       .device_timeout_ns = 1000000000),
                                    &session),
                 COX_OK, "%s", logged);
    cr_assert_eq(cox_buffer_create(runtime, 4096, &out), COX_OK);
    for (int i = 0; i < 20; i++) /* known as a device that needs next to nothing */
        run_slow(session, out, 1);
    const uint32_t turns = 20000000;
    const uint64_t ns = run_slow(session, out, turns);
    stop_this_process(100000, 2500000);
    run_slow(session, out, (uint32_t)((double)turns * 5e8 / (double)ns)); /* half a second */
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    cr_assert_eq(info.devices[0].lost, 0, "%s", logged);
    cr_assert_eq(info.frames_done, 22);
    wait(NULL);
    cox_session_destroy(&session);
    cox_buffer_destroy(&out);
    cox_runtime_destroy(&runtime);
}

/* Files below a directory; with `spoil` each is overwritten in its middle. */
static uint32_t visit(const char *path, bool spoil)
{
    uint32_t files = 0;
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char name[1024];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        if (entry->d_type == DT_DIR) {
            files += visit(name, spoil);
            continue;
        }
        files++;
        FILE *file = spoil ? fopen(name, "r+b") : NULL;
        if (file) {
            fseek(file, 0, SEEK_END);
            fseek(file, ftell(file) / 2, SEEK_SET);
            fputs("spoiled", file);
            fclose(file);
        }
    }
    if (dir)
        closedir(dir);
    return files;
}

Test(api, compiled_kernels_are_kept_and_damaged_ones_are_built_again)
{
    char dir[] = "/tmp/coxswain-api-XXXXXX", inside[64];
    cr_assert_not_null(mkdtemp(dir));
    snprintf(inside, sizeof inside, "%s/a/b", dir); /* created if missing */
    for (int round = 0; round < 4; round++) {
        if (round == 2)
            cr_assert_geq(visit(inside, true), 1);
        cox_runtime *runtime = open_runtime(NULL, inside);
        struct scene scene;
        scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 1));
        for (uint32_t i = 0; i < POOL; i++)
            cr_assert_eq(submit(&scene, i, false, on_done, &scene), COX_OK);
        cox_session_wait(scene.session);
        for (uint32_t i = 0; i < POOL; i++)
            check(&scene, i);
        scene_close(&scene);
        cox_runtime_destroy(&runtime);
        cr_assert_geq(visit(inside, false), 1, "nothing was kept");
    }
    char command[96];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}

Test(api, a_cache_that_cannot_be_written_stops_nothing)
{
    cox_runtime *runtime = open_runtime(NULL, "/proc/no/such/place");
    struct scene scene;
    scene_open(&scene, runtime, COX_SESSION_PARAMS(.in_flight = 1));
    cr_assert_eq(submit(&scene, 0, false, on_done, &scene), COX_OK);
    cox_session_wait(scene.session);
    check(&scene, 0);
    scene_close(&scene);
    cox_runtime_destroy(&runtime);
}

/* ---- texts ---- */

Test(api, every_status_reason_type_and_mode_has_a_text)
{
#define CHECK_STATUS(name, value, text)            \
    cr_assert_eq(name, value);                     \
    cr_assert_str_eq(cox_status_text(name), text); \
    cr_assert_str_eq(cox_status_name(name), #name);
    COX_STATUS_MAP(CHECK_STATUS)
#define CHECK_REASON(name, value, text) \
    cr_assert_eq(name, value);          \
    cr_assert_str_eq(cox_reason_text(name), text);
    COX_REASON_MAP(CHECK_REASON)
    cr_assert_str_eq(cox_status_text((cox_status)-1000), "unknown status");
    cr_assert_not_null(cox_status_name((cox_status)-1000));
    cr_assert_str_eq(cox_reason_text((enum cox_reason)1000), "unknown reason");
    cr_assert_str_eq(cox_device_type_name(COX_DEVICE_CPU), "cpu");
    cr_assert_str_eq(cox_device_type_name(COX_DEVICE_GPU), "gpu");
    cr_assert_str_eq(cox_device_type_name(COX_DEVICE_ACCELERATOR), "accelerator");
    cr_assert_str_eq(cox_device_type_name(COX_DEVICE_OTHER), "other");
    cr_assert_str_eq(cox_device_type_name((enum cox_device_type)0), "unknown");
    cr_assert_str_eq(cox_memory_mode_name(COX_MODE_SHARED), "shared");
    cr_assert_str_eq(cox_memory_mode_name(COX_MODE_MAPPED), "mapped");
    cr_assert_str_eq(cox_memory_mode_name(COX_MODE_STAGED), "staged");
    cr_assert_str_eq(cox_host_memory_name(COX_HOST_MEMORY_UNKNOWN), "unknown");
    cr_assert_str_eq(cox_host_memory_name(COX_HOST_MEMORY_WRAPPED), "wrapped");
    cr_assert_str_eq(cox_host_memory_name(COX_HOST_MEMORY_COPIED), "copied");
    cr_assert_str_eq(cox_memory_mode_name((enum cox_memory_mode)9), "unknown");
    cr_assert_str_eq(cox_fma_name(COX_FMA_NONE), "none");
    cr_assert_str_eq(cox_fma_name(COX_FMA_SLOW), "slow");
    cr_assert_str_eq(cox_fma_name(COX_FMA_FAST), "fast");
    cr_assert_str_eq(cox_fma_name((enum cox_fma)3), "unknown");
    cr_assert_str_eq(cox_arithmetic_name(COX_ARITHMETIC_AUTO), "auto");
    cr_assert_str_eq(cox_arithmetic_name(COX_ARITHMETIC_MULADD), "muladd");
    cr_assert_str_eq(cox_arithmetic_name(COX_ARITHMETIC_FMA), "fma");
    cr_assert_str_eq(cox_arithmetic_name((enum cox_arithmetic)3), "unknown");
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", COX_VERSION_MAJOR, COX_VERSION_MINOR, COX_VERSION_PATCH);
    cr_assert_str_eq(cox_version(), version);
    cr_assert_str_eq(cox_version(), COX_VERSION_STRING);
}
