/* Each error of cox_runtime_create that the header lists, and its line in the log.
 * SPDX-License-Identifier: Apache-2.0 */
#include "real.h"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(runtime_errors, .fini = close_all, .timeout = 600);

static void refused(const struct cox_runtime_params *params, cox_status status, const char *line)
{
    cox_runtime *none = (cox_runtime *)&none;
    logged[0] = 0;
    cr_assert_eq(cox_runtime_create(params, &none), status, "%s: %s", line, logged);
    cr_assert_null(none, "%s", line);
    cr_assert_not_null(strstr(logged, line), "not in the log: %s\n%s", line, logged);
}

/* These errors do not depend on OpenCL. */
Test(runtime_errors, invalid_arguments_are_named_with_their_value)
{
    logged[0] = 0;
    cr_assert_eq(cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, NULL), COX_E_INVALID);
    cr_assert_str_eq(logged, "cox_runtime_create: out is NULL\n");
    cr_assert_eq(cox_runtime_create(NULL, NULL), COX_E_INVALID);
    refused(&(const struct cox_runtime_params){.log = on_log, .reserve = (enum cox_reserve)7}, COX_E_INVALID,
            "reserve: 7 is not a value");
    refused(&(const struct cox_runtime_params){.log = on_log, .reserve = (enum cox_reserve) - 1}, COX_E_INVALID,
            "reserve: -1 is not a value");
    refused(&(const struct cox_runtime_params){.log = on_log, .reserve = COX_RESERVE_CORE, .reserve_cpu = 1000000},
            COX_E_INVALID, "reserve: CPU 1000000 does not exist, or this process may not use it");
    static const char *const selections[] = {"all:2y2", "all=elsewhere", "all:0x1", "all:2x"};
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        refused(&(const struct cox_runtime_params){.log = on_log, .devices = selections[i]}, COX_E_INVALID,
                "device selection: ");
}

Test(runtime_errors, devices_that_are_not_there_are_named)
{
    static const char *const selections[] = {"no-such-device", "0.999", "999.0", "all,no-such-device"};
    open_runtime(NULL);
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        refused(&(const struct cox_runtime_params){.log = on_log, .devices = selections[i]}, COX_E_NOT_FOUND,
                "no device matches '");
    refused(&(const struct cox_runtime_params){.log = on_log, .devices = "no-such-device"}, COX_E_NOT_FOUND,
            "no device matches 'no-such-device'");
}

Test(runtime_errors, sub_devices_that_a_device_does_not_have_are_named)
{
    open_runtime("cpu");
    refused(&(const struct cox_runtime_params){.log = on_log, .devices = "cpu:2x60000"}, COX_E_INVALID,
            "'cpu:2x60000': ");
    refused(&(const struct cox_runtime_params){.log = on_log, .devices = "cpu:33x1"}, COX_E_INVALID, "'cpu:33x1': ");
}

/* The OpenCL loader reads this at its first call. Each test makes that call in its own process. */
Test(runtime_errors, a_machine_without_a_platform)
{
    setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
    unsetenv("OCL_ICD_FILENAMES");
    unsetenv("OPENCL_LAYERS");
    refused(&(const struct cox_runtime_params){.log = on_log, .reserve = COX_RESERVE_OFF}, COX_E_NO_PLATFORM,
            "no OpenCL platform is installed");
}

/* Mesa's rusticl has devices only if the environment names their drivers. */
Test(runtime_errors, a_machine_with_a_platform_without_devices)
{
    static const char vendor[] = "/etc/OpenCL/vendors/rusticl.icd";
    if (access(vendor, R_OK))
        cr_skip_test("skipped, because there is no %s", vendor);
    setenv("OCL_ICD_VENDORS", vendor, 1);
    unsetenv("OCL_ICD_FILENAMES");
    unsetenv("OPENCL_LAYERS");
    unsetenv("RUSTICL_ENABLE");
    refused(&(const struct cox_runtime_params){.log = on_log, .reserve = COX_RESERVE_OFF}, COX_E_NO_DEVICE,
            "1 OpenCL platform is installed, but no device");
}

static bool refused_in_child(void)
{
    cox_runtime *own = NULL;
    logged[0] = 0;
    const cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.log = on_log}, &own);
    return status == COX_E_INVALID && !own && strstr(logged, "OpenCL drivers do not work after fork") &&
           strstr(logged, "spawn");
}

/* A driver's threads do not exist in the child. Its first call would wait for them without end. */
Test(runtime_errors, a_child_of_a_process_with_a_runtime_gets_none)
{
    for (int destroyed = 0; destroyed < 2; destroyed++) {
        open_runtime(NULL);
        if (destroyed)
            close_all();

        const pid_t child = fork();
        if (child == 0)
            _exit(refused_in_child() ? EXIT_SUCCESS : EXIT_FAILURE);
        cr_assert_gt(child, 0);

        int how;
        cr_assert_eq(waitpid(child, &how, 0), child);
        cr_expect(WIFEXITED(how) && WEXITSTATUS(how) == EXIT_SUCCESS, "status %#x", (unsigned)how);
        close_all();
    }
}
