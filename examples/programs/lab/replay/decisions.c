/* `cox-lab replay --decisions`: repeats the calls of a tape, in order, and compares the policy's
 * answers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "lab/store/tape.h"
#include "world.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns of the query about calls. */
enum {
    CALL,
    KIND,
    FRAME,
    DEVICE,
    FIRST_ROW,
    ROWS,
    WALL,
    QUEUE,
    KERNEL,
    LATE,
    PERIOD,
    JOULES,
    FLAGS,
    PROGRESS,
    ANSWER,
    WAITED,
    LATENCY,
    DEADLINE,
    PASS
};

/* The flags of a `next`. */
enum { OFFER_LAST = 1 };

/* The greatest hint of a device's speed that a session accepts. */
static const double HINT_MAX = 1e9;

/* The policy's state for a pass, and its view. */
struct asked {
    void *state;
    uint32_t state_devices; /* the state has room for this number */
    struct cox_sched_view view;
    struct cox_sched_device device[COX_DEVICES_MAX];
};

struct tape {
    sqlite3_stmt *calls, *views, *devices;
    bool view_waits, device_waits; /* the statement is at a row that was not used yet */
    int error;                     /* of SQLite, while such a row was looked for */
    const struct lab_replay_session *session;
    const struct cox_policy *policy;
    struct asked passes[COX_PASSES_MAX];
    struct asked *pass; /* the one of the call */
    struct lab_replay_decisions *decisions;
};

static uint32_t column_u32(sqlite3_stmt *row, int column)
{
    return (uint32_t)sqlite3_column_int64(row, column);
}

static uint64_t column_u64(sqlite3_stmt *row, int column)
{
    return (uint64_t)sqlite3_column_int64(row, column);
}

/* The pass of the row's call; an impossible one counts as the first. */
static struct asked *pass_of(struct tape *tape, sqlite3_stmt *row, int column)
{
    const int64_t pass = sqlite3_column_int64(row, column);

    if (pass < 0 || pass >= COX_PASSES_MAX)
        return &tape->passes[0];

    return &tape->passes[pass];
}

/* Whether there is another row. An error is kept in the tape. */
static bool next_row(struct tape *tape, sqlite3_stmt *rows)
{
    const int result = sqlite3_step(rows);

    if (result != SQLITE_ROW && result != SQLITE_DONE)
        tape->error = result;
    return result == SQLITE_ROW;
}

/* Apply the changes of views and devices up to this call. */
static void bring_up_to(struct tape *tape, int64_t call)
{
    while (tape->view_waits && sqlite3_column_int64(tape->views, 0) <= call) {
        struct cox_sched_view *view = &pass_of(tape, tape->views, 8)->view;

        view->rows = column_u32(tape->views, 1);
        view->row_alignment = column_u32(tape->views, 2);
        view->min_band_rows = column_u32(tape->views, 3);
        view->device_count = column_u32(tape->views, 4);
        view->in_flight = column_u32(tape->views, 5);
        view->pool = sqlite3_column_int(tape->views, 6);
        view->shadow = sqlite3_column_int(tape->views, 7);
        tape->view_waits = next_row(tape, tape->views);
    }

    while (tape->device_waits && sqlite3_column_int64(tape->devices, 0) <= call) {
        uint32_t d = column_u32(tape->devices, 1);

        if (d < COX_DEVICES_MAX)
            pass_of(tape, tape->devices, 5)->device[d] = (struct cox_sched_device){
                .usable = sqlite3_column_int(tape->devices, 2),
                .hint = sqlite3_column_double(tape->devices, 3),
                .single_device_ns = column_u64(tape->devices, 4)};
        tape->device_waits = next_row(tape, tape->devices);
    }
}

static void compare(struct tape *tape, const char *answered)
{
    struct lab_replay_decisions *decisions = tape->decisions;
    const char *recorded = (const char *)sqlite3_column_text(tape->calls, ANSWER);

    if (!recorded)
        recorded = "";
    if (strcmp(recorded, answered) == 0 || decisions->different++ > 0)
        return;

    decisions->first_frame = column_u64(tape->calls, FRAME);
    text_plain(recorded, decisions->recorded, sizeof decisions->recorded);
    snprintf(decisions->answered, sizeof decisions->answered, "%s", answered);
}

/* Whether the view is within the limits of a session's parameters. */
static bool is_sound_view(const struct cox_sched_view *view)
{
    for (uint32_t d = 0; d < view->device_count && d < COX_DEVICES_MAX; d++)
        if (!(view->devices[d].hint > 0 && view->devices[d].hint <= HINT_MAX))
            return false;

    return view->rows > 0 && view->rows <= INT32_MAX && view->row_alignment > 0 &&
           view->row_alignment <= INT32_MAX;
}

static bool refuse_tape(const struct tape *tape, char *why, size_t why_bytes)
{
    return lab_replay_refuse(why, why_bytes, "session %lld: its recorded decisions are invalid",
                             (long long)tape->session->session);
}

static bool begin(struct tape *tape, char *why, size_t why_bytes)
{
    const struct cox_sched_view *view = &tape->pass->view;
    char answer[32];

    if (tape->pass->state || view->device_count < 1 || view->device_count > COX_DEVICES_MAX ||
        !is_sound_view(view))
        return refuse_tape(tape, why, why_bytes);

    tape->pass->state_devices = view->device_count;
    tape->pass->state = calloc(1, tape->policy->state_bytes(view->device_count));
    if (!tape->pass->state)
        return lab_replay_refuse(why, why_bytes, "out of memory");

    cox_status status = tape->policy->init(tape->pass->state, view, &tape->session->options);
    snprintf(answer, sizeof answer, "status=%d", (int)status);
    compare(tape, answer);
    if (status != COX_OK)
        return lab_replay_refuse(why, why_bytes, "policy %s: %s with the options of session %lld",
                                 tape->policy->name, cox_status_text(status),
                                 (long long)tape->session->session);

    return true;
}

static void view_frame(struct tape *tape)
{
    tape->pass->view.frame = column_u64(tape->calls, FRAME);
    tape->pass->view.waited_ns = column_u64(tape->calls, WAITED);
    tape->pass->view.deadline_ns = column_u64(tape->calls, DEADLINE);
}

static void ask_split(struct tape *tape)
{
    struct cox_split split = {0};
    char answer[LAB_ANSWER_BYTES];

    view_frame(tape);
    cox_status status = tape->policy->split(tape->pass->state, &tape->pass->view, &split);
    lab_tape_split_text(&split, status, tape->pass->view.device_count, answer, sizeof answer);
    compare(tape, answer);
    tape->decisions->splits++;
}

static void read_progress(const char *text, uint32_t device_count, struct cox_progress *progress)
{
    for (uint32_t d = 0; d < device_count && text; d++) {
        if (sscanf(text, "%" SCNu32 ":%" SCNu32 ":%" SCNu64, &progress[d].rows,
                   &progress[d].first_row, &progress[d].since_ns) != 3)
            return;

        text = strchr(text, ' ');
        if (text)
            text++;
    }
}

static void ask_next(struct tape *tape)
{
    struct cox_progress progress[COX_DEVICES_MAX] = {{0}};
    struct cox_chunk grant = {0};
    char answer[128];

    if (!tape->policy->assign) {
        compare(tape, "none");
        return;
    }

    view_frame(tape);
    read_progress((const char *)sqlite3_column_text(tape->calls, PROGRESS),
                  tape->pass->view.device_count, progress);
    struct cox_chunk_request offer = {
        .device = column_u32(tape->calls, DEVICE),
        .first_row = column_u32(tape->calls, FIRST_ROW),
        .rows = column_u32(tape->calls, ROWS),
        .elapsed_ns = column_u64(tape->calls, WALL),
        .last = sqlite3_column_int(tape->calls, FLAGS) & OFFER_LAST,
        .progress = progress,
    };

    tape->policy->assign(tape->pass->state, &tape->pass->view, &offer, &grant);
    lab_tape_grant_text(&grant, answer, sizeof answer);
    compare(tape, answer);
    tape->decisions->grants++;
}

static void tell_band(struct tape *tape)
{
    struct cox_measurement measurement = {
        .frame = column_u64(tape->calls, FRAME),
        .device = column_u32(tape->calls, DEVICE),
        .first_row = column_u32(tape->calls, FIRST_ROW),
        .rows = column_u32(tape->calls, ROWS),
        .wall_ns = column_u64(tape->calls, WALL),
        .queue_ns = column_u64(tape->calls, QUEUE),
        .kernel_ns = column_u64(tape->calls, KERNEL),
        .late_ns = column_u64(tape->calls, LATE),
        .flags = column_u32(tape->calls, FLAGS),
    };

    if (tape->policy->observe)
        tape->policy->observe(tape->pass->state, &measurement);
}

static void tell_frame(struct tape *tape)
{
    struct cox_frame_measurement measurement = {
        .frame = column_u64(tape->calls, FRAME),
        .wall_ns = column_u64(tape->calls, WALL),
        .period_ns = column_u64(tape->calls, PERIOD),
        .joules = sqlite3_column_double(tape->calls, JOULES),
        .latency_ns = column_u64(tape->calls, LATENCY),
        .deadline_ns = column_u64(tape->calls, DEADLINE),
    };

    if (tape->policy->observe_frame)
        tape->policy->observe_frame(tape->pass->state, &measurement);
}

static void load_profile(struct tape *tape)
{
    if (tape->policy->load_profile)
        tape->policy->load_profile(tape->pass->state, &tape->pass->view,
                                   tape->session->profiles[tape->pass - tape->passes]);
}

/* Whether the numbers of a call are in the ranges that a policy may rely on. */
static bool is_sound(const struct tape *tape, const char *kind)
{
    sqlite3_stmt *row = tape->calls;
    uint32_t device_count = tape->pass->view.device_count;
    int64_t rows = sqlite3_column_int64(row, ROWS), first = sqlite3_column_int64(row, FIRST_ROW);
    bool range = first >= 0 && first <= INT32_MAX && rows >= 0 && rows <= INT32_MAX - first;
    bool number = sqlite3_column_int64(row, FRAME) >= 0;
    bool device = sqlite3_column_int64(row, DEVICE) >= 0 &&
                  sqlite3_column_int64(row, DEVICE) < device_count;

    /* Only devices in use get an offer. */
    if (device && device_count <= COX_DEVICES_MAX && strcmp(kind, "next") == 0)
        device = tape->pass->device[column_u32(row, DEVICE)].usable;

    return number && device && range && is_sound_view(&tape->pass->view) &&
           device_count == tape->pass->state_devices;
}

static bool replay_call(struct tape *tape, char *why, size_t why_bytes)
{
    const char *kind = (const char *)sqlite3_column_text(tape->calls, KIND);

    if (!kind)
        kind = "";
    bring_up_to(tape, sqlite3_column_int64(tape->calls, CALL));
    tape->pass = pass_of(tape, tape->calls, PASS);
    if (strcmp(kind, "init") == 0)
        return begin(tape, why, why_bytes);
    if (!tape->pass->state || !is_sound(tape, kind))
        return refuse_tape(tape, why, why_bytes);

    if (strcmp(kind, "load_profile") == 0)
        load_profile(tape);
    else if (strcmp(kind, "split") == 0)
        ask_split(tape);
    else if (strcmp(kind, "next") == 0)
        ask_next(tape);
    else if (strcmp(kind, "observe") == 0)
        tell_band(tape);
    else
        tell_frame(tape);

    return true;
}

static bool prepare(struct tape *tape, struct sqlite3 *db)
{
    const struct {
        sqlite3_stmt **statement;
        const char *sql;
    } all[] = {
        {&tape->calls,
         "SELECT call, kind, frame, device, first_row, rows, wall_ns, queue_ns, kernel_ns,"
         " late_ns, period_ns, "
         "joules, flags, progress, answer, waited_ns, latency_ns, deadline_ns, pass FROM call "
         "WHERE session = ? ORDER BY call"},
        {&tape->views,
         "SELECT v.call, v.rows, granule, min_band_rows, device_count, in_flight, pool, shadow,"
         " c.pass "
         "FROM call_view v JOIN call c USING (session, call) WHERE session = ? ORDER BY v.call"},
        {&tape->devices,
         "SELECT d.call, d.device, usable, hint, solo_ns, c.pass FROM call_device d "
         "JOIN call c USING (session, call) WHERE session = ? ORDER BY d.call, d.device"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (sqlite3_prepare_v2(db, all[i].sql, -1, all[i].statement, NULL) != SQLITE_OK ||
            sqlite3_bind_int64(*all[i].statement, 1, tape->session->session) != SQLITE_OK)
            return false;

    tape->view_waits = next_row(tape, tape->views);
    tape->device_waits = next_row(tape, tape->devices);

    return true;
}

bool lab_replay_decide(struct sqlite3 *db, const struct lab_replay_session *session,
                       const struct cox_policy *policy, struct lab_replay_decisions *decisions,
                       char *why, size_t why_bytes)
{
    struct tape tape = {.session = session, .policy = policy, .decisions = decisions};

    *decisions = (struct lab_replay_decisions){.complete = true};
    for (uint32_t p = 0; p < COX_PASSES_MAX; p++)
        tape.passes[p].view.devices = tape.passes[p].device;

    bool good = prepare(&tape, db);
    int result = SQLITE_ERROR;
    if (good)
        result = SQLITE_ROW;
    for (int64_t next = 0; good && decisions->complete; next++) {
        result = sqlite3_step(tape.calls);
        if (result != SQLITE_ROW)
            break;
        decisions->taped = true;
        decisions->complete = sqlite3_column_int64(tape.calls, CALL) == next;
        good = !decisions->complete || replay_call(&tape, why, why_bytes);
    }

    if (result != SQLITE_DONE && result != SQLITE_ROW)
        good = lab_replay_refuse(why, why_bytes, "%s", sqlite3_errmsg(db));
    else if (tape.error)
        good = lab_replay_refuse(why, why_bytes, "%s", sqlite3_errstr(tape.error));

    sqlite3_finalize(tape.calls);
    sqlite3_finalize(tape.views);
    sqlite3_finalize(tape.devices);
    for (uint32_t p = 0; p < COX_PASSES_MAX; p++)
        free(tape.passes[p].state);

    return good;
}
