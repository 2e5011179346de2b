/* Films to be tested: shapes as text, their memory, what they show, and how far a result is from the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_VIDEO_CASE_H
#define COX_TESTS_REF_VIDEO_CASE_H

#include "specs.h"
#include "bits_frame.h"
#include "ref_video.h"

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* A shape without pitches:  WIDTHxHEIGHT FORMAT to [WIDTHxHEIGHT] FORMAT [WORD]...
 *
 *   FORMAT  yuv420p10 (planar, also 422 and 444), nv12 or nv16 (semi-planar, 8 bits), p010 or p210 (semi-planar, 10
 *   bits
 *           or as many as it says), rgba8, bgra16, gbrp12, v210; after it, if they are not the first value of their
 *           kind: centre, topleft, full
 *   WORD    the name of an operator; hlg, light (linear), bt709, fade, dither, compress, half
 *
 * A text that cannot be read ends the program. */
struct cox_video_shape ref_shape(const char *text);
struct cox_video_format ref_format(const char *text);

/* The text of a shape; it lasts until the fourth call from then. */
const char *ref_shape_text(const struct cox_video_shape *shape);

enum { REF_420 = 0, REF_422 = 1, REF_444 = 2 }; /* subsampling */

/* Semi-planar samples of 9 .. 15 bits lie in the upper bits; pixels in one plane have the full range. */
struct cox_video_format ref_format_of(enum cox_video_layout layout, uint32_t depth, int sub,
                                      enum cox_chroma_location site, enum cox_color_range range);

/* --- Memory ------------------------------------------------------------------------------------------------------- */

enum ref_pipeline { REF_MAPPING, REF_MAPPING_AND_ANALYSIS, REF_ANALYSIS };

struct ref_film {
    struct cox_video_shape shape; /* with its pitches */
    uint32_t width, height;       /* of the output */
    uint32_t in_count, out_count;
    uint32_t histogram;      /* which plane it is */
    struct bits_frame frame; /* planes in, planes out, histogram, and the scratch of the pipeline */
    struct cox__pipeline_storage storage;
    struct cox__session_spec session; /* of the pipeline that it was opened for */
};

enum { REF_ALIGNED = 1000 };

/* Each row is padded to whole words, and by `words` more; REF_ALIGNED: as the runtime likes it best, so that cuts are
 * free. The inputs are those of another film of the same shape if `like` is not NULL. */
void ref_film_open(struct ref_film *film, cox_runtime *runtime, const struct cox_video_shape *shape,
                   enum ref_pipeline pipeline, size_t words, const struct ref_film *like);
void ref_film_close(struct ref_film *film);

/* The session of a pipeline; its storage is the film's. */
cox_status ref_film_session(struct ref_film *film, enum ref_pipeline pipeline, struct cox__session_spec *session);

/* The planes of the input, NULL after the last one. */
void ref_film_inputs(const struct ref_film *film, void *in[COX_VIDEO_PLANES_MAX]);

/* A sample of an output plane. */
uint32_t ref_film_output(const struct ref_film *film, uint32_t plane, size_t index, uint32_t y);

const uint32_t *ref_film_histogram(const struct ref_film *film);
double ref_film_mean_luma(const struct ref_film *film, uint32_t x, uint32_t y, uint32_t width, uint32_t height);

/* --- Pictures ----------------------------------------------------------------------------------------------------- */

/* A pixel of this signal, 0 .. 1; of this light if the film is linear. Chroma is that of the pixel it lies at. */
void ref_film_put(const struct ref_film *film, uint32_t x, uint32_t y, const double rgb[3]);

/* The code of a sample of an input plane, whatever it is of; v210: a word, which is three codes. */
void ref_film_put_sample(const struct ref_film *film, uint32_t plane, uint32_t row, size_t index, uint32_t code);

/* Eight rows each of noise, a ramp of grey, blocks of saturated colours, and the ends of the scale. */
void ref_film_fill_stripes(const struct ref_film *film, uint32_t seed);

/* Films for the operator local: layouts, depths, subsamplings and transfers, each at least once. */
enum { REF_LOCAL_FILMS = 11 };
extern const char *const ref_local_films[REF_LOCAL_FILMS];

/* Patches of colour with noise of 1 % of the signal. */
void ref_film_fill_patches(const struct ref_film *film, uint32_t seed, uint32_t noise);

/* --- Judging ------------------------------------------------------------------------------------------------------ */

struct ref_error {
    double codes;    /* largest distance from the reference's real number, beyond what rounding or dither moves it */
    double distance; /* largest distance from the reference's real number */
    uint32_t steps;  /* largest distance from the reference's code */
    uint32_t off, samples;     /* with another code than the reference's, of so many */
    uint32_t plane, x, y, got; /* where `steps` is */
    double wanted;
};

/* Hold the output against the reference, and add the error to `*error`. */
void ref_film_judge(const struct ref_film *film, const struct cox_video_settings *settings, struct ref_error *error);
void ref_error_add(struct ref_error *to, const struct ref_error *from);
const char *ref_error_text(const struct ref_error *error);

/* Whether the histogram is the reference's, but for blocks within `tolerance` bins of an edge; if not, *bin says
 * where. */
bool ref_film_counted(const struct ref_film *film, const struct cox_video_settings *settings, double tolerance,
                      uint32_t *bin);

#endif
