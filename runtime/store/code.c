/* SPDX-License-Identifier: Apache-2.0 */
#include "code.h"
#include "cache.h"

#include <stdint.h>
#include <string.h>

enum { SPIRV_HEAD_BYTES = 20, SPIRV_WORD_BYTES = 4 };

enum cox__code_kind cox__code_kind_of(const void *code, size_t bytes)
{
    static const unsigned char little[] = {0x03, 0x02, 0x23, 0x07},
                               big[] = {0x07, 0x23, 0x02, 0x03};

    if (bytes >= COX__CACHE_HEAD_BYTES &&
        memcmp(code, cox__cache_code.magic, sizeof cox__cache_code.magic) == 0)
        return COX__CODE_FILE;
    if (bytes >= SPIRV_HEAD_BYTES && bytes % SPIRV_WORD_BYTES == 0 &&
        (memcmp(code, little, sizeof little) == 0 || memcmp(code, big, sizeof big) == 0))
        return COX__CODE_SPIRV;
    return COX__CODE_UNKNOWN;
}

const void *cox__code_find(const void *code, size_t bytes, const unsigned char key[32],
                           size_t *entry_bytes, bool *damaged)
{
    const unsigned char *at = code;
    *damaged = false;

    while (bytes > 0) {
        size_t content;
        const enum cox__cache_match match = cox__cache_match(at, bytes, &cox__cache_code, key,
                                                             &content);
        if (match == COX__CACHE_DAMAGED) {
            *damaged = true;
            return NULL;
        }
        if (match == COX__CACHE_FOUND) {
            *entry_bytes = content;
            return at + COX__CACHE_HEAD_BYTES;
        }

        at += COX__CACHE_HEAD_BYTES + content + COX__SHA256_BYTES;
        bytes -= COX__CACHE_HEAD_BYTES + content + COX__SHA256_BYTES;
    }
    return NULL;
}

bool cox__code_append(FILE *file, const unsigned char key[32], const void *data, size_t bytes)
{
    unsigned char head[COX__CACHE_HEAD_BYTES], digest[COX__SHA256_BYTES];
    cox__cache_frame(&cox__cache_code, key, data, bytes, head, digest);

    return fwrite(head, 1, sizeof head, file) == sizeof head &&
           fwrite(data, 1, bytes, file) == bytes &&
           fwrite(digest, 1, sizeof digest, file) == sizeof digest;
}
