/* `verify` on real devices with kernels that it cannot confirm.
 * SPDX-License-Identifier: Apache-2.0 */
#include "real.h"

TestSuite(api_verify, .timeout = 600, .fini = close_all);

enum { WIDTH = 64, HEIGHT = 48 };

/* The kernel counts in its output, so its results depend on what is there before. */
static const char counting_source[] = "kernel void count(global uint *out, int columns, int rows)\n"
                                      "{\n"
                                      "    int x = get_global_id(0), y = get_global_id(1);\n"
                                      "    if (x < columns && y < rows)\n"
                                      "        atomic_add((volatile global uint *)&out[y * columns], 1u + x);\n"
                                      "}\n";

Test(api_verify, a_kernel_that_counts_in_its_output_convicts_no_device)
{
    open_runtime_at("cpu:2x1", NULL, COX_LOG_WARN);
    static const struct cox_pass passes[] = {{.source = counting_source}, {0}};
    const struct cox_session_params params = {.columns = WIDTH, .rows = HEIGHT, .passes = passes, .verify = 1};
    cox_session *session;
    cr_assert_eq(cox_session_create(runtime, &params, &session), COX_OK, "%s", logged);

    cox_buffer *out;
    cr_assert_eq(cox_buffer_create(runtime, (size_t)4 * WIDTH * HEIGHT, &out), COX_OK);
    for (int n = 0; n < 5; n++)
        cr_expect_eq(cox_session_run(session, &(const struct cox_frame){.buffers = COX_BUFFERS(out)}), COX_E_MISMATCH);

    struct cox_session_info info;
    cox_session_info(session, &info);
    for (uint32_t d = 0; d < info.device_count; d++)
        cr_expect_eq(info.devices[d].lost, 0, "%s", logged);

    cr_expect(strstr(logged, "pass 'count', buffer 'out', row "), "%s", logged);
    const char *why = strstr(logged, "the kernel reads rows beyond its own, or what its output held before: ");
    cr_assert(why, "%s", logged);
    cr_expect_null(strstr(why + 1, "the kernel "), "said once: %s", logged);
    cr_expect_null(strstr(logged, "wrong rows"), "%s", logged);

    cox_session_destroy(&session);
    cox_buffer_destroy(&out);
}
