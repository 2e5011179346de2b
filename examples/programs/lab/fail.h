/* Exit statuses and error messages of cox-lab.
 * Thread-safety: one line at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_FAIL_H
#define COX_EXAMPLES_LAB_FAIL_H

#include <stdbool.h>

enum { LAB_OK = 0, LAB_BAD = 1, LAB_USAGE = 2, LAB_MISSED = 3, LAB_INTERRUPTED = 130 };

/* Print "cox-lab: " and a line on stderr. Returns false. */
__attribute__((format(printf, 1, 2))) bool lab_fail(const char *format, ...);

/* Write what is left of standard output. Prints why, if not all of it could be written. */
bool lab_output_written(void);

#endif
