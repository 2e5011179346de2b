/* The session database: what it stores and what it refuses.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "lab/store/tape.h"
#include "support/folder.h"
#include "unit/programs/lab_asked.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void begin(void)
{
    make_folder();
    snprintf(path, sizeof path, "%s/session.db", folder);
}

static void end(void)
{
    chmod(folder, 0700);
    remove_folder();
}

TestSuite(lab_store, .init = begin, .fini = end);

static const struct lab_store_run run_of_two = {.source = "devices",
                                                .command = "cox-lab run",
                                                .kernel = "work",
                                                .objective = COX_OBJECTIVE_LATENCY,
                                                .columns = 64,
                                                .rows = 100,
                                                .in_flight = 2,
                                                .frames = 10};

/* Report frame `index`, with two bands, starting at `start_ns`. */
static void report(struct lab_session *session, uint64_t index, uint64_t start_ns, uint64_t wall_ns)
{
    const struct cox_band_report bands[2] = {
        {.device = 0,
         .rows = 40,
         .submit_ns = start_ns + 10,
         .end_ns = start_ns + wall_ns,
         .wall_ns = wall_ns - 10,
         .kernel_ns = wall_ns - 20,
         .predicted_ns = wall_ns + 5},
        {.device = 1,
         .first_row = 40,
         .rows = 60,
         .submit_ns = start_ns + 20,
         .end_ns = start_ns + wall_ns - 5,
         .wall_ns = wall_ns - 35,
         .queue_ns = 10,
         .on_demand = true},
    };
    lab_session_frame(session, &(struct cox_frame_report){.index = index,
                                                          .submit_ns = start_ns,
                                                          .total.start_ns = start_ns,
                                                          .total.end_ns = start_ns + wall_ns,
                                                          .delivered_ns = start_ns + wall_ns + index,
                                                          .deadline_ns = wall_ns + 4,
                                                          .total.reason = COX_REASON_BALANCED,
                                                          .total.predicted_ns = 990,
                                                          .total.rejected_ns = 1100,
                                                          .total.pool_rows = 60,
                                                          .joules = index % 2 ? 0.25 : -1,
                                                          .band_count = 2,
                                                          .bands = bands});
}

static void report_frames(struct lab_session *session, uint64_t first, uint64_t end, uint64_t period_ns)
{
    for (uint64_t f = first; f < end; f++)
        report(session, f, f * period_ns, period_ns);
}

static struct lab_session *begin_policy(struct lab_store *store)
{
    return lab_store_begin_session(store,
                                   &(struct lab_store_session){.kind = LAB_SESSION_POLICY, .policy = "last-frame"});
}

/* Begin a new run with one session. */
static struct lab_store *begin_one(struct lab_session **session)
{
    struct lab_store *store = open_store();
    lab_store_begin_run(store, &run_of_two);
    *session = begin_policy(store);
    return store;
}

static void make_one(void)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    report_frames(session, 0, 500, 1000);
    close_store(store);
}

/* Opening the file for recording fails with one line, which contains the path and `words`. */
static void refuse_to_record(const char *name, const char *words)
{
    struct lab_store *store = NULL;
    cr_assert(!lab_store_open(name, &store, why, sizeof why), "%s", words);
    cr_assert_null(store);
    cr_assert(strstr(why, name) == why && strstr(why, words) && !strchr(why, '\n'), "%s", why);
}

static void refuse_to_read(const char *name, const char *words)
{
    sqlite3 *db = NULL;
    cr_assert(!lab_store_open_to_read(name, &db, why, sizeof why), "%s", words);
    cr_assert_null(db);
    cr_assert(strstr(why, name) == why && strstr(why, words) && !strchr(why, '\n'), "%s", why);
}

static void refuse(const char *name, const char *words)
{
    refuse_to_record(name, words);
    refuse_to_read(name, words);
}

/* Read the file. If that must fail, `text` is part of the message. */
static void read_it(const char *name, const char *text)
{
    sqlite3 *db = NULL;
    cr_assert(lab_store_open_to_read(name, &db, why, sizeof why), "%s: %s", text, why);
    sqlite3_close(db);
}

Test(lab_store, keeps_every_field_of_a_frame)
{
    struct lab_store *store = open_store();
    cr_assert_eq(lab_store_begin_run(store, &run_of_two), 1);
    lab_store_row_alignment(store, 4);
    lab_store_phase(store, 0, 0, 5, "undisturbed");
    lab_store_phase(store, 1, 5, 10, "hog");
    struct lab_session *session = begin_policy(store);
    for (uint64_t f = 0; f < 10; f++)
        report(session, f, 5000 + f * 800, 1000);
    lab_store_finish_run(store);
    close_store(store);

    answers("SELECT source, kernel, columns, rows, granule, in_flight, frames, objective, meter, finished, "
            "started_at LIKE '20__-__-__T__:__:__Z', length(host) > 0, length(system) > 0 FROM run",
            "devices|work|64|100|4|2|10|latency|NULL|1|1|1|1");
    answers("SELECT * FROM frame WHERE frame = 0", "1|0|0|100|0|1000|1000|990|1100|4|60|0|1000|1004|NULL");
    /* The period is the part of the frame during which no earlier frame was under way. Each frame began 200 ns
     * before the previous one ended. */
    answers("SELECT * FROM frame WHERE frame = 7", "1|7|1|100|5600|1000|800|990|1100|4|60|0|1007|1004|0.25");
    answers("SELECT * FROM band WHERE frame = 7 AND band = 0", "1|7|0|0|0|0|40|10|1000|990|0|980|1005|0|0|0");
    answers("SELECT * FROM band WHERE frame = 7 AND band = 1", "1|7|1|0|1|40|60|20|995|965|10|0|0|1|0|0");
    answers("SELECT * FROM frame_pass WHERE frame = 7", "1|7|0|0|1000|4|990|1100|60");
    answers("SELECT * FROM pass", "1|0|NULL|100|NULL");
    answers("SELECT count(*), sum(status) FROM frame", "10|0");
    answers("SELECT group_concat(over_deadline, ' ') FROM summary", "0.0 1.0");
    cr_assert_str_eq(ask("SELECT text FROM reason NATURAL JOIN frame"), cox_reason_text(COX_REASON_BALANCED));
}

Test(lab_store, keeps_runs_devices_disturbances_references)
{
    struct lab_store *store = open_store();
    struct cox_device_info info = {.name = "a \"name\" of 'sorts'",
                                   .platform = "platform",
                                   .driver = "1.2",
                                   .type = COX_DEVICE_GPU,
                                   .mode = COX_MODE_STAGED};
    cr_assert_eq(lab_store_begin_run(store, &run_of_two), 1);
    cr_assert_eq(lab_store_begin_run(store, &run_of_two), 2);
    lab_store_device(store, 0, &info);
    lab_store_phase(store, 0, 0, 10, "undisturbed");
    lab_store_disturbance(store, 0, "hog", "hog@3:6", 3, 6, true, NULL);
    lab_store_disturbance(store, 0, "hog", "hog@3:6", 3, 7, true, "ended late");
    lab_store_reference(store, 0, 0, 3000, 20, NULL, 0);
    lab_store_reference(store, 0, 1, 6000, 20, NULL, 0);
    lab_store_reference(store, 0, LAB_REFERENCE_ORACLE, 2500, 20, (const double[]){0.75, 0.25}, 2);
    lab_store_reference(store, 0, LAB_REFERENCE_ORACLE, 2000, 20, (const double[]){0.625, 0.375}, 2);
    lab_store_reference_mean(store, 0, LAB_REFERENCE_ORACLE, 2100);
    lab_store_reference_mean(store, 0, 0, 3100);
    lab_store_reference_mean(store, 0, 1, NAN);
    lab_store_reference_p90(store, 0, LAB_REFERENCE_ORACLE, 2300);
    lab_store_load(store, 1.25, true);
    lab_store_load(store, -1, false); /* unknown: not recorded */
    struct lab_session *solo = lab_store_begin_session(store, &(struct lab_store_session){.kind = LAB_SESSION_SOLO,
                                                                                          .policy = "single",
                                                                                          .device = 1,
                                                                                          .phase_plus_1 = 1});
    struct lab_session *sweep =
        lab_store_begin_session(store, &(struct lab_store_session){.kind = LAB_SESSION_SWEEP,
                                                                   .policy = "static",
                                                                   .ratio_count = 2,
                                                                   .ratios = (const double[]){0.5, 0.5},
                                                                   .repeat = 3});
    struct lab_session *policy = begin_policy(store);
    for (uint64_t f = 0; f < 4; f++) {
        report(solo, f, f * 6000, 6000);
        report(sweep, f, f * 3000, 3000);
        report(policy, f, f * 2200, 2200);
    }
    close_store(store);
    answers("SELECT * FROM device", "2|0|a \"name\" of 'sorts'|platform|1.2|gpu|staged");
    answers("SELECT * FROM disturbance", "2|0|hog|hog@3:6|3|7|1|ended late");
    answers("SELECT * FROM reference WHERE kind = 'oracle'", "2|0|oracle|NULL|2000.0|2100.0|2300.0|20|[0.625,0.375]");
    answers("SELECT count(*) FROM reference", "3");
    answers("SELECT * FROM session WHERE kind = 'solo'", "1|2|solo|single|1|NULL|0");
    answers("SELECT * FROM session WHERE kind = 'sweep'", "2|2|sweep|static|NULL|[0.5,0.5]|3");
    answers("SELECT finished, foreign_load, busy FROM run WHERE run = 2", "0|1.25|1");
    answers("SELECT foreign_load, busy FROM run WHERE run = 1", "NULL|NULL");
    /* T / T_oracle is 2200 / 2000, by means 2200 / 2100. T / T_best is 2200 / 3000, by means 2200 / 3100.
     * Efficiency is 1 / (2200 (1/3000 + 1/6000)). */
    answers("SELECT run, session, policy, phase, phase_text, frames, round(mean_ms, 6), round(p50_ms, 6), "
            "round(p99_ms, 6), round(mean_over_oracle, 6), round(p50_over_oracle, 6), round(mean_over_solo, 6), "
            "round(p50_over_solo, 6), round(efficiency, 6), joules_per_frame FROM summary",
            "2|3|last-frame|0|undisturbed|4|0.0022|0.0022|0.0022|1.047619|1.1|0.709677|0.733333|0.909091|0.25");
}

Test(lab_store, passes_over_warm_ups_and_keeps_shadows_apart)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    const struct cox_band_report band = {.device = 1, .first_row = 96, .rows = 4, .wall_ns = 77};
    lab_session_frame(session, &(struct cox_frame_report){.warmup = true, .band_count = 1, .bands = &band});
    report(session, 0, 0, 1000);
    lab_session_frame(session, &(struct cox_frame_report){.index = 0, .shadow = true, .band_count = 1, .bands = &band});
    lab_session_frame(NULL, &(struct cox_frame_report){.band_count = 1, .bands = &band});
    close_store(store);
    answers("SELECT count(*) FROM frame", "1");
    answers("SELECT * FROM shadow", "1|0|0|1|96|4|77");
}

Test(lab_store, keeps_the_passes_of_a_frame)
{
    struct lab_store *store = open_store();
    lab_store_begin_run(store, &run_of_two);
    lab_store_pass(store, 0, "across", 100, 1);
    lab_store_pass(store, 1, "down", 64, 2);
    struct lab_session *session = begin_policy(store);
    const struct cox_band_report bands[3] = {{.device = 1,
                                              .rows = 100,
                                              .submit_ns = 5000,
                                              .end_ns = 5400,
                                              .noticed_ns = 5410,
                                              .clock_error_ns = 7,
                                              .wall_ns = 400},
                                             {.device = 0,
                                              .pass = 1,
                                              .rows = 32,
                                              .submit_ns = 5500,
                                              .end_ns = 6000,
                                              .noticed_ns = 6020,
                                              .clock_error_ns = UINT64_MAX,
                                              .wall_ns = 500},
                                             {.device = 1,
                                              .pass = 1,
                                              .first_row = 32,
                                              .rows = 32,
                                              .submit_ns = 5500,
                                              .end_ns = 5900,
                                              .noticed_ns = 5930,
                                              .clock_error_ns = 9,
                                              .wall_ns = 400}};
    const struct cox_pass_report passes[2] = {
        {.start_ns = 5000, .end_ns = 5400, .reason = COX_REASON_KEPT, .predicted_ns = 390, .rejected_ns = 410},
        {.start_ns = 5500, .end_ns = 6000, .reason = COX_REASON_BALANCED, .predicted_ns = 480, .pool_rows = 32}};
    const struct cox_frame_report frame = {.total.start_ns = 5000,
                                           .total.end_ns = 6000,
                                           .joules = -1,
                                           .band_count = 3,
                                           .bands = bands,
                                           .pass_count = 2,
                                           .passes = passes};
    lab_session_frame(session, &frame);
    lab_session_frame(session,
                      &(struct cox_frame_report){
                          .shadow = true, .band_count = 1, .bands = &bands[2], .pass_count = 1, .passes = &passes[1]});
    close_store(store);
    cr_assert_str_eq(ask("SELECT rows FROM frame"), "100", "those of the first pass");
    answers("SELECT group_concat(name || ':' || rows || ':' || stages, ' ') FROM pass", "across:100:1 down:64:2");
    answers("SELECT * FROM frame_pass WHERE pass = 0", "1|0|0|0|400|5|390|410|0");
    answers("SELECT * FROM frame_pass WHERE pass = 1", "1|0|1|500|1000|4|480|0|32");
    answers("SELECT group_concat(pass || ':' || device || ':' || rows, ' ') FROM band", "0:1:100 1:0:32 1:1:32");
    answers("SELECT group_concat(noticed_ns || ':' || ifnull(clock_error_ns, ''), ' ') FROM notice",
            "410:7 1020: 930:9");
    answers("SELECT * FROM shadow", "1|0|1|1|32|32|400");
}

Test(lab_store, can_be_queried_while_it_grows)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    for (uint64_t f = 0; f < 100; f++) {
        report(session, f, f * 1000, 1000);
        lab_store_write(store);
    }
    /* A transaction has 64 frames, or fewer if half a second has passed. Only complete transactions are visible. */
    int seen = atoi(ask("SELECT count(*) FROM frame"));
    cr_assert(seen >= 64 && seen <= 100, "%d", seen);
    answers("SELECT count(*) FROM band JOIN frame USING (session, frame) GROUP BY frame", "2");
    close_store(store);
    answers("SELECT count(*) FROM frame", "100");
    char companion[160];
    snprintf(companion, sizeof companion, "%s-wal", path);
    cr_assert_neq(access(companion, F_OK), 0, "a closed database is one file");
}

Test(lab_store, appends_to_its_own_database)
{
    for (int64_t run = 1; run <= 3; run++) {
        struct lab_store *store = open_store();
        cr_assert_eq(lab_store_begin_run(store, &run_of_two), run);
        report(begin_policy(store), 0, 0, 1000);
        close_store(store);
    }
    answers("SELECT count(*), max(session) FROM session", "3|3");
    answers("SELECT count(*) FROM band WHERE session = 3", "2");
}

Test(lab_store, what_was_recorded_survives_a_kill)
{
    int ready[2];
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        struct lab_store *store = NULL;
        if (!lab_store_open(path, &store, why, sizeof why))
            _exit(1);
        lab_store_begin_run(store, &run_of_two);
        struct lab_session *session = begin_policy(store);
        for (uint64_t f = 0;; f++) {
            report(session, f, f * 1000, 1000);
            lab_store_write(store);
            if (f == 1000 && write(ready[1], "", 1) != 1)
                _exit(1);
        }
    }
    char byte;
    close(ready[1]); /* so that read returns if the child fails */
    cr_assert_eq(read(ready[0], &byte, 1), 1, "the child has not recorded a thousand frames");
    kill(child, SIGKILL);
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFSIGNALED(status));
    /* All frames except those of the open transaction. */
    int frames = atoi(ask("SELECT count(*) FROM frame"));
    cr_assert_geq(frames, 1001 - 64);
    answers("SELECT max(frame) + 1 = count(*), (SELECT count(*) FROM band) = 2 * count(*) FROM frame", "1|1");
    answers("SELECT finished FROM run", "0");
    /* The file can be appended to. */
    struct lab_store *store = open_store();
    cr_assert_eq(lab_store_begin_run(store, &run_of_two), 2);
    close_store(store);
}

Test(lab_store, tells_once_that_the_disk_is_full)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    report_frames(session, 0, 64, 1000);
    lab_store_write(store);
    cr_assert_null(lab_store_error(store));
    /* A limit on file sizes replaces a full disk. */
    const struct rlimit small = {65536, 65536};
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (uint64_t f = 64; f < 5000; f++) {
        report(session, f, f * 1000, 1000);
        lab_store_write(store);
    }
    cr_assert_not_null(lab_store_error(store));
    cr_assert(!lab_store_close(&store, why, sizeof why));
    cr_assert(strstr(why, path) == why && strstr(why, ": "), "%s", why);
    /* The frames recorded before stay. */
    int frames = atoi(ask("SELECT count(*) FROM frame"));
    cr_assert(frames >= 64 && frames < 5000, "%d", frames);
}

/* A thread that reports frames. It is never ahead of the written frames by more than the queue's length. */
enum { MANY = 5000, AHEAD = 500 };
struct reporter {
    struct lab_session *session;
    atomic_ullong reported, written;
};

static void *report_many(void *user)
{
    struct reporter *reporter = user;
    for (uint64_t f = 0; f < MANY; f++) {
        while (f >= atomic_load(&reporter->written) + AHEAD)
            sched_yield();
        report(reporter->session, f, f * 1000, 1000);
        atomic_store(&reporter->reported, f + 1);
    }
    return NULL;
}

Test(lab_store, records_what_another_thread_reports_while_it_writes)
{
    struct lab_store *store = open_store();
    lab_store_begin_run(store, &run_of_two);
    static struct reporter reporters[2];
    pthread_t threads[2];
    for (int t = 0; t < 2; t++) {
        reporters[t].session = begin_policy(store);
        cr_assert_eq(pthread_create(&threads[t], NULL, report_many, &reporters[t]), 0);
    }
    while (atomic_load(&reporters[0].written) < MANY || atomic_load(&reporters[1].written) < MANY) {
        unsigned long long reported[2] = {atomic_load(&reporters[0].reported), atomic_load(&reporters[1].reported)};
        lab_store_write(store);
        for (int t = 0; t < 2; t++)
            atomic_store(&reporters[t].written, reported[t]);
    }
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    close_store(store);
    answers("SELECT count(*), max(frame), sum(period_ns) FROM frame WHERE session = 1", "5000|4999|5000000");
    answers("SELECT count(*), max(frame), sum(period_ns) FROM frame WHERE session = 2", "5000|4999|5000000");
    answers("SELECT count(*) FROM band", "20000");
}

Test(lab_store, counts_what_does_not_fit_its_queue)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    report_frames(session, 0, 100000, 1000);
    cr_assert(!lab_store_close(&store, why, sizeof why));
    cr_assert(strstr(why, "were not recorded"), "%s", why);
    cr_assert_geq(atoi(ask("SELECT count(*) FROM frame")), 1000);
}

/* --- The tape ----------------------------------------------------------------------------------------------------- */

Test(lab_store, a_taped_policy_answers_as_the_policy_itself)
{
    struct lab_session *session;
    struct lab_store *store = begin_one(&session);
    const struct cox_policy *plain = &policy_last_frame;
    const struct cox_policy *taped = lab_session_tape(session, plain);
    cr_assert_neq(taped, plain);
    cr_assert_str_eq(taped->name, plain->name);
    cr_assert_eq(!taped->assign, !plain->assign);
    cr_assert_eq(!taped->load_profile, !plain->load_profile);
    cr_assert_eq(!taped->save_profile, !plain->save_profile);
    const struct cox_sched_device devices[2] = {{true, 1, 1000}, {true, 2, 0}};
    struct cox_sched_view view = {
        .rows = 100, .row_alignment = 4, .device_count = 2, .devices = devices, .in_flight = 1, .pool = true};
    const struct cox_policy_options options = {0};
    void *states[2] = {calloc(1, plain->state_bytes(2)), calloc(1, taped->state_bytes(2))};
    cr_assert_eq(plain->init(states[0], &view, &options), COX_OK);
    cr_assert_eq(taped->init(states[1], &view, &options), COX_OK);
    for (uint64_t f = 0; f < 5; f++) {
        struct cox_split splits[2] = {{0}, {0}};
        view.frame = f;
        cr_assert_eq(plain->split(states[0], &view, &splits[0]), COX_OK);
        cr_assert_eq(taped->split(states[1], &view, &splits[1]), COX_OK);
        char texts[2][LAB_ANSWER_BYTES];
        for (int s = 0; s < 2; s++)
            lab_tape_split_text(&splits[s], COX_OK, 2, texts[s], sizeof texts[s]);
        cr_assert_str_eq(texts[0], texts[1]);
        for (uint32_t b = 0; b < splits[0].band_count; b++) {
            const struct cox_band *band = &splits[0].bands[b];
            struct cox_measurement m = {.frame = f,
                                        .device = band->device,
                                        .first_row = band->first_row,
                                        .rows = band->rows,
                                        .wall_ns = band->rows * (1000 + 500 * band->device)};
            plain->observe(states[0], &m);
            taped->observe(states[1], &m);
        }
        taped->observe_frame(states[1], &(struct cox_frame_measurement){.frame = f, .wall_ns = 5, .joules = 0.1});
        lab_store_write(store);
    }
    free(states[0]);
    free(states[1]);
    close_store(store);
    answers("SELECT count(*), max(call) FROM call", "21|20");
    answers("SELECT count(*) FROM call WHERE kind = 'observe' AND wall_ns > 0 AND rows > 0", "10");
    answers("SELECT * FROM call_view", "1|0|100|4|0|2|1|1|0");
    answers("SELECT count(*) FROM call_device", "2");
    answers("SELECT * FROM call_options", "1|NULL|0|0|0|0");
    answers("SELECT joules FROM call WHERE kind = 'frame'", "0.1");
}

/* A session has one policy state for each of its passes. */
Test(lab_store, a_tape_tells_the_pass_of_each_call)
{
    struct lab_store *store = open_store();
    lab_store_begin_run(store, &run_of_two);
    const struct cox_policy *taped = lab_session_tape(begin_policy(store), &policy_last_frame);
    const struct cox_sched_device devices[2] = {{true, 1, 0}, {true, 2, 0}};
    struct cox_sched_view views[2] = {{.rows = 100, .row_alignment = 4, .device_count = 2, .devices = devices},
                                      {.rows = 64, .row_alignment = 1, .device_count = 2, .devices = devices}};
    void *states[2];
    for (int p = 0; p < 2; p++) {
        states[p] = calloc(1, taped->state_bytes(2));
        cr_assert_eq(taped->init(states[p], &views[p], &(struct cox_policy_options){0}), COX_OK);
    }
    for (uint64_t f = 0; f < 3; f++)
        for (int p = 0; p < 2; p++) {
            struct cox_split split = {0};
            views[p].frame = f;
            cr_assert_eq(taped->split(states[p], &views[p], &split), COX_OK);
        }
    free(states[0]);
    free(states[1]);
    close_store(store);
    answers("SELECT group_concat(pass, '') FROM call", "01010101");
    cr_assert_str_eq(ask("SELECT group_concat(call || ':' || rows || ':' || granule, ' ') FROM call_view"),
                     "0:100:4 1:64:1", "only changes of a pass are written");
    answers("SELECT count(*) FROM call_device", "4");
    cr_assert_str_eq(ask("SELECT count(*) FROM call_options"), "1", "the same for all");
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

Test(lab_store, refuses_what_is_no_database)
{
    char noise[5000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)(i * 131 % 251);
    const size_t sizes[] = {1, 15, 16, 99, 512, 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        write_file(path, noise, sizes[i]);
        refuse(path, "not an SQLite database");
    }
}

Test(lab_store, refuses_databases_of_others_and_leaves_them_as_they_are)
{
    run_sql("CREATE TABLE precious(x); INSERT INTO precious VALUES (1)");
    refuse(path, "another program");
    run_sql("PRAGMA application_id = 1196444487; PRAGMA user_version = 1");
    refuse(path, "another program");
    sqlite3 *db = NULL;
    sqlite3_open(path, &db);
    cr_assert_eq(sqlite3_exec(db, "SELECT x FROM precious", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_neq(sqlite3_exec(db, "SELECT * FROM run", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

Test(lab_store, refuses_other_schemas_but_not_added_views)
{
    static const struct {
        const char *sql, *words; /* NULL: not refused */
    } steps[] = {{"PRAGMA user_version = 2", "version 2; this program supports version 1"},
                 {"PRAGMA user_version = 0", "version 0; this program supports version 1"},
                 {"PRAGMA user_version = 1; CREATE VIEW mine AS SELECT * FROM frame", NULL},
                 {"ALTER TABLE shadow ADD COLUMN colour", "'shadow' is different from schema.sql"},
                 {"DROP TABLE shadow", "'shadow' is missing"}};
    make_one();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        run_sql(steps[i].sql);
        if (steps[i].words)
            refuse(path, steps[i].words);
        else
            close_store(open_store());
    }
}

Test(lab_store, two_that_take_turns_record_runs_of_their_own)
{
    struct lab_store *first = open_store(), *second = NULL;
    const struct lab_store_run run = {
        .source = "devices", .kernel = "work", .columns = 1, .rows = 8, .row_alignment = 1};
    cr_assert(lab_store_open_beside(path, &second, why, sizeof why), "%s", why);
    cr_assert_eq(lab_store_begin_run(first, &run), 1);
    lab_store_setting(first, "reserve", "on");
    lab_store_setting(first, "reserve", "off");
    lab_store_commit(first);
    cr_assert_eq(lab_store_begin_run(second, &run), 2);
    lab_store_setting(second, "reserve", "on");
    lab_store_commit(second);
    lab_store_setting(first, "ratio", "3");
    lab_store_finish_run(first);
    close_store(second);
    close_store(first);
    answers("SELECT group_concat(run || name || value, ' ') FROM setting WHERE name IN ('ratio', 'reserve')",
            "1ratio3 1reserveoff 2reserveon");
}

Test(lab_store, refuses_damaged_databases)
{
    make_one();
    struct stat about;
    cr_assert_eq(stat(path, &about), 0);
    cr_assert_eq(truncate(path, about.st_size / 2), 0);
    refuse(path, "damaged");
    remove(path);
    make_one();
    int file = open(path, O_WRONLY);
    char zeros[4096] = {0};
    for (off_t page = 1; page < about.st_size / 4096; page++)
        cr_assert_eq(pwrite(file, zeros, sizeof zeros, page * 4096), (ssize_t)sizeof zeros);
    close(file);
    refuse(path, "damaged");
}

Test(lab_store, refuses_folders_links_pipes_and_nothing)
{
    char other[160];
    make_one();
    refuse(folder, "directory");
    refuse("", "the file name is empty");
    snprintf(other, sizeof other, "%s/link.db", folder);
    cr_assert_eq(symlink(path, other), 0);
    refuse_to_record(other, "symbolic link");
    read_it(other, "reading follows it");
    snprintf(other, sizeof other, "%s/pipe", folder);
    cr_assert_eq(mkfifo(other, 0600), 0);
    refuse(other, "not a regular file");
    snprintf(other, sizeof other, "%s/none/session.db", folder);
    refuse(other, "No such file");
    snprintf(other, sizeof other, "%s/none.db", folder);
    refuse_to_read(other, "No such file");
    cr_assert_neq(access(other, F_OK), 0, "reading makes no file");
}

/* SQLite would delete the file that such a journal names. */
Test(lab_store, refuses_a_journal_that_names_another_file)
{
    static const unsigned char end[] = {'f', 'i',  'l',  'e',  0,    0,    0,    4,    0,    0,
                                        1,   0xa0, 0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    char journal[160];
    make_one();
    snprintf(journal, sizeof journal, "%s-journal", path);
    write_file(journal, end, sizeof end);
    refuse_to_record(path, "names another file");
    write_file(journal, end, sizeof end - 1);
    close_store(open_store());
    unlink(journal);
    cr_assert_eq(symlink("/dev/zero", journal), 0);
    refuse_to_record(path, "not a regular file");
}

Test(lab_store, a_link_in_the_folder_part_is_no_link)
{
    char link[160];
    snprintf(link, sizeof link, "%s/folder", folder);
    cr_assert_eq(symlink(folder, link), 0);
    snprintf(path, sizeof path, "%s/folder/session.db", folder);
    make_one();
    answers("SELECT count(*) FROM frame", "500");
}

Test(lab_store, refuses_what_cannot_be_written_but_reads_it)
{
    enum { NOBODY = 65534 };
    bool superuser = geteuid() == 0; /* root may write everywhere */
    make_one();
    cr_assert_eq(chmod(path, 0400), 0);
    cr_assert_eq(chmod(folder, 0500), 0);
    if (superuser) {
        cr_assert(chown(path, NOBODY, NOBODY) == 0 && chown(folder, NOBODY, NOBODY) == 0);
        cr_assert_eq(seteuid(NOBODY), 0);
    }
    refuse_to_record(path, "cannot write to its folder");
    answers("SELECT count(*) FROM frame", "500");
    snprintf(path, sizeof path, "%s/new.db", folder);
    refuse_to_record(path, "ermission denied");
    if (superuser)
        cr_assert_eq(seteuid(0), 0);
}

static int no_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return us;
}

/* SQLite retries for several seconds. Here its sleep returns at once. */
Test(lab_store, refuses_a_file_that_another_process_or_program_is_writing)
{
    make_one();
    sqlite3 *db = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "PRAGMA journal_mode = WAL; BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_vfs_find(NULL)->xSleep = no_sleep;
    refuse_to_record(path, "another process is writing to it");
    sqlite3_close(db);
    struct lab_store *first = open_store();
    refuse_to_record(path, "another process is recording to it");
    close_store(first);
    close_store(open_store());
}

Test(lab_store, an_empty_file_is_a_new_database)
{
    write_file(path, "", 0);
    refuse_to_read(path, "nothing is recorded");
    make_one();
    answers("SELECT count(*) FROM frame", "500");
}
