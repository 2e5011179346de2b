/* Same bits: the operator local gives one result, to the last bit, whichever device made which rows of which pass, and
 * pictures and frames within a code of 8 bits of the double-precision reference, two of 10.
 *
 *   bits_local [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--verbose]
 *
 * Two pictures and the films of support/ref_local_case.c: one frame by each device alone, then one by all devices under
 * each of --splits N random splits (50 unless said), every pass under one of its own. Before each frame the output is
 * filled with the complement of what is expected.
 *
 * What is printed is said in support/bits.sh, which compares the hashes of several set-ups. The exit status is 0 if
 * nothing failed, 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/bits_suite.h"
#include "support/ref_local_case.h"
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES = 2, PLANES = COX_VIDEO_PLANES_MAX };

static struct bits_suite suite = {.splits = 50};

static void need(cox_status status, const char *what)
{
    if (status == COX_OK)
        return;
    fprintf(stderr, "FAILED %s: %s\n", what, cox_status_text(status));
    exit(1);
}

/* --- What is mapped ----------------------------------------------------------------------------------------------- */

/* A plane of the input or the output. */
struct plane {
    size_t row_bytes, pitch_bytes;
    uint32_t rows;
    cox_buffer *buffer;
};

struct subject {
    char name[16];
    uint32_t width, height;
    struct plane in[PLANES], out[PLANES];
    struct cox_session_params session;
    union {
        struct cox_tonemap_storage picture;
        struct cox_video_storage film;
    } storage;
    union {
        struct cox_tonemap_params picture;
        struct cox_video_params film;
    } params;
    bool video;
    struct cox_tonemap_shape picture;
    struct cox_video_shape film;
};

static const struct cox_tonemap_settings picture_settings = {.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = 1.3f};
static const struct cox_video_settings film_settings = {.detail = 1.3f};

static void plane_open(struct plane *plane, size_t row_bytes, uint32_t rows)
{
    plane->row_bytes = row_bytes;
    plane->rows = rows;
    plane->pitch_bytes = cox_runtime_pitch_bytes(suite.runtime, row_bytes);
    need(cox_buffer_create(suite.runtime, plane->pitch_bytes * rows, &plane->buffer), "a buffer");
}

static void open_picture(struct subject *subject, uint32_t number)
{
    struct cox_tonemap_shape *shape = &subject->picture;
    *shape = (struct cox_tonemap_shape){.width = number ? 515 : 1279,
                                        .height = number ? 301 : 361,
                                        .in = number ? COX_PIXEL_RGBA_FLOAT : COX_PIXEL_RGBA_HALF,
                                        .out = COX_PIXEL_RGBA8,
                                        .local = true};
    plane_open(&subject->in[0], shape->width * (number ? 16 : 8), shape->height);
    plane_open(&subject->out[0], shape->width * 4, shape->height);
    shape->in_pitch_bytes = subject->in[0].pitch_bytes;
    shape->out_pitch_bytes = subject->out[0].pitch_bytes;
    local_case_picture(shape, cox_buffer_data(subject->in[0].buffer), 11 + number);
    need(cox_tonemap_mapping(shape, &subject->storage.picture, &subject->session), "a pipeline");
    need(cox_tonemap_prepare(shape, &picture_settings, &subject->params.picture), "parameters");
    subject->width = shape->width;
    subject->height = shape->height;
}

static void open_film(struct subject *subject, uint32_t number)
{
    struct cox_video_shape *shape = &subject->film;
    struct cox_video_plane planes[PLANES];
    void *in[PLANES] = {NULL};
    *shape = local_case_film(number);
    for (uint32_t p = 0, count = cox_video_planes(&shape->in, shape->width, shape->height, planes); p < count; p++) {
        plane_open(&subject->in[p], planes[p].row_bytes, planes[p].rows);
        shape->in_pitch_bytes[p] = subject->in[p].pitch_bytes;
        in[p] = cox_buffer_data(subject->in[p].buffer);
    }
    for (uint32_t p = 0, count = cox_video_planes(&shape->out, shape->width, shape->height, planes); p < count; p++) {
        plane_open(&subject->out[p], planes[p].row_bytes, planes[p].rows);
        shape->out_pitch_bytes[p] = subject->out[p].pitch_bytes;
    }
    local_case_frame(shape, in, 17 + number, 3);
    need(cox_video_mapping(shape, false, &subject->storage.film, &subject->session), "a pipeline");
    need(cox_video_prepare(shape, &film_settings, &subject->params.film), "parameters");
    subject->video = true;
    subject->width = shape->width;
    subject->height = shape->height;
}

static struct subject *open_subject(uint32_t number)
{
    struct subject *subject = calloc(1, sizeof *subject);
    if (!subject)
        exit(1);
    if (number < PICTURES)
        open_picture(subject, number);
    else
        open_film(subject, number - PICTURES);
    snprintf(subject->name, sizeof subject->name, "%s-%u", subject->video ? "film" : "picture",
             subject->video ? number - PICTURES : number);
    return subject;
}

static void close_subject(struct subject *subject)
{
    for (int p = 0; p < PLANES; p++) {
        cox_buffer_destroy(&subject->in[p].buffer);
        cox_buffer_destroy(&subject->out[p].buffer);
    }
    free(subject);
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static size_t result_bytes(const struct subject *subject)
{
    size_t bytes = 0;
    for (int p = 0; p < PLANES; p++)
        bytes += subject->out[p].row_bytes * subject->out[p].rows;
    return bytes;
}

/* Between the output and `bytes`, without padding: into the latter, or the complement of the latter into the former. */
static void copy_result(const struct subject *subject, uint8_t *bytes, bool spoil)
{
    for (int p = 0; p < PLANES; p++) {
        const struct plane *plane = &subject->out[p];
        for (uint32_t y = 0; y < plane->rows; y++, bytes += plane->row_bytes) {
            uint8_t *row = (uint8_t *)cox_buffer_data(plane->buffer) + y * plane->pitch_bytes;
            for (size_t i = 0; i < plane->row_bytes; i++)
                *(spoil ? &row[i] : &bytes[i]) = spoil ? (uint8_t)~bytes[i] : row[i];
        }
    }
}

static void judge(const struct subject *subject)
{
    const void *in[PLANES] = {NULL}, *out[PLANES] = {NULL};
    double error = 0;
    for (int p = 0; p < PLANES; p++) {
        in[p] = subject->in[p].buffer ? cox_buffer_data(subject->in[p].buffer) : NULL;
        out[p] = subject->out[p].buffer ? cox_buffer_data(subject->out[p].buffer) : NULL;
    }
    const bool done = subject->video
                          ? local_case_frame_error(&subject->film, &film_settings, in, out, &error)
                          : local_case_picture_error(&subject->picture, &picture_settings, in[0], out[0], &error);
    const bool good = done && error <= (subject->video && subject->film.out.depth == 10 ? 2 : 1);
    printf("error %s %.0f %s\n", subject->name, error, good ? "within" : "BEYOND");
    good ? suite.passed++ : suite.failed++;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

/* One device with whole frames, or all of them under random splits. */
static cox_session *open_session(const struct subject *subject, uint32_t device)
{
    struct cox_session_params params = subject->session;
    cox_session *session = NULL;
    bits_session_params(&params, &device, 0, 0);
    need(cox_session_create(suite.runtime, &params, &session), subject->name);
    return session;
}

static void run_subject(uint32_t number)
{
    struct subject *subject = open_subject(number);
    cox_buffer *buffers[COX_BINDINGS_MAX] = {NULL};
    uint32_t count = 0, runs = 0, wrong = 0;
    for (int p = 0; p < PLANES && subject->in[p].buffer; p++)
        buffers[count++] = subject->in[p].buffer;
    for (int p = 0; p < PLANES && subject->out[p].buffer; p++)
        buffers[count++] = subject->out[p].buffer;
    const size_t bytes = result_bytes(subject);
    uint8_t *first = calloc(1, bytes), *found = malloc(bytes);
    if (!first || !found)
        exit(1);
    for (uint32_t d = 0; d <= suite.device_count; d++) {
        const bool all = d == suite.device_count;
        cox_session *session = open_session(subject, all ? BITS_ALL_DEVICES : d);
        need(cox_session_warm(session, NULL, NULL, NULL), subject->name); /* parameters that are all zeros */
        const struct cox_frame frame = {
            .buffers = buffers, .buffer_count = subject->session.binding_count, .params = &subject->params};
        for (uint32_t i = 0; i < (all ? suite.splits : 1); i++, runs++) {
            copy_result(subject, first, true);
            need(cox_session_run(session, &frame), subject->name);
            copy_result(subject, runs ? found : first, false);
            wrong += runs && memcmp(first, found, bytes) != 0;
        }
        cox_session_destroy(&session);
    }
    printf("bits %s %ux%u local %016" PRIx64 " %u %s\n", subject->name, subject->width, subject->height,
           bits_hash(first, bytes), runs, wrong ? "DIFFERENT" : "equal");
    wrong ? suite.failed++ : suite.passed++;
    if (suite.reference)
        judge(subject);
    free(first);
    free(found);
    close_subject(subject);
}

int main(int argc, char **argv)
{
    const int status = bits_suite_begin(&suite, argc, argv, NULL, NULL);
    if (status >= 0)
        return status;
    if (suite.reference)
        printf("heading Against the double-precision reference: codes.\n");
    for (uint32_t number = 0; number < PICTURES + LOCAL_FILMS; number++)
        run_subject(number);
    return bits_suite_end(&suite);
}
