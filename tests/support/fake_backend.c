/* The backend of the scripted devices: its operations, its creation and its end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fake_inside.h"
#include "api/buffer.h"
#include "base/log.h"
#include "host/leak.h"
#include <stdio.h>
#include <string.h>

_Thread_local volatile uint32_t fake_must_depth;

/* ---- backend operations ---- */

static uint32_t op_device_count(struct cox__backend *backend)
{
    return fake_of(backend)->device_count;
}

static void op_device_info(struct cox__backend *backend, uint32_t index, struct cox_device_info *info)
{
    const struct fake *fake = fake_of(backend);
    const struct fake_device *script = &fake->devices[index].script;
    *info = (struct cox_device_info){
        .type = script->type,
        .mode = script->mode,
        .platform_index = script->mode == COX_MODE_SHARED ? 0 : index,
        .device_index = index,
        .context_group = script->mode == COX_MODE_SHARED ? 0 : index + 1,
        .compute_units = script->compute_units,
        .parent_units = script->compute_units,
        .max_work_group = 4096,
        .vector_width_float = 8,
        .base_align_bytes = script->align_bytes,
        .global_bytes = 1u << 30,
        .max_alloc_bytes = 1u << 30,
        .unified = script->mode != COX_MODE_STAGED,
        .host_memory = script->host_memory,
    };
    if (script->name)
        snprintf(info->name, sizeof info->name, "%s", script->name);
    else
        snprintf(info->name, sizeof info->name, "fake %u", index);
    snprintf(info->platform, sizeof info->platform, "fake platform");
    snprintf(info->driver, sizeof info->driver, "%s", script->driver ? script->driver : "1");
    snprintf(info->id, sizeof info->id, "fake:%u", index);
}

uint32_t fake__row_alignment(struct fake *fake, const struct cox__pass *pass, uint32_t device)
{
    struct cox_device_info info;
    op_device_info(&fake->base, device, &info);
    return cox__pipeline_pass_row_alignment(pass, device, &info);
}

static cox_status op_mem_create(struct cox__backend *backend, void *host, size_t bytes, struct cox__mem **out)
{
    struct fake *fake = fake_of(backend);
    *out = NULL;
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = fake__strike(fake, FAKE_MEM_FAILS, 0);
    if (!fault)
        fake->alive++;
    const cox_status status = fault ? fault->status : COX_OK;
    pthread_mutex_unlock(&fake->lock);
    if (fault)
        return status;
    struct cox__mem *mem = must(calloc(1, sizeof *mem));
    mem->fake = fake;
    mem->bytes = bytes;
    mem->wrapped = host != NULL;
    mem->data = host;
    if (!host) {
        const size_t padded = (bytes + 4095) & ~(size_t)4095;
        mem->data = must(aligned_alloc(4096, padded));
        memset(mem->data, 0, padded);
    }
    *out = mem;
    return COX_OK;
}

/* ---- memory that lies on a device ---- */

static bool op_mem_home(const struct cox__mem *mem, struct cox__mem_home *home)
{
    if (mem->device_data)
        *home = (struct cox__mem_home){.device = mem->home, .acquired = mem->must_acquire};
    return mem->device_data != NULL;
}

static cox_status op_mem_add_host(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = fake__strike(fake, FAKE_MEM_FAILS, 0);
    const cox_status status = fault ? fault->status : COX_OK;
    if (status == COX_OK && !mem->data)
        mem->data = memset(must(aligned_alloc(4096, (mem->bytes + 4095) & ~(size_t)4095)), 0xc3, mem->bytes);
    pthread_mutex_unlock(&fake->lock);
    return status;
}

cox_buffer *fake_home_buffer(cox_runtime *runtime, uint32_t device, size_t bytes, bool acquired)
{
    struct fake *fake = fake_of(runtime->backend);
    struct cox__mem *mem = must(calloc(1, sizeof *mem));
    cox_buffer *buffer;
    mem->fake = fake;
    mem->bytes = bytes;
    mem->device_data = memset(must(malloc(bytes)), 0xc3, bytes);
    mem->home = device;
    mem->must_acquire = acquired;
    pthread_mutex_lock(&fake->lock);
    fake->alive++;
    pthread_mutex_unlock(&fake->lock);
    if (cox__buffer_make(runtime, mem, true, &buffer))
        abort();
    return buffer;
}

unsigned char *fake_home_data(const cox_buffer *buffer)
{
    return buffer->mem->device_data;
}

bool fake_home_has_host(const cox_buffer *buffer)
{
    return buffer->mem->data != NULL;
}

static bool op_instance_reaches(struct cox__backend *backend, const struct cox__instance *instance,
                                const struct cox__mem *mem)
{
    (void)backend;
    return instance->device == mem->home && instance->context != &instance->own;
}

static bool works_on(const struct cox__instance *instance, const struct cox__mem *mem)
{
    for (uint32_t i = 0; i < instance->slot_count; i++)
        for (uint32_t b = 0; b < instance->pipeline.binding_count; b++)
            if (is_under_way(&instance->slots[i]) && instance->slots[i].work.mems[b] == mem)
                return true;
    return false;
}

bool fake_at_work(struct fake *fake, const struct cox__mem *mem)
{
    bool found = false;
    pthread_mutex_lock(&fake->lock);
    for (uint32_t u = 0; u < fake->instance_count; u++)
        found |= !fake->instances[u]->abandoned && works_on(fake->instances[u], mem);
    pthread_mutex_unlock(&fake->lock);
    return found;
}

static void keep(struct fake *fake, struct cox__mem *mem)
{
    mem->kept = true;
    mem->next = fake->kept;
    fake->kept = mem;
}

static void free_mem(struct cox__mem *mem)
{
    if (!mem->wrapped)
        free(mem->data);
    free(mem->device_data);
    free(mem);
}

static bool op_mem_destroy(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *instance = fake->instances[u];
        if (!works_on(instance, mem))
            continue;
        fake__violate(fake, "memory destroyed while %sdevice %u works on it",
                      instance->abandoned ? "an abandoned instance of " : "", instance->device);
        mem->destroyed = true;
    }
    if (mem->destroyed)
        keep(fake, mem);
    fake->alive--;
    const bool destroyed = mem->destroyed;
    pthread_mutex_unlock(&fake->lock);
    if (!destroyed)
        free_mem(mem);
    return !destroyed;
}

/* The memory no longer counts as alive, but it stays allocated, since a job that hangs may still access it. */
static void op_mem_abandon(struct cox__backend *backend, struct cox__mem *mem)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    keep(fake, mem);
    fake->alive--;
    fake->abandoned++;
    pthread_mutex_unlock(&fake->lock);
}

static struct cox__mem_link *op_mem_link(struct cox__mem *mem)
{
    return &mem->link;
}

static void *op_mem_data(struct cox__mem *mem)
{
    return mem->data;
}

static size_t op_mem_bytes(const struct cox__mem *mem)
{
    return mem->bytes;
}

static fake_kernel_fn *find_kernel(const struct fake *fake, const char *name)
{
    for (uint32_t i = 0; i < fake->kernel_count; i++)
        if (strcmp(fake->kernels[i].name, name) == 0)
            return fake->kernels[i].fn;
    return NULL;
}

/* A driver call that a fault may block. Returns false if the engine lock was revoked meanwhile; the thread must
 * then leave. */
static bool driver_call(struct fake *fake, struct cox__instance *instance, enum fake_fault_kind kind,
                        struct cox__driver_call *call)
{
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = fake__strike(fake, kind, instance->device);
    const uint64_t delay_ns = fault ? fault->delay_ns : 0;
    if (instance->isolated)
        fake__violate(fake, "an isolated instance of device %u was called", instance->device);
    pthread_mutex_unlock(&fake->lock);
    if (!fault)
        return true;
    *call = cox__watchdog_call_begin(fake->post.watchdog);
    pthread_mutex_lock(&fake->lock);
    fake__block(fake, delay_ns);
    pthread_mutex_unlock(&fake->lock);
    if (cox__watchdog_call_end(call))
        return true;
    pthread_mutex_lock(&fake->lock);
    instance->isolated = false;
    pthread_mutex_unlock(&fake->lock);
    return false;
}

static void op_instance_isolate(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    fake__note_instance(fake, FAKE_STEP_ISOLATE, instance->device, instance->context == &instance->own, false);
    instance->isolated = instance->unsettled = true;
    pthread_mutex_unlock(&fake->lock);
}

static void free_instance(struct cox__instance *instance)
{
    for (uint32_t i = 0; i < instance->slot_count; i++)
        for (uint32_t b = 0; b < COX_BUFFERS_MAX; b++)
            free(instance->slots[i].partial[b]);
    for (uint32_t n = 0; instance->sets && n < instance->pipeline.sets * COX_BUFFERS_MAX; n++)
        free(instance->sets[n]);
    for (uint32_t k = 0; k < COX_BUFFERS_MAX; k++)
        free(instance->kept[k]);
    free(instance->sets);
    free(instance);
}

/* Free the destroyed instances whose bands have ended. */
static void reap(struct fake *fake)
{
    for (uint32_t u = 0; u < fake->instance_count;) {
        struct cox__instance *instance = fake->instances[u];
        if (!instance->gone || fake__is_at_work(instance)) {
            u++;
            continue;
        }
        fake->instances[u] = fake->instances[--fake->instance_count];
        for (uint32_t i = 0; i < instance->slot_count; i++)
            fake__drop_events(fake, &instance->slots[i]); /* late posts */
        fake__tell_ended(instance);
        free_instance(instance);
    }
}

/* The result of instance_create, apart from the build. Called with the lock held. */
static cox_status may_create(struct fake *fake, uint32_t index, bool fresh)
{
    const struct device *device = &fake->devices[index];
    const struct fake_fault *fault = fake__strike(fake, FAKE_INSTANCE_BLOCKS, index);
    if (fault) {
        const cox_status status = fault->status;
        fake__take_time(fake, fault->delay_ns);
        if (status != COX_OK)
            return status;
    }
    fault = fake__strike(fake, FAKE_INSTANCE_FAILS, index);
    if (fault)
        return fault->status;
    return device->dead && (!fresh || fake_now(fake) < device->alive_ns) ? COX_E_DEVICE_LOST : COX_OK;
}

static void make_sets(struct cox__instance *instance)
{
    const struct cox__pipeline *pipeline = &instance->pipeline;
    instance->resident = pipeline->resident;
    instance->sets = must(calloc((size_t)pipeline->sets * COX_BUFFERS_MAX + 1, sizeof *instance->sets));
    for (uint32_t n = 0; n < pipeline->sets * COX_BUFFERS_MAX; n++) {
        const size_t bytes = pipeline->bytes[n % COX_BUFFERS_MAX];
        if ((instance->resident & ~pipeline->stays) >> n % COX_BUFFERS_MAX & 1)
            instance->sets[n] = memset(must(malloc(bytes)), 0xc3, bytes);
    }
    for (uint32_t k = 0; k < pipeline->kept_count; k++)
        instance->kept[k] = memset(must(malloc(pipeline->kept_bytes[k])), 0xc3, pipeline->kept_bytes[k]);
}

static uint32_t op_instance_resident(struct cox__backend *backend, const struct cox__instance *instance)
{
    (void)backend;
    return instance->resident;
}

static cox_status op_instance_create(struct cox__backend *backend, uint32_t device,
                                     const struct cox__pipeline *pipeline, uint32_t slots, bool fresh,
                                     struct cox__instance **out, uint32_t *max_rows)
{
    struct fake *fake = fake_of(backend);
    const struct fake_device *script = &fake->devices[device].script;
    *out = NULL;
    pthread_mutex_lock(&fake->lock);
    reap(fake);
    if (slots == 0 || slots > SLOTS_MAX)
        fake__violate(fake, "instance of device %u created with %u slots", device, slots);
    for (uint32_t p = 0; p < pipeline->pass_count; p++) {
        const struct cox__pass *pass = &pipeline->passes[p];
        if (pass->row_alignment == 0 ||
            (pass->row_alignment != pass->rows && pass->row_alignment % fake__row_alignment(fake, pass, device)))
            fake__violate(fake, "row alignment %u does not suit device %u", pass->row_alignment, device);
    }
    const cox_status status = may_create(fake, device, fresh);
    fake__note_instance(fake, FAKE_STEP_CREATE, device, fresh, status != COX_OK);
    pthread_mutex_unlock(&fake->lock);
    if (status != COX_OK)
        return status;

    struct cox__instance *instance = must(calloc(1, sizeof *instance + slots * sizeof instance->slots[0]));
    instance->fake = fake;
    instance->device = device;
    instance->context = fresh ? &instance->own : &fake->devices[device].context;
    instance->pipeline = *pipeline;
    instance->slot_count = slots;
    for (uint32_t n = 0; n < pipeline->pass_count * COX_FUSED_MAX; n++) {
        const uint32_t p = n / COX_FUSED_MAX, i = n % COX_FUSED_MAX;
        const struct cox__pass *pass = &pipeline->passes[p];
        const struct cox__stage *stage = &pass->stages[i];
        instance->max_rows[p] = script->max_rows && script->max_rows < pass->rows ? script->max_rows : pass->rows;
        if (i >= pass->stage_count)
            continue;
        instance->kernels[p][i] = cox__pipeline_stage_variant(stage, device, script->type)
                                      ? find_kernel(fake, stage->kernel)
                                      : NULL;
        if (!instance->kernels[p][i]) {
            cox__log(fake->log, COX_LOG_WARN, "fake %u: kernel %s does not build", device, stage->kernel);
            free(instance);
            return COX_E_BUILD;
        }
    }
    for (uint32_t l = 0; l < slots; l++) {
        instance->slots[l].instance = instance;
        for (uint32_t i = 0; i < pipeline->binding_count; i++)
            if (pipeline->bindings[i].row_access == COX__REDUCE)
                instance->slots[l].partial[i] = must(malloc(pipeline->bytes[i]));
    }
    if (script->mode == COX_MODE_STAGED && !script->keeps_nothing)
        make_sets(instance);
    pthread_mutex_lock(&fake->lock);
    if (fake->instance_count == INSTANCES_MAX)
        abort();
    fake->instances[fake->instance_count++] = instance;
    fake->alive++;
    pthread_mutex_unlock(&fake->lock);
    *out = instance;
    memcpy(max_rows, instance->max_rows, sizeof instance->max_rows);
    return COX_OK;
}

static void abandon(struct cox__instance *instance)
{
    instance->abandoned = true;
    for (uint32_t i = 0; i < instance->slot_count; i++)
        if (instance->slots[i].state == SLOT_RUNNING)
            instance->fake->running--;
}

static void op_instance_abandon(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    if (instance->abandoned)
        fake__violate(fake, "instance of device %u abandoned twice", instance->device);
    fake__note_instance(fake, FAKE_STEP_ABANDON, instance->device, instance->context == &instance->own, false);
    abandon(instance);
    pthread_mutex_unlock(&fake->lock);
}

/* Like a driver, this releases an abandoned instance's resources at once. Bands on its device continue. */
static void op_instance_destroy(struct cox__backend *backend, struct cox__instance *instance, cox__ended_fn *ended,
                                void *ctx)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct fake_fault *fault = instance->abandoned ? fake__strike(fake, FAKE_DESTROY_BLOCKS, instance->device)
                                                         : NULL;
    if (fault)
        fake__take_time(fake, fault->delay_ns);
    fake__note_instance(fake, FAKE_STEP_DESTROY, instance->device, instance->context == &instance->own, false);
    for (uint32_t i = 0; i < instance->slot_count; i++) {
        struct slot *slot = &instance->slots[i];
        if (!instance->abandoned && is_under_way(slot)) {
            fake__violate(fake, "instance of device %u destroyed with slot %u under way", instance->device, i);
            abandon(instance);
        }
        if (slot->state == SLOT_RUNNING)
            continue;
        slot->state = SLOT_FREE;
        fake__drop_events(fake, slot);
        fake__leave_queue(&fake->devices[instance->device], slot);
    }
    fake->alive--;
    instance->ended = ended;
    instance->ended_ctx = ctx;
    instance->gone = true;
    reap(fake);
    pthread_mutex_unlock(&fake->lock);
}

static struct work work_of(const struct cox__job *job, const struct cox__pipeline *pipeline)
{
    struct work work = {.slot = job->slot,
                        .band = job->band,
                        .pass = job->pass,
                        .first_row = job->first_row,
                        .rows = job->rows,
                        .kind = job->kind,
                        .homed = job->homed,
                        .resident = job->resident,
                        .copied_out = job->out,
                        .set = job->set,
                        .range_count = job->range_count,
                        .back_count = job->back_count,
                        .frame = job->frame,
                        .session = job->session};
    const struct cox__frame *frame = job->frame;
    if (frame) {
        const bool check = frame->bands && frame->bands[job->band].kind == COX__BAND_CHECK;
        work.of_frame = frame->kind == COX__FRAME_OF_APPLICATION && !check;
        work.index = frame->index;
    }
    memcpy(work.ranges, job->ranges, job->range_count * sizeof job->ranges[0]);
    memcpy(work.back, job->back, job->back_count * sizeof job->back[0]);
    memcpy(work.kept, job->kept, sizeof work.kept);
    memcpy(work.mems, job->mems, pipeline->binding_count * sizeof work.mems[0]);
    work.out = work.mems[0] ? work.mems[0]->data : NULL;
    for (uint32_t i = pipeline->binding_count; i-- > 0;)
        if (pipeline->passes[job->pass].bindings[i].access != COX__READ && work.mems[i])
            work.out = work.mems[i]->data;
    if (job->params)
        memcpy(work.params, job->params, pipeline->params_bytes);
    return work;
}

static cox_status op_job_submit(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct cox__instance *instance = job->instance;
    const struct work work = work_of(job, &instance->pipeline);
    struct cox__driver_call call;
    if (!driver_call(fake, instance, FAKE_SUBMIT_STUCK, &call)) { /* the band has failed, as polls report later */
        pthread_mutex_lock(&fake->lock);
        struct slot *slot = &instance->slots[job->slot];
        slot->job = job;
        slot->work = work;
        slot->state = SLOT_ENDED;
        slot->failed = true;
        pthread_mutex_unlock(&fake->lock);
        cox__watchdog_call_abandon(&call);
    }
    pthread_mutex_lock(&fake->lock);
    if (job->slot >= instance->slot_count || instance->abandoned) {
        fake__violate(fake, "slot %u of %u on %s instance of device %u", job->slot, instance->slot_count,
                      instance->abandoned ? "an abandoned" : "a", instance->device);
        pthread_mutex_unlock(&fake->lock);
        return COX_E_INVALID;
    }
    struct slot *slot = &instance->slots[job->slot];
    if (slot->state != SLOT_FREE)
        fake__violate(fake, "slot %u of device %u is occupied by rows %u+%u", job->slot, instance->device,
                      slot->work.first_row, slot->work.rows);
    const bool possible = fake__check_job(fake, instance, &work);
    const struct fake_fault *fault = fake__strike(fake, FAKE_SUBMIT_BLOCKS, instance->device);
    if (fault)
        fake__take_time(fake, fault->delay_ns);

    fake__drop_events(fake, slot); /* a post of an earlier band that never came */
    struct slot fresh = {
        .instance = instance, .job = job, .work = work, .number = fake->submits++, .submit_ns = fake_now(fake)};
    memcpy(fresh.partial, slot->partial, sizeof fresh.partial);
    *slot = fresh;
    job->failing = false;
    if (fake->devices[instance->device].script.parts > 1)
        slot->parts_left = fake->devices[instance->device].script.parts - 1;
    job->unfinished = slot->parts_left > 0;

    fault = fake__strike(fake, FAKE_SUBMIT_FAILS, instance->device);
    if (fault || instance->dead || !possible) {
        const cox_status status = fault ? fault->status : COX_E_DEVICE_LOST;
        fake__note(fake, FAKE_STEP_SUBMIT, instance->device, slot, true);
        slot->job = NULL;
        job->unfinished = false;
        pthread_mutex_unlock(&fake->lock);
        return status;
    }
    fake__draw_faults(fake, slot);
    fake__note(fake, FAKE_STEP_SUBMIT, instance->device, slot, false);
    slot->state = SLOT_QUEUED;
    instance->queued++;
    if (fake->devices[instance->device].script.inside_submit && !fake->real_time)
        fake__run_inside(fake, slot);
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
    return COX_OK;
}

static void op_job_continue(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct slot *slot = &job->instance->slots[job->slot];
    struct cox__driver_call call;
    if (!driver_call(fake, job->instance, FAKE_CONTINUE_STUCK,
                     &call)) { /* the band fails when its commands have ended */
        pthread_mutex_lock(&fake->lock);
        slot->failed = slot->fails = true;
        job->unfinished = false;
        pthread_mutex_unlock(&fake->lock);
        cox__watchdog_call_abandon(&call);
    }
    pthread_mutex_lock(&fake->lock);
    fake__check_flushed(fake, "continued");
    if (slot->job != job || !slot->parts_left)
        fake__violate(fake, "continued a job that has no more parts (device %u, slot %u)", job->instance->device,
                      job->slot);
    else
        slot->parts_left--;
    fake__note(fake, FAKE_STEP_CONTINUE, job->instance->device, slot, false);
    job->unfinished = slot->parts_left > 0;
    pthread_mutex_unlock(&fake->lock);
}

static void op_instance_flush(struct cox__backend *backend, struct cox__instance *instance)
{
    struct fake *fake = fake_of(backend);
    struct device *device = &fake->devices[instance->device];
    struct cox__driver_call call;
    if (!driver_call(fake, instance, FAKE_FLUSH_STUCK, &call))
        cox__watchdog_call_abandon(&call);
    pthread_mutex_lock(&fake->lock);
    fake__note(fake, FAKE_STEP_FLUSH, instance->device, NULL, false);
    if (instance->abandoned)
        fake__violate(fake, "an abandoned instance of device %u was flushed", instance->device);
    instance->unsettled = false;
    while (instance->queued > 0) {
        struct slot *next = NULL;
        for (uint32_t i = 0; i < instance->slot_count; i++) {
            struct slot *slot = &instance->slots[i];
            if (slot->state == SLOT_QUEUED && (!next || slot->number < next->number))
                next = slot;
        }
        fake__start_band(fake, device, next);
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

static enum cox__job_state op_job_poll(struct cox__backend *backend, struct cox__job *job)
{
    struct fake *fake = fake_of(backend);
    struct slot *slot = &job->instance->slots[job->slot];
    enum cox__job_state state = COX__JOB_RUNNING;
    struct cox__driver_call call;
    if (!driver_call(fake, job->instance, FAKE_POLL_STUCK, &call))
        cox__watchdog_call_abandon(&call);
    pthread_mutex_lock(&fake->lock);
    fake__check_flushed(fake, "polled");
    if (slot->job != job || slot->state == SLOT_FREE || job->instance->abandoned) {
        fake__violate(fake, "polled a job that is %s (device %u, slot %u)",
                      job->instance->abandoned ? "abandoned" : "not under way", job->instance->device, job->slot);
        pthread_mutex_unlock(&fake->lock);
        return COX__JOB_FAILED;
    }
    if (job->unfinished && !slot->failed)
        fake__violate(fake, "polled a job of which parts are missing (device %u)", job->instance->device);
    fake__note(fake, FAKE_STEP_POLL, job->instance->device, slot, slot->failed);
    if (slot->state == SLOT_ENDED) {
        state = slot->failed ? COX__JOB_FAILED : COX__JOB_DONE;
        if (atomic_load(&job->end_ns) == 0)
            atomic_store(&job->end_ns, fake_now(fake)); /* no post came: the poll observed the end */
        slot->state = SLOT_FREE;
    }
    job->failing = state == COX__JOB_RUNNING && slot->failing;
    pthread_mutex_unlock(&fake->lock);
    return state;
}

static const void *op_job_partial(struct cox__backend *backend, struct cox__job *job, uint32_t binding)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    const struct slot *slot = &job->instance->slots[job->slot];
    if (slot->job != job || slot->state != SLOT_FREE || slot->failed || job->instance->abandoned)
        fake__violate(fake, "partial of binding %u requested before its band was done, or after its slot was reused",
                      binding);
    const void *partial = slot->partial[binding];
    pthread_mutex_unlock(&fake->lock);
    return partial;
}

static uint64_t op_now_ns(struct cox__backend *backend)
{
    return fake_now(fake_of(backend));
}

/* ---- creation and end ---- */

static void op_destroy(struct cox__backend *backend)
{
    struct fake *fake = fake_of(backend);
    pthread_mutex_lock(&fake->lock);
    if (fake->alive > 0)
        fake__violate(fake, "backend destroyed with %u objects alive", fake->alive);
    if (fake->blocked > 0)
        fake__violate(fake, "backend destroyed while %u calls block", fake->blocked);
    fake->stopping = true;
    for (uint32_t i = 0; i < fake->device_count; i++)
        pthread_cond_broadcast(&fake->devices[i].wake);
    pthread_mutex_unlock(&fake->lock);
    if (fake->real_time)
        for (uint32_t i = 0; i < fake->device_count; i++)
            pthread_join(fake->devices[i].thread, NULL);
    fake->destroyed = true;
}

static const char *op_instance_may_write(struct cox__backend *backend, const struct cox__instance *instance,
                                         uint32_t pass, uint32_t stage, uint32_t arg)
{
    (void)pass;
    (void)stage;
    return fake_of(backend)->devices[instance->device].script.writable_args >> arg & 1 ? "" : NULL;
}

#define FAKE_OPS                                                                                                      \
    .destroy = op_destroy, .device_count = op_device_count, .device_info = op_device_info,                            \
    .mem_create = op_mem_create, .mem_destroy = op_mem_destroy, .mem_link = op_mem_link, .mem_data = op_mem_data,     \
    .mem_bytes = op_mem_bytes, .mem_home = op_mem_home, .mem_add_host = op_mem_add_host,                              \
    .instance_reaches = op_instance_reaches, .mem_abandon = op_mem_abandon, .instance_abandon = op_instance_abandon,  \
    .instance_isolate = op_instance_isolate, .instance_create = op_instance_create,                                   \
    .instance_destroy = op_instance_destroy, .job_submit = op_job_submit, .job_continue = op_job_continue,            \
    .instance_flush = op_instance_flush, .job_poll = op_job_poll, .job_partial = op_job_partial, .now_ns = op_now_ns, \
    .instance_resident = op_instance_resident, .instance_may_write = op_instance_may_write

static const struct cox__backend_ops virtual_ops = {FAKE_OPS, .advance = fake__advance};
static const struct cox__backend_ops other_ops = {FAKE_OPS};

struct fake *fake_new(const struct fake_params *params)
{
    struct fake *fake = must(calloc(1, sizeof *fake));
    pthread_mutex_init(&fake->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&fake->changed, &monotonic);
    fake->real_time = params->real_time;
    fake->held = params->held;
    fake->base.ops = params->real_time || params->driven ? &other_ops : &virtual_ops;
    atomic_init(&fake->clock_ns, 1000000000u); /* 0 means "unknown" in reports */
    fake->kernel_count = params->kernel_count;
    memcpy(fake->kernels, params->kernels, sizeof fake->kernels);
    fake->device_count = params->device_count;
    for (uint32_t i = 0; i < params->device_count; i++) {
        struct fake_device *script = &fake->devices[i].script;
        *script = params->devices[i];
        fake->devices[i].fake = fake;
        script->type = script->type ? script->type : COX_DEVICE_CPU;
        script->mode = script->mode ? script->mode : COX_MODE_MAPPED;
        script->align_bytes = script->align_bytes ? script->align_bytes : 4;
        script->compute_units = script->compute_units ? script->compute_units : 4;
        pthread_cond_init(&fake->devices[i].wake, &monotonic);
    }
    pthread_condattr_destroy(&monotonic);
    return fake;
}

void fake_free(struct fake **fake)
{
    if (!*fake)
        return;
    if ((*fake)->made && !(*fake)->destroyed) { /* a call still blocks in it */
        cox__leak(*fake);
        *fake = NULL;
        return;
    }
    for (uint32_t u = 0; u < (*fake)->instance_count; u++)
        free_instance((*fake)->instances[u]);
    for (struct cox__mem *mem = (*fake)->kept, *next; mem; mem = next) {
        next = mem->next;
        free_mem(mem);
    }
    for (uint32_t i = 0; i < (*fake)->device_count; i++)
        pthread_cond_destroy(&(*fake)->devices[i].wake);
    pthread_cond_destroy(&(*fake)->changed);
    pthread_mutex_destroy(&(*fake)->lock);
    fake_handover_free(&(*fake)->handover);
    free((*fake)->record);
    free(*fake);
    *fake = NULL;
}

cox_status fake_make(void *user, struct cox__post post_fn, struct cox__log *log, struct cox__backend **out)
{
    struct fake *fake = user;
    fake->post = post_fn;
    fake->log = log;
    fake->made = true;
    if (fake->real_time)
        for (uint32_t i = 0; i < fake->device_count; i++)
            if (pthread_create(&fake->devices[i].thread, NULL, fake__serve, &fake->devices[i]) != 0)
                abort();
    *out = &fake->base;
    return COX_OK;
}
