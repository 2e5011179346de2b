/* SPIR-V on a driver that takes it. No driver of the usual test machines does. So functions of this program, which are
 * called before those of the loader, claim the extension. They check what they are given, and compile a source with
 * the meaning of the module.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/captured_log.h"
#include "support/folder.h"
#include "support/twice_spirv.h"
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <coxswain/coxswain.h>
#include <criterion/criterion.h>
#include <dlfcn.h>

enum { W = 40, H = 96 };

#define PARAMETERS "(global const uint *in, global uint *out, int columns, int rows)"
#define BODY(value)                                         \
    "{\n"                                                   \
    "    int x = get_global_id(0), y = get_global_id(1);\n" \
    "    if (x >= columns || y >= rows) return;\n"          \
    "    out[y * columns + x] = " value ";\n"               \
    "}\n"

static const char meaning[] = "kernel void twice" PARAMETERS BODY("2 * in[y * columns + x] + 1");

/* ---- the driver ---- */

static bool is_core;         /* the function has the name of OpenCL 2.1 */
static uint32_t takers = ~0; /* a bit for each call that is not refused */
static uint32_t creations;

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t bytes, void *value, size_t *returned)
{
    static const char versions[] = "SPIR-V_1.0 SPIR-V_1.2";
    static __typeof__(&clGetDeviceInfo) next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clGetDeviceInfo");
    if (name != CL_DEVICE_IL_VERSION_KHR)
        return next(device, name, bytes, value, returned);

    if (returned)
        *returned = sizeof versions;
    if (value)
        memcpy(value, versions, sizeof versions);
    return CL_SUCCESS;
}

static cl_program create_with_il(cl_context context, const void *il, size_t bytes, cl_int *code)
{
    const char *source = meaning;
    const bool taken = takers >> creations++ & 1;
    if (taken && bytes == sizeof twice_spirv && memcmp(il, twice_spirv, bytes) == 0)
        return clCreateProgramWithSource(context, 1, &source, NULL, code);

    *code = CL_INVALID_VALUE;
    return NULL;
}

void *clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
    static __typeof__(&clGetExtensionFunctionAddressForPlatform) next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "clGetExtensionFunctionAddressForPlatform");
    if (strncmp(name, "clCreateProgramWithIL", strlen("clCreateProgramWithIL")) != 0)
        return next(platform, name);

    const bool known = is_core == (strcmp(name, "clCreateProgramWithIL") == 0);
    void *function = NULL;
    if (known)
        *(cl_program(**)(cl_context, const void *, size_t, cl_int *)) & function = create_with_il;
    return function;
}

/* ---- sessions ---- */

static cox_runtime *runtime;
static cox_session *session;
static uint32_t in[H][W], out[H][W];

static void open_runtime(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = "cpu",
                                                                                    .cache_dir = folder,
                                                                                    .log_level = COX_LOG_INFO,
                                                                                    .log = on_log},
                                                 &runtime);
    skip_unless(status != COX_E_NO_PLATFORM && status != COX_E_NOT_FOUND, "there is no OpenCL device");
    cr_assert_eq(status, COX_OK, "%s", logged);
}

static void setup(void)
{
    make_folder();
    open_runtime();
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            in[y][x] = (y * W + x) * 2654435761u;
}

static void teardown(void)
{
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    remove_folder();
}

TestSuite(spirv, .init = setup, .fini = teardown, .timeout = 300);

static cox_status create(const struct cox_pass *pass)
{
    const struct cox_pass passes[] = {*pass, {0}};
    cox_session_destroy(&session);
    return cox_session_create(runtime,
                              &(const struct cox_session_params){
                                  .columns = W, .rows = H, .passes = passes, .no_profile = true},
                              &session);
}

static void check_frame(uint32_t factor, uint32_t add)
{
    memset(out, 0, sizeof out);
    cr_assert_eq(cox_session_run(session, &(const struct cox_frame){.data = COX_ARGS(in, out)}), COX_OK, "%s", logged);
    for (uint32_t y = 0; y < H; y++)
        for (uint32_t x = 0; x < W; x++)
            cr_assert_eq(out[y][x], in[y][x] * factor + add, "row %u, column %u: %u", y, x, out[y][x]);
}

static const struct cox_pass declared = {
    .source = "kernel void twice" PARAMETERS ";", .code = twice_spirv, .code_bytes = sizeof twice_spirv};

/* By either name of the function. The second session finds the binary in the cache. */
Test(spirv, it_runs_and_is_cached)
{
    for (int i = 0; i < 4; i++) {
        is_core = i >= 2;
        if (i == 2)
            shell("rm -f *.bin");
        open_runtime();
        cr_assert_eq(create(&declared), COX_OK, "%s", logged);
        check_frame(2, 1);
        cox_session_destroy(&session);
        cr_expect_eq(creations, i < 2 ? 1 : 2);
    }
}

/* The driver says that it takes SPIR-V, but refuses this one. */
Test(spirv, what_a_driver_refuses_is_compiled_from_source)
{
    static const char source[] = "kernel void twice" PARAMETERS BODY("3 * in[y * columns + x]");
    const struct cox_pass both = {.source = source, .code = twice_spirv, .code_bytes = sizeof twice_spirv};
    takers = 0;
    cr_assert_eq(create(&both), COX_OK, "%s", logged);
    check_frame(3, 0);
    logged[0] = '\0';
    cr_expect_eq(create(&declared), COX_E_BUILD);
    cr_expect(strstr(logged, "clCreateProgramWithIL failed: CL_INVALID_VALUE"), "%s", logged);
    cr_expect_eq(creations, 2);
}

/* The number of parameters is compared with the declaration. */
Test(spirv, a_declaration_with_other_parameters_is_refused)
{
    struct cox_pass other = declared;
    other.source = "kernel void twice(global const uint *in, global uint *out, int columns);";
    cr_expect_eq(create(&other), COX_E_INVALID);
    cr_expect(strstr(logged, "kernel twice takes 4 arguments, but the stage gives 3"), "%s", logged);
}
