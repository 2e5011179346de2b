/* SPDX-License-Identifier: Apache-2.0 */
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

/* How many arguments the option is; 0 = it is the program's own, or unknown. */
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
    else if (!strcmp(option, "--small"))
        return suite->small = true;
    else if (!strcmp(option, "--verbose"))
        return suite->verbose = true;
    else
        return 0;
    return 2;
}

/* `*slow`: one of them has no quick fma. */
static bool look_at_devices(struct bits_suite *suite, bool *slow)
{
    for (uint32_t d = 0; d < suite->device_count; d++) {
        struct cox_device_info info;
        if (cox_runtime_device_info(suite->runtime, d, &info, sizeof info) != COX_OK)
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
    const cox_status status = cox_runtime_create(&suite->runtime, &params);
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

uint64_t bits_hash(const void *data, size_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
    return hash;
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static void on_report(void *user, const struct cox_frame_report *report)
{
    struct bits_session *session = user;
    random_tally_report(&session->tally, report, session->rows, session->granule, session->devices);
}

void bits_session_params(struct cox_session_params *params, const uint32_t *device, uint32_t split_first,
                         uint32_t split_granule)
{
    params->no_warmup = true;
    params->device_timeout_ns = 60000000000; /* a busy machine */
    if (*device == BITS_ALL_DEVICES) {
        random_splits_begin(split_first, split_granule);
        params->custom_policy = &random_splits_policy;
        params->split_each_pass = true;
    } else {
        params->policy = "single";
        params->devices = device;
        params->device_count = 1;
    }
}

bool bits_session_open(struct bits_suite *suite, const char *what, const struct cox_session_params *pipeline,
                       uint32_t device, uint32_t split_first, uint32_t split_granule, struct bits_session *out)
{
    struct cox_session_params params = *pipeline;
    *out = (struct bits_session){.suite = suite, .rows = params.rows};
    bits_session_params(&params, &device, split_first, split_granule);
    if (device == BITS_ALL_DEVICES) {
        snprintf(out->how, sizeof out->how, "random splits");
        params.report = on_report;
        params.report_user = out;
    } else {
        snprintf(out->how, sizeof out->how, "device %u alone", device);
    }
    const cox_status status = cox_session_create(suite->runtime, &params, &out->session);
    if (status != COX_OK)
        return bits_complain(suite, "%s: no session: %s", what, cox_status_text(status));
    struct cox_session_info info;
    cox_session_info(out->session, &info, sizeof info);
    out->granule = info.granule;
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
    cox_session_info(session->session, &info, sizeof info);
    for (uint32_t d = 0; d < info.device_count; d++)
        if (info.devices[d].lost)
            good = bits_complain(suite, "device %u left the session", info.devices[d].device);
    cox_session_destroy(&session->session);
    if (session->tally.wrong > 0)
        good = bits_complain(suite, "%" PRIu64 " frames were not split as drawn", session->tally.wrong);
    random_tally_add(&suite->tally, &session->tally);
    return good;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

int bits_suite_end(struct bits_suite *suite)
{
    cox_runtime_destroy(&suite->runtime);
    printf("%u passed, %u failed\n", suite->passed, suite->failed);
    return suite->failed != 0;
}
