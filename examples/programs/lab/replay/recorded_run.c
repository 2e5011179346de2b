/* Reads a recorded run from a session database and checks every number that others rely on.
 *
 * Each query is a constant string: the fuzzers' own database knows queries by their addresses, and
 * only as much SQL as is used here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "recorded_run.h"
#include "common/text.h"

#include <math.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Limits of our own sessions; more would not fit into memory. */
enum {
    SESSIONS_MAX = 10000,
    FRAMES_MAX = 4000000,
    BANDS_MAX = 16000000,
    PHASES_MAX = 65536,
    ROWS_MAX = 1 << 20
};

enum { ROOM_LEAST = 8 }; /* of a growing array */

struct reader {
    sqlite3 *db;
    struct lab_replay_data *data;
    uint32_t pass; /* the one to read */
    char *why;
    size_t why_bytes;
};

bool lab_replay_refuse(char *why, size_t why_bytes, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(why, why_bytes, format, args);
    va_end(args);
    return false;
}

static bool sql_failed(const struct reader *reader)
{
    return lab_replay_refuse(reader->why, reader->why_bytes, "%s", sqlite3_errmsg(reader->db));
}

/* A query about one run or session; NULL with a reason. */
static sqlite3_stmt *query(const struct reader *reader, const char *sql, int64_t number)
{
    sqlite3_stmt *statement = NULL;

    if (sqlite3_prepare_v2(reader->db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_bind_int64(statement, 1, number) != SQLITE_OK) {
        sql_failed(reader);
        sqlite3_finalize(statement);
        return NULL;
    }

    return statement;
}

/* Call `take` for each row; it returns false, with a message, to stop. */
typedef bool take_fn(const struct reader *reader, sqlite3_stmt *row, void *into);

static bool each_row(const struct reader *reader, const char *sql, int64_t number, take_fn *take,
                     void *into)
{
    sqlite3_stmt *statement = query(reader, sql, number);

    if (!statement)
        return false;

    int result = SQLITE_ROW;
    bool good = true;
    while (good && (result = sqlite3_step(statement)) == SQLITE_ROW)
        good = take(reader, statement, into);
    if (good && result != SQLITE_DONE)
        good = sql_failed(reader);
    sqlite3_finalize(statement);

    return good;
}

/* The text as it may be printed on a terminal. */
static void copy_text(sqlite3_stmt *row, int column, char *text, size_t bytes)
{
    text_plain((const char *)sqlite3_column_text(row, column), text, bytes);
}

/* Whether the row is about the pass to read. */
static bool is_of_pass(const struct reader *reader, sqlite3_stmt *row, int column)
{
    return sqlite3_column_int64(row, column) == reader->pass;
}

/* A column that must lie in low .. high. */
static bool take_number(const struct reader *reader, sqlite3_stmt *row, int column, int64_t low,
                        int64_t high, int64_t *number)
{
    *number = sqlite3_column_int64(row, column);
    if (*number >= low && *number <= high)
        return true;
    return lab_replay_refuse(reader->why, reader->why_bytes, "%s %lld is out of range",
                             sqlite3_column_name(row, column), (long long)*number);
}

static bool take_u32(const struct reader *reader, sqlite3_stmt *row, int column, int64_t low,
                     int64_t high, uint32_t *number)
{
    int64_t wide = 0;
    bool good = take_number(reader, row, column, low, high, &wide);
    *number = (uint32_t)wide;
    return good;
}

/* Append a zeroed element to a growing array; NULL with a reason. */
static void *append(const struct reader *reader, void **array, size_t *count, size_t most,
                    size_t bytes)
{
    if (*count >= most) {
        lab_replay_refuse(reader->why, reader->why_bytes, "too many rows");
        return NULL;
    }

    /* It grows at powers of two. */
    if (*count == 0 || (*count >= ROOM_LEAST && (*count & (*count - 1)) == 0)) {
        size_t room = ROOM_LEAST;
        if (*count > 0)
            room = 2 * *count;
        void *more = realloc(*array, room * bytes);
        if (!more) {
            lab_replay_refuse(reader->why, reader->why_bytes, "out of memory");
            return NULL;
        }
        *array = more;
    }

    return memset((char *)*array + (*count)++ * bytes, 0, bytes);
}

/* --- The run ---------------------------------------------------------------------------------- */

static bool take_run(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_data *data = into;
    int64_t objective = 0, deadline = 0;

    data->run = sqlite3_column_int64(row, 0);
    copy_text(row, 1, data->kernel, sizeof data->kernel);
    data->finished = sqlite3_column_int(row, 6);
    if (!take_u32(reader, row, 2, 1, ROWS_MAX, &data->rows) ||
        !take_u32(reader, row, 3, 0, INT32_MAX, &data->row_alignment) ||
        !take_u32(reader, row, 4, 0, 64, &data->in_flight) ||
        !take_number(reader, row, 5, 0, COX_OBJECTIVE_LATENCY, &objective) ||
        !take_number(reader, row, 7, 0, INT64_MAX, &deadline))
        return false;

    data->pass_count = 1;
    data->objective = (enum cox_objective)objective;
    data->deadline_ns = (uint64_t)deadline;
    if (data->row_alignment == 0)
        data->row_alignment = 1;

    return true;
}

static bool take_pass(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_data *data = into;
    uint32_t pass = 0, rows = 0;

    if (!take_u32(reader, row, 0, 0, COX_PASSES_MAX - 1, &pass) ||
        !take_u32(reader, row, 1, 1, ROWS_MAX, &rows))
        return false;

    data->pass_count = pass + 1;
    if (pass != reader->pass)
        return true;

    copy_text(row, 2, data->pass_name, sizeof data->pass_name);
    if (pass > 0)
        data->rows = rows;

    return true;
}

static bool take_device(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_data *data = into;
    uint32_t device = 0;

    if (!take_u32(reader, row, 0, 0, COX_DEVICES_MAX - 1, &device))
        return false;

    copy_text(row, 1, data->device_names[device], sizeof data->device_names[device]);
    if (device >= data->device_count)
        data->device_count = device + 1;

    return true;
}

static bool take_session(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_data *data = into;

    struct lab_replay_session *session = append(reader, (void **)&data->sessions,
                                                &data->session_count, SESSIONS_MAX,
                                                sizeof *session);
    if (!session)
        return false;

    session->session = sqlite3_column_int64(row, 0);
    session->kind = (enum lab_replay_kind)sqlite3_column_int(row, 1);
    copy_text(row, 2, session->policy, sizeof session->policy);

    return take_u32(reader, row, 3, 0, INT32_MAX, &session->repeat);
}

/* --- A session -------------------------------------------------------------------------------- */

/* The greatest number of a frame. References of a run on devices share one stream, so their numbers
 * grow with it; they cost no memory. */
static int64_t last_frame(const struct lab_replay_session *session)
{
    if (session->kind == LAB_REPLAY_POLICY)
        return FRAMES_MAX;

    return INT64_MAX;
}

static bool take_frame(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;
    int64_t number = 0, wall = 0, period = 0;

    struct lab_replay_frame *frame = append(reader, (void **)&session->frames,
                                            &session->frame_count, FRAMES_MAX, sizeof *frame);
    if (!frame)
        return false;

    if (!take_number(reader, row, 0, 0, last_frame(session), &number) ||
        !take_u32(reader, row, 1, 0, PHASES_MAX, &frame->phase) ||
        !take_u32(reader, row, 2, 0, ROWS_MAX, &frame->rows) ||
        !take_number(reader, row, 3, 0, INT64_MAX, &wall) ||
        !take_number(reader, row, 4, 0, INT64_MAX, &period))
        return false;

    /* The table's key does not guarantee it: to SQLite 1.25 and 1.5 are two frames. */
    if (session->frame_count > 1 && (uint64_t)number <= frame[-1].frame)
        return lab_replay_refuse(reader->why, reader->why_bytes, "frame %lld is recorded twice",
                                 (long long)number);
    if (session->frame_count > 1 && frame->phase < frame[-1].phase)
        return lab_replay_refuse(reader->why, reader->why_bytes,
                                 "frame %lld has an earlier phase than the previous frame",
                                 (long long)number);

    frame->frame = (uint64_t)number;
    if (reader->pass > 0)
        frame->rows = reader->data->rows;
    frame->wall_ns = (double)wall;
    frame->period_ns = (double)period;
    frame->good = sqlite3_column_int(row, 5) == 0;
    frame->reason = (uint32_t)sqlite3_column_int(row, 6);
    frame->start_ns = sqlite3_column_double(row, 7);

    return true;
}

/* The frame of that number, or NULL. Frames are in order. */
static struct lab_replay_frame *find_frame(const struct lab_replay_session *session,
                                           uint64_t number)
{
    size_t low = 0, high = session->frame_count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (session->frames[middle].frame < number)
            low = middle + 1;
        else
            high = middle;
    }

    if (low == session->frame_count || session->frames[low].frame != number)
        return NULL;

    return &session->frames[low];
}

static bool take_frame_pass(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;

    if (reader->data->pass_count == 1 || !is_of_pass(reader, row, 1))
        return true;

    struct lab_replay_frame *frame = find_frame(session, (uint64_t)sqlite3_column_int64(row, 0));
    if (!frame)
        return true;

    frame->pass_start_ns = sqlite3_column_double(row, 2);
    frame->pass_end_ns = sqlite3_column_double(row, 3);

    return true;
}

/* Append the row's band to an array of the session, if it is of the pass to read. */
static bool add_band(const struct reader *reader, sqlite3_stmt *row, int64_t last,
                     struct lab_replay_band **bands, size_t *count)
{
    int64_t frame = 0, wall = 0, kernel = 0;

    if (!is_of_pass(reader, row, 10))
        return true;

    struct lab_replay_band *band = append(reader, (void **)bands, count, BANDS_MAX, sizeof *band);
    if (!band)
        return false;

    if (!take_number(reader, row, 0, 0, last, &frame) ||
        !take_u32(reader, row, 1, 0, COX_DEVICES_MAX - 1, &band->device) ||
        !take_u32(reader, row, 2, 0, INT32_MAX, &band->first_row) ||
        !take_u32(reader, row, 3, 1, INT32_MAX, &band->rows) ||
        !take_number(reader, row, 4, 0, INT64_MAX, &wall) ||
        !take_number(reader, row, 5, 0, INT64_MAX, &kernel))
        return false;

    band->frame = (uint64_t)frame;
    band->wall_ns = (double)wall;
    band->kernel_ns = (double)kernel;
    band->good = sqlite3_column_int(row, 6) == 0 && wall > 0;
    band->begin_ns = sqlite3_column_double(row, 7);
    band->again = sqlite3_column_int(row, 8) > 0;
    band->queue_ns = sqlite3_column_double(row, 9);
    band->notice_ns = sqlite3_column_double(row, 11);
    if (band->device >= reader->data->device_count)
        reader->data->device_count = band->device + 1;

    return true;
}

static bool take_band(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;

    return add_band(reader, row, last_frame(session), &session->bands, &session->band_count);
}

static bool take_shadow(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;

    return add_band(reader, row, last_frame(session), &session->shadows, &session->shadow_count);
}

/* The part of a band's time in which another device worked on the frame. `bands` are sorted by
 * their beginnings. */
static double together_of(const struct lab_replay_band *band, const struct lab_replay_band *bands,
                          size_t count)
{
    double at = band->begin_ns, to = band->begin_ns + band->wall_ns, covered = 0;

    for (size_t b = 0; b < count && bands[b].begin_ns < to; b++) {
        double end = fmin(bands[b].begin_ns + bands[b].wall_ns, to);
        if (bands[b].device == band->device || !bands[b].good || end <= at)
            continue;

        covered += end - fmax(at, bands[b].begin_ns);
        at = end;
    }

    if (!(band->wall_ns > 0))
        return 0;

    return covered / band->wall_ns;
}

/* Each band's place on its device in the frame, and the idle time before it. */
static void place_bands(const struct lab_replay_frame *frame, struct lab_replay_band *bands,
                        bool one_at_a_time)
{
    uint32_t launches[COX_DEVICES_MAX] = {0};
    double free_ns[COX_DEVICES_MAX] = {0};

    for (size_t b = 0; b < frame->band_count; b++) {
        struct lab_replay_band *band = &bands[b];

        band->begin_ns -= frame->pass_start_ns;
        band->launch = launches[band->device]++;
        /* A band done again waited until the one before it had failed. */
        if (!band->again && (band->launch > 0 || one_at_a_time))
            band->gap_ns = fmax(0, band->begin_ns - band->queue_ns - free_ns[band->device]);
        free_ns[band->device] = band->begin_ns + band->wall_ns;
    }

    for (size_t b = 0; b < frame->band_count; b++)
        bands[b].together = together_of(&bands[b], bands, frame->band_count);
}

/* Give each frame its bands. Both are sorted by frame, bands then by their beginning. */
static void assign_bands(struct lab_replay_session *session, bool one_at_a_time)
{
    size_t b = 0;

    for (size_t f = 0; f < session->frame_count; f++) {
        struct lab_replay_frame *frame = &session->frames[f];

        while (b < session->band_count && session->bands[b].frame < frame->frame)
            b++;
        frame->first_band = b;
        while (b < session->band_count && session->bands[b].frame == frame->frame)
            b++;
        frame->band_count = b - frame->first_band;
        if (frame->band_count > 0)
            place_bands(frame, &session->bands[frame->first_band], one_at_a_time);
    }
}

/* --- The tape's head -------------------------------------------------------------------------- */

static bool take_view(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;

    session->taped = true;
    session->no_pool = !sqlite3_column_int(row, 0);
    session->no_shadow = !sqlite3_column_int(row, 1);
    return take_u32(reader, row, 2, 0, INT32_MAX, &session->min_band_rows);
}

/* The row alignment of a further pass; the first one's is the run's. */
static bool take_row_alignment(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    (void)into;
    if (reader->pass == 0 || !is_of_pass(reader, row, 1))
        return true;
    return take_u32(reader, row, 0, 1, INT32_MAX, &reader->data->row_alignment);
}

static bool take_change(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;
    int64_t frame = 0;

    if (!is_of_pass(reader, row, 3))
        return true;

    struct lab_replay_change *change = append(reader, (void **)&session->changes,
                                              &session->change_count, FRAMES_MAX, sizeof *change);
    if (!change)
        return false;

    if (!take_number(reader, row, 0, 0, FRAMES_MAX, &frame) ||
        !take_u32(reader, row, 1, 0, COX_DEVICES_MAX - 1, &change->device))
        return false;

    change->frame = (uint64_t)frame;
    change->usable = sqlite3_column_int(row, 2);

    return true;
}

static bool take_hint(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;
    uint32_t device = 0;

    if (!is_of_pass(reader, row, 3))
        return true;
    if (!take_u32(reader, row, 0, 0, COX_DEVICES_MAX - 1, &device))
        return false;

    double hint = sqlite3_column_double(row, 1);
    session->hints[device] = 1;
    if (isfinite(hint) && hint > 0)
        session->hints[device] = hint;
    if (session->single_device_ns[device] <= 0)
        session->single_device_ns[device] = fmax(0, sqlite3_column_double(row, 2));

    return true;
}

/* "[0.5,0.5]" */
static void read_ratios(struct lab_replay_session *session, const char *text)
{
    uint32_t count = 0;

    while (count < COX_DEVICES_MAX && (*text == '[' || *text == ',')) {
        char *end = NULL;

        session->ratios[count] = strtod(text + 1, &end);
        if (end == text + 1)
            break;
        count++;
        text = end;
    }

    session->options.ratio_count = count;
    if (count > 0)
        session->options.ratios = session->ratios;
}

static bool take_options(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;
    struct cox_policy_options *options = &session->options;
    int64_t objective = 0, deadline = 0;

    if (!take_u32(reader, row, 1, 0, COX_DEVICES_MAX, &options->device) ||
        !take_number(reader, row, 2, 0, COX_OBJECTIVE_LATENCY, &objective) ||
        !take_number(reader, row, 3, 0, INT64_MAX, &deadline) ||
        !take_u32(reader, row, 4, 0, INT32_MAX, &options->chunk_rows))
        return false;

    options->objective = (enum cox_objective)objective;
    options->deadline_ns = (uint64_t)deadline;

    const char *text = (const char *)sqlite3_column_text(row, 0);
    if (text)
        read_ratios(session, text);

    return true;
}

static bool take_profile(const struct reader *reader, sqlite3_stmt *row, void *into)
{
    struct lab_replay_session *session = into;
    uint32_t device = 0, pass = 0;

    if (!take_u32(reader, row, 0, 0, COX_DEVICES_MAX - 1, &device) ||
        !take_u32(reader, row, 7, 0, COX_PASSES_MAX - 1, &pass))
        return false;

    session->profiles[pass][device] = (struct cox_device_profile){
        .frames = sqlite3_column_double(row, 1),
        .fixed_ns = sqlite3_column_double(row, 2),
        .launch_ns = sqlite3_column_double(row, 3),
        .ns_per_row = sqlite3_column_double(row, 4),
        .single_device_ns = sqlite3_column_double(row, 5),
        .share = sqlite3_column_double(row, 6),
    };
    session->profile_loaded = true;

    return true;
}

/* Each part of a session, in this order. */
static const struct {
    const char *sql;
    take_fn *take;
} session_parts[] = {
    {"SELECT frame, phase, rows, wall_ns, period_ns, status, reason, start_ns FROM frame "
     "WHERE session = ? ORDER BY frame",
     take_frame},
    {"SELECT frame, pass, start_ns, end_ns FROM frame_pass WHERE session = ? "
     "ORDER BY frame, pass",
     take_frame_pass},
    {"SELECT frame, device, first_row, rows, wall_ns, kernel_ns, status, end_ns - wall_ns, "
     "attempt, queue_ns, pass, ifnull(noticed_ns - end_ns, -1) "
     "FROM band LEFT JOIN notice USING (session, frame, band) "
     "WHERE session = ? ORDER BY frame, end_ns - wall_ns, first_row",
     take_band},
    {"SELECT frame, device, first_row, rows, wall_ns, 0, 0, 0, 0, 0, pass, -1 FROM shadow "
     "WHERE session = ? ORDER BY frame",
     take_shadow},
    {"SELECT pool, shadow, min_band_rows FROM call_view WHERE session = ? "
     "ORDER BY call LIMIT 1",
     take_view},
    {"SELECT v.granule, c.pass FROM call_view v JOIN call c USING (session, call) "
     "WHERE session = ? ORDER BY v.call",
     take_row_alignment},
    {"SELECT d.device, d.hint, d.solo_ns, c.pass FROM call_device d "
     "JOIN call c USING (session, call) "
     "WHERE session = ? ORDER BY d.call",
     take_hint},
    {"SELECT ifnull(c.frame, 0) AS frame, d.device, d.usable, c.pass FROM call_device d "
     "JOIN call c USING (session, call) "
     "WHERE session = ? ORDER BY d.call, d.device",
     take_change},
    {"SELECT ratios, device, objective, deadline_ns, chunk_rows FROM call_options "
     "WHERE session = ?",
     take_options},
    {"SELECT device, frames, fixed_ns, launch_ns, ns_per_row, solo_ns, share, pass "
     "FROM call_profile WHERE session = ?",
     take_profile},
};

static bool read_session(const struct reader *reader, struct lab_replay_session *session)
{
    for (uint32_t d = 0; d < COX_DEVICES_MAX; d++)
        session->hints[d] = 1;

    for (size_t i = 0; i < sizeof session_parts / sizeof *session_parts; i++)
        if (!each_row(reader, session_parts[i].sql, session->session, session_parts[i].take,
                      session))
            return false;

    assign_bands(session, reader->data->in_flight <= 1);

    return true;
}

/* Sessions of another runtime are left out: their times include its copies and its threads. */
static const char sessions[] =
    "SELECT session, CASE kind WHEN 'policy' THEN 0 WHEN 'solo' THEN 1 ELSE 2 END, policy, repeat "
    "FROM session WHERE run = ? AND policy IS NOT 'starpu-dmda' ORDER BY session";

static bool read_all(const struct reader *reader, int64_t run)
{
    struct lab_replay_data *data = reader->data;

    if (!each_row(
            reader,
            "SELECT run, kernel, rows, granule, in_flight, CASE objective WHEN 'energy' THEN 1"
            " WHEN 'latency' THEN 2 "
            "ELSE 0 END, "
            "finished, deadline_ns FROM run "
            "WHERE run = ?1 OR ?1 = 0 ORDER BY run DESC LIMIT 1",
            run, take_run, data))
        return false;
    if (data->run == 0 && run)
        return lab_replay_refuse(reader->why, reader->why_bytes, "no run %lld", (long long)run);
    if (data->run == 0)
        return lab_replay_refuse(reader->why, reader->why_bytes, "no runs are recorded");

    if (!each_row(reader, "SELECT pass, rows, name FROM pass WHERE run = ? ORDER BY pass",
                  data->run, take_pass, data) ||
        !each_row(reader, "SELECT device, name FROM device WHERE run = ?", data->run, take_device,
                  data) ||
        !each_row(reader, sessions, data->run, take_session, data))
        return false;

    for (size_t s = 0; s < data->session_count; s++)
        if (!read_session(reader, &data->sessions[s]))
            return false;

    return true;
}

/* One pass after the other; each begins with the run's row. */
static bool read_passes(struct reader *reader, int64_t run)
{
    struct lab_replay_data *first = reader->data;

    if (!read_all(reader, run))
        return false;

    for (uint32_t pass = 1; pass < first->pass_count; pass++) {
        struct lab_replay_data *next = calloc(1, sizeof *next);
        if (!next)
            return lab_replay_refuse(reader->why, reader->why_bytes, "out of memory");

        reader->data->next_pass = next;
        reader->data = next;
        reader->pass = pass;
        if (!read_all(reader, first->run))
            return false;
        if (next->device_count > first->device_count)
            first->device_count = next->device_count;
    }

    /* A band may be of a device that the run does not list. */
    for (struct lab_replay_data *pass = first; pass; pass = pass->next_pass)
        pass->device_count = first->device_count;

    return true;
}

bool lab_replay_read(struct sqlite3 *db, int64_t run, struct lab_replay_data **out, char *why,
                     size_t why_bytes)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return lab_replay_refuse(why, why_bytes, "out of memory");

    struct reader reader = {.db = db, .data = *out, .why = why, .why_bytes = why_bytes};
    bool good = false;
    /* One transaction: the file may be growing. */
    if (sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK)
        good = read_passes(&reader, run);
    else
        sql_failed(&reader);
    sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    if (!good)
        lab_replay_free(out);

    return good;
}

bool lab_replay_has_one_pass(const struct lab_replay_data *data, char *why, size_t why_bytes)
{
    if (data->pass_count == 1)
        return true;

    return lab_replay_refuse(why, why_bytes,
                             "run %lld has frames of %u passes; only runs of one pass "
                             "can be fitted",
                             (long long)data->run, data->pass_count);
}

void lab_replay_free(struct lab_replay_data **data)
{
    if (!*data)
        return;

    lab_replay_free(&(*data)->next_pass);
    for (size_t s = 0; s < (*data)->session_count; s++) {
        free((*data)->sessions[s].frames);
        free((*data)->sessions[s].bands);
        free((*data)->sessions[s].shadows);
        free((*data)->sessions[s].changes);
    }

    free((*data)->sessions);
    free(*data);
    *data = NULL;
}
