/* SPDX-License-Identifier: Apache-2.0 */
#include "settle.h"

#include <math.h>

enum { WINDOW = 8, WINDOW_LEAST = 4 };
static const double settled_share = 0.75; /* of the window's frames */
static const double settled_near = 1.05;

double lab_settle_limit(double oracle_p50_ns, double oracle_p90_ns)
{
    if (isnan(oracle_p50_ns))
        return NAN;
    return fmax(settled_near * oracle_p50_ns, oracle_p90_ns);
}

size_t lab_settle(lab_settle_fn *over, const void *frames, size_t first, size_t end)
{
    for (size_t from = first; from < end; from++) {
        size_t seen = 0, near = 0;

        if (!(over(frames, from) <= 1))
            continue;

        for (size_t f = from; f < end && seen < WINDOW; f++) {
            double ratio = over(frames, f);

            seen += !isnan(ratio);
            near += ratio <= 1;
        }

        if (seen >= WINDOW_LEAST && (double)near >= settled_share * (double)seen)
            return from - first;
    }
    return SIZE_MAX;
}
