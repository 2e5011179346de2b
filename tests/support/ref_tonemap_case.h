/* Test pictures: their memory, their contents, and the distance of a result from the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_TONEMAP_CASE_H
#define COX_TESTS_REF_TONEMAP_CASE_H

#include "specs.h"
#include "ref_tonemap.h"
#include "ref_video_case.h"

struct ref_picture {
    struct cox_tonemap_shape shape; /* with its pitches */
    struct bits_frame frame;        /* the picture, the output or the histogram, and the scratch of the pipeline */
    struct cox__pipeline_storage storage;
    struct cox__session_spec session;
};

/* Open a picture for mapping or analysis. Each row is padded by `padding` pixels; REF_ALIGNED = to the pitch that
 * the runtime prefers. If `like` is not NULL, the input is that of another picture of the same size and format. */
void ref_picture_open(struct ref_picture *picture, cox_runtime *runtime, const struct cox_tonemap_shape *shape,
                      bool analysis, size_t padding, const struct ref_picture *like);
void ref_picture_close(struct ref_picture *picture);

/* --- Contents ----------------------------------------------------------------------------------------------------- */

void ref_picture_put(const struct ref_picture *picture, uint32_t x, uint32_t y, const double rgba[4]);
void ref_picture_put_grey(const struct ref_picture *picture, uint32_t x, uint32_t y, double light);

/* The bits of a channel, 16 or 32. */
void ref_picture_put_bits(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel, uint32_t bits);
void ref_picture_stored(const struct ref_picture *picture, uint32_t x, uint32_t y, double rgba[4]);

uint32_t ref_picture_code(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel);

/* Patches of light over 20 stops, with texture of a third of a stop and a few bright points. Some are coloured. */
void ref_picture_fill_patches(const struct ref_picture *picture, uint32_t seed);

/* --- Comparison --------------------------------------------------------------------------------------------------- */

/* Compare the output with the reference and add the error to `*error`. `codes` is the distance from the reference's
 * real number. */
void ref_picture_judge(const struct ref_picture *picture, const struct cox_tonemap_settings *settings,
                       struct ref_error *error);

#endif
