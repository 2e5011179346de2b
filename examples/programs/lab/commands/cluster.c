/* `cox-lab cluster`: predicts the time of a film on many machines, before they are bought. Prints
 * figures or a page, compares them with a real run, and fits clusters to real runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/plain_output.h"
#include "common/quantiles.h"
#include "common/outfile.h"
#include "common/text.h"
#include "lab/arguments.h"
#include "lab/cluster/description.h"
#include "lab/cluster/scaling_page.h"
#include "lab/cluster/times.h"
#include "lab/commands.h"
#include "lab/rows.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEDS_MAX = 1000, PIECES_MAX = 1000000, WHY_MAX = 300 };

struct arguments {
    uint32_t count_count;
    uint64_t counts[CLUSTER_COUNTS_MAX];
    bool engines[CLUSTER_ENGINES];
    uint64_t pieces; /* 0 = four for each machine */
    uint64_t seeds;
    const char *times, *output;
    bool fit;
    enum lab_format format;
};

static const char usage[] =
    "Usage: cox-lab cluster CLUSTER.json [options]\n"
    "       cox-lab cluster --fit TIMES.csv... >CLUSTER.json\n"
    "\n"
    "Predicts how long a film takes on a cluster: by a formula, and by simulation of slow "
    "and failing\n"
    "machines.\n"
    "\n"
    "  --machines LIST     numbers of machines (default: 1,2,4,8,16,32,64,128,256,512,1000)\n"
    "  --engine mpi|queue  mpi: ranges on demand; queue: equal pieces as separate jobs "
    "(default: both)\n"
    "  --pieces N          queue: number of pieces (default: four for each machine)\n"
    "  --seeds N           simulated runs of each (default: 20)\n"
    "  --times TIMES.csv   compare with a real run; its ranks are the machines of "
    "CLUSTER.json in order\n"
    "  --fit               write a cluster file from real runs of cox-tonemap-mpi; TIMES.csv is\n"
    "                      OUTPUT.pieces/times.csv\n"
    "  --csv, --json       print CSV or JSON instead of a table\n"
    "  -o, --output FILE   also write an HTML page with plots\n"
    "  -h, --help          print this text\n";

/* --- arguments --- */

static bool read_counts(struct arguments *arguments, char *list)
{
    char *rest;

    arguments->count_count = 0;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        if (arguments->count_count == CLUSTER_COUNTS_MAX)
            return lab_fail("--machines: at most %d numbers", CLUSTER_COUNTS_MAX);

        uint64_t *count = &arguments->counts[arguments->count_count++];
        if (!lab_read_whole("--machines", word, 1, CLUSTER_MACHINES_MAX, count))
            return false;
        if (arguments->count_count > 1 && *count <= count[-1])
            return lab_fail("--machines: numbers must increase");
    }

    return arguments->count_count || lab_fail("--machines: missing number");
}

static bool read_engine(struct arguments *arguments, const char *name)
{
    bool known = false;

    for (int engine = 0; engine < CLUSTER_ENGINES; engine++) {
        const char *other = cluster_engine_name((enum cluster_engine)engine);
        arguments->engines[engine] = strcmp(name, other) == 0;
        known |= arguments->engines[engine];
    }

    return known || lab_fail("--engine '%s': must be mpi or queue", name);
}

enum { OPT_MACHINES = 256, OPT_ENGINE, OPT_PIECES, OPT_SEEDS, OPT_TIMES };

/* Refuse combinations of options. Returns whether the command line is valid. */
static bool check(const struct arguments *arguments, int argc, char **argv)
{
    if (optind == argc)
        return lab_fail("cluster: missing file: CLUSTER.json, or TIMES.csv with --fit");
    if (!arguments->fit && optind + 1 < argc)
        return lab_fail("cluster: only one CLUSTER.json is allowed");
    if ((arguments->fit || arguments->times) &&
        (arguments->output || arguments->format != LAB_TABLE))
        return lab_fail("cluster: --fit and --times cannot be combined with -o, --csv or --json");
    if (arguments->output && outfile_same_place(argv[optind], arguments->output))
        return lab_fail("cluster: -o '%s': is the input file; use another name", arguments->output);
    return true;
}

/* Returns an exit status to end with, or a negative number to go on. */
static int parse(int argc, char **argv, struct arguments *out)
{
    int format = LAB_TABLE, fit = 0;
    const struct option longs[] = {{"machines", required_argument, NULL, OPT_MACHINES},
                                   {"engine", required_argument, NULL, OPT_ENGINE},
                                   {"pieces", required_argument, NULL, OPT_PIECES},
                                   {"seeds", required_argument, NULL, OPT_SEEDS},
                                   {"times", required_argument, NULL, OPT_TIMES},
                                   {"fit", no_argument, &fit, 1},
                                   {"csv", no_argument, &format, LAB_CSV},
                                   {"json", no_argument, &format, LAB_JSON},
                                   {"output", required_argument, NULL, 'o'},
                                   {"help", no_argument, NULL, 'h'},
                                   {NULL, 0, NULL, 0}};
    static const uint64_t counts[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000};
    *out = (struct arguments){
        .count_count = sizeof counts / sizeof *counts, .engines = {true, true}, .seeds = 20};
    memcpy(out->counts, counts, sizeof counts);

    bool ok = true;
    optind = 0; /* a process may parse several command lines */
    for (int c; ok && (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        switch (c) {
        case 0:
            break;
        case OPT_MACHINES:
            ok = read_counts(out, optarg);
            break;
        case OPT_ENGINE:
            ok = read_engine(out, optarg);
            break;
        case OPT_PIECES:
            ok = lab_read_whole("--pieces", optarg, 1, PIECES_MAX, &out->pieces);
            break;
        case OPT_SEEDS:
            ok = lab_read_whole("--seeds", optarg, 1, SEEDS_MAX, &out->seeds);
            break;
        case OPT_TIMES:
            out->times = optarg;
            break;
        case 'o':
            out->output = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return LAB_OK;
        default:
            ok = false;
        }
    }

    out->format = (enum lab_format)format;
    out->fit = fit;
    if (!ok || !check(out, argc, argv))
        return lab_refer_to_help("cluster");
    return -1;
}

static bool fail(const char *why)
{
    char reason[700];
    return lab_fail("cluster: %s", text_plain(why, reason, sizeof reason));
}

/* --- fitting --- */

static bool fit_all(char **paths, int count)
{
    struct cluster cluster = {.name = "measured", .slow_times = 1};
    char why[WHY_MAX];

    for (int i = 0; i < count; i++) {
        struct times times;

        if (!times_read(&times, paths[i], why, sizeof why))
            return fail(why);
        const bool good = times_fit(&times, paths[i], &cluster, why, sizeof why);
        times_free(&times);
        if (!good)
            return fail(why);
    }

    char *text = cluster_write(&cluster);
    if (!text)
        return lab_fail("cluster: out of memory");
    fputs(text, stdout);
    free(text);
    return true;
}

/* --- figures --- */

static void add_run(struct cluster_times *mean, const struct cluster_times *run, double part)
{
    for (int step = 0; step < CLUSTER_STEPS; step++)
        mean->shared[step] += run->shared[step] * part;
    mean->begin = run->begin;
    mean->steer = run->steer;
    mean->join = run->join;
    mean->deaths += run->deaths * part;
    mean->total += run->total * part;
}

static bool count_figures(const struct cluster *cluster, const struct arguments *arguments,
                          const struct cluster_way *way, struct cluster_figures *out)
{
    double *totals = calloc(arguments->seeds, sizeof *totals);

    if (!totals)
        return lab_fail("cluster: out of memory");

    *out = (struct cluster_figures){.way = *way,
                                    .ideal_s = cluster_ideal_s(cluster, way->machines)};
    cluster_model(cluster, way, &out->model, &out->losses);

    for (uint64_t seed = 0; seed < arguments->seeds; seed++) {
        struct cluster_times run;

        if (!cluster_simulate(cluster, way, seed + 1, &run)) {
            free(totals);
            return lab_fail("cluster: %" PRIu64 " machines: they fail before they finish a "
                            "range, or out of memory",
                            way->machines);
        }
        totals[seed] = run.total;
        add_run(&out->mean, &run, 1 / (double)arguments->seeds);
    }

    out->median_s = quantile_of(totals, arguments->seeds, 0.5);
    out->low_s = quantile_of(totals, arguments->seeds, 0.1);
    out->high_s = quantile_of(totals, arguments->seeds, 0.9);
    free(totals);
    return true;
}

/* The name of the largest loss. */
static const char *largest_loss(const struct cluster_losses *losses)
{
    const struct {
        double seconds;
        const char *name;
    } all[] = {{losses->serial, "serial steps"},
               {losses->storage, "storage"},
               {losses->ranges, "starting ranges"},
               {losses->end, "waiting for the last range"},
               {losses->faults, "slow and failing machines"}};

    size_t largest = 0;

    for (size_t i = 1; i < sizeof all / sizeof *all; i++)
        if (all[i].seconds > all[largest].seconds)
            largest = i;
    return all[largest].name;
}

/* --- output --- */

static void print_head(const struct cluster *cluster)
{
    char text[CLUSTER_TEXT_MAX * 4];

    printf("%s: %" PRIu64 " frames", text_plain(cluster->name, text, sizeof text), cluster->frames);
    if (*cluster->text)
        printf("; %s", text_plain(cluster->text, text, sizeof text));
    printf("\n  %-8s %-6s %11s %11s %23s %9s %11s  %s\n", "machines", "engine", "model s",
           "simulated s", "10 % .. 90 %", "speed-up", "efficiency", "largest loss (model)");
}

static void print_figures(const struct cluster_figures *figures, double one_s)
{
    printf("  %-8" PRIu64 " %-6s %11.1f %11.1f %10.1f .. %9.1f %9.1f %11.3f  %s\n",
           figures->way.machines, cluster_engine_name(figures->way.engine), figures->model.total,
           figures->median_s, figures->low_s, figures->high_s, one_s / figures->median_s,
           figures->ideal_s / figures->median_s, largest_loss(&figures->losses));
}

static void put_row(struct lab_rows *rows, const struct cluster *cluster,
                    const struct cluster_figures *figures)
{
    lab_rows_open(rows);
    lab_rows_text(rows, "cluster", cluster->name);
    lab_rows_count(rows, "machines", figures->way.machines);
    lab_rows_text(rows, "engine", cluster_engine_name(figures->way.engine));
    lab_rows_count(rows, "pieces", figures->way.pieces);
    lab_rows_number(rows, "ideal_s", figures->ideal_s);
    lab_rows_number(rows, "model_s", figures->model.total);
    lab_rows_number(rows, "simulated_s", figures->median_s);
    lab_rows_number(rows, "low_s", figures->low_s);
    lab_rows_number(rows, "high_s", figures->high_s);
    lab_rows_number(rows, "begin_s", figures->mean.begin);
    lab_rows_number(rows, "analyse_s", figures->mean.shared[CLUSTER_ANALYSE]);
    lab_rows_number(rows, "steer_s", figures->mean.steer);
    lab_rows_number(rows, "map_s", figures->mean.shared[CLUSTER_MAP]);
    lab_rows_number(rows, "join_s", figures->mean.join);
    lab_rows_number(rows, "deaths", figures->mean.deaths);
    lab_rows_number(rows, "lost_serial_s", figures->losses.serial);
    lab_rows_number(rows, "lost_storage_s", figures->losses.storage);
    lab_rows_number(rows, "lost_ranges_s", figures->losses.ranges);
    lab_rows_number(rows, "lost_end_s", figures->losses.end);
    lab_rows_number(rows, "lost_faults_s", figures->losses.faults);
    lab_rows_close(rows);
}

static void print_real(const struct times *times, const struct cluster_figures *figures)
{
    const double real[] = {times->step_s[CLUSTER_ANALYSE], times->step_s[CLUSTER_MAP],
                           times->total_s};
    const double simulated[] = {figures->mean.shared[CLUSTER_ANALYSE],
                                figures->mean.shared[CLUSTER_MAP], figures->median_s};
    static const char *const names[] = {"analyse", "map", "all"};

    printf("  real run, %" PRIu32 " rank%s: simulated over real:", times->ranks,
           times->ranks == 1 ? "" : "s");
    for (int i = 0; i < 3; i++)
        if (real[i] > 0)
            printf(" %s %.1f / %.1f s = %.3f;", names[i], simulated[i], real[i],
                   simulated[i] / real[i]);
    printf(" model: %.3f\n", figures->model.total / times->total_s);
}

/* From how many machines on the efficiency of an engine is below a half. */
static void print_bend(const struct cluster_page *page, enum cluster_engine engine)
{
    for (uint32_t i = 0; i < page->count; i++) {
        const struct cluster_figures *figures = &page->all[i];
        if (figures->way.engine != engine || figures->ideal_s / figures->median_s >= 0.5)
            continue;

        printf("  %s: efficiency below 0.5 from %" PRIu64 " machines on; largest loss: %s\n",
               cluster_engine_name(engine), figures->way.machines, largest_loss(&figures->losses));
        return;
    }
}

static bool write_page(const struct cluster_page *page, const char *path)
{
    struct html html = {0};
    struct error error;

    bool good = cluster_page(page, &html) || lab_fail("cluster: out of memory");
    good = good && (html_save(&html, path, &error) || lab_fail("%s: %s", path, error.text));
    html_free(&html);
    return good;
}

/* --- the command --- */

static bool all_figures(const struct arguments *arguments, struct cluster_page *page)
{
    struct lab_rows rows;
    const bool table = arguments->format == LAB_TABLE;
    const double one_s = cluster_ideal_s(page->cluster, 1);
    bool good = true;

    lab_rows_begin(&rows, arguments->format);
    if (table)
        print_head(page->cluster);

    for (uint32_t c = 0; good && c < arguments->count_count; c++)
        for (int engine = 0; good && engine < CLUSTER_ENGINES; engine++) {
            struct cluster_way way = {(enum cluster_engine)engine, arguments->counts[c], 0};
            if (!arguments->engines[engine])
                continue;
            if (engine == CLUSTER_QUEUE)
                way.pieces = arguments->pieces ? arguments->pieces : 4 * way.machines;

            struct cluster_figures *figures = &page->all[page->count];
            good = count_figures(page->cluster, arguments, &way, figures);
            if (!good)
                break;

            page->count++;
            if (table)
                print_figures(figures, one_s);
            put_row(&rows, page->cluster, figures);
        }

    lab_rows_end(&rows);
    for (int engine = 0; good && table && engine < CLUSTER_ENGINES; engine++)
        print_bend(page, (enum cluster_engine)engine);
    return good;
}

/* Compare the simulation with a real run. */
static bool compare(const struct arguments *arguments, const struct cluster *cluster)
{
    struct times times;
    struct cluster_figures figures;
    char why[WHY_MAX];
    bool good = false;

    if (!times_read(&times, arguments->times, why, sizeof why))
        return fail(why);

    const struct cluster_way way = {CLUSTER_MPI, times.ranks, 0};
    if (times.frames != cluster->frames)
        lab_fail("cluster: --times: the real run has %" PRIu64 " frames, CLUSTER.json has "
                 "%" PRIu64,
                 times.frames, cluster->frames);
    else
        good = count_figures(cluster, arguments, &way, &figures);
    if (good)
        print_real(&times, &figures);
    times_free(&times);
    return good;
}

static bool run(const struct arguments *arguments, const char *path)
{
    static struct cluster cluster; /* too large for the stack */
    static struct cluster_page page;
    char why[WHY_MAX];

    if (!cluster_read(&cluster, path, why, sizeof why))
        return fail(why);
    if (arguments->times)
        return compare(arguments, &cluster);

    page.cluster = &cluster;
    return all_figures(arguments, &page) &&
           (!arguments->output || write_page(&page, arguments->output));
}

int lab_cluster_main(int argc, char **argv)
{
    struct arguments arguments;
    const int status = parse(argc, argv, &arguments);

    if (status >= 0)
        return status;

    bool good;
    if (arguments.fit)
        good = fit_all(argv + optind, argc - optind);
    else
        good = run(&arguments, argv[optind]);

    const char *failure = plain_output_failure(stdout);
    if (good && failure)
        good = lab_fail("cluster: standard output: %s", failure);
    return good ? LAB_OK : LAB_BAD;
}
