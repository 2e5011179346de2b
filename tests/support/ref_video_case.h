/* Test films: shapes as text, their memory, their contents, and the distance of a result from the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_TESTS_REF_VIDEO_CASE_H
#define COX_TESTS_REF_VIDEO_CASE_H

#include "specs.h"
#include "bits_frame.h"
#include "ref_video.h"

/* --- Text --------------------------------------------------------------------------------------------------------- */

/* A shape without pitches:  WIDTHxHEIGHT FORMAT to [WIDTHxHEIGHT] FORMAT [WORD]...
 *
 *   FORMAT  one of
 *             yuv420p10           planar, also 422 and 444
 *             nv12, nv16          semi-planar, 8 bits
 *             p010, p210          semi-planar, 10 bits, or as many as it says
 *             rgba8, bgra16, gbrp12, v210
 *           followed by values other than the default: centre, topleft, full
 *   WORD    the name of an operator; hlg, light (linear), fade, dither, compress, half, srgb, pq, wide (BT.2020 out),
 *           reshape; primaries: bt709, p3, dci, 525, 625; the matrix: matrix2020, matrix709, matrix601
 *
 * A text that cannot be read ends the program. */
struct cox_video_shape ref_shape(const char *text);
struct cox_video_format ref_format(const char *text);

/* The text of a shape. It is valid until the fourth call after this one. */
const char *ref_shape_text(const struct cox_video_shape *shape);

enum { REF_420 = 0, REF_422 = 1, REF_444 = 2 }; /* subsampling */

/* Semi-planar samples of 9 .. 15 bits lie in the upper bits. Formats with one plane have the full range. */
struct cox_video_format ref_format_of(enum cox_video_layout layout, uint32_t depth, int sub,
                                      enum cox_chroma_location site, enum cox_color_range range);

/* --- Memory ------------------------------------------------------------------------------------------------------- */

enum ref_pipeline { REF_MAPPING, REF_MAPPING_AND_ANALYSIS, REF_ANALYSIS };

struct ref_film {
    struct cox_video_shape shape; /* with its pitches */
    uint32_t width, height;       /* of the output */
    uint32_t in_count, out_count;
    uint32_t out_first;      /* index of the first plane out; a table is before it */
    uint32_t histogram;      /* index of its plane */
    struct bits_frame frame; /* planes in, planes out, histogram, and the scratch of the pipeline */
    struct cox__pipeline_storage storage;
    struct cox__session_spec session; /* of the pipeline for which it was opened */
};

enum { REF_ALIGNED = 1000 };

/* Open a film. Each row is padded to whole words, and by `words` more; REF_ALIGNED = to the pitch that the runtime
 * prefers, so that cuts cost nothing. If `like` is not NULL, the inputs are those of another film of the same
 * shape. */
void ref_film_open(struct ref_film *film, cox_runtime *runtime, const struct cox_video_shape *shape,
                   enum ref_pipeline pipeline, size_t words, const struct ref_film *like);
void ref_film_close(struct ref_film *film);

/* The session of a pipeline. Its storage belongs to the film. */
cox_status ref_film_session(struct ref_film *film, enum ref_pipeline pipeline, struct cox__session_spec *session);

/* The planes of the input, NULL after the last one. */
void ref_film_inputs(const struct ref_film *film, void *in[COX_VIDEO_PLANES_MAX]);

/* A sample of an output plane. */
uint32_t ref_film_output(const struct ref_film *film, uint32_t plane, size_t index, uint32_t y);

const uint32_t *ref_film_histogram(const struct ref_film *film);
double ref_film_mean_luma(const struct ref_film *film, uint32_t x, uint32_t y, uint32_t width, uint32_t height);

/* --- Contents ----------------------------------------------------------------------------------------------------- */

/* Set a pixel to this signal, 0 .. 1, or to this light if the film is linear. A chroma sample gets the value of the
 * pixel at its place. */
void ref_film_put(const struct ref_film *film, uint32_t x, uint32_t y, const double rgb[3]);

/* Set the code of a sample of an input plane. v210: of a word, which is three codes. */
void ref_film_put_sample(const struct ref_film *film, uint32_t plane, uint32_t row, size_t index, uint32_t code);

/* Eight rows each of noise, a ramp of grey, blocks of saturated colours, and the ends of the scale. */
void ref_film_fill_stripes(const struct ref_film *film, uint32_t seed);

/* Draw a reshaping: curves near the identity that have up to `pieces` pieces, of both kinds, and the colours of Dolby
 * Vision's profile 5 or 8. The curves are continuous. */
void ref_reshape_draw(struct cox_video_reshape *reshape, uint32_t pieces, uint32_t *seed);

/* Write the table of a reshaping to a film of such a shape. */
void ref_film_put_reshape(const struct ref_film *film, const struct cox_video_reshape *reshape);

/* Films for the operator `local`: each layout, depth, subsampling and transfer at least once. */
enum { REF_LOCAL_FILMS = 11 };
extern const char *const ref_local_films[REF_LOCAL_FILMS];

/* Patches of colour with noise of 1 % of the signal. */
void ref_film_fill_patches(const struct ref_film *film, uint32_t seed, uint32_t noise);

/* --- Comparison --------------------------------------------------------------------------------------------------- */

struct ref_error {
    double codes;          /* largest distance from the reference's real number, beyond that of rounding or dither */
    double distance;       /* largest distance from the reference's real number */
    uint32_t steps;        /* largest distance from the reference's code */
    uint32_t off, samples; /* samples with another code than the reference's, and all */
    uint32_t plane, x, y, got; /* where `steps` is */
    double wanted;
};

/* Compare the output with the reference and add the error to `*error`. */
void ref_film_judge(const struct ref_film *film, const struct cox_video_settings *settings, struct ref_error *error);
void ref_error_add(struct ref_error *to, const struct ref_error *from);
const char *ref_error_text(const struct ref_error *error);

/* Whether the histogram is the reference's, apart from blocks within `tolerance` bins of an edge. If not, `*bin` is
 * the first wrong one. */
bool ref_film_counted(const struct ref_film *film, const struct cox_video_settings *settings, double tolerance,
                      uint32_t *bin);

#endif
