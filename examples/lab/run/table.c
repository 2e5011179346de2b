/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <inttypes.h>

static void print_spread(FILE *to, const char *name, const struct lab_spread *spread)
{
    fprintf(to, "  %-18s %9.3f %9.3f %9.3f", name, spread->mean_ns / 1e6, spread->p50_ns / 1e6, spread->p99_ns / 1e6);
}

static void print_references(FILE *to, const struct lab_run_table *table, const struct lab_run_reference *reference)
{
    char name[32];
    for (uint32_t d = 0; d < reference->device_count; d++) {
        snprintf(name, sizeof name, "device %u alone", d);
        print_spread(to, name, &reference->solo[d]);
        fprintf(to, "  %zu frames%s\n", reference->solo[d].count,
                d == reference->best_solo && reference->device_count > 1 ? ", the best single device" : "");
    }
    print_spread(to, "oracle", &reference->oracle.spread);
    fprintf(to, "  %zu frames, rows", reference->oracle.spread.count);
    for (uint32_t d = 0; d < reference->device_count; d++)
        fprintf(to, " %u", reference->oracle_rows[d]);
    fprintf(to, " of %u, the best of %u splits\n", table->rows, reference->oracle.swept);
}

static void print_figures(FILE *to, const char *policy, const struct lab_run_figures *figures, bool first_phase)
{
    print_spread(to, policy, &figures->spread);
    fprintf(to, " %9.3f %9.3f %9.3f %9.3f %7.3f %8.1f", figures->over_oracle, figures->mean_over_oracle,
            figures->over_single, figures->mean_over_single, figures->efficiency, figures->changes);
    if (figures->settled == LAB_RUN_NEVER)
        fprintf(to, " %7s", "never");
    else
        fprintf(to, " %6u%s", figures->settled, first_phase ? " " : "*");
    if (figures->joules >= 0)
        fprintf(to, " %9.4f", figures->joules);
    else
        fprintf(to, " %9s", "-");
    if (figures->failed)
        fprintf(to, "  %" PRIu64 " frames failed", figures->failed);
    if (figures->disturbed)
        fprintf(to, "  %" PRIu64 " frames left out", figures->disturbed);
    fputc('\n', to);
}

static void print_verdict(FILE *to, const char *policy, const struct lab_run_verdict *verdict, uint32_t phase_count)
{
    fprintf(to, "%s: T/T_oracle at most %.3f (bar %.2f: %s), whole run over the best single device %.3f (bar %.2f: %s)",
            policy, verdict->over_oracle, lab_run_bar_oracle,
            verdict->over_oracle <= lab_run_bar_oracle ? "met" : "MISSED", verdict->over_single, lab_run_bar_single,
            verdict->over_single <= lab_run_bar_single ? "met" : "MISSED");
    if (phase_count > 1 && verdict->settled == LAB_RUN_NEVER)
        fprintf(to, ", not settled again after a change (bar %u frames: MISSED)", lab_run_bar_settled);
    else if (phase_count > 1)
        fprintf(to, ", settled again after %u frame%s (bar %u: %s)", verdict->settled, verdict->settled == 1 ? "" : "s",
                lab_run_bar_settled, verdict->settled <= lab_run_bar_settled ? "met" : "MISSED");
    fputc('\n', to);
}

void lab_run_print(FILE *to, const struct lab_run_table *table)
{
    const struct lab_run_options *options = table->options;
    for (uint32_t p = 0; p < table->phase_count; p++) {
        const struct lab_phase *phase = &table->phases[p];
        fprintf(to, "\nphase %u: frames %" PRIu64 " to %" PRIu64 ", %s\n", p, phase->first_frame, phase->end_frame - 1,
                phase->text);
        fprintf(to, "  %-18s %9s %9s %9s %9s %9s %9s %9s %7s %8s %7s %9s\n", "", "mean ms", "p50 ms", "p99 ms",
                "T/oracle", "by means", "T/single", "by means", "effic.", "changes", "settled", "J/frame");
        print_references(to, table, &table->references[p]);
        for (uint32_t i = 0; i < options->policy_count; i++)
            print_figures(to, options->policies[i].name, &table->figures[i * table->phase_count + p], p == 0);
    }
    fputs(
        "\nT/oracle and T/single compare medians, beside them the means. changes: of the split, per 100 frames. settled:\n"
        "frames until frame times stay within 5 % of the oracle's or what nine of ten of its own keep to, * after a change.\n",
        to);
    for (uint32_t i = 0; i < options->policy_count; i++) {
        struct lab_run_verdict verdict = lab_run_judge(&table->figures[i * table->phase_count], table->references,
                                                       table->phases, table->phase_count);
        print_verdict(to, options->policies[i].name, &verdict, table->phase_count);
    }
}
