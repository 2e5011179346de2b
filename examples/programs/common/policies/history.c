/* Frame sums, and probes of devices that are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/history.h"
#include "common/policies/layout.h"

enum { PAUSE_MIN = 32, PAUSE_MAX = 1024 }; /* frames */

cox_status history_init(void *memory, const struct cox_sched_view *view,
                        const struct cox_policy_options *options)
{
    (void)options;
    ((struct history *)memory)->device_count = view->device_count;
    return COX_OK;
}

bool history_add(struct history *history, const struct cox_measurement *measurement,
                 struct frame_sum *complete)
{
    if (measurement->device >= history->device_count || measurement->rows == 0 ||
        measurement->wall_ns == 0 ||
        measurement->flags & (COX_MEASURED_SHADOW | COX_MEASURED_UNFINISHED))
        return false;

    struct frame_sum *sum = &history->sums[measurement->device];
    bool completes = sum->rows > 0 && sum->frame != measurement->frame;

    if (completes)
        *complete = *sum;

    /* The kernel time is known only if it is known for every band. */
    double kernel_ns = (double)measurement->kernel_ns;
    if (completes || sum->rows == 0)
        *sum = (struct frame_sum){
            .device = measurement->device, .frame = measurement->frame, .kernel_ns = kernel_ns};
    else if (sum->kernel_ns > 0 && kernel_ns > 0)
        sum->kernel_ns += kernel_ns;
    else
        sum->kernel_ns = 0;

    sum->rows += measurement->rows;
    sum->wall_ns += (double)measurement->wall_ns;
    return completes;
}

bool history_take(struct history *history, struct frame_sum *complete)
{
    while (history->cursor < history->device_count) {
        struct frame_sum *sum = &history->sums[history->cursor++];
        if (sum->rows == 0)
            continue;

        *complete = *sum;
        sum->rows = 0;
        return true;
    }

    history->cursor = 0;
    return false;
}

/* Count a frame for a device that has rows in it or not. Returns whether a probe is due. */
static bool count_frame(struct left_out *device, bool usable, bool has_rows)
{
    if (device->pause == 0)
        device->pause = PAUSE_MIN;

    if (!usable || has_rows)
        device->out_frames = 0;
    if (!usable)
        return false;

    if (!has_rows) {
        device->in_frames = 0;
        return ++device->out_frames >= device->pause;
    }

    if (++device->in_frames >= device->pause)
        device->pause = device->in_frames = PAUSE_MIN;
    return false;
}

void history_lay_out(struct history *history, const struct cox_sched_view *view, uint32_t *rows,
                     struct cox_split *out)
{
    uint32_t largest = 0, due = view->device_count;

    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] > rows[largest])
            largest = d;
        if (count_frame(&history->left_out[d], view->devices[d].usable, rows[d] > 0) &&
            due == view->device_count)
            due = d;
    }

    uint32_t band = layout_least_band(view);
    if (due < view->device_count && rows[largest] / 2 >= band) {
        struct left_out *device = &history->left_out[due];
        rows[largest] -= band;
        rows[due] = band;
        device->out_frames = 0;
        device->pause *= 2;
        if (device->pause > PAUSE_MAX)
            device->pause = PAUSE_MAX;
        out->reason = COX_REASON_PROBE;
    }

    layout_bands(view, rows, out);
}

bool history_balance(struct history *history, const struct cox_sched_view *view,
                     const double *ns_per_row, bool timed, struct cox_split *out)
{
    uint32_t rows[COX_DEVICES_MAX];
    if (layout_balance(view, ns_per_row, rows) < 0)
        return false;

    history_lay_out(history, view, rows, out);
    if (timed)
        out->predicted_ns = layout_ns(layout_predict(view, ns_per_row, rows));

    return true;
}
