/* Sessions of several passes on fake devices: their results, their splits, and what happens when a device fails
 * during a frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "passes_test.h"

static const struct cox_policy random_policy = {.name = "random",
                                                .state_bytes = rig_policy_bytes,
                                                .init = rig_policy_init,
                                                .split = random_split,
                                                .assign = random_next};

/* ---- the bench ---- */

static const struct fake_params three_kinds = {.device_count = 3,
                                               .devices = {{.name = "shared",
                                                            .type = COX_DEVICE_CPU,
                                                            .mode = COX_MODE_SHARED,
                                                            .align_bytes = 128,
                                                            .ns_per_row = 1000,
                                                            .fixed_ns = 5000},
                                                           {.name = "mapped",
                                                            .type = COX_DEVICE_GPU,
                                                            .mode = COX_MODE_MAPPED,
                                                            .align_bytes = 256,
                                                            .ns_per_row = 700,
                                                            .fixed_ns = 9000},
                                                           {.name = "staged",
                                                            .type = COX_DEVICE_GPU,
                                                            .mode = COX_MODE_STAGED,
                                                            .align_bytes = 128,
                                                            .ns_per_row = 500,
                                                            .fixed_ns = 20000,
                                                            .copy_in_ns_per_row = 100,
                                                            .copy_out_ns_per_row = 100}}};

static void begin_on(const struct fake_params *devices, const struct cox__session_spec *params)
{
    open_buffers(devices);
    cr_assert_eq(try_session(params), COX_OK, "%s", rig_log(rig));
}

static void begin(const struct cox__session_spec *params)
{
    begin_on(&three_kinds, params);
}

/* ---- pipelines: binding 0 is the frame's input, the last one its output ---- */

static const struct cox__binding near_bindings[] = {BY_ROWS(.name = "in"), BY_ROWS(.name = "middle", .scratch = true),
                                                    BY_ROWS(.name = "out", .access = COX__WRITE)};

static const struct cox__stage near_first[] = {RIG_STAGE("rig_near", 0, 1)};
static const struct cox__stage near_last[] = {RIG_STAGE("rig_near", 1, 2)};
static const struct cox__stage near_both[] = {RIG_STAGE("rig_near", 0, 1), RIG_STAGE("rig_near", 1, 2)};

static const struct cox__pass_binding uses_first[] = {{.binding = 0, .row_access = COX__HALO, .halo_rows = 1},
                                                      {.binding = 1, .access = COX__WRITE}};
static const struct cox__pass_binding uses_last[] = {{.binding = 1, .row_access = COX__HALO, .halo_rows = 1},
                                                     {.binding = 2, .access = COX__WRITE}};
static const struct cox__pass_binding uses_both[] = {
    {.binding = 0, .row_access = COX__HALO, .halo_rows = 1},
    {.binding = 1, .row_access = COX__HALO, .access = COX__READ_WRITE, .halo_rows = 1},
    {.binding = 2, .access = COX__WRITE}};

static const struct cox__pass_spec near_exchange[] = {RIG_PASS(uses_first, near_first, .name = "first"),
                                                      RIG_PASS(uses_last, near_last, .name = "last")};
static const struct cox__pass_spec near_overlap[] = {RIG_PASS(uses_both, near_both, .name = "both")};

#define NEAR_SESSION(the_passes, count, ...)                                                                        \
    &(const struct cox__session_spec)                                                                               \
    {                                                                                                               \
        .rows = ROWS, .binding_count = 3, .bindings = near_bindings, .passes = (the_passes), .pass_count = (count), \
        __VA_ARGS__                                                                                                 \
    }

static void expect_near(void)
{
    static unsigned char middle[BYTES];
    for (uint32_t f = 0; f < FRAMES; f++) {
        near_rows(cox_buffer_data(in[f]), middle);
        near_rows(middle, expected[f]);
    }
}

static void begin_near(const struct cox__session_spec *params)
{
    begin(params);
    expect_near();
}

/* ---- results ---- */

static void try_splits(const struct cox__pass_spec *passes, uint32_t count)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        rig_policy_seed = seed;
        begin_near(NEAR_SESSION(passes, count, .split_each_pass = true, .custom_policy = &random_policy,
                                .in_flight = 3));
        run_more(2 * FRAMES);
        close_bench();
    }
}

Test(passes, exchange_what_the_next_one_reads)
{
    try_splits(near_exchange, 2);
}

Test(passes, may_do_rows_beyond_their_bands_in_the_place_of_an_exchange)
{
    try_splits(near_overlap, 1);
}

static const struct cox__stage there[] = {RIG_STAGE("rig_turn", 0, 1)};
static const struct cox__stage nearer[] = {RIG_STAGE("rig_near", 1, 2)};
static const struct cox__stage back[] = {RIG_STAGE("rig_turn", 2, 3)};

Test(passes, read_all_of_what_an_earlier_one_wrote)
{
    static const struct cox__pass_binding uses_there[] = {{.binding = 0, .row_access = COX__WHOLE},
                                                          {.binding = 1, .access = COX__WRITE}};
    static const struct cox__pass_binding uses_near[] = {{.binding = 1, .row_access = COX__HALO, .halo_rows = 1},
                                                         {.binding = 2, .access = COX__WRITE}};
    static const struct cox__pass_binding uses_back[] = {{.binding = 2, .row_access = COX__WHOLE},
                                                         {.binding = 3, .access = COX__WRITE}};
    static const struct cox__pass_spec passes[] = {RIG_PASS(uses_there, there), RIG_PASS(uses_near, nearer),
                                                   RIG_PASS(uses_back, back)};
    static const struct cox__binding bindings[] = {
        {.name = "in", .row_access = COX__WHOLE, .pitch_bytes = PITCH, .bytes = BYTES},
        BY_ROWS(.name = "turned", .scratch = true),
        BY_ROWS(.name = "summed", .scratch = true),
        BY_ROWS(.name = "out", .access = COX__WRITE)};
    static unsigned char one[BYTES], two[BYTES];
    begin(&(const struct cox__session_spec){.rows = ROWS,
                                            .binding_count = 4,
                                            .bindings = bindings,
                                            .passes = passes,
                                            .pass_count = 3,
                                            .in_flight = 3,
                                            .split_each_pass = true,
                                            .custom_policy = &random_policy});
    for (uint32_t f = 0; f < FRAMES; f++) {
        turn_rows(cox_buffer_data(in[f]), one);
        near_rows(one, two);
        turn_rows(two, expected[f]);
    }
    run_more(4 * FRAMES);
    close_bench();
}

static const struct cox__stage pair_stages[] = {RIG_STAGE("rig_pairs", 0, 1), RIG_STAGE("rig_unpair", 1, 2)};

/* Each of a band's own rows covers two rows of the frame. The stage that computes them begins on an even row. */
Test(passes, may_have_own_rows_for_several_of_the_frame)
{
    enum { ODD_ROWS = ROWS - 1 }; /* the last own row covers a single row */
    const struct cox__binding bindings[] = {{.row_access = COX__HALO, .pitch_bytes = PITCH, .halo_rows = 0},
                                            {.row_access = COX__HALO,
                                             .access = COX__READ_WRITE,
                                             .pitch_bytes = PITCH,
                                             .row_divisor = 2,
                                             .halo_rows = 1,
                                             .scratch = true},
                                            BY_ROWS(.access = COX__WRITE)};
    static unsigned char own[BYTES];
    begin(&(const struct cox__session_spec){.rows = ODD_ROWS,
                                            .binding_count = 3,
                                            .bindings = bindings,
                                            .stage_count = 2,
                                            .stages = pair_stages,
                                            .in_flight = 3,
                                            .custom_policy = &random_policy});
    for (uint32_t f = 0; f < FRAMES; f++) {
        const unsigned char *data = cox_buffer_data(in[f]);
        for (uint32_t r = 0; r < ODD_ROWS; r += 2)
            for (uint32_t c = 0; c < COLUMNS; c++)
                own[r / 2 * PITCH + c] = (unsigned char)(data[r * PITCH + c] * 3u +
                                                         (r + 1 < ODD_ROWS ? data[(r + 1) * PITCH + c] : 0u));
        for (uint32_t r = 0; r < ODD_ROWS; r++)
            for (uint32_t c = 0; c < COLUMNS; c++) {
                const unsigned char *row = own + r / 2 * PITCH + c;
                const unsigned above = r / 2 > 0 ? *(row - PITCH) : 0u;
                const unsigned below = r / 2 * 2 + 2 < ODD_ROWS ? row[PITCH] : 0u;
                expected[f][r * PITCH + c] = (unsigned char)(above * 3 + *row * 5u + below * 7 + r);
            }
    }
    run_more(4 * FRAMES);
    close_bench();
}

static const struct cox__stage five_stages[] = {RIG_STAGE("rig_near", 0, 1), RIG_STAGE("rig_near", 1, 2),
                                                RIG_STAGE("rig_near", 2, 3), RIG_STAGE("rig_near", 3, 4),
                                                RIG_STAGE("rig_near", 4, 5)};

/* Four halos, each a quarter of the range of a number of rows. Their sum overflows that range. */
Test(passes, may_do_all_rows_beyond_their_bands)
{
    const struct cox__binding own = {.row_access = COX__HALO,
                                     .access = COX__READ_WRITE,
                                     .pitch_bytes = PITCH,
                                     .halo_rows = 1u << 30,
                                     .scratch = true};
    const struct cox__binding bindings[] = {{.row_access = COX__HALO, .pitch_bytes = PITCH, .halo_rows = 1},
                                            own,
                                            own,
                                            own,
                                            own,
                                            BY_ROWS(.access = COX__WRITE)};
    static unsigned char one[BYTES], two[BYTES];
    begin(&(const struct cox__session_spec){.rows = ROWS,
                                            .binding_count = 6,
                                            .bindings = bindings,
                                            .stage_count = 5,
                                            .stages = five_stages,
                                            .split_each_pass = true,
                                            .custom_policy = &random_policy});
    for (uint32_t f = 0; f < FRAMES; f++) {
        near_rows(cox_buffer_data(in[f]), one);
        near_rows(one, two);
        near_rows(two, one);
        near_rows(one, two);
        near_rows(two, expected[f]);
    }
    run_more(FRAMES);
    close_bench();
}

enum { LONGEST_PASS_TO = 8 };
static const struct cox__arg first_args[] = {COX__ARG_BUFFER(0),
                                             COX__ARG_BUFFER(1),
                                             COX__ARG_ORIGIN(0),
                                             COX__ARG_ORIGIN(1),
                                             {.kind = COX__ARG_KIND_IMAGE, .bytes = COLUMNS}};
static const struct cox__stage eight_stages[] = {RIG_STAGE_OF("rig_near", 64, &rig_any_device, first_args),
                                                 RIG_STAGE("rig_near", 1, 2),
                                                 RIG_STAGE("rig_near", 2, 3),
                                                 RIG_STAGE("rig_near", 3, 4),
                                                 RIG_STAGE("rig_near", 4, 5),
                                                 RIG_STAGE("rig_near", 5, 6),
                                                 RIG_STAGE("rig_near", 6, 7),
                                                 RIG_STAGE("rig_near", 7, LONGEST_PASS_TO)};

/* Twelve bindings, eight passes, and eight stages in the first pass. */
Test(passes, may_be_as_many_and_as_long_as_is_allowed)
{
    static const uint32_t order[COX_PASSES_MAX] = {LONGEST_PASS_TO, 9, 10, 9, 10, 9, 10, COX_BUFFERS_MAX - 1};
    struct cox__binding bindings[COX_BUFFERS_MAX] = {BY_ROWS(.name = "in")};
    struct cox__pass_binding uses[COX_PASSES_MAX][LONGEST_PASS_TO + 1] = {{{.row_access = COX__HALO, .halo_rows = 1}}};
    struct cox__arg args[COX_PASSES_MAX][4];
    struct cox__stage stages[COX_PASSES_MAX];
    struct cox__pass_spec passes[COX_PASSES_MAX] = {RIG_PASS(uses[0], eight_stages)};
    static unsigned char rows[2][BYTES];
    for (uint32_t i = 1; i < COX_BUFFERS_MAX; i++)
        bindings[i] = (struct cox__binding)BY_ROWS(.name = "between", .scratch = true);
    bindings[COX_BUFFERS_MAX - 1] = (struct cox__binding)BY_ROWS(.name = "out", .access = COX__WRITE);
    for (uint32_t i = 1; i < LONGEST_PASS_TO; i++)
        uses[0][i] = (struct cox__pass_binding){
            .binding = i, .row_access = COX__HALO, .access = COX__READ_WRITE, .halo_rows = 1};
    uses[0][LONGEST_PASS_TO] = (struct cox__pass_binding){.binding = LONGEST_PASS_TO, .access = COX__WRITE};
    for (uint32_t p = 1; p < COX_PASSES_MAX; p++) {
        const uint32_t from = order[p - 1], to = order[p];
        uses[p][0] = (struct cox__pass_binding){.binding = from, .row_access = COX__HALO, .halo_rows = 1};
        uses[p][1] = (struct cox__pass_binding){.binding = to, .access = COX__WRITE};
        memcpy(args[p],
               (const struct cox__arg[]){COX__ARG_BUFFER(from), COX__ARG_BUFFER(to), COX__ARG_ORIGIN(from),
                                         COX__ARG_ORIGIN(to)},
               sizeof args[p]);
        stages[p] = (struct cox__stage)RIG_STAGE_OF("rig_near", 64, &rig_any_device, args[p]);
        passes[p] = (struct cox__pass_spec){.use_count = 2, .uses = uses[p], .stage_count = 1, .stages = &stages[p]};
    }
    begin(&(const struct cox__session_spec){.rows = ROWS,
                                            .binding_count = COX_BUFFERS_MAX,
                                            .bindings = bindings,
                                            .passes = passes,
                                            .pass_count = COX_PASSES_MAX,
                                            .in_flight = 3,
                                            .verify = 1,
                                            .split_each_pass = true,
                                            .custom_policy = &random_policy});
    cr_assert_eq(cox_session_warm(session, &kernel_params), COX_OK, "%s", rig_log(rig));
    for (uint32_t f = 0; f < FRAMES; f++) {
        memcpy(rows[0], cox_buffer_data(in[f]), BYTES);
        for (uint32_t n = 1; n < COX_FUSED_MAX + COX_PASSES_MAX - 1; n++)
            near_rows(rows[(n - 1) % 2], rows[n % 2]);
        near_rows(rows[(COX_FUSED_MAX + COX_PASSES_MAX - 2) % 2], expected[f]);
    }
    run_more(2 * FRAMES);
    close_bench();
}

/* ---- a host function between two passes ---- */

static uint32_t calls;

static void choose_add(void *user, void *const *buffers, void *constants)
{
    const uint32_t *bins = buffers[1];
    struct rig_params *params = constants;
    (void)user;
    calls++;
    params->add = bins[17] + 2 * bins[200];
}

static const struct cox__binding counted_bindings[] = {BY_ROWS(.name = "in"),
                                                       {.name = "bins",
                                                        .row_access = COX__REDUCE,
                                                        .access = COX__WRITE,
                                                        .bytes = 1024,
                                                        .merge = rig_merge_sum,
                                                        .scratch = true},
                                                       BY_ROWS(.name = "out", .access = COX__WRITE)};
static const struct cox__stage count_stage[] = {RIG_STAGE("rig_count", 0, 1)},
                               map_stage[] = {RIG_STAGE("rig_map", 0, 2)};
static const struct cox__pass_binding uses_count[] = {{.binding = 0},
                                                      {.binding = 1, .row_access = COX__REDUCE, .access = COX__WRITE}};
static const struct cox__pass_binding uses_map[] = {{.binding = 0}, {.binding = 2, .access = COX__WRITE}};

static const struct cox__pass_spec counted_passes[] = {RIG_PASS(uses_count, count_stage, .done = choose_add),
                                                       RIG_PASS(uses_map, map_stage, .name = "map")};

/* Begin a session of these passes. */
static void begin_counted(double verify, bool warmup)
{
    begin(&(const struct cox__session_spec){.rows = ROWS,
                                            .binding_count = 3,
                                            .bindings = counted_bindings,
                                            .passes = counted_passes,
                                            .pass_count = 2,
                                            .in_flight = 3,
                                            .verify = verify,
                                            .no_warmup = !warmup});
    for (uint32_t f = 0; f < FRAMES; f++) {
        const unsigned char *data = cox_buffer_data(in[f]);
        uint32_t bins[256] = {0};
        for (uint32_t r = 0; r < ROWS; r++)
            for (uint32_t c = 0; c < COLUMNS; c++)
                bins[data[r * PITCH + c]]++;
        for (uint32_t r = 0; r < ROWS; r++)
            for (uint32_t c = 0; c < COLUMNS; c++)
                expected[f][r * PITCH + c] = (unsigned char)(data[r * PITCH + c] * 3u + r * 7u + bins[17] +
                                                             2 * bins[200]);
    }
}

Test(passes, take_what_the_application_makes_of_the_results_of_an_earlier_one)
{
    calls = 0;
    begin_counted(0, true);
    run_more(4 * FRAMES);
    cr_expect_eq(calls, 4 * FRAMES);
    close_bench();
}

/* ---- devices ---- */

Test(passes, are_done_by_the_devices_that_they_name)
{
    static const uint32_t one[] = {2}, other[] = {0};
    struct cox__pass_spec passes[] = {near_exchange[0], near_exchange[1]};
    passes[0].device_count = passes[1].device_count = 1;
    passes[0].devices = one;
    passes[1].devices = other;
    begin_near(NEAR_SESSION(passes, 2, .in_flight = 3, .no_warmup = true));
    run_more(FRAMES);
    for (const struct rig_report *report = NULL; (report = rig_next_report(rig, report));)
        for (uint32_t b = 0; b < report->frame.band_count; b++)
            cr_assert_eq(report->bands[b].device, b == 0 ? 2 : 0);
    close_bench();
}

/* ---- one split for passes that can share it ---- */

/* Calls of the policy since the session began. */
static struct {
    uint32_t splits, frames;
    bool pool, shadow;
    uint64_t single_device_ns;
    struct cox_measurement bands[FRAMES][3]; /* [frame][device] */
    struct cox_frame_measurement whole[FRAMES];
} heard;

/* The boundary between the first device and the last moves from frame to frame. */
static cox_status hearing_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    uint32_t border = view->row_alignment * (uint32_t)(1 + view->frame % 3);
    border = border < view->rows ? border : view->row_alignment;
    (void)state;
    heard.splits++;
    heard.pool |= view->pool;
    heard.shadow |= view->shadow;
    heard.single_device_ns = view->devices[0].single_device_ns;
    out->bands[0] = (struct cox_band){0, 0, border};
    out->bands[1] = (struct cox_band){2, border, view->rows - border};
    out->band_count = 2;
    out->predicted_ns = 1000;
    return COX_OK;
}

static void hearing_observe(void *state, const struct cox_measurement *measurement)
{
    (void)state;
    cr_assert_lt(measurement->frame, FRAMES);
    cr_assert_eq(heard.bands[measurement->frame][measurement->device].rows, 0, "told twice");
    heard.bands[measurement->frame][measurement->device] = *measurement;
}

static void hearing_observe_frame(void *state, const struct cox_frame_measurement *measurement)
{
    (void)state;
    heard.frames++;
    heard.whole[measurement->frame] = *measurement;
}

static const struct cox_policy hearing = {.name = "hearing",
                                          .state_bytes = rig_policy_bytes,
                                          .init = rig_policy_init,
                                          .split = hearing_split,
                                          .observe = hearing_observe,
                                          .observe_frame = hearing_observe_frame};

/* This policy has no observe functions. */
static const struct cox_policy asked_only = {
    .name = "asked only", .state_bytes = rig_policy_bytes, .init = rig_policy_init, .split = hearing_split};

static void run_hearing(const struct cox__session_spec *params)
{
    memset(&heard, 0, sizeof heard);
    begin_near(params);
    run_more(FRAMES);
}

Test(passes, share_a_split)
{
    run_hearing(NEAR_SESSION(near_exchange, 2, .in_flight = 1, .custom_policy = &hearing));
    cr_assert_eq(heard.splits, FRAMES);
    cr_assert_eq(heard.frames, FRAMES);
    cr_assert(!heard.pool && !heard.shadow);
    cr_assert_gt(heard.single_device_ns, 0);
    uint32_t f = 0;
    for (const struct rig_report *report = NULL; (report = rig_next_report(rig, report)); f++) {
        cr_assert_eq(report->frame.band_count, 4);
        cr_assert_eq(report->passes[1].reason, COX_REASON_SHARED);
        cr_assert_eq(report->frame.total.predicted_ns, 1000);
        cr_assert_eq(heard.whole[f].wall_ns, report->passes[1].end_ns - report->passes[0].start_ns);
        for (uint32_t b = 0; b < 2; b++) {
            const struct cox_band_report *first = &report->bands[b], *second = &report->bands[2 + b];
            const struct cox_measurement *told = &heard.bands[f][first->device];
            cr_assert_eq(second->device, first->device);
            cr_assert_eq(second->first_row, first->first_row);
            cr_assert_eq(second->rows, first->rows);
            cr_assert_eq(told->rows, first->rows);
            cr_assert_eq(told->first_row, first->first_row);
            cr_assert_eq(told->wall_ns, first->wall_ns + second->wall_ns);
        }
    }
    close_bench();
}

Test(passes, share_a_split_of_the_default_policy)
{
    begin_near(NEAR_SESSION(near_exchange, 2, .in_flight = 1));
    run_more(FRAMES);
    for (const struct rig_report *report = NULL; (report = rig_next_report(rig, report));)
        cr_assert_eq(report->passes[1].reason, COX_REASON_SHARED);
    close_bench();
}

Test(passes, have_splits_of_their_own_where_they_say_so)
{
    static const uint32_t all[] = {0, 1, 2};
    struct cox_policy on_demand = asked_only;
    struct cox__pass_spec listed[] = {near_exchange[0], near_exchange[1]};
    listed[1].device_count = 3;
    listed[1].devices = all;
    on_demand.assign = random_next;
    run_hearing(NEAR_SESSION(near_exchange, 2, .split_each_pass = true, .custom_policy = &asked_only));
    cr_assert(heard.splits == 2 * FRAMES && heard.shadow);
    close_bench();
    run_hearing(NEAR_SESSION(near_exchange, 2, .custom_policy = &on_demand));
    cr_assert(heard.splits == 2 * FRAMES && heard.pool);
    close_bench();
    run_hearing(NEAR_SESSION(listed, 2, .custom_policy = &asked_only));
    cr_assert_eq(heard.splits, 2 * FRAMES);
    close_bench();
    listed[1] = near_exchange[1];
    listed[1].policy = "single";
    run_hearing(NEAR_SESSION(listed, 2, .custom_policy = &asked_only));
    cr_assert_eq(heard.splits, FRAMES);
    close_bench();
}

/* The pitch of `in` allows the first pass only two places for a boundary. The second pass is not restricted by
 * that. */
Test(passes, do_not_share_a_coarse_split)
{
    struct cox__binding odd[] = {near_bindings[0], near_bindings[1], near_bindings[2]};
    struct cox__session_spec params = *NEAR_SESSION(near_exchange, 2, .custom_policy = &asked_only);
    odd[0].pitch_bytes = PITCH - 28;
    params.bindings = odd;
    memset(&heard, 0, sizeof heard);
    begin(&params);
    submit_some(FRAMES);
    cr_assert_eq(cox_session_wait(session), COX_OK);
    cr_assert_eq(heard.splits, 2 * FRAMES);
    close_bench();
}

/* A device is lost between two passes, and its rows go to another device. */
Test(passes, share_a_split_while_a_device_is_lost)
{
    for (uint32_t skip = 1; skip < 12; skip++) {
        begin_near(NEAR_SESSION(near_exchange, 2, .in_flight = 2, .no_warmup = true, .custom_policy = &asked_only));
        FAULT(.kind = FAKE_DEVICE_DIES, .device = 2, .skip = skip, .delay_ns = UINT64_MAX);
        run_more(2 * FRAMES);
        close_bench();
    }
}

static const uint32_t staged_only[] = {2};
static const struct cox__pass_spec last_on_staged[] = {
    RIG_PASS(uses_first, near_first, .name = "first"),
    RIG_PASS(uses_last, near_last, .name = "last", .device_count = 1, .devices = staged_only)};

Test(passes, go_to_other_devices_where_theirs_cannot_be_had)
{
    open_buffers(&three_kinds);
    expect_near();
    FAULT(.kind = FAKE_INSTANCE_FAILS, .device = 2, .status = COX_E_BUILD);
    cr_assert_eq(try_session(NEAR_SESSION(last_on_staged, 2)), COX_OK, "%s", rig_log(rig));
    run_more(FRAMES);
    close_bench();
}

Test(passes, go_to_other_devices_while_theirs_is_lost)
{
    begin_near(NEAR_SESSION(last_on_staged, 2, .in_flight = 3));
    FAULT(.kind = FAKE_DEVICE_DIES, .device = 2, .skip = 40, .delay_ns = UINT64_MAX);
    run_more(6 * FRAMES);
    close_bench();
}

Test(passes, are_done_again_where_a_device_fails)
{
    static const enum fake_fault_kind kinds[] = {FAKE_EVENT_FAILS, FAKE_FAILS_LATE, FAKE_DEVICE_DIES, FAKE_HANGS};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t skip = 0; skip < 12; skip++) {
            begin_near(NEAR_SESSION(near_exchange, 2, .in_flight = 3, .no_warmup = true, .device_timeout_ns = 1000000,
                                    .split_each_pass = true, .custom_policy = &random_policy));
            FAULT(.kind = kinds[k], .device = skip % 3, .skip = skip, .count = 2, .delay_ns = 50000000);
            run_more(3 * FRAMES);
            close_bench();
        }
}

/* The bands of the later frame end well, although their device was lost meanwhile because of an earlier frame's
 * rows. */
Test(passes, wait_for_a_device_that_comes_back)
{
    static const struct fake_params one = {.device_count = 1,
                                           .devices = {{.type = COX_DEVICE_CPU, .ns_per_row = 1000, .fixed_ns = 5000}}};
    for (uint32_t skip = 0; skip < 8; skip++) {
        begin_on(&one, NEAR_SESSION(near_exchange, 2, .in_flight = FRAMES, .no_warmup = true));
        expect_near();
        fake_hold(fake);
        FAULT(.kind = FAKE_SUBMIT_FAILS, .skip = skip, .status = COX_E_DEVICE_LOST);
        submit_some(FRAMES);
        fake_release(fake);
        expect_right(0, FRAMES);
        cr_expect(rig_logged(rig, "is back"));
        close_bench();
    }
}

/* Each row of each pass counts exactly once. */
static void expect_rows_once(uint32_t passes)
{
    for (const struct rig_report *report = NULL; (report = rig_next_report(rig, report));) {
        const unsigned frame = (unsigned)report->frame.index;
        uint32_t rows[COX_PASSES_MAX] = {0};
        bool again = false;
        for (uint32_t b = 0; b < report->frame.band_count; b++) {
            const uint32_t pass = report->bands[b].pass;
            rows[pass] += report->bands[b].status == COX_OK ? report->bands[b].rows : 0;
            again |= pass == 0 && report->bands[b].attempt > 0;
        }
        for (uint32_t p = 0; p < passes; p++)
            cr_expect_eq(rows[p], ROWS, "frame %u, pass %u: %u rows count", frame, p, rows[p]);
        cr_expect(!again || report->frame.total.reason == COX_REASON_RERUN);
    }
}

Test(passes, begin_anew_where_rows_of_an_earlier_one_turn_out_to_be_wrong)
{
    uint32_t convicted = 0;
    for (uint32_t skip = 0; skip < 24; skip++) {
        begin_counted(1, false);
        FAULT(.kind = FAKE_CORRUPTS, .device = 1, .skip = skip, .count = 1000, .factor = 2);
        run_more(2 * FRAMES);
        expect_rows_once(2);
        convicted += rig_logged(rig, "computes wrong rows");
        close_bench();
    }
    cr_expect_gt(convicted, 0);
}

/* ---- reports ---- */

Test(passes, are_in_the_report_one_after_the_other)
{
    begin_near(NEAR_SESSION(near_exchange, 2, .in_flight = 1, .no_warmup = true, .split_each_pass = true,
                            .custom_policy = &random_policy));
    run_more(FRAMES);
    cr_assert_eq(rig_report_count(rig), FRAMES);
    for (uint32_t i = 0; i < FRAMES; i++) {
        const struct rig_report *report = rig_report_at(rig, i);
        uint32_t rows[2] = {0}, pass = 0;
        cr_assert_eq(report->frame.pass_count, 2);
        cr_assert_leq(report->passes[0].end_ns, report->passes[1].start_ns);
        cr_assert_eq(report->passes[1].end_ns, report->frame.total.end_ns);
        for (uint32_t b = 0; b < report->frame.band_count; b++) {
            cr_assert(report->bands[b].pass == pass || (report->bands[b].pass == 1 && rows[0] == ROWS));
            pass = report->bands[b].pass;
            cr_assert_eq(report->bands[b].first_row, rows[pass]);
            rows[pass] += report->bands[b].rows;
        }
        cr_assert(rows[0] == ROWS && rows[1] == ROWS);
    }
    close_bench();
}

/* ---- passes that do not fit together ---- */

static void expect_refused(const struct cox__session_spec *params, const char *why)
{
    open_buffers(&three_kinds);
    cr_expect_eq(try_session(params), COX_E_INVALID, "%s", why);
    cr_expect(rig_logged(rig, why), "\"%s\" is not in the log:\n%s", why, rig_log(rig));
    close_bench();
}

Test(passes, whose_uses_do_not_hold_together_are_refused)
{
    static const struct {
        struct cox__pass_binding use; /* the first binding of the last pass */
        const char *logged;
    } cases[] = {
        {{.binding = 1, .row_access = COX__HALO, .halo_rows = ROWS + 1},
         "pass 1 (last), buffer 1 (middle): halo_rows is 97, but the pass has only 96 rows"},
        {{.binding = 2, .access = COX__WRITE}, "pass 1 (last), buffer 2 (out) is used twice"},
        {{.binding = 3}, "pass 1 (last), unknown buffer 3; the session has 3"},
        {{.binding = 0}, "pass 1 (last), stage 0, argument 0: buffer 1 (middle) is not in the pass's list of uses"},
        {{.binding = 1, .row_access = COX__REDUCE, .access = COX__WRITE},
         "a pass must use a REDUCE buffer as REDUCE or WHOLE"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const struct cox__pass_binding uses[] = {cases[c].use, uses_last[1]};
        struct cox__pass_spec passes[] = {near_exchange[0], near_exchange[1]};
        passes[1].uses = uses;
        expect_refused(NEAR_SESSION(passes, 2, .in_flight = 1), cases[c].logged);
    }
}

Test(passes, that_do_not_hold_together_are_refused)
{
    const uint32_t nobody[] = {9};
    const struct cox__pass_binding by_rows[] = {{.binding = 0}, uses_both[1], uses_both[2]};
    const struct cox__pass_spec turned[] = {near_exchange[1], near_exchange[0]};
    const struct cox__pass_spec half[] = {near_exchange[0],
                                          RIG_PASS(uses_last, near_last, .name = "last", .rows = ROWS / 2)};
    const struct cox__pass_spec nowhere[] = {
        near_exchange[0], RIG_PASS(uses_last, near_last, .name = "last", .device_count = 1, .devices = nobody)};
    const struct cox__pass_spec narrow[] = {RIG_PASS(by_rows, near_both, .name = "both")};
    const struct cox__pass_spec single[] = {RIG_PASS(uses_both, near_first, .name = "both")};
    expect_refused(NEAR_SESSION(turned, 2, .in_flight = 1),
                   "pass 0 (last), buffer 1 (middle): scratch is read before any pass has written it");
    expect_refused(NEAR_SESSION(half, 2, .in_flight = 1),
                   "pass 1 (last), buffer 1 (middle): this pass's rows need 6144 bytes, another pass's rows 12288");
    expect_refused(NEAR_SESSION(nowhere, 2, .in_flight = 1),
                   "pass 1 (last): none of its 1 devices takes part in the session");
    expect_refused(NEAR_SESSION(narrow, 1, .in_flight = 1),
                   "pass 0 (both), stage 0 (rig_near) writes buffer 1 (middle) for more rows than the band's, so "
                   "buffer 0 (in) needs row access HALO");
    expect_refused(NEAR_SESSION(single, 1, .in_flight = 1),
                   "needs a stage that writes it and a later one that reads it; stages that take it: 1");
    expect_refused(NEAR_SESSION(near_exchange, 2, .in_flight = 1, .stage_count = 1, .stages = near_first),
                   "stages: 1 given; allowed: 0 to 0");
}

Test(passes, that_use_the_whole_of_rows_need_a_pitch)
{
    const struct cox__pass_binding whole[] = {{.binding = 0, .row_access = COX__WHOLE}, uses_first[1]};
    const struct cox__pass_spec passes[] = {RIG_PASS(whole, near_first, .name = "first"), near_exchange[1]};
    struct cox__binding bindings[] = {near_bindings[0], near_bindings[1], near_bindings[2]};
    bindings[0].pitch_bytes = 0;
    expect_refused(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = 3,
                                                     .bindings = bindings,
                                                     .passes = passes,
                                                     .pass_count = 2,
                                                     .in_flight = 1},
                   "buffer 0 (in): a pitch of 0 bytes");
    bindings[0].pitch_bytes = SIZE_MAX / 4;
    expect_refused(&(const struct cox__session_spec){.rows = ROWS,
                                                     .binding_count = 3,
                                                     .bindings = bindings,
                                                     .passes = passes,
                                                     .pass_count = 2,
                                                     .in_flight = 1},
                   "buffer 0 (in): a pitch of");
}

Test(passes, take_null_for_scratch_and_nothing_else)
{
    begin(NEAR_SESSION(near_exchange, 2, .in_flight = 1));
    cox_buffer *buffers[] = {in[0], in[1], out[0]};
    cr_expect_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 3}),
                 COX_E_INVALID);
    cr_expect(rig_logged(rig, "buffer 1 (middle): scratch must be NULL"));
    buffers[1] = NULL;
    buffers[0] = NULL;
    cr_expect_eq(cox__session_run(session, &(const struct cox__frame_spec){.buffers = buffers, .buffer_count = 3}),
                 COX_E_INVALID);
    close_bench();
}
