/* Frame sets: the memory of a whole frame on a staged device, for rows that stay there from pass to
 * pass. Made and freed with the instance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"

#include <stdlib.h>
#include <string.h>

uint32_t cox__cl_frame_set_resident(struct cox__backend *base, const struct cox__instance *instance)
{
    (void)base;
    return instance->resident;
}

static cl_int make_set(struct cox__instance *instance, struct cox__cl_set *set)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    cl_int code = CL_SUCCESS;

    for (uint32_t i = 0; i < pipeline->binding_count && code == CL_SUCCESS; i++)
        if ((pipeline->resident & ~pipeline->stays) >> i & 1)
            code = cox__cl_device_memory_make(instance, CL_MEM_READ_WRITE, pipeline->bytes[i],
                                              &set->mems[i]);
    return cox__cl_device_memory_wait(instance, code);
}

/* Allocate memory for buffers that stay from frame to frame. */
static cl_int make_kept(struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    cl_int code = CL_SUCCESS;

    for (uint32_t k = 0; k < pipeline->kept_count && code == CL_SUCCESS; k++)
        code = cox__cl_device_memory_make(instance, CL_MEM_READ_WRITE, pipeline->kept_bytes[k],
                                          &instance->kept[k]);
    return cox__cl_device_memory_wait(instance, code);
}

/* Whether a kernel would take more of a whole frame in constant memory than the device allows. */
static bool exceeds_constant_memory(const struct cox__instance *instance)
{
    const uint32_t constants = instance->constants & instance->pipeline->resident;
    bool exceeds = false;

    for (uint32_t i = 0; i < instance->pipeline->binding_count; i++)
        exceeds |= constants >> i & 1 && instance->constant_bytes &&
                   instance->pipeline->bytes[i] > instance->constant_bytes;
    return exceeds;
}

cox_status cox__cl_frame_sets_allocate(struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = instance->pipeline;
    cl_int code = CL_SUCCESS;

    if (!instance->staged || !pipeline->resident || exceeds_constant_memory(instance))
        return COX_OK;

    instance->sets = calloc(pipeline->sets, sizeof *instance->sets);
    if (!instance->sets)
        return COX_OK;

    instance->set_count = pipeline->sets;
    for (uint32_t s = 0; s < instance->set_count && code == CL_SUCCESS; s++)
        code = make_set(instance, &instance->sets[s]);
    if (code == CL_SUCCESS && pipeline->stays)
        code = make_kept(instance);

    if (code == CL_SUCCESS) {
        instance->resident = pipeline->resident;
        return COX_OK;
    }

    if (code == COX__CL_NOT_IN_TIME)
        return cox__cl_device_memory_hangs(instance);

    cox__log(instance->backend->log, COX_LOG_INFO,
             "%s: memory for %u frames does not fit (%s); rows are copied between passes",
             instance->device->info.name, instance->set_count, cox__cl_error_name(code));

    cox__cl_frame_sets_free(instance);
    return COX_OK;
}

void cox__cl_frame_sets_free(struct cox__instance *instance)
{
    for (uint32_t s = 0; s < instance->set_count; s++) {
        struct cox__cl_set *set = &instance->sets[s];
        for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
            if (set->mems[i])
                clReleaseMemObject(set->mems[i]);
    }

    for (uint32_t k = 0; k < COX_BUFFERS_MAX; k++)
        if (instance->kept[k])
            clReleaseMemObject(instance->kept[k]);

    memset(instance->kept, 0, sizeof instance->kept);
    free(instance->sets);
    instance->sets = NULL;
    instance->set_count = 0;
}
