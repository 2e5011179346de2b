/* Where the programs keep compiled kernels and device profiles from run to run.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_FOLDER_H
#define CACHE_FOLDER_H

#include <stddef.h>

/* $XDG_CACHE_HOME/coxswain, or else ~/.cache/coxswain, which is made; NULL if there is no such place. */
const char *cache_folder(char *path, size_t bytes);

#endif
