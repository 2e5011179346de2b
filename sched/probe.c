/* Small bands for devices that are left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

/* The smallest band that starts and ends on the granule and respects the minimum. */
static uint64_t probe_rows(const struct cox_sched_view *view)
{
    uint64_t least = view->min_band_rows > view->granule ? view->min_band_rows : view->granule;
    return (least + view->granule - 1) / view->granule * view->granule;
}

bool cox__probe_frame(struct cox__probe *probes, const struct cox_sched_view *view, uint32_t *rows)
{
    uint32_t largest = 0;
    uint32_t due = view->device_count;
    for (uint32_t d = 0; d < view->device_count; d++) {
        struct cox__probe *probe = &probes[d];
        if (rows[d] > rows[largest])
            largest = d;
        if (probe->pause == 0)
            probe->pause = COX__PROBE_PAUSE_MIN;
        if (!view->devices[d].usable) {
            probe->out = 0;
            continue;
        }
        if (rows[d] > 0) {
            probe->out = 0;
            /* Only a device that came back for good gets the short pause again: no flapping. */
            if (++probe->in >= probe->pause) {
                probe->pause = COX__PROBE_PAUSE_MIN;
                probe->in = COX__PROBE_PAUSE_MIN;
            }
            continue;
        }
        probe->in = 0;
        if (++probe->out >= probe->pause && due == view->device_count)
            due = d;
    }
    uint64_t band = probe_rows(view);
    if (due == view->device_count || rows[largest] < 2 * band)
        return false;
    rows[largest] -= (uint32_t)band;
    rows[due] = (uint32_t)band;
    probes[due].out = 0;
    probes[due].pause = 2 * probes[due].pause > COX__PROBE_PAUSE_MAX ? COX__PROBE_PAUSE_MAX : 2 * probes[due].pause;
    return true;
}
