/* SPDX-License-Identifier: Apache-2.0 */
#include "files.h"
#include "words.h"

#include <sys/stat.h>

/* "-" may be a file too, by redirection. */
static const char *named(const char *path, const char *stream)
{
    return path && path[0] == '-' && !path[1] ? stream : path;
}

bool files_differ(const struct options *options)
{
    const char *const outputs[] = {named(options->output, "/dev/stdout"),
                                   named(options->stats, "/dev/stdout"),
                                   named(options->trace, "/dev/stdout")};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        if (!outputs[i])
            continue;
        if (outfile_same_place(named(options->input, "/dev/stdin"), outputs[i]))
            return complain("%s: is the input; give the output another name", outputs[i]);
        for (size_t j = 0; j < i; j++)
            if (outputs[j] && outfile_same_place(outputs[i], outputs[j]))
                return complain("%s: is two outputs; give one of them another name", outputs[i]);
    }
    return true;
}

bool files_may_write(const struct options *options)
{
    struct stat about;
    return options->overwrite || stat(options->output, &about) || !S_ISREG(about.st_mode) ||
           complain("%s: exists; --overwrite replaces it", options->output);
}

bool records_open(struct records *records, const struct options *options)
{
    struct error error;
    if (options->stats && !outfile_open(&records->stats, options->stats, &error))
        return complain_about(options->stats, &error);
    if (options->trace && !outfile_open(&records->trace, options->trace, &error))
        return complain_about(options->trace, &error);
    return true;
}

void records_write(const struct records *records, struct report *report,
                   const struct report_about *about)
{
    if (report_lost(report))
        complain("warning: %llu frames are missing in the statistics: out of memory",
                 (unsigned long long)report_lost(report));
    if (records->stats)
        report_write_stats(report, about, outfile_stream(records->stats));
    if (records->trace)
        report_write_trace(report, about, outfile_stream(records->trace));
}

static bool finish(struct outfile **file, const char *path)
{
    struct error error;
    return !*file || outfile_finish(file, &error) || complain_about(path, &error);
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
