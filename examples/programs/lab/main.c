/* cox-lab: a lab for load balancing. It runs policies in a simulator and on the devices of this
 * machine, under disturbances, and compares them with the best possible split. The manual is
 * docs/guide/cox-lab.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <coxswain/version.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*main)(int argc, char **argv);
    const char *text;
} commands[] = {
    {"sim", lab_sim_main, "every policy in every scenario, simulated, as a table"},
    {"run", lab_run_main,
     "policies on the devices of this machine, disturbed, recorded in a database"},
    {"replay", lab_replay_main,
     "a recorded session through other policies: what would have happened"},
    {"fit", lab_fit_main, "a scenario like a recorded run, and how well it forecasts the policies"},
    {"report", lab_report_main, "a recorded session as one page of HTML"},
    {"export", lab_export_main, "a recorded run as a trace, for Perfetto or for ViTE and PajeNG"},
    {"merge", lab_merge_main, "the runs of several machines in one database, for one report"},
    {"cluster", lab_cluster_main,
     "how long a film takes on so many machines, told before they are bought"},
    {"laptop", lab_laptop_main,
     "all that a paper needs of one machine, by one command: page, plots, archive"},
    {"telemetry", lab_telemetry_main,
     "what this machine tells of its clocks, temperatures and power"},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_usage(FILE *to)
{
    fputs("Usage: cox-lab COMMAND [options]\n"
          "\n"
          "A lab for load balancing: policies in a simulator and on the devices of this machine,"
          " under disturbances,\n"
          "against the best there is.\n"
          "\n",
          to);
    for (int i = 0; i < COMMANDS; i++)
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].text);
    fputs("\ncox-lab COMMAND --help explains each.\n", to);
}

int main(int argc, char **argv)
{
    const char *name = "";

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
        lab_fail("there is no command '%s'", name);
    print_usage(stderr);
    return LAB_USAGE;
}
