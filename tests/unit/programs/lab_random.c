/* Random numbers that are the same on all machines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/sim/random.h"
#include <criterion/criterion.h>
#include <math.h>

Test(lab_random, gives_numbers_that_are_kept_here)
{
    cr_assert_eq(lab_random_bits(0, 0, 0, 0, 0), UINT64_C(0x238275bc38fcbe91), "%#llx",
                 (unsigned long long)lab_random_bits(0, 0, 0, 0, 0));
    cr_assert_eq(lab_random_bits(1, 2, 3, 4, 5), UINT64_C(0xd2161439f480b259), "%#llx",
                 (unsigned long long)lab_random_bits(1, 2, 3, 4, 5));
}

Test(lab_random, tells_every_coordinate_apart)
{
    uint64_t base = lab_random_bits(1, 1, 1, 1, 1);
    cr_assert_neq(base, lab_random_bits(2, 1, 1, 1, 1));
    cr_assert_neq(base, lab_random_bits(1, 2, 1, 1, 1));
    cr_assert_neq(base, lab_random_bits(1, 1, 2, 1, 1));
    cr_assert_neq(base, lab_random_bits(1, 1, 1, 2, 1));
    cr_assert_neq(base, lab_random_bits(1, 1, 1, 1, 2));
}

Test(lab_random, uniform_stays_inside_the_interval)
{
    cr_assert_gt(lab_random_uniform(0), 0);
    cr_assert_lt(lab_random_uniform(UINT64_MAX), 1);
    cr_assert_float_eq(lab_random_uniform(UINT64_C(1) << 63), 0.5, 1e-15);
}

Test(lab_random, normal_is_the_inverse_of_the_distribution)
{
    for (double u = 1e-12; u < 1; u += u < 0.01 ? u * 0.37 : 0.0037) {
        double z = lab_random_normal(u);
        double back = 0.5 * erfc(-z / sqrt(2));
        /* In the tail, a relative error of 1.2e-9 in z is z squared times that in u. */
        cr_assert_float_eq(back / u, 1, 2e-9 * (2 + z * z), "u %g becomes %.12g", u, back);
    }
    cr_assert_float_eq(lab_random_normal(0.5), 0, 1e-15);
    cr_assert_float_eq(lab_random_normal(0.9), -lab_random_normal(0.1), 1e-14);
    cr_assert_float_eq(lab_random_normal(0.999), -lab_random_normal(0.001), 1e-12);
}

Test(lab_random, normal_has_mean_0_and_variance_1)
{
    enum { COUNT = 200000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double z = lab_random_normal(lab_random_uniform(lab_random_bits(5, 0, i, (uint32_t)i % 7, 3)));
        sum += z;
        squares += z * z;
    }
    cr_assert_float_eq(sum / COUNT, 0, 0.01);
    cr_assert_float_eq(squares / COUNT, 1, 0.015);
}

Test(lab_random, exp_and_log_agree_with_the_c_library)
{
    for (double x = -699.3; x < 700; x += 0.731) {
        cr_assert_float_eq(lab_exp(x) / exp(x), 1, 1e-14, "exp(%g)", x);
        cr_assert_float_eq(lab_log(exp(x)), x, 1e-13 * fmax(1, fabs(x)), "log(exp(%g))", x);
    }
    for (double x = 0.5; x < 2; x += 0.00173)
        cr_assert_float_eq(lab_log(x), log(x), 1e-15);
}

Test(lab_random, exp_ends_where_it_says)
{
    cr_assert_eq(lab_exp(0), 1);
    cr_assert_eq(lab_exp(1e300), lab_exp(700));
    cr_assert_eq(lab_exp(-1e300), lab_exp(-700));
    cr_assert_eq(lab_exp(NAN), lab_exp(-700));
}
