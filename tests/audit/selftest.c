/* Tests the auditing layer with plain OpenCL calls. Each test breaks one rule, and the layer must report that rule
 * and no other. It must report nothing for programs that break no rule.
 *
 *   audit_selftest [LAYER]
 *
 * The exit status is 77 without OpenCL.
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

/* Two devices of one context, with a queue each. If the device cannot be partitioned, both are the same one. */
static cl_device_id device[2], whole_device;
static bool two_devices;
static cl_context context;
static cl_command_queue queue[2];
static cl_program program;
static cl_kernel fill[2], copy;
static cl_mem buffer[2];
static unsigned char *host; /* 2 * BYTES, aligned to pages */

/* A buffer that wraps half of `host`, from byte `from` on. */
static cl_mem new_wrapper(cl_mem_flags flags, size_t from)
{
    return new_buffer(context, CL_MEM_USE_HOST_PTR | flags, HALF, host + from);
}

static void free_mem(cl_mem mem)
{
    NEED(clReleaseMemObject(mem));
}

static void drop(cl_event event)
{
    NEED(clReleaseEvent(event));
}

static void set_fill(cl_kernel kernel, cl_mem out)
{
    set_args(kernel, out, sizeof(cl_uint), &(const cl_uint){7});
}

/* Launch kernel fill[k] on queue[q]. */
static cl_event launch_fill(int q, int k, cl_mem out, size_t items, const cl_event *wait)
{
    set_fill(fill[k], out);
    return launch(queue[q], fill[k], items, wait);
}

static cl_event launch_copy(int q, cl_mem in, cl_mem out)
{
    set_args(copy, in, sizeof out, &out);
    return launch(queue[q], copy, HALF / 4, NULL);
}

/* Map all of buffer 0. */
static void *map_buffer(cl_bool blocking, cl_map_flags flags, cl_event *event)
{
    return new_mapping(queue[0], buffer[0], blocking, flags, BYTES, event);
}

static void unmap_buffer(void *p, cl_event *event)
{
    NEED(clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, event));
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

/* Poll until the command has ended. Flush the queues first. */
static void see_end(cl_event event)
{
    AWAIT(status_of(event) <= CL_COMPLETE);
    drop(event);
}

static void flush_and_see(cl_event a, cl_event b)
{
    flush_both();
    see_end(a);
    if (b)
        see_end(b);
}

static void finish_both(void)
{
    flush_both();
    NEED(clFinish(queue[0]));
    NEED(clFinish(queue[1]));
}

static void check(const char *name, bool ok)
{
    printf("%s %s\n", ok ? "ok    " : "FAILED", name);
    failures += !ok;
}

/* --- Violations, and similar programs without ------------------------------------------------------------- */

/* Most tests do not use their argument. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

static void poll_with_an_unflushed_queue(int unused)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    cl_event b = launch_fill(1, 1, buffer[1], ITEMS, NULL);
    status_of(a); /* the violation */
    NEED(clFlush(queue[1]));
    see_end(a);
    see_end(b);
}

static void *enqueue_elsewhere(void *event)
{
    *(cl_event *)event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    return NULL;
}

static void poll_what_another_thread_did_not_flush(int unused)
{
    pthread_t thread;
    cl_event event;
    NEED(pthread_create(&thread, NULL, enqueue_elsewhere, &event));
    NEED(pthread_join(thread, NULL));
    status_of(event); /* the violation */
    NEED(clFlush(queue[0]));
    see_end(event);
}

static void poll_what_was_flushed_before_the_next_enqueue(int unused)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    cl_event b = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    flush_and_see(a, b);
}

enum { READ, WRITE, RECTANGLE, MAP };

static void block(int how)
{
    size_t origin[3] = {0, 0, 0}, region[3] = {64, 4, 1};
    if (how == READ)
        NEED(clEnqueueReadBuffer(queue[0], buffer[0], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
    else if (how == WRITE)
        NEED(clEnqueueWriteBuffer(queue[0], buffer[0], CL_TRUE, 0, BYTES, host, 0, NULL, NULL));
    else if (how == RECTANGLE)
        NEED(clEnqueueReadBufferRect(queue[0], buffer[0], CL_TRUE, origin, origin, region, 128, 0, 128, 0, host, 0,
                                     NULL, NULL));
    else
        unmap_buffer(map_buffer(CL_TRUE, CL_MAP_READ, NULL), NULL);
}

static void finish(int unused)
{
    NEED(clFinish(queue[0]));
}

static void wait_for_an_event(int unused)
{
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    NEED(clWaitForEvents(1, &event));
    drop(event);
}

static void launch_without_local_size(int unused)
{
    size_t items = ITEMS;
    cl_event event;
    NEED(clEnqueueNDRangeKernel(queue[0], fill[0], 1, NULL, &items, NULL, 0, NULL, &event));
    flush_and_see(event, NULL);
}

static void launch_with_another_local_size(int unused)
{
    cl_event event;
    cl_kernel kernel = new_kernel(program, "fill");
    set_fill(kernel, buffer[0]);
    for (size_t items = ITEMS, local = 64; local <= 128; local *= 2) {
        NEED(clEnqueueNDRangeKernel(queue[0], kernel, 1, NULL, &items, &local, 0, NULL, &event));
        flush_and_see(event, NULL);
    }
    NEED(clReleaseKernel(kernel));
}

static void launch_with_an_offset(int unused)
{
    size_t items = ITEMS / 2, offset = ITEMS / 2, local = 64;
    cl_event event;
    NEED(clEnqueueNDRangeKernel(queue[0], fill[0], 1, &offset, &items, &local, 0, NULL, &event));
    flush_and_see(event, NULL);
}

static atomic_int called;

static void CL_CALLBACK on_end(cl_event event, cl_int status, void *sinful)
{
    cl_uint count;
    (void)status;
    if (sinful)
        clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, NULL);
    atomic_fetch_add(&called, 1);
}

static void have_a_callback(int sinful)
{
    atomic_store(&called, 0);
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clSetEventCallback(event, CL_COMPLETE, on_end, sinful ? &called : NULL));
    flush_both();
    AWAIT(atomic_load(&called) >= 1);
    see_end(event);
}

static void misaligned_part(int unused)
{
    cl_int error;
    cl_buffer_region region = {4, 64};
    cl_mem mem = clCreateSubBuffer(buffer[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    if (mem)
        free_mem(mem);
}

/* Rows of 64 bytes, the last of which may lie behind a part of the buffer. */
static void copy_to_a_part(int first_row)
{
    const cl_buffer_region region = {.origin = 0, .size = HALF};
    const size_t at[3] = {0, (size_t)first_row, 0}, origin[3] = {0, 0, 0}, size[3] = {64, 4, 1};
    cl_int error;
    cl_event event;
    cl_mem part = clCreateSubBuffer(buffer[0], 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    NEED(error);
    if (clEnqueueWriteBufferRect(queue[0], part, CL_FALSE, at, origin, size, 128, 0, 128, 0, host, 0, NULL, &event) ==
        CL_SUCCESS) {
        NEED(clFlush(queue[0]));
        see_end(event);
    }
    free_mem(part);
}

static void overlap_of_one_buffer(int unused)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    cl_event b = launch_fill(1, 1, buffer[0], ITEMS, NULL); /* the violation */
    flush_and_see(a, b);
}

/* Two parts of a buffer, used on two queues at the same time. */
static void two_parts(int second_from)
{
    cl_mem p = new_part(buffer[0], CL_MEM_WRITE_ONLY, 0, HALF);
    cl_mem q = new_part(buffer[0], CL_MEM_WRITE_ONLY, (size_t)second_from, HALF);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    flush_and_see(a, launch_fill(1, 1, q, HALF / 4, NULL));
    free_mem(p);
    free_mem(q);
}

/* Two wrappers of host memory, used on two queues at the same time. The second one is only read. */
static void two_wrappers(int second_from)
{
    cl_mem p = new_wrapper(CL_MEM_WRITE_ONLY, 0);
    cl_mem q = new_wrapper(CL_MEM_READ_ONLY, (size_t)second_from);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    flush_and_see(a, launch_copy(1, q, buffer[1]));
    free_mem(p);
    free_mem(q);
}

enum { MAPPED = 1, TRANSFER = 2 };

/* A kernel writes host memory through one wrapper. Another wrapper, or a transfer, reads the same memory. */
static void hand_over(int how)
{
    cl_event b;
    cl_mem p = new_wrapper(CL_MEM_READ_WRITE, 0), q = new_wrapper(CL_MEM_READ_ONLY, 0);
    void *mapped = NULL;
    flush_and_see(launch_fill(0, 0, p, HALF / 4, NULL), NULL);
    if (how & MAPPED) {
        mapped = new_mapping(queue[0], p, CL_FALSE, CL_MAP_READ, HALF, &b);
        flush_and_see(b, NULL);
    }
    if (how & TRANSFER)
        NEED(clEnqueueWriteBuffer(queue[1], buffer[1], CL_FALSE, 0, HALF / 2, host + HALF / 4, 0, NULL, &b));
    else
        b = launch_copy(1, q, buffer[1]);
    flush_and_see(b, NULL);
    if (how & MAPPED) {
        NEED(clEnqueueUnmapMemObject(queue[0], p, mapped, 0, NULL, &b));
        flush_and_see(b, NULL);
    }
    free_mem(p);
    free_mem(q);
}

/* Memory that another kernel has overwritten needs no mapping of the first buffer. */
static void written_twice(int unused)
{
    cl_mem p = new_wrapper(CL_MEM_READ_WRITE, 0), q = new_wrapper(CL_MEM_READ_ONLY, HALF);
    cl_mem r = new_buffer(context, CL_MEM_USE_HOST_PTR | CL_MEM_READ_WRITE, BYTES, host);
    flush_and_see(launch_fill(0, 0, r, ITEMS, NULL), NULL);
    flush_and_see(launch_fill(0, 0, p, HALF / 4, NULL), NULL);
    free_mem(r); /* and with it what the layer has recorded of it */
    flush_and_see(launch_copy(1, q, buffer[1]), NULL);
    free_mem(p);
    free_mem(q);
}

static void transfer_into_a_wrapper(int unused)
{
    cl_event b;
    cl_mem p = new_wrapper(CL_MEM_READ_WRITE, 0);
    cl_event a = launch_fill(0, 0, p, HALF / 4, NULL);
    NEED(clEnqueueReadBuffer(queue[1], buffer[1], CL_FALSE, 0, 64, host + HALF - 64, 0, NULL, &b)); /* the violation */
    flush_and_see(a, b);
    free_mem(p);
}

static void readers_of_one_buffer(int unused)
{
    cl_mem in = new_buffer(context, CL_MEM_READ_ONLY, BYTES, NULL);
    cl_event a = launch_copy(0, in, buffer[0]);
    flush_and_see(a, launch_copy(1, in, buffer[1]));
    free_mem(in);
}

static void one_after_the_other_by_poll(int unused)
{
    for (int i = 0; i < 2; i++)
        flush_and_see(launch_fill(i, i, buffer[0], ITEMS, NULL), NULL);
}

/* The end of a command in an in-order queue implies the end of earlier ones, which have no event here. */
static void one_after_the_other_by_order(int unused)
{
    drop(launch_fill(0, 0, buffer[0], ITEMS, NULL));
    flush_and_see(launch_fill(0, 0, buffer[1], ITEMS, NULL), NULL);
    flush_and_see(launch_fill(1, 1, buffer[0], ITEMS, NULL), NULL);
}

/* Two queues of one device. A wait list orders their commands. */
static void two_queues_of_one_device(int ordered)
{
    cl_command_queue second = new_queue(context, device[0], 0);
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    NEED(clFlush(queue[0]));
    NEED(clSetKernelArg(fill[1], 0, sizeof buffer[0], &buffer[0]));
    cl_event b = launch(second, fill[1], ITEMS, ordered ? &a : NULL);
    NEED(clFlush(second));
    drop(a);
    see_end(b);
    if (ordered) /* the end of the second command implies that of the first */
        flush_and_see(launch_fill(1, 1, buffer[0], ITEMS, NULL), NULL);
    NEED(clReleaseCommandQueue(second));
}

/* In an out-of-order queue only a barrier orders commands. */
static void out_of_order(int barrier)
{
    cl_command_queue q = new_queue(context, device[0], CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
    NEED(clSetKernelArg(fill[0], 0, sizeof buffer[0], &buffer[0]));
    cl_event a = launch(q, fill[0], ITEMS, NULL);
    if (barrier)
        NEED(clEnqueueBarrierWithWaitList(q, 0, NULL, NULL));
    cl_event b = launch(q, fill[0], ITEMS, NULL);
    NEED(clFlush(q));
    see_end(b);
    see_end(a);
    NEED(clReleaseCommandQueue(q));
}

/* A copy to a buffer from byte `from` to its end, while a kernel of the same device has the whole buffer as
 * argument. */
static void copy_beside(int from)
{
    cl_event b;
    cl_command_queue second = new_queue(context, device[0], 0);
    cl_event a = launch_fill(0, 0, buffer[0], HALF / 4, NULL);
    NEED(clEnqueueWriteBuffer(second, buffer[0], CL_FALSE, (size_t)from, BYTES - (size_t)from, host, 0, NULL,
                              &b)); /* the violation */
    NEED(clFlush(second));
    flush_and_see(a, b);
    NEED(clReleaseCommandQueue(second));
}

static void use_while_mapped(int unused)
{
    cl_event mapped, unmapped;
    void *p = map_buffer(CL_FALSE, CL_MAP_WRITE, &mapped);
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL); /* the violation */
    unmap_buffer(p, &unmapped);
    flush_and_see(mapped, event);
    see_end(unmapped);
}

static void use_between_mappings(int unused)
{
    cl_event mapped, unmapped;
    unmap_buffer(map_buffer(CL_FALSE, CL_MAP_WRITE, &mapped), &unmapped);
    flush_and_see(launch_fill(0, 0, buffer[0], ITEMS, NULL), NULL);
    drop(mapped);
    drop(unmapped);
}

static void wait_for_another_device(int unused)
{
    cl_event a = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    cl_event b = launch_fill(1, 1, buffer[1], ITEMS, &a); /* the violation */
    flush_and_see(a, b);
}

static void make_a_user_event(int unused)
{
    cl_int error;
    cl_event event = clCreateUserEvent(context, &error);
    NEED(error);
    NEED(clSetUserEventStatus(event, CL_COMPLETE));
    drop(event);
}

/* Seven creations: a context, a queue, a buffer, a sub-buffer, a program, its build, a kernel. */
static void make_everything(int unused)
{
    cl_context c = new_context(1, &device[0]);
    cl_command_queue q = new_queue(c, device[0], 0);
    cl_mem m = new_buffer(c, CL_MEM_READ_WRITE, BYTES, NULL);
    cl_mem s = new_part(m, 0, 0, HALF);
    cl_program p = new_program(c, source);
    cl_kernel k = new_kernel(p, "fill");
    NEED(clReleaseKernel(k));
    NEED(clReleaseProgram(p));
    free_mem(s);
    free_mem(m);
    NEED(clReleaseCommandQueue(q));
    NEED(clReleaseContext(c));
}

static void release_twice(int unused)
{
    cl_mem mem = new_buffer(context, CL_MEM_READ_WRITE, 4096, NULL);
    free_mem(mem);
    if (clReleaseMemObject(mem) != CL_INVALID_MEM_OBJECT) /* the violation */
        check("the second release fails", false);
}

static void retain_what_is_gone(int unused)
{
    cl_event event = launch_fill(0, 0, buffer[0], ITEMS, NULL);
    flush_and_see(event, NULL);
    clRetainEvent(event); /* the violation */
}

static void unmap_what_is_not_mapped(int unused)
{
    void *p = map_buffer(CL_TRUE, CL_MAP_READ, NULL);
    unmap_buffer(p, NULL);
    NEED(clFinish(queue[0]));
    clEnqueueUnmapMemObject(queue[0], buffer[0], p, 0, NULL, NULL); /* the violation */
}

/* --- Programs without violations ------------------------------------------------------------------------- */

/* Two devices, two bands of one buffer, two frames in flight. Ends are observed by callback and by poll. */
static void clean_frames(int unused)
{
    cl_mem whole[2], part[2][2];
    cl_event event[2][2] = {{NULL, NULL}, {NULL, NULL}};
    uint64_t launches = audit.calls("clEnqueueNDRangeKernel");
    audit.phase(AUDIT_PHASE_SETUP);
    for (int slot = 0; slot < 2; slot++) {
        whole[slot] = new_buffer(context, CL_MEM_READ_WRITE, BYTES, NULL);
        for (int band = 0; band < 2; band++)
            part[slot][band] = new_part(whole[slot], CL_MEM_WRITE_ONLY, (size_t)band * HALF, HALF);
    }
    audit.phase(AUDIT_PHASE_STEADY);
    atomic_store(&called, 0);
    for (int frame = 0; frame < FRAMES + 2; frame++) { /* the last two rounds only wait */
        int slot = frame % 2;
        for (int band = 0; band < 2 && event[slot][band]; band++)
            see_end(event[slot][band]);
        if (frame >= FRAMES)
            continue;
        for (int band = 0; band < 2; band++)
            event[slot][band] = launch_fill(band, band, part[slot][band], HALF / 4, NULL);
        flush_both();
        for (int band = 0; band < 2; band++)
            NEED(clSetEventCallback(event[slot][band], CL_COMPLETE, on_end, NULL));
    }
    AWAIT(atomic_load(&called) >= 2 * FRAMES);
    audit.phase(AUDIT_PHASE_TEARDOWN);
    for (int slot = 0; slot < 2; slot++) {
        for (int band = 0; band < 2; band++)
            free_mem(part[slot][band]);
        free_mem(whole[slot]);
    }
    if (audit.calls("clEnqueueNDRangeKernel") - launches != 2 * FRAMES)
        check("the layer sees every launch", false);
}

/* One device with three queues, ordered by wait lists, as for a device with its own memory. */
static void clean_staged_frames(int unused)
{
    cl_command_queue q[3];
    cl_mem in = new_buffer(context, CL_MEM_READ_ONLY, BYTES, NULL),
           out = new_buffer(context, CL_MEM_WRITE_ONLY, BYTES, NULL);
    for (int i = 0; i < 3; i++)
        q[i] = new_queue(context, device[0], 0);
    set_args(copy, in, sizeof out, &out);
    audit.phase(AUDIT_PHASE_ADAPTING);
    for (int frame = 0; frame < FRAMES; frame++) {
        cl_event e[3];
        NEED(clEnqueueWriteBuffer(q[0], in, CL_FALSE, 0, BYTES, host, 0, NULL, &e[0]));
        e[1] = launch(q[1], copy, ITEMS, &e[0]);
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
static void clean_mapped_frames(int unused)
{
    cl_mem mem = new_buffer(context, CL_MEM_USE_HOST_PTR | CL_MEM_WRITE_ONLY, BYTES, host);
    audit.phase(AUDIT_PHASE_ADAPTING);
    void *p = NULL;
    for (int frame = 0; frame < FRAMES; frame++) {
        cl_event mapped;
        if (p)
            NEED(clEnqueueUnmapMemObject(queue[0], mem, p, 0, NULL, NULL));
        drop(launch_fill(0, 0, mem, ITEMS, NULL));
        p = new_mapping(queue[0], mem, CL_FALSE, CL_MAP_READ, BYTES, &mapped);
        NEED(clFlush(queue[0]));
        see_end(mapped);
    }
    audit.phase(AUDIT_PHASE_TEARDOWN);
    NEED(clEnqueueUnmapMemObject(queue[0], mem, p, 0, NULL, NULL));
    NEED(clFinish(queue[0]));
    free_mem(mem);
}

static void *clean_thread(void *on)
{
    cl_command_queue q = new_queue(context, *(cl_device_id *)on, 0);
    cl_mem mem = new_buffer(context, CL_MEM_READ_WRITE, BYTES, NULL);
    cl_kernel kernel = new_kernel(program, "fill");
    set_fill(kernel, mem);
    for (int frame = 0; frame < THREAD_FRAMES; frame++) {
        cl_event event = launch(q, kernel, ITEMS, NULL);
        NEED(clFlush(q));
        NEED(clSetEventCallback(event, CL_COMPLETE, on_end, NULL));
        see_end(event);
    }
    NEED(clReleaseKernel(kernel));
    free_mem(mem);
    NEED(clReleaseCommandQueue(q));
    return NULL;
}

static void clean_threads(int unused)
{
    pthread_t thread[THREADS];
    atomic_store(&called, 0);
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_create(&thread[i], NULL, clean_thread, &device[i % 2]));
    for (int i = 0; i < THREADS; i++)
        NEED(pthread_join(thread[i], NULL));
    AWAIT(atomic_load(&called) >= THREADS * THREAD_FRAMES);
}

/* --- Expected results ------------------------------------------------------------------------------------ */

#define SETUP AUDIT_PHASE_SETUP
#define ADAPTING AUDIT_PHASE_ADAPTING
#define STEADY AUDIT_PHASE_STEADY
#define TEARDOWN AUDIT_PHASE_TEARDOWN
#define BREAKS(rule) AUDIT_RULE_##rule, 1
#define CLEAN AUDIT_RULES, 0

/* In this phase, the test must cause `count` violations of this rule and none of another. */
static const struct scene {
    const char *what;
    enum audit_phase phase;
    int rule;
    uint64_t count;
    void (*act)(int argument);
    int argument;
    bool two_devices;
} scenes[] = {
    {"polling while another queue is not flushed", ADAPTING, BREAKS(UNFLUSHED_WAIT),
     .act = poll_with_an_unflushed_queue},
    {"polling what another thread did not flush", ADAPTING, BREAKS(UNFLUSHED_POLL),
     .act = poll_what_another_thread_did_not_flush},
    {"polling what is flushed is clean", ADAPTING, CLEAN, .act = poll_what_was_flushed_before_the_next_enqueue},
    {"a blocking read", ADAPTING, BREAKS(BLOCKING_TRANSFER), .act = block, .argument = READ},
    {"a blocking write", ADAPTING, BREAKS(BLOCKING_TRANSFER), .act = block, .argument = WRITE},
    {"a blocking rectangle", ADAPTING, BREAKS(BLOCKING_TRANSFER), .act = block, .argument = RECTANGLE},
    {"a blocking map", STEADY, BREAKS(BLOCKING_TRANSFER), .act = block, .argument = MAP},
    {"a blocking read outside the frames is clean", TEARDOWN, CLEAN, .act = block, .argument = READ},
    {"clFinish in a frame", ADAPTING, BREAKS(BLOCKING_WAIT), .act = finish},
    {"clWaitForEvents in a frame", ADAPTING, BREAKS(BLOCKING_WAIT), .act = wait_for_an_event},
    {"waiting outside the frames is clean", SETUP, CLEAN, .act = wait_for_an_event},
    {"no local size", ADAPTING, BREAKS(NULL_LOCAL_SIZE), .act = launch_without_local_size},
    {"a local size that changes", ADAPTING, BREAKS(LOCAL_SIZE_CHANGED), .act = launch_with_another_local_size},
    {"a global offset", ADAPTING, BREAKS(GLOBAL_OFFSET), .act = launch_with_an_offset},
    {"an OpenCL call from a callback", ADAPTING, BREAKS(CALL_IN_CALLBACK), .act = have_a_callback, .argument = true},
    {"a callback that only counts is clean", ADAPTING, CLEAN, .act = have_a_callback, .argument = false},
    {"a misaligned sub-buffer", ADAPTING, BREAKS(SUB_BUFFER_ALIGNMENT), .act = misaligned_part},
    {"a copy past the end of a sub-buffer", ADAPTING, BREAKS(OUT_OF_BOUNDS), .act = copy_to_a_part,
     .argument = HALF / 128 - 3},
    {"a copy up to the end of a sub-buffer is clean", ADAPTING, CLEAN, .act = copy_to_a_part,
     .argument = HALF / 128 - 4},
    {"two kernels that write one buffer", ADAPTING, BREAKS(OVERLAP), .act = overlap_of_one_buffer},
    {"two kernels that write overlapping sub-buffers", ADAPTING, BREAKS(OVERLAP), .act = two_parts,
     .argument = HALF - 4096},
    {"two kernels that write disjoint sub-buffers are clean", ADAPTING, CLEAN, .act = two_parts, .argument = HALF},
    {"reading host memory that another kernel writes", ADAPTING, BREAKS(OVERLAP), .act = two_wrappers,
     .argument = HALF - 4096},
    {"wrappers of disjoint host memory are clean", ADAPTING, CLEAN, .act = two_wrappers, .argument = HALF},
    {"a transfer into host memory that a kernel uses", ADAPTING, BREAKS(OVERLAP), .act = transfer_into_a_wrapper},
    {"a kernel reads what another wrote and nobody mapped", ADAPTING, BREAKS(MISSING_HAND_OVER), .act = hand_over},
    {"a transfer reads what a kernel wrote and nobody mapped", ADAPTING, BREAKS(MISSING_HAND_OVER), .act = hand_over,
     .argument = TRANSFER},
    {"a mapping between two kernels is clean", ADAPTING, CLEAN, .act = hand_over, .argument = MAPPED},
    {"a mapping before a transfer is clean", ADAPTING, CLEAN, .act = hand_over, .argument = MAPPED | TRANSFER},
    {"beside what was written, and after the buffer has gone, is clean", ADAPTING, CLEAN, .act = written_twice},
    {"two kernels that read one buffer are clean", ADAPTING, CLEAN, .act = readers_of_one_buffer},
    {"one kernel after the other, by poll, is clean", ADAPTING, CLEAN, .act = one_after_the_other_by_poll},
    {"one kernel after the other, by the queue's order, is clean", ADAPTING, CLEAN,
     .act = one_after_the_other_by_order},
    {"two queues ordered by a wait list are clean", ADAPTING, CLEAN, .act = two_queues_of_one_device, .argument = true},
    {"two queues that nothing orders", ADAPTING, BREAKS(OVERLAP), .act = two_queues_of_one_device, .argument = false},
    {"an out-of-order queue that nothing orders", ADAPTING, BREAKS(OVERLAP), .act = out_of_order, .argument = false},
    {"an out-of-order queue with a barrier is clean", ADAPTING, CLEAN, .act = out_of_order, .argument = true},
    {"a copy beside a kernel of the same device", ADAPTING, BREAKS(COPY_BESIDE_KERNEL), .act = copy_beside,
     .argument = HALF},
    {"a copy over what a kernel of the same device uses", ADAPTING, BREAKS(OVERLAP), .act = copy_beside, .argument = 0},
    {"a kernel on a mapped buffer", ADAPTING, BREAKS(MAPPED_IN_USE), .act = use_while_mapped},
    {"a kernel after the unmap is clean", ADAPTING, CLEAN, .act = use_between_mappings},
    {"waiting for an event of another device", ADAPTING, BREAKS(CROSS_DEVICE_WAIT), .act = wait_for_another_device,
     .two_devices = true},
    {"a user event in a frame", ADAPTING, BREAKS(USER_EVENT), .act = make_a_user_event},
    {"making things in the steady state", STEADY, AUDIT_RULE_CREATED_IN_STEADY, 7, .act = make_everything},
    {"making things while adapting is clean", ADAPTING, CLEAN, .act = make_everything},
    {"releasing twice", ADAPTING, BREAKS(BAD_RELEASE), .act = release_twice},
    {"retaining what is gone", ADAPTING, BREAKS(BAD_RELEASE), .act = retain_what_is_gone},
    {"unmapping what is not mapped", SETUP, BREAKS(BAD_RELEASE), .act = unmap_what_is_not_mapped},
    {"a clean program in shared memory", SETUP, CLEAN, .act = clean_frames},
    {"a clean program with copies", SETUP, CLEAN, .act = clean_staged_frames},
    {"a clean program on mapped memory", SETUP, CLEAN, .act = clean_mapped_frames},
    {"a clean program of several threads", ADAPTING, CLEAN, .act = clean_threads},
};

static void play(const struct scene *scene)
{
    uint64_t before[AUDIT_RULES];
    bool ok = true;
    if (scene->two_devices && !two_devices) {
        printf("skipped %s, because the device cannot be partitioned\n", scene->what);
        return;
    }
    for (int rule = 0; rule < AUDIT_RULES; rule++)
        before[rule] = audit.violations(rule);
    audit.phase(scene->phase);
    scene->act(scene->argument);
    audit.phase(SETUP);
    for (int rule = 0; rule < AUDIT_RULES; rule++) {
        uint64_t got = audit.violations(rule) - before[rule], wanted = rule == scene->rule ? scene->count : 0;
        if (got == wanted)
            continue;
        printf("  %s: %llu, expected %llu\n", audit_rule_words[rule], (unsigned long long)got,
               (unsigned long long)wanted);
        ok = false;
    }
    check(scene->what, ok);
    finish_both();
}

/* --- Set-up and end -------------------------------------------------------------------------------------- */

static bool open_device(void)
{
    return find_device(CL_DEVICE_TYPE_CPU, &whole_device) || find_device(CL_DEVICE_TYPE_ALL, &whole_device);
}

static void make_rig(void)
{
    two_devices = halve_device(whole_device, device);
    if (!two_devices)
        device[0] = device[1] = whole_device;
    context = new_context(two_devices ? 2 : 1, device);
    for (int i = 0; i < 2; i++)
        queue[i] = new_queue(context, device[i], 0);
    program = new_program(context, source);
    copy = new_kernel(program, "copy");
    for (int i = 0; i < 2; i++) {
        fill[i] = new_kernel(program, "fill");
        buffer[i] = new_buffer(context, CL_MEM_READ_WRITE, BYTES, NULL);
        drop(launch_fill(i, i, buffer[i], ITEMS, NULL)); /* compiles the kernel */
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

/* A child process leaks a context and a buffer. Its report at exit must name them. */
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
        setenv("COX_AUDIT_REPORT", path, 1);
        if (!audit_load(&audit, layer) || !open_device())
            _exit(77);
        context = new_context(1, &whole_device);
        new_buffer(context, CL_MEM_READ_WRITE, 4096, NULL);
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

    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        play(&scenes[i]);
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
