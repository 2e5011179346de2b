/* cox-tonemap: HDR video or an HDR picture to SDR, on every OpenCL device of the machine at once.
 * docs/guide/cox-tonemap.md is its manual.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/outfile.h"
#include "jobs.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_BAD = 1, EXIT_USAGE = 2 };

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

static bool is_standard(const char *path)
{
    return path && path[0] == '-' && !path[1];
}

/* What the other options mean depends on the input, so this is said before anything about them. */
static bool can_be_read(const char *input)
{
    return is_standard(input) || !access(input, R_OK) || complain("%s: cannot be opened: %s", input, strerror(errno));
}

/* Video by its content, or because the options say that it is raw frames. What is neither video nor a picture has it
 * said by the one that the output is for. */
static enum options_job job_of(const struct options *options)
{
    if (options->raw.given || options->raw_by_name || options_want_video(options) ||
        video_kind_of(options->input) != VIDEO_KIND_NONE)
        return OPTIONS_VIDEO;
    return OPTIONS_PICTURE;
}

int main(int argc, char **argv)
{
    outfile_guard_standard();
    struct options options;
    struct options_error wrong;
    enum options_parsed parsed = options_parse(&options, argc, argv, &wrong);
    if (parsed != OPTIONS_RUN && parsed != OPTIONS_WRONG)
        return answer(parsed);
    if (parsed == OPTIONS_RUN && !can_be_read(options.input))
        return EXIT_BAD;
    enum options_job job = parsed == OPTIONS_RUN ? job_of(&options) : OPTIONS_PICTURE;
    if (parsed == OPTIONS_WRONG || !options_suit(&options, job, &wrong)) {
        complain("%s", wrong.text);
        return EXIT_USAGE;
    }
    bool data = is_standard(options.output) || is_standard(options.stats) || is_standard(options.trace);
    words_begin(options.quiet ? NULL
                : data        ? stderr
                              : stdout,
                options.quiet     ? COX_LOG_ERROR
                : options.verbose ? COX_LOG_INFO
                                  : COX_LOG_WARN);
    bool good = (job == OPTIONS_VIDEO ? video_job(&options) : picture_job(&options)) && words_finish();
    return good ? 0 : interrupted() ? 128 + interrupted() : EXIT_BAD;
}
