/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static bool make_directories(char *path)
{
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = 0;
        bool made = !mkdir(path, 0700) || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }

    return !mkdir(path, 0700) || errno == EEXIST;
}

const char *cache_folder(char *path, size_t bytes)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;

    if (base && *base == '/')
        length = snprintf(path, bytes, "%s/coxswain", base);
    else if (home && *home == '/')
        length = snprintf(path, bytes, "%s/.cache/coxswain", home);
    if (length <= 0 || (size_t)length >= bytes || !make_directories(path))
        return NULL;
    return path;
}
