/* PFM pictures from hostile bytes; picture.h says what is looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/picture.h"
#include "picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || data[0] != 'P')
        return 0;
    return fuzz_picture(data, size, size / 4);
}
