/* Sums of a device's measurements over passes that share a split.
 * SPDX-License-Identifier: Apache-2.0 */
#include "together.h"

static uint32_t slot_of(uint64_t frame)
{
    return (uint32_t)(frame % (COX_IN_FLIGHT_MAX + 1));
}

/* Begin the device's next pass. */
static void begin_pass(struct cox__together_part *part, uint32_t pass,
                       const struct cox_measurement *measurement)
{
    if (part->frame != measurement->frame + 1)
        *part = (struct cox__together_part){.frame = measurement->frame + 1,
                                            .first_row = measurement->first_row,
                                            .uneven = pass > 0};
    else
        part->uneven |= part->pass_rows != part->rows || part->pass + 1 != pass;

    part->pass = pass;
    part->pass_rows = 0;
}

void cox__together_begin(struct cox__pass_group *together, uint64_t frame)
{
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        together->parts[slot_of(frame)][d].frame = 0;
}

void cox__together_add(struct cox__pass_group *together, uint32_t pass,
                       const struct cox_measurement *measurement)
{
    struct cox__together_part *part =
        &together->parts[slot_of(measurement->frame)][measurement->device];

    if (part->frame != measurement->frame + 1 || part->pass != pass)
        begin_pass(part, pass, measurement);

    /* The kernel time is known only if it is known for every band. */
    const bool first = part->wall_ns == 0;
    if (measurement->kernel_ns && (first || part->kernel_ns))
        part->kernel_ns += measurement->kernel_ns;
    else
        part->kernel_ns = 0;

    part->uneven |= measurement->flags != 0;
    part->wall_ns += measurement->wall_ns;
    part->queue_ns += measurement->queue_ns;
    part->late_ns += measurement->late_ns;
    part->pass_rows += measurement->rows;
    if (pass == 0)
        part->rows += measurement->rows;
}

bool cox__together_sum(const struct cox__pass_group *together, uint32_t passes, uint64_t frame,
                       uint32_t device, struct cox_measurement *out)
{
    const struct cox__together_part *part = &together->parts[slot_of(frame)][device];

    if (part->frame != frame + 1 || part->uneven || part->pass + 1 != passes ||
        part->pass_rows != part->rows)
        return false;

    *out = (struct cox_measurement){.frame = frame,
                                    .device = device,
                                    .first_row = part->first_row,
                                    .rows = part->rows,
                                    .wall_ns = part->wall_ns,
                                    .queue_ns = part->queue_ns,
                                    .kernel_ns = part->kernel_ns,
                                    .late_ns = part->late_ns};

    return true;
}
