/* A quota of processor time for this process: a control group of its own with the controller cpu, of either version of
 * the hierarchy. Made where the system lets this process make one: beside its own group or below it.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_QUOTA_H
#define COX_EXAMPLES_LAB_DISTURB_QUOTA_H

#include <stdbool.h>
#include <stddef.h>

struct lab_quota;

/* Makes the group, without a quota yet, and moves this process into it; processes started before stay where they are.
 * `root` NULL = "": what /proc and the hierarchies are looked for below. False with a sentence in `why`, and nothing
 * changed. */
bool lab_quota_open(const char *root, struct lab_quota **out, char *why, size_t why_bytes);

/* The group's folder. */
const char *lab_quota_group(const struct lab_quota *quota);

/* So many processors' time in all; 0 = no quota. */
bool lab_quota_set(struct lab_quota *quota, double processors, char *why, size_t why_bytes);

/* Moves the process back and removes the group; sets to NULL, NULL is accepted. A process that was killed leaves its
 * group behind, empty, for lab_quota_tidy. */
void lab_quota_close(struct lab_quota **quota);

/* Removes the groups of processes that are no more, where a group of this process would be. `root` as above. */
void lab_quota_tidy(const char *root);

#endif
