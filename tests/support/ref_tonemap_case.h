/* Pictures to be tested: their memory, what they show, and how far a result is from the reference.
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

/* For its mapping or its analysis. Each row is padded by so many pixels, or as the runtime likes it best, with
 * REF_ALIGNED. The input is that of another picture of the same size and format if `like` is not NULL. */
void ref_picture_open(struct ref_picture *picture, cox_runtime *runtime, const struct cox_tonemap_shape *shape,
                      bool analysis, size_t padding, const struct ref_picture *like);
void ref_picture_close(struct ref_picture *picture);

/* --- What they show ----------------------------------------------------------------------------------------------- */

void ref_picture_put(const struct ref_picture *picture, uint32_t x, uint32_t y, const double rgba[4]);
void ref_picture_put_grey(const struct ref_picture *picture, uint32_t x, uint32_t y, double light);

/* A channel's bits, 16 or 32. */
void ref_picture_put_bits(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel, uint32_t bits);
void ref_picture_stored(const struct ref_picture *picture, uint32_t x, uint32_t y, double rgba[4]);

uint32_t ref_picture_code(const struct ref_picture *picture, uint32_t x, uint32_t y, uint32_t channel);

/* Patches of light over 20 stops, with texture of a third of a stop and a few bright points, some of it coloured. */
void ref_picture_fill_patches(const struct ref_picture *picture, uint32_t seed);

/* --- Judging ------------------------------------------------------------------------------------------------------ */

/* Hold the output against the reference, and add the error to `*error`; `codes` is the distance from its real number.
 * */
void ref_picture_judge(const struct ref_picture *picture, const struct cox_tonemap_settings *settings,
                       struct ref_error *error);

#endif
