/* Same bits: each filter gives one result, to the last bit, whichever device made which rows; integers and the sums of
 * convolutions are the reference's.
 *
 *   bits_filter [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--small] [--only NAME]
 *               [--verbose]
 *
 * Each case of support/ref_filter_case.c: one frame by each device alone, then one by all devices under each of
 * --splits N random splits (50 unless said). Before each frame the output is filled with the complement of what is
 * expected. Filters that can be built of passes in two ways are two cases of one name.
 *
 * --small cuts the planes down to 40 x 40 and the splits to four, for a simulator.
 *
 * What is printed is said in support/bits.sh, which compares the hashes of several set-ups. The exit status is 0 if
 * nothing failed, 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/bits_suite.h"
#include "support/ref_filter_case.h"
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SIDE = 40 };

static struct bits_suite suite = {.splits = 50};

static void need(cox_status status, const char *what)
{
    if (status == COX_OK)
        return;
    fprintf(stderr, "FAILED %s: %s\n", what, cox_status_text(status));
    exit(1);
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* One device with whole frames, or all of them under random splits. */
static cox_session *open_session(const struct filter_test *test, uint32_t device)
{
    struct cox_session_params params = test->session;
    cox_session *session = NULL;
    bits_session_params(&params, &device, 0, 0);
    need(cox_session_create(suite.runtime, &params, &session), test->about->name);
    struct cox_session_info info;
    cox_session_info(session, &info, sizeof info);
    if (info.device_count != (device == BITS_ALL_DEVICES ? suite.device_count : 1)) {
        fprintf(stderr, "FAILED %s: %u devices take part\n", test->about->name, info.device_count);
        exit(1);
    }
    return session;
}

/* --- One filter --------------------------------------------------------------------------------------------------- */

static void run_case(const struct filter_case *about)
{
    static const char *const forms[] = {"overlap", "exchange", "rows"};
    struct filter_test test;
    need(filter_test_open(&test, about, cox_runtime_pitch_bytes(suite.runtime, 1),
                          suite.small ? SMALL_SIDE : UINT32_MAX),
         about->name);
    cox_buffer *buffers[COX_BINDINGS_MAX] = {0};
    for (int b = 0; b < COX_BINDINGS_MAX; b++)
        if (test.planes[b])
            need(cox_buffer_wrap(suite.runtime, test.planes[b], test.plane_bytes[b], NULL, NULL, &buffers[b]),
                 about->name);
    const size_t bytes = test.out_row_bytes * test.out_rows;
    uint8_t *first = malloc(bytes), *found = malloc(bytes);
    if (!first || !found)
        exit(1);
    uint32_t runs = 0, wrong = 0;
    for (uint32_t d = 0; d <= suite.device_count; d++) {
        const bool all = d == suite.device_count;
        cox_session *session = open_session(&test, all ? BITS_ALL_DEVICES : d);
        const struct cox_frame frame = {
            .buffers = buffers, .buffer_count = test.session.binding_count, .params = &test.params};
        for (uint32_t i = 0; i < (all ? suite.splits : 1); i++) {
            filter_test_spoil(&test, runs ? first : NULL);
            need(cox_session_run(session, &frame), about->name);
            filter_test_result(&test, runs ? found : first);
            wrong += (runs && memcmp(first, found, bytes) != 0) ||
                     (!suite.staged /* whole rows go there and back */ && !filter_test_intact(&test));
            runs++;
        }
        cox_session_destroy(&session);
    }
    printf("bits %s %ux%u %s %016" PRIx64 " %u %s\n", about->name, test.shape.width, test.shape.height,
           forms[about->shape.form], bits_hash(first, bytes), runs, wrong ? "DIFFERENT" : "equal");
    wrong ? suite.failed++ : suite.passed++;
    if (suite.reference) {
        char text[128];
        const bool good = filter_test_judge(&test, first, text, sizeof text);
        printf("error %s %s %s\n", about->name, text, good ? "within" : "BEYOND");
        good ? suite.passed++ : suite.failed++;
    }
    free(first);
    free(found);
    for (int b = 0; b < COX_BINDINGS_MAX; b++)
        cox_buffer_destroy(&buffers[b]);
    filter_test_close(&test);
}

/* --- main --------------------------------------------------------------------------------------------------------- */

static int read_option(void *user, const char *option, const char *value)
{
    const char **only = user;
    if (strcmp(option, "--only") != 0 || !value)
        return 0;
    *only = value;
    return 2;
}

int main(int argc, char **argv)
{
    const char *only = NULL;
    const int status = bits_suite_begin(&suite, argc, argv, read_option, &only);
    if (status >= 0)
        return status;
    if (suite.reference)
        printf(
            "heading Against the reference: integers exact or not; sums of floats as in the promised order or not, and "
            "their distance from the\nheading exact sum in 2^-24 of the magnitudes added; Gaussians: in 2^-24 of the largest "
            "sample from the recursion in double\nheading precision, and how far that is from a Gaussian; guided: codes from "
            "the real number.\n");
    for (uint32_t i = 0; i < filter_case_count; i++)
        if (!only || !strcmp(only, filter_cases[i].name))
            run_case(&filter_cases[i]);
    return bits_suite_end(&suite);
}
