/* cox-tonemap: HDR video or an HDR picture to SDR, on every OpenCL device of the machine at once.
 * docs/guide/cox-tonemap.md is its manual.
 * SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"
#include "command_line.h"
#include "common/outfile.h"
#include "common/plain_output.h"
#include "dispatch.h"
#include "media/hardware.h"
#include "messages.h"
#include "option_table.h"

#include <stdio.h>

/* --help, --version, --list-hw and --policy help. */
static int answer(enum options_parsed what)
{
    char names[256];
    struct error error;
    if (what == OPTIONS_HARDWARE) {
        if (!hardware_list(stdout, &error))
            return message_error("%s", error.text) ? 0 : EXIT_BAD;
    } else if (what == OPTIONS_HELP) {
        fputs(option_help, stdout);
    } else if (what == OPTIONS_VERSION) {
        printf("cox-tonemap %s\n", cox_version());
    } else {
        options_policy_names(names, sizeof names);
        printf("%s\n", names);
    }

    messages_begin(stdout, COX_LOG_WARN);
    return messages_finish() ? 0 : EXIT_BAD;
}

int main(int argc, char **argv)
{
    struct options options;
    struct options_error wrong;
    outfile_guard_standard();
    plain_output_begin();
    const enum options_parsed parsed = options_parse(&options, argc, argv, &wrong);
    if (parsed == OPTIONS_WRONG) {
        message_error("%s", wrong.text);
        return EXIT_USAGE;
    }
    if (parsed != OPTIONS_RUN)
        return answer(parsed);

    if (batch_is(&options) && !options.step)
        return batch_run(&options);
    return dispatch_run(&options);
}
