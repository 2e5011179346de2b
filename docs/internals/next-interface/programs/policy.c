/* A policy of one's own: each device gets rows by its speed in the last frame.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/coxswain.h>
#include <stdio.h>
struct state {
    double ns_per_row[COX_DEVICES_MAX];
};
static size_t state_bytes(uint32_t devices)
{
    (void)devices;
    return sizeof(struct state);
}
static cox_status init(void *memory, const struct cox_sched_view *view,
                       const struct cox_policy_options *options)
{
    struct state *state = memory;
    (void)options;
    for (uint32_t d = 0; d < view->device_count; d++)
        state->ns_per_row[d] = 1 / view->devices[d].hint;
    return COX_OK;
}
static cox_status split(void *memory, const struct cox_sched_view *view, struct cox_split *out)
{
    struct state *state = memory;
    struct cox_cost costs[COX_DEVICES_MAX] = {{0}};
    uint32_t rows[COX_DEVICES_MAX], next = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){view->devices[d].usable, 0, state->ns_per_row[d]};
    if (cox_waterfill(view, costs, rows) < 0)
        return COX_E_NO_DEVICE;
    for (uint32_t d = 0; d < view->device_count; d++)
        if (rows[d]) {
            out->bands[out->band_count++] = (struct cox_band){d, next, rows[d]};
            next += rows[d];
        }
    return COX_OK;
}
static void observe(void *memory, const struct cox_measurement *m)
{
    ((struct state *)memory)->ns_per_row[m->device] = (double)m->wall_ns / m->rows;
}
static const struct cox_policy mine = {
    .name = "mine", .state_bytes = state_bytes, .init = init, .split = split, .observe = observe};
static const char twice[] =
    "kernel void twice(global const float *in, global float *out, int columns, int rows)\n"
    "{ int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows) out[y * columns + x] = 2 * in[y * columns + x]; }\n";
static float in[1080][1920], out[1080][1920];
static void print(void *user, const struct cox_frame_report *report)
{
    (void)user;
    for (uint32_t b = 0; b < report->band_count; b++)
        printf("frame %llu device %u rows %u\n", (unsigned long long)report->index,
               report->bands[b].device, report->bands[b].rows);
}
int main(void)
{
    cox_runtime *runtime = NULL;
    cox_session *session = NULL;
    cox_status status = cox_runtime_create(NULL, &runtime);
    if (!status)
        status = cox_session_create(runtime,
                                    &(struct cox_session_params){
                                        .columns = 1920,
                                        .rows = 1080,
                                        .passes = COX_LIST(struct cox_pass, {.source = twice}),
                                        .custom_policy = &mine,
                                        .report = print},
                                    &session);
    for (int i = 0; !status && i < 20; i++)
        status = cox_session_run(session, &(struct cox_frame){.data = COX_ARGS(in, out)});
    cox_session_destroy(&session);
    cox_runtime_destroy(&runtime);
    return status != COX_OK;
}
