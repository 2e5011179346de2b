/* Which frames of a film become stills, and where they go: each to a PNG, or all to one sheet.
 *
 * The film gives the frames in its own order, each one once. The options may name them in any
 * order, also twice.
 * Thread-safety: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_STILLS_H
#define TONEMAP_STILLS_H

#include "options.h"
#include "still.h"

struct stills_wish {
    uint64_t frame;
    uint32_t place; /* from 0, as the options name them */
};

struct stills {
    const struct options *options;
    struct stills_wish *wishes; /* by frame */
    uint32_t wish_count;
    uint64_t *frames; /* rising */
    uint32_t frame_count;

    struct still one; /* the last that was written, or a cell of the sheet */
    uint32_t taken;   /* frames */
    uint32_t written; /* wishes */
    struct picture_output *sheet;
    uint32_t sheet_width, sheet_height;
    uint8_t *cells; /* the pixels of the sheet */
};

/* Choose the frames as the options say. False after printing why there are none such. */
bool stills_choose(struct stills *stills, const struct options *options, struct video_input *input);

/* Before the first frame. Opens the first output, so that it is refused before any work. */
bool stills_begin(struct stills *stills, const struct video_format *format, struct error *error);

/* The next of `frames`, as it comes from the devices. */
bool stills_take(struct stills *stills, const struct video_format *format, const uint8_t *pixels,
                 size_t pitch_bytes, struct error *error);

/* Write the sheet, or drop what is not finished if `good` is false. Accepts stills that have not
 * begun. */
bool stills_close(struct stills *stills, bool good, struct error *error);

/* The name of the output at a place; NULL = out of memory. The caller frees it. */
char *stills_name(const struct stills *stills, uint32_t place);

void stills_free(struct stills *stills);

#endif
