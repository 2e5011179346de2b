/* Standard output and standard error without control characters. Names, metadata, databases,
 * drivers and libraries may contain some, and a terminal would obey them.
 * Thread-safety: call plain_output_begin before other threads start.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PLAIN_OUTPUT_H
#define PLAIN_OUTPUT_H

#include <stdio.h>

/* Call this first in main. From now on, what is written to stdout and stderr becomes \xNN for each
 * byte that is not presentable UTF-8 (text.h), a newline or a tab. Files and frames that go to
 * standard output through a descriptor are not changed. */
void plain_output_begin(void);

/* Write what is left of `stream`, which is stdout or stderr. Returns NULL, or why not all of it could
 * be written. */
const char *plain_output_failure(FILE *stream);

/* Standard error without escaping, for a line of progress that moves the cursor. The caller writes
 * only plain text and its own sequences. */
FILE *plain_output_terminal(void);

#endif
