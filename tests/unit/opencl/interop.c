/* What an application that uses OpenCL itself learns about a lost device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/internal.h"
#include "engine/state.h"
#include <coxswain/coxswain.h>
#include <coxswain/opencl.h>
#include <criterion/criterion.h>

TestSuite(interop, .timeout = 300);

static cox_runtime *new_runtime(void)
{
    cox_runtime *runtime;
    const cox_status status = cox_runtime_create(NULL, &runtime);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE)
        cr_skip_test("skipped, because there is no OpenCL device");
    cr_assert_eq(status, COX_OK);
    return runtime;
}

Test(interop, gives_no_context_of_a_lost_device)
{
    cox_runtime *runtime = new_runtime();
    struct cox__cl_backend *backend = (struct cox__cl_backend *)runtime->backend;
    cl_context context = NULL;
    cl_device_id device = NULL;
    atomic_store(&backend->devices[0].lost, true);
    cr_expect_eq(cox_opencl_device(runtime, 0, &context, &device), COX_E_DEVICE_LOST);
    cr_expect(!context && !device);
    atomic_store(&backend->devices[0].lost, false);
    cr_expect_eq(cox_opencl_device(runtime, 0, &context, &device), COX_OK);
    cr_expect(context == backend->groups[backend->devices[0].group].context && device == backend->devices[0].id);
    cox_runtime_destroy(&runtime);
}
