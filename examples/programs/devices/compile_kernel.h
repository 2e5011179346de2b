/* A kernel of the user, compiled before an application needs it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_COMPILE_KERNEL_H
#define DEVICES_COMPILE_KERNEL_H

#include <coxswain/coxswain.h>

enum { LIBRARIES_MAX = 16 };

struct kernel_files {
    const char *source;      /* path of a file of OpenCL C */
    const char *options;     /* for the compiler; NULL = none */
    const char *headers_dir; /* all files in it are headers; NULL = no headers */
    const char *libraries[LIBRARIES_MAX];
    uint32_t library_count;
    const char *output; /* path of the file for the compiled code; NULL = none */
};

/* Compile the kernel for every device of the runtime. Blocks for the compilation.
 *
 * Returns 0 if all files could be used. Otherwise it writes the reason to standard error and
 * returns the exit status. `*status` is the library's status. If it is an error, the log has the
 * reason, and the caller writes it. */
int compile_kernel(cox_runtime *runtime, const struct kernel_files *files, cox_status *status);

#endif
