/* Programs: built for one device, or loaded from the cache of binaries.
 *
 * Runs on the thread that makes the kernels: an application's or a worker thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/cache.h"
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static void log_build(const struct cox__cl_backend *backend, const struct cox__cl_device *device, cl_program program,
                      enum cox_log_level level)
{
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &bytes);
    char *text = bytes > 1 ? calloc(1, bytes + 1) : NULL;
    if (!text)
        return;
    clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, bytes, text, NULL);
    cox__log_text(backend->log, level, "compiler: ", text);
    free(text);
}

static void make_key(const struct cox__cl_device *device, const char *source, const char *options,
                     unsigned char key[32])
{
    struct cox__sha256 sha;
    /* A sub-device compiles to the same code as its parent, yet may be told apart by a driver's binary. */
    const char *const texts[] = {COX_VERSION_STRING, device->platform_version, device->info.id, device->info.driver};
    cox__sha256_begin(&sha);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cox__cache_feed(&sha, texts[i], strlen(texts[i]));
    cox__cache_feed(&sha, &device->info.compute_units, sizeof device->info.compute_units);
    cox__cache_feed(&sha, options, strlen(options));
    cox__cache_feed(&sha, source, strlen(source));
    cox__sha256_end(&sha, key);
}

static cl_program load(struct cox__cl_backend *backend, const struct cox__cl_device *device, cl_context context,
                       const char *options, const unsigned char key[32])
{
    size_t bytes;
    unsigned char *binary = cox__cache_load(backend->cache_dir, &cox__cache_kernels, key, &bytes, backend->log);
    if (!binary)
        return NULL;
    cl_int status = CL_SUCCESS, code;
    cl_program program = clCreateProgramWithBinary(context, 1, &device->id, &bytes, (const unsigned char **)&binary,
                                                   &status, &code);
    free(binary);
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        clBuildProgram(program, 1, &device->id, options, NULL, NULL) == CL_SUCCESS)
        return program;
    cox__log(backend->log, COX_LOG_INFO, "%s does not take a cached binary; building from source", device->info.name);
    if (code == CL_SUCCESS)
        clReleaseProgram(program);
    return NULL;
}

static void store(struct cox__cl_backend *backend, const struct cox__cl_device *device, cl_program program,
                  const unsigned char key[32])
{
    cl_device_id ids[COX_DEVICES_MAX];
    size_t sizes[COX_DEVICES_MAX] = {0}, got = 0;
    unsigned char *binaries[COX_DEVICES_MAX] = {0};
    if (clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof ids, ids, &got) ||
        clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL))
        return;
    size_t count = got / sizeof *ids;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] != device->id || !sizes[i])
            continue;
        /* NULL for the other devices: theirs are not wanted. */
        binaries[i] = malloc(sizes[i]);
        if (binaries[i] &&
            clGetProgramInfo(program, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries, NULL) == CL_SUCCESS)
            cox__cache_store(backend->cache_dir, &cox__cache_kernels, key, binaries[i], sizes[i], backend->log);
        free(binaries[i]);
        return;
    }
}

cox_status cox__cl_build(struct cox__cl_backend *backend, uint32_t index, cl_context context, const char *source,
                         const char *options, cl_program *out)
{
    const struct cox__cl_device *device = &backend->devices[index];
    unsigned char key[32];
    if (backend->cache_dir) {
        make_key(device, source, options, key);
        *out = load(backend, device, context, options, key);
        if (*out)
            return COX_OK;
    }
    cl_int code;
    *out = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    if (code)
        return cox__cl_check(backend->log, code, "clCreateProgramWithSource", device->info.name);
    code = clBuildProgram(*out, 1, &device->id, options, NULL, NULL);
    if (code) {
        cox__cl_check(backend->log, code, "clBuildProgram", device->info.name);
        log_build(backend, device, *out, COX_LOG_ERROR);
        clReleaseProgram(*out);
        *out = NULL;
        return COX_E_BUILD;
    }
    log_build(backend, device, *out, COX_LOG_DEBUG);
    if (backend->cache_dir)
        store(backend, device, *out, key);
    return COX_OK;
}
