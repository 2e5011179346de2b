/* Tests the fault layer with plain OpenCL calls on the first device. Each fault is injected once. The test checks
 * what the application sees, and that the layer counts the fault.
 *
 *   fault_selftest [-g] [LAYER]
 *
 * -g skips the tests in which a command is held back. The exit status is 77 without OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "control.h"
#include "support/layer_selftest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 4096, BYTES = ITEMS * 4 };
enum {
    WRONG_US = 20000
}; /* wait this long for what must not happen; on a slow machine this may miss a fault, but
                            * never reports a false one */

#define MS UINT64_C(1000000)

static const char source[] = "__kernel void fill(__global uint *out, uint value) { out[get_global_id(0)] = value; }\n";

static struct fault fault;
static int failures, checks;
static bool gates = true; /* commands can be held back */
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;
static cl_kernel fill;
static cl_mem buffer, wrapper;
static cl_uint *host, *out; /* `wrapper` uses the memory `host` */

#define CHECK(what)                                                      \
    do {                                                                 \
        checks++;                                                        \
        if (!(what)) {                                                   \
            printf("  %s:%d: %s is false\n", __func__, __LINE__, #what); \
            failures++;                                                  \
        }                                                                \
    } while (0)

static void plan(const char *text)
{
    char why[256];
    if (fault.load(text, why, sizeof why) != 0) {
        fprintf(stderr, "%s\n", why);
        exit(2);
    }
}

static cl_int status_of(cl_event event)
{
    cl_int status;
    cl_int code = clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
    return code ? code : status;
}

static cl_int try_launch(cl_mem mem, cl_uint value, cl_event *event)
{
    const size_t items = ITEMS, local = 64;
    set_args(fill, mem, sizeof value, &value);
    return clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, &local, 0, NULL, event);
}

static cl_event begin(cl_uint value)
{
    cl_event event;
    NEED(try_launch(buffer, value, &event));
    return event;
}

/* Launches without an event. */
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

/* Polls until the command has ended. Flush the queue first. */
static cl_int await(cl_event event)
{
    AWAIT(status_of(event) <= CL_COMPLETE);
    return status_of(event);
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

/* How many items differ from the value. */
static unsigned differing(const cl_uint *from, cl_uint value)
{
    unsigned count = 0;
    for (int i = 0; i < ITEMS; i++)
        count += from[i] != value;
    return count;
}

/* Fills the buffer with ones, then loads the plan. */
static void begin_with(const char *text)
{
    plan("");
    see_end(begin(1));
    read_all();
    CHECK(differing(out, 1) == 0);
    plan(text);
}

static void set_up(void)
{
    context = new_context(1, &device);
    queue = new_queue(context, device, CL_QUEUE_PROFILING_ENABLE);
    program = new_program(context, source);
    fill = new_kernel(program, "fill");
    buffer = new_buffer(context, CL_MEM_READ_WRITE, BYTES, NULL);
    wrapper = new_buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, BYTES, host);
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
    begin_with("clEnqueueNDRangeKernel at=2 count=2 error=CL_OUT_OF_RESOURCES");
    CHECK(see_end(begin(2)) == CL_COMPLETE);
    CHECK(try_launch(buffer, 3, &event) == CL_OUT_OF_RESOURCES && !event);
    CHECK(try_launch(buffer, 4, &event) == CL_OUT_OF_RESOURCES && !event);
    read_all();
    CHECK(differing(out, 2) == 0);
    CHECK(see_end(begin(5)) == CL_COMPLETE);
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
    const uint64_t before = fault.advance(0);
    NEED(clFinish(queue));
    CHECK(fault.advance(0) == before + 60 * MS);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void another_device_is_left_alone(void)
{
    plan("kernel device=99 error=-5; kernel device=\"no such device\" error=-5; kernel device=0.7 error=-5");
    CHECK(see_end(begin(1)) == CL_COMPLETE);
    for (unsigned i = 0; i < 3; i++)
        CHECK(fault.count(i, FAULT_MATCHED) == 0);
}

static void the_time_must_have_come(void)
{
    plan("kernel after=1000ms error=-5");
    fault.advance(999 * MS);
    CHECK(see_end(begin(1)) == CL_COMPLETE);
    fault.advance(MS);
    CHECK(try_launch(buffer, 1, NULL) == CL_OUT_OF_RESOURCES);
}

/* Sub-devices are created twice. The layer must identify them with the first ones. */
static void sub_devices_are_told_apart(void)
{
    for (int round = 0; round < 2; round++) {
        cl_int code;
        cl_device_id half[2];
        cl_command_queue queues[2];
        plan("flush device=0.1 error=-5; flush device=0.0 error=-6 at=2; wait device=0 hang=1ms; map device=0.1 vanish;"
             "release device=0.1 hang=1ms; clCreateBuffer device=0.1 hang=1ms");
        if (!halve_device(device, half)) {
            printf("       sub-devices: skipped, because the device cannot be partitioned\n");
            return;
        }
        cl_context both = new_context(2, half);
        for (int i = 0; i < 2; i++)
            queues[i] = new_queue(both, half[i], 0);
        CHECK(clFlush(queues[0]) == CL_SUCCESS && clFlush(queues[1]) == CL_OUT_OF_RESOURCES);
        CHECK(clFlush(queues[0]) == CL_OUT_OF_HOST_MEMORY);
        CHECK(clFlush(queues[0]) == CL_SUCCESS);
        CHECK(clFinish(queues[0]) == CL_SUCCESS && fault.count(2, FAULT_STRUCK) == 1);
        cl_mem mem = new_buffer(both, 0, 64, NULL);
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
    begin_with("kernel at=1 late=1000ms");
    cl_event event = begin(2), read = begin_read();
    NEED(clFlush(queue));
    out[0] = 77;
    usleep(WRONG_US);
    fault.advance(999 * MS);
    usleep(WRONG_US);
    CHECK(status_of(event) == CL_RUNNING && out[0] == 77);
    fault.advance(MS);
    CHECK(see_end(event) == CL_COMPLETE);
    CHECK(see_end(read) == CL_COMPLETE && differing(out, 2) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

/* Runs `act` with its own queue, which is released afterwards. */
static void in_own_queue(void (*act)(void))
{
    cl_command_queue saved = queue;
    queue = new_queue(context, device, CL_QUEUE_PROFILING_ENABLE);
    act();
    NEED(clReleaseCommandQueue(queue));
    queue = saved;
}

static cl_event left;

static void launch_and_leave(void)
{
    left = begin(2);
}

static void what_is_released_ends_all_the_same(void)
{
    begin_with("kernel at=1 late=50ms");
    in_own_queue(launch_and_leave);
    fault.advance(50 * MS);
    CHECK(await(left) == CL_COMPLETE);
    NEED(clReleaseEvent(left));
    read_all();
    CHECK(differing(out, 2) == 0);
}

static void *read_in_a_thread(void *over)
{
    read_all();
    atomic_store((atomic_bool *)over, true);
    return NULL;
}

static void a_blocking_read_is_late(void)
{
    pthread_t thread;
    atomic_bool over = false;
    begin_with("read at=1 late=50ms");
    NEED(pthread_create(&thread, NULL, read_in_a_thread, &over));
    AWAIT(fault.count(0, FAULT_STRUCK) == 1);
    usleep(WRONG_US);
    CHECK(!atomic_load(&over));
    fault.advance(50 * MS);
    NEED(pthread_join(thread, NULL));
    CHECK(differing(out, 1) == 0);
}

static void see_no_end(void)
{
    cl_event event = begin(2), behind = begin(3);
    NEED(clFlush(queue));
    fault.advance(86400000 * MS);
    usleep(WRONG_US);
    CHECK(status_of(event) == CL_RUNNING && status_of(behind) > CL_COMPLETE);
    NEED(clReleaseEvent(event));
    NEED(clReleaseEvent(behind));
}

static void a_command_never_ends(void)
{
    begin_with("kernel at=1 never");
    in_own_queue(see_no_end);
    read_all();
    CHECK(differing(out, 1) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void see_only_the_next_end(void)
{
    cl_event event = begin(2);
    CHECK(see_end(begin_read()) == CL_COMPLETE);
    CHECK(differing(out, 2) == 0);
    CHECK(status_of(event) == CL_RUNNING);
    NEED(clReleaseEvent(event));
}

static void a_command_is_never_seen_to_end(void)
{
    begin_with("kernel at=1 never-seen");
    in_own_queue(see_only_the_next_end);
}

static void an_end_is_seen_late(void)
{
    begin_with("kernel at=1 late-seen=80ms");
    const uint64_t before = fault.advance(0);
    cl_event event = begin(2);
    cl_command_type type;
    NEED(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, NULL));
    CHECK(type == CL_COMMAND_NDRANGE_KERNEL);
    NEED(clFlush(queue));
    AWAIT(fault.count(0, FAULT_STRUCK) == 1);
    if (gates) {
        fault.advance(79 * MS);
        usleep(WRONG_US);
        CHECK(status_of(event) == CL_RUNNING);
        fault.advance(MS);
    }
    CHECK(see_end(event) == CL_COMPLETE && fault.advance(0) == before + 80 * MS);
}

static void a_command_fails_without_running(void)
{
    begin_with("clEnqueueNDRangeKernel at=1 status=-5; read at=1 status=CL_OUT_OF_HOST_MEMORY");
    cl_event event = begin(2);
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
    begin_with("kernel at=1 status-after=-9999");
    CHECK(see_end(begin(2)) == -9999);
    read_all();
    CHECK(differing(out, 2) == 0);
}

static void nothing_runs_before_a_flush(void)
{
    begin_with("kernel needs-flush");
    cl_event event = begin(2);
    usleep(WRONG_US);
    CHECK(status_of(event) > CL_COMPLETE);
    CHECK(see_end(event) == CL_COMPLETE);
    just_launch(buffer, 3);
    NEED(clFinish(queue));
    read_all();
    CHECK(differing(out, 3) == 0);
    CHECK(fault.count(0, FAULT_STRUCK) == 2);
}

static void a_device_is_slow(void)
{
    cl_ulong start = 0, end = 0;
    begin_with("kernel slow=1000000");
    cl_event event = begin(2);
    NEED(clFlush(queue));
    AWAIT(fault.count(0, FAULT_STRUCK) == 1);
    if (gates) { /* every command lasts at least 1 us, so at least a second now */
        fault.advance(MS);
        usleep(WRONG_US);
        CHECK(status_of(event) == CL_RUNNING);
        fault.advance(86400000 * MS);
    }
    CHECK(await(event) == CL_COMPLETE);
    NEED(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
    NEED(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
    CHECK(end - start >= 1000 * WRONG_US || end - start <= 1000 /* the driver keeps no times */);
    NEED(clReleaseEvent(event));
}

/* --- What events report ------------------------------------------------------------------------------------------ */

static void times_lie(void)
{
    static const char *const plans[] = {"event at=1 profile=backwards", "event at=1 profile=zero",
                                        "event at=1 profile=huge", "event at=1 profile=error"};
    for (int i = 0; i < 4; i++) {
        cl_ulong start = 1, end = 2;
        begin_with(plans[i]);
        cl_event event = begin(2);
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
    begin_with("event at=1 status-query=CL_OUT_OF_HOST_MEMORY");
    cl_event event = begin(2);
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

static void reset_calls(void)
{
    atomic_store(&calls, 0);
    atomic_store(&early_calls, 0);
    atomic_store(&last_status, 99);
    atomic_store(&over, true);
}

static void run_with_callback(const char *text)
{
    begin_with(text);
    reset_calls();
    cl_event event = begin(2);
    NEED(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
    see_end(event);
}

static void callbacks_lie(void)
{
    run_with_callback("");
    AWAIT(atomic_load(&calls) >= 1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) == CL_COMPLETE);

    run_with_callback("event at=1 callback=drop");
    usleep(WRONG_US);
    CHECK(atomic_load(&calls) == 0 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=twice");
    AWAIT(atomic_load(&calls) >= 2);
    CHECK(atomic_load(&calls) == 2 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=wrong-status");
    AWAIT(atomic_load(&calls) >= 1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) < 0 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("event at=1 callback=late=1000ms");
    usleep(WRONG_US);
    CHECK(atomic_load(&calls) == 0);
    fault.advance(1000 * MS);
    AWAIT(atomic_load(&calls) >= 1);
    CHECK(atomic_load(&calls) == 1 && fault.count(0, FAULT_STRUCK) == 1);

    run_with_callback("kernel at=1 status=-5");
    AWAIT(atomic_load(&calls) >= 1);
    CHECK(atomic_load(&calls) == 1 && atomic_load(&last_status) == CL_OUT_OF_RESOURCES);
}

static void a_callback_comes_early(void)
{
    begin_with("event at=1 callback=early; kernel at=1 late=1000ms");
    reset_calls();
    atomic_store(&over, false);
    cl_event event = begin(2);
    NEED(clSetEventCallback(event, CL_COMPLETE, on_event, NULL));
    CHECK(atomic_load(&early_calls) == 1 && status_of(event) > CL_COMPLETE);
    NEED(clFlush(queue));
    fault.advance(1000 * MS);
    CHECK(see_end(event) == CL_COMPLETE);
    CHECK(atomic_load(&calls) == 1);
}

/* --- Wrong results ------------------------------------------------------------------------------------------------ */

static void reads_are_corrupted(void)
{
    begin_with("read at=1 corrupt=3; read at=2 corrupt=1");
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
    begin_with("kernel at=2 corrupt=1");
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
    cl_event event;
    begin_with("kernel at=1 corrupt=2");
    just_launch(wrapper, 6);
    cl_uint *p = new_mapping(queue, wrapper, CL_FALSE, CL_MAP_READ, BYTES, &event);
    CHECK(see_end(event) == CL_COMPLETE);
    CHECK(p == host && differing(host, 6) > 0 && differing(host, 6) <= 2);
    NEED(clEnqueueUnmapMemObject(queue, wrapper, p, 0, NULL, NULL));
    NEED(clFinish(queue));
    CHECK(fault.count(0, FAULT_STRUCK) == 1);
}

static void a_part_of_a_buffer_is_wrong(void)
{
    begin_with("kernel at=1 corrupt=1");
    cl_mem part = new_part(buffer, 0, BYTES / 2, BYTES / 2);
    set_args(fill, part, sizeof(cl_uint), &(const cl_uint){8});
    NEED(clReleaseEvent(launch(queue, fill, ITEMS / 2, NULL)));
    NEED(clReleaseMemObject(part));
    read_all();
    unsigned first = 0, second = 0;
    for (int i = 0; i < ITEMS; i++)
        *(i < ITEMS / 2 ? &first : &second) += out[i] != (i < ITEMS / 2 ? 1u : 8u);
    CHECK(first == 0 && second == 1);
}

/* --- Devices that vanish ------------------------------------------------------------------------------------------ */

static bool is_available(void)
{
    cl_bool available;
    NEED(clGetDeviceInfo(device, CL_DEVICE_AVAILABLE, sizeof available, &available, NULL));
    return available;
}

static cl_uint references(cl_mem mem)
{
    cl_uint count;
    NEED(clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static void a_device_vanishes(void)
{
    cl_int code;
    begin_with("kernel at=2 late=10s; clCreateSampler vanish");
    CHECK(see_end(begin(2)) == CL_COMPLETE);
    cl_event under_way = begin(3), behind = begin(3), last = begin(3);
    reset_calls();
    NEED(clSetEventCallback(under_way, CL_COMPLETE, on_event, NULL));
    NEED(clSetEventCallback(behind, CL_COMPLETE, on_event, NULL));
    NEED(clFlush(queue));
    CHECK(status_of(under_way) == CL_RUNNING);
    CHECK(!clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code) && code);
    CHECK(status_of(under_way) < 0);
    CHECK(clWaitForEvents(1, &under_way) == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    CHECK(await(last) < 0);
    AWAIT(atomic_load(&calls) >= 2);
    CHECK(atomic_load(&calls) == 2 && atomic_load(&last_status) < 0);
    NEED(clReleaseEvent(under_way));
    NEED(clReleaseEvent(behind));
    NEED(clReleaseEvent(last));
    const size_t items = ITEMS, local = 64;
    CHECK(clSetKernelArg(fill, 0, sizeof buffer, &buffer) != CL_SUCCESS);
    CHECK(clEnqueueNDRangeKernel(queue, fill, 1, NULL, &items, &local, 0, NULL, NULL) != CL_SUCCESS);
    CHECK(clFinish(queue) != CL_SUCCESS && clFlush(queue) != CL_SUCCESS);
    CHECK(!clCreateBuffer(context, 0, 64, NULL, &code) && code);
    CHECK(!is_available());
    CHECK(!clCreateContext(NULL, 1, &device, NULL, NULL, &code) && code == CL_DEVICE_NOT_AVAILABLE);
    CHECK(fault.count(1, FAULT_STRUCK) == 1);
    plan("clCreateSampler vanish for=50ms");
    cl_context released = new_context(1, &device);
    cl_command_queue left = new_queue(released, device, 0);
    cl_mem mapped = new_buffer(released, CL_MEM_READ_WRITE, BYTES, NULL);
    void *at = new_mapping(left, mapped, CL_TRUE, CL_MAP_READ, BYTES, NULL);
    NEED(clReleaseContext(released));
    CHECK(!clCreateSampler(context, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST, &code) && code);
    CHECK(clEnqueueUnmapMemObject(left, mapped, at, 0, NULL, NULL) != CL_SUCCESS);
    AWAIT(references(mapped) == 1); /* the mapping's reference must be released nevertheless */
    NEED(clReleaseMemObject(mapped));
    CHECK(!is_available());
    fault.advance(50 * MS);
    CHECK(is_available());
    CHECK(clFinish(queue) != CL_SUCCESS && clFinish(left) != CL_SUCCESS);
    NEED(clReleaseCommandQueue(left));
    cl_context fresh = new_context(1, &device);
    cl_command_queue fresh_queue = new_queue(fresh, device, 0);
    CHECK(clFinish(fresh_queue) == CL_SUCCESS);
    NEED(clReleaseCommandQueue(fresh_queue));
    NEED(clReleaseContext(fresh));
    tear_down(); /* the old objects stay unusable */
    set_up();
    begin_with("");
}

/* --- Other tests -------------------------------------------------------------------------------------------------- */

static void bad_plans_are_refused(void)
{
    char why[256];
    CHECK(fault.load("kernel at=1 nothing", why, sizeof why) == -1 && strstr(why, "plan:1: "));
    CHECK(fault.load("\nkernel at=1", why, sizeof why) == -1 && strstr(why, "plan:2: "));
}

#define ALWAYS(act)      \
    {                    \
#act, act, false \
    }
#define WITH_GATES(act) \
    {                   \
#act, act, true \
    }

static const struct scene {
    const char *name;
    void (*act)(void);
    bool needs_gates;
} scenes[] = {
    ALWAYS(bad_plans_are_refused),
    ALWAYS(an_enqueue_fails),
    ALWAYS(calls_of_other_kinds_fail),
    ALWAYS(a_call_hangs),
    ALWAYS(another_device_is_left_alone),
    ALWAYS(the_time_must_have_come),
    ALWAYS(sub_devices_are_told_apart),
    ALWAYS(a_command_is_never_seen_to_end),
    ALWAYS(a_command_fails_without_running),
    ALWAYS(a_command_fails_after_running),
    ALWAYS(times_lie),
    ALWAYS(a_status_cannot_be_had),
    ALWAYS(callbacks_lie),
    ALWAYS(an_end_is_seen_late),
    ALWAYS(a_device_is_slow),
    ALWAYS(reads_are_corrupted),
    ALWAYS(a_kernel_computes_wrong),
    ALWAYS(a_mapped_kernel_computes_wrong),
    ALWAYS(a_part_of_a_buffer_is_wrong),
    WITH_GATES(a_late_command_writes_late),
    WITH_GATES(what_is_released_ends_all_the_same),
    WITH_GATES(a_blocking_read_is_late),
    WITH_GATES(a_command_never_ends),
    WITH_GATES(nothing_runs_before_a_flush),
    WITH_GATES(a_callback_comes_early),
    WITH_GATES(a_device_vanishes),
};

static void play(const struct scene *scene)
{
    int before = failures;
    scene->act();
    plan("");
    printf("%s %s\n", failures == before ? "ok    " : "FAILED", scene->name);
    fflush(stdout);
}

int main(int argc, char **argv)
{
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
    fault.advance(0); /* stops the clock, so that nothing depends on the machine's speed */
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (gates || !scenes[i].needs_gates)
            play(&scenes[i]);
    plan("");
    tear_down();
    free(out);
    printf("%d checks, %d failed\n", checks, failures);
    return failures ? 1 : 0;
}
