/* cox-lab export: a recorded run as a trace for a viewer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/export/trace.h"
#include "common/outfile.h"
#include "common/text.h"
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/store/database.h"

#include <errno.h>
#include <getopt.h>
#include <sqlite3.h>
#include <string.h>

static const char usage[] =
    "Usage: cox-lab export SESSION.db --format paje|perfetto -o FILE [options]\n"
    "\n"
    "Converts a recorded run to a trace: the bands of each device, frames with the reasons of their\n"
    "splits, telemetry. The database may still be growing.\n"
    "\n"
    "  --format NAME       paje: text, for ViTE and PajeNG; perfetto: binary, for "
    "https://ui.perfetto.dev\n"
    "  -o, --output FILE   the trace; - is standard output\n"
    "  --run N             run of the database (default: the last)\n"
    "  --policy NAME       only the sessions of this policy (default: all policies)\n"
    "  -h, --help          print this text\n";

struct options {
    const char *database, *output, *policy;
    const struct trace_format *format;
    int64_t run; /* 0 = the last */
};

static bool read_format(struct options *options, const char *name)
{
    if (strcmp(name, trace_paje.name) == 0)
        options->format = &trace_paje;
    else if (strcmp(name, trace_perfetto.name) == 0)
        options->format = &trace_perfetto;
    else
        return lab_fail("export: --format '%s': must be paje or perfetto", name);

    return true;
}

/* -1 = go on, else an exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {
        {"format", required_argument, NULL, 'f'}, {"output", required_argument, NULL, 'o'},
        {"run", required_argument, NULL, 'r'},    {"policy", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int option;

    optind = 0; /* getopt starts over */
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return LAB_OK;
        }
        if (option == 'o')
            options->output = optarg;
        else if (option == 'p')
            options->policy = optarg;
        else if ((option == 'f' && !read_format(options, optarg)) ||
                 (option == 'r' && !lab_read_run(optarg, &options->run)) || option == '?')
            return LAB_USAGE;
    }

    if (optind + 1 != argc || !*argv[optind]) {
        fputs(usage, stderr);
        return LAB_USAGE;
    }

    options->database = argv[optind];
    if (!options->format) {
        lab_fail("export: missing option: --format paje or --format perfetto");
        return LAB_USAGE;
    }
    if (!options->output || !*options->output) {
        lab_fail("export: missing option: -o FILE");
        return LAB_USAGE;
    }

    return -1;
}

static bool write_trace(const struct options *options, sqlite3 *db)
{
    struct error error;
    struct outfile *file;
    char why[512], path[1024], reason[600];

    if (!outfile_open(&file, options->output, &error))
        return lab_fail("%s: %s", options->output, error.text);

    FILE *to = outfile_stream(file);
    if (!trace_read(db, options->run, options->policy, options->format, to, why, sizeof why)) {
        outfile_abandon(&file);
        return lab_fail("%s: %s", text_plain(options->database, path, sizeof path),
                        text_plain(why, reason, sizeof reason));
    }

    if (fflush(to) != 0 || ferror(to)) {
        int problem = errno; /* finishing the file changes errno */

        outfile_abandon(&file);
        return lab_fail("%s: cannot write: %s", options->output, strerror(problem));
    }

    return outfile_finish(&file, &error) || lab_fail("%s: %s", options->output, error.text);
}

int lab_export_main(int argc, char **argv)
{
    struct options options = {0};
    sqlite3 *db;
    char why[600], reason[700];

    int status = parse(argc, argv, &options);
    if (status >= 0)
        return status;

    if (lab_store_is_part(options.database, options.output)) {
        lab_fail("export: -o '%s': is the database itself, or one of its files; use another name",
                 options.output);
        return LAB_USAGE;
    }
    if (!lab_store_open_to_read(options.database, &db, why, sizeof why)) {
        lab_fail("%s", text_plain(why, reason, sizeof reason));
        return LAB_BAD;
    }

    bool good = write_trace(&options, db);
    sqlite3_close(db);
    if (!good)
        return LAB_BAD;

    return LAB_OK;
}
