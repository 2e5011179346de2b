/* Replays of recorded sessions find the known devices, give the known results, and make the same decisions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/policies/registry.h"
#include "lab/replay/world.h"
#include "support/values.h"
#include "unit/programs/lab_recorded.h"

enum { FRAMES = 300, FRAMES_MAX = 2000 };

static struct lab_replay *replay;

static void end_replay(void)
{
    lab_replay_destroy(&replay);
    remove_path();
}

TestSuite(lab_replay, .init = make_path, .fini = end_replay);

static const struct lab_replay_session *session_of(const char *policy)
{
    for (size_t s = 0; s < data->session_count; s++)
        if (data->sessions[s].kind == LAB_REPLAY_POLICY && strcmp(data->sessions[s].policy, policy) == 0)
            return &data->sessions[s];
    cr_assert_fail("no session of %s", policy);
    return NULL;
}

static double recorded_mean(const struct lab_replay_session *session, uint64_t first, uint64_t end)
{
    double sum = 0, count = 0;
    for (size_t f = 0; f < session->frame_count; f++)
        if (session->frames[f].frame >= first && session->frames[f].frame < end) {
            sum += session->frames[f].period_ns;
            count++;
        }
    return sum / count;
}

/* Mean time of the frames `first` to `end` - 1 if `policy` replays the recorded session of `base`. */
static double replayed_mean(const char *base, const char *policy, uint64_t first, uint64_t end)
{
    static struct lab_sim_frame frames[FRAMES_MAX];
    struct lab_replay *played = NULL;
    struct lab_sim_options options;
    cr_assert(lab_replay_create(data, session_of(base), &played, why, sizeof why), "%s", why);
    cr_assert_leq(played->world.frames, FRAMES_MAX);
    lab_replay_options(played, &options);
    cr_assert_eq(lab_simulate(&played->world, program_policy_find(policy), &options, 0, frames, why, sizeof why),
                 COX_OK, "%s", why);
    double sum = 0;
    for (uint64_t f = first; f < end; f++)
        sum += frames[f].period_ns + played->overhead_ns[f];
    lab_replay_destroy(&played);
    return sum / (double)(end - first);
}

#define TWO_DEVICES                                                                  \
    "'rows': 1080, 'granule': 8, 'frames': 300, 'devices': ["                        \
    "{'name': 'a', 'fixed_us': 60, 'launch_us': 12, 'row_us': 18, 'jitter': 0.05}, " \
    "{'name': 'b', 'fixed_us': 250, 'launch_us': 30, 'row_us': 9, 'jitter': 0.05}]"

static const char *const some[] = {"last-frame", "adaptive", "hguided", "ewma"};

/* Record a scenario of two devices and `more` keys, and read it back. */
static void recorded_with(const char *const *policies, uint32_t count, const char *more, uint32_t in_flight)
{
    char keys[1024];
    snprintf(keys, sizeof keys, TWO_DEVICES "%s", more);
    record(keys, policies, count, in_flight);
    load();
}

static void recorded(const char *more, uint32_t count, uint32_t in_flight)
{
    recorded_with(some, count, more, in_flight);
}

/* `b` takes three times as long for 80 frames. */
#define STEP ", 'changes': [{'device': 'b', 'from': 100, 'to': 180, 'slower': 3}]"

static void replay_of(const char *policy)
{
    lab_replay_destroy(&replay);
    cr_assert_null(replay);
    cr_assert(lab_replay_create(data, session_of(policy), &replay, why, sizeof why), "%s", why);
}

/* `policy` on the recorded session of `base` takes as long as in its own session. */
static void takes_its_time(const char *base, const char *policy, uint64_t first, uint64_t end, double part)
{
    near(replayed_mean(base, policy, first, end), recorded_mean(session_of(policy), first, end), part, policy);
}

Test(lab_replay, finds_the_devices_that_were_recorded)
{
    recorded("", SOME, 1);
    cr_assert_eq(data->device_count, 2);
    struct lab_replay_fit fits[COX_DEVICES_MAX];
    cr_assert(lab_replay_fit(data, 0, fits));
    near(fits[0].ns_per_row, 18000, 0.01, "row of a");
    near(fits[1].ns_per_row, 9000, 0.02, "row of b");
    near(fits[0].fixed_ns, 60000, 0.3, "fixed of a");
    near(fits[1].fixed_ns, 250000, 0.1, "fixed of b");
    near(fits[0].launch_ns, 12000, 0.3, "launch of a");
    near(fits[1].launch_ns, 30000, 0.2, "launch of b");
    near(fits[0].slowdown, 1, 0.02, "slowdown of a");
    near(fits[1].slowdown, 1, 0.02, "slowdown of b");
    cr_assert(fits[0].fixed_known && fits[0].slowdown_known && fits[0].launch_known);
    lab_replay_free(&data);
    cr_assert_null(data);
}

Test(lab_replay, every_policy_gives_what_it_gave_itself_whatever_was_recorded)
{
    recorded("", SOME, 1);
    for (int base = 0; base < SOME; base++)
        for (int p = 0; p < SOME; p++)
            takes_its_time(some[base], some[p], 0, FRAMES, base == p ? 0.02 : 0.03);
}

/* In the second pass `a` takes a fifth of the time per row. */
#define TWO_PASSES                                                                           \
    ", 'passes': [{'name': 'x'}, {'rows': 600, 'granule': 4, 'before_us': 200, 'devices': [" \
    "{'device': 'a', 'row_us': 3.6}]}]"

Test(lab_replay, finds_the_devices_of_each_pass)
{
    recorded(TWO_PASSES, SOME, 1);
    cr_assert_eq(data->pass_count, 2);
    cr_assert_str_eq(data->pass_name, "x");
    const struct lab_replay_data *second = data->next_pass;
    cr_assert(second && !second->next_pass && second->rows == 600 && second->row_alignment == 4 && data->rows == 1080);
    cr_assert_eq(second->session_count, data->session_count);
    struct lab_replay_fit fits[2][COX_DEVICES_MAX];
    cr_assert(lab_replay_fit(data, 0, fits[0]) && lab_replay_fit(second, 0, fits[1]));
    near(fits[0][0].ns_per_row, 18000, 0.01, "row of a in the first pass");
    near(fits[1][0].ns_per_row, 3600, 0.03, "row of a in the second pass");
    near(fits[0][1].ns_per_row, 9000, 0.02, "row of b in the first pass");
    near(fits[1][1].ns_per_row, 9000, 0.03, "row of b in the second pass");
    replay_of(some[0]);
    cr_assert(replay->next_pass && replay->world.next_pass == &replay->next_pass->world);
    near(replay->next_pass->world.before_ns, 200e3, 0.001, "the pause");
}

Test(lab_replay, policies_give_what_was_recorded_in_two_passes)
{
    recorded(TWO_PASSES, SOME, 1);
    for (int p = 0; p < SOME; p++) {
        takes_its_time(some[p], some[p], 0, FRAMES, 0.02);
        takes_its_time(some[0], some[p], 0, FRAMES, 0.04);
    }
}

Test(lab_replay, disturbances_come_again_where_they_were)
{
    recorded(STEP, SOME, 1);
    cr_assert_eq(session_of("ewma")->frames[150].phase, 1);
    for (int p = 0; p < SOME; p++) {
        takes_its_time("last-frame", some[p], 0, 100, 0.02);
        takes_its_time("last-frame", some[p], 100, 180, 0.03);
        takes_its_time("last-frame", some[p], 180, FRAMES, 0.02);
    }
    /* A sudden slowdown is not a cost per row, so the fit does not see it. */
    struct lab_replay_fit fits[COX_DEVICES_MAX];
    cr_assert(lab_replay_fit(data, lab_replay_main_phase(session_of("last-frame")), fits));
    near(fits[1].ns_per_row, 9000, 0.02, "row of b");
}

Test(lab_replay, a_step_that_no_phase_tells_of_is_no_cost_per_row)
{
    recorded(STEP, SOME, 1);
    for (size_t s = 0; s < data->session_count; s++)
        for (size_t f = 0; f < data->sessions[s].frame_count; f++)
            data->sessions[s].frames[f].phase = 0;
    struct lab_replay_fit fits[COX_DEVICES_MAX];
    cr_assert(lab_replay_fit(data, 0, fits));
    near(lab_replay_cost(&fits[1], 200, 0), 250000 + 200 * 9000, 0.03, "a short band");
    near(lab_replay_cost(&fits[1], 1080, 0), 250000 + 1080 * 9000, 0.03, "a long band");
}

Test(lab_replay, slowdown_is_the_ratio_to_solo_sessions)
{
    recorded(", 'contention': [{'devices': ['a', 'b'], 'slower': 1.9}]", SOME, 1);
    struct lab_replay_fit fits[COX_DEVICES_MAX];
    cr_assert(lab_replay_fit(data, 0, fits));
    near(fits[0].slowdown, 1.9, 0.03, "slowdown of a");
    near(fits[1].slowdown, 1.9, 0.03, "slowdown of b");
    near(fits[1].ns_per_row, 9000, 0.03, "row of b");
    /* So the recording of a policy that always uses both devices shows how a policy that uses one would perform. */
    near(replayed_mean("last-frame", "single", 0, FRAMES), 1080 * 9000 + 250000, 0.03, "single");
    takes_its_time("adaptive", "last-frame", 0, FRAMES, 0.03);
}

Test(lab_replay, a_device_that_dies_is_dead_in_the_replay)
{
    recorded(", 'changes': [{'device': 'b', 'from': 100, 'to': 180, 'gone': true}]", SOME, 1);
    for (int taped = 1; taped >= 0; taped--) {
        struct lab_replay_session session = *session_of("last-frame");
        if (!taped)
            session.change_count = 0;
        cr_assert(lab_replay_create(data, &session, &replay, why, sizeof why), "%s", why);
        ASSERT_VALUES(IS(replay->answering[50], 3), IS(replay->answering[100], 1), IS(replay->answering[150], 1),
                      IS(replay->answering[250], 3));
        lab_replay_destroy(&replay);
    }
    near(replayed_mean("last-frame", "ewma", 110, 170), 1080 * 18000 + 60000, 0.03, "the survivor alone");
}

Test(lab_replay, frames_in_flight_are_compared_by_their_period)
{
    recorded("", SOME, 2);
    cr_assert_eq(data->in_flight, 2);
    for (int p = 0; p < SOME; p++)
        takes_its_time(some[p], some[p], 0, FRAMES, 0.03);
}

Test(lab_replay, a_frame_s_own_cost_is_kept)
{
    recorded_with((const char *const[]){"static"}, 1, "", 1);
    for (size_t s = 0; s < data->session_count; s++)
        for (size_t f = 0; f < data->sessions[s].frame_count; f++)
            data->sessions[s].frames[f].period_ns += 123000;
    replay_of("static");
    near(replay->overhead_ns[17], 123000, 0.001, "overhead");
}

Test(lab_replay, the_oracle_knows_levels_but_not_chance)
{
    recorded(STEP, SOME, 1);
    replay_of("last-frame");
    double rough[2] = {0}, spread[2] = {0};
    for (uint64_t f = 5; f < FRAMES; f++)
        for (int which = 0; which < 2; which++) {
            double factor = (which ? replay->levels : replay->factors)[2 * f + 1];
            double level = f >= 100 && f < 180 ? 3 : 1;
            rough[which] += fabs(factor / level - 1);
            spread[which] = fmax(spread[which], fabs(factor / level - 1));
        }
    cr_assert_lt(rough[1], 0.7 * rough[0]);
    cr_assert_lt(spread[1], 0.15, "a level changes with the phase, at once: %g", spread[1]);
}

Test(lab_replay, bands_beside_others_are_told_from_bands_alone)
{
    recorded("", SOME, 1);
    for (size_t s = 0; s < data->session_count; s++) {
        const struct lab_replay_session *session = &data->sessions[s];
        for (size_t b = 0; b < session->band_count; b++) {
            cr_assert(session->bands[b].together >= 0 && session->bands[b].together <= 1 + 1e-9);
            if (session->kind == LAB_REPLAY_SOLO)
                cr_assert_eq(session->bands[b].together, 0);
        }
    }
    const struct lab_replay_session *session = session_of("last-frame");
    for (size_t f = 20; f < session->frame_count; f++)
        cr_assert_gt(session->bands[session->frames[f].first_band].together, 0.7);
}

/* --- Decisions ---------------------------------------------------------------------------------------------------- */

static const char *const every[] = {"adaptive",   "ewma",   "chunks", "hguided",
                                    "last-frame", "mean10", "static", "single"};
enum { EVERY = sizeof every / sizeof every[0] };

static bool can_decide(const char *base, const char *policy, struct lab_replay_decisions *decisions)
{
    sqlite3 *db = open_db();
    const bool can = lab_replay_decide(db, session_of(base), program_policy_find(policy), decisions, why, sizeof why);
    sqlite3_close(db);
    return can;
}

static struct lab_replay_decisions decide(const char *base, const char *policy)
{
    struct lab_replay_decisions decisions;
    cr_assert(can_decide(base, policy, &decisions), "%s", why);
    return decisions;
}

static void decide_the_same(const char *policy, uint64_t splits)
{
    struct lab_replay_decisions decisions = decide(policy, policy);
    cr_assert(decisions.taped && decisions.complete);
    cr_assert_eq(decisions.splits, splits);
    cr_assert_eq(decisions.different, 0, "%s, frame %llu: recorded %s, now %s", policy,
                 (unsigned long long)decisions.first_frame, decisions.recorded, decisions.answered);
}

Test(lab_replay, policies_decide_the_same_again)
{
    for (uint32_t in_flight = 1; in_flight <= 2; in_flight++) {
        recorded_with(every, EVERY,
                      ", 'changes': [{'device': 'b', 'from': 100, 'to': 180, 'gone': true}, "
                      "{'device': 'a', 'from': 200, 'to': 250, 'slower': 2.5}]",
                      in_flight);
        for (int p = 0; p < EVERY; p++)
            decide_the_same(every[p], FRAMES);
    }
    cr_assert_gt(decide("hguided", "hguided").grants, FRAMES);
}

Test(lab_replay, policies_decide_the_same_again_in_each_pass)
{
    recorded_with(every, EVERY,
                  ", 'passes': [{}, {'rows': 300, 'before_us': 30, 'moved_row_us': 1, 'devices': [{'device': 'a', "
                  "'row_us': 4}]}]",
                  2);
    for (int p = 0; p < EVERY; p++)
        decide_the_same(every[p], 2 * FRAMES);
}

Test(lab_replay, what_differs_is_found)
{
    recorded_with(every, EVERY, "", 1);
    struct lab_replay_decisions decisions = decide("last-frame", "ewma");
    cr_assert_gt(decisions.different, FRAMES / 2, "another policy");
    cr_assert_str_neq(decisions.recorded, decisions.answered);
    cr_assert_gt(decide("hguided", "static").different, FRAMES, "another policy");

#define LAST_FRAME " AND session = (SELECT session FROM session WHERE kind = 'policy' AND policy = 'last-frame')"
    run_sql("UPDATE call SET answer = replace(answer, 'why=', 'why=1') WHERE kind = 'split' AND frame = 77" LAST_FRAME);
    decisions = decide("last-frame", "last-frame");
    cr_assert_eq(decisions.different, 1, "one changed answer");
    cr_assert_eq(decisions.first_frame, 77);

    run_sql("UPDATE call SET answer = replace(answer, 'why=1', 'why=') WHERE kind = 'split' AND frame = 77" LAST_FRAME);
    run_sql("UPDATE call SET wall_ns = wall_ns * 2 WHERE kind = 'observe' AND frame = 77 AND device = 0" LAST_FRAME);
    decisions = decide("last-frame", "last-frame");
    cr_assert_geq(decisions.different, 1, "one changed measurement");
    cr_assert_eq(decisions.first_frame, 78);

    run_sql("DELETE FROM call WHERE kind = 'split' AND frame = 77");
    decisions = decide("ewma", "ewma");
    cr_assert(decisions.taped && !decisions.complete, "a hole in the tape");
    ASSERT_VALUES(IS(decisions.splits, 77), IS(decisions.different, 0));
    run_sql("DELETE FROM call");
    cr_assert(!decide("ewma", "ewma").taped);
}

/* --- Bad databases ------------------------------------------------------------------------------------------------ */

/* Change a recorded database. The first call keeps a copy, later calls restore it first. */
static void change_what_was_recorded(const char *sql)
{
    static char *bytes;
    static size_t count;
    FILE *file = fopen(path, bytes ? "wb" : "rb");
    cr_assert_not_null(file);
    if (!bytes) {
        cr_assert_eq(fseek(file, 0, SEEK_END), 0);
        count = (size_t)ftell(file);
        bytes = malloc(count);
        rewind(file);
        cr_assert_eq(fread(bytes, 1, count, file), count);
    } else {
        cr_assert_eq(fwrite(bytes, 1, count, file), count);
    }
    fclose(file);
    run_sql(sql);
}

Test(lab_replay, refuses_numbers_that_make_no_sense)
{
    static const char *const changes[][2] = {
        {"UPDATE band SET rows = 0 WHERE frame = 5", "rows 0 is out of range"},
        {"UPDATE band SET device = 32 WHERE frame = 5", "device 32 is out of range"},
        {"UPDATE band SET first_row = -1 WHERE frame = 5", "first_row -1 is out of range"},
        {"UPDATE band SET wall_ns = -5 WHERE frame = 5", "wall_ns -5 is out of range"},
        {"UPDATE frame SET frame = 99999999999 WHERE frame = 5", "frame 99999999999 is out of range"},
        {"UPDATE frame SET period_ns = -1 WHERE frame = 5", "period_ns -1 is out of range"},
        {"UPDATE frame SET phase = -1 WHERE frame = 5", "phase -1 is out of range"},
        {"UPDATE frame SET phase = 1 WHERE frame = 5", "frame 6 has an earlier phase"},
        {"UPDATE frame SET rows = 1048577 WHERE frame = 5", "rows 1048577 is out of range"},
        {"UPDATE run SET rows = 0", "rows 0 is out of range"},
        {"UPDATE run SET rows = 2000000000", "rows 2000000000 is out of range"},
        {"UPDATE run SET in_flight = 4000", "in_flight 4000 is out of range"},
        {"UPDATE device SET device = 77 WHERE device = 1", "device 77 is out of range"},
        {"DELETE FROM run", "no runs are recorded"},
    };
    record(TWO_DEVICES, some, 1, 1);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        change_what_was_recorded(changes[i][0]);
        sqlite3 *db = open_db();
        cr_assert(!lab_replay_read(db, 0, &data, why, sizeof why), "%s", changes[i][0]);
        cr_assert_null(data);
        cr_assert(strstr(why, changes[i][1]), "%s: %s", changes[i][0], why);
        sqlite3_close(db);
    }
}

Test(lab_replay, refuses_a_tape_that_makes_no_sense)
{
    static const char *const changes[] = {
        "UPDATE call_view SET device_count = 33",
        "UPDATE call_view SET rows = 0",
        "UPDATE call_view SET granule = 0",
        "UPDATE call_view SET rows = 4000000000",
        "UPDATE call_view SET granule = 4000000000",
        /* More devices than the policy was initialised for. */
        "INSERT INTO call_view SELECT session, 3, rows, granule, min_band_rows, 32, in_flight, pool, shadow FROM call_view",
        "UPDATE call SET device = 2 WHERE kind = 'observe'",
        "UPDATE call SET device = -1 WHERE kind = 'observe'",
        "UPDATE call SET rows = 4000000000 WHERE kind = 'observe'",
        "UPDATE call SET kind = 'init' WHERE kind = 'split'",
        "UPDATE call SET kind = 'split' WHERE kind = 'init'",
    };
    record(TWO_DEVICES, some, 1, 1);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct lab_replay_decisions decisions;
        change_what_was_recorded(changes[i]);
        load();
        cr_assert(!can_decide(some[0], some[0], &decisions), "%s", changes[i]);
        cr_assert(strstr(why, "invalid"), "%s: %s", changes[i], why);
    }
}

/* After this change the first policy's session cannot be replayed. */
static void cannot_be_replayed(const char *sql, const char *words)
{
    run_sql(sql);
    load();
    cr_assert(!lab_replay_create(data, session_of(some[0]), &replay, why, sizeof why));
    cr_assert_null(replay);
    cr_assert(strstr(why, words), "%s", why);
}

Test(lab_replay, a_session_of_too_few_frames_or_bands_cannot_be_replayed)
{
    record(TWO_DEVICES, some, 2, 1);
    /* Missing frames would cost memory. */
    cannot_be_replayed("DELETE FROM frame WHERE session = 3 AND frame BETWEEN 1 AND 298",
                       "cannot replay session 3: it has only 2 frames up to frame 299");
    cr_assert(lab_replay_possible(session_of(some[1]), why, sizeof why));
    remove(path);
    record(TWO_DEVICES, some, 1, 1);
    cannot_be_replayed("DELETE FROM band WHERE session = 3", "has no band");
    cannot_be_replayed("DELETE FROM frame WHERE session = 3", "has no frame");
}

/* A run on devices numbers the frames of all references together. So the frames of one reference have gaps, which
 * is valid. */
Test(lab_replay, references_take_turns_in_one_stream)
{
    recorded("", 1, 1);
    double mean = replayed_mean(some[0], "static", 0, FRAMES);
    run_sql("UPDATE frame SET frame = 20000 * (frame + 1) + session WHERE session < 3; "
            "UPDATE band SET frame = 20000 * (frame + 1) + session WHERE session < 3");
    load();
    cr_assert_eq(data->sessions[0].kind, LAB_REPLAY_SOLO);
    cr_assert_eq(data->sessions[0].frames[data->sessions[0].frame_count - 1].band_count, 1);
    near(replayed_mean(some[0], "static", 0, FRAMES), mean, 1e-9, "with far frames of references");
}

Test(lab_replay, holes_between_frames_are_bridged)
{
    recorded("", 1, 1);
    run_sql("DELETE FROM frame WHERE session = 3 AND (frame < 4 OR frame BETWEEN 100 AND 120); "
            "DELETE FROM band WHERE session = 3 AND (frame < 4 OR frame BETWEEN 100 AND 120)");
    load();
    takes_its_time(some[0], some[0], 0, FRAMES, 0.02);
}
