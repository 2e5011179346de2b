/* Programs: built for one device, or loaded from the cache of binaries. A cache entry is the list
 * of the kernels' arguments (argument_list.c), followed by the binary.
 *
 * Sessions share programs, and the latest ones stay when their session ends. A stream whose frame
 * size changes continues with a new session, which needs the same kernels at once.
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread. Owns the
 * backend's list of programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"
#include "internal.h"
#include "hang.h"
#include "host/leak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most programs that stay without a user. */
enum { IDLE_MAX = 32 };

/* Two devices for which this key is equal get the same output of the compiler. */
static void make_output_key(const struct cox__cl_device *device, const char *source,
                            const char *options, enum cox_log_level level, unsigned char key[32])
{
    char name[256] = ""; /* a sub-device has its parent's */
    clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);

    const char *const texts[] = {device->info.platform,
                                 device->platform_version,
                                 device->info.driver,
                                 name,
                                 options,
                                 source};
    struct cox__digest sha;

    cox__digest_begin(&sha);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cox__cache_feed(&sha, texts[i], strlen(texts[i]));
    cox__cache_feed(&sha, &level, sizeof level);
    cox__digest_end(&sha, key);
}

/* Find the device whose output with this key is in the log. Returns `device` itself if no other
 * device's output is; the caller then logs it. */
static const struct cox__cl_device *find_output(struct cox__cl_backend *backend,
                                                const struct cox__cl_device *device,
                                                const unsigned char key[32])
{
    const uint32_t self = (uint32_t)(device - backend->devices);
    uint32_t found = self;

    pthread_mutex_lock(&backend->programs_lock);
    const uint32_t count = cox__min_u32(backend->output_count, COX__CL_OUTPUTS_MAX);
    uint32_t i = 0;
    while (i < count && memcmp(backend->outputs[i].key, key, 32) != 0)
        i++;

    if (i < count) {
        found = backend->outputs[i].device;
    } else {
        struct cox__cl_output *added =
            &backend->outputs[backend->output_count++ % COX__CL_OUTPUTS_MAX];
        memcpy(added->key, key, sizeof added->key);
        added->device = self;
    }
    pthread_mutex_unlock(&backend->programs_lock);

    return &backend->devices[found];
}

/* Log the compiler's output, if any. Output that another device has got is not repeated. */
static void log_build(struct cox__cl_backend *backend, const struct cox__cl_device *device,
                      cl_program program, const char *source, const char *options,
                      enum cox_log_level level)
{
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    if (bytes <= 1) /* only the terminator */
        return;

    unsigned char key[32];
    make_output_key(device, source, options, level, key);
    const struct cox__cl_device *first = find_output(backend, device, key);
    if (first != device) {
        cox__log(backend->log, level, "%s: the compiler's output is the same as for %s",
                 device->info.name, first->info.name);
        return;
    }

    char *text = calloc(1, bytes + 1);
    if (!text)
        return;

    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, text, NULL);
    cox__log_text(backend->log, level, "compiler: ", text);
    free(text);
}

static void make_key(const struct cox__cl_device *device, const char *source, const char *options,
                     unsigned char key[32])
{
    struct cox__digest sha;
    /* A sub-device compiles to the same code as its parent, but a driver's binary may differ. */
    const char *const texts[] = {COX_VERSION_STRING, device->platform_version, device->info.id,
                                 device->info.driver};

    cox__digest_begin(&sha);
    cox__cache_feed(&sha, cox__cache_kernels.magic, sizeof cox__cache_kernels.magic);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cox__cache_feed(&sha, texts[i], strlen(texts[i]));
    cox__cache_feed(&sha, &device->info.compute_units, sizeof device->info.compute_units);
    cox__cache_feed(&sha, options, strlen(options));
    cox__cache_feed(&sha, source, strlen(source));

    cox__digest_end(&sha, key);
}

/* Build with the information on kernel arguments, which changes no code. Drivers older than
 * OpenCL 1.2 refuse the option. */
static cl_int build(cl_program program, const struct cox__cl_device *device, const char *options)
{
    char *all_options;
    if (asprintf(&all_options, "%s -cl-kernel-arg-info", options) < 0)
        return CL_OUT_OF_HOST_MEMORY;

    cl_int code = clBuildProgram(program, 1, &device->id, all_options, NULL, NULL);
    free(all_options);

    if (code == CL_INVALID_BUILD_OPTIONS)
        code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    return code;
}

static bool load(struct cox__cl_backend *backend, const struct cox__cl_device *device,
                 cl_context context, const char *options, struct cox__cl_program *out)
{
    size_t bytes;
    char *entry = cox__cache_load(backend->cache_dir, &cox__cache_kernels, out->key, &bytes,
                                  backend->log);
    if (!entry)
        return false;

    const size_t list_bytes = cox__cl_argument_list_bytes(entry, bytes);
    const size_t binary_bytes = bytes - list_bytes;
    const unsigned char *binary = (unsigned char *)entry + list_bytes;
    cl_int status = CL_SUCCESS, code = CL_INVALID_BINARY;
    cl_program program = NULL;

    if (list_bytes)
        program = clCreateProgramWithBinary(context, 1, &device->id, &binary_bytes, &binary,
                                            &status, &code);
    if (code)
        program = NULL;

    /* A binary must be built with the options that it was made with. */
    if (program && status == CL_SUCCESS && build(program, device, options) == CL_SUCCESS) {
        out->id = program;
        out->arguments = malloc(list_bytes);
        if (out->arguments)
            memcpy(out->arguments, entry, list_bytes);

        free(entry);
        return true;
    }

    cox__log(backend->log, COX_LOG_INFO, "%s rejects a cached binary; building from source",
             device->info.name);
    if (program)
        clReleaseProgram(program);
    free(entry);
    return false;
}

/* PoCL reports the parent of a sub-device as the device of its program. */
static bool is_or_holds(cl_device_id id, const struct cox__cl_device *device)
{
    cl_device_id parent = NULL;
    clGetDeviceInfo(device->id, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
    return id == device->id || (parent && id == parent);
}

static void store(struct cox__cl_backend *backend, const struct cox__cl_device *device,
                  const struct cox__cl_program *program)
{
    cl_device_id ids[COX_DEVICES_MAX];
    size_t sizes[COX_DEVICES_MAX] = {0}, got = 0;
    const size_t list_bytes = program->arguments_bytes;
    unsigned char *binaries[COX_DEVICES_MAX] = {0};

    if (clGetProgramInfo(program->id, CL_PROGRAM_DEVICES, sizeof ids, ids, &got) ||
        clGetProgramInfo(program->id, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL))
        return;

    size_t count = got / sizeof *ids;
    for (size_t i = 0; i < count; i++) {
        if (!is_or_holds(ids[i], device) || !sizes[i])
            continue;

        unsigned char *entry = malloc(list_bytes + sizes[i]);
        if (!entry)
            return;

        memcpy(entry, program->arguments, list_bytes);
        binaries[i] = entry + list_bytes; /* NULL for the other devices: the driver skips them */

        if (clGetProgramInfo(program->id, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries,
                             NULL) == CL_SUCCESS)
            cox__cache_store(backend->cache_dir, &cox__cache_kernels, program->key, entry,
                             list_bytes + sizes[i], backend->log);

        free(entry);
        return;
    }
}

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

/* Errors (logged): E_BUILD, … */
static cox_status compile(struct cox__cl_backend *backend, const struct cox__cl_device *device,
                          cl_context context, const char *source, const char *options,
                          cl_program *out)
{
    cl_int code;
    *out = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    if (code)
        return cox__cl_error_check(backend->log, code, "clCreateProgramWithSource",
                                   device->info.name);

    code = build(*out, device, options);
    if (code) {
        cox__cl_error_check(backend->log, code, "clBuildProgram", device->info.name);
        log_build(backend, device, *out, source, options, COX_LOG_ERROR);
        clReleaseProgram(*out);
        *out = NULL;
        return COX_E_BUILD;
    }

    log_build(backend, device, *out, source, options, COX_LOG_DEBUG);
    return COX_OK;
}

static cox_status make(struct cox__cl_backend *backend, const char *source, const char *options,
                       struct cox__cl_program *program)
{
    const struct cox__cl_device *device = &backend->devices[program->device];
    if (backend->cache_dir && load(backend, device, program->context, options, program))
        return COX_OK;

    const cox_status status = compile(backend, device, program->context, source, options,
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
cox_status cox__cl_program_get(struct cox__cl_backend *backend, uint32_t device, cl_context context,
                               const char *source, const char *options,
                               struct cox__cl_program **out)
{
    unsigned char key[32];
    make_key(&backend->devices[device], source, options, key);

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

    const cox_status status = make(backend, source, options, program);
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
        store(backend, &backend->devices[program->device], program);
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
