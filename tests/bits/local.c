/* Same bits: the operator `local` gives the same result to the last bit, whichever device computed which rows of
 * which pass. Pictures and frames are within one code of 8 bits, or two of 10, of the double-precision reference.
 *
 *   bits_local [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--verbose]
 *
 * It runs two pictures and the films of support/ref_video_case.c. Each gets one frame on each device alone, then
 * one frame on all devices for each of --splits N random splits (50 by default). Each pass has a different split.
 * Before each frame the output is filled with the complement of the expected result.
 *
 * same.sh describes the output and compares the hashes of several set-ups. The exit status is 0 if nothing failed,
 * 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/bits_suite.h"
#include "support/ref_tonemap_case.h"
#include <stdio.h>

static struct bits_suite suite = {.splits = 50};

/* Run the session and print the result, which stays in the frame. */
static void run(const char *name, uint32_t width, uint32_t height, struct bits_frame *frame,
                const struct cox__session_spec *session, const void *params)
{
    struct bits_result result = {.what = name,
                                 .how = "local",
                                 .width = width,
                                 .height = height,
                                 .params = params,
                                 .lanes = frame,
                                 .lane_count = 1,
                                 .splits = suite.splits,
                                 .warm = true};
    bits_result_print(&suite, &result, bits_result_run(&suite, session, &result, 1, NULL));
}

static void print_error(const char *name, const struct ref_error *error, uint32_t depth)
{
    if (!suite.reference)
        return;
    printf("error %s %u", name, error->steps);
    bits_verdict(&suite, error->samples > 0 && error->steps <= (depth == 10 ? 2 : 1), "within", "BEYOND");
}

static void run_picture(uint32_t number)
{
    static const struct cox_tonemap_shape shapes[] = {
        {.width = 1279, .height = 361, .local = true},
        {.width = 515, .height = 301, .in = COX_PIXEL_RGBA_FLOAT, .local = true}};
    const struct cox_tonemap_settings settings = {.op = COX_OPERATOR_LOCAL, .peak = 100, .detail = 1.3f};
    struct cox_tonemap_constants params;
    struct ref_picture picture;
    struct ref_error error = {0};
    char name[16];
    snprintf(name, sizeof name, "picture-%u", number);
    ref_picture_open(&picture, suite.runtime, &shapes[number], false, REF_ALIGNED, NULL);
    ref_picture_fill_patches(&picture, 11 + number);
    bits_need(cox_tonemap_prepare(&picture.shape, &settings, &params), name);
    run(name, picture.shape.width, picture.shape.height, &picture.frame, &picture.session, &params);
    if (suite.reference)
        ref_picture_judge(&picture, &settings, &error);
    print_error(name, &error, 8);
    ref_picture_close(&picture);
}

static void run_film(uint32_t number)
{
    const struct cox_video_shape shape = ref_shape(ref_local_films[number]);
    const struct cox_video_settings settings = {.detail = 1.3f};
    struct cox_video_constants params;
    struct ref_film film;
    struct ref_error error = {0};
    char name[16];
    snprintf(name, sizeof name, "film-%u", number);
    ref_film_open(&film, suite.runtime, &shape, REF_MAPPING, REF_ALIGNED, NULL);
    ref_film_fill_patches(&film, 17 + number, 3);
    bits_need(cox_video_prepare(&film.shape, &settings, &params), name);
    run(name, film.width, film.height, &film.frame, &film.session, &params);
    if (suite.reference)
        ref_film_judge(&film, &settings, &error);
    print_error(name, &error, shape.out.depth);
    ref_film_close(&film);
}

int main(int argc, char **argv)
{
    const int status = bits_suite_begin(&suite, argc, argv, NULL, NULL);
    if (status >= 0)
        return status;
    if (suite.reference)
        printf("heading Against the double-precision reference: codes.\n");
    for (uint32_t number = 0; number < 2; number++)
        run_picture(number);
    for (uint32_t number = 0; number < REF_LOCAL_FILMS; number++)
        run_film(number);
    return bits_suite_end(&suite);
}
