/* Checks the arguments that a stage gives against those that its kernel takes, before the first
 * launch. Most drivers run a kernel with wrong arguments, and then crash or compute nonsense.
 *
 * The driver's information about a program (argument_list.c) says the kind and type of each
 * argument. It does not say the size of a struct. Some drivers refuse a wrong size in
 * clSetKernelArg. For the others the compiler is asked.
 *
 * A mistake in the session is an error of all devices: COX_E_INVALID, with one line for the first
 * of them. More constant memory than a device has is a matter of that device: COX_E_UNSUPPORTED.
 *
 * Runs with the instance's creation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "instance_parts.h"
#include "base/type_name.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 160 };

/* The values of arguments whose sizes are tried. */
static const unsigned char zeros[COX_CONSTANTS_BYTES_MAX + 1];

/* One argument: what the stage gives, and what the kernel takes. */
struct pair {
    struct cox__instance *instance;
    const struct cox__pass *pass;
    const struct cox__cl_stage *made;
    uint32_t index;
    const struct cox__arg *arg;
    struct cox__cl_argument takes;
};

cox_status cox__cl_arguments_mistake(const struct cox__instance *instance,
                                     const struct cox__cl_stage *made, const char *format, ...)
{
    char text[2 * TEXT_BYTES];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);

    if (!atomic_exchange(instance->pipeline->mistake_told, true))
        cox__log(instance->backend->log, COX_LOG_ERROR, "kernel %s%s", made->stage->kernel, text);
    return COX_E_INVALID;
}

/* ---- words ---- */

static const char *given(const struct cox__arg *arg, char text[TEXT_BYTES])
{
    switch (arg->kind) {
    case COX__ARG_KIND_BUFFER:
        return "a buffer";
    case COX__ARG_KIND_IMAGE:
        return "a read_only image2d_t";
    case COX__ARG_KIND_LOCAL:
        return "local memory";
    case COX__ARG_KIND_PARAMS:
        snprintf(text, TEXT_BYTES, "a value of %zu bytes", arg->bytes);
        return text;
    default:
        return "an int";
    }
}

static const char *taken(const struct cox__cl_argument *takes, char text[TEXT_BYTES])
{
    const char *before = "";
    switch (takes->kind) {
    case COX__CL_ARGUMENT_GLOBAL:
        before = "global ";
        break;
    case COX__CL_ARGUMENT_CONSTANT:
        before = "constant ";
        break;
    case COX__CL_ARGUMENT_LOCAL:
        before = "local ";
        break;
    default:
        if (takes->access == 'r')
            before = "read_only ";
        if (takes->access == 'w')
            before = "write_only ";
        if (takes->access == 'b')
            before = "read_write ";
    }

    const char *type = takes->type;
    if (!*type)
        type = takes->kind == COX__CL_ARGUMENT_VALUE ? "value" : "pointer";
    snprintf(text, TEXT_BYTES, "%s%s", before, type);
    return text;
}

static const char *name_of(const struct pair *pair)
{
    if (pair->made->stage->texts)
        return pair->made->stage->texts[pair->index].name;
    if (*pair->takes.name)
        return pair->takes.name;
    return "unnamed";
}

/* ---- the driver's information ---- */

/* Whether the driver's kind of argument can take what the stage gives. */
static bool fits_kind(const struct pair *pair)
{
    const struct cox__cl_argument *takes = &pair->takes;
    switch (pair->arg->kind) {
    case COX__ARG_KIND_BUFFER:
        return takes->kind == COX__CL_ARGUMENT_GLOBAL || takes->kind == COX__CL_ARGUMENT_CONSTANT;
    case COX__ARG_KIND_IMAGE:
        return takes->kind == COX__CL_ARGUMENT_IMAGE && strcmp(takes->type, "image2d_t") == 0 &&
               takes->access == 'r';
    case COX__ARG_KIND_LOCAL:
        return takes->kind == COX__CL_ARGUMENT_LOCAL;
    default:
        return takes->kind == COX__CL_ARGUMENT_VALUE;
    }
}

/* Whether a type that the driver reports has the size of the value that the stage gives. An int
 * must be one: a float has the same size. The sizes of other types than OpenCL C's are unknown. */
static bool fits_type(const struct pair *pair)
{
    const uint32_t bytes = cox__type_name_bytes(pair->takes.type);
    if (!bytes || pair->takes.kind != COX__CL_ARGUMENT_VALUE)
        return true;
    if (pair->arg->kind == COX__ARG_KIND_PARAMS)
        return bytes == pair->arg->bytes;

    return strcmp(pair->takes.type, "int") == 0 || strcmp(pair->takes.type, "uint") == 0;
}

/* Compare the source's text with what it compiles to. They differ if macros make the signature, or
 * if the text of another branch of an #if was read. Types are compared if both are OpenCL C's. */
static cox_status check_text(const struct pair *pair)
{
    const struct cox__cl_argument *takes = &pair->takes;
    const struct cox__arg_text *text = &pair->made->stage->texts[pair->index];
    char type[sizeof takes->type];
    strcpy(type, takes->type);
    type[strcspn(type, "*")] = '\0';

    const bool other_name = *takes->name && strcmp(takes->name, text->name) != 0;
    const bool other_type = cox__type_name_bytes(type) && cox__type_name_bytes(text->type) &&
                            strcmp(type, text->type) != 0;
    if (other_name || other_type)
        return cox__cl_arguments_mistake(
            pair->instance, pair->made,
            ", argument %u: the source says '%s %s', but it compiles to '%s %s'; write the "
            "signature without macros and #if",
            pair->index, text->type, text->name, type, takes->name);

    const struct cox__binding *binding = &pair->pass->bindings[pair->arg->index];
    const bool is_const = takes->is_const || takes->kind == COX__CL_ARGUMENT_CONSTANT;
    if (pair->arg->kind != COX__ARG_KIND_BUFFER)
        return COX_OK;
    if ((binding->access == COX__READ && !is_const && !text->read_only) ||
        (binding->access == COX__WRITE && is_const))
        return cox__cl_arguments_mistake(
            pair->instance, pair->made,
            ", argument %u (%s): the source says that it is %s, but it compiles to a pointer to "
            "%sconst; write the signature without macros and #if",
            pair->index, text->name, is_const ? "written" : "read", is_const ? "" : "non-");

    return COX_OK;
}

static cox_status check_information(const struct pair *pair)
{
    char gives[TEXT_BYTES], takes[TEXT_BYTES];
    if (!fits_kind(pair) || !fits_type(pair))
        return cox__cl_arguments_mistake(
            pair->instance, pair->made,
            ", argument %u (%s): the session gives %s, but the kernel takes '%s'", pair->index,
            name_of(pair), given(pair->arg, gives), taken(&pair->takes, takes));

    /* SPIR-V does not tell uint from int (PoCL 6.0). */
    if (pair->made->stage->texts && !pair->made->variant->code)
        return check_text(pair);
    return COX_OK;
}

/* ---- sizes ---- */

static cl_int try_size(const struct pair *pair, size_t bytes)
{
    return clSetKernelArg(pair->made->kernels[0].id, pair->index, bytes, zeros);
}

/* Set the argument, with no memory or with zeros. */
static cl_int try_argument(const struct pair *pair)
{
    cl_mem none = NULL;
    cl_int code;

    switch (pair->arg->kind) {
    case COX__ARG_KIND_BUFFER:
    case COX__ARG_KIND_IMAGE:
        /* A driver may refuse NULL, which says nothing about the argument. */
        code = clSetKernelArg(pair->made->kernels[0].id, pair->index, sizeof none, &none);
        return code == CL_INVALID_ARG_SIZE ? code : CL_SUCCESS;
    case COX__ARG_KIND_LOCAL:
        return clSetKernelArg(pair->made->kernels[0].id, pair->index, pair->arg->bytes, NULL);
    case COX__ARG_KIND_PARAMS:
        return try_size(pair, pair->arg->bytes);
    default:
        return try_size(pair, sizeof(cl_int));
    }
}

/* Ask the compiler for the size of a type: a second kernel requires groups of this size. Returns 0
 * if it gives none. */
static size_t size_of_type(const struct pair *pair)
{
    static const char format[] =
        "%s\n__kernel __attribute__((reqd_work_group_size(sizeof(%s), 1, 1))) "
        "void cox__size(__global int *x) { x[0] = 0; }\n";
    struct cox__instance *instance = pair->instance;
    size_t required[3] = {0};
    char *source;

    if (asprintf(&source, format, pair->made->variant->source, pair->takes.type) < 0)
        return 0;

    cl_program built = cox__cl_program_try(instance->backend, instance->device_index,
                                           instance->context, source, pair->made->variant->options);
    free(source);
    if (!built)
        return 0;

    cl_int code;
    cl_kernel kernel = clCreateKernel(built, "cox__size", &code);
    if (!code) {
        clGetKernelWorkGroupInfo(kernel, instance->device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                 sizeof required, required, NULL);
        clReleaseKernel(kernel);
    }
    clReleaseProgram(built);
    return required[0];
}

/* Check the size of a struct. Some drivers accept any size, but two sizes cannot both be right.
 * `code`: the driver's answer to the size that the session gives. */
static cox_status check_struct(const struct pair *pair, cl_int code)
{
    if (pair->arg->kind != COX__ARG_KIND_PARAMS || !pair->made->stage->texts ||
        !*pair->takes.type || cox__type_name_bytes(pair->takes.type))
        return COX_OK;
    if (code == CL_SUCCESS && try_size(pair, pair->arg->bytes + 1))
        return COX_OK;

    const size_t bytes = size_of_type(pair);
    if (!bytes || bytes == pair->arg->bytes)
        return COX_OK;

    return cox__cl_arguments_mistake(
        pair->instance, pair->made,
        ", argument %u (%s): the session gives a value of %zu bytes, but '%s' has %zu", pair->index,
        name_of(pair), pair->arg->bytes, pair->takes.type, bytes);
}

static cox_status check_size(const struct pair *pair)
{
    char gives[TEXT_BYTES];
    const cl_int code = try_argument(pair);
    const cox_status status = check_struct(pair, code);
    if (code == CL_SUCCESS || status)
        return status;

    return cox__cl_arguments_mistake(pair->instance, pair->made,
                                     ", argument %u (%s): %s refuses %s (%s)", pair->index,
                                     name_of(pair), pair->instance->device->info.name,
                                     given(pair->arg, gives), cox__cl_error_name(code));
}

/* ---- constant memory ---- */

/* Note the buffers that the kernel takes in constant memory. A buffer by rows limits the rows of a
 * band instead (slot.c). */
static cox_status check_constant(const struct pair *pair, uint32_t *count)
{
    struct cox__instance *instance = pair->instance;
    if (pair->arg->kind != COX__ARG_KIND_BUFFER || pair->takes.kind != COX__CL_ARGUMENT_CONSTANT)
        return COX_OK;

    cl_ulong most = 0;
    cl_uint most_count = 0;
    clGetDeviceInfo(instance->device->id, CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, sizeof most, &most,
                    NULL);
    clGetDeviceInfo(instance->device->id, CL_DEVICE_MAX_CONSTANT_ARGS, sizeof most_count,
                    &most_count, NULL);

    instance->constants |= UINT32_C(1) << pair->arg->index;
    instance->constant_bytes = most;

    if (most_count && ++*count > most_count) {
        cox__log(instance->backend->log, COX_LOG_WARN,
                 "%s: kernel %s takes more than %u constant pointers, which is all the device "
                 "allows; use global const pointers",
                 instance->device->info.name, pair->made->stage->kernel, most_count);
        return COX_E_UNSUPPORTED;
    }

    const struct cox__binding *binding = &pair->pass->bindings[pair->arg->index];
    if (!most || cox__by_rows(binding) || binding->bytes <= most)
        return COX_OK;

    cox__log(instance->backend->log, COX_LOG_WARN,
             "%s: kernel %s takes the %zu bytes of '%s' in constant memory, but the device allows "
             "%llu; use a global const pointer",
             instance->device->info.name, pair->made->stage->kernel, binding->bytes, name_of(pair),
             (unsigned long long)most);
    return COX_E_UNSUPPORTED;
}

/* ---- all ---- */

static cox_status check_count(struct cox__instance *instance, const struct cox__cl_stage *made)
{
    cl_uint count = 0;
    clGetKernelInfo(made->kernels[0].id, CL_KERNEL_NUM_ARGS, sizeof count, &count, NULL);
    if (count == made->stage->arg_count)
        return COX_OK;

    return cox__cl_arguments_mistake(instance, made, " takes %u arguments, but the stage gives %u",
                                     count, made->stage->arg_count);
}

/* Make the pair of an argument. `takes` is zeros if the driver reports nothing. */
static struct pair pair_of(struct cox__instance *instance, const struct cox__pass *pass,
                           const struct cox__cl_stage *made, uint32_t index)
{
    struct pair pair = {.instance = instance,
                        .pass = pass,
                        .made = made,
                        .index = index,
                        .arg = &made->stage->args[index]};
    const char *list = made->program->arguments;

    if (!list || !cox__cl_argument_list_find(list, made->stage->kernel, index, &pair.takes))
        pair.takes = (struct cox__cl_argument){.name = ""};
    return pair;
}

cox_status cox__cl_arguments_check(struct cox__instance *instance, const struct cox__pass *pass,
                                   const struct cox__cl_stage *made)
{
    cox_status status = check_count(instance, made);
    uint32_t constants = 0;

    for (uint32_t a = 0; a < made->stage->arg_count && !status; a++) {
        const struct pair pair = pair_of(instance, pass, made, a);
        if (!pair.takes.kind)
            continue;

        status = check_information(&pair);
        if (!status)
            status = check_constant(&pair, &constants);
    }
    return status;
}

cox_status cox__cl_arguments_try(struct cox__instance *instance, const struct cox__pass *pass,
                                 const struct cox__cl_stage *made)
{
    cox_status status = COX_OK;
    for (uint32_t a = 0; a < made->stage->arg_count && !status; a++) {
        const struct pair pair = pair_of(instance, pass, made, a);
        status = check_size(&pair);
    }
    return status;
}

const char *cox__cl_arguments_may_write(struct cox__backend *base,
                                        const struct cox__instance *instance, uint32_t pass,
                                        uint32_t stage, uint32_t arg)
{
    (void)base;
    const struct cox__cl_stage *made = &instance->stages[pass][stage];
    const char *list = made->program->arguments;
    struct cox__cl_argument takes;

    if (!list || !cox__cl_argument_list_find(list, made->stage->kernel, arg, &takes) ||
        takes.kind != COX__CL_ARGUMENT_GLOBAL || takes.is_const)
        return NULL;
    return takes.name;
}
