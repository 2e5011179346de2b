/* The folder for compiled kernels, device profiles and indexes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_FOLDER_H
#define CACHE_FOLDER_H

#include <stddef.h>

/* $XDG_CACHE_HOME/coxswain, or else ~/.cache/coxswain. The folder is created; NULL if that
 * fails. */
const char *cache_folder(char *path, size_t bytes);

#endif
