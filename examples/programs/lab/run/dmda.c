/* Each frame takes these steps:
 *   1. The host writes the inputs' handles. This drops the devices' copies.
 *   2. One task is submitted for each block.
 *   3. Each block's outputs are requested in host memory.
 * The frame ends when the last output has arrived. StarPU orders all of this by the data handles.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
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

/* A stage on one device. Only the device's own thread sets the kernel's arguments, so there are no
 * locks. */
struct built {
    const struct cox_variant *variant;
    cl_program program;
    cl_kernel kernel;
    size_t local[2];
};

struct slot;

/* A block of one slot's frame. */
struct block {
    struct slot *slot;
    uint32_t first_row, rows;
    starpu_data_handle_t handles[COX_BUFFERS_MAX];
    uint32_t origins[COX_BUFFERS_MAX]; /* the first buffer row of each binding's memory */
    uint32_t device;                    /* this and the times are those of its last task */
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
    struct built built[COX_DEVICES_MAX][COX_FUSED_MAX];
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

static cl_int set_args(const struct block *block, const struct cox_stage *stage, cl_kernel kernel,
                       void *interfaces[])
{
    const struct lab_dmda *dmda = block->slot->dmda;
    cl_int code = CL_SUCCESS;

    for (uint32_t a = 0; a < stage->arg_count && !code; a++) {
        const struct cox_arg *arg = &stage->args[a];
        cl_mem mem;
        cl_int number = 0;
        const void *value = &number;
        size_t bytes = sizeof number;

        switch (arg->kind) {
        case COX_ARG_KIND_BUFFER:
            mem = (cl_mem)STARPU_VECTOR_GET_DEV_HANDLE(interfaces[arg->index]);
            value = &mem;
            bytes = sizeof mem;
            break;
        case COX_ARG_KIND_PARAMS:
            value = (const char *)block->slot->frame->params + arg->offset;
            bytes = arg->bytes;
            break;
        case COX_ARG_KIND_LOCAL:
            value = NULL;
            bytes = arg->bytes;
            break;
        case COX_ARG_KIND_FIRST:
            number = (cl_int)block->first_row;
            break;
        case COX_ARG_KIND_ROWS:
            number = (cl_int)block->rows;
            break;
        case COX_ARG_KIND_FRAME:
            number = (cl_int)dmda->params.session->rows;
            break;
        case COX_ARG_KIND_ORIGIN:
            number = (cl_int)block->origins[arg->index];
            break;
        case COX_ARG_KIND_COLUMNS:
            number = (cl_int)at_least_1(stage->columns);
            break;
        case COX_ARG_KIND_IMAGE: /* no pipeline of the lab's has one */
            return CL_INVALID_ARG_VALUE;
        }

        code = clSetKernelArg(kernel, a, bytes, value);
    }

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

    for (uint32_t s = 0; s < dmda->params.session->stage_count; s++) {
        const struct cox_stage *stage = &dmda->params.session->stages[s];
        const struct built *built = &dmda->built[device][s];
        const size_t global[2] = {
            padded(at_least_1(stage->columns), built->variant->item_columns, built->local[0]),
            padded(block->rows, built->variant->item_rows, built->local[1])};
        cl_int code = set_args(block, stage, built->kernel, interfaces);

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
    return code == 0 || lab_refuse(why, why_bytes, "StarPU does not start: %s", strerror(-code));
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
            return lab_refuse(why, why_bytes, "StarPU does not know device %u, %s", d,
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

static int rank_of(const struct cox_variant *variant, uint32_t device, enum cox_device_type type)
{
    if (variant->device_plus_1)
        return variant->device_plus_1 == device + 1 ? 3 : 0;
    if ((int)variant->type == 0)
        return 1;
    return variant->type == type ? 2 : 0;
}

/* A variant for the device is preferred to one for its type, and that to a general one. */
static const struct cox_variant *variant_for(const struct cox_stage *stage, uint32_t device,
                                             enum cox_device_type type)
{
    const struct cox_variant *found = NULL;
    int rank = 0;

    for (uint32_t v = 0; v < stage->variant_count; v++) {
        const struct cox_variant *variant = &stage->variants[v];
        const int fits = rank_of(variant, device, type);

        if (fits > rank) {
            rank = fits;
            found = variant;
        }
    }
    return found;
}

/* As the library does it: box_downscale the group's longer side until the device accepts the size. */
static void choose_local(struct built *built, cl_device_id id)
{
    size_t most = 0;

    built->local[0] = at_least_1(built->variant->local_columns);
    built->local[1] = at_least_1(built->variant->local_rows);
    clGetKernelWorkGroupInfo(built->kernel, id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most,
                             NULL);

    while (most && built->local[0] * built->local[1] > most) {
        size_t *larger = &built->local[built->local[1] > built->local[0]];
        *larger = (*larger + 1) / 2;
    }
}

static bool build_stage(struct lab_dmda *dmda, uint32_t device, uint32_t s, char *why,
                        size_t why_bytes)
{
    const struct cox_stage *stage = &dmda->params.session->stages[s];
    const struct cox_device_info *info = &dmda->params.devices[device];
    struct built *built = &dmda->built[device][s];
    cl_context context;
    cl_device_id id;
    cl_int code;

    starpu_opencl_get_context(dmda->devids[device], &context);
    starpu_opencl_get_device(dmda->devids[device], &id);

    built->variant = variant_for(stage, device, info->type);
    if (!built->variant)
        return lab_refuse(why, why_bytes, "kernel %s has no variant for %s", stage->kernel,
                          info->name);

    const char *source = built->variant->source;
    built->program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    char *options = work_build_options(built->variant, dmda->params.arithmetic);
    if (!options)
        code = CL_OUT_OF_HOST_MEMORY;
    if (!code)
        code = clBuildProgram(built->program, 1, &id, options, NULL, NULL);
    free(options);

    if (!code)
        built->kernel = clCreateKernel(built->program, stage->kernel, &code);
    if (code)
        return lab_refuse(why, why_bytes, "kernel %s does not build for StarPU on %s: %d",
                          stage->kernel, info->name, code);

    choose_local(built, id);
    return true;
}

static bool build(struct lab_dmda *dmda, char *why, size_t why_bytes)
{
    for (uint32_t d = 0; d < dmda->params.device_count; d++)
        for (uint32_t s = 0; s < dmda->params.session->stage_count; s++)
            if (!build_stage(dmda, d, s, why, why_bytes))
                return false;
    return true;
}

static void describe_codelet(struct lab_dmda *dmda)
{
    const struct cox_session_params *session = dmda->params.session;

    snprintf(dmda->symbol, sizeof dmda->symbol, "cox_lab_%s", dmda->params.kernel);
    dmda->model = (struct starpu_perfmodel){.type = STARPU_HISTORY_BASED, .symbol = dmda->symbol};
    dmda->codelet = (struct starpu_codelet){.where = STARPU_OPENCL,
                                            .opencl_funcs = {launch},
                                            .opencl_flags = {STARPU_OPENCL_ASYNC},
                                            .nbuffers = (int)session->binding_count,
                                            .model = &dmda->model,
                                            .name = dmda->symbol};

    for (uint32_t b = 0; b < session->binding_count; b++)
        dmda->codelet.modes[b] = session->bindings[b].access == COX_READ ? STARPU_R : STARPU_W;
}

/* The limits of StarPU. */
static bool is_possible(const struct lab_dmda_params *params, char *why, size_t why_bytes)
{
    const struct cox_session_params *session = params->session;

    if (params->device_count > STARPU_MAXOPENCLDEVS)
        return lab_refuse(why, why_bytes, "StarPU was built for at most %d OpenCL devices",
                          STARPU_MAXOPENCLDEVS);
    if (session->binding_count > STARPU_NMAXBUFS)
        return lab_refuse(why, why_bytes, "StarPU was built for at most %d buffers of a task",
                          STARPU_NMAXBUFS);

    for (uint32_t d = 0; d < params->device_count; d++)
        if (params->devices[d].subdevice)
            return lab_refuse(why, why_bytes,
                              "device %u is a sub-device, and StarPU knows whole devices only", d);
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

    describe_codelet(dmda);
    if (!start_on_devices(dmda, why, why_bytes)) {
        free(dmda->slots);
        free(dmda);
        return false;
    }

    if (!build(dmda, why, why_bytes)) {
        lab_dmda_close(&dmda);
        return false;
    }

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
            for (uint32_t b = 0; b < dmda->params.session->binding_count; b++)
                starpu_data_unregister(dmda->slots[s].blocks[i].handles[b]);

    dmda->blocks = 0;
}

/* Register the buffer rows that a block touches, with its halo. The inputs of neighbours may
 * overlap, since only the host writes them. */
static void register_binding(struct block *block, uint32_t b)
{
    const struct cox_session_params *session = block->slot->dmda->params.session;
    const struct cox_binding *binding = &session->bindings[b];
    char *data = cox_buffer_data(block->slot->frame->buffers[b]);
    const uint32_t divisor = at_least_1(binding->row_divisor);
    const uint32_t halo = binding->contract == COX_HALO ? binding->halo_rows : 0;
    const uint32_t all = (session->rows + divisor - 1) / divisor;
    uint32_t first = block->first_row / divisor;
    uint32_t end = (block->first_row + block->rows + divisor - 1) / divisor + halo;

    if (binding->contract == COX_WHOLE) {
        starpu_vector_data_register(&block->handles[b], STARPU_MAIN_RAM, (uintptr_t)data,
                                    (uint32_t)binding->bytes, 1);
        return;
    }

    first = first > halo ? first - halo : 0;
    if (end > all)
        end = all;

    block->origins[b] = first;
    starpu_vector_data_register(&block->handles[b], STARPU_MAIN_RAM,
                                (uintptr_t)(data + first * binding->pitch_bytes), end - first,
                                binding->pitch_bytes);
}

static void register_block(struct block *block)
{
    const struct cox_session_params *session = block->slot->dmda->params.session;
    struct slot *slot = block->slot;

    for (uint32_t b = 0; b < session->binding_count; b++) {
        register_binding(block, b);
        if (session->bindings[b].access != COX_READ)
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

    for (uint32_t b = 0; b < dmda->params.session->binding_count; b++)
        if (dmda->params.session->bindings[b].contract == COX_REDUCE ||
            dmda->params.session->bindings[b].access == COX_READ_WRITE)
            return lab_refuse(why, why_bytes,
                              "partial results and buffers in place are not done with StarPU");

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
        for (uint32_t i = 0; i < s->params.session->stage_count; i++) {
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

    for (uint32_t b = 0; b < dmda->params.session->binding_count; b++)
        task->handles[b] = block->handles[b];

    if (device >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = dmda->workers[device];
    }
    return starpu_task_submit(task) == 0;
}

bool lab_dmda_submit(struct lab_dmda *dmda, uint64_t index, int device)
{
    const struct cox_session_params *session = dmda->params.session;
    struct slot *slot = &dmda->slots[index % dmda->params.slots];

    slot->submit_ns = now_ns();
    slot->arriving = slot->output_count; /* no lock: nothing of the slot is under way */

    for (uint32_t i = 0; i < dmda->blocks; i++)
        for (uint32_t b = 0; b < session->binding_count; b++)
            if (session->bindings[b].access == COX_READ) {
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

    *report = (struct cox_frame_report){.index = index,
                                        .status = atomic_load(&dmda->error) ? COX_E_DEVICE_LOST
                                                                            : COX_OK,
                                        .submit_ns = slot->submit_ns,
                                        .start_ns = slot->submit_ns,
                                        .end_ns = slot->end_ns,
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
