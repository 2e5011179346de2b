/* The report as one page of HTML that loads nothing and runs nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REPORT_DOCUMENT_H
#define COX_EXAMPLES_LAB_REPORT_DOCUMENT_H

#include "runs.h"
#include "common/html.h"

/* `name` is the title. False if out of memory; the caller frees `out` in any case. */
bool report_page(const struct report_source *source, const char *name, struct html *out);

#endif
