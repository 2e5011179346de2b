/* Same bits: each filter gives the same result to the last bit, whichever device computed which rows. Integers and
 * the sums of convolutions are equal to the reference's.
 *
 *   bits_filter [--devices SEL] [--cache DIR] [--expect N] [--splits N] [--reference] [--small] [--check] [--only NAME]
 *               [--verbose]
 *
 * For each case of support/ref_filter_case.c it runs one frame on each device alone, then one frame on all devices
 * for each of --splits N random splits (50 by default). Before each frame the output is filled with the complement
 * of the expected result. A filter with two possible lists of passes is two cases with the same name.
 *
 * --small cuts the planes down to 40 x 40 and the splits to four, for a simulator.
 *
 * same.sh describes the output and compares the hashes of several set-ups. The exit status is 0 if nothing failed,
 * 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/bits_suite.h"
#include "support/ref_filter_case.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL_SIDE = 40 };

static struct bits_suite suite = {.splits = 50};

static void run_case(const struct filter_case *about)
{
    static const char *const forms[] = {"overlap", "exchange", "rows"};
    struct filter_test test;
    bits_need(filter_test_open(&test, suite.runtime, about, cox_runtime_pitch_bytes(suite.runtime, 1),
                               suite.small ? SMALL_SIDE : UINT32_MAX),
              about->name);
    struct bits_result result = {.what = about->name,
                                 .width = test.shape.width,
                                 .height = test.shape.height,
                                 .params = &test.params,
                                 .lanes = &test.frame,
                                 .lane_count = 1,
                                 .splits = suite.splits,
                                 .intact = !suite.staged}; /* staged devices copy whole rows */
    snprintf(result.how, sizeof result.how, "%s", forms[about->shape.form]);
    bits_result_print(&suite, &result, bits_result_run(&suite, &test.session, &result, 1, NULL));
    if (suite.reference) {
        char text[128];
        uint8_t *bytes = bits_frame_result(&test.frame);
        const bool good = filter_test_judge(&test, bytes, text, sizeof text);
        printf("error %s %s", about->name, text);
        bits_verdict(&suite, good, "within", "BEYOND");
        free(bytes);
    }
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
