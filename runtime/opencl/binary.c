/* SPDX-License-Identifier: Apache-2.0 */
#include "binary.h"
#include "base/sources.h"
#include "store/cache.h"
#include "store/code.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

/* What names a device and its compiler, with `magic` of what the key is for. */
static void begin_key(struct cox__digest *sha, const struct cox__cl_device *device,
                      const struct cox__cache_kind *kind)
{
    /* A sub-device compiles to the same code as its parent, but a driver's binary may differ. */
    const char *const texts[] = {COX_VERSION_STRING, device->platform_version, device->info.id,
                                 device->info.driver};

    cox__digest_begin(sha);
    cox__cache_feed(sha, kind->magic, sizeof kind->magic);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cox__cache_feed(sha, texts[i], strlen(texts[i]));
    cox__cache_feed(sha, &device->info.compute_units, sizeof device->info.compute_units);
}

void cox__cl_binary_key(const struct cox__cl_device *device, const struct cox__variant *kernel,
                        unsigned char key[32])
{
    struct cox__digest sha;
    begin_key(&sha, device, &cox__cache_kernels);
    cox__cache_feed(&sha, kernel->options, strlen(kernel->options));
    cox__cache_feed(&sha, kernel->source, strlen(kernel->source));
    if (kernel->headers || kernel->libraries) {
        cox__sources_feed(&sha, kernel->headers);
        for (const struct cox_source *l = kernel->libraries; l && l->name; l++)
            cox__cache_feed(&sha, l->text, strlen(l->text)); /* its name is for messages */
    }
    if (kernel->code)
        cox__cache_feed(&sha, kernel->code, kernel->code_bytes);

    cox__digest_end(&sha, key);
}

/* The key of the device's entry in a file of compiled code. */
static void make_code_key(const struct cox__cl_backend *backend,
                          const struct cox__cl_device *device, unsigned char key[32])
{
    const uint32_t arithmetic = backend->arithmetic;
    struct cox__digest sha;
    begin_key(&sha, device, &cox__cache_code);
    cox__cache_feed(&sha, &arithmetic, sizeof arithmetic);
    cox__digest_end(&sha, key);
}

/* ---- binaries ---- */

/* Make a program of an entry: the list of arguments, and the binary. False: the driver
 * rejects it. */
static bool take_entry(const struct cox__cl_device *device, const char *options, const void *entry,
                       size_t bytes, struct cox__cl_program *out)
{
    const size_t list_bytes = cox__cl_argument_list_bytes(entry, bytes);
    const size_t binary_bytes = bytes - list_bytes;
    const unsigned char *binary = (const unsigned char *)entry + list_bytes;
    cl_int status = CL_SUCCESS, code = CL_INVALID_BINARY;
    cl_program program = NULL;

    if (list_bytes)
        program = clCreateProgramWithBinary(out->context, 1, &device->id, &binary_bytes, &binary,
                                            &status, &code);
    if (code)
        program = NULL;

    /* A binary must be built with the options that it was made with. */
    if (program && status == CL_SUCCESS && cox__cl_build(program, device, options) == CL_SUCCESS) {
        out->id = program;
        out->arguments = malloc(list_bytes);
        out->arguments_bytes = list_bytes;
        if (out->arguments)
            memcpy(out->arguments, entry, list_bytes);
        return true;
    }

    if (program)
        clReleaseProgram(program);
    return false;
}

bool cox__cl_binary_load(struct cox__cl_backend *backend, const char *options,
                         struct cox__cl_program *out)
{
    const struct cox__cl_device *device = &backend->devices[out->device];
    size_t bytes;
    void *entry = cox__cache_load(backend->cache_dir, &cox__cache_kernels, out->key, &bytes,
                                  backend->log);
    if (!entry)
        return false;

    const bool taken = take_entry(device, options, entry, bytes, out);
    if (!taken)
        cox__log(backend->log, COX_LOG_INFO, "%s rejects a cached binary; building from source",
                 device->info.name);

    free(entry);
    return taken;
}

/* PoCL reports the parent of a sub-device as the device of its program. */
static bool is_or_holds(cl_device_id id, const struct cox__cl_device *device)
{
    cl_device_id parent = NULL;
    clGetDeviceInfo(device->id, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
    return id == device->id || (parent && id == parent);
}

/* Get a program's entry. Returns a block that the caller frees, or NULL: there is no binary, or no
 * memory. Some drivers compile for it. */
static void *make_entry(const struct cox__cl_device *device, const struct cox__cl_program *program,
                        size_t *bytes)
{
    cl_device_id ids[COX_DEVICES_MAX];
    size_t sizes[COX_DEVICES_MAX] = {0}, got = 0;
    const size_t list_bytes = program->arguments_bytes;
    unsigned char *binaries[COX_DEVICES_MAX] = {0};

    if (!program->arguments ||
        clGetProgramInfo(program->id, CL_PROGRAM_DEVICES, sizeof ids, ids, &got) ||
        clGetProgramInfo(program->id, CL_PROGRAM_BINARY_SIZES, sizeof sizes, sizes, NULL))
        return NULL;

    const size_t count = got / sizeof *ids;
    size_t own = 0;
    while (own < count && (!is_or_holds(ids[own], device) || !sizes[own]))
        own++;
    if (own == count)
        return NULL;

    unsigned char *entry = malloc(list_bytes + sizes[own]);
    if (!entry)
        return NULL;

    memcpy(entry, program->arguments, list_bytes);
    binaries[own] = entry + list_bytes; /* NULL for the other devices: the driver skips them */
    *bytes = list_bytes + sizes[own];

    if (clGetProgramInfo(program->id, CL_PROGRAM_BINARIES, count * sizeof *binaries, binaries,
                         NULL) == CL_SUCCESS)
        return entry;

    free(entry);
    return NULL;
}

void cox__cl_binary_store(struct cox__cl_backend *backend, const struct cox__cl_program *program)
{
    size_t bytes;
    void *entry = make_entry(&backend->devices[program->device], program, &bytes);
    if (entry)
        cox__cache_store(backend->cache_dir, &cox__cache_kernels, program->key, entry, bytes,
                         backend->log);

    free(entry);
}

/* ---- files of compiled code ---- */

const char *cox__cl_binary_refusal(struct cox__backend *base, uint32_t device, const void *code,
                                   size_t bytes)
{
    const struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    const struct cox__cl_device *of = &backend->devices[device];
    if (cox__code_kind_of(code, bytes) == COX__CODE_SPIRV)
        return cox__cl_build_takes_spirv(of) ? NULL : "it takes no SPIR-V";

    unsigned char key[32];
    size_t entry_bytes;
    bool damaged;
    make_code_key(backend, of, key);
    if (cox__code_find(code, bytes, key, &entry_bytes, &damaged))
        return NULL;
    if (damaged)
        return "the compiled code is damaged";
    return "the code was compiled for other devices, drivers or another version of the library";
}

bool cox__cl_binary_take_code(struct cox__cl_backend *backend, const struct cox__variant *kernel,
                              struct cox__cl_program *out)
{
    const struct cox__cl_device *device = &backend->devices[out->device];
    unsigned char key[32];
    size_t bytes = 0;
    bool damaged;
    make_code_key(backend, device, key);
    const char *entry = cox__code_find(kernel->code, kernel->code_bytes, key, &bytes, &damaged);
    const size_t options_bytes = bytes > sizeof key
                                     ? strnlen(entry + sizeof key, bytes - sizeof key) + 1
                                     : 0;
    if (!options_bytes || options_bytes > bytes - sizeof key) {
        cox__log(backend->log, COX_LOG_WARN, "%s: the compiled code is damaged", device->info.name);
        return false;
    }

    struct cox__variant from = *kernel;
    from.code = NULL;
    cox__cl_binary_key(device, &from, key);
    if (!kernel->declared && memcmp(key, entry, sizeof key) != 0) {
        cox__log(backend->log, COX_LOG_WARN,
                 "%s: the code was compiled from another source, or with other options, headers or "
                 "libraries",
                 device->info.name);
        return false;
    }

    const size_t head_bytes = sizeof key + options_bytes;
    const bool taken = take_entry(device, entry + sizeof key, entry + head_bytes,
                                  bytes - head_bytes, out);
    if (!taken)
        cox__log(backend->log, COX_LOG_WARN, "%s rejects compiled code", device->info.name);
    return taken;
}

cox_status cox__cl_binary_append(const struct cox__cl_backend *backend,
                                 const struct cox__cl_program *program, const char *options,
                                 FILE *file)
{
    const struct cox__cl_device *device = &backend->devices[program->device];
    unsigned char key[32];
    size_t bytes = 0;
    void *entry = make_entry(device, program, &bytes);
    if (!entry) {
        cox__log(backend->log, COX_LOG_WARN, "%s: its driver gives no binary", device->info.name);
        return COX_E_UNSUPPORTED;
    }

    const size_t options_bytes = strlen(options) + 1;
    char *content = malloc(sizeof key + options_bytes + bytes);
    cox_status status = COX_E_NOMEM;
    if (content) {
        memcpy(content, program->key, sizeof key);
        memcpy(content + sizeof key, options, options_bytes);
        memcpy(content + sizeof key + options_bytes, entry, bytes);

        make_code_key(backend, device, key);
        status = COX_OK;
        if (!cox__code_append(file, key, content, sizeof key + options_bytes + bytes))
            status = COX_E_SYSTEM;
    }

    free(content);
    free(entry);
    return status;
}
