/* A program with one mistake, for the selftest of sweep.py. It copies `in` to `out`.   careless MISTAKE
 *
 *   none      no mistake
 *   crashes   uses memory that it did not get        ignores   does not look whether a write failed
 *   silent    fails without a message                wrong     says "Success"
 *   litters   leaves its temporary file behind       tears     writes in place
 *   destroys  removes the older file first           hangs     waits for a file that could not be opened
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mistake;

static bool makes(const char *name)
{
    return !strcmp(mistake, name);
}

static int fail(const char *what)
{
    if (makes("wrong"))
        errno = 0;
    if (!makes("silent"))
        fprintf(stderr, "careless: %s: %s\n", what, strerror(errno));
    return 1;
}

static int write_all(FILE *out, const char *bytes, size_t count, const char *name)
{
    bool good = fwrite(bytes, 1, count / 2, out) == count / 2 && !fflush(out);
    good = fwrite(bytes + count / 2, 1, count - count / 2, out) == count - count / 2 && good;
    if (fclose(out))
        good = false;
    if (good || makes("ignores"))
        return 0;

    const int failure = errno;
    if (!makes("litters"))
        unlink(name);
    errno = failure;
    return fail(name);
}

int main(int count, char **arguments)
{
    enum { BYTES = 4096 };
    mistake = count > 1 ? arguments[1] : "none";
    char *bytes = malloc(BYTES);
    if (makes("crashes"))
        memset(bytes, 0, BYTES);
    if (!bytes)
        return fail("memory");

    FILE *in = fopen("in", "rb");
    while (!in && makes("hangs"))
        pause();
    if (!in)
        return fail("in");
    const size_t length = fread(bytes, 1, BYTES, in);
    if (ferror(in))
        return fail("in");
    fclose(in);

    const char *name = makes("tears") ? "out" : "out.tmp";
    if (makes("destroys"))
        unlink("out");
    FILE *out = fopen(name, "wb");
    if (!out)
        return fail(name);
    if (write_all(out, bytes, length, name))
        return 1;
    free(bytes);
    if (strcmp(name, "out") != 0 && rename(name, "out")) {
        const int failure = errno;
        if (!makes("litters"))
            unlink(name);
        errno = failure;
        return fail("out");
    }
    return 0;
}
