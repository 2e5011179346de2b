/* The analysis of variance of cox-lab, and the F distribution, against published values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/anova.h"
#include "lab/f_distribution.h"
#include <criterion/criterion.h>
#include <math.h>

enum { NAMES = 4 };
static const char *const names[NAMES] = {"a", "b", "c", "d"};

static struct anova_row rows[ANOVA_ROWS_MAX];
static uint32_t count;
static char why[200];

static void expect_row(uint32_t at, const char *name, double squares, double degrees)
{
    cr_assert_lt(at, count);
    cr_expect_str_eq(rows[at].name, name);
    cr_expect_float_eq(rows[at].squares, squares, 0.006, "%s: %.5f", name, rows[at].squares);
    cr_expect_eq(rows[at].degrees, degrees, "%s: %g", name, rows[at].degrees);
}

/* Tables of the F distribution: the 5 %, 1 % and 0.1 % points. The others are of R 4.2's pf. */
Test(f_distribution, has_the_published_tails)
{
    const struct {
        double f, degrees, error_degrees, tail;
    } known[] = {{161.4476, 1, 1, 0.05},
                 {3.7083, 3, 10, 0.05},
                 {4.1027, 5, 20, 0.01},
                 {8.5494, 120, 3, 0.05},
                 {11.3391, 2, 15, 0.001},
                 {0.908071, 7, 400, 0.5},
                 {2.5, 4, 30, 0.063476440},
                 {30, 3, 1000, 1.41958990e-18},
                 {0.5, 4, 30, 0.735886536},
                 {1.2, 8, 200, 0.300632546},
                 {700, 1, 8, 4.47772476e-09},
                 {1, 1, 1, 0.5},
                 {0, 3, 4, 1},
                 {HUGE_VAL, 3, 4, 0}};
    for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        double tail = f_tail(known[i].f, known[i].degrees, known[i].error_degrees);
        cr_expect_float_eq(tail, known[i].tail, 3e-5 * known[i].tail, "F %g: %.9g", known[i].f, tail);
    }
    cr_expect(isnan(f_tail(NAN, 1, 1)));
}

/* D. C. Montgomery, Design and Analysis of Experiments, 8th edition, table 5.21: the intensity at which an operator
 * sees a target, by ground clutter and filter. Operators are the blocks. Table 5.22 has the analysis. */
Test(anova, agrees_with_a_published_factorial_design_in_blocks)
{
    static const double intensity[] = {90, 96, 100, 92, 86,  84,  92,  81, 102, 106, 105, 96,
                                       87, 90, 97,  80, 114, 112, 108, 98, 93,  91,  95,  83};
    double times[24];
    for (uint32_t i = 0; i < 24; i++)
        times[i] = exp(intensity[i]);
    const struct anova_design design = {.factor_count = 3,
                                        .factors = {{"clutter", 3, names}, {"filter", 2, names}, {"room", 1, names}},
                                        .replicates = 4,
                                        .block_name = "operator",
                                        .block_within = 3,
                                        .times = times};
    cr_assert(anova_compute(&design, rows, &count, why, sizeof why), "%s", why);
    cr_assert_eq(count, 6);
    expect_row(0, "clutter", 335.58, 2);
    expect_row(1, "filter", 1066.67, 1);
    expect_row(2, "clutter x filter", 77.08, 2);
    expect_row(3, "operator", 402.17, 3);
    expect_row(4, "residual", 166.33, 15);
    expect_row(5, "total", 2047.83, 23);
    cr_expect_float_eq(rows[0].f, 15.13, 0.005);
    cr_expect_float_eq(rows[0].p, 0.0003, 0.00005);
    cr_expect_float_eq(rows[1].f, 96.19, 0.005);
    cr_expect_lt(rows[1].p, 0.0001);
    cr_expect_float_eq(rows[2].f, 3.48, 0.005);
    cr_expect_float_eq(rows[2].p, 0.0575, 0.00005);
    cr_expect_float_eq(rows[0].eta, 335.58 / 2047.83, 1e-5);
    cr_expect_float_eq(rows[0].partial, 335.58 / (335.58 + 166.33), 1e-5);
    cr_expect(isnan(rows[4].f) && isnan(rows[5].f) && isnan(rows[5].eta));
}

/* Three factors, blocks within the second one: the effects that the values are made of come back, and squares and
 * degrees add up. */
Test(anova, separates_three_factors_their_interactions_and_blocks_within_one)
{
    enum { A = 3, B = 2, C = 4, N = 3 };
    double times[A * B * C * N];
    for (uint32_t i = 0; i < A * B * C * N; i++) {
        uint32_t n = i % N, b = i / N / C % B, a = i / N / C / B;
        double block = ((int)n - 1) * (b ? 0.5 : -0.25), noise = 0.001 * ((i * 37 % 11) - 5.0);
        times[i] = exp(0.1 * ((int)a - 1) + (b ? 0.2 : -0.2) + (b ? 0.03 : -0.03) * ((int)a - 1) + block + noise);
    }
    const struct anova_design design = {.factor_count = 3,
                                        .factors = {{"a", A, names}, {"b", B, names}, {"c", C, names}},
                                        .replicates = N,
                                        .block_name = "n",
                                        .block_within = 1,
                                        .times = times};
    cr_assert(anova_compute(&design, rows, &count, why, sizeof why), "%s", why);
    cr_assert_eq(count, ANOVA_ROWS_MAX);
    static const char *const sources[] = {"a",     "b",         "c", "a x b",    "a x c",
                                          "b x c", "a x b x c", "n", "residual", "total"};
    static const double degrees[] = {2, 1, 3, 2, 6, 3, 6, 4, 44, 71};
    double squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        cr_expect_str_eq(rows[i].name, sources[i]);
        cr_expect_eq(rows[i].degrees, degrees[i], "%s: %g", sources[i], rows[i].degrees);
        squares += i + 1 < count ? rows[i].squares : 0;
    }
    cr_expect_float_eq(squares, rows[9].squares, 1e-9);
    cr_expect_float_eq(rows[0].squares, 2 * 0.01 * B * C * N, 0.005);       /* a */
    cr_expect_float_eq(rows[1].squares, 0.04 * A * B * C * N, 0.005);       /* b */
    cr_expect_float_eq(rows[3].squares, 2 * 0.0009 * B * C * N, 0.002);     /* a x b */
    cr_expect_float_eq(rows[7].squares, 2 * (0.25 + 0.0625) * A * C, 0.01); /* n */
    cr_expect_lt(rows[8].squares, 0.001);
    cr_expect_gt(rows[2].p, 0.001); /* c has no effect */
    cr_expect_lt(rows[3].p, 1e-6);
}

/* Replicates of one factor, within which they are alike, are no blocks: there is nothing to compare them in. */
Test(anova, of_the_factor_that_holds_the_blocks_alone_counts_replicates_as_errors)
{
    const double times[] = {exp(1), exp(3), exp(4), exp(6)};
    const struct anova_design design = {.factor_count = 1,
                                        .factors = {{"a", 2, names}},
                                        .replicates = 2,
                                        .block_name = "n",
                                        .block_within = 0,
                                        .times = times};
    cr_assert(anova_compute(&design, rows, &count, why, sizeof why), "%s", why);
    cr_assert_eq(count, 3);
    expect_row(0, "a", 9, 1);
    expect_row(1, "residual", 4, 2);
    expect_row(2, "total", 13, 3);
    cr_expect_float_eq(rows[0].f, 4.5, 1e-9);
}

Test(anova, refuses_designs_without_replicates_or_with_holes)
{
    double times[] = {1, 2, 3, NAN};
    struct anova_design design = {
        .factor_count = 1, .factors = {{"a", 2, names}}, .replicates = 2, .block_name = "n", .times = times};
    cr_expect_not(anova_compute(&design, rows, &count, why, sizeof why));
    cr_expect_str_eq(why, "a combination was not measured");
    times[3] = 0;
    cr_expect_not(anova_compute(&design, rows, &count, why, sizeof why));
    times[3] = 4;
    cr_expect(anova_compute(&design, rows, &count, why, sizeof why));
    design.replicates = 1;
    cr_expect_not(anova_compute(&design, rows, &count, why, sizeof why));
    design.replicates = 4;
    design.factors[0].levels = 1;
    cr_expect_not(anova_compute(&design, rows, &count, why, sizeof why));
}
