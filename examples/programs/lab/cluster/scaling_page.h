/* The page of `cox-lab cluster`: plots over the number of machines.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_CLUSTER_SCALING_PAGE_H
#define COX_EXAMPLES_LAB_CLUSTER_SCALING_PAGE_H

#include "description.h"
#include "common/html.h"

enum { CLUSTER_COUNTS_MAX = 32 };

/* For one engine and one number of machines. */
struct cluster_figures {
    struct cluster_way way;
    double ideal_s;
    double median_s, low_s, high_s; /* of the runs; a tenth is below `low`, a tenth above `high` */
    struct cluster_times mean;      /* of the runs */
    struct cluster_times model;
    struct cluster_losses losses;
};

struct cluster_page {
    const struct cluster *cluster;
    uint32_t count;
    struct cluster_figures all[CLUSTER_COUNTS_MAX * CLUSTER_ENGINES];
};

/* Write the page to `out`. False if out of memory. */
bool cluster_page(const struct cluster_page *page, struct html *out);

#endif
