/* The folder for compiled kernels, device profiles and indexes, and the indexes in it.
 *
 * The library writes kernels and profiles, and what this file writes goes through the same
 * functions. They use the folder only if nobody but this user may write to it, follow no link, and
 * replace a file as a whole.
 * Thread-safety: safe from any thread and from several processes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CACHE_FOLDER_H
#define CACHE_FOLDER_H

#include <stddef.h>

/* $XDG_CACHE_HOME/coxswain, or else ~/.cache/coxswain. It may not exist yet. NULL without such a
 * variable, or if the name is too long. */
const char *cache_folder(char *path, size_t bytes);

/* The index that was stored with this key. The caller frees it. NULL if it is missing,
 * damaged or not private. */
void *cache_load(const char *folder, const void *key, size_t key_bytes, size_t *bytes);

/* Store an index, and create the folder. A failure is silent. The oldest index is removed if there
 * are many. */
void cache_store(const char *folder, const void *key, size_t key_bytes, const void *data,
                 size_t bytes);

#endif
