/* The list of the kernel arguments that point to global memory that is not const. It is kept with
 * the program's binary.
 *
 * By the standard a driver reports this only for a program made from source and built with
 * -cl-kernel-arg-info. So it is asked once, after such a build. The list has a string
 * "KERNEL INDEX NAME" for each argument, each with its terminator, and an empty string at the end.
 * An argument that the driver does not report is not in the list.
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 512 }; /* a kernel with a longer name is left out of the list */

static bool may_write(cl_kernel kernel, cl_uint arg)
{
    cl_kernel_arg_address_qualifier space = CL_KERNEL_ARG_ADDRESS_PRIVATE;
    cl_kernel_arg_type_qualifier type = CL_KERNEL_ARG_TYPE_CONST;

    if (clGetKernelArgInfo(kernel, arg, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space,
                           NULL) != CL_SUCCESS ||
        clGetKernelArgInfo(kernel, arg, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof type, &type, NULL) !=
            CL_SUCCESS)
        return false;
    return space == CL_KERNEL_ARG_ADDRESS_GLOBAL && !(type & CL_KERNEL_ARG_TYPE_CONST);
}

static void list_kernel(FILE *list, cl_kernel kernel)
{
    char name[NAME_BYTES], arg_name[NAME_BYTES];
    cl_uint args = 0;

    if (clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) ||
        clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof args, &args, NULL))
        return;

    for (cl_uint a = 0; a < args; a++) {
        if (!may_write(kernel, a))
            continue;

        if (clGetKernelArgInfo(kernel, a, CL_KERNEL_ARG_NAME, sizeof arg_name, arg_name, NULL))
            arg_name[0] = '\0';

        fprintf(list, "%s %u %s%c", name, a, arg_name, '\0');
    }
}

char *cox__cl_writable_list(cl_program program, size_t *bytes)
{
    char *text = NULL;
    cl_uint count = 0;

    FILE *list = open_memstream(&text, bytes);
    if (!list)
        return NULL;

    if (clCreateKernelsInProgram(program, 0, NULL, &count))
        count = 0;

    cl_kernel *kernels = NULL;
    if (count)
        kernels = calloc(count, sizeof *kernels);
    if (kernels && clCreateKernelsInProgram(program, count, kernels, NULL) == CL_SUCCESS)
        for (cl_uint k = 0; k < count; k++) {
            list_kernel(list, kernels[k]);
            clReleaseKernel(kernels[k]);
        }

    fputc('\0', list);
    const bool whole = !ferror(list) && (kernels || !count);
    free(kernels);

    if (fclose(list) == 0 && whole)
        return text;

    free(text);
    return NULL;
}

size_t cox__cl_writable_bytes(const char *data, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && data[at])
        at += strnlen(data + at, bytes - at) + 1;

    if (at >= bytes)
        return 0;
    return at + 1;
}

const char *cox__cl_writable_find(const char *list, const char *kernel, uint32_t arg)
{
    const size_t length = strlen(kernel);
    for (; *list; list += strlen(list) + 1) {
        char *end;
        if (strncmp(list, kernel, length) == 0 && list[length] == ' ' &&
            strtoul(list + length, &end, 10) == arg && *end == ' ')
            return end + 1;
    }
    return NULL;
}
