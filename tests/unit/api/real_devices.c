/* The public API on real OpenCL devices, PoCL by default, through public headers only.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "base/clock.h"
#include "real.h"
#include "support/scratch.h"
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

TestSuite(api, .fini = close_all, .timeout = 600);

/* ---- arithmetic ---- */

/* The error of rounding a product; zero if both are rounded. */
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
static bool kernels_use_fma(void)
{
    enum { WIDTH = 64 };
    const size_t pitch = cox_runtime_pitch_bytes(runtime, WIDTH * sizeof(float));
    const struct cox__binding bindings[] = {{.name = "in", .access = COX__READ, .pitch_bytes = pitch},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = pitch}};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1), COX__ARG_COLUMNS};
    const struct cox__variant variant = {.source = told_source};
    const struct cox__stage stage = {
        .kernel = "told", .columns = WIDTH, .variant_count = 1, .variants = &variant, .arg_count = 3, .args = args};
    cox_session *session = NULL;
    cox_buffer *buffers[2] = {NULL, NULL};
    cr_assert_eq(cox__session_create(runtime,
                                     &(const struct cox__session_spec){.rows = 1,
                                                                       .binding_count = 2,
                                                                       .bindings = bindings,
                                                                       .stage_count = 1,
                                                                       .stages = &stage,
                                                                       .no_warmup = true},
                                     &session),
                 COX_OK, "%s", logged);
    for (int b = 0; b < 2; b++)
        cr_assert_eq(cox_buffer_create(runtime, pitch, &buffers[b]), COX_OK);
    float *in = cox_buffer_data(buffers[0]);
    for (int x = 0; x < WIDTH; x++)
        in[x] = 3.0f + (float)x * 0x1p-20f;
    const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = 2};
    cr_assert_eq(cox__session_run(session, &frame), COX_OK);
    bool any = false;
    for (int x = 0; x < WIDTH; x++)
        any |= ((const float *)cox_buffer_data(buffers[1]))[x] != 0;
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
    return any;
}

Test(api, one_arithmetic_serves_all_devices)
{
    open_runtime(NULL);
    bool all_fast = true, any_fast = false, all_have = true;
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        cr_assert_eq(cox_runtime_device_info(runtime, d, &info), COX_OK);
        all_fast &= info.fma == COX_FMA_FAST;
        any_fast |= info.fma == COX_FMA_FAST;
        all_have &= info.fma != COX_FMA_NONE;
    }
    cr_assert_eq(cox_runtime_arithmetic(runtime), all_fast ? COX_ARITHMETIC_FMA : COX_ARITHMETIC_MULADD);
    cr_assert_eq(strstr(logged, "all kernels use muladd") != NULL, any_fast && !all_fast, "%s", logged);
    cr_assert_eq(kernels_use_fma(), all_fast);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.arithmetic = COX_ARITHMETIC_MULADD}, &runtime),
                 COX_OK);
    cr_assert_eq(cox_runtime_arithmetic(runtime), COX_ARITHMETIC_MULADD);
    cr_assert_not(kernels_use_fma());
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.arithmetic = COX_ARITHMETIC_FMA}, &runtime),
                 all_have ? COX_OK : COX_E_UNSUPPORTED);
    cr_assert_eq(cox_runtime_arithmetic(runtime), all_have ? COX_ARITHMETIC_FMA : COX_ARITHMETIC_AUTO);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.arithmetic = (enum cox_arithmetic)3}, &runtime),
                 COX_E_INVALID);
}

/* ---- the runtime ---- */

Test(api, a_runtime_describes_its_devices_platforms_and_processor)
{
    open_runtime(NULL);
    const uint32_t count = cox_runtime_device_count(runtime);
    cr_assert_geq(count, 1);
    char ids[COX_DEVICES_MAX][192];
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info;
        cr_assert_eq(cox_runtime_device_info(runtime, d, &info), COX_OK);
        cr_assert_neq(info.name[0], 0);
        cr_assert_neq(info.platform[0], 0);
        cr_assert_str_neq(cox_device_type_name(info.type), "unknown");
        cr_assert_str_neq(cox_memory_mode_name(info.mode), "unknown");
        cr_assert_geq(info.compute_units, 1);
        cr_assert_geq(info.parent_units, info.compute_units);
        cr_assert_geq(info.max_work_group, 1);
        cr_assert_geq(info.base_align_bytes, 1);
        /* The mode is measured: on a busy machine wrapped memory may look copied. */
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
        cr_assert_eq(cox_runtime_platform_info(runtime, p, &platform), COX_OK);
        cr_assert_neq(platform.name[0], 0);
    }
    cr_assert_eq(cox_runtime_platform_info(runtime, 1000, &platform), COX_E_NOT_FOUND);
    struct cox_left_out left_out;
    uint32_t skipped = 0;
    for (; cox_runtime_left_out(runtime, skipped, &left_out) == COX_OK; skipped++)
        cr_assert(left_out.name[0] && left_out.platform[0] && left_out.reason[0]);
    cr_assert_eq(cox_runtime_left_out(runtime, skipped, &left_out), COX_E_NOT_FOUND);
    struct cox_host_info host;
    cox_runtime_host_info(runtime, &host);
    cr_assert_geq(host.cores, 1);
    cr_assert_geq(host.cpus, host.cores);
    cr_assert_neq(host.reserve_reason[0], 0);
}

Test(api, a_staged_device_works_on_copies)
{
    struct cox_device_info info;
    open_runtime("cpu=staged");
    cr_assert_eq(cox_runtime_device_info(runtime, 0, &info), COX_OK);
    cr_expect_eq(info.host_memory, COX_HOST_MEMORY_COPIED);
}

Test(api, defaults_need_no_parameters)
{
    open_runtime(NULL);
    const uint32_t count = cox_runtime_device_count(runtime);
    cox_runtime_destroy(&runtime);
    cr_assert_eq(cox_runtime_create(NULL, &runtime), COX_OK);
    cr_assert_eq(cox_runtime_device_count(runtime), count);
}

Test(api, the_log_reports_no_more_than_it_was_asked_for)
{
    open_runtime_at(NULL, NULL, COX_LOG_ERROR);
    cox_runtime_destroy(&runtime);
    cr_assert_str_empty(logged);
}

Test(api, buffers_are_page_aligned_and_zeroed)
{
    open_runtime(NULL);
    cox_buffer *buffer = NULL;
    cr_assert_eq(cox_buffer_create(runtime, 12345, &buffer), COX_OK);
    const unsigned char *data = cox_buffer_data(buffer);
    cr_assert_eq((uintptr_t)data % 4096, 0);
    for (size_t i = 0; i < 12345; i++)
        cr_assert_eq(data[i], 0);
    cr_assert_eq(cox_buffer_bytes(buffer), 12345);
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
}

/* ---- sessions ---- */

Test(api, frames_come_back_in_order_complete_and_right)
{
    open_runtime(NULL);
    for (uint32_t in_flight = 1; in_flight < POOL; in_flight++) {
        struct scene *scene = open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = in_flight});
        for (uint32_t i = 0; i < 40; i += POOL)
            run_frames(scene, POOL);
        struct cox_session_info info;
        cox_session_info(scene->session, &info);
        cr_assert_eq(info.frames_done, 40);
        cr_assert_str_eq(info.policy, cox_policy_at(0)->name);
        cr_assert_eq(info.devices[0].single_device_ns > 0, info.device_count > 1, "one device alone is not timed");
        close_scene(scene);
        check_done(scene, 40);
    }
}

/* The kernel cannot be made into a session, and the log says why. */
static void refused(const struct stir_kernel *kernel, cox_status status, const char *says)
{
    cox_session *session = (cox_session *)&session;
    logged[0] = 0;
    cr_assert_eq(create_stir(runtime, kernel, &(const struct cox__session_spec){0}, &session), status, "%s",
                 kernel->source);
    cr_assert_null(session);
    cr_assert_not_null(strstr(logged, says), "%s is not in the log: %s", says, logged);
}

#define KERNEL(source, name, args) (&(const struct stir_kernel){source, name, args, ROWS, 0, 1024})

Test(api, a_kernel_that_does_not_compile_is_an_error_with_the_compilers_words_in_the_log)
{
    static const char nonsense[] = "kernel void stir(global uint *a) { a[0] = no_such_name; }";
    open_runtime(NULL);
    refused(KERNEL(nonsense, "stir", 7), COX_E_BUILD, "no_such_name");
    refused(KERNEL(stir_source, "another", 7), COX_E_BUILD, "no kernel another");
    refused(KERNEL(stir_source, "stir", 6), COX_E_INVALID, "7 arguments");
}

/* How often the log has the text. */
static unsigned count_logged(const char *text)
{
    unsigned count = 0;
    for (const char *at = logged; (at = strstr(at, text)); at++)
        count++;
    return count;
}

Test(api, sub_devices_do_not_repeat_the_output_of_the_compiler)
{
    static const char nonsense[] = "kernel void stir(global uint *a) { a[0] = no_such_name; }";
    open_runtime("cpu");
    refused(KERNEL(nonsense, "stir", 7), COX_E_BUILD, "no_such_name");
    const unsigned once = count_logged("no_such_name"), devices = cox_runtime_device_count(runtime);
    refused(KERNEL(nonsense, "stir", 7), COX_E_BUILD, "no_such_name");
    cr_assert_eq(count_logged("no_such_name"), once, "a second session logs it again: %s", logged);
    cr_assert_eq(count_logged("output is the same as for"), 0);

    open_runtime("cpu:2x1");
    const unsigned all = cox_runtime_device_count(runtime);
    for (int i = 0; i < 2; i++) {
        refused(KERNEL(nonsense, "stir", 7), COX_E_BUILD, "no_such_name");
        cr_assert_eq(count_logged("no_such_name"), once, "%s", logged);
        cr_assert_eq(count_logged("output is the same as for"), all - devices, "%s", logged);
        cr_assert_eq(count_logged("clBuildProgram failed"), all, "each device is named: %s", logged);
    }
}

Test(api, an_argument_or_a_group_of_another_size_is_refused_before_the_first_frame)
{
    static const struct {
        const char *kernel;
        const char *says;
    } wrong[] = {
        {"kernel void stir(int in, global uint *out, int columns, int first, int rows, int pitch, uint add) {}\n",
         "argument 0 (in): the session gives a buffer, but the kernel takes 'int'"},
        {"kernel void stir(global const uint *in, global uint *out, long columns, int first, int rows, int pitch,\n"
         "    uint add) {}\n",
         "argument 2 (columns): the session gives an int, but the kernel takes 'long'"},
        {"kernel void stir(global const uint *in, global uint *out, int columns, int first, int rows, int pitch,\n"
         "    ulong4 add) {}\n",
         "argument 6 (add): the session gives a value of 4 bytes, but the kernel takes 'ulong4'"},
        {"kernel __attribute__((reqd_work_group_size(16, 1, 1))) void stir(global const uint *in, global uint *out,\n"
         "    int columns, int first, int rows, int pitch, uint add) {}\n",
         "requires groups of 16 x 1, but the session states 32 x 1"}};
    open_runtime("cpu");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refused(KERNEL(wrong[i].kernel, "stir", 7), COX_E_INVALID, wrong[i].says);
}

Test(api, a_halo_may_be_larger_than_the_frame)
{
    const struct stir_kernel kernel = {stir_source, "stir", 7, 64, INT32_MAX, 65536};
    struct cox_session_info info;
    open_runtime("cpu");
    cr_assert_eq(create_stir(runtime, &kernel, &(const struct cox__session_spec){0}, &scenes[0].session), COX_OK, "%s",
                 logged);
    cox_session_info(scenes[0].session, &info);
    cr_assert_eq(info.devices[0].max_rows, 64);
}

Test(api, the_callback_may_submit_the_next_frame)
{
    open_runtime(NULL);
    struct scene *scene = open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 2});
    scene->target = 100;
    cr_assert_eq(submit_frame(scene, false, on_frame), COX_OK);
    cox_session_wait(scene->session);
    check_done(scene, 100);
    for (uint32_t i = 0; i < POOL; i++)
        check_frame(scene, 99 - i);
}

static atomic_bool was_refused;

/* The session is full until the first frame's callback has returned. */
static void on_frame_when_refused(void *user, uint64_t frame, cox_status status)
{
    for (int tries = 0; frame == 0 && !atomic_load(&was_refused) && tries < 60000; tries++)
        usleep(1000);
    on_frame(user, frame, status);
}

Test(api, nowait_never_blocks_and_loses_nothing)
{
    open_runtime(NULL);
    struct scene *scene = open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 1});
    while (scene->submitted < 20) {
        const cox_status status = submit_frame(scene, true, on_frame_when_refused);
        cr_assert(status == COX_OK || status == COX_E_BUSY);
        if (status == COX_E_BUSY)
            atomic_store(&was_refused, true);
    }
    cr_assert(atomic_load(&was_refused));
    cox_session_wait(scene->session);
    check_done(scene, 20);
}

Test(api, destroy_waits_for_frames_in_flight)
{
    open_runtime(NULL);
    for (int round = 0; round < 5; round++) {
        struct scene *scene = open_scene(0, runtime,
                                         &(const struct cox__session_spec){.in_flight = 4, .no_warmup = round % 2});
        for (uint32_t i = 0; i < 4; i++)
            cr_assert_eq(submit_frame(scene, false, on_frame), COX_OK);
        cox_session_destroy(&scene->session);
        check_done(scene, 4);
        for (uint32_t i = 0; i < 4; i++)
            check_frame(scene, i);
        close_scene(scene);
    }
}

Test(api, two_runtimes_work_side_by_side)
{
    open_runtime(NULL);
    cox_runtime *second = NULL;
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &second), COX_OK);
    open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 2});
    open_scene(1, second, &(const struct cox__session_spec){.in_flight = 2});
    for (uint32_t i = 0; i < 15; i++)
        for (int s = 0; s < 2; s++)
            cr_assert_eq(submit_frame(&scenes[s], false, on_frame), COX_OK);
    for (int s = 0; s < 2; s++)
        run_frames(&scenes[s], 5);
    close_scene(&scenes[1]);
    cox_runtime_destroy(&second);
    cr_assert_null(second);
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
    open_runtime(NULL);
    run_frames(open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 2, .report = on_report}), 20);
    const uint32_t devices = cox_runtime_device_count(runtime);
    cr_assert_geq(report_count, 20 + (devices > 1 ? 2 * devices : 0));
    uint64_t index = 0;
    for (uint32_t i = 0; i < report_count; i++) {
        const struct cox_frame_report *report = &reports[i];
        cr_assert_eq(report->status, COX_OK);
        cr_assert_leq(report->submit_ns, report->total.start_ns);
        cr_assert_lt(report->total.start_ns, report->total.end_ns);
        if (report->shadow)
            continue;
        uint32_t row = 0;
        for (uint32_t b = 0; b < report->band_count; b++) {
            const struct cox_band_report *band = &report->bands[b];
            cr_assert_eq(band->first_row, row);
            row += band->rows;
            cr_assert_geq(band->submit_ns, report->total.start_ns);
            cr_assert_leq(band->end_ns, report->total.end_ns);
            cr_assert_gt(band->wall_ns, 0);
            cr_assert_leq(band->wall_ns + band->queue_ns, band->end_ns - band->submit_ns + 1);
            cr_assert_leq(band->kernel_ns, band->end_ns - band->submit_ns);
        }
        cr_assert_eq(row, ROWS);
        if (!report->warmup)
            cr_assert_eq(report->index, index++);
    }
    cr_assert_eq(index, 20);
}

/* ---- a process that is not scheduled ---- */

/* Signals that it has begun, then waits for the host. It ends after about a minute in any case. */
static const char wait_source[] = "kernel void wait(global const volatile uint *go, global volatile uint *begun) {\n"
                                  "    begun[0] = 1;\n"
                                  "    for (ulong i = 0; i < (1ul << 36) && !go[0]; i++)\n"
                                  "        continue;\n"
                                  "    begun[0] = 2;\n"
                                  "}\n";

/* Stop this process for longer than the timeout of a band that is under way. */
static void stop_this_process(void)
{
    const pid_t self = getpid(), other = fork();
    if (other == 0) {
        usleep(2500000);
        kill(self, SIGCONT);
        _exit(0);
    }
    cr_assert_gt(other, 0);
    raise(SIGSTOP);
    cr_assert_eq(waitpid(other, NULL, 0), other);
}

static void count_frame(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    *(cox_status *)user = status;
}

Test(api, a_process_that_was_stopped_gives_no_device_up)
{
    const struct cox__binding bindings[] = {
        {.name = "go", .access = COX__READ, .row_access = COX__WHOLE, .bytes = 4096},
        {.name = "begun", .access = COX__WRITE, .pitch_bytes = 4096}};
    const struct cox__variant variants[] = {{.source = wait_source}};
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_BUFFER(1)};
    const struct cox__stage stages[] = {
        {.kernel = "wait", .variant_count = 1, .variants = variants, .arg_count = 2, .args = args}};
    cox_buffer *buffers[2];
    cox_status result = COX_E_SYSTEM;
    open_runtime("cpu:1x1");
    cox_session **session = &scenes[0].session;
    cr_assert_eq(cox__session_create(runtime,
                                     &(const struct cox__session_spec){.rows = 1,
                                                                       .binding_count = 2,
                                                                       .bindings = bindings,
                                                                       .stage_count = 1,
                                                                       .stages = stages,
                                                                       .no_profile = true,
                                                                       .device_timeout_ns = 1000000000},
                                     session),
                 COX_OK, "%s", logged);
    for (int b = 0; b < 2; b++)
        cr_assert_eq(cox_buffer_create(runtime, 4096, &buffers[b]), COX_OK);
    volatile uint32_t *go = cox_buffer_data(buffers[0]), *begun = cox_buffer_data(buffers[1]);
    const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = 2};
    *go = 1;
    for (int i = 0; i < 20; i++) /* after this the device is known to need very little time */
        cr_assert_eq(cox__session_run(*session, &frame), COX_OK, "%s", logged);
    *go = *begun = 0;
    cr_assert_eq(cox__session_submit(*session, &frame, count_frame, &result), COX_OK);
    for (const uint64_t until_ns = cox__clock_ns() + 60000000000; *begun != 1 && cox__clock_ns() < until_ns;)
        usleep(1000);
    const bool in_time = *begun == 1;
    if (in_time)
        stop_this_process();
    usleep(200000); /* meanwhile the engine looks at the band; unless the stop is excluded, the band is late */
    *go = 1;
    cr_assert_eq(cox_session_wait(*session), COX_OK);
    cr_assert(in_time, "the kernel did not begin within a minute, or works on a copy: %s", logged);
    cr_assert_eq(result, COX_OK, "%s", logged);
    struct cox_session_info info;
    cox_session_info(*session, &info);
    cr_assert_eq(info.devices[0].lost, 0, "%s", logged);
    cr_assert_eq(info.frames_done, 21);
    cox_session_destroy(session);
    cox_buffer_destroy(&buffers[0]);
    cox_buffer_destroy(&buffers[1]);
}

/* ---- the cache ---- */

/* Count the files below a directory. With `spoil`, overwrite the middle of each. */
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
        open_runtime_at(NULL, inside, COX_LOG_DEBUG);
        struct scene *scene = open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 1});
        run_frames(scene, POOL);
        close_scene(scene);
        cox_runtime_destroy(&runtime);
        cr_assert_geq(visit(inside, false), 1, "nothing was kept");
    }
    scratch_remove(dir);
}

Test(api, a_cache_that_cannot_be_written_stops_nothing)
{
    open_runtime_at(NULL, "/proc/no/such/place", COX_LOG_DEBUG);
    run_frames(open_scene(0, runtime, &(const struct cox__session_spec){.in_flight = 1}), 1);
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
