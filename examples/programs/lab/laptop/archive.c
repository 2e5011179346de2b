/* SPDX-License-Identifier: Apache-2.0 */
#include "archive.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

enum { RECORD = 512, SUM_AT = 148, SUM_BYTES = 8 };

static const char magic[8] = {'u', 's', 't', 'a', 'r', '\0', '0', '0'};
static const uint64_t bytes_max = UINT64_C(077777777777); /* eleven octal digits */

/* Octal digits, terminated. */
static void put_octal(char *field, size_t bytes, uint64_t value)
{
    field[bytes - 1] = '\0';
    for (size_t i = bytes - 1; i-- > 0; value /= 8)
        field[i] = (char)('0' + value % 8);
}

static bool put_header(FILE *to, const char *prefix, const char *name, const struct stat *about)
{
    char header[RECORD] = {0};
    unsigned sum = 0;
    int length = snprintf(header, 100, "%s/%s", prefix, name);

    if (length <= 0 || length > 99) {
        errno = ENAMETOOLONG;
        return false;
    }
    if ((uint64_t)about->st_size > bytes_max) {
        errno = EFBIG;
        return false;
    }

    put_octal(header + 100, 8, 0644);
    put_octal(header + 108, 8, 0);
    put_octal(header + 116, 8, 0);
    put_octal(header + 124, 12, (uint64_t)about->st_size);
    put_octal(header + 136, 12, (uint64_t)about->st_mtime);
    header[156] = '0'; /* a regular file */
    memcpy(header + 257, magic, sizeof magic);

    memset(header + SUM_AT, ' ', SUM_BYTES);
    for (int i = 0; i < RECORD; i++)
        sum += (unsigned char)header[i];
    put_octal(header + SUM_AT, 7, sum);
    return fwrite(header, RECORD, 1, to) == 1;
}

/* Exactly `bytes` bytes, even if the file grows meanwhile. */
static bool copy(FILE *to, FILE *from, uint64_t bytes)
{
    char record[RECORD];

    while (bytes > 0) {
        size_t wanted = RECORD;

        if (bytes < RECORD)
            wanted = (size_t)bytes;
        memset(record, 0, RECORD);
        if (fread(record, 1, wanted, from) != wanted) {
            if (!errno)
                errno = EIO;
            return false;
        }
        if (fwrite(record, RECORD, 1, to) != 1)
            return false;
        bytes -= wanted;
    }
    return true;
}

bool archive_add(FILE *to, const char *prefix, const char *name, const char *path)
{
    FILE *from = fopen(path, "rb");
    struct stat about;

    if (!from)
        return false;

    bool good = fstat(fileno(from), &about) == 0 && put_header(to, prefix, name, &about) &&
                copy(to, from, (uint64_t)about.st_size);
    int error = errno; /* fclose may change it */
    fclose(from);
    errno = error;
    return good;
}

bool archive_end(FILE *to)
{
    static const char empty[2 * RECORD];
    return fwrite(empty, sizeof empty, 1, to) == 1;
}
