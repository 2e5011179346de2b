/* Shared by the tests of kernels' groups and arguments: sessions on each set-up of devices that this machine has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_SETUPS_H
#define COX_TESTS_SETUPS_H

#include "support/captured_log.h"
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static cox_runtime *runtime;
static cox_session *session;

/* A CPU, two halves of one, a CPU in staged mode, and llvmpipe as a GPU. */
enum setup { SETUP_CPU, SETUP_HALVES, SETUP_STAGED, SETUP_LLVMPIPE, SETUPS };

/* Open the runtime of a set-up. False: this machine lacks it. */
static inline bool open_setup(enum setup setup)
{
    static const char *const devices[SETUPS] = {"cpu", "cpu:2x1", "cpu=staged", "gpu"};
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = devices[setup],
                                                                                    .log = on_log,
                                                                                    .log_level = COX_LOG_WARN},
                                                 &runtime);
    logged[0] = '\0';
    return status == COX_OK;
}

static inline void open_any(void)
{
    if (!open_setup(SETUP_HALVES) && !open_setup(SETUP_CPU))
        cr_skip_test("skipped, because there is no OpenCL device for the processor");
}

static inline void with_llvmpipe(void)
{
    setenv("RUSTICL_ENABLE", "llvmpipe", 1);
    setenv("RUSTICL_DEVICE_TYPE", "gpu", 1);
}

static inline void close_setup(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    cr_assert_null(runtime, "something was not released: %s", logged);
}

/* How often the log has the text. */
static inline unsigned count_logged(const char *text)
{
    unsigned count = 0;
    for (const char *at = logged; (at = strstr(at, text)); at++)
        count++;

    return count;
}

/* Creating the session fails, with one line that has the text. */
static inline void refuse(cox_status status, const char *line, const struct cox_session_params *params)
{
    logged[0] = '\0';
    cr_assert_null(session);
    cr_expect_eq(cox_session_create(runtime, params, &session), status, "%s: %s", line, logged);
    cr_expect_null(session);
    cr_expect(count_logged(line) == 1, "expected once '%s', got: %s", line, logged);
    cox_session_destroy(&session);
}

#define PARAMS(...) (&(const struct cox_session_params){__VA_ARGS__})
#define PASSES(...) .columns = W, .rows = H, .passes = COX_LIST(struct cox_pass, __VA_ARGS__)
#define BUFFERS_OF(...) .buffers = COX_LIST(struct cox_buffer_layout, __VA_ARGS__)
#define ARGUMENTS(...) .arguments = COX_LIST(struct cox_argument, __VA_ARGS__)
#define FIELDS(...) .fields = COX_LIST(struct cox_field, __VA_ARGS__)

#endif
