/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sources.h"
#include "add_source.h"
#include "common/now.h"
#include "energy.h"
#include "sysfs.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READINGS_MAX = 512, NOTES_MAX = 16, SETTING_BYTES = 48 };

/* An energy counter that has not changed for this long measures no power. */
static const double unchanged_max_ns = 1e9;

struct lab__source {
    struct lab_telemetry_source about;
    enum lab__way way;
    enum lab__pace pace;
    double low, high;
    uint32_t first, count; /* of the readings */

    /* RATE and RISE: */
    bool known;
    double before, total;
    uint64_t before_ns;

    /* TEXT: */
    char text[SETTING_BYTES];
    bool changed;
};

struct lab_telemetry {
    char root[512];
    uint32_t source_count, reading_count, note_count;
    struct lab__source sources[LAB_TELEMETRY_SOURCES_MAX];
    struct lab__reading readings[READINGS_MAX];
    char *notes[NOTES_MAX];
    void (*on_close)(void *user);
    void *on_close_user;
};

static const struct {
    const char *name, *unit;
    double low, high; /* values outside these limits are errors of the sensor */
} kinds[LAB_TELEMETRY_KINDS] = {
    [LAB_CLOCK] = {"clock", "MHz", 0, 20000},
    [LAB_TEMPERATURE] = {"temperature", "°C", -40, 150},
    [LAB_POWER] = {"power", "W", -2000, 2000},
    [LAB_LOAD] = {"load", "%", 0, 100},
    [LAB_THROTTLE] = {"throttling", "events", 0, 1e12},
    [LAB_SETTING] = {"setting", "", 0, 0},
};

const char *lab_telemetry_kind_name(enum lab_telemetry_kind kind)
{
    return kinds[kind].name;
}

const char *lab_telemetry_unit(enum lab_telemetry_kind kind)
{
    return kinds[kind].unit;
}

/* --- Create and close ------------------------------------------------------------------------- */

struct lab_telemetry *lab__telemetry_create(const char *root)
{
    struct lab_telemetry *telemetry = calloc(1, sizeof *telemetry);

    if (telemetry)
        snprintf(telemetry->root, sizeof telemetry->root, "%s", root);
    return telemetry;
}

void lab__telemetry_on_close(struct lab_telemetry *telemetry, void (*close)(void *user), void *user)
{
    telemetry->on_close = close;
    telemetry->on_close_user = user;
}

static void close_reading(const struct lab__reading *reading)
{
    struct lab_energy *meter = reading->meter;

    lab_energy_close(&meter);
    if (reading->file >= 0)
        close(reading->file);
}

void lab_telemetry_close(struct lab_telemetry **telemetry)
{
    struct lab_telemetry *t = *telemetry;
    *telemetry = NULL;
    if (!t)
        return;

    for (uint32_t i = 0; i < t->reading_count; i++)
        close_reading(&t->readings[i]);
    for (uint32_t i = 0; i < t->note_count; i++)
        free(t->notes[i]);
    if (t->on_close)
        t->on_close(t->on_close_user);
    free(t);
}

/* --- Adding ----------------------------------------------------------------------------------- */

struct lab__source *lab__source_add(struct lab_telemetry *telemetry, enum lab_telemetry_kind kind,
                                    enum lab__way way, enum lab__pace pace, const char *what,
                                    const char *part)
{
    if (telemetry->source_count == LAB_TELEMETRY_SOURCES_MAX)
        return NULL;

    struct lab__source *source = &telemetry->sources[telemetry->source_count++];
    *source = (struct lab__source){.about = {.kind = kind},
                                   .way = way,
                                   .pace = pace,
                                   .low = kinds[kind].low,
                                   .high = kinds[kind].high,
                                   .first = telemetry->reading_count};
    snprintf(source->about.part, sizeof source->about.part, "%s", part);
    snprintf(source->about.name, sizeof source->about.name, "%s%.*s", what,
             (int)sizeof source->about.part - 1, part);
    return source;
}

bool lab__source_reading(struct lab_telemetry *telemetry, struct lab__source *source,
                         const struct lab__reading *reading, const char *origin)
{
    if (!source || telemetry->reading_count == READINGS_MAX) {
        close_reading(reading);
        errno = ENOSPC;
        return false;
    }

    telemetry->readings[telemetry->reading_count++] = *reading;
    if (source->count++ == 0)
        memccpy(source->about.origin, origin, '\0', sizeof source->about.origin - 1);
    return true;
}

static bool add_file(struct lab_telemetry *telemetry, struct lab__source *source,
                     enum lab__form form, double scale, const char *format, va_list args)
{
    char path[SYSFS_PATH_BYTES];
    vsnprintf(path, sizeof path, format, args);

    int file = sysfs_open(telemetry->root, "%s", path);
    return file >= 0 && lab__source_reading(telemetry, source,
                                            &(const struct lab__reading){
                                                .form = form, .file = file, .scale = scale},
                                            path);
}

bool lab__source_file(struct lab_telemetry *telemetry, struct lab__source *source,
                      enum lab__form form, double scale, const char *path, ...)
{
    va_list args;

    va_start(args, path);
    bool good = add_file(telemetry, source, form, scale, path, args);
    va_end(args);
    return good;
}

bool lab__source_single(struct lab_telemetry *telemetry, enum lab_telemetry_kind kind,
                        enum lab__way way, enum lab__pace pace, const char *what, const char *part,
                        double scale, const char *path, ...)
{
    struct lab__source *source = lab__source_add(telemetry, kind, way, pace, what, part);
    va_list args;

    va_start(args, path);
    add_file(telemetry, source, LAB__NUMBER, scale, path, args);
    va_end(args);
    return lab__source_end(telemetry, source);
}

void lab__source_limits(struct lab__source *source, double low, double high)
{
    if (source) {
        source->low = low;
        source->high = high;
    }
}

bool lab__source_end(struct lab_telemetry *telemetry, struct lab__source *source)
{
    if (!source)
        return false;
    if (source->count == 0) {
        telemetry->source_count--;
        return false;
    }

    size_t length = strlen(source->about.origin);
    if (source->count > 1)
        snprintf(source->about.origin + length, sizeof source->about.origin - length,
                 " and %u more", source->count - 1);
    return true;
}

void lab__note(struct lab_telemetry *telemetry, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (telemetry->note_count < NOTES_MAX &&
        vasprintf(&telemetry->notes[telemetry->note_count], format, args) >= 0)
        telemetry->note_count++;
    va_end(args);
}

/* --- Asking ----------------------------------------------------------------------------------- */

uint32_t lab_telemetry_count(const struct lab_telemetry *telemetry)
{
    return telemetry->source_count;
}

const struct lab_telemetry_source *lab_telemetry_source(const struct lab_telemetry *telemetry,
                                                        uint32_t source)
{
    return &telemetry->sources[source].about;
}

const char *lab_telemetry_note(const struct lab_telemetry *telemetry, uint32_t index)
{
    return index < telemetry->note_count ? telemetry->notes[index] : NULL;
}

const char *lab_telemetry_setting(const struct lab_telemetry *telemetry, uint32_t source,
                                  bool *changed)
{
    if (changed)
        *changed = telemetry->sources[source].changed;
    return telemetry->sources[source].text;
}

const char *lab_telemetry_summary(const struct lab_telemetry *telemetry, char *text, size_t bytes)
{
    FILE *to = fmemopen(text, bytes, "w");
    const char *before = "";

    *text = '\0';
    if (!to)
        return text;
    for (int kind = 0; kind < LAB_TELEMETRY_KINDS; kind++) {
        bool opened = false;

        for (uint32_t i = 0; i < telemetry->source_count; i++) {
            const struct lab_telemetry_source *source = &telemetry->sources[i].about;
            if ((int)source->kind != kind)
                continue;

            if (opened)
                fputs(", ", to);
            else
                fprintf(to, "%s%s (", before, kinds[kind].name);
            fputs(kind == LAB_SETTING ? source->name : source->part, to);
            opened = true;
            before = "), ";
        }
    }

    if (*before)
        fputc(')', to);
    fclose(to);
    text[bytes - 1] = '\0';
    return text;
}

/* --- Reading ---------------------------------------------------------------------------------- */

/* Read a file from its start, without the white space at its end. Returns the length; 0 if nothing
 * was read. */
static size_t read_file(int file, char *text, size_t bytes)
{
    ssize_t length = pread(file, text, bytes - 1, 0);
    size_t end = 0;

    if (length > 0)
        end = (size_t)length;
    while (end && (text[end - 1] == '\n' || text[end - 1] == ' '))
        end--;
    text[end] = '\0';
    return end;
}

/* A whole decimal number, as the kernel writes it. Faster than strtod, and independent of the
 * locale. */
static double number_of(const char *text)
{
    const char *at = text + (*text == '-');
    double value = 0;

    if (*at < '0' || *at > '9')
        return NAN;
    while (*at >= '0' && *at <= '9')
        value = 10 * value + (*at++ - '0');
    if (*at && *at != ' ' && *at != '\n')
        return NAN;
    return *text == '-' ? -value : value;
}

/* The number after the colon on the line with the star: "0: 400Mhz \n1: 1100Mhz *\n2: 2700Mhz". */
static double starred_level(const char *text)
{
    const char *star = strchr(text, '*');

    if (!star)
        return NAN;
    while (star > text && star[-1] != '\n')
        star--;

    const char *colon = strchr(star, ':');
    if (!colon)
        return NAN;
    return strtod(colon + 1, NULL);
}

static double read_one(const struct lab__reading *reading)
{
    char text[512];
    uint64_t count;
    double joules;

    switch (reading->form) {
    case LAB__METER:
        joules = lab_energy_joules(reading->meter);
        if (joules < 0)
            return NAN;
        return joules;

    case LAB__EVENT: /* an event file has no position, so no pread */
        if (read(reading->file, &count, sizeof count) != sizeof count)
            return NAN;
        return (double)count * reading->scale;

    case LAB__CALL:
        return reading->call(reading->user, reading->device, reading->what);

    case LAB__SIGN:
        if (!read_file(reading->file, text, sizeof text))
            return NAN;
        return strcmp(text, "Charging") == 0 ? -1 : 1;

    case LAB__LEVELS:
        if (!read_file(reading->file, text, sizeof text))
            return NAN;
        return starred_level(text) * reading->scale;

    default:
        if (!read_file(reading->file, text, 32))
            return NAN;
        return number_of(text) * reading->scale;
    }
}

/* The counter's rate per second. A counter that did not change is read again later: it may not have
 * been updated yet. */
static double rate(struct lab__source *source, double now)
{
    uint64_t at_ns = now_ns();
    double elapsed_ns = (double)(at_ns - source->before_ns), risen = now - source->before;
    bool known = source->known && risen >= 0 && elapsed_ns > 0;

    if (source->known && risen == 0 && elapsed_ns < unchanged_max_ns)
        return NAN;

    source->known = true;
    source->before = now;
    source->before_ns = at_ns;
    return known ? risen / elapsed_ns * 1e9 : NAN;
}

/* Events since the first reading. A counter that was reset continues from its new value. */
static double rise(struct lab__source *source, double now)
{
    if (source->known && now > source->before)
        source->total += now - source->before;

    source->known = true;
    source->before = now;
    return source->total;
}

static void read_setting(const struct lab__reading *reading, struct lab__source *source)
{
    char text[SETTING_BYTES];

    read_file(reading->file, text, sizeof text);
    source->changed = strcmp(text, source->text) != 0;
    if (source->changed)
        memcpy(source->text, text, sizeof text);
}

static bool is_within_limits(const struct lab__source *source, double value)
{
    return value >= source->low && value <= source->high;
}

static double read_source(const struct lab_telemetry *telemetry, struct lab__source *source)
{
    const bool limited = source->way == LAB__MEAN || source->way == LAB__MOST;
    double sum = 0, most = -INFINITY, product = 1;
    uint32_t known = 0;

    for (uint32_t i = 0; i < source->count; i++) {
        const struct lab__reading *reading = &telemetry->readings[source->first + i];
        double value = read_one(reading);

        product *= reading->form == LAB__SIGN ? value : fabs(value);
        if (isnan(value) || (limited && !is_within_limits(source, value)))
            continue;
        sum += value;
        most = fmax(most, value);
        known++;
    }

    if (source->way == LAB__PRODUCT)
        return product;
    /* A core may be offline, so a mean needs one reading. The sum of counters would jump if one
     * were missing, so it needs all. */
    if (known == 0 || (!limited && known < source->count))
        return NAN;

    switch (source->way) {
    case LAB__MEAN:
        return sum / known;
    case LAB__MOST:
        return most;
    case LAB__RATE:
        return rate(source, sum);
    default:
        return rise(source, sum);
    }
}

void lab_telemetry_restart(struct lab_telemetry *telemetry)
{
    for (uint32_t i = 0; i < telemetry->source_count; i++)
        if (telemetry->sources[i].way == LAB__RATE)
            telemetry->sources[i].known = false;
}

void lab_telemetry_read(struct lab_telemetry *telemetry, bool all, double *values)
{
    for (uint32_t i = 0; i < telemetry->source_count; i++) {
        struct lab__source *source = &telemetry->sources[i];

        values[i] = NAN;
        source->changed = false;
        if (source->pace == LAB__SLOW && !all)
            continue;
        if (source->way == LAB__TEXT) {
            read_setting(&telemetry->readings[source->first], source);
            continue;
        }

        double value = read_source(telemetry, source);
        if (is_within_limits(source, value))
            values[i] = value;
    }
}
