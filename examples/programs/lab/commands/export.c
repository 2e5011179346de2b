/* cox-lab export: a recorded run as a trace for a viewer, or a database as tables for statistics.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/export/tables.h"
#include "lab/export/trace.h"
#include "common/outfile.h"
#include "common/text.h"
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/store/database.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "Usage: cox-lab export SESSION.db --format paje|perfetto -o FILE [options]\n"
    "       cox-lab export SESSION.db --format csv|parquet -o FOLDER [options]\n"
    "\n"
    "Converts a recorded run to a trace: the bands of each device, frames with the reasons of their\n"
    "splits, telemetry. Or writes two tables, of frames and of bands, with a row for each. The\n"
    "database may still be growing.\n"
    "\n"
    "  --format NAME       paje: text, for ViTE and PajeNG; perfetto: binary, for\n"
    "                      https://ui.perfetto.dev; csv, parquet: tables, for pandas, R and others\n"
    "  -o, --output PATH   the trace, - is standard output; or the folder that gets the tables\n"
    "  --run N             run of the database (default: the last for a trace, all for tables)\n"
    "  --policy NAME       only the sessions of this policy (default: all policies; tables also have\n"
    "                      the references)\n"
    "  -h, --help          print this text\n";

struct options {
    const char *database, *output, *policy;
    const struct trace_format *trace; /* NULL = tables */
    enum tables_format tables;
    bool has_format;
    int64_t run; /* 0 = the last, or all */
};

static bool read_format(struct options *options, const char *name)
{
    options->has_format = true;
    options->trace = NULL;
    if (strcmp(name, trace_paje.name) == 0)
        options->trace = &trace_paje;
    else if (strcmp(name, trace_perfetto.name) == 0)
        options->trace = &trace_perfetto;
    else if (strcmp(name, "csv") == 0)
        options->tables = TABLES_CSV;
    else if (strcmp(name, "parquet") == 0)
        options->tables = TABLES_PARQUET;
    else
        return lab_fail("export: --format '%s': must be csv, parquet, paje or perfetto", name);

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
    if (!options->has_format) {
        lab_fail("export: missing option: --format csv, parquet, paje or perfetto");
        return LAB_USAGE;
    }
    if (!options->output || !*options->output) {
        lab_fail("export: missing option: -o %s", options->trace ? "FILE" : "FOLDER");
        return LAB_USAGE;
    }

    if (!options->trace && strcmp(options->output, "-") == 0) {
        lab_fail("export: -o -: the tables are two files; use the name of a folder");
        return LAB_USAGE;
    }

    return -1;
}

/* --- Outputs ---------------------------------------------------------------------------------- */

/* Check that all was written. If not, abandon the file. */
static bool is_written(struct outfile **file, const char *path)
{
    FILE *to = outfile_stream(*file);

    if (fflush(to) == 0 && !ferror(to))
        return true;

    const int problem = errno; /* abandoning the file changes errno */
    outfile_abandon(file);
    return lab_fail("%s: cannot write: %s", path, strerror(problem));
}

static bool refuse_database(const struct options *options, const char *why)
{
    char path[1024], reason[600];
    return lab_fail("%s: %s", text_plain(options->database, path, sizeof path),
                    text_plain(why, reason, sizeof reason));
}

static bool write_trace(const struct options *options, sqlite3 *db)
{
    struct error error;
    struct outfile *file;
    char why[512];

    if (!outfile_open(&file, options->output, &error))
        return lab_fail("%s: %s", options->output, error.text);

    if (!trace_read(db, options->run, options->policy, options->trace, outfile_stream(file), why,
                    sizeof why)) {
        outfile_abandon(&file);
        return refuse_database(options, why);
    }

    if (!is_written(&file, options->output))
        return false;
    return outfile_finish(&file, &error) || lab_fail("%s: %s", options->output, error.text);
}

struct table_path {
    char path[PATH_MAX + 32];
};

static struct table_path path_of(const struct options *options, enum tables_kind kind)
{
    struct table_path made;
    snprintf(made.path, sizeof made.path, "%s/%s", options->output,
             tables_file_name(kind, options->tables));
    return made;
}

static bool write_table(const struct options *options, sqlite3 *db, enum tables_kind kind,
                        const char *path, struct outfile **file)
{
    struct error error;
    char why[512];

    if (!outfile_open(file, path, &error))
        return lab_fail("%s: %s", path, error.text);
    if (!tables_write(db, options->run, options->policy, kind, options->tables,
                      outfile_stream(*file), why, sizeof why))
        return refuse_database(options, why);
    return is_written(file, path);
}

/* Write both tables from one state of the database, then put them in place. */
static bool write_tables(const struct options *options, sqlite3 *db)
{
    struct outfile *files[TABLES_COUNT] = {NULL};
    char why[512];
    bool good = true;

    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        return refuse_database(options, sqlite3_errmsg(db));
    if (!tables_check(db, options->run, options->policy, why, sizeof why))
        return refuse_database(options, why);

    const bool made = mkdir(options->output, 0777) == 0;
    if (!made && errno != EEXIST)
        return lab_fail("%s: cannot make the folder: %s", options->output, strerror(errno));

    for (int kind = 0; kind < TABLES_COUNT && good; kind++)
        good = write_table(options, db, kind, path_of(options, kind).path, &files[kind]);

    for (int kind = 0; kind < TABLES_COUNT; kind++) {
        struct error error;

        if (!good)
            outfile_abandon(&files[kind]);
        else if (!outfile_finish(&files[kind], &error))
            good = lab_fail("%s: %s", path_of(options, kind).path, error.text);
    }

    if (!good && made)
        rmdir(options->output); /* fails if it holds something */
    return good;
}

/* Whether an output would replace the database. */
static bool replaces_database(const struct options *options)
{
    if (options->trace)
        return lab_store_is_part(options->database, options->output);

    for (int kind = 0; kind < TABLES_COUNT; kind++)
        if (lab_store_is_part(options->database, path_of(options, kind).path))
            return true;
    return false;
}

int lab_export_main(int argc, char **argv)
{
    struct options options = {0};
    sqlite3 *db;
    char why[600], reason[700];

    int status = parse(argc, argv, &options);
    if (status >= 0)
        return status;

    if (replaces_database(&options)) {
        lab_fail("export: -o '%s': is the database itself, or one of its files; use another name",
                 options.output);
        return LAB_USAGE;
    }
    if (!lab_store_open_to_read(options.database, &db, why, sizeof why)) {
        lab_fail("%s", text_plain(why, reason, sizeof reason));
        return LAB_BAD;
    }

    bool good = options.trace ? write_trace(&options, db) : write_tables(&options, db);
    sqlite3_close(db);
    if (!good)
        return LAB_BAD;

    return LAB_OK;
}
