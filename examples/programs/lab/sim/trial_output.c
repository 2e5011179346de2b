/* SPDX-License-Identifier: Apache-2.0 */
#include "trial_output.h"
#include "common/strict_fp.h"
#include "lab/statistics/tail.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* A policy counts as worse than a simple one beyond this factor of the simple one's figure. */
static const double MEAN_MARGIN = 1.01, P99_MARGIN = 1.1;

static const char *const headings[LAB_FIGURE_COUNT] = {
#define HEADING(name, key, heading) heading,
    LAB_FIGURE_MAP(HEADING)
#undef HEADING
};

const char *lab_policy_name(const struct cox_policy *policy)
{
    return policy ? policy->name : "oracle";
}

/* --- a scenario --- */

static int column_width(int figure)
{
    const int width = (int)strlen(headings[figure]);
    return width < 8 ? 8 : width;
}

/* "0.996 to 1.004" in units of `unit`, or a dash. */
static void print_interval(const struct lab_interval *interval, double unit)
{
    char text[48] = "-";

    if (isfinite(interval->low))
        snprintf(text, sizeof text, "%.3f to %.3f", interval->low / unit, interval->high / unit);
    printf(" %16s", text);
}

/* Over the oracle's mean, as the columns of the first table. */
static void print_intervals(const struct lab_output *out, const struct lab_figures *figures)
{
    printf("  %-12s %16s %16s %16s %16s\n", "95 %", headings[LAB_FIGURE_MEAN],
           headings[LAB_FIGURE_P99], headings[LAB_FIGURE_P995], headings[LAB_FIGURE_P999]);

    for (uint32_t i = 0; i < out->policy_count; i++) {
        const struct lab_intervals *of = &figures[i].certainty.of;

        printf("  %-12s", lab_policy_name(out->policies[i]));
        print_interval(&of->mean, figures[i].oracle_ns);
        print_interval(&of->p99, figures[i].oracle_ns);
        print_interval(&of->p995, figures[i].oracle_ns);
        print_interval(&of->p999, figures[i].oracle_ns);
        putchar('\n');
    }
}

static void print_ratio(double ratio, const struct lab_interval *interval,
                        const struct lab_seed_spread *seeds)
{
    printf(" %7.3f", ratio);
    print_interval(interval, 1);
    printf(" %6.3f %6.3f %6.3f", seeds->least, seeds->median, seeds->most);
}

/* Each policy over the first one. */
static void print_pairs(const struct lab_output *out, const struct lab_figures *figures)
{
    char title[32];

    snprintf(title, sizeof title, "over %s", lab_policy_name(out->policies[0]));
    printf("  %-15s", title);
    for (int ratio = 0; ratio < 2; ratio++)
        printf(" %7s %16s %6s %6s %6s", headings[ratio ? LAB_FIGURE_P99 : LAB_FIGURE_MEAN], "95 %",
               "least", "median", "most");
    putchar('\n');

    for (uint32_t i = 1; i < out->policy_count; i++) {
        const struct lab_certainty *sure = &figures[i].certainty;

        printf("  %-15s", lab_policy_name(out->policies[i]));
        print_ratio(sure->over_first.mean, &sure->over_first.mean_interval, &sure->mean_of_seeds);
        print_ratio(sure->over_first.p99, &sure->over_first.p99_interval, &sure->p99_of_seeds);
        putchar('\n');
    }
}

/* What one seed cannot say is left out. */
static void print_certainty(const struct lab_output *out, const struct lab_scenario *scenario,
                            const struct lab_figures *figures)
{
    static const unsigned shown[] = {990, 995, 999, 0};
    char text[LAB_TAIL_TEXT_BYTES];

    if (out->seeds > 1)
        print_intervals(out, figures);
    if (out->seeds > 1 && out->policy_count > 1)
        print_pairs(out, figures);
    if (lab_tail_warning(scenario->frames * out->seeds, shown, text, sizeof text))
        printf("  %s\n", text);
    if (lab_blocks_warning(out->seeds, "seeds", text, sizeof text))
        printf("  %s\n", text);
}

static void print_table(const struct lab_output *out, const struct lab_scenario *scenario,
                        uint32_t in_flight, const struct lab_figures *figures)
{
    bool shown[LAB_FIGURE_COUNT] = {false};

    for (uint32_t i = 0; i < out->policy_count; i++)
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            shown[f] |= figures[i].value[f] >= 0 && f != LAB_FIGURE_BEATEN;

    printf("%s: %s", scenario->name, scenario->text);
    if (in_flight > 1)
        printf(" (%" PRIu32 " frames in flight)", in_flight);
    putchar('\n');
    printf("  %-12s %10s", "policy", "ms");
    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        if (shown[f])
            printf(" %*s", column_width(f), headings[f]);
    putchar('\n');

    for (uint32_t i = 0; i < out->policy_count; i++) {
        printf("  %-12s %10.3f", lab_policy_name(out->policies[i]), figures[i].mean_ns / 1e6);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++) {
            const bool coarse = f == LAB_FIGURE_CHANGES || f == LAB_FIGURE_RECONVERGED ||
                                f == LAB_FIGURE_BACK;

            if (shown[f] && figures[i].value[f] >= 0)
                printf(" %*.*f", column_width(f), coarse ? 1 : 3, figures[i].value[f]);
            else if (shown[f])
                printf(" %*s", column_width(f), "-");
        }
        putchar('\n');
    }
    print_certainty(out, scenario, figures);
    putchar('\n');
}

/* --- Certainty as keys and values --- */

enum { CERTAINTY_VALUES = 20 };

static const char *const certainty_keys[CERTAINTY_VALUES] = {"mean_low",
                                                             "mean_high",
                                                             "p99_low",
                                                             "p99_high",
                                                             "p99_5_low",
                                                             "p99_5_high",
                                                             "p99_9_low",
                                                             "p99_9_high",
                                                             "mean_over_first",
                                                             "mean_over_first_low",
                                                             "mean_over_first_high",
                                                             "mean_over_first_least",
                                                             "mean_over_first_median",
                                                             "mean_over_first_most",
                                                             "p99_over_first",
                                                             "p99_over_first_low",
                                                             "p99_over_first_high",
                                                             "p99_over_first_least",
                                                             "p99_over_first_median",
                                                             "p99_over_first_most"};

/* In the order of the keys; NaN = not known. */
static void certainty_values(const struct lab_figures *figures, double values[CERTAINTY_VALUES])
{
    const struct lab_certainty *sure = &figures->certainty;
    const struct lab_interval *of[] = {&sure->of.mean, &sure->of.p99, &sure->of.p995,
                                       &sure->of.p999};
    const struct lab_pair *pair = &sure->over_first;
    const struct lab_seed_spread *mean = &sure->mean_of_seeds, *p99 = &sure->p99_of_seeds;
    const double pairs[] = {pair->mean,
                            pair->mean_interval.low,
                            pair->mean_interval.high,
                            mean->least,
                            mean->median,
                            mean->most,
                            pair->p99,
                            pair->p99_interval.low,
                            pair->p99_interval.high,
                            p99->least,
                            p99->median,
                            p99->most};

    for (int i = 0; i < 4; i++) {
        values[2 * i] = of[i]->low / figures->oracle_ns;
        values[2 * i + 1] = of[i]->high / figures->oracle_ns;
    }
    memcpy(values + 8, pairs, sizeof pairs);
}

/* --- Formats --- */

static void print_csv_head(void)
{
    printf("scenario,policy,seeds,first_seed,frames,mean_us,oracle_us,joules");
    for (int f = 0; f < LAB_FIGURE_COUNT; f++)
        printf(",%s", lab_figure_keys[f]);
    printf(",reconverged_worst,refused,in_flight,static_us");
    for (int i = 0; i < CERTAINTY_VALUES; i++)
        printf(",%s", certainty_keys[i]);
    putchar('\n');
}

static void print_csv_number(double value)
{
    if (value >= 0)
        printf(",%.6f", value);
    else
        putchar(',');
}

/* A name from a file may hold commas and quotes. */
static void print_csv_text(const char *text)
{
    if (!strpbrk(text, ",\"")) {
        fputs(text, stdout);
        return;
    }

    putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            putchar('"');
        putchar(*text);
    }
    putchar('"');
}

static void print_csv(const struct lab_output *out, const struct lab_scenario *scenario,
                      uint32_t in_flight, const struct lab_figures *figures)
{
    double values[CERTAINTY_VALUES];

    for (uint32_t i = 0; i < out->policy_count; i++) {
        print_csv_text(scenario->name);
        printf(",%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64, lab_policy_name(out->policies[i]),
               out->seeds, out->first_seed, scenario->frames);

        print_csv_number(figures[i].mean_ns / 1e3);
        print_csv_number(figures[i].oracle_ns / 1e3);
        print_csv_number(figures[i].joules);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            print_csv_number(figures[i].value[f]);
        print_csv_number(figures[i].reconverged_worst);
        printf(",%" PRIu64 ",%" PRIu32, figures[i].refused, in_flight);
        print_csv_number(figures[i].static_ns / 1e3);
        certainty_values(&figures[i], values);
        for (int v = 0; v < CERTAINTY_VALUES; v++)
            print_csv_number(values[v]);
        putchar('\n');
    }
}

static void json_figure(struct json *json, const char *key, double value)
{
    json_key(json, key);
    if (value >= 0)
        json_number(json, value);
    else
        json_null(json);
}

static void print_json(struct lab_output *out, const struct lab_scenario *scenario,
                       uint32_t in_flight, const struct lab_figures *figures)
{
    struct json *json = &out->json;
    double values[CERTAINTY_VALUES];

    json_open_object(json, false);
    json_member_string(json, "scenario", scenario->name);
    json_member_string(json, "text", scenario->text);
    json_member_unsigned(json, "devices", scenario->device_count);
    json_member_unsigned(json, "frames", scenario->frames);
    json_member_unsigned(json, "in_flight", in_flight);

    json_member_array(json, "policies", false);
    for (uint32_t i = 0; i < out->policy_count; i++) {
        json_open_object(json, true);
        json_member_string(json, "policy", lab_policy_name(out->policies[i]));
        json_figure(json, "mean_us", figures[i].mean_ns / 1e3);
        json_figure(json, "oracle_us", figures[i].oracle_ns / 1e3);
        json_figure(json, "static_us", figures[i].static_ns / 1e3);
        json_figure(json, "joules", figures[i].joules);
        for (int f = 0; f < LAB_FIGURE_COUNT; f++)
            json_figure(json, lab_figure_keys[f], figures[i].value[f]);
        json_figure(json, "reconverged_worst", figures[i].reconverged_worst);
        json_member_unsigned(json, "refused", figures[i].refused);
        certainty_values(&figures[i], values);
        for (int v = 0; v < CERTAINTY_VALUES; v++)
            json_figure(json, certainty_keys[v], values[v]);
        json_close_object(json);
    }

    json_close_array(json);
    json_close_object(json);
}

void lab_output_begin(struct lab_output *output)
{
    struct json *json = &output->json;

    if (output->format == LAB_CSV && !output->summary_only)
        print_csv_head();
    if (output->format == LAB_TABLE)
        printf("seeds %" PRIu64 " to %" PRIu64 "; times / those of the best fixed split with "
               "the same random numbers\n\n",
               output->first_seed, output->first_seed + output->seeds - 1);
    if (output->format != LAB_JSON)
        return;

    json_begin(json, stdout);
    json_open_object(json, false);
    json_member_unsigned(json, "first_seed", output->first_seed);
    json_member_unsigned(json, "seeds", output->seeds);
    json_member_array(json, "scenarios", false);
}

void lab_output_scenario(struct lab_output *output, const struct lab_scenario *scenario,
                         uint32_t in_flight, const struct lab_figures *figures)
{
    if (output->summary_only)
        return;
    if (output->format == LAB_JSON)
        print_json(output, scenario, in_flight, figures);
    else if (output->format == LAB_CSV)
        print_csv(output, scenario, in_flight, figures);
    else
        print_table(output, scenario, in_flight, figures);
}

/* --- the summary --- */

/* Of a policy over all scenarios. */
struct summary {
    double geomean;                 /* of LAB_FIGURE_STATIC */
    uint32_t mean_worse, p99_worse; /* scenarios in which the better simple policy does better */
};

/* The positions of the simple policies among those that were run. */
static void find_simple(const struct lab_output *output, uint32_t *simple, uint32_t *count)
{
    static const char *const names[] = {"ewma", "last-frame"};

    *count = 0;
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
        for (uint32_t p = 0; p < output->policy_count; p++)
            if (strcmp(lab_policy_name(output->policies[p]), names[n]) == 0)
                simple[(*count)++] = p;
}

static bool is_worse(const struct lab_figures *figures, uint32_t policy, enum lab_figure figure,
                     double margin, const uint32_t *simple, uint32_t simple_count)
{
    double best = HUGE_VAL;
    for (uint32_t s = 0; s < simple_count; s++)
        best = fmin(best, figures[simple[s]].value[figure]);
    return figures[policy].value[figure] > best * margin;
}

static struct summary summarise(uint32_t policy, const struct lab_figures *const *figures,
                                uint32_t scenario_count, const uint32_t *simple,
                                uint32_t simple_count)
{
    struct summary summary = {0};
    double sum = 0;

    for (uint32_t s = 0; s < scenario_count; s++) {
        sum += log(figures[s][policy].value[LAB_FIGURE_STATIC]);
        summary.mean_worse += is_worse(figures[s], policy, LAB_FIGURE_MEAN, MEAN_MARGIN, simple,
                                       simple_count);
        summary.p99_worse += is_worse(figures[s], policy, LAB_FIGURE_P99, P99_MARGIN, simple,
                                      simple_count);
    }
    summary.geomean = exp(sum / scenario_count);
    return summary;
}

void lab_output_begin_summary(struct lab_output *output)
{
    if (output->format == LAB_CSV && output->summary_only)
        printf("policy,in_flight,scenarios,best_static,mean_worse,p99_worse\n");
    if (output->format != LAB_JSON)
        return;
    json_close_array(&output->json);
    json_member_array(&output->json, "summary", false);
}

static void print_summary_head(uint32_t in_flight, uint32_t scenario_count, bool known)
{
    printf("all %" PRIu32 " scenarios, %" PRIu32 " frame%s in flight: geometric mean of time "
           "/ best fixed split",
           scenario_count, in_flight, in_flight == 1 ? "" : "s");
    if (known)
        printf(";\n"
               "number of scenarios in which the policy is worse than the better of ewma "
               "and last-frame");
    printf("\n  %-12s %8s", "policy", "/static");
    if (known)
        printf("  mean, by > 1 %%   p99, by > 10 %%");
    putchar('\n');
}

static void json_summary(struct json *json, const char *name, uint32_t in_flight,
                         uint32_t scenario_count, const struct summary *summary, bool known)
{
    json_open_object(json, true);
    json_member_string(json, "policy", name);
    json_member_unsigned(json, "in_flight", in_flight);
    json_member_unsigned(json, "scenarios", scenario_count);
    json_figure(json, "best_static", summary->geomean);
    json_figure(json, "mean_worse", known ? (double)summary->mean_worse : -1);
    json_figure(json, "p99_worse", known ? (double)summary->p99_worse : -1);
    json_close_object(json);
}

void lab_output_summary(struct lab_output *output, uint32_t in_flight,
                        const struct lab_figures *const *figures, uint32_t scenario_count)
{
    uint32_t simple[2], simple_count;

    if (output->format == LAB_CSV && !output->summary_only)
        return;

    find_simple(output, simple, &simple_count);
    const bool known = simple_count > 0;
    if (output->format == LAB_TABLE)
        print_summary_head(in_flight, scenario_count, known);

    for (uint32_t p = 0; p < output->policy_count; p++) {
        const struct summary of = summarise(p, figures, scenario_count, simple, simple_count);
        const char *name = lab_policy_name(output->policies[p]);

        if (output->format == LAB_JSON) {
            json_summary(&output->json, name, in_flight, scenario_count, &of, known);
        } else if (output->format == LAB_CSV) {
            printf("%s,%" PRIu32 ",%" PRIu32 ",%.6f,", name, in_flight, scenario_count, of.geomean);
            if (known)
                printf("%" PRIu32 ",%" PRIu32 "\n", of.mean_worse, of.p99_worse);
            else
                puts(",");
        } else {
            printf("  %-12s %8.4f", name, of.geomean);
            if (known)
                printf("  %14" PRIu32 "  %15" PRIu32, of.mean_worse, of.p99_worse);
            putchar('\n');
        }
    }

    if (output->format == LAB_TABLE)
        putchar('\n');
}

void lab_output_end(struct lab_output *output)
{
    struct json *json = &output->json;

    if (output->format != LAB_JSON)
        return;
    json_close_array(json);
    json_close_object(json);
    json_end(json);
}
