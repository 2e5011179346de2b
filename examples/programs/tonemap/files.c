/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"
#include "stats.h"
#include "trace.h"
#include "messages.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* "-" may be a file too, by redirection. */
static const char *named(const char *path, const char *stream)
{
    if (path && !strcmp(path, "-"))
        return stream;

    return path;
}

bool files_differ(const struct options *options)
{
    const char *const outputs[] = {named(options->output, "/dev/stdout"),
                                   named(options->stats, "/dev/stdout"),
                                   named(options->trace, "/dev/stdout")};
    const char *const inputs[] = {named(options->input, "/dev/stdin"),
                                  named(options->judge, "/dev/stdin"), options->lut};

    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        if (!outputs[i])
            continue;
        for (size_t j = 0; j < sizeof inputs / sizeof inputs[0]; j++)
            if (inputs[j] && outfile_same_place(inputs[j], outputs[i]))
                return message_error(
                    "%s: input and output are the same file; give the output another name",
                    outputs[i]);

        for (size_t j = 0; j < i; j++)
            if (outputs[j] && outfile_same_place(outputs[i], outputs[j]))
                return message_error("%s: named for two outputs; give one of them another name",
                                     outputs[i]);
    }

    return true;
}

bool files_may_write(const struct options *options)
{
    struct stat about;
    return options->overwrite || stat(options->output, &about) || !S_ISREG(about.st_mode) ||
           message_error("%s: exists already; use --overwrite to replace it", options->output);
}

bool records_open(struct records *records, const struct options *options)
{
    struct error error;
    if (options->stats && !outfile_open(&records->stats, options->stats, &error))
        return message_file_error(options->stats, &error);
    if (options->trace && !outfile_open(&records->trace, options->trace, &error))
        return message_file_error(options->trace, &error);

    return true;
}

void records_write(const struct records *records, struct report *report,
                   const struct report_about *about)
{
    const uint64_t lost = report_lost(report);
    if (lost)
        message_error("warning: out of memory; %" PRIu64 " frames are missing from the statistics",
                      lost);

    if (records->stats)
        stats_write(report, about, outfile_stream(records->stats));
    if (records->trace)
        trace_write(report, about, outfile_stream(records->trace));
}

static bool finish(struct outfile **file, const char *path)
{
    struct error error;
    return !*file || outfile_finish(file, &error) || message_file_error(path, &error);
}

bool records_finish(struct records *records, const struct options *options)
{
    return finish(&records->stats, options->stats) && finish(&records->trace, options->trace);
}

void records_abandon(struct records *records)
{
    outfile_abandon(&records->stats);
    outfile_abandon(&records->trace);
}
