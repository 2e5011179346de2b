/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

const struct suite_case suite_cases[] = {
    {"gemm", "PolyBench", "a product of matrices", suite_make_gemm},
    {"conv2d", "PolyBench", "3 x 3 convolution of images", suite_make_conv2d},
    {"fdtd2d", "PolyBench", "fields in two dimensions over time", suite_make_fdtd2d},
    {"jacobi2d", "PolyBench", "five-point mean, repeated", suite_make_jacobi2d},
    {"hotspot", "Rodinia", "the temperature of a chip over time", suite_make_hotspot},
    {"srad", "Rodinia", "diffusion that removes speckle", suite_make_srad},
    {"stencil", "Parboil", "seven-point stencil over a volume", suite_make_stencil},
    {"stencil5", "iterative", "five-point stencil, eight fused steps a frame", suite_make_stencil5},
    {0}};
