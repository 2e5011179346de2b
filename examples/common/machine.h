/* What figures were measured on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MACHINE_H
#define MACHINE_H

struct json;

struct machine {
    char cpu[128];
    char system[160];
    unsigned cpus; /* hardware threads this process may use */
    double load;   /* 1-minute load average at the start; negative = unknown */
};
void machine_read(struct machine *machine);

/* Its members, into the object that is open. */
void machine_json(const struct machine *machine, struct json *json);

#endif
