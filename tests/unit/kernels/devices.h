/* Shared by the tests of the kernels: the available OpenCL devices, and sessions on them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_KERNELS_DEVICES_H
#define COX_TESTS_KERNELS_DEVICES_H

#include "specs.h"
#include "support/bits_suite.h"
#include "support/ref_tonemap_case.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* A test that needs devices. `runtime` has all of them. */
#define DEVICE_TEST(suite, name) Test(suite, name, .init = open_devices, .fini = close_devices)

static cox_runtime *runtime;
static char last_log[4096];

static inline void keep_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    (void)level;
    snprintf(last_log, sizeof last_log, "%s", line);
}

/* If Mesa's software device is installed, it serves as the GPU. Compiled kernels are kept, because every format
 * needs its own. */
static inline void open_runtime(const char *devices)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 0);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 0);
    const struct cox_runtime_params params = {
        .devices = devices, .cache_dir = getenv("COX_TEST_KERNELS"), .log = keep_log};
    const cox_status status = cox_runtime_create(&params, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s: %s", cox_status_name(status), last_log);
}

static inline void open_devices(void)
{
    open_runtime(getenv("TEST_VIDEO_DEVICES"));
}

static inline void close_devices(void)
{
    cox_runtime_destroy(&runtime);
}

static inline const char *device_name(uint32_t device)
{
    static struct cox_device_info info;
    cr_assert_eq(cox_runtime_device_info(runtime, device, &info), COX_OK);
    return info.name;
}

/* Kernels take long to compile, and other tests check that devices agree bit for bit. So here each case uses one
 * device, the next in rotation. */
static inline uint32_t next_device(void)
{
    static uint32_t turn;
    return turn++ % cox_runtime_device_count(runtime);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

enum variant { VARIANT_OWN = -1, VARIANT_VECTOR = 0, VARIANT_SCALAR = 1 };

/* Number of bands so far in sessions on all devices. */
static uint32_t bands_made;

static inline void count_bands(void *user, const struct cox_frame_report *report)
{
    (void)user;
    bands_made += report->band_count;
}

/* The stages that get another kernel variant. */
struct chosen {
    struct cox__stage stages[COX_FUSED_MAX];
    struct cox__variant variants[COX_FUSED_MAX];
};

static inline const struct cox__stage *choose(struct chosen *to, const struct cox__stage *stages, uint32_t count,
                                              enum variant variant)
{
    for (uint32_t s = 0; s < count; s++) {
        to->stages[s] = stages[s];
        to->variants[s] = stages[s].variants[variant];
        to->variants[s].type = 0;
        to->stages[s].variants = &to->variants[s];
        to->stages[s].variant_count = 1;
    }
    return to->stages;
}

/* Open a session on one device, or on all of them with random splits (BITS_ALL_DEVICES). Every stage uses its own
 * variant or the requested one. */
static inline cox_session *session_open(const struct cox__session_spec *pipeline, enum variant variant, uint32_t device,
                                        const char *what)
{
    struct cox__session_spec params = *pipeline;
    struct chosen chosen[COX_PASSES_MAX];
    struct cox__pass_spec passes[COX_PASSES_MAX];
    if (variant != VARIANT_OWN && !params.pass_count)
        params.stages = choose(chosen, params.stages, params.stage_count, variant);
    for (uint32_t p = 0; p < params.pass_count && variant != VARIANT_OWN; p++) {
        passes[p] = pipeline->passes[p];
        passes[p].stages = choose(&chosen[p], passes[p].stages, passes[p].stage_count, variant);
        params.passes = passes;
    }

    bits_session_params(&params, &device, 0, 0);
    params.report = device == BITS_ALL_DEVICES ? count_bands : NULL;
    cox_session *session = NULL;
    last_log[0] = '\0';
    const cox_status status = cox__session_create(runtime, &params, &session);
    cr_assert_eq(status, COX_OK, "%s: %s: %s", what, cox_status_name(status), last_log);
    return session;
}

static inline void session_run(cox_session *session, cox_buffer *const *buffers, uint32_t count, const void *params,
                               const char *what)
{
    const cox_status status = cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers,
                                                                                        .buffer_count = count,
                                                                                        .params = params});
    cr_assert_eq(status, COX_OK, "%s: %s: %s", what, cox_status_name(status), last_log);
}

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

static inline cox_session *picture_session(const struct ref_picture *picture, enum variant variant, uint32_t device)
{
    return session_open(&picture->session, variant, device, "a picture");
}

static inline void picture_run_in(cox_session *session, struct ref_picture *picture,
                                  const struct cox_tonemap_settings *settings)
{
    struct cox_constants params;
    cr_assert_eq(cox_tonemap_prepare(&picture->shape, settings, &params), COX_OK);
    bits_frame_spoil(&picture->frame, NULL);
    session_run(session, picture->frame.buffers, picture->frame.count, &params, cox_operator_name(settings->op));
}

static inline void picture_run(struct ref_picture *picture, const struct cox_tonemap_settings *settings,
                               enum variant variant, uint32_t device)
{
    cox_session *session = picture_session(picture, variant, device);
    picture_run_in(session, picture, settings);
    cox_session_destroy(&session);
}

/* --- Films -------------------------------------------------------------------------------------------------------- */

/* The same number of pixels, half of each side, or another size, as COX_SCALE_* says. */
static inline void set_scale(struct cox_video_shape *shape, int i)
{
    shape->scale = (enum cox_video_scale)i;
    if (shape->scale == COX_SCALE_FILTER) {
        shape->out_width = 93;
        shape->out_height = 47;
    }
}

/* Open a session of any pipeline whose planes the film has. */
static inline cox_session *film_session(struct ref_film *film, enum ref_pipeline pipeline, enum variant variant,
                                        uint32_t device)
{
    const char *text = ref_shape_text(&film->shape);
    struct cox__session_spec params;
    cr_assert_eq(ref_film_session(film, pipeline, &params), COX_OK, "%s", text);
    return session_open(&params, variant, device, text);
}

static inline void film_run_in(cox_session *session, struct ref_film *film, enum ref_pipeline pipeline,
                               const struct cox_video_settings *settings)
{
    const char *text = ref_shape_text(&film->shape);
    cox_buffer *buffers[COX_BUFFERS_MAX] = {NULL};
    uint32_t count = 0;
    struct cox_constants params;
    cr_assert_eq(cox_video_prepare(&film->shape, settings, &params), COX_OK, "%s", text);
    if (film->shape.reshape)
        ref_film_put_reshape(film, settings->reshape);
    for (uint32_t p = 0; p < film->frame.count; p++) {
        const struct bits_plane *plane = &film->frame.planes[p];
        if (film->shape.lut_points && p == film->in_count && pipeline == REF_ANALYSIS)
            continue; /* it needs no table */
        if (plane->written && pipeline == (p == film->histogram ? REF_MAPPING : REF_ANALYSIS))
            continue;
        if (plane->written)
            bits_plane_spoil(plane);
        buffers[count++] = film->frame.buffers[p];
    }
    session_run(session, buffers, count, &params, text);
}

static inline void film_run(struct ref_film *film, enum ref_pipeline pipeline,
                            const struct cox_video_settings *settings, enum variant variant, uint32_t device)
{
    cox_session *session = film_session(film, pipeline, variant, device);
    film_run_in(session, film, pipeline, settings);
    cox_session_destroy(&session);
}

#endif
