/* SPDX-License-Identifier: Apache-2.0 */
#include "device_list.h"

#include <stdio.h>

struct bench_device_list bench_device_list(const uint32_t *devices, uint32_t count)
{
    struct bench_device_list list = {""};
    size_t at = 0;

    for (uint32_t d = 0; d < count && at < sizeof list.text; d++)
        at += (size_t)snprintf(list.text + at, sizeof list.text - at, "%s#%u", d ? "," : "",
                               devices[d]);

    return list;
}
