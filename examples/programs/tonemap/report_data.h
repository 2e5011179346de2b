/* The fields of a report, for the files that read them: report.c, stats.c and trace.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_REPORT_DATA_H
#define TONEMAP_REPORT_DATA_H

#include "report.h"

#include <pthread.h>

struct report {
    pthread_mutex_t lock; /* around everything below */
    struct report_frame *frames;
    size_t frame_count, frame_capacity;
    struct cox_band_report *bands;
    size_t band_count, band_capacity;
    uint64_t delivered, lost;
    uint64_t late, worst_late_ns;
    size_t *delivered_at; /* place of the n-th delivered frame in `frames`; as large as `frames` */
    bool newest_only;     /* there is at most one frame, at place 0 */
};

/* A comparison of uint64_t for qsort. */
int report_compare_times(const void *a, const void *b);

#endif
