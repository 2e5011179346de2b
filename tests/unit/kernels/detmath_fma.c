/* detmath.c in the arithmetic of fma: the same bounds.
 * SPDX-License-Identifier: Apache-2.0 */
#define COX_FMA
#include "detmath.c"
