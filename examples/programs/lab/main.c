/* cox-lab: runs load-balancing policies in a simulator and on the devices of this machine, also under
 * disturbances, and compares them with the best possible split. The manual is
 * docs/guide/cox-lab.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "common/plain_output.h"

#include <coxswain/version.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *text;
} commands[] = {
    {"sim", lab_sim_main, "simulate policies in scenarios and print a table"},
    {"run", lab_run_main, "measure policies on the devices of this machine and record a database"},
    {"replay", lab_replay_main, "estimate what other policies would have done in a recorded run"},
    {"fit", lab_fit_main, "make a scenario from a recorded run and test its forecasts"},
    {"report", lab_report_main, "make an HTML page from a session database"},
    {"export", lab_export_main,
     "convert a recorded run to a trace for a viewer, or a database to tables (CSV, Parquet)"},
    {"merge", lab_merge_main, "collect the runs of several machines in one database"},
    {"cluster", lab_cluster_main, "predict how long a film takes on a cluster"},
    {"laptop", lab_laptop_main, "measure one machine with one command: page, plots, archive"},
    {"telemetry", lab_telemetry_main,
     "list the clocks, temperatures and power readings of this machine"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to)
{
    fputs("Usage: cox-lab COMMAND [options]\n"
          "\n"
          "Compares load-balancing policies, in a simulator and on the devices of this machine.\n"
          "\n",
          to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].text);
    fputs("\ncox-lab COMMAND --help lists the options of a command.\n", to);
}

int main(int argc, char **argv)
{
    const char *name = "";

    plain_output_begin();
    if (argc > 1)
        name = argv[1];
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
        print_usage(stdout);
        return LAB_OK;
    }
    if (strcmp(name, "--version") == 0) {
        printf("cox-lab %s\n", cox_version());
        return LAB_OK;
    }

    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].main(argc - 1, argv + 1);

    if (argc > 1)
        lab_fail("unknown command '%s'", name);
    print_usage(stderr);
    return LAB_USAGE;
}
