/* SPDX-License-Identifier: Apache-2.0 */
#include "open_runtime.h"
#include "message.h"

bool bench_open_runtime(const struct bench_options *options, enum cox_arithmetic arithmetic,
                        cox_runtime **runtime)
{
    cox_status status =
        cox_runtime_create(&(const struct cox_runtime_params){.devices = options->devices,
                                                              .arithmetic = arithmetic,
                                                              .log = bench_log},
                           runtime);
    return bench_good(status, NULL);
}
