/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/outfile.h"
#include "lab/commands.h"
#include "page.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "Usage: cox-lab report SESSION.db [-o REPORT.html] [--run N]\n"
    "\n"
    "Makes one page of HTML from a database that `cox-lab run` or `cox-lab sim` recorded. The page\n"
    "loads nothing and runs nothing. The database may still be growing.\n"
    "\n"
    "  -o, --output FILE   the page; - is standard output (default: the database's name with .html)\n"
    "      --run N         only this run of the database (default: all)\n"
    "  -h, --help          this text\n";

struct options {
    const char *database;
    char output[PATH_MAX];
    long long run; /* 0 = all */
};

/* The database's name with another ending. */
static bool default_output(struct options *options)
{
    const char *slash = strrchr(options->database, '/'), *dot = strrchr(options->database, '.');
    size_t stem = strlen(options->database);
    if (dot && dot > (slash ? slash + 1 : options->database))
        stem = (size_t)(dot - options->database);
    int length = snprintf(options->output, sizeof options->output, "%.*s.html", (int)stem, options->database);
    return (length > 0 && (size_t)length < sizeof options->output) ||
           lab_fail("report: the database's name is too long");
}

static bool parse_run(struct options *options, const char *text)
{
    char *end;
    errno = 0;
    options->run = strtoll(text, &end, 10);
    return (*text && !*end && !errno && options->run > 0) ||
           lab_fail("report: --run wants a run's number, not '%s'", text);
}

/* -1 = go on, else an exit status. */
static int parse(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"run", required_argument, NULL, 'r'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int option;
    optind = 0; /* the words before were the program's own */
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return LAB_OK;
        }
        if (option == 'o' && (!*optarg || strlen(optarg) >= sizeof options->output)) {
            lab_fail("report: -o wants the name of a file");
            return LAB_USAGE;
        }
        if (option == 'o')
            memcpy(options->output, optarg, strlen(optarg) + 1);
        else if (option != 'r' || !parse_run(options, optarg))
            return LAB_USAGE;
    }
    if (optind + 1 != argc || !*argv[optind]) {
        fputs(usage, stderr);
        return LAB_USAGE;
    }
    options->database = argv[optind];
    return options->output[0] || default_output(options) ? -1 : LAB_USAGE;
}

/* Neither the database nor what SQLite keeps beside it may be replaced by the page. */
static bool check_output(const struct options *options)
{
    static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
    for (int i = 0; i < 4; i++) {
        char beside[PATH_MAX + 16];
        snprintf(beside, sizeof beside, "%s%s", options->database, endings[i]);
        if (outfile_same_place(beside, options->output))
            return lab_fail("report: %s is the database itself, or part of it", options->output);
    }
    return true;
}

static bool write_page(const struct options *options, const struct html *page)
{
    struct picture_error error;
    struct outfile *file;
    if (!outfile_open(&file, options->output, &error))
        return lab_fail("%s: %s", options->output, error.text);
    FILE *to = outfile_stream(file);
    if (fwrite(page->text, 1, page->length, to) != page->length || fflush(to) != 0) {
        int problem = errno; /* finishing the file changes errno */
        outfile_abandon(&file);
        return lab_fail("%s: cannot be written: %s", options->output, strerror(problem));
    }
    return outfile_finish(&file, &error) || lab_fail("%s: %s", options->output, error.text);
}

int lab_report_main(int argc, char **argv)
{
    struct options options = {0};
    struct report_source source;
    struct html page = {0};
    char why[512];
    int status = parse(argc, argv, &options);
    if (status >= 0)
        return status;
    if (!check_output(&options))
        return LAB_USAGE;
    if (!report_read(options.database, options.run, &source, why, sizeof why)) {
        /* One line, whatever SQLite and the name hold. */
        for (char *c = why; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 0x7F)
                *c = ' ';
        lab_fail("%s", why);
        return LAB_BAD;
    }
    const char *slash = strrchr(options.database, '/');
    bool good = report_page(&source, slash ? slash + 1 : options.database, &page) || lab_fail("report: out of memory");
    good = good && write_page(&options, &page);
    html_free(&page);
    report_free(&source);
    return good ? LAB_OK : LAB_BAD;
}
