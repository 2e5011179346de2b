/* Every kind of row access, with random splits over devices of all memory modes. The result of each frame is
 * compared with a plain loop over its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "support/fake_rig.h"
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(engine_contracts, .timeout = 300);

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.ns_per_row = 2e3},
                {.type = COX_DEVICE_GPU, .mode = COX_MODE_SHARED, .align_bytes = 64, .ns_per_row = 1e3},
                {.type = COX_DEVICE_GPU, .mode = COX_MODE_STAGED, .ns_per_row = 1e3}},
};

enum { PITCH = 32, COLUMNS = 29, SPLITS = 100, BINS = 256 };

/* The bindings of most pipelines below. */
static const struct cox__binding in = {
    .name = "in", .row_access = COX__ROWS, .access = COX__READ, .pitch_bytes = PITCH};
static const struct cox__binding out = {
    .name = "out", .row_access = COX__ROWS, .access = COX__WRITE, .pitch_bytes = PITCH};
static const struct cox__binding table = {.name = "table", .row_access = COX__WHOLE, .access = COX__READ, .bytes = 256};
static const struct cox__binding histogram = {.name = "histogram",
                                              .row_access = COX__REDUCE,
                                              .access = COX__WRITE,
                                              .bytes = BINS * sizeof(uint32_t),
                                              .merge = rig_merge_sum};

/* A pipeline with random bytes in its buffers. */
struct scene {
    struct rig *rig;
    cox_session *session;
    uint32_t rows;
    uint32_t buffer_count;
    cox_buffer *buffers[COX_BUFFERS_MAX];
    unsigned char *data[COX_BUFFERS_MAX];
    struct cox_session_info info;
};

static cox_session *session_of(struct rig *rig, const struct cox__session_spec *given)
{
    struct cox__session_spec params = *given;
    cox_session *session;
    params.params_bytes = sizeof(struct rig_params);
    cr_assert_eq(cox__session_create(rig_runtime(rig), &params, &session), COX_OK, "%s", rig_log(rig));
    return session;
}

static struct scene scene_new(const struct fake_params *devices, uint32_t rows, uint32_t binding_count,
                              const struct cox__binding *bindings, uint32_t stage_count,
                              const struct cox__stage *stages)
{
    struct scene scene = {.rig = rig_new(devices), .rows = rows, .buffer_count = binding_count};
    uint64_t seed = rows + 1;
    for (uint32_t i = 0; i < binding_count; i++) {
        const uint32_t divisor = bindings[i].row_divisor ? bindings[i].row_divisor : 1;
        const bool by_rows = bindings[i].row_access != COX__WHOLE && bindings[i].row_access != COX__REDUCE;
        const size_t bytes = by_rows ? bindings[i].pitch_bytes * ((rows + divisor - 1) / divisor) : bindings[i].bytes;
        cr_assert_eq(cox_buffer_create(rig_runtime(scene.rig), bytes, &scene.buffers[i]), COX_OK);
        scene.data[i] = cox_buffer_data(scene.buffers[i]);
        rig_fill(scene.data[i], bytes, &seed);
    }
    /* The row alignment is known only once the session exists. The splits are needed only before its first frame. */
    rig_set_split(1, (const uint32_t[][2]){{0, rows}});
    scene.session = session_of(scene.rig, &(const struct cox__session_spec){.rows = rows,
                                                                            .binding_count = binding_count,
                                                                            .bindings = bindings,
                                                                            .stage_count = stage_count,
                                                                            .stages = stages,
                                                                            .custom_policy = &rig_policy,
                                                                            .allow_in_place = true});
    scene.info = rig_info(scene.session);
    rig_split_count = 0;
    for (uint32_t i = 0; i < SPLITS; i++)
        rig_add_random_split(&seed, rows, scene.info.row_alignment, devices->device_count);
    return scene;
}

static void run(struct scene *scene)
{
    cr_assert_eq(cox__session_run(scene->session,
                                  &(const struct cox__frame_spec){
                                      .buffers = scene->buffers,
                                      .buffer_count = scene->buffer_count,
                                      .params = &(const struct rig_params){.columns = COLUMNS}}),
                 COX_OK);
}

/* Run a frame into this output after clearing it. */
static void run_into(struct scene *scene, uint32_t output)
{
    memset(scene->data[output], 0, (size_t)scene->rows * PITCH);
    run(scene);
}

/* What rig_count computes from all rows of the first buffer. */
static void count_all(const struct scene *scene, uint32_t want[BINS])
{
    memset(want, 0, BINS * sizeof *want);
    for (uint32_t r = 0; r < scene->rows; r++)
        for (uint32_t c = 0; c < COLUMNS; c++)
            want[scene->data[0][r * PITCH + c]]++;
}

static void scene_end(struct scene *scene)
{
    cr_assert_not(rig_logged(scene->rig, "refused"), "%s", rig_log(scene->rig));
    cox_session_destroy(&scene->session);
    for (uint32_t i = 0; i < scene->buffer_count; i++)
        cox_buffer_destroy(&scene->buffers[i]);
    cr_assert_str_empty(rig_end(&scene->rig));
}

Test(engine_contracts, halo_rows_are_there_around_every_band_and_clipped_at_the_edges)
{
    static const uint32_t reaches[] = {0, 1, 2, 5, 40, 200, INT32_MAX};
    for (size_t n = 0; n < sizeof reaches / sizeof reaches[0]; n++) {
        const uint32_t rows = 101, reach = reaches[n];
        const struct cox__binding bindings[] = {
            {.name = "in", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = PITCH, .halo_rows = reach},
            out};
        struct scene scene = scene_new(&trio, rows, 2, bindings, 1, &rig_stage_halo);
        cr_assert_eq(scene.info.row_alignment, 2);
        for (int i = 0; i < SPLITS / 4; i++) {
            run_into(&scene, 1);
            for (uint32_t r = 0; r < rows; r++)
                for (uint32_t c = 0; c < COLUMNS; c++) {
                    uint32_t sum = r;
                    for (uint32_t s = 0; s < rows; s++)
                        if ((s >= r ? s - r : r - s) <= reach)
                            sum += scene.data[0][s * PITCH + c];
                    cr_assert_eq(scene.data[1][r * PITCH + c], (unsigned char)sum, "reach %u, row %u", reach, r);
                }
        }
        scene_end(&scene);
    }
}

Test(engine_contracts, whole_buffers_are_read_by_every_device)
{
    const struct cox__binding bindings[] = {in, out, table};
    struct scene scene = scene_new(&trio, 77, 3, bindings, 1, &rig_stage_table);
    for (uint32_t i = 0; i < SPLITS; i++) {
        scene.data[2][i] ^= 0x3c; /* whole bindings may change from frame to frame */
        run(&scene);
        for (uint32_t r = 0; r < scene.rows; r++)
            for (uint32_t c = 0; c < COLUMNS; c++)
                cr_assert_eq(scene.data[1][r * PITCH + c], scene.data[2][scene.data[0][r * PITCH + c]]);
    }
    scene_end(&scene);
}

/* A merge whose result depends on the order of its calls: it appends the first non-zero byte of each partial
 * result. */
static void merge_in_order(void *into, const void *partial, size_t bytes, void *user)
{
    unsigned char *list = into;
    const uint32_t *counts = partial;
    uint32_t *calls = user;
    (void)bytes;
    list[list[0] + 1] = (unsigned char)counts[0];
    list[0]++;
    (*calls)++;
}

/* The kernel adds the band's rows * columns to the bins. The input is all zeros, so everything is in bin 0. */
Test(engine_contracts, partial_results_are_merged_in_row_order_into_a_zeroed_buffer)
{
    static const unsigned band_rows[] = {2, 40, 4, 44, 6};
    const uint32_t rows = 96;
    uint32_t calls = 0;
    struct cox__binding bindings[] = {in, histogram};
    bindings[1].merge = merge_in_order;
    bindings[1].merge_user = &calls;
    struct scene scene = scene_new(&trio, rows, 2, bindings, 1, &rig_stage_count);
    memset(scene.data[0], 0, (size_t)rows * PITCH);
    rig_set_split(5, (const uint32_t[][2]){{2, 2}, {0, 40}, {1, 4}, {2, 44}, {0, 6}});
    for (int i = 0; i < 10; i++) {
        calls = 0;
        memset(scene.data[1], 0x99, 1024);
        run(&scene);
        cr_assert_eq(calls, 5);
        cr_assert_eq(scene.data[1][0], 5);
        for (int b = 0; b < 5; b++)
            cr_assert_eq(scene.data[1][1 + b], (unsigned char)(band_rows[b] * COLUMNS));
        for (int b = 6; b < 1024; b++)
            cr_assert_eq(scene.data[1][b], 0);
    }
    scene_end(&scene);
}

Test(engine_contracts, a_histogram_is_the_same_for_every_split)
{
    const struct cox__binding bindings[] = {in, histogram};
    struct scene scene = scene_new(&trio, 131, 2, bindings, 1, &rig_stage_count);
    uint32_t want[BINS];
    count_all(&scene, want);
    for (int i = 0; i < SPLITS; i++) {
        run(&scene);
        cr_assert_arr_eq(scene.data[1], want, sizeof want);
    }
    scene_end(&scene);
}

Test(engine_contracts, planes_of_half_height_stay_aligned_with_the_frame)
{
    struct cox__binding bindings[] = {in, in, out, out};
    for (uint32_t i = 1; i < 4; i += 2) {
        bindings[i].pitch_bytes = PITCH / 2;
        bindings[i].row_divisor = 2;
    }
    for (uint32_t rows = 60; rows < 64; rows++) {
        struct scene scene = scene_new(&trio, rows, 4, bindings, 1, &rig_stage_chroma);
        cr_assert_eq(scene.info.row_alignment, 8); /* 64 bytes are four chroma rows of 16 bytes */
        for (int i = 0; i < SPLITS; i++) {
            memset(scene.data[3], 0, (size_t)(rows + 1) / 2 * PITCH / 2);
            run_into(&scene, 2);
            for (uint32_t r = 0; r < rows; r++)
                for (uint32_t c = 0; c < COLUMNS; c++) {
                    const unsigned char uv = scene.data[1][r / 2 * (PITCH / 2) + c / 2];
                    cr_assert_eq(scene.data[2][r * PITCH + c], (unsigned char)(scene.data[0][r * PITCH + c] + uv));
                    cr_assert_eq(scene.data[3][r / 2 * (PITCH / 2) + c / 2], (unsigned char)(uv * 5u + r / 2));
                }
        }
        scene_end(&scene);
    }
}

Test(engine_contracts, stages_run_in_order_on_each_band)
{
    const struct cox__binding bindings[] = {in, out, out};
    struct scene scene = scene_new(&trio, 90, 3, bindings, 2, rig_stages_two);
    for (int i = 0; i < SPLITS; i++) {
        memset(scene.data[1], 0, (size_t)scene.rows * PITCH);
        run_into(&scene, 2);
        for (uint32_t r = 0; r < scene.rows; r++)
            for (uint32_t c = 0; c < COLUMNS; c++) {
                const unsigned char middle = (unsigned char)(scene.data[0][r * PITCH + c] + 5u);
                cr_assert_eq(scene.data[1][r * PITCH + c], middle);
                cr_assert_eq(scene.data[2][r * PITCH + c], (unsigned char)(middle ^ r));
            }
    }
    scene_end(&scene);
}

Test(engine_contracts, a_buffer_in_place_is_worked_on_once_per_frame_whatever_the_warm_up_did)
{
    const uint32_t rows = 90;
    struct cox__binding binding = in;
    binding.access = COX__READ_WRITE;
    struct scene scene = scene_new(&trio, rows, 1, &binding, 1, &rig_stage_inplace);
    unsigned char *want = malloc((size_t)rows * PITCH);
    memcpy(want, scene.data[0], (size_t)rows * PITCH);
    for (int i = 0; i < SPLITS; i++) {
        run(&scene);
        for (uint32_t r = 0; r < rows; r++)
            for (uint32_t c = 0; c < COLUMNS; c++) {
                want[r * PITCH + c] = (unsigned char)(want[r * PITCH + c] * 3u + 1);
                cr_assert_eq(scene.data[0][r * PITCH + c], want[r * PITCH + c], "frame %d, row %u", i, r);
            }
    }
    free(want);
    cr_assert_eq(fake_alive(rig_fake(scene.rig)), 1 + 3, "the warm-up's copy is still there");
    scene_end(&scene);
}

Test(engine_contracts, bands_longer_than_a_device_can_hold_are_cut)
{
    static const uint32_t bounds[] = {2, 7, 10, 33, 64};
    const struct cox__binding bindings[] = {in, histogram};
    for (size_t n = 0; n < sizeof bounds / sizeof bounds[0]; n++) {
        struct fake_params devices = trio;
        devices.devices[2].max_rows = bounds[n];
        struct scene scene = scene_new(&devices, 121, 2, bindings, 1, &rig_stage_count);
        cr_assert_leq(scene.info.devices[2].max_rows, bounds[n]);
        cr_assert_eq(scene.info.devices[2].max_rows % scene.info.row_alignment, 0);
        cr_assert_eq(scene.info.devices[0].max_rows, scene.rows);
        uint32_t want[BINS];
        count_all(&scene, want);
        for (int i = 0; i < SPLITS / 4; i++) {
            run(&scene);
            cr_assert_arr_eq(scene.data[1], want, sizeof want);
        }
        scene_end(&scene);
    }
}

Test(engine_contracts, a_device_that_can_hold_next_to_nothing_does_not_take_part)
{
    struct fake_params devices = trio;
    devices.devices[2].max_rows = 1; /* less than one row alignment */
    const struct cox__binding bindings[] = {in, histogram};
    struct scene scene = scene_new(&devices, 121, 2, bindings, 1, &rig_stage_count);
    cr_assert_eq(scene.info.device_count, 2);
    cr_assert(rig_logged(scene.rig, "fake 2"));
    rig_set_split(2, (const uint32_t[][2]){{0, 60}, {1, 61}});
    run(&scene);
    scene_end(&scene);
}

Test(engine_contracts, frames_of_one_row_and_other_odd_sizes_work_on_any_number_of_devices)
{
    for (uint32_t rows = 1; rows < 20; rows++)
        for (uint32_t count = 1; count <= 5; count++) {
            struct fake_params devices = {.device_count = count};
            for (uint32_t d = 0; d < count; d++)
                devices.devices[d] = (struct fake_device){.mode = 1 + (enum cox_memory_mode)(d % 3),
                                                          .align_bytes = 4u << (2 * d), /* at 1024: no split */
                                                          .ns_per_row = 100};
            const struct cox__binding bindings[] = {
                {.name = "in", .row_access = COX__HALO, .access = COX__READ, .pitch_bytes = PITCH, .halo_rows = 1},
                out};
            struct scene scene = scene_new(&devices, rows, 2, bindings, 1, &rig_stage_halo);
            for (int i = 0; i < 5; i++) {
                run_into(&scene, 1);
                for (uint32_t r = 0; r < rows; r++) {
                    uint32_t sum = r + scene.data[0][r * PITCH];
                    if (r > 0)
                        sum += scene.data[0][(r - 1) * PITCH];
                    if (r + 1 < rows)
                        sum += scene.data[0][(r + 1) * PITCH];
                    cr_assert_eq(scene.data[1][r * PITCH], (unsigned char)sum);
                }
            }
            scene_end(&scene);
        }
}

Test(engine_contracts, bands_of_a_mapped_gpu_begin_on_pages_where_enough_of_them_are_left)
{
    static const struct {
        uint32_t rows, pitch;
        enum cox_device_type type;
        enum cox_memory_mode mode;
        enum cox_host_memory host_memory;
        uint32_t row_alignment; /* 8 rows of 1536 bytes are three pages */
    } cases[] = {{512, 1536, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_WRAPPED, 8},
                 {511, 1536, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_WRAPPED, 1},
                 {512, 1500, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_WRAPPED, 16},
                 {512, 4096, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_WRAPPED, 1},
                 {512, 1536, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_COPIED, 1},
                 {512, 1536, COX_DEVICE_GPU, COX_MODE_MAPPED, COX_HOST_MEMORY_UNKNOWN, 1},
                 {512, 1536, COX_DEVICE_GPU, COX_MODE_SHARED, COX_HOST_MEMORY_WRAPPED, 1},
                 {512, 1536, COX_DEVICE_CPU, COX_MODE_MAPPED, COX_HOST_MEMORY_WRAPPED, 1}};
    static const struct cox__variant variant = {.source = "fake"};
    const struct cox__stage stage = {
        .kernel = "rig_table", .columns = COLUMNS, .variant_count = 1, .variants = &variant};
    for (uint32_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct fake_params devices = {.device_count = 2,
                                            .devices = {{.ns_per_row = 2e3},
                                                        {.type = cases[c].type,
                                                         .mode = cases[c].mode,
                                                         .host_memory = cases[c].host_memory,
                                                         .align_bytes = 64,
                                                         .ns_per_row = 1e3}}};
        struct cox__binding bindings[] = {in, out, table};
        bindings[0].pitch_bytes = bindings[1].pitch_bytes = cases[c].pitch;
        struct scene scene = scene_new(&devices, cases[c].rows, 3, bindings, 1, &stage);
        cr_assert_eq(scene.info.row_alignment, cases[c].row_alignment, "case %u: %u", c, scene.info.row_alignment);
        run(&scene);
        scene_end(&scene);
    }
}

Test(engine_contracts, the_granule_suits_every_variant_of_the_devices_that_take_part)
{
    static const struct cox__variant variants[] = {
        {.type = COX_DEVICE_GPU, .source = "fake", .local_rows = 4, .item_rows = 3},
        {.source = "fake", .item_rows = 2},
        {.device_plus_1 = 3, .source = "fake", .local_rows = 5},
    };
    const struct cox__stage stage = {.kernel = "rig_table", .variant_count = 3, .variants = variants};
    const struct cox__binding bindings[] = {in, out, table};
    struct scene scene = scene_new(&trio, 250, 3, bindings, 1, &stage);
    cr_assert_eq(scene.info.row_alignment, 60); /* 2 (device 0), 12 and 2 (device 1: 4 x 3, 64 bytes), 5 (device 2) */
    for (int i = 0; i < 20; i++) {
        run(&scene);
        for (uint32_t r = 0; r < 250; r++)
            cr_assert_eq(scene.data[1][r * PITCH], scene.data[2][scene.data[0][r * PITCH]]);
    }
    scene_end(&scene);
}

Test(engine_contracts, a_device_without_a_variant_does_not_take_part)
{
    static const struct cox__variant variants[] = {{.type = COX_DEVICE_GPU, .source = "fake"}};
    const struct cox__stage stage = {.kernel = "rig_table", .variant_count = 1, .variants = variants};
    const struct cox__binding bindings[] = {in, out, table};
    struct rig *rig = rig_new(&trio);
    cox_session *session =
        session_of(rig, &(const struct cox__session_spec){
                            .rows = 64, .binding_count = 3, .bindings = bindings, .stage_count = 1, .stages = &stage});
    const struct cox_session_info info = rig_info(session);
    cr_assert_eq(info.device_count, 2);
    cr_assert_eq(info.devices[0].device, 1);
    cr_assert_eq(info.devices[1].device, 2);
    cox_session_destroy(&session);
    cr_assert_str_empty(rig_end(&rig));
}

Test(engine_contracts, memory_of_the_application_is_used_where_it_is)
{
    struct rig *rig = rig_new(&trio);
    unsigned char *from = aligned_alloc(4096, 4096), *room = malloc(4096 + 64);
    unsigned char *to = room + (16 - (uintptr_t)room % 16) % 16 + 16;
    const struct cox__binding bindings[] = {in, out};
    cox_buffer *buffers[2];
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), from, 4096, NULL, NULL, &buffers[0]), COX_OK);
    cr_assert_eq(cox_buffer_wrap(rig_runtime(rig), to, 4000, NULL, NULL, &buffers[1]), COX_OK);
    cr_assert_eq(cox_buffer_data(buffers[0]), (void *)from);
    cr_assert_eq(cox_buffer_data(buffers[1]), (void *)to);
    cr_assert_eq(cox_buffer_bytes(buffers[0]), 4096);
    cr_assert_eq(cox_buffer_bytes(buffers[1]), 4000);
    for (int i = 0; i < 4096; i++)
        from[i] = (unsigned char)(i * 7);
    cox_session *session = session_of(rig, &(const struct cox__session_spec){.rows = 125,
                                                                             .binding_count = 2,
                                                                             .bindings = bindings,
                                                                             .stage_count = 1,
                                                                             .stages = &rig_stage_map});
    cr_assert_eq(cox__session_run(session,
                                  &(const struct cox__frame_spec){.buffers = buffers,
                                                                  .buffer_count = 2,
                                                                  .params = &(const struct rig_params){.columns = 32}}),
                 COX_OK);
    for (uint32_t i = 0; i < 4000; i++)
        cr_assert_eq(to[i], (unsigned char)(from[i] * 3u + i / 32 * 7u));
    cox_session_destroy(&session);
    for (int i = 0; i < 2; i++)
        cox_buffer_destroy(&buffers[i]);
    cr_assert_str_empty(rig_end(&rig));
    free(from);
    free(room);
}
