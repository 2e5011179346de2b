/* SPDX-License-Identifier: Apache-2.0 */
#include "picture_kinds.h"

bool picture_check_size(int64_t width, int64_t height, struct error *error)
{
    if (width <= 0 || height <= 0)
        return error_set(error, "the picture has no pixels (%lld x %lld)", (long long)width,
                         (long long)height);

    if (width > PICTURE_SIDE_MAX || height > PICTURE_SIDE_MAX ||
        (uint64_t)width * (uint64_t)height > PICTURE_PIXELS_MAX)
        return error_set(
            error,
            "the picture is too large: %lld x %lld pixels; at most %d on a side and %llu in all",
            (long long)width, (long long)height, PICTURE_SIDE_MAX,
            (unsigned long long)PICTURE_PIXELS_MAX);
    return true;
}
