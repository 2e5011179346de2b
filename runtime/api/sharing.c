/* SPDX-License-Identifier: Apache-2.0 */
#include "sharing.h"
#include "host/pages.h"
#include "session_devices.h"
#include "split/together.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- row alignment ---- */

/* With fewer than ROW_UNITS_MIN multiples of the row alignment, a frame cannot be split as the
 * devices' speeds require. Page alignment may enlarge the row alignment only while
 * ROW_UNITS_OF_PAGES multiples remain. */
enum { ROW_UNITS_MIN = 8, ROW_UNITS_OF_PAGES = 64 };

/* Drivers of integrated GPUs copy memory that does not begin on a page, whatever alignment they
 * report. */
static bool copies_less_on_pages(const struct cox_device_info *info)
{
    return info->mode == COX_MODE_MAPPED && info->type != COX_DEVICE_CPU &&
           info->host_memory == COX_HOST_MEMORY_WRAPPED && info->base_align_bytes < COX__PAGE_BYTES;
}

/* The row alignment that suits all devices: every band boundary except the frame's end is a
 * multiple of it. With `on_pages`, bands begin on pages on devices that copy less then. */
static uint32_t row_alignment_of(const cox_runtime *runtime, const struct cox__pass *pass,
                                 const uint32_t *devices, uint32_t count, bool on_pages)
{
    uint64_t row_alignment = 1;
    for (uint32_t i = 0; i < count; i++) {
        struct cox_device_info info;
        runtime->backend->ops->device_info(runtime->backend, devices[i], &info);
        if (on_pages && copies_less_on_pages(&info))
            info.base_align_bytes = COX__PAGE_BYTES;

        const uint32_t own = cox__pipeline_pass_row_alignment(pass, devices[i], &info);
        row_alignment = cox__pipeline_lcm_bounded(row_alignment, own, pass->rows);
    }
    return (uint32_t)row_alignment;
}

/* Warn about the bindings whose pitches cause the large row alignment. In `other` all have better
 * pitches, which give `row_alignment`. */
static void warn_pitches(const cox_runtime *runtime, const struct cox__pass *pass,
                         struct cox__pass *other, uint32_t row_alignment, const uint32_t *devices,
                         uint32_t count)
{
    for (uint32_t i = 0; i < other->binding_count; i++) {
        const size_t pitch_bytes = other->bindings[i].pitch_bytes;
        other->bindings[i].pitch_bytes = pass->bindings[i].pitch_bytes;
        if (row_alignment_of(runtime, other, devices, count, false) > row_alignment)
            cox__log(
                &runtime->log, COX_LOG_WARN,
                "buffer %u (%s): a pitch of %zu instead of %zu bytes reduces the row alignment to "
                "%u (see cox_runtime_pitch_bytes)",
                i, other->bindings[i].name, pitch_bytes, pass->bindings[i].pitch_bytes,
                row_alignment);

        other->bindings[i].pitch_bytes = pitch_bytes;
    }
}

/* Warn that few splits are possible, and name the pitches that would help. */
static void warn_row_alignment(const cox_runtime *runtime, const struct cox__pass *pass,
                               const uint32_t *devices, uint32_t count)
{
    struct cox__pass other = *pass;
    for (uint32_t i = 0; i < other.binding_count; i++) {
        struct cox__binding *binding = &other.bindings[i];
        if (cox__by_rows(binding))
            binding->pitch_bytes = cox_runtime_pitch_bytes(runtime, binding->pitch_bytes);
    }

    const uint32_t row_alignment = row_alignment_of(runtime, &other, devices, count, false);
    const bool pitches_help = row_alignment < pass->row_alignment;
    const char *problem = "few splits are possible", *cause = "";
    if (pass->row_alignment == pass->rows)
        problem = "rows cannot be split";
    if (!pitches_help)
        cause = "; the cause is row divisors or the rows of work-groups, not a pitch";

    cox__log(&runtime->log, COX_LOG_WARN, "%s: the row alignment is %u of %u rows%s", problem,
             pass->row_alignment, pass->rows, cause);
    if (pitches_help)
        warn_pitches(runtime, pass, &other, row_alignment, devices, count);
}

static void set_row_alignment(cox_runtime *runtime, struct cox__pass *pass, const uint32_t *devices,
                              uint32_t count)
{
    pass->row_alignment = row_alignment_of(runtime, pass, devices, count, true);
    if (pass->row_alignment > pass->rows / ROW_UNITS_OF_PAGES)
        pass->row_alignment = row_alignment_of(runtime, pass, devices, count, false);

    if (count > 1 && pass->row_alignment > 1 && pass->row_alignment > pass->rows / ROW_UNITS_MIN)
        warn_row_alignment(runtime, pass, devices, count);
}

/* ---- shared splits ---- */

/* The policy that a pass names as `own`, or the policy of all passes that name none. NULL: no
 * policy has the name. */
static const struct cox_policy *find_policy(const struct cox__session_spec *params, const char *own)
{
    if (own)
        return cox_policy_find(own);
    if (params->custom_policy)
        return params->custom_policy;

    return cox_policy_find(params->policy);
}

/* Whether the policy gives each pass rows on demand. `adaptive` does so for long frames with a
 * deadline, and can do without. */
static bool needs_pool(const struct cox_policy *policy)
{
    return policy->assign && policy != cox_policy_find("adaptive");
}

/* Whether the pass can use the split of the one before it: the same rows, devices and policy, and
 * a common row alignment that leaves enough splits. */
static bool can_share(const cox_session *session, uint32_t number, uint32_t device_count)
{
    const struct cox__pass *pass = &session->pipeline.passes[number], *before = pass - 1;
    const uint64_t common = cox__pipeline_lcm_bounded(pass->row_alignment, before->row_alignment,
                                                      pass->rows);

    return device_count > 1 && pass->rows == before->rows && !pass->policy && !before->policy &&
           !pass->device_count && !before->device_count &&
           (pass->row_alignment == before->row_alignment || common <= pass->rows / ROW_UNITS_MIN);
}

/* Choose which passes share a split, and give these a common row alignment. */
static void share_splits(cox_session *session, const struct cox__session_spec *params,
                         uint32_t device_count)
{
    struct cox__pass *passes = session->pipeline.passes;
    const struct cox_policy *policy = find_policy(params, NULL);
    const bool never = params->split_each_pass || !policy || needs_pool(policy);

    for (uint32_t p = 0, lead = 0; p < session->pipeline.pass_count; p++) {
        if (p == 0 || never || !can_share(session, p, device_count))
            lead = p;
        session->sharing[p].lead = lead;
        session->sharing[lead].count = p - lead + 1;

        const uint32_t common = (uint32_t)cox__pipeline_lcm_bounded(passes[lead].row_alignment,
                                                                    passes[p].row_alignment,
                                                                    passes[p].rows);
        for (uint32_t q = lead; q <= p; q++)
            passes[q].row_alignment = common;
    }

    const uint32_t last = session->pipeline.pass_count - 1;
    const struct cox_policy *first = find_policy(params, passes[0].policy);
    session->residency.one_split = first && !needs_pool(first) && session->sharing[last].lead == 0;
}

void cox__sharing_choose(cox_session *session, const struct cox__session_spec *params,
                         const uint32_t *devices, uint32_t count)
{
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++)
        set_row_alignment(session->runtime, &session->pipeline.passes[p], devices, count);

    share_splits(session, params, count);
}

/* ---- policies ---- */

/* What a custom policy lacks; NULL = nothing. */
static const char *missing_part(const struct cox_policy *policy)
{
    if (!policy->name)
        return "a name";
    if (!policy->state_bytes)
        return "its function state_bytes";
    if (!policy->init)
        return "its function init";

    if (!policy->split)
        return "its function split";

    return NULL;
}

/* Allocate the state of a policy, and what it needs to know if passes share its split. */
static cox_status allocate_state(cox_session *session, struct cox__sharing *sharing)
{
    const struct cox__log *log = &session->runtime->log;
    if (sharing->count > 1) {
        sharing->together = calloc(1, sizeof *sharing->together);
        if (!sharing->together) {
            cox__log(log, COX_LOG_ERROR, "no memory to share a split");
            return COX_E_NOMEM;
        }
    }

    const size_t bytes = sharing->policy.state_bytes(session->devices.count);
    sharing->state = calloc(1, bytes ? bytes : 1);
    if (!sharing->state) {
        cox__log(log, COX_LOG_ERROR, "policy %s: no memory for %zu bytes of state",
                 sharing->policy.name, bytes);
        return COX_E_NOMEM;
    }
    return COX_OK;
}

static cox_status refuse_policy(const struct cox__log *log, const char *name)
{
    char names[256] = "";
    for (uint32_t i = 0; cox_policy_at(i); i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", cox_policy_at(i)->name);
    }

    cox__log(log, COX_LOG_ERROR, "unknown policy '%s'; policies: %s", name, names);
    return COX_E_NOT_FOUND;
}

static cox_status start_policy(cox_session *session, uint32_t number,
                               const struct cox__session_spec *params)
{
    const struct cox__log *log = &session->runtime->log;
    struct cox__sharing *sharing = &session->sharing[number];
    const char *own = session->pipeline.passes[number].policy;
    const struct cox_policy *policy = find_policy(params, own);
    if (!policy)
        return refuse_policy(log, own ? own : params->policy);

    const char *missing = missing_part(policy);
    if (missing) {
        cox__log(log, COX_LOG_ERROR, "custom policy %s lacks %s", policy->name ? policy->name : "",
                 missing);
        return COX_E_INVALID;
    }

    sharing->devices = cox__session_devices_of_pass(session, number);
    sharing->policy = *policy;
    if (sharing->lead != number)
        return COX_OK;

    cox_status status = allocate_state(session, sharing);
    if (status)
        return status;

    struct cox_sched_device devices[COX_DEVICES_MAX];
    struct cox_sched_view view;
    cox__policy_view(session, number, 0, devices, &view);
    status = policy->init(sharing->state, &view, params->policy_options);
    if (status)
        cox__log(log, COX_LOG_ERROR, "policy %s rejects its options for %u devices: %s",
                 policy->name, session->devices.count, cox_status_text(status));
    return status;
}

cox_status cox__sharing_start_policies(cox_session *session, const struct cox__session_spec *params)
{
    for (uint32_t p = 0; p < session->pipeline.pass_count; p++) {
        const cox_status status = start_policy(session, p, params);
        if (status)
            return status;
    }
    return COX_OK;
}
