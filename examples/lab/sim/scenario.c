/* Reading scenario files. Everything that a file can say is bounded, so that no small file takes gigabytes or hours.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"
#include "lab/plain.h"
#include "lab/strict_fp.h"
#include "lab/texts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 160 };

static const char *const figure_keys[] = {
#define KEY(name, key, heading) key,
    LAB_FIGURE_MAP(KEY)
#undef KEY
};

struct reader {
    const char *file;
    char *why;
    size_t why_bytes;
    bool failed;
};

/* An object of the file. */
struct place {
    struct reader *reader;
    json_t *object;
    char path[PATH_MAX_BYTES]; /* "" = the file itself */
};

/* The first complaint stays. Returns false. */
__attribute__((format(printf, 3, 4))) static bool refuse(const struct place *at, const char *key, const char *format,
                                                         ...)
{
    struct reader *reader = at->reader;
    if (reader->failed)
        return false;
    reader->failed = true;
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (reader->why && reader->why_bytes > 0)
        snprintf(reader->why, reader->why_bytes, "%s: %s%s%s: %s", reader->file, at->path,
                 at->path[0] && key ? "." : "", key ? key : (at->path[0] ? "" : "the file"), text);
    return false;
}

static bool is_key(const char *key, const char *const *known)
{
    for (; *known; known++)
        if (strcmp(key, *known) == 0)
            return true;
    return false;
}

/* Go to an object; its keys must be among `known`, which ends with NULL. */
static bool enter(struct place *at, struct reader *reader, json_t *value, const char *const *known, const char *format,
                  uint32_t index)
{
    *at = (struct place){.reader = reader, .object = value};
    if (format) {
        /* The formats are this file's own, with one index at most. */
        const char *mark = strchr(format, '#');
        if (mark)
            snprintf(at->path, sizeof at->path, "%.*s%" PRIu32 "%s", (int)(mark - format), format, index, mark + 1);
        else
            snprintf(at->path, sizeof at->path, "%s", format);
    }
    if (!json_is_object(value))
        return refuse(at, NULL, "must be an object");
    const char *key;
    json_t *member;
    json_object_foreach(value, key, member)
    {
        (void)member;
        if (!is_key(key, known)) {
            char shown[40];
            snprintf(shown, sizeof shown, "%.36s", key);
            for (char *c = shown; *c; c++)
                if ((unsigned char)*c < ' ' || *c == 0x7f)
                    *c = '?';
            return refuse(at, NULL, "the key \"%s\" is not known here", shown);
        }
    }
    return true;
}

/* A number of [low, high]. Without the key `*out` stays, unless it must be there. */
static bool number(const struct place *at, const char *key, bool must, double low, double high, double *out)
{
    json_t *value = json_object_get(at->object, key);
    if (!value)
        return must ? refuse(at, key, "is missing") : !at->reader->failed;
    if (!json_is_number(value))
        return refuse(at, key, "must be a number");
    double found = json_number_value(value);
    if (!(found >= low && found <= high))
        return refuse(at, key, "must be from %g to %g, not %g", low, high, found);
    *out = found;
    return !at->reader->failed;
}

static bool integer(const struct place *at, const char *key, bool must, uint64_t low, uint64_t high, uint64_t *out)
{
    json_t *value = json_object_get(at->object, key);
    if (!value)
        return must ? refuse(at, key, "is missing") : !at->reader->failed;
    if (!json_is_integer(value))
        return refuse(at, key, "must be a whole number");
    json_int_t found = json_integer_value(value);
    if (found < 0 || (uint64_t)found < low || (uint64_t)found > high)
        return refuse(at, key, "must be from %" PRIu64 " to %" PRIu64 ", not %" JSON_INTEGER_FORMAT, low, high, found);
    *out = (uint64_t)found;
    return !at->reader->failed;
}

static bool boolean(const struct place *at, const char *key, bool *out)
{
    json_t *value = json_object_get(at->object, key);
    if (!value)
        return !at->reader->failed;
    if (!json_is_boolean(value))
        return refuse(at, key, "must be true or false");
    *out = json_is_true(value);
    return !at->reader->failed;
}

static bool is_printable(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

/* At least one character, less than `bytes` bytes. */
static bool string(const struct place *at, const char *key, bool must, size_t bytes, char *out)
{
    json_t *value = json_object_get(at->object, key);
    if (!value)
        return must ? refuse(at, key, "is missing") : !at->reader->failed;
    const char *text = json_string_value(value);
    if (!text)
        return refuse(at, key, "must be a string");
    size_t length = strlen(text);
    if (length == 0 || length >= bytes)
        return refuse(at, key, "must have from 1 to %zu bytes", bytes - 1);
    if (!is_printable(text))
        return refuse(at, key, "must not hold control characters");
    memcpy(out, text, length + 1);
    return !at->reader->failed;
}

/* An array of 1 to `most` values; NULL without the key, or if it is none (then the reader has failed). */
static json_t *array(const struct place *at, const char *key, bool must, size_t most)
{
    json_t *value = json_object_get(at->object, key);
    if (!value) {
        if (must)
            refuse(at, key, "is missing");
        return NULL;
    }
    if (!json_is_array(value)) {
        refuse(at, key, "must be an array");
        return NULL;
    }
    if (json_array_size(value) < 1 || json_array_size(value) > most) {
        refuse(at, key, "must have from 1 to %zu entries, not %zu", most, json_array_size(value));
        return NULL;
    }
    return value;
}

static bool find_device(const struct place *at, const char *key, const struct lab_scenario *scenario, const char *name,
                        uint32_t *out)
{
    for (uint32_t d = 0; d < scenario->device_count; d++) {
        if (strcmp(scenario->devices[d].name, name) == 0) {
            *out = d;
            return true;
        }
    }
    return refuse(at, key, "there is no device \"%s\"", name);
}

/* --- devices --- */

static bool read_outliers(const struct place *at, struct lab_scenario_device *device)
{
    static const char *const keys[] = {"probability", "factor", NULL};
    json_t *value = json_object_get(at->object, "outliers");
    char path[PATH_MAX_BYTES];
    struct place in;
    if (!value)
        return true;
    snprintf(path, sizeof path, "%.140s.outliers", at->path);
    return enter(&in, at->reader, value, keys, path, 0) &&
           number(&in, "probability", true, 0, 1, &device->outlier_probability) &&
           number(&in, "factor", true, 0.01, 1000, &device->outlier_factor);
}

static bool read_thermal(const struct place *at, struct lab_scenario_device *device)
{
    static const char *const keys[] = {"factor", "seconds", NULL};
    json_t *value = json_object_get(at->object, "thermal");
    char path[PATH_MAX_BYTES];
    struct place in;
    double seconds = 0;
    if (!value)
        return true;
    snprintf(path, sizeof path, "%.140s.thermal", at->path);
    bool ok = enter(&in, at->reader, value, keys, path, 0) &&
              number(&in, "factor", true, 1, 1000, &device->thermal_factor) &&
              number(&in, "seconds", true, 1e-6, 1e6, &seconds);
    device->thermal_ns = seconds * 1e9;
    return ok;
}

static bool read_device(struct reader *reader, json_t *value, uint32_t index, struct lab_scenario *out)
{
    static const char *const keys[] = {"name",        "count",      "fixed_us", "launch_us", "row_us",
                                       "transfer_us", "overlap",    "jitter",   "outliers",  "thermal",
                                       "watts",       "idle_watts", NULL};
    struct lab_scenario_device device = {.thermal_factor = 1, .outlier_factor = 1};
    struct place at;
    uint64_t count = 1;
    double fixed_us = 0, launch_us = 0, row_us = 0, transfer_us = 0;
    if (!enter(&at, reader, value, keys, "devices[#]", index) ||
        !string(&at, "name", true, LAB_NAME_MAX - 4, device.name) ||
        !integer(&at, "count", false, 1, COX_DEVICES_MAX, &count) ||
        !number(&at, "fixed_us", false, 0, 1e9, &fixed_us) || !number(&at, "launch_us", false, 0, 1e9, &launch_us) ||
        !number(&at, "row_us", true, 1e-6, 1e9, &row_us) || !number(&at, "transfer_us", false, 0, 1e9, &transfer_us) ||
        !boolean(&at, "overlap", &device.overlap) || !number(&at, "jitter", false, 0, 1, &device.jitter) ||
        !number(&at, "watts", false, 0, 1e5, &device.watts) ||
        !number(&at, "idle_watts", false, 0, 1e5, &device.idle_watts) || !read_outliers(&at, &device) ||
        !read_thermal(&at, &device))
        return false;
    if (out->device_count + count > COX_DEVICES_MAX)
        return refuse(&at, NULL, "with it there are more than %d devices", COX_DEVICES_MAX);
    device.fixed_ns = fixed_us * 1e3;
    device.launch_ns = launch_us * 1e3;
    device.row_ns = row_us * 1e3;
    device.transfer_ns = transfer_us * 1e3;
    for (uint64_t i = 0; i < count; i++) {
        struct lab_scenario_device *copy = &out->devices[out->device_count];
        *copy = device;
        if (count > 1)
            snprintf(copy->name + strlen(copy->name), 4, "-%u", (unsigned)i % 100);
        for (uint32_t d = 0; d < out->device_count; d++)
            if (strcmp(out->devices[d].name, copy->name) == 0)
                return refuse(&at, "name", "there is a device of that name already");
        out->device_count++;
    }
    return true;
}

/* --- what happens --- */

/* "from" and "to"; to the end without. */
static bool read_span(const struct place *at, const struct lab_scenario *scenario, uint64_t *from, uint64_t *to)
{
    *from = 0;
    *to = scenario->frames;
    if (!integer(at, "from", false, 0, scenario->frames - 1, from) ||
        !integer(at, "to", false, 1, scenario->frames, to))
        return false;
    return *from < *to || refuse(at, "to", "must be after \"from\"");
}

static bool read_change(struct reader *reader, json_t *value, uint32_t index, struct lab_scenario *out)
{
    static const char *const keys[] = {"device", "from",  "to",   "slower", "drift",
                                       "period", "phase", "gone", "rows",   NULL};
    struct lab_scenario_change change = {.factor = 1};
    struct place at;
    char name[LAB_NAME_MAX] = "";
    uint64_t rows = 0;
    bool gone = false;
    if (!enter(&at, reader, value, keys, "changes[#]", index) || !read_span(&at, out, &change.from, &change.to) ||
        !string(&at, "device", false, sizeof name, name))
        return false;
    bool slower = json_object_get(value, "slower"), drift = json_object_get(value, "drift");
    bool sized = json_object_get(value, "rows");
    if (slower + drift + sized + !!json_object_get(value, "gone") != 1)
        return refuse(&at, NULL, "must have one of \"slower\", \"drift\", \"gone\" and \"rows\"");
    if (!drift && (json_object_get(value, "period") || json_object_get(value, "phase")))
        return refuse(&at, NULL, "\"period\" and \"phase\" go with \"drift\"");
    if (sized == (name[0] != '\0'))
        return refuse(&at, "device", "%s", sized ? "does not go with \"rows\"" : "is missing");
    if (name[0] && !find_device(&at, "device", out, name, &change.device))
        return false;
    if (slower) {
        change.kind = LAB_SLOWER;
        number(&at, "slower", true, 0.001, 1000, &change.factor);
    } else if (drift) {
        change.kind = LAB_DRIFT;
        number(&at, "drift", true, 0, 0.99, &change.factor);
        number(&at, "period", true, 2, 1e6, &change.period);
        number(&at, "phase", false, 0, 1, &change.phase);
    } else if (sized) {
        change.kind = LAB_ROWS;
        integer(&at, "rows", true, out->granule, LAB_ROWS_MAX, &rows);
        change.rows = (uint32_t)rows;
    } else {
        change.kind = LAB_GONE;
        if (boolean(&at, "gone", &gone) && !gone)
            refuse(&at, "gone", "must be true, or not there");
    }
    out->changes[out->change_count++] = change;
    return !reader->failed;
}

static bool read_contention(struct reader *reader, json_t *value, uint32_t index, struct lab_scenario *out)
{
    static const char *const keys[] = {"devices", "from", "to", "slower", NULL};
    struct lab_scenario_contention contention = {.devices = 0};
    struct place at;
    if (!enter(&at, reader, value, keys, "contention[#]", index) ||
        !read_span(&at, out, &contention.from, &contention.to) ||
        !number(&at, "slower", true, 1, 1000, &contention.factor))
        return false;
    json_t *names = array(&at, "devices", false, COX_DEVICES_MAX);
    if (reader->failed)
        return false;
    for (uint32_t d = 0; !names && d < out->device_count; d++)
        contention.devices |= 1u << d;
    for (size_t i = 0; names && i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        uint32_t device = 0;
        if (!name)
            return refuse(&at, "devices", "must hold names of devices");
        if (!find_device(&at, "devices", out, name, &device))
            return false;
        contention.devices |= 1u << device;
    }
    if (!(contention.devices & (contention.devices - 1)))
        return refuse(&at, "devices", "two devices are needed to contend");
    out->contentions[out->contention_count++] = contention;
    return true;
}

static bool read_heavy(struct reader *reader, json_t *value, uint32_t index, struct lab_scenario *out)
{
    static const char *const keys[] = {"first", "rows", "slower", "period", NULL};
    struct lab_scenario_heavy heavy = {.factor = 1};
    struct place at;
    if (!enter(&at, reader, value, keys, "heavy[#]", index) || !number(&at, "first", false, 0, 1, &heavy.first) ||
        !number(&at, "rows", true, 0, 1, &heavy.rows) || !number(&at, "slower", true, 0.001, 1000, &heavy.factor) ||
        !number(&at, "period", false, 2, 1e6, &heavy.period))
        return false;
    if (heavy.period == 0 && heavy.first + heavy.rows > 1)
        return refuse(&at, NULL, "the heavy rows end below the frame");
    out->heavy[out->heavy_count++] = heavy;
    return true;
}

static bool read_scenes(struct reader *reader, json_t *value, struct lab_scenario *out)
{
    static const char *const keys[] = {"frames", "segments", "share", "slower", NULL};
    struct place at;
    uint64_t segments = 0;
    if (!value)
        return true;
    if (!enter(&at, reader, value, keys, "scenes", 0) ||
        !integer(&at, "frames", true, 1, LAB_FRAMES_MAX, &out->scene_frames) ||
        !integer(&at, "segments", true, 1, LAB_SEGMENTS_MAX - 1, &segments) ||
        !number(&at, "share", true, 0, 1, &out->scene_share) ||
        !number(&at, "slower", true, 0.001, 1000, &out->scene_factor))
        return false;
    out->scene_segments = (uint32_t)segments;
    return out->heavy_count == 0 || refuse(&at, NULL, "does not go with \"heavy\"");
}

/* --- bars --- */

/* A bar of no policy would be met for ever. */
static bool is_policy(const struct place *at, const char *key, const char *name)
{
    const struct cox_policy *policy;
    return lab_policy_find(name, &policy) || refuse(at, key, "there is no policy \"%s\"", name);
}

static bool read_bars(struct reader *reader, json_t *value, struct lab_scenario *out)
{
    const char *keys[LAB_FIGURE_COUNT + 2] = {"p99_of"};
    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        keys[f + 1] = figure_keys[f];
    struct place all = {.reader = reader, .object = value, .path = "bars"};
    if (!value)
        return true;
    if (!json_is_object(value))
        return refuse(&all, NULL, "must be an object");
    if (json_object_size(value) > LAB_BARS_MAX)
        return refuse(&all, NULL, "must name at most %d policies", LAB_BARS_MAX);
    const char *policy;
    json_t *wanted;
    json_object_foreach(value, policy, wanted)
    {
        struct lab_scenario_bars *bars = &out->bars[out->bars_count++];
        size_t length = strlen(policy);
        if (length == 0 || length >= sizeof bars->policy || !is_printable(policy))
            return refuse(&all, NULL, "a policy has a name of 1 to %zu bytes", sizeof bars->policy - 1);
        memcpy(bars->policy, policy, length + 1);
        if (!is_policy(&all, NULL, policy))
            return false;
        char path[PATH_MAX_BYTES];
        snprintf(path, sizeof path, "bars.%s", policy);
        struct place at;
        if (!enter(&at, reader, wanted, keys, path, 0) || !string(&at, "p99_of", false, LAB_NAME_MAX, bars->p99_of) ||
            (bars->p99_of[0] && !is_policy(&at, "p99_of", bars->p99_of)))
            return false;
        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            bars->most[f] = -1;
            if (!number(&at, figure_keys[f], false, 0, 1e9, &bars->most[f]))
                return false;
        }
    }
    return true;
}

/* --- the whole --- */

/* In every frame a device must answer. The set that does changes only where a "gone" begins or ends. */
static bool check_alive(const struct place *at, const struct lab_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (change->kind != LAB_GONE)
            continue;
        bool any = false;
        for (uint32_t d = 0; d < scenario->device_count; d++)
            any |= lab_scenario_is_alive(scenario, d, change->from);
        if (!any)
            return refuse(at, "changes", "in frame %" PRIu64 " no device is left", change->from);
    }
    return true;
}

static bool check_size(const struct place *at, const struct lab_scenario *scenario)
{
    uint32_t rows = scenario->rows;
    for (uint32_t i = 0; i < scenario->change_count; i++)
        if (scenario->changes[i].kind == LAB_ROWS && scenario->changes[i].rows > rows)
            rows = scenario->changes[i].rows;
    if (scenario->frames * scenario->device_count > LAB_FRAMES_TIMES_DEVICES_MAX)
        return refuse(at, "frames", "frames times devices must be at most %d", LAB_FRAMES_TIMES_DEVICES_MAX);
    if (scenario->frames * (rows / scenario->granule) > LAB_FRAMES_TIMES_GRANULES_MAX)
        return refuse(at, "frames", "frames times granules must be at most %d", LAB_FRAMES_TIMES_GRANULES_MAX);
    return true;
}

static bool read_objective(const struct place *at, struct lab_scenario *out)
{
    char objective[16] = "time";
    double deadline_us = 0;
    if (!string(at, "objective", false, sizeof objective, objective) ||
        !number(at, "deadline_us", false, 1, 1e9, &deadline_us) ||
        !number(at, "base_watts", false, 0, 1e5, &out->base_watts))
        return false;
    if (strcmp(objective, "energy") == 0)
        out->objective = COX_OBJECTIVE_ENERGY;
    else if (strcmp(objective, "time") != 0)
        return refuse(at, "objective", "must be \"time\" or \"energy\"");
    out->deadline_ns = (uint64_t)(deadline_us * 1e3);
    return true;
}

typedef bool read_fn(struct reader *reader, json_t *value, uint32_t index, struct lab_scenario *out);

static bool read_each(const struct place *at, const char *key, bool must, size_t most, read_fn *read,
                      struct lab_scenario *out)
{
    json_t *values = array(at, key, must, most);
    for (size_t i = 0; values && i < json_array_size(values); i++)
        if (!read(at->reader, json_array_get(values, i), (uint32_t)i, out))
            return false;
    return !at->reader->failed;
}

static bool read_scenario(struct reader *reader, json_t *root, struct lab_scenario *out)
{
    static const char *const keys[] = {"name",      "text",        "rows",       "granule", "frames",
                                       "devices",   "changes",     "contention", "heavy",   "scenes",
                                       "objective", "deadline_us", "base_watts", "bars",    NULL};
    struct place at;
    uint64_t rows = 0, granule = 1;
    out->frames = 400;
    if (!enter(&at, reader, root, keys, NULL, 0) || !string(&at, "name", false, sizeof out->name, out->name) ||
        !string(&at, "text", false, sizeof out->text, out->text) ||
        !integer(&at, "rows", true, 1, LAB_ROWS_MAX, &rows) || !integer(&at, "granule", false, 1, rows, &granule) ||
        !integer(&at, "frames", false, 1, LAB_FRAMES_MAX, &out->frames))
        return false;
    out->rows = (uint32_t)rows;
    out->granule = (uint32_t)granule;
    return read_each(&at, "devices", true, COX_DEVICES_MAX, read_device, out) &&
           read_each(&at, "changes", false, LAB_CHANGES_MAX, read_change, out) &&
           read_each(&at, "contention", false, LAB_CONTENTIONS_MAX, read_contention, out) &&
           read_each(&at, "heavy", false, LAB_HEAVY_MAX, read_heavy, out) &&
           read_scenes(reader, json_object_get(root, "scenes"), out) && read_objective(&at, out) &&
           read_bars(reader, json_object_get(root, "bars"), out) && check_alive(&at, out) && check_size(&at, out);
}

/* The file's name without folder and ending. */
static void name_from_file(const char *file, struct lab_scenario *out)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    size_t length = strlen(name);
    if (length > 5 && strcmp(name + length - 5, ".json") == 0)
        length -= 5;
    if (length >= sizeof out->name)
        length = sizeof out->name - 1;
    memcpy(out->name, name, length);
    out->name[length] = '\0';
}

struct lab_scenario *lab_scenario_parse(const char *text, size_t bytes, const char *file, char *why, size_t why_bytes)
{
    struct reader reader = {.file = file, .why = why, .why_bytes = why_bytes};
    struct place top = {.reader = &reader};
    if (why && why_bytes > 0)
        why[0] = '\0';
    if (bytes > LAB_SCENARIO_BYTES_MAX) {
        refuse(&top, NULL, "is longer than %d bytes", LAB_SCENARIO_BYTES_MAX);
        return NULL;
    }
    json_error_t error;
    json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        char plain[4 * JSON_ERROR_TEXT_LENGTH]; /* it quotes the file, line feeds and all */
        if (why && why_bytes > 0)
            snprintf(why, why_bytes, "%s:%d:%d: %s", file, error.line, error.column,
                     lab_plain(error.text, plain, sizeof plain));
        return NULL;
    }
    struct lab_scenario *scenario = calloc(1, sizeof *scenario);
    if (!scenario) {
        refuse(&top, NULL, "out of memory");
    } else {
        name_from_file(file, scenario);
        if (!read_scenario(&reader, root, scenario))
            lab_scenario_free(&scenario);
    }
    json_decref(root);
    return scenario;
}

/* NULL with the reason unless it is a regular file: a FIFO would be waited for, a device may never end. */
static FILE *open_regular(const char *path, char *why, size_t why_bytes)
{
    struct stat st;
    FILE *file = NULL;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
        snprintf(why, why_bytes, "%s: is no regular file", path);
    else if (fd < 0 || !(file = fdopen(fd, "rb")))
        snprintf(why, why_bytes, "%s: %s", path, strerror(errno));
    if (!file && fd >= 0)
        close(fd);
    return file;
}

static struct lab_scenario *load_file(const char *path, char *why, size_t why_bytes)
{
    struct lab_scenario *scenario = NULL;
    FILE *file = open_regular(path, why, why_bytes);
    if (!file)
        return NULL;
    char *text = malloc(LAB_SCENARIO_BYTES_MAX + 1);
    size_t bytes = text ? fread(text, 1, LAB_SCENARIO_BYTES_MAX + 1, file) : 0;
    if (!text)
        snprintf(why, why_bytes, "%s: out of memory", path);
    else if (ferror(file))
        snprintf(why, why_bytes, "%s: cannot be read", path);
    else
        scenario = lab_scenario_parse(text, bytes, path, why, why_bytes);
    free(text);
    fclose(file);
    return scenario;
}

static bool is_scenario(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static bool is_file_name(const char *name)
{
    return strchr(name, '/') || is_scenario(name);
}

static const struct lab_text *find_built_in(const char *name)
{
    for (const struct lab_text *text = lab_texts; text->name; text++)
        if (is_scenario(text->name) && strlen(text->name) == strlen(name) + 5 &&
            strncmp(text->name, name, strlen(name)) == 0)
            return text;
    return NULL;
}

bool lab_scenario_is_name(const char *name)
{
    return is_file_name(name) || find_built_in(name);
}

struct lab_scenario *lab_scenario_load(const char *name, char *why, size_t why_bytes)
{
    if (is_file_name(name))
        return load_file(name, why, why_bytes);
    const struct lab_text *text = find_built_in(name);
    if (text)
        return lab_scenario_parse(text->text, strlen(text->text), text->name, why, why_bytes);
    snprintf(why, why_bytes, "there is no scenario '%s'; `cox-lab sim --list` names those that there are", name);
    return NULL;
}

const char *lab_scenario_name(uint32_t index, char *name, size_t bytes)
{
    for (const struct lab_text *text = lab_texts; text->name; text++) {
        if (!is_scenario(text->name) || index-- > 0)
            continue;
        snprintf(name, bytes, "%.*s", (int)strlen(text->name) - 5, text->name);
        return name;
    }
    return NULL;
}

void lab_scenario_free(struct lab_scenario **scenario)
{
    free(*scenario);
    *scenario = NULL;
}
