/* The only place that maps OpenCL's error codes to a cox_status.
 * SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

static const struct {
    cl_int code;
    cox_status status;
    const char *name;
} errors[] = {
#define E(code, status)     \
    {                       \
        code, status, #code \
    }
    E(CL_DEVICE_NOT_FOUND, COX_E_NO_DEVICE),
    E(CL_DEVICE_NOT_AVAILABLE, COX_E_NO_DEVICE),
    E(CL_COMPILER_NOT_AVAILABLE, COX_E_BUILD),
    E(CL_MEM_OBJECT_ALLOCATION_FAILURE, COX_E_DEVICE_MEMORY),
    E(CL_OUT_OF_RESOURCES, COX_E_DEVICE_MEMORY),
    E(CL_OUT_OF_HOST_MEMORY, COX_E_NOMEM),
    E(CL_PROFILING_INFO_NOT_AVAILABLE, COX_E_UNSUPPORTED),
    E(CL_BUILD_PROGRAM_FAILURE, COX_E_BUILD),
    E(CL_MAP_FAILURE, COX_E_DEVICE_MEMORY),
    E(CL_MISALIGNED_SUB_BUFFER_OFFSET, COX_E_INVALID),
    E(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, COX_E_DEVICE_LOST),
    E(CL_COMPILE_PROGRAM_FAILURE, COX_E_BUILD),
    E(CL_LINKER_NOT_AVAILABLE, COX_E_BUILD),
    E(CL_LINK_PROGRAM_FAILURE, COX_E_BUILD),
    E(CL_DEVICE_PARTITION_FAILED, COX_E_UNSUPPORTED),
    E(CL_INVALID_VALUE, COX_E_INVALID),
    E(CL_INVALID_DEVICE, COX_E_NO_DEVICE),
    E(CL_INVALID_CONTEXT, COX_E_DEVICE_LOST),
    E(CL_INVALID_QUEUE_PROPERTIES, COX_E_UNSUPPORTED),
    E(CL_INVALID_COMMAND_QUEUE, COX_E_DEVICE_LOST),
    E(CL_INVALID_HOST_PTR, COX_E_INVALID),
    E(CL_INVALID_MEM_OBJECT, COX_E_DEVICE_LOST),
    E(CL_INVALID_BINARY, COX_E_BUILD),
    E(CL_INVALID_BUILD_OPTIONS, COX_E_BUILD),
    E(CL_INVALID_PROGRAM, COX_E_BUILD),
    E(CL_INVALID_PROGRAM_EXECUTABLE, COX_E_BUILD),
    E(CL_INVALID_KERNEL_NAME, COX_E_NOT_FOUND),
    E(CL_INVALID_KERNEL_DEFINITION, COX_E_BUILD),
    E(CL_INVALID_KERNEL, COX_E_INVALID),
    E(CL_INVALID_ARG_INDEX, COX_E_INVALID),
    E(CL_INVALID_ARG_VALUE, COX_E_INVALID),
    E(CL_INVALID_ARG_SIZE, COX_E_INVALID),
    E(CL_INVALID_KERNEL_ARGS, COX_E_INVALID),
    E(CL_INVALID_WORK_DIMENSION, COX_E_INVALID),
    E(CL_INVALID_WORK_GROUP_SIZE, COX_E_INVALID),
    E(CL_INVALID_WORK_ITEM_SIZE, COX_E_INVALID),
    E(CL_INVALID_EVENT, COX_E_DEVICE_LOST),
    E(CL_INVALID_OPERATION, COX_E_UNSUPPORTED),
    E(CL_INVALID_BUFFER_SIZE, COX_E_DEVICE_MEMORY),
    E(CL_INVALID_GLOBAL_WORK_SIZE, COX_E_INVALID),
    E(CL_INVALID_PROPERTY, COX_E_UNSUPPORTED),
    E(CL_INVALID_COMPILER_OPTIONS, COX_E_BUILD),
    E(CL_INVALID_LINKER_OPTIONS, COX_E_BUILD),
    E(CL_INVALID_DEVICE_PARTITION_COUNT, COX_E_INVALID),
    E(CL_PLATFORM_NOT_FOUND_KHR, COX_E_NO_PLATFORM),
#undef E
};

enum { ERROR_COUNT = sizeof errors / sizeof *errors };

static size_t find(cl_int code)
{
    size_t i = 0;
    while (i < ERROR_COUNT && errors[i].code != code)
        i++;
    return i;
}

const char *cox__cl_error_name(cl_int code)
{
    const size_t i = find(code);
    if (i < ERROR_COUNT)
        return errors[i].name;
    return code == CL_SUCCESS ? "CL_SUCCESS" : "unknown OpenCL error";
}

cox_status cox__cl_error_check(const struct cox__log *log, cl_int code, const char *call,
                               const char *device)
{
    if (code == CL_SUCCESS)
        return COX_OK;

    cox__log(log, COX_LOG_WARN, "%s: %s failed: %s (%d)", device, call, cox__cl_error_name(code),
             code);

    const size_t i = find(code);
    if (i < ERROR_COUNT)
        return errors[i].status;
    return COX_E_DEVICE_LOST;
}
