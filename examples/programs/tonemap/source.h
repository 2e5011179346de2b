/* The source of a film and its look. The options decide first, then the metadata of the stream,
 * then defaults for usual HDR video. All this happens before any device works.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_SOURCE_H
#define TONEMAP_SOURCE_H

#include "film_plan.h"
#include "options.h"

/* `options` is set by the caller, all other fields are zero. */
struct source {
    const struct options *options;
    struct video_input *input;
    const struct video_format *format;
    struct video_format target;     /* of the output's frames */
    double known_peak_nits;         /* from the metadata; 0 = none */
    const char *known_peak;         /* what the metadata calls it */
    double odd_peak_nits;           /* an impossible one from the metadata; 0 = none */
    bool assumed;                   /* the transfer curve of some frames is PQ by default */
    bool passes_sdr;                /* frames that name an SDR curve pass: some frames are HDR */
    bool told_sdr;                  /* a warning about the first of them was printed */
    bool looked_up;                 /* `lut_transfer` is set */
    enum cox_transfer lut_transfer; /* of the frames that --lut maps */
    struct film_plan plan;          /* shape, size, settings and steering are set here */
};

/* Open the input; the caller closes `input`. Here and below: false after printing why. */
bool source_open(struct source *from);

/* Print what may be wrong with the frames that were read, after the last one. False if the film is
 * damaged, and with --strict if there is anything. */
bool source_was_sound(const struct source *from);
bool source_input_sound(struct video_input *input, const char *path, bool strict);

/* Formats, sizes, colours: `target`, `assumed`, and the plan's shape and size. */
bool source_choose_shape(struct source *from);

/* Make a plan of this source fit frames of these colours, from frame `frame` on. This sets the
 * known peak, and what the options have not chosen of the shape's colours. Warns if the transfer
 * curve is a guess, and where SDR begins to pass.
 * False, and `error` names the frame and says why, if such frames cannot be mapped. */
bool source_recolour(struct source *from, struct film_plan *plan, uint64_t frame,
                     const struct video_colours *colours, struct error *error);

/* The settings that the options choose, but for the peak. */
struct cox_video_settings source_settings(const struct options *options);

/* The plan's settings and steering, and the peak of the metadata. */
void source_choose_light(struct source *from);

/* The size of the output frames of a shape. */
void source_out_size(const struct cox_video_shape *shape, uint32_t *width, uint32_t *height);

/* `target` and the plan's size, from the plan's shape. */
void source_set_target(struct source *from);

/* The luminance that becomes SDR white. */
double source_white_nits(const struct options *options);

bool source_is_packed_rgb(const struct cox_video_format *pixel);

#endif
