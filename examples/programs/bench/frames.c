/* cox-bench frames: what it costs to take frames from where an application has them. Video goes
 * through cox_video_stream from buffers of the runtime, from other memory, and from planes that
 * must be copied; and through a session over the same buffers. Rounds take turns in one run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/quantiles.h"
#include "common/now.h"
#include "json_members.h"
#include "message.h"
#include "session.h"
#include "open_runtime.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROUNDS = 9,
    SETS = 4,
    IN_FLIGHT = 3,
    FRAMES = 60,
    BATCHES = 400,
    WIDTH = 1920,
    HEIGHT = 1080
};

static const double bar_us = 2;

enum form {
    FORM_SESSION, /* cox_session_submit, buffers of the runtime */
    FORM_POOL,    /* a stream, the same buffers */
    FORM_OTHER,   /* a stream, other memory, as the C library gives it */
    FORM_COPIED,  /* a stream, bottom-up planes with an odd pitch at odd addresses */
    FORMS
};
static const char *const form_names[FORMS] = {"session", "pool", "other", "copied"};
static const char *const form_texts[FORMS] = {
    "a session over its own buffers", "a stream, buffers of the runtime",
    "a stream, any other memory", "a stream, bottom up, odd addresses"};

/* Pictures of one size in one of the forms. */
struct pictures {
    struct cox_video_image in[SETS], out[SETS];
    void *blocks[2 * SETS]; /* memory of the C library */
    uint32_t block_count;
};

struct world {
    cox_runtime *runtime;
    uint32_t width, height;
    struct pictures pictures[FORMS];
    struct cox_constants constants;
    cox_session *session;
    cox_video_stream *streams[FORMS];
    double fps[FORMS][ROUNDS];
    double submit_us[FORMS][BATCHES]; /* of calls that find a free slot */
    uint64_t copied_bytes[FORMS];     /* per frame */
};

static const struct cox_video_format in_format = {
    .depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
static const struct cox_video_format out_format = {
    .depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};

/* --- Pictures --- */

static bool lay_out(struct pictures *pictures, struct cox_video_image *image,
                    const struct cox_video_format *format, const struct world *world, bool odd)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(format, world->width, world->height, planes);
    size_t bytes = 64, at[COX_VIDEO_PLANES_MAX], pitch[COX_VIDEO_PLANES_MAX];

    for (uint32_t p = 0; p < count; p++) {
        pitch[p] = cox_runtime_pitch_bytes(world->runtime, planes[p].row_bytes);
        if (odd)
            pitch[p] = planes[p].row_bytes + 1;
        at[p] = bytes + odd;
        bytes = at[p] + pitch[p] * planes[p].rows;
    }

    char *block = calloc(1, bytes);
    if (!block)
        return bench_fail("out of memory");
    pictures->blocks[pictures->block_count++] = block;
    image->format = *format;
    image->width = world->width;
    image->height = world->height;

    for (uint32_t p = 0; p < count; p++) {
        image->data[p] = block + at[p];
        image->pitch_bytes[p] = (ptrdiff_t)pitch[p];
        if (odd) { /* bottom up */
            image->data[p] = block + at[p] + pitch[p] * (planes[p].rows - 1);
            image->pitch_bytes[p] = -image->pitch_bytes[p];
        }
    }

    return true;
}

static bool make_image(struct world *world, enum form form, struct cox_video_image *image, bool in)
{
    const struct cox_video_format *format = &out_format;

    if (in)
        format = &in_format;

    *image = (struct cox_video_image){0};
    if (form == FORM_OTHER || form == FORM_COPIED)
        return lay_out(&world->pictures[form], image, format, world, form == FORM_COPIED);

    const cox_status status = cox_video_image_create(world->runtime, format, world->width,
                                                     world->height, image);

    return bench_good(status, "a picture");
}

/* A ramp of light from black to the top of PQ. */
static void paint(const struct cox_video_image *image)
{
    struct cox_video_plane planes[COX_VIDEO_PLANES_MAX];
    const uint32_t count = cox_video_planes(&image->format, image->width, image->height, planes);

    for (uint32_t p = 0; p < count; p++)
        for (uint32_t row = 0; row < planes[p].rows; row++)
            for (uint32_t x = 0; x < planes[p].row_bytes / 2; x++) {
                const uint16_t luma = (uint16_t)(64 + (x + row) % 877);
                const uint16_t code = p ? 512 : luma;
                memcpy((char *)image->data[p] + (ptrdiff_t)row * image->pitch_bytes[p] +
                           2 * (size_t)x,
                       &code, 2);
            }
}

static bool make_pictures(struct world *world)
{
    for (enum form form = FORM_POOL; form < FORMS; form++)
        for (int set = 0; set < SETS; set++) {
            struct pictures *pictures = &world->pictures[form];
            if (!make_image(world, form, &pictures->in[set], true) ||
                !make_image(world, form, &pictures->out[set], false))
                return false;
            paint(&pictures->in[set]);
        }

    return true;
}

/* The session uses the buffers of FORM_POOL. */
static bool make_session(struct world *world)
{
    static const struct cox_video_settings settings = {.peak_nits = 1000};
    struct cox_video_shape shape = {.width = world->width,
                                    .height = world->height,
                                    .in = in_format,
                                    .out = out_format,
                                    .desaturate_highlights = true,
                                    .dither = COX_DITHER_ORDERED,
                                    .gamut = COX_GAMUT_COMPRESS};

    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        shape.in_pitch_bytes[p] = (size_t)world->pictures[FORM_POOL].in[0].pitch_bytes[p];
        shape.out_pitch_bytes[p] = (size_t)world->pictures[FORM_POOL].out[0].pitch_bytes[p];
    }

    cox_pipeline *pipeline = NULL;
    cox_status status = cox_video_mapping(&shape, false, &pipeline);
    if (status == COX_OK)
        status = cox_video_prepare(&shape, &settings, &world->constants);
    if (status == COX_OK)
        status = bench_session_create(world->runtime,
                                      &(const struct cox_session_params){.pipeline = pipeline,
                                                                         .in_flight = IN_FLIGHT},
                                      &world->session);
    cox_pipeline_destroy(&pipeline);

    return bench_good(status, NULL);
}

static bool make_streams(struct world *world)
{
    for (enum form form = FORM_POOL; form < FORMS; form++) {
        const cox_status status =
            cox_video_stream_create(world->runtime,
                                    &(const struct cox_session_params){.in_flight = IN_FLIGHT},
                                    &(const struct cox_tonemap_options){.peak = COX_PEAK_FIXED,
                                                                        .settings.peak_nits = 1000},
                                    &world->streams[form]);
        if (!bench_good(status, NULL))
            return false;
    }

    return true;
}

/* --- Runs --- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    cox_status *first = user;
    (void)frame;
    if (status && !*first)
        *first = status;
}

/* Submit one frame to the form's session or stream. */
static cox_status submit(struct world *world, enum form form, uint32_t set, cox_status *failed)
{
    if (form != FORM_SESSION)
        return cox_video_stream_send(world->streams[form], &world->pictures[form].in[set],
                                     &world->pictures[form].out[set], NULL);

    cox_buffer *const *in = world->pictures[FORM_POOL].in[set].memory;
    cox_buffer *const *out = world->pictures[FORM_POOL].out[set].memory;

    return cox_session_submit(world->session,
                              &(const struct cox_frame){.buffers = COX_BUFFERS(in[0], in[1], in[2],
                                                                               out[0], out[1],
                                                                               out[2]),
                                                        .constants = &world->constants},
                              on_done, failed);
}

/* Receive the frames that are complete; with `all`, wait for the others. */
static cox_status receive(struct world *world, enum form form, bool all, cox_status *failed)
{
    struct cox_video_result result;
    cox_status status;

    if (form == FORM_SESSION && !all)
        return COX_OK;
    if (form == FORM_SESSION)
        return cox_session_wait(world->session);

    while ((status = cox_video_stream_receive(world->streams[form], all, &result)) == COX_OK) {
        world->copied_bytes[form] = result.bytes_copied_in + result.bytes_copied_out;
        if (*failed == COX_OK)
            *failed = result.status;
    }

    if (status == COX_E_BUSY || status == COX_E_NOT_FOUND)
        return COX_OK;

    return status;
}

static cox_status run_frames(struct world *world, enum form form, uint32_t frames, double *fps)
{
    cox_status status = COX_OK, failed = COX_OK;
    const uint64_t began_ns = now_ns();

    for (uint32_t n = 0; n < frames && status == COX_OK; n++) {
        status = submit(world, form, n % SETS, &failed);
        if (status == COX_OK)
            status = receive(world, form, false, &failed);
    }

    if (status == COX_OK)
        status = receive(world, form, true, &failed);
    *fps = frames / ((double)(now_ns() - began_ns) / 1e9);
    if (status == COX_OK)
        status = failed;

    return status;
}

/* Time calls that find a free slot. */
static cox_status time_calls(struct world *world, enum form form)
{
    cox_status status = COX_OK, failed = COX_OK;

    for (uint32_t batch = 0; batch < BATCHES && status == COX_OK; batch++) {
        uint64_t least_ns = UINT64_MAX;
        for (uint32_t n = 0; n < IN_FLIGHT && status == COX_OK; n++) {
            const uint64_t began_ns = now_ns();
            status = submit(world, form, n, &failed);
            const uint64_t took_ns = now_ns() - began_ns;
            if (took_ns < least_ns)
                least_ns = took_ns;
        }
        world->submit_us[form][batch] = (double)least_ns / 1e3;
        if (status == COX_OK)
            status = receive(world, form, true, &failed);
    }

    if (status == COX_OK)
        status = failed;

    return status;
}

/* --- The command --- */

static void print_text(struct world *world, double known_us, bool met)
{
    printf("%u x %u, 10 bits to 8, %d in flight; medians of %d rounds\n", world->width,
           world->height, IN_FLIGHT, ROUNDS);

    for (enum form form = 0; form < FORMS; form++) {
        double ratio[ROUNDS];
        for (int round = 0; round < ROUNDS; round++)
            ratio[round] = world->fps[form][round] / world->fps[FORM_SESSION][round];
        printf(
            "%-38s %8.1f frames/s, %.3f of the session's; %9llu bytes copied; %7.2f us per call\n",
            form_texts[form], quantile_of(world->fps[form], ROUNDS, 0.5),
            quantile_of(ratio, ROUNDS, 0.5), (unsigned long long)world->copied_bytes[form],
            quantile_of(world->submit_us[form], BATCHES, 0.5));
    }

    printf("a frame in known memory takes %.2f us longer to submit than with "
           "cox_session_submit; bar: at most %g us, %s\n",
           known_us, bar_us, met ? "met" : "missed");
}

static void print_json(struct world *world, double known_us)
{
    struct json json;

    json_begin(&json, stdout);
    json_open_object(&json, false);
    json_member_number(&json, "known_memory_us", known_us);

    for (enum form form = 0; form < FORMS; form++) {
        json_member_object(&json, form_names[form], true);
        json_member_number(&json, "fps", quantile_of(world->fps[form], ROUNDS, 0.5));
        json_member_number(&json, "call_us", quantile_of(world->submit_us[form], BATCHES, 0.5));
        json_member_unsigned(&json, "copied_bytes", world->copied_bytes[form]);
        json_close_object(&json);
    }

    json_report_end(&json);
}

static bool measure(struct world *world, uint32_t frames)
{
    cox_status status = COX_OK;
    double unused;

    for (enum form form = 0; form < FORMS && status == COX_OK; form++)
        status = run_frames(world, form, SETS, &unused);
    for (int round = 0; round < ROUNDS; round++)
        for (enum form form = 0; form < FORMS && status == COX_OK; form++)
            status = run_frames(world, form, frames, &world->fps[form][round]);
    for (enum form form = 0; form < FORMS && status == COX_OK; form++)
        status = time_calls(world, form);

    return bench_good(status, NULL);
}

static void free_world(struct world *world)
{
    bench_session_destroy(&world->session);

    for (enum form form = 0; form < FORMS; form++) {
        struct pictures *pictures = &world->pictures[form];
        bench_session_destroy_stream(&world->streams[form]);
        for (int set = 0; set < SETS; set++) {
            cox_video_image_destroy(&pictures->in[set]);
            cox_video_image_destroy(&pictures->out[set]);
        }
        for (uint32_t b = 0; b < pictures->block_count; b++)
            free(pictures->blocks[b]);
    }

    cox_runtime_destroy(&world->runtime);
}

bool bench_frames(const struct bench_options *options, bool *met)
{
    static struct world world; /* too large for a stack */

    world.width = bench_value(options->width, WIDTH);
    world.height = bench_value(options->height, HEIGHT);
    if (!bench_open_runtime(options, COX_ARITHMETIC_AUTO, &world.runtime))
        return false;

    const bool good = make_pictures(&world) && make_session(&world) && make_streams(&world) &&
                      measure(&world, bench_value(options->frames, FRAMES));
    if (good) {
        const double known_us = quantile_of(world.submit_us[FORM_POOL], BATCHES, 0.5) -
                                quantile_of(world.submit_us[FORM_SESSION], BATCHES, 0.5);
        *met = known_us <= bar_us;
        if (options->json)
            print_json(&world, known_us);
        else
            print_text(&world, known_us, *met);
    }

    free_world(&world);

    return good;
}
