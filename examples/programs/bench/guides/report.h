/* The results of cox-bench guides on all devices, and how they are written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_REPORT_H
#define BENCH_GUIDES_REPORT_H

#include "common/host_machine.h"
#include "experiment.h"

#include <stdio.h>

/* The results of one device. */
struct guides_sheet {
    struct guides_device device;
    uint32_t count;
    struct guides_result *results;
};

struct guides_report {
    bool quick;
    struct machine machine;
    char date[32];
    double seconds;
    struct quiet quiet;
    uint32_t count;
    struct guides_sheet *sheets;
};

struct html;

/* The HTML page (page.c). False = out of memory. */
bool guides_page(const struct guides_report *report, struct html *out);

/* The JSON file (results.c). */
void guides_json(const struct guides_report *report, FILE *to);

#endif
