/* The order in which the passes and devices of a frame are checked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parts.h"
#include "base/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ---- */

cox_status cox__check_create(struct cox__backend *backend, const struct cox__log *log,
                             const struct cox__session_spec *spec,
                             const struct cox__pipeline *pipeline, const uint32_t *devices,
                             uint32_t device_count, struct cox__check **out)
{
    *out = NULL;
    if (!backend->ops->trial_run) {
        cox__log(log, COX_LOG_ERROR, "check: the devices' backend has no check mode");
        return COX_E_UNSUPPORTED;
    }

    struct cox__check *check = calloc(1, sizeof *check);
    if (!check) {
        cox__log(log, COX_LOG_ERROR, "check: no memory for %zu bytes", sizeof *check);
        return COX_E_NOMEM;
    }

    const cox_status status = cox__pipeline_init(&check->pipeline, spec, log);
    if (status) {
        free(check);
        return status;
    }

    for (uint32_t p = 0; p < pipeline->pass_count; p++)
        check->pipeline.passes[p].row_alignment = pipeline->passes[p].row_alignment;
    check->pipeline.sets = 1;
    check->backend = backend;
    check->log = log;
    check->device_count = device_count;
    for (uint32_t d = 0; d < device_count; d++)
        check->devices[d].device = devices[d];

    pthread_mutex_init(&check->lock, NULL);
    *out = check;
    return COX_OK;
}

void cox__check_destroy(struct cox__check *check)
{
    if (!check)
        return;

    for (uint32_t d = 0; d < check->device_count; d++)
        if (check->devices[d].instance)
            check->backend->ops->instance_destroy(check->backend, check->devices[d].instance, NULL,
                                                  NULL);
    cox__pipeline_clear(&check->pipeline);
    pthread_mutex_destroy(&check->lock);
    free(check);
}

/* Build the kernels on all devices. A device on which they do not build is left out. */
static cox_status make_instances(struct cox__check *check)
{
    cox_status first_error = COX_E_NO_DEVICE;
    bool any = false;
    if (check->made)
        return COX_OK;

    for (uint32_t d = 0; d < check->device_count; d++) {
        struct cox__check_device *device = &check->devices[d];
        struct cox_device_info info;
        uint32_t max_rows[COX_PASSES_MAX];
        check->backend->ops->device_info(check->backend, device->device, &info);
        snprintf(device->name, sizeof device->name, "device %u (%.100s)", device->device,
                 info.name);

        const cox_status status = check->backend->ops->instance_create(check->backend,
                                                                       device->device,
                                                                       &check->pipeline, 1, false,
                                                                       &device->instance, max_rows);
        any |= !status;
        if (!status)
            continue;

        device->instance = NULL;
        if (first_error == COX_E_NO_DEVICE)
            first_error = status;
        cox__log(check->log, COX_LOG_WARN, "check: %s is not checked: %s", device->name,
                 cox_status_text(status));
    }

    check->made = any;
    return any ? COX_OK : first_error;
}

/* ---- one pass on one device ---- */

/* Attempts that a device needs. */
struct attempts {
    struct cox__attempt reference; /* the pass in one band */
    struct cox__attempt one;
    struct cox__attempt other;
};

static void free_attempts(struct attempts *attempts)
{
    cox__poison_attempt_free(&attempts->reference);
    cox__poison_attempt_free(&attempts->one);
    cox__poison_attempt_free(&attempts->other);
}

static cox_status make_attempts(const struct cox__scene *scene, struct attempts *attempts)
{
    *attempts = (struct attempts){.reference = {.lost = false}};
    cox_status status = cox__poison_attempt_make(scene, &attempts->reference);
    if (!status)
        status = cox__poison_attempt_make(scene, &attempts->one);
    if (!status)
        status = cox__poison_attempt_make(scene, &attempts->other);
    if (status)
        free_attempts(attempts);
    return status;
}

static uint64_t seed_of(const struct cox__scene *scene)
{
    return cox__poison_random(scene->check->frame + 1);
}

/* Run the pass once more, launched in another way. If this changes any byte, add the finding. */
static cox_status check_launch(struct cox__scene *scene, struct attempts *attempts, bool wider,
                               bool backwards, enum cox__finding_kind kind, bool *any)
{
    static const char *const texts[COX__FINDING_KINDS] = {
        [COX__FINDING_UNSTABLE] =
            "gives other results if it runs again: %s (%zu bytes differ). Work-items may race, or "
            "read local memory or variables that they have not set",
        [COX__FINDING_ORDER] =
            "gives other results if its work-groups run in another order: %s (%zu bytes differ). "
            "Work-items of different groups must not depend on each other",
        [COX__FINDING_COLUMNS] =
            "has effects from work-items beyond its columns or rows: they change %s (%zu bytes). "
            "Compare get_global_id with `columns` and `rows`"};
    const struct cox__poison poison = {.seed = seed_of(scene)};
    struct cox__spot spot;

    attempts->one.trial.wider = wider;
    attempts->one.trial.backwards = backwards;
    attempts->one.trial.taint = 2;
    const cox_status status = cox__poison_run(scene, &attempts->one, &poison);
    attempts->one.trial.wider = false;
    attempts->one.trial.backwards = false;
    if (status || !cox__compare_all(scene, &attempts->reference, &attempts->one, &spot))
        return status;

    char text[400];
    const struct cox__where where = cox__finding_where(scene, spot.binding, spot.offset);
    snprintf(text, sizeof text, texts[kind], where.text, spot.count);
    cox__finding_add(scene, kind, spot.binding, "%s", text);
    *any = true;
    return COX_OK;
}

/* Compare with a run on inverted poison. */
static cox_status check_poison(struct cox__scene *scene, struct attempts *attempts, bool *any)
{
    const uint64_t seed = seed_of(scene);
    struct cox__spot spot;
    const cox_status status = cox__poison_run(scene, &attempts->one,
                                              &(const struct cox__poison){.seed = seed,
                                                                          .inverted = UINT64_MAX});
    if (status)
        return status;

    *any = cox__compare_canaries(scene, &attempts->one);
    if (*any)
        return COX_OK;
    if (cox__compare_outputs(scene, &attempts->reference, &attempts->one, &spot)) {
        *any = true;
        return cox__culprit_report(scene, &attempts->reference, seed, &attempts->other, &spot);
    }

    *any = cox__compare_unwritten(scene, &attempts->reference, &attempts->one);
    return COX_OK;
}

/* Check the pass in one band, then in several. Stops at the first findings: more would follow from
 * them. */
static cox_status check_device(struct cox__scene *scene, struct attempts *attempts, bool *any)
{
    const struct cox__poison poison = {.seed = seed_of(scene)};
    attempts->reference.trial.taint = 1;
    cox_status status = cox__poison_run(scene, &attempts->reference, &poison);

    if (!status)
        status = check_launch(scene, attempts, false, false, COX__FINDING_UNSTABLE, any);
    if (!status && !*any)
        status = check_launch(scene, attempts, true, false, COX__FINDING_COLUMNS, any);
    if (!status && !*any)
        *any = cox__compare_canaries(scene, &attempts->reference);
    if (!status && !*any)
        status = check_launch(scene, attempts, false, true, COX__FINDING_ORDER, any);
    if (!status && !*any)
        status = check_poison(scene, attempts, any);

    const uint32_t before = scene->findings->count;
    if (!status && !*any)
        status = cox__bands_check(scene, &attempts->reference, &attempts->one, &attempts->other);
    *any |= scene->findings->count > before;
    return status;
}

/* ---- the results of a pass ---- */

/* Make the results of the pass the input of the next one. Bytes that no kernel writes stay. */
static cox_status adopt(struct cox__scene *scene, struct attempts *attempts,
                        unsigned char *const *buffers)
{
    const struct cox__attempt *reference = &attempts->reference;
    const cox_status status = cox__poison_run(scene, &attempts->one,
                                              &(const struct cox__poison){.seed = seed_of(scene),
                                                                          .inverted = UINT64_MAX});

    for (uint32_t i = 0; !status && i < scene->pass->binding_count; i++) {
        const struct cox__binding *binding = &scene->pass->bindings[i];
        const size_t margin = scene->places[i].margin;
        const unsigned char *data = reference->trial.memories[i].data;

        if (binding->row_access == COX__REDUCE) {
            memset(buffers[i], 0, binding->bytes);
            binding->merge(buffers[i], data + margin, binding->bytes, binding->merge_user);
            continue;
        }
        for (size_t at = 0; cox__written_by_rows(binding) && at < scene->places[i].middle; at++) {
            const struct cox__spot spot = {.binding = i, .offset = margin + at};
            if (!cox__compare_is_unwritten(reference, &attempts->one, &spot))
                buffers[i][at] = data[margin + at];
        }
    }
    return status;
}

/* FNV-1a of a buffer. */
static uint64_t hash_of(const unsigned char *data, size_t bytes)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ data[i]) * 0x100000001b3u;
    return hash;
}

/* Call the pass's function twice with equal input. `params`: of the frame; it may change them. */
static void call_done(struct cox__scene *scene, unsigned char *const *buffers,
                      unsigned char *params)
{
    const struct cox__pipeline *pipeline = &scene->check->pipeline;
    unsigned char again[COX_CONSTANTS_BYTES_MAX];
    uint64_t hashes[COX_BUFFERS_MAX] = {0};

    memcpy(again, params, pipeline->params_bytes);
    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (buffers[i])
            hashes[i] = hash_of(buffers[i], pipeline->bytes[i]);

    scene->pass->done(scene->pass->done_user, (void *const *)buffers, params);
    scene->pass->done(scene->pass->done_user, (void *const *)buffers, again);

    size_t at = 0;
    while (at < pipeline->params_bytes && params[at] == again[at])
        at++;
    if (at < pipeline->params_bytes)
        cox__finding_add(scene, COX__FINDING_DONE, 0,
                         "has a `done` function that gives another byte %zu of the constants when "
                         "it is called again; equal input must give equal results",
                         at);

    for (uint32_t i = 0; i < pipeline->binding_count; i++)
        if (buffers[i] && hashes[i] != hash_of(buffers[i], pipeline->bytes[i]))
            cox__finding_add(scene, COX__FINDING_DONE, i,
                             "has a `done` function that changes buffer %s; it may only read",
                             cox__binding_name(&pipeline->bindings[i]));
}

/* ---- one pass ---- */

/* Whether the pass runs on the device. A pass without a list may run on all. */
static bool takes_part(const struct cox__pass *pass, const struct cox__check_device *device)
{
    bool named = !pass->device_count;
    for (uint32_t i = 0; i < pass->device_count; i++)
        named |= pass->devices[i] == device->device;
    return named && device->instance;
}

static void compare_devices(struct cox__scene *scene, const struct cox__check_device *first,
                            const struct attempts *of_first, const struct attempts *attempts)
{
    struct cox__spot spot;
    if (!cox__compare_outputs(scene, &of_first->reference, &attempts->reference, &spot))
        return;

    const struct cox__where where = cox__finding_where(scene, spot.binding, spot.offset);
    cox__finding_add(scene, COX__FINDING_DEVICES, spot.binding,
                     "gives other results than on %s, from the same input: %s (%zu bytes differ)",
                     first->name, where.text, spot.count);
}

/* A device after the first one. */
static cox_status check_other(struct cox__scene *scene, const struct cox__check_device *first,
                              const struct attempts *of_first, bool *any)
{
    struct attempts attempts;
    cox_status status = make_attempts(scene, &attempts);
    if (status)
        return status;

    status = check_device(scene, &attempts, any);
    if (!status && !*any)
        compare_devices(scene, first, of_first, &attempts);
    free_attempts(&attempts);
    return status;
}

static cox_status check_devices(struct cox__scene *scene, unsigned char *const *buffers,
                                unsigned char *params)
{
    struct cox__check *check = scene->check;
    struct cox__check_device *first = scene->device;
    struct attempts attempts;
    bool any = false;
    cox_status status = make_attempts(scene, &attempts);
    if (status)
        return status;

    status = check_device(scene, &attempts, &any);
    for (; !status && !any && scene->device < check->devices + check->device_count; scene->device++)
        if (scene->device != first && takes_part(scene->pass, scene->device))
            status = check_other(scene, first, &attempts, &any);

    scene->device = first;
    if (!status)
        status = adopt(scene, &attempts, buffers);
    free_attempts(&attempts);

    if (!status && scene->pass->done)
        call_done(scene, buffers, params);
    return status;
}

static cox_status check_pass(struct cox__check *check, uint32_t number,
                             unsigned char *const *buffers, unsigned char *params,
                             struct cox__findings *findings)
{
    const struct cox__pass *pass = &check->pipeline.passes[number];
    struct cox__scene scene = {.check = check,
                               .pass = pass,
                               .number = number,
                               .device = check->devices,
                               .buffers = buffers,
                               .params = params,
                               .findings = findings,
                               .rows = pass->rows};

    while (scene.device < check->devices + check->device_count && !takes_part(pass, scene.device))
        scene.device++;
    if (scene.device == check->devices + check->device_count) {
        cox__log(check->log, COX_LOG_ERROR, "check: no device runs pass %u (%s)", number,
                 pass->name);
        return COX_E_NO_DEVICE;
    }

    cox__poison_places(&scene);
    return check_devices(&scene, buffers, params);
}

/* ---- one frame ---- */

static void free_buffers(unsigned char **buffers)
{
    for (uint32_t i = 0; i < COX_BUFFERS_MAX; i++)
        free(buffers[i]);
}

/* Copy the frame's buffers. Scratch begins with zeros. */
static cox_status copy_buffers(const struct cox__check *check, void *const *buffers,
                               unsigned char **copies)
{
    for (uint32_t i = 0; i < check->pipeline.binding_count; i++) {
        const size_t bytes = check->pipeline.bytes[i];
        if (!bytes)
            continue;

        copies[i] = calloc(1, bytes);
        if (!copies[i]) {
            cox__log(check->log, COX_LOG_ERROR, "check: no memory for a copy of %zu bytes", bytes);
            free_buffers(copies);
            return COX_E_NOMEM;
        }
        if (buffers[i])
            memcpy(copies[i], buffers[i], bytes);
    }
    return COX_OK;
}

static cox_status check_frame(struct cox__check *check, void *const *buffers, const void *params)
{
    unsigned char *copies[COX_BUFFERS_MAX] = {NULL};
    unsigned char own_params[COX_CONSTANTS_BYTES_MAX] = {0};
    struct cox__findings findings = {.count = 0};

    cox_status status = make_instances(check);
    if (!status)
        status = copy_buffers(check, buffers, copies);
    if (status)
        return status;

    if (params)
        memcpy(own_params, params, check->pipeline.params_bytes);
    for (uint32_t p = 0; !status && p < check->pipeline.pass_count; p++)
        status = check_pass(check, p, copies, own_params, &findings);

    free_buffers(copies);
    if (findings.count > COX__FINDINGS_MAX)
        cox__log(check->log, COX_LOG_ERROR, "check: %u more findings",
                 findings.count - COX__FINDINGS_MAX);
    if (!status && findings.count)
        return COX_E_MISMATCH;
    return status;
}

cox_status cox__check_frame(struct cox__check *check, void *const *buffers, const void *params)
{
    pthread_mutex_lock(&check->lock);
    const cox_status status = check_frame(check, buffers, params);
    check->frame++;
    pthread_mutex_unlock(&check->lock);
    return status;
}
