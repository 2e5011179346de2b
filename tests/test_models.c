/* Memory across runs: the database of device models, and when sessions use it.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fake_rig.h"
#include "models.h"
#include "scratch.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef COX_HAVE_SQLITE
#include <sqlite3.h>
#endif

static char base[64];  /* a fresh directory for each test */
static char dir[96];   /* the cache in it, */
static char path[160]; /* the database in that */
static char last_line[1200];
static int lines, warnings;

static void take_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    lines++;
    warnings += level <= COX_LOG_WARN;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static const struct cox__log logger = {.fn = take_line, .level = COX_LOG_INFO};

static void setup(void)
{
    umask(022);
    strcpy(base, "/tmp/cox-test-models-XXXXXX");
    cr_assert_not_null(mkdtemp(base));
    snprintf(dir, sizeof dir, "%s/a/cache", base);
    snprintf(path, sizeof path, "%s/" COX__MODELS_FILE, dir);
    lines = warnings = 0;
    last_line[0] = '\0';
}

static void teardown(void)
{
    scratch_remove(base);
}

TestSuite(models, .init = setup, .fini = teardown, .timeout = 120);

static bool exists(const char *name)
{
    struct stat st;
    return lstat(name, &st) == 0;
}

/* ---- entries ---- */

static const struct cox_device_model known[2] = {
    {.frames = 100, .fixed_ns = 60e3, .launch_ns = 20e3, .ns_per_row = 18e3, .solo_ns = 19e6, .share = 0.34},
    {.frames = 101, .fixed_ns = 250e3, .launch_ns = 0, .ns_per_row = 9e3, .solo_ns = 0, .share = 0.66},
};

static struct cox__models_entry entry_of(uint32_t number)
{
    struct cox__models_entry entry = {.policy = "adaptive",
                                      .kernels = "tonemap",
                                      .rows = 1080,
                                      .columns = 1920,
                                      .device_count = 2,
                                      .devices = {{"platform:one", "1.2", 4}, {"platform:two", "3", 16}}};
    memcpy(entry.key, &number, sizeof number);
    return entry;
}

static enum cox__models_found load(uint32_t number, struct cox_device_model *models)
{
    struct cox__models_entry entry = entry_of(number);
    return cox__models_load(dir, &entry, models, &logger);
}

static void store(uint32_t number, const struct cox_device_model *models)
{
    struct cox__models_entry entry = entry_of(number);
    cox__models_store(dir, &entry, 1000, models, &logger);
}

/* ---- sessions ---- */

/* A policy that knows each device's nanoseconds per row from its last band, and nothing but equal shares before. */
struct learner {
    double ns_per_row[COX_DEVICES_MAX];
    bool recalled;
};

static size_t learner_bytes(uint32_t device_count)
{
    (void)device_count;
    return sizeof(struct learner);
}

static cox_status learner_init(void *state, const struct cox_sched_view *view, const struct cox_policy_options *options)
{
    (void)view, (void)options;
    struct learner *learner = state;
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        learner->ns_per_row[d] = 1;
    return COX_OK;
}

static cox_status learner_split(void *state, const struct cox_sched_view *view, struct cox_split *out)
{
    struct learner *learner = state;
    struct cox_cost costs[COX_DEVICES_MAX];
    uint32_t rows[COX_DEVICES_MAX], next = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        costs[d] = (struct cox_cost){.usable = view->devices[d].usable, .ns_per_row = learner->ns_per_row[d]};
    if (cox_waterfill(view->rows, view->granule, view->min_band_rows, costs, view->device_count, rows) < 0)
        return COX_E_INVALID;
    for (uint32_t d = 0; d < view->device_count; d++) {
        if (rows[d] == 0)
            continue;
        out->bands[out->band_count++] = (struct cox_band){d, next, rows[d]};
        next += rows[d];
    }
    out->reason = view->frame == 0 && learner->recalled ? COX_REASON_RECALLED : COX_REASON_BALANCED;
    return COX_OK;
}

static void learner_observe(void *state, const struct cox_measurement *measurement)
{
    struct learner *learner = state;
    learner->ns_per_row[measurement->device] = (double)measurement->wall_ns / measurement->rows;
}

static void learner_recall(void *state, const struct cox_sched_view *view, const struct cox_device_model *models)
{
    struct learner *learner = state;
    for (uint32_t d = 0; d < view->device_count; d++)
        learner->ns_per_row[d] = models[d].ns_per_row;
    learner->recalled = true;
}

static void learner_models(const void *state, const struct cox_sched_view *view, struct cox_device_model *models)
{
    const struct learner *learner = state;
    double speeds = 0;
    for (uint32_t d = 0; d < view->device_count; d++)
        speeds += 1 / learner->ns_per_row[d];
    for (uint32_t d = 0; d < view->device_count; d++)
        models[d] = (struct cox_device_model){.frames = (double)view->frame,
                                              .ns_per_row = learner->ns_per_row[d],
                                              .share = 1 / learner->ns_per_row[d] / speeds};
}

static const struct cox_policy learner = {.name = "learner",
                                          .state_bytes = learner_bytes,
                                          .init = learner_init,
                                          .split = learner_split,
                                          .observe = learner_observe,
                                          .recall = learner_recall,
                                          .models = learner_models};

static const struct fake_params trio = {
    .device_count = 3,
    .devices = {{.name = "a", .ns_per_row = 3e3}, {.name = "b", .ns_per_row = 1e3}, {.name = "c", .ns_per_row = 6e3}}};

/* How a session is to differ from the one that was kept. */
struct way {
    const char *what;
    struct fake_params devices;
    struct cox_session_params params;
    uint32_t rows, columns;
    size_t pitch;
    const char *source, *options, *kernel;
    uint32_t local_columns;
    uint32_t frames; /* to run; 0 = 40 */
    bool no_cache;
};

static struct way usual(void)
{
    return (struct way){
        .devices = trio, .params = {.custom_policy = &learner}, .rows = 100, .columns = 16, .pitch = 16};
}

struct outcome {
    bool recalled;
    enum cox_reason first_reason;
    uint32_t first[FAKE_DEVICES_MAX]; /* rows by device, frame 0 */
    uint32_t last[FAKE_DEVICES_MAX];
    uint32_t warmups;
    uint64_t solo_ns[FAKE_DEVICES_MAX];
    char log[4000];
};

/* One session in a runtime of its own. */
static struct outcome run_session(const struct way *way)
{
    struct outcome outcome = {0};
    struct rig *rig = rig_new_in(&way->devices, way->no_cache ? NULL : dir);
    struct rig_frames *frames = rig_frames_new(rig, way->rows, way->columns, way->pitch, 4);
    const struct cox_binding bindings[] = {
        {.name = "in", .contract = COX_ROWS, .access = COX_READ, .pitch_bytes = way->pitch},
        {.name = "out", .contract = COX_ROWS, .access = COX_WRITE, .pitch_bytes = way->pitch},
    };
    const struct cox_variant variant = {
        .source = way->source ? way->source : "fake", .options = way->options, .local_columns = way->local_columns};
    struct cox_stage stage = rig_stage_map;
    stage.columns = way->columns;
    stage.variants = &variant;
    struct cox_session_params params = way->params;
    params.rows = way->rows;
    params.binding_count = 2;
    params.bindings = bindings;
    params.stage_count = 1;
    params.stages = &stage;
    params.params_bytes = sizeof(struct rig_params);
    params.report = rig_report;
    params.report_user = rig;
    cox_session *session;
    cr_assert_eq(cox_session_create(rig_runtime(rig), &params, &session), COX_OK, "%s", rig_log(rig));
    struct cox_session_info info;
    cox_session_info(session, &info);
    outcome.recalled = info.recalled;
    for (uint32_t i = 0; i < (way->frames ? way->frames : 40); i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_wait(session);
    cox_session_info(session, &info);
    for (uint32_t d = 0; d < info.device_count; d++)
        outcome.solo_ns[d] = info.devices[d].solo_ns;
    cox_session_destroy(&session);
    for (uint32_t r = 0; r < rig_report_count(rig); r++) {
        const struct cox_frame_report *report = &rig_report_at(rig, r)->frame;
        outcome.warmups += report->warmup;
        if (report->warmup || report->shadow)
            continue;
        if (report->index == 0)
            outcome.first_reason = report->reason;
        memset(outcome.last, 0, sizeof outcome.last);
        for (uint32_t b = 0; b < report->band_count; b++)
            outcome.last[report->bands[b].device] += report->bands[b].rows;
        if (report->index == 0)
            memcpy(outcome.first, outcome.last, sizeof outcome.first);
    }
    snprintf(outcome.log, sizeof outcome.log, "%s", rig_log(rig));
    rig_frames_free(&frames);
    cr_assert_str_empty(rig_end(&rig));
    return outcome;
}

Test(models, are_not_kept_without_a_cache_directory)
{
    struct way way = usual();
    way.no_cache = true;
    run_session(&way);
    cr_assert_not(run_session(&way).recalled);
    cr_assert_not(exists(dir));
}

Test(models, of_nonsense_are_implausible)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, -1, 1e300};
    cr_assert(cox__models_plausible(known, 2));
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++)
        for (int field = 0; field < 6; field++) {
            struct cox_device_model models[2];
            memcpy(models, known, sizeof known);
            double *const fields[] = {&models[1].frames,     &models[1].fixed_ns, &models[1].launch_ns,
                                      &models[1].ns_per_row, &models[1].solo_ns,  &models[1].share};
            *fields[field] = bad[b];
            cr_assert_not(cox__models_plausible(models, 2), "field %d, %g", field, bad[b]);
        }
    struct cox_device_model models[2];
    memcpy(models, known, sizeof known);
    models[1].ns_per_row = 0;
    cr_assert_not(cox__models_plausible(models, 2));
    memcpy(models, known, sizeof known);
    models[0].share = 0.1;
    cr_assert(cox__models_plausible(models, 2), "the rest is handed out on demand");
    models[0].share = 0.4;
    cr_assert_not(cox__models_plausible(models, 2), "shares are of one whole");
    models[0].share = models[1].share = 0;
    cr_assert(cox__models_plausible(models, 2), "everything is");
    memcpy(models, known, sizeof known);
    memset(models, 0, sizeof models);
    cr_assert_not(cox__models_plausible(models, 2), "nothing is known");
    models[1] = known[1];
    models[1].share = 1;
    cr_assert(cox__models_plausible(models, 2), "one device was left out and is not known");
}

/* The models are those of devices in that company. */
Test(models, let_adaptive_begin_with_the_devices_that_were_in_use)
{
    const struct cox_policy *policy = cox_policy_find("adaptive");
    const struct cox_sched_device devices[2] = {{.usable = true, .hint = 1}, {.usable = true, .hint = 1}};
    const struct cox_sched_view view = {
        .rows = 1080, .granule = 8, .device_count = 2, .devices = devices, .in_flight = 2};
    const struct cox_policy_options options = {0};
    struct cox_device_model models[2];
    for (int alone = 0; alone < 2; alone++) {
        struct cox_split split = {0};
        void *state = calloc(1, policy->state_bytes(2));
        cr_assert_eq(policy->init(state, &view, &options), COX_OK);
        memcpy(models, known, sizeof known);
        models[0].share = alone ? 0 : 0.34;
        models[1].share = alone ? 1 : 0.66;
        models[1].solo_ns = 10e6;
        policy->recall(state, &view, models);
        cr_assert_eq(policy->split(state, &view, &split), COX_OK);
        cr_assert_eq(split.reason, COX_REASON_RECALLED);
        cr_assert_eq(split.band_count, alone ? 1 : 2);
        cr_assert_eq(split.bands[split.band_count - 1].device, 1);
        free(state);
    }
}

#ifndef COX_HAVE_SQLITE

Test(models, are_not_kept_without_sqlite)
{
    struct cox_device_model models[2];
    struct way way = usual();
    store(1, known);
    cr_assert_eq(load(1, models), COX__MODELS_NONE);
    run_session(&way);
    cr_assert_not(run_session(&way).recalled);
    cr_assert_not(exists(path));
    cr_assert_eq(warnings, 0);
}

#else

static void execute(const char *sql)
{
    sqlite3 *db;
    char *why = NULL;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &why), SQLITE_OK, "%s: %s", sql, why);
    sqlite3_close(db);
}

static int64_t number_of(const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *statement;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return number;
}

static size_t read_file(unsigned char *data, size_t size)
{
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(data, 1, size, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static void write_file(const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(data, 1, bytes, file), bytes);
    fclose(file);
}

Test(models, come_back_as_they_were_stored)
{
    struct cox_device_model models[2];
    struct stat st;
    store(7, known);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    for (int d = 0; d < 2; d++) {
        cr_assert_eq(models[d].frames, known[d].frames);
        cr_assert_eq(models[d].fixed_ns, known[d].fixed_ns);
        cr_assert_eq(models[d].launch_ns, known[d].launch_ns);
        cr_assert_eq(models[d].ns_per_row, known[d].ns_per_row);
        cr_assert_eq(models[d].solo_ns, known[d].solo_ns);
        cr_assert_eq(models[d].share, known[d].share);
    }
    cr_assert_eq(load(8, models), COX__MODELS_NONE);
    cr_assert_eq(lines, 0, "%s", last_line);
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0600);
    cr_assert_eq(stat(dir, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0700);
}

Test(models, leave_nothing_beside_the_database)
{
    struct cox_device_model models[2];
    store(7, known);
    load(7, models);
    DIR *list = opendir(dir);
    int files = 0;
    for (struct dirent *file; (file = readdir(list));)
        files += file->d_name[0] != '.';
    closedir(list);
    cr_assert_eq(files, 1);
}

Test(models, are_absent_where_there_is_no_directory_or_no_file)
{
    struct cox_device_model models[2];
    cr_assert_eq(load(7, models), COX__MODELS_NONE);
    cr_assert_not(exists(dir), "reading makes nothing");
    store(7, known);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(load(7, models), COX__MODELS_NONE);
    cr_assert_not(exists(path));
    cr_assert_eq(lines, 0);
}

Test(models, of_many_frames_replace_and_of_few_are_mixed_in)
{
    struct cox_device_model models[2], others[2];
    struct cox__models_entry entry = entry_of(7);
    memcpy(others, known, sizeof known);
    others[0].ns_per_row = 36e3;
    others[0].share = 0.2;
    others[1].share = 0.8;
    others[1].solo_ns = 5e6;
    store(7, known);
    cox__models_store(dir, &entry, 16, others, &logger); /* a quarter of what is enough */
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    cr_assert_float_eq(models[0].ns_per_row, 18e3 + 0.25 * 18e3, 1);
    cr_assert_float_eq(models[0].share, 0.2, 1e-9);
    cr_assert_float_eq(models[1].solo_ns, 5e6, 1, "nothing was known of it");
    others[0].frames = others[0].ns_per_row = 0; /* left out, and nothing was learnt of it */
    others[0].share = 0;
    others[1].share = 1;
    for (uint64_t many = 16; many <= 1600; many *= 100) {
        cox__models_store(dir, &entry, many, others, &logger);
        cr_assert_eq(load(7, models), COX__MODELS_FOUND);
        cr_assert_float_eq(models[0].ns_per_row, 18e3 + 0.25 * 18e3, 1);
        cr_assert_eq(models[0].share, 0);
    }
    store(7, known);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    cr_assert_eq(models[0].ns_per_row, 18e3);
    cr_assert_eq(number_of("SELECT count(*) FROM entry"), 1);
}

Test(models, that_are_implausible_are_not_stored)
{
    struct cox_device_model models[2];
    memcpy(models, known, sizeof known);
    models[1].ns_per_row = NAN;
    store(7, models);
    cr_assert_not(exists(path));
}

Test(models, that_somebody_changed_to_nonsense_are_ignored)
{
    static const char *const changes[] = {
        "UPDATE model SET ns_per_row = -1",
        "UPDATE model SET ns_per_row = 9e999",
        "UPDATE model SET fixed_ns = 1e300 WHERE place = 1",
        "UPDATE model SET launch_ns = 'soon'",
        "UPDATE model SET solo_ns = x'00'",
        "UPDATE model SET share = 0.9",
        "UPDATE model SET frames = -5",
        "UPDATE model SET frames = 0, share = 0",
        "UPDATE model SET place = place + 1 WHERE place = 1",
        "UPDATE model SET place = place - 1 WHERE place = 0",
        "DELETE FROM model WHERE place = 1",
        ("INSERT INTO model SELECT key, 2, device, driver, compute_units, frames, fixed_ns, launch_ns, ns_per_row,"
         " solo_ns, share FROM model WHERE place = 1"),
    };
    for (size_t c = 0; c < sizeof changes / sizeof *changes; c++) {
        struct cox_device_model models[2];
        store(7, known);
        cr_assert_eq(load(7, models), COX__MODELS_FOUND);
        execute(changes[c]);
        cr_assert_eq(load(7, models), COX__MODELS_NONE, "%s", changes[c]);
        cr_assert_eq(warnings, 0);
        store(7, known); /* begins anew */
        cr_assert_eq(load(7, models), COX__MODELS_FOUND, "%s", changes[c]);
    }
}

Test(models, beyond_so_many_entries_the_oldest_go)
{
    struct cox_device_model models[2];
    for (uint32_t i = 0; i < COX__MODELS_ENTRIES_MAX; i++)
        store(i, known);
    store(0, known); /* not the oldest any more */
    for (uint32_t i = 0; i < 10; i++)
        store(COX__MODELS_ENTRIES_MAX + i, known);
    cr_assert_eq(number_of("SELECT count(*) FROM entry"), COX__MODELS_ENTRIES_MAX);
    cr_assert_eq(number_of("SELECT count(*) FROM model"), 2 * COX__MODELS_ENTRIES_MAX);
    cr_assert_eq(load(0, models), COX__MODELS_FOUND);
    for (uint32_t i = 1; i <= 10; i++)
        cr_assert_eq(load(i, models), COX__MODELS_NONE);
    cr_assert_eq(load(11, models), COX__MODELS_FOUND);
    struct stat st;
    cr_assert_eq(stat(path, &st), 0);
    cr_assert_lt(st.st_size, 1 << 20);
}

/* ---- files that are to be left alone ---- */

/* A writer dies after its first pages have reached the file: the journal has what was there. */
static void die_half_way(void)
{
    pid_t child = fork();
    if (child == 0) {
        sqlite3 *db;
        if (sqlite3_open(path, &db) != SQLITE_OK ||
            sqlite3_exec(
                db,
                "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN;"
                "UPDATE model SET ns_per_row = -1, device = device || 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx';"
                "DELETE FROM entry",
                NULL, NULL, NULL) != SQLITE_OK)
            _exit(1);
        _exit(0); /* without a word to the database */
    }
    int status;
    waitpid(child, &status, 0);
    cr_assert_eq(status, 0);
}

static void random_bytes(void)
{
    unsigned char data[9000];
    uint64_t seed = 5;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)rig_random(&seed);
    write_file(data, sizeof data);
}

static void a_text(void)
{
    write_file("all of this is mine\n", 20);
}

static void cut(void)
{
    unsigned char data[1 << 16];
    store(7, known);
    write_file(data, read_file(data, sizeof data) / 2);
}

static void another_programs(void)
{
    execute("CREATE TABLE model(key, place); CREATE TABLE entry(x); INSERT INTO entry VALUES(1)");
}

static void another_application_id(void)
{
    store(7, known);
    execute("PRAGMA application_id = 77");
}

static void another_version(void)
{
    store(7, known);
    execute("PRAGMA user_version = 2");
}

static void another_schema(void)
{
    store(7, known);
    execute("ALTER TABLE model RENAME COLUMN ns_per_row TO rows_per_ns");
}

/* Instead of the table, rows without end. */
static void a_view(void)
{
    store(7, known);
    execute("ALTER TABLE model RENAME TO mine; CREATE VIEW model AS WITH RECURSIVE count(n) AS"
            " (SELECT 1 UNION ALL SELECT n + 1 FROM count) SELECT key, place, device, driver, compute_units, frames,"
            " fixed_ns, launch_ns, ns_per_row, solo_ns, share FROM mine, count");
}

static void a_computed_column(void)
{
    store(7, known);
    execute("DROP TABLE model; CREATE TABLE model(key, place, device, driver, compute_units, frames, fixed_ns,"
            " launch_ns, ns_per_row, solo_ns, share AS (hex(zeroblob(100000000))))");
}

static void a_virtual_table(void)
{
    store(7, known);
    execute("PRAGMA writable_schema = ON; UPDATE sqlite_master SET rootpage = 0,"
            " sql = 'CREATE VIRTUAL TABLE model USING dbstat' WHERE name = 'model'");
}

static void a_trigger(void)
{
    store(7, known);
    execute("CREATE TRIGGER t BEFORE INSERT ON entry BEGIN DELETE FROM model; END");
}

static void a_table_more(void)
{
    store(7, known);
    execute("CREATE TABLE mine(x)");
}

static void a_table_less(void)
{
    store(7, known);
    execute("DROP TABLE model");
}

static void a_fifo_for_a_journal(void)
{
    char journal[200];
    store(7, known);
    snprintf(journal, sizeof journal, "%s-journal", path);
    cr_assert_eq(mkfifo(journal, 0600), 0);
}

static void a_link_for_a_journal(void)
{
    char journal[200];
    store(7, known);
    snprintf(journal, sizeof journal, "%s-journal", path);
    cr_assert_eq(symlink("/dev/zero", journal), 0);
}

static void a_link(void)
{
    char other[200];
    store(7, known);
    snprintf(other, sizeof other, "%s/other", base);
    cr_assert_eq(rename(path, other), 0);
    cr_assert_eq(symlink(other, path), 0);
}

static void a_dangling_link(void)
{
    char other[200];
    snprintf(other, sizeof other, "%s/other", base);
    cr_assert_eq(symlink(other, path), 0);
}

static void a_hard_link(void)
{
    char other[200];
    store(7, known);
    snprintf(other, sizeof other, "%s/other", base);
    cr_assert_eq(link(path, other), 0);
}

/* What a transaction over several databases leaves: SQLite would roll the journal back and delete the file that it names. */
static void a_journal_that_names_another_file(void)
{
    static const unsigned char lock_page[4] = {0, 4, 0, 1}; /* the page at 1 GiB, which holds nothing */
    static const unsigned char mark[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    char journal[200], other[200];
    for (uint32_t i = 0; i < 40; i++)
        store(i, known);
    die_half_way();
    snprintf(journal, sizeof journal, "%s-journal", path);
    snprintf(other, sizeof other, "%s/other", base);
    FILE *precious = fopen(other, "wb");
    cr_assert_not_null(precious);
    fclose(precious);
    FILE *file = fopen(journal, "ab");
    cr_assert_not_null(file);
    uint32_t length = (uint32_t)strlen(other), sum = 0;
    for (uint32_t i = 0; i < length; i++)
        sum += (unsigned char)other[i];
    const unsigned char numbers[8] = {(unsigned char)(length >> 24), (unsigned char)(length >> 16),
                                      (unsigned char)(length >> 8),  (unsigned char)length,
                                      (unsigned char)(sum >> 24),    (unsigned char)(sum >> 16),
                                      (unsigned char)(sum >> 8),     (unsigned char)sum};
    fwrite(lock_page, 1, sizeof lock_page, file);
    fwrite(other, 1, length, file);
    fwrite(numbers, 1, sizeof numbers, file);
    fwrite(mark, 1, sizeof mark, file);
    fclose(file);
}

static void a_directory(void)
{
    cr_assert_eq(mkdir(path, 0700), 0);
}

static void a_fifo(void)
{
    cr_assert_eq(mkfifo(path, 0600), 0);
}

static void writable_by_others(void)
{
    store(7, known);
    cr_assert_eq(chmod(path, 0666), 0);
}

static void too_large(void)
{
    store(7, known);
    cr_assert_eq(truncate(path, 17 << 20), 0);
}

static void forbidden(void)
{
    store(7, known);
    cr_assert_eq(chmod(path, 0), 0);
}

Test(models, files_that_are_not_ours_are_left_alone_with_one_line)
{
    static const struct {
        const char *name;
        void (*make)(void);
        bool root; /* means nothing to root */
    } files[] = {{"random bytes", random_bytes, false},
                 {"a text", a_text, false},
                 {"a file cut in half", cut, false},
                 {"another program's database", another_programs, false},
                 {"another application id", another_application_id, false},
                 {"another version", another_version, false},
                 {"another schema", another_schema, false},
                 {"a view", a_view, false},
                 {"a computed column", a_computed_column, false},
                 {"a virtual table", a_virtual_table, false},
                 {"a trigger", a_trigger, false},
                 {"a table more", a_table_more, false},
                 {"a table less", a_table_less, false},
                 {"a FIFO for a journal", a_fifo_for_a_journal, false},
                 {"a link for a journal", a_link_for_a_journal, false},
                 {"a journal that names another file", a_journal_that_names_another_file, false},
                 {"a link", a_link, false},
                 {"a hard link", a_hard_link, false},
                 {"a dangling link", a_dangling_link, false},
                 {"a directory", a_directory, false},
                 {"a FIFO", a_fifo, false},
                 {"writable by others", writable_by_others, false},
                 {"too large", too_large, false},
                 {"without permission", forbidden, true}};
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        unsigned char before[1 << 16], after[1 << 16];
        struct cox_device_model models[2];
        struct stat was, is;
        if (files[f].root && geteuid() == 0)
            continue;
        teardown();
        setup();
        char a[96];
        snprintf(a, sizeof a, "%s/a", base);
        cr_assert_eq(mkdir(a, 0700), 0);
        cr_assert_eq(mkdir(dir, 0700), 0);
        files[f].make();
        cr_assert_eq(lstat(path, &was), 0);
        bool readable = S_ISREG(was.st_mode) || S_ISLNK(was.st_mode);
        size_t bytes = readable ? read_file(before, sizeof before) : 0;
        lines = 0;
        cr_assert_eq(load(7, models), COX__MODELS_UNUSABLE, "%s", files[f].name);
        cr_assert_eq(lines, 1, "%s: %d lines", files[f].name, lines);
        cr_assert_eq(warnings, 1);
        cr_assert_not_null(strstr(last_line, path), "%s", last_line);
        cr_assert_not_null(strstr(last_line, "Remove it"), "%s", last_line);

        store(7, known); /* even so */
        struct way way = usual();
        struct outcome outcome = run_session(&way);
        cr_assert_not(outcome.recalled);
        char *line = strstr(outcome.log, "device models:");
        cr_assert_not_null(line, "%s", outcome.log);
        cr_assert_null(strstr(line + 1, "device models:"), "%s: more than one line: %s", files[f].name, outcome.log);

        cr_assert_eq(lstat(path, &is), 0);
        cr_assert_eq(is.st_ino, was.st_ino, "%s", files[f].name);
        cr_assert_eq(is.st_mode, was.st_mode);
        cr_assert_eq(is.st_size, was.st_size);
        if (readable) {
            cr_assert_eq(read_file(after, sizeof after), bytes);
            cr_assert_arr_eq(before, after, bytes, "%s was changed", files[f].name);
        }
        char other[200];
        snprintf(other, sizeof other, "%s/other", base);
        if (files[f].make == a_dangling_link)
            cr_assert_not(exists(other));
        if (files[f].make == a_journal_that_names_another_file)
            cr_assert(exists(other));
    }
}

/* As many as a file may hold are gone through; of far more the work ends somewhere. */
Test(models, of_a_file_that_is_full_are_kept_and_of_one_that_is_stuffed_not)
{
    struct cox_device_model models[2];
    store(7, known);
    execute("WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 256)"
            " INSERT INTO entry SELECT randomblob(32), 1, 'adaptive', 'tonemap', 1, 1 FROM count;"
            "WITH RECURSIVE count(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM count WHERE n < 31)"
            " INSERT INTO model SELECT key, n, 'device', 'driver', 1, 1, 1, 1, 1, 1, 0 FROM entry, count"
            " WHERE written_at = 1");
    store(8, known);
    cr_assert_eq(load(8, models), COX__MODELS_FOUND, "%s", last_line);
    cr_assert_eq(lines, 0, "%s", last_line);
    execute("WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 100000)"
            " INSERT INTO entry SELECT randomblob(32), 1, '', '', 1, 1 FROM count");
    cr_assert_eq(load(8, models), COX__MODELS_FOUND, "%s", last_line);
    store(9, known);
    cr_assert_eq(warnings, 1, "%s", last_line);
    cr_assert_not_null(strstr(last_line, "more than sessions keep"), "%s", last_line);
    cr_assert_eq(number_of("SELECT count(*) FROM entry WHERE written_at = 1"), 100254);
}

Test(models, in_a_directory_that_others_may_write_to_are_not_used)
{
    struct cox_device_model models[2];
    store(7, known);
    cr_assert_eq(chmod(dir, 0777), 0);
    cr_assert_eq(load(7, models), COX__MODELS_UNUSABLE);
    cr_assert_eq(lines, 1);
}

Test(models, are_found_behind_a_link_on_the_way)
{
    struct cox_device_model models[2];
    char real[96], way[96];
    store(7, known);
    snprintf(real, sizeof real, "%s/a", base);
    snprintf(way, sizeof way, "%s/b", base);
    cr_assert_eq(symlink(real, way), 0);
    snprintf(dir, sizeof dir, "%s/b/cache", base);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND, "%s", last_line);
}

Test(models, that_cannot_be_written_can_be_read)
{
    struct cox_device_model models[2];
    if (geteuid() == 0) {
        teardown(); /* which a skipped test goes without */
        cr_skip_test("root may write everywhere");
    }
    store(7, known);
    cr_assert_eq(chmod(path, 0400), 0);
    cr_assert_eq(chmod(dir, 0500), 0);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    store(7, known);
    cr_assert_eq(warnings, 0, "%s", last_line);
    cr_assert_eq(chmod(dir, 0700), 0);
}

Test(models, damage_within_the_file_is_found_before_writing)
{
    struct cox_device_model models[2];
    unsigned char data[1 << 18], after[1 << 18];
    for (uint32_t i = 0; i < 100; i++)
        store(i, known);
    size_t bytes = read_file(data, sizeof data);
    cr_assert_gt(bytes, 5 * 4096);
    memset(data + 4 * 4096, 0x5a, 4096); /* some page of a tree */
    write_file(data, bytes);
    store(500, known);
    cr_assert_eq(warnings, 1);
    cr_assert_not_null(strstr(last_line, "is damaged"), "%s", last_line);
    cr_assert_eq(read_file(after, sizeof after), bytes);
    cr_assert_arr_eq(data, after, bytes);
    for (uint32_t i = 0; i < 100; i++) /* none of them is fatal */
        load(i, models);
}

Test(models, an_empty_file_is_as_good_as_none)
{
    struct cox_device_model models[2];
    store(7, known);
    cr_assert_eq(truncate(path, 0), 0);
    cr_assert_eq(load(7, models), COX__MODELS_NONE);
    store(7, known);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    cr_assert_eq(lines, 0);
}

Test(models, of_a_locked_database_are_done_without)
{
    struct cox_device_model models[2];
    sqlite3 *db;
    store(7, known);
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    cr_assert_eq(load(7, models), COX__MODELS_NONE);
    cr_assert_eq(lines, 1);
    store(8, known);
    cr_assert_eq(lines, 2);
    cr_assert_eq(warnings, 0);
    cr_assert_eq(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    cr_assert_eq(load(8, models), COX__MODELS_NONE);
}

Test(models, survive_a_writer_that_died_half_way)
{
    struct cox_device_model models[2];
    for (uint32_t i = 0; i < 100; i++)
        store(i, known);
    die_half_way();
    char journal[200];
    snprintf(journal, sizeof journal, "%s-journal", path);
    cr_assert(exists(journal), "the test's writer leaves a journal");
    cr_assert_eq(load(7, models), COX__MODELS_NONE);
    cr_assert_eq(warnings, 0, "%s", last_line);
    store(500, known);
    cr_assert_not(exists(journal));
    cr_assert_eq(load(7, models), COX__MODELS_FOUND);
    cr_assert_eq(models[0].ns_per_row, known[0].ns_per_row);
    cr_assert_eq(load(500, models), COX__MODELS_FOUND);
}

/* ---- sessions ---- */

Test(models, let_the_second_session_begin_at_the_good_split)
{
    struct way way = usual();
    struct outcome first = run_session(&way);
    cr_assert_not(first.recalled);
    cr_assert_eq(first.first[0], first.first[2] + 1, "equal shares at first: %u %u %u", first.first[0], first.first[1],
                 first.first[2]);
    struct outcome second = run_session(&way);
    cr_assert(second.recalled, "%s", second.log);
    cr_assert_eq(second.first_reason, COX_REASON_RECALLED);
    cr_assert_arr_eq(second.first, first.last, sizeof first.last);
    cr_assert_arr_eq(second.last, first.last, sizeof first.last);
}

/* With jitter, so that there is something to learn; rows handed out on demand count for who did them. */
Test(models, let_adaptive_begin_where_it_ended)
{
    struct way way = usual();
    way.params = (struct cox_session_params){.policy = "adaptive", .in_flight = 1};
    way.rows = 1000;
    way.devices.device_count = 2;
    for (uint32_t d = 0; d < 2; d++) {
        way.devices.devices[d].fixed_ns = 2e3;
        way.devices.devices[d].jitter = 0.02;
    }
    struct outcome first = run_session(&way);
    cr_assert_not(first.recalled);
    struct outcome second = run_session(&way);
    cr_assert(second.recalled, "%s", second.log);
    cr_assert_eq(second.first_reason, COX_REASON_RECALLED);
    for (int d = 0; d < 2; d++)
        cr_assert_lt(abs((int)second.first[d] - (int)first.last[d]), 60, "device %d: %u rows at first, %u at last", d,
                     second.first[d], first.last[d]);
}

Test(models, let_the_second_session_warm_up_with_one_run_for_each_device)
{
    struct way way = usual();
    struct outcome first = run_session(&way);
    cr_assert_gt(first.warmups, 6);
    struct outcome second = run_session(&way);
    cr_assert_eq(second.warmups, 3);
    for (int d = 0; d < 3; d++)
        cr_assert_eq(second.solo_ns[d], first.solo_ns[d]);
}

Test(models, that_hold_no_longer_do_not_hide_what_the_warm_up_shows)
{
    struct way way = usual();
    way.devices.devices[1].inside_submit = true; /* that asks for a timed run */
    struct outcome first = run_session(&way);
    way.devices.devices[1].ns_per_row *= 4; /* the same device, busy with something else */
    struct outcome second = run_session(&way);
    cr_assert(second.recalled);
    cr_assert_eq(second.warmups, 4);
    cr_assert_eq(second.solo_ns[0], first.solo_ns[0]);
    cr_assert_eq(second.solo_ns[1], 4 * first.solo_ns[1]);
}

Test(models, are_the_same_whatever_the_order_of_the_devices)
{
    static const uint32_t backwards[] = {2, 1, 0};
    struct way way = usual();
    struct outcome first = run_session(&way);
    way.params.devices = backwards;
    way.params.device_count = 3;
    struct outcome second = run_session(&way);
    cr_assert(second.recalled);
    for (int d = 0; d < 3; d++)
        cr_assert_eq(second.first[d], first.last[2 - d]);
}

Test(models, are_of_one_kind_of_session_only)
{
    static const uint32_t two[] = {0, 1}, others[] = {0, 2};
    struct cox_policy namesake = learner;
    namesake.name = "another";
    struct way ways[16], way = usual();
    size_t count = 0;
#define WAY(text, change)      \
    do {                       \
        way = usual();         \
        change;                \
        way.what = (text);     \
        ways[count++] = (way); \
    } while (0)
    WAY("rows", way.rows = 104);
    WAY("pitch", way.pitch = 32);
    WAY("columns", way.columns = 12);
    WAY("source", way.source = "another");
    WAY("options", way.options = "-DX");
    WAY("local size", way.local_columns = 4);
    WAY("driver", way.devices.devices[1].driver = "2");
    WAY("compute units", way.devices.devices[1].compute_units = 77);
    WAY("memory mode", way.devices.devices[1].mode = COX_MODE_STAGED);
    WAY("type", way.devices.devices[1].type = COX_DEVICE_GPU);
    WAY("policy", way.params.custom_policy = &namesake);
    WAY("objective", way.params.policy_options.objective = COX_OBJECTIVE_ENERGY);
    WAY("fewer devices", (way.params.devices = two, way.params.device_count = 2));
    WAY("another device", (way.params.devices = others, way.params.device_count = 2));
    WAY("shortest band", way.params.min_band_rows = 2);
#undef WAY
    way = usual();
    run_session(&way);
    for (size_t w = 0; w < count; w++) {
        cr_assert_not(run_session(&ways[w]).recalled, "another %s", ways[w].what);
        cr_assert(run_session(&ways[w]).recalled, "the same %s", ways[w].what);
    }
    way = usual();
    cr_assert(run_session(&way).recalled);
}

Test(models, are_neither_read_nor_kept_with_no_memory)
{
    struct way way = usual();
    way.params.no_memory = true;
    run_session(&way);
    cr_assert_not(exists(path));
    way.params.no_memory = false;
    run_session(&way);
    cr_assert_eq(number_of("SELECT count(*) FROM entry"), 1);
    execute("UPDATE entry SET written_at = 1");
    way.params.no_memory = true;
    cr_assert_not(run_session(&way).recalled);
    cr_assert_eq(number_of("SELECT written_at FROM entry"), 1);
}

Test(models, are_kept_of_policies_that_tell_them)
{
    struct cox_policy deaf = learner, mute = learner;
    deaf.recall = NULL;
    mute.models = NULL;
    struct way way = usual();
    way.params.custom_policy = &deaf;
    run_session(&way);
    way.params.custom_policy = &mute;
    run_session(&way);
    cr_assert_not(exists(path));
}

Test(models, of_a_short_session_are_not_kept)
{
    struct way way = usual();
    way.frames = 7;
    run_session(&way);
    cr_assert_not(exists(path));
    way.frames = 8;
    run_session(&way);
    cr_assert(exists(path));
}

Test(models, of_a_session_that_lost_a_device_are_not_kept)
{
    struct rig *rig = rig_new_in(&trio, dir);
    struct rig_frames *frames = rig_frames_new(rig, 100, 16, 16, 4);
    cox_session *session;
    cr_assert_eq(rig_map_session(frames, COX_SESSION_PARAMS(.custom_policy = &learner), &session), COX_OK);
    for (uint32_t i = 0; i < 20; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_wait(session);
    fake_script(rig_fake(rig), &(struct fake_fault){.kind = FAKE_DEVICE_DIES, .device = 2});
    for (uint32_t i = 20; i < 40; i++)
        cr_assert_eq(rig_submit(frames, session, i, false), COX_OK);
    cox_session_destroy(&session);
    rig_frames_free(&frames);
    cr_assert_str_empty(rig_end(&rig));
    cr_assert_not(exists(path));
}

Test(models, tell_readers_what_they_are_of)
{
    struct way way = usual();
    way.devices.devices[1].compute_units = 9;
    run_session(&way);
    cr_assert_eq(number_of("SELECT rows FROM entry WHERE policy = 'learner' AND kernels = 'rig_map'"), 100);
    cr_assert_eq(number_of("SELECT columns FROM entry"), 16);
    cr_assert_eq(number_of("SELECT compute_units FROM model WHERE device = 'fake:1' AND driver = '1'"), 9);
    cr_assert_eq(number_of("SELECT count(*) FROM model"), 3);
    cr_assert_eq(number_of("SELECT min(solo_ns) FROM model"), 100000, "from the warm-up");
    cr_assert_eq(number_of("PRAGMA application_id"), 0x434F584D);
    cr_assert_eq(number_of("PRAGMA user_version"), 1);
}

#endif
