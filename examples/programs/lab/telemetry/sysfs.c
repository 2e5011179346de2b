/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHOLE_PATH_BYTES = 1024, LINE_BYTES = 256 };

bool sysfs_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int open_path(const char *root, const char *format, va_list args)
{
    char path[WHOLE_PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/", root), more = -1;

    if (length >= 0 && (size_t)length < sizeof path)
        more = vsnprintf(path + length, sizeof path - (size_t)length, format, args);
    if (more < 0 || more >= (int)sizeof path - length) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

int sysfs_open(const char *root, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int file = open_path(root, format, args);
    va_end(args);
    return file;
}

static bool read_line(int file, char *text, size_t bytes)
{
    *text = '\0';
    if (file < 0)
        return false;

    ssize_t length = read(file, text, bytes - 1);
    int error = ENODATA;
    if (length < 0) {
        error = errno;
        length = 0;
    }
    close(file);
    text[length] = '\0';

    size_t end = strcspn(text, "\n");
    while (end && isspace((unsigned char)text[end - 1]))
        end--;
    text[end] = '\0';

    errno = error;
    return end > 0;
}

bool sysfs_text(const char *root, char *text, size_t bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int file = open_path(root, format, args);
    va_end(args);
    return read_line(file, text, bytes);
}

bool sysfs_number(const char *root, double *value, const char *format, ...)
{
    char text[LINE_BYTES], *end;
    va_list args;

    va_start(args, format);
    int file = open_path(root, format, args);
    va_end(args);

    if (!read_line(file, text, sizeof text))
        return false;

    *value = strtod(text, &end);
    return end != text && isfinite(*value);
}

static int by_version(const void *left, const void *right)
{
    return strverscmp(left, right);
}

static bool is_numbered(const char *name, const char *prefix)
{
    size_t length = strlen(prefix);

    return strncmp(name, prefix, length) == 0 && isdigit((unsigned char)name[length]) &&
           name[length + strspn(name + length, "0123456789")] == '\0';
}

size_t sysfs_list(const char *root, const char *folder, const char *prefix,
                  char (*names)[SYSFS_NAME_BYTES], size_t most)
{
    char path[WHOLE_PATH_BYTES];
    size_t count = 0;
    DIR *entries = NULL;

    if (snprintf(path, sizeof path, "%s/%s", root, folder) < (int)sizeof path)
        entries = opendir(path);
    if (!entries)
        return 0;

    for (struct dirent *entry; count < most && (entry = readdir(entries));) {
        const char *name = entry->d_name;
        bool wanted = *prefix ? is_numbered(name, prefix) : *name != '.';
        if (wanted && strlen(name) < SYSFS_NAME_BYTES)
            memcpy(names[count++], name, strlen(name) + 1);
    }

    closedir(entries);
    qsort(names, count, sizeof *names, by_version);
    return count;
}

bool sysfs_list_has(const char *list, uint32_t number)
{
    for (const char *at = list; isdigit((unsigned char)*at);) {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;
        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (number >= first && number <= last)
            return true;

        at = end + (*end == ',');
    }
    return false;
}
