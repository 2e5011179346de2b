/* One device's share of one frame, put together from its bands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

bool cox__tally_take(struct cox__tally *tally, struct cox__tally *closed)
{
    if (tally->rows == 0)
        return false;
    *closed = *tally;
    *tally = (struct cox__tally){0};
    return true;
}

bool cox__tally_add(struct cox__tally *tally, const struct cox_measurement *measurement, struct cox__tally *closed)
{
    if (measurement->rows == 0 || measurement->wall_ns == 0 ||
        measurement->flags & (COX_MEASURED_SHADOW | COX_MEASURED_UNFINISHED))
        return false;
    bool was = tally->frame != measurement->frame && cox__tally_take(tally, closed);
    double kernel_ns = (double)measurement->kernel_ns;
    if (tally->rows == 0)
        *tally = (struct cox__tally){.frame = measurement->frame, .kernel_ns = kernel_ns};
    else
        tally->kernel_ns = tally->kernel_ns > 0 && kernel_ns > 0 ? tally->kernel_ns + kernel_ns : 0;
    tally->rows += measurement->rows;
    tally->wall_ns += (double)measurement->wall_ns;
    return was;
}
