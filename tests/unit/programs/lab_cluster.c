/* Mapping a film on many machines:
 *   The simulation gives the known results.
 *   The formula comes near to the simulation.
 *   The figures of a cluster can be computed from the times of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/cluster/description.h"
#include "lab/cluster/times.h"
#include "support/scratch.h"
#include "support/values.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(lab_cluster, .timeout = 300);

/* Machines that map ten frames per second and do nothing else. */
static struct cluster plain(uint64_t frames)
{
    return (struct cluster){.name = "plain",
                            .frames = frames,
                            .kind_count = 1,
                            .kinds = {{.name = "one", .count = 1, .fps = {[CLUSTER_MAP] = 10}}},
                            .slow_times = 1};
}

static struct cluster_times run(const struct cluster *cluster, enum cluster_engine engine, uint64_t machines,
                                uint64_t pieces, uint64_t seed)
{
    const struct cluster_way way = {engine, machines, pieces};
    struct cluster_times times;
    cr_assert(cluster_simulate(cluster, &way, seed, &times));
    return times;
}

Test(lab_cluster, a_machine_alone_takes_what_its_frames_take)
{
    struct cluster cluster = plain(1000);
    cluster.kinds[0].fps[CLUSTER_ANALYSE] = 40;
    ASSERT_VALUES(NEAR(cluster_ideal_s(&cluster, 1), 125, 1e-9),
                  NEAR(run(&cluster, CLUSTER_MPI, 1, 0, 1).total, 125, 1e-6),
                  NEAR(run(&cluster, CLUSTER_QUEUE, 1, 7, 1).total, 125, 1e-6));
    cluster.begin_s = 3;
    cluster.begin_machine_s = 1;
    cluster.steer_fps = 100;
    cluster.join_fps = 50;
    const struct cluster_times times = run(&cluster, CLUSTER_QUEUE, 1, 7, 1);
    ASSERT_VALUES(NEAR(times.begin, 4, 1e-9), NEAR(times.steer, 10, 1e-9), NEAR(times.join, 20, 1e-9),
                  NEAR(times.total, 159, 1e-6));
}

Test(lab_cluster, equal_pieces_go_to_the_machine_that_is_free)
{
    struct cluster cluster = plain(30);
    cluster.kinds[0].begin_s = 0.5;
    cr_expect_float_eq(run(&cluster, CLUSTER_QUEUE, 2, 3, 1).total, 3, 1e-6); /* one of the machines does two pieces */
    cluster.kind_count = 2;
    cluster.kinds[1] = (struct cluster_kind){.count = 1, .fps = {[CLUSTER_MAP] = 100}};
    cr_expect_float_eq(run(&cluster, CLUSTER_QUEUE, 2, 3, 1).total, 1.5, 1e-6); /* while the fast one does two pieces */
    cr_expect_float_eq(run(&cluster, CLUSTER_QUEUE, 2, 1000, 1).shared[CLUSTER_MAP], 30 / 3.6667,
                       9); /* pieces without frames */
}

Test(lab_cluster, unlike_machines_under_mpi_end_together)
{
    struct cluster cluster = plain(20000);
    cluster.kind_count = 3;
    cluster.kinds[0].count = 2;
    cluster.kinds[1] = (struct cluster_kind){.count = 1, .fps = {[CLUSTER_MAP] = 55}};
    cluster.kinds[2] = (struct cluster_kind){.count = 1, .fps = {[CLUSTER_MAP] = 3}};
    cr_expect_eq(cluster_kind_of(&cluster, 1), &cluster.kinds[0]);
    cr_expect_eq(cluster_kind_of(&cluster, 2), &cluster.kinds[1]);
    cr_expect_eq(cluster_kind_of(&cluster, 4), &cluster.kinds[0]);
    cr_expect_float_eq(cluster_ideal_s(&cluster, 4), 20000 / 78.0, 1e-9);
    const double over = run(&cluster, CLUSTER_MPI, 4, 0, 1).total / cluster_ideal_s(&cluster, 4);
    cr_expect(over >= 1 - 1e-9 && over < 1.02, "%g", over);
}

Test(lab_cluster, storage_gives_no_more_than_it_has)
{
    struct cluster cluster = plain(4000);
    cluster.read_bytes = 60;
    cluster.written_bytes = 40;
    cluster.storage_bytes_per_s = 5000; /* fifty frames per second, which is five machines */
    for (int engine = 0; engine < CLUSTER_ENGINES; engine++) {
        const double two = run(&cluster, (enum cluster_engine)engine, 2, 40, 1).total;
        const double twenty = run(&cluster, (enum cluster_engine)engine, 20, 400, 1).total;
        cr_expect(two >= 200 - 1e-6 && two < 206, "%g", two);
        cr_expect(twenty >= 80 - 1e-6 && twenty < 84, "%g", twenty);
    }
    cluster.storage_bytes_per_s = 0;
    cluster.machine_bytes_per_s = 500; /* five frames per second for each machine */
    cr_expect_float_eq(run(&cluster, CLUSTER_QUEUE, 4, 4, 1).total, 200, 1e-6);
}

Test(lab_cluster, a_slow_reader_leaves_its_part_to_the_others)
{
    /* The storage gives 900 bytes per second. The slow machine needs 100, the other two 1000 each, so they get 400
     * each. */
    struct cluster cluster = plain(3000);
    cluster.read_bytes = 100;
    cluster.storage_bytes_per_s = 900;
    cluster.kind_count = 2;
    cluster.kinds[0].fps[CLUSTER_MAP] = 1;
    cluster.kinds[1] = (struct cluster_kind){.count = 2, .fps = {[CLUSTER_MAP] = 10}};
    cr_expect_float_eq(run(&cluster, CLUSTER_QUEUE, 3, 3, 1).total, 1000, 1e-6); /* that of the slow machine */
}

Test(lab_cluster, deaths_cost_what_was_at_work)
{
    struct cluster cluster = plain(8640);
    cluster.deaths_per_day = 1000; /* 864 seconds of work, so ten deaths */
    cluster.again_s = 0;
    double mpi = 0, queue = 0, deaths = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        const struct cluster_times one = run(&cluster, CLUSTER_MPI, 1, 0, seed);
        const struct cluster_times other = run(&cluster, CLUSTER_QUEUE, 1, 864, seed); /* pieces of one second */
        mpi += one.total / 200;
        queue += other.total / 200;
        deaths += other.deaths / 200;
        cr_expect_geq(one.total, 864 - 1e-6);
        cr_expect_geq(other.total, 864 - 1e-6);
    }
    cr_expect(deaths > 9 && deaths < 11, "%g deaths", deaths);
    cr_expect(queue > 864 + 4 && queue < 864 + 6, "%g: half a piece for each of ten", queue);
    cr_expect_gt(mpi, 900);
    const struct cluster_times once = run(&cluster, CLUSTER_MPI, 3, 0, 5), again = run(&cluster, CLUSTER_MPI, 3, 0, 5);
    cr_expect_eq(once.total, again.total);
    cr_expect_neq(once.total, run(&cluster, CLUSTER_MPI, 3, 0, 6).total);
    struct cluster_times times;
    cluster.kinds[0].begin_s = 1e5; /* every machine dies before its range ends */
    const struct cluster_way way = {CLUSTER_MPI, 64, 0};
    cr_expect_not(cluster_simulate(&cluster, &way, 1, &times));
}

/* The mean time of simulated runs, divided by the time of the formula. */
static double over_formula(const struct cluster *cluster, enum cluster_engine engine, uint64_t machines)
{
    const struct cluster_way way = {engine, machines, 4 * machines};
    struct cluster_times model;
    double mean = 0;
    cluster_model(cluster, &way, &model, NULL);
    for (uint64_t seed = 1; seed <= 10; seed++)
        mean += run(cluster, engine, machines, 4 * machines, seed).total / 10;
    return mean / model.total;
}

Test(lab_cluster, the_formula_is_near_the_simulation)
{
    struct cluster cluster = plain(170000);
    cluster.kinds[0] = (struct cluster_kind){.count = 1, .begin_s = 0.3, .fps = {60, 20}};
    cluster.spread = 0.08;
    cluster.read_bytes = 250000;
    cluster.storage_bytes_per_s = 1.25e9;
    for (uint64_t machines = 1; machines <= 1024; machines *= 4) {
        const double mpi = over_formula(&cluster, CLUSTER_MPI, machines);
        const double queue = over_formula(&cluster, CLUSTER_QUEUE, machines);
        cr_expect(mpi > 0.93 && mpi < 1.07, "mpi, %llu machines: %g", (unsigned long long)machines, mpi);
        cr_expect(queue > 0.9 && queue < 1.1, "queue, %llu machines: %g", (unsigned long long)machines, queue);
    }
}

Test(lab_cluster, the_formula_counts_deaths_and_frames)
{
    struct cluster cluster = plain(1000);
    struct cluster_times model;
    cluster.deaths_per_day = 1000;
    cluster.again_s = 60;
    for (uint64_t machines = 1; machines <= 2; machines++) {
        const struct cluster_way way = {CLUSTER_QUEUE, machines, 100};
        double mean = 0;
        cluster_model(&cluster, &way, &model, NULL);
        for (uint64_t seed = 1; seed <= 500; seed++)
            mean += run(&cluster, CLUSTER_QUEUE, machines, 100, seed).total / 500;
        const double over = mean / model.total;
        cr_expect(over > 0.9 && over < 1.1, "%llu machines: %g", (unsigned long long)machines, over);
    }
    const struct cluster_way pieces = {CLUSTER_QUEUE, 10, 1000000}; /* all but 1000 of these pieces have no frame */
    cluster.deaths_per_day = 0;
    cluster.kinds[0].begin_s = 1;
    cluster_model(&cluster, &pieces, &model, NULL);
    cr_expect_float_eq(model.total, run(&cluster, CLUSTER_QUEUE, 10, 1000000, 1).total, 1e-6);
}

static const char *write_file(const char *folder, char path[64], const char *text)
{
    snprintf(path, 64, "%s/times.csv", folder);
    FILE *to = fopen(path, "w");
    cr_assert(to && fputs(text, to) >= 0 && !fclose(to));
    return path;
}

Test(lab_cluster, figures_come_back_from_the_times_of_a_run)
{
    char folder[] = "/tmp/cox-cluster-XXXXXX", path[64], why[200];
    cr_assert(mkdtemp(folder));
    /* Rank 0 takes half a second to start, 0.1 s per frame and 0.02 s per analysed frame. Rank 1 starts at once and
     * takes 0.25 s per frame. */
    write_file(folder, path,
               "step,rank,first,count,start_s,seconds\n"
               "begin,0,0,100,0,2\n"
               "analyse,0,0,50,2,1.5\n"
               "analyse,1,50,50,2,2.5\n"
               "steer,0,0,100,4.5,0.5\n"
               "map,0,0,50,5,5.5\n"
               "map,1,50,20,5,5\n"
               "map,0,70,10,10.5,1.5\n"
               "map,1,80,20,10,5\n"
               "join,0,0,100,15,1\n");
    struct times times;
    struct cluster cluster = {.slow_times = 1};
    cr_assert(times_read(&times, path, why, sizeof why), "%s", why);
    ASSERT_VALUES(IS(times.ranks, 2), NEAR(times.total_s, 16, 1e-9), NEAR(times.step_s[CLUSTER_ANALYSE], 2.5, 1e-9),
                  NEAR(times.step_s[CLUSTER_MAP], 10, 1e-9));
    cr_assert(times_fit(&times, path, &cluster, why, sizeof why), "%s", why);
    ASSERT_VALUES(IS(cluster.kind_count, 2), IS(cluster.frames, 100), NEAR(cluster.kinds[0].begin_s, 0.5, 1e-6),
                  NEAR(cluster.kinds[0].fps[CLUSTER_ANALYSE], 50, 1e-4),
                  NEAR(cluster.kinds[0].fps[CLUSTER_MAP], 10, 1e-4), NEAR(cluster.kinds[1].fps[CLUSTER_MAP], 4, 1e-4),
                  NEAR(cluster.begin_s, 2, 1e-9), NEAR(cluster.steer_fps, 200, 1e-9),
                  NEAR(cluster.join_fps, 100, 1e-9));
    cr_expect_lt(cluster.spread, 1e-3);
    times_free(&times);

    static const char good[] = "step,rank,first,count,start_s,seconds\nbegin,0,0,100,0,1\nmap,0,0,100,1,9\n";
    static const char *const wrong[] = {"begin,0,0,100,0,nan\n", "begin,0,0,100,inf,1\n",
                                        "begin,0,0,99,0,1\n",    "steer,5000,0,100,0,1\nmap,5000,0,1,0,1\n",
                                        "mop,0,0,100,0,1\n",     "join,0,0,100,0,1 \n",
                                        "join,0,0,100\n",        "analyse,0,0,99,0,1\n" /* the rest was done before */,
                                        "map,0,0,1,0,1\n"};
    char text[400];
    cr_assert(times_read(&times, write_file(folder, path, good), why, sizeof why), "%s", why);
    times_free(&times);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s%s", good, wrong[i]);
        cr_expect_not(times_read(&times, write_file(folder, path, text), why, sizeof why), "%s", wrong[i]);
    }
    cr_expect_not(times_read(&times, write_file(folder, path, strchr(good, '\n') + 1), why, sizeof why));
    scratch_remove(folder);
}
