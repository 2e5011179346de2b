/* SPDX-License-Identifier: Apache-2.0 */
#include "params.h"

/* Whether an array has `least` to `most` elements. */
static bool array_ok(const char *name, const void *elements, uint32_t count, uint32_t least,
                     uint32_t most, const struct cox__log *log)
{
    if (count >= least && count <= most && (count == 0 || elements))
        return true;

    cox__log(log, COX_LOG_ERROR, "%s: %u given%s; allowed: %u to %u", name, count,
             elements ? "" : ", as NULL", least, most);
    return false;
}

static bool stages_ok(const struct cox__stage *stages, uint32_t count, uint32_t least,
                      uint32_t most, const struct cox__log *log)
{
    if (!array_ok("stages", stages, count, least, most, log))
        return false;

    for (uint32_t i = 0; i < count; i++) {
        const struct cox__stage *stage = &stages[i];
        if (!array_ok("variants", stage->variants, stage->variant_count, 1, COX_DEVICES_MAX, log) ||
            !array_ok("arguments", stage->args, stage->arg_count, 0, COX_ARGUMENTS_MAX, log))
            return false;
    }
    return true;
}

static bool passes_ok(const struct cox__pass_spec *passes, uint32_t count,
                      const struct cox__log *log)
{
    if (!array_ok("passes", passes, count, 0, COX_PASSES_MAX, log))
        return false;

    for (uint32_t i = 0; i < count; i++) {
        const struct cox__pass_spec *pass = &passes[i];
        if (!array_ok("uses", pass->uses, pass->use_count, 0, COX_BUFFERS_MAX, log) ||
            !stages_ok(pass->stages, pass->stage_count, 1, COX_FUSED_MAX, log))
            return false;
    }
    return true;
}

cox_status cox__params_check(const struct cox__session_spec *params, const struct cox__log *log)
{
    /* Either the session has stages, or each pass has its own. */
    uint32_t least_stages = 1, most_stages = COX_FUSED_MAX;
    if (params->pass_count)
        least_stages = most_stages = 0;

    const bool ok =
        array_ok("bindings", params->bindings, params->binding_count, 1, COX_BUFFERS_MAX, log) &&
        stages_ok(params->stages, params->stage_count, least_stages, most_stages, log) &&
        passes_ok(params->passes, params->pass_count, log);
    return ok ? COX_OK : COX_E_INVALID;
}
