/* The page of cox-lab laptop.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_PAGE_H
#define COX_EXAMPLES_LAB_LAPTOP_PAGE_H

#include "common/host_machine.h"
#include "figures.h"

struct laptop_page {
    const struct laptop_options *options;
    const struct laptop_machine *machine;
    const struct laptop_records *records;
    struct machine about;
    uint32_t count;    /* of figures */
    uint32_t supplies; /* which of them compares mains with battery, after all others; 0 = none */
    struct figures all[LAPTOP_RECORDS_MAX + 1];
};

/* False if out of memory. */
bool laptop_page(const struct laptop_page *page, struct html *out);

#endif
