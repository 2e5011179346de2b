/* Which kind of compiled code an application gives.
 * SPDX-License-Identifier: Apache-2.0 */
#include "store/code.h"
#include "store/cache.h"

#include <criterion/criterion.h>
#include <string.h>

TestSuite(code, .timeout = 60);

enum { SPIRV_HEAD = 20 };

/* The kind of the first `bytes` bytes of a module that begins with these four. */
static enum cox__code_kind kind_of_module(const char *magic, size_t bytes)
{
    unsigned char module[2 * SPIRV_HEAD] = {0};
    memcpy(module, magic, 4);
    return cox__code_kind_of(module, bytes);
}

/* A module has a head of five words. */
Test(code, spirv_of_either_byte_order_begins_with_a_whole_head)
{
    static const char *const magics[] = {"\x03\x02\x23\x07", "\x07\x23\x02\x03"};
    for (int order = 0; order < 2; order++)
        for (size_t bytes = 0; bytes <= 2 * SPIRV_HEAD; bytes++) {
            const bool whole = bytes >= SPIRV_HEAD && bytes % 4 == 0;
            cr_assert_eq(kind_of_module(magics[order], bytes), whole ? COX__CODE_SPIRV : COX__CODE_UNKNOWN, "%zu bytes",
                         bytes);
        }
}

Test(code, words_that_are_neither_spirv_nor_a_file_are_unknown)
{
    cr_assert_eq(kind_of_module("\177ELF", SPIRV_HEAD), COX__CODE_UNKNOWN);
    cr_assert_eq(kind_of_module("\x03\x02\x23\x08", SPIRV_HEAD), COX__CODE_UNKNOWN);
}

Test(code, a_file_begins_with_the_head_of_an_entry)
{
    static const unsigned char key[32];
    unsigned char head[COX__CACHE_HEAD_BYTES], digest[COX__SHA256_BYTES];
    cox__cache_frame(&cox__cache_code, key, "code", 4, head, digest);
    cr_assert_eq(cox__code_kind_of(head, sizeof head), COX__CODE_FILE);
    cr_assert_eq(cox__code_kind_of(head, sizeof head - 1), COX__CODE_UNKNOWN);
    head[0]++;
    cr_assert_eq(cox__code_kind_of(head, sizeof head), COX__CODE_UNKNOWN);
}
