/* The segments that make two JPEGs one HDR picture: the SDR picture, and its gain map behind it.
 *
 *   XMP            Adobe's gain map (hdrgm) and Google's directory of containers (Ultra HDR 1.1)
 *   ISO 21496-1    the same numbers in binary form, annex C
 *   MPF            CIPA DC-007: sizes and places of both
 *
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ULTRA_HDR_H
#define ULTRA_HDR_H

#include "gain_map_make.h"

enum { ULTRA_HDR_BYTES_MAX = 4096 };

struct ultra_hdr_segments {
    uint8_t data[ULTRA_HDR_BYTES_MAX];
    size_t bytes;
};

/* The segments of the gain map, whose other bytes follow them. */
void ultra_hdr_of_map(struct ultra_hdr_segments *segments, const struct gain_map_made *map);

/* The segments of the SDR picture. They go after its first `before_bytes` bytes. `own_bytes` are
 * those of the picture without, `map_bytes` those of the whole gain map. */
void ultra_hdr_of_base(struct ultra_hdr_segments *segments, size_t before_bytes, size_t own_bytes,
                       size_t map_bytes);

#endif
