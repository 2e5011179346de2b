/* An OpenCL layer that injects faults by a plan: devices fail, hang, give wrong results and vanish. See
 * docs/reference/fault-layer.md.
 *
 * Every call passes through the layer's table and on to the drivers. The layer delays commands as follows:
 *   A command that is late, or never runs, gets a user event of the layer in its wait list, its gate. So the
 *     driver itself delays later commands in the queue and all commands that wait for this one.
 *   If only the end of a command is seen late, a marker follows the command and waits for a gate. The
 *     application gets the marker's event.
 *   False answers about events (status, times, callbacks) are made when the application asks.
 *
 * The folder layer/ has the functions that replace those of the driver. layer.h shows which file has what, and
 * which thread may call it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "layer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

cl_icd_dispatch next;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The time of the layer's clock while a program has stopped it; 0 = it runs. */
static _Atomic uint64_t stopped_ns;

uint64_t real_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t now_ns(void)
{
    const uint64_t stopped = atomic_load(&stopped_ns);
    return stopped ? stopped : real_ns();
}

bool clock_stands(void)
{
    return atomic_load(&stopped_ns);
}

FAULT_EXPORT uint64_t cox_fault_advance(uint64_t ns)
{
    uint64_t running = 0;
    atomic_compare_exchange_strong(&stopped_ns, &running, real_ns());
    const uint64_t now = atomic_fetch_add(&stopped_ns, ns) + ns;
    wait_for_due(now);
    return now;
}

void sleep_ns(uint64_t ns)
{
    if (clock_stands() && ns != FAULT_FOREVER) {
        atomic_fetch_add(&stopped_ns, ns);
        return;
    }
    do {
        uint64_t part = ns < 1000000000u ? ns : 1000000000u;
        struct timespec t = {.tv_sec = (time_t)(part / 1000000000u), .tv_nsec = (long)(part % 1000000000u)};
        while (nanosleep(&t, &t) != 0 && errno == EINTR)
            continue;
        if (ns != FAULT_FOREVER)
            ns -= part;
    } while (ns > 0);
}

void poll_pause(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = POLL_NS}, NULL);
}

/* The contents of the file and a NUL; NULL if it cannot be read. */
static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = 0, room = 4096;
    char *text = file ? must_alloc(room, 1) : NULL;
    while (text) {
        bytes += fread(text + bytes, 1, room - bytes - 1, file);
        if (bytes + 1 < room)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            abort();
        text = larger;
    }
    if (text) {
        text[bytes] = 0;
        if (ferror(file) || strlen(text) != bytes) {
            free(text);
            text = NULL;
        }
    }
    if (file)
        fclose(file);
    return text;
}

/* A faulty plan ends the program: without faults a test would seem to pass. */
static void load_from_environment(void)
{
    static const char inline_plan[] = "plan:";
    const char *plan = getenv("COX_FAULT_PLAN");
    char why[512];
    if (!plan || !*plan)
        return;
    bool is_text = strncmp(plan, inline_plan, sizeof inline_plan - 1) == 0;
    char *text = is_text ? strdup(plan + sizeof inline_plan - 1) : read_whole(plan);
    if (!text) {
        fprintf(stderr, "layer_fault: cannot read the plan %s\n", plan);
        _exit(2);
    }
    if (cox_fault_load(text, why, sizeof why) != 0) {
        fprintf(stderr, "layer_fault: %s%s%s\n", is_text ? "" : plan, is_text ? "" : ": ", why);
        _exit(2);
    }
    free(text);
}

/* Runs after the program's own exit handlers. */
__attribute__((destructor)) static void report_at_exit(void)
{
    const char *path = getenv("COX_FAULT_REPORT");
    if (next.clGetPlatformIDs && path && *path && cox_fault_write(path) != 0)
        fprintf(stderr, "layer_fault: cannot write %s\n", path);
}

FAULT_EXPORT CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info info, size_t bytes, void *value, size_t *got)
{
    return layer_info("coxswain fault", info, bytes, value, got);
}

FAULT_EXPORT CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target,
                                                         cl_uint *entries_ret, const cl_icd_dispatch **table)
{
    static cl_icd_dispatch ours;
    const cl_uint known = sizeof ours / sizeof ours.clGetPlatformIDs;
    if (!target || !entries_ret || !table || entries < known)
        return CL_INVALID_VALUE;
    next = *target;
    ours = *target; /* functions outside the layer go directly to the driver */
#define X(name, classes) \
    if (next.name)       \
        ours.name = fault_##name;
    FAULT_CALLS(X)
#undef X
    load_from_environment();
    atexit(stop_ticker);
    *table = &ours;
    *entries_ret = known;
    return CL_SUCCESS;
}
