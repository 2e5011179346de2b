/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

const struct suite_case suite_cases[] = {
    {"gemm", "PolyBench", "a product of matrices", suite_make_gemm},
    {"conv2d", "PolyBench", "3 x 3 convolution of images", suite_make_conv2d},
    {"fdtd2d", "PolyBench", "fields in two dimensions over time", suite_make_fdtd2d},
    {"jacobi2d", "PolyBench", "five-point mean, repeated", suite_make_jacobi2d},
    {"hotspot", "Rodinia", "the temperature of a chip over time", suite_make_hotspot},
    {"kmeans", "Rodinia", "clusters of points; the host moves the centres", suite_make_kmeans},
    {"pathfinder", "Rodinia", "the cheapest way through a grid", suite_make_pathfinder},
    {"srad", "Rodinia", "diffusion that removes speckle", suite_make_srad},
    {"histogram", "Parboil", "many bins that saturate", suite_make_histogram},
    {"stencil", "Parboil", "seven-point stencil over a volume", suite_make_stencil},
    {"tpacf", "Parboil", "histograms of angles between points", suite_make_tpacf},
    {"spmv_scalar", "SHOC", "a sparse matrix times a vector", suite_make_spmv_scalar},
    {"spmv_vector", "SHOC", "the same, with 32 work-items per row", suite_make_spmv_vector},
    {"canny", "CHAI", "edges of a video (CEDD)", suite_make_canny},
    {"hsti", "CHAI", "a histogram of 256 bins", suite_make_hsti},
    {"stencil5", "iterative", "five-point stencil, eight fused steps a frame", suite_make_stencil5},
    {0}};
