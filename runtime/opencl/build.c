/* Builds programs for one device:
 *
 *   a source                        clBuildProgram
 *   with headers or libraries       clCompileProgram for each source, then clLinkProgram
 *   SPIR-V                          clCreateProgramWithILKHR
 *
 * The compiler's output goes to the log, once for devices that get the same.
 *
 * Headers, libraries and the option for information on arguments work with PoCL 3.1 and 5.0, and
 * with NVIDIA 580. PoCL 3.1 has this information only if the linker gets the option too. If a link
 * fails, PoCL and NVIDIA give neither a program nor output. Rusticl 22.3 takes headers, but links
 * no two sources ("Conflicting SPIR-V versions").
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sources.h"
#include "internal.h"
#include "store/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char argument_info[] = "-cl-kernel-arg-info";

/* ---- the compiler's output ---- */

/* Two devices for which this key is equal get the same output of the compiler. */
static void make_output_key(const struct cox__cl_device *device, const struct cox__variant *kernel,
                            const char *text, enum cox_log_level level, unsigned char key[32])
{
    char name[256] = ""; /* a sub-device has its parent's */
    clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);

    const char *const texts[] = {device->info.platform, device->platform_version,
                                 device->info.driver,   name,
                                 kernel->options,       text};
    struct cox__digest sha;

    cox__digest_begin(&sha);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cox__cache_feed(&sha, texts[i], strlen(texts[i]));
    cox__sources_feed(&sha, kernel->headers);
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

/* Log the compiler's output on `text`, if any. Output that another device has got is not
 * repeated. */
static void log_build(struct cox__cl_backend *backend, const struct cox__cl_device *device,
                      cl_program program, const struct cox__variant *kernel, const char *text,
                      enum cox_log_level level)
{
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    if (bytes <= 1) /* only the terminator */
        return;

    unsigned char key[32];
    make_output_key(device, kernel, text, level, key);
    const struct cox__cl_device *first = find_output(backend, device, key);
    if (first != device) {
        cox__log(backend->log, level, "%s: the compiler's output is the same as for %s",
                 device->info.name, first->info.name);
        return;
    }

    char *output = calloc(1, bytes + 1);
    if (!output)
        return;

    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, output, NULL);
    cox__log_text(backend->log, level, "compiler: ", output);
    free(output);
}

/* ---- calls of the driver ---- */

/* Build with the information on kernel arguments, which changes no code. Drivers older than
 * OpenCL 1.2 refuse the option. */
cl_int cox__cl_build(cl_program program, const struct cox__cl_device *device, const char *options)
{
    char *all_options;
    if (asprintf(&all_options, "%s %s", options, argument_info) < 0)
        return CL_OUT_OF_HOST_MEMORY;

    cl_int code = clBuildProgram(program, 1, &device->id, all_options, NULL, NULL);
    free(all_options);

    if (code == CL_INVALID_BUILD_OPTIONS)
        code = clBuildProgram(program, 1, &device->id, options, NULL, NULL);
    return code;
}

/* A build under way: what all of its steps need. */
struct build {
    struct cox__cl_backend *backend;
    const struct cox__cl_device *device;
    cl_context context;
    const struct cox__variant *kernel;
};

/* Log the failure of a step, and the compiler's output on `text`. `what` is for messages. */
static cox_status fail(const struct build *build, cl_int code, const char *call, cl_program program,
                       const char *text, const char *what)
{
    const struct cox__cl_backend *backend = build->backend;

    cox__cl_error_check(backend->log, code, call, build->device->info.name);
    if (what)
        cox__log(backend->log, COX_LOG_ERROR, "%s: %s", build->device->info.name, what);
    if (program)
        log_build(build->backend, build->device, program, build->kernel, text, COX_LOG_ERROR);
    return COX_E_BUILD;
}

/* Errors (logged): E_NOMEM, ... */
static cox_status create(const struct build *build, const char *text, cl_program *out)
{
    cl_int code;
    *out = clCreateProgramWithSource(build->context, 1, &text, NULL, &code);
    if (code)
        *out = NULL;

    return cox__cl_error_check(build->backend->log, code, "clCreateProgramWithSource",
                               build->device->info.name);
}

/* ---- one source without headers ---- */

static cox_status build_alone(const struct build *build, cl_program *out)
{
    const struct cox__variant *kernel = build->kernel;
    const cox_status status = create(build, kernel->source, out);
    if (status)
        return status;

    const cl_int code = cox__cl_build(*out, build->device, kernel->options);
    if (code)
        return fail(build, code, "clBuildProgram", *out, kernel->source, NULL);

    log_build(build->backend, build->device, *out, kernel, kernel->source, COX_LOG_DEBUG);
    return COX_OK;
}

/* ---- several sources ---- */

/* The sources of a program as OpenCL's objects. `parts` are the kernel's source and the
 * libraries. */
struct pieces {
    uint32_t header_count, part_count;
    cl_program *headers, *parts;
    const char **names; /* of the headers */
};

static void release_pieces(struct pieces *pieces)
{
    for (uint32_t h = 0; h < pieces->header_count; h++)
        clReleaseProgram(pieces->headers[h]);
    for (uint32_t p = 0; p < pieces->part_count; p++)
        clReleaseProgram(pieces->parts[p]);

    free(pieces->headers);
    free(pieces->parts);
    free(pieces->names);
}

static cox_status create_headers(const struct build *build, struct pieces *pieces)
{
    const struct cox_source *headers = build->kernel->headers;
    const uint32_t count = cox__sources_count(headers);

    pieces->headers = calloc(count + 1, sizeof *pieces->headers);
    pieces->names = calloc(count + 1, sizeof *pieces->names);
    if (!pieces->headers || !pieces->names)
        return COX_E_NOMEM;

    for (uint32_t h = 0; headers && h < count; h++) {
        const cox_status status = create(build, headers[h].text, &pieces->headers[h]);
        if (status)
            return status;

        pieces->names[h] = headers[h].name;
        pieces->header_count++;
    }
    return COX_OK;
}

/* Compile one source. `library`: its name, or NULL for the kernel's source. */
static cox_status compile_part(const struct build *build, struct pieces *pieces, const char *text,
                               const char *library)
{
    cl_program *part = &pieces->parts[pieces->part_count];
    const cox_status status = create(build, text, part);
    if (status)
        return status;
    pieces->part_count++;

    char *options = NULL, *what = NULL;
    if (asprintf(&options, "%s %s", build->kernel->options, argument_info) < 0)
        return COX_E_NOMEM;

    /* Without headers the arrays must be NULL. */
    const cl_uint count = pieces->header_count;
    const cl_int code = clCompileProgram(*part, 1, &build->device->id, options, count,
                                         count ? pieces->headers : NULL,
                                         count ? pieces->names : NULL, NULL, NULL);
    free(options);
    if (!code) {
        log_build(build->backend, build->device, *part, build->kernel, text, COX_LOG_DEBUG);
        return COX_OK;
    }

    if (library && asprintf(&what, "library %s does not compile", library) < 0)
        what = NULL;
    fail(build, code, "clCompileProgram", *part, text, what);
    free(what);
    return COX_E_BUILD;
}

static cox_status compile_parts(const struct build *build, struct pieces *pieces)
{
    const struct cox_source *libraries = build->kernel->libraries;
    pieces->parts = calloc(cox__sources_count(libraries) + 1, sizeof *pieces->parts);
    if (!pieces->parts)
        return COX_E_NOMEM;

    cox_status status = compile_part(build, pieces, build->kernel->source, NULL);
    for (const struct cox_source *l = libraries; !status && l && l->name; l++)
        status = compile_part(build, pieces, l->text, l->name);
    return status;
}

static cox_status link_parts(const struct build *build, const struct pieces *pieces,
                             cl_program *out)
{
    const cl_device_id *id = &build->device->id;
    cl_int code;
    *out = clLinkProgram(build->context, 1, id, argument_info, pieces->part_count, pieces->parts,
                         NULL, NULL, &code);

    /* The standard has no such option of the linker. */
    if (code == CL_INVALID_LINKER_OPTIONS || code == CL_INVALID_BUILD_OPTIONS) {
        if (*out)
            clReleaseProgram(*out);
        *out = clLinkProgram(build->context, 1, id, NULL, pieces->part_count, pieces->parts, NULL,
                             NULL, &code);
    }
    if (!code)
        return COX_OK;

    return fail(build, code, "clLinkProgram", *out, build->kernel->source,
                "the sources do not link: a function is missing, or defined twice");
}

static cox_status build_linked(const struct build *build, cl_program *out)
{
    cl_bool links = CL_FALSE;
    clGetDeviceInfo(build->device->id, CL_DEVICE_LINKER_AVAILABLE, sizeof links, &links, NULL);
    if (!links) {
        cox__log(build->backend->log, COX_LOG_WARN,
                 "%s: its driver cannot link, so it takes no headers and libraries",
                 build->device->info.name);
        return COX_E_UNSUPPORTED;
    }

    struct pieces pieces = {0};
    cox_status status = create_headers(build, &pieces);
    if (!status)
        status = compile_parts(build, &pieces);
    if (!status)
        status = link_parts(build, &pieces, out);

    release_pieces(&pieces);
    return status;
}

/* ---- SPIR-V ---- */

bool cox__cl_build_takes_spirv(const struct cox__cl_device *device)
{
    char version[256] = "";
    clGetDeviceInfo(device->id, CL_DEVICE_IL_VERSION_KHR, sizeof version - 1, version, NULL);
    return strstr(version, "SPIR-V") != NULL;
}

/* The extension has the function as ...KHR, OpenCL 2.1 without. */
static clCreateProgramWithILKHR_fn find_il_function(cl_platform_id platform)
{
    static const char *const names[] = {"clCreateProgramWithILKHR", "clCreateProgramWithIL"};
    clCreateProgramWithILKHR_fn found = NULL;

    for (size_t i = 0; !found && i < sizeof names / sizeof *names; i++)
        *(void **)&found = clGetExtensionFunctionAddressForPlatform(platform, names[i]);
    return found;
}

static cox_status build_spirv(const struct build *build, cl_program *out)
{
    const struct cox__variant *kernel = build->kernel;
    const clCreateProgramWithILKHR_fn create_with_il = find_il_function(build->device->platform);
    cl_int code = CL_INVALID_OPERATION;
    if (create_with_il)
        *out = create_with_il(build->context, kernel->code, kernel->code_bytes, &code);
    if (code) {
        *out = NULL;
        return fail(build, code, "clCreateProgramWithIL", NULL, "", NULL);
    }

    code = cox__cl_build(*out, build->device, kernel->options);
    if (code)
        return fail(build, code, "clBuildProgram", *out, "", "the SPIR-V does not build");
    return COX_OK;
}

/* ---- all ---- */

cox_status cox__cl_build_kernel(struct cox__cl_backend *backend,
                                const struct cox__cl_device *device, cl_context context,
                                const struct cox__variant *kernel, cl_program *out)
{
    const struct build build = {backend, device, context, kernel};
    cox_status status;

    *out = NULL;
    if (kernel->code)
        status = build_spirv(&build, out);
    else if (kernel->headers || kernel->libraries)
        status = build_linked(&build, out);
    else
        status = build_alone(&build, out);

    if (status && *out) {
        clReleaseProgram(*out);
        *out = NULL;
    }
    return status;
}
