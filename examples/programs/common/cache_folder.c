/* With sha256.c the only file of the programs that uses internal functions of the library. So the library's checks
 * against other users' writes and links hold for all files in the folder.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cache_folder.h"
#include "store/cache.h"

#include <stdio.h>
#include <stdlib.h>

static const struct cox__cache_kind indexes = {.what = "film indexes",
                                               .magic = {'C', 'O', 'X', 'I', 'D', 'X', 0, 1},
                                               .suffix = ".index",
                                               .bytes_max = 1U << 30,
                                               .files_max = 64,
                                               .write_failed = COX_LOG_INFO};

const char *cache_folder(char *path, size_t bytes)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;

    if (base && *base == '/')
        length = snprintf(path, bytes, "%s/coxswain", base);
    else if (home && *home == '/')
        length = snprintf(path, bytes, "%s/.cache/coxswain", home);
    if (length <= 0 || (size_t)length >= bytes)
        return NULL;
    return path;
}

static void hash_key(const void *key, size_t key_bytes, unsigned char hash[COX__SHA256_BYTES])
{
    struct cox__digest sha;
    cox__digest_begin(&sha);
    cox__cache_feed(&sha, key, key_bytes);
    cox__digest_end(&sha, hash);
}

/* Without a log: the kernel cache, in the same folder, says why the folder is not used. */
void *cache_load(const char *folder, const void *key, size_t key_bytes, size_t *bytes)
{
    unsigned char hash[COX__SHA256_BYTES];
    hash_key(key, key_bytes, hash);
    return cox__cache_load(folder, &indexes, hash, bytes, NULL);
}

void cache_store(const char *folder, const void *key, size_t key_bytes, const void *data,
                 size_t bytes)
{
    unsigned char hash[COX__SHA256_BYTES];
    hash_key(key, key_bytes, hash);
    cox__cache_store(folder, &indexes, hash, data, bytes, NULL);
}
