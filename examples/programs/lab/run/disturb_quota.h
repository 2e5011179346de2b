/* A quota of CPU time for this process: a new control group with the controller cpu, of either
 * version of the hierarchy. It is made below the process's own group or next to it, where the
 * system permits.
 *
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_DISTURB_QUOTA_H
#define COX_EXAMPLES_LAB_DISTURB_QUOTA_H

#include <stdbool.h>
#include <stddef.h>

struct lab_quota;

/* Make the group, without a quota yet, and move this process into it; its earlier children stay
 * where they are. `root` is prepended to /proc and the hierarchies; NULL = "". On false `why`
 * has a sentence, and nothing has changed. */
bool lab_quota_open(const char *root, struct lab_quota **out, char *why, size_t why_bytes);

/* The group's folder. */
const char *lab_quota_group(const struct lab_quota *quota);

/* Limit the process to the time of this many CPUs; 0 = no quota. */
bool lab_quota_set(struct lab_quota *quota, double processors, char *why, size_t why_bytes);

/* Move the process back, remove the group and set the pointer to NULL. NULL is accepted. A killed
 * process leaves its empty group behind, for lab_quota_tidy. */
void lab_quota_close(struct lab_quota **quota);

/* Remove the groups of ended processes, where a group of this process would be. `root` as above. */
void lab_quota_tidy(const char *root);

#endif
