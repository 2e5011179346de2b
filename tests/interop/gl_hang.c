/* A device hangs while it uses memory that OpenGL maps. The memory stays mapped, and its buffer object is not deleted,
 * because the device may still write there. Needs the fault layer (tests/faults/).
 *
 * The exit status is 77 without OpenCL devices, or without EGL.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "interop.h"
#include "faults/control.h"
#include "gl_context.h"

enum { BYTES = 4096 * 64 };

static const uint64_t timeout_ns = 200000000, end_ns = 100000000000;

static cox_session *new_session(cox_runtime *runtime)
{
    static const char source[] = "kernel void more(global const uint *in, global uint *out, int columns, int rows) {\n"
                                 "    int x = get_global_id(0), y = get_global_id(1);\n"
                                 "    if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] + 1u;\n"
                                 "}\n";
    cox_session *session;
    CHECK(!cox_session_create(runtime,
                              &(const struct cox_session_params){
                                  .columns = 1024,
                                  .rows = 64,
                                  .passes = COX_LIST(struct cox_pass, {.source = source}),
                                  .warmup = COX_WARMUP_NONE,
                                  .device_timeout_ns = timeout_ns},
                              &session));
    return session;
}

/* Run frames until the device hangs in one. */
static void run_until_unsafe(const struct fault *fault, cox_session *session, cox_gl_buffer *in, cox_gl_buffer *out)
{
    char why[256];
    cox_status status;
    CHECK(!fault->load("kernel at=5 late=60s", why, sizeof why));
    do {
        cox_buffer *from, *to;
        CHECK(!cox_gl_buffer_acquire(in, UINT64_MAX, &from) && !cox_gl_buffer_acquire(out, UINT64_MAX, &to));
        status = cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(from, to)});
        if (status == COX_OK)
            CHECK(!cox_gl_buffer_release(in) && !cox_gl_buffer_release(out));
    } while (status == COX_OK);
    CHECK(status == COX_E_MEMORY_UNSAFE && fault->count(0, FAULT_STRUCK) == 1);
}

static void memory_stays_mapped(const struct fault *fault, enum kind kind)
{
    struct loader loader = {.kind = kind};
    const struct cox_gl_buffer_params params = {.bytes = BYTES};
    cox_runtime *runtime;
    cox_gl *on;
    cox_gl_buffer *in, *out;

    new_context(kind);
    set_old_version(kind);
    CHECK(!new_runtime(&runtime, "0.0", NULL));
    CHECK(!cox_gl_create(runtime, &(const struct cox_gl_params){.get_function = load, .user = &loader}, &on));
    CHECK(!cox_gl_buffer_create(on, &params, &in) && !cox_gl_buffer_create(on, &params, &out));
    cox_session *session = new_session(runtime);
    run_until_unsafe(fault, session, in, out);

    const int buffers = alive.buffers, maps = alive.maps;
    if (kind == DESKTOP_OLD) { /* release would unmap it, and does not, however often */
        CHECK(cox_gl_buffer_release(out) == COX_E_MEMORY_UNSAFE);
        CHECK(cox_gl_buffer_release(out) == COX_E_MEMORY_UNSAFE);
    }
    cox_gl_buffer_destroy(&out);
    CHECK(!out && alive.buffers == buffers && alive.maps == maps);
    CHECK(strstr(last_lines, "a hung device may still access"));

    fault->advance(end_ns); /* the device ends */
    cox_session_destroy(&session);
    cox_gl_buffer_destroy(&in);
    cox_gl_destroy(&on);
    cox_runtime_destroy(&runtime);
    CHECK(!runtime && !on);
    printf("%s: passed\n", kind_names[kind]);
}

int main(void)
{
    struct fault fault;
    cl_platform_id platform;
    cl_uint count = 0;
    check_limit("a device that hangs with OpenGL's memory");
    CHECK(fault_open(&fault, NULL));
    if (clGetPlatformIDs(1, &platform, &count) || !count || !open_display()) {
        fprintf(stderr, "skipped, because there is no %s\n", count ? "EGL without a window system" : "OpenCL platform");
        return 77;
    }
    fault.advance(0); /* the layer's clock stands still: the device hangs until it is told to end */
    memory_stays_mapped(&fault, DESKTOP);
    memory_stays_mapped(&fault, DESKTOP_OLD);
    return 0;
}
