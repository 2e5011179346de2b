/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/now.h"
#include "lab/run/energy.h"
#include "parts.h"
#include "sysfs.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READINGS_MAX = 512, NOTES_MAX = 16, SETTING_BYTES = 48 };

static const double unchanged_most_ns =
    1e9; /* an energy counter that has not moved for so long stands still */

enum form { FORM_NUMBER, FORM_SIGN, FORM_LEVELS, FORM_METER, FORM_EVENT, FORM_CALL };

struct reading {
    enum form form;
    int file;
    double scale;
    struct lab_energy *meter;
    double (*call)(void *user, uint32_t device, int what);
    void *user;
    uint32_t device;
    int what;
};

struct lab__source {
    struct lab_telemetry_source about;
    enum lab__way way;
    enum lab__pace pace;
    double low, high;
    uint32_t first, count; /* of the readings */
    /* Of counters: */
    bool known;
    double before, total;
    uint64_t before_ns;
    /* Of settings: */
    char text[SETTING_BYTES];
    bool changed;
};

struct lab_telemetry {
    char root[512];
    uint32_t source_count, reading_count, note_count;
    struct lab__source sources[LAB_TELEMETRY_SOURCES_MAX];
    struct reading readings[READINGS_MAX];
    char *notes[NOTES_MAX];
    struct lab__nvml *nvml;
};

static const struct {
    const char *name, *unit;
    double low, high; /* what can be meant */
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

/* --- Adding ------------------------------------------------------------------------------------------------------- */

struct lab__source *lab__source_add(struct lab_telemetry *telemetry, enum lab_telemetry_kind kind,
                                    enum lab__way way, enum lab__pace pace, const char *what,
                                    const char *part, ...)
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
    char text[sizeof source->about.part];
    va_list args;
    va_start(args, part);
    vsnprintf(text, sizeof text, part, args);
    va_end(args);
    memcpy(source->about.part, text, sizeof text);
    snprintf(source->about.name, sizeof source->about.name, "%s%s", what, text);
    return source;
}

/* Takes over the reading's file and meter. The origin of a source is that of its first reading. */
static bool add_reading(struct lab_telemetry *telemetry, struct lab__source *source,
                        const struct reading *reading, const char *origin)
{
    if (!source || telemetry->reading_count == READINGS_MAX) {
        struct lab_energy *meter = reading->meter;
        lab_energy_close(&meter);
        if (reading->file >= 0)
            close(reading->file);
        errno = ENOSPC;
        return false;
    }
    telemetry->readings[telemetry->reading_count++] = *reading;
    if (source->count++ == 0)
        memccpy(source->about.origin, origin, '\0', sizeof source->about.origin - 1);
    return true;
}

static bool add_file(struct lab_telemetry *telemetry, struct lab__source *source, enum form form,
                     double scale, const char *format, va_list args)
{
    char path[SYSFS_PATH_BYTES];
    vsnprintf(path, sizeof path, format, args);
    int file = sysfs_open(telemetry->root, "%s", path);
    return file >= 0 &&
           add_reading(telemetry, source,
                       &(const struct reading){.form = form, .file = file, .scale = scale}, path);
}

bool lab__source_file(struct lab_telemetry *telemetry, struct lab__source *source, double scale,
                      const char *path, ...)
{
    va_list args;
    va_start(args, path);
    bool good = add_file(telemetry, source, FORM_NUMBER, scale, path, args);
    va_end(args);
    return good;
}

bool lab__source_levels(struct lab_telemetry *telemetry, struct lab__source *source, double scale,
                        const char *path, ...)
{
    va_list args;
    va_start(args, path);
    bool good = add_file(telemetry, source, FORM_LEVELS, scale, path, args);
    va_end(args);
    return good;
}

bool lab__source_sign(struct lab_telemetry *telemetry, struct lab__source *source, const char *path,
                      ...)
{
    va_list args;
    va_start(args, path);
    bool good = add_file(telemetry, source, FORM_SIGN, 1, path, args);
    va_end(args);
    return good;
}

bool lab__source_meter(struct lab_telemetry *telemetry, struct lab__source *source,
                       struct lab_energy *meter, const char *origin)
{
    return add_reading(telemetry, source,
                       &(const struct reading){.form = FORM_METER, .file = -1, .meter = meter},
                       origin);
}

bool lab__source_event(struct lab_telemetry *telemetry, struct lab__source *source, int file,
                       double scale, const char *origin)
{
    return add_reading(telemetry, source,
                       &(const struct reading){.form = FORM_EVENT, .file = file, .scale = scale},
                       origin);
}

bool lab__source_call(struct lab_telemetry *telemetry, struct lab__source *source,
                      double (*call)(void *user, uint32_t device, int what), void *user,
                      uint32_t device, int what, const char *origin)
{
    return add_reading(telemetry, source,
                       &(const struct reading){.form = FORM_CALL,
                                               .file = -1,
                                               .call = call,
                                               .user = user,
                                               .device = device,
                                               .what = what},
                       origin);
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

/* --- Opening ------------------------------------------------------------------------------------------------------ */

/* Counting the whole system needs a CPU, and no process. */
static int open_event(uint32_t type, uint64_t config, int cpu)
{
    struct perf_event_attr event = {.type = type, .size = sizeof event, .config = config};
    return (int)syscall(SYS_perf_event_open, &event, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

struct lab_telemetry *lab_telemetry_open(const struct lab_telemetry_params *params)
{
    struct lab_telemetry *telemetry = calloc(1, sizeof *telemetry);
    if (!telemetry)
        return NULL;
    bool here = !params->sysfs;
    const char *root = here ? "/sys" : params->sysfs, *library = params->nvml;
    snprintf(telemetry->root, sizeof telemetry->root, "%s", root);
    lab__find_cpus(telemetry, root);
    lab__find_gpus(telemetry, root);
    lab__find_heat(telemetry, root);
    lab__find_power(telemetry, root, here && !params->event_open ? open_event : params->event_open);
    lab__find_supplies(telemetry, root);
    if (library || here)
        telemetry->nvml = lab__find_nvml(telemetry, root, library ? library : "libnvidia-ml.so.1");
    return telemetry;
}

void lab_telemetry_close(struct lab_telemetry **telemetry)
{
    struct lab_telemetry *t = *telemetry;
    *telemetry = NULL;
    if (!t)
        return;
    for (uint32_t i = 0; i < t->reading_count; i++) {
        lab_energy_close(&t->readings[i].meter);
        if (t->readings[i].file >= 0)
            close(t->readings[i].file);
    }
    for (uint32_t i = 0; i < t->note_count; i++)
        free(t->notes[i]);
    lab__nvml_close(&t->nvml);
    free(t);
}

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
    size_t length = 0;
    *text = '\0';
    for (int kind = 0; kind < LAB_TELEMETRY_KINDS; kind++) {
        bool opened = false;
        for (uint32_t i = 0; i < telemetry->source_count; i++) {
            const struct lab_telemetry_source *source = &telemetry->sources[i].about;
            if ((int)source->kind != kind || length >= bytes)
                continue;
            const char *before = opened ? ", " : length ? "), " : "";
            int more = snprintf(text + length, bytes - length, "%s%s%s%s", before,
                                opened ? "" : kinds[kind].name, opened ? "" : " (",
                                kind == LAB_SETTING ? source->name : source->part);
            length += more > 0 ? (size_t)more : 0;
            opened = true;
        }
    }
    if (length && length < bytes)
        snprintf(text + length, bytes - length, ")");
    return text;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* From the file's start, without the white space at its end. Returns the length; 0 = nothing. */
static size_t read_file(int file, char *text, size_t bytes)
{
    ssize_t length = pread(file, text, bytes - 1, 0);
    size_t end = length > 0 ? (size_t)length : 0;
    while (end && (text[end - 1] == '\n' || text[end - 1] == ' '))
        end--;
    text[end] = '\0';
    return end;
}

/* A decimal number, with digits at least; that is what the kernel writes. Without the locale, and fast. */
static double number_of(const char *text)
{
    bool negative = *text == '-';
    double value = 0;
    const char *at = text + negative;
    if (*at < '0' || *at > '9')
        return NAN;
    while (*at >= '0' && *at <= '9')
        value = 10 * value + (*at++ - '0');
    if (*at && *at != ' ' && *at != '\n')
        return NAN;
    return negative ? -value : value;
}

/* "0: 400Mhz \n1: 1100Mhz *\n2: 2700Mhz" */
static double starred_level(const char *text)
{
    const char *star = strchr(text, '*');
    while (star && star > text && star[-1] != '\n')
        star--;
    const char *colon = star ? strchr(star, ':') : NULL;
    return colon ? strtod(colon + 1, NULL) : NAN;
}

static double read_one(const struct reading *reading)
{
    char text[512];
    uint64_t count;
    double value;
    switch (reading->form) {
    case FORM_METER:
        value = lab_energy_joules(reading->meter);
        return value < 0 ? NAN : value;
    case FORM_EVENT: /* has no place to be read at */
        return read(reading->file, &count, sizeof count) == sizeof count
                   ? (double)count * reading->scale
                   : NAN;
    case FORM_CALL:
        return reading->call(reading->user, reading->device, reading->what);
    case FORM_SIGN:
        return !read_file(reading->file, text, sizeof text) ? NAN
               : strcmp(text, "Charging") == 0              ? -1
                                                            : 1;
    case FORM_LEVELS:
        return read_file(reading->file, text, sizeof text) ? starred_level(text) * reading->scale
                                                           : NAN;
    default:
        return read_file(reading->file, text, 32) ? number_of(text) * reading->scale : NAN;
    }
}

/* What the counter says by the second. One that has not moved is not due yet, unless it stands still. */
static double rate(struct lab__source *source, double now)
{
    uint64_t now_at = now_ns();
    double elapsed = (double)(now_at - source->before_ns), risen = now - source->before;
    if (source->known && risen == 0 && elapsed < unchanged_most_ns)
        return NAN;
    bool known = source->known && risen >= 0 && elapsed > 0;
    source->known = true;
    source->before = now;
    source->before_ns = now_at;
    return known ? risen / elapsed * 1e9 : NAN;
}

/* Counters that were set back count on from there. */
static double rise(struct lab__source *source, double now)
{
    if (source->known && now > source->before)
        source->total += now - source->before;
    source->known = true;
    source->before = now;
    return source->total;
}

static void read_setting(const struct reading *reading, struct lab__source *source)
{
    char text[SETTING_BYTES];
    read_file(reading->file, text, sizeof text);
    source->changed = strcmp(text, source->text) != 0;
    if (source->changed)
        memcpy(source->text, text, sizeof text);
}

static double read_source(const struct lab_telemetry *telemetry, struct lab__source *source)
{
    double sum = 0, most = -INFINITY, product = 1;
    uint32_t known = 0;
    for (uint32_t i = 0; i < source->count; i++) {
        double value = read_one(&telemetry->readings[source->first + i]);
        product *= telemetry->readings[source->first + i].form == FORM_SIGN ? value : fabs(value);
        if (isnan(value) || ((source->way == LAB__MEAN || source->way == LAB__MOST) &&
                             !(value >= source->low && value <= source->high)))
            continue;
        sum += value;
        most = fmax(most, value);
        known++;
    }
    /* Of several cores one may be off line; of counters none may be missing, their sum would jump. */
    bool whole = known == source->count;
    switch (source->way) {
    case LAB__MEAN:
        return known ? sum / known : NAN;
    case LAB__MOST:
        return known ? most : NAN;
    case LAB__RATE:
        return whole ? rate(source, sum) : NAN;
    case LAB__RISE:
        return whole ? rise(source, sum) : NAN;
    default:
        return product;
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
        values[i] = value >= source->low && value <= source->high ? value : NAN;
    }
}
