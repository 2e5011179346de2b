/* SPDX-License-Identifier: Apache-2.0 */
#include "errors.h"

#include <math.h>
#include <string.h>

double suite_error(const struct suite_memory *memory, const void *result, const void *right)
{
    const float *a = result, *b = right;
    double largest = 0, difference = 0;

    if (!memory->floats)
        return memcmp(result, right, memory->bytes) ? 1 : 0;

    for (size_t i = 0; i < memory->bytes / sizeof *a; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
        if (fabs((double)b[i]) > largest)
            largest = fabs((double)b[i]);
        if (fabs((double)a[i] - b[i]) > difference)
            difference = fabs((double)a[i] - b[i]);
    }

    return difference > 0 ? difference / largest : 0;
}
