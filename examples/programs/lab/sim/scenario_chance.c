/* Reads the keys of a scenario file that are about chance, and about the threads that share the
 * machine with the devices. scenario.c calls it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario_read.h"

#include <stdlib.h>
#include <string.h>

static bool read_times(const struct strict_place *at, struct lab_scenario_tail *out)
{
    double median_us = 0, p99_us = 0;
    if (!strict_number(at, "median_us", true, 1e-3, 1e9, &median_us) ||
        !strict_number(at, "p99_us", true, 1e-3, 1e9, &p99_us))
        return false;
    out->median_ns = median_us * 1e3;
    out->p99_ns = p99_us * 1e3;
    return p99_us >= median_us || strict_refuse(at, "p99_us", "must be at least \"median_us\"");
}

/* Read a tail, if the key exists. */
static bool read_tail(const struct strict_place *at, const char *key, struct lab_scenario_tail *out)
{
    static const char *const keys[] = {"probability", "median_us", "p99_us", NULL};
    struct strict_place in;

    if (!json_object_get(at->object, key))
        return true;
    return lab_place_enter_member(&in, at, key, keys) &&
           strict_number(&in, "probability", true, 0, 1, &out->probability) && read_times(&in, out);
}

static bool read_outliers(const struct strict_place *at, struct lab_scenario_device *out)
{
    static const char *const keys[] = {"probability", "factor", NULL};
    struct strict_place in;

    if (!json_object_get(at->object, "outliers"))
        return true;
    return lab_place_enter_member(&in, at, "outliers", keys) &&
           strict_number(&in, "probability", true, 0, 1, &out->outlier_probability) &&
           strict_number(&in, "factor", true, 0.01, 1000, &out->outlier_factor);
}

static bool read_jitter(const struct strict_place *at, struct lab_scenario_device *out)
{
    static const char *const keys[] = {"probability", "times", NULL};
    struct strict_place in;

    if (!strict_number(at, "jitter", false, 0, 1, &out->jitter))
        return false;
    if (!json_object_get(at->object, "jitter_tail"))
        return true;
    return lab_place_enter_member(&in, at, "jitter_tail", keys) &&
           strict_number(&in, "probability", true, 0, 1, &out->jitter_tail_probability) &&
           strict_number(&in, "times", true, 1, 100, &out->jitter_tail_times) &&
           (out->jitter > 0 || strict_refuse(&in, NULL, "is only allowed with \"jitter\"")) &&
           (out->jitter * out->jitter_tail_times <= 2 ||
            strict_refuse(&in, "times", "\"times\" multiplied by \"jitter\" must be at most 2"));
}

bool lab_read_series(const struct strict_place *at, const char *key, const json_t *values,
                     double low, double high, double unit, struct lab_scenario *scenario)
{
    const size_t count = json_array_size(values);

    if (!scenario->traces)
        scenario->traces = calloc(LAB_TRACE_MAX, sizeof *scenario->traces);
    if (!scenario->traces)
        return strict_refuse(at, key, "out of memory");
    if (count > LAB_TRACE_MAX - scenario->traced)
        return strict_refuse(at, key, "more than %d numbers in all traces", LAB_TRACE_MAX);

    for (size_t i = 0; i < count; i++) {
        double value = json_number_value(json_array_get(values, i));
        if (!(value >= low && value <= high) || !json_is_number(json_array_get(values, i)))
            return strict_refuse(at, key, "must hold numbers from %g to %g", low, high);
        scenario->traces[scenario->traced++] = value * unit;
    }

    return true;
}

static bool read_series(const struct strict_place *at, const char *key, double low, double high,
                        double unit, struct lab_scenario *scenario, uint32_t *first,
                        uint32_t *count)
{
    json_t *values = strict_array(at, key, false, LAB_TRACE_MAX);

    *first = scenario->traced;
    *count = (uint32_t)json_array_size(values);
    if (!values)
        return !at->reader->failed;
    return lab_read_series(at, key, values, low, high, unit, scenario);
}

static bool read_trace(const struct strict_place *at, struct lab_scenario_device *out,
                       struct lab_scenario *scenario)
{
    return read_series(at, "trace", 0.001, 1000, 1, scenario, &out->trace_first,
                       &out->trace_count) &&
           read_series(at, "trace_late_us", 0, 1e9, 1e3, scenario, &out->late_first,
                       &out->late_count);
}

static bool read_level(const struct strict_place *at, struct lab_scenario_device *out)
{
    static const char *const level_keys[] = {"change", "lag", NULL};
    static const char *const jump_keys[] = {"frames", "sigma", NULL};
    struct strict_place in;

    if (json_object_get(at->object, "level") &&
        (!lab_place_enter_member(&in, at, "level", level_keys) ||
         !strict_number(&in, "change", true, 0, 0.5, &out->level_change) ||
         !strict_number(&in, "lag", true, 0, 0.999, &out->level_lag)))
        return false;

    if (!json_object_get(at->object, "jumps"))
        return true;
    return lab_place_enter_member(&in, at, "jumps", jump_keys) &&
           strict_number(&in, "frames", true, 1, 1e6, &out->jump_frames) &&
           strict_number(&in, "sigma", true, 0, 2, &out->jump_sigma);
}

bool lab_read_device_chance(const struct strict_place *at, struct lab_scenario_device *out,
                            struct lab_scenario *scenario)
{
    return read_jitter(at, out) && read_outliers(at, out) && read_level(at, out) &&
           read_trace(at, out, scenario) && read_tail(at, "launch_tail", &out->launch_tail);
}

/* --- the machine's threads --- */

static bool read_clock(const struct strict_place *at, struct lab_scenario *out)
{
    char clock[16] = "device";
    if (!strict_string(at, "clock", false, sizeof clock, clock))
        return false;

    out->host_clock = strcmp(clock, "host") == 0;
    return out->host_clock || strcmp(clock, "device") == 0 ||
           strict_refuse(at, "clock", "must be \"device\" or \"host\"");
}

static bool read_wake(const struct strict_place *at, struct lab_scenario_wake *out)
{
    double wake_us = 0;
    bool ok = strict_number(at, "wake_us", false, 0, 1e6, &wake_us) &&
              read_tail(at, "tail", &out->tail);
    out->ns = wake_us * 1e3;
    return ok;
}

static bool read_threads(const struct strict_place *at, struct lab_scenario *out)
{
    static const char *const engine_keys[] = {"wake_us", "tail",   "busy_us", "stall",
                                              "submit",  "beside", "clock",   NULL};
    static const char *const application_keys[] = {"wake_us", "tail",      "pause_frames",
                                                   "idle_us", "period_us", NULL};
    struct strict_place in;
    double busy_us = 0, idle_us = 0, period_us = 0;

    if (json_object_get(at->object, "engine") &&
        (!lab_place_enter_member(&in, at, "engine", engine_keys) || !read_wake(&in, &out->engine) ||
         !strict_number(&in, "busy_us", false, 0, 1e6, &busy_us) ||
         !read_tail(&in, "stall", &out->engine.stall) ||
         !read_tail(&in, "submit", &out->engine.submit) ||
         !lab_place_devices(&in, "beside", out, &out->engine.beside) || !read_clock(&in, out)))
        return false;
    out->engine_busy_ns = busy_us * 1e3;

    if (!json_object_get(at->object, "application"))
        return !at->reader->failed;
    bool ok = lab_place_enter_member(&in, at, "application", application_keys) &&
              read_wake(&in, &out->application) &&
              strict_number(&in, "idle_us", false, 1e-3, 1e6, &idle_us) &&
              strict_number(&in, "period_us", false, 1e-3, 1e9, &period_us) &&
              strict_integer(&in, "pause_frames", false, 1, LAB_FRAMES_MAX, &out->pause_frames);
    out->hand_over_idle_ns = idle_us * 1e3;
    out->submit_period_ns = period_us * 1e3;
    return ok;
}

static bool read_burst(const struct strict_place *at, struct lab_scenario *out)
{
    struct lab_scenario_burst *burst = &out->bursts[out->burst_count++];
    const bool periodic = json_object_get(at->object, "period_ms");
    double every_ms = 0, period_ms = 0;

    if (!lab_place_devices(at, "devices", out, &burst->devices) ||
        !strict_boolean(at, "engine", &burst->engine) ||
        !strict_number(at, "every_ms", !periodic, 0.1, 1e9, &every_ms) ||
        !strict_number(at, "period_ms", false, 0.1, 1e9, &period_ms) ||
        !read_times(at, &burst->length))
        return false;
    if (every_ms > 0 && periodic)
        return strict_refuse(at, "period_ms", "not allowed with \"every_ms\"");

    burst->every_ns = every_ms * 1e6;
    burst->period_ns = period_ms * 1e6;
    return burst->devices || burst->engine ||
           strict_refuse(at, NULL, "must have \"devices\" or \"engine\"");
}

static bool read_bursts(const struct strict_place *at, struct lab_scenario *out)
{
    static const char *const keys[] = {"devices",   "engine", "every_ms", "period_ms",
                                       "median_us", "p99_us", NULL};
    json_t *bursts = strict_array(at, "bursts", false, LAB_BURSTS_MAX);

    for (size_t i = 0; bursts && i < json_array_size(bursts); i++) {
        struct strict_place in;
        if (!strict_enter(&in, at->reader, json_array_get(bursts, i), keys, "bursts[#]",
                          (uint32_t)i) ||
            !read_burst(&in, out))
            return false;
    }

    return !at->reader->failed;
}

static bool read_links(const struct strict_place *at, struct lab_scenario *out)
{
    static const char *const keys[] = {"devices", NULL};
    json_t *links = strict_array(at, "links", false, LAB_LINKS_MAX);

    for (size_t i = 0; links && i < json_array_size(links); i++) {
        struct strict_place in;
        uint32_t devices = 0;

        if (!strict_enter(&in, at->reader, json_array_get(links, i), keys, "links[#]",
                          (uint32_t)i) ||
            !lab_place_devices(&in, "devices", out, &devices))
            return false;
        if (!(devices & (devices - 1)))
            return strict_refuse(&in, "devices", "must name at least two devices");

        for (uint32_t d = 0; d < out->device_count; d++) {
            if (!(devices & 1u << d))
                continue;
            if (out->devices[d].link > 0)
                return strict_refuse(&in, "devices", "\"%s\" already has another link",
                                     out->devices[d].name);
            out->devices[d].link = (uint32_t)i + 1;
        }
    }

    return !at->reader->failed;
}

bool lab_read_engine(const struct strict_place *at, struct lab_scenario *out)
{
    return read_threads(at, out) && read_bursts(at, out) && read_links(at, out);
}
