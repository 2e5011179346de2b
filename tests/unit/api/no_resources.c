/* COX_E_NOMEM and COX_E_SYSTEM from the functions that create objects. Each of their allocations fails once, and so
 * do threads and descriptors. Each failure must leave a line in the log and no leak.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "engine/state.h"
#include "support/captured_log.h"
#include "unit/engine/map_test.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

TestSuite(no_resources, .timeout = 600);

enum { ROWS = 64, COLUMNS = 16 };

/* ---- what fails, on the thread that asks for it ----
 * These functions replace the C library's for the library that is linked into this program. Drivers and other
 * libraries do not see them. */

static _Thread_local struct {
    size_t count, bytes; /* of the calloc that fails; 0 = none */
    uint32_t passing;    /* callocs of that size that come before it */
    uint32_t nth;        /* the number of the calloc that fails, counted from here; 0 = none */
    const char *text;    /* of the strdup that fails */
    bool threads;        /* pthread_create */
    bool descriptors;    /* eventfd */
    bool happened;
} failing;

static bool fails(bool this_one)
{
    if (!this_one)
        return false;
    failing.happened = true;
    return true;
}

void *calloc(size_t count, size_t bytes)
{
    static void *(*real)(size_t count, size_t bytes);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "calloc");
    const bool matches = failing.bytes && failing.count == count && failing.bytes == bytes;
    const bool passes = matches && failing.passing > 0;
    failing.passing -= passes;
    if (fails(matches && !passes) || fails(failing.nth && --failing.nth == 0))
        return NULL;
    return real(count, bytes);
}

char *strdup(const char *text)
{
    static char *(*real)(const char *text);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "strdup");
    return fails(failing.text && strcmp(failing.text, text) == 0) ? NULL : real(text);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *arg), void *arg)
{
    static int (*real)(pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *arg), void *arg);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    return fails(failing.threads) ? EAGAIN : real(thread, attributes, run, arg);
}

int eventfd(unsigned count, int flags)
{
    static int (*real)(unsigned count, int flags);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "eventfd");
    return fails(failing.descriptors) ? -1 : real(count, flags);
}

/* ---- buffers and sessions ---- */

static const struct fake_params pair = {.device_count = 2, .devices = {{.ns_per_row = 1e3}, {.ns_per_row = 1e3}}};

Test(no_resources, buffers)
{
    open_rig(&pair, ROWS, COLUMNS, 1);
    _Alignas(64) static unsigned char memory[64];
    cox_buffer *buffer = (cox_buffer *)&buffer;
    failing.count = 1;
    failing.bytes = sizeof(cox_buffer);
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 100, &buffer), COX_E_NOMEM);
    cr_assert_null(buffer);
    cr_assert_str_eq(rig_log(rig), "cox_buffer_create: 100 bytes: out of host memory\n");
    buffer = (cox_buffer *)&buffer;
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), memory, 64, NULL, NULL, &buffer), COX_E_NOMEM);
    cr_assert_null(buffer);
    cr_assert(rig_logged(rig, "cox_buffer_wrap: 64 bytes: out of host memory\n"));
    failing.bytes = 0;
    cr_assert_eq(cox_buffer_create(rig_runtime(rig), 100, &buffer), COX_OK);
    cox_buffer_destroy(&buffer);
    close_rig();
}

/* Create a session while something fails. Then, when nothing fails any more, run frames. */
static void session_without(size_t count, size_t bytes, const char *text, const char *logged)
{
    open_rig(&pair, ROWS, COLUMNS, 3);
    session = (cox_session *)&session;
    failing.count = count;
    failing.bytes = bytes;
    failing.text = text;
    failing.happened = false;
    const cox_status status =
        rig_map_session(frames, &(const struct cox__session_spec){.in_flight = 3, .no_warmup = true}, &session);
    failing.bytes = 0;
    failing.text = NULL;
    cr_assert(failing.happened, "nothing failed: %s", logged);
    cr_assert_eq(status, COX_E_NOMEM, "%s", logged);
    cr_assert_null(session);
    cr_assert(rig_logged(rig, logged), "not in the log: %s\n%s", logged, rig_log(rig));
    cr_assert_eq(rig_map_session(frames, &(const struct cox__session_spec){.in_flight = 3, .no_warmup = true},
                                 &session),
                 COX_OK);
    rig_play(rig, frames, session, 0, 6);
    close_rig();
}

Test(no_resources, sessions)
{
    static const char pipeline[] = "no memory for a copy of 2 bindings and 1 passes\n";
    session_without(1, sizeof(cox_session), NULL, "no memory for a session of ");
    session_without(1, sizeof(struct cox__variant), NULL, pipeline);
    session_without(1, sizeof(struct cox__arg), NULL, pipeline);
    session_without(0, 0, "in", pipeline);      /* a binding's name */
    session_without(0, 0, "rig_map", pipeline); /* a kernel's name */
    session_without(0, 0, "fake", pipeline);    /* its source */
    session_without(0, 0, "", pipeline);        /* its options */
    /* The kernel's variant may have the same size, and comes first. */
    failing.passing = sizeof(struct cox__queue) == sizeof(struct cox__variant);
    session_without(1, sizeof(struct cox__queue), NULL, "fake 0 does not take part: out of host memory\n");
    session_without(2, sizeof(struct cox__queue_slot), NULL, "fake 1 does not take part: out of host memory\n");
    session_without(4, sizeof(struct cox__frame), NULL, "no memory for 3 frames in flight of ");
    session_without(1, sizeof(struct cox__frame), NULL, "no memory for 3 frames in flight of ");
}

/* ---- the runtime ---- */

static void skip_without_devices(void)
{
    cox_runtime *runtime = NULL;
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device: %s", cox_status_text(status));
    cr_assert_eq(status, COX_OK, "%s", logged);
    cox_runtime_destroy(&runtime);
}

Test(no_resources, runtimes_without_memory)
{
    uint32_t refused = 0;
    skip_without_devices();
    failing.happened = true;
    for (uint32_t nth = 1; failing.happened; nth++) {
        cox_runtime *runtime = (cox_runtime *)&runtime;
        logged[0] = 0;
        failing.nth = nth;
        failing.happened = false;
        const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &runtime);
        failing.nth = 0;
        if (status == COX_OK) { /* either it works without the allocation, or none failed */
            cox_runtime_destroy(&runtime);
            continue;
        }
        cr_assert_eq(status, COX_E_NOMEM, "%u: %s", nth, logged);
        cr_assert_null(runtime);
        cr_assert_not_null(strstr(logged, "cox_runtime_create: out of host memory\n"), "%u: %s", nth, logged);
        refused++;
    }
    cr_assert_geq(refused, 6);
    cox_runtime *runtime = (cox_runtime *)&runtime;
    logged[0] = 0;
    failing.text = "/nonexistent/cache";
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.cache_dir = "/nonexistent/cache",
                                                                                    .log = on_log},
                                                 &runtime);
    failing.text = NULL;
    cr_assert_eq(status, COX_E_NOMEM);
    cr_assert_null(runtime);
    cr_assert_str_eq(logged, "cox_runtime_create: out of host memory\n");
}

Test(no_resources, runtimes_without_threads)
{
    skip_without_devices();
    cox_runtime *runtime = (cox_runtime *)&runtime;
    logged[0] = 0;
    failing.threads = true;
    const cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.log = on_log, .log_level = COX_LOG_ERROR}, &runtime);
    failing.threads = false;
    cr_assert(failing.happened);
    cr_assert_eq(status, COX_E_SYSTEM, "%s", logged);
    cr_assert_null(runtime);
    cr_assert_str_eq(logged, "cox_runtime_create: the operating system refused a resource\n");
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &runtime), COX_OK);
    cox_runtime_destroy(&runtime);
}
