/* A run's tracks and events, out of a session database. Everything is sorted by SQLite, which uses files where memory
 * would not do, so a run may be as long as it likes. Nothing that stands in the database is believed.
 *
 * The names are those of cox-tonemap's traces: a scheduler, a queue for each device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "trace.h"

#include <coxswain/session.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    SESSIONS_MAX = 10000,
    DEVICES_MAX = 32,
    SLOTS_MAX = 64,
    SOURCES_MAX = 4096,
    NAMES_MAX = 4096
};

static const int64_t ns_max = INT64_C(1) << 60;

const char *const trace_category_names[TRACE_CATEGORIES] = {[TRACE_FRAME] = "frame",
                                                            [TRACE_PASS] = "pass",
                                                            [TRACE_BAND] = "band",
                                                            [TRACE_SPLIT] = "split",
                                                            [TRACE_PHASE] = "phase"};

const char *const trace_field_names[TRACE_FIELDS] = {
    [TRACE_FIELD_FRAME] = "frame",         [TRACE_FIELD_FIRST_ROW] = "first_row",
    [TRACE_FIELD_ROWS] = "rows",           [TRACE_FIELD_QUEUE_NS] = "queue_ns",
    [TRACE_FIELD_KERNEL_NS] = "kernel_ns", [TRACE_FIELD_PREDICTED_NS] = "predicted_ns",
    [TRACE_FIELD_ATTEMPT] = "attempt",     [TRACE_FIELD_STATUS] = "status"};

/* Numbers of trace_format.tell_name: the frame's, those of each pass's bands, then reasons and phases. A pass is named
 * as its bands. */
enum { NAME_FRAME = 1, NAME_BAND };
enum { BAND_NAMES = 4 }; /* plain, on demand, again, failed */

/* Numbers of a table's rows by their places. */
struct places {
    int64_t *numbers;
    uint32_t count;
};

struct reading {
    sqlite3 *db;
    int64_t run;
    const char *policy;
    const struct trace_format *format;
    struct trace_writer writer;
    uint32_t slots;
    struct places devices, sources, reasons, phases, passes;
    uint32_t sessions;
    uint32_t first_source, first_session; /* tracks */
    struct trace_track *tracks;
    uint32_t track_count;
    bool has_telemetry;
    char *why;
    size_t why_bytes;
};

static bool refuse(struct reading *reading, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool refuse(struct reading *reading, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reading->why, reading->why_bytes, format, args);
    va_end(args);
    return false;
}

/* A query about the run (?1) and perhaps the policy (?2); NULL with a reason. */
static sqlite3_stmt *query(struct reading *reading, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(reading->db, sql, -1, &statement, NULL) != SQLITE_OK) {
        refuse(reading, "%s", sqlite3_errmsg(reading->db));
        return NULL;
    }
    if (sqlite3_bind_parameter_count(statement) >= 1)
        sqlite3_bind_int64(statement, 1, reading->run);
    if (sqlite3_bind_parameter_count(statement) >= 2 && reading->policy)
        sqlite3_bind_text(statement, 2, reading->policy, -1, SQLITE_STATIC);
    return statement;
}

static const char *text_at(sqlite3_stmt *row, int column, char *text, size_t bytes)
{
    return text_plain((const char *)sqlite3_column_text(row, column), text, bytes);
}

/* --- Tracks and names --------------------------------------------------------------------------------------------- */

/* Call `take` for each row, with its place; the first column becomes its number, where there are `places`. */
typedef bool take_fn(struct reading *reading, sqlite3_stmt *row, uint32_t place);

static bool each(struct reading *reading, const char *sql, uint32_t most, struct places *places,
                 take_fn *take)
{
    sqlite3_stmt *statement = query(reading, sql);
    uint32_t count = 0;
    bool good = statement != NULL;
    int result = SQLITE_DONE;
    if (good && places)
        places->numbers = calloc(most, sizeof *places->numbers);
    if (good && places && !places->numbers)
        good = refuse(reading, "out of memory");
    while (good && (result = sqlite3_step(statement)) == SQLITE_ROW) {
        if (count == most)
            good = refuse(reading, "too many rows");
        else if (places)
            places->numbers[places->count++] = sqlite3_column_int64(statement, 0);
        good = good && (!take || take(reading, statement, count));
        count++;
    }
    if (good && result != SQLITE_DONE)
        good = refuse(reading, "%s", sqlite3_errmsg(reading->db));
    sqlite3_finalize(statement);
    return good;
}

/* The place of a number; the count where it has none. */
static uint32_t place_of(const struct places *places, int64_t number)
{
    uint32_t place = 0;
    while (place < places->count && places->numbers[place] != number)
        place++;
    return place;
}

static uint32_t add_track(struct reading *reading, enum trace_track_kind kind, uint32_t parent,
                          const char *name, const char *unit)
{
    const struct trace_track track = {.kind = kind,
                                      .number = reading->track_count + 1,
                                      .parent = parent,
                                      .name = name,
                                      .unit = unit};
    reading->format->tell_track(&reading->writer, &track);
    reading->tracks[reading->track_count] = track;
    reading->tracks[reading->track_count].name = reading->tracks[reading->track_count].unit = NULL;
    reading->track_count++;
    return track.number;
}

static bool has_passes(const struct reading *reading)
{
    return reading->passes.count > 1;
}

/* Of one session: its own, the scheduler's, one for each frame slot, and, of several passes, one for its passes, two
 * for each device. */
static uint32_t session_tracks(const struct reading *reading)
{
    return 2 + (has_passes(reading) ? 2 : 1) * reading->slots + 2 * reading->devices.count;
}

static uint32_t scheduler_track(const struct reading *reading, uint32_t session)
{
    return reading->first_session + session * session_tracks(reading) + 1;
}

static uint32_t slot_track(const struct reading *reading, uint32_t session, int64_t frame)
{
    return scheduler_track(reading, session) + 1 +
           (uint32_t)(frame < 0 ? 0 : frame % reading->slots);
}

static uint32_t passes_track(const struct reading *reading, uint32_t session, int64_t frame)
{
    return slot_track(reading, session, frame) + reading->slots;
}

static uint32_t queue_track(const struct reading *reading, uint32_t session, uint32_t device)
{
    return scheduler_track(reading, session) + 1 + (has_passes(reading) ? 2 : 1) * reading->slots +
           device;
}

static uint32_t rows_track(const struct reading *reading, uint32_t session, uint32_t device)
{
    return queue_track(reading, session, device) + reading->devices.count;
}

static bool take_source(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char name[256], unit[32];
    (void)place;
    add_track(reading, TRACE_COUNTER, reading->first_source - 1, text_at(row, 1, name, sizeof name),
              text_at(row, 2, unit, sizeof unit));
    return true;
}

static bool take_queue(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char texts[3][160], name[512];
    (void)place;
    snprintf(name, sizeof name, "queue %d: %s (%s, %s)", sqlite3_column_int(row, 0),
             text_at(row, 1, texts[0], 160), text_at(row, 2, texts[1], 160),
             text_at(row, 3, texts[2], 160));
    add_track(reading, TRACE_SLICES,
              reading->first_session + reading->sessions * session_tracks(reading), name, "");
    return true;
}

static bool take_session(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char policy[128], name[192];
    const int repeat = sqlite3_column_int(row, 2);
    const uint32_t own = reading->first_session + place * session_tracks(reading);
    text_at(row, 1, policy, sizeof policy);
    if (repeat > 0)
        snprintf(name, sizeof name, "%s, repeat %d", policy, repeat);
    else
        snprintf(name, sizeof name, "%s", policy);
    add_track(reading, TRACE_GROUP, 1, name, "");
    add_track(reading, TRACE_SLICES, own, "scheduler", "");
    static const char *const of_slots[][2] = {{"frames", "frames %u"}, {"passes", "passes %u"}};
    for (uint32_t i = 0; i < (has_passes(reading) ? 2 : 1) * reading->slots; i++) {
        snprintf(name, sizeof name, of_slots[i / reading->slots][reading->slots > 1],
                 i % reading->slots);
        add_track(reading, TRACE_SLICES, own, name, "");
    }
    reading->sessions = place;
    if (!each(reading, "SELECT device, name, type, mode FROM device WHERE run = ?1 ORDER BY device",
              DEVICES_MAX, NULL, take_queue))
        return false;
    for (uint32_t d = 0; d < reading->devices.count; d++) {
        snprintf(name, sizeof name, "rows of device %lld", (long long)reading->devices.numbers[d]);
        add_track(reading, TRACE_COUNTER, own, name, "rows");
    }
    reading->sessions = place + 1;
    return true;
}

static void tell_name(struct reading *reading, enum trace_category category, const char *text)
{
    reading->format->tell_name(&reading->writer, ++reading->writer.names, category, text);
}

static bool take_reason(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char text[256];
    (void)place;
    tell_name(reading, TRACE_SPLIT, text_at(row, 1, text, sizeof text));
    return true;
}

static bool take_phase(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char text[256], name[300];
    snprintf(name, sizeof name, "phase %u: %s", place, text_at(row, 1, text, sizeof text));
    tell_name(reading, TRACE_PHASE, name);
    return true;
}

/* Of a run of one pass "band", "on demand" and so on. */
static bool take_pass(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    static const char *const kinds[BAND_NAMES] = {"band", "on demand", "again", "failed"};
    const bool several = sqlite3_column_int(row, 2) > 1;
    char text[256], pass[300], name[400];
    snprintf(pass, sizeof pass, "pass %u", place);
    if (sqlite3_column_type(row, 1) != SQLITE_NULL)
        snprintf(pass, sizeof pass, "%s", text_at(row, 1, text, sizeof text));
    for (int kind = 0; kind < BAND_NAMES; kind++) {
        snprintf(name, sizeof name, kind ? "%s, %s" : "%s", pass, kinds[kind]);
        tell_name(reading, TRACE_BAND, several ? name : kinds[kind]);
    }
    return true;
}

static bool tell_names(struct reading *reading)
{
    tell_name(reading, TRACE_FRAME, "frame");
    return each(reading,
                "SELECT pass, name, count(*) OVER () FROM pass WHERE run = ?1 ORDER BY pass",
                COX_PASSES_MAX, &reading->passes, take_pass) &&
           each(reading, "SELECT reason, text FROM reason ORDER BY reason", NAMES_MAX,
                &reading->reasons, take_reason) &&
           each(reading, "SELECT phase, text FROM phase WHERE run = ?1 ORDER BY phase", NAMES_MAX,
                &reading->phases, take_phase);
}

/* The sessions that take part, with their places and where they begin in the trace: by telemetry's clock, or all at
 * once where there is none. */
#define PICKED                                                                                                          \
    "WITH picked AS (SELECT s.session, s.policy, s.repeat, coalesce(t.start_ns, 0) AS begun,"                           \
    " row_number() OVER (ORDER BY s.session) - 1 AS place FROM session s LEFT JOIN telemetry_session t USING (session)" \
    " WHERE s.run = ?1 AND s.kind = 'policy' AND (?2 IS NULL OR s.policy = ?2)"                                         \
    " AND EXISTS (SELECT 1 FROM frame f WHERE f.session = s.session))"

static bool tell_tracks(struct reading *reading)
{
    if (!each(reading, "SELECT device FROM device WHERE run = ?1 ORDER BY device", DEVICES_MAX,
              &reading->devices, NULL) ||
        !each(
            reading,
            "SELECT source FROM telemetry_source WHERE run = ?1 AND kind <> 'setting' ORDER BY source",
            SOURCES_MAX, &reading->sources, NULL))
        return false;
    const uint32_t machine = 1 + (reading->sources.count ? 1 : 0) + reading->sources.count;
    reading->tracks = calloc(machine + (size_t)SESSIONS_MAX * session_tracks(reading),
                             sizeof *reading->tracks);
    if (!reading->tracks)
        return refuse(reading, "out of memory");
    add_track(reading, TRACE_MACHINE, 0, "machine", "");
    if (reading->sources.count) {
        reading->first_source = 1 + add_track(reading, TRACE_GROUP, 1, "telemetry", "");
        if (!each(
                reading,
                "SELECT source, name, unit FROM telemetry_source WHERE run = ?1 AND kind <> 'setting' "
                "ORDER BY source",
                SOURCES_MAX, NULL, take_source))
            return false;
    }
    reading->first_session = machine + 1;
    return each(reading, PICKED " SELECT session, policy, repeat FROM picked ORDER BY place",
                SESSIONS_MAX, NULL, take_session) &&
           (reading->sessions ||
            refuse(reading, "run %lld has no frames of %s", (long long)reading->run,
                   reading->policy ? "that policy" : "policies"));
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

enum {
    FRAME_BEGINS,
    FRAME_ENDS,
    BAND_BEGINS,
    BAND_ENDS,
    SPLIT,
    PHASE,
    ROWS,
    READING,
    PASS_BEGINS,
    PASS_ENDS
};
enum {
    COLUMN_WHAT,
    COLUMN_NS,
    COLUMN_SESSION,
    COLUMN_OF,
    COLUMN_NAME,
    COLUMN_VALUE,
    COLUMN_FIELDS
};

/* Slices of a track do not overlap: a queue does one band at a time, and a slot one frame; clocks read apart may say a
 * little else. At one moment, what ends comes before what begins, unless it is the same slice. */
static const char events[] = PICKED
    ", frames AS (SELECT place, session, frame, phase, rows, reason, pool_rows, predicted_ns, status,"
    "   begun + start_ns AS began, begun + start_ns + wall_ns AS ended FROM picked JOIN frame USING (session)),"
    " whole AS (SELECT *, min(ended, max(began, coalesce(max(ended) OVER (PARTITION BY place, frame % ?3"
    "   ORDER BY frame ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins,"
    "   lag(phase) OVER (PARTITION BY place ORDER BY frame) AS phase_before FROM frames),"
    " passes AS (SELECT w.place, w.frame, p.*, w.began + p.start_ns AS began, w.began + p.end_ns AS ended"
    "   FROM whole w JOIN frame_pass p USING (session, frame)),"
    " spans AS (SELECT *, min(ended, max(began, coalesce(max(ended) OVER (PARTITION BY place, frame % ?3"
    "   ORDER BY frame, pass ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins FROM passes WHERE ?4 > 1),"
    " pieces AS (SELECT p.place, b.*, p.begun + f.start_ns + b.end_ns AS ended"
    "   FROM picked p JOIN frame f USING (session) JOIN band b USING (session, frame) WHERE b.wall_ns > 0),"
    " bands AS (SELECT *, min(ended, max(ended - wall_ns, coalesce(max(ended) OVER (PARTITION BY place, device"
    "   ORDER BY ended, frame, band ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins FROM pieces),"
    " all_events(what, ns, place, of, name, value, frame, first_row, rows, queue_ns, kernel_ns, predicted_ns, attempt,"
    "   status, turn) AS ("
    "  SELECT 0, begins, place, frame, 1, 0, frame, -1, rows, -1, -1, predicted_ns, -1, status, 2 FROM whole"
    "  UNION ALL SELECT 1, ended, place, frame, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, CASE WHEN ended > begins THEN 0 ELSE 3 END"
    "   FROM whole"
    "  UNION ALL SELECT 2, begins, place, device,"
    "   ?5 * pass + CASE WHEN status <> 0 THEN 3 WHEN attempt > 0 THEN 2 WHEN on_demand THEN 1 ELSE 0 END, 0, frame, first_row,"
    "   rows, queue_ns, kernel_ns, predicted_ns, attempt, status, 2 FROM bands"
    "  UNION ALL SELECT 3, ended, place, device, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,"
    "   CASE WHEN ended > begins THEN 0 ELSE 3 END FROM bands"
    "  UNION ALL SELECT 4, began, place, reason, 0, 0, frame, -1, pool_rows, -1, -1, predicted_ns, -1, -1, 1 FROM passes"
    "  UNION ALL SELECT 8, begins, place, frame, ?5 * pass, 0, frame, -1, -1, -1, -1, predicted_ns, -1, -1, 2 FROM spans"
    "  UNION ALL SELECT 9, ended, place, frame, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, CASE WHEN ended > begins THEN 0 ELSE 3 END"
    "   FROM spans"
    "  UNION ALL SELECT 5, began, place, phase, 0, 0, frame, -1, -1, -1, -1, -1, -1, -1, 1 FROM whole"
    "   WHERE phase IS NOT phase_before"
    "  UNION ALL SELECT 6, began, place, d.device, 0, (SELECT coalesce(sum(b.rows), 0) FROM band b WHERE"
    "   b.session = w.session AND b.frame = w.frame AND b.device = d.device AND b.attempt = 0),"
    "   0, 0, 0, 0, 0, 0, 0, 0, 1 FROM whole w, device d WHERE d.run = ?1"
    "  UNION ALL SELECT 7, at_ns, 0, source, 0, value, 0, 0, 0, 0, 0, 0, 0, 0, 1 FROM telemetry"
    "   WHERE run = ?1 AND typeof(value) IN ('integer', 'real'))"
    " SELECT what, ns, place, of, name, value, frame, first_row, rows, queue_ns, kernel_ns, predicted_ns, attempt, status"
    " FROM all_events ORDER BY ns, turn, place, what, of";

static void write_slice(struct reading *reading, sqlite3_stmt *row, struct trace_event *event)
{
    for (int f = 0; f < TRACE_FIELDS; f++)
        event->fields[f] = sqlite3_column_int64(row, COLUMN_FIELDS + f);
    for (int f = TRACE_FIELD_QUEUE_NS; f < TRACE_FIELDS; f++)
        if (event->fields[f] == 0) /* not known, or nothing to tell */
            event->fields[f] = -1;
    (event->category <= TRACE_BAND ? reading->format->begin_slice
                                   : reading->format->instant)(&reading->writer, event);
}

static void write_event(struct reading *reading, sqlite3_stmt *row)
{
    const struct trace_format *format = reading->format;
    const int what = sqlite3_column_int(row, COLUMN_WHAT);
    const uint32_t session = (uint32_t)sqlite3_column_int(row, COLUMN_SESSION);
    const int64_t of = sqlite3_column_int64(row, COLUMN_OF),
                  at = sqlite3_column_int64(row, COLUMN_NS);
    const int64_t ns = at < 0 ? 0 : at > ns_max ? ns_max : at;
    const uint32_t device = place_of(&reading->devices, of);
    const double value = sqlite3_column_double(row, COLUMN_VALUE);
    const int64_t name = sqlite3_column_int64(row, COLUMN_NAME),
                  names = BAND_NAMES * (int64_t)reading->passes.count;
    struct trace_event event = {.ns = ns};
    event.name = NAME_BAND + (name >= 0 && name < names ? (uint32_t)name : 0);
    switch (what) {
    case FRAME_BEGINS:
        event.track = slot_track(reading, session, of);
        event.category = TRACE_FRAME;
        event.name = NAME_FRAME;
        write_slice(reading, row, &event);
        return;
    case FRAME_ENDS:
        format->end_slice(&reading->writer, slot_track(reading, session, of), ns);
        return;
    case PASS_BEGINS:
        event.track = passes_track(reading, session, of);
        event.category = TRACE_PASS;
        write_slice(reading, row, &event);
        return;
    case PASS_ENDS:
        format->end_slice(&reading->writer, passes_track(reading, session, of), ns);
        return;
    case SPLIT:
    case PHASE: {
        const struct places *places = what == SPLIT ? &reading->reasons : &reading->phases;
        const uint32_t place = place_of(places, of);
        event.track = scheduler_track(reading, session);
        event.category = what == SPLIT ? TRACE_SPLIT : TRACE_PHASE;
        event.name = NAME_BAND + (uint32_t)names + (what == SPLIT ? 0 : reading->reasons.count) +
                     place;
        if (place < places->count)
            write_slice(reading, row, &event);
        return;
    }
    case READING:
        if (place_of(&reading->sources, of) < reading->sources.count)
            format->count(&reading->writer, reading->first_source + place_of(&reading->sources, of),
                          ns, value);
        return;
    default:
        break;
    }
    if (device == reading->devices.count) /* of no device of the run */
        return;
    if (what == BAND_BEGINS) {
        event.track = queue_track(reading, session, device);
        event.category = TRACE_BAND;
        write_slice(reading, row, &event);
    } else if (what == BAND_ENDS) {
        format->end_slice(&reading->writer, queue_track(reading, session, device), ns);
    } else {
        format->count(&reading->writer, rows_track(reading, session, device), ns, value);
    }
}

static bool write_events(struct reading *reading)
{
    sqlite3_stmt *statement = query(reading, events);
    int result = SQLITE_ERROR;
    if (!statement)
        return false;
    sqlite3_bind_int64(statement, 3, reading->slots);
    sqlite3_bind_int64(statement, 4, reading->passes.count);
    sqlite3_bind_int(statement, 5, BAND_NAMES);
    while ((result = sqlite3_step(statement)) == SQLITE_ROW)
        write_event(reading, statement);
    if (result != SQLITE_DONE)
        refuse(reading, "%s", sqlite3_errmsg(reading->db));
    sqlite3_finalize(statement);
    return result == SQLITE_DONE;
}

/* --- A run -------------------------------------------------------------------------------------------------------- */

static bool take_run(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    const int64_t in_flight = sqlite3_column_int64(row, 1);
    (void)place;
    reading->run = sqlite3_column_int64(row, 0);
    reading->slots = in_flight < 1 ? 1 : in_flight > SLOTS_MAX ? SLOTS_MAX : (uint32_t)in_flight;
    return true;
}

bool trace_read(struct sqlite3 *db, int64_t run, const char *policy,
                const struct trace_format *format, FILE *to, char *why, size_t why_bytes)
{
    struct reading reading = {.db = db,
                              .run = run,
                              .policy = policy,
                              .format = format,
                              .writer = {.to = to},
                              .why = why,
                              .why_bytes = why_bytes};
    bool good = each(
        &reading,
        "SELECT run, in_flight FROM run WHERE run = ?1 OR ?1 = 0 ORDER BY run DESC LIMIT 1", 1,
        NULL, take_run);
    if (good && !reading.slots)
        good = run ? refuse(&reading, "there is no run %lld", (long long)run)
                   : refuse(&reading, "there is no run in it");
    if (good) {
        format->begin(&reading.writer);
        good = tell_names(&reading) && tell_tracks(&reading) && write_events(&reading);
    }
    if (good)
        format->end(&reading.writer, reading.tracks, reading.track_count);
    free(reading.devices.numbers);
    free(reading.sources.numbers);
    free(reading.reasons.numbers);
    free(reading.phases.numbers);
    free(reading.passes.numbers);
    free(reading.tracks);
    return good;
}
