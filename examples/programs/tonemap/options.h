/* The command line of cox-tonemap, for pictures and for video.
 *
 * The parser only reads: it prints nothing, never exits and leaves nothing behind but `options`, which points into
 * argv. It needs the library (names of operators and policies) and common/video.c (names of raw formats), no devices.
 * Thread-safety: getopt has global state: one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_OPTIONS_H
#define TONEMAP_OPTIONS_H

#include "media/picture.h"
#include "media/video.h"

#include <coxswain/coxswain.h>

/* A step of a film that is mapped in pieces; WHOLE = all at once. */
enum film_step { FILM_WHOLE = 0, FILM_ANALYSE, FILM_STEER, FILM_MAP, FILM_JOIN };

/* What the output is; NAME = to be told by its name. */
enum output_kind {
    OUTPUT_NAME = 0,
    OUTPUT_PNG,
    OUTPUT_Y4M,
    OUTPUT_NV12,
    OUTPUT_P010,
    OUTPUT_NULL,
    OUTPUT_MKV,
    OUTPUT_MP4
};

struct options {
    uint64_t given; /* which options were on the command line; see options_suit */
    char **inputs;  /* as on the command line: one or more */
    uint32_t input_count;
    const char *input; /* the one at hand, at first the first */
    const char *output;
    const char *stats;
    const char *trace;

    /* A finished file's; NULL = the default. */
    const char *encoder;
    const char *crf;
    const char *preset;

    /* The look. */
    double exposure_stops;
    double peak_nits; /* unless peak_auto */
    double sdr_white_nits;
    float desaturate; /* as in the library's settings */
    float detail;     /* the same */
    enum cox_operator op;
    enum cox_dither dither;
    enum cox_gamut gamut;
    enum cox_video_scale scale;
    uint32_t scale_width, scale_height; /* COX_SCALE_FILTER; 0 = as the other side says */
    float gamut_knee;                   /* as in the library's settings */
    bool has_dither, has_gamut;
    enum output_kind to;
    uint32_t depth; /* 8, 10 or 16 */
    enum picture_alpha alpha;

    /* What the stream is, where it does not say so itself; see has_... below. */
    enum cox_transfer transfer;
    enum cox_primaries primaries;
    enum cox_range range;
    struct video_rational rate; /* 0:0 = not given */
    struct video_raw raw; /* raw.given: the input is raw frames, whatever its bytes look like */

    /* Which frames of it. */
    uint64_t start;
    uint64_t frames; /* 0 = all */
    uint64_t frame;  /* the only one, if one_frame */

    /* A film in pieces: what is done, and with which frames. */
    enum film_step step;
    bool ranged;                     /* --range FIRST:END: */
    uint64_t range_first, range_end; /* up to, but not with; UINT64_MAX = to the film's end */
    uint64_t share, share_count;     /* --share: from 1; a count of 0 = not given */
    const char *scenes;              /* the light of the frames; NULL = as the other options say */
    const char *source;              /* of which join takes sound and the rest; NULL = none */

    /* A piece for a caller of job_run; no option sets these. */
    const struct video_place
        *place;        /* where frames of y4m, NV12 or P010 go; NULL = to the output */
    const char *piece; /* the name that it has to have, see scenes_piece; NULL = any */

    /* The devices and the split. */
    const char *devices;
    const char *policy;
    struct cox_policy_options policy_options;
    double ratios[COX_DEVICES_MAX]; /* policy_options points to them */
    double verify_share;            /* of the bands that two devices do */
    uint64_t repeat;
    enum cox_arithmetic arithmetic;
    enum cox_reserve reserve;
    uint32_t reserve_cpu;
    uint32_t in_flight;

    bool peak_auto;
    bool has_transfer, has_primaries, has_range;
    bool raw_by_name; /* the input's name ends as raw files' names do, but no size is given */
    bool one_frame;
    bool lookahead;
    bool trust_metadata;
    bool overwrite;
    bool progress_json;
    bool no_cache, hash, verbose, quiet;
    bool verify; /* on each device alone, too */
};

/* One sentence without a full stop. */
struct options_error {
    char text[512];
};

enum options_parsed {
    OPTIONS_WRONG = -1, /* *error says why */
    OPTIONS_RUN = 0,
    OPTIONS_HELP, /* the others: print what was asked for, and no more */
    OPTIONS_VERSION,
    OPTIONS_POLICIES,
};

/* Sets every field of `options`. May reorder argv, as getopt does. */
enum options_parsed options_parse(struct options *options, int argc, char **argv,
                                  struct options_error *error);

/* Make `input`, one of `inputs`, the one at hand. False, and *error says why, where it and the options about raw frames
 * do not fit each other. */
bool options_take(struct options *options, const char *input, struct options_error *error);

/* Whether every option that was given means something for this kind of input. What they say together is looked at,
 * too. */
enum options_job { OPTIONS_PICTURE, OPTIONS_VIDEO };
bool options_suit(struct options *options, enum options_job job, struct options_error *error);

/* Whether the output's name is one that video has and pictures have not. */
bool options_want_video(const struct options *options);

extern const char options_usage[];

/* As --to has it; of any kind but OUTPUT_NAME. */
const char *options_kind_name(enum output_kind kind);

/* A hash of what the encoder was told. */
uint64_t options_encoding(const struct options *options);

/* Whether the output is raw frames: NV12 or P010. */
bool options_want_raw(const struct options *options);

/* Whether the output is a finished file: Matroska or MP4. */
bool options_want_finished(const struct options *options);

/* "ewma, static, …" */
void options_policy_names(char *text, size_t bytes);

#endif
