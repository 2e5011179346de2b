/* What the programs report about a session: valid JSON, the documented statistics, the trace, the bar and the
 * progress line.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/json.h"
#include "tonemap/bound.h"
#include "tonemap/progress.h"
#include "tonemap/report.h"
#include "tonemap/stats.h"
#include "tonemap/trace.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* --- A minimal JSON reader: accepts exactly RFC 8259, without exponents ------------------------------------------- */

/* Returns the text after the value at `s`. Returns NULL if there is no value, or if `s` is NULL. */
static const char *parse_value(const char *s);

static const char *parse_char(const char *s, char c)
{
    s = s ? s + strspn(s, " \t\r\n") : NULL;
    return s && *s == c ? s + 1 : NULL;
}

static const char *parse_string(const char *s)
{
    s = parse_char(s, '"');
    while (s && *s != '"') {
        if ((unsigned char)*s < 0x20)
            return NULL; /* also at the end of the text */
        if (*s++ != '\\')
            continue;
        const bool code = *s == 'u' && strspn(s + 1, "0123456789abcdefABCDEF") >= 4;
        if (!*s || (!code && !strchr("\"\\/bfnrt", *s)))
            return NULL;
        s += code ? 5 : 1;
    }
    return s ? s + 1 : NULL;
}

static const char *parse_number(const char *s)
{
    s += *s == '-';
    const size_t whole = strspn(s, "0123456789"), digits = s[whole] == '.' ? strspn(s + whole + 1, "0123456789") : 0;
    if (!whole || (whole > 1 && *s == '0') || (s[whole] == '.' && !digits))
        return NULL;
    return s + whole + (digits ? 1 + digits : 0);
}

static const char *parse_members(const char *s, char end, bool keys)
{
    if (parse_char(s, end))
        return parse_char(s, end);
    do {
        if (keys)
            s = parse_char(parse_string(s), ':');
        s = parse_value(s);
        if (parse_char(s, end))
            return parse_char(s, end);
        s = parse_char(s, ',');
    } while (s);
    return NULL;
}

static const char *parse_value(const char *s)
{
    static const char *const words[] = {"null", "true", "false"};
    if (!s)
        return NULL;
    s += strspn(s, " \t\r\n");
    if (*s == '{')
        return parse_members(s + 1, '}', true);
    if (*s == '[')
        return parse_members(s + 1, ']', false);
    if (*s == '"')
        return parse_string(s);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strncmp(s, words[i], strlen(words[i])))
            return s + strlen(words[i]);
    return parse_number(s);
}

static bool is_json(const char *text)
{
    const char *end = parse_value(text);
    return end && !end[strspn(end, " \t\r\n")];
}

Test(json, the_reader_of_these_tests_can_say_no)
{
    static const char *const bad[] = {"{\"a\": [1,]}", "{\"a\" 1}", "{\"a\": 01}", "{\"a\": 1,5}",
                                      "\"a\nb\"",      "[1] 2",     "[nan]"};
    cr_expect(is_json("{\"a\": [1, -2.5, null, true, false, \"x\\u00e4\"], \"b\": {}}\n"));
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        cr_expect_not(is_json(bad[i]), "%s", bad[i]);
}

/* The text that was written last. */
static char *text;
static size_t text_bytes;

static FILE *open_text(void)
{
    free(text);
    FILE *stream = open_memstream(&text, &text_bytes);
    cr_assert(stream != NULL);
    return stream;
}

static void close_text(FILE *stream)
{
    cr_assert_eq(fclose(stream), 0);
}

Test(json, commas_and_nesting_come_out_right)
{
    struct json json;
    FILE *stream = open_text();
    json_begin(&json, stream);
    json_open_object(&json, false);
    json_key(&json, "a");
    json_open_array(&json, true);
    json_unsigned(&json, 1);
    json_open_object(&json, false);
    json_close_object(&json);
    json_null(&json);
    json_close_array(&json);
    json_key(&json, "b");
    json_open_array(&json, false);
    json_close_array(&json);
    json_close_object(&json);
    json_end(&json);
    close_text(stream);
    cr_expect_str_eq(text, "{\n  \"a\": [1, {}, null],\n  \"b\": []\n}\n");
    free(text);
}

Test(json, strings_are_escaped_and_made_valid)
{
    static const char *const cases[][2] = {
        {"plain", "\"plain\""},
        {"a\"b\\c\n\t\x01\x7f", "\"a\\\"b\\\\c\\u000a\\u0009\\u0001\\u007f\""},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"latin \xe4 end", "\"latin \\ufffd end\""},
        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
        {"long form \xc0\xaf", "\"long form \\ufffd\\ufffd\""},
        {"surrogate \xed\xa0\x80", "\"surrogate \\ufffd\\ufffd\\ufffd\""},
        {"beyond \xf5\x80\x80\x80", "\"beyond \\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json json;
        FILE *stream = open_text();
        json_begin(&json, stream);
        json_string(&json, cases[i][0]);
        close_text(stream);
        cr_expect_str_eq(text, cases[i][1]);
        cr_expect(is_json(text));
    }
}

Test(json, numbers_know_no_locale)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.97, "0.970000"},
                 {-1.5, "-1.500000"},
                 {0.9999999, "1.000000"},
                 {-1e-9, "0.000000"},
                 {123456789.25, "123456789.250000"},
                 {NAN, "null"},
                 {INFINITY, "null"},
                 {1e300, "null"}};
    setlocale(LC_ALL, "de_DE.UTF-8"); /* if it is installed; numbers must not depend on it */
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct json json;
        FILE *stream = open_text();
        json_begin(&json, stream);
        json_number(&json, cases[i].value);
        close_text(stream);
        cr_expect_str_eq(text, cases[i].text);
    }
}

/* --- Reports ------------------------------------------------------------------------------------------------------ */

static struct report *report;
static struct report_summary summary;

/* The result of the last report_frame. */
static struct report_frame frame;
static struct cox_band_report frame_bands[2];

static void begin(void)
{
    report = report_create(2, 1);
}

static void end(void)
{
    report_destroy(&report);
    cr_expect(report == NULL);
}

TestSuite(report, .init = begin, .fini = end);

/* Add frame `index` from start to end, whose two devices share the rows at `cut`. */
static void add_frame(uint64_t index, uint64_t start_ns, uint64_t end_ns, uint32_t cut, bool warmup, cox_status status)
{
    const struct cox_band_report bands[2] = {{.device = 0,
                                              .first_row = 0,
                                              .rows = cut,
                                              .submit_ns = start_ns + 500,
                                              .end_ns = end_ns - 1000,
                                              .wall_ns = end_ns - start_ns - 1500,
                                              .queue_ns = 250,
                                              .kernel_ns = 700},
                                             {.device = 1,
                                              .first_row = cut,
                                              .rows = 100 - cut,
                                              .predicted_ns = 9000,
                                              .on_demand = index > 0,
                                              .submit_ns = start_ns + 900,
                                              .end_ns = end_ns,
                                              .wall_ns = end_ns - start_ns - 900}};
    const struct cox_frame_report one = {.index = index,
                                         .warmup = warmup,
                                         .status = status,
                                         .submit_ns = start_ns - 10,
                                         .total.start_ns = start_ns,
                                         .total.end_ns = end_ns,
                                         .delivered_ns = end_ns + 3490,
                                         .deadline_ns = warmup ? 0 : 12000,
                                         .total.reason = COX_REASON_BALANCED,
                                         .total.predicted_ns = 12345,
                                         .total.rejected_ns = index ? 13000 : 0,
                                         .total.pool_rows = index ? 100 - cut : 0,
                                         .band_count = 2,
                                         .bands = bands};
    report_on_frame(report, &one);
}

static void add_shadow(uint64_t index, uint64_t start_ns, uint64_t end_ns, cox_status status)
{
    const struct cox_band_report band = {.device = 1,
                                         .first_row = 8,
                                         .rows = 16,
                                         .status = status,
                                         .submit_ns = start_ns,
                                         .end_ns = end_ns,
                                         .wall_ns = end_ns - start_ns};
    const struct cox_frame_report one = {.index = index,
                                         .shadow = true,
                                         .status = status,
                                         .total.start_ns = start_ns,
                                         .total.end_ns = end_ns,
                                         .total.reason = COX_REASON_PROBE,
                                         .joules = -1,
                                         .band_count = 1,
                                         .bands = &band};
    report_on_frame(report, &one);
}

static const struct report_device devices[2] = {
    {.name = "first \"one\"", .type = "cpu", .mode = "mapped"},
    {.name = "second", .type = "gpu", .mode = "staged", .state = "quarantined", .lost = 2, .returned = 1}};
static const uint64_t single_device_ns[2] = {20000, 20000};
static const struct report_about about = {.arithmetic = "fma",
                                          .program = "test",
                                          .policy = "ewma",
                                          .row_alignment = 4,
                                          .device_count = 2,
                                          .devices = devices,
                                          .single_device_ns = single_device_ns};

static void summarise(void)
{
    report_summarise(report, single_device_ns, 2, &summary);
}

static void write_stats(const struct report_about *of)
{
    FILE *stream = open_text();
    stats_write(report, of, stream);
    close_text(stream);
    cr_expect(is_json(text), "%s", text);
}

static void write_trace(void)
{
    FILE *stream = open_text();
    trace_write(report, &about, stream);
    close_text(stream);
    cr_expect(is_json(text), "%s", text);
}

static void expect_text(const char *part)
{
    cr_expect(strstr(text, part) != NULL, "%s is not in %s", part, text);
}

Test(report, statistics_have_the_documented_form)
{
    add_frame(0, 1000, 51000, 100, true, COX_OK);
    add_frame(0, 100000, 110000, 30, false, COX_OK);
    add_shadow(0, 110000, 114000, COX_OK);
    add_shadow(1, 115000, 116000, COX_E_DEVICE_LOST);
    write_stats(&about);
    cr_expect_str_eq(text,
                     "{\n"
                     "  \"arithmetic\": \"fma\",\n"
                     "  \"devices\": [\n"
                     "    {\"name\": \"first \\\"one\\\"\", \"type\": \"cpu\", \"mode\": \"mapped\", "
                     "\"state\": \"active\", \"lost\": 0, \"returned\": 0},\n"
                     "    {\"name\": \"second\", \"type\": \"gpu\", \"mode\": \"staged\", "
                     "\"state\": \"quarantined\", \"lost\": 2, \"returned\": 1}\n"
                     "  ],\n"
                     "  \"policy\": \"ewma\",\n"
                     "  \"granule\": 4,\n"
                     "  \"frames\": [\n"
                     "    {\"index\": 0, \"wall_us\": 10.000, \"latency_us\": 13.500, \"deadline_us\": 12.000, "
                     "\"reason\": \"moved towards equal finish times\", "
                     "\"predicted_us\": 12.345, \"alternative_us\": null, \"pool_rows\": 0, "
                     "\"bands\": [{\"device\": 0, \"first_row\": 0, \"rows\": 30, "
                     "\"wall_us\": 8.500, \"queue_us\": 0.250, \"kernel_us\": 0.700, \"predicted_us\": null, "
                     "\"on_demand\": false, \"attempt\": 0, \"status\": \"COX_OK\"}, "
                     "{\"device\": 1, \"first_row\": 30, "
                     "\"rows\": 70, \"wall_us\": 9.100, \"queue_us\": 0.000, \"kernel_us\": 0.000, "
                     "\"predicted_us\": 9.000, \"on_demand\": false, \"attempt\": 0, "
                     "\"status\": \"COX_OK\"}]}\n"
                     "  ],\n"
                     "  \"shadows\": [\n"
                     "    {\"index\": 0, \"device\": 1, \"first_row\": 8, \"rows\": 16, \"wall_us\": 4.000, "
                     "\"queue_us\": 0.000, \"kernel_us\": 0.000, \"predicted_us\": null, \"on_demand\": false}\n"
                     "  ],\n"
                     "  \"summary\": {\"frames\": 1, \"fps\": 100000.000000, \"wall_us_p50\": 10.000, "
                     "\"wall_us_p99\": 10.000, \"latency_us_p50\": 13.500, \"latency_us_p99\": 13.500, "
                     "\"late_frames\": 1, \"worst_late_us\": 1.500, \"efficiency\": 1.000000, \"timeout_bands\": 0, "
                     "\"wrong_bands\": 0, \"failed_bands\": 0, \"bands_again\": 0}\n"
                     "}\n");
}

/* A frame with four bands. On device 1, one of them exceeded the timeout, one gave wrong rows, and one failed. */
static void add_troubled_frame(void)
{
    struct cox_band_report bands[7];
    static const cox_status status[7] = {COX_OK, COX_E_TIMEOUT,     COX_OK, COX_E_MISMATCH,
                                         COX_OK, COX_E_DEVICE_LOST, COX_OK};
    for (uint32_t b = 0; b < 7; b++)
        bands[b] = (struct cox_band_report){.device = status[b] != COX_OK,
                                            .first_row = 25 * ((b + 1) / 2),
                                            .rows = 25,
                                            .attempt = b && b % 2 == 0,
                                            .status = status[b],
                                            .submit_ns = 1000,
                                            .end_ns = 5000 + 1000 * b,
                                            .wall_ns = 1000};
    report_on_frame(report,
                    &(const struct cox_frame_report){
                        .index = 0, .total.start_ns = 1000, .total.end_ns = 20000, .band_count = 7, .bands = bands});
}

Test(report, bands_that_do_not_count_are_told_from_those_that_do)
{
    add_troubled_frame();
    summarise();
    cr_expect_eq(summary.timeout_bands, 1u);
    cr_expect_eq(summary.wrong_bands, 1u);
    cr_expect_eq(summary.failed_bands, 1u);
    cr_expect_eq(summary.bands_again, 3u);
    write_stats(&about);
    expect_text("\"attempt\": 0, \"status\": \"COX_E_TIMEOUT\"");
    expect_text("\"attempt\": 1, \"status\": \"COX_OK\"");
    expect_text("\"timeout_bands\": 1, \"wrong_bands\": 1, \"failed_bands\": 1, \"bands_again\": 3");
    write_trace();
    expect_text("\"attempt\": 0, \"status\": \"COX_E_MISMATCH\"");
}

/* Two equal devices take 20 us each alone. Together, 10 us gives an efficiency of 1, and 12.5 us gives 0.8. */
Test(report, efficiency_is_the_share_of_what_all_devices_could_do)
{
    for (uint64_t i = 0; i < 3; i++)
        add_frame(i, 100000 + i * 50000, 112500 + i * 50000, 50, false, COX_OK);
    summarise();
    cr_expect_float_eq(summary.efficiency, 0.8, 1e-9);
    cr_expect_eq(summary.frames, 3u);
    const uint64_t unknown[2] = {20000, 0};
    report_summarise(report, unknown, 2, &summary);
    cr_expect(isnan(summary.efficiency));
}

/* Frames overlap: each one takes 20 us from start to end, and one ends every 10 us. */
Test(report, frames_in_flight_are_not_counted_twice)
{
    for (uint64_t i = 0; i < 10; i++)
        add_frame(i, 100000 + i * 10000, 120000 + i * 10000, 50, false, COX_OK);
    summarise();
    cr_expect_float_eq(summary.efficiency, 1.0, 1e-9);
    cr_expect_eq(summary.wall_p50_ns, 20000u);
    cr_expect_float_eq(summary.fps, 10 / 110e-6, 1e-3);
}

Test(report, percentiles_are_by_nearest_rank)
{
    for (uint64_t i = 0; i < 200; i++) /* 10 us to 209 us, in shuffled order */
        add_frame(i, 1000000 + i * 1000000, 1010000 + i * 1000000 + (i * 77 % 200) * 1000, 50, false, COX_OK);
    summarise();
    cr_expect_eq(summary.wall_p50_ns, 109000u);
    cr_expect_eq(summary.wall_p99_ns, 207000u);
}

Test(report, shadows_do_not_count)
{
    add_frame(0, 1000000, 1010000, 50, false, COX_OK);
    add_shadow(0, 1000000, 1900000, COX_OK);
    add_frame(1, 2000000, 2010000, 50, false, COX_OK);
    summarise();
    cr_expect_eq(summary.frames, 2u);
    cr_expect_eq(summary.wall_p99_ns, 10000u);
    cr_expect_eq(report_frame_count(report), 2u);
    cr_expect(report_frame(report, 1, &frame, frame_bands, 2));
    cr_expect_eq(frame.index, 1u);
    report_keep_newest(report);
    add_frame(2, 3000000, 3010000, 50, false, COX_OK);
    add_shadow(2, 3000000, 3900000, COX_OK);
    cr_expect(report_frame(report, 2, &frame, frame_bands, 2), "it replaces the newest frame");
    cr_expect_eq(frame.index, 2u);
}

Test(report, failed_frames_and_warm_up_runs_do_not_count)
{
    add_frame(0, 1000, 900000, 50, true, COX_OK);
    add_frame(0, 1000000, 1900000, 50, false, COX_E_DEVICE_LOST);
    add_frame(1, 2000000, 2010000, 50, false, COX_OK);
    summarise();
    cr_expect_eq(summary.frames, 1u);
    cr_expect_eq(summary.wall_p99_ns, 10000u);
    cr_expect_eq(report_frame_count(report), 2u);
}

Test(report, without_a_frame_everything_is_empty_but_valid)
{
    report_destroy(&report);
    report = report_create(2, 0);
    write_stats(&about);
    expect_text("\"efficiency\": null");
    write_trace();
}

/* A band of the first frame waited for a queue slot until the second frame had begun. */
Test(report, splits_in_a_trace_come_one_after_the_other)
{
    for (uint64_t n = 0; n < 2; n++) {
        const uint64_t start_ns = 1000 + 4000 * n;
        const struct cox_band_report bands[2] = {
            {.rows = 50, .submit_ns = start_ns + 500, .end_ns = 9000 + n, .wall_ns = 100},
            {.device = 1, .first_row = 50, .rows = 50, .submit_ns = 6000 + n, .end_ns = 9000 + n, .wall_ns = 100}};
        report_on_frame(report, &(const struct cox_frame_report){.index = n,
                                                                 .total.start_ns = start_ns,
                                                                 .total.end_ns = 10000,
                                                                 .band_count = 2,
                                                                 .bands = bands});
    }
    write_trace();
    const char *first = strstr(text, "\"name\": \"split 0\""), *second = strstr(text, "\"name\": \"split 1\"");
    cr_assert(first && second, "%s", text);
    cr_expect(strncmp(strstr(first, "\"ts\""), "\"ts\": 0.000, \"dur\": 4.000", 25) == 0, "%.200s", first);
    cr_expect(strncmp(strstr(second, "\"ts\""), "\"ts\": 4.000, \"dur\": 1.001", 25) == 0, "%.200s", second);
}

static unsigned count(const char *haystack, const char *needle)
{
    unsigned found = 0;
    for (; (haystack = strstr(haystack, needle)); haystack += strlen(needle))
        found++;
    return found;
}

Test(report, the_trace_has_a_track_for_each_queue_and_one_for_the_scheduler)
{
    add_frame(0, 1000, 51000, 50, true, COX_OK);
    add_frame(0, 100000, 110000, 30, false, COX_OK);
    add_frame(1, 104000, 121000, 40, false, COX_OK);
    add_shadow(1, 121000, 130000, COX_OK);
    write_trace();
    cr_expect_eq(count(text, "\"thread_name\""), 3u);
    cr_expect_eq(count(text, "\"name\": \"scheduler\""), 1u);
    cr_expect_eq(count(text, "queue 1: second (gpu, staged)"), 1u);
    cr_expect_eq(count(text, "moved towards equal finish times"), 3u, "each split with its reason");
    cr_expect_eq(count(text, "\"ph\": \"X\", \"name\": \"frame"), 4u, "two bands of two frames");
    cr_expect_eq(count(text, "\"ph\": \"X\", \"name\": \"warm-up 0\""), 2u);
    cr_expect_eq(count(text, "\"ph\": \"X\", \"name\": \"shadow 1\""), 1u);
    cr_expect_eq(count(text, "\"on_demand\": true"), 1u);
    cr_expect_eq(count(text, "\"alternative_us\": 13.000"), 1u);
    cr_expect_eq(count(text, "\"ph\": \"b\""), count(text, "\"ph\": \"e\""));
    /* Device 0 reports that its band of frame 1 began before its band of frame 0 ended. The track of a queue must
     * not show an overlap. */
    const char *second = strstr(text,
                                "\"ph\": \"X\", \"name\": \"frame 1\", \"cat\": \"band\", \"pid\": 1, \"tid\": 2");
    cr_assert(second != NULL);
    cr_expect(strstr(second, "\"ts\": 108.000") == strstr(second, "\"ts\":"), "%.120s", second);
}

Test(report, it_grows_beyond_the_guess)
{
    for (uint64_t i = 0; i < 5000; i++)
        add_frame(i, 1000 + i * 1000, 1900 + i * 1000, (uint32_t)(i % 99 + 1), false, COX_OK);
    cr_expect_eq(report_frame_count(report), 5000u);
    cr_expect_eq(report_lost(report), 0u);
    cr_assert(report_frame(report, 4321, &frame, frame_bands, 2));
    cr_expect_eq(frame.index, 4321u);
    cr_expect_eq(frame_bands[0].rows, 4321u % 99 + 1);
    cr_expect(report_frame(report, 1, &frame, frame_bands, 1) && frame.band_count == 1, "cut to the available space");
    cr_expect_not(report_frame(report, 5000, &frame, frame_bands, 2));
    report_destroy(&report);
    report_destroy(&report);
}

/* --- Output for people -------------------------------------------------------------------------------------------- */

Test(report, a_film_says_what_it_waited_for_and_how_the_curve_went)
{
    add_frame(0, 100000, 110000, 30, false, COX_OK);
    add_frame(1, 110000, 120000, 30, false, COX_OK);
    const struct report_scene scenes[] = {{1000, 12.5f, 2000, 0.5f, true}}; /* fewer than frames: no memory */
    const struct report_film film = {.read = 3,
                                     .written = 2,
                                     .start_ns = 1000000,
                                     .total_ns = 5000000,
                                     .input_ns = 500,
                                     .devices_ns = 2500000,
                                     .output_ns = 0,
                                     .bound = "devices",
                                     .scenes = scenes,
                                     .scene_count = 1,
                                     .cuts = 7};
    struct report_about of_film = about;
    of_film.film = &film;
    write_stats(&of_film);
    expect_text("\"status\": \"COX_OK\"}], \"scene\": {\"peak_nits\": 1000.000000, \"average_nits\": "
                "12.500000, \"cut\": true, \"curve_peak_nits\": 2000.000000, \"curve_gain\": 0.500000}},\n");
    expect_text("\"on_demand\": true, \"attempt\": 0, \"status\": \"COX_OK\"}]}\n"); /* the second frame has no scene */
    const char *end = strstr(text, "  \"film\": {");
    cr_assert(end, "%s", text);
    cr_expect_str_eq(end, "  \"film\": {\n"
                          "    \"frames_read\": 3,\n"
                          "    \"frames_written\": 2,\n"
                          "    \"start_us\": 1000.000,\n"
                          "    \"total_us\": 5000.000,\n"
                          "    \"fps\": 500.000000,\n"
                          "    \"waited_us\": {\"input\": 0.500, \"devices\": 2500.000, \"output\": 0.000},\n"
                          "    \"bound\": \"devices\",\n"
                          "    \"cuts\": 7\n"
                          "  }\n"
                          "}\n");
}

Test(report, the_newest_frame_can_be_all_that_is_kept)
{
    report_keep_newest(report);
    cr_expect_not(report_frame(report, 0, &frame, frame_bands, 2));
    for (uint64_t n = 0; n < 5000; n++) {
        add_frame(n, 1000 * n, 1000 * n + 900, (uint32_t)(n % 100), false, COX_OK);
        cr_assert_eq(report_frame_count(report), n + 1);
        cr_assert(report_frame(report, n, &frame, frame_bands, 2));
        cr_assert_eq(frame.index, n);
        cr_assert_eq(frame_bands[0].rows, n % 100);
        cr_assert_not(n && report_frame(report, n - 1, &frame, frame_bands, 2), "an older frame is still there");
    }
    add_frame(5000, 0, 1, 30, true, COX_OK); /* a warm-up run has no scene */
    cr_expect_eq(report_frame_count(report), 5000);
    cr_expect(report_frame(report, 4999, &frame, frame_bands, 2));
    cr_expect_eq(report_lost(report), 0);
}

Test(bar, it_is_shared_like_the_rows)
{
    char bar[16];
    const struct cox_band_report bands[3] = {
        {.device = 0, .rows = 30}, {.device = 1, .first_row = 30, .rows = 70}, {.device = 0, .rows = 30, .attempt = 1}};
    report_bar(bands, 2, 10, bar);
    cr_expect_str_eq(bar, "[###=======]");
    report_bar(bands, 3, 10, bar);
    cr_expect_str_eq(bar, "[###=======]", "a repeated band is not shown twice");
    report_bar(bands, 1, 10, bar);
    cr_expect_str_eq(bar, "[##########]");
    report_bar(bands, 0, 10, bar);
    cr_expect_str_eq(bar, "[          ]");
}

Test(progress, the_line_says_how_far_it_is_and_has_the_split_apart_from_the_bar_and_whole)
{
    static const struct {
        size_t room;
        uint64_t frames, total, ns;
        const char *split;
        int columns;
        const char *line;
    } cases[] = {
        {128, 50, 200, 5000000000, "", 100, "50/200 frames  [>>>>>               ]  10.0 frames/s  0:15 left"},
        {128, 0, 10, 1000000000, "", 100, "0/10 frames  [                    ]  0.0 frames/s"},
        /* The bar is full only when everything is done. */
        {128, 199, 200, 1000000000, "", 100, "199/200 frames  [>>>>>>>>>>>>>>>>>>> ]  199.0 frames/s  0:00 left"},
        {128, 200, 200, 1000000000, "", 100, "200/200 frames  [>>>>>>>>>>>>>>>>>>>>]  200.0 frames/s  0:00 left"},
        {128, 201, 200, 1000000000, "", 100,
         "201/200 frames  [>>>>>>>>>>>>>>>>>>>>]  201.0 frames/s"}, /* the total is an estimate */
        {128, 1, 10000, 1000000000, "", 100, "1/10000 frames  [                    ]  1.0 frames/s  2:46:39 left"},
        {128, 7, 0, 2000000000, "", 100, "7 frames  3.5 frames/s"}, /* the length of a pipe is not known */
        {128, 50, 200, 5000000000, "", 20, "50/200 frames  [>   "},
        {20, 50, 200, 5000000000, "", 0, "50/200 frames  [>  "},
        {128, 50, 200, 5000000000, "[##==]", 100,
         "50/200 frames  [>>>>>               ]  10.0 frames/s  0:15 left  split [##==]"},
        /* If space is scarce, the bar gets shorter, then the split is left out. */
        {128, 50, 200, 5000000000, "[##==]", 70,
         "50/200 frames  [>>>          ]  10.0 frames/s  0:15 left  split [##==]"},
        {128, 50, 200, 5000000000, "[##==]", 63, "50/200 frames  [>     ]  10.0 frames/s  0:15 left  split [##==]"},
        {128, 50, 200, 5000000000, "[##==]", 62, "50/200 frames  [>>>>               ]  10.0 frames/s  0:15 left"},
        {128, 7, 0, 2000000000, "[##]", 100, "7 frames  3.5 frames/s  split [##]"},
        /* Five and six digits, and a split of the usual width. */
        {128, 12345, 100000, 5000000000, "[######======]", 79,
         "12345/100000 frames  [      ]  2469.0 frames/s  0:36 left  split [######======]"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char line[128];
        progress_format(line, cases[i].room, cases[i].frames, cases[i].total, cases[i].ns, cases[i].split,
                        cases[i].columns);
        cr_expect_str_eq(line, cases[i].line);
    }
}

Test(progress, nothing_is_shown_where_no_terminal_is)
{
    struct progress progress;
    FILE *stream = tmpfile();
    cr_assert(stream != NULL);
    progress_begin(&progress, stream, 10, 0);
    progress_update(&progress, 5, "[]", 10000000000);
    progress_clear(&progress);
    cr_expect_eq(ftell(stream), 0);
    fclose(stream);
}

Test(progress, for_programs_is_a_line_of_json)
{
    struct progress progress;
    char line[320];
    FILE *stream = tmpfile();
    cr_assert(stream != NULL);
    progress_begin(&progress, stream, 200, 0);
    progress.bytes = 1000;
    progress.bound = "encoder";
    progress_format_json(line, sizeof line, &progress, 50, 5000000000, false);
    cr_expect_str_eq(line, "{\"frames\": 50, \"total\": 200, \"seconds\": 5.0, \"fps\": 10.00, \"left_s\": 15.0, "
                           "\"bytes\": 1000, \"bound\": \"encoder\", \"ended\": false}");
    progress_begin(&progress, stream, 0, 0); /* the length of a pipe is not known */
    progress_format_json(line, sizeof line, &progress, 7, 2000000000, true);
    cr_expect_str_eq(line, "{\"frames\": 7, \"total\": null, \"seconds\": 2.0, \"fps\": 3.50, \"left_s\": null, "
                           "\"bytes\": 0, \"bound\": null, \"ended\": true}");
    progress_use_json(&progress, stream);
    progress_update(&progress, 7, "", 999000000);
    cr_expect_eq(ftell(stream), 0); /* at most one line per second */
    progress_update(&progress, 7, "", 1000000000);
    const long first = ftell(stream);
    progress_update(&progress, 8, "", 1900000000);
    cr_expect_eq(ftell(stream), first);
    progress_end(&progress, 9, 1950000000);
    cr_expect(first > 0 && ftell(stream) > first);
    fclose(stream);
}

/* --- What limited the speed of a film ----------------------------------------------------------------------------- */

Test(bound, what_was_waited_for_most_is_named_or_who_takes_the_cores_from_the_devices)
{
    static const struct video_producer decoder = {.kind = VIDEO_PRODUCER_DECODER, .name = "hevc", .cpu_ns = 120},
                                       process = {.kind = VIDEO_PRODUCER_PROCESS, .name = "ffmpeg", .cpu_ns = 240},
                                       busy = {.kind = VIDEO_PRODUCER_PROCESS, .name = "ffmpeg", .cpu_ns = 1000},
                                       file = {.kind = VIDEO_PRODUCER_FILE}, unknown = {.kind = VIDEO_PRODUCER_UNKNOWN};
    const struct {
        uint64_t input_ns, devices_ns, output_ns;
        const struct video_producer *producer;
        uint64_t own_ns;
        bool on_cpu;
        const char *encoder, *text;
    } cases[] = {
        {60, 30, 10, &decoder, 0, false, NULL, "the decoder (hevc)"},
        {60, 30, 10, &process, 0, false, NULL, "ffmpeg, which writes to the pipe"},
        {60, 30, 10, &file, 0, false, NULL, "reading"},
        {60, 30, 10, &unknown, 0, false, NULL, "input"},
        {10, 80, 10, &decoder, 80, true, NULL, "the decoder (hevc), with 60 % of the processor time"},
        {10, 80, 10, &process, 80, true, NULL, "ffmpeg, which writes to the pipe, with 75 % of the processor time"},
        {10, 80, 10, &process, 80, false, NULL, "devices"}, /* a GPU computes, so more cores would not help */
        {10, 80, 10, &process, 240, true, NULL, "devices"}, /* the devices take as much time */
        {10, 80, 90, &busy, 240, true, NULL, "output"},
        {10, 80, 90, &busy, 240, true, "libx264", "the encoder (libx264)"},
        {0, 0, 0, &decoder, 0, false, NULL, ""}, /* without a wait nothing is named */
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct bound_facts facts = {.input_ns = cases[i].input_ns,
                                          .devices_ns = cases[i].devices_ns,
                                          .output_ns = cases[i].output_ns,
                                          .producer = *cases[i].producer,
                                          .own_ns = cases[i].own_ns,
                                          .on_cpu = cases[i].on_cpu,
                                          .encoder = cases[i].encoder};
        char named[128];
        bound_text(&facts, named, sizeof named);
        cr_expect_str_eq(named, cases[i].text);
    }
}
