/* A device that gets no rows is never measured and would stay out for ever on one bad measurement. So now and then it
 * gets the smallest band there is, with a pause that doubles as long as it stays out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SCHED_PROBE_H
#define COX_SCHED_PROBE_H

#include <coxswain/sched.h>

enum { COX__PROBE_PAUSE_MIN = 32, COX__PROBE_PAUSE_MAX = 1024 }; /* frames */

/* One for each device. Zeroed = in. */
struct cox__probe {
    uint32_t out;   /* frames since it was left out or probed */
    uint32_t in;    /* frames since it last came back */
    uint32_t pause; /* 0 = COX__PROBE_PAUSE_MIN */
};

/* Count a frame whose rows are `rows`. If a device that is usable but left out is due, move its band from the device that
 * has most rows into `rows`, which still sum to view->rows. At most one device a frame. Returns whether it did. */
bool cox__probe_frame(struct cox__probe *probes, const struct cox_sched_view *view, uint32_t *rows);

#endif
