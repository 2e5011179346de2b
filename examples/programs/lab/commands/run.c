/* cox-lab run: measures policies on the devices of this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/commands.h"
#include "lab/run/measure.h"

#include <stdio.h>
#include <string.h>

int lab_run_main(int argc, char **argv)
{
    struct lab_run_options options;
    char command[1024] = "cox-lab";
    int status;

    for (int i = 0; i < argc; i++) {
        size_t length = strlen(command);
        snprintf(command + length, sizeof command - length, " %s", argv[i]);
    }

    if (!lab_run_parse(argc, argv, &options, &status))
        return status;
    options.command = command;
    return lab_run(&options);
}
