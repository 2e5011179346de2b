/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "provenance.h"

#include <coxswain/version.h>
#include <dlfcn.h>
#include <string.h>

void lab_provenance_read(struct lab_provenance *out)
{
    const char *(*function)(void) = cox_version;
    void *address;
    Dl_info library;

    sha256_of_file("/proc/self/exe", out->program);

    out->library[0] = '\0';
    memcpy(&address, &function, sizeof address);
    if (dladdr(address, &library) && library.dli_fname)
        sha256_of_file(library.dli_fname, out->library);
}
