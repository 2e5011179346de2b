/* One device's part of a session: its queues, its kernels, and how a band becomes commands.
 *
 * Shared and mapped mode: one in-order queue. The band objects are mapped while the application owns the memory; a band
 * unmaps them, runs its kernels and maps them again. The last command's event stands for the band.
 *
 * Staged mode: three in-order queues on the device's own memory, for copying in, computing, copying out. The band is cut
 * into pieces; each piece's kernels wait for its copies and its copies out for the kernels, so that the three queues
 * overlap. The wait lists stay within one device.
 *
 * REDUCE bindings live in a small device buffer per lane in every mode: filled with zeros before, read afterwards.
 *
 * A lane carries one band at a time and owns all that the band needs, so that nothing is created per frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cl_internal.h"
#include "give_up.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { QUEUE_IN, QUEUE_COMPUTE, QUEUE_OUT, QUEUE_COUNT };
enum { PIECES_MAX = 8 };

/* A piece below this is not worth its enqueueing: three commands cost 45 us on an NVIDIA H200, 8 MB take 145 us to copy. */
#define PIECE_BYTES_MIN (8u << 20)

enum event_kind { EVENT_COPY_IN, EVENT_KERNEL, EVENT_COPY_OUT, EVENT_CLEAR };

struct lane {
    cl_mem mems[COX_BINDINGS_MAX];               /* staged: the band; REDUCE: the partial */
    cl_mem pieces[COX_BINDINGS_MAX][PIECES_MAX]; /* staged, ROWS: sub-buffers of mems, one per piece */
    void *partials[COX_BINDINGS_MAX];            /* REDUCE: where the partial is read to */
    struct cox__cl_object *objects[COX_BINDINGS_MAX];
    cl_event *events;
    unsigned char *kinds;
    uint32_t event_count;
    uint64_t submit_ns;
    bool failed;                       /* a command of the band under way has */
    struct cox__cl_callback *callback; /* of the band under way; NULL = none, or it goes without */
};

/* The last value of a kernel argument that is not a buffer: setting it again is not free. Buffers are always set, since a
 * new one may have the address of a released one. */
struct arg_memo {
    size_t bytes;
    unsigned char value[COX_PARAMS_MAX];
};

struct unit_stage {
    const struct cox_stage *stage;
    const struct cox_variant *variant;
    cl_program program;
    cl_kernel kernel;
    size_t local[2];
    struct arg_memo *memos;
};

struct cox__unit {
    struct cox__cl_backend *backend;
    struct cox__cl_device *device;
    uint32_t device_index;
    const struct cox__pipeline *pipeline;
    cl_context context; /* the group's, or its own */
    bool own_context;
    bool staged;
    bool hangs;     /* it did not answer while it was made */
    bool abandoned; /* by the engine, which may have seized it before */
    uint32_t piece_rows;
    uint32_t lane_count;
    uint32_t event_max;
    cl_command_queue queues[QUEUE_COUNT];
    struct cox__cl_queue *shared; /* the one to compute, with the band objects; owns it */
    struct unit_stage stages[COX_STAGES_MAX];
    struct lane *lanes;
};

static cox_status check(const struct cox__unit *unit, cl_int code, const char *call)
{
    return cox__cl_check(unit->backend->log, code, call, unit->device->info.name);
}

/* ---- creation ---- */

/* The variant's local size, halved where the device allows no such group and the kernel does not depend on it. Once chosen
 * it never changes. */
static cox_status choose_local(struct cox__unit *unit, struct unit_stage *made)
{
    const struct cox_device_info *info = &unit->device->info;
    size_t most = 0, required[3] = {0};
    cl_ulong local_bytes = 0;
    made->local[0] = made->variant->local_columns;
    made->local[1] = made->variant->local_rows;
    clGetKernelWorkGroupInfo(made->kernel, unit->device->id, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    clGetKernelWorkGroupInfo(made->kernel, unit->device->id, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required,
                             required, NULL);
    clGetKernelWorkGroupInfo(made->kernel, unit->device->id, CL_KERNEL_LOCAL_MEM_SIZE, sizeof local_bytes, &local_bytes,
                             NULL);
    if (required[0] && (required[0] != made->local[0] || required[1] != made->local[1] || required[2] != 1)) {
        cox__log(unit->backend->log, COX_LOG_ERROR, "%s: kernel %s requires groups of %zu x %zu x %zu, not %zu x %zu",
                 info->name, made->stage->kernel, required[0], required[1], required[2], made->local[0],
                 made->local[1]);
        return COX_E_INVALID;
    }
    bool free_choice = !required[0] && !local_bytes;
    for (uint32_t a = 0; a < made->stage->arg_count; a++)
        free_choice &= made->stage->args[a].kind != COX_ARG_KIND_LOCAL;
    size_t wanted = made->local[0] * made->local[1];
    while (free_choice && made->local[0] * made->local[1] > most && most) {
        size_t *larger = made->local[0] >= made->local[1] ? &made->local[0] : &made->local[1];
        *larger = (*larger + 1) / 2;
    }
    if (made->local[0] * made->local[1] > most) {
        cox__log(unit->backend->log, COX_LOG_WARN, "%s: kernel %s allows %zu work-items in a group, not %zu",
                 info->name, made->stage->kernel, most, wanted);
        return COX_E_UNSUPPORTED;
    }
    if (made->local[0] * made->local[1] != wanted)
        cox__log(unit->backend->log, COX_LOG_INFO, "%s: kernel %s runs in groups of %zu x %zu", info->name,
                 made->stage->kernel, made->local[0], made->local[1]);
    return COX_OK;
}

/* Sizes that do not fit would end every band. What a value means only the kernel's author knows. */
static cox_status check_args(const struct cox__unit *unit, const struct unit_stage *made)
{
    static const unsigned char zeros[COX_PARAMS_MAX];
    cl_mem none = NULL;
    for (uint32_t a = 0; a < made->stage->arg_count; a++) {
        const struct cox_arg *arg = &made->stage->args[a];
        const void *value = zeros;
        const char *what = "an int";
        size_t bytes = sizeof(cl_int);
        if (arg->kind == COX_ARG_KIND_BUFFER) {
            value = &none, what = "a buffer", bytes = sizeof none;
        } else if (arg->kind == COX_ARG_KIND_LOCAL) {
            value = NULL, what = "local memory", bytes = arg->bytes;
        } else if (arg->kind == COX_ARG_KIND_PARAMS) {
            what = "a parameter", bytes = arg->bytes;
        }
        cl_int code = clSetKernelArg(made->kernel, a, bytes, value);
        /* A driver may find fault with no buffer where one belongs. */
        if (arg->kind == COX_ARG_KIND_BUFFER ? code == CL_INVALID_ARG_SIZE : code != CL_SUCCESS) {
            cox__log(unit->backend->log, COX_LOG_ERROR, "%s: kernel %s does not take %s (%zu bytes) as argument %u",
                     unit->device->info.name, made->stage->kernel, what, bytes, a);
            return COX_E_INVALID;
        }
    }
    return COX_OK;
}

static cox_status make_kernel(struct cox__unit *unit, struct unit_stage *made)
{
    const struct cox__log *log = unit->backend->log;
    const struct cox_device_info *info = &unit->device->info;
    made->variant = cox__stage_variant(made->stage, unit->device_index, info->type);
    if (!made->variant) {
        cox__log(log, COX_LOG_WARN, "%s: kernel %s has no variant for a %s", info->name, made->stage->kernel,
                 cox_device_type_name(info->type));
        return COX_E_UNSUPPORTED;
    }
    cox_status status = cox__cl_build(unit->backend, unit->device_index, unit->context, made->variant->source,
                                      made->variant->options, &made->program);
    if (status)
        return status;
    cl_int code;
    made->kernel = clCreateKernel(made->program, made->stage->kernel, &code);
    if (code == CL_INVALID_KERNEL_NAME) {
        cox__log(log, COX_LOG_ERROR, "%s: there is no kernel %s in its source", info->name, made->stage->kernel);
        made->kernel = NULL;
        return COX_E_BUILD;
    }
    status = check(unit, code, "clCreateKernel");
    if (status) {
        made->kernel = NULL;
        return status;
    }
    cl_uint args = 0;
    clGetKernelInfo(made->kernel, CL_KERNEL_NUM_ARGS, sizeof args, &args, NULL);
    if (args != made->stage->arg_count) {
        cox__log(log, COX_LOG_ERROR, "kernel %s takes %u arguments, the stage gives %u", made->stage->kernel, args,
                 made->stage->arg_count);
        return COX_E_INVALID;
    }
    status = check_args(unit, made);
    if (status)
        return status;
    status = choose_local(unit, made);
    if (status)
        return status;
    made->memos = calloc(made->stage->arg_count ? made->stage->arg_count : 1, sizeof *made->memos);
    return made->memos ? COX_OK : COX_E_NOMEM;
}

/* Most rows of one band that the device can hold in single allocations. */
static uint32_t rows_bound(const struct cox__unit *unit)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    uint64_t most = unit->device->info.max_alloc_bytes, bound = pipeline->rows;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (cox__binding_bytes(pipeline, i) <= most)
            continue;
        if (!cox__by_rows(binding))
            return 0;
        uint64_t fit = most / binding->pitch_bytes;
        uint64_t extra = binding->contract == COX_HALO ? 2ull * binding->halo_rows + pipeline->granule : 0;
        uint64_t rows = fit > extra ? (fit - extra) * binding->row_divisor : 0;
        bound = rows < bound ? rows : bound;
    }
    return bound == pipeline->rows ? (uint32_t)bound : (uint32_t)(bound - bound % pipeline->granule);
}

static size_t staged_bytes(const struct cox__pipeline *pipeline, uint32_t index, uint32_t rows)
{
    const struct cox_binding *binding = &pipeline->bindings[index];
    if (!cox__by_rows(binding))
        return binding->bytes;
    size_t count = rows / binding->row_divisor + (rows % binding->row_divisor != 0);
    if (binding->contract == COX_HALO)
        count += 2 * (size_t)binding->halo_rows + pipeline->granule;
    size_t all = cox__binding_bytes(pipeline, index);
    return count < all / binding->pitch_bytes ? count * binding->pitch_bytes : all;
}

static void free_lane_mems(struct lane *lane)
{
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++) {
        for (uint32_t p = 0; p < PIECES_MAX; p++)
            if (lane->pieces[i][p]) {
                clReleaseMemObject(lane->pieces[i][p]);
                lane->pieces[i][p] = NULL;
            }
        if (lane->mems[i]) {
            clReleaseMemObject(lane->mems[i]);
            lane->mems[i] = NULL;
        }
    }
}

static cl_int make_pieces(struct cox__unit *unit, struct lane *lane, uint32_t index, uint32_t max_rows)
{
    const struct cox_binding *binding = &unit->pipeline->bindings[index];
    size_t all = staged_bytes(unit->pipeline, index, max_rows);
    uint32_t divisor = binding->row_divisor;
    size_t step = ((size_t)unit->piece_rows + divisor - 1) / divisor * binding->pitch_bytes;
    cl_int code = CL_SUCCESS;
    for (uint32_t p = 0; p < PIECES_MAX && code == CL_SUCCESS && p * step < all; p++) {
        const cl_buffer_region region = {.origin = p * step, .size = all - p * step < step ? all - p * step : step};
        lane->pieces[index][p] = clCreateSubBuffer(lane->mems[index], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    }
    return code;
}

/* Device memory of one lane, touched once: some drivers allocate at first use, and the frame loop is no place to find
 * out that it does not fit. */
static cl_int make_lane_mems(struct cox__unit *unit, struct lane *lane, uint32_t max_rows)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    const cl_uint zero = 0;
    cl_int code = CL_SUCCESS;
    for (uint32_t i = 0; i < pipeline->binding_count && code == CL_SUCCESS; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        if (!unit->staged && binding->contract != COX_REDUCE)
            continue;
        cl_mem_flags flags = binding->access == COX_READ ? CL_MEM_READ_ONLY : CL_MEM_READ_WRITE;
        size_t bytes = (staged_bytes(pipeline, i, max_rows) + 3) / 4 * 4;
        lane->mems[i] = clCreateBuffer(unit->context, flags, bytes, NULL, &code);
        if (code)
            lane->mems[i] = NULL;
        else
            code = clEnqueueFillBuffer(unit->queues[QUEUE_COMPUTE], lane->mems[i], &zero, sizeof zero, 0, sizeof zero,
                                       0, NULL, NULL);
        if (code == CL_SUCCESS && unit->staged && binding->contract == COX_ROWS)
            code = make_pieces(unit, lane, i, max_rows);
    }
    /* What was begun ends before it is released. */
    const cl_int end = cox__cl_drain(unit->queues[QUEUE_COMPUTE], unit->shared, COX__CL_PATIENCE_NS);
    return code == CL_SUCCESS || end == COX__CL_NOT_IN_TIME ? end : code;
}

static size_t frame_bytes(const struct cox__pipeline *pipeline)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        bytes += cox__by_rows(&pipeline->bindings[i]) ? cox__binding_bytes(pipeline, i) : 0;
    return bytes;
}

/* Rows of a piece: PIECES_MAX pieces for the largest band, unless they would be too small. */
static uint32_t choose_piece_rows(const struct cox__pipeline *pipeline, uint32_t max_rows)
{
    uint64_t rows = (max_rows + PIECES_MAX - 1) / PIECES_MAX;
    size_t per_row = frame_bytes(pipeline) / pipeline->rows + 1;
    if (rows * per_row < PIECE_BYTES_MIN)
        rows = PIECE_BYTES_MIN / per_row + 1;
    rows = (rows + pipeline->granule - 1) / pipeline->granule * pipeline->granule;
    return rows < max_rows ? (uint32_t)rows : max_rows;
}

static cox_status make_memory(struct cox__unit *unit, uint32_t *max_rows)
{
    uint32_t granule = unit->pipeline->granule;
    for (uint32_t rows = rows_bound(unit); rows >= granule || rows == unit->pipeline->rows;) {
        unit->piece_rows = unit->staged ? choose_piece_rows(unit->pipeline, rows) : rows;
        cl_int code = CL_SUCCESS;
        for (uint32_t l = 0; l < unit->lane_count && code == CL_SUCCESS; l++)
            code = make_lane_mems(unit, &unit->lanes[l], rows);
        if (code == CL_SUCCESS) {
            *max_rows = rows;
            return COX_OK;
        }
        if (code == COX__CL_NOT_IN_TIME) {
            cox__log(unit->backend->log, COX_LOG_WARN, "%s does not answer", unit->device->info.name);
            unit->hangs = true;
            return COX_E_DEVICE_LOST;
        }
        for (uint32_t l = 0; l < unit->lane_count; l++)
            free_lane_mems(&unit->lanes[l]);
        if (!unit->staged)
            return check(unit, code, "clCreateBuffer");
        cox__log(unit->backend->log, COX_LOG_INFO, "%s: bands of %u rows do not fit (%s); trying half",
                 unit->device->info.name, rows, cox__cl_error_name(code));
        rows = rows / 2 / granule * granule;
        if (!rows)
            break;
    }
    cox__log(unit->backend->log, COX_LOG_WARN, "%s: too little memory for this frame's shape", unit->device->info.name);
    return COX_E_DEVICE_MEMORY;
}

static cox_status make_lane(struct cox__unit *unit, struct lane *lane)
{
    lane->events = calloc(unit->event_max, sizeof *lane->events);
    lane->kinds = calloc(unit->event_max, 1);
    if (!lane->events || !lane->kinds)
        return COX_E_NOMEM;
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++)
        if (unit->pipeline->bindings[i].contract == COX_REDUCE &&
            !(lane->partials[i] = calloc(1, unit->pipeline->bindings[i].bytes)))
            return COX_E_NOMEM;
    return COX_OK;
}

static cox_status make_queues(struct cox__unit *unit)
{
    for (int q = 0; q < QUEUE_COUNT; q++) {
        if (!unit->staged && q != QUEUE_COMPUTE)
            continue;
        cl_int code;
        unit->queues[q] = clCreateCommandQueue(unit->context, unit->device->id, CL_QUEUE_PROFILING_ENABLE, &code);
        cox_status status = check(unit, code, "clCreateCommandQueue");
        if (status) {
            unit->queues[q] = NULL;
            return status;
        }
    }
    const struct cox__cl_group *group = &unit->backend->groups[unit->device->group];
    unit->shared = cox__cl_queue_new(unit->queues[QUEUE_COMPUTE], unit->context,
                                     !unit->own_context && unit->device->info.mode == COX_MODE_SHARED &&
                                         group->subbuffers);
    return unit->shared ? COX_OK : COX_E_NOMEM;
}

/* The group's, which shared mode needs; a device that was lost on it gets one of its own. */
static cox_status make_context(struct cox__unit *unit, bool fresh)
{
    unit->context = unit->backend->groups[unit->device->group].context;
    if (!fresh)
        return COX_OK;
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)unit->device->platform, 0};
    cl_bool available = CL_TRUE;
    cl_int code = clGetDeviceInfo(unit->device->id, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL);
    if (code == CL_SUCCESS && !available)
        code = CL_DEVICE_NOT_AVAILABLE;
    if (code)
        return check(unit, code, "clGetDeviceInfo");
    unit->context = clCreateContext(properties, 1, &unit->device->id, NULL, NULL, &code);
    unit->own_context = code == CL_SUCCESS;
    return check(unit, code, "clCreateContext");
}

cox_status cox__cl_unit_create(struct cox__backend *base, uint32_t device, const struct cox__pipeline *pipeline,
                               uint32_t lanes, bool fresh, struct cox__unit **out, uint32_t *max_rows)
{
    struct cox__cl_backend *backend = (struct cox__cl_backend *)base;
    cox_status status = COX_E_NOMEM;
    struct cox__unit *unit = calloc(1, sizeof *unit);
    if (!unit)
        return status;
    unit->backend = backend;
    unit->device = &backend->devices[device];
    unit->device_index = device;
    unit->pipeline = pipeline;
    unit->staged = unit->device->info.mode == COX_MODE_STAGED;
    unit->event_max = PIECES_MAX * (pipeline->stage_count + 2 * pipeline->binding_count);
    if (fresh)
        atomic_store(&unit->device->lost, true);
    unit->lanes = calloc(lanes, sizeof *unit->lanes);
    if (!unit->lanes)
        goto fail;
    unit->lane_count = lanes;
    for (uint32_t l = 0; l < lanes; l++) {
        status = make_lane(unit, &unit->lanes[l]);
        if (status)
            goto fail;
    }
    status = make_context(unit, atomic_load(&unit->device->lost));
    if (status)
        goto fail;
    for (uint32_t s = 0; s < pipeline->stage_count; s++) {
        unit->stages[s].stage = &pipeline->stages[s];
        status = make_kernel(unit, &unit->stages[s]);
        if (status)
            goto fail;
    }
    status = make_queues(unit);
    if (status)
        goto fail;
    status = make_memory(unit, max_rows);
    if (status)
        goto fail;
    *out = unit;
    return COX_OK;

fail:
    if (unit->hangs) { /* for ever, as far as anybody is going to know */
        cox__cl_hangs(backend, device, unit->shared);
        cox__give_up(unit);
    } else {
        cox__cl_unit_destroy(base, unit);
    }
    return status;
}

/* Whether a command has ended: by what its driver says, unless that says nothing but errors. */
static bool is_over(cl_event event, bool *silent)
{
    cl_int state = CL_QUEUED;
    *silent = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) != CL_SUCCESS;
    return !*silent && state <= CL_COMPLETE;
}

/* For as long as it takes: the only proof that a device does not hang any more is that all it had to do has ended. One that
 * answers nothing but errors for a while has no more to do. */
static void outwait(struct cox__unit *unit)
{
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 10000000};
    for (uint32_t l = 0; l < unit->lane_count; l++) {
        struct lane *lane = &unit->lanes[l];
        uint64_t since_ns = 0;
        while (lane->event_count) {
            bool silent;
            if (is_over(lane->events[lane->event_count - 1], &silent)) {
                clReleaseEvent(lane->events[--lane->event_count]);
                since_ns = 0;
                continue;
            }
            const uint64_t now = cox__clock_ns();
            since_ns = !silent ? 0 : since_ns ? since_ns : now;
            if (silent && now - since_ns > COX__CL_LITTLE_PATIENCE_NS)
                break;
            nanosleep(&pause, NULL);
        }
    }
}

static void destroy_stage(struct unit_stage *stage)
{
    if (stage->kernel)
        clReleaseKernel(stage->kernel);
    if (stage->program)
        clReleaseProgram(stage->program);
    free(stage->memos);
}

/* An abandoned unit may outlive its session and so its pipeline, which is not looked at here. */
void cox__cl_unit_destroy(struct cox__backend *base, struct cox__unit *unit)
{
    (void)base;
    if (unit->abandoned) {
        outwait(unit);
        cox__cl_hangs_no_more(unit->backend, unit->device_index, unit->shared);
    }
    for (uint32_t l = 0; l < unit->lane_count; l++) {
        struct lane *lane = &unit->lanes[l];
        cox__cl_callback_disarm(lane->callback);
        free_lane_mems(lane);
        for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
            free(lane->partials[i]);
        free(lane->events);
        free(lane->kinds);
    }
    for (uint32_t s = 0; s < COX_STAGES_MAX; s++)
        destroy_stage(&unit->stages[s]);
    for (int q = 0; q < QUEUE_COUNT; q++)
        if (unit->queues[q] && !(unit->shared && q == QUEUE_COMPUTE))
            clReleaseCommandQueue(unit->queues[q]);
    if (unit->shared)
        cox__cl_queue_unref(unit->shared);
    if (unit->own_context)
        clReleaseContext(unit->context);
    free(unit->lanes);
    free(unit);
}

static void forget_job(struct lane *lane)
{
    cox__cl_callback_disarm(lane->callback);
    lane->callback = NULL;
    for (uint32_t i = 0; i < COX_BINDINGS_MAX; i++)
        if (lane->objects[i]) {
            cox__cl_object_put(lane->objects[i]);
            lane->objects[i] = NULL;
        }
}

/* Touches nothing that a job_* function, in whose midst a thread is, looks at. */
void cox__cl_unit_seize(struct cox__backend *base, struct cox__unit *unit)
{
    if (unit->abandoned)
        return;
    unit->abandoned = true;
    atomic_store(&unit->device->lost, true);
    cox__cl_hangs((struct cox__cl_backend *)base, unit->device_index, unit->shared);
}

/* The events stay: its destruction asks them. */
void cox__cl_unit_abandon(struct cox__backend *base, struct cox__unit *unit)
{
    for (uint32_t l = 0; l < unit->lane_count; l++)
        forget_job(&unit->lanes[l]);
    cox__cl_unit_seize(base, unit);
}

/* ---- commands of a band ---- */

static cl_event *new_event(struct lane *lane, enum event_kind kind)
{
    lane->kinds[lane->event_count] = (unsigned char)kind;
    return &lane->events[lane->event_count++];
}

static cl_event newest(const struct lane *lane)
{
    return lane->events[lane->event_count - 1];
}

static cl_int set_arg(struct unit_stage *stage, cl_uint index, size_t bytes, const void *value)
{
    struct arg_memo *memo = &stage->memos[index];
    if (!value)
        return memo->bytes == bytes ? CL_SUCCESS
                                    : (memo->bytes = bytes, clSetKernelArg(stage->kernel, index, bytes, NULL));
    if (memo->bytes == bytes && memcmp(memo->value, value, bytes) == 0)
        return CL_SUCCESS;
    memo->bytes = bytes;
    memcpy(memo->value, value, bytes);
    return clSetKernelArg(stage->kernel, index, bytes, value);
}

/* What a kernel launch is about: the whole band, or one piece of it. */
struct launch {
    const struct cox__job *job;
    struct lane *lane;
    uint32_t first_row;
    uint32_t rows;
    const cl_mem *mems;      /* per binding */
    const uint32_t *origins; /* per binding: buffer row at which its memory begins */
};

static cl_int set_args(struct unit_stage *stage, const struct launch *launch, uint32_t frame_rows)
{
    for (uint32_t a = 0; a < stage->stage->arg_count; a++) {
        const struct cox_arg *arg = &stage->stage->args[a];
        cl_int number = 0, code;
        switch (arg->kind) {
        case COX_ARG_KIND_BUFFER:
            code = clSetKernelArg(stage->kernel, a, sizeof(cl_mem), &launch->mems[arg->index]);
            break;
        case COX_ARG_KIND_PARAMS:
            code = set_arg(stage, a, arg->bytes, (const char *)launch->job->params + arg->offset);
            break;
        case COX_ARG_KIND_LOCAL:
            code = set_arg(stage, a, arg->bytes, NULL);
            break;
        default:
            number = (cl_int)(arg->kind == COX_ARG_KIND_FIRST    ? launch->first_row
                              : arg->kind == COX_ARG_KIND_ROWS   ? launch->rows
                              : arg->kind == COX_ARG_KIND_FRAME  ? frame_rows
                              : arg->kind == COX_ARG_KIND_ORIGIN ? launch->origins[arg->index]
                                                                 : stage->stage->columns);
            code = set_arg(stage, a, sizeof number, &number);
        }
        if (code)
            return code;
    }
    return CL_SUCCESS;
}

static size_t padded(uint32_t count, uint32_t per_item, size_t local)
{
    size_t items = ((size_t)count + per_item - 1) / per_item;
    return (items + local - 1) / local * local;
}

/* Every stage over the launch's rows; the first waits for `after`. */
static cox_status run_stages(struct cox__unit *unit, const struct launch *launch, cl_event after)
{
    for (uint32_t s = 0; s < unit->pipeline->stage_count; s++) {
        struct unit_stage *stage = &unit->stages[s];
        const struct cox_variant *variant = stage->variant;
        const size_t *local = stage->local;
        const size_t global[2] = {padded(stage->stage->columns, variant->item_columns, local[0]),
                                  padded(launch->rows, variant->item_rows, local[1])};
        cl_int code = set_args(stage, launch, unit->pipeline->rows);
        if (code)
            return check(unit, code, "clSetKernelArg");
        bool wait = after && s == 0;
        cl_event event;
        code = clEnqueueNDRangeKernel(unit->queues[QUEUE_COMPUTE], stage->kernel, 2, NULL, global, local, wait ? 1 : 0,
                                      wait ? &after : NULL, &event);
        if (code)
            return check(unit, code, "clEnqueueNDRangeKernel");
        *new_event(launch->lane, EVENT_KERNEL) = event;
    }
    return COX_OK;
}

static cox_status clear_partials(struct cox__unit *unit, struct lane *lane, cl_mem *mems)
{
    const cl_uchar zero = 0;
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++) {
        const struct cox_binding *binding = &unit->pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        mems[i] = lane->mems[i];
        cl_event event; /* a failure of this command would show nowhere else */
        cl_int code = clEnqueueFillBuffer(unit->queues[QUEUE_COMPUTE], mems[i], &zero, 1, 0, binding->bytes, 0, NULL,
                                          &event);
        if (code)
            return check(unit, code, "clEnqueueFillBuffer");
        *new_event(lane, EVENT_CLEAR) = event;
    }
    return COX_OK;
}

static cox_status read_partials(struct cox__unit *unit, struct lane *lane, cl_command_queue queue)
{
    bool across = queue != unit->queues[QUEUE_COMPUTE];
    cl_event after = newest(lane);
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++) {
        const struct cox_binding *binding = &unit->pipeline->bindings[i];
        if (binding->contract != COX_REDUCE)
            continue;
        cl_event event;
        cl_int code = clEnqueueReadBuffer(queue, lane->mems[i], CL_FALSE, 0, binding->bytes, lane->partials[i],
                                          across ? 1 : 0, across ? &after : NULL, &event);
        if (code)
            return check(unit, code, "clEnqueueReadBuffer");
        *new_event(lane, EVENT_COPY_OUT) = event;
    }
    return COX_OK;
}

/* Where a buffer row begins in a binding's memory. */
static size_t row_offset(const struct cox_binding *binding, uint32_t row)
{
    return cox__by_rows(binding) ? (size_t)row * binding->pitch_bytes : 0;
}

/* ---- shared and mapped mode ---- */

static cox_status unmap_objects(struct cox__unit *unit, struct cox__job *job, struct lane *lane, cl_mem *mems,
                                uint32_t *origins)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        uint32_t first = 0, count = 0;
        if (binding->contract == COX_REDUCE)
            continue;
        if (cox__by_rows(binding))
            cox__binding_rows(pipeline, i, job->first_row, job->rows, &first, &count);
        size_t bytes = cox__by_rows(binding) ? count * binding->pitch_bytes : binding->bytes;
        const enum cox_access access = job->preserve && binding->access == COX_WRITE ? COX_READ_WRITE : binding->access;
        struct cox__cl_object *object = cox__cl_object_get(unit->backend, job->mems[i], unit->device_index, access,
                                                           binding->contract == COX_ROWS, row_offset(binding, first),
                                                           bytes, unit->shared);
        if (!object)
            return COX_E_DEVICE_MEMORY;
        lane->objects[i] = object;
        mems[i] = object->mem;
        origins[i] = first;
    }
    return COX_OK;
}

static cox_status map_objects(struct cox__unit *unit, struct lane *lane)
{
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++) {
        struct cox__cl_object *object = lane->objects[i];
        if (!object)
            continue;
        cl_event event;
        cl_int code = cox__cl_object_map(object, &event);
        if (code)
            return check(unit, code, "clEnqueueMapBuffer");
        *new_event(lane, EVENT_COPY_OUT) = event;
    }
    return COX_OK;
}

static cox_status submit_direct(struct cox__unit *unit, struct cox__job *job, struct lane *lane)
{
    cl_mem mems[COX_BINDINGS_MAX] = {0};
    uint32_t origins[COX_BINDINGS_MAX] = {0};
    const struct launch launch = {
        .job = job, .lane = lane, .first_row = job->first_row, .rows = job->rows, .mems = mems, .origins = origins};
    cox_status status = unmap_objects(unit, job, lane, mems, origins);
    if (status == COX_OK)
        status = clear_partials(unit, lane, mems);
    if (status == COX_OK)
        status = run_stages(unit, &launch, NULL);
    if (status == COX_OK)
        status = map_objects(unit, lane);
    if (status == COX_OK)
        status = read_partials(unit, lane, unit->queues[QUEUE_COMPUTE]);
    return status;
}

/* ---- staged mode ---- */

/* Rows of a binding's host memory to or from the lane's device memory, which begins at buffer row `origin`. */
static cox_status copy(struct cox__unit *unit, struct cox__job *job, struct lane *lane, uint32_t index, bool in,
                       uint32_t origin, uint32_t first, uint32_t count, cl_event after)
{
    const struct cox_binding *binding = &unit->pipeline->bindings[index];
    size_t bytes = cox__by_rows(binding) ? count * binding->pitch_bytes : binding->bytes;
    size_t there = row_offset(binding, first - origin);
    char *here = (char *)job->mems[index]->data + row_offset(binding, first);
    cl_event event;
    cl_int code = in ? clEnqueueWriteBuffer(unit->queues[QUEUE_IN], lane->mems[index], CL_FALSE, there, bytes, here, 0,
                                            NULL, &event)
                     : clEnqueueReadBuffer(unit->queues[QUEUE_OUT], lane->mems[index], CL_FALSE, there, bytes, here,
                                           after ? 1 : 0, after ? &after : NULL, &event);
    if (code)
        return check(unit, code, in ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
    *new_event(lane, in ? EVENT_COPY_IN : EVENT_COPY_OUT) = event;
    return COX_OK;
}

/* State of a band on its way through the pieces. */
struct staging {
    cl_mem mems[COX_BINDINGS_MAX];
    uint32_t origins[COX_BINDINGS_MAX];      /* of the piece, for the kernel */
    uint32_t band_origins[COX_BINDINGS_MAX]; /* of the band: where the lane's memory begins */
    uint32_t band_counts[COX_BINDINGS_MAX];  /* and how many buffer rows of it the band touches */
};

/* Copy in what a piece needs: its own rows; the first one also all that is not cut into pieces (HALO, WHOLE), since a kernel
 * reads those buffers as a whole. */
static cox_status copy_piece_in(struct cox__unit *unit, struct cox__job *job, struct lane *lane, struct staging *state,
                                uint32_t first_row, uint32_t rows, uint32_t piece)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        const struct cox_binding *binding = &pipeline->bindings[i];
        uint32_t first = state->band_origins[i], count = state->band_counts[i];
        bool cut = binding->contract == COX_ROWS;
        if (binding->contract == COX_REDUCE)
            continue;
        if (cut)
            cox__binding_rows(pipeline, i, first_row, rows, &first, &count);
        state->mems[i] = cut ? lane->pieces[i][piece] : lane->mems[i];
        state->origins[i] = first;
        if ((binding->access == COX_WRITE && !job->preserve) || (!cut && piece > 0))
            continue;
        cox_status status = copy(unit, job, lane, i, true, state->band_origins[i], first, count, NULL);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status copy_piece_out(struct cox__unit *unit, struct cox__job *job, struct lane *lane,
                                 const struct staging *state, uint32_t first_row, uint32_t rows)
{
    const struct cox__pipeline *pipeline = unit->pipeline;
    cl_event after = newest(lane);
    for (uint32_t i = 0; i < pipeline->binding_count; i++) {
        if (pipeline->bindings[i].contract != COX_ROWS || pipeline->bindings[i].access == COX_READ)
            continue;
        uint32_t first, count;
        cox__binding_rows(pipeline, i, first_row, rows, &first, &count);
        cox_status status = copy(unit, job, lane, i, false, state->band_origins[i], first, count, after);
        if (status)
            return status;
    }
    return COX_OK;
}

static cox_status submit_staged(struct cox__unit *unit, struct cox__job *job, struct lane *lane)
{
    struct staging state = {0};
    for (uint32_t i = 0; i < unit->pipeline->binding_count; i++)
        if (cox__by_rows(&unit->pipeline->bindings[i]))
            cox__binding_rows(unit->pipeline, i, job->first_row, job->rows, &state.band_origins[i],
                              &state.band_counts[i]);
    cox_status status = clear_partials(unit, lane, state.mems);
    for (uint32_t done = 0, piece = 0; status == COX_OK && done < job->rows; piece++) {
        uint32_t rows = job->rows - done < unit->piece_rows ? job->rows - done : unit->piece_rows;
        const struct launch launch = {.job = job,
                                      .lane = lane,
                                      .first_row = job->first_row + done,
                                      .rows = rows,
                                      .mems = state.mems,
                                      .origins = state.origins};
        uint32_t before = lane->event_count;
        status = copy_piece_in(unit, job, lane, &state, launch.first_row, rows, piece);
        if (status == COX_OK)
            status = run_stages(unit, &launch, lane->event_count > before ? newest(lane) : NULL);
        if (status == COX_OK)
            status = copy_piece_out(unit, job, lane, &state, launch.first_row, rows);
        done += rows;
    }
    return status == COX_OK ? read_partials(unit, lane, unit->queues[QUEUE_OUT]) : status;
}

/* ---- submission and completion ---- */

static void clear_lane(struct lane *lane)
{
    forget_job(lane);
    for (uint32_t e = 0; e < lane->event_count; e++)
        clReleaseEvent(lane->events[e]);
    lane->event_count = 0;
    lane->failed = false;
}

cox_status cox__cl_job_submit(struct cox__backend *base, struct cox__job *job)
{
    struct cox__unit *unit = job->unit;
    struct lane *lane = &unit->lanes[job->lane];
    job->failing = false;
    lane->submit_ns = cox__clock_ns();
    cox_status status = unit->staged ? submit_staged(unit, job, lane) : submit_direct(unit, job, lane);
    if (status == COX_OK) {
        lane->callback = cox__cl_callback_arm(unit->backend, newest(lane), job, unit->device->info.name);
        return COX_OK;
    }
    cox__cl_queue_failed(unit->shared);
    cox__cl_unit_flush(base, unit);
    if (lane->event_count) { /* what was enqueued runs: a band that fails, and not before that has ended */
        lane->failed = job->failing = true;
        return COX_OK;
    }
    clear_lane(lane);
    return status;
}

/* What was enqueued on a queue that cannot be flushed may never begin: each band under way fails, once its commands have ended
 * or the engine has waited for long enough. */
void cox__cl_unit_flush(struct cox__backend *base, struct cox__unit *unit)
{
    (void)base;
    cl_int code = CL_SUCCESS;
    for (int q = 0; q < QUEUE_COUNT; q++)
        if (unit->queues[q]) {
            const cl_int one = clFlush(unit->queues[q]);
            code = code ? code : one;
        }
    if (!code)
        return;
    check(unit, code, "clFlush");
    cox__cl_queue_failed(unit->shared);
    for (uint32_t l = 0; l < unit->lane_count; l++)
        unit->lanes[l].failed |= unit->lanes[l].event_count > 0;
}

/* Time from start to end of a command. False for one that ends before it starts, starts before it was enqueued, or took longer
 * than the band did by the host's clock. */
static bool profile_one(cl_event event, uint64_t most_ns, uint64_t *ns)
{
    cl_ulong queued = 0, start = 0, end = 0;
    if (clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL) ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL) ||
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL))
        return false;
    if (!start || start < queued || end < start || end - start > most_ns)
        return false;
    *ns = end - start;
    return true;
}

/* Sum over the events of a kind, which one queue runs one after the other. 0 if there are none, or it makes no sense. */
static uint64_t profile(const struct lane *lane, enum event_kind kind, uint64_t most_ns)
{
    uint64_t sum = 0;
    for (uint32_t e = 0; e < lane->event_count; e++) {
        uint64_t ns;
        if (lane->kinds[e] != kind)
            continue;
        if (!profile_one(lane->events[e], most_ns - sum, &ns))
            return 0;
        sum += ns;
    }
    return sum;
}

/* Whether all commands of the lane's band have ended, and `*newest_ended` the last of them; notes if one of them failed. One that the
 * driver says nothing about may still be running. */
static bool ended(struct cox__unit *unit, struct lane *lane, bool *newest_ended)
{
    bool all = true;
    *newest_ended = false;
    for (uint32_t e = lane->event_count; e-- > 0;) {
        cl_int state = CL_QUEUED;
        cl_int code = clGetEventInfo(lane->events[e], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if ((code || state < 0) && !lane->failed) {
            cox__cl_check(unit->backend->log, code ? code : state, code ? "clGetEventInfo" : "a command of a band",
                          unit->device->info.name);
            cox__cl_queue_failed(unit->shared);
            lane->failed = true;
        }
        const bool over = !code && state <= CL_COMPLETE;
        *newest_ended |= over && e + 1 == lane->event_count;
        all &= over;
    }
    return all;
}

enum cox__job_state cox__cl_job_poll(struct cox__backend *base, struct cox__job *job)
{
    (void)base;
    struct cox__unit *unit = job->unit;
    struct lane *lane = &unit->lanes[job->lane];
    const uint64_t told_ns = cox__cl_callback_end_ns(lane->callback); /* before the device is asked */
    bool newest_ended;
    if (!ended(unit, lane, &newest_ended)) {
        if (told_ns)
            cox__cl_callback_was_early(lane->callback, told_ns, !newest_ended);
        job->failing = lane->failed;
        return COX__JOB_RUNNING;
    }
    if (lane->failed) {
        job->failing = true;
        clear_lane(lane);
        return COX__JOB_FAILED;
    }
    const uint64_t now = cox__clock_ns(), most_ns = now - lane->submit_ns;
    job->end_ns = told_ns ? told_ns : now;
    job->kernel_ns = profile(lane, EVENT_KERNEL, most_ns);
    job->copy_in_ns = unit->staged ? profile(lane, EVENT_COPY_IN, most_ns) : 0;
    job->copy_out_ns = unit->staged ? profile(lane, EVENT_COPY_OUT, most_ns) : 0;
    clear_lane(lane);
    return COX__JOB_DONE;
}

const void *cox__cl_job_partial(struct cox__backend *base, struct cox__job *job, uint32_t binding)
{
    (void)base;
    return job->unit->lanes[job->lane].partials[binding];
}
