/* Does the auditing layer see what it is there to see? Hand-written OpenCL commits each sin; the layer must report
 * that rule and no other, and must find nothing in what is clean.
 * Run as  audit_selftest [LAYER]; exit status 77 without OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "control.h"
#include "support/layer_selftest.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ITEMS = 16384, BYTES = ITEMS * 4, HALF = BYTES / 2, FRAMES = 200, THREADS = 4, THREAD_FRAMES = 200 };

static const char source[] = "__kernel void fill(__global uint *out, uint value) { out[get_global_id(0)] = value; }\n"
                             "__kernel void copy(__global const uint *in, __global uint *out)\n"
                             "{ out[get_global_id(0)] = in[get_global_id(0)]; }\n";

static struct audit audit;
static int failures;

/* Two devices of one context with a queue each; one device twice where it cannot be partitioned. */
static cl_device_id device[2], whole_device;
static bool two_devices;
static cl_context context;
static cl_command_queue queue[2];
static cl_program program;
static cl_kernel fill[2], copy;
static cl_mem buffer[2];
static unsigned char *host; /* 2 * BYTES, aligned to pages */

static cl_mem new_buffer(cl_mem_flags flags, size_t bytes, void *pointer)
{
    cl_int error;
    cl_mem mem = clCreateBuffer(context, flags, bytes, pointer, &error);
    NEED(error);
    return mem;
}

static cl_mem new_part(cl_mem parent, cl_mem_flags flags, size_t from, size_t bytes)
{
    cl_int error;
    cl_buffer_region region = {from, bytes};
    cl_mem mem = clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    NEED(error);
    return mem;
}

static cl_kernel new_kernel(const char *name)
{
    cl_int error;
    cl_kernel kernel = clCreateKernel(program, name, &error);
    NEED(error);
    return kernel;
}

static void free_mem(cl_mem mem)
{
    NEED(clReleaseMemObject(mem));
}

/* Launch fill number `k` on queue number `q`. */
static cl_event launch_fill(int q, int k, cl_mem out, size_t items, const cl_event *wait)
{
    cl_event event;
    size_t local = 64;
    cl_uint value = 7;
    NEED(clSetKernelArg(fill[k], 0, sizeof out, &out));
    NEED(clSetKernelArg(fill[k], 1, sizeof value, &value));
    NEED(clEnqueueNDRangeKernel(queue[q], fill[k], 1, NULL, &items, &local, wait ? 1 : 0, wait, &event));
    return event;
}

static cl_int status_of(cl_event event)
{
    cl_int status;
    NEED(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
    return status;
}

static void flush_both(void)
{
    NEED(clFlush(queue[0]));
    NEED(clFlush(queue[1]));
}

/* Poll until it is over; the queues are flushed. */
static void see_end(cl_event event)
{
    while (status_of(event) > CL_COMPLETE)
        usleep(50);
    NEED(clReleaseEvent(event));
}

static void finish_both(void)
{
    flush_both();
    NEED(clFinish(queue[0]));
    NEED(clFinish(queue[1]));
}

static void drop(cl_event event)
{
    NEED(clReleaseEvent(event));
}

/* Run `act` in `phase` and expect `count` violations of `rule` and none of another. */
static void expect(const char *name, int phase, int rule, uint64_t count, void (*act)(void))
{
    uint64_t before[AUDIT_RULES];
    bool ok = true;
    for (int r = 0; r < AUDIT_RULES; r++)
        before[r] = audit.violations(r);
    audit.phase(phase);
    act();
    audit.phase(AUDIT_PHASE_SETUP);
    for (int r = 0; r < AUDIT_RULES; r++) {
        uint64_t got = audit.violations(r) - before[r];
        uint64_t wanted = r == rule ? count : 0;
        if (got != wanted) {
            printf("  %s: %llu, expected %llu\n", audit_rule_word(r), (unsigned long long)got,
                   (unsigned long long)wanted);
            ok = false;
        }
    }
    printf("%s %s\n", ok ? "ok    " : "FAILED", name);
    failures += !ok;
    finish_both();
}

#define CLEAN AUDIT_RULES, 0

/* --- Sins ------------------------------------------------------------------------------------------------ */

static void poll_with_an_unflushed_queue(void)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    cl_event b = launch_fill(1, 1, buffer[1], ITEMS, NULL);
    status_of(a); /* the sin */
    NEED(clFlush(queue[1]));
    see_end(a);
    see_end(b);
}

static void *enqueue_elsewhere(void *event)
{
    *(cl_event *)event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    return NULL;
}

static void poll_what_another_thread_did_not_flush(void)
{
    pthread_t thread;
    cl_event event;
    NEED(pthread_create(&thread, NULL, enqueue_elsewhere, &event));
    NEED(pthread_join(thread, NULL));
    status_of(event); /* the sin */
    NEED(clFlush(queue[0]));
    see_end(event);
}

static void poll_what_was_flushed_before_the_next_enqueue(void)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    cl_event b = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    see_end(a);
    see_end(b);
}

static void blocking_read(void)
{
    NEED(clEnqueueReadBuffer(queue[0], buffer[0], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
}

static void blocking_write(void)
{
    NEED(clEnqueueWriteBuffer(queue[0], buffer[0], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
}

static void blocking_rectangle(void)
{
    size_t origin[3] = {0, 0, 0}, region[3] = {64, 4, 1};
    NEED(clEnqueueReadBufferRect(queue[0], buffer[0], CL_TRUE, origin, origin, region, 128, 0, 128, 0, host, 0, NULL,
                                 NULL));
}

static void blocking_map(void)
{
    cl_int error;
    void *p = clEnqueueMapBuffer(queue[0], buffer[0], CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error);
    NEED(error);
    NEED(clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, NULL));
}

static void finish_in_a_frame(void)
{
    NEED(clFinish(queue[0]));
}

static void wait_in_a_frame(void)
{
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    NEED(clWaitForEvents(1, &event));
    drop(event);
}

static void launch_without_local_size(void)
{
    size_t items = ITEMS;
    cl_event event;
    NEED(clEnqueueNDRangeKernel(queue[0], fill[0], 1, NULL, &items, NULL, 0, NULL, &event));
    flush_both();
    see_end(event);
}

static void launch_with_another_local_size(void)
{
    cl_event event;
    cl_kernel kernel = new_kernel("fill");
    cl_uint value = 1;
    NEED(clSetKernelArg(kernel, 0, sizeof buffer[0], &buffer[0]));
    NEED(clSetKernelArg(kernel, 1, sizeof value, &value));
    for (size_t local = 64; local <= 128; local *= 2) {
        size_t items = ITEMS;
        NEED(clEnqueueNDRangeKernel(queue[0], kernel, 1, NULL, &items, &local, 0, NULL, &event));
        flush_both();
        see_end(event);
    }
    NEED(clReleaseKernel(kernel));
}

static void launch_with_an_offset(void)
{
    size_t items = ITEMS / 2, offset = ITEMS / 2, local = 64;
    cl_event event;
    NEED(clEnqueueNDRangeKernel(queue[0], fill[0], 1, &offset, &items, &local, 0, NULL, &event));
    flush_both();
    see_end(event);
}

static atomic_int called;

static void CL_CALLBACK sinful_callback(cl_event event, cl_int status, void *user)
{
    (void)status;
    (void)user;
    cl_uint count;
    clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, NULL); /* the sin */
    atomic_fetch_add(&called, 1);
}

static void CL_CALLBACK clean_callback(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)status;
    atomic_fetch_add((atomic_int *)user, 1);
}

static void await_calls(int count)
{
    for (int i = 0; i < 20000 && atomic_load(&called) < count; i++)
        usleep(500);
    if (atomic_load(&called) < count)
        printf("  the driver never called back\n");
}

static void call_from_a_callback(void)
{
    atomic_store(&called, 0);
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clSetEventCallback(event, CL_COMPLETE, sinful_callback, NULL));
    flush_both();
    await_calls(1);
    see_end(event);
}

static void callback_that_only_counts(void)
{
    atomic_store(&called, 0);
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clSetEventCallback(event, CL_COMPLETE, clean_callback, &called));
    flush_both();
    await_calls(1);
    see_end(event);
}

static void misaligned_part(void)
{
    cl_int error;
    cl_buffer_region region = {4, 64};
    cl_mem mem = clCreateSubBuffer(buffer[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (mem)
        free_mem(mem);
}

static void overlap_of_one_buffer(void)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    cl_event b = launch_fill(1, 1, buffer[0], ITEMS, NULL); /* the sin */
    flush_both();
    see_end(a);
    see_end(b);
}

/* Two parts of `shared`, on two queues at once. */
static void two_parts(size_t second_from)
{
    cl_mem p = new_part(buffer[0], CL_MEM_WRITE_ONLY, 0, HALF);
    cl_mem q = new_part(buffer[0], CL_MEM_WRITE_ONLY, second_from, HALF);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    cl_event b = launch_fill(1, 1, q, HALF / 4, NULL);
    flush_both();
    see_end(a);
    see_end(b);
    free_mem(p);
    free_mem(q);
}

static void overlapping_parts(void)
{
    two_parts(HALF - 4096);
}

static void disjoint_parts(void)
{
    two_parts(HALF);
}

/* Two wrappers of host memory, on two queues at once; the second is read only. */
static void two_wrappers(size_t second_from)
{
    cl_event b;
    size_t items = HALF / 4, local = 64;
    cl_mem p = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_WRITE_ONLY, HALF, host);
    cl_mem q = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, HALF, host + second_from);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    NEED(clSetKernelArg(copy, 0, sizeof q, &q));
    NEED(clSetKernelArg(copy, 1, sizeof buffer[1], &buffer[1]));
    NEED(clEnqueueNDRangeKernel(queue[1], copy, 1, NULL, &items, &local, 0, NULL, &b));
    flush_both();
    see_end(a);
    see_end(b);
    free_mem(p);
    free_mem(q);
}

static void overlapping_wrappers(void)
{
    two_wrappers(HALF - 4096);
}

static void disjoint_wrappers(void)
{
    two_wrappers(HALF);
}

/* A kernel writes host memory through one wrapper; another one, or a transfer, reads there through its own. */
static void hand_over(bool map, bool transfer)
{
    cl_int error;
    cl_event b;
    size_t items = HALF / 4, local = 64;
    cl_mem p = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, HALF, host);
    cl_mem q = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, HALF, host);
    void *mapped = NULL;
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    flush_both();
    see_end(a);
    if (map) {
        mapped = clEnqueueMapBuffer(queue[0], p, CL_FALSE, CL_MAP_READ, 0, HALF, 0, NULL, &b, &error);
        NEED(error);
        flush_both();
        see_end(b);
    }
    if (transfer) {
        NEED(clEnqueueWriteBuffer(queue[1], buffer[1], CL_FALSE, 0, HALF / 2, host + HALF / 4, 0, NULL, &b));
    } else {
        NEED(clSetKernelArg(copy, 0, sizeof q, &q));
        NEED(clSetKernelArg(copy, 1, sizeof buffer[1], &buffer[1]));
        NEED(clEnqueueNDRangeKernel(queue[1], copy, 1, NULL, &items, &local, 0, NULL, &b));
    }
    flush_both();
    see_end(b);
    if (map) {
        NEED(clEnqueueUnmapMemObject(queue[0], p, mapped, 0, NULL, &b));
        flush_both();
        see_end(b);
    }
    free_mem(p);
    free_mem(q);
}

static void hand_over_without_a_mapping(void)
{
    hand_over(false, false);
}

static void transfer_without_a_mapping(void)
{
    hand_over(false, true);
}

static void hand_over_by_a_mapping(void)
{
    hand_over(true, false);
    hand_over(true, true);
}

/* What is written anew has no need of the mapping. */
static void written_twice(void)
{
    cl_event b;
    size_t items = HALF / 4, local = 64;
    cl_mem p = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, HALF, host);
    cl_mem q = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, HALF, host + HALF);
    cl_mem r = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, BYTES, host);
    cl_event a = launch_fill(0, 0, r, ITEMS, NULL);
    flush_both();
    see_end(a);
    a = launch_fill(0, 0, p, HALF / 4, NULL);
    flush_both();
    see_end(a);
    free_mem(r); /* and so what is left of it */
    NEED(clSetKernelArg(copy, 0, sizeof q, &q));
    NEED(clSetKernelArg(copy, 1, sizeof buffer[1], &buffer[1]));
    NEED(clEnqueueNDRangeKernel(queue[1], copy, 1, NULL, &items, &local, 0, NULL, &b));
    flush_both();
    see_end(b);
    free_mem(p);
    free_mem(q);
}

static void transfer_into_a_wrapper(void)
{
    cl_event b;
    cl_mem p = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, HALF, host);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    NEED(clEnqueueReadBuffer(queue[1], buffer[1], CL_FALSE, 0, 64, host + HALF - 64, 0, NULL, &b)); /* the sin */
    flush_both();
    see_end(a);
    see_end(b);
    free_mem(p);
}

static void readers_of_one_buffer(void)
{
    cl_event event[2];
    size_t items = HALF / 4, local = 64;
    cl_mem in = new_buffer(CL_MEM_READ_ONLY, BYTES, NULL);
    for (int i = 0; i < 2; i++) {
        NEED(clSetKernelArg(copy, 0, sizeof in, &in));
        NEED(clSetKernelArg(copy, 1, sizeof buffer[i], &buffer[i]));
        NEED(clEnqueueNDRangeKernel(queue[i], copy, 1, NULL, &items, &local, 0, NULL, &event[i]));
    }
    flush_both();
    see_end(event[0]);
    see_end(event[1]);
    free_mem(in);
}

static void one_after_the_other_by_poll(void)
{
    for (int i = 0; i < 2; i++) {
        cl_event event = launch_fill(i, i, buffer[0], ITEMS, NULL);
        flush_both();
        see_end(event);
    }
}

/* The end of a later command of an in-order queue tells of the earlier ones, whose events nobody asked for. */
static void one_after_the_other_by_order(void)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    drop(a);
    cl_event b = launch_fill(0, 0, buffer[1], ITEMS, NULL);
    flush_both();
    see_end(b);
    cl_event c = launch_fill(1, 1, buffer[0], ITEMS, NULL);
    flush_both();
    see_end(c);
}

/* A second queue of device 0: a wait list orders what two queues do. */
static void two_queues_of_one_device(bool ordered, bool out_of_order)
{
    cl_int error;
    cl_event b;
    size_t items = ITEMS, local = 64;
    cl_command_queue second = clCreateCommandQueue(context, device[0],
                                                   out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &error);
    NEED(error);
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    NEED(clSetKernelArg(fill[1], 0, sizeof buffer[0], &buffer[0]));
    NEED(clEnqueueNDRangeKernel(second, fill[1], 1, NULL, &items, &local, ordered ? 1 : 0, ordered ? &a : NULL, &b));
    NEED(clFlush(second));
    drop(a);
    see_end(b);
    if (ordered) { /* and the end of the second tells of the first */
        cl_event c = launch_fill(1, 1, buffer[0], ITEMS, NULL);
        flush_both();
        see_end(c);
    }
    NEED(clReleaseCommandQueue(second));
}

static void ordered_by_a_wait_list(void)
{
    two_queues_of_one_device(true, false);
}

static void not_ordered(void)
{
    two_queues_of_one_device(false, false);
}

/* In an out-of-order queue only a barrier orders. */
static void out_of_order(bool barrier)
{
    cl_int error;
    cl_event a, b;
    size_t items = ITEMS, local = 64;
    cl_command_queue q = clCreateCommandQueue(context, device[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
    NEED(error);
    NEED(clSetKernelArg(fill[0], 0, sizeof buffer[0], &buffer[0]));
    NEED(clEnqueueNDRangeKernel(q, fill[0], 1, NULL, &items, &local, 0, NULL, &a));
    if (barrier)
        NEED(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
    NEED(clEnqueueNDRangeKernel(q, fill[0], 1, NULL, &items, &local, 0, NULL, &b));
    NEED(clFlush(q));
    see_end(b);
    see_end(a);
    NEED(clReleaseCommandQueue(q));
}

static void out_of_order_without_a_barrier(void)
{
    out_of_order(false);
}

static void out_of_order_with_a_barrier(void)
{
    out_of_order(true);
}

/* A copy to `bytes` of a buffer from `from` on, while a kernel of the same device has all of it as its argument. */
static void copy_beside(size_t from, size_t bytes)
{
    cl_int error;
    cl_event b;
    cl_command_queue second = clCreateCommandQueue(context, device[0], 0, &error);
    NEED(error);
    cl_event a = launch_fill(0, 0, buffer[0], HALF / 4, NULL);
    NEED(clEnqueueWriteBuffer(second, buffer[0], CL_FALSE, from, bytes, host, 0, NULL, &b)); /* the sin */
    NEED(clFlush(second));
    flush_both();
    see_end(a);
    see_end(b);
    NEED(clReleaseCommandQueue(second));
}

static void copy_beside_a_kernel(void)
{
    copy_beside(HALF, HALF);
}

static void copy_over_a_kernel(void)
{
    copy_beside(0, BYTES);
}

static void use_while_mapped(void)
{
    cl_int error;
    cl_event mapped, unmapped;
    void *p = clEnqueueMapBuffer(queue[0], buffer[0], CL_FALSE, CL_MAP_WRITE, 0, BYTES, 0, NULL, &mapped, &error);
    NEED(error);
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL); /* the sin */
    NEED(clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, &unmapped));
    flush_both();
    see_end(mapped);
    see_end(event);
    see_end(unmapped);
}

static void use_between_mappings(void)
{
    cl_int error;
    cl_event mapped, unmapped;
    void *p = clEnqueueMapBuffer(queue[0], buffer[0], CL_FALSE, CL_MAP_WRITE, 0, BYTES, 0, NULL, &mapped, &error);
    NEED(error);
    NEED(clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, &unmapped));
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    flush_both();
    see_end(event);
    drop(mapped);
    drop(unmapped);
}

static void wait_for_another_device(void)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    cl_event b = launch_fill(1, 1, buffer[1], ITEMS, &a); /* the sin */
    flush_both();
    see_end(a);
    see_end(b);
}

static void make_a_user_event(void)
{
    cl_int error;
    cl_event event = clCreateUserEvent(context, &error);
    NEED(error);
    NEED(clSetUserEventStatus(event, CL_COMPLETE));
    drop(event);
}

/* A context, a queue, a buffer, a sub-buffer, a program, its build, a kernel: 7. */
static void make_everything(void)
{
    cl_int error;
    const char *text = source;
    cl_context c = clCreateContext(NULL, 1, &device[0], NULL, NULL, &error);
    NEED(error);
    cl_command_queue q = clCreateCommandQueue(c, device[0], 0, &error);
    NEED(error);
    cl_mem m = new_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
    cl_mem s = new_part(m, 0, 0, HALF);
    cl_program p = clCreateProgramWithSource(c, 1, &text, NULL, &error);
    NEED(error);
    NEED(clBuildProgram(p, 1, &device[0], "", NULL, NULL));
    cl_kernel k = clCreateKernel(p, "fill", &error);
    NEED(error);
    NEED(clReleaseKernel(k));
    NEED(clReleaseProgram(p));
    free_mem(s);
    free_mem(m);
    NEED(clReleaseCommandQueue(q));
    NEED(clReleaseContext(c));
}

static void release_twice(void)
{
    cl_mem mem = new_buffer(CL_MEM_READ_WRITE, 4096, NULL);
    free_mem(mem);
    if (clReleaseMemObject(mem) != CL_INVALID_MEM_OBJECT) /* the sin */
        printf("  the second release did not fail\n");
}

static void retain_what_is_gone(void)
{
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    flush_both();
    see_end(event);
    clRetainEvent(event); /* the sin */
}

static void unmap_what_is_not_mapped(void)
{
    cl_int error;
    void *p = clEnqueueMapBuffer(queue[0], buffer[0], CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL, &error);
    NEED(error);
    NEED(clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, NULL));
    NEED(clFinish(queue[0]));
    clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, NULL); /* the sin */
}

/* --- Clean programs -------------------------------------------------------------------------------------- */

/* Two devices, two bands of one buffer, two frames in flight, completion by callback and poll. */
static void clean_frames(void)
{
    cl_mem whole[2], part[2][2];
    cl_event event[2][2] = {{NULL, NULL}, {NULL, NULL}};
    uint64_t launches = audit.calls("clEnqueueNDRangeKernel");
    audit.phase(AUDIT_PHASE_SETUP);
    for (int slot = 0; slot < 2; slot++) {
        whole[slot] = new_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
        for (int band = 0; band < 2; band++)
            part[slot][band] = new_part(whole[slot], CL_MEM_WRITE_ONLY, (size_t)band * HALF, HALF);
    }
    audit.phase(AUDIT_PHASE_STEADY);
    atomic_store(&called, 0);
    for (int frame = 0; frame < FRAMES; frame++) {
        int slot = frame % 2;
        for (int band = 0; band < 2 && event[slot][band]; band++)
            see_end(event[slot][band]);
        for (int band = 0; band < 2; band++)
            event[slot][band] = launch_fill(band, band, part[slot][band], HALF / 4, NULL);
        flush_both();
        for (int band = 0; band < 2; band++)
            NEED(clSetEventCallback(event[slot][band], CL_COMPLETE, clean_callback, &called));
    }
    for (int slot = 0; slot < 2; slot++)
        for (int band = 0; band < 2; band++)
            see_end(event[slot][band]);
    await_calls(2 * FRAMES);
    audit.phase(AUDIT_PHASE_TEARDOWN);
    for (int slot = 0; slot < 2; slot++) {
        for (int band = 0; band < 2; band++)
            free_mem(part[slot][band]);
        free_mem(whole[slot]);
    }
    if (audit.calls("clEnqueueNDRangeKernel") - launches != 2 * FRAMES) {
        printf("  the layer has not seen every launch\n");
        failures++;
    }
}

/* One device, three queues chained by wait lists, as for a device with its own memory. */
static void clean_staged_frames(void)
{
    cl_int error;
    cl_command_queue q[3];
    cl_mem in = new_buffer(CL_MEM_READ_ONLY, BYTES, NULL), out = new_buffer(CL_MEM_WRITE_ONLY, BYTES, NULL);
    for (int i = 0; i < 3; i++) {
        q[i] = clCreateCommandQueue(context, device[0], 0, &error);
        NEED(error);
    }
    NEED(clSetKernelArg(copy, 0, sizeof in, &in));
    NEED(clSetKernelArg(copy, 1, sizeof out, &out));
    audit.phase(AUDIT_PHASE_ADAPTING);
    for (int frame = 0; frame < FRAMES; frame++) {
        cl_event e[3];
        size_t items = ITEMS, local = 64;
        NEED(clEnqueueWriteBuffer(q[0], in, CL_FALSE, 0, BYTES, host, 0, NULL, &e[0]));
        NEED(clEnqueueNDRangeKernel(q[1], copy, 1, NULL, &items, &local, 1, &e[0], &e[1]));
        NEED(clEnqueueReadBuffer(q[2], out, CL_FALSE, 0, BYTES, host + BYTES, 1, &e[1], &e[2]));
        for (int i = 0; i < 3; i++)
            NEED(clFlush(q[i]));
        drop(e[0]);
        drop(e[1]);
        see_end(e[2]);
    }
    audit.phase(AUDIT_PHASE_TEARDOWN);
    for (int i = 0; i < 3; i++)
        NEED(clReleaseCommandQueue(q[i]));
    free_mem(in);
    free_mem(out);
}

/* A device that works on host memory: unmap, launch, map again. */
static void clean_mapped_frames(void)
{
    cl_int error;
    cl_mem mem = new_buffer(CL_MEM_USE_HOST_PTR | CL_MEM_WRITE_ONLY, BYTES, host);
    audit.phase(AUDIT_PHASE_ADAPTING);
    void *p = NULL;
    for (int frame = 0; frame < FRAMES; frame++) {
        cl_event mapped;
        if (p)
            NEED(clEnqueueUnmapMemObject(queue[0], mem, p, 0, NULL, NULL));
        drop(launch_fill(0, 0, mem, ITEMS, NULL));
        p = clEnqueueMapBuffer(queue[0], mem, CL_FALSE, CL_MAP_READ, 0, BYTES, 0, NULL, &mapped, &error);
        NEED(error);
        NEED(clFlush(queue[0]));
        see_end(mapped);
    }
    audit.phase(AUDIT_PHASE_TEARDOWN);
    NEED(clEnqueueUnmapMemObject(queue[0], mem, p, 0, NULL, NULL));
    NEED(clFinish(queue[0]));
    free_mem(mem);
}

static void *clean_thread(void *arg)
{
    cl_int error;
    cl_device_id on = device[*(int *)arg % 2];
    cl_command_queue q = clCreateCommandQueue(context, on, 0, &error);
    NEED(error);
    cl_mem mem = new_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
    cl_kernel kernel = new_kernel("fill");
    cl_uint value = 3;
    size_t items = ITEMS, local = 64;
    NEED(clSetKernelArg(kernel, 0, sizeof mem, &mem));
    NEED(clSetKernelArg(kernel, 1, sizeof value, &value));
    for (int frame = 0; frame < THREAD_FRAMES; frame++) {
        cl_event event;
        NEED(clEnqueueNDRangeKernel(q, kernel, 1, NULL, &items, &local, 0, NULL, &event));
        NEED(clFlush(q));
        NEED(clSetEventCallback(event, CL_COMPLETE, clean_callback, &called));
        see_end(event);
    }
    NEED(clReleaseKernel(kernel));
    free_mem(mem);
    NEED(clReleaseCommandQueue(q));
    return NULL;
}

static void clean_threads(void)
{
    pthread_t thread[THREADS];
    int number[THREADS];
    atomic_store(&called, 0);
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        NEED(pthread_create(&thread[i], NULL, clean_thread, &number[i]));
    }
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_join(thread[i], NULL));
    await_calls(THREADS * THREAD_FRAMES);
}

/* --- The rig --------------------------------------------------------------------------------------------- */

static bool open_device(void)
{
    return find_device(CL_DEVICE_TYPE_CPU, &whole_device) || find_device(CL_DEVICE_TYPE_ALL, &whole_device);
}

static void make_rig(void)
{
    cl_int error;
    const char *text = source;
    const cl_device_partition_property how[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    two_devices = clCreateSubDevices(whole_device, how, 2, device, NULL) == CL_SUCCESS;
    if (!two_devices)
        device[0] = device[1] = whole_device;
    context = clCreateContext(NULL, two_devices ? 2 : 1, device, NULL, NULL, &error);
    NEED(error);
    for (int i = 0; i < 2; i++) {
        queue[i] = clCreateCommandQueue(context, device[i], 0, &error);
        NEED(error);
    }
    program = clCreateProgramWithSource(context, 1, &text, NULL, &error);
    NEED(error);
    NEED(clBuildProgram(program, 0, NULL, "", NULL, NULL));
    copy = new_kernel("copy");
    for (int i = 0; i < 2; i++) {
        fill[i] = new_kernel("fill");
        buffer[i] = new_buffer(CL_MEM_READ_WRITE, BYTES, NULL);
        drop(launch_fill(i, i, buffer[i], ITEMS, NULL)); /* compiles */
    }
    host = aligned_alloc(4096, 2 * BYTES);
    memset(host, 0, 2 * BYTES);
    finish_both();
}

static void free_rig(void)
{
    for (int i = 0; i < 2; i++) {
        free_mem(buffer[i]);
        NEED(clReleaseKernel(fill[i]));
        NEED(clReleaseCommandQueue(queue[i]));
    }
    NEED(clReleaseKernel(copy));
    NEED(clReleaseProgram(program));
    NEED(clReleaseContext(context));
    for (int i = 0; i < 2 && two_devices; i++)
        NEED(clReleaseDevice(device[i]));
    free(host);
}

static void check(const char *name, bool ok)
{
    printf("%s %s\n", ok ? "ok    " : "FAILED", name);
    failures += !ok;
}

/* A child leaves a context and a buffer behind; its report at exit must say so. */
static void report_names_the_leaks(const char *layer)
{
    char path[] = "/tmp/cox-audit-XXXXXX";
    char line[512];
    bool context_found = false, buffer_found = false, sum_found = false;
    int fd = mkstemp(path), status = 0;
    if (fd < 0)
        exit(2);
    close(fd);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        cl_int error;
        setenv("COX_AUDIT_REPORT", path, 1);
        if (!audit_load(&audit, layer) || !open_device())
            _exit(77);
        context = clCreateContext(NULL, 1, &whole_device, NULL, NULL, &error);
        NEED(error);
        new_buffer(CL_MEM_READ_WRITE, 4096, NULL);
        exit(0);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("skipped, because there is no OpenCL device or no layer\n");
        unlink(path);
        exit(77);
    }
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        context_found |= strcmp(line, "live context 1\n") == 0;
        buffer_found |= strcmp(line, "live buffer 1\n") == 0;
        sum_found |= strcmp(line, "violation leak 2\n") == 0;
    }
    if (file)
        fclose(file);
    unlink(path);
    check("the report at exit names what is left", status == 0 && context_found && buffer_found && sum_found);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    report_names_the_leaks(argc > 1 ? argv[1] : NULL);
    if (!audit_load(&audit, argc > 1 ? argv[1] : NULL))
        return 2;
    if (!open_device()) {
        printf("skipped, because there is no OpenCL device\n");
        return 77;
    }
    check("the layer stands in front of the drivers", audit.calls(NULL) > 0);
    make_rig();

    expect("polling while another queue is not flushed", AUDIT_PHASE_ADAPTING, AUDIT_RULE_UNFLUSHED_WAIT, 1,
           poll_with_an_unflushed_queue);
    expect("polling what another thread did not flush", AUDIT_PHASE_ADAPTING, AUDIT_RULE_UNFLUSHED_POLL, 1,
           poll_what_another_thread_did_not_flush);
    expect("polling what is flushed is clean", AUDIT_PHASE_ADAPTING, CLEAN,
           poll_what_was_flushed_before_the_next_enqueue);
    expect("a blocking read", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BLOCKING_TRANSFER, 1, blocking_read);
    expect("a blocking write", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BLOCKING_TRANSFER, 1, blocking_write);
    expect("a blocking rectangle", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BLOCKING_TRANSFER, 1, blocking_rectangle);
    expect("a blocking map", AUDIT_PHASE_STEADY, AUDIT_RULE_BLOCKING_TRANSFER, 1, blocking_map);
    expect("a blocking read outside the frames is clean", AUDIT_PHASE_TEARDOWN, CLEAN, blocking_read);
    expect("clFinish in a frame", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BLOCKING_WAIT, 1, finish_in_a_frame);
    expect("clWaitForEvents in a frame", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BLOCKING_WAIT, 1, wait_in_a_frame);
    expect("waiting outside the frames is clean", AUDIT_PHASE_SETUP, CLEAN, wait_in_a_frame);
    expect("no local size", AUDIT_PHASE_ADAPTING, AUDIT_RULE_NULL_LOCAL_SIZE, 1, launch_without_local_size);
    expect("a local size that changes", AUDIT_PHASE_ADAPTING, AUDIT_RULE_LOCAL_SIZE_CHANGED, 1,
           launch_with_another_local_size);
    expect("a global offset", AUDIT_PHASE_ADAPTING, AUDIT_RULE_GLOBAL_OFFSET, 1, launch_with_an_offset);
    expect("an OpenCL call from a callback", AUDIT_PHASE_ADAPTING, AUDIT_RULE_CALL_IN_CALLBACK, 1,
           call_from_a_callback);
    expect("a callback that only counts is clean", AUDIT_PHASE_ADAPTING, CLEAN, callback_that_only_counts);
    expect("a misaligned sub-buffer", AUDIT_PHASE_ADAPTING, AUDIT_RULE_SUB_BUFFER_ALIGNMENT, 1, misaligned_part);
    expect("two kernels that write one buffer", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1, overlap_of_one_buffer);
    expect("two kernels that write overlapping sub-buffers", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1,
           overlapping_parts);
    expect("two kernels that write disjoint sub-buffers are clean", AUDIT_PHASE_ADAPTING, CLEAN, disjoint_parts);
    expect("reading host memory that another kernel writes", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1,
           overlapping_wrappers);
    expect("wrappers of disjoint host memory are clean", AUDIT_PHASE_ADAPTING, CLEAN, disjoint_wrappers);
    expect("a transfer into host memory that a kernel uses", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1,
           transfer_into_a_wrapper);
    expect("a kernel reads what another wrote and nobody mapped", AUDIT_PHASE_ADAPTING, AUDIT_RULE_MISSING_HAND_OVER, 1,
           hand_over_without_a_mapping);
    expect("a transfer reads what a kernel wrote and nobody mapped", AUDIT_PHASE_ADAPTING, AUDIT_RULE_MISSING_HAND_OVER,
           1, transfer_without_a_mapping);
    expect("a mapping in between is clean", AUDIT_PHASE_ADAPTING, CLEAN, hand_over_by_a_mapping);
    expect("beside what was written, and after the buffer has gone, is clean", AUDIT_PHASE_ADAPTING, CLEAN,
           written_twice);
    expect("two kernels that read one buffer are clean", AUDIT_PHASE_ADAPTING, CLEAN, readers_of_one_buffer);
    expect("one kernel after the other, by poll, is clean", AUDIT_PHASE_ADAPTING, CLEAN, one_after_the_other_by_poll);
    expect("one kernel after the other, by the queue's order, is clean", AUDIT_PHASE_ADAPTING, CLEAN,
           one_after_the_other_by_order);
    expect("two queues ordered by a wait list are clean", AUDIT_PHASE_ADAPTING, CLEAN, ordered_by_a_wait_list);
    expect("two queues that nothing orders", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1, not_ordered);
    expect("an out-of-order queue that nothing orders", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1,
           out_of_order_without_a_barrier);
    expect("an out-of-order queue with a barrier is clean", AUDIT_PHASE_ADAPTING, CLEAN, out_of_order_with_a_barrier);
    expect("a copy beside a kernel of the same device", AUDIT_PHASE_ADAPTING, AUDIT_RULE_COPY_BESIDE_KERNEL, 1,
           copy_beside_a_kernel);
    expect("a copy over what a kernel of the same device uses", AUDIT_PHASE_ADAPTING, AUDIT_RULE_OVERLAP, 1,
           copy_over_a_kernel);
    expect("a kernel on a mapped buffer", AUDIT_PHASE_ADAPTING, AUDIT_RULE_MAPPED_IN_USE, 1, use_while_mapped);
    expect("a kernel after the unmap is clean", AUDIT_PHASE_ADAPTING, CLEAN, use_between_mappings);
    if (two_devices)
        expect("waiting for an event of another device", AUDIT_PHASE_ADAPTING, AUDIT_RULE_CROSS_DEVICE_WAIT, 1,
               wait_for_another_device);
    else
        printf("skipped waiting for an event of another device, because the device cannot be partitioned\n");
    expect("a user event in a frame", AUDIT_PHASE_ADAPTING, AUDIT_RULE_USER_EVENT, 1, make_a_user_event);
    expect("making things in the steady state", AUDIT_PHASE_STEADY, AUDIT_RULE_CREATED_IN_STEADY, 7, make_everything);
    expect("making things while adapting is clean", AUDIT_PHASE_ADAPTING, CLEAN, make_everything);
    expect("releasing twice", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BAD_RELEASE, 1, release_twice);
    expect("retaining what is gone", AUDIT_PHASE_ADAPTING, AUDIT_RULE_BAD_RELEASE, 1, retain_what_is_gone);
    expect("unmapping what is not mapped", AUDIT_PHASE_SETUP, AUDIT_RULE_BAD_RELEASE, 1, unmap_what_is_not_mapped);

    expect("a clean program in shared memory", AUDIT_PHASE_SETUP, CLEAN, clean_frames);
    expect("a clean program with copies", AUDIT_PHASE_SETUP, CLEAN, clean_staged_frames);
    expect("a clean program on mapped memory", AUDIT_PHASE_SETUP, CLEAN, clean_mapped_frames);
    expect("a clean program of several threads", AUDIT_PHASE_ADAPTING, CLEAN, clean_threads);

    uint64_t in_use = audit.finish();
    check("what is in use counts as alive",
          in_use == (two_devices ? 11u : 9u) && audit.live(AUDIT_TYPE_QUEUE) == 2 &&
              audit.live(AUDIT_TYPE_BUFFER) == 2 && audit.live(AUDIT_TYPE_KERNEL) == 3 &&
              audit.live(AUDIT_TYPE_EVENT) == 0 && audit.violations(AUDIT_RULE_LEAK) == in_use);
    free_rig();
    check("nothing is alive when all is released", audit.finish() == 0 && audit.violations(AUDIT_RULE_LEAK) == 0);
    printf("%d failures\n", failures);
    return failures ? 1 : 0;
}
