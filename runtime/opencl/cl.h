/* The OpenCL backend, as the runtime sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_BACKEND_H
#define COX_OPENCL_BACKEND_H

#include "engine/backend.h"
#include "base/log.h"
#include "host/topology.h"

struct cox__cl_options {
    const char *devices; /* the selection (select.h) */
    const char *cache_dir;
    enum cox_arithmetic arithmetic;
    struct _cl_context *const *given; /* the application's contexts, ended by NULL; may be NULL */
    struct cox__topology *topology;
    struct cox__post post;
    const struct cox__log *log;
};

/* Errors: see cox_runtime_create. */
cox_status cox__cl_create(struct cox__backend **out, const struct cox__cl_options *options);

/* The arithmetic that the kernels use. */
enum cox_arithmetic cox__cl_chosen_arithmetic(const struct cox__backend *backend);

/* The machine's platforms, for diagnosis. `backend` must come from cox__cl_create. */
uint32_t cox__cl_platform_count(struct cox__backend *backend);

/* The devices that are left out, likewise; NULL if there are no more than `index`. */
const struct cox_left_out *cox__cl_left_out(const struct cox__backend *backend, uint32_t index);

void cox__cl_platform_info(struct cox__backend *backend, uint32_t index,
                           struct cox_platform_info *info);

#endif
