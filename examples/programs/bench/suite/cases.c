/* SPDX-License-Identifier: Apache-2.0 */
#include "list.h"

const struct suite_case suite_cases[] = {
    {"stencil5", "iterative", "five-point stencil, eight fused steps a frame", suite_make_stencil5},
    {0}};
