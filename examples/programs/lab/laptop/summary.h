/* The page of cox-lab laptop. bundle.c fills in the struct and writes the page.
 * Thread-safety: no state outside the arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_SUMMARY_H
#define COX_EXAMPLES_LAB_LAPTOP_SUMMARY_H

#include "common/host_machine.h"
#include "findings.h"

struct laptop_page {
    const struct laptop_options *options;
    const struct laptop_machine *machine;
    const struct laptop_records *records;
    struct machine about;
    uint32_t count;    /* of findings */
    uint32_t supplies; /* index of those that compare mains with battery, the last; 0 = none */
    struct findings all[LAPTOP_RECORDS_MAX + 1];
};

/* False if out of memory. */
bool laptop_page(const struct laptop_page *page, struct html *out);

#endif
