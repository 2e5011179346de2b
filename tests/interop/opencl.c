/* Tests of coxswain/opencl.h on every device, or on those of --devices:
 *   Objects that the application gives and takes are the same OpenCL objects.
 *   Copies and mappings move the same bytes into and out of frames.
 *   Reference counts are unchanged at the end.
 *
 *   interop_opencl [--devices SEL] [--expect N] [--verbose]
 *
 * It prints the time of a mapping for each device. The exit status is 77 without OpenCL devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "specs.h"
#include "interop.h"
#include "support/layer_info.h"

#include <fcntl.h>
#include <stdatomic.h>

enum { ROWS = 256, COLUMNS = 1024, WORDS = ROWS * COLUMNS, BYTES = 4 * WORDS, PLATFORMS_MAX = 16, DEVICES_MAX = 64 };

/* ---- a session: each word of a frame plus one, in place ---- */

static const char source[] = "kernel void more(global uint *words, int columns, int rows) {\n"
                             "    int x = get_global_id(0), y = get_global_id(1);\n"
                             "    if (x < columns && y < rows) words[y * columns + x] += 1u;\n"
                             "}\n";

static cox_session *new_session(cox_runtime *runtime)
{
    const struct cox__arg args[] = {COX__ARG_BUFFER(0), COX__ARG_COLUMNS, COX__ARG_ROWS};
    return words_session(runtime, source, "more", COLUMNS, args, 1,
                         (const struct cox__session_spec){.rows = ROWS, .allow_in_place = true});
}

static void run(cox_session *session, cox_buffer *buffer)
{
    CHECK(!cox__session_run(session, &(const struct cox__frame_spec){.buffers = &buffer, .buffer_count = 1}));
}

static uint32_t word(uint32_t seed, uint32_t index)
{
    return seed + index * 2654435761u;
}

static void fill(uint32_t *words, uint32_t seed)
{
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = word(seed, i);
}

static void check_words(const uint32_t *words, uint32_t seed, uint32_t more)
{
    for (uint32_t i = 0; i < WORDS; i++)
        CHECK(words[i] == word(seed, i) + more);
}

/* ---- OpenCL objects of the library ---- */

/* Run the application's own kernel and memory in a context of the library, while a session works in it. */
static void works_in(cl_context context, cl_device_id device)
{
    cl_int code;
    uint32_t *words = malloc(BYTES);
    const size_t global[] = {COLUMNS, ROWS};
    const cl_int columns = COLUMNS, rows = ROWS;
    const char *text = source;
    CHECK(words);
    fill(words, 5);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    CHECK(!code);
    cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, BYTES, words, &code);
    CHECK(!code);
    memset(words, 0, BYTES);
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    CHECK(!code && !clBuildProgram(program, 1, &device, "", NULL, NULL));
    cl_kernel kernel = clCreateKernel(program, "more", &code);
    CHECK(!code && !clSetKernelArg(kernel, 0, sizeof mem, &mem) &&
          !clSetKernelArg(kernel, 1, sizeof columns, &columns));
    CHECK(!clSetKernelArg(kernel, 2, sizeof rows, &rows));
    CHECK(!clEnqueueNDRangeKernel(queue, kernel, 2, NULL, global, NULL, 0, NULL, NULL));
    CHECK(!clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, BYTES, words, 0, NULL, NULL));
    check_words(words, 5, 1);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseMemObject(mem);
    clReleaseCommandQueue(queue);
    free(words);
}

static void contexts_are_taken(cox_runtime *runtime)
{
    const uint32_t count = cox_runtime_device_count(runtime);
    cl_context contexts[COX_DEVICES_MAX], untouched = (cl_context)&selection;
    cl_device_id device = (cl_device_id)&verbose;
    CHECK(cox_opencl_device(runtime, count, &untouched, &device) == COX_E_NOT_FOUND);
    CHECK(cox_opencl_device(NULL, 0, &untouched, &device) == COX_E_INVALID);
    CHECK(untouched == (cl_context)&selection && device == (cl_device_id)&verbose);
    CHECK(cox_opencl_device(runtime, 0, NULL, &device) == COX_E_INVALID);
    CHECK(cox_opencl_device(runtime, 0, &untouched, NULL) == COX_E_INVALID);
    CHECK(untouched == (cl_context)&selection && device == (cl_device_id)&verbose);
    for (uint32_t d = 0; d < count; d++) {
        struct cox_device_info info, other;
        char name[128];
        CHECK(!cox_opencl_device(runtime, d, &contexts[d], &device));
        CHECK(!cox_runtime_device_info(runtime, d, &info));
        CHECK(!clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL));
        CHECK(strstr(name, info.subdevice ? "" : info.name));
        for (uint32_t e = 0; e < d; e++) {
            CHECK(!cox_runtime_device_info(runtime, e, &other));
            CHECK((contexts[d] == contexts[e]) == (info.context_group == other.context_group));
        }
        works_in(contexts[d], device);
    }
}

/* Objects that the application has retained outlive the runtime. */
static void what_is_retained_stays(void)
{
    cox_runtime *runtime;
    cl_context context;
    cl_device_id device;
    CHECK(!new_runtime(&runtime, selection, NULL));
    CHECK(!cox_opencl_device(runtime, 0, &context, &device));
    CHECK(!clRetainContext(context) && !clRetainDevice(device));
    cox_runtime_destroy(&runtime);
    CHECK(!runtime);
    CHECK_SOON(context_references(context) == 1);
    works_in(context, device);
    clReleaseContext(context);
    clReleaseDevice(device);
}

/* ---- contexts of the application ---- */

/* One context for each platform, with all its devices. */
static cl_uint platform_contexts(cl_context *contexts)
{
    cl_platform_id platforms[PLATFORMS_MAX];
    cl_uint platform_count, made = 0;
    CHECK(!clGetPlatformIDs(PLATFORMS_MAX, platforms, &platform_count));
    for (cl_uint p = 0; p < platform_count && p < PLATFORMS_MAX; p++) {
        cl_device_id devices[DEVICES_MAX];
        cl_uint count = 0;
        cl_int code;
        if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, DEVICES_MAX, devices, &count) || !count)
            continue;
        const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)platforms[p], 0};
        contexts[made] = clCreateContext(properties, count, devices, NULL, NULL, &code);
        CHECK(!code);
        made++;
    }
    return made;
}

/* Checks that the application has the only reference. */
static void release_contexts(const cl_context *contexts, cl_uint count)
{
    for (cl_uint c = 0; c < count; c++) {
        CHECK_SOON(context_references(contexts[c]) == 1);
        clReleaseContext(contexts[c]);
    }
}

static bool is_whole(cl_device_id device)
{
    cl_device_id parent = NULL;
    clGetDeviceInfo(device, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL);
    return parent == NULL;
}

static bool is_one_of(cl_context context, const cl_context *contexts, cl_uint count)
{
    while (count && contexts[count - 1] != context)
        count--;
    return count > 0;
}

/* Each whole device uses one of the application's contexts. Frames are right, and all references are released. */
static void contexts_are_given(void)
{
    cl_context contexts[PLATFORMS_MAX + 1];
    const cl_uint count = platform_contexts(contexts);
    cox_runtime *runtime;
    for (cl_uint c = 0; c < count; c++)
        CHECK(context_references(contexts[c]) == 1);
    contexts[count] = NULL;
    CHECK(!new_runtime(&runtime, selection, contexts));
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        cl_context context;
        cl_device_id device;
        CHECK(!cox_opencl_device(runtime, d, &context, &device));
        CHECK(is_one_of(context, contexts, count) == is_whole(device) || strstr(last_lines, "using separate contexts"));
        CHECK(!is_one_of(context, contexts, count) || context_references(context) > 1);
    }
    cox_session *session = new_session(runtime);
    cox_buffer *buffer;
    CHECK(!cox_buffer_create(runtime, BYTES, &buffer));
    fill(cox_buffer_data(buffer), 9);
    for (uint32_t frame = 0; frame < 8; frame++)
        run(session, buffer);
    check_words(cox_buffer_data(buffer), 9, 8);
    cox_session_destroy(&session);
    cox_buffer_destroy(&buffer);
    cox_runtime_destroy(&runtime);
    release_contexts(contexts, count);
}

/* A device uses the first context that contains it. The second one is not used, and the log says so. */
static void the_first_context_counts(void)
{
    cl_context contexts[2 * PLATFORMS_MAX + 1];
    const cl_uint count = platform_contexts(contexts), again = platform_contexts(contexts + count);
    cox_runtime *runtime;
    CHECK(count == again);
    contexts[count + again] = NULL;
    CHECK(!new_runtime(&runtime, selection, contexts));
    CHECK(strstr(last_lines, "a context in `contexts` is not used"));
    for (cl_uint c = count; c < count + again; c++)
        CHECK_SOON(context_references(contexts[c]) == 1);
    cox_runtime_destroy(&runtime);
    for (cl_uint c = 0; c < count + again; c++)
        clReleaseContext(contexts[c]);
}

/* A sub-device is another device than the one in the context, so it gets its own context. */
static void a_part_has_a_context_of_its_own(void)
{
    cl_context contexts[PLATFORMS_MAX + 1], context;
    cl_device_id device;
    cox_runtime *runtime;
    const cl_uint count = platform_contexts(contexts);
    contexts[count] = NULL;
    const cox_status status = new_runtime(&runtime, "cpu:1x1", contexts);
    if (status == COX_OK) {
        CHECK(strstr(last_lines, "a context in `contexts` is not used"));
        CHECK(!cox_opencl_device(runtime, 0, &context, &device) && !is_whole(device));
        CHECK(!is_one_of(context, contexts, count));
    } else {
        CHECK(status == COX_E_NOT_FOUND || status == COX_E_UNSUPPORTED || status == COX_E_INVALID);
        puts("a part of a processor: skipped, because no processor can be cut");
    }
    cox_runtime_destroy(&runtime);
    release_contexts(contexts, count);
}

static void an_empty_list_gives_no_context(void)
{
    const cl_context none[] = {NULL};
    cox_runtime *runtime;
    CHECK(!new_runtime(&runtime, selection, none));
    CHECK(!strstr(last_lines, "a context in `contexts`"));
    cox_runtime_destroy(&runtime);
}

/* ---- copied and mapped ---- */

/* The application's queue on a runtime's device, in the runtime's context or in a context of the application. */
struct own {
    cl_context context;
    cl_command_queue queue;
    bool waits_for_user; /* whether a command may wait for a user event */
};

static struct own own_queue(const cox_runtime *runtime, uint32_t index, bool taken)
{
    struct cox_device_info info;
    struct own own;
    cl_device_id device;
    cl_int code;
    CHECK(!cox_runtime_device_info(runtime, index, &info));
    own.waits_for_user = !pocl_has_no_threads(info.name);
    CHECK(!cox_opencl_device(runtime, index, &own.context, &device));
    if (taken)
        CHECK(!clRetainContext(own.context));
    else
        own.context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(own.context);
    own.queue = clCreateCommandQueue(own.context, device, 0, &code);
    CHECK(!code);
    return own;
}

static void drop_own(struct own *own)
{
    clReleaseCommandQueue(own->queue);
    clReleaseContext(own->context);
}

static cl_mem filled(const struct own *own, cl_mem_flags flags, size_t bytes, uint32_t *host, uint32_t seed)
{
    cl_int code;
    uint32_t *words = malloc(BYTES);
    CHECK(words);
    fill(words, seed);
    cl_mem mem = clCreateBuffer(own->context, CL_MEM_READ_WRITE | flags, bytes, host, &code);
    CHECK(!code);
    CHECK(!clEnqueueWriteBuffer(own->queue, mem, CL_TRUE, bytes - BYTES, BYTES, words, 0, NULL, NULL));
    free(words);
    return mem;
}

static void check_mem(const struct own *own, cl_mem mem, size_t offset, uint32_t seed, uint32_t more)
{
    uint32_t *words = calloc(1, BYTES);
    CHECK(words);
    CHECK(!clEnqueueReadBuffer(own->queue, mem, CL_TRUE, offset, BYTES, words, 0, NULL, NULL));
    check_words(words, seed, more);
    free(words);
}

static cl_int state_of(cl_event event)
{
    cl_int state;
    CHECK(!clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    return state;
}

/* Copy from a memory object at an offset, through a frame, into another one. The commands wait for an event. */
static void copies_go_through_a_frame(cox_runtime *runtime, cox_session *session, const struct own *own, uint32_t seed)
{
    enum { GAP = 4096 };
    cl_int code;
    cl_event read, written;
    cox_buffer *buffer;
    cl_mem from = filled(own, 0, GAP + BYTES, NULL, seed), to = filled(own, 0, 2 * GAP + BYTES, NULL, 0);
    cl_event gate = clCreateUserEvent(own->context, &code);
    CHECK(!code);
    if (!own->waits_for_user) /* else the event has no effect, but it must be accepted */
        CHECK(!clSetUserEventStatus(gate, CL_COMPLETE));
    CHECK(!cox_buffer_create(runtime, BYTES, &buffer));
    CHECK(!cox_opencl_read(buffer, 0, own->queue, from, GAP, BYTES, 1, &gate, &read));
    CHECK(!clFlush(own->queue));
    if (own->waits_for_user) {
        CHECK(state_of(read) > CL_COMPLETE); /* the command waits; the call has returned */
        CHECK(((uint32_t *)cox_buffer_data(buffer))[1] == 0);
        CHECK(!clSetUserEventStatus(gate, CL_COMPLETE));
    }
    CHECK(!clWaitForEvents(1, &read) && state_of(read) == CL_COMPLETE);
    run(session, buffer);
    CHECK(!cox_opencl_write(buffer, 0, own->queue, to, 2 * GAP, BYTES, 1, &read, &written));
    CHECK(!clFlush(own->queue) && !clWaitForEvents(1, &written));
    check_mem(own, to, 2 * GAP, seed, 1);
    check_mem(own, from, GAP, seed, 0);
    /* A part that ends at the buffer's end. */
    CHECK(!cox_opencl_read(buffer, BYTES - 8, own->queue, from, GAP, 8, 0, NULL, NULL) && !clFinish(own->queue));
    const uint32_t *words = cox_buffer_data(buffer);
    CHECK(words[WORDS - 2] == word(seed, 0) && words[WORDS - 1] == word(seed, 1));
    CHECK(words[WORDS - 3] == word(seed, WORDS - 3) + 1);
    cox_buffer_destroy(&buffer);
    clReleaseEvent(gate);
    clReleaseEvent(read);
    clReleaseEvent(written);
    clReleaseMemObject(from);
    clReleaseMemObject(to);
}

static void wrong_copies_are_refused(cox_runtime *runtime, const struct own *own, const struct own *other)
{
    cox_buffer *buffer;
    cl_mem mem = filled(own, 0, BYTES, NULL, 1), foreign = filled(other, 0, BYTES, NULL, 1);
    CHECK(!cox_buffer_create(runtime, BYTES, &buffer));
    fill(cox_buffer_data(buffer), 77);
#define REFUSED(call)                   \
    do {                                \
        last_lines[0] = 0;              \
        CHECK((call) == COX_E_INVALID); \
        CHECK(last_lines[0]);           \
    } while (0)
    CHECK(cox_opencl_read(NULL, 0, own->queue, mem, 0, 4, 0, NULL, NULL) == COX_E_INVALID);
    CHECK(cox_opencl_write(NULL, 0, own->queue, mem, 0, 4, 0, NULL, NULL) == COX_E_INVALID);
    REFUSED(cox_opencl_read(buffer, 0, NULL, mem, 0, 4, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, 0, own->queue, NULL, 0, 4, 0, NULL, NULL));
    REFUSED(cox_opencl_write(buffer, 0, NULL, mem, 0, 4, 0, NULL, NULL));
    REFUSED(cox_opencl_write(buffer, 0, own->queue, NULL, 0, 4, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, 0, own->queue, mem, 0, 0, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, 4, own->queue, mem, 0, BYTES, 0, NULL, NULL));
    REFUSED(cox_opencl_write(buffer, 4, own->queue, mem, 0, BYTES, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, SIZE_MAX - 2, own->queue, mem, 0, 4, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, 0, own->queue, mem, 4, BYTES, 0, NULL, NULL));
    REFUSED(cox_opencl_write(buffer, 0, own->queue, mem, 4, BYTES, 0, NULL, NULL));
    REFUSED(cox_opencl_read(buffer, 0, own->queue, foreign, 0, BYTES, 0, NULL, NULL));
    REFUSED(cox_opencl_write(buffer, 0, own->queue, foreign, 0, BYTES, 0, NULL, NULL));
    CHECK(!clFinish(own->queue));
    check_words(cox_buffer_data(buffer), 77, 0);
    check_mem(own, mem, 0, 1, 0);
    cox_buffer_destroy(&buffer);
    clReleaseMemObject(mem);
    clReleaseMemObject(foreign);
}

static void on_released(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static cl_uint mem_references(cl_mem mem)
{
    cl_uint count;
    CHECK(!clGetMemObjectInfo(mem, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static cl_uint queue_references(cl_command_queue queue)
{
    cl_uint count;
    CHECK(!clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static void CL_CALLBACK on_destroyed(cl_mem mem, void *user)
{
    (void)mem;
    atomic_fetch_add((atomic_int *)user, 1);
}

/* The buffer keeps a reference to the memory object exactly until it is destroyed. */
static void the_application_may_let_go(cox_runtime *runtime, cox_session *session, const struct own *own)
{
    atomic_int destroyed = 0, released = 0;
    uint32_t *host = NULL;
    cox_buffer *buffer;
    cl_int code;
    CHECK(!posix_memalign((void **)&host, 4096, BYTES));
    fill(host, 21);
    cl_mem mem = clCreateBuffer(own->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, BYTES, host, &code);
    CHECK(!code && !clSetMemObjectDestructorCallback(mem, on_destroyed, &destroyed));
    CHECK(!cox_opencl_map(runtime, own->queue, mem, on_released, &released, &buffer));
    clReleaseMemObject(mem);
    run(session, buffer);
    CHECK(!atomic_load(&destroyed));
    check_words(host, 21, 1);
    cox_buffer_destroy(&buffer);
    CHECK_SOON(atomic_load(&released));
    CHECK(!clFinish(own->queue));
    CHECK_SOON(atomic_load(&destroyed));
    check_words(host, 21, 1);
    free(host);
}

/* A frame works in the mapped memory object itself. Commands enqueued after the release see its result. */
static void a_frame_works_in_what_is_mapped(cox_runtime *runtime, cox_session *session, const struct own *own,
                                            bool host_pointer, bool told, uint32_t seed)
{
    void *host = NULL;
    if (host_pointer)
        CHECK(!posix_memalign(&host, 4096, BYTES));
    cl_mem mem = filled(own, host ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR, BYTES, host, seed);
    CHECK(!clFinish(own->queue));
    const cl_uint mem_before = mem_references(mem), queue_before = queue_references(own->queue);
    atomic_int released = 0;
    cox_buffer *buffer;
    CHECK(!cox_opencl_map(runtime, own->queue, mem, told ? on_released : NULL, &released, &buffer));
    CHECK(cox_buffer_bytes(buffer) == BYTES && (!host || cox_buffer_data(buffer) == host));
    check_words(cox_buffer_data(buffer), seed, 0);
    for (int frame = 0; frame < 3; frame++)
        run(session, buffer);
    check_words(cox_buffer_data(buffer), seed, 3);
    CHECK(!atomic_load(&released));
    cox_buffer_destroy(&buffer);
    CHECK(!buffer);
    if (told)
        CHECK_SOON(atomic_load(&released));
    check_mem(own, mem, 0, seed, 3);
    CHECK(!clFinish(own->queue));
    CHECK_SOON(mem_references(mem) <= mem_before && queue_references(own->queue) <= queue_before);
    CHECK(atomic_load(&released) == told);
    clReleaseMemObject(mem);
    free(host);
}

static void wrong_mappings_are_refused(cox_runtime *runtime, const struct own *own, const struct own *other)
{
    atomic_int released = 0;
    cox_buffer *buffer = (cox_buffer *)&released;
    cl_mem foreign = filled(other, CL_MEM_ALLOC_HOST_PTR, BYTES, NULL, 1);
    const cl_uint before = mem_references(foreign);
    CHECK(cox_opencl_map(NULL, own->queue, foreign, on_released, &released, &buffer) == COX_E_INVALID && !buffer);
    REFUSED(cox_opencl_map(runtime, NULL, foreign, on_released, &released, &buffer));
    REFUSED(cox_opencl_map(runtime, own->queue, NULL, on_released, &released, &buffer));
    REFUSED(cox_opencl_map(runtime, own->queue, foreign, on_released, &released, NULL));
    REFUSED(cox_opencl_map(runtime, own->queue, foreign, on_released, &released, &buffer));
    CHECK(!buffer && !atomic_load(&released));
    CHECK_SOON(mem_references(foreign) <= before); /* drivers release commands' references later */
    clReleaseMemObject(foreign);
}

/* A descriptor of ordinary memory: the import fails, and the application keeps the descriptor. */
static void wrong_imports_are_refused(cox_runtime *runtime, uint32_t index)
{
    FILE *file = tmpfile();
    CHECK(file);
    const int fd = fileno(file);
    cl_mem mem = (cl_mem)file;
    CHECK(cox_opencl_import_fd(NULL, index, fd, BYTES, &mem) == COX_E_INVALID && !mem);
    REFUSED(cox_opencl_import_fd(runtime, index, fd, BYTES, NULL));
    REFUSED(cox_opencl_import_fd(runtime, index, -1, BYTES, &mem));
    REFUSED(cox_opencl_import_fd(runtime, index, fd, 0, &mem));
    CHECK(cox_opencl_import_fd(runtime, cox_runtime_device_count(runtime), fd, BYTES, &mem) == COX_E_NOT_FOUND);
    last_lines[0] = 0;
    CHECK(cox_opencl_import_fd(runtime, index, fd, BYTES, &mem) != COX_OK && !mem && last_lines[0]);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    fclose(file);
}

/* ---- cost ---- */

/* Prints the shortest times of a mapping and of a copy to a buffer, in microseconds. */
static void print_cost(cox_runtime *runtime, const struct own *own, bool host_pointer, const char *name)
{
    enum { LARGE = 64 << 20, TIMES = 5 };
    double map_us = 1e12, copy_us = 1e12;
    void *host = NULL;
    cl_int code;
    cox_buffer *buffer, *to;
    if (host_pointer)
        CHECK(!posix_memalign(&host, 4096, LARGE));
    cl_mem mem = clCreateBuffer(own->context, CL_MEM_READ_WRITE | (host ? CL_MEM_USE_HOST_PTR : CL_MEM_ALLOC_HOST_PTR),
                                LARGE, host, &code);
    CHECK(!code);
    CHECK(!cox_buffer_create(runtime, LARGE, &to));
    for (int i = 0; i < TIMES; i++) {
        const cl_uint pattern = (cl_uint)i;
        CHECK(!clEnqueueFillBuffer(own->queue, mem, &pattern, 4, 0, LARGE, 0, NULL, NULL) && !clFinish(own->queue));
        double begin = now_us();
        CHECK(!cox_opencl_map(runtime, own->queue, mem, NULL, NULL, &buffer));
        cox_buffer_destroy(&buffer);
        CHECK(!clFinish(own->queue));
        map_us = now_us() - begin < map_us ? now_us() - begin : map_us;
        begin = now_us();
        CHECK(!cox_opencl_read(to, 0, own->queue, mem, 0, LARGE, 0, NULL, NULL) && !clFinish(own->queue));
        copy_us = now_us() - begin < copy_us ? now_us() - begin : copy_us;
    }
    printf("%s, %s: 64 MiB mapped and unmapped in %.0f us, copied to a buffer in %.0f us\n", name,
           host ? "USE_HOST_PTR" : "ALLOC_HOST_PTR", map_us, copy_us);
    cox_buffer_destroy(&to);
    clReleaseMemObject(mem);
    free(host);
}

static void memory_goes_in_and_out(cox_runtime *runtime)
{
    cox_session *session = new_session(runtime);
    for (uint32_t d = 0; d < cox_runtime_device_count(runtime); d++) {
        struct cox_device_info info;
        struct own taken = own_queue(runtime, d, true), other = own_queue(runtime, d, false);
        CHECK(!cox_runtime_device_info(runtime, d, &info));
        wrong_copies_are_refused(runtime, &taken, &other);
        wrong_mappings_are_refused(runtime, &taken, &other);
        wrong_imports_are_refused(runtime, d);
        for (int way = 0; way < 2; way++) {
            const struct own *own = way ? &other : &taken;
            copies_go_through_a_frame(runtime, session, own, 100 * d);
            for (int kind = 0; kind < 4; kind++)
                a_frame_works_in_what_is_mapped(runtime, session, own, kind & 1, kind & 2, 100 * d + 10);
            the_application_may_let_go(runtime, session, own);
        }
        print_cost(runtime, &taken, true, info.name);
        print_cost(runtime, &taken, false, info.name);
        print_cost(runtime, &other, false, info.name);
        drop_own(&taken);
        drop_own(&other);
    }
    cox_session_destroy(&session);
}

int main(int argc, char **argv)
{
    check_limit("objects of OpenCL, given and taken");
    cox_runtime *runtime = first_runtime(argc, argv);
    const uint32_t count = cox_runtime_device_count(runtime);
    contexts_are_taken(runtime);
    memory_goes_in_and_out(runtime);
    cox_runtime_destroy(&runtime);
    CHECK(!runtime);
    what_is_retained_stays();
    contexts_are_given();
    the_first_context_counts();
    a_part_has_a_context_of_its_own();
    an_empty_list_gives_no_context();
    printf("%u devices passed\n", count);
    return 0;
}
