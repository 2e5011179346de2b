/* cox-lab's commands, each in a file of its own, and what they share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_H
#define COX_EXAMPLES_LAB_H

#include <stdbool.h>

/* Exit statuses. */
enum { LAB_OK = 0, LAB_BAD = 1, LAB_USAGE = 2, LAB_MISSED = 3, LAB_INTERRUPTED = 130 };

/* A command: argv[0] is its name. Returns an exit status. */
int lab_sim_main(int argc, char **argv);
int lab_run_main(int argc, char **argv);
int lab_replay_main(int argc, char **argv);
int lab_fit_main(int argc, char **argv);
int lab_report_main(int argc, char **argv);
int lab_export_main(int argc, char **argv);
int lab_merge_main(int argc, char **argv);
int lab_cluster_main(int argc, char **argv);
int lab_laptop_main(int argc, char **argv);
int lab_telemetry_main(int argc, char **argv);

/* "cox-lab: " and a line on stderr. Returns false. */
__attribute__((format(printf, 1, 2))) bool lab_fail(const char *format, ...);

#endif
