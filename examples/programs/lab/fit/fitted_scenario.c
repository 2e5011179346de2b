/* SPDX-License-Identifier: Apache-2.0 */
#include "estimate.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What scenario files accept. */
static const double LEAST_US = 1e-3, LEAST_ROW_US = 1e-6;

static void us(struct json *json, const char *key, double ns)
{
    if (!(ns > 0))
        return;
    json_key(json, key);
    json_number(json, fmax(LEAST_US, ns / 1e3));
}

static void tail(struct json *json, const char *key, const struct lab_scenario_tail *of)
{
    if (!(of->probability > 0))
        return;
    json_key(json, key);
    json_open_object(json, true);
    json_key(json, "probability");
    json_number(json, of->probability);
    us(json, "median_us", of->median_ns);
    us(json, "p99_us", of->p99_ns);
    json_close_object(json);
}

static void two(struct json *json, const char *key, const char *first, double a, const char *second,
                double b)
{
    json_key(json, key);
    json_open_object(json, true);
    json_key(json, first);
    json_number(json, a);
    json_key(json, second);
    json_number(json, b);
    json_close_object(json);
}

static void write_device(struct json *json, const struct lab_fit *fit, uint32_t d, bool traces)
{
    const struct lab_fit_device *device = &fit->devices[d];
    json_open_object(json, !traces);
    json_key(json, "name");
    json_string(json, fit->device_names[d]);
    us(json, "fixed_us", device->fixed_ns);
    us(json, "launch_us", device->launch_ns);
    json_key(json, "row_us");
    json_number(json, fmax(LEAST_ROW_US, device->row_ns / 1e3));
    tail(json, "launch_tail", &device->launch_tail);
    if (traces && device->trace) {
        json_key(json, "trace");
        json_open_array(json, true);
        for (size_t i = 0; i < fit->trace_count; i++)
            json_number(json, device->trace[i]);
        json_close_array(json);
    } else {
        if (device->jitter > 0) {
            json_key(json, "jitter");
            json_number(json, device->jitter);
        }
        if (device->level_change > 0)
            two(json, "level", "change", device->level_change, "lag", device->level_lag);
        if (device->jump_frames > 0)
            two(json, "jumps", "frames", fmax(1, device->jump_frames), "sigma", device->jump_sigma);
    }
    json_close_object(json);
}

static void write_threads(struct json *json, const struct lab_fit *fit)
{
    json_key(json, "engine");
    json_open_object(json, false);
    us(json, "wake_us", fit->engine.ns);
    tail(json, "tail", &fit->engine.tail);
    us(json, "busy_us", fit->busy_ns);
    tail(json, "stall", &fit->engine.stall);
    tail(json, "submit", &fit->engine.submit);
    json_key(json, "clock");
    json_string(json, fit->host_clock ? "host" : "device");
    json_close_object(json);
    json_key(json, "application");
    json_open_object(json, false);
    us(json, "wake_us", fit->application.ns);
    tail(json, "tail", &fit->application.tail);
    us(json, "idle_us", fit->hand_over_idle_ns);
    if (fit->pause_frames > 0) {
        json_key(json, "pause_frames");
        json_unsigned(json, fit->pause_frames);
    }
    json_close_object(json);
}

char *lab_fit_write(const struct lab_fit *fit, const char *name, const char *text, bool traces)
{
    char *out = NULL;
    size_t bytes = 0;
    struct json json;
    FILE *stream = open_memstream(&out, &bytes);
    if (!stream)
        return NULL;
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_key(&json, "name");
    json_string(&json, name);
    json_key(&json, "text");
    json_string(&json, text);
    json_key(&json, "rows");
    json_unsigned(&json, fit->rows);
    json_key(&json, "granule");
    json_unsigned(&json, fit->granule);
    json_key(&json, "frames");
    json_unsigned(&json, fit->frames);
    json_key(&json, "devices");
    json_open_array(&json, false);
    for (uint32_t d = 0; d < fit->device_count; d++)
        if (fit->devices[d].bands > 0)
            write_device(&json, fit, d, traces);
    json_close_array(&json);
    if (fit->slowdown > 1) {
        json_key(&json, "contention");
        json_open_array(&json, false);
        json_open_object(&json, true);
        json_key(&json, "slower");
        json_number(&json, fit->slowdown);
        json_close_object(&json);
        json_close_array(&json);
    }
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
