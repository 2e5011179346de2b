/* The effect of a scripted device's band on memory, and the checks that record violations of memory rules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "fake_inside.h"
#include <string.h>

/* ---- running a band ---- */

static size_t binding_bytes(const struct cox__pass *pass, uint32_t index, const struct work *work, size_t *offset,
                            uint32_t *origin)
{
    const struct cox__binding *binding = &pass->bindings[index];
    *offset = 0;
    *origin = 0;
    if (binding->row_access == COX__UNUSED)
        return 0;
    if (binding->row_access == COX__WHOLE || binding->row_access == COX__REDUCE)
        return binding->bytes;
    uint32_t first, count;
    cox__pipeline_binding_rows(pass, index, work->first_row, work->rows, &first, &count);
    *offset = (size_t)first * binding->pitch_bytes;
    *origin = first;
    return (size_t)count * binding->pitch_bytes;
}

static bool written(const struct cox__binding *binding)
{
    return binding->row_access == COX__ROWS && binding->access != COX__READ;
}

static bool is_transfer(const struct work *work)
{
    return work->kind != COX__JOB_BAND;
}

static bool keeps(const struct work *work, uint32_t binding)
{
    return work->resident >> binding & 1;
}

/* The device's memory for a binding of the whole frame. */
static unsigned char *kept_data(const struct cox__instance *instance, const struct work *work, uint32_t binding)
{
    if (work->homed >> binding & 1)
        return work->mems[binding]->device_data;
    if (instance->pipeline.stays >> binding & 1)
        return instance->kept[work->kept[binding]];
    return instance->sets[work->set * COX_BUFFERS_MAX + binding];
}

/* Copy or fill rows of a binding, but not the bytes between them. Without `from`: fill. */
static void put_rows(const struct cox__binding *binding, unsigned char *to, const unsigned char *from, int fill,
                     size_t bytes)
{
    const bool gaps = cox__has_gaps(binding);
    const size_t step = gaps ? binding->pitch_bytes : bytes, row = gaps ? cox__row_bytes(binding) : bytes;
    for (size_t at = 0; at < bytes; at += step) {
        if (from)
            memcpy(to + at, from + at, row);
        else
            memset(to + at, fill, row);
    }
}

static void copy_range(const struct cox__instance *instance, const struct work *work,
                       const struct cox__job_range *range, bool in)
{
    const size_t pitch = instance->pipeline.bindings[range->binding].pitch_bytes;
    unsigned char *there = kept_data(instance, work, range->binding) + range->first * pitch;
    unsigned char *here = work->mems[range->binding]->data + range->first * pitch;
    put_rows(&instance->pipeline.bindings[range->binding], in ? there : here, in ? here : there, 0,
             range->count * pitch);
}

/* Get the n-th range of the binding's host memory that the work writes. Returns false if there are fewer. */
static bool writes_host(const struct cox__instance *instance, const struct work *work, uint32_t binding, uint32_t n,
                        size_t *offset, size_t *bytes)
{
    const size_t pitch = instance->pipeline.bindings[binding].pitch_bytes;
    const bool all = !keeps(work, binding) || work->copied_out >> binding & 1;
    const bool fetch = work->kind == COX__JOB_FETCH;
    const struct cox__job_range *ranges = fetch ? work->ranges : work->back;
    const uint32_t count = fetch ? 1 : work->back_count;
    uint32_t origin;
    if (is_transfer(work) && !fetch)
        return false;
    if (!fetch && all) {
        *bytes = binding_bytes(pass_of(instance, work), binding, work, offset, &origin);
        return n == 0 && written(&pass_of(instance, work)->bindings[binding]);
    }
    for (uint32_t r = 0; r < count; r++) {
        if (ranges[r].binding != binding || n-- > 0)
            continue;
        *offset = ranges[r].first * pitch;
        *bytes = ranges[r].count * pitch;
        return true;
    }
    return false;
}

/* Whether the work reads any of bytes `first` to `end` of the binding's host memory. */
static bool reads_host(const struct cox__instance *instance, const struct work *work, uint32_t binding, size_t first,
                       size_t end)
{
    const struct cox__binding *of = &pass_of(instance, work)->bindings[binding];
    size_t offset;
    uint32_t origin;
    bool any = false;
    const bool copies_in = work->kind == COX__JOB_BAND || work->kind == COX__JOB_PUSH;
    for (uint32_t r = 0; r < work->range_count && copies_in; r++) {
        const struct cox__job_range *range = &work->ranges[r];
        const size_t pitch = instance->pipeline.bindings[binding].pitch_bytes;
        any |= range->binding == binding && range->first * pitch < end && (range->first + range->count) * pitch > first;
    }
    if (is_transfer(work) || keeps(work, binding) || !cox__is_shared(of) || of->row_access == COX__REDUCE)
        return any;
    const size_t bytes = binding_bytes(pass_of(instance, work), binding, work, &offset, &origin);
    return offset < end && offset + bytes > first;
}

static void run_kernels(struct slot *slot)
{
    struct cox__instance *instance = slot->instance;
    const struct work *work = &slot->work;
    const struct cox__pass *pass = pass_of(instance, work);
    const bool staged = instance->fake->devices[instance->device].script.mode == COX_MODE_STAGED;
    struct fake_args args = {
        .pass = pass,
        .device = instance->device,
        .frame_rows = pass->rows,
        .params = work->params,
    };
    if (work->kind == COX__JOB_ACQUIRE || work->kind == COX__JOB_RELEASE) {
        work->mems[work->ranges[0].binding]->acquired = work->kind == COX__JOB_ACQUIRE;
        return;
    }
    for (uint32_t r = 0; r < work->range_count; r++)
        copy_range(instance, work, &work->ranges[r], work->kind != COX__JOB_FETCH);
    if (is_transfer(work))
        return;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        size_t offset;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &args.origin[i]);
        if (binding->row_access == COX__UNUSED)
            continue;
        if (binding->row_access == COX__REDUCE) {
            args.data[i] = memset(slot->partial[i], 0, bytes);
            continue;
        }
        if (cox__is_own(binding)) {
            args.data[i] = memset(must(malloc(bytes)), 0xa5, bytes);
            continue;
        }
        args.data[i] = (keeps(work, i) ? kept_data(instance, work, i) : work->mems[i]->data) + offset;
        if (staged) { /* a separate copy, exactly as long as the band, so that sanitizers detect an overrun */
            const bool cleared = written(binding) && binding->coverage == COX__COVERS_UNKNOWN && !binding->scratch;
            unsigned char *copy = memset(must(malloc(bytes)), cleared ? 0 : 0xa5, bytes);
            if (binding->access != COX__WRITE || cox__keeps_values(binding))
                put_rows(binding, copy, args.data[i], 0, bytes);
            args.data[i] = copy;
        }
    }
    for (uint32_t i = 0; i < pass->stage_count; i++) {
        const uint32_t extent = pass->extents[i], end = work->first_row + work->rows;
        args.stage = &pass->stages[i];
        args.first_row = work->first_row > extent ? work->first_row - extent : 0;
        args.rows = (pass->rows - end > extent ? end + extent : pass->rows) - args.first_row;
        instance->kernels[work->pass][i](&args);
    }
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        if (binding->row_access == COX__REDUCE || binding->row_access == COX__UNUSED ||
            !(staged || cox__is_own(binding)))
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &origin);
        if (written(binding) && keeps(work, i))
            memcpy(kept_data(instance, work, i) + offset, args.data[i], bytes);
        if (written(binding) && (!keeps(work, i) || work->copied_out >> i & 1))
            put_rows(binding, work->mems[i]->data + offset, args.data[i], 0, bytes);
        free(args.data[i]);
    }
    for (uint32_t b = 0; b < work->back_count; b++)
        copy_range(instance, work, &work->back[b], false);
}

/* Flip a bit in the first `factor` rows of each output: in the first byte, which every kernel writes, or in the
 * last one. Repeated rows get the same wrong bit on this device, but not on another one. */
static void corrupt(struct slot *slot)
{
    const struct cox__pass *pass = pass_of(slot->instance, &slot->work);
    const uint32_t first_row = slot->work.first_row;
    const bool strays = fate(slot, FAKE_STRAYS);
    const double factor = slot->fate[FAKE_CORRUPTS].factor;
    const uint32_t rows = strays ? UINT32_MAX : factor >= 1 ? (uint32_t)factor : 1;
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        const struct cox__binding *binding = &pass->bindings[i];
        const bool partial = binding->row_access == COX__REDUCE;
        if ((!written(binding) && !partial) || is_transfer(&slot->work))
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, &slot->work, &offset, &origin);
        unsigned char *data = partial                 ? slot->partial[i]
                              : keeps(&slot->work, i) ? kept_data(slot->instance, &slot->work, i) + offset
                                                      : slot->work.mems[i]->data + offset;
        const size_t step = partial ? 1 : binding->pitch_bytes;
        for (uint32_t k = 0; k < rows && k < bytes / step; k++)
            data[k * step + (strays ? step - 1 : 0)] ^= (unsigned char)(1u << (first_row + k + slot->instance->device) %
                                                                                  8);
    }
}

/* What a band that fails leaves behind. Rows that are written in part hold results or what was there before: their
 * kernels touch nothing else. */
static void leave_garbage(struct slot *slot)
{
    const struct cox__pass *pass = pass_of(slot->instance, &slot->work);
    const struct work *work = &slot->work;
    const bool copies_in = work->kind == COX__JOB_BAND || work->kind == COX__JOB_PUSH;
    for (uint32_t r = 0; r < work->range_count && copies_in; r++) {
        const size_t pitch = slot->instance->pipeline.bindings[work->ranges[r].binding].pitch_bytes;
        memset(kept_data(slot->instance, work, work->ranges[r].binding) + work->ranges[r].first * pitch, 0xdb,
               work->ranges[r].count * pitch);
    }
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        size_t offset, bytes;
        uint32_t origin;
        const bool keeps_values = cox__keeps_values(&pass->bindings[i]) && pass->bindings[i].access == COX__WRITE;
        for (uint32_t n = 0; !keeps_values && writes_host(slot->instance, work, i, n, &offset, &bytes); n++)
            put_rows(&pass->bindings[i], work->mems[i]->data + offset, NULL, 0xdb, bytes);
        bytes = binding_bytes(pass, i, work, &offset, &origin);
        if (written(&pass->bindings[i]) && keeps(work, i) && !is_transfer(work))
            memset(kept_data(slot->instance, work, i) + offset, 0xdb, bytes);
        else if (pass->bindings[i].row_access == COX__REDUCE)
            memset(slot->partial[i], 0xdb, bytes);
    }
}

/* Write the band's results. In real time it runs without the lock. */
void fake__execute(struct slot *slot, bool failed)
{
    if (failed) {
        leave_garbage(slot);
        return;
    }
    run_kernels(slot);
    if (fate(slot, FAKE_CORRUPTS) || fate(slot, FAKE_STRAYS))
        corrupt(slot);
}

/* ---- what no driver would accept ---- */

/* Whether `writer` writes host memory that `other` reads or writes, by one binding of each. */
static bool collides(const struct cox__instance *writers, const struct work *writer, uint32_t of_writer,
                     const struct cox__instance *others, const struct work *other, uint32_t of_other)
{
    size_t first, bytes, at, count;
    bool any = false;
    for (uint32_t n = 0; writes_host(writers, writer, of_writer, n, &first, &bytes); n++) {
        any |= reads_host(others, other, of_other, first, first + bytes);
        for (uint32_t m = 0; writes_host(others, other, of_other, m, &at, &count); m++)
            any |= at < first + bytes && at + count > first;
    }
    return any;
}

/* Record a band that uses rows which a band in progress on another queue writes, or the reverse. Abandoned
 * instances are excluded, since nobody can wait for them. */
static void check_overlap(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *theirs = fake->instances[u];
        if (theirs->context == instance->context || theirs->abandoned)
            continue;
        for (uint32_t l = 0; l < theirs->slot_count; l++) {
            const struct slot *other = &theirs->slots[l];
            if (!is_under_way(other))
                continue;
            for (uint32_t i = 0; i < COX_BUFFERS_MAX * COX_BUFFERS_MAX; i++) {
                const uint32_t one = i / COX_BUFFERS_MAX, two = i % COX_BUFFERS_MAX;
                if (one < instance->pipeline.binding_count && two < theirs->pipeline.binding_count && work->mems[one] &&
                    work->mems[one] == other->work.mems[two] &&
                    (collides(instance, work, one, theirs, &other->work, two) ||
                     collides(theirs, &other->work, two, instance, work, one)))
                    fake__violate(fake,
                                  "rows %u+%u of device %u (job %d) overlap rows %u+%u under way on device %u (job %d)",
                                  work->first_row, work->rows, instance->device, (int)work->kind, other->work.first_row,
                                  other->work.rows, theirs->device, (int)other->work.kind);
            }
        }
    }
}

/* Record a band that starts before the previous pass has ended, or that reads rows not yet written. */
static void check_passes(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct fake_handover_band band = handover_of(work);
    if (!work->of_frame)
        return;
    for (uint32_t u = 0; u < fake->instance_count; u++) {
        const struct cox__instance *theirs = fake->instances[u];
        for (uint32_t l = 0; l < theirs->slot_count && !theirs->abandoned; l++) {
            const struct slot *other = &theirs->slots[l];
            if (is_under_way(other) && other->work.of_frame && other->work.frame == work->frame &&
                other->work.pass != work->pass)
                fake__violate(fake,
                              "rows %u+%u of pass %u begin on device %u while rows %u+%u of pass %u are under way",
                              work->first_row, work->rows, work->pass, instance->device, other->work.first_row,
                              other->work.rows, other->work.pass);
        }
    }
    const uint32_t missing = fake_handover_begin(&fake->handover, &instance->pipeline, &band);
    if (missing < COX_BUFFERS_MAX)
        fake__violate(fake, "rows %u+%u of pass %u read rows of binding %u that no band of the frame has written",
                      work->first_row, work->rows, work->pass, missing);
}

/* Check a job that moves rows, or that acquires or releases memory. */
static bool check_transfer(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct cox__job_range *range = &work->ranges[0];
    const uint32_t there = work->kind == COX__JOB_FETCH ? instance->resident | work->homed : work->homed;
    const bool possible = work->range_count == 1 && there >> range->binding & 1 && range->count &&
                          work->mems[range->binding] &&
                          (range->first + range->count) * instance->pipeline.bindings[range->binding].pitch_bytes <=
                              work->mems[range->binding]->bytes;
    if (!possible)
        fake__violate(fake, "a transfer to or from device %u of what it cannot have", instance->device);
    else if (work->kind == COX__JOB_ACQUIRE && work->mems[range->binding]->acquired)
        fake__violate(fake, "binding %u is acquired twice", range->binding);
    else
        check_overlap(fake, instance, work);
    return possible;
}

/* Record memory on a device that another device uses, or that was not acquired. */
static void check_homes(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    for (uint32_t i = 0; i < instance->pipeline.binding_count; i++) {
        const struct cox__mem *mem = work->mems[i];
        if (!(work->homed >> i & 1) || !mem)
            continue;
        if (!mem->device_data || mem->home != instance->device || !keeps(work, i))
            fake__violate(fake, "device %u uses memory that does not lie on it (binding %u)", instance->device, i);
        if (mem->must_acquire && !mem->acquired && work->kind != COX__JOB_ACQUIRE)
            fake__violate(fake, "device %u uses binding %u before it is acquired", instance->device, i);
    }
}

/* Whether the band can run at all. Records a violation if not. */
bool fake__check_job(struct fake *fake, const struct cox__instance *instance, const struct work *work)
{
    const struct cox__pass *pass = pass_of(instance, work);
    const uint32_t row_alignment = fake__row_alignment(fake, pass, instance->device);
    const uint64_t end = (uint64_t)work->first_row + work->rows;
    bool possible = true;
    if (work->rows == 0 || end > pass->rows) {
        fake__violate(fake, "band %u+%u is not inside the frame's %u rows", work->first_row, work->rows, pass->rows);
        return false;
    }
    check_homes(fake, instance, work);
    if (is_transfer(work))
        return check_transfer(fake, instance, work);
    if (work->first_row % row_alignment || (end % row_alignment && end != pass->rows))
        fake__violate(fake, "band %u+%u is not aligned to the row alignment %u of device %u", work->first_row,
                      work->rows, row_alignment, instance->device);
    if (work->rows > instance->max_rows[work->pass])
        fake__violate(fake, "band of %u rows on device %u, which takes %u", work->rows, instance->device,
                      instance->max_rows[work->pass]);
    for (uint32_t i = 0; i < pass->binding_count; i++) {
        if (!cox__is_shared(&pass->bindings[i]))
            continue;
        size_t offset;
        uint32_t origin;
        const size_t bytes = binding_bytes(pass, i, work, &offset, &origin);
        /* Staged devices copy short rows to where their memory begins. */
        const struct fake_device *script = &fake->devices[instance->device].script;
        const bool copied = script->mode == COX_MODE_STAGED && pass->bindings[i].pitch_bytes < script->align_bytes;
        if (offset % script->align_bytes && !copied)
            fake__violate(fake, "binding %u of band %u+%u begins at byte %zu, which device %u cannot align", i,
                          work->first_row, work->rows, offset, instance->device);
        if (!work->mems[i] || offset + bytes > work->mems[i]->bytes) {
            fake__violate(fake, "band %u+%u reaches beyond the memory of binding %u", work->first_row, work->rows, i);
            possible = false;
        }
    }
    if (possible) {
        check_overlap(fake, instance, work);
        check_passes(fake, instance, work);
    }
    return possible;
}

void fake__check_memory(const struct slot *slot)
{
    struct fake *fake = slot->instance->fake;
    for (uint32_t i = 0; i < slot->instance->pipeline.binding_count; i++)
        if (slot->work.mems[i] && slot->work.mems[i]->destroyed)
            fake__violate(fake, "device %u works on rows %u+%u of memory that was destroyed", slot->instance->device,
                          slot->work.first_row, slot->work.rows);
    if (slot->instance->abandoned)
        return;
    const struct cox__job *job = slot->job;
    if (memcmp(job->mems, slot->work.mems, slot->instance->pipeline.binding_count * sizeof job->mems[0]) != 0 ||
        (job->params && memcmp(job->params, slot->work.params, slot->instance->pipeline.params_bytes) != 0) ||
        job->first_row != slot->work.first_row || job->rows != slot->work.rows ||
        job->range_count != slot->work.range_count ||
        memcmp(job->ranges, slot->work.ranges, job->range_count * sizeof job->ranges[0]) != 0)
        fake__violate(fake, "the job of rows %u+%u on device %u was changed while it was under way",
                      slot->work.first_row, slot->work.rows, slot->instance->device);
}

void fake__check_flushed(struct fake *fake, const char *what)
{
    for (uint32_t u = 0; u < fake->instance_count; u++)
        if (fake->instances[u]->queued > 0 && !fake->instances[u]->abandoned && !fake->instances[u]->unsettled)
            fake__violate(fake, "%s before device %u was flushed", what, fake->instances[u]->device);
}
