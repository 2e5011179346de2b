/* A policy of your own: each device gets rows by its speed in the frame before.
 *   cc policy.c $(pkg-config --cflags --libs coxswain) && ./a.out
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <inttypes.h>
#include <stdio.h>

enum { ROWS = 1080, COLUMNS = 1920, FRAMES = 10 };

/* --- The policy --- */

/* Devices have numbers from 0, in the session's order. */
struct speeds {
    double ns_per_row[COX_DEVICES_MAX];
};

static size_t state_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct speeds);
}

/* Nothing is measured yet: begin with a guess. */
static cox_status init(void *state, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct speeds *speeds = state;
    (void)options;

    for (uint32_t d = 0; d < view->device_count; d++)
        speeds->ns_per_row[d] = 1 / view->devices[d].hint;
    return COX_OK;
}

/* Share the rows so that all devices end together. */
static cox_status split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    const struct speeds *speeds = state;
    struct cox_cost costs[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX], first_row = 0;

    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){.usable = view->devices[d].usable,
                                     .ns_per_row = speeds->ns_per_row[d]};
    if (cox_waterfill(view->rows, view->row_alignment, view->min_band_rows, costs,
                      view->device_count, rows) < 0)
        return COX_E_NO_DEVICE;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (!rows[d])
            continue;
        out->bands[out->band_count++] = (struct cox_band){
            .device = d, .first_row = first_row, .rows = rows[d]};
        first_row += rows[d];
    }
    return COX_OK;
}

/* A band is done. */
static void observe(void *state, const struct cox_measurement *measurement)
{
    struct speeds *speeds = state;
    speeds->ns_per_row[measurement->device] = ((double)measurement->wall_ns + 1) /
                                              measurement->rows;
}

static const struct cox_policy policy = {
    .name = "mine", .state_bytes = state_bytes, .init = init, .split = split, .observe = observe};

/* --- A session that uses it --- */

static const char twice[] =
    "kernel void twice(global const float *in, global float *out, int columns, int rows)\n"
    "{\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows)\n"
    "        out[y * columns + x] = 2 * in[y * columns + x];\n"
    "}\n";

static float in[ROWS * COLUMNS], out[ROWS * COLUMNS];

/* Each frame says which device had which rows. */
static void print(void *user, const struct cox_frame_report *report)
{
    (void)user;
    if (report->warmup || report->shadow)
        return;

    printf("frame %" PRIu64 ":", report->index);
    for (uint32_t b = 0; b < report->band_count; b++)
        printf(" %u rows on device %u in %.2f ms%s", report->bands[b].rows, report->bands[b].device,
               (double)report->bands[b].wall_ns / 1e6, b + 1 < report->band_count ? "," : "\n");
}

static const struct cox_session_params params = {
    .columns = COLUMNS,
    .rows = ROWS,
    .passes = COX_LIST(struct cox_pass, {.source = twice}),
    .custom_policy = &policy,
    .report = print};

static int count_wrong(void)
{
    int wrong = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        wrong += out[i] < 2 * in[i] || out[i] > 2 * in[i];

    return wrong;
}

int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;

    for (int i = 0; i < ROWS * COLUMNS; i++)
        in[i] = (float)i;

    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_session_create(runtime, &params, &session);
    for (int frame = 0; frame < FRAMES && !status; frame++)
        status = cox_session_run(session, &(struct cox_frame){.data = COX_ARGS(in, out)});

    if (status)
        fprintf(stderr, "policy: %s\n", cox_status_text(status));
    else
        printf("%d frames, %d values are wrong\n", FRAMES, count_wrong());

    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status || count_wrong();
}
