/* SPDX-License-Identifier: Apache-2.0 */
#include "exif.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A folder of TIFF entries, and the data that their offsets are in. */
struct folder {
    const uint8_t *data;
    size_t bytes, at;
    bool little_endian;
};

struct entry {
    uint32_t type, count;
    size_t value; /* the offset of its value */
};

enum { ENTRY_BYTES = 12, TYPE_SHORT = 3, TYPE_LONG = 4, TYPE_SRATIONAL = 10 };

/* A number of `size` bytes; 0 beyond the end. */
static uint32_t number(const struct folder *folder, size_t at, unsigned size)
{
    uint32_t value = 0;
    if (at > folder->bytes || folder->bytes - at < size)
        return 0;

    for (unsigned i = 0; i < size; i++)
        value = value << 8 | folder->data[at + (folder->little_endian ? size - 1 - i : i)];
    return value;
}

static bool open_tiff(const uint8_t *data, size_t bytes, struct folder *folder)
{
    if (bytes < 8 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0))
        return false;

    *folder = (struct folder){data, bytes, 0, data[0] == 'I'};
    folder->at = number(folder, 4, 4);
    return true;
}

static bool find(const struct folder *folder, unsigned tag, struct entry *out)
{
    const uint32_t count = number(folder, folder->at, 2);

    for (uint32_t i = 0; i < count; i++) {
        const size_t at = folder->at + 2 + (size_t)i * ENTRY_BYTES;
        if (at + ENTRY_BYTES > folder->bytes)
            return false;
        if (number(folder, at, 2) != tag)
            continue;

        *out = (struct entry){number(folder, at + 2, 2), number(folder, at + 4, 4), at + 8};
        if (out->type != TYPE_SHORT && out->type != TYPE_LONG && out->count > 0)
            out->value = number(folder, at + 8, 4);
        return true;
    }
    return false;
}

unsigned exif_orientation(const uint8_t *data, size_t bytes)
{
    enum { TAG = 0x0112 };
    struct folder folder;
    struct entry entry;
    if (!open_tiff(data, bytes, &folder) || !find(&folder, TAG, &entry) || entry.type != TYPE_SHORT)
        return 1;

    const uint32_t value = number(&folder, entry.value, 2);
    return value >= 1 && value <= 8 ? value : 1;
}

static bool find_rational(const struct folder *folder, unsigned tag, double *value)
{
    struct entry entry;
    if (!find(folder, tag, &entry) || entry.type != TYPE_SRATIONAL)
        return false;

    const int32_t over = (int32_t)number(folder, entry.value, 4);
    const int32_t under = (int32_t)number(folder, entry.value + 4, 4);
    *value = (double)over / under;
    return under != 0;
}

/* Apple, "Applying Apple HDR effect to your photos": the notes 33 and 48 give stops. */
double exif_apple_headroom(const uint8_t *data, size_t bytes)
{
    enum { TAG_EXIF = 0x8769, TAG_NOTES = 0x927c, TAG_HEADROOM = 33, TAG_GAIN = 48 };
    static const char magic[] = "Apple iOS\0\0\1MM";
    enum { MAGIC_BYTES = sizeof magic - 1 };
    struct folder folder;
    struct entry entry;
    double headroom, gain, stops;

    if (!open_tiff(data, bytes, &folder) || !find(&folder, TAG_EXIF, &entry))
        return 0;
    folder.at = number(&folder, entry.value, 4);
    if (!find(&folder, TAG_NOTES, &entry) || entry.value > bytes ||
        bytes - entry.value < MAGIC_BYTES || memcmp(data + entry.value, magic, MAGIC_BYTES) != 0)
        return 0;

    const struct folder notes = {data + entry.value, bytes - entry.value, MAGIC_BYTES, false};
    if (!find_rational(&notes, TAG_HEADROOM, &headroom) || !find_rational(&notes, TAG_GAIN, &gain))
        return 0;

    if (headroom < 1)
        stops = gain <= 0.01 ? -20 * gain + 1.8 : -0.101 * gain + 1.601;
    else
        stops = gain <= 0.01 ? -70 * gain + 3 : -0.303 * gain + 2.303;
    return exp2(fmin(fmax(stops, 0), 8));
}
