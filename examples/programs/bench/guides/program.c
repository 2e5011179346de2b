/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"
#include "texts.h"

#include <stdio.h>
#include <string.h>

const char *guides_text(const char *name)
{
    for (const struct guides_text *text = guides_texts; text->name; text++)
        if (strcmp(text->name, name) == 0)
            return text->text;
    return "";
}

static const char *code_name(cl_int code)
{
    switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
        return "no memory for an object";
    case CL_OUT_OF_RESOURCES:
        return "out of resources";
    case CL_OUT_OF_HOST_MEMORY:
        return "out of host memory";
    case CL_IMAGE_FORMAT_NOT_SUPPORTED:
        return "image format not supported";
    case CL_BUILD_PROGRAM_FAILURE:
        return "the compiler refuses it";
    case CL_INVALID_WORK_GROUP_SIZE:
        return "work-group size refused";
    case CL_INVALID_WORK_ITEM_SIZE:
        return "work-item size refused";
    case CL_INVALID_OPERATION:
        return "not supported";

    default:
        return "an error";
    }
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
    snprintf(why, why_bytes, "the compiler refuses it: %.*s", (int)strcspn(line, "\r\n"), line);
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
