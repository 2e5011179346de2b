/* Helpers of the programs in this folder: a runtime with a captured log, from these options, and sessions of one
 * kernel.
 *
 *   --devices SEL  the runtime's devices
 *   --expect N     fail unless there are N devices
 *   --verbose      print the log
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_INTEROP_H
#define COX_TESTS_INTEROP_H

#include "specs.h"
#include <coxswain/coxswain.h>
#include <coxswain/opencl.h>
#include "support/check.h"

#include <time.h>

static const char *selection;
static bool verbose;
static char last_lines[8192]; /* of the log, since the last reset */

static inline void on_log(void *user, enum cox_log_level level, const char *line)
{
    const size_t used = strlen(last_lines);
    (void)user;
    if (verbose)
        fprintf(stderr, "%d %s\n", (int)level, line);
    snprintf(last_lines + used, sizeof last_lines - used, "%s\n", line);
}

static inline cox_status new_runtime(cox_runtime **out, const char *devices, const struct cox_opencl_contexts *given)
{
    last_lines[0] = 0;
    return cox_runtime_create(&(const struct cox_runtime_params){.devices = devices,
                                                                 .reserve = COX_RESERVE_OFF,
                                                                 .log = on_log,
                                                                 .contexts = given},
                              out);
}

/* The runtime of the selected devices. Exits with status 77 if there is no device, and with 2 for wrong options. */
static inline cox_runtime *first_runtime(int argc, char **argv)
{
    uint32_t expected = 0;
    cox_runtime *runtime;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0)
            verbose = true;
        else if (strcmp(argv[i], "--devices") == 0 && i + 1 < argc)
            selection = argv[++i];
        else if (strcmp(argv[i], "--expect") == 0 && i + 1 < argc)
            expected = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            exit(2);
    }
    const cox_status status = new_runtime(&runtime, selection, NULL);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE) {
        fprintf(stderr, "skipped, because there is no OpenCL device\n");
        exit(77);
    }
    CHECK(!status);
    CHECK(!expected || cox_runtime_device_count(runtime) == expected);
    return runtime;
}

/* A session of one kernel. `args` has one argument for each buffer of words, columns and rows. The first of two
 * buffers is read and the second written; a single buffer is both. */
static inline cox_session *words_session(cox_runtime *runtime, const char *source, const char *kernel, uint32_t columns,
                                         const struct cox__arg *args, uint32_t buffers, struct cox__session_spec params)
{
    const struct cox__binding bindings[] = {
        {.name = "from", .access = buffers == 1 ? COX__READ_WRITE : COX__READ, .pitch_bytes = 4 * columns},
        {.name = "to", .access = COX__WRITE, .pitch_bytes = 4 * columns}};
    const struct cox__variant variant = {.source = source, .local_columns = 16};
    const struct cox__stage stage = {.kernel = kernel,
                                     .columns = columns,
                                     .variant_count = 1,
                                     .variants = &variant,
                                     .arg_count = buffers + 2,
                                     .args = args};
    cox_session *session;
    params.binding_count = buffers;
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &stage;
    CHECK(!cox__session_create(runtime, &params, &session));
    return session;
}

static inline cl_uint context_references(cl_context context)
{
    cl_uint count;
    CHECK(!clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static inline void rest_ms(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Some drivers release objects only shortly after a command has completed. */
#define CHECK_SOON(condition)                            \
    do {                                                 \
        for (int i = 0; i < 120000 && !(condition); i++) \
            rest_ms();                                   \
        CHECK(condition);                                \
    } while (0)

static inline double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

#endif
