/* Whether the kernels of a runtime use a * b + c or fma(). The devices' abilities decide this,
 * never a measurement: the same devices must give the same bits in every run.
 *
 * Runs on the application thread that creates the runtime.
 * SPDX-License-Identifier: Apache-2.0 */
#include "internal.h"

#include <string.h>

/* CPU platforms compile for the processor that they run on. */
static bool host_has_fma(void)
{
#if defined __x86_64__ || defined __i386__
    return __builtin_cpu_supports("fma");
#elif defined __aarch64__
    return true;
#else
    return false;
#endif
}

/* PoCL asks LLVM for features by their names on x86, so on arm64 it never reports CL_FP_FMA. Every
 * arm64 processor has the instruction, and PoCL's fma() uses it: the bits are those of other
 * devices. But PoCL 3.1 does not inline its functions there. Each fma() is a call, so it counts as
 * slow. */
static bool hides_fma(const struct cox_device_info *info)
{
#if defined __aarch64__
    return info->type == COX_DEVICE_CPU &&
           strcmp(info->platform, "Portable Computing Language") == 0;
#else
    (void)info;
    return false;
#endif
}

/* OpenCL has FP_FAST_FMAF for this, but neither PoCL (3.1, 5.0) nor NVIDIA (580) defines it,
 * although their devices have a fast fma. GPUs without the instruction do not report CL_FP_FMA
 * (llvmpipe). */
enum cox_fma cox__cl_arithmetic_fma_of(cl_device_id id, const struct cox_device_info *info)
{
    cl_device_fp_config config = 0;
    if (hides_fma(info))
        return COX_FMA_SLOW;

    if (clGetDeviceInfo(id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof config, &config, NULL) ||
        !(config & CL_FP_FMA))
        return COX_FMA_NONE;

    if (info->type == COX_DEVICE_CPU && !host_has_fma())
        return COX_FMA_SLOW;
    return COX_FMA_FAST;
}

static cox_status check_fma(const struct cox__cl_backend *backend)
{
    for (uint32_t d = 0; d < backend->device_count; d++)
        if (backend->devices[d].info.fma == COX_FMA_NONE) {
            cox__log(backend->log, COX_LOG_ERROR,
                     "arithmetic: fma is requested, but %s has none; use auto or muladd",
                     backend->devices[d].info.name);
            return COX_E_UNSUPPORTED;
        }
    return COX_OK;
}

cox_status cox__cl_arithmetic_choose(struct cox__cl_backend *backend, enum cox_arithmetic asked)
{
    uint32_t fast = 0, slow = 0;

    for (uint32_t d = 0; d < backend->device_count; d++) {
        if (backend->devices[d].info.fma == COX_FMA_FAST)
            fast++;
        else
            slow = d;
    }

    backend->arithmetic = asked;
    if (asked == COX_ARITHMETIC_FMA)
        return check_fma(backend);
    if (asked != COX_ARITHMETIC_AUTO)
        return COX_OK;

    backend->arithmetic = COX_ARITHMETIC_FMA;
    if (fast == backend->device_count)
        return COX_OK;

    backend->arithmetic = COX_ARITHMETIC_MULADD;
    if (fast)
        cox__log(backend->log, COX_LOG_INFO, "all kernels use muladd, because %s has no fast fma",
                 backend->devices[slow].info.name);
    return COX_OK;
}
