/* Radiance pictures from hostile bytes; picture.h says what is looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/picture.h"
#include "picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || memcmp(data, "#?", 2) != 0)
        return 0;
    /* A row may be one run. */
    return fuzz_picture(data, size, (uint64_t)size / 4 * PICTURE_SIDE_MAX);
}
