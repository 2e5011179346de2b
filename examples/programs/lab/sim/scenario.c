/* Reads scenario files. Every value of a file has a bound, so that no small file takes gigabytes or
 * hours. scenario_chance.c reads what is about chance and threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario_read.h"
#include "lab/objective.h"
#include "common/strict_fp.h"
#include "lab/texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const lab_figure_keys[LAB_FIGURE_COUNT] = {
#define KEY(name, key, heading) key,
    LAB_FIGURE_MAP(KEY)
#undef KEY
};

/* --- devices --- */

/* Read everything but the devices. */
static bool read_heat(const struct strict_place *at, struct lab_scenario_heat *out)
{
    double seconds = 0;

    if (!strict_number(at, "factor", true, 0.001, 1000, &out->factor) ||
        !strict_number(at, "seconds", true, 1e-6, 1e6, &seconds) ||
        !strict_number(at, "hot", false, 0.001, 1, &out->hot) ||
        !strict_number(at, "cool", out->hot > 0, 0, 1, &out->cool))
        return false;

    out->ns = seconds * 1e9;
    return out->cool <= out->hot || strict_refuse(at, "cool", "must be at most \"hot\"");
}

/* `factor` stays 1 without the key. */
static bool read_thermal(const struct strict_place *at, struct lab_scenario_heat *out)
{
    static const char *const keys[] = {"factor", "seconds", "hot", "cool", NULL};
    struct strict_place in;

    if (!json_object_get(at->object, "thermal"))
        return true;
    return lab_place_enter_member(&in, at, "thermal", keys) && read_heat(&in, out);
}

static bool read_power(struct strict_reader *reader, json_t *value, uint32_t index,
                       struct lab_scenario *out)
{
    static const char *const keys[] = {"devices", "factor", "seconds", "hot", "cool", NULL};
    struct lab_scenario_heat *heat = &out->heats[out->heat_count++];
    struct strict_place at;

    if (!strict_enter(&at, reader, value, keys, "power[#]", index) || !read_heat(&at, heat) ||
        !lab_place_devices(&at, "devices", out, &heat->devices))
        return false;

    if (!json_object_get(value, "devices")) /* all of them */
        heat->devices = UINT32_MAX >> (32 - out->device_count);
    return true;
}

/* Read microseconds. Without the key `ns` does not change. */
static bool read_us(const struct strict_place *at, const char *key, bool must, double low,
                    double *ns)
{
    double us = 0;
    if (!strict_number(at, key, must, low, 1e9, &us))
        return false;
    if (json_object_get(at->object, key))
        *ns = us * 1e3;
    return true;
}

static bool read_cost(const struct strict_place *at, bool must, struct lab_scenario_device *out)
{
    return read_us(at, "fixed_us", false, 0, &out->fixed_ns) &&
           read_us(at, "launch_us", false, 0, &out->launch_ns) &&
           read_us(at, "row_us", must, 1e-6, &out->row_ns) &&
           read_us(at, "transfer_us", false, 0, &out->transfer_ns);
}

static bool read_device(struct strict_reader *reader, json_t *value, uint32_t index,
                        struct lab_scenario *out)
{
    static const char *const keys[] = {
        "name",        "count",    "fixed_us",     "launch_us",   "row_us", "transfer_us",
        "overlap",     "jitter",   "outliers",     "thermal",     "watts",  "idle_watts",
        "jitter_tail", "level",    "jumps",        "launch_tail", "trace",  "trace_late_us",
        "submit_us",   "ahead_us", "ahead_row_us", NULL};
    struct lab_scenario_device device = {.outlier_factor = 1};
    struct lab_scenario_heat heat = {.factor = 1};
    struct strict_place at;
    uint64_t count = 1;

    if (!strict_enter(&at, reader, value, keys, "devices[#]", index) ||
        !strict_string(&at, "name", true, LAB_NAME_MAX - 4, device.name) ||
        !strict_integer(&at, "count", false, 1, COX_DEVICES_MAX, &count) ||
        !read_cost(&at, true, &device) || !strict_boolean(&at, "overlap", &device.overlap) ||
        !read_us(&at, "submit_us", false, 0, &device.submit_ns) ||
        !read_us(&at, "ahead_us", false, 0, &device.ahead_ns) ||
        !read_us(&at, "ahead_row_us", false, 0, &device.ahead_row_ns) ||
        !strict_number(&at, "watts", false, 0, 1e5, &device.watts) ||
        !strict_number(&at, "idle_watts", false, 0, 1e5, &device.idle_watts) ||
        !lab_read_device_chance(&at, &device, out) || !read_thermal(&at, &heat))
        return false;

    if (out->device_count + count > COX_DEVICES_MAX)
        return strict_refuse(&at, NULL, "more than %d devices in total", COX_DEVICES_MAX);

    for (uint64_t i = 0; i < count; i++) {
        struct lab_scenario_device *copy = &out->devices[out->device_count];
        *copy = device;
        heat.devices = 1u << out->device_count;
        if (heat.factor != 1)
            out->heats[out->heat_count++] = heat;
        if (count > 1)
            snprintf(copy->name + strlen(copy->name), 4, "-%u", (unsigned)i % 100);

        for (uint32_t d = 0; d < out->device_count; d++)
            if (strcmp(out->devices[d].name, copy->name) == 0)
                return strict_refuse(&at, "name", "a device of this name already exists");
        out->device_count++;
    }

    return true;
}

/* --- passes --- */

static bool read_pass_device(const struct strict_place *pass, json_t *value, uint32_t index,
                             const struct lab_scenario *scenario, struct lab_scenario_pass *out)
{
    static const char *const keys[] = {"device", "fixed_us",    "launch_us",
                                       "row_us", "transfer_us", NULL};
    struct strict_place at;
    char path[STRICT_PATH_BYTES], name[LAB_NAME_MAX] = "";
    uint32_t device = 0;

    snprintf(path, sizeof path, "%.64s.devices[#]", pass->path);
    return strict_enter(&at, pass->reader, value, keys, path, index) &&
           strict_string(&at, "device", true, sizeof name, name) &&
           lab_place_device(&at, "device", scenario, name, &device) &&
           read_cost(&at, false, &out->devices[device]);
}

/* Values that the pass does not give are those of the scenario and its devices. */
static bool read_pass(struct strict_reader *reader, json_t *value, uint32_t index,
                      struct lab_scenario *out)
{
    static const char *const keys[] = {"name",      "rows",         "granule", "devices",
                                       "before_us", "moved_row_us", NULL};
    struct lab_scenario_pass *pass = &out->passes[out->pass_count++];
    struct strict_place at;
    uint64_t rows = out->rows, row_alignment = out->row_alignment;

    memcpy(pass->devices, out->devices, sizeof pass->devices);
    if (!strict_enter(&at, reader, value, keys, "passes[#]", index) ||
        !strict_string(&at, "name", false, sizeof pass->name, pass->name) ||
        !strict_integer(&at, "rows", false, 1, LAB_ROWS_MAX, &rows) ||
        !strict_integer(&at, "granule", false, 1, rows, &row_alignment))
        return false;

    if (row_alignment > rows)
        return strict_refuse(&at, "rows", "must be at least \"granule\", which is %" PRIu64,
                             row_alignment);
    pass->rows = (uint32_t)rows;
    pass->row_alignment = (uint32_t)row_alignment;

    if (index == 0 &&
        (json_object_get(value, "before_us") || json_object_get(value, "moved_row_us")))
        return strict_refuse(&at, NULL,
                             "\"before_us\" and \"moved_row_us\" are not "
                             "allowed in the first pass");
    if (!read_us(&at, "before_us", false, 0, &pass->before_ns) ||
        !read_us(&at, "moved_row_us", false, 0, &pass->moved_row_ns))
        return false;

    json_t *devices = strict_array(&at, "devices", false, COX_DEVICES_MAX);
    for (size_t i = 0; i < json_array_size(devices); i++)
        if (!read_pass_device(&at, json_array_get(devices, i), (uint32_t)i, out, pass))
            return false;
    return !reader->failed;
}

/* --- events --- */

/* Read "from" and "to". Without them: the whole scenario. */
static bool read_span(const struct strict_place *at, const struct lab_scenario *scenario,
                      uint64_t *from, uint64_t *to)
{
    *from = 0;
    *to = scenario->frames;
    if (!strict_integer(at, "from", false, 0, scenario->frames - 1, from) ||
        !strict_integer(at, "to", false, 1, scenario->frames, to))
        return false;
    return *from < *to || strict_refuse(at, "to", "must be after \"from\"");
}

static bool read_change(struct strict_reader *reader, json_t *value, uint32_t index,
                        struct lab_scenario *out)
{
    static const char *const keys[] = {"device", "from",  "to",   "slower", "drift",
                                       "period", "phase", "gone", "rows",   NULL};
    struct lab_scenario_change change = {.factor = 1};
    struct strict_place at;
    char name[LAB_NAME_MAX] = "";
    uint64_t rows = 0;
    bool gone = false;

    if (!strict_enter(&at, reader, value, keys, "changes[#]", index) ||
        !read_span(&at, out, &change.from, &change.to) ||
        !strict_string(&at, "device", false, sizeof name, name))
        return false;

    const bool slower = json_object_get(value, "slower"), drift = json_object_get(value, "drift");
    const bool sized = json_object_get(value, "rows");
    if (slower + drift + sized + !!json_object_get(value, "gone") != 1)
        return strict_refuse(&at, NULL,
                             "must have one of \"slower\", \"drift\", \"gone\" and \"rows\"");
    if (!drift && (json_object_get(value, "period") || json_object_get(value, "phase")))
        return strict_refuse(&at, NULL, "\"period\" and \"phase\" are only allowed with \"drift\"");
    if (sized && name[0])
        return strict_refuse(&at, "device", "not allowed with \"rows\"");
    if (!sized && !name[0])
        return strict_refuse(&at, "device", "missing");
    if (name[0] && !lab_place_device(&at, "device", out, name, &change.device))
        return false;

    if (slower) {
        change.kind = LAB_SLOWER;
        strict_number(&at, "slower", true, 0.001, 1000, &change.factor);
    } else if (drift) {
        change.kind = LAB_DRIFT;
        strict_number(&at, "drift", true, 0, 0.99, &change.factor);
        strict_number(&at, "period", true, 2, 1e6, &change.period);
        strict_number(&at, "phase", false, 0, 1, &change.phase);
    } else if (sized) {
        change.kind = LAB_ROWS;
        if (out->pass_count > 0)
            return strict_refuse(&at, "rows", "not allowed with \"passes\"");
        strict_integer(&at, "rows", true, out->row_alignment, LAB_ROWS_MAX, &rows);
        change.rows = (uint32_t)rows;
    } else {
        change.kind = LAB_GONE;
        if (strict_boolean(&at, "gone", &gone) && !gone)
            strict_refuse(&at, "gone", "must be true or omitted");
    }

    out->changes[out->change_count++] = change;
    return !reader->failed;
}

static bool read_contention(struct strict_reader *reader, json_t *value, uint32_t index,
                            struct lab_scenario *out)
{
    static const char *const keys[] = {"devices", "slows", "from", "to", "slower", NULL};
    struct lab_scenario_contention contention = {.devices = 0};
    struct strict_place at;

    if (!strict_enter(&at, reader, value, keys, "contention[#]", index) ||
        !read_span(&at, out, &contention.from, &contention.to) ||
        !strict_number(&at, "slower", true, 1, 1000, &contention.factor) ||
        !lab_place_devices(&at, "devices", out, &contention.devices) ||
        !lab_place_devices(&at, "slows", out, &contention.slows))
        return false;

    if (!json_object_get(value, "devices")) /* all of them */
        contention.devices = UINT32_MAX >> (32 - out->device_count);
    if (!(contention.devices & (contention.devices - 1)))
        return strict_refuse(&at, "devices", "must name at least two devices");

    if (!json_object_get(value, "slows"))
        contention.slows = contention.devices;
    if (contention.slows & ~contention.devices)
        return strict_refuse(&at, "slows", "must be among \"devices\"");
    out->contentions[out->contention_count++] = contention;
    return true;
}

static bool read_heavy(struct strict_reader *reader, json_t *value, uint32_t index,
                       struct lab_scenario *out)
{
    static const char *const keys[] = {"first", "rows", "slower", "period", NULL};
    struct lab_scenario_heavy heavy = {.factor = 1};
    struct strict_place at;

    if (!strict_enter(&at, reader, value, keys, "heavy[#]", index) ||
        !strict_number(&at, "first", false, 0, 1, &heavy.first) ||
        !strict_number(&at, "rows", true, 0, 1, &heavy.rows) ||
        !strict_number(&at, "slower", true, 0.001, 1000, &heavy.factor) ||
        !strict_number(&at, "period", false, 2, 1e6, &heavy.period))
        return false;

    if (heavy.period == 0 && heavy.first + heavy.rows > 1)
        return strict_refuse(&at, NULL, "\"first\" plus \"rows\" must be at most 1");
    out->heavy[out->heavy_count++] = heavy;
    return true;
}

static bool read_scenes(struct strict_reader *reader, json_t *value, struct lab_scenario *out)
{
    static const char *const keys[] = {"frames", "segments", "share", "slower", NULL};
    struct strict_place at;
    uint64_t segments = 0;

    if (!value)
        return true;

    if (!strict_enter(&at, reader, value, keys, "scenes", 0) ||
        !strict_integer(&at, "frames", true, 1, LAB_FRAMES_MAX, &out->scene_frames) ||
        !strict_integer(&at, "segments", true, 1, LAB_SEGMENTS_MAX - 1, &segments) ||
        !strict_number(&at, "share", true, 0, 1, &out->scene_share) ||
        !strict_number(&at, "slower", true, 0.001, 1000, &out->scene_factor))
        return false;

    out->scene_segments = (uint32_t)segments;
    return out->heavy_count == 0 || strict_refuse(&at, NULL, "not allowed with \"heavy\"");
}

static bool read_content(struct strict_reader *reader, json_t *value, struct lab_scenario *out)
{
    static const char *const keys[] = {"frames", "pictures", NULL};
    struct strict_place at;

    if (!value)
        return true;

    out->content_frames = 1;
    if (!strict_enter(&at, reader, value, keys, "content", 0) ||
        !strict_integer(&at, "frames", false, 1, LAB_FRAMES_MAX, &out->content_frames))
        return false;

    json_t *pictures = strict_array(&at, "pictures", true, LAB_PICTURES_MAX);
    out->content_first = out->traced;
    out->content_pictures = (uint32_t)json_array_size(pictures);
    out->content_segments = (uint32_t)json_array_size(json_array_get(pictures, 0));
    if (!pictures)
        return false;
    if (out->content_segments == 0 || out->content_segments >= LAB_SEGMENTS_MAX)
        return strict_refuse(&at, "pictures", "a picture must have from 1 to %d numbers",
                             LAB_SEGMENTS_MAX - 1);

    for (size_t i = 0; i < json_array_size(pictures); i++) {
        const json_t *picture = json_array_get(pictures, i);
        if (json_array_size(picture) != out->content_segments)
            return strict_refuse(&at, "pictures", "all pictures must have as many numbers");
        if (!lab_read_series(&at, "pictures", picture, 0.001, 1000, 1, out))
            return false;
    }

    return (out->heavy_count == 0 && out->scene_frames == 0) ||
           strict_refuse(&at, NULL, "not allowed with \"heavy\" or \"scenes\"");
}

/* --- bars --- */

/* A bar for an unknown policy would always be met. */
static bool is_policy(const struct strict_place *at, const char *key, const char *name)
{
    const struct cox_policy *policy;
    return lab_policy_find(name, &policy) || strict_refuse(at, key, "unknown policy \"%s\"", name);
}

static bool read_bars(struct strict_reader *reader, json_t *value, struct lab_scenario *out)
{
    const char *keys[LAB_FIGURE_COUNT + 2] = {"p99_of"};
    const struct strict_place all = {.reader = reader, .object = value, .path = "bars"};
    const char *policy;
    json_t *wanted;

    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        keys[f + 1] = lab_figure_keys[f];

    if (!value)
        return true;
    if (!json_is_object(value))
        return strict_refuse(&all, NULL, "must be an object");
    if (json_object_size(value) > LAB_BARS_MAX)
        return strict_refuse(&all, NULL, "must name at most %d policies", LAB_BARS_MAX);

    json_object_foreach(value, policy, wanted)
    {
        struct lab_scenario_bars *bars = &out->bars[out->bars_count++];
        const size_t length = strlen(policy);
        char path[STRICT_PATH_BYTES];
        struct strict_place at;

        if (length == 0 || length >= sizeof bars->policy || !strict_is_printable(policy))
            return strict_refuse(&all, NULL,
                                 "names of policies must have from 1 to %zu printable bytes",
                                 sizeof bars->policy - 1);
        memcpy(bars->policy, policy, length + 1);
        if (!is_policy(&all, NULL, policy))
            return false;

        snprintf(path, sizeof path, "bars.%s", policy);
        if (!strict_enter(&at, reader, wanted, keys, path, 0) ||
            !strict_string(&at, "p99_of", false, LAB_NAME_MAX, bars->p99_of) ||
            (bars->p99_of[0] && !is_policy(&at, "p99_of", bars->p99_of)))
            return false;

        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            bars->most[f] = -1;
            if (!strict_number(&at, lab_figure_keys[f], false, 0, 1e9, &bars->most[f]))
                return false;
        }
    }

    return true;
}

/* --- the whole scenario --- */

/* In every frame a device must answer. Devices are lost only where a "gone" begins. */
static bool check_alive(const struct strict_place *at, const struct lab_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->change_count; i++) {
        const struct lab_scenario_change *change = &scenario->changes[i];
        if (change->kind != LAB_GONE)
            continue;

        bool any = false;
        for (uint32_t d = 0; d < scenario->device_count; d++)
            any |= lab_scenario_is_alive(scenario, d, change->from);
        if (!any)
            return strict_refuse(at, "changes", "no device is left in frame %" PRIu64,
                                 change->from);
    }

    return true;
}

static bool check_size(const struct strict_place *at, const struct lab_scenario *scenario)
{
    uint64_t rows = scenario->rows, row_units = 0;
    for (uint32_t i = 0; i < scenario->change_count; i++)
        if (scenario->changes[i].kind == LAB_ROWS && scenario->changes[i].rows > rows)
            rows = scenario->changes[i].rows;

    if (scenario->frames * scenario->device_count > LAB_FRAMES_TIMES_DEVICES_MAX)
        return strict_refuse(at, "frames", "frames times devices must be at most %d",
                             LAB_FRAMES_TIMES_DEVICES_MAX);

    for (uint32_t p = 0; p < scenario->pass_count; p++)
        row_units += scenario->passes[p].rows / scenario->passes[p].row_alignment;
    if (scenario->pass_count == 0)
        row_units = rows / scenario->row_alignment;
    if (scenario->frames * row_units > LAB_FRAMES_TIMES_GRANULES_MAX)
        return strict_refuse(at, "frames", "frames times granules must be at most %d",
                             LAB_FRAMES_TIMES_GRANULES_MAX);
    return true;
}

static bool read_objective(const struct strict_place *at, struct lab_scenario *out)
{
    char objective[16] = "throughput";
    double deadline_us = 0;
    if (!strict_string(at, "objective", false, sizeof objective, objective) ||
        !strict_number(at, "deadline_us", false, 1, 1e9, &deadline_us) ||
        !strict_number(at, "base_watts", false, 0, 1e5, &out->base_watts))
        return false;

    if (!lab_objective_find(objective, &out->objective))
        return strict_refuse(at, "objective", "must be \"throughput\", \"latency\" or \"energy\"");
    out->deadline_ns = (uint64_t)(deadline_us * 1e3);
    return out->pass_count < 2 || out->objective != COX_OBJECTIVE_ENERGY ||
           strict_refuse(at, "objective", "energy is not supported with several passes");
}

typedef bool read_fn(struct strict_reader *reader, json_t *value, uint32_t index,
                     struct lab_scenario *out);

static bool read_each(const struct strict_place *at, const char *key, bool must, size_t most,
                      read_fn *read, struct lab_scenario *out)
{
    json_t *values = strict_array(at, key, must, most);

    for (size_t i = 0; values && i < json_array_size(values); i++)
        if (!read(at->reader, json_array_get(values, i), (uint32_t)i, out))
            return false;
    return !at->reader->failed;
}

static bool read_scenario(struct strict_reader *reader, json_t *root, struct lab_scenario *out)
{
    static const char *const keys[] = {
        "name",      "text",        "rows",       "granule",    "frames", "devices",
        "changes",   "power",       "content",    "contention", "heavy",  "scenes",
        "objective", "deadline_us", "base_watts", "bars",       "engine", "application",
        "bursts",    "links",       "passes",     NULL};
    struct strict_place at;
    uint64_t rows = 0, row_alignment = 1;

    out->frames = 400;
    if (!strict_enter(&at, reader, root, keys, NULL, 0) ||
        !strict_string(&at, "name", false, sizeof out->name, out->name) ||
        !strict_string(&at, "text", false, sizeof out->text, out->text) ||
        !strict_integer(&at, "rows", true, 1, LAB_ROWS_MAX, &rows) ||
        !strict_integer(&at, "granule", false, 1, rows, &row_alignment) ||
        !strict_integer(&at, "frames", false, 1, LAB_FRAMES_MAX, &out->frames))
        return false;
    out->rows = (uint32_t)rows;
    out->row_alignment = (uint32_t)row_alignment;

    return read_each(&at, "devices", true, COX_DEVICES_MAX, read_device, out) &&
           read_each(&at, "passes", false, COX_PASSES_MAX, read_pass, out) &&
           read_each(&at, "changes", false, LAB_CHANGES_MAX, read_change, out) &&
           read_each(&at, "contention", false, LAB_CONTENTIONS_MAX, read_contention, out) &&
           read_each(&at, "power", false, LAB_POWER_MAX, read_power, out) &&
           read_each(&at, "heavy", false, LAB_HEAVY_MAX, read_heavy, out) &&
           read_scenes(reader, json_object_get(root, "scenes"), out) &&
           read_content(reader, json_object_get(root, "content"), out) &&
           read_objective(&at, out) && lab_read_engine(&at, out) &&
           read_bars(reader, json_object_get(root, "bars"), out) && check_alive(&at, out) &&
           check_size(&at, out);
}

static bool ends_in_json(const char *name)
{
    const size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

/* Name the scenario after its file, without folder and ending. */
static void name_from_file(const char *file, struct lab_scenario *out)
{
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    size_t length = strlen(name);

    if (ends_in_json(name))
        length -= 5;
    if (length >= sizeof out->name)
        length = sizeof out->name - 1;
    memcpy(out->name, name, length);
    out->name[length] = '\0';
}

struct lab_scenario *lab_scenario_parse(const char *text, size_t bytes, const char *file, char *why,
                                        size_t why_bytes)
{
    struct strict_reader reader = {.file = file, .why = why, .why_bytes = why_bytes};
    const struct strict_place top = {.reader = &reader};

    if (why && why_bytes > 0)
        why[0] = '\0';

    json_t *root = strict_parse(&reader, text, bytes, LAB_SCENARIO_BYTES_MAX);
    if (!root)
        return NULL;

    struct lab_scenario *scenario = calloc(1, sizeof *scenario);
    if (!scenario) {
        strict_refuse(&top, NULL, "out of memory");
    } else {
        name_from_file(file, scenario);
        if (!read_scenario(&reader, root, scenario))
            lab_scenario_free(&scenario);
    }

    json_decref(root);
    return scenario;
}

static struct lab_scenario *load_file(const char *path, char *why, size_t why_bytes)
{
    size_t bytes;
    char *text = strict_read_file(path, LAB_SCENARIO_BYTES_MAX, &bytes, why, why_bytes);
    if (!text)
        return NULL;

    struct lab_scenario *scenario = lab_scenario_parse(text, bytes, path, why, why_bytes);
    free(text);
    return scenario;
}

static bool is_file_name(const char *name)
{
    return strchr(name, '/') || ends_in_json(name);
}

static const struct lab_text *find_built_in(const char *name)
{
    for (const struct lab_text *text = lab_texts; text->name; text++)
        if (ends_in_json(text->name) && strlen(text->name) == strlen(name) + 5 &&
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
    snprintf(why, why_bytes, "unknown scenario '%s'; cox-lab sim --list lists them", name);
    return NULL;
}

const char *lab_scenario_name(uint32_t index, char *name, size_t bytes)
{
    for (const struct lab_text *text = lab_texts; text->name; text++) {
        if (!ends_in_json(text->name) || index-- > 0)
            continue;
        snprintf(name, bytes, "%.*s", (int)strlen(text->name) - 5, text->name);
        return name;
    }
    return NULL;
}

void lab_scenario_free(struct lab_scenario **scenario)
{
    if (*scenario)
        free((*scenario)->traces);
    free(*scenario);
    *scenario = NULL;
}
