/* SPDX-License-Identifier: Apache-2.0 */
#include "cube.h"

#include <coxswain/video.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A file of COX_LUT_POINTS_MAX points has 2.1 million lines. */
enum { LINE_BYTES = 256, FILE_BYTES_MAX = 1 << 28 };

/* The largest number, and the smallest width of a domain: those of cox_video_lut_table. */
#define VALUE_END 0x1p16f
#define DOMAIN_LEAST 0x1p-10f

struct reader {
    FILE *file;
    struct cube *cube;
    struct error *error;
    char line[LINE_BYTES]; /* without its end; cut off if it is longer */
    bool too_long;
    uint32_t number; /* of the line, from 1 */
    size_t bytes;    /* read so far */
    size_t colors;   /* read so far */
    unsigned seen;   /* the keywords, as bits */
};

size_t cube_points(const struct cube *cube)
{
    return (size_t)cube->points * cube->points * cube->points;
}

void cube_free(struct cube *cube)
{
    free(cube->colors);
    *cube = (struct cube){0};
}

/* --- Lines --- */

static bool refuse(const struct reader *reader, const char *what)
{
    return error_set(reader->error, "line %u: %s", reader->number, what);
}

enum line { LINE_READ, LINE_END, LINE_WRONG };

/* Read the next line. Its end may be LF or CR LF. */
static enum line next_line(struct reader *reader)
{
    size_t length = 0;
    int c = getc(reader->file);
    reader->number++;
    reader->too_long = false;
    if (c == EOF)
        return LINE_END;

    for (; c != EOF && c != '\n'; c = getc(reader->file)) {
        reader->bytes++;
        if (c == 0) {
            refuse(reader, "it is not text");
            return LINE_WRONG;
        }
        if (reader->bytes > FILE_BYTES_MAX)
            break;
        if (length + 1 < sizeof reader->line)
            reader->line[length++] = (char)c;
        else
            reader->too_long = true;
    }

    if (++reader->bytes > FILE_BYTES_MAX) { /* it may never end */
        error_set(reader->error, "the file is longer than %d MiB", FILE_BYTES_MAX >> 20);
        return LINE_WRONG;
    }
    while (length && strchr(" \t\r", reader->line[length - 1]))
        length--;
    reader->line[length] = 0;
    return LINE_READ;
}

static const char *behind_spaces(const char *at)
{
    return at + strspn(at, " \t");
}

/* --- Numbers --- */

/* A finite decimal number that ends at a space or at the end of the line. */
static bool read_number(const char **at, float *value)
{
    const char *begin = behind_spaces(*at);
    const size_t length = strspn(begin, "0123456789+-.eE");
    char *end;
    if (!length || !strchr(" \t", begin[length]))
        return false;

    *value = strtof(begin, &end);
    *at = end;
    return end == begin + length && fabsf(*value) < VALUE_END; /* neither infinite nor NaN */
}

/* `count` numbers and nothing behind them. */
static bool read_numbers(const struct reader *reader, const char *at, int count, float *values)
{
    for (int i = 0; i < count; i++)
        if (!read_number(&at, &values[i]))
            return error_set(reader->error, "line %u: expected %d decimal numbers below 65536",
                             reader->number, count);

    return !*behind_spaces(at) || refuse(reader, "there is more than the expected numbers");
}

/* --- Keywords --- */

enum keyword {
    KEYWORD_TITLE,
    KEYWORD_SIZE,
    KEYWORD_LEAST,
    KEYWORD_MOST,
    KEYWORD_RANGE,
    KEYWORD_FLAT_SIZE,
    KEYWORD_FLAT_RANGE,
    KEYWORDS
};

static const char *const keywords[KEYWORDS] = {
    [KEYWORD_TITLE] = "TITLE",
    [KEYWORD_SIZE] = "LUT_3D_SIZE",
    [KEYWORD_LEAST] = "DOMAIN_MIN",
    [KEYWORD_MOST] = "DOMAIN_MAX",
    [KEYWORD_RANGE] = "LUT_3D_INPUT_RANGE",
    [KEYWORD_FLAT_SIZE] = "LUT_1D_SIZE",
    [KEYWORD_FLAT_RANGE] = "LUT_1D_INPUT_RANGE",
};

/* The keyword at the beginning of the line; KEYWORDS = none of them. `*rest`: what follows. */
static enum keyword find_keyword(const char *line, const char **rest)
{
    const size_t length = strcspn(line, " \t");
    *rest = line + length;
    for (int i = 0; i < KEYWORDS; i++)
        if (strlen(keywords[i]) == length && !strncmp(line, keywords[i], length))
            return (enum keyword)i;

    return KEYWORDS;
}

static bool read_size(struct reader *reader, const char *rest)
{
    const char *digits = behind_spaces(rest);
    const size_t length = strspn(digits, "0123456789");
    unsigned long points = 0;
    if (length && length < 6 && !digits[length])
        points = strtoul(digits, NULL, 10);
    if (points < 2 || points > COX_LUT_POINTS_MAX)
        return error_set(reader->error, "line %u: LUT_3D_SIZE must be from 2 to %d", reader->number,
                         COX_LUT_POINTS_MAX);

    reader->cube->points = (uint32_t)points;
    reader->cube->colors = malloc(cube_points(reader->cube) * 3 * sizeof(float));
    return reader->cube->colors || error_set(reader->error, "out of memory");
}

/* The same range for all three colours. */
static bool read_range(struct reader *reader, const char *rest)
{
    float ends[2];
    if (!read_numbers(reader, rest, 2, ends))
        return false;

    for (int c = 0; c < 3; c++) {
        reader->cube->least[c] = ends[0];
        reader->cube->most[c] = ends[1];
    }
    return true;
}

static bool refuse_unknown(const struct reader *reader)
{
    char name[40];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(reader->line, " \t"), reader->line);
    make_printable(name);
    return error_set(reader->error, "line %u: '%s' is no known keyword and no number",
                     reader->number, name);
}

static bool read_keyword(struct reader *reader, const char *line)
{
    const char *rest;
    const enum keyword keyword = find_keyword(line, &rest);
    if (keyword == KEYWORDS)
        return refuse_unknown(reader);
    if (keyword == KEYWORD_FLAT_SIZE || keyword == KEYWORD_FLAT_RANGE)
        return error_set(reader->error,
                         "line %u: it has %s, but tables of one dimension and shapers are not "
                         "supported; export it with LUT_3D_SIZE alone",
                         reader->number, keywords[keyword]);
    if (reader->seen & 1u << keyword)
        return error_set(reader->error, "line %u: a second %s", reader->number, keywords[keyword]);
    if (reader->colors)
        return error_set(reader->error, "line %u: %s after the first colour", reader->number,
                         keywords[keyword]);

    reader->seen |= 1u << keyword;
    switch (keyword) {
    case KEYWORD_TITLE:
        snprintf(reader->cube->title, sizeof reader->cube->title, "%s",
                 rest + strspn(rest, " \t\""));
        return true;
    case KEYWORD_SIZE:
        return read_size(reader, rest);
    case KEYWORD_LEAST:
        return read_numbers(reader, rest, 3, reader->cube->least);
    case KEYWORD_MOST:
        return read_numbers(reader, rest, 3, reader->cube->most);
    case KEYWORD_RANGE:
        return read_range(reader, rest);
    default:
        return true;
    }
}

/* --- The file --- */

static bool read_color(struct reader *reader, const char *line)
{
    const struct cube *cube = reader->cube;
    if (!cube->points)
        return refuse(reader, "a number before LUT_3D_SIZE");
    if (reader->colors == cube_points(cube))
        return error_set(reader->error, "line %u: more than the %zu colours of LUT_3D_SIZE %u",
                         reader->number, reader->colors, cube->points);

    return read_numbers(reader, line, 3, &cube->colors[3 * reader->colors++]);
}

static bool read_line(struct reader *reader)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8 */
    const char *line = reader->line;
    if (reader->number == 1 && !strncmp(line, mark, 3))
        line += 3;
    line = behind_spaces(line);

    if (!*line || *line == '#')
        return true;
    if (reader->too_long && strncmp(line, "TITLE", 5) != 0)
        return refuse(reader, "it is too long");
    if (strchr("0123456789+-.", *line))
        return read_color(reader, line);
    return read_keyword(reader, line);
}

static bool check_whole(const struct reader *reader)
{
    const struct cube *cube = reader->cube;
    if (ferror(reader->file))
        return error_set(reader->error, "cannot be read: %s", strerror(errno));
    if (!cube->points)
        return error_set(reader->error, "it has no LUT_3D_SIZE: it is no .cube table of three "
                                        "dimensions");
    if (reader->colors < cube_points(cube))
        return error_set(reader->error, "it ends after %zu of %zu colours", reader->colors,
                         cube_points(cube));

    for (int c = 0; c < 3; c++)
        if (!(cube->most[c] - cube->least[c] >= DOMAIN_LEAST))
            return error_set(reader->error, "its domain is too narrow: from %g to %g",
                             (double)cube->least[c], (double)cube->most[c]);
    return true;
}

bool cube_read_stream(struct cube *cube, FILE *file, struct error *error)
{
    struct reader reader = {.file = file, .cube = cube, .error = error};
    *cube = (struct cube){.most = {1, 1, 1}};

    enum line line = next_line(&reader);
    while (line == LINE_READ && read_line(&reader))
        line = next_line(&reader);
    if (line == LINE_END && check_whole(&reader))
        return true;

    cube_free(cube);
    return false;
}

bool cube_read(struct cube *cube, const char *path, struct error *error)
{
    *cube = (struct cube){0};
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set(error, "cannot be opened: %s", strerror(errno));

    const bool good = cube_read_stream(cube, file, error);
    fclose(file);
    return good;
}

void cube_write(FILE *file, const struct cube *cube, const char *title, const char *comments)
{
    fprintf(file, "TITLE \"%s\"\n%sLUT_3D_SIZE %u\n", title, comments, cube->points);
    fprintf(file, "DOMAIN_MIN %g %g %g\n", (double)cube->least[0], (double)cube->least[1],
            (double)cube->least[2]);
    fprintf(file, "DOMAIN_MAX %g %g %g\n", (double)cube->most[0], (double)cube->most[1],
            (double)cube->most[2]);

    for (size_t i = 0; i < cube_points(cube); i++)
        fprintf(file, "%.6f %.6f %.6f\n", (double)cube->colors[3 * i],
                (double)cube->colors[3 * i + 1], (double)cube->colors[3 * i + 2]);
}
