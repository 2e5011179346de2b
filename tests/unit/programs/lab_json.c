/* What cox-lab's commands print with --json and --csv. Another reader must understand the JSON, the CSV must have
 * the same keys, and all commands must use the same names for the same figures.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "support/folder.h"

#include <criterion/criterion.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char printed[1 << 20];

static void begin(void)
{
    make_folder();
    cr_assert_eq(chdir(folder), 0);
}

static json_t *root;

static void end(void)
{
    json_decref(root);
    cr_assert_eq(chdir("/"), 0);
    remove_folder();
}

TestSuite(lab_json, .init = begin, .fini = end);

typedef int command_fn(int argc, char **argv);

/* Run a command; `words` are its arguments, separated by spaces. The output is in `printed`. */
static int command(command_fn *main_of, const char *words)
{
    char text[400], *argv[32];
    int argc = 0;
    snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    optind = 0;
    cr_assert_not_null(freopen("out", "w", stdout));
    int status = main_of(argc, argv);
    fflush(stdout);
    FILE *file = fopen("out", "r");
    printed[fread(printed, 1, sizeof printed - 1, file)] = '\0';
    fclose(file);
    return status;
}

/* The same, and parse the output as JSON into `root`. */
static void json_command(command_fn *main_of, const char *words)
{
    json_error_t error;
    cr_assert_eq(command(main_of, words), LAB_OK);
    json_decref(root);
    root = json_loads(printed, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(root, "%d:%d: %s in %.300s", error.line, error.column, error.text, printed);
}

static const char *text_of(json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

static double number_of(json_t *row, const char *key)
{
    return json_number_value(json_object_get(row, key));
}

/* The first line of the CSV must have the keys of each object in the array, in the same order. Returns the number
 * of rows. */
static size_t same_keys(json_t *rows)
{
    char keys[4096];
    size_t lines = 0;
    cr_assert(json_is_array(rows) && json_array_size(rows) > 0);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const char *key;
        json_t *value;
        size_t at = 0;
        json_object_foreach(json_array_get(rows, i), key, value)
            at += (size_t)snprintf(keys + at, sizeof keys - at, "%s%s", at ? "," : "", key);
        cr_assert(strncmp(printed, keys, at) == 0 && printed[at] == '\n', "%s instead of %.400s", keys, printed);
    }
    for (const char *c = printed; *c; c++)
        lines += *c == '\n';
    return lines - 1;
}

/* Check the figures that all commands have in common. */
static void has_common_keys(json_t *row)
{
    static const char *const keys[] = {"policy", "frames", "mean_us", "p50_us", "p99_us", "mean_over_oracle"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        cr_assert_not_null(json_object_get(row, keys[i]), "%s", keys[i]);
}

Test(lab_json, simulated_recorded_replayed_and_reported)
{
    json_command(lab_sim_main, "sim --json --scenario step-2 --frames 40 --seeds 1 --policy ewma,single --record s.db");
    json_t *scenario = json_array_get(json_object_get(root, "scenarios"), 0);
    json_t *policy = json_array_get(json_object_get(scenario, "policies"), 1);
    cr_assert_str_eq(text_of(policy, "policy"), "single");
    double mean = number_of(policy, "mean_us");
    cr_assert_gt(mean, 0);

    json_command(lab_replay_main, "replay --json --policy single s.db");
    has_common_keys(json_array_get(json_object_get(root, "policies"), 0));
    json_command(lab_replay_main, "replay --json --decisions s.db");
    cr_assert(json_is_array(root));

    json_command(lab_report_main, "report --json s.db");
    bool found = false;
    for (size_t i = 0; i < json_array_size(root); i++) {
        json_t *row = json_array_get(root, i);
        has_common_keys(row);
        if (strcmp(text_of(row, "policy"), "single") == 0 && json_is_null(json_object_get(row, "phase"))) {
            cr_assert_float_eq(number_of(row, "mean_us"), mean, 0.01, "as the simulation said");
            found = true;
        }
    }
    cr_assert(found);
    cr_assert_eq(command(lab_report_main, "report --csv s.db"), LAB_OK);
    cr_assert_eq(same_keys(root), json_array_size(root));
    cr_assert_eq(command(lab_report_main, "report --csv -o page.html s.db"), LAB_USAGE);
}

Test(lab_json, run_on_devices)
{
    static const char words[] = "run --devices cpu:1x1 --size 32x32,48x32 --frames 16 --rounds 1 --repeats 2 --policy "
                                "ewma,single -o s.db";
    char json[200], csv[200];
    snprintf(json, sizeof json, "%s --json", words);
    snprintf(csv, sizeof csv, "%s --csv", words);
    cr_assert_not_null(freopen("err", "w+", stderr));
    if (command(lab_run_main, json) != LAB_OK) {
        char said[400];
        rewind(stderr);
        said[fread(said, 1, sizeof said - 1, stderr)] = '\0';
        cr_assert_not_null(strstr(said, "devices 'cpu:1x1': "), "%s", said);
        cr_skip_test("skipped, because there is no CPU device");
    }
    root = json_loads(printed, JSON_REJECT_DUPLICATES, NULL);
    cr_assert_not_null(root, "%.300s", printed);
    cr_assert_eq(json_array_size(root), 2 * 4, "of each size: the device alone, the oracle, two policies");
    for (size_t i = 0; i < json_array_size(root); i++) {
        json_t *row = json_array_get(root, i);
        has_common_keys(row);
        cr_assert_eq(number_of(row, "run"), (double)(1 + i / 4));
        cr_assert_eq(number_of(row, "columns"), i < 4 ? 32 : 48);
        const char *kind = text_of(row, "kind");
        cr_assert_str_eq(kind, i % 4 == 0 ? "solo" : i % 4 == 1 ? "oracle" : "policy");
        if (i % 4 < 2)
            continue;
        cr_assert_eq(number_of(row, "frames"), 2 * 16);
        double p50 = number_of(row, "p50_us");
        cr_assert_leq(number_of(row, "p50_us_low"), p50);
        cr_assert_geq(number_of(row, "p50_us_high"), p50);
        cr_assert(json_is_null(json_object_get(row, "p50_over_unreserved")), "there is nothing to compare with");
    }
    cr_assert_eq(command(lab_run_main, csv), LAB_OK);
    cr_assert_eq(same_keys(root), 2 * 4);
}
