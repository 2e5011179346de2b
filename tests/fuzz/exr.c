/* OpenEXR pictures from hostile bytes; picture.h says what is looked at. What is ours is the front: which part,
 * windows, channels and chunks are believed, and the unpacking. OpenEXRCore, which reads and decompresses, is not
 * instrumented: of it only what crashes or reaches memory that the front reads is seen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/picture.h"
#include "picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 4 || memcmp(data, "\x76\x2f\x31\x01", 4) != 0)
        return 0;
    /* A frame of 8K may be black without being stored; beyond that, 64 for each pixel that is, in PXR24 at best. */
    return fuzz_picture(data, size, (UINT64_C(1) << 25) + size * 1376 / 2 * 64);
}
