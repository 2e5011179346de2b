/* Each frame takes these steps:
 *   1. The host writes the inputs' handles. This drops the devices' copies.
 *   2. One task is submitted for each block.
 *   3. Each block's outputs are requested in host memory.
 * The frame ends when the last output has arrived. StarPU orders all of this by the data handles.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include "dmda.h"
#include "common/now.h"
#include "common/work.h"
#include "lab/refuse.h"

#include <pthread.h>
#include <starpu.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a parameter of a kernel gets. */
struct parameter {
    enum {
        PARAMETER_BUFFER,
        PARAMETER_FIRST_ROW_OF, /* the buffer row at which the block's memory begins */
        PARAMETER_FIRST_ROW,
        PARAMETER_ROWS,
        PARAMETER_NUMBER,
        PARAMETER_CONSTANT,
        PARAMETER_LOCAL
    } kind;
    uint32_t buffer;
    cl_int number;
    size_t offset; /* in the frame's constants */
    size_t bytes;
};

/* The kernel of a pass on one device. Only the device's own thread sets the kernel's arguments, so
 * there are no locks. */
struct built {
    cl_program program;
    cl_kernel kernel;
    struct cox_pass form; /* source, options and sizes */
    size_t local[2];
    cl_uint parameter_count;
    struct parameter parameters[COX_ARGUMENTS_MAX];
};

/* A buffer, and what the kernels do with it. */
struct buffer {
    const struct cox_buffer_layout *layout;
    uint32_t element_bytes;
    uint32_t halo_rows;
    bool whole, written, in_place;
};

struct slot;

/* A block of one slot's frame. */
struct block {
    struct slot *slot;
    uint32_t first_row, rows;
    starpu_data_handle_t handles[COX_BUFFERS_MAX];
    uint32_t first_rows[COX_BUFFERS_MAX]; /* the buffer row at which each one's memory begins */
    uint32_t device;                      /* this and the times are those of its last task */
    uint64_t begin_ns, end_ns;
};

/* An output of a block, for the callback of its arrival. */
struct output {
    struct block *block;
    starpu_data_handle_t handle;
};

struct slot {
    struct lab_dmda *dmda;
    const struct cox_frame *frame;
    struct block blocks[LAB_DMDA_BLOCKS_MAX];
    struct output outputs[LAB_DMDA_BLOCKS_MAX * COX_BUFFERS_MAX];
    uint32_t output_count;
    uint64_t submit_ns, end_ns;
    uint32_t arriving; /* outputs that are not in host memory yet */
    struct cox_band_report bands[LAB_DMDA_BLOCKS_MAX];
};

struct lab_dmda {
    struct lab_dmda_params params;
    struct starpu_codelet codelet;
    struct starpu_perfmodel model;
    char symbol[96];
    uint32_t workers[COX_DEVICES_MAX]; /* StarPU's worker of each device */
    int devids[COX_DEVICES_MAX];       /* its number for OpenCL */
    uint32_t pass_count;               /* one, and those that are fused with it */
    struct built built[COX_DEVICES_MAX][COX_FUSED_MAX];
    uint32_t buffer_count;
    struct buffer buffers[COX_BUFFERS_MAX];
    uint32_t blocks; /* registered; 0 = none */
    struct slot *slots;
    pthread_mutex_t mutex; /* protects `arriving` and the times of all slots */
    pthread_cond_t arrived;
    atomic_int error; /* the first OpenCL error */
    bool paused;
};

static uint32_t at_least_1(uint32_t value)
{
    return value ? value : 1;
}

void lab_dmda_version(char *text, size_t bytes)
{
    int version[3] = {0};

    starpu_get_version(&version[0], &version[1], &version[2]);
    snprintf(text, bytes, "%d.%d.%d", version[0], version[1], version[2]);
}

/* --- Tasks, on the devices' threads ----------------------------------------------------------- */

static size_t padded(uint32_t count, uint32_t per_item, size_t local)
{
    const size_t per = at_least_1(per_item), items = (count + per - 1) / per;

    return (items + local - 1) / local * local;
}

static uint32_t columns_of(const struct lab_dmda *dmda, const struct cox_pass *pass)
{
    return pass->columns ? pass->columns : dmda->params.session->columns;
}

static cl_int set_argument(const struct block *block, cl_kernel kernel, cl_uint index,
                           const struct parameter *parameter, void *interfaces[])
{
    cl_mem mem;
    cl_int number = parameter->number;

    switch (parameter->kind) {
    case PARAMETER_BUFFER:
        mem = (cl_mem)STARPU_VECTOR_GET_DEV_HANDLE(interfaces[parameter->buffer]);
        return clSetKernelArg(kernel, index, sizeof mem, &mem);
    case PARAMETER_CONSTANT:
        return clSetKernelArg(kernel, index, parameter->bytes,
                              (const char *)block->slot->frame->constants + parameter->offset);
    case PARAMETER_LOCAL:
        return clSetKernelArg(kernel, index, parameter->bytes, NULL);
    case PARAMETER_FIRST_ROW_OF:
        number = (cl_int)block->first_rows[parameter->buffer];
        break;
    case PARAMETER_FIRST_ROW:
        number = (cl_int)block->first_row;
        break;
    case PARAMETER_ROWS:
        number = (cl_int)block->rows;
        break;
    case PARAMETER_NUMBER:
        break;
    }
    return clSetKernelArg(kernel, index, sizeof number, &number);
}

static cl_int set_arguments(const struct block *block, const struct built *built,
                            void *interfaces[])
{
    cl_int code = CL_SUCCESS;

    for (cl_uint i = 0; i < built->parameter_count && !code; i++)
        code = set_argument(block, built->kernel, i, &built->parameters[i], interfaces);
    return code;
}

static void launch(void *interfaces[], void *arg)
{
    struct block *block = arg;
    struct lab_dmda *dmda = block->slot->dmda;
    const int worker = starpu_worker_get_id(), devid = starpu_worker_get_devid(worker);
    uint32_t device = 0;
    cl_command_queue queue;

    while (dmda->workers[device] != (uint32_t)worker)
        device++;

    block->device = device;
    block->begin_ns = now_ns();
    starpu_opencl_get_queue(devid, &queue);

    for (uint32_t p = 0; p < dmda->pass_count; p++) {
        const struct built *built = &dmda->built[device][p];
        const uint32_t columns = columns_of(dmda, &dmda->params.session->passes[p]);
        const size_t global[2] = {padded(columns, built->form.item_columns, built->local[0]),
                                  padded(block->rows, built->form.item_rows, built->local[1])};
        cl_int code = set_arguments(block, built, interfaces);

        if (!code)
            code = clEnqueueNDRangeKernel(queue, built->kernel, 2, NULL, global, built->local, 0,
                                          NULL, NULL);

        int none = CL_SUCCESS;
        if (code)
            atomic_compare_exchange_strong(&dmda->error, &none, code);
    }

    clFlush(queue);
}

static void on_arrival(void *arg)
{
    struct output *output = arg;
    struct slot *slot = output->block->slot;
    struct lab_dmda *dmda = slot->dmda;

    starpu_data_release(output->handle);

    pthread_mutex_lock(&dmda->mutex);
    slot->end_ns = output->block->end_ns = now_ns();
    if (--slot->arriving == 0)
        pthread_cond_broadcast(&dmda->arrived);
    pthread_mutex_unlock(&dmda->mutex);
}

/* --- Devices ---------------------------------------------------------------------------------- */

static bool start(struct starpu_conf *conf, char *why, size_t why_bytes)
{
    /* starpu_conf has no fields for these. A bound thread that polls takes the time of its core
     * from a CPU device; an unbound one takes less. */
    setenv("STARPU_OPENCL_ON_CPUS", "1", 1);
    setenv("STARPU_WORKERS_NOBIND", "1", 0);
    setenv("STARPU_SILENT", "1", 0);

    const int code = starpu_init(conf);
    return code == 0 || lab_refuse(why, why_bytes, "cannot start StarPU: %s", strerror(-code));
}

static void configure(struct starpu_conf *conf)
{
    starpu_conf_init(conf);
    conf->precedence_over_environment_variables = 1;
    conf->sched_policy_name = "dmda";
    conf->calibrate = 2; /* drop the models of earlier runs, and keep learning */
    conf->ncpus = conf->ncuda = conf->nmic = conf->nmpi_ms = 0; /* the kernels are OpenCL's */
    conf->catch_signals = 0;
}

static bool is_device(cl_device_id id, const struct cox_device_info *info)
{
    char name[sizeof info->name] = "", platform_name[sizeof info->platform] = "";
    cl_platform_id platform = NULL;

    clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    clGetDeviceInfo(id, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
    clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof platform_name - 1, platform_name, NULL);
    return strcmp(name, info->name) == 0 && strcmp(platform_name, info->platform) == 0;
}

/* Find our devices among StarPU's. Of identical devices the first free one is taken. */
static bool find_devices(struct lab_dmda *dmda, char *why, size_t why_bytes)
{
    bool taken[STARPU_NMAXWORKERS] = {false};
    const uint32_t count = starpu_worker_get_count();

    for (uint32_t d = 0; d < dmda->params.device_count; d++) {
        uint32_t w = 0;
        for (; w < count; w++) {
            cl_device_id id;
            starpu_opencl_get_device(starpu_worker_get_devid((int)w), &id);
            if (!taken[w] && is_device(id, &dmda->params.devices[d]))
                break;
        }

        if (w == count)
            return lab_refuse(why, why_bytes, "device %u, %s, is unknown to StarPU", d,
                              dmda->params.devices[d].name);

        taken[w] = true;
        dmda->workers[d] = w;
        dmda->devids[d] = starpu_worker_get_devid((int)w);
    }
    return true;
}

/* StarPU starts threads for every device. If there are more devices than ours, restart it with
 * ours. */
static bool start_on_devices(struct lab_dmda *dmda, char *why, size_t why_bytes)
{
    struct starpu_conf conf;

    configure(&conf);
    if (!start(&conf, why, why_bytes))
        return false;

    bool good = find_devices(dmda, why, why_bytes);
    if (good && starpu_worker_get_count() == dmda->params.device_count)
        return true;

    starpu_shutdown();
    if (!good)
        return false;

    configure(&conf);
    conf.nopencl = (int)dmda->params.device_count;
    conf.use_explicit_workers_opencl_gpuid = 1;
    for (uint32_t d = 0; d < dmda->params.device_count; d++)
        conf.workers_opencl_gpuid[d] = (unsigned)dmda->devids[d];

    if (!start(&conf, why, why_bytes))
        return false;

    good = find_devices(dmda, why, why_bytes);
    if (!good)
        starpu_shutdown();
    return good;
}

/* --- Kernels ---------------------------------------------------------------------------------- */

/* The pass's variant for the device, or the pass's own kernel. The lab's variants name one device
 * each, as "#N". */
static struct cox_pass form_for(const struct cox_pass *pass, uint32_t device)
{
    char name[16];

    snprintf(name, sizeof name, "#%u", device);
    for (const struct cox_pass *v = pass->variants; v && v->source; v++)
        if (strcmp(v->devices, name) == 0)
            return *v;

    return *pass;
}

enum { LOCAL_COLUMNS = 64 };

/* If the form states no local size, choose a row of work-items that the device accepts. */
static void choose_local(struct built *built, cl_device_id id)
{
    size_t most = 0;

    built->local[0] = at_least_1(built->form.local_columns);
    built->local[1] = at_least_1(built->form.local_rows);
    if (built->form.local_columns || built->form.local_rows)
        return;

    built->local[0] = LOCAL_COLUMNS;
    clGetKernelWorkGroupInfo(built->kernel, id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                             NULL);

    while (most && built->local[0] > most)
        built->local[0] /= 2;
}

/* The bytes of an element that a pointer of this type points to, such as "float4*"; 0 = unknown. */
static uint32_t element_bytes_of(const char *type)
{
    static const struct {
        const char *name;
        uint32_t bytes;
    } types[] = {{"uchar", 1}, {"char", 1},  {"ushort", 2}, {"short", 2}, {"half", 2},  {"uint", 4},
                 {"int", 4},   {"float", 4}, {"ulong", 8},  {"long", 8},  {"double", 8}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const size_t length = strlen(types[i].name);
        if (strncmp(type, types[i].name, length) != 0)
            continue;

        const uint32_t lanes = at_least_1((uint32_t)strtoul(type + length, NULL, 10));
        return types[i].bytes * (lanes == 3 ? 4 : lanes);
    }
    return 0;
}

/* Find the buffer whose name, followed by `ending`, equals `name`. Returns NULL if no buffer matches. */
static struct buffer *find_buffer(struct lab_dmda *dmda, const char *name, const char *ending)
{
    for (uint32_t b = 0; b < dmda->buffer_count; b++) {
        struct buffer *buffer = &dmda->buffers[b];
        const size_t length = strlen(buffer->layout->name);
        if (strncmp(name, buffer->layout->name, length) == 0 && strcmp(name + length, ending) == 0)
            return buffer;
    }
    return NULL;
}

static const struct cox_argument *find_argument(const struct cox_pass *pass, const char *name)
{
    static const struct cox_argument nothing = {0};

    for (const struct cox_argument *a = pass->arguments; a && a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a;
    return &nothing;
}

static void read_buffer(struct buffer *buffer, const struct cox_argument *argument, bool written,
                        const char *type)
{
    buffer->written |= written;
    buffer->whole |= argument->whole;
    buffer->in_place |= argument->in_place;
    if (argument->halo_rows > buffer->halo_rows)
        buffer->halo_rows = argument->halo_rows;
    if (!buffer->element_bytes)
        buffer->element_bytes = element_bytes_of(type);
}

/* Find what a number gets by its name. */
static bool read_number(struct lab_dmda *dmda, const struct cox_pass *pass, const char *name,
                        struct parameter *out)
{
    const struct cox_session_params *session = dmda->params.session;
    struct buffer *buffer;

    for (const struct cox_field *field = session->fields; field && field->name; field++)
        if (strcmp(field->name, name) == 0) {
            *out = (struct parameter){
                .kind = PARAMETER_CONSTANT, .offset = field->offset, .bytes = field->bytes};
            return true;
        }

    if (strcmp(name, "first_row") == 0)
        *out = (struct parameter){.kind = PARAMETER_FIRST_ROW};
    else if (strcmp(name, "rows") == 0)
        *out = (struct parameter){.kind = PARAMETER_ROWS};
    else if (strcmp(name, "columns") == 0)
        *out = (struct parameter){.kind = PARAMETER_NUMBER,
                                  .number = (cl_int)columns_of(dmda, pass)};
    else if (strcmp(name, "frame_rows") == 0)
        *out = (struct parameter){.kind = PARAMETER_NUMBER, .number = (cl_int)session->rows};
    else if ((buffer = find_buffer(dmda, name, "_first_row")) != NULL)
        *out = (struct parameter){.kind = PARAMETER_FIRST_ROW_OF,
                                  .buffer = (uint32_t)(buffer - dmda->buffers)};
    else if ((buffer = find_buffer(dmda, name, "_pitch")) != NULL && buffer->element_bytes)
        *out = (struct parameter){
            .kind = PARAMETER_NUMBER,
            .number = (cl_int)(buffer->layout->pitch_bytes / buffer->element_bytes)};
    else
        return false;
    return true;
}

static bool read_parameter(struct lab_dmda *dmda, const struct cox_pass *pass, cl_kernel kernel,
                           cl_uint index, struct parameter *out)
{
    char name[128] = "", type[64] = "";
    cl_kernel_arg_address_qualifier address = 0;
    cl_kernel_arg_type_qualifier qualifier = 0;

    clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, sizeof name, name, NULL);
    clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_NAME, sizeof type, type, NULL);
    clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address,
                       NULL);
    clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier,
                       NULL);

    const struct cox_argument *argument = find_argument(pass, name);
    if (address == CL_KERNEL_ARG_ADDRESS_LOCAL) {
        *out = (struct parameter){.kind = PARAMETER_LOCAL, .bytes = argument->local_bytes};
        return true;
    }
    if (address == CL_KERNEL_ARG_ADDRESS_PRIVATE)
        return read_number(dmda, pass, name, out);

    struct buffer *buffer = find_buffer(dmda, name, "");
    if (!buffer)
        return false;

    const bool reads = address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                       (qualifier & CL_KERNEL_ARG_TYPE_CONST) != 0;
    read_buffer(buffer, argument, !reads, type);
    *out = (struct parameter){.kind = PARAMETER_BUFFER,
                              .buffer = (uint32_t)(buffer - dmda->buffers)};
    return true;
}

static cl_int create_kernel(const struct lab_dmda *dmda, uint32_t device,
                            const struct cox_pass *pass, struct built *built)
{
    cl_context context;
    cl_device_id id;
    cl_int code;

    starpu_opencl_get_context(dmda->devids[device], &context);
    starpu_opencl_get_device(dmda->devids[device], &id);

    built->program = clCreateProgramWithSource(context, 1, &built->form.source, NULL, &code);
    if (code)
        return code;

    char *own = work_build_options(built->form.options, dmda->params.arithmetic), *options = NULL;
    if (!own || asprintf(&options, "%s -cl-kernel-arg-info", own) < 0)
        code = CL_OUT_OF_HOST_MEMORY;
    else
        code = clBuildProgram(built->program, 1, &id, options, NULL, NULL);
    free(own);
    free(options);

    if (!code && pass->kernel)
        built->kernel = clCreateKernel(built->program, pass->kernel, &code);
    else if (!code)
        code = clCreateKernelsInProgram(built->program, 1, &built->kernel, NULL);
    if (!code)
        choose_local(built, id);
    return code;
}

static bool build_pass(struct lab_dmda *dmda, uint32_t device, uint32_t p, char *why,
                       size_t why_bytes)
{
    const struct cox_pass *pass = &dmda->params.session->passes[p];
    const char *name = pass->kernel ? pass->kernel : dmda->params.kernel;
    struct built *built = &dmda->built[device][p];

    built->form = form_for(pass, device);

    const cl_int code = create_kernel(dmda, device, pass, built);
    if (code)
        return lab_refuse(why, why_bytes, "kernel %s: build for StarPU failed on %s: error %d",
                          name, dmda->params.devices[device].name, code);

    clGetKernelInfo(built->kernel, CL_KERNEL_NUM_ARGS, sizeof built->parameter_count,
                    &built->parameter_count, NULL);
    for (cl_uint i = 0; i < built->parameter_count; i++)
        if (i >= COX_ARGUMENTS_MAX ||
            !read_parameter(dmda, pass, built->kernel, i, &built->parameters[i]))
            return lab_refuse(why, why_bytes, "kernel %s: the name of parameter %u is unknown",
                              name, i);
    return true;
}

static bool build(struct lab_dmda *dmda, char *why, size_t why_bytes)
{
    for (uint32_t d = 0; d < dmda->params.device_count; d++)
        for (uint32_t p = 0; p < dmda->pass_count; p++)
            if (!build_pass(dmda, d, p, why, why_bytes))
                return false;
    return true;
}

/* Count the passes and the buffers. False if there are too many. */
static bool count_lists(struct lab_dmda *dmda, char *why, size_t why_bytes)
{
    const struct cox_session_params *session = dmda->params.session;

    while (session->passes[dmda->pass_count].source)
        dmda->pass_count++;

    for (const struct cox_buffer_layout *layout = session->buffers; layout->name; layout++)
        dmda->buffers[dmda->buffer_count++].layout = layout;

    return dmda->buffer_count <= STARPU_NMAXBUFS ||
           lab_refuse(why, why_bytes, "this StarPU supports at most %d buffers per task",
                      STARPU_NMAXBUFS);
}

/* After `build`, which finds out what is written. */
static void describe_codelet(struct lab_dmda *dmda)
{
    snprintf(dmda->symbol, sizeof dmda->symbol, "cox_lab_%s", dmda->params.kernel);
    dmda->model = (struct starpu_perfmodel){.type = STARPU_HISTORY_BASED, .symbol = dmda->symbol};
    dmda->codelet = (struct starpu_codelet){.where = STARPU_OPENCL,
                                            .opencl_funcs = {launch},
                                            .opencl_flags = {STARPU_OPENCL_ASYNC},
                                            .nbuffers = (int)dmda->buffer_count,
                                            .model = &dmda->model,
                                            .name = dmda->symbol};

    for (uint32_t b = 0; b < dmda->buffer_count; b++)
        dmda->codelet.modes[b] = dmda->buffers[b].written ? STARPU_W : STARPU_R;
}

/* The limits of StarPU. */
static bool is_possible(const struct lab_dmda_params *params, char *why, size_t why_bytes)
{
    const struct cox_session_params *session = params->session;
    uint32_t passes = 1;

    if (session->pipeline)
        return lab_refuse(why, why_bytes,
                          "%s uses the library's own kernels, which StarPU cannot run",
                          params->kernel);
    while (session->passes[passes].source && session->passes[passes].fused)
        passes++;
    if (session->passes[passes].source)
        return lab_refuse(why, why_bytes, "%s has several passes, which StarPU cannot run",
                          params->kernel);

    if (params->device_count > STARPU_MAXOPENCLDEVS)
        return lab_refuse(why, why_bytes, "this StarPU supports at most %d OpenCL devices",
                          STARPU_MAXOPENCLDEVS);

    for (uint32_t d = 0; d < params->device_count; d++)
        if (params->devices[d].subdevice)
            return lab_refuse(why, why_bytes,
                              "device %u is a sub-device; StarPU supports whole devices only", d);
    return true;
}

bool lab_dmda_open(const struct lab_dmda_params *params, struct lab_dmda **out, char *why,
                   size_t why_bytes)
{
    *out = NULL;
    if (!is_possible(params, why, why_bytes))
        return false;

    struct lab_dmda *dmda = calloc(1, sizeof *dmda);
    if (dmda)
        dmda->slots = calloc(params->slots, sizeof *dmda->slots);

    if (!dmda || !dmda->slots) {
        free(dmda);
        return lab_refuse(why, why_bytes, "out of memory");
    }

    dmda->params = *params;
    pthread_mutex_init(&dmda->mutex, NULL);
    pthread_cond_init(&dmda->arrived, NULL);

    for (uint32_t s = 0; s < params->slots; s++) {
        dmda->slots[s].dmda = dmda;
        dmda->slots[s].frame = &params->frames[s];
    }

    if (!count_lists(dmda, why, why_bytes) || !start_on_devices(dmda, why, why_bytes)) {
        free(dmda->slots);
        free(dmda);
        return false;
    }

    if (!build(dmda, why, why_bytes)) {
        lab_dmda_close(&dmda);
        return false;
    }

    describe_codelet(dmda);
    lab_dmda_pause(dmda, true);
    *out = dmda;
    return true;
}

void lab_dmda_pause(struct lab_dmda *dmda, bool paused)
{
    if (paused && !dmda->paused)
        starpu_pause();
    if (!paused && dmda->paused)
        starpu_resume();
    dmda->paused = paused;
}

/* --- Blocks ----------------------------------------------------------------------------------- */

uint32_t lab_dmda_blocks_most(const struct lab_dmda *dmda)
{
    const uint32_t row_units = (dmda->params.session->rows + dmda->params.row_alignment - 1) /
                               dmda->params.row_alignment;
    return row_units < LAB_DMDA_BLOCKS_MAX ? row_units : LAB_DMDA_BLOCKS_MAX;
}

static void unregister(struct lab_dmda *dmda)
{
    for (uint32_t s = 0; s < dmda->params.slots; s++)
        for (uint32_t i = 0; i < dmda->blocks; i++)
            for (uint32_t b = 0; b < dmda->buffer_count; b++)
                starpu_data_unregister(dmda->slots[s].blocks[i].handles[b]);

    dmda->blocks = 0;
}

/* Register the buffer rows that a block touches, with its halo. The inputs of neighbours may
 * overlap, since only the host writes them. */
static void register_buffer(struct block *block, uint32_t b)
{
    const struct lab_dmda *dmda = block->slot->dmda;
    const struct buffer *buffer = &dmda->buffers[b];
    const size_t pitch_bytes = buffer->layout->pitch_bytes;
    char *data = cox_buffer_data(block->slot->frame->buffers[b]);
    const uint32_t divisor = at_least_1(buffer->layout->row_divisor);
    const uint32_t all = (dmda->params.session->rows + divisor - 1) / divisor;
    uint32_t first = block->first_row / divisor;
    uint32_t end = (block->first_row + block->rows + divisor - 1) / divisor + buffer->halo_rows;

    first = first > buffer->halo_rows ? first - buffer->halo_rows : 0;
    if (end > all)
        end = all;

    if (buffer->whole) {
        const size_t bytes = buffer->layout->bytes ? buffer->layout->bytes : all * pitch_bytes;
        starpu_vector_data_register(&block->handles[b], STARPU_MAIN_RAM, (uintptr_t)data,
                                    (uint32_t)bytes, 1);
        return;
    }

    block->first_rows[b] = first;
    starpu_vector_data_register(&block->handles[b], STARPU_MAIN_RAM,
                                (uintptr_t)(data + first * pitch_bytes), end - first, pitch_bytes);
}

static void register_block(struct block *block)
{
    struct slot *slot = block->slot;

    for (uint32_t b = 0; b < slot->dmda->buffer_count; b++) {
        register_buffer(block, b);
        if (slot->dmda->buffers[b].written)
            slot->outputs[slot->output_count++] = (struct output){block, block->handles[b]};
    }
}

bool lab_dmda_cut(struct lab_dmda *dmda, uint32_t blocks, char *why, size_t why_bytes)
{
    const uint32_t rows = dmda->params.session->rows, row_alignment = dmda->params.row_alignment;
    const uint64_t row_units = (rows + row_alignment - 1) / row_alignment;

    if (blocks < 1 || blocks > lab_dmda_blocks_most(dmda))
        return lab_refuse(why, why_bytes, "a frame of %u rows cannot be cut into %u blocks", rows,
                          blocks);

    for (uint32_t b = 0; b < dmda->buffer_count; b++)
        if (dmda->buffers[b].layout->merge || dmda->buffers[b].layout->scratch ||
            dmda->buffers[b].in_place)
            return lab_refuse(why, why_bytes,
                              "partial results, scratch and in-place buffers are not "
                              "supported with StarPU");

    unregister(dmda);
    for (uint32_t s = 0; s < dmda->params.slots; s++) {
        struct slot *slot = &dmda->slots[s];
        slot->output_count = 0;

        for (uint32_t i = 0; i < blocks; i++) {
            const uint32_t first = (uint32_t)(row_units * i / blocks * row_alignment);
            uint32_t end = (uint32_t)(row_units * (i + 1) / blocks * row_alignment);

            if (i + 1 == blocks)
                end = rows;

            slot->blocks[i] = (struct block){.slot = slot, .first_row = first, .rows = end - first};
            register_block(&slot->blocks[i]);
        }
    }

    dmda->blocks = blocks;
    return true;
}

void lab_dmda_close(struct lab_dmda **dmda)
{
    struct lab_dmda *s = *dmda;
    *dmda = NULL;
    if (!s)
        return;

    lab_dmda_pause(s, false); /* paused tasks do not end */
    starpu_task_wait_for_all();
    unregister(s);

    for (uint32_t d = 0; d < s->params.device_count; d++)
        for (uint32_t i = 0; i < s->pass_count; i++) {
            if (s->built[d][i].kernel)
                clReleaseKernel(s->built[d][i].kernel);
            if (s->built[d][i].program)
                clReleaseProgram(s->built[d][i].program);
        }

    starpu_shutdown();
    pthread_cond_destroy(&s->arrived);
    pthread_mutex_destroy(&s->mutex);
    free(s->slots);
    free(s);
}

/* --- Frames ----------------------------------------------------------------------------------- */

static bool submit_block(struct lab_dmda *dmda, struct block *block, int device)
{
    struct starpu_task *task = starpu_task_create();

    task->cl = &dmda->codelet;
    task->cl_arg = block;
    task->cl_arg_size = sizeof *block;

    for (uint32_t b = 0; b < dmda->buffer_count; b++)
        task->handles[b] = block->handles[b];

    if (device >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = dmda->workers[device];
    }
    return starpu_task_submit(task) == 0;
}

bool lab_dmda_submit(struct lab_dmda *dmda, uint64_t index, int device)
{
    struct slot *slot = &dmda->slots[index % dmda->params.slots];

    slot->submit_ns = now_ns();
    slot->arriving = slot->output_count; /* no lock: nothing of the slot is under way */

    for (uint32_t i = 0; i < dmda->blocks; i++)
        for (uint32_t b = 0; b < dmda->buffer_count; b++)
            if (!dmda->buffers[b].written) {
                starpu_data_acquire(slot->blocks[i].handles[b], STARPU_W);
                starpu_data_release(slot->blocks[i].handles[b]);
            }

    for (uint32_t i = 0; i < dmda->blocks; i++)
        if (!submit_block(dmda, &slot->blocks[i], device))
            return false;

    for (uint32_t i = 0; i < slot->output_count; i++)
        starpu_data_acquire_cb(slot->outputs[i].handle, STARPU_R, on_arrival, &slot->outputs[i]);

    return true;
}

void lab_dmda_collect(struct lab_dmda *dmda, uint64_t index, struct cox_frame_report *report)
{
    struct slot *slot = &dmda->slots[index % dmda->params.slots];
    uint64_t last_ns[COX_DEVICES_MAX] = {0};

    pthread_mutex_lock(&dmda->mutex);
    while (slot->arriving)
        pthread_cond_wait(&dmda->arrived, &dmda->mutex);
    pthread_mutex_unlock(&dmda->mutex);

    *report = (struct cox_frame_report){
        .index = index,
        .status = atomic_load(&dmda->error) ? COX_E_DEVICE_LOST : COX_OK,
        .submit_ns = slot->submit_ns,
        .total = {.start_ns = slot->submit_ns, .end_ns = slot->end_ns},
        .joules = -1,
        .band_count = dmda->blocks,
        .bands = slot->bands};

    for (uint32_t i = 0; i < dmda->blocks; i++) {
        const struct block *block = &slot->blocks[i];
        uint64_t begin = block->begin_ns;
        if (begin < last_ns[block->device] && last_ns[block->device] < block->end_ns)
            begin = last_ns[block->device]; /* it waited for the block before it */

        last_ns[block->device] = block->end_ns;
        slot->bands[i] = (struct cox_band_report){.device = block->device,
                                                  .first_row = block->first_row,
                                                  .rows = block->rows,
                                                  .status = report->status,
                                                  .submit_ns = slot->submit_ns,
                                                  .end_ns = block->end_ns,
                                                  .wall_ns = block->end_ns - begin,
                                                  .queue_ns = begin - slot->submit_ns};
    }
}
