/* The list of writable arguments at the beginning of an entry of the kernel cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(opencl_writable, .timeout = 60);

static const char list[] = "blur 2 out\0blur 11 \0blur_more 0 in\0";

Test(opencl_writable, an_argument_is_found_by_its_kernel_and_index)
{
    cr_assert_str_eq(cox__cl_writable_find(list, "blur", 2), "out");
    cr_assert_str_eq(cox__cl_writable_find(list, "blur", 11), "");
    cr_assert_str_eq(cox__cl_writable_find(list, "blur_more", 0), "in");
    cr_assert_null(cox__cl_writable_find(list, "blur", 0));
    cr_assert_null(cox__cl_writable_find(list, "blur", 1));
    cr_assert_null(cox__cl_writable_find(list, "blu", 2));
    cr_assert_null(cox__cl_writable_find(list, "blur_more", 2));
    cr_assert_null(cox__cl_writable_find("", "blur", 2));
}

Test(opencl_writable, its_end_is_found_with_a_binary_behind_it)
{
    char entry[sizeof list + 5];
    memcpy(entry, list, sizeof list);
    memcpy(entry + sizeof list, "\0ELF", 5);
    cr_assert_eq(cox__cl_writable_bytes(entry, sizeof entry), sizeof list);
    cr_assert_eq(cox__cl_writable_bytes("\0binary", 7), 1);
}

Test(opencl_writable, a_list_that_is_cut_anywhere_has_no_end)
{
    for (size_t bytes = 0; bytes < sizeof list; bytes++) {
        char *cut = malloc(bytes ? bytes : 1);
        memcpy(cut, list, bytes);
        cr_assert_eq(cox__cl_writable_bytes(cut, bytes), 0, "%zu", bytes);
        free(cut);
    }
}
