/* The list of kernels' arguments at the beginning of an entry of the kernel cache.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/internal.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(opencl_argument_list, .timeout = 60);

static const char list[] = "blur 2 g-- float4*\tout\0blur 11 v-- struct S\t\0blur 3 ir- image2d_t\tpicture\0"
                           "blur_more 0 g-c uint*\tin\0";

Test(opencl_argument_list, an_argument_is_found_by_its_kernel_and_index)
{
    struct cox__cl_argument found;
    cr_assert(cox__cl_argument_list_find(list, "blur", 2, &found));
    cr_assert(found.kind == COX__CL_ARGUMENT_GLOBAL && !found.is_const);
    cr_assert_str_eq(found.type, "float4*");
    cr_assert_str_eq(found.name, "out");

    cr_assert(cox__cl_argument_list_find(list, "blur", 11, &found));
    cr_assert(found.kind == COX__CL_ARGUMENT_VALUE);
    cr_assert_str_eq(found.type, "struct S");
    cr_assert_str_eq(found.name, "");

    cr_assert(cox__cl_argument_list_find(list, "blur", 3, &found));
    cr_assert(found.kind == COX__CL_ARGUMENT_IMAGE && found.access == 'r');
    cr_assert(cox__cl_argument_list_find(list, "blur_more", 0, &found));
    cr_assert(found.is_const);
}

Test(opencl_argument_list, what_is_not_listed_is_not_found)
{
    struct cox__cl_argument found;
    cr_assert(!cox__cl_argument_list_find(list, "blur", 0, &found));
    cr_assert(!cox__cl_argument_list_find(list, "blur", 1, &found));
    cr_assert(!cox__cl_argument_list_find(list, "blu", 2, &found));
    cr_assert(!cox__cl_argument_list_find(list, "blur_more", 2, &found));
    cr_assert(!cox__cl_argument_list_find("", "blur", 2, &found));
}

Test(opencl_argument_list, a_damaged_entry_is_not_found)
{
    static const char *const damaged[] = {"f 0\0", "f 0 \0", "f 0 g--\0", "f 0 g-- int*\0", "f 0 g--int*\tx\0"};
    struct cox__cl_argument found;
    for (size_t i = 0; i < sizeof damaged / sizeof *damaged; i++)
        cr_expect(!cox__cl_argument_list_find(damaged[i], "f", 0, &found), "%s", damaged[i]);
}

Test(opencl_argument_list, a_long_type_counts_as_unknown)
{
    char entry[256] = "f 0 v-- ";
    memset(entry + 8, 'x', 100);
    memcpy(entry + 108, "\tname", 6);
    struct cox__cl_argument found;
    cr_assert(cox__cl_argument_list_find(entry, "f", 0, &found));
    cr_assert_str_eq(found.type, "");
    cr_assert_str_eq(found.name, "name");
}

Test(opencl_argument_list, its_end_is_found_with_a_binary_behind_it)
{
    char entry[sizeof list + 5];
    memcpy(entry, list, sizeof list);
    memcpy(entry + sizeof list, "\0ELF", 5);
    cr_assert_eq(cox__cl_argument_list_bytes(entry, sizeof entry), sizeof list);
    cr_assert_eq(cox__cl_argument_list_bytes("\0binary", 7), 1);
}

Test(opencl_argument_list, a_list_that_is_cut_anywhere_has_no_end)
{
    for (size_t bytes = 0; bytes < sizeof list; bytes++) {
        char *cut = malloc(bytes ? bytes : 1);
        memcpy(cut, list, bytes);
        cr_assert_eq(cox__cl_argument_list_bytes(cut, bytes), 0, "%zu", bytes);
        free(cut);
    }
}
