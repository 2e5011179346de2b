/* SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "bits_suite.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLAINTS_MAX = 20, SPLITS_SMALL = 4 };

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    const struct bits_suite *suite = user;
    if (suite->verbose || level == COX_LOG_ERROR)
        fprintf(stderr, "%s\n", line);
}

/* Returns the number of words of the option, with its value; 0 = an option of the program, or an unknown one. */
static int read_option(struct bits_suite *suite, struct cox_runtime_params *params, uint32_t *expected,
                       const char *option, const char *value)
{
    const int number = value ? atoi(value) : 0;
    if (!strcmp(option, "--devices") && value)
        params->devices = value;
    else if (!strcmp(option, "--cache") && value)
        params->cache_dir = value;
    else if (!strcmp(option, "--arithmetic") && value)
        params->arithmetic = strcmp(value, "fma") == 0 ? COX_ARITHMETIC_FMA : COX_ARITHMETIC_MULADD;
    else if (!strcmp(option, "--expect") && number > 0)
        *expected = (uint32_t)number;
    else if (!strcmp(option, "--splits") && number > 0)
        suite->splits = (uint32_t)number;
    else if (!strcmp(option, "--reference"))
        return suite->reference = true;
    else if (!strcmp(option, "--check"))
        return suite->check = true;
    else if (!strcmp(option, "--small"))
        return suite->small = true;
    else if (!strcmp(option, "--verbose"))
        return suite->verbose = true;
    else
        return 0;
    return 2;
}

/* Sets `*slow` if a device has no fast fma. */
static bool look_at_devices(struct bits_suite *suite, bool *slow)
{
    for (uint32_t d = 0; d < suite->device_count; d++) {
        struct cox_device_info info;
        if (cox_runtime_device_info(suite->runtime, d, &info) != COX_OK)
            return false;
        suite->staged |= info.mode == COX_MODE_STAGED;
        *slow |= info.fma != COX_FMA_FAST;
        printf("device %u: %s (%s), %s, %s, %u units\n", d, info.name, info.platform, cox_device_type_name(info.type),
               cox_memory_mode_name(info.mode), info.compute_units);
    }
    return true;
}

int bits_suite_begin(struct bits_suite *suite, int argc, char **argv, bits_option_fn *own, void *user)
{
    struct cox_runtime_params params = {.log = on_log, .log_user = suite, .log_level = COX_LOG_INFO};
    uint32_t expected = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int a = 1, taken; a < argc; a += taken) {
        const char *value = a + 1 < argc ? argv[a + 1] : NULL;
        taken = read_option(suite, &params, &expected, argv[a], value);
        if (!taken && own)
            taken = own(user, argv[a], value);
        if (!taken) {
            fprintf(stderr, "%s: unknown argument %s\n", argv[0], argv[a]);
            return 2;
        }
    }
    if (suite->small && suite->splits > SPLITS_SMALL)
        suite->splits = SPLITS_SMALL;
    if (suite->check)
        suite->splits = 1;
    const cox_status status = cox_runtime_create(&params, &suite->runtime);
    const bool fma = params.arithmetic == COX_ARITHMETIC_FMA;
    bool slow = false;
    if (status) {
        fprintf(stderr, "%s: %s\n", argv[0], cox_status_text(status));
        return status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || (fma && status == COX_E_UNSUPPORTED) ? 77
                                                                                                                : 1;
    }
    suite->device_count = cox_runtime_device_count(suite->runtime);
    if (expected && suite->device_count != expected) {
        bits_complain(suite, "%u devices instead of %u", suite->device_count, expected);
        suite->failed++;
    }
    if (!look_at_devices(suite, &slow))
        return 1;
    if (fma && slow) {
        fprintf(stderr, "%s: fma is slow here\n", argv[0]);
        cox_runtime_destroy(&suite->runtime);
        return 77;
    }
    return -1;
}

bool bits_complain(struct bits_suite *suite, const char *format, ...)
{
    va_list args;
    if (suite->complaints++ >= COMPLAINTS_MAX)
        return false;
    fputs("FAILED ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs(suite->complaints == COMPLAINTS_MAX ? "\nFAILED … and so on\n" : "\n", stderr);
    return false;
}

void bits_verdict(struct bits_suite *suite, bool good, const char *yes, const char *no)
{
    printf(" %s\n", good ? yes : no);
    suite->passed += good;
    suite->failed += !good;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct bits_session *session = user;
    random_tally_report(&session->tally, report, session->rows, session->row_alignment, session->devices);
}

void bits_session_params(struct cox__session_spec *params, const uint32_t *device, uint32_t split_first,
                         uint32_t split_row_alignment)
{
    params->no_warmup = true;
    params->device_timeout_ns = 60000000000; /* for busy machines */
    if (*device == BITS_ALL_DEVICES) {
        random_splits_begin(split_first, split_row_alignment);
        params->custom_policy = &random_splits_policy;
        params->split_each_pass = true;
    } else {
        params->policy = "single";
        params->devices = device;
        params->device_count = 1;
    }
}

bool bits_session_open(struct bits_suite *suite, const char *what, const struct cox__session_spec *pipeline,
                       uint32_t device, uint32_t split_first, uint32_t split_row_alignment, struct bits_session *out)
{
    struct cox__session_spec params = *pipeline;
    *out = (struct bits_session){.suite = suite, .rows = params.rows};
    bits_session_params(&params, &device, split_first, split_row_alignment);
    params.check = suite->check && device == BITS_ALL_DEVICES;
    if (device == BITS_ALL_DEVICES) {
        snprintf(out->how, sizeof out->how, "random splits");
        if (!params.pass_count) { /* else a report has the bands of several splits */
            params.report = on_report;
            params.report_user = out;
        }
    } else {
        snprintf(out->how, sizeof out->how, "device %u alone", device);
    }
    const cox_status status = cox__session_create(suite->runtime, &params, &out->session);
    if (status != COX_OK)
        return bits_complain(suite, "%s: no session: %s", what, cox_status_text(status));
    struct cox_session_info info;
    cox_session_info(out->session, &info);
    out->row_alignment = info.row_alignment;
    out->devices = info.device_count;
    if (info.device_count != (device == BITS_ALL_DEVICES ? suite->device_count : 1))
        return bits_complain(suite, "%s: %u devices take part", what, info.device_count);
    return true;
}

bool bits_session_close(struct bits_session *session)
{
    struct bits_suite *suite = session->suite;
    bool good = true;
    if (!session->session)
        return true;
    struct cox_session_info info;
    cox_session_wait(session->session);
    cox_session_info(session->session, &info);
    for (uint32_t d = 0; d < info.device_count; d++)
        if (info.devices[d].lost)
            good = bits_complain(suite, "device %u left the session", info.devices[d].device);
    cox_session_destroy(&session->session);
    if (session->tally.wrong > 0)
        good = bits_complain(suite, "%" PRIu64 " frames were not split as drawn", session->tally.wrong);
    random_tally_add(&suite->tally, &session->tally);
    return good;
}

/* --- Results ------------------------------------------------------------------------------------------------------ */

static bool complain_of(struct bits_session *session, const struct bits_result *result, cox_status status)
{
    return bits_complain(session->suite, "%s, %s, %s: %s", result->what, result->how, session->how,
                         cox_status_text(status));
}

static void on_done(void *user, uint64_t frame, cox_status status)
{
    (void)frame;
    *(struct bits_lane *)user = (struct bits_lane){.status = status, .done = true};
}

bool bits_submit(struct bits_session *session, const struct bits_result *result, uint32_t lane)
{
    const struct bits_frame *memory = &result->lanes[lane];
    const struct cox__frame_spec frame = {
        .buffers = memory->buffers, .buffer_count = memory->count, .params = result->params};
    session->lanes[lane].done = false;
    const cox_status status = cox__session_submit(session->session, &frame, on_done, &session->lanes[lane]);
    return status == COX_OK || complain_of(session, result, status);
}

bool bits_wait(struct bits_session *session, const struct bits_result *result, uint32_t lane)
{
    cox_session_wait(session->session);
    const struct bits_lane *end = &session->lanes[lane];
    return (end->done && end->status == COX_OK) || complain_of(session, result, end->status);
}

/* Compare the frame's result with the first one, or keep it as the first one. */
static void take(struct bits_session *session, struct bits_result *result, struct bits_frame *frame)
{
    const char *what = NULL;
    size_t at = 0;
    if (result->runs++ == 0) {
        result->first = bits_frame_result(frame);
        result->bytes = bits_frame_bytes(frame);
    } else if (!bits_frame_equals(frame, result->first, &at)) {
        what = "this byte of the result differs";
    }
    if (!what && result->intact && !bits_frame_intact(frame))
        what = "bytes outside the rows were written";
    if (!what)
        return;
    result->wrong++;
    bits_complain(session->suite, "%s, %s, %s, run %u: byte %zu of %zu: %s", result->what, result->how, session->how,
                  result->runs, at, result->bytes, what);
}

/* Run `count` frames, one in each lane at a time. */
static bool run_frames(struct bits_session *session, struct bits_result *result, uint32_t count)
{
    bool good = true;
    for (uint32_t next = 0; next < count && good; next += result->lane_count) {
        const uint32_t now = count - next < result->lane_count ? count - next : result->lane_count;
        for (uint32_t i = 0; i < now; i++)
            bits_frame_spoil(&result->lanes[i], result->first);
        for (uint32_t i = 0; i < now && good; i++)
            good = bits_submit(session, result, i);
        for (uint32_t i = 0; i < now && good; i++) {
            good = bits_wait(session, result, i);
            if (good)
                take(session, result, &result->lanes[i]);
        }
    }
    cox_session_wait(session->session);
    return good;
}

bool bits_result_run(struct bits_suite *suite, const struct cox__session_spec *params, struct bits_result *results,
                     uint32_t count, uint32_t *row_alignment)
{
    bool good = true;
    for (uint32_t d = 0; d <= suite->device_count && good; d++) {
        const bool all = d == suite->device_count;
        struct bits_session session;
        good = bits_session_open(suite, results->what, params, all ? BITS_ALL_DEVICES : d, results->split_first,
                                 row_alignment ? *row_alignment : 0, &session);
        if (good && results->warm)
            good = cox_session_warm(session.session, NULL) == COX_OK ||
                   bits_complain(suite, "%s, %s: warm-up failed", results->what, session.how);
        for (uint32_t r = 0; r < count && good; r++)
            good = run_frames(&session, &results[r], all ? results[r].splits : 1);
        if (row_alignment && all)
            *row_alignment = session.row_alignment;
        good &= bits_session_close(&session);
    }
    return good;
}

void bits_result_print(struct bits_suite *suite, struct bits_result *result, bool good)
{
    printf("bits %s %ux%u %s %016" PRIx64 " %u", result->what, result->width, result->height, result->how,
           result->first ? bits_hash(result->first, result->bytes) : 0, result->runs);
    bits_verdict(suite, good && result->first && result->wrong == 0, "equal", "DIFFERENT");
    free(result->first);
    result->first = NULL;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

void bits_suite_tally(struct bits_suite *suite)
{
    const uint32_t without = random_tally_print(&suite->tally, suite->device_count);
    if (without == 0)
        return;
    bits_complain(suite, "%u devices got no rows", without);
    suite->failed++;
}

int bits_suite_end(struct bits_suite *suite)
{
    cox_runtime_destroy(&suite->runtime);
    printf("%u passed, %u failed\n", suite->passed, suite->failed);
    return suite->failed != 0;
}
