/* Answers to the application's queries about events.
 * SPDX-License-Identifier: Apache-2.0 */
#include "faults/layer.h"

enum { STUCK_NS = 100000000 };

cl_int real_status(cl_event event)
{
    cl_int status = CL_QUEUED;
    cl_int code = next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code == CL_SUCCESS ? status : code;
}

cl_int visible(struct command *command, cl_int real)
{
    struct line *const *by = command->faults.by;
    if (command->doomed) {
        bool stuck = command->queue->context->stuck && real_ns() - command->doomed_ns > STUCK_NS;
        if (real <= CL_COMPLETE || command->hold == HELD || stuck)
            return command->doom_code;
    }
    if (command->hold != FREE && real > CL_RUNNING)
        return CL_RUNNING;
    if (real != CL_COMPLETE)
        return real;
    struct line *fails = by[FAULT_KIND_STATUS] ? by[FAULT_KIND_STATUS] : by[FAULT_KIND_STATUS_AFTER];
    if (by[FAULT_KIND_NEVER_SEEN])
        return CL_RUNNING;
    if (!fails)
        return real;
    if (!command->status_told)
        struck(fails);
    command->status_told = true;
    return fails->plan.code;
}

cl_int visible_status(cl_event event)
{
    cl_int status = real_status(event);
    pthread_mutex_lock(&lock);
    struct object *object = find_object(event, TYPE_EVENT);
    if (object)
        status = visible(object->command, status);
    pthread_mutex_unlock(&lock);
    return status;
}

static cl_command_type type_of(int call)
{
    switch (call) {
#define TYPE(name, type)    \
    case FAULT_CALL_##name: \
        return CL_COMMAND_##type;
        TYPE(clEnqueueNDRangeKernel, NDRANGE_KERNEL)
        TYPE(clEnqueueReadBuffer, READ_BUFFER)
        TYPE(clEnqueueReadBufferRect, READ_BUFFER_RECT)
        TYPE(clEnqueueReadImage, READ_IMAGE)
        TYPE(clEnqueueWriteBuffer, WRITE_BUFFER)
        TYPE(clEnqueueWriteBufferRect, WRITE_BUFFER_RECT)
        TYPE(clEnqueueWriteImage, WRITE_IMAGE)
        TYPE(clEnqueueCopyBuffer, COPY_BUFFER)
        TYPE(clEnqueueCopyBufferRect, COPY_BUFFER_RECT)
        TYPE(clEnqueueCopyImage, COPY_IMAGE)
        TYPE(clEnqueueCopyImageToBuffer, COPY_IMAGE_TO_BUFFER)
        TYPE(clEnqueueCopyBufferToImage, COPY_BUFFER_TO_IMAGE)
        TYPE(clEnqueueFillBuffer, FILL_BUFFER)
        TYPE(clEnqueueFillImage, FILL_IMAGE)
        TYPE(clEnqueueMapBuffer, MAP_BUFFER)
        TYPE(clEnqueueMapImage, MAP_IMAGE)
        TYPE(clEnqueueUnmapMemObject, UNMAP_MEM_OBJECT)
        TYPE(clEnqueueMigrateMemObjects, MIGRATE_MEM_OBJECTS)
        TYPE(clEnqueueBarrierWithWaitList, BARRIER)
#undef TYPE
    default:
        return CL_COMMAND_MARKER;
    }
}

cl_int CL_API_CALL fault_clGetEventInfo(cl_event event, cl_event_info info, size_t bytes, void *value, size_t *got)
{
    cl_int code = arrive_at(FAULT_CALL_clGetEventInfo, event);
    if (code)
        return code;
    struct command *command = command_of(event);
    if (!command)
        return next.clGetEventInfo(event, info, bytes, value, got);
    if (info == CL_EVENT_COMMAND_TYPE) {
        cl_command_type type = type_of(command->call);
        code = layer_answer(&type, sizeof type, bytes, value, got);
    } else if (info != CL_EVENT_COMMAND_EXECUTION_STATUS) {
        code = next.clGetEventInfo(event, info, bytes, value, got);
    } else if (command->faults.by[FAULT_KIND_STATUS_QUERY]) {
        struct line *line = command->faults.by[FAULT_KIND_STATUS_QUERY];
        if (!command->query_told)
            struck(line);
        command->query_told = true;
        code = line->plan.code;
    } else {
        cl_int status = visible_status(event);
        code = layer_answer(&status, sizeof status, bytes, value, got);
    }
    put_command(command);
    return code;
}

static cl_int real_profile(const struct command *command, cl_event event, cl_profiling_info info, cl_ulong *value)
{
    /* The end time is that of the marker behind the command, at which the application sees the end. All other times
     * are the command's own. */
    cl_event of = command->head && info != CL_PROFILING_COMMAND_END ? command->head : event;
    cl_int code = next.clGetEventProfilingInfo(of, info, sizeof *value, value, NULL);
    *value += info == CL_PROFILING_COMMAND_END ? command->stretch_ns : 0;
    return code;
}

cl_int CL_API_CALL fault_clGetEventProfilingInfo(cl_event event, cl_profiling_info info, size_t bytes, void *value,
                                                 size_t *got)
{
    cl_int code = arrive_at(FAULT_CALL_clGetEventProfilingInfo, event);
    if (code)
        return code;
    struct command *command = command_of(event);
    if (!command)
        return next.clGetEventProfilingInfo(event, info, bytes, value, got);
    struct line *line = command->faults.by[FAULT_KIND_PROFILE];
    cl_ulong time = 0, start = 0, end = 0;
    code = real_profile(command, event, info, &time);
    if (code == CL_SUCCESS && line) {
        real_profile(command, event, CL_PROFILING_COMMAND_START, &start);
        real_profile(command, event, CL_PROFILING_COMMAND_END, &end);
        if (line->plan.profile == FAULT_PROFILE_ERROR)
            code = CL_PROFILING_INFO_NOT_AVAILABLE;
        else if (line->plan.profile == FAULT_PROFILE_ZERO)
            time = 0;
        else if (line->plan.profile == FAULT_PROFILE_BACKWARDS && info == CL_PROFILING_COMMAND_START)
            time = end + 1;
        else if (line->plan.profile == FAULT_PROFILE_BACKWARDS && info == CL_PROFILING_COMMAND_END)
            time = start;
        else if (line->plan.profile == FAULT_PROFILE_HUGE && info == CL_PROFILING_COMMAND_END)
            time = start + (UINT64_C(1) << 62);
        if (!command->profile_told)
            struck(line);
        command->profile_told = true;
    }
    put_command(command);
    return code ? code : layer_answer(&time, sizeof time, bytes, value, got);
}
