/* The trace of --trace: Chrome's trace events, for Perfetto or chrome://tracing. One track for the
 * scheduler, one for the queue of each device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_TRACE_H
#define TONEMAP_TRACE_H

#include "report.h"

#include <stdio.h>

/* The session must be idle. Write errors stay in the stream. */
void trace_write(struct report *report, const struct report_about *about, FILE *stream);

#endif
