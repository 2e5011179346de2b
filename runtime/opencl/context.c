/* Contexts, the service queues, and the self-test that decides whether devices share buffers.
 *
 * Runs once, on the application thread that creates the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hang.h"
#include "host/pages.h"
#include <coxswain/opencl.h>

#include <stdlib.h>
#include <string.h>

/* Make a context of the members and a service queue for each. `given`: a context of the application
 * that has all members, or NULL. */
static cox_status make_group(struct cox__cl_backend *backend, cl_context given,
                             const uint32_t *members, uint32_t count)
{
    struct cox__cl_group *group = &backend->groups[backend->group_count];
    cl_device_id ids[COX_DEVICES_MAX];
    const char *call = "clCreateContext";
    const char *name = backend->devices[members[0]].info.name;
    cl_int code;

    for (uint32_t i = 0; i < count; i++)
        ids[i] = backend->devices[members[i]].id;

    if (given) {
        call = "clRetainContext";
        code = clRetainContext(given);
        group->context = given;
    } else {
        const cl_context_properties properties[] = {
            CL_CONTEXT_PLATFORM, (cl_context_properties)backend->devices[members[0]].platform, 0};
        group->context = clCreateContext(properties, count, ids, NULL, NULL, &code);
    }

    cox_status status = cox__cl_error_check(backend->log, code, call, name);
    if (status)
        return status;

    group->subbuffers = false;
    for (uint32_t i = 0; i < count && status == COX_OK; i++) {
        struct cox__cl_device *device = &backend->devices[members[i]];
        device->group = device->info.context_group = backend->group_count;
        device->service = clCreateCommandQueue(group->context, device->id, 0, &code);
        status = cox__cl_error_check(backend->log, code, "clCreateCommandQueue", device->info.name);
    }

    backend->group_count++;
    return status;
}

static void drop_group(struct cox__cl_backend *backend, uint32_t index)
{
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].group == index && backend->devices[d].service) {
            clReleaseCommandQueue(backend->devices[d].service);
            backend->devices[d].service = NULL;
        }

    if (backend->groups[index].context)
        clReleaseContext(backend->groups[index].context);
    backend->groups[index].context = NULL;
}

void cox__cl_contexts_drop(struct cox__cl_backend *backend)
{
    for (uint32_t g = 0; g < backend->group_count; g++) {
        if (!cox__cl_hang_in_group(backend, g))
            drop_group(backend, g);
        else
            cox__log(backend->log, COX_LOG_WARN, "a context is leaked: one of its devices hangs");
    }

    backend->group_count = 0;
}

/* ---- the self-test ---- */

static const char test_source[] =
    "__kernel void cox_test(__global uint *to, uint seed)\n"
    "{ uint i = (uint)get_global_id(0); to[i] = seed ^ (i * 2654435761u); }\n";

enum { TEST_WORDS = 4096, TEST_LOCAL = 64, TEST_ROUNDS = 4 };

struct test_band {
    uint32_t device;
    struct cox__cl_program *program;
    cl_kernel kernel;
    cl_mem sub;
};

static bool test_band_make(struct cox__cl_backend *backend, struct test_band *band, uint32_t device,
                           cl_mem parent, uint32_t index)
{
    cl_int code;
    const size_t bytes = TEST_WORDS * 4;
    const cl_buffer_region region = {.origin = index * bytes, .size = bytes};
    cl_context context = backend->groups[backend->devices[device].group].context;

    band->device = device;
    const struct cox__variant kernel = {.source = test_source, .options = ""};
    if (cox__cl_program_get(backend, device, context, &kernel, &band->program))
        return false;

    band->kernel = clCreateKernel(band->program->id, "cox_test", &code);
    if (code)
        return false;

    band->sub = clCreateSubBuffer(parent, CL_MEM_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region,
                                  &code);
    return code == CL_SUCCESS && !clSetKernelArg(band->kernel, 0, sizeof band->sub, &band->sub);
}

/* All devices write their own bands of one buffer at the same time. Afterwards the buffer must hold
 * all bands. */
static bool test_round(struct cox__cl_backend *backend, struct test_band *bands, uint32_t count,
                       uint32_t round, const cl_uint *host)
{
    const size_t global = TEST_WORDS, local = TEST_LOCAL;
    void *mapped[COX_DEVICES_MAX] = {0};
    bool good = true;

    for (uint32_t i = 0; i < count; i++) {
        cl_uint seed = round * 977 + i;
        cl_command_queue queue = backend->devices[bands[i].device].service;
        cl_int code;

        good &= !clSetKernelArg(bands[i].kernel, 1, sizeof seed, &seed) &&
                !clEnqueueNDRangeKernel(queue, bands[i].kernel, 1, NULL, &global, &local, 0, NULL,
                                        NULL);

        mapped[i] = clEnqueueMapBuffer(queue, bands[i].sub, CL_FALSE, CL_MAP_READ, 0,
                                       TEST_WORDS * 4, 0, NULL, NULL, &code);
        good &= code == CL_SUCCESS && !clFlush(queue);
    }

    for (uint32_t i = 0; i < count; i++)
        good &= !clFinish(backend->devices[bands[i].device].service);
    for (uint32_t i = 0; i < count; i++)
        for (cl_uint w = 0; good && w < TEST_WORDS; w++)
            good = host[(size_t)i * TEST_WORDS + w] == ((round * 977 + i) ^ (w * 2654435761u));

    /* The result is known, so what fails from here on does not matter. */
    for (uint32_t i = 0; i < count; i++) {
        cl_command_queue queue = backend->devices[bands[i].device].service;
        if (mapped[i])
            clEnqueueUnmapMemObject(queue, bands[i].sub, mapped[i], 0, NULL, NULL);
        clFlush(queue); /* all before the first wait */
    }

    for (uint32_t i = 0; i < count; i++)
        clFinish(backend->devices[bands[i].device].service);

    return good;
}

static bool self_test(struct cox__cl_backend *backend, uint32_t group, const uint32_t *members,
                      uint32_t count)
{
    struct test_band bands[COX_DEVICES_MAX] = {{0}};
    void *host = NULL;
    cl_int code;
    const size_t bytes = (size_t)count * TEST_WORDS * 4;

    if (posix_memalign(&host, COX__PAGE_BYTES, bytes))
        return false;

    memset(host, 0, bytes);
    cl_mem parent = clCreateBuffer(backend->groups[group].context,
                                   CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, host, &code);
    bool good = code == CL_SUCCESS;

    for (uint32_t i = 0; good && i < count; i++)
        good = test_band_make(backend, &bands[i], members[i], parent, i);

    for (uint32_t round = 1; good && round <= TEST_ROUNDS; round++)
        good = test_round(backend, bands, count, round, host);

    for (uint32_t i = 0; i < count; i++) {
        if (bands[i].sub)
            clReleaseMemObject(bands[i].sub);
        if (bands[i].kernel)
            clReleaseKernel(bands[i].kernel);
        cox__cl_program_put(backend, bands[i].program, true);
    }
    cox__cl_programs_drop(backend); /* no session will request this one */

    if (parent)
        clReleaseMemObject(parent);
    free(host);

    return good;
}

/* ---- grouping ---- */

/* Devices of one platform share a context: `given`, which has them all, or a new one. Those that
 * work on host memory share buffers too if the self-test passes. If it fails, each gets a separate
 * context.
 *
 * NVIDIA's devices never share buffers. A split that moves makes sub-buffers inside others, and
 * with driver 580 the process ends if the outer one is released before the inner one. */
static cox_status group_members(struct cox__cl_backend *backend, cl_context given,
                                const uint32_t *members, uint32_t count)
{
    uint32_t sharing[COX_DEVICES_MAX], shares = 0;
    bool asked = false;

    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info *info = &backend->devices[members[i]].info;
        if (!info->mode && !info->unified)
            info->mode = COX_MODE_STAGED;
        if (!info->mode || info->mode == COX_MODE_SHARED)
            sharing[shares++] = members[i];
        asked |= info->mode == COX_MODE_SHARED;
    }

    uint32_t group = backend->group_count;
    cox_status status = make_group(backend, given, members, count);
    if (status)
        return status;

    const char *platform = backend->devices[members[0]].info.platform;
    const bool nvidia = strstr(platform, "NVIDIA") != NULL;
    const bool wanted = shares > 1 || asked;
    const bool share = wanted && !nvidia && self_test(backend, group, sharing, shares);
    if (wanted && !share)
        cox__log(backend->log, COX_LOG_WARN,
                 "%s: concurrent sub-buffers of one buffer %s; using separate contexts", platform,
                 nvidia ? "make the driver crash" : "fail the self-test");

    backend->groups[group].subbuffers = share;
    for (uint32_t i = 0; i < shares; i++)
        backend->devices[sharing[i]].info.mode = share ? COX_MODE_SHARED : COX_MODE_MAPPED;

    if (share || shares < 2)
        return COX_OK;

    drop_group(backend, group);
    backend->group_count = group;
    for (uint32_t i = 0; i < count && status == COX_OK; i++)
        status = make_group(backend, NULL, &members[i], 1);

    return status;
}

/* Find out how a device reaches the host's memory, after its mode is set. */
static void settle_memory(struct cox__cl_backend *backend, struct cox__cl_device *device)
{
    struct cox_device_info *info = &device->info;
    if (info->mode == COX_MODE_STAGED) {
        info->host_memory = COX_HOST_MEMORY_COPIED;
        return;
    }

    info->host_memory = cox__cl_host_memory(backend->groups[device->group].context,
                                            device->service);
    if (info->host_memory == COX_HOST_MEMORY_COPIED)
        cox__log(backend->log, COX_LOG_INFO, "%s: its driver copies the memory of bands",
                 info->name);
}

/* Most devices of a context that the application gives. */
enum { GIVEN_DEVICES_MAX = 64 };

static bool has_device(const cl_device_id *ids, size_t count, cl_device_id id)
{
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Group the devices that have no context yet and are in this one of the application's. */
static cox_status group_given(struct cox__cl_backend *backend, cl_context context, bool *done)
{
    cl_device_id ids[GIVEN_DEVICES_MAX];
    size_t bytes = 0;
    uint32_t members[COX_DEVICES_MAX], count = 0;

    const cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof ids, ids, &bytes);
    if (cox__cl_error_check(backend->log, code, "clGetContextInfo", "a context in `contexts`"))
        return COX_E_INVALID;

    for (uint32_t d = 0; d < backend->device_count; d++)
        if (!done[d] && has_device(ids, bytes / sizeof *ids, backend->devices[d].id))
            done[members[count++] = d] = true;

    if (count)
        return group_members(backend, context, members, count);

    cox__log(
        backend->log, COX_LOG_WARN,
        "a context in `contexts` is not used: it adds none of the runtime's devices to those of "
        "the contexts before it");
    return COX_OK;
}

cox_status cox__cl_contexts_make(struct cox__cl_backend *backend, const cl_context *given)
{
    bool done[COX_DEVICES_MAX] = {false};
    cox_status status = COX_OK;

    for (uint32_t i = 0; given && given[i] && status == COX_OK; i++)
        status = group_given(backend, given[i], done);

    for (uint32_t d = 0; d < backend->device_count && status == COX_OK; d++) {
        uint32_t members[COX_DEVICES_MAX], count = 0;
        for (uint32_t e = d; e < backend->device_count; e++)
            if (!done[e] && backend->devices[e].platform == backend->devices[d].platform) {
                members[count++] = e;
                done[e] = true;
            }

        if (count)
            status = group_members(backend, NULL, members, count);
    }
    if (status)
        return status;

    for (uint32_t d = 0; d < backend->device_count; d++)
        settle_memory(backend, &backend->devices[d]);

    return COX_OK;
}
