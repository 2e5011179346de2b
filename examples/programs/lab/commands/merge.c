/* cox-lab merge: the runs of several machines in one database, for one report.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "lab/arguments.h"
#include "lab/commands.h"
#include "lab/store/database.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

static const char usage[] =
    "Usage: cox-lab merge SESSION.db... -o ALL.db\n"
    "\n"
    "Appends the runs of each database to ALL.db, in this order, for a report that compares "
    "machines.\n"
    "A database is added completely or not at all. The inputs are not changed.\n"
    "\n"
    "  -o, --output FILE   the database to append to; created if it does not exist\n"
    "  -h, --help          print this text\n";

static bool refuse(const char *why)
{
    char reason[700];

    return lab_fail("merge: %s", text_plain(why, reason, sizeof reason));
}

static bool merge_all(char **from, int count, const char *output)
{
    struct lab_store *store;
    char why[512], name[512];

    /* All are checked before a file is created. */
    for (int i = 0; i < count; i++)
        if (!lab_store_may_merge(from[i], output, why, sizeof why))
            return refuse(why);
    if (!lab_store_open(output, &store, why, sizeof why))
        return refuse(why);

    bool good = true;
    for (int i = 0; i < count && good; i++) {
        int64_t added = 0;

        good = lab_store_merge(store, from[i], &added, why, sizeof why) || refuse(why);
        if (good)
            printf("%s: %" PRId64 " run%s\n", text_plain(from[i], name, sizeof name), added,
                   added == 1 ? "" : "s");
    }
    if (!lab_store_close(&store, why, sizeof why))
        return refuse(why);

    return good;
}

int lab_merge_main(int argc, char **argv)
{
    static const struct option longs[] = {{"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    const char *output = NULL;
    int option;

    optind = 0; /* getopt starts over */
    while ((option = getopt_long(argc, argv, "o:h", longs, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            return LAB_OK;
        }
        if (option == '?')
            return lab_refer_to_help("merge");
        output = optarg;
    }

    if (optind == argc) {
        lab_fail("merge: missing session database");
        return LAB_USAGE;
    }
    if (!output || !*output) {
        lab_fail("merge: missing option: -o FILE");
        return LAB_USAGE;
    }
    if (!merge_all(argv + optind, argc - optind, output))
        return LAB_BAD;

    return LAB_OK;
}
