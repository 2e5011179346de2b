/* The machine that figures were measured on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_MACHINE_H
#define HOST_MACHINE_H

struct json;

struct machine {
    char cpu[128];
    char system[160];
    unsigned cpus; /* machine_cpus */
    double load;   /* 1-minute load average at the start; negative = unknown */
};
void machine_read(struct machine *machine);

/* Hardware threads that this process may use; 0 = unknown. */
unsigned machine_cpus(void);

/* Write its members into the open object. */
void machine_json(const struct machine *machine, struct json *json);

#endif
