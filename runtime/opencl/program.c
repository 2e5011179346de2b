/* Programs: built for one device (build.c), or made from a binary (binary.c).
 *
 * Sessions share programs, and the latest ones stay when their session ends. A stream whose frame
 * size changes continues with a new session, which needs the same kernels at once.
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread. Owns the
 * backend's list of programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "binary.h"
#include "hang.h"
#include "store/code.h"
#include "host/leak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most programs that stay without a user. */
enum { IDLE_MAX = 32 };

cl_program cox__cl_program_try(const struct cox__cl_backend *backend, uint32_t device,
                               cl_context context, const char *source, const char *options)
{
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    if (code)
        return NULL;

    if (clBuildProgram(program, 1, &backend->devices[device].id, options, NULL, NULL) == CL_SUCCESS)
        return program;

    clReleaseProgram(program);
    return NULL;
}

/* Compile the kernel, unless the cache has it. */
static cox_status make(struct cox__cl_backend *backend, const struct cox__variant *kernel,
                       struct cox__cl_program *program)
{
    const struct cox__cl_device *device = &backend->devices[program->device];
    if (kernel->code && cox__code_kind_of(kernel->code, kernel->code_bytes) == COX__CODE_FILE)
        return cox__cl_binary_take_code(backend, kernel, program) ? COX_OK : COX_E_BUILD;

    if (backend->cache_dir && cox__cl_binary_load(backend, kernel->options, program))
        return COX_OK;

    const cox_status status = cox__cl_build_kernel(backend, device, program->context, kernel,
                                                   &program->id);
    if (status)
        return status;

    program->arguments = cox__cl_argument_list(program->id, &program->arguments_bytes);
    program->uncached = backend->cache_dir && program->arguments;
    return COX_OK;
}

static void release(struct cox__cl_program *program)
{
    if (program->id)
        clReleaseProgram(program->id);
    free(program->arguments);
    free(program);
}

/* ---- the list; called with the lock held ---- */

/* Take the program at `link` out of the list. */
static struct cox__cl_program *unlink_program(struct cox__cl_program **link)
{
    struct cox__cl_program *program = *link;
    *link = program->next;
    program->next = NULL;
    return program;
}

static void put_first(struct cox__cl_backend *backend, struct cox__cl_program *program)
{
    program->next = backend->programs;
    backend->programs = program;
}

static bool is_match(const struct cox__cl_program *program, uint32_t device, cl_context context,
                     const unsigned char key[32])
{
    return !program->unsound && program->device == device && program->context == context &&
           memcmp(program->key, key, sizeof program->key) == 0;
}

static struct cox__cl_program *find(struct cox__cl_backend *backend, uint32_t device,
                                    cl_context context, const unsigned char key[32])
{
    struct cox__cl_program **link = &backend->programs;
    while (*link && !is_match(*link, device, context, key))
        link = &(*link)->next;

    if (!*link)
        return NULL;
    return unlink_program(link);
}

/* Take out the programs without users, except the first `stay` sound ones. Returns them as a
 * list. */
static struct cox__cl_program *take_idle(struct cox__cl_backend *backend, uint32_t stay)
{
    struct cox__cl_program *taken = NULL;

    for (struct cox__cl_program **link = &backend->programs; *link;) {
        struct cox__cl_program *program = *link;
        const bool stays = !program->users && !program->unsound && stay;

        stay -= stays;
        if (program->users || stays) {
            link = &program->next;
        } else {
            unlink_program(link);
            program->next = taken;
            taken = program;
        }
    }
    return taken;
}

/* ---- get and put ---- */

/* Get a program that exists; NULL = none. */
static struct cox__cl_program *share(struct cox__cl_backend *backend, uint32_t device,
                                     cl_context context, const unsigned char key[32])
{
    pthread_mutex_lock(&backend->programs_lock);
    struct cox__cl_program *program = find(backend, device, context, key);
    if (program) {
        program->users++;
        put_first(backend, program);
    }
    pthread_mutex_unlock(&backend->programs_lock);

    return program;
}

/* Two threads that request the same program at the same time build it twice. */
static cox_status get(struct cox__cl_backend *backend, uint32_t device, cl_context context,
                      const struct cox__variant *kernel, struct cox__cl_program **out)
{
    unsigned char key[32];
    cox__cl_binary_key(&backend->devices[device], kernel, key);

    *out = share(backend, device, context, key);
    if (*out)
        return COX_OK;

    struct cox__cl_program *program = calloc(1, sizeof *program);
    if (!program)
        return COX_E_NOMEM;

    program->context = context;
    program->device = device;
    program->users = 1;
    memcpy(program->key, key, sizeof key);

    const cox_status status = make(backend, kernel, program);
    if (status) {
        free(program);
        return status;
    }

    pthread_mutex_lock(&backend->programs_lock);
    put_first(backend, program);
    pthread_mutex_unlock(&backend->programs_lock);

    *out = program;
    return COX_OK;
}

cox_status cox__cl_program_get(struct cox__cl_backend *backend, uint32_t device, cl_context context,
                               const struct cox__variant *kernel, struct cox__cl_program **out)
{
    const cox_status status = get(backend, device, context, kernel, out);
    if (!status || !kernel->code || kernel->declared)
        return status;

    struct cox__variant from_source = *kernel;
    from_source.code = NULL;
    from_source.code_bytes = 0;
    return get(backend, device, context, &from_source, out);
}

static void release_all(struct cox__cl_program *list)
{
    for (struct cox__cl_program *program; (program = list);) {
        list = program->next;
        release(program);
    }
}

void cox__cl_program_put(struct cox__cl_backend *backend, struct cox__cl_program *program,
                         bool sound)
{
    if (!program)
        return;

    pthread_mutex_lock(&backend->programs_lock);
    program->unsound |= !sound;

    if (program->users == 1 && program->uncached && !program->unsound) {
        program->uncached = false;
        pthread_mutex_unlock(&backend->programs_lock);
        cox__cl_binary_store(backend, program);
        pthread_mutex_lock(&backend->programs_lock);
    }

    program->users--;
    struct cox__cl_program *taken = take_idle(backend, IDLE_MAX);
    pthread_mutex_unlock(&backend->programs_lock);

    release_all(taken);
}

void cox__cl_programs_drop(struct cox__cl_backend *backend)
{
    pthread_mutex_lock(&backend->programs_lock);
    struct cox__cl_program *taken = take_idle(backend, 0);
    pthread_mutex_unlock(&backend->programs_lock);

    for (struct cox__cl_program *program = taken; program; program = program->next)
        if (cox__cl_hang_in_group(backend, backend->devices[program->device].group)) {
            cox__leak(program->id);
            program->id = NULL;
        }

    release_all(taken);
}

/* ---- ahead of time ---- */

char *cox__cl_program_options(const struct cox__cl_backend *backend,
                              const struct cox__variant *kernel)
{
    const bool spirv = kernel->code && cox__code_kind_of(kernel->code, kernel->code_bytes) ==
                                           COX__CODE_SPIRV; /* it has no preprocessor */
    const bool fma = backend->arithmetic == COX_ARITHMETIC_FMA && !spirv;
    char *options;
    if (asprintf(&options, "%s%s", kernel->options, fma ? " -DCOX_FMA" : "") < 0)
        return NULL;

    return options;
}

cox_status cox__cl_program_compile(struct cox__backend *base, uint32_t device,
                                   const struct cox__variant *kernel, FILE *file)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    struct cox__cl_device *of = &backend->devices[device];
    if (of->hung)
        return COX_E_DEVICE_LOST;

    struct cox__variant made = *kernel;
    struct cox__cl_program *program = NULL;
    char *options = cox__cl_program_options(backend, kernel);
    if (!options)
        return COX_E_NOMEM;

    made.options = options;
    cox_status status = cox__cl_program_get(backend, device, backend->groups[of->group].context,
                                            &made, &program);
    if (!status && file)
        status = cox__cl_binary_append(backend, program, options, file);

    cox__cl_program_put(backend, program, true);
    free(options);
    return status;
}
