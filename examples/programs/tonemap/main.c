/* cox-tonemap: HDR video or an HDR picture to SDR, on every OpenCL device of the machine at once.
 * docs/guide/cox-tonemap.md is its manual.
 * SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"
#include "common/outfile.h"
#include "jobs.h"
#include "words.h"

#include <stdio.h>

static int answer(enum options_parsed what)
{
    char names[256];
    if (what == OPTIONS_HELP) {
        fputs(options_usage, stdout);
    } else if (what == OPTIONS_VERSION) {
        printf("cox-tonemap %s\n", cox_version());
    } else {
        options_policy_names(names, sizeof names);
        printf("%s\n", names);
    }
    words_begin(stdout, COX_LOG_WARN);
    return words_finish() ? 0 : EXIT_BAD;
}

int main(int argc, char **argv)
{
    outfile_guard_standard();
    struct options options;
    struct options_error wrong;
    const enum options_parsed parsed = options_parse(&options, argc, argv, &wrong);
    if (parsed == OPTIONS_WRONG) {
        complain("%s", wrong.text);
        return EXIT_USAGE;
    }
    if (parsed != OPTIONS_RUN)
        return answer(parsed);
    return batch_is(&options) && !options.step ? batch_run(&options) : job_run(&options);
}
