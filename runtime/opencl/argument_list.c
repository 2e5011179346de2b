/* The list of what the driver reports about the kernel arguments of a program. It is kept with the
 * program's binary.
 *
 * By the standard a driver reports this only for a program made from source and built with
 * -cl-kernel-arg-info. So it is asked once, after such a build. The list has a string
 * "KERNEL INDEX KIND ACCESS CONST TYPE<tab>NAME" for each argument, each with its terminator, and
 * an empty string at the end. KIND, ACCESS and CONST are single characters without spaces between
 * them. An argument that the driver does not report is not in the list.
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "argument_list.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 512 }; /* a kernel with a longer name is left out of the list */

/* CL_KERNEL_ARG_TYPE_PIPE of OpenCL 2.0 */
#define PIPE ((cl_kernel_arg_type_qualifier)8)

/* The types that are neither memory nor a value. */
static bool is_opaque(const char *type)
{
    static const char *const names[] = {"sampler_t", "event_t", "queue_t", "clk_event_t",
                                        "reserve_id_t"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(type, names[i]) == 0)
            return true;

    return false;
}

/* The kind of an argument that the driver reports. Drivers say that an image is in global memory.
 * A driver may leave out the type. */
static char kind_of(cl_kernel_arg_address_qualifier space, cl_kernel_arg_type_qualifier qualifiers,
                    const char *type)
{
    if (qualifiers & PIPE)
        return COX__CL_ARGUMENT_OPAQUE;
    if (strncmp(type, "image", 5) == 0 && !strchr(type, '*'))
        return COX__CL_ARGUMENT_IMAGE;
    if (is_opaque(type))
        return COX__CL_ARGUMENT_OPAQUE;

    switch (space) {
    case CL_KERNEL_ARG_ADDRESS_GLOBAL:
        return COX__CL_ARGUMENT_GLOBAL;
    case CL_KERNEL_ARG_ADDRESS_CONSTANT:
        return COX__CL_ARGUMENT_CONSTANT;
    case CL_KERNEL_ARG_ADDRESS_LOCAL:
        return COX__CL_ARGUMENT_LOCAL;
    default:
        return COX__CL_ARGUMENT_VALUE;
    }
}

static char access_of(cl_kernel_arg_access_qualifier access)
{
    switch (access) {
    case CL_KERNEL_ARG_ACCESS_READ_ONLY:
        return 'r';
    case CL_KERNEL_ARG_ACCESS_WRITE_ONLY:
        return 'w';
    case CL_KERNEL_ARG_ACCESS_READ_WRITE:
        return 'b';
    default:
        return '-';
    }
}

/* Write a type as OpenCL C's short names have it: "unsigned int *" becomes "uint*". */
static void shorten(char *type)
{
    if (strncmp(type, "unsigned ", 9) == 0) {
        type[0] = 'u';
        memmove(type + 1, type + 9, strlen(type + 9) + 1);
    }

    size_t length = strlen(type);
    if (length && type[length - 1] == '*') {
        length--;
        while (length && isspace((unsigned char)type[length - 1]))
            length--;
        strcpy(type + length, "*");
    }
}

static void list_argument(FILE *list, cl_kernel kernel, const char *kernel_name, cl_uint index)
{
    char type[NAME_BYTES] = "", name[NAME_BYTES] = "";
    cl_kernel_arg_address_qualifier space;
    cl_kernel_arg_access_qualifier access = CL_KERNEL_ARG_ACCESS_NONE;
    cl_kernel_arg_type_qualifier qualifiers;

    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space,
                           NULL) ||
        clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifiers,
                           &qualifiers, NULL))
        return;

    clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, NULL);
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL))
        type[0] = '\0';
    if (clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, sizeof name, name, NULL))
        name[0] = '\0';

    shorten(type);
    fprintf(list, "%s %u %c%c%c %s\t%s%c", kernel_name, index, kind_of(space, qualifiers, type),
            access_of(access), qualifiers & CL_KERNEL_ARG_TYPE_CONST ? 'c' : '-', type, name, '\0');
}

static void list_kernel(FILE *list, cl_kernel kernel)
{
    char name[NAME_BYTES];
    cl_uint args = 0;

    if (clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL) ||
        clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof args, &args, NULL))
        return;

    for (cl_uint a = 0; a < args; a++)
        list_argument(list, kernel, name, a);
}

char *cox__cl_argument_list(cl_program program, size_t *bytes)
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

size_t cox__cl_argument_list_bytes(const char *data, size_t bytes)
{
    size_t at = 0;
    while (at < bytes && data[at])
        at += strnlen(data + at, bytes - at) + 1;

    if (at >= bytes)
        return 0;
    return at + 1;
}

/* Read what follows an entry's index. False: the entry is damaged. */
static bool read_entry(const char *entry, struct cox__cl_argument *out)
{
    if (strnlen(entry, 5) < 5 || entry[0] != ' ' || entry[4] != ' ')
        return false;

    const char *type = entry + 5, *end = strchr(type, '\t');
    if (!end)
        return false;

    *out = (struct cox__cl_argument){
        .kind = entry[1], .access = entry[2], .is_const = entry[3] == 'c', .name = end + 1};
    if ((size_t)(end - type) < sizeof out->type)
        memcpy(out->type, type, (size_t)(end - type));
    return true;
}

bool cox__cl_argument_list_find(const char *list, const char *kernel, uint32_t index,
                                struct cox__cl_argument *out)
{
    const size_t length = strlen(kernel);
    for (; *list; list += strlen(list) + 1) {
        char *end;
        if (strncmp(list, kernel, length) == 0 && list[length] == ' ' &&
            strtoul(list + length, &end, 10) == index && read_entry(end, out))
            return true;
    }
    return false;
}
