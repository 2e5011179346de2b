/* Everything that cox-devices shows of a machine, copied out of the runtime; as text and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_LISTING_H
#define DEVICES_LISTING_H

#include "measure.h"
#include "missing.h"

enum { NOTES_MAX = 16, LEFT_OUT_MAX = 16, NUMBER_BYTES = 32 };

struct listing {
    struct cox_host_info host;
    uint32_t platform_count;
    struct cox_platform_info *platforms;
    uint32_t device_count;
    struct cox_device_info *devices;
    enum cox_arithmetic arithmetic;
    struct measured *measured; /* of each device; NULL = not measured */
    struct missing missing;

    /* What the default selection leaves out; none if there is a selection. */
    uint32_t left_out_count;
    struct cox_left_out left_out[LEFT_OUT_MAX];

    /* Warnings of the library. */
    uint32_t note_count;
    char notes[NOTES_MAX][256];
};

/* "0.1", or "0.1#2" for a sub-device. */
void listing_number(const struct cox_device_info *device, char text[NUMBER_BYTES]);

void listing_print_text(const struct listing *listing); /* listing_text.c */
void listing_print_json(const struct listing *listing); /* listing_json.c */

#endif
