/* In a balanced design the effects are orthogonal. The effect of a set of factors at a combination
 * of their levels is the alternating sum of the means over all its subsets. Its sum of squares adds
 * up the squared effects over all values (R. A. Fisher; D. C. Montgomery, Design and Analysis of
 * Experiments, chapter 5).
 * SPDX-License-Identifier: Apache-2.0 */
#include "anova.h"
#include "f_distribution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETS_MAX = 1 << ANOVA_FACTORS_MAX };

/* --- Sums of squares -------------------------------------------------------------------------- */

/* The means of the logarithms for each set of factors: at each combination of their levels. */
struct means {
    const struct anova_design *design;
    uint32_t sets, cells;
    double *logs;
    double *of[SETS_MAX];
    double *blocks; /* [level of block_within][replicate] */
};

static uint32_t level_count(const struct anova_design *design, uint32_t factor)
{
    return factor < design->factor_count ? design->factors[factor].levels : 1;
}

/* Combinations of the levels of a set's factors. */
static uint32_t combinations(const struct anova_design *design, uint32_t set)
{
    uint32_t count = 1;

    for (uint32_t i = 0; i < design->factor_count; i++)
        if (set >> i & 1)
            count *= design->factors[i].levels;
    return count;
}

/* The level of a factor in a cell of the whole design. */
static uint32_t level_of(const struct anova_design *design, uint32_t cell, uint32_t factor)
{
    if (factor >= design->factor_count)
        return 0;
    for (uint32_t i = design->factor_count - 1; i > factor; i--)
        cell /= design->factors[i].levels;
    return cell % design->factors[factor].levels;
}

/* The place of a cell among the combinations of a set. */
static uint32_t place_of(const struct anova_design *design, uint32_t cell, uint32_t set)
{
    uint32_t place = 0;

    for (uint32_t i = 0; i < design->factor_count; i++)
        if (set >> i & 1)
            place = place * design->factors[i].levels + level_of(design, cell, i);
    return place;
}

static void free_means(struct means *means)
{
    for (uint32_t set = 0; set < means->sets; set++)
        free(means->of[set]);
    free(means->blocks);
    free(means->logs);
}

static bool allocate(struct means *means)
{
    const struct anova_design *design = means->design;
    const uint32_t groups = level_count(design, design->block_within);
    bool good;

    means->logs = malloc((size_t)means->cells * design->replicates * sizeof *means->logs);
    means->blocks = calloc((size_t)groups * design->replicates, sizeof *means->blocks);
    good = means->logs && means->blocks;
    for (uint32_t set = 0; set < means->sets; set++) {
        means->of[set] = calloc(combinations(design, set), sizeof *means->of[set]);
        good = good && means->of[set];
    }

    return good;
}

static void add_means(struct means *means)
{
    const struct anova_design *design = means->design;
    const uint32_t n = design->replicates;

    for (uint32_t cell = 0; cell < means->cells; cell++) {
        const uint32_t group = level_of(design, cell, design->block_within);
        const double share = (double)level_count(design, design->block_within) / means->cells;

        for (uint32_t r = 0; r < n; r++) {
            const double value = log(design->times[cell * n + r]);

            means->logs[cell * n + r] = value;
            means->blocks[group * n + r] += value * share;
            for (uint32_t set = 0; set < means->sets; set++)
                means->of[set][place_of(design, cell, set)] += value * combinations(design, set) /
                                                               ((double)means->cells * n);
        }
    }
}

/* The effect of a set of factors in a cell. */
static double effect(const struct means *means, uint32_t set, uint32_t cell)
{
    double sum = 0;

    for (uint32_t of = 0; of < means->sets; of++) {
        if (of & ~set)
            continue;

        uint32_t left_out = 0;
        for (uint32_t i = 0; i < means->design->factor_count; i++)
            left_out += (set & ~of) >> i & 1;
        const double mean = means->of[of][place_of(means->design, cell, of)];
        sum += left_out % 2 ? -mean : mean;
    }
    return sum;
}

static bool is_crossed(const struct anova_design *design, uint32_t set)
{
    for (uint32_t i = 0; i < design->factor_count; i++)
        if (set >> i & 1 && design->factors[i].levels < 2)
            return false;
    return true;
}

/* The block effects are those of replicates only if another factor than block_within has levels. */
static bool has_blocks(const struct anova_design *design)
{
    for (uint32_t i = 0; i < design->factor_count; i++)
        if (i != design->block_within && design->factors[i].levels > 1)
            return true;
    return false;
}

static struct anova_row factors_row(const struct means *means, uint32_t set)
{
    const struct anova_design *design = means->design;
    struct anova_row row = {.degrees = 1};

    for (uint32_t i = 0; i < design->factor_count; i++) {
        if (!(set >> i & 1))
            continue;
        const size_t used = strlen(row.name);
        snprintf(row.name + used, sizeof row.name - used, "%s%s", used ? " x " : "",
                 design->factors[i].name);
        row.degrees *= design->factors[i].levels - 1;
    }

    for (uint32_t cell = 0; cell < means->cells; cell++) {
        const double of = effect(means, set, cell);
        row.squares += of * of * design->replicates;
    }
    return row;
}

/* The effect of a replicate in its group. */
static double block_effect(const struct means *means, uint32_t cell, uint32_t replicate)
{
    const struct anova_design *design = means->design;
    const uint32_t within = design->block_within;
    const uint32_t set = within < design->factor_count ? 1u << within : 0;
    const uint32_t group = level_of(design, cell, within);

    return means->blocks[group * design->replicates + replicate] -
           means->of[set][place_of(design, cell, set)];
}

/* The blocks, the residual and the total. */
static void last_rows(const struct means *means, struct anova_row *rows, uint32_t *count)
{
    const struct anova_design *design = means->design;
    const bool blocked = has_blocks(design);
    const uint32_t n = design->replicates, whole = means->sets - 1;
    const uint32_t groups = level_count(design, design->block_within);
    struct anova_row blocks = {.degrees = (double)groups * (n - 1)};
    struct anova_row residual = {.name = "residual", .degrees = (double)means->cells * (n - 1)};
    struct anova_row total = {.name = "total", .degrees = (double)means->cells * n - 1};

    snprintf(blocks.name, sizeof blocks.name, "%s", design->block_name);
    for (uint32_t cell = 0; cell < means->cells; cell++)
        for (uint32_t r = 0; r < n; r++) {
            const double value = means->logs[cell * n + r];
            const double block = blocked ? block_effect(means, cell, r) : 0;
            const double rest = value - means->of[whole][cell] - block;
            const double all = value - means->of[0][0];

            blocks.squares += block * block;
            residual.squares += rest * rest;
            total.squares += all * all;
        }

    if (blocked) {
        residual.degrees -= blocks.degrees;
        rows[(*count)++] = blocks;
    }
    rows[(*count)++] = residual;
    rows[(*count)++] = total;
}

static void add_tests(struct anova_row *rows, uint32_t count)
{
    const struct anova_row *residual = &rows[count - 2], *total = &rows[count - 1];

    for (uint32_t i = 0; i < count; i++) {
        struct anova_row *row = &rows[i];
        const bool tested = row != residual && row != total;

        row->f = row->p = row->partial = NAN;
        row->eta = row == total ? NAN : row->squares / total->squares;
        if (!tested)
            continue;
        row->f = row->squares / row->degrees / (residual->squares / residual->degrees);
        row->p = f_tail(row->f, row->degrees, residual->degrees);
        row->partial = row->squares / (row->squares + residual->squares);
    }
}

static bool check_design(const struct anova_design *design, char *why, size_t why_bytes)
{
    const uint32_t cells = combinations(design, (1u << design->factor_count) - 1);

    if (cells < 2 || design->replicates < 2) {
        snprintf(why, why_bytes, "needs two levels of a factor, and two of %s", design->block_name);
        return false;
    }
    for (uint32_t i = 0; i < cells * design->replicates; i++)
        if (!(design->times[i] > 0) || !isfinite(design->times[i])) {
            snprintf(why, why_bytes, "a combination was not measured");
            return false;
        }

    return true;
}

/* Sets with few factors come first. */
static void compute(const struct means *means, struct anova_row *rows, uint32_t *count)
{
    for (uint32_t size = 1; size <= means->design->factor_count; size++)
        for (uint32_t set = 1; set < means->sets; set++) {
            uint32_t factors = 0;

            for (uint32_t i = 0; i < means->design->factor_count; i++)
                factors += set >> i & 1;
            if (factors == size && is_crossed(means->design, set))
                rows[(*count)++] = factors_row(means, set);
        }

    last_rows(means, rows, count);
    add_tests(rows, *count);
}

static bool begin(const struct anova_design *design, struct means *means, char *why,
                  size_t why_bytes)
{
    *means = (struct means){.design = design,
                            .sets = 1u << design->factor_count,
                            .cells = combinations(design, (1u << design->factor_count) - 1)};
    if (!check_design(design, why, why_bytes))
        return false;
    if (!allocate(means)) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }

    add_means(means);
    return true;
}

bool anova_compute(const struct anova_design *design, struct anova_row *rows, uint32_t *count,
                   char *why, size_t why_bytes)
{
    struct means means;

    *count = 0;
    const bool good = begin(design, &means, why, why_bytes);
    if (good)
        compute(&means, rows, count);
    free_means(&means);
    return good;
}

/* --- Printing --------------------------------------------------------------------------------- */

static void print_row(const struct anova_row *row)
{
    printf("  %-32s %10.5f %7.0f", row->name, row->squares, row->degrees);
    if (!isnan(row->f))
        printf(" %10.2f", row->f);
    if (!isnan(row->p))
        printf(row->p < 1e-4 ? "  < 0.0001" : " %9.4f", row->p);
    if (!isnan(row->partial))
        printf(" %8.4f %8.4f", row->eta, row->partial);
    putchar('\n');
}

/* The geometric mean of each level over that of all. */
static void print_levels(const struct means *means)
{
    const struct anova_design *design = means->design;

    puts("\n  level                            time / geometric mean of all");
    for (uint32_t i = 0; i < design->factor_count; i++) {
        const struct anova_factor *factor = &design->factors[i];

        for (uint32_t level = 0; level < factor->levels && factor->levels > 1; level++) {
            char name[112];
            snprintf(name, sizeof name, "%s %s", factor->name, factor->level_names[level]);
            printf("  %-32s %10.4f\n", name, exp(means->of[1u << i][level] - means->of[0][0]));
        }
    }
}

static void print_table(const struct means *means, const struct anova_row *rows, uint32_t count)
{
    printf("analysis of variance of log(time), %u %ss in each combination\n",
           means->design->replicates, means->design->block_name);
    printf("  %-32s %10s %7s %10s %9s %8s %8s\n", "source", "squares", "df", "F", "p", "eta2",
           "partial");
    for (uint32_t i = 0; i < count; i++)
        print_row(&rows[i]);
    print_levels(means);
}

static void print_rows(const struct anova_row *rows, uint32_t count, enum lab_format format)
{
    struct lab_rows out;

    lab_rows_begin(&out, format);
    for (uint32_t i = 0; i < count; i++) {
        lab_rows_open(&out);
        lab_rows_text(&out, "source", rows[i].name);
        lab_rows_number(&out, "squares", rows[i].squares);
        lab_rows_number(&out, "df", rows[i].degrees);
        lab_rows_number(&out, "f", rows[i].f);
        lab_rows_number(&out, "p", rows[i].p);
        lab_rows_number(&out, "eta2", rows[i].eta);
        lab_rows_number(&out, "partial_eta2", rows[i].partial);
        lab_rows_close(&out);
    }
    lab_rows_end(&out);
}

bool anova_print(const struct anova_design *design, enum lab_format format, char *why,
                 size_t why_bytes)
{
    struct anova_row rows[ANOVA_ROWS_MAX];
    struct means means;
    uint32_t count = 0;

    const bool good = begin(design, &means, why, why_bytes);
    if (good)
        compute(&means, rows, &count);
    if (good && format == LAB_TABLE)
        print_table(&means, rows, count);
    else if (good)
        print_rows(rows, count, format);
    free_means(&means);
    return good;
}
