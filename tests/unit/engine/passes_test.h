/* Shared by the tests of sessions with several passes: frames that read their first buffer and write their last,
 * and a policy that splits them at random.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_PASSES_TEST_H
#define COX_TESTS_PASSES_TEST_H

#include "specs.h"
#include "map_test.h"

enum { ROWS = 96, COLUMNS = 96, PITCH = 128, BYTES = ROWS * PITCH, FRAMES = 6 };

#define BY_ROWS(...)                                               \
    {                                                              \
        .row_access = COX__ROWS, .pitch_bytes = PITCH, __VA_ARGS__ \
    }

/* ---- expected results ---- */

static inline void near_rows(const unsigned char *from, unsigned char *to)
{
    rig_near_rows(from, to, ROWS, COLUMNS, PITCH);
}

static inline void turn_rows(const unsigned char *from, unsigned char *to)
{
    rig_turn_rows(from, to, ROWS, COLUMNS, PITCH);
}

/* ---- splits ---- */

static inline uint32_t random_usable(uint64_t *seed, const struct cox_sched_view *view)
{
    uint32_t usable[COX_DEVICES_MAX], count = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (view->devices[d].usable)
            usable[count++] = d;
    return usable[rig_random(seed) % count];
}

/* A new random split for each frame and pass, sometimes with a pool. */
static inline cox_status random_split(void *seed, const struct cox_sched_view *view, struct cox_split *out)
{
    const uint32_t row_units = (view->rows + view->row_alignment - 1) / view->row_alignment;
    for (uint32_t at = 0, take; at < row_units; at += take) {
        const uint32_t left = row_units - at, first = at * view->row_alignment;
        const uint32_t most = rig_random(seed) % 4 ? left : 2;
        take = 1 + (uint32_t)(rig_random(seed) % most);
        take = take > left || out->band_count == 40 ? left : take;
        if (view->pool && out->band_count > 1 && rig_random(seed) % 8 == 0) {
            out->pool_first_row = first;
            out->pool_rows = view->rows - first;
            break;
        }
        const uint32_t rows = take < left ? take * view->row_alignment : view->rows - first;
        out->bands[out->band_count++] = (struct cox_band){random_usable(seed, view), first, rows};
    }
    return COX_OK;
}

static inline void random_next(void *state, const struct cox_sched_view *view, const struct cox_chunk_request *offer,
                               struct cox_chunk *out)
{
    (void)state;
    out->rows = offer->rows < 2 * view->row_alignment ? offer->rows : 2 * view->row_alignment;
}

/* ---- the bench ---- */

static uint32_t binding_count;
static cox_buffer *in[FRAMES], *out[FRAMES];
static unsigned char expected[FRAMES][BYTES];
static const struct rig_params kernel_params = {.add = 3, .columns = COLUMNS};

/* A rig with the frames' buffers, and no session. */
static inline void open_buffers(const struct fake_params *devices)
{
    uint64_t seed = 5;
    rig = rig_new(devices);
    fake = rig_fake(rig);
    for (uint32_t f = 0; f < FRAMES; f++) {
        in[f] = new_buffer(BYTES);
        out[f] = new_buffer(BYTES);
        rig_fill(cox_buffer_data(in[f]), BYTES, &seed);
    }
}

static inline cox_status try_session(const struct cox__session_spec *params)
{
    struct cox__session_spec all = *params;
    all.params_bytes = sizeof kernel_params;
    all.report = rig_report;
    all.report_user = rig;
    binding_count = all.binding_count;
    return cox__session_create(rig_runtime(rig), &all, &session);
}

static inline void close_bench(void)
{
    cox_session_destroy(&session);
    for (uint32_t f = 0; f < FRAMES; f++) {
        cox_buffer_destroy(&in[f]);
        cox_buffer_destroy(&out[f]);
    }
    close_rig();
}

static inline void submit_some(uint32_t count)
{
    for (uint32_t f = 0; f < count; f++) {
        cox_buffer *buffers[COX_BUFFERS_MAX] = {in[f]};
        buffers[binding_count - 1] = out[f];
        memset(cox_buffer_data(out[f]), 0, BYTES);
        cr_assert_eq(cox__session_submit(session,
                                         &(const struct cox__frame_spec){.buffers = buffers,
                                                                         .buffer_count = binding_count,
                                                                         .params = &kernel_params},
                                         rig_done, rig),
                     COX_OK);
    }
}

static inline void check_rows(const cox_buffer *buffer, const unsigned char *rows, uint32_t frame)
{
    const unsigned char *data = cox_buffer_data((cox_buffer *)buffer);
    for (uint32_t r = 0; r < ROWS; r++)
        cr_assert_eq(memcmp(data + r * PITCH, rows + r * PITCH, COLUMNS), 0, "frame %u, row %u\n%s", frame, r,
                     rig_log(rig));
}

/* The frames that `submit_some` submitted, from number `first` on, have the right contents. */
static inline void expect_right(uint32_t first, uint32_t count)
{
    cr_assert_eq(cox_session_wait(session), COX_OK);
    for (uint32_t f = 0; f < count; f++) {
        cr_assert_eq(rig_done_status(rig, first + f), COX_OK, "frame %u: %s", first + f, rig_log(rig));
        check_rows(out[f], expected[f], first + f);
    }
}

/* Run `count` more frames, FRAMES at a time. */
static inline void run_more(uint32_t count)
{
    for (uint32_t done = 0, some; done < count; done += some) {
        const uint32_t before = rig_done_count(rig);
        some = count - done < FRAMES ? count - done : FRAMES;
        submit_some(some);
        expect_right(before, some);
    }
}

#endif
