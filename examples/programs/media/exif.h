/* What is read from a photograph's Exif: how it is turned, and the headroom of Apple's gain maps.
 * `data` begins with its TIFF header.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EXIF_H
#define EXIF_H

#include <stddef.h>
#include <stdint.h>

/* 1 to 8; 1 if it is not said. */
unsigned exif_orientation(const uint8_t *data, size_t bytes);

/* How much brighter than SDR white the picture is at most, from the maker's notes; 0 = not said. */
double exif_apple_headroom(const uint8_t *data, size_t bytes);

#endif
