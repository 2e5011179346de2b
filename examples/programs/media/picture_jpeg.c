/* JPEG
 * SPDX-License-Identifier: Apache-2.0 */
#include "photo.h"

#include <string.h>

static bool jpeg_matches(const uint8_t *data, size_t bytes)
{
    return bytes >= 3 && !memcmp(data, "\xff\xd8\xff", 3);
}
const struct picture_kind picture_kind_jpeg = {
    .matches = jpeg_matches,
    .missing = "a JPEG picture, but this program was built without libjpeg (Debian: libjpeg-dev)"};
