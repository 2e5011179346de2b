/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/store/database.h"
#include "lab/report/document.h"
#include "lab/report/figure_rows.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: cox-lab report SESSION.db [-o REPORT.html] [--run N] [--csv | --json]\n"
    "\n"
    "Makes an HTML page from a database that cox-lab run or cox-lab sim recorded. The page needs no\n"
    "scripts and no other files. The database may still be growing.\n"
    "\n"
    "  -o, --output FILE   the page; - is standard output (default: the database's name with .html)\n"
    "      --run N         only this run of the database (default: all runs)\n"
    "      --csv, --json   print the figures of the page as CSV or JSON instead\n"
    "  -h, --help          print this text\n";

struct options {
    const char *database;
    char output[PATH_MAX];
    int64_t run;            /* 0 = all */
    enum lab_format format; /* LAB_TABLE = the page */
};

/* Without the folders. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (slash)
        return slash + 1;
    return path;
}

/* The database's name with another ending. */
static bool default_output(struct options *options)
{
    const char *dot = strrchr(options->database, '.');
    size_t stem = strlen(options->database);

    if (dot && dot > base_name(options->database))
        stem = (size_t)(dot - options->database);

    int length = snprintf(options->output, sizeof options->output, "%.*s.html", (int)stem,
                          options->database);
    return (length > 0 && (size_t)length < sizeof options->output) ||
           lab_fail("report: the path of the database is too long; use -o");
}

/* -1 = go on, else an exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    int format = LAB_TABLE;
    const struct option longs[] = {
        {"output", required_argument, NULL, 'o'}, {"run", required_argument, NULL, 'r'},
        {"csv", no_argument, &format, LAB_CSV},   {"json", no_argument, &format, LAB_JSON},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0}};
    int option;

    optind = 0; /* main.c has taken the first words */
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return LAB_OK;
        }
        if (option == 'o' && (!*optarg || strlen(optarg) >= sizeof options->output)) {
            lab_fail("report: -o: the file name is empty");
            return LAB_USAGE;
        }
        if (option == 'o')
            memcpy(options->output, optarg, strlen(optarg) + 1);
        else if (option && (option != 'r' || !lab_read_run(optarg, &options->run)))
            return LAB_USAGE;
    }

    if (optind + 1 != argc || !*argv[optind]) {
        fputs(usage, stderr);
        return LAB_USAGE;
    }

    options->database = argv[optind];
    options->format = (enum lab_format)format;
    if (format != LAB_TABLE && options->output[0]) {
        lab_fail("report: -o cannot be combined with --csv or --json, which print to "
                 "standard output");
        return LAB_USAGE;
    }
    if (!options->output[0] && !default_output(options))
        return LAB_USAGE;
    return -1;
}

static bool make_page(const struct options *options, const struct report_source *source)
{
    struct html page = {0};
    struct error error;
    bool good = report_page(source, base_name(options->database), &page) ||
                lab_fail("report: out of memory");

    good = good && (html_save(&page, options->output, &error) ||
                    lab_fail("%s: %s", options->output, error.text));
    html_free(&page);
    return good;
}

static bool print_figures(const struct options *options, const struct report_source *source)
{
    struct lab_rows *rows = malloc(sizeof *rows);

    if (!rows)
        return lab_fail("report: out of memory");

    lab_rows_begin(rows, options->format);
    bool good = report_rows(source, rows) || lab_fail("report: out of memory");
    lab_rows_end(rows);
    free(rows);
    return lab_output_written() && good;
}

int lab_report_main(int argc, char **argv)
{
    struct options options = {0};
    struct report_source source;
    char why[512];
    bool good;
    int status = parse(argc, argv, &options);

    if (status >= 0)
        return status;
    if (options.format == LAB_TABLE && lab_store_is_part(options.database, options.output)) {
        lab_fail("report: -o '%s': is the database itself, or one of its files; use another name",
                 options.output);
        return LAB_USAGE;
    }

    if (!report_read(options.database, options.run, &source, why, sizeof why)) {
        /* One line, even if the name or SQLite's message has line feeds. */
        for (char *c = why; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7F)
                *c = ' ';
        lab_fail("%s", why);
        return LAB_BAD;
    }

    if (options.format == LAB_TABLE)
        good = make_page(&options, &source);
    else
        good = print_figures(&options, &source);
    report_free(&source);
    if (!good)
        return LAB_BAD;
    return LAB_OK;
}
