/* The cases of cox-bench suite: suite_case.make of each, in the file of its name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SUITE_LIST_H
#define BENCH_SUITE_LIST_H

#include "problem.h"

typedef bool suite_make(enum suite_size size, struct suite_problem *problem);

suite_make suite_make_canny, suite_make_conv2d, suite_make_fdtd2d, suite_make_gemm,
    suite_make_histogram, suite_make_hotspot, suite_make_hsti, suite_make_jacobi2d,
    suite_make_kmeans, suite_make_pathfinder, suite_make_spmv_scalar, suite_make_spmv_vector,
    suite_make_srad, suite_make_stencil, suite_make_stencil5, suite_make_tpacf;

#endif
