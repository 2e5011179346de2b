/* SPDX-License-Identifier: Apache-2.0 */
#include "params.h"

cox_status cox__params_told(cox_status status, const char *type, const struct cox__log *log)
{
    if (status == COX_E_UNSUPPORTED)
        cox__log(log, COX_LOG_ERROR, "%s: a field is set that this library (%s) does not know",
                 type, cox_version());
    return status;
}

/* `count` elements that lie `stride` bytes apart; fewer than `least` or more than `most` are refused. */
struct array {
    const char *name;
    const void *elements;
    uint32_t count, stride, least, most;
};

static cox_status read_array(void *to, size_t bytes, const struct array *from,
                             const struct cox__log *log)
{
    if (from->count < from->least || from->count > from->most || (from->count && !from->elements)) {
        cox__log(log, COX_LOG_ERROR, "%s: %u to %u are needed, %u are given%s", from->name,
                 from->least, from->most, from->count, from->elements ? "" : ", as NULL");
        return COX_E_INVALID;
    }
    const size_t stride = from->stride ? from->stride : bytes;
    for (uint32_t i = 0; i < from->count; i++) {
        const cox_status status = cox__sized_read((char *)to + i * bytes, bytes,
                                                  (const char *)from->elements + i * stride,
                                                  stride);
        if (status)
            return cox__params_told(status, from->name, log);
    }
    return COX_OK;
}

static cox_status read_stage(struct cox__stages_read *to, uint32_t index,
                             const struct cox__log *log)
{
    struct cox_stage *stage = &to->stages[index];
    const struct array variants = {
        "variants", stage->variants, stage->variant_count, stage->variant_stride,
        1,          COX_DEVICES_MAX};
    const struct array args = {"arguments",       stage->args, stage->arg_count,
                               stage->arg_stride, 0,           COX_ARGS_MAX};
    cox_status status = read_array(to->variants[index], sizeof *stage->variants, &variants, log);
    if (status == COX_OK)
        status = read_array(to->args[index], sizeof *stage->args, &args, log);
    stage->variants = to->variants[index];
    stage->args = to->args[index];
    stage->variant_stride = stage->arg_stride = 0;
    return status;
}

static cox_status read_stages(struct cox__stages_read *to, const struct array *stages,
                              const struct cox__log *log)
{
    cox_status status = read_array(to->stages, sizeof *to->stages, stages, log);
    for (uint32_t i = 0; i < stages->count && status == COX_OK; i++)
        status = read_stage(to, i, log);
    return status;
}

static cox_status read_pass(struct cox__session_params *to, uint32_t index,
                            const struct cox__log *log)
{
    struct cox_pass *pass = &to->passes[index];
    struct cox__stages_read *into = &to->of_pass[index];
    const struct array uses = {"uses",           pass->uses, pass->use_count,
                               pass->use_stride, 0,          COX_BINDINGS_MAX};
    const struct array stages = {"stages", pass->stages,  pass->stage_count, pass->stage_stride,
                                 1,        COX_STAGES_MAX};
    cox_status status = read_array(into->uses, sizeof *into->uses, &uses, log);
    if (status == COX_OK)
        status = read_stages(into, &stages, log);
    pass->uses = into->uses;
    pass->stages = into->stages;
    pass->use_stride = pass->stage_stride = 0;
    return status;
}

cox_status cox__params_read_session(struct cox__session_params *to,
                                    const struct cox_session_params *from,
                                    const struct cox__log *log)
{
    struct cox_session_params *params = &to->params;
    cox_status status = cox__params_told(COX__SIZED_READ(params, from), "cox_session_params", log);
    to->policy_options = (struct cox_policy_options)COX_SIZED(struct cox_policy_options);
    if (status == COX_OK && params->policy_options)
        status = cox__params_told(COX__SIZED_READ(&to->policy_options, params->policy_options),
                                  "cox_policy_options", log);
    if (status == COX_OK && params->custom_policy)
        status = cox__params_told(COX__SIZED_READ(&to->policy, params->custom_policy), "cox_policy",
                                  log);
    const struct array bindings = {
        "bindings", params->bindings, params->binding_count, params->binding_stride,
        1,          COX_BINDINGS_MAX};
    const bool has_passes = params->pass_count > 0;
    const struct array stages = {"stages",
                                 params->stages,
                                 params->stage_count,
                                 params->stage_stride,
                                 has_passes ? 0 : 1,
                                 has_passes ? 0 : COX_STAGES_MAX};
    const struct array passes = {"passes", params->passes, params->pass_count, params->pass_stride,
                                 0,        COX_PASSES_MAX};
    if (status == COX_OK)
        status = read_array(to->bindings, sizeof *params->bindings, &bindings, log);
    if (status == COX_OK)
        status = read_stages(&to->of_pass[0], &stages, log);
    if (status == COX_OK)
        status = read_array(to->passes, sizeof *params->passes, &passes, log);
    for (uint32_t i = 0; i < params->pass_count && status == COX_OK; i++)
        status = read_pass(to, i, log);
    params->policy_options = &to->policy_options;
    params->custom_policy = params->custom_policy ? &to->policy : NULL;
    params->bindings = to->bindings;
    params->stages = to->of_pass[0].stages;
    params->passes = to->passes;
    params->binding_stride = params->stage_stride = params->pass_stride = 0;
    return status;
}
