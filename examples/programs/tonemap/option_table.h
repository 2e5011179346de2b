/* The table of all options: names, values of getopt_long, and the groups they belong to; and the
 * text of --help. The parser (command_line.c) and the checks (option_checks.c) use it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TONEMAP_OPTION_TABLE_H
#define TONEMAP_OPTION_TABLE_H

#include <getopt.h>
#include <stdint.h>

/* Groups of options. */
enum option_group {
    FOR_PICTURE = 1 << 0,  /* pictures only */
    FOR_VIDEO = 1 << 1,    /* video only */
    FOR_FINISHED = 1 << 2, /* finished files only */
    SETS_LOOK = 1 << 3,    /* decides a film's mapped frames; a scene file sets all of it */
    IN_PIECES = 1 << 4,    /* analyse and map take it */
    IN_MAP = 1 << 5,       /* map takes it */
    IN_STEER = 1 << 6,
    IN_JOIN = 1 << 7,
};

/* LONG(identifier, name, argument, groups) and SHORT(letter, name, argument), in the order of
 * getopt's table. The order of the LONG rows is also the order of the bits in options.given. */
#define OPTION_TABLE(LONG, SHORT)                                                  \
    SHORT('o', "output", required_argument)                                        \
    LONG(TO, "to", required_argument, FOR_VIDEO | IN_MAP)                          \
    LONG(ENCODER, "encoder", required_argument, FOR_VIDEO | FOR_FINISHED | IN_MAP) \
    LONG(CRF, "crf", required_argument, FOR_VIDEO | FOR_FINISHED | IN_MAP)         \
    LONG(PRESET, "preset", required_argument, FOR_VIDEO | FOR_FINISHED | IN_MAP)   \
    LONG(OVERWRITE, "overwrite", no_argument,                                      \
         FOR_VIDEO | FOR_FINISHED | IN_PIECES | IN_STEER | IN_JOIN)                \
    LONG(PROGRESS, "progress", required_argument, FOR_VIDEO | IN_MAP)              \
    LONG(OPERATOR, "operator", required_argument, SETS_LOOK)                       \
    LONG(EXPOSURE, "exposure", required_argument, SETS_LOOK)                       \
    LONG(PEAK, "peak", required_argument, SETS_LOOK)                               \
    LONG(DESAT, "desat", required_argument, SETS_LOOK)                             \
    LONG(DETAIL, "detail", required_argument, SETS_LOOK)                           \
    LONG(DEPTH, "depth", required_argument, SETS_LOOK)                             \
    LONG(QUALITY, "quality", required_argument, FOR_PICTURE)                       \
    LONG(ALPHA, "alpha", no_argument, FOR_PICTURE)                                 \
    LONG(LAYER, "layer", required_argument, FOR_PICTURE)                           \
    LONG(SDR_WHITE, "sdr-white", required_argument, FOR_VIDEO | SETS_LOOK)         \
    LONG(HLG_PEAK, "hlg-peak", required_argument, FOR_VIDEO | SETS_LOOK)           \
    LONG(HDR, "hdr", required_argument, SETS_LOOK)                                 \
    LONG(WIDE, "wide", no_argument, SETS_LOOK)                                     \
    LONG(FULL_RANGE, "full-range", no_argument, FOR_VIDEO | SETS_LOOK)             \
    LONG(DITHER, "dither", required_argument, FOR_VIDEO | SETS_LOOK)               \
    LONG(GAMUT, "gamut", required_argument, FOR_VIDEO | SETS_LOOK)                 \
    LONG(SCALE, "scale", required_argument, FOR_VIDEO | SETS_LOOK)                 \
    LONG(LUT, "lut", required_argument, FOR_VIDEO)                                 \
    LONG(POINTS, "points", required_argument, 0)                                   \
    LONG(TRANSFER, "transfer", required_argument, FOR_VIDEO | SETS_LOOK)           \
    LONG(PRIMARIES, "primaries", required_argument, FOR_VIDEO | SETS_LOOK)         \
    LONG(RANGE, "range", required_argument, FOR_VIDEO | SETS_LOOK)                 \
    LONG(SIZE, "size", required_argument, FOR_VIDEO | IN_PIECES)                   \
    LONG(FORMAT, "format", required_argument, FOR_VIDEO | IN_PIECES)               \
    LONG(RATE, "rate", required_argument, FOR_VIDEO | IN_PIECES)                   \
    LONG(START, "start", required_argument, FOR_VIDEO)                             \
    LONG(FRAMES, "frames", required_argument, FOR_VIDEO)                           \
    LONG(FRAME, "frame", required_argument, FOR_VIDEO)                             \
    LONG(SHEET, "sheet", required_argument, FOR_VIDEO)                             \
    LONG(LOOKAHEAD, "lookahead", required_argument, FOR_VIDEO | SETS_LOOK)         \
    LONG(TRUST_METADATA, "trust-metadata", no_argument, FOR_VIDEO | SETS_LOOK)     \
    LONG(DEVICES, "devices", required_argument, IN_PIECES)                         \
    LONG(POLICY, "policy", required_argument, IN_PIECES)                           \
    LONG(SPLIT, "split", required_argument, IN_PIECES)                             \
    LONG(RESERVE, "reserve", required_argument, IN_PIECES)                         \
    LONG(ARITHMETIC, "arithmetic", required_argument, SETS_LOOK)                   \
    LONG(IN_FLIGHT, "in-flight", required_argument, IN_PIECES)                     \
    LONG(DEADLINE, "deadline", required_argument, IN_MAP)                          \
    LONG(NO_CACHE, "no-cache", no_argument, IN_PIECES)                             \
    LONG(MAX_MEMORY, "max-memory", required_argument, IN_PIECES)                   \
    LONG(STREAM, "stream", required_argument, FOR_VIDEO)                           \
    LONG(HWDEC, "hwdec", required_argument, FOR_VIDEO)                             \
    LONG(LIST_HW, "list-hw", no_argument, 0)                                       \
    LONG(STRICT, "strict", no_argument, FOR_VIDEO | IN_PIECES)                     \
    LONG(REPEAT, "repeat", required_argument, FOR_PICTURE)                         \
    LONG(STATS, "stats", required_argument, IN_MAP)                                \
    LONG(TRACE, "trace", required_argument, IN_MAP)                                \
    LONG(JUDGE, "judge", required_argument, 0)                                     \
    LONG(VERIFY, "verify", optional_argument, IN_PIECES)                           \
    LONG(CHECK_KERNELS, "check-kernels", no_argument, IN_PIECES)                   \
    LONG(HASH, "hash", no_argument, IN_MAP)                                        \
    SHORT('v', "verbose", no_argument)                                             \
    SHORT('q', "quiet", no_argument)                                               \
    SHORT('h', "help", no_argument)                                                \
    LONG(VERSION, "version", no_argument, 0)                                       \
    LONG(SHARE, "share", required_argument, IN_PIECES)                             \
    LONG(SCENES, "scene", required_argument, IN_MAP | IN_JOIN)                     \
    LONG(SOURCE, "source", required_argument, IN_JOIN)

#define OPTION_IDENTIFIER(identifier, name, argument, groups) OPTION_##identifier,
#define OPTION_NOTHING(...)
enum {
    OPTION_FIRST = 256, /* above all letters; no option */
    OPTION_TABLE(OPTION_IDENTIFIER, OPTION_NOTHING)
};
#undef OPTION_IDENTIFIER
#undef OPTION_NOTHING

/* The bit of a LONG option in options.given. */
#define OPTION_BIT(option) (UINT64_C(1) << ((option)-OPTION_FIRST - 1))

/* For getopt_long; ended by a row of zeros. */
extern const struct option option_table[];

/* The text of --help. */
extern const char option_help[];

/* The bits of all options of any of these groups. */
uint64_t option_group_bits(unsigned groups);

/* The name of the first option of a set, which has one. */
const char *option_first_name(uint64_t bits);

#endif
