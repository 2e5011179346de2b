/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"
#include "bench/lines.h"

#include <stdio.h>

#define EFFICIENCY_BAR 0.95
#define TO_BEST_BAR 0.98

double suite_efficiency(const struct suite_figures *figures)
{
    return figures->hand_all_ms / figures->library_all_ms;
}

double suite_to_best(const struct suite_figures *figures)
{
    return figures->hand_one_ms / figures->library_all_ms;
}

void suite_summary_add(struct suite_summary *summary, const struct suite_figures *figures)
{
    if (summary->count == 0)
        *summary = (struct suite_summary){
            .equal_bits = true, .right = true, .to_best = suite_to_best(figures)};

    summary->efficiency = (summary->efficiency * summary->count + suite_efficiency(figures)) /
                          (summary->count + 1);
    summary->count++;
    if (suite_to_best(figures) < summary->to_best)
        summary->to_best = suite_to_best(figures);
    summary->equal_bits &= figures->equal_bits;
    summary->right &= figures->right;
}

bool suite_summary_met(const struct suite_summary *summary, uint32_t rounds)
{
    if (!summary->equal_bits || !summary->right)
        return false;

    return rounds == 0 ||
           (summary->efficiency >= EFFICIENCY_BAR && summary->to_best >= TO_BEST_BAR);
}

/* --- text --- */

void suite_table_head(const char *size, uint32_t rounds)
{
    if (rounds == 0) {
        printf("size %s: results alone, no times\n\n  %-12s %-6s %s\n", size, "case", "bits",
               "error");
        return;
    }

    printf("size %s, %u rounds; medians in ms, from data in the host's memory to results there\n"
           "hand = hand-written OpenCL, lib = the library; 1 = the best device alone\n"
           "all = all devices, by hand with the fastest split that was found\n\n"
           "  %-12s %9s %9s %9s %9s  %11s  %13s  %12s  %-5s  %s\n",
           size, rounds, "case", "hand 1", "hand all", "lib 1", "lib all", "lib1/hand1",
           "hand all/lib", "hand 1/lib", "bits", "error");
}

static const char *equal_or_not(bool equal)
{
    return equal ? "equal" : "DIFFERENT";
}

static void print_devices(const struct suite_figures *figures)
{
    for (uint32_t d = 0; d < figures->device_count; d++) {
        const struct suite_device_cost *cost = &figures->costs[d];
        printf("      device %u: alone %.2f ms; rows %.1f %% by hand, %.1f %% by the library: %u "
               "bands, %.2f ms, kernels %.2f ms, copies %.2f ms\n",
               d, figures->device_ms[d], figures->shares[d] * 100, figures->library_shares[d] * 100,
               cost->bands, cost->busy_ms, cost->kernel_ms, cost->copy_ms);
    }

    const struct suite_turns *turns = &figures->turns;
    printf("      lib all: %u passes, by the last band of each: start %.2f ms, kernel "
           "%.2f ms, notice %.2f ms, next pass %.2f ms\n",
           turns->passes, turns->start_ms, turns->kernel_ms, turns->notice_ms, turns->next_ms);
}

void suite_table_row(const struct suite_figures *figures, uint32_t rounds)
{
    printf("  %-12s ", figures->of->name);
    if (rounds)
        printf("%9.2f %9.2f %9.2f %9.2f  %11.2f  %13.2f  %12.2f  ", figures->hand_one_ms,
               figures->hand_all_ms, figures->library_one_ms, figures->library_all_ms,
               figures->library_one_ms / figures->hand_one_ms, suite_efficiency(figures),
               suite_to_best(figures));
    printf("%-6s %.1e%s\n", equal_or_not(figures->equal_bits), figures->error,
           figures->right ? "" : " WRONG");

    if (rounds)
        print_devices(figures);
    fflush(stdout);
}

void suite_table_end(const struct suite_summary *summary, uint32_t rounds)
{
    putchar('\n');
    if (rounds) {
        printf("efficiency, hand all over lib all, mean: %.3f, at least %.2f: %s\n",
               summary->efficiency, EFFICIENCY_BAR,
               bench_verdict(summary->efficiency >= EFFICIENCY_BAR));
        printf("the best device over lib all, least: %.3f, at least %.2f: %s\n", summary->to_best,
               TO_BEST_BAR, bench_verdict(summary->to_best >= TO_BEST_BAR));
    }
    printf("output bits: %s\n", equal_or_not(summary->equal_bits));
    printf("results: %s\n", summary->right ? "right" : "WRONG");
}

/* --- JSON --- */

static void json_devices(struct json *json, const struct suite_figures *figures)
{
    json_member_array(json, "devices", false);
    for (uint32_t d = 0; d < figures->device_count; d++) {
        json_open_object(json, true);
        json_member_number(json, "hand_alone_ms", figures->device_ms[d]);
        json_member_number(json, "hand_share", figures->shares[d]);
        json_member_number(json, "library_share", figures->library_shares[d]);
        json_member_unsigned(json, "bands", figures->costs[d].bands);
        json_member_number(json, "kernel_ms", figures->costs[d].kernel_ms);
        json_member_number(json, "copy_ms", figures->costs[d].copy_ms);
        json_member_number(json, "band_ms", figures->costs[d].busy_ms);
        json_close_object(json);
    }
    json_close_array(json);

    json_member_object(json, "turns", true);
    json_member_unsigned(json, "passes", figures->turns.passes);
    json_member_number(json, "start_ms", figures->turns.start_ms);
    json_member_number(json, "kernel_ms", figures->turns.kernel_ms);
    json_member_number(json, "notice_ms", figures->turns.notice_ms);
    json_member_number(json, "next_ms", figures->turns.next_ms);
    json_close_object(json);
}

static void json_times(struct json *json, const struct suite_figures *figures)
{
    json_member_number(json, "hand_one_ms", figures->hand_one_ms);
    json_member_number(json, "hand_all_ms", figures->hand_all_ms);
    json_member_number(json, "library_one_ms", figures->library_one_ms);
    json_member_number(json, "library_all_ms", figures->library_all_ms);
    json_member_number(json, "efficiency", suite_efficiency(figures));
    json_member_number(json, "to_best", suite_to_best(figures));
}

void suite_json_row(struct json *json, const struct suite_figures *figures, uint32_t rounds)
{
    json_open_object(json, false);
    json_member_string(json, "case", figures->of->name);
    json_member_string(json, "suite", figures->of->suite);
    if (rounds)
        json_times(json, figures);
    json_member_bool(json, "equal_bits", figures->equal_bits);
    json_member_number(json, "error", figures->error);
    json_member_bool(json, "right", figures->right);
    if (rounds)
        json_devices(json, figures);
    json_close_object(json);
}

void suite_json_end(struct json *json, const struct suite_summary *summary, uint32_t rounds)
{
    if (rounds) {
        json_member_number(json, "efficiency", summary->efficiency);
        json_member_number(json, "efficiency_bar", EFFICIENCY_BAR);
        json_member_number(json, "to_best", summary->to_best);
        json_member_number(json, "to_best_bar", TO_BEST_BAR);
    }
    json_member_bool(json, "same_output", summary->equal_bits);
    json_member_bool(json, "right", summary->right);
}
