/* With cache_folder.c the only file of the programs that uses internal functions of the library: its
 * digest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sha256.h"
#include "base/digest.h"

#include <errno.h>
#include <stdio.h>

static void put_text(struct cox__digest *state, char text[SHA256_TEXT_BYTES])
{
    unsigned char digest[COX__SHA256_BYTES];

    cox__digest_end(state, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

void sha256_of(const void *data, size_t bytes, char text[SHA256_TEXT_BYTES])
{
    struct cox__digest state;

    cox__digest_begin(&state);
    cox__digest_feed(&state, data, bytes);
    put_text(&state, text);
}

bool sha256_of_file(const char *path, char text[SHA256_TEXT_BYTES])
{
    struct cox__digest state;
    unsigned char data[1 << 14];
    size_t bytes;
    FILE *file = fopen(path, "rbe");

    text[0] = '\0';
    if (!file)
        return false;

    errno = 0;
    cox__digest_begin(&state);
    while ((bytes = fread(data, 1, sizeof data, file)) > 0)
        cox__digest_feed(&state, data, bytes);

    const bool good = !ferror(file);
    const int error = errno ? errno : EIO; /* fclose may change it */
    if (good)
        put_text(&state, text);
    fclose(file);
    errno = error;
    return good;
}
