/* What the OpenCL backend makes of drivers that lie, fail and hang: its operations called directly, without an engine.
 * The calls at fault are this program's own, in front of the loader's.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "opencl/backend.h"
#include "host/leak.h"
#include "engine/pipeline.h"

#include <CL/cl.h>
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

TestSuite(cl_instances, .timeout = 600);

enum { ROWS = 64, COLUMNS = 1024, BYTES = ROWS * COLUMNS * 4, QUEUES_MAX = 64, KEPT_MAX = 256 };

#define NEXT(name)                 \
    static __typeof__(&name) next; \
    if (!next)                     \
    *(void **)&next = dlsym(RTLD_NEXT, #name)

/* ---- faults ---- */

/* Queues in the order of their making; those of an instance are a range. */
static cl_command_queue queues[QUEUES_MAX];
static uint32_t queue_count;
static _Atomic uint32_t hung_first, hung_end; /* these: their events run for ever */
static _Atomic uint32_t asked_of_hung;        /* what may block was asked of one of them */

static bool hangs(cl_command_queue queue)
{
    bool found = false;
    for (uint32_t q = atomic_load(&hung_first); q < atomic_load(&hung_end); q++)
        found |= queues[q] == queue;
    return found;
}

static void note_asked(cl_command_queue queue)
{
    if (hangs(queue))
        atomic_fetch_add(&asked_of_hung, 1);
}

CL_API_ENTRY cl_command_queue CL_API_CALL clCreateCommandQueue(cl_context context, cl_device_id device,
                                                               cl_command_queue_properties properties, cl_int *code)
{
    NEXT(clCreateCommandQueue);
    cl_command_queue queue = next(context, device, properties, code);
    if (queue && queue_count < QUEUES_MAX)
        queues[queue_count++] = queue;
    return queue;
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    NEXT(clFinish);
    note_asked(queue);
    return next(queue);
}

static _Atomic cl_int flush_code;

CL_API_ENTRY cl_int CL_API_CALL clFlush(cl_command_queue queue)
{
    NEXT(clFlush);
    note_asked(queue);
    const cl_int code = next(queue);
    return atomic_load(&flush_code) ? atomic_load(&flush_code) : code;
}

static _Atomic uint32_t queues_released;

CL_API_ENTRY cl_int CL_API_CALL clReleaseCommandQueue(cl_command_queue queue)
{
    NEXT(clReleaseCommandQueue);
    note_asked(queue);
    atomic_fetch_add(&queues_released, 1);
    return next(queue);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *mapped,
                                                        cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueUnmapMemObject);
    note_asked(queue);
    return next(queue, mem, mapped, wait_count, wait, event);
}

static atomic_bool markers_never_end;
static _Atomic(cl_event) endless;

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count,
                                                            const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueMarkerWithWaitList);
    note_asked(queue);
    const cl_int code = next(queue, wait_count, wait, event);
    if (atomic_load(&markers_never_end))
        atomic_store(&endless, *event);
    return code;
}

static _Atomic uint32_t contexts_released;

CL_API_ENTRY cl_int CL_API_CALL clReleaseContext(cl_context context)
{
    NEXT(clReleaseContext);
    atomic_fetch_add(&contexts_released, 1);
    return next(context);
}

static _Atomic cl_int query_code;   /* a status query's own error */
static _Atomic cl_int query_status; /* what it says instead; 0 = the truth */

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value,
                                               size_t *got)
{
    NEXT(clGetEventInfo);
    if (what == CL_EVENT_COMMAND_EXECUTION_STATUS && atomic_load(&query_code))
        return atomic_load(&query_code);
    const cl_int code = next(event, what, bytes, value, got);
    if (code || what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return code;
    cl_command_queue queue;
    if (atomic_load(&query_status))
        *(cl_int *)value = atomic_load(&query_status);
    else if (event == atomic_load(&endless) ||
             (!next(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, NULL) && hangs(queue)))
        *(cl_int *)value = CL_RUNNING;
    return code;
}

static atomic_bool profile_lies;
static cl_ulong profile_queued, profile_start, profile_end;

CL_API_ENTRY cl_int CL_API_CALL clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t bytes,
                                                        void *value, size_t *got)
{
    NEXT(clGetEventProfilingInfo);
    const cl_int code = next(event, what, bytes, value, got);
    if (atomic_load(&profile_lies))
        *(cl_ulong *)value = what == CL_PROFILING_COMMAND_QUEUED  ? profile_queued
                             : what == CL_PROFILING_COMMAND_START ? profile_start
                                                                  : profile_end;
    return code;
}

/* The one that is refused, counted down; 0 = none. */
static _Atomic uint32_t refuse_arg, refuse_launch, refuse_write, refuse_buffer;

static bool refused(_Atomic uint32_t *countdown)
{
    return atomic_load(countdown) && atomic_fetch_sub(countdown, 1) == 1;
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value)
{
    NEXT(clSetKernelArg);
    return refused(&refuse_arg) ? CL_OUT_OF_HOST_MEMORY : next(kernel, index, bytes, value);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                       const size_t *offset, const size_t *global, const size_t *local,
                                                       cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueNDRangeKernel);
    if (refused(&refuse_launch))
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return next(queue, kernel, dims, offset, global, local, wait_count, wait, event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
                                                     size_t offset, size_t bytes, const void *data, cl_uint wait_count,
                                                     const cl_event *wait, cl_event *event)
{
    NEXT(clEnqueueWriteBuffer);
    if (refused(&refuse_write))
        return CL_MEM_OBJECT_ALLOCATION_FAILURE;
    return next(queue, mem, blocking, offset, bytes, data, wait_count, wait, event);
}

static atomic_int buffers; /* made and not released */

CL_API_ENTRY cl_mem CL_API_CALL clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host,
                                               cl_int *code)
{
    NEXT(clCreateBuffer);
    if (refused(&refuse_buffer)) {
        *code = CL_OUT_OF_HOST_MEMORY;
        return NULL;
    }
    atomic_fetch_add(&buffers, 1);
    return next(context, flags, bytes, host, code);
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseMemObject(cl_mem mem)
{
    NEXT(clReleaseMemObject);
    atomic_fetch_sub(&buffers, 1);
    return next(mem);
}

/* Callbacks are passed on, refused, or kept for the test to call when it likes. */
enum { CALLBACKS_WORK, CALLBACKS_ARE_REFUSED, CALLBACKS_ARE_KEPT };

struct kept {
    void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
    cl_event event;
    void *user;
};

static atomic_int callbacks;
static struct kept kept[KEPT_MAX];
static uint32_t kept_count;

CL_API_ENTRY cl_int CL_API_CALL clSetEventCallback(cl_event event, cl_int type,
                                                   void(CL_CALLBACK *fn)(cl_event, cl_int, void *), void *user)
{
    NEXT(clSetEventCallback);
    if (atomic_load(&callbacks) == CALLBACKS_WORK)
        return next(event, type, fn, user);
    if (atomic_load(&callbacks) == CALLBACKS_ARE_REFUSED)
        return CL_OUT_OF_HOST_MEMORY;
    cr_assert_lt(kept_count, KEPT_MAX);
    clRetainEvent(event); /* so that no other event gets its handle */
    kept[kept_count++] = (struct kept){fn, event, user};
    return CL_SUCCESS;
}

static void call_kept(uint32_t index, cl_int status)
{
    kept[index].fn(kept[index].event, status, kept[index].user);
}

/* ---- a backend, a pipeline, two buffers ---- */

static const char source[] =
    "kernel void work(global const uint *in, global uint *out, int columns, int first, int rows, int in_origin,\n"
    "                 int out_origin) {\n"
    "    int x = get_global_id(0), y = first + get_global_id(1);\n"
    "    if (x < columns && y < first + rows)\n"
    "        out[(y - out_origin) * columns + x] = in[(y - in_origin) * columns + x] * 3 + y;\n"
    "}\n";

struct rig {
    struct cox__backend *backend;
    const struct cox__backend_ops *ops;
    struct cox__log log;
    struct cox__pipeline pipeline;
    struct cox__mem *mems[2];
    uint32_t *in, *out;
    uint32_t seed;
    _Atomic uint32_t posts;
    struct cox__job *_Atomic posted;
};

static void on_post(void *ctx, struct cox__job *job)
{
    struct rig *rig = ctx;
    atomic_store(&rig->posted, job);
    atomic_fetch_add(&rig->posts, 1);
}

static void fill(struct rig *rig)
{
    rig->seed++;
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        rig->in[i] = i * 2654435761u + rig->seed, rig->out[i] = 0xeeeeeeee;
}

static struct rig *rig_new(const char *devices)
{
    struct rig *rig = calloc(1, sizeof *rig);
    const struct cox__cl_options options = {
        .devices = devices, .post = {.post = on_post, .ctx = rig}, .log = &rig->log};
    const cox_status status = cox__cl_create(&rig->backend, &options);
    if (status)
        cr_skip_test("skipped, because there is no such device as %s: %s", devices, cox_status_text(status));
    rig->ops = rig->backend->ops;
    const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = COLUMNS * 4},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = COLUMNS * 4}};
    const struct cox_variant variant = {.source = source, .options = ""};
    const struct cox_arg args[] = {COX_ARG_BUFFER(0), COX_ARG_BUFFER(1), COX_ARG_COLUMNS,  COX_ARG_FIRST_ROW,
                                   COX_ARG_ROWS,      COX_ARG_ORIGIN(0), COX_ARG_ORIGIN(1)};
    const struct cox_stage stage = {
        .kernel = "work", .columns = COLUMNS, .variant_count = 1, .variants = &variant, .arg_count = 7, .args = args};
    cr_assert_eq(cox__pipeline_init(&rig->pipeline,
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 2, .bindings = bindings,
                                                       .stage_count = 1, .stages = &stage),
                                    &rig->log),
                 COX_OK);
    for (int m = 0; m < 2; m++)
        cr_assert_eq(rig->ops->mem_create(rig->backend, NULL, BYTES, &rig->mems[m]), COX_OK);
    rig->in = rig->ops->mem_data(rig->mems[0]);
    rig->out = rig->ops->mem_data(rig->mems[1]);
    fill(rig);
    return rig;
}

static void rig_end(struct rig *rig)
{
    while (kept_count)
        clReleaseEvent(kept[--kept_count].event);
    for (int m = 0; m < 2; m++)
        if (rig->mems[m])
            rig->ops->mem_destroy(rig->backend, rig->mems[m]);
    rig->ops->destroy(rig->backend);
    cox__pipeline_clear(&rig->pipeline);
    free(rig);
}

static struct cox__instance *instance_new(struct rig *rig, uint32_t device, bool fresh)
{
    struct cox__instance *instance;
    uint32_t most[COX_PASSES_MAX];
    cr_assert_eq(rig->ops->instance_create(rig->backend, device, &rig->pipeline, 2, fresh, &instance, most), COX_OK);
    cr_assert_eq(most[0], ROWS);
    return instance;
}

static void rig_end_with(struct rig *rig, struct cox__instance *instance)
{
    rig->ops->instance_destroy(rig->backend, instance, NULL, NULL);
    rig_end(rig);
}

/* The queues made from here on hang. */
static uint32_t mark_queues(void)
{
    return queue_count;
}

static void hang_from(uint32_t mark)
{
    atomic_store(&hung_first, mark);
    atomic_store(&hung_end, queue_count);
}

static struct cox__job job_of(struct rig *rig, struct cox__instance *instance, uint32_t slot, uint32_t first,
                              uint32_t rows)
{
    return (struct cox__job){.instance = instance, .slot = slot, .first_row = first, .rows = rows, .mems = rig->mems};
}

static enum cox__job_state poll_end(struct rig *rig, struct cox__job *job)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    enum cox__job_state state;
    while ((state = rig->ops->job_poll(rig->backend, job)) == COX__JOB_RUNNING)
        nanosleep(&pause, NULL);
    return state;
}

static void submit(struct rig *rig, struct cox__job *job)
{
    cr_assert_eq(rig->ops->job_submit(rig->backend, job), COX_OK);
    rig->ops->instance_flush(rig->backend, job->instance);
}

/* One band of the whole frame that goes well. */
static void run_one(struct rig *rig, struct cox__instance *instance)
{
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    fill(rig);
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    cr_assert_neq(atomic_load(&job.end_ns), 0);
}

static void check_rows(const struct rig *rig, uint32_t first, uint32_t rows)
{
    for (uint32_t i = first * COLUMNS; i < (first + rows) * COLUMNS; i++)
        cr_assert_eq(rig->out[i], (i * 2654435761u + rig->seed) * 3 + i / COLUMNS, "element %u of frame %u", i,
                     rig->seed);
}

static void wait_for_post(struct rig *rig, uint32_t count)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&rig->posts) < count)
        nanosleep(&pause, NULL);
}

/* ---- contexts of an instance's own ---- */

static const char *const selections[] = {"cpu:2x1=shared", "cpu:2x1=mapped", "cpu:2x1=staged"};

struct selection {
    char devices[32];
};

ParameterizedTestParameters(cl_instances, a_fresh_instance_gives_the_same_bits_beside_an_old_one)
{
    static struct selection all[3];
    for (int i = 0; i < 3; i++)
        strcpy(all[i].devices, selections[i]);
    return cr_make_param_array(struct selection, all, 3);
}

ParameterizedTest(struct selection *selection, cl_instances, a_fresh_instance_gives_the_same_bits_beside_an_old_one)
{
    struct rig *rig = rig_new(selection->devices);
    struct cox__instance *lost = instance_new(rig, 0, false), *other = instance_new(rig, 1, false);
    struct cox__instance *instances[2] = {lost, other};
    for (uint32_t frame = 0; frame < 12; frame++) {
        if (frame == 4) {
            instances[0] = instance_new(rig, 0, true);
            rig->ops->instance_destroy(rig->backend, lost, NULL, NULL);
        }
        const uint32_t cut = frame % 3 ? 24 : 40;
        struct cox__job jobs[2] = {job_of(rig, instances[0], 0, 0, cut), job_of(rig, instances[1], 0, cut, ROWS - cut)};
        fill(rig);
        for (int j = 0; j < 2; j++)
            submit(rig, &jobs[j]);
        for (int j = 0; j < 2; j++)
            cr_assert_eq(poll_end(rig, &jobs[j]), COX__JOB_DONE);
        check_rows(rig, 0, ROWS);
    }
    for (int u = 0; u < 2; u++)
        rig->ops->instance_destroy(rig->backend, instances[u], NULL, NULL);
    rig_end(rig);
}

Test(cl_instances, a_device_that_was_lost_gets_a_context_of_its_own_in_later_sessions_too)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *first = instance_new(rig, 0, true);
    rig->ops->instance_destroy(rig->backend, first, NULL, NULL);
    const uint32_t before = atomic_load(&contexts_released);
    struct cox__instance *second = instance_new(rig, 0, false);
    run_one(rig, second);
    check_rows(rig, 0, ROWS);
    rig->ops->instance_destroy(rig->backend, second, NULL, NULL);
    cr_assert_eq(atomic_load(&contexts_released), before + 1);
    rig_end(rig);
}

/* ---- band objects ---- */

/* So often that what else there is on the memory is out of use. */
enum { LONG = 1100, RANGES = 24 };

static void run_band(struct rig *rig, struct cox__instance *instance, uint32_t first, uint32_t rows)
{
    struct cox__job job = job_of(rig, instance, 0, first, rows);
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
}

static void run_ranges(struct rig *rig, struct cox__instance *instance, uint32_t rows)
{
    for (uint32_t r = 0; r < RANGES; r++)
        run_band(rig, instance, r, rows);
}

Test(cl_instances, band_objects_out_of_use_give_their_places_to_new_ones)
{
    struct rig *rig = rig_new("cpu=mapped");
    struct cox__instance *instance = instance_new(rig, 0, false);
    run_band(rig, instance, 0, ROWS);
    run_ranges(rig, instance, 1);
    const int before = atomic_load(&buffers);
    run_ranges(rig, instance, 2);
    cr_assert_eq(atomic_load(&buffers), before + 2 * RANGES, "objects in use stay");
    for (int i = 0; i < LONG; i++)
        run_band(rig, instance, 0, ROWS);
    run_ranges(rig, instance, 3);
    run_ranges(rig, instance, 4);
    cr_assert_eq(atomic_load(&buffers), before + 2 * RANGES);
    run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, the_queue_of_a_lost_instance_goes_with_its_band_objects)
{
    struct rig *rig = rig_new("cpu=mapped");
    struct cox__instance *other = instance_new(rig, 0, false);
    run_ranges(rig, other, 1);
    struct cox__instance *lost = instance_new(rig, 0, true);
    run_one(rig, lost);
    struct cox__job job = job_of(rig, lost, 1, 0, ROWS);
    atomic_store(&flush_code, CL_OUT_OF_RESOURCES);
    cr_assert_eq(rig->ops->job_submit(rig->backend, &job), COX_OK);
    rig->ops->instance_flush(rig->backend, lost);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_FAILED);
    atomic_store(&flush_code, 0);
    rig->ops->instance_destroy(rig->backend, lost, NULL, NULL);
    for (int i = 0; i < LONG; i++)
        run_band(rig, other, RANGES, 1);
    const uint32_t before = atomic_load(&queues_released);
    run_band(rig, other, RANGES + 1, 1);
    run_band(rig, other, RANGES + 2, 1);
    cr_assert_eq(atomic_load(&queues_released), before + 1);
    run_one(rig, other);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, other);
}

/* ---- callbacks ---- */

Test(cl_instances, a_callback_posts_the_band)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    wait_for_post(rig, 1);
    cr_assert_eq(atomic_load(&rig->posted), &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    rig_end_with(rig, instance);
}

Test(cl_instances, callbacks_that_never_come_cost_no_band)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    for (int i = 0; i < 10; i++) {
        run_one(rig, instance);
        check_rows(rig, 0, ROWS);
    }
    rig->ops->instance_destroy(rig->backend, instance, NULL, NULL);
    cr_assert_eq(atomic_load(&rig->posts), 0);
    rig_end(rig);
}

Test(cl_instances, callbacks_that_are_refused_cost_no_band)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    atomic_store(&callbacks, CALLBACKS_ARE_REFUSED);
    for (int i = 0; i < 200; i++)
        run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_callback_that_comes_twice_posts_no_band_that_is_over)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS), next = job_of(rig, instance, 0, 0, ROWS);
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    submit(rig, &job);
    call_kept(0, CL_COMPLETE);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 2);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 2);
    submit(rig, &next);
    cr_assert_eq(poll_end(rig, &next), COX__JOB_DONE);
    call_kept(0, CL_COMPLETE);
    call_kept(1, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 2);
    rig->ops->instance_destroy(rig->backend, instance, NULL, NULL);
    for (uint32_t i = 0; i < kept_count; i++)
        call_kept(i, -9999);
    cr_assert_eq(atomic_load(&rig->posts), 2);
    rig_end(rig);
}

Test(cl_instances, a_callback_that_comes_again_much_later_speaks_for_no_other_band)
{
    enum { BANDS = 200 }; /* more than there are records at first: they are used again */
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    for (uint32_t i = 0; i < BANDS; i++) {
        submit(rig, &job);
        for (uint32_t k = 0; k < i; k++)
            call_kept(k, CL_COMPLETE);
        cr_assert_eq(atomic_load(&rig->posts), i);
        call_kept(i, CL_COMPLETE);
        cr_assert_eq(atomic_load(&rig->posts), i + 1);
        cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    }
    rig_end_with(rig, instance);
}

Test(cl_instances, a_late_callback_does_not_speak_for_the_next_band)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job jobs[20];
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    for (uint32_t i = 0; i < 20; i++) {
        jobs[i] = job_of(rig, instance, 0, 0, ROWS);
        submit(rig, &jobs[i]);
        if (i)
            call_kept(i - 1, CL_COMPLETE);
        cr_assert_eq(atomic_load(&rig->posts), 0);
        cr_assert_eq(poll_end(rig, &jobs[i]), COX__JOB_DONE);
    }
    rig->ops->instance_destroy(rig->backend, instance, NULL, NULL);
    call_kept(19, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 0);
    rig_end(rig);
}

Test(cl_instances, a_bands_end_is_not_taken_from_a_callback_that_came_early)
{
    struct rig *rig = rig_new("cpu");
    const uint32_t mark = mark_queues();
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    profile_queued = profile_start = profile_end = 0; /* by the device's clock it has ended */
    atomic_store(&profile_lies, true);
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    hang_from(mark);
    submit(rig, &job);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
    const uint64_t after_the_early_one = rig->ops->now_ns(rig->backend);
    atomic_store(&hung_end, 0);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    cr_assert_geq(atomic_load(&job.end_ns), after_the_early_one);
    atomic_store(&profile_lies, false);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_callback_that_comes_again_after_an_early_one_is_heard)
{
    struct rig *rig = rig_new("cpu");
    const uint32_t mark = mark_queues();
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    hang_from(mark);
    submit(rig, &job);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
    atomic_store(&hung_end, 0);
    call_kept(0, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 2);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    rig_end_with(rig, instance);
}

/* ---- profiles and statuses ---- */

Test(cl_instances, profiles_that_make_no_sense_are_left_out)
{
    static const struct {
        const char *what;
        cl_ulong queued, start, end;
    } lies[] = {
        {"ends before it starts", 1000, 3000, 2000},
        {"starts before the band was enqueued", 30000000000, 20000000000, 20000001000},
        {"nothing was filled in", 0, 0, 0},
        {"only the end was filled in", 0, 0, 1000},
        {"longer than the band", 1000, 2000, 2000 + 3600000000000ull},
        {"as long as can be", 0, 1, UINT64_MAX},
        {"began at the end of time", 1, UINT64_MAX, 0},
    };
    struct rig *rig = rig_new("cpu=staged");
    rig->pipeline.profile = true;
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    cr_assert_neq(job.kernel_ns, 0, "the driver gives none, and the test tests nothing");
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        profile_queued = lies[i].queued, profile_start = lies[i].start, profile_end = lies[i].end;
        atomic_store(&profile_lies, true);
        job.kernel_ns = job.copy_in_ns = job.copy_out_ns = 77;
        submit(rig, &job);
        cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
        cr_assert(!job.kernel_ns && !job.copy_in_ns && !job.copy_out_ns, "%s", lies[i].what);
        atomic_store(&profile_lies, false);
    }
    rig_end_with(rig, instance);
}

Test(cl_instances, a_staged_device_times_the_copies_out_alone_unless_asked)
{
    struct rig *rig = rig_new("cpu=staged");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    cr_assert(!job.kernel_ns && !job.copy_in_ns);
    cr_assert_neq(job.copy_out_ns, 0);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_band_that_is_polled_without_a_pause_is_not_posted)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    job.polled = true;
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    cr_assert_eq(atomic_load(&rig->posts), 0);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_status_that_does_not_exist_means_that_it_runs)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    atomic_store(&query_status, 12345);
    for (int i = 0; i < 5; i++)
        cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
    cr_assert(!job.failing);
    atomic_store(&query_status, 0);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_band_whose_state_cannot_be_asked_is_failing_until_it_can)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    cr_assert(!job.failing);
    atomic_store(&query_code, CL_INVALID_EVENT);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
        cr_assert(job.failing);
    }
    atomic_store(&query_code, 0);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_FAILED);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_band_with_an_unknown_negative_status_has_failed)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    submit(rig, &job);
    atomic_store(&query_status, -9999);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_FAILED);
    atomic_store(&query_status, 0);
    rig_end_with(rig, instance);
}

Test(cl_instances, a_flush_that_fails_fails_the_bands_under_way_once_they_have_ended)
{
    struct rig *rig = rig_new("cpu");
    const uint32_t mark = mark_queues();
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    hang_from(mark);
    atomic_store(&flush_code, CL_OUT_OF_RESOURCES);
    submit(rig, &job);
    atomic_store(&flush_code, 0);
    cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
    cr_assert(job.failing);
    atomic_store(&hung_end, 0);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_FAILED);
    run_one(rig, instance); /* and no other */
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

/* ---- what stays on the device ---- */

static struct cox__job keeping_job(struct rig *rig, struct cox__instance *instance, uint32_t first, uint32_t rows)
{
    struct cox__job job = job_of(rig, instance, 0, first, rows);
    job.resident = 3;
    job.set = 1;
    return job;
}

static void run_job(struct rig *rig, struct cox__job *job)
{
    submit(rig, job);
    cr_assert_eq(poll_end(rig, job), COX__JOB_DONE);
}

Test(cl_instances, rows_stay_on_the_device_until_they_are_fetched)
{
    enum { HALF = ROWS / 2 };
    struct rig *rig = rig_new("cpu=staged");
    rig->pipeline.resident = 3;
    rig->pipeline.sets = 2;
    struct cox__instance *instance = instance_new(rig, 0, false);
    cr_assert_eq(rig->ops->instance_resident(rig->backend, instance), 3);
    struct cox__job job = keeping_job(rig, instance, 0, HALF);
    job.ranges[job.range_count++] = (struct cox__job_range){0, 0, ROWS}; /* more than this band reads */
    run_job(rig, &job);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(rig->out[i], 0xeeeeeeee);
    struct cox__job rest = keeping_job(rig, instance, HALF, ROWS - HALF); /* it is given nothing, and has it */
    rest.ranges[rest.range_count++] = (struct cox__job_range){0, HALF, ROWS - HALF};
    rest.out = 2;
    run_job(rig, &rest);
    check_rows(rig, HALF, ROWS - HALF);
    struct cox__job fetch = keeping_job(rig, instance, 0, 1);
    fetch.fetch = true;
    fetch.ranges[fetch.range_count++] = (struct cox__job_range){1, 1, HALF - 1};
    run_job(rig, &fetch);
    check_rows(rig, 1, ROWS - 1);
    for (uint32_t i = 0; i < COLUMNS; i++)
        cr_assert_eq(rig->out[i], 0xeeeeeeee);
    struct cox__job again = keeping_job(rig, instance, 0, HALF);
    again.back[again.back_count++] = (struct cox__job_range){1, 0, 1};
    run_job(rig, &again);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

/* What a count of the buffers comes to: sub-buffers are counted where they are released only. */
static int buffers_after_an_instance(struct rig *rig)
{
    const int before = atomic_load(&buffers);
    struct cox__instance *instance = instance_new(rig, 0, false);
    cr_assert_eq(rig->ops->instance_resident(rig->backend, instance), 0);
    run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig->ops->instance_destroy(rig->backend, instance, NULL, NULL);
    return atomic_load(&buffers) - before;
}

Test(cl_instances, nothing_is_kept_where_there_is_no_memory_for_it)
{
    struct rig *rig = rig_new("cpu=staged");
    const int plain = buffers_after_an_instance(rig);
    rig->pipeline.resident = 3;
    rig->pipeline.sets = 2;
    for (int which = 1; which <= 4; which++) {
        atomic_store(&refuse_buffer, 4 + which); /* behind those of two queue slots */
        cr_assert_eq(buffers_after_an_instance(rig), plain);
        cr_assert_eq(atomic_load(&refuse_buffer), 0);
    }
    rig_end(rig);
}

/* ---- no memory ---- */

Test(cl_instances, no_memory_at_the_first_launch_is_said_at_submission)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    atomic_store(&refuse_launch, 1);
    cr_assert_eq(rig->ops->job_submit(rig->backend, &job), COX_E_DEVICE_MEMORY);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(rig->out[i], 0xeeeeeeee);
    run_one(rig, instance); /* what was unmapped for nothing is given again */
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, an_argument_that_was_refused_is_set_again)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS / 2);
    submit(rig, &job);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_DONE);
    job.rows = ROWS;
    atomic_store(&refuse_arg, 3); /* behind the buffers': the number of rows */
    cr_assert_neq(rig->ops->job_submit(rig->backend, &job), COX_OK);
    cr_assert_eq(atomic_load(&refuse_arg), 0);
    run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, no_memory_after_something_was_enqueued_is_a_band_that_fails)
{
    struct rig *rig = rig_new("cpu=staged");
    const uint32_t mark = mark_queues();
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    hang_from(mark);
    atomic_store(&refuse_launch, 1); /* behind its copy */
    cr_assert_eq(rig->ops->job_submit(rig->backend, &job), COX_OK);
    cr_assert(job.failing);
    cr_assert_eq(rig->ops->job_poll(rig->backend, &job), COX__JOB_RUNNING);
    cr_assert(job.failing);
    atomic_store(&hung_end, 0);
    cr_assert_eq(poll_end(rig, &job), COX__JOB_FAILED);
    atomic_store(&refuse_write, 1);
    cr_assert_eq(rig->ops->job_submit(rig->backend, &job), COX_E_DEVICE_MEMORY);
    run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, no_memory_for_a_bands_object_is_said_at_submission)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    struct cox__job job = job_of(rig, instance, 0, 0, ROWS);
    for (uint32_t which = 1; which <= 2; which++) {
        atomic_store(&refuse_buffer, which);
        cr_assert_eq(rig->ops->job_submit(rig->backend, &job), COX_E_DEVICE_MEMORY);
    }
    run_one(rig, instance);
    check_rows(rig, 0, ROWS);
    rig_end_with(rig, instance);
}

Test(cl_instances, memory_is_had_where_none_can_be_pinned)
{
    struct rig *rig = rig_new("cpu=staged");
    struct cox__mem *mem;
    struct cox_buffer_info info;
    atomic_store(&refuse_buffer, 1);
    cr_assert_eq(rig->ops->mem_create(rig->backend, NULL, BYTES, &mem), COX_OK);
    rig->ops->mem_info(mem, &info);
    cr_assert(!info.pinned);
    rig->ops->mem_destroy(rig->backend, mem);
    rig_end(rig);
}

/* ---- devices that hang ---- */

/* An instance with a band that never ends beside one that ended before, so that both kinds of band objects are
 * there. */
static struct cox__instance *hang(struct rig *rig, uint32_t device, bool fresh, struct cox__job *job)
{
    const uint32_t mark = mark_queues();
    struct cox__instance *instance = instance_new(rig, device, fresh);
    run_one(rig, instance);
    *job = job_of(rig, instance, 1, 0, ROWS / 2);
    hang_from(mark);
    submit(rig, job);
    cr_assert_eq(rig->ops->job_poll(rig->backend, job), COX__JOB_RUNNING);
    atomic_store(&asked_of_hung, 0);
    return instance;
}

ParameterizedTestParameters(cl_instances, nothing_waits_for_an_abandoned_instance)
{
    static struct selection all[3];
    for (int i = 0; i < 3; i++)
        strcpy(all[i].devices, selections[i]);
    return cr_make_param_array(struct selection, all, 3);
}

ParameterizedTest(struct selection *selection, cl_instances, nothing_waits_for_an_abandoned_instance)
{
    struct rig *rig = rig_new(selection->devices);
    struct cox__job job;
    atomic_store(&callbacks, CALLBACKS_ARE_KEPT);
    struct cox__instance *hung = hang(rig, 0, false, &job), *other = instance_new(rig, 1, false);
    rig->ops->instance_abandon(rig->backend, hung);
    for (uint32_t i = 0; i < kept_count; i++)
        call_kept(i, CL_COMPLETE);
    cr_assert_eq(atomic_load(&rig->posts), 0);

    struct cox__mem *hostage[2] = {rig->mems[0], rig->mems[1]}, *later;
    for (int m = 0; m < 2; m++)
        cr_assert_eq(rig->ops->mem_create(rig->backend, NULL, BYTES, &rig->mems[m]), COX_OK);
    rig->in = rig->ops->mem_data(rig->mems[0]);
    rig->out = rig->ops->mem_data(rig->mems[1]);
    struct cox__instance *fresh = instance_new(rig, 0, true);
    for (int i = 0; i < 2; i++) {
        run_one(rig, i ? fresh : other);
        check_rows(rig, 0, ROWS);
    }
    rig->ops->mem_abandon(rig->backend, hostage[1]);
    rig->ops->mem_destroy(rig->backend, hostage[0]);
    cr_assert_eq(rig->ops->mem_create(rig->backend, NULL, BYTES, &later), COX_OK);
    rig->ops->mem_destroy(rig->backend, later);
    cr_assert_eq(atomic_load(&asked_of_hung), 0);

    atomic_store(&hung_end, 0);
    rig->ops->instance_destroy(rig->backend, hung, NULL, NULL);
    rig->ops->instance_destroy(rig->backend, fresh, NULL, NULL);
    rig->ops->instance_destroy(rig->backend, other, NULL, NULL);
    rig_end(rig);
}

Test(cl_instances, what_an_abandoned_instance_shares_is_used_as_before_once_it_is_over)
{
    struct rig *rig = rig_new("cpu:2x1=shared");
    struct cox__job job;
    struct cox__instance *hung = hang(rig, 0, false, &job), *other = instance_new(rig, 1, false);
    rig->ops->instance_abandon(rig->backend, hung);
    run_one(rig, other);
    check_rows(rig, 0, ROWS);
    cr_assert_eq(atomic_load(&asked_of_hung), 0);
    atomic_store(&hung_end, 0);
    rig->ops->instance_destroy(rig->backend, hung, NULL, NULL);
    const uint32_t before = atomic_load(&contexts_released);
    run_one(rig, other);
    check_rows(rig, 0, ROWS);
    rig->ops->instance_destroy(rig->backend, other, NULL, NULL);
    rig_end(rig);
    cr_assert_eq(atomic_load(&contexts_released), before + 1);
}

Test(cl_instances, a_context_with_an_abandoned_instance_is_not_released)
{
    struct rig *rig = rig_new("cpu:2x1=shared");
    struct cox__job job;
    struct cox__instance *hung = hang(rig, 0, false, &job), *other = instance_new(rig, 1, false);
    rig->ops->instance_abandon(rig->backend, hung);
    rig->ops->instance_destroy(rig->backend, other, NULL, NULL);
    const uint32_t before = atomic_load(&contexts_released);
    for (int m = 0; m < 2; m++) {
        rig->ops->mem_abandon(rig->backend, rig->mems[m]);
        rig->mems[m] = NULL;
    }
    rig_end(rig);
    cr_assert_eq(atomic_load(&contexts_released), before);
    cr_assert_eq(atomic_load(&asked_of_hung), 0);
    cox__leak(hung);
}

Test(cl_instances, a_device_that_does_not_answer_takes_no_part)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance;
    uint32_t most[COX_PASSES_MAX];
    const uint32_t before = atomic_load(&contexts_released);
    atomic_store(&markers_never_end, true);
    cr_assert_eq(rig->ops->instance_create(rig->backend, 0, &rig->pipeline, 2, false, &instance, most),
                 COX_E_DEVICE_LOST);
    rig_end(rig);
    cr_assert_eq(atomic_load(&contexts_released), before);
}

Test(cl_instances, memory_that_a_device_does_not_give_back_in_time_is_leaked)
{
    struct rig *rig = rig_new("cpu");
    struct cox__instance *instance = instance_new(rig, 0, false);
    run_one(rig, instance);
    uint32_t *out = rig->out;
    atomic_store(&markers_never_end, true);
    rig->ops->mem_destroy(rig->backend, rig->mems[1]);
    rig->mems[1] = NULL;
    out[0] = 1; /* still there */
    atomic_store(&markers_never_end, false);
    rig_end_with(rig, instance);
}
