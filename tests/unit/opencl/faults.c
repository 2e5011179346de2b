/* What the OpenCL backend does when a call of the driver fails half-way through a band. The calls at fault are this
 * program's own, in front of the loader's.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

TestSuite(cl_faults, .timeout = 300);

enum { ROWS = 64, COLUMNS = 64 };

/* ---- faults ---- */

static _Atomic uint32_t refuse_launch; /* the launch that is refused, counted down; 0 = none */
static atomic_bool next_is_false;      /* the next launch's event will say that it failed */
static _Atomic(cl_event) false_event;
static atomic_bool was_false;

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                                                       const size_t *offset, const size_t *global, const size_t *local,
                                                       cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static cl_int (*next)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,
                          const cl_event *, cl_event *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
    if (atomic_load(&refuse_launch) && atomic_fetch_sub(&refuse_launch, 1) == 1)
        return CL_OUT_OF_RESOURCES;
    const cl_int code = next(queue, kernel, dims, offset, global, local, wait_count, wait, event);
    if (code == CL_SUCCESS && event && atomic_exchange(&next_is_false, false))
        atomic_store(&false_event, *event);
    return code;
}

static atomic_bool is_old;       /* -cl-kernel-arg-info is not known, as before OpenCL 1.2 */
static atomic_uint refused_info; /* builds with it, since then */

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                               const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
                                               void *user)
{
    static cl_int (*next)(cl_program, cl_uint, const cl_device_id *, const char *,
                          void(CL_CALLBACK *)(cl_program, void *), void *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clBuildProgram");
    if (atomic_load(&is_old) && strstr(options, "-cl-kernel-arg-info")) {
        atomic_fetch_add(&refused_info, 1);
        return CL_INVALID_BUILD_OPTIONS;
    }
    return next(program, count, devices, options, notify, user);
}

/* ---- what is not known to be over ---- */

enum { QUEUES_MAX = 16 };

/* Queues that an unmapping went to and that were not seen to be through with it. One thread at a time. */
static cl_command_queue unfinished[QUEUES_MAX];
static cl_event markers[QUEUES_MAX]; /* of the same, behind the unmapping */

static void note_queue(cl_command_queue from, cl_command_queue to)
{
    for (int q = 0; q < QUEUES_MAX; q++)
        if (unfinished[q] == from) {
            unfinished[q] = to;
            markers[q] = NULL;
            return;
        }
}

static void note_end(cl_event event)
{
    for (int q = 0; q < QUEUES_MAX; q++)
        if (markers[q] == event)
            markers[q] = NULL, unfinished[q] = NULL;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count,
                                                            const cl_event *wait, cl_event *event)
{
    static cl_int (*next)(cl_command_queue, cl_uint, const cl_event *, cl_event *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueMarkerWithWaitList");
    const cl_int code = next(queue, wait_count, wait, event);
    for (int q = 0; q < QUEUES_MAX && code == CL_SUCCESS; q++)
        if (unfinished[q] == queue)
            markers[q] = *event;
    return code;
}

CL_API_ENTRY cl_int CL_API_CALL clGetEventInfo(cl_event event, cl_event_info what, size_t bytes, void *value,
                                               size_t *got)
{
    static cl_int (*next)(cl_event, cl_event_info, size_t, void *, size_t *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clGetEventInfo");
    const cl_int code = next(event, what, bytes, value, got);
    if (code == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && *(cl_int *)value == CL_COMPLETE)
        note_end(event);
    if (code == CL_SUCCESS && what == CL_EVENT_COMMAND_EXECUTION_STATUS && event == atomic_load(&false_event)) {
        *(cl_int *)value = CL_OUT_OF_RESOURCES;
        atomic_store(&was_false, true);
    }
    return code;
}

/* Its handle may be given to another event after it. */
CL_API_ENTRY cl_int CL_API_CALL clReleaseEvent(cl_event event)
{
    static cl_int (*next)(cl_event);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clReleaseEvent");
    if (event == atomic_load(&false_event))
        atomic_store(&false_event, NULL);
    return next(event);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem mem, void *mapped,
                                                        cl_uint wait_count, const cl_event *wait, cl_event *event)
{
    static cl_int (*next)(cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueUnmapMemObject");
    note_queue(queue, NULL);
    note_queue(NULL, queue);
    return next(queue, mem, mapped, wait_count, wait, event);
}

CL_API_ENTRY cl_int CL_API_CALL clFinish(cl_command_queue queue)
{
    static cl_int (*next)(cl_command_queue);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clFinish");
    const cl_int code = next(queue);
    note_queue(queue, NULL);
    return code;
}

/* ---- two devices, the first of them slow; out of two stages ---- */

static const char source[] =
    "#define ARGS (global uint *buffer, int columns, int first, int rows)\n"
    "#define GUARD int x = get_global_id(0), y = get_global_id(1); if (x >= columns || y >= rows) return;\n"
    "kernel void nothing ARGS {}\n"
    "kernel void triple ARGS { GUARD buffer[y * columns + x] = buffer[y * columns + x] * 3 + 1; }\n"
    "kernel void put ARGS {\n"
    "    GUARD\n"
    "    volatile int spin = 0;\n"
    "    while (x == 0 && spin < SPIN) spin++;\n"
    "    buffer[y * columns + x] = first + y;\n"
    "}\n";

struct scene {
    cox_runtime *runtime;
    cox_session *session;
    cox_buffer *buffer;
    uint32_t *data;
};

static cox_session *session_new(cox_runtime *runtime, enum cox_access access, const char *first, const char *second,
                                double share)
{
    cox_session *session;
    const double ratios[] = {share, 1 - share};
    const struct cox_binding binding = {
        .name = "buffer", .contract = COX_ROWS, .access = access, .pitch_bytes = COLUMNS * sizeof(uint32_t)};
    const struct cox_variant variants[] = {{.device_plus_1 = 1, .source = source, .options = "-DSPIN=4000000"},
                                           {.source = source, .options = "-DSPIN=0"}};
    static const struct cox_arg args[] = {COX_ARG_BUFFER(0), COX_ARG_COLUMNS, COX_ARG_FIRST_ROW, COX_ARG_ROWS};
    struct cox_stage stages[2];
    for (int s = 0; s < 2; s++)
        stages[s] = (struct cox_stage){.kernel = s ? second : first,
                                       .columns = COLUMNS,
                                       .variant_count = 2,
                                       .variants = variants,
                                       .arg_count = 4,
                                       .args = args};
    const struct cox_policy_options options = {.ratios = ratios, .ratio_count = 2};
    cr_assert_eq(cox_session_create(runtime,
                                    COX_SESSION_PARAMS(.rows = ROWS, .binding_count = 1, .bindings = &binding,
                                                       .stage_count = 2, .stages = stages, .policy = "static",
                                                       .policy_options = &options, .allow_in_place = true,
                                                       .in_flight = 1, .no_warmup = true),
                                    &session),
                 COX_OK);
    return session;
}

static struct scene scene_new(enum cox_access access, const char *first, const char *second)
{
    struct scene scene = {0};
    const cox_status status = cox_runtime_create(&scene.runtime, COX_RUNTIME_PARAMS(.devices = "cpu:2x1"));
    if (status)
        cr_skip_test("skipped, because there is no CPU device that can be divided: %s", cox_status_text(status));
    scene.session = session_new(scene.runtime, access, first, second, 0.5);
    cr_assert_eq(cox_buffer_create(scene.runtime, ROWS * COLUMNS * sizeof(uint32_t), &scene.buffer), COX_OK);
    scene.data = cox_buffer_data(scene.buffer);
    return scene;
}

static cox_status run(struct scene *scene)
{
    return cox_session_run(scene->session, &(const struct cox_frame){.buffers = &scene->buffer, .buffer_count = 1});
}

static void scene_end(struct scene *scene)
{
    cox_session_destroy(&scene->session);
    cox_buffer_destroy(&scene->buffer);
    cox_runtime_destroy(&scene->runtime);
}

/* The frame is done, with the rows of `put`; nothing touches the application's memory any more. */
static void check_done(struct scene *scene)
{
    const struct timespec while_the_slow_one_would_go_on = {.tv_nsec = 700000000};
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(scene->data[i], i / COLUMNS, "element %u", i);
    memset(scene->data, 0xee, ROWS * COLUMNS * sizeof(uint32_t));
    nanosleep(&while_the_slow_one_would_go_on, NULL);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(scene->data[i], 0xeeeeeeeeu, "element %u was written after its frame", i);
}

Test(cl_faults, without_a_fault_both_devices_work)
{
    struct scene scene = scene_new(COX_READ_WRITE, "triple", "put");
    cr_assert_eq(run(&scene), COX_OK);
    check_done(&scene);
    scene_end(&scene);
}

Test(cl_faults, a_driver_that_tells_nothing_of_arguments_is_built_for_without_that)
{
    atomic_store(&is_old, true);
    struct scene scene = scene_new(COX_READ_WRITE, "triple", "put");
    cr_assert_geq(atomic_load(&refused_info), 1);
    cr_assert_eq(run(&scene), COX_OK);
    for (uint32_t i = 0; i < ROWS * COLUMNS; i++)
        cr_assert_eq(scene.data[i], i / COLUMNS, "element %u", i);
    scene_end(&scene);
}

Test(cl_faults, a_band_in_place_that_began_is_not_run_again)
{
    struct scene scene = scene_new(COX_READ_WRITE, "triple", "triple");
    atomic_store(&refuse_launch, 2);
    cr_assert_eq(run(&scene), COX_E_DEVICE_LOST);
    cr_assert_eq(atomic_load(&refuse_launch), 0);
    cr_assert_eq(run(&scene), COX_OK); /* the other device goes on alone */
    scene_end(&scene);
}

Test(cl_faults, a_band_in_place_that_never_began_goes_elsewhere)
{
    struct scene scene = scene_new(COX_READ_WRITE, "triple", "put");
    atomic_store(&refuse_launch, 1);
    cr_assert_eq(run(&scene), COX_OK);
    check_done(&scene);
    scene_end(&scene);
}

Test(cl_faults, what_was_enqueued_before_a_refusal_ends_before_its_frame)
{
    struct scene scene = scene_new(COX_WRITE, "put", "nothing");
    atomic_store(&refuse_launch, 2);
    cr_assert_eq(run(&scene), COX_OK);
    check_done(&scene);
    scene_end(&scene);
}

Test(cl_faults, what_runs_on_after_a_failed_command_ends_before_its_frame)
{
    struct scene scene = scene_new(COX_WRITE, "nothing", "put");
    atomic_store(&next_is_false, true);
    cr_assert_eq(run(&scene), COX_OK);
    cr_assert(atomic_load(&was_false));
    check_done(&scene);
    scene_end(&scene);
}

Test(cl_faults, memory_goes_after_what_was_enqueued_for_it)
{
    struct scene scene = scene_new(COX_WRITE, "nothing", "put");
    cox_session *other = session_new(scene.runtime, COX_WRITE, "nothing", "put", 0.25);
    cr_assert_eq(run(&scene), COX_OK);
    const struct cox_frame frame = {.buffers = &scene.buffer, .buffer_count = 1};
    cr_assert_eq(cox_session_run(other, &frame), COX_OK); /* its bands take the place of the first session's */
    cox_buffer_destroy(&scene.buffer);
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int q = 0; q < QUEUES_MAX; q++)
        for (int tries = 0; unfinished[q] && tries < 20000; tries++)
            nanosleep(&pause, NULL); /* it goes in the background */
    for (int q = 0; q < QUEUES_MAX; q++)
        cr_assert_null(unfinished[q]);
    cox_session_destroy(&other);
    scene_end(&scene);
}
