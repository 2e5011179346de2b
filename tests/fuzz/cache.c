/* Fuzz target: files of the kernel cache. Whatever is read must be exactly what was stored under that key.
 * unit/store/cache.c tests what happens to damaged files and to files of other users.
 *
 * No fuzzer finds a checksum, so the first byte says what to correct in the file that follows:
 *   Bit 0: the magic number and the key.
 *   Bit 1: the length.
 *   Bit 2: the checksum.
 *   Bit 3: read the entry of another key.
 *   Bit 4: the file ends before its stated size.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fuzz.h"
#include "store/cache.h"
#include "base/digest.h"

#include <sys/mman.h>
#include <unistd.h>

enum { KEY = 8, LENGTH = 40, HEAD = 48, DIGEST = COX__SHA256_BYTES, FRAME = HEAD + DIGEST, FILE_MAX = 4096 };
enum { RIGHT_HEAD = 1, RIGHT_LENGTH = 2, RIGHT_DIGEST = 4, OTHER_KEY = 8, CUT = 16 };

static const unsigned char good_magic[8] = {'C', 'O', 'X', 'B', 'I', 'N', 0, 3};

/* Correct the parts that `what` names. */
static void put_right(uint8_t *file, size_t size, unsigned what, const unsigned char *file_key)
{
    if (size < FRAME)
        return;
    if (what & RIGHT_HEAD) {
        memcpy(file, good_magic, sizeof good_magic);
        memcpy(file + KEY, file_key, DIGEST);
    }
    for (size_t i = 0; what & RIGHT_LENGTH && i < 8; i++)
        file[LENGTH + i] = (uint8_t)((uint64_t)(size - FRAME) >> (8 * i));
    if (what & RIGHT_DIGEST) {
        struct cox__digest sha;
        cox__digest_begin(&sha);
        cox__digest_feed(&sha, file, size - DIGEST);
        cox__digest_end(&sha, file + size - DIGEST);
    }
}

/* Checks magic number, key, length and checksum independently of the loader. */
static bool is_entry(const uint8_t *file, size_t size, const unsigned char *wanted)
{
    uint8_t right[FRAME], digest[DIGEST];
    struct cox__digest sha;
    if (size < FRAME)
        return false;
    memset(right, 0, sizeof right);
    put_right(right, sizeof right, RIGHT_HEAD, wanted);
    for (size_t i = 0; i < 8; i++)
        right[LENGTH + i] = (uint8_t)((uint64_t)(size - FRAME) >> (8 * i));
    if (memcmp(right, file, HEAD) != 0)
        return false;
    cox__digest_begin(&sha);
    cox__digest_feed(&sha, file, size - DIGEST);
    cox__digest_end(&sha, digest);
    return !memcmp(digest, file + size - DIGEST, DIGEST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    unsigned char file[FILE_MAX], key[DIGEST];
    const char *damage;
    size_t bytes = 1;
    if (size < 1 || size > sizeof file)
        return 0;
    unsigned what = *data++;
    size--;
    for (size_t i = 0; i < sizeof key; i++)
        key[i] = (unsigned char)(i * 7 + 1);
    if (size)
        memcpy(file, data, size);
    put_right(file, size, what, key);
    if (what & OTHER_KEY)
        key[0] ^= 1;
    if (fd < 0)
        fd = memfd_create("entry", MFD_CLOEXEC);
    CHECK(fd >= 0 && pwrite(fd, file, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);

    unsigned char *payload = cox__cache_read(fd, size + (what & CUT ? 1 : 0), &cox__cache_kernels, key, &bytes,
                                             &damage);
    bool good = !(what & CUT) && is_entry(file, size, key);
    CHECK(!payload == !good && !payload == !!damage);
    CHECK(good ? bytes == size - FRAME && !memcmp(payload, file + HEAD, bytes) : bytes == 0);
    free(payload);
    return 0;
}
