/* OpenCL programs of cox-bench guides: their sources, building them, and error texts.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GUIDES_PROGRAM_H
#define BENCH_GUIDES_PROGRAM_H

#include "bench/cl.h"

#include <stdbool.h>
#include <stddef.h>

/* False if `code` is an error; `why` then becomes "clFinish: out of resources (-5)". */
bool guides_good(cl_int code, const char *call, char *why, size_t why_bytes);

/* NULL = failed; `why` holds the compiler's message. */
cl_program guides_build(cl_context context, cl_device_id id, const char *source,
                        const char *options, char *why, size_t why_bytes);

#endif
