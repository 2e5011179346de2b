/* A fitted machine as the text of a scenario file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "estimate.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The least that scenario files accept. */
static const double LEAST_US = 1e-3, LEAST_ROW_US = 1e-6;

/* A time, unless it is 0. */
static void put_us(struct json *json, const char *key, double ns)
{
    if (ns > 0)
        json_member_number(json, key, fmax(LEAST_US, ns / 1e3));
}

static void put_tail(struct json *json, const char *key, const struct lab_scenario_tail *of)
{
    if (!(of->probability > 0))
        return;

    json_member_object(json, key, true);
    json_member_number(json, "probability", of->probability);
    put_us(json, "median_us", of->median_ns);
    put_us(json, "p99_us", of->p99_ns);
    json_close_object(json);
}

static void put_pair(struct json *json, const char *key, const char *first, double a,
                     const char *second, double b)
{
    json_member_object(json, key, true);
    json_member_number(json, first, a);
    json_member_number(json, second, b);
    json_close_object(json);
}

/* How the cost of a row wanders, as parameters of chance. */
static void put_chance(struct json *json, const struct lab_fit_device *device)
{
    if (device->jitter > 0)
        json_member_number(json, "jitter", device->jitter);
    if (device->level_change > 0)
        put_pair(json, "level", "change", device->level_change, "lag", device->level_lag);
    if (device->jump_frames > 0)
        put_pair(json, "jumps", "frames", fmax(1, device->jump_frames), "sigma",
                 device->jump_sigma);
}

/* Values of the frames that are wanted, in units. Returns whether one is not 0. */
static bool put_trace(struct json *json, const char *key, const struct lab_fit *fit,
                      const double *values, double unit, enum lab_fit_levels levels)
{
    const bool *changed = levels == LAB_FIT_UNCHANGED ? fit->changed : NULL;
    bool any = false;

    for (size_t i = 0; i < fit->trace_count; i++)
        any |= values[i] > 0;
    if (!any)
        return false;

    json_member_array(json, key, true);
    for (size_t i = 0; i < fit->trace_count; i++)
        if (!changed || !changed[i])
            json_number(json, round(values[i] / unit * 1e4) / 1e4);
    json_close_array(json);

    return true;
}

static void write_device(struct json *json, const struct lab_fit *fit, uint32_t d,
                         enum lab_fit_levels levels)
{
    const struct lab_fit_device *device = &fit->devices[d];

    json_open_object(json, levels == LAB_FIT_MODEL);
    json_member_string(json, "name", fit->device_names[d]);
    put_us(json, "fixed_us", device->fixed_ns);
    put_us(json, "launch_us", device->launch_ns);
    json_member_number(json, "row_us", fmax(LEAST_ROW_US, device->row_ns / 1e3));
    put_us(json, "ahead_us", device->ahead_ns);
    put_us(json, "ahead_row_us", device->ahead_row_ns);
    put_us(json, "submit_us", device->submit_ns);

    /* The recorded late launches are in the trace. */
    const bool traces = levels != LAB_FIT_MODEL && device->trace;
    if (!traces || !put_trace(json, "trace_late_us", fit, device->late_ns, 1e3, levels))
        put_tail(json, "launch_tail", &device->launch_tail);
    if (traces) {
        put_trace(json, "trace", fit, device->trace, 1, levels);
    } else {
        put_chance(json, device);
    }

    json_close_object(json);
}

static void write_threads(struct json *json, const struct lab_fit *fit)
{
    json_member_object(json, "engine", false);
    put_us(json, "wake_us", fit->engine.ns);
    put_tail(json, "tail", &fit->engine.tail);
    put_us(json, "busy_us", fit->busy_ns);
    put_tail(json, "stall", &fit->engine.stall);
    put_tail(json, "submit", &fit->engine.submit);
    json_member_string(json, "clock", fit->host_clock ? "host" : "device");
    json_close_object(json);

    json_member_object(json, "application", false);
    put_us(json, "wake_us", fit->application.ns);
    put_tail(json, "tail", &fit->application.tail);
    put_us(json, "idle_us", fit->hand_over_idle_ns);
    if (fit->pause_frames > 0)
        json_member_unsigned(json, "pause_frames", fit->pause_frames);
    json_close_object(json);
}

/* Whether two devices took part, and one of them is slower while the other works. */
static bool has_contention(const struct lab_fit *fit)
{
    uint32_t used = 0;
    bool slower = false;

    for (uint32_t d = 0; d < fit->device_count; d++) {
        used += fit->devices[d].bands > 0;
        slower |= fit->devices[d].bands > 0 && fit->devices[d].slower > 1;
    }

    return slower && used > 1;
}

static void write_contention(struct json *json, const struct lab_fit *fit)
{
    if (!has_contention(fit))
        return;

    json_member_array(json, "contention", false);
    for (uint32_t d = 0; d < fit->device_count; d++) {
        if (fit->devices[d].bands == 0 || fit->devices[d].slower <= 1)
            continue;

        json_open_object(json, true);
        json_member_array(json, "slows", true);
        json_string(json, fit->device_names[d]);
        json_close_array(json);
        json_member_number(json, "slower", fit->devices[d].slower);
        json_close_object(json);
    }
    json_close_array(json);
}

char *lab_fit_write(const struct lab_fit *fit, const char *name, const char *text,
                    enum lab_fit_levels levels)
{
    char *out = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *stream = open_memstream(&out, &bytes);

    if (!stream)
        return NULL;

    json_begin(&json, stream);
    json_open_object(&json, false);
    json_member_string(&json, "name", name);
    json_member_string(&json, "text", text);
    json_member_unsigned(&json, "rows", fit->rows);
    json_member_unsigned(&json, "granule", fit->row_alignment);
    json_member_unsigned(&json, "frames", fit->frames);

    json_member_array(&json, "devices", false);
    for (uint32_t d = 0; d < fit->device_count; d++)
        if (fit->devices[d].bands > 0)
            write_device(&json, fit, d, levels);
    json_close_array(&json);

    write_contention(&json, fit);
    write_threads(&json, fit);
    json_close_object(&json);
    json_end(&json);

    bool good = !ferror(stream);
    good &= fclose(stream) == 0;
    if (good)
        return out;

    free(out);

    return NULL;
}
