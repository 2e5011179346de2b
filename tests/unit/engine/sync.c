/* Uses of memory that other hardware shares: when the first of them begins and the last one ends; and such memory under
 * a device that hangs, on scripted devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "scene_test.h"
#include "engine/sync.h"
#include "support/dmabuf_audit.h"

TestSuite(engine_sync, .timeout = 300);

/* ---- uses ---- */

/* What the calls of a test were, a letter each: r, w, b (begin of reading, writing, both); R, W, B (end). */
static struct {
    struct cox__sync sync; /* first */
    char calls[32];
    cox_status next;       /* of the next call */
    struct cox__sync *end; /* end another use during the next begin */
} memory;

static cox_status note(char reads, char writes, char both, bool is_read, bool is_written)
{
    const size_t count = strlen(memory.calls);
    char call = is_written ? writes : reads;
    if (is_read && is_written)
        call = both;
    cr_assert_lt(count, sizeof memory.calls - 1);
    memory.calls[count] = call;
    memory.calls[count + 1] = '\0';

    struct cox__sync *end = memory.end;
    memory.end = NULL;
    if (end)
        cr_expect_eq(cox__sync_end(end), COX_OK);
    const cox_status status = memory.next;
    memory.next = COX_OK;
    return status;
}

static cox_status begin_call(const struct cox__sync *sync, bool reads, bool writes)
{
    (void)sync;
    return note('r', 'w', 'b', reads, writes);
}

static cox_status end_call(const struct cox__sync *sync, bool reads, bool writes)
{
    (void)sync;
    return note('R', 'W', 'B', reads, writes);
}

/* Do the steps: `r` and `w` begin a use that reads or writes, `e` ends one. */
static const char *calls_of(const char *steps)
{
    memset(&memory, 0, sizeof memory);
    cox__sync_init(&memory.sync);
    memory.sync.begin = begin_call;
    memory.sync.end = end_call;
    for (; *steps; steps++) {
        if (*steps == 'e')
            cr_expect_eq(cox__sync_end(&memory.sync), COX_OK);
        else
            cr_expect_eq(cox__sync_begin(&memory.sync, *steps == 'w'), COX_OK);
    }
    return memory.calls;
}

Test(engine_sync, the_first_use_begins_and_the_last_one_ends)
{
    cr_expect_str_eq(calls_of("re"), "rR");
    cr_expect_str_eq(calls_of("rrree"), "r");
    cr_expect_str_eq(calls_of("rrreee"), "rR");
    cr_expect_str_eq(calls_of("rerere"), "rRrRrR");
}

Test(engine_sync, a_use_that_writes_also_reads)
{
    cr_expect_str_eq(calls_of("we"), "bB");
    cr_expect_str_eq(calls_of("wre"), "b", "reading never begins during a write");
    cr_expect_str_eq(calls_of("wree"), "bB");
    cr_expect_str_eq(calls_of("were"), "bBrR", "the second end is the reader's");
}

Test(engine_sync, a_use_that_writes_joins_readers)
{
    cr_expect_str_eq(calls_of("rwee"), "rwB");
    cr_expect_str_eq(calls_of("rwwreeee"), "rwB");
}

Test(engine_sync, a_use_that_cannot_begin_has_not_begun)
{
    calls_of("");
    memory.next = COX_E_SYSTEM;
    cr_expect_eq(cox__sync_begin(&memory.sync, true), COX_E_SYSTEM);
    cr_expect_eq(memory.sync.users, 0);
    cr_expect_str_eq(memory.calls, "b");
    cr_expect_eq(cox__sync_begin(&memory.sync, false), COX_OK);
    memory.next = COX_E_SYSTEM;
    cr_expect_eq(cox__sync_begin(&memory.sync, true), COX_E_SYSTEM);
    cr_expect_eq(cox__sync_end(&memory.sync), COX_OK);
    cr_expect_str_eq(memory.calls, "brwR");
}

/* The use that ends is not the last one, since another begins. If that one fails, it ends all. */
Test(engine_sync, a_use_may_end_while_another_begins)
{
    calls_of("r");
    memory.end = &memory.sync;
    cr_expect_eq(cox__sync_begin(&memory.sync, true), COX_OK);
    cr_expect_str_eq(memory.calls, "rw");
    cr_expect_eq(cox__sync_end(&memory.sync), COX_OK);
    cr_expect_str_eq(memory.calls, "rwB");

    calls_of("r");
    memory.end = &memory.sync;
    memory.next = COX_E_SYSTEM;
    cr_expect_eq(cox__sync_begin(&memory.sync, true), COX_E_SYSTEM);
    cr_expect_str_eq(memory.calls, "rwR");
    cr_expect_eq(memory.sync.users, 0);
}

Test(engine_sync, an_end_that_fails_ends_the_use)
{
    calls_of("r");
    memory.next = COX_E_SYSTEM;
    cr_expect_eq(cox__sync_end(&memory.sync), COX_E_SYSTEM);
    cr_expect_eq(cox__sync_begin(&memory.sync, false), COX_OK);
    cr_expect_str_eq(memory.calls, "rRr");
}

/* ---- a device that hangs ---- */

static unsigned released;

static void note_released(void *user)
{
    (void)user;
    released++;
}

static bool is_mapped(const void *data)
{
    unsigned char resident;
    return mincore((void *)((uintptr_t)data & ~(uintptr_t)(DMABUF_PAGE - 1)), 1, &resident) == 0;
}

/* Replace the buffers of a set by parts of a DMA-BUF. */
static void import_set(uint32_t set)
{
    const size_t bytes = cox_buffer_bytes(scene.frames->buffers[set][0]);
    struct dmabuf *dmabuf = dmabuf_new(2 * DMABUF_PAGE, false);
    cr_assert_not_null(dmabuf);
    cr_assert_leq(bytes, DMABUF_PAGE);
    for (uint32_t b = 0; b < 2; b++) {
        cox_buffer *buffer;
        cr_assert_eq(cox_buffer_import_dmabuf(rig_runtime(scene.rig), dmabuf->fd, b * DMABUF_PAGE, bytes, note_released,
                                              NULL, &buffer),
                     COX_OK);
        memcpy(dmabuf->own + b * DMABUF_PAGE, cox_buffer_data(scene.frames->buffers[set][b]), bytes);
        cox_buffer_destroy(&scene.frames->buffers[set][b]);
        scene.frames->buffers[set][b] = buffer;
    }
}

Test(engine_sync, memory_stays_mapped_while_a_device_hangs)
{
    begin_on(&trio, SHAPE_MAP, 4, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 300 * ms});
    const uint32_t set = LEARN % scene.frames->count;
    import_set(set);
    const void *out = cox_buffer_data(scene.frames->buffers[set][1]);
    fault(FAKE_HANGS, 1, UINT64_MAX);
    scene_play(&scene, 1);
    cr_assert_eq(scene.status[LEARN], COX_E_MEMORY_UNSAFE);
    cr_expect_str_empty(dmabufs_wrong(), "the frame's access has ended");

    shape_drop(scene.frames, set);
    cr_assert(shape_make(scene.frames, set, 1));
    scene_play(&scene, 4);
    cr_expect(is_mapped(out));
    cr_expect_leq(released, 1, "the output must not be released");
    end();
    cr_expect(is_mapped(out));
    cr_expect_leq(released, 1);
    dmabufs_end();
}

Test(engine_sync, memory_is_released_when_the_device_has_ended)
{
    begin_on(&trio, SHAPE_MAP, 4, &(const struct cox__session_spec){.in_flight = 2, .device_timeout_ns = 300 * ms});
    const uint32_t set = LEARN % scene.frames->count;
    import_set(set);
    const void *out = cox_buffer_data(scene.frames->buffers[set][1]);
    fault(FAKE_HANGS, 1, 900 * ms);
    scene_play(&scene, 1);
    shape_drop(scene.frames, set);
    cr_assert(shape_make(scene.frames, set, 1));
    scene_play(&scene, 400); /* the device ends during these frames */
    end();
    cr_expect_eq(released, 2);
    cr_expect_not(is_mapped(out));
    cr_expect_str_empty(dmabufs_wrong());
    dmabufs_end();
}
