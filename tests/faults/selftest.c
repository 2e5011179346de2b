/* Does the fault layer do what its plans say? Hand-written OpenCL on the first device; each fault is committed once and
 * what the application sees of it is checked, and that the layer counts it.
 * Run as  fault_selftest [-g] [LAYER]; -g: without those in which a command is held back. Exit status 77 without
 * OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "control.h"
#include "support/layer_selftest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 4096, BYTES = ITEMS * 4 };

static const char source[] = "__kernel void fill(__global uint *out, uint value) { out[get_global_id(0)] = value; }\n";

static struct fault fault;
static int failures, checks;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel fill;
static cl_mem buffer, wrapper;
static cl_uint *host, *out; /* `host` lies behind `wrapper` */

#define CHECK(what)                                                           \
    do {                                                                      \
        checks++;                                                             \
        if (!(what)) {                                                        \
            printf("  %s:%d: %s does not hold\n", __func__, __LINE__, #what); \
            failures++;                                                       \
        }                                                                     \
    } while (0)

static void plan(const char *text)
{
    char why[256];
    if (fault.load(text, why, sizeof why) != 0) {
        fprintf(stderr, "%s\n", why);
        exit(2);
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static cl_int status_of(cl_event event)
{
    cl_int status;
    cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code ? code : status;
}

static cl_int try_launch(cl_mem mem, cl_uint value, cl_event *event)
{
    size_t items = ITEMS, local = 64;
    NEED(clSetKernelArg(fill, 0, sizeof mem, &mem));
    NEED(clSetKernelArg(fill, 1, sizeof value, &value));
    return clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, &local, 0, NULL, event);
}

static cl_event launch(cl_mem mem, cl_uint value)
{
    cl_event event;
    NEED(try_launch(mem, value, &event));
    return event;
}

/* Without an event. */
static void just_launch(cl_mem mem, cl_uint value)
{
    NEED(try_launch(mem, value, NULL));
}

static cl_event begin_read(void)
{
    cl_event event;
    NEED(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, BYTES, out, 0, NULL, &event));
    return event;
}

/* Its end as asking shows it; the queue is flushed. */
static cl_int await(cl_event event)
{
    cl_int status;
    while ((status = status_of(event)) > CL_COMPLETE)
        usleep(100);
    return status;
}

static cl_int see_end(cl_event event)
{
    NEED(clFlush(queue));
    cl_int status = await(event);
    NEED(clReleaseEvent(event));
    return status;
}

static void read_all(void)
{
    NEED(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, out, 0, NULL, NULL));
}

/* How many items of `out` are not the value. */
static unsigned differing(const cl_uint *from, cl_uint value)
{
    unsigned count = 0;
    for (int i = 0; i < ITEMS; i++)
        count += from[i] != value;
    return count;
}

static void begin_with(cl_uint value)
{
    plan("");
    see_end(launch(buffer, value));
    read_all();
    CHECK(differing(out, value) == 0);
}

static void set_up(void)
{
    cl_int code;
    const char *text = source;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    NEED(code);
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &code);
    NEED(code);
    program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    NEED(code);
    NEED(clBuildProgram(program, 1, &device, "", NULL, NULL));
    fill = clCreateKernel(program, "fill", &code);
    NEED(code);
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    NEED(code);
    wrapper = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, BYTES, host, &code);
    NEED(code);
}

static void tear_down(void)
{
    NEED(clReleaseMemObject(wrapper));
    NEED(clReleaseMemObject(buffer));
    NEED(clReleaseKernel(fill));
    NEED(clReleaseProgram(program));
    NEED(clReleaseCommandQueue(queue));
    NEED(clReleaseContext(context));
}

/* --- Call faults ---------------------------------------------------------------------------------------------- */

static void an_enqueue_fails(void)
{
    cl_event event = NULL;
    begin_with(1);
    plan("clEnqueueNDRangeKernel at=2 count=2 error=CL_OUT_OF_RESOURCES");
    CHECK(see_end(launch(buffer, 2)) == CL_COMPLETE);
    CHECK(try_launch(buffer, 3, &event) == CL_OUT_OF_RESOURCES && !event);
    CHECK(try_launch(buffer, 4, &event) == CL_OUT_OF_RESOURCES && !event);
    read_all();
    CHECK(differing(out, 2) == 0);
    CHECK(see_end(launch(buffer, 5)) == CL_COMPLETE);
    CHECK(fault.count(0, FAULT_MATCHED) == 4 && fault.count(0, FAULT_CHOSEN) == 2 && fault.count(0, FAULT_STRUCK) == 2);
}

static void calls_of_other_kinds_fail(void)
{
    cl_int code;
    plan("clCreateBuffer at=1 error=CL_MEM_OBJECT_ALLOCATION_FAILURE\n"
         "clBuildProgram device=0 error=CL_BUILD_PROGRAM_FAILURE\n"
         "create from=2 error=-6\n"
         "clFlush at=1 error=CL_OUT_OF_HOST_MEMORY\n"
         "wait at=1 error=CL_OUT_OF_RESOURCES\n"
         "map at=1 error=CL_MAP_FAILURE");
    CHECK(!clCreateBuffer(context, 0, 64, NULL, &code) && code == CL_MEM_OBJECT_ALLOCATION_FAILURE);
    CHECK(!clCreateKernel(program, "fill", &code) && code == CL_OUT_OF_HOST_MEMORY);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL) == CL_BUILD_PROGRAM_FAILURE);
    CHECK(clBuildProgram(program, 0, NULL, "", NULL, NULL) == CL_BUILD_PROGRAM_FAILURE);
    CHECK(clFlush(queue) == CL_OUT_OF_HOST_MEMORY);
    CHECK(clFinish(queue) == CL_OUT_OF_RESOURCES);
    CHECK(clFinish(queue) == CL_SUCCESS);
    CHECK(!clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &code) &&
          code == CL_MAP_FAILURE);
    for (unsigned i = 0; i < 6; i++)
        CHECK(fault.count(i, FAULT_STRUCK) == (i == 1 ? 2 : 1));
}

static void a_call_hangs(void)
{
    plan("clFinish hang=60ms");
    uint64_t before = now_ns();
    NEED(clFinish(queue));
    CHECK(now_ns() - before >= 60000000);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void another_device_is_left_alone(void)
{
    plan("kernel device=99 error=-5; kernel device=\"no such device\" error=-5; kernel device=0.7 error=-5");
    CHECK(see_end(launch(buffer, 1)) == CL_COMPLETE);
    for (unsigned i = 0; i < 3; i++)
        CHECK(fault.count(i, FAULT_MATCHED) == 0);
}

/* Here and below, what must be seen before a time has come has a second for it: on a busy machine a thread may well not
 * run for 50 ms. */
static void the_time_must_have_come(void)
{
    plan("kernel after=1000ms error=-5");
    CHECK(see_end(launch(buffer, 1)) == CL_COMPLETE);
    usleep(1010000);
    CHECK(try_launch(buffer, 1, NULL) == CL_OUT_OF_RESOURCES);
}

static bool halves(cl_device_id *out)
{
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    cl_uint count = 0, most = 0;
    NEED(clGetDeviceInfo(device, CL_DEVICE_PARTITION_MAX_SUB_DEVICES, sizeof most, &most, NULL));
    return most >= 2 && clCreateSubDevices(device, how, 2, out, &count) == CL_SUCCESS && count == 2;
}

/* Made twice: they must be taken for the same ones. */
static void sub_devices_are_told_apart(void)
{
    for (int round = 0; round < 2; round++) {
        cl_int code;
        cl_device_id half[2];
        cl_command_queue queues[2];
        plan("flush device=0.1 error=-5; flush device=0.0 error=-6 at=2; wait device=0 hang=1ms; map device=0.1 vanish;"
             "release device=0.1 hang=1ms; clCreateBuffer device=0.1 hang=1ms");
        if (!halves(half)) {
            printf("       sub-devices: skipped, because the device cannot be partitioned\n");
            return;
        }
        cl_context both = clCreateContext(NULL, 2, half, NULL, NULL, &code);
        NEED(code);
        for (int i = 0; i < 2; i++) {
            queues[i] = clCreateCommandQueue(both, half[i], 0, &code);
            NEED(code);
        }
        CHECK(clFlush(queues[0]) == CL_SUCCESS && clFlush(queues[1]) == CL_OUT_OF_RESOURCES);
        CHECK(clFlush(queues[0]) == CL_OUT_OF_HOST_MEMORY);
        CHECK(clFlush(queues[0]) == CL_SUCCESS);
        CHECK(clFinish(queues[0]) == CL_SUCCESS && fault.count(2, FAULT_STRUCK) == 1);
        cl_mem mem = clCreateBuffer(both, 0, 64, NULL, &code);
        NEED(code);
        CHECK(!clEnqueueMapBuffer(queues[1], mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL, &code) && code);
        CHECK(clFinish(queues[0]) == CL_SUCCESS && clFinish(queues[1]) != CL_SUCCESS);
        CHECK(clFinish(queue) == CL_SUCCESS);
        NEED(clReleaseMemObject(mem));
        for (int i = 0; i < 2; i++) {
            NEED(clReleaseCommandQueue(queues[i]));
            NEED(clReleaseDevice(half[i]));
        }
        NEED(clReleaseContext(both));
        CHECK(fault.count(4, FAULT_STRUCK) == 3 && fault.count(5, FAULT_STRUCK) == 1);
    }
}

/* --- The end of commands ----------------------------------------------------------------------------------------- */

static void a_late_command_writes_late(void)
{
    begin_with(1);
    plan("kernel at=1 late=1000ms");
    cl_event event = launch(buffer, 2), read = begin_read();
    uint64_t before = now_ns();
    NEED(clFlush(queue));
    CHECK(status_of(event) == CL_RUNNING);
    out[0] = 77;
    usleep(20000);
    CHECK(out[0] == 77);
    CHECK(await(event) == CL_COMPLETE && now_ns() - before >= 900000000);
    CHECK(see_end(read) == CL_COMPLETE && differing(out, 2) == 0);
    NEED(clReleaseEvent(event));
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void what_is_released_ends_all_the_same(void)
{
    cl_int code;
    begin_with(1);
    plan("kernel at=1 late=50ms");
    cl_command_queue own = clCreateCommandQueue(context, device, 0, &code);
    NEED(code);
    cl_command_queue saved = queue;
    queue = own;
    cl_event event = launch(buffer, 2);
    queue = saved;
    NEED(clReleaseCommandQueue(own));
    CHECK(await(event) == CL_COMPLETE);
    NEED(clReleaseEvent(event));
    read_all();
    CHECK(differing(out, 2) == 0);
}

static void a_blocking_read_is_late(void)
{
    begin_with(1);
    plan("read at=1 late=50ms");
    uint64_t before = now_ns();
    read_all();
    CHECK(now_ns() - before >= 50000000 && differing(out, 1) == 0);
}

/* In a queue of its own, which is then left to itself. */
static void a_command_never_ends(void)
{
    cl_int code;
    begin_with(1);
    plan("kernel at=1 never");
    cl_command_queue saved = queue;
    queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &code);
    NEED(code);
    cl_event event = launch(buffer, 2), behind = launch(buffer, 3);
    NEED(clFlush(queue));
    usleep(30000);
    CHECK(status_of(event) == CL_RUNNING && status_of(behind) > CL_COMPLETE);
    NEED(clReleaseEvent(event));
    NEED(clReleaseEvent(behind));
    NEED(clReleaseCommandQueue(queue));
    queue = saved;
    read_all();
    CHECK(differing(out, 1) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void a_command_is_never_seen_to_end(void)
{
    cl_int code;
    begin_with(1);
    plan("kernel at=1 never-seen");
    cl_command_queue saved = queue;
    queue = clCreateCommandQueue(context, device, 0, &code);
    NEED(code);
    cl_event event = launch(buffer, 2);
    CHECK(see_end(begin_read()) == CL_COMPLETE);
    CHECK(differing(out, 2) == 0);
    CHECK(status_of(event) == CL_RUNNING);
    NEED(clReleaseEvent(event));
    NEED(clReleaseCommandQueue(queue));
    queue = saved;
}

static void an_end_is_seen_late(void)
{
    begin_with(1);
    plan("kernel at=1 late-seen=80ms");
    uint64_t before = now_ns();
    cl_event event = launch(buffer, 2);
    cl_command_type type;
    NEED(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK(type == CL_COMMAND_NDRANGE_KERNEL);
    CHECK(see_end(event) == CL_COMPLETE && now_ns() - before >= 80000000);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void a_command_fails_without_running(void)
{
    begin_with(1);
    plan("clEnqueueNDRangeKernel at=1 status=-5; read at=1 status=CL_OUT_OF_HOST_MEMORY");
    cl_event event = launch(buffer, 2);
    NEED(clFlush(queue));
    CHECK(clWaitForEvents(1, &event) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(see_end(event) == CL_OUT_OF_RESOURCES);
    out[0] = 77;
    CHECK(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, BYTES, out, 0, NULL, NULL) == CL_OUT_OF_HOST_MEMORY);
    CHECK(out[0] == 77);
    read_all();
    CHECK(differing(out, 1) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 1 && fault.count(1, FAULT_STRUCK) == 1);
}

static void a_command_fails_after_running(void)
{
    begin_with(1);
    plan("kernel at=1 status-after=-9999");
    CHECK(see_end(launch(buffer, 2)) == -9999);
    read_all();
    CHECK(differing(out, 2) == 0);
}

static void nothing_runs_before_a_flush(void)
{
    begin_with(1);
    plan("kernel needs-flush");
    cl_event event = launch(buffer, 2);
    usleep(30000);
    CHECK(status_of(event) > CL_COMPLETE);
    CHECK(see_end(event) == CL_COMPLETE);
    just_launch(buffer, 3);
    NEED(clFinish(queue));
    read_all();
    CHECK(differing(out, 3) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 2);
}

static uint64_t profiled_ns(cl_event event)
{
    cl_ulong start = 0, end = 0;
    NEED(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
    NEED(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
    return end - start;
}

/* How long a launch takes: by its times, or by the clock where the driver keeps none. */
static uint64_t launch_ns(void)
{
    uint64_t before = now_ns();
    cl_event event = launch(buffer, 2);
    NEED(clFlush(queue));
    CHECK(await(event) == CL_COMPLETE);
    uint64_t wall = now_ns() - before, profiled = profiled_ns(event);
    NEED(clReleaseEvent(event));
    return profiled > 1000 ? profiled : wall;
}

static void a_device_is_slow(void)
{
    char text[64];
    uint64_t least = UINT64_MAX;
    begin_with(1);
    for (int i = 0; i < 5; i++) {
        uint64_t ns = launch_ns();
        least = ns < least ? ns : least;
    }
    /* So slow that it takes 0.2 s, and not less than a twentieth of that whatever the first ones suffered. */
    snprintf(text, sizeof text, "kernel slow=%u", (unsigned)(200000000 / least + 2));
    plan(text);
    CHECK(launch_ns() > 10000000);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

/* --- What events say -------------------------------------------------------------------------------------------- */

static void times_lie(void)
{
    static const char *const plans[] = {"event at=1 profile=backwards", "event at=1 profile=zero",
                                        "event at=1 profile=huge", "event at=1 profile=error"};
    for (int i = 0; i < 4; i++) {
        cl_ulong start = 1, end = 2;
        begin_with(1);
        plan(plans[i]);
        cl_event event = launch(buffer, 2);
        NEED(clFlush(queue));
        await(event);
        cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL);
        cl_int code2 = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL);
        CHECK((code == CL_SUCCESS) == (i != 3) && code2 == code);
        CHECK(i == 0 ? end < start : i == 1 ? !start && !end : i == 2 ? end - start > UINT64_C(1) << 61 : true);
        NEED(clReleaseEvent(event));
        CHECK(fault.count(0, FAULT_STRUCK) == 1);
    }
}

static void a_status_cannot_be_had(void)
{
    begin_with(1);
    plan("event at=1 status-query=CL_OUT_OF_HOST_MEMORY");
    cl_event event = launch(buffer, 2);
    CHECK(status_of(event) == CL_OUT_OF_HOST_MEMORY);
    NEED(clFinish(queue));
    NEED(clReleaseEvent(event));
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static atomic_int calls, last_status, early_calls;
static atomic_bool over;

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)user;
    if (!atomic_load(&over))
        atomic_fetch_add(&early_calls, 1);
    atomic_store(&last_status, status);
    atomic_fetch_add(&calls, 1);
}

static void await_calls(int count)
{
    for (int i = 0; i < 20000 && atomic_load(&calls) < count; i++)
        usleep(500);
}

static void reset_calls(void)
{
    atomic_store(&calls, 0);
    atomic_store(&early_calls, 0);
    atomic_store(&last_status, 99);
    atomic_store(&over, true);
}

static void run_with_callback(const char *text)
{
    begin_with(1);
    plan(text);
    reset_calls();
    cl_event event = launch(buffer, 2);
    NEED(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
    see_end(event);
}

static void callbacks_lie(void)
{
    run_with_callback("");
    await_calls(1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) == CL_COMPLETE);

    run_with_callback("event at=1 callback=drop");
    usleep(50000);
    CHECK(atomic_load(&calls) == 0 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=twice");
    await_calls(2);
    CHECK(atomic_load(&calls) == 2 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=wrong-status");
    await_calls(1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) < 0 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=late=1000ms");
    CHECK(atomic_load(&calls) == 0);
    await_calls(1);
    CHECK(atomic_load(&calls) == 1 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("kernel at=1 status=-5");
    await_calls(1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) == CL_OUT_OF_RESOURCES);
}

static void a_callback_comes_early(void)
{
    begin_with(1);
    plan("event at=1 callback=early; kernel at=1 late=1000ms");
    reset_calls();
    atomic_store(&over, false);
    cl_event event = launch(buffer, 2);
    NEED(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
    CHECK(atomic_load(&early_calls) == 1 && status_of(event) > CL_COMPLETE);
    CHECK(see_end(event) == CL_COMPLETE);
    CHECK(atomic_load(&calls) == 1);
}

/* --- Wrong results ------------------------------------------------------------------------------------------------ */

static void reads_are_corrupted(void)
{
    begin_with(1);
    plan("read at=1 corrupt=3; read at=2 corrupt=1");
    read_all();
    CHECK(differing(out, 1) > 0 && differing(out, 1) <= 3);
    CHECK(see_end(begin_read()) == CL_COMPLETE);
    CHECK(differing(out, 1) == 1);
    read_all();
    CHECK(differing(out, 1) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 1 && fault.count(1, FAULT_STRUCK) == 1);
}

static void a_kernel_computes_wrong(void)
{
    begin_with(1);
    plan("kernel at=2 corrupt=1");
    just_launch(buffer, 2);
    read_all();
    CHECK(differing(out, 2) == 0);
    just_launch(buffer, 3);
    CHECK(fault.count(0, FAULT_STRUCK) == 0);
    read_all();
    CHECK(differing(out, 3) == 1 && fault.count(0, FAULT_STRUCK) == 1);
    just_launch(buffer, 4);
    read_all();
    CHECK(differing(out, 4) == 0);
}

static void a_mapped_kernel_computes_wrong(void)
{
    cl_int code;
    cl_event event;
    begin_with(1);
    plan("kernel at=1 corrupt=2");
    just_launch(wrapper, 6);
    cl_uint *p = clEnqueueMapBuffer(queue, wrapper, CL_FALSE, CL_MAP_READ, 0, BYTES, 0, NULL, &event, &code);
    NEED(code);
    CHECK(see_end(event) == CL_COMPLETE);
    CHECK(p == host && differing(host, 6) > 0 && differing(host, 6) <= 2);
    NEED(clEnqueueUnmapMemObject(queue, wrapper, p, 0, NULL, NULL));
    NEED(clFinish(queue));
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void a_part_of_a_buffer_is_wrong(void)
{
    cl_int code;
    begin_with(1);
    plan("kernel at=1 corrupt=1");
    cl_buffer_region region = {BYTES / 2, BYTES / 2};
    cl_mem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    NEED(code);
    size_t items = ITEMS / 2, local = 64;
    cl_uint value = 8;
    NEED(clSetKernelArg(fill, 0, sizeof part, &part));
    NEED(clSetKernelArg(fill, 1, sizeof value, &value));
    NEED(clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, &local, 0, NULL, NULL));
    NEED(clReleaseMemObject(part));
    read_all();
    unsigned first = 0, second = 0;
    for (int i = 0; i < ITEMS; i++)
        *(i < ITEMS / 2 ? &first : &second) += out[i] != (i < ITEMS / 2 ? 1u : 8u);
    CHECK(first == 0 && second == 1);
}

/* --- Devices that vanish ------------------------------------------------------------------------------------------ */

static void a_device_vanishes(void)
{
    cl_int code;
    cl_bool available;
    begin_with(1);
    plan("kernel at=2 late=10s; clCreateSampler vanish");
    CHECK(see_end(launch(buffer, 2)) == CL_COMPLETE);
    cl_event under_way = launch(buffer, 3), behind = launch(buffer, 3), last = launch(buffer, 3);
    reset_calls();
    NEED(clSetEventCallback(under_way, CL_COMPLETE, on_event, NULL));
    NEED(clSetEventCallback(behind, CL_COMPLETE, on_event, NULL));
    NEED(clFlush(queue));
    CHECK(status_of(under_way) == CL_RUNNING);
    CHECK(!clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code) && code);
    CHECK(status_of(under_way) < 0);
    CHECK(clWaitForEvents(1, &under_way) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(await(last) < 0);
    await_calls(2);
    CHECK(atomic_load(&calls) == 2 && atomic_load(&last_status) < 0);
    NEED(clReleaseEvent(under_way));
    NEED(clReleaseEvent(behind));
    NEED(clReleaseEvent(last));
    size_t items = ITEMS, local = 64;
    CHECK(clSetKernelArg(fill, 0, sizeof buffer, &buffer) != CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, &local, 0, NULL, NULL) != CL_SUCCESS);
    CHECK(clFinish(queue) != CL_SUCCESS && clFlush(queue) != CL_SUCCESS);
    CHECK(!clCreateBuffer(context, 0, 64, NULL, &code) && code);
    NEED(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL));
    CHECK(!available);
    CHECK(!clCreateContext(NULL, 1, &device, NULL, NULL, &code) && code == CL_DEVICE_NOT_AVAILABLE);
    CHECK(fault.count(1, FAULT_STRUCK) == 1);
    plan("clCreateSampler vanish for=50ms");
    cl_context released = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    NEED(code);
    cl_command_queue left = clCreateCommandQueue(released, device, 0, &code);
    NEED(code);
    cl_mem mapped = clCreateBuffer(released, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    NEED(code);
    void *at = clEnqueueMapBuffer(left, mapped, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &code);
    NEED(code);
    NEED(clReleaseContext(released));
    CHECK(!clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code) && code);
    CHECK(clEnqueueUnmapMemObject(left, mapped, at, 0, NULL, NULL) != CL_SUCCESS);
    cl_uint refs = 2; /* the mapping's must go all the same */
    for (int tries = 0; refs > 1 && tries < 1000; tries++) {
        NEED(clGetMemObjectInfo(mapped, CL_MEM_REFERENCE_COUNT, sizeof refs, &refs, NULL));
        usleep(1000);
    }
    CHECK(refs == 1);
    NEED(clReleaseMemObject(mapped));
    for (available = CL_FALSE; !available; usleep(1000))
        NEED(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL));
    CHECK(clFinish(queue) != CL_SUCCESS && clFinish(left) != CL_SUCCESS);
    NEED(clReleaseCommandQueue(left));
    cl_context fresh = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(fresh && code == CL_SUCCESS);
    cl_command_queue fresh_queue = fresh ? clCreateCommandQueue(fresh, device, 0, &code) : NULL;
    CHECK(fresh_queue && clFinish(fresh_queue) == CL_SUCCESS);
    if (fresh_queue)
        NEED(clReleaseCommandQueue(fresh_queue));
    if (fresh)
        NEED(clReleaseContext(fresh));
    tear_down(); /* the old ones are dead for ever */
    set_up();
    begin_with(5);
}

/* --- The rest ----------------------------------------------------------------------------------------------------- */

static void bad_plans_are_refused(void)
{
    char why[256];
    CHECK(fault.load("kernel at=1 nothing", why, sizeof why) == -1 && strstr(why, "plan:1: "));
    CHECK(fault.load("\nkernel at=1", why, sizeof why) == -1 && strstr(why, "plan:2: "));
}

static void run(const char *name, void (*act)(void))
{
    int before = failures;
    act();
    plan("");
    printf("%s %s\n", failures == before ? "ok    " : "FAILED", name);
    fflush(stdout);
}
#define RUN(what) run(#what, what)

int main(int argc, char **argv)
{
    bool gates = true;
    if (argc > 1 && !strcmp(argv[1], "-g")) {
        gates = false;
        argc--;
        argv++;
    }
    if (!fault_open(&fault, argc > 1 ? argv[1] : NULL))
        return 2;
    if (!find_device(CL_DEVICE_TYPE_ALL, &device)) {
        printf("skipped, because there is no OpenCL device\n");
        return 77;
    }
    host = aligned_alloc(4096, BYTES);
    out = malloc(BYTES);
    if (!host || !out)
        return 2;
    set_up();
    RUN(bad_plans_are_refused);
    RUN(an_enqueue_fails);
    RUN(calls_of_other_kinds_fail);
    RUN(a_call_hangs);
    RUN(another_device_is_left_alone);
    RUN(the_time_must_have_come);
    RUN(sub_devices_are_told_apart);
    RUN(a_command_is_never_seen_to_end);
    RUN(a_command_fails_without_running);
    RUN(a_command_fails_after_running);
    RUN(times_lie);
    RUN(a_status_cannot_be_had);
    RUN(callbacks_lie);
    RUN(an_end_is_seen_late);
    RUN(a_device_is_slow);
    RUN(reads_are_corrupted);
    RUN(a_kernel_computes_wrong);
    RUN(a_mapped_kernel_computes_wrong);
    RUN(a_part_of_a_buffer_is_wrong);
    if (gates) {
        RUN(a_late_command_writes_late);
        RUN(what_is_released_ends_all_the_same);
        RUN(a_blocking_read_is_late);
        RUN(a_command_never_ends);
        RUN(nothing_runs_before_a_flush);
        RUN(a_callback_comes_early);
        RUN(a_device_vanishes);
    }
    plan("");
    tear_down();
    free(out);
    printf("%d checks, %d failed\n", checks, failures);
    return failures ? 1 : 0;
}
