/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdio.h>
#include <string.h>

static const char *code_name(cl_int code)
{
    static const struct {
        cl_int code;
        const char *name;
    } names[] = {
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "no memory for an object"},
        {CL_OUT_OF_RESOURCES, "out of resources"},
        {CL_OUT_OF_HOST_MEMORY, "out of host memory"},
        {CL_IMAGE_FORMAT_NOT_SUPPORTED, "image format not supported"},
        {CL_BUILD_PROGRAM_FAILURE, "does not compile"},
        {CL_INVALID_WORK_GROUP_SIZE, "invalid work-group size"},
        {CL_INVALID_WORK_ITEM_SIZE, "invalid work-item size"},
        {CL_INVALID_OPERATION, "not supported"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code)
            return names[i].name;

    return "unknown error";
}

bool guides_good(cl_int code, const char *call, char *why, size_t why_bytes)
{
    if (code)
        snprintf(why, why_bytes, "%s: %s (%d)", call, code_name(code), code);
    return code == CL_SUCCESS;
}

/* The log's first line with an error, else its first line. */
static void first_error(const char *log, char *why, size_t why_bytes)
{
    const char *line = strstr(log, "error:");
    if (!line)
        line = log + strspn(log, " \t\r\n");
    snprintf(why, why_bytes, "does not compile: %.*s", (int)strcspn(line, "\r\n"), line);
}

cl_program guides_build(cl_context context, cl_device_id id, const char *source,
                        const char *options, char *why, size_t why_bytes)
{
    cl_int code;
    cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &code);

    if (!guides_good(code, "clCreateProgramWithSource", why, why_bytes))
        return NULL;
    code = clBuildProgram(program, 1, &id, options, NULL, NULL);
    if (!code)
        return program;

    char log[4096] = "";
    guides_good(code, "clBuildProgram", why, why_bytes);
    if (!clGetProgramBuildInfo(program, id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL) &&
        *log)
        first_error(log, why, why_bytes);
    clReleaseProgram(program);

    return NULL;
}
