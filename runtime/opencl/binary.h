/* Binaries of programs: in the cache, and in files of compiled code (store/code.h). For program.c.
 *
 * An entry of the cache is the list of the kernels' arguments (argument_list.c), followed by
 * the driver's binary. An entry of a file is the key of what was compiled, the options with their
 * terminator, and an entry of the cache.
 *
 * Runs on the thread that makes the kernels: an application thread or a worker thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_BINARY_H
#define COX_OPENCL_BINARY_H

#include "internal.h"

#include <stdio.h>

/* The key of what a program is made of: the device and its driver, the library's version, all
 * texts, the options and the code. */
void cox__cl_binary_key(const struct cox__cl_device *device, const struct cox__variant *kernel,
                        unsigned char key[32]);

/* Make the program of its key, device and context from the cache. False: the cache does not have
 * it, or the driver rejects it (logged). */
bool cox__cl_binary_load(struct cox__cl_backend *backend, const char *options,
                         struct cox__cl_program *out);

/* Write the program's binary to the cache. Some drivers compile for it. */
void cox__cl_binary_store(struct cox__cl_backend *backend, const struct cox__cl_program *program);

/* Make the program from the device's entry of the kernel's file of compiled code. False (logged):
 * it was compiled from another source, or the driver rejects it. If the kernel is `declared`, the
 * source is not compared. */
bool cox__cl_binary_take_code(struct cox__cl_backend *backend, const struct cox__variant *kernel,
                              struct cox__cl_program *out);

/* Append the program's entry to a file of compiled code. Errors: COX_E_UNSUPPORTED (logged: the
 * driver gives no binary), COX_E_SYSTEM (the file cannot be written), COX_E_NOMEM. */
cox_status cox__cl_binary_append(const struct cox__cl_backend *backend,
                                 const struct cox__cl_program *program, const char *options,
                                 FILE *file);

#endif
