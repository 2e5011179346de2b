/* The commands of cox-lab. Each is a file in commands/, called by main.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_H
#define COX_EXAMPLES_LAB_H

#include "fail.h"

/* argv[0] is the command's name. Returns an exit status. */
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

#endif
