/* detmath.c with fma arithmetic; the bounds are the same.
 * SPDX-License-Identifier: Apache-2.0 */
#define COX_FMA
#include "detmath.c"
