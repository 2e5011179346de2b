/* Criterion 2.4.1 passes a test if an assertion in its .fini fails. This hook, linked to every Criterion
 * program, lets the program fail.
 * SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <stdio.h>
#include <stdlib.h>

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    if (stats->asserts_failed > 0 && stats->tests_failed == 0) {
        fputs("an assertion in a .fini failed\n", stderr);
        exit(1);
    }
}
