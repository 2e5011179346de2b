/* The options of cox-tonemap, for pictures and for video.
 *
 * Nothing here prints, exits or keeps memory: `struct options` points into argv. The library is
 * needed for the names of operators and policies, and media/ for those of raw formats; no device.
 * Thread-safety: pure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_OPTIONS_H
#define TONEMAP_OPTIONS_H

#include "media/picture.h"
#include "media/video.h"

#include <coxswain/coxswain.h>

/* A step of a film that is mapped in pieces; WHOLE = all at once. */
enum film_step { FILM_WHOLE = 0, FILM_ANALYSE, FILM_STEER, FILM_MAP, FILM_JOIN };

/* The kind of the output; NAME = the output's name decides. */
enum output_kind {
    OUTPUT_NAME = 0,
    OUTPUT_PNG,
    OUTPUT_Y4M,
    OUTPUT_NV12,
    OUTPUT_P010,
    OUTPUT_NULL,
    OUTPUT_MKV,
    OUTPUT_MP4,
    OUTPUT_JPEG /* pictures only */
};

struct options {
    uint64_t given; /* the options of the command line, as bits: OPTION_BIT in option_table.h */
    char **inputs;  /* as on the command line: one or more */
    uint32_t input_count;
    const char *input; /* the current one; at the start the first */
    const char *output;
    const char *stats;
    const char *trace;
    const char *judge; /* a reference to compare the mapped frames with */

    /* For a finished file; NULL = the default. */
    const char *encoder;
    const char *crf;
    const char *preset;

    /* The look. */
    double exposure_stops;
    double peak_nits; /* unless peak_auto */
    double sdr_white_nits;
    double hlg_peak_nits; /* 0 = the default */
    double hdr_nits;      /* of the display that HDR is written for; 0 = SDR is written */
    float desaturate;     /* as in the library's settings */
    float detail;         /* as in the library's settings */
    enum cox_operator op;
    enum cox_dither dither;
    enum cox_gamut gamut;
    enum cox_video_scale scale;
    uint32_t scale_width, scale_height; /* for COX_SCALE_FILTER; 0 = follows from the other side */
    float gamut_knee;                   /* as in the library's settings */
    bool has_dither, has_gamut;
    bool wide, full_range; /* of the output */
    const char *lut;       /* a .cube file that replaces the look; NULL = none */
    bool table;            /* there is no input: the look itself is written as a .cube file */
    uint32_t points;       /* along each side of that; 0 = the default */
    enum output_kind to;
    uint32_t depth;   /* 8, 10 or 16 */
    unsigned quality; /* of a JPEG, 1 to 100 */
    enum picture_alpha alpha;
    const char *layer; /* NULL = the main one */

    /* The format of the stream, if the stream does not name it; see has_... below. */
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    enum cox_color_range range;
    struct video_rational rate; /* 0:0 = not given */
    struct video_raw raw;       /* raw.given: the input is raw frames, whatever its content */

    /* Which frames of the stream. */
    uint64_t start;
    uint64_t frames;        /* 0 = all */
    uint64_t frame;         /* the first of --frame, if that is a number */
    const char *frame_list; /* --frame; NULL = not given */
    uint32_t frame_count;   /* in that list */
    uint32_t sheet_count;   /* frames of a sheet; 0 = no sheet */
    uint32_t sheet_columns, sheet_rows;

    /* A film in pieces: the step, and its frames. */
    enum film_step step;
    bool ranged;                     /* --range FIRST:END was given */
    uint64_t range_first, range_end; /* the end is not included; UINT64_MAX = the film's end */
    uint64_t share, share_count;     /* --share, from 1; a count of 0 = not given */
    const char *scenes;              /* the light of the frames; NULL = the other options decide */
    const char *source;              /* where join takes sound and the rest from; NULL = nowhere */

    /* A piece for a caller of dispatch_run; no option sets these. */
    const struct video_place *place; /* where raw and y4m frames go; NULL = to the output */
    const char *piece;               /* the name it must have, see scenes_piece; NULL = any */

    /* The devices and the split. */
    const char *devices;
    const char *policy;
    struct cox_policy_options policy_options;
    double ratios[COX_DEVICES_MAX]; /* policy_options points to them */
    double verify_share;            /* share of the bands that two devices compute */
    uint64_t repeat;
    enum cox_arithmetic arithmetic;
    enum cox_reserve reserve;
    uint32_t reserve_cpu;
    uint32_t in_flight;

    bool peak_auto;
    bool has_transfer, has_primaries, has_range;
    bool passes_sdr;  /* --transfer auto: frames that name an SDR curve pass */
    bool raw_by_name; /* the input's name ends like one of raw frames, but no size is given */
    bool lookahead;
    bool trust_metadata;
    bool overwrite;
    bool progress_json;
    bool no_cache, strict, hash, verbose, quiet;
    bool verify; /* compare with each device alone, too */
    bool check_kernels;
};

/* One sentence without a full stop. */
struct options_error {
    char text[512];
};

/* Set the text. Returns false, so that a check can `return options_refuse(...)`. */
bool options_refuse(struct options_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The kind that an output's name asks for; OUTPUT_NAME = none. */
enum output_kind options_kind_by_name(const char *output);

/* The name of any kind but OUTPUT_NAME, as --to takes it; and back (OUTPUT_NAME = unknown). */
const char *options_kind_name(enum output_kind kind);
enum output_kind options_find_kind(const char *name);

/* The name of a step; and back (FILM_WHOLE = no step has this name). */
const char *options_step_name(enum film_step step);
enum film_step options_find_step(const char *name);

/* The ending of a file's name without the dot; "" = it has none. */
const char *options_name_ending(const char *path);

/* Place of `text` in a list that ends with NULL; -1 = not found. */
int options_find_word(const char *text, const char *const *words);

/* Whether the output's name is one that only video has. */
bool options_want_video(const struct options *options);

/* Whether the output is raw frames: NV12 or P010. */
bool options_want_raw(const struct options *options);

/* Whether the output is a finished file: Matroska or MP4. */
bool options_want_finished(const struct options *options);

/* A frame in the list of --frame. */
struct frame_place {
    bool timed; /* `seconds` from the film's beginning, instead of `frame` */
    uint64_t frame;
    double seconds;
};

/* Read the next frame of a list, and move to what follows. False at its end, and if it is neither
 * a number nor a time: then the list has not moved to its end. */
bool options_next_frame(const char **list, struct frame_place *place);

/* The last %d or %0Nd in an output's name; NULL = none. */
const char *options_number_pattern(const char *output);

/* A hash of the encoder's options. */
uint64_t options_encoding(const struct options *options);

/* "ewma, static, …" */
void options_policy_names(char *text, size_t bytes);

#endif
