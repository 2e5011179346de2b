/* The reason of a failure, for the caller to print.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_REFUSE_H
#define COX_EXAMPLES_LAB_REFUSE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes a sentence to `why`. Returns false, so that a function can `return lab_refuse(...)`. */
__attribute__((format(printf, 3, 4))) bool lab_refuse(char *why, size_t why_bytes,
                                                      const char *format, ...);

#endif
