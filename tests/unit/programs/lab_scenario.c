/* Scenario files: what they mean, and what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "lab/sim/scenario.h"
#include "lab/sim/trial.h"
#include "support/values.h"
#include "unit/programs/lab_support.h"
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char why[640];

static struct lab_scenario *parse(const char *text)
{
    memset(why, '#', sizeof why);
    return lab_scenario_parse(text, strlen(text), "dir/mine.json", why, sizeof why);
}

static struct lab_scenario *scenario; /* the scenario that was accepted last */

static struct lab_scenario *accept(const char *keys)
{
    lab_scenario_free(&scenario);
    scenario = parse(lab_object(keys));
    cr_assert_not_null(scenario, "%s", why);
    return scenario;
}

/* The text is refused with one line, which names the file and contains `about`. */
static void refuse_text(const char *text, const char *about)
{
    cr_assert_null(parse(text), "accepted, but %s: %s", about, text);
    cr_assert_not_null(memchr(why, '\0', sizeof why));
    cr_assert_eq(strncmp(why, "dir/mine.json:", 14), 0, "%s", why);
    cr_assert_not_null(strstr(why, about), "refused with: %s\nnot: %s", why, about);
    cr_assert_null(strchr(why, '\n'), "%s", why);
    cr_assert_null(lab_scenario_parse(text, strlen(text), "dir/mine.json", NULL, 0));
    char tiny[4];
    cr_assert_null(lab_scenario_parse(text, strlen(text), "dir/mine.json", tiny, sizeof tiny));
    cr_assert_eq(strlen(tiny), 3);
}

/* Each ' in both texts becomes ". */
static void refuse(const char *keys, const char *about)
{
    char words[128];
    snprintf(words, sizeof words, "%s", about);
    refuse_text(lab_object(keys), lab_replace(words, '\'', '"'));
}

#define ONE "'devices': [{'name': 'a', 'row_us': 1}]"
#define TWO "'devices': [{'name': 'a', 'row_us': 1}, {'name': 'b', 'row_us': 2}]"
#define TEN "'rows': 10, "
#define ROWS "'rows': 1000, 'granule': 10, "
#define DEVICE(keys) TEN "'devices': [{'name': 'a', 'row_us': 1, " keys "}]"
#define CHANGE(keys) ROWS ONE ", 'changes': [{" keys "}]"
#define BARS(keys) TEN ONE ", 'bars': {" keys "}"
#define PASSES(passes) ROWS TWO ", 'passes': [" passes "]"

Test(lab_scenario, says_what_the_file_says)
{
    struct lab_scenario *s =
        accept("'name': 'n', 'text': 't', 'rows': 1080, 'granule': 8, 'frames': 30, 'devices': [{'name': 'CPU', "
               "'fixed_us': 60, 'launch_us': 12, 'row_us': 18, 'transfer_us': 0.5, 'overlap': true, "
               "'jitter': 0.05, 'outliers': {'probability': 0.01, 'factor': 5}, 'thermal': {'factor': 1.5, "
               "'seconds': 2}, 'watts': 15, 'idle_watts': 2}, {'name': 'GPU', 'count': 2, 'row_us': 9}], "
               "'changes': [{'device': 'GPU-1', 'from': 10, 'to': 20, 'slower': 3}, {'device': 'CPU', "
               "'drift': 0.4, 'period': 50, 'phase': 0.5}, {'device': 'GPU-0', 'from': 5, 'gone': true}, "
               "{'from': 3, 'to': 4, 'rows': 720}], 'contention': [{'devices': ['CPU', 'GPU-1'], 'slower': 1.9, "
               "'to': 7}, {'slower': 1.1}], 'heavy': [{'first': 0.25, 'rows': 0.5, 'slower': 4, 'period': 100}], "
               "'objective': 'energy', 'deadline_us': 8000, 'base_watts': 5, 'bars': {'adaptive': {'mean': 1.01, "
               "'p99_of': 'hguided'}, 'ewma': {'back_in_use': 16}}");
    cr_assert_str_eq(s->name, "n");
    cr_assert_str_eq(s->text, "t");
    ASSERT_VALUES(IS(s->rows, 1080), IS(s->row_alignment, 8), IS(s->frames, 30), IS(s->device_count, 3));
    const struct lab_scenario_device *d = &s->devices[0];
    ASSERT_VALUES(IS(d->fixed_ns, 60e3), IS(d->launch_ns, 12e3), IS(d->row_ns, 18e3), IS(d->transfer_ns, 500));
    cr_assert(d->overlap);
    ASSERT_VALUES(IS(d->jitter, 0.05), IS(d->outlier_probability, 0.01), IS(d->outlier_factor, 5),
                  IS(s->heats[0].factor, 1.5), IS(s->heats[0].ns, 2e9), IS(d->watts, 15), IS(d->idle_watts, 2));
    cr_assert_str_eq(s->devices[2].name, "GPU-1");
    ASSERT_VALUES(IS(s->heat_count, 1), IS(s->change_count, 4), IS(s->changes[0].kind, LAB_SLOWER),
                  IS(s->changes[0].device, 2));
    cr_assert_eq(s->changes[1].to, 30, "to the end");
    ASSERT_VALUES(IS(s->changes[3].rows, 720), IS(s->contentions[0].devices, 5), IS(s->contentions[1].devices, 7),
                  IS(s->heavy_count, 1), IS(s->objective, COX_OBJECTIVE_ENERGY), IS(s->deadline_ns, 8000000),
                  IS(s->bars_count, 2), IS(s->bars[0].most[LAB_FIGURE_MEAN], 1.01));
    cr_assert_lt(s->bars[0].most[LAB_FIGURE_P99], 0);
    cr_assert_str_eq(s->bars[0].p99_of, "hguided");
    cr_assert_eq(s->bars[1].most[LAB_FIGURE_BACK], 16);
    lab_scenario_free(&scenario);
    cr_assert_null(scenario);
}

Test(lab_scenario, has_defaults)
{
    struct lab_scenario *s = accept(TEN ONE);
    cr_assert_str_eq(s->name, "mine", "the file's name");
    cr_assert_str_empty(s->text);
    ASSERT_VALUES(IS(s->row_alignment, 1), IS(s->frames, 400), IS(s->devices[0].fixed_ns, 0),
                  IS(s->devices[0].outlier_factor, 1), IS(s->objective, COX_OBJECTIVE_THROUGHPUT));
}

Test(lab_scenario, refuses_what_is_no_json_with_line_and_column)
{
    refuse_text("", "dir/mine.json:");
    refuse_text("{\n\"rows\": 10,\n", "dir/mine.json:");
    refuse("\n\n'rows': NaN", "dir/mine.json:3:");
    refuse("'rows': 1e999", "dir/mine.json:1:");
    refuse("'rows': -Infinity", "dir/mine.json:1:");
    refuse(TEN "'rows': 11, " ONE, "duplicate");
    refuse("'rows': 99999999999999999999", "dir/mine.json:1:");
    refuse(TEN ONE "} {", "dir/mine.json:1:");
    refuse_text("[]", "the file: must be an object");
}

Test(lab_scenario, refuses_unknown_keys_wherever_they_are)
{
    refuse(TEN "'row': 1, " ONE, "the file: unknown key 'row'");
    refuse(DEVICE("'speed': 2"), "devices[0]: unknown key 'speed'");
    refuse(DEVICE("'outliers': {'probability': 0, 'factor': 1, 'x': 1}"), "devices[0].outliers: unknown key 'x'");
    refuse(DEVICE("'thermal': {'t': 1}"), "devices[0].thermal: unknown key 't'");
    refuse(ROWS ONE ", 'changes': [{'gone': true}, {'frames': 1}]", "changes[");
    refuse(ROWS TWO ", 'contention': [{'factor': 1}]", "contention[0]: unknown key 'factor'");
    refuse(ROWS ONE ", 'heavy': [{'factor': 1}]", "heavy[0]: unknown key 'factor'");
    refuse(ROWS ONE ", 'scenes': {'factor': 1}", "scenes: unknown key 'factor'");
    refuse(ROWS ONE ", 'bars': {'ewma': {'average': 1}}", "bars.ewma: unknown key 'average'");
    refuse(TEN "'a\\u0001b': 1, " ONE, "unknown key 'a?b'");
}

Test(lab_scenario, refuses_numbers_out_of_range)
{
    refuse("'rows': 0, " ONE, "rows: must be from 1 to");
    refuse("'rows': -5, " ONE, "rows: must be from 1 to");
    refuse("'rows': 1048577, " ONE, "rows: must be from 1 to 1048576");
    refuse(TEN "'granule': 0, " ONE, "granule: must be from 1 to 10");
    refuse(TEN "'granule': 11, " ONE, "granule: must be from 1 to 10");
    refuse(TEN "'frames': 0, " ONE, "frames: must be");
    refuse(TEN "'frames': 20001, " ONE, "frames: must be");
    refuse(TEN "'frames': 20000, 'devices': [{'name': 'a', 'count': 32, 'row_us': 1}]", "frames times devices");
    refuse("'rows': 1000000, 'frames': 20000, " ONE, "frames times granules");
    refuse(TEN "'frames': 20000, " ONE ", 'changes': [{'from': 1, 'rows': 1048576}]", "frames times granules");
    static const char *const keys[] = {"fixed_us", "launch_us", "transfer_us", "watts", "idle_watts", "jitter"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char text[200], about[64];
        snprintf(about, sizeof about, "devices[0].%s: must be from 0 to", keys[i]);
        snprintf(text, sizeof text, DEVICE("'%s': -0.5"), keys[i]);
        refuse(text, about);
        snprintf(text, sizeof text, DEVICE("'%s': 1e300"), keys[i]);
        refuse(text, about);
    }
    refuse(TEN "'devices': [{'name': 'a', 'row_us': 0}]", "devices[0].row_us: must be from 1e-06");
    refuse(TEN "'devices': [{'name': 'a', 'row_us': -3}]", "devices[0].row_us: must be from");
    refuse(TEN "'devices': [{'name': 'a'}]", "devices[0].row_us: missing");
    refuse(DEVICE("'outliers': {'probability': 1.5, 'factor': 2}"), "outliers.probability: must be from 0 to 1");
    refuse(DEVICE("'outliers': {'probability': 0.5}"), "outliers.factor: missing");
    refuse(DEVICE("'thermal': {'factor': 0, 'seconds': 1}"), "thermal.factor: must be from 0.001");
    refuse(DEVICE("'thermal': {'factor': 1.5, 'seconds': 0}"), "thermal.seconds: must be");
}

Test(lab_scenario, refuses_wrong_types)
{
    refuse("'rows': 10.5, " ONE, "rows: must be a whole number");
    refuse("'rows': '10', " ONE, "rows: must be a whole number");
    refuse(ONE, "rows: missing");
    refuse(TEN "'name': 5, " ONE, "name: must be a string");
    refuse(TEN "'name': '', " ONE, "name: must have from 1 to");
    refuse(TEN "'name': 'a\\nb', " ONE, "name: must not contain control characters");
    refuse(TEN "'devices': {}", "devices: must be an array");
    refuse("'rows': 10", "devices: missing");
    refuse(TEN "'devices': [5]", "devices[0]: must be an object");
    refuse(TEN "'devices': [{'name': 'a', 'row_us': '1'}]", "devices[0].row_us: must be a number");
    refuse(DEVICE("'overlap': 1"), "overlap: must be true or false");
    refuse(TEN "'devices': [{'row_us': 1}]", "devices[0].name: missing");
    refuse(TEN ONE ", 'changes': {}", "changes: must be an array");
    refuse(TEN ONE ", 'changes': []", "changes: must have from 1 to 64 entries, not 0");
    refuse(TEN ONE ", 'scenes': []", "scenes: must be an object");
    refuse(TEN ONE ", 'bars': []", "bars: must be an object");
    refuse(BARS("'ewma': 1"), "bars.ewma: must be an object");
    refuse(BARS("'ewma': {'mean': '1'}"), "bars.ewma.mean: must be a number");
    refuse(BARS("'ewma': {'mean': -1}"), "bars.ewma.mean: must be from 0");
    refuse(BARS("'ewwma': {'mean': 1}"), "bars: unknown policy 'ewwma'");
    refuse(BARS("'ewma': {'mean': 1, 'p99_of': 'nobody'}"), "bars.ewma.p99_of: unknown policy 'nobody'");
    refuse(TEN ONE ", 'objective': 'speed'", "objective: must be 'throughput', 'latency' or 'energy'");
}

Test(lab_scenario, refuses_no_devices_and_too_many)
{
    refuse(TEN "'devices': []", "devices: must have from 1 to 32 entries, not 0");
    refuse(TEN "'devices': [{'name': 'a', 'count': 0, 'row_us': 1}]", "count: must be from 1 to 32");
    refuse(TEN "'devices': [{'name': 'a', 'count': 33, 'row_us': 1}]", "count: must be from 1 to 32");
    refuse(TEN "'devices': [{'name': 'a', 'count': 30, 'row_us': 1}, {'name': 'b', 'count': 3, 'row_us': 1}]",
           "devices[1]: more than 32 devices in total");
    refuse(TEN "'devices': [{'name': 'a', 'row_us': 1}, {'name': 'a', 'row_us': 1}]",
           "devices[1].name: a device of this name already exists");
    refuse(TEN "'devices': [{'name': 'a-1', 'row_us': 1}, {'name': 'a', 'count': 2, 'row_us': 1}]",
           "devices[1].name: a device of this name already exists");
}

Test(lab_scenario, refuses_arrays_that_are_too_long)
{
    static const struct {
        const char *key, *entry, *about;
    } lists[] = {{"changes", "{'device': 'a', 'slower': 2}", "changes: must have from 1 to 64 entries, not 65"},
                 {"contention", "{'slower': 2}", "contention: must have from 1 to 16 entries, not 65"},
                 {"heavy", "{'rows': 0.1, 'slower': 2}", "heavy: must have from 1 to 8 entries, not 65"}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char text[8192];
        int used = snprintf(text, sizeof text, ROWS TWO ", '%s': [", lists[i].key);
        for (int n = 0; n < 65; n++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s%s", n ? "," : "", lists[i].entry);
        snprintf(text + used, sizeof text - (size_t)used, "]");
        refuse(text, lists[i].about);
    }
    char *longest = malloc(LAB_SCENARIO_BYTES_MAX + 2);
    memset(longest, ' ', LAB_SCENARIO_BYTES_MAX + 1);
    longest[LAB_SCENARIO_BYTES_MAX + 1] = '\0';
    refuse_text(longest, "must have at most 262144 bytes");
    free(longest);
}

Test(lab_scenario, refuses_changes_that_make_no_sense)
{
    refuse(CHANGE("'device': 'a'"), "changes[0]: must have one of");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'gone': true"), "changes[0]: must have one of");
    refuse(CHANGE("'device': 'b', 'slower': 2"), "changes[0].device: unknown device 'b'");
    refuse(CHANGE("'slower': 2"), "changes[0].device: missing");
    refuse(CHANGE("'device': 'a', 'rows': 500"), "device: not allowed with");
    refuse(CHANGE("'rows': 5"), "changes[0].rows: must be from 10");
    refuse(CHANGE("'device': 'a', 'slower': 0"), "changes[0].slower: must be from");
    refuse(CHANGE("'device': 'a', 'slower': -1"), "changes[0].slower: must be from");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'period': 9"), "are only allowed with 'drift'");
    refuse(CHANGE("'device': 'a', 'drift': 1, 'period': 9"), "drift: must be from 0 to 0.99");
    refuse(CHANGE("'device': 'a', 'drift': 0.5"), "period: missing");
    refuse(CHANGE("'device': 'a', 'drift': 0.5, 'period': 0"), "period: must be");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'from': 400"), "from: must be from 0 to 399");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'from': -1"), "from: must be from 0 to 399");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'to': 401"), "to: must be from 1 to 400");
    refuse(CHANGE("'device': 'a', 'slower': 2, 'from': 9, 'to': 9"), "to: must be after");
    refuse(ROWS TWO ", 'changes': [{'device': 'a', 'gone': false}]", "gone: must be true");
    refuse(CHANGE("'device': 'a', 'gone': true"), "no device is left in frame 0");
    refuse(ROWS TWO ", 'changes': [{'device': 'a', 'from': 5, 'to': 50, 'gone': true}, {'device': 'b', 'from': 49, "
                    "'to': 60, 'gone': true}]",
           "no device is left in frame 49");
    accept(ROWS TWO ", 'changes': [{'device': 'a', 'from': 5, 'to': 50, 'gone': true}, {'device': 'b', 'from': 50, "
                    "'to': 60, 'gone': true}]");
}

Test(lab_scenario, reads_passes)
{
    struct lab_scenario *s =
        accept(TEN "'granule': 2, " TWO
                   ", 'passes': [{'name': 'x'}, {'rows': 30, 'granule': 5, 'before_us': 2, 'moved_row_us': 0.5, "
                   "'devices': [{'device': 'b', 'row_us': 7, 'fixed_us': 3}]}]");
    cr_assert_eq(s->pass_count, 2);
    cr_assert_str_eq(s->passes[0].name, "x");
    cr_assert(s->passes[0].rows == 10 && s->passes[0].row_alignment == 2);
    cr_assert_eq(s->passes[0].devices[1].row_ns, s->devices[1].row_ns);
    cr_assert(s->passes[1].rows == 30 && s->passes[1].row_alignment == 5 && s->passes[1].before_ns == 2000 &&
              s->passes[1].moved_row_ns == 500);
    cr_assert(s->passes[1].devices[1].row_ns == 7000 && s->passes[1].devices[1].fixed_ns == 3000);
    cr_assert_eq(s->passes[1].devices[0].row_ns, s->devices[0].row_ns);
}

Test(lab_scenario, refuses_passes_that_make_no_sense)
{
    refuse(PASSES(""), "passes: must have from 1 to 8 entries");
    refuse(PASSES("{'columns': 1}"), "passes[0]: unknown key 'columns'");
    refuse(PASSES("{}, {'rows': 0}"), "passes[1].rows: must be from 1 to");
    refuse(TEN "'granule': 4, " TWO ", 'passes': [{}, {'rows': 3}]", "passes[1].rows: must be at least 'granule'");
    refuse(PASSES("{'before_us': 1}"), "passes[0]: 'before_us' and 'moved_row_us' are not allowed in the first pass");
    refuse(PASSES("{}, {'before_us': -1}"), "passes[1].before_us: must be from 0");
    refuse(PASSES("{'devices': [{'row_us': 1}]}"), "passes[0].devices[0].device: missing");
    refuse(PASSES("{'devices': [{'device': 'z'}]}"), "passes[0].devices[0].device: unknown device");
    refuse(PASSES("{'devices': [{'device': 'a', 'row_us': 0}]}"), "passes[0].devices[0].row_us");
    refuse(ROWS TWO ", 'passes': [{}, {}], 'changes': [{'from': 1, 'rows': 5}]", "changes[0].rows: not allowed with");
    refuse(ROWS TWO ", 'passes': [{}, {}], 'objective': 'energy'",
           "objective: energy is not supported with several passes");
    refuse(TEN "'frames': 20000, " TWO ", 'passes': [{}, {'rows': 1000000}]", "frames times granules");
}

Test(lab_scenario, refuses_contention_and_rows_that_make_no_sense)
{
    refuse(ROWS ONE ", 'contention': [{'slower': 2}]", "contention[0].devices: must name at least two devices");
    refuse(ROWS TWO ", 'contention': [{'devices': ['a'], 'slower': 2}]", "must name at least two devices");
    refuse(ROWS TWO ", 'contention': [{'devices': ['a', 'a'], 'slower': 2}]", "must name at least two devices");
    refuse(ROWS TWO ", 'contention': [{'devices': ['a', 5], 'slower': 2}]", "must contain only names");
    refuse(ROWS TWO ", 'contention': [{'devices': [], 'slower': 2}]", "contention[0].devices: must have from 1");
    refuse(ROWS TWO ", 'contention': [{'slower': 0.9}]", "slower: must be from 1 to");
    refuse(DEVICE("'thermal': {'factor': 2, 'seconds': 1, 'hot': 0.5}"), "devices[0].thermal.cool: missing");
    refuse(DEVICE("'thermal': {'factor': 2, 'seconds': 1, 'hot': 0.5, 'cool': 0.6}"), "cool: must be at most 'hot'");
    refuse(ROWS TWO ", 'power': [{'factor': 2}]", "power[0].seconds: missing");
    refuse(ROWS TWO ", 'power': [{'factor': 2, 'seconds': 1, 'devices': ['c']}]", "devices: unknown device 'c'");
    refuse(ROWS TWO ", 'contention': [{'slower': 2, 'slows': ['c']}]", "contention[0].slows: unknown device 'c'");
    refuse("'rows': 9, 'devices': [{'name': 'a', 'row_us': 1}, {'name': 'b', 'row_us': 1}, {'name': 'c', 'row_us': 1}]"
           ", 'contention': [{'slower': 2, 'devices': ['a', 'b'], 'slows': ['c']}]",
           "contention[0].slows: must be among 'devices'");
    refuse(ROWS ONE ", 'heavy': [{'first': 0.6, 'rows': 0.5, 'slower': 2}]", "heavy[0]: 'first' plus 'rows'");
    refuse(ROWS ONE ", 'heavy': [{'rows': 0.5, 'slower': 2}], 'scenes': {'frames': 5, 'segments': 3, 'share': 0.5, "
                    "'slower': 2}",
           "scenes: not allowed with");
    refuse(ROWS ONE ", 'content': {'frames': 1}", "content.pictures: missing");
    refuse(ROWS ONE ", 'content': {'pictures': []}", "content.pictures: must have from 1 to 1024 entries");
    refuse(ROWS ONE ", 'content': {'pictures': [[]]}", "a picture must have from 1 to 16 numbers");
    refuse(ROWS ONE ", 'content': {'pictures': [[1, 2], [1]]}", "all pictures must have as many numbers");
    refuse(ROWS ONE ", 'content': {'pictures': [[1, 0]]}", "content.pictures: must hold numbers from 0.001");
    refuse(ROWS ONE ", 'content': {'pictures': [[1]]}, 'heavy': [{'rows': 0.5, 'slower': 2}]", "content: not allowed");
    refuse(ROWS ONE ", 'scenes': {'frames': 0, 'segments': 3, 'share': 0.5, 'slower': 2}", "scenes.frames");
    refuse(ROWS ONE ", 'scenes': {'frames': 5, 'segments': 99, 'share': 0.5, 'slower': 2}", "scenes.segments");
    refuse(ROWS ONE ", 'scenes': {'frames': 5, 'segments': 4, 'slower': 2}", "scenes.share: missing");
}

Test(lab_scenario, says_what_the_file_says_of_chance_and_threads)
{
    struct lab_scenario *s =
        accept(ROWS "'devices': [{'name': 'a', 'row_us': 1, 'jitter': 0.05, 'jitter_tail': {'probability': 0.1, "
                    "'times': 4}, 'level': {'change': 0.006, 'lag': 0.95}, 'jumps': {'frames': 80, 'sigma': 0.2}, "
                    "'launch_tail': {'probability': 0.02, 'median_us': 4000, 'p99_us': 5000}}, {'name': 'b', "
                    "'row_us': 1}], 'engine': {'wake_us': 20, 'busy_us': 5, 'clock': 'host', "
                    "'tail': {'probability': 0.1, 'median_us': 900, 'p99_us': 2400}, 'beside': ['b']}, "
                    "'application': {'wake_us': 15}, 'links': [{'devices': ['a', 'b']}], 'bursts': [{'devices': ['a'], "
                    "'engine': true, 'every_ms': 250, 'median_us': 3000, 'p99_us': 9000}]");
    const struct lab_scenario_device *a = &s->devices[0], *b = &s->devices[1];
    ASSERT_VALUES(IS(a->jitter_tail_probability, 0.1), IS(a->jitter_tail_times, 4), IS(a->level_change, 0.006),
                  IS(a->level_lag, 0.95), IS(a->jump_frames, 80), IS(a->jump_sigma, 0.2),
                  IS(a->launch_tail.probability, 0.02), IS(a->launch_tail.median_ns, 4e6),
                  IS(a->launch_tail.p99_ns, 5e6), IS(a->link, 1), IS(b->link, 1), IS(b->level_change, 0),
                  IS(s->engine.ns, 20e3), IS(s->engine.tail.median_ns, 9e5), IS(s->engine.beside, 2),
                  IS(s->engine_busy_ns, 5e3));
    cr_assert(s->host_clock);
    ASSERT_VALUES(IS(s->application.ns, 15e3), IS(s->application.tail.probability, 0), IS(s->burst_count, 1),
                  IS(s->bursts[0].devices, 1));
    cr_assert(s->bursts[0].engine);
    ASSERT_VALUES(IS(s->bursts[0].every_ns, 250e6), IS(s->bursts[0].length.p99_ns, 9e6));
}

Test(lab_scenario, refuses_chance_and_threads_that_make_no_sense)
{
    refuse(DEVICE("'jitter_tail': {'probability': 0.1, 'times': 4}"), "jitter_tail: is only allowed with 'jitter'");
    refuse(DEVICE("'jitter': 0.5, 'jitter_tail': {'probability': 0.1, 'times': 5}"),
           "devices[0].jitter_tail.times: 'times' multiplied by 'jitter' must be at most 2");
    refuse(DEVICE("'jitter': 0.5, 'jitter_tail': {'probability': 0.1, 'times': 0.5}"), "times: must be from 1");
    refuse(DEVICE("'jitter': 0.5, 'jitter_tail': {'times': 2}"), "jitter_tail.probability: missing");
    refuse(DEVICE("'level': {'change': 0.01, 'lag': 1}"), "devices[0].level.lag: must be from 0 to 0.999");
    refuse(DEVICE("'level': {'change': 0.01}"), "level.lag: missing");
    refuse(DEVICE("'level': {'change': -0.01, 'lag': 0.5}"), "level.change: must be from 0");
    refuse(DEVICE("'jumps': {'frames': 0, 'sigma': 0.1}"), "jumps.frames: must be from 1");
    refuse(DEVICE("'jumps': {'frames': 5, 'sigma': 0.1, 'x': 1}"), "devices[0].jumps: unknown key 'x'");
    refuse(DEVICE("'launch_tail': {'probability': 0.1, 'median_us': 5, 'p99_us': 4}"),
           "launch_tail.p99_us: must be at least 'median_us'");
    refuse(DEVICE("'launch_tail': {'probability': 2, 'median_us': 5, 'p99_us': 6}"), "probability: must be from");
    refuse(DEVICE("'launch_tail': 5"), "devices[0].launch_tail: must be an object");
    refuse(ROWS TWO ", 'engine': {'wake': 1}", "engine: unknown key 'wake'");
    refuse(ROWS TWO ", 'engine': {'wake_us': -1}", "engine.wake_us: must be from 0");
    refuse(ROWS TWO ", 'engine': {'busy_us': 1e7}", "engine.busy_us: must be from 0");
    refuse(ROWS TWO ", 'engine': {'clock': 'wall'}", "engine.clock: must be 'device' or 'host'");
    refuse(ROWS TWO ", 'engine': {'beside': ['c']}", "engine.beside: unknown device 'c'");
    refuse(ROWS TWO ", 'engine': {'tail': {'probability': 0.1}}", "engine.tail.median_us: missing");
    refuse(ROWS TWO ", 'application': {'busy_us': 1}", "application: unknown key 'busy_us'");
    refuse(ROWS TWO ", 'application': {'pause_frames': 0}", "application.pause_frames: must be from 1");
    refuse(ROWS TWO ", 'application': {'idle_us': 0}", "application.idle_us: must be from 0.001");
    refuse(ROWS TWO ", 'application': {'period_us': 0}", "application.period_us: must be from 0.001");
    refuse(ROWS TWO ", 'engine': {'stall': {}}", "engine.stall.probability: missing");
    refuse(ROWS TWO ", 'engine': {'submit': []}", "engine.submit: must be an object");
    refuse(DEVICE("'trace': []"), "devices[0].trace: must have from 1 to 16384 entries");
    refuse(DEVICE("'trace': [1, 0]"), "devices[0].trace: must hold numbers from 0.001 to 1000");
    refuse(DEVICE("'trace_late_us': [-1]"), "devices[0].trace_late_us: must hold numbers from 0 to 1e+09");
    refuse(DEVICE("'trace_late_us': ['1']"), "devices[0].trace_late_us: must hold numbers");
    refuse(DEVICE("'submit_us': -1"), "devices[0].submit_us: must be from 0");
    refuse(DEVICE("'ahead_us': -1"), "devices[0].ahead_us: must be from 0");
    refuse(DEVICE("'trace': ['1']"), "devices[0].trace: must hold numbers");
    refuse(ROWS TWO ", 'links': [{'devices': ['a']}]", "links[0].devices: must name at least two devices");
    refuse(ROWS TWO ", 'links': [{'devices': ['a', 'b']}, {'devices': ['a', 'b']}]",
           "links[1].devices: 'a' already has another link");
    refuse(ROWS TWO ", 'bursts': [{'every_ms': 5, 'median_us': 1, 'p99_us': 2}]",
           "bursts[0]: must have 'devices' or 'engine'");
    refuse(ROWS TWO ", 'bursts': [{'engine': true, 'every_ms': 0, 'median_us': 1, 'p99_us': 2}]",
           "bursts[0].every_ms: must be from 0.1");
    refuse(ROWS TWO ", 'bursts': [{'engine': true, 'median_us': 1, 'p99_us': 2}]", "bursts[0].every_ms: missing");
    refuse(ROWS TWO ", 'bursts': [{'engine': true, 'every_ms': 5, 'period_ms': 5, 'median_us': 1, 'p99_us': 2}]",
           "bursts[0].period_ms: not allowed with 'every_ms'");
}

/* --- the world --- */

static struct lab_world world;
static struct lab_scenario_world *context;

static double row_cost(uint64_t frame, uint32_t device, uint32_t first_row)
{
    struct lab_launch launch = {.frame = frame, .device = device, .first_row = first_row, .rows = 1};
    return world.expected_ns(world.ctx, &launch);
}

static void begin(uint64_t frame)
{
    uint32_t rows, row_alignment;
    bool alive[COX_DEVICES_MAX];
    world.begin_frame(world.ctx, frame, &rows, &row_alignment, alive);
}

static void make_world(const char *keys)
{
    context = lab_scenario_world_create(accept(keys), &world);
    cr_assert_not_null(context);
    world.begin_run(world.ctx, 1);
}

static void end_world(void)
{
    lab_scenario_world_destroy(&context);
    lab_scenario_free(&scenario);
}

TestSuite(lab_scenario, .fini = end_world);
TestSuite(lab_figures, .fini = end_world);

Test(lab_scenario, speeds_step_and_drift)
{
    make_world(ROWS TWO
               ", 'changes': [{'device': 'a', 'from': 10, 'to': 20, 'slower': 3}, {'device': 'b', 'drift': 0.4, "
               "'period': 40}]");
    const struct {
        uint64_t frame;
        double a, b;
    } wanted[] = {{0, 1000, 2000},  {9, 1000, 2720},  {10, 3000, 2800},
                  {20, 1000, 2000}, {30, 1000, 1200}, {40, 1000, 2000}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        begin(wanted[i].frame);
        cr_assert_float_eq(row_cost(wanted[i].frame, 0, 0), wanted[i].a, 1e-6);
        cr_assert_float_eq(row_cost(wanted[i].frame, 1, 0), wanted[i].b, 1e-6);
    }
    cr_assert(lab_scenario_is_step(scenario, 10) && lab_scenario_is_step(scenario, 20));
    cr_assert(!lab_scenario_is_step(scenario, 11) && !lab_scenario_is_step(scenario, 0));
}

Test(lab_scenario, heavy_rows_move_from_the_top_to_the_bottom_and_back)
{
    make_world(ROWS ONE ", 'heavy': [{'rows': 0.2, 'slower': 4, 'period': 100}]");
    static const uint32_t first[][2] = {{0, 0}, {25, 400}, {50, 800}, {75, 400}, {100, 0}};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        begin(first[i][0]);
        for (uint32_t row = 0; row < 1000; row += 50) {
            bool heavy = row >= first[i][1] && row < first[i][1] + 200;
            cr_assert_float_eq(row_cost(first[i][0], 0, row), heavy ? 4000 : 1000, 1e-6, "frame %u, row %u",
                               first[i][0], row);
        }
        struct lab_launch all = {.frame = first[i][0], .rows = 1000};
        cr_assert_float_eq(world.expected_ns(world.ctx, &all), 1.6e6, 1e-3);
    }
}

Test(lab_scenario, scenes_stay_and_then_change)
{
    make_world(ROWS ONE ", 'scenes': {'frames': 10, 'segments': 16, 'share': 0.5, 'slower': 3}");
    double costs[40][16];
    uint32_t heavy = 0;
    for (uint64_t f = 0; f < 40; f++) {
        begin(f);
        for (uint32_t i = 0; i < 16; i++) {
            costs[f][i] = row_cost(f, 0, (uint32_t)(1000 * (i + 0.5) / 16));
            heavy += costs[f][i] > 2000;
            cr_assert(fabs(costs[f][i] - 1000) < 1e-6 || fabs(costs[f][i] - 3000) < 1e-6);
        }
        if (f % 10 != 0)
            cr_assert_eq(memcmp(costs[f], costs[f - 1], sizeof costs[f]), 0);
        else if (f > 0)
            cr_assert_neq(memcmp(costs[f], costs[f - 1], sizeof costs[f]), 0);
    }
    cr_assert(heavy > 150 && heavy < 490, "%u of 640", heavy);
}

Test(lab_scenario, content_is_played_from_a_picture_that_the_seed_chooses)
{
    make_world("'rows': 8, 'devices': [{'name': 'a', 'row_us': 0.001}], 'content': {'frames': 2, 'pictures': "
               "[[1, 2], [3, 4], [5, 6]]}");
    begin(0);
    double first = row_cost(0, 0, 0);
    cr_assert(first == 1 || first == 3 || first == 5, "%g", first);
    for (uint64_t f = 0; f < 12; f++) {
        begin(f);
        double picture = fmod(first + 2 * (double)(f / 2) - 1, 6) + 1;
        ASSERT_VALUES(IS(row_cost(f, 0, 0), picture), IS(row_cost(f, 0, 3), picture),
                      IS(row_cost(f, 0, 4), picture + 1));
    }
}

Test(lab_scenario, jitter_and_outliers_are_as_frequent_and_large_as_they_say)
{
    enum { LAUNCHES = 100000 };
    make_world("'rows': 100, 'devices': [{'name': 'a', 'row_us': 1, 'jitter': 0.2}, {'name': 'b', 'row_us': 1, "
               "'outliers': {'probability': 0.1, 'factor': 5}}]");
    begin(0);
    double sum = 0, squares = 0;
    uint32_t outliers = 0;
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        struct lab_launch launch = {.device = 0, .rows = 100, .launch = i};
        double ns = world.launch_ns(world.ctx, &launch) / 100e3;
        sum += ns;
        squares += ns * ns;
        launch.device = 1;
        ns = world.launch_ns(world.ctx, &launch) / 100e3;
        cr_assert(fabs(ns - 1) < 1e-9 || fabs(ns - 5) < 1e-9);
        outliers += ns > 2;
    }
    double mean = sum / LAUNCHES;
    cr_assert_float_eq(mean, 1, 0.004);
    /* A log-normal factor with mean 1 has the variance exp(sigma^2) - 1. */
    cr_assert_float_eq(squares / LAUNCHES - mean * mean, exp(0.04) - 1, 0.001);
    cr_assert_float_eq(outliers / (double)LAUNCHES, 0.1, 0.005);
}

/* --- files --- */

Test(lab_scenario, all_built_in_scenarios_hold_together)
{
    char name[LAB_NAME_MAX];
    uint32_t count = 0;
    for (; lab_scenario_name(count, name, sizeof name); count++) {
        struct lab_scenario *s = lab_scenario_load(name, why, sizeof why);
        cr_assert_not_null(s, "%s", why);
        cr_assert_str_eq(s->name, name);
        cr_assert_str_not_empty(s->text);
        for (uint32_t i = 0; i < s->bars_count; i++)
            cr_assert_not_null(program_policy_find(s->bars[i].policy), "%s: bars for '%s'", name, s->bars[i].policy);
        lab_scenario_free(&s);
    }
    cr_assert_geq(count, 45);
}

Test(lab_scenario, loads_files_and_says_why_it_cannot)
{
    char path[] = "/tmp/lab_scenario_XXXXXX.json";
    int fd = mkstemps(path, 5);
    cr_assert_geq(fd, 0);
    const char *text = lab_object(TEN ONE);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    struct lab_scenario *s = lab_scenario_load(path, why, sizeof why);
    cr_assert_not_null(s, "%s", why);
    lab_scenario_free(&s);
    unlink(path);
    cr_assert_null(lab_scenario_load(path, why, sizeof why));
    cr_assert_not_null(strstr(why, "No such file"), "%s", why);
    cr_assert_eq(mkfifo(path, 0600), 0);
    static const char *const irregular[] = {"/", "/dev/null", "/dev/zero"};
    for (size_t i = 0; i <= sizeof irregular / sizeof *irregular; i++) {
        const char *name = i < sizeof irregular / sizeof *irregular ? irregular[i] : path;
        cr_assert_null(lab_scenario_load(name, why, sizeof why));
        cr_assert_not_null(strstr(why, "not a regular file"), "%s", why);
    }
    unlink(path);
    cr_assert_null(lab_scenario_load("no-such-scenario", why, sizeof why));
    cr_assert_not_null(strstr(why, "no-such-scenario"), "%s", why);
    cr_assert_null(lab_scenario_load("style.css", why, sizeof why), "a text, but no scenario");
    cr_assert(lab_scenario_is_name("step-2") && lab_scenario_is_name("./no-such") && lab_scenario_is_name("x.json"));
    cr_assert_not(lab_scenario_is_name("step") || lab_scenario_is_name("style.css"));
}

/* --- figures --- */

Test(lab_figures, the_oracle_comes_out_at_one)
{
    struct lab_scenario *s =
        accept(ROWS TWO
               ", 'frames': 60, 'changes': [{'device': 'b', 'from': 20, 'to': 30, 'slower': 4}, {'device': 'a', "
               "'from': 40, 'to': 50, 'gone': true}]");
    const struct cox_policy *policies[] = {NULL, cox_policy_find("single"), &policy_last_frame};
    struct lab_figures out[3];
    uint32_t failed;
    struct lab_sim_options options = {0};
    struct lab_trial trial = {
        .scenario = s, .options = &options, .first_seed = 1, .seeds = 2, .policy_count = 3, .policies = policies};
    cr_assert_eq(lab_trial_run(&trial, out, &failed), COX_OK);
    ASSERT_VALUES(IS(out[0].value[LAB_FIGURE_MEAN], 1), IS(out[0].value[LAB_FIGURE_RECONVERGED], 0),
                  IS(out[0].value[LAB_FIGURE_AFTER_DEATH], 1), IS(out[0].value[LAB_FIGURE_BACK], 0));
    cr_assert_lt(out[0].value[LAB_FIGURE_BEATEN], 0, "the oracle is not compared with policies");
    cr_assert_lt(out[0].value[LAB_FIGURE_ENERGY], 0);
    cr_assert_lt(out[0].value[LAB_FIGURE_LATE], 0);
    cr_assert_float_eq(out[0].value[LAB_FIGURE_CHANGES], 100 * 4 / 60.0, 1e-9);
    cr_assert_gt(out[1].value[LAB_FIGURE_MEAN], 1.2);
    cr_assert_gt(out[1].value[LAB_FIGURE_BEATEN], 0.1);
    cr_assert_eq(out[2].value[LAB_FIGURE_BEATEN], 0);
    /* The device is lost in frame 40 and polled before frames 41, 43, 47 and 55. That is 5 frames after it is back. */
    cr_assert_eq(out[2].value[LAB_FIGURE_BACK], 5);
    cr_assert_geq(out[2].value[LAB_FIGURE_RECONVERGED], 1);
    cr_assert_eq(out[2].value[LAB_FIGURE_AFTER_DEATH], 1);
}

Test(lab_figures, names_the_policy_that_fails)
{
    struct lab_scenario *s = accept(ROWS TWO ", 'frames': 5");
    const struct cox_policy *policies[] = {NULL, cox_policy_find("static")};
    double ratios[] = {2, 3};
    struct lab_sim_options options = {.policy = {.ratios = ratios, .ratio_count = 2}};
    struct lab_figures out[2];
    uint32_t failed;
    struct lab_trial trial = {
        .scenario = s, .options = &options, .first_seed = 1, .seeds = 1, .policy_count = 2, .policies = policies};
    cr_assert_eq(lab_trial_run(&trial, out, &failed), COX_E_INVALID);
    cr_assert_eq(failed, 1);
}
