/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"
#include "bench/cl.h"
#include "bench/message.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 128 };

/* What the driver says about one parameter. */
struct parameter {
    char name[NAME_BYTES], type[NAME_BYTES];
    cl_kernel_arg_address_qualifier space;
    cl_kernel_arg_type_qualifier qualifiers;
};

static bool read_parameter(cl_kernel kernel, cl_uint index, struct parameter *parameter)
{
    cl_int code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, NAME_BYTES, parameter->name,
                                     NULL);

    if (code == CL_SUCCESS)
        code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, NAME_BYTES,
                                  parameter->type, NULL);
    if (code == CL_SUCCESS)
        code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                                  sizeof parameter->space, &parameter->space, NULL);
    if (code == CL_SUCCESS)
        code = clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER,
                                  sizeof parameter->qualifiers, &parameter->qualifiers, NULL);

    return !bench_cl_failed(code, "clGetKernelArgInfo");
}

/* The size of the type that a pointer points to; 0 = not a type of OpenCL C. */
static size_t element_bytes(const char *type)
{
    static const struct {
        const char *name;
        size_t bytes;
    } known[] = {{"uchar", 1}, {"char", 1},  {"ushort", 2}, {"short", 2}, {"half", 2},  {"uint", 4},
                 {"int", 4},   {"float", 4}, {"ulong", 8},  {"long", 8},  {"double", 8}};

    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const size_t length = strlen(known[k].name);
        if (strncmp(type, known[k].name, length) != 0)
            continue;
        const unsigned long width = strtoul(type + length, NULL, 10);
        if (width == 3)
            return known[k].bytes * 4;
        return known[k].bytes * (width ? width : 1);
    }

    return 0;
}

static const struct cox_argument *find_argument(const struct cox_pass *pass, const char *name)
{
    for (const struct cox_argument *a = pass->arguments; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;

    return NULL;
}

static bool find_buffer(const struct suite_problem *problem, const char *name, uint32_t *buffer)
{
    *buffer = 0;
    for (const struct cox_buffer_layout *b = problem->params.buffers; b->name; b++, ++*buffer)
        if (strcmp(b->name, name) == 0)
            return true;

    return false;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* A global or constant pointer. */
static bool add_buffer(const struct suite_problem *problem, const struct cox_pass *pass,
                       const struct parameter *parameter, struct suite_argument *argument,
                       struct suite_step *step)
{
    const struct cox_argument *said = find_argument(pass, parameter->name);
    struct suite_access access = {.divisor = 1};
    const char *name = parameter->name;

    if (said && said->buffer)
        name = said->buffer;
    if (!find_buffer(problem, name, &access.buffer) || step->access_count == COX_BUFFERS_MAX)
        return bench_fail("suite: no buffer %s", name);

    const struct cox_buffer_layout *layout = &problem->params.buffers[access.buffer];
    const bool constant = parameter->space == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                          (parameter->qualifiers & CL_KERNEL_ARG_TYPE_CONST);

    access.writes = !constant;
    if (layout->row_divisor)
        access.divisor = layout->row_divisor;
    if (said) {
        access.writes &= !said->read_only;
        access.reads = said->in_place || said->partial;
        access.whole |= said->whole;
        access.above = larger(said->halo_rows, said->halo_above);
        access.below = larger(said->halo_rows, said->halo_below);
        if (said->row_divisor)
            access.divisor = said->row_divisor;
    }

    access.whole |= layout->merge && !access.writes;

    *argument = (struct suite_argument){.kind = SUITE_BUFFER,
                                        .access = step->access_count,
                                        .element_bytes = element_bytes(parameter->type)};
    step->accesses[step->access_count++] = access;

    return true;
}

/* The buffer's parameter that a name such as NAME_pitch belongs to. */
static bool belongs(const char (*names)[NAME_BYTES], const struct suite_arguments *arguments,
                    const char *name, const char *end, uint32_t *access)
{
    const size_t length = strlen(name), tail = strlen(end);

    if (length <= tail || strcmp(name + length - tail, end) != 0)
        return false;

    for (uint32_t a = 0; a < arguments->count; a++)
        if (arguments->at[a].kind == SUITE_BUFFER && strlen(names[a]) == length - tail &&
            strncmp(names[a], name, length - tail) == 0) {
            *access = arguments->at[a].access;
            return true;
        }

    return false;
}

static bool add_value(const struct suite_problem *problem, const char (*names)[NAME_BYTES],
                      const struct suite_arguments *arguments, const char *name,
                      struct suite_argument *argument)
{
    static const struct {
        const char *name;
        enum suite_argument_kind kind;
    } known[] = {{"columns", SUITE_COLUMNS},
                 {"rows", SUITE_ROWS},
                 {"first_row", SUITE_FIRST_ROW},
                 {"frame_rows", SUITE_FRAME_ROWS}};

    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(name, known[k].name) == 0) {
            argument->kind = known[k].kind;
            return true;
        }

    argument->kind = SUITE_BUFFER_FIRST_ROW;
    if (belongs(names, arguments, name, "_first_row", &argument->access))
        return true;
    argument->kind = SUITE_BUFFER_PITCH;
    if (belongs(names, arguments, name, "_pitch", &argument->access))
        return true;

    argument->kind = SUITE_CONSTANT;
    argument->bytes = problem->params.constants_bytes;
    if (strcmp(name, "constants") == 0)
        return true;
    for (const struct cox_field *f = problem->params.fields; f && f->name; f++)
        if (strcmp(f->name, name) == 0) {
            argument->offset = f->offset;
            argument->bytes = f->bytes;
            return true;
        }

    return bench_fail("suite: unknown parameter %s", name);
}

bool suite_arguments_read(cl_kernel kernel, const struct suite_problem *problem,
                          const struct cox_pass *pass, struct suite_arguments *arguments,
                          struct suite_step *step)
{
    char names[COX_ARGUMENTS_MAX][NAME_BYTES];
    cl_uint count = 0;

    if (bench_cl_failed(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL),
                        "clGetKernelInfo"))
        return false;
    if (count > COX_ARGUMENTS_MAX)
        return bench_fail("suite: a kernel has more than %d parameters", COX_ARGUMENTS_MAX);

    *arguments = (struct suite_arguments){.count = count};
    step->access_count = 0;

    /* Buffers first: other parameters may belong to one that comes later. */
    for (cl_uint a = 0; a < count; a++) {
        struct parameter parameter;
        if (!read_parameter(kernel, a, &parameter))
            return false;

        struct suite_argument *argument = &arguments->at[a];
        memcpy(names[a], parameter.name, NAME_BYTES);
        argument->kind = SUITE_CONSTANT;
        if (parameter.space == CL_KERNEL_ARG_ADDRESS_LOCAL) {
            const struct cox_argument *said = find_argument(pass, parameter.name);
            argument->kind = SUITE_LOCAL;
            argument->bytes = said ? said->local_bytes : 0;
        } else if (parameter.space != CL_KERNEL_ARG_ADDRESS_PRIVATE &&
                   !add_buffer(problem, pass, &parameter, argument, step)) {
            return false;
        }
    }

    for (cl_uint a = 0; a < count; a++)
        if (arguments->at[a].kind == SUITE_CONSTANT &&
            !add_value(problem, names, arguments, names[a], &arguments->at[a]))
            return false;

    return true;
}
