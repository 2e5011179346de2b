/* Shared by tests on real OpenCL devices, through public headers only:
 *   A runtime, or a reason to skip the test.
 *   Sessions of a small kernel whose frames can be checked.
 *
 * A suite that uses them has .fini = close_all.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REAL_H
#define COX_TESTS_REAL_H

#include "specs.h"
#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>

/* The test's runtime. Each test is its own process. */
static cox_runtime *runtime;

/* Open a runtime instead of the previous one. `devices`: NULL for the default. */
static inline void open_runtime_at(const char *devices, const char *cache_dir, enum cox_log_level level)
{
    cox_runtime_destroy(&runtime);
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                                                    .cache_dir = cache_dir,
                                                                                    .log = on_log,
                                                                                    .log_level = level},
                                                 &runtime);
    const bool divided = devices && strchr(devices, ':');
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || (devices && status == COX_E_NOT_FOUND) ||
        (divided && status == COX_E_INVALID))
        cr_skip_test("skipped, because there is no OpenCL device %s: %s", devices ? devices : "",
                     cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s\n%s", cox_status_name(status), logged);
    cr_assert_not_null(runtime);
}

static inline void open_runtime(const char *devices)
{
    open_runtime_at(devices, NULL, COX_LOG_DEBUG);
}

/* ---- a session: out = in * 2654435761 + add + row ---- */

enum { ROWS = 200, COLUMNS = 150, POOL = 5, SCENES = 2 };

static const char stir_source[] =
    "kernel void stir(global const uint *in, global uint *out, int columns, int first, int rows, int pitch, uint add) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * pitch + x] = in[y * pitch + x] * 2654435761u + add + (uint)(first + y);\n"
    "}\n";

struct stir_params {
    int32_t pitch;
    uint32_t add;
};

static const struct cox__arg stir_args[] = {COX__ARG_BUFFER(0),
                                            COX__ARG_BUFFER(1),
                                            COX__ARG_COLUMNS,
                                            COX__ARG_FIRST_ROW,
                                            COX__ARG_ROWS,
                                            COX__ARG_FIELD(struct stir_params, pitch),
                                            COX__ARG_FIELD(struct stir_params, add)};

/* A kernel with the parameters of stir. `halo_rows` 0: none. */
struct stir_kernel {
    const char *source, *name;
    uint32_t arg_count, rows, halo_rows;
    size_t pitch;
};

static inline cox_status create_stir(cox_runtime *of, const struct stir_kernel *kernel,
                                     const struct cox__session_spec *extra, cox_session **out)
{
    const struct cox__binding bindings[] = {{.name = "in",
                                             .row_access = kernel->halo_rows ? COX__HALO : COX__ROWS,
                                             .halo_rows = kernel->halo_rows,
                                             .access = COX__READ,
                                             .pitch_bytes = kernel->pitch},
                                            {.name = "out", .access = COX__WRITE, .pitch_bytes = kernel->pitch}};
    const struct cox__variant variant = {.source = kernel->source, .local_columns = 32};
    const struct cox__stage stage = {.kernel = kernel->name,
                                     .columns = COLUMNS,
                                     .variant_count = 1,
                                     .variants = &variant,
                                     .arg_count = kernel->arg_count,
                                     .args = stir_args};
    struct cox__session_spec params = *extra;
    params.rows = kernel->rows;
    params.binding_count = 2;
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &stage;
    params.params_bytes = sizeof(struct stir_params);
    return cox__session_create(of, &params, out);
}

/* One session of stir and its frames, which are used in rotation. */
struct scene {
    cox_session *session;
    size_t pitch;
    cox_buffer *in[POOL], *out[POOL];
    uint32_t submitted; /* frames */
    uint32_t target;    /* frames in all, if callbacks submit the next one */
    uint32_t done;
    uint32_t busy;  /* submissions that were refused */
    uint32_t wrong; /* callbacks with an error */
};

static struct scene scenes[SCENES];

static inline struct scene *open_scene(uint32_t which, cox_runtime *of, const struct cox__session_spec *extra)
{
    struct scene *scene = &scenes[which];
    *scene = (struct scene){.pitch = cox_runtime_pitch_bytes(of, COLUMNS * 4)};
    for (uint32_t i = 0; i < POOL; i++) {
        cr_assert_eq(cox_buffer_create(of, ROWS * scene->pitch, &scene->in[i]), COX_OK);
        cr_assert_eq(cox_buffer_create(of, ROWS * scene->pitch, &scene->out[i]), COX_OK);
        uint32_t *data = cox_buffer_data(scene->in[i]);
        for (size_t e = 0; e < ROWS * scene->pitch / 4; e++)
            data[e] = (uint32_t)e * 40503u + i;
    }
    const struct stir_kernel stir = {stir_source, "stir", 7, ROWS, 0, scene->pitch};
    cr_assert_eq(create_stir(of, &stir, extra, &scene->session), COX_OK, "%s", logged);
    return scene;
}

static inline void close_scene(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    for (uint32_t i = 0; i < POOL; i++) {
        cox_buffer_destroy(&scene->in[i]);
        cox_buffer_destroy(&scene->out[i]);
    }
}

/* Check the output of frame `number`. Each frame adds a different number. */
static inline void check_frame(const struct scene *scene, uint32_t number)
{
    const uint32_t *in = cox_buffer_data(scene->in[number % POOL]), *out = cox_buffer_data(scene->out[number % POOL]);
    for (uint32_t r = 0; r < ROWS; r++)
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const size_t at = r * scene->pitch / 4 + c;
            cr_assert_eq(out[at], in[at] * 2654435761u + 1000 * number + r, "frame %u, row %u, column %u", number, r,
                         c);
        }
}

/* Submit the next frame. With `nowait` it may be refused. */
static inline cox_status submit_frame(struct scene *scene, bool nowait, cox_done_fn *done)
{
    const uint32_t i = scene->submitted % POOL;
    cox_buffer *const buffers[] = {scene->in[i], scene->out[i]};
    const struct stir_params params = {(int32_t)(scene->pitch / 4), 1000 * scene->submitted};
    scene->submitted++; /* before the call, because its callback may run before the call returns */
    const cox_status status =
        cox__session_submit(scene->session,
                            &(const struct cox__frame_spec){
                                .buffers = buffers, .buffer_count = 2, .params = &params, .nowait = nowait},
                            done, scene);
    if (status)
        scene->submitted--;
    scene->busy += status == COX_E_BUSY;
    return status;
}

/* Callbacks come in order, each once. Submits the next frame while there are fewer than `target`. */
static inline void on_frame(void *user, uint64_t frame, cox_status status)
{
    struct scene *scene = user;
    scene->wrong += frame != scene->done || status != COX_OK;
    scene->done++;
    if (scene->submitted < scene->target)
        scene->wrong += submit_frame(scene, false, on_frame) != COX_OK;
}

static inline void check_done(const struct scene *scene, uint32_t frames)
{
    cr_assert_eq(scene->done, frames, "%u of %u frames are done", scene->done, frames);
    cr_assert_eq(scene->wrong, 0, "callbacks out of order, or frames that failed: %s", logged);
}

/* Run `frames` more frames and wait for them. Checks the last ones. */
static inline void run_frames(struct scene *scene, uint32_t frames)
{
    for (uint32_t i = 0; i < frames; i++)
        cr_assert_eq(submit_frame(scene, false, on_frame), COX_OK);
    cr_assert_eq(cox_session_wait(scene->session), COX_OK);
    check_done(scene, scene->submitted);
    for (uint32_t i = 0; i < POOL && i < scene->submitted; i++)
        check_frame(scene, scene->submitted - 1 - i);
}

static inline void close_all(void)
{
    for (uint32_t s = 0; s < SCENES; s++)
        close_scene(&scenes[s]);
    cox_runtime_destroy(&runtime);
    cr_assert_null(runtime, "something was not released: %s", logged);
}

#endif
