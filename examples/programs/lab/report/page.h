/* The report as a page of HTML, whole in itself: it loads nothing and runs nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_PAGE_H
#define COX_EXAMPLES_LAB_REPORT_PAGE_H

#include "data.h"
#include "common/html.h"

/* `name`: what the database is called in the page. False if out of memory; `out` is the caller's to free in any
 * case. */
bool report_page(const struct report_source *source, const char *name, struct html *out);

#endif
