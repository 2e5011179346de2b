/* Energy from the CPU's own counters, which the system shows below /sys/class/powercap (RAPL of
 * Intel and AMD). A discrete GPU is not included.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_ENERGY_H
#define COX_EXAMPLES_LAB_ENERGY_H

#include <stdbool.h>
#include <stddef.h>

struct lab_energy;

/* The sum of the packages' meters. `root` NULL means "/sys/class/powercap". False with a
 * sentence in `why` if there is no meter or it is not readable. */
bool lab_energy_open(const char *root, struct lab_energy **out, char *why, size_t why_bytes);

/* The meter of one domain of any kind: "intel-rapl:0:1". False with errno set if it cannot be
 * read. */
bool lab_energy_open_domain(const char *root, const char *entry, struct lab_energy **out);
void lab_energy_close(struct lab_energy **energy);

/* A cox_meter_fn; its `user` is the meter. Returns the joules since the meter was opened;
 * negative if it cannot be read now. Call it more often than the counters wrap around, which
 * takes minutes.
 * Thread-safety: safe from any thread. */
double lab_energy_joules(void *energy);

/* "RAPL: package-0, package-1". */
const char *lab_energy_name(const struct lab_energy *energy);

#endif
