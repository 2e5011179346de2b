/* The library's choice of a local size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/instance_parts.h"

#include <criterion/criterion.h>

TestSuite(opencl_work_group, .timeout = 60);

Test(opencl_work_group, suits_the_device_and_the_frame)
{
    static const struct {
        struct cox__cl_group_shape shape;
        size_t local[2];
    } cases[] = {
        /* A processor: 64 work-items. */
        {{.columns = 2048, .rows = 1080, .is_cpu = true, .multiple = 8, .most = 4096, .sides = {4096, 4096}}, {64, 1}},
        {{.columns = 40, .rows = 96, .is_cpu = true, .multiple = 8, .most = 4096, .sides = {4096, 4096}}, {64, 1}},
        {{.columns = 4, .rows = 100000, .is_cpu = true, .multiple = 8, .most = 4096, .sides = {4096, 4096}}, {4, 16}},
        {{.columns = 3, .rows = 40, .is_cpu = true, .multiple = 8, .most = 4096, .sides = {4096, 4096}}, {4, 4}},
        {{.columns = 1, .rows = 1, .is_cpu = true, .multiple = 8, .most = 4096, .sides = {4096, 4096}}, {1, 1}},
        /* A GPU: 256. */
        {{.columns = 3840, .rows = 2160, .multiple = 32, .most = 1024, .sides = {1024, 1024}}, {64, 4}},
        {{.columns = 20, .rows = 2160, .multiple = 32, .most = 1024, .sides = {1024, 1024}}, {32, 8}},
        {{.columns = 1, .rows = 1000000, .multiple = 32, .most = 1024, .sides = {1024, 1024}}, {1, 256}},
        {{.columns = 1000000, .rows = 1, .multiple = 32, .most = 1024, .sides = {1024, 1024}}, {256, 1}},
        {{.columns = 1000000, .rows = 17, .multiple = 32, .most = 1024, .sides = {1024, 1024}}, {128, 2}},
        /* Limits: of the kernel, of a dimension, and a multiple that is larger. */
        {{.columns = 2048, .rows = 1080, .multiple = 32, .most = 32, .sides = {1024, 1024}}, {32, 1}},
        {{.columns = 2048, .rows = 1080, .multiple = 32, .most = 100, .sides = {1024, 1024}}, {64, 1}},
        {{.columns = 2048, .rows = 1080, .multiple = 32, .most = 1024, .sides = {16, 4}}, {16, 4}},
        {{.columns = 2048, .rows = 1080, .multiple = 32, .most = 1, .sides = {1, 1}}, {1, 1}},
        {{.columns = 2048, .rows = 1080, .is_cpu = true, .multiple = 128, .most = 4096, .sides = {4096, 4096}},
         {64, 2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t local[2];
        cox__cl_work_group_suggest(&cases[i].shape, local);
        cr_expect(local[0] == cases[i].local[0] && local[1] == cases[i].local[1], "case %zu: %zu x %zu", i, local[0],
                  local[1]);
    }
}
