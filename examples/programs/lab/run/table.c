/* The results of a run: tables for people, and rows for programs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/statistics/tail.h"
#include "state.h"

#include <inttypes.h>
#include <math.h>

static void print_spread(const char *name, const struct lab_spread *spread)
{
    printf("  %-18s %9.3f %9.3f %9.3f %9.3f", name, spread->mean_ns / 1e6, spread->p50_ns / 1e6,
           spread->p99_ns / 1e6, spread->p999_ns / 1e6);
}

static void print_references(const struct run *run, const struct lab_run_reference *reference)
{
    char name[32];

    for (uint32_t d = 0; d < reference->device_count; d++) {
        snprintf(name, sizeof name, "device %u alone", d);
        print_spread(name, &reference->solo[d]);
        printf("  %zu frames", reference->solo[d].count);
        if (d == reference->best_solo && reference->device_count > 1)
            fputs(", best single device", stdout);
        putchar('\n');
    }

    print_spread("oracle", &reference->oracle.spread);
    printf("  %zu frames, rows", reference->oracle.spread.count);
    for (uint32_t d = 0; d < reference->device_count; d++)
        printf(" %u", reference->oracle_rows[d]);
    printf(" of %u, best of %u splits\n", run->size.rows, reference->oracle.swept);
}

static void print_figures(const char *policy, const struct lab_run_figures *figures,
                          bool first_phase)
{
    print_spread(policy, &figures->spread);
    printf(" %9.3f %9.3f %9.3f %9.3f %7.3f %8.1f", figures->over_oracle, figures->mean_over_oracle,
           figures->over_single, figures->mean_over_single, figures->efficiency, figures->changes);

    if (figures->settled == LAB_RUN_NEVER)
        printf(" %7s", "never");
    else
        printf(" %6u%s", figures->settled, first_phase ? " " : "*");

    if (figures->joules >= 0)
        printf(" %9.4f", figures->joules);
    else
        printf(" %9s", "-");

    if (figures->failed)
        printf("  %" PRIu64 " frames failed", figures->failed);
    if (figures->disturbed)
        printf("  %" PRIu64 " disturbed frames omitted", figures->disturbed);

    putchar('\n');
}

static void print_interval(const struct lab_interval *interval, double scale)
{
    char text[48] = "-";

    if (isfinite(interval->low) && isfinite(interval->high))
        snprintf(text, sizeof text, "%.3f to %.3f", interval->low / scale, interval->high / scale);
    printf(" %20s", text);
}

static void print_certainties(const struct run *run, uint32_t phase)
{
    const struct lab_run_options *options = run->options;

    printf("  95 %% intervals      %20s %20s %20s %20s %20s\n", "mean ms", "p50 ms", "p99 ms",
           "p99.9 ms", "T/single");
    for (uint32_t i = 0; i < options->policy_count; i++) {
        const struct lab_run_certainty *sure = &run->certainties[i * run->phase_count + phase];
        printf("  %-18s", options->policies[i].name);
        print_interval(&sure->of.mean, 1e6);
        print_interval(&sure->of.p50, 1e6);
        print_interval(&sure->of.p99, 1e6);
        print_interval(&sure->of.p999, 1e6);
        print_interval(&sure->of.ratio, 1);
        putchar('\n');
    }
}

/* Each policy over the one named first, in the same rounds. */
static void print_pairs(const struct run *run, uint32_t phase)
{
    const struct lab_run_options *options = run->options;
    char title[48];

    snprintf(title, sizeof title, "over %s", options->policies[0].name);
    printf("  %-18s %9s %20s %9s %20s\n", title, "mean", "95 %", "p99", "95 %");

    for (uint32_t i = 1; i < options->policy_count; i++) {
        const struct lab_pair *pair = &run->certainties[i * run->phase_count + phase].over_first;

        printf("  %-18s %9.3f", options->policies[i].name, pair->mean);
        print_interval(&pair->mean_interval, 1);
        printf(" %9.3f", pair->p99);
        print_interval(&pair->p99_interval, 1);
        printf("  %" PRIu32 " rounds\n", pair->blocks);
    }
}

/* If figures of the table rest on few frames. */
static void warn_of_few(const struct run *run, uint32_t phase)
{
    static const unsigned shown[] = {500, 990, 999, 0};
    uint64_t least = UINT64_MAX;
    uint32_t blocks = UINT32_MAX;
    char text[LAB_TAIL_TEXT_BYTES];

    for (uint32_t i = 0; i < run->options->policy_count; i++) {
        const uint32_t at = i * run->phase_count + phase;

        if (run->figures[at].frames < least)
            least = run->figures[at].frames;
        if (run->certainties[at].blocks < blocks)
            blocks = run->certainties[at].blocks;
    }

    if (lab_tail_warning(least, shown, text, sizeof text))
        printf("  %s\n", text);
    if (lab_blocks_warning(blocks, "blocks", text, sizeof text))
        printf("  %s\n", text);
}

/* From submission to delivery. */
static void print_latencies(const struct run *run, uint32_t phase)
{
    const struct lab_run_options *options = run->options;

    printf("  %-18s %9s %9s %9s %9s", "latency", "mean ms", "p50 ms", "p99 ms", "p99.9 ms");
    if (options->deadline_ns)
        printf("  over %g ms", (double)options->deadline_ns / 1e6);
    putchar('\n');

    for (uint32_t i = 0; i < options->policy_count; i++) {
        const struct lab_run_figures *figures = &run->figures[i * run->phase_count + phase];
        print_spread(options->policies[i].name, &figures->latency);
        if (options->deadline_ns)
            printf("  %.2f %%", 100 * figures->late);
        putchar('\n');
    }
}

/* The effect of a reserved core: printed on the side that has one, which is the second. */
static void print_reserve(const struct run *run)
{
    const struct lab_run_options *options = run->options;

    fputs("\nframe time with a reserved core / without: medians and 95 % intervals\n", stdout);
    for (uint32_t p = 0; p < run->phase_count; p++)
        for (uint32_t i = 0; i < options->policy_count; i++) {
            const struct lab_run_certainty *sure = &run->certainties[i * run->phase_count + p];
            printf("  phase %u %-18s %9.3f", p, options->policies[i].name, sure->over_off);
            print_interval(&sure->over_off_interval, 1);
            putchar('\n');
        }
}

static void print_outputs(const struct run *run)
{
    for (uint32_t i = 0; i < run->options->policy_count; i++)
        if (run->policies[i].compared)
            printf("%s: outputs equal those of device 0 alone, bit for bit, after %u of "
                   "%u blocks\n",
                   run->options->policies[i].name,
                   run->policies[i].compared - run->policies[i].different,
                   run->policies[i].compared);
}

static const char *word_for(bool met)
{
    return met ? "met" : "MISSED";
}

static void print_verdict(const char *policy, const struct lab_run_verdict *verdict,
                          uint32_t phase_count)
{
    printf("%s: T/T_oracle at most %.3f (bar %.2f: %s), whole run over the best single device "
           "%.3f (bar %.2f: %s)",
           policy, verdict->over_oracle, lab_run_bar_oracle,
           word_for(verdict->over_oracle <= lab_run_bar_oracle), verdict->over_single,
           lab_run_bar_single, word_for(verdict->over_single <= lab_run_bar_single));

    if (phase_count > 1 && verdict->settled == LAB_RUN_NEVER)
        printf(", never settled after a change (bar %u frames: MISSED)", lab_run_bar_settled);
    else if (phase_count > 1)
        printf(", settled %u frame%s after a change (bar %u: %s)", verdict->settled,
               verdict->settled == 1 ? "" : "s", lab_run_bar_settled,
               word_for(verdict->settled <= lab_run_bar_settled));
    putchar('\n');
}

static void print_quiet(const struct run *run)
{
    double others = quiet_others(&run->quiet);

    if (others >= 0)
        printf("\nother programs used %.2f processors; %u of %" PRIu64 " rounds omitted as "
               "disturbed\n",
               others, run->quiet.again, run->rounds);

    if (quiet_busy(&run->quiet))
        printf("The machine was BUSY: the figures are unreliable.\n");
}

static void print_tables(const struct run *run)
{
    const struct lab_run_options *options = run->options;

    if (options->reserve == LAB_RESERVE_BOTH)
        printf("\nreserved core: %s\n", lab_run_reserve_name(run->command->reserve));

    for (uint32_t p = 0; p < run->phase_count; p++) {
        const struct lab_phase *phase = &run->phases[p];
        printf("\nphase %u: frames %" PRIu64 " to %" PRIu64 ", %s\n", p, phase->first_frame,
               phase->end_frame - 1, phase->text);
        printf("  %-18s %9s %9s %9s %9s %9s %9s %9s %9s %7s %8s %7s %9s\n", "", "mean ms", "p50 ms",
               "p99 ms", "p99.9 ms", "T/oracle", "by means", "T/single", "by means", "effic.",
               "changes", "settled", "J/frame");

        print_references(run, &run->reference[p]);
        for (uint32_t i = 0; i < options->policy_count; i++)
            print_figures(options->policies[i].name, &run->figures[i * run->phase_count + p],
                          p == 0);
        print_certainties(run, p);
        if (options->policy_count > 1)
            print_pairs(run, p);
        warn_of_few(run, p);
        if (options->deadline_ns || options->objective == COX_OBJECTIVE_LATENCY)
            print_latencies(run, p);
    }

    fputs("\nT/oracle, T/single: medians over medians; by means: means over means. "
          "changes: of the split, per 100 frames.\n"
          "settled: frames until frame times stay near the oracle's; *: after a change.\n",
          stdout);

    for (uint32_t i = 0; i < options->policy_count; i++) {
        struct lab_run_verdict verdict = lab_run_judge(&run->figures[i * run->phase_count],
                                                       run->reference, run->phases,
                                                       run->phase_count);
        print_verdict(options->policies[i].name, &verdict, run->phase_count);
    }

    print_outputs(run);
    if (options->reserve == LAB_RESERVE_BOTH && run->command->reserve == LAB_RESERVE_ON)
        print_reserve(run);
}

/* --- As rows ---------------------------------------------------------------------------------- */

/* The figures of a reference. */
static const struct lab_run_figures no_figures = {.frames = 0};
static const struct lab_run_certainty unknown = {
    .of = {{NAN, NAN}, {NAN, NAN}, {NAN, NAN}, {NAN, NAN}, {NAN, NAN}, {NAN, NAN}},
    .over_first = {0, NAN, NAN, {NAN, NAN}, {NAN, NAN}},
    .over_off = NAN,
    .over_off_interval = {NAN, NAN}};

/* One contestant in one phase. */
struct row {
    const char *kind, *policy;
    uint32_t device; /* of kind solo */
    uint32_t phase;
    const struct lab_spread *spread;
    const struct lab_run_figures *figures;
    const struct lab_run_certainty *certainty;
    uint32_t compared, different;
};

static void put_interval(struct lab_rows *rows, const char *low, const char *high,
                         const struct lab_interval *interval, double scale)
{
    lab_rows_number(rows, low, interval->low / scale);
    lab_rows_number(rows, high, interval->high / scale);
}

static void put_number(struct lab_rows *rows, const char *key, bool known, double value)
{
    lab_rows_number(rows, key, known ? value : NAN);
}

static void put_count(struct lab_rows *rows, const char *key, bool known, uint64_t value)
{
    if (known)
        lab_rows_count(rows, key, value);
    else
        lab_rows_unknown(rows, key);
}

static void put_pair(struct lab_rows *rows, const struct lab_pair *pair)
{
    lab_rows_number(rows, "mean_over_first", pair->mean);
    put_interval(rows, "mean_over_first_low", "mean_over_first_high", &pair->mean_interval, 1);
    lab_rows_number(rows, "p99_over_first", pair->p99);
    put_interval(rows, "p99_over_first_low", "p99_over_first_high", &pair->p99_interval, 1);
}

static void put_row(struct lab_rows *rows, const struct run *run, const struct row *row)
{
    const struct lab_run_figures *figures = row->figures;
    const struct lab_run_certainty *sure = row->certainty;
    const double others = quiet_others(&run->quiet);
    const bool own = figures->frames > 0, times = row->spread->count > 0;

    lab_rows_open(rows);
    lab_rows_count(rows, "run", (uint64_t)run->number);
    lab_rows_text(rows, "kernel", lab_kernel_name(run->kernel));
    lab_rows_count(rows, "columns", run->size.columns);
    lab_rows_count(rows, "rows", run->size.rows);
    put_count(rows, "ratio", lab_kernel_has_work(run->kernel), run->ratio);
    lab_rows_text(rows, "reserve", lab_run_reserve_name(run->command->reserve));
    lab_rows_count(rows, "phase", row->phase);
    lab_rows_text(rows, "phase_text", run->phases[row->phase].text);
    lab_rows_text(rows, "kind", row->kind);
    lab_rows_text(rows, "policy", row->policy);
    put_count(rows, "device", !row->policy, row->device);
    lab_rows_count(rows, "repeats", run->options->repeats);
    lab_rows_count(rows, "frames", row->spread->count);
    lab_rows_count(rows, "failed", figures->failed);
    lab_rows_count(rows, "left_out", figures->disturbed);

    put_number(rows, "mean_us", times, row->spread->mean_ns / 1e3);
    put_interval(rows, "mean_us_low", "mean_us_high", &sure->of.mean, 1e3);
    put_number(rows, "p50_us", times, row->spread->p50_ns / 1e3);
    put_interval(rows, "p50_us_low", "p50_us_high", &sure->of.p50, 1e3);
    put_number(rows, "p99_us", times, row->spread->p99_ns / 1e3);
    put_interval(rows, "p99_us_low", "p99_us_high", &sure->of.p99, 1e3);
    put_number(rows, "p99_9_us", times, row->spread->p999_ns / 1e3);
    put_interval(rows, "p99_9_us_low", "p99_9_us_high", &sure->of.p999, 1e3);
    put_pair(rows, &sure->over_first);

    put_number(rows, "mean_over_oracle", own, figures->mean_over_oracle);
    put_number(rows, "p50_over_oracle", own, figures->over_oracle);
    put_number(rows, "mean_over_single", own, figures->mean_over_single);
    put_number(rows, "p50_over_single", own, figures->over_single);
    put_interval(rows, "p50_over_single_low", "p50_over_single_high", &sure->of.ratio, 1);
    lab_rows_number(rows, "p50_over_unreserved", sure->over_off);
    put_interval(rows, "p50_over_unreserved_low", "p50_over_unreserved_high",
                 &sure->over_off_interval, 1);

    put_number(rows, "efficiency", own, figures->efficiency);
    put_number(rows, "split_changes", own, figures->changes);
    put_count(rows, "settled", own && figures->settled != LAB_RUN_NEVER, figures->settled);
    put_number(rows, "latency_mean_us", own, figures->latency.mean_ns / 1e3);
    put_number(rows, "latency_p50_us", own, figures->latency.p50_ns / 1e3);
    put_number(rows, "latency_p99_us", own, figures->latency.p99_ns / 1e3);
    put_number(rows, "latency_p99_9_us", own, figures->latency.p999_ns / 1e3);
    put_number(rows, "over_deadline", own && run->options->deadline_ns, figures->late);
    put_number(rows, "joules", own && figures->joules >= 0, figures->joules);
    put_count(rows, "outputs_compared", row->compared > 0, row->compared);
    put_count(rows, "outputs_different", row->compared > 0, row->different);
    put_number(rows, "foreign_load", others >= 0, others);
    lab_rows_close(rows);
}

static void print_rows(const struct run *run)
{
    struct lab_rows *rows = &run->command->shared->rows;

    for (uint32_t p = 0; p < run->phase_count; p++) {
        const struct lab_run_reference *reference = &run->reference[p];
        struct row row = {
            .kind = "solo", .phase = p, .figures = &no_figures, .certainty = &unknown};

        for (uint32_t d = 0; d < reference->device_count; d++) {
            row.device = d;
            row.spread = &reference->solo[d];
            put_row(rows, run, &row);
        }

        row.kind = row.policy = "oracle";
        row.spread = &reference->oracle.spread;
        put_row(rows, run, &row);

        row.kind = "policy";
        for (uint32_t i = 0; i < run->options->policy_count; i++) {
            row.policy = run->options->policies[i].name;
            row.figures = &run->figures[i * run->phase_count + p];
            row.spread = &row.figures->spread;
            row.certainty = &run->certainties[i * run->phase_count + p];
            row.compared = run->policies[i].compared;
            row.different = run->policies[i].different;
            put_row(rows, run, &row);
        }
    }
}

void lab__run_print(const struct run *run)
{
    if (run->options->format == LAB_TABLE) {
        print_quiet(run);
        print_tables(run);
    } else {
        print_rows(run);
    }
}
