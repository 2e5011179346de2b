/* What cox-lab run makes of its command line, its figures, and its disturbances.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "lab/run/disturb_child.h"
#include "lab/run/disturb_cpus.h"
#include "lab/run/disturb_quota.h"
#include "common/text.h"
#include "lab/run/frame_figures.h"
#include "lab/run/options.h"
#include "support/values.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char why[400];

static struct lab_disturbance parsed(const char *text)
{
    struct lab_disturbance d;
    cr_assert(lab_disturbance_parse(text, &d, why, sizeof why), "%s", why);
    return d;
}

Test(lab_disturb, reads_every_kind)
{
    struct lab_disturbance d = parsed("hog@100:200");
    cr_assert(d.kind == LAB_HOG && d.first_frame == 100 && d.end_frame == 200 && d.cpu_count == 0);
    cr_assert_str_eq(d.text, "hog@100:200");
    d = parsed("hog=0,2-4@0:1");
    cr_assert(d.cpu_count == 4 && d.cpus[0] == 0 && d.cpus[1] == 2 && d.cpus[3] == 4);
    d = parsed("gpu-hog@3:5");
    cr_assert(d.kind == LAB_GPU_HOG && d.first_frame == 3 && d.end_frame == 5);
    d = parsed("quota=12.5@3:5");
    cr_assert(d.kind == LAB_QUOTA && d.percent == 12.5);
    d = parsed("delay=1,250.5@3:5");
    cr_assert(d.kind == LAB_DELAY && d.device == 1 && d.delay_us == 250.5);
}

static void refuse(const char *text)
{
    struct lab_disturbance d;
    why[0] = '\0';
    cr_assert_not(lab_disturbance_parse(text, &d, why, sizeof why), "'%s'", text);
    cr_assert(why[0], "'%s'", text);
}

Test(lab_disturb, refuses_what_is_none)
{
    char bad[] = "hog;hog@;hog@5;hog@5:;hog@:5;hog@-1:5;hog@1: 5;hog@1:5x;hog@5:5;hog@6:5;hog@1:99999999999999999999;"
                 "hog=@1:5;hog=1,@1:5;hog=2-1@1:5;hog=0-99999@1:5;hog=a@1:5;hogs@1:5;gpu-hog=0@1:5;quota@1:5;"
                 "quota=0@1:5;quota=101@1:5;quota=nan@1:5;quota=1e1@1:5;delay=1@1:5;delay=1,@1:5;delay=99,5@1:5;"
                 "delay=0,inf@1:5;delay=0,0@1:5;delay=0,2000000@1:5;@1:5;hog@1:5@2:6x";
    for (const char *text = strtok(bad, ";"); text; text = strtok(NULL, ";"))
        refuse(text);
    refuse("");
    char list[700] = "hog=0";
    for (int i = 0; i < 300; i++)
        strcat(list, ",0");
    refuse(strcat(list, "@1:5"));
}

Test(lab_disturb, phases_lie_between_starts_and_ends)
{
    const struct lab_disturbance two[] = {parsed("hog@20:40"), parsed("delay=0,100@30:50")};
    struct lab_phase phases[LAB_PHASES_MAX];
    static const struct {
        uint64_t first, end;
        uint32_t active;
        const char *text;
    } expected[] = {{0, 20, 0, "undisturbed"},
                    {20, 30, 1, "hog"},
                    {30, 40, 3, "hog and delay=0,100"},
                    {40, 50, 2, "delay=0,100"},
                    {50, 60, 0, "undisturbed"}};
    cr_assert_eq(lab_phases(two, 2, 60, phases), 5);
    for (int p = 0; p < 5; p++) {
        cr_assert(phases[p].first_frame == expected[p].first && phases[p].end_frame == expected[p].end, "%d", p);
        cr_assert_eq(phases[p].active, expected[p].active, "%d", p);
        cr_assert_str_eq(phases[p].text, expected[p].text);
    }
    cr_assert_eq(lab_phases(NULL, 0, 60, phases), 1);
    cr_assert(phases[0].end_frame == 60 && phases[0].active == 0);
    const struct lab_disturbance all = parsed("hog@0:60");
    cr_assert_eq(lab_phases(&all, 1, 60, phases), 1);
    cr_assert_eq(phases[0].active, 1);
}

/* --- Processes of the test ---------------------------------------------------------------------------------------- */

static void count_up(void *memory)
{
    ++*(volatile uint64_t *)memory;
}

static const struct lab_child_job counting = {.memory_bytes = sizeof(uint64_t), .work = count_up};

static void wait_a_little(void)
{
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Wait for one step. `tries` counts the steps; the limit is two minutes, or more on a busy machine. */
static void wait_for(const char *what, int *tries)
{
    cr_assert_lt((*tries)++, 6000, "timed out waiting for: %s", what);
    wait_a_little();
}

static struct lab_child *child;

static void stop_child(void)
{
    lab_child_stop(&child);
    cr_assert_null(child);
}

TestSuite(lab_disturb_child, .fini = stop_child);

static void start_child(const struct lab_child_job *job)
{
    child = lab_child_start(job);
    cr_assert_not_null(child);
}

static void start_counting(void)
{
    start_child(&counting);
    cr_assert(lab_child_prepare(child, 1, why, sizeof why), "%s", why);
}

Test(lab_disturb_child, works_only_while_it_is_on)
{
    start_counting();
    volatile uint64_t *counter = lab_child_memory(child);
    wait_a_little();
    cr_assert_eq(*counter, 0);
    for (int i = 0; i < 3; i++) {
        uint64_t before = *counter;
        cr_assert(lab_child_switch(child, true, why, sizeof why), "%s", why);
        for (int tries = 0; *counter == before;)
            wait_for("the child works", &tries);
        cr_assert(lab_child_switch(child, false, why, sizeof why), "%s", why);
        before = *counter;
        wait_a_little();
        cr_assert_eq(*counter, before);
    }
    pid_t pid = lab_child_pid(child);
    stop_child();
    cr_assert(kill(pid, 0) != 0 && errno == ESRCH);
}

static bool never(void *memory, char *text, size_t bytes)
{
    (void)memory;
    snprintf(text, bytes, "not today");
    return false;
}

Test(lab_disturb_child, says_why_it_cannot_be_prepared)
{
    const struct lab_child_job job = {.prepare = never, .work = count_up};
    start_child(&job);
    cr_assert_not(lab_child_prepare(child, 1, why, sizeof why));
    cr_assert_str_eq(why, "not today");
}

Test(lab_disturb_child, its_end_is_noticed)
{
    start_counting();
    kill(lab_child_pid(child), SIGKILL);
    cr_assert_not(lab_child_switch(child, true, why, sizeof why));
    cr_assert_not_null(strstr(why, "ended"), "%s", why);
}

/* --- Processor hogs ----------------------------------------------------------------------------------------------- */

static uint64_t used_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec used;
    cr_assert_eq(clock_getcpuclockid(pid, &clock), 0);
    cr_assert_eq(clock_gettime(clock, &used), 0);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint16_t first_cpu(void)
{
    cpu_set_t set;
    uint16_t cpu = 0;
    cr_assert_eq(sched_getaffinity(0, sizeof set, &set), 0);
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

Test(lab_disturb, a_hog_uses_its_processor_and_only_while_it_is_on)
{
    struct lab_disturber *disturber;
    const uint16_t cpu = first_cpu();
    const struct lab_disturbance hog = parsed("hog@1:2");
    uint32_t which;
    size_t count;
    cr_assert(lab_disturber_start(&hog, 1, &disturber, why, sizeof why), "%s", why);
    cr_assert(lab_disturber_prepare(disturber, &cpu, 1, NULL, &which, why, sizeof why), "%s", why);
    cr_assert_not_null(strstr(lab_disturber_note(disturber, 0), "used by the first CPU device"));
    pid_t pid = lab_disturber_children(disturber, &count)[0];
    cr_assert_eq(count, 1);

    cr_assert(lab_disturber_set(disturber, 1, why, sizeof why), "%s", why);
    int tries = 0;
    for (uint64_t before = used_ns(pid); used_ns(pid) < before + 50000000;)
        wait_for("the hog uses its processor", &tries);
    cpu_set_t set;
    cr_assert_eq(sched_getaffinity(pid, sizeof set, &set), 0);
    cr_assert(CPU_COUNT(&set) == 1 && CPU_ISSET(cpu, &set));

    cr_assert(lab_disturber_set(disturber, 0, why, sizeof why), "%s", why);
    wait_a_little();
    uint64_t before = used_ns(pid);
    for (int i = 0; i < 5; i++)
        wait_a_little();
    cr_assert_lt(used_ns(pid) - before, 1000000);
    lab_disturber_stop(&disturber);
    cr_assert(kill(pid, 0) != 0 && errno == ESRCH);
}

Test(lab_disturb, what_cannot_be_is_named_and_can_be_left_out)
{
    struct lab_disturber *disturber;
    const struct lab_disturbance two[] = {parsed("hog=1023@1:2"), parsed("gpu-hog@1:2")};
    uint32_t which;
    size_t count;
    cr_assert(lab_disturber_start(two, 2, &disturber, why, sizeof why), "%s", why);
    cr_assert_not(lab_disturber_prepare(disturber, NULL, 0, NULL, &which, why, sizeof why));
    cr_assert_eq(which, 0);
    cr_assert_not_null(strstr(why, "CPU 1023"), "%s", why);
    lab_disturber_drop(disturber, 0);
    cr_assert_not(lab_disturber_prepare(disturber, NULL, 0, NULL, &which, why, sizeof why));
    cr_assert_eq(which, 1);
    cr_assert_not_null(strstr(why, "no GPU"), "%s", why);
    lab_disturber_drop(disturber, 1);
    cr_assert(lab_disturber_prepare(disturber, NULL, 0, NULL, &which, why, sizeof why));
    lab_disturber_children(disturber, &count);
    cr_assert_eq(count, 0);
    cr_assert(lab_disturber_set(disturber, 3, why, sizeof why), "%s", why);
    lab_disturber_stop(&disturber);
}

static _Atomic bool go_on = true;

static void *compute(void *user)
{
    while (atomic_load(&go_on))
        continue;
    return user;
}

Test(lab_disturb, bound_workers_tell_the_cores)
{
    cpu_set_t all, one;
    uint16_t cpus[4];
    pthread_t thread;
    clockid_t clock;
    struct timespec ran;
    cr_assert_eq(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2) {
        fprintf(stderr, "skipped, because bound or not makes no difference on one processor\n");
        return;
    }
    struct lab_threads *before = lab_threads_read();
    cr_assert_not_null(before);
    cr_assert_eq(pthread_create(&thread, NULL, compute, NULL), 0);
    cr_assert_eq(pthread_getcpuclockid(thread, &clock), 0);
    int tries = 0;
    do
        wait_for("the thread stands out", &tries);
    while (!clock_gettime(clock, &ran) && !ran.tv_sec && ran.tv_nsec < 50000000);
    cr_assert_eq(lab_threads_cpus(before, cpus, 4), 0, "it may run anywhere");
    CPU_ZERO(&one);
    CPU_SET(first_cpu(), &one);
    cr_assert_eq(pthread_setaffinity_np(thread, sizeof one, &one), 0);
    cr_assert_eq(lab_threads_cpus(before, cpus, 4), 1);
    cr_assert_eq(cpus[0], first_cpu());
    atomic_store(&go_on, false);
    pthread_join(thread, NULL);
    lab_threads_free(&before);
}

/* --- The quota ---------------------------------------------------------------------------------------------------- */

static void write_text(const char *root, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

/* The number of a process that has ended. */
static pid_t dead_process(void)
{
    pid_t dead = fork();
    if (dead == 0)
        _exit(0);
    cr_assert_eq(waitpid(dead, NULL, 0), dead);
    return dead;
}

/* Ordinary files cannot be a control group. This test checks what is refused. */
Test(lab_disturb_quota, refuses_where_there_are_no_groups)
{
    char root[] = "/tmp/cox-quota-XXXXXX", path[128];
    struct lab_quota *quota;
    cr_assert_not_null(mkdtemp(root));
    cr_assert_not(lab_quota_open(root, &quota, why, sizeof why));
    cr_assert_null(quota);
    cr_assert_not_null(strstr(why, "no control groups are mounted"), "%s", why);

    /* A hierarchy without the cpu controller, so its files are missing. */
    static const char *const folders[] = {"proc", "proc/self", "group", "group/mine"};
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        mkdir(path, 0755);
    }
    write_text(root, "proc/self/mountinfo", "30 29 0:26 / /group rw,nosuid shared:4 - cgroup2 cgroup2 rw\n");
    write_text(root, "proc/self/cgroup", "0::/mine\n");
    cr_assert_not(lab_quota_open(root, &quota, why, sizeof why));
    cr_assert_not_null(strstr(why, "not enabled for control groups"), "%s", why);
    snprintf(path, sizeof path, "%s/group/mine/coxswain-lab-%d", root, (int)getpid());
    cr_assert_neq(access(path, F_OK), 0, "the group was left behind");

    /* Any process removes the groups of processes that have ended. Groups of other processes stay. */
    char gone[2][128], stays[128];
    const pid_t dead = dead_process();
    snprintf(gone[0], sizeof gone[0], "%s/group/mine/coxswain-lab-%d", root, (int)dead);
    snprintf(gone[1], sizeof gone[1], "%s/group/coxswain-lab-%d", root, (int)dead);
    snprintf(stays, sizeof stays, "%s/group/mine/coxswain-lab-%d", root, (int)getppid());
    cr_assert(mkdir(gone[0], 0755) == 0 && mkdir(gone[1], 0755) == 0 && mkdir(stays, 0755) == 0);
    lab_quota_tidy(root);
    cr_assert(access(gone[0], F_OK) != 0 && access(gone[1], F_OK) != 0);
    cr_assert_eq(access(stays, F_OK), 0);
    snprintf(path, sizeof path, "rm -rf %s", root);
    cr_assert_eq(system(path), 0);
}

static void read_groups(char *text, size_t bytes)
{
    FILE *file = fopen("/proc/self/cgroup", "r");
    cr_assert_not_null(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

Test(lab_disturb_quota, comes_and_goes)
{
    struct lab_quota *quota;
    char before[4096], during[4096], after[4096], group[1100], left_over[1100];
    read_groups(before, sizeof before);
    if (!lab_quota_open(NULL, &quota, why, sizeof why)) {
        fprintf(stderr, "skipped, because %s\n", why);
        return;
    }
    read_groups(during, sizeof during);
    cr_assert_not_null(strstr(during, "/coxswain-lab-"));
    snprintf(group, sizeof group, "%s", lab_quota_group(quota));
    cr_assert(lab_quota_set(quota, 0.5, why, sizeof why), "%s", why);
    cr_assert(lab_quota_set(quota, 0.000001, why, sizeof why), "%s", why);
    cr_assert(lab_quota_set(quota, 0, why, sizeof why), "%s", why);
    lab_quota_close(&quota);
    read_groups(after, sizeof after);
    cr_assert_str_eq(after, before);
    cr_assert_neq(access(group, F_OK), 0);

    /* The next run removes the group that a killed process left behind. */
    const pid_t dead = dead_process();
    snprintf(left_over, sizeof left_over, "%.*s-%d", (int)(strrchr(group, '-') - group), group, (int)dead);
    cr_assert_eq(mkdir(left_over, 0755), 0);
    cr_assert(lab_quota_open(NULL, &quota, why, sizeof why), "%s", why);
    lab_quota_close(&quota);
    cr_assert_neq(access(left_over, F_OK), 0);
}

/* --- Figures ------------------------------------------------------------------------------------------------------ */

enum { FRAMES = 40 };
static struct lab_run_frame frames[FRAMES];

static void all_take(double ns)
{
    for (int f = 0; f < FRAMES; f++)
        frames[f] = (struct lab_run_frame){.ns = ns, .joules = -1, .split = 1};
}

static struct lab_run_reference reference_of(double solo_0, double solo_1, double oracle)
{
    return (struct lab_run_reference){
        .device_count = 2,
        .solo = {{solo_0, solo_0, solo_0, solo_0, solo_0, 30}, {solo_1, solo_1, solo_1, solo_1, solo_1, 30}},
        .best_solo = solo_1 < solo_0,
        .oracle = {.spread = {oracle, oracle, oracle, oracle, oracle, 30}}};
}

static struct lab_run_figures figures;

static void take_figures(uint32_t first, uint32_t end, const struct lab_run_reference *reference)
{
    cr_assert(lab_run_figures_of(frames, &(struct lab_run_range){first, end, 1, 0}, reference, &figures));
}

Test(lab_run, figures_compare_with_the_phase)
{
    const struct lab_run_reference reference = reference_of(300, 600, 200);
    all_take(250);
    frames[12].ns = 1250; /* this changes the mean but not the median */
    frames[13].split = 2;
    frames[15].joules = 0.5;
    frames[16].joules = 1.5;
    frames[17].failed = true;
    frames[18].disturbed = true;
    for (int f = 0; f < FRAMES; f++)
        frames[f].latency_ns = 300 + f;
    frames[19].late = frames[20].late = frames[21].late = true;
    frames[18].late = true; /* a disturbed frame */
    take_figures(8, 28, &reference);
    cr_assert(figures.frames == 18 && figures.failed == 1 && figures.disturbed == 1);
    ASSERT_VALUES(NEAR(figures.spread.p50_ns, 250, 1e-9), NEAR(figures.spread.mean_ns, (17 * 250 + 1250) / 18.0, 1e-9),
                  NEAR(figures.over_oracle, 1.25, 1e-9), NEAR(figures.over_single, 250 / 300.0, 1e-9),
                  NEAR(figures.mean_over_oracle, figures.spread.mean_ns / 200, 1e-9));
    cr_assert_float_eq(figures.efficiency, 200 / 250.0, 1e-9); /* (1/300 + 1/600) = 1/200 */
    cr_assert_float_eq(figures.changes, 10, 1e-9);             /* from one split to the other and back, in 20 frames */
    ASSERT_VALUES(NEAR(figures.joules, 1, 1e-9), NEAR(figures.late, 3 / 18.0, 1e-9),
                  NEAR(figures.latency.p50_ns, 316, 1e-9), NEAR(figures.latency.p99_ns, 327, 1e-9),
                  IS(figures.settled, LAB_RUN_NEVER));
}

Test(lab_run, quantiles_are_times_of_frames)
{
    const struct lab_run_reference reference = reference_of(300, 600, 200);
    for (int f = 0; f < 10; f++)
        frames[f] = (struct lab_run_frame){.ns = 100 * (10 - f), .joules = -1, .split = f < 4};
    take_figures(0, 10, &reference);
    cr_assert_float_eq(figures.spread.p50_ns, 500, 1e-9); /* five of ten frames are no longer slower */
    ASSERT_VALUES(NEAR(figures.spread.p90_ns, 900, 1e-9), NEAR(figures.spread.p99_ns, 1000, 1e-9));
    take_figures(4, 10, &reference);
    cr_assert_float_eq(figures.changes, 100.0 / 6, 1e-9, "the phase's first frame has a predecessor");
}

Test(lab_run, means_are_held_against_the_least_mean)
{
    struct lab_run_reference reference = reference_of(300, 310, 200);
    reference.solo[0].mean_ns = 900; /* the lower median has the higher mean */
    all_take(155);
    take_figures(0, 10, &reference);
    ASSERT_VALUES(NEAR(figures.mean_over_single, 0.5, 1e-9), NEAR(figures.over_single, 155 / 300.0, 1e-9));
}

Test(lab_run, what_goes_to_a_terminal_is_plain)
{
    static const struct {
        const char *text, *plain;
    } texts[] = {{"Radeon\u2122 \u00b5s", "Radeon\u2122 \u00b5s"},
                 {"a\033]0;b\a\n", "a\\x1b]0;b\\x07\\x0a"},
                 {"\xff\xc3(\xe2\x82", "\\xff\\xc3(\\xe2\\x82"},
                 {"\xc2\x9b"
                  "1m\u202e",
                  "\\xc2\\x9b1m\\xe2\\x80\\xae"},
                 {NULL, ""}};
    char out[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        cr_assert_str_eq(text_plain(texts[i].text, out, sizeof out), texts[i].plain);
    cr_assert_str_eq(text_plain("123\033", out, 7), "123", "escape sequences are not cut in two");
    cr_assert_str_eq(text_plain("123\033", out, 8), "123\\x1b");
}

Test(lab_run, settled_is_when_most_frames_stay_near_the_oracle)
{
    struct lab_spread oracle = {100, 100, 104, 104, 104, 30};
    all_take(104);
    cr_assert_eq(lab_run_settled(frames, 0, FRAMES, &oracle), 0);
    frames[10].ns = frames[11].ns = 200;
    cr_assert_eq(lab_run_settled(frames, 10, FRAMES, &oracle), 2);
    frames[14].ns = frames[16].ns = 110; /* two of eight: most are still within the limit */
    cr_assert_eq(lab_run_settled(frames, 10, FRAMES, &oracle), 2);
    frames[18].ns = 110;
    cr_assert_eq(lab_run_settled(frames, 10, FRAMES, &oracle), 5);
    oracle.p90_ns = 112; /* the oracle's own frames are no better */
    cr_assert_eq(lab_run_settled(frames, 10, FRAMES, &oracle), 2);
    all_take(106);
    oracle.p90_ns = 104;
    cr_assert_eq(lab_run_settled(frames, 0, FRAMES, &oracle), LAB_RUN_NEVER);
    all_take(100);
    cr_assert_eq(lab_run_settled(frames, 0, 3, &oracle), LAB_RUN_NEVER, "three frames are too few");
    frames[0].disturbed = frames[1].disturbed = true;
    frames[0].ns = frames[1].ns = 900;
    cr_assert_eq(lab_run_settled(frames, 0, FRAMES, &oracle), 2);
}

static struct lab_run_verdict judged(struct lab_run_figures *both, double mean_ns)
{
    static const struct lab_phase phases[2] = {{0, 100, 0, ""}, {100, 200, 1, ""}};
    const struct lab_run_reference references[2] = {reference_of(300, 600, 200), reference_of(900, 600, 400)};
    for (int p = 0; p < 2; p++)
        both[p].frames = 100;
    both[0].spread.mean_ns = both[1].spread.mean_ns = mean_ns;
    return lab_run_judge(both, references, phases, 2);
}

Test(lab_run, bars_hold_in_every_phase)
{
    struct lab_run_figures both[2] = {{.over_oracle = 1.02, .settled = 30}, {.over_oracle = 1.03, .settled = 3}};
    struct lab_run_verdict verdict = judged(both, 454);
    cr_assert(verdict.met);
    ASSERT_VALUES(NEAR(verdict.over_single, 454 / 450.0, 1e-9), NEAR(verdict.over_oracle, 1.03, 1e-9));
    cr_assert_eq(verdict.settled, 3, "the start does not count as a change");
    cr_assert_not(judged(both, 455).met);
    both[1].settled = 4;
    cr_assert_not(judged(both, 440).met);
    both[1].settled = 0;
    both[0].over_oracle = 1.031;
    cr_assert_not(judged(both, 440).met);
}

Test(lab_run, a_phase_without_figures_meets_no_bar)
{
    static const struct lab_phase phases[1] = {{0, 100, 0, ""}};
    const struct lab_run_reference reference = reference_of(300, 600, 200);
    const struct lab_run_figures none = {.frames = 0};
    cr_assert_not(lab_run_judge(&none, &reference, phases, 1).met);
}
