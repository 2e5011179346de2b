/* Reads a run's tracks and events from a session database. SQLite sorts them, with temporary files
 * if needed, so a run may have any length. Nothing in the database is trusted.
 *
 * The names are those of cox-tonemap's traces: a scheduler, a queue for each device.
 * SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"
#include "common/text.h"

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

/* Numbers of trace_format.add_name: the frame's, those of each pass's bands, then reasons and
 * phases. A pass has the name of its plain bands. */
enum { NAME_FRAME = 1, NAME_BAND };
enum { BAND_NAMES = 4 }; /* plain, on demand, again, failed */

/* The numbers of a table's rows, in order: a number's index is its place. */
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
    char *why;
    size_t why_bytes;
};

__attribute__((format(printf, 2, 3))) static bool refuse(struct reading *reading,
                                                         const char *format, ...)
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

/* --- Tracks and names ------------------------------------------------------------------------- */

/* Call `take` for each row with its place. With `places` the first column becomes the place's
 * number. */
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

/* The place of a number; the count if it has none. */
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
    struct trace_track track = {.kind = kind,
                                .number = reading->track_count + 1,
                                .parent = parent,
                                .name = name,
                                .unit = unit};

    reading->format->add_track(&reading->writer, &track);
    track.name = track.unit = NULL; /* the caller's */
    reading->tracks[reading->track_count++] = track;

    return track.number;
}

static bool has_passes(const struct reading *reading)
{
    return reading->passes.count > 1;
}

/* One for each frame slot; with several passes another one for the slot's passes. */
static uint32_t slot_tracks(const struct reading *reading)
{
    if (has_passes(reading))
        return 2 * reading->slots;

    return reading->slots;
}

/* Of one session: its own, the scheduler's, those of the slots, and two for each device. */
static uint32_t session_tracks(const struct reading *reading)
{
    return 2 + slot_tracks(reading) + 2 * reading->devices.count;
}

static uint32_t scheduler_track(const struct reading *reading, uint32_t session)
{
    return reading->first_session + session * session_tracks(reading) + 1;
}

static uint32_t slot_track(const struct reading *reading, uint32_t session, int64_t frame)
{
    uint32_t slot = 0;

    if (frame > 0)
        slot = (uint32_t)(frame % reading->slots);

    return scheduler_track(reading, session) + 1 + slot;
}

static uint32_t passes_track(const struct reading *reading, uint32_t session, int64_t frame)
{
    return slot_track(reading, session, frame) + reading->slots;
}

static uint32_t queue_track(const struct reading *reading, uint32_t session, uint32_t device)
{
    return scheduler_track(reading, session) + 1 + slot_tracks(reading) + device;
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
    static const char *const of_slots[][2] = {{"frames", "frames %u"}, {"passes", "passes %u"}};
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
    for (uint32_t i = 0; i < slot_tracks(reading); i++) {
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

static void add_name(struct reading *reading, enum trace_category category, const char *text)
{
    reading->format->add_name(&reading->writer, ++reading->writer.names, category, text);
}

static bool take_reason(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char text[256];
    (void)place;
    add_name(reading, TRACE_SPLIT, text_at(row, 1, text, sizeof text));
    return true;
}

static bool take_phase(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    char text[256], name[300];
    snprintf(name, sizeof name, "phase %u: %s", place, text_at(row, 1, text, sizeof text));
    add_name(reading, TRACE_PHASE, name);
    return true;
}

/* In a run of one pass the names are "band", "on demand" and so on. */
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
        if (!several)
            snprintf(name, sizeof name, "%s", kinds[kind]);
        add_name(reading, TRACE_BAND, name);
    }

    return true;
}

static bool add_names(struct reading *reading)
{
    add_name(reading, TRACE_FRAME, "frame");

    return each(reading,
                "SELECT pass, name, count(*) OVER () FROM pass WHERE run = ?1 ORDER BY pass",
                COX_PASSES_MAX, &reading->passes, take_pass) &&
           each(reading, "SELECT reason, text FROM reason ORDER BY reason", NAMES_MAX,
                &reading->reasons, take_reason) &&
           each(reading, "SELECT phase, text FROM phase WHERE run = ?1 ORDER BY phase", NAMES_MAX,
                &reading->phases, take_phase);
}

/* The sessions that take part, with their places and their beginnings in the trace: by the
 * telemetry's clock, or all at once without telemetry. */
#define PICKED                                                                                \
    "WITH picked AS (SELECT s.session, s.policy, s.repeat, coalesce(t.start_ns, 0) AS begun," \
    " row_number() OVER (ORDER BY s.session) - 1 AS place FROM session s LEFT JOIN"           \
    " telemetry_session t USING (session)"                                                    \
    " WHERE s.run = ?1 AND s.kind = 'policy' AND (?2 IS NULL OR s.policy = ?2)"               \
    " AND EXISTS (SELECT 1 FROM frame f WHERE f.session = s.session))"

static bool add_tracks(struct reading *reading)
{
    if (!each(reading, "SELECT device FROM device WHERE run = ?1 ORDER BY device", DEVICES_MAX,
              &reading->devices, NULL) ||
        !each(reading,
              "SELECT source FROM telemetry_source WHERE run = ?1 AND kind <> 'setting' ORDER BY"
              " source",
              SOURCES_MAX, &reading->sources, NULL))
        return false;

    /* The machine's own track, and a group of counters. */
    uint32_t machine = 1;
    if (reading->sources.count)
        machine += 1 + reading->sources.count;
    reading->tracks = calloc(machine + (size_t)SESSIONS_MAX * session_tracks(reading),
                             sizeof *reading->tracks);
    if (!reading->tracks)
        return refuse(reading, "out of memory");

    add_track(reading, TRACE_MACHINE, 0, "machine", "");
    if (reading->sources.count) {
        reading->first_source = 1 + add_track(reading, TRACE_GROUP, 1, "telemetry", "");
        if (!each(reading,
                  "SELECT source, name, unit FROM telemetry_source WHERE run = ?1 AND kind <>"
                  " 'setting' "
                  "ORDER BY source",
                  SOURCES_MAX, NULL, take_source))
            return false;
    }

    reading->first_session = machine + 1;
    if (!each(reading, PICKED " SELECT session, policy, repeat FROM picked ORDER BY place",
              SESSIONS_MAX, NULL, take_session))
        return false;
    if (!reading->sessions)
        return refuse(reading, "run %lld has no frames of %s", (long long)reading->run,
                      reading->policy ? "that policy" : "policies");

    return true;
}

/* --- Events ----------------------------------------------------------------------------------- */

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

/* Slices of a track must not overlap: a queue does one band at a time, a slot one frame. Clocks
 * that were read at different times may disagree a little, so a slice begins after the end of the
 * one before. At one moment ends come before beginnings, except of the same slice. */
static const char events[] = PICKED
    /* When frames, passes and bands began and ended in the trace. */
    ", frames AS ("
    "  SELECT place, session, frame, phase, rows, reason, pool_rows, predicted_ns, status,"
    "   begun + start_ns AS began, begun + start_ns + wall_ns AS ended"
    "  FROM picked JOIN frame USING (session)),"
    " whole AS ("
    "  SELECT *, min(ended, max(began, coalesce(max(ended) OVER ("
    "    PARTITION BY place, frame % ?3 ORDER BY frame"
    "    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins,"
    "   lag(phase) OVER (PARTITION BY place ORDER BY frame) AS phase_before"
    "  FROM frames),"
    " passes AS ("
    "  SELECT w.place, w.frame, p.*, w.began + p.start_ns AS began, w.began + p.end_ns AS ended"
    "  FROM whole w JOIN frame_pass p USING (session, frame)),"
    " spans AS ("
    "  SELECT *, min(ended, max(began, coalesce(max(ended) OVER ("
    "    PARTITION BY place, frame % ?3 ORDER BY frame, pass"
    "    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins"
    "  FROM passes WHERE ?4 > 1),"
    " pieces AS ("
    "  SELECT p.place, b.*, p.begun + f.start_ns + b.end_ns AS ended"
    "  FROM picked p JOIN frame f USING (session) JOIN band b USING (session, frame)"
    "  WHERE b.wall_ns > 0),"
    " bands AS ("
    "  SELECT *, min(ended, max(ended - wall_ns, coalesce(max(ended) OVER ("
    "    PARTITION BY place, device ORDER BY ended, frame, band"
    "    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS begins"
    "  FROM pieces),"
    /* `what` is a FRAME_BEGINS ... PASS_ENDS; `turn` orders the events of one moment. */
    " all_events(what, ns, place, of, name, value,"
    "   frame, first_row, rows, queue_ns, kernel_ns, predicted_ns, attempt, status, turn) AS ("
    "  SELECT 0, begins, place, frame, 1, 0,"
    "   frame, -1, rows, -1, -1, predicted_ns, -1, status, 2 FROM whole"
    "  UNION ALL SELECT 1, ended, place, frame, 0, 0,"
    "   0, 0, 0, 0, 0, 0, 0, 0, CASE WHEN ended > begins THEN 0 ELSE 3 END FROM whole"
    "  UNION ALL SELECT 2, begins, place, device, ?5 * pass + CASE WHEN status <> 0 THEN 3"
    "    WHEN attempt > 0 THEN 2 WHEN on_demand THEN 1 ELSE 0 END, 0,"
    "   frame, first_row, rows, queue_ns, kernel_ns, predicted_ns, attempt, status, 2 FROM bands"
    "  UNION ALL SELECT 3, ended, place, device, 0, 0,"
    "   0, 0, 0, 0, 0, 0, 0, 0, CASE WHEN ended > begins THEN 0 ELSE 3 END FROM bands"
    "  UNION ALL SELECT 4, began, place, reason, 0, 0,"
    "   frame, -1, pool_rows, -1, -1, predicted_ns, -1, -1, 1 FROM passes"
    "  UNION ALL SELECT 8, begins, place, frame, ?5 * pass, 0,"
    "   frame, -1, -1, -1, -1, predicted_ns, -1, -1, 2 FROM spans"
    "  UNION ALL SELECT 9, ended, place, frame, 0, 0,"
    "   0, 0, 0, 0, 0, 0, 0, 0, CASE WHEN ended > begins THEN 0 ELSE 3 END FROM spans"
    "  UNION ALL SELECT 5, began, place, phase, 0, 0,"
    "   frame, -1, -1, -1, -1, -1, -1, -1, 1 FROM whole WHERE phase IS NOT phase_before"
    "  UNION ALL SELECT 6, began, place, d.device, 0, (SELECT coalesce(sum(b.rows), 0)"
    "    FROM band b WHERE b.session = w.session AND b.frame = w.frame"
    "    AND b.device = d.device AND b.attempt = 0),"
    "   0, 0, 0, 0, 0, 0, 0, 0, 1 FROM whole w, device d WHERE d.run = ?1"
    "  UNION ALL SELECT 7, at_ns, 0, source, 0, value,"
    "   0, 0, 0, 0, 0, 0, 0, 0, 1 FROM telemetry"
    "   WHERE run = ?1 AND typeof(value) IN ('integer', 'real'))"
    " SELECT what, ns, place, of, name, value,"
    "  frame, first_row, rows, queue_ns, kernel_ns, predicted_ns, attempt, status"
    " FROM all_events ORDER BY ns, turn, place, what, of";

static void write_slice(struct reading *reading, sqlite3_stmt *row, struct trace_event *event)
{
    for (int f = 0; f < TRACE_FIELDS; f++)
        event->fields[f] = sqlite3_column_int64(row, COLUMN_FIELDS + f);
    for (int f = TRACE_FIELD_QUEUE_NS; f < TRACE_FIELDS; f++)
        if (event->fields[f] == 0) /* unknown, or not worth a field */
            event->fields[f] = -1;

    if (event->category <= TRACE_BAND)
        reading->format->begin_slice(&reading->writer, event);
    else
        reading->format->instant(&reading->writer, event);
}

/* A split, with its reason, or the beginning of a phase. */
static void write_instant(struct reading *reading, sqlite3_stmt *row, struct trace_event *event,
                          bool split)
{
    const struct places *places = &reading->phases;
    const uint32_t session = (uint32_t)sqlite3_column_int(row, COLUMN_SESSION);
    uint32_t first = NAME_BAND + BAND_NAMES * reading->passes.count + reading->reasons.count;

    event->category = TRACE_PHASE;
    if (split) {
        event->category = TRACE_SPLIT;
        places = &reading->reasons;
        first -= reading->reasons.count;
    }

    const uint32_t place = place_of(places, sqlite3_column_int64(row, COLUMN_OF));
    event->track = scheduler_track(reading, session);
    event->name = first + place;
    if (place < places->count)
        write_slice(reading, row, event);
}

/* A band's beginning or end, or the rows of a device. */
static void write_device_event(struct reading *reading, sqlite3_stmt *row, int what,
                               struct trace_event *event)
{
    const struct trace_format *format = reading->format;
    const uint32_t session = (uint32_t)sqlite3_column_int(row, COLUMN_SESSION);
    const uint32_t device = place_of(&reading->devices, sqlite3_column_int64(row, COLUMN_OF));

    if (device == reading->devices.count) /* the run has no such device */
        return;

    event->track = queue_track(reading, session, device);
    event->category = TRACE_BAND;
    if (what == BAND_BEGINS)
        write_slice(reading, row, event);
    else if (what == BAND_ENDS)
        format->end_slice(&reading->writer, event->track, event->ns);
    else
        format->count(&reading->writer, rows_track(reading, session, device), event->ns,
                      sqlite3_column_double(row, COLUMN_VALUE));
}

static void write_reading(struct reading *reading, sqlite3_stmt *row, int64_t ns)
{
    const uint32_t source = place_of(&reading->sources, sqlite3_column_int64(row, COLUMN_OF));

    if (source < reading->sources.count)
        reading->format->count(&reading->writer, reading->first_source + source, ns,
                               sqlite3_column_double(row, COLUMN_VALUE));
}

static void write_event(struct reading *reading, sqlite3_stmt *row)
{
    const struct trace_format *format = reading->format;
    const int what = sqlite3_column_int(row, COLUMN_WHAT);
    const uint32_t session = (uint32_t)sqlite3_column_int(row, COLUMN_SESSION);
    const int64_t of = sqlite3_column_int64(row, COLUMN_OF);
    const int64_t name = sqlite3_column_int64(row, COLUMN_NAME);
    struct trace_event event = {.ns = sqlite3_column_int64(row, COLUMN_NS), .name = NAME_BAND};

    if (event.ns < 0)
        event.ns = 0;
    if (event.ns > ns_max)
        event.ns = ns_max;
    if (name >= 0 && name < BAND_NAMES * (int64_t)reading->passes.count)
        event.name += (uint32_t)name;

    switch (what) {
    case FRAME_BEGINS:
        event.track = slot_track(reading, session, of);
        event.category = TRACE_FRAME;
        event.name = NAME_FRAME;
        write_slice(reading, row, &event);
        break;
    case FRAME_ENDS:
        format->end_slice(&reading->writer, slot_track(reading, session, of), event.ns);
        break;
    case PASS_BEGINS:
        event.track = passes_track(reading, session, of);
        event.category = TRACE_PASS;
        write_slice(reading, row, &event);
        break;
    case PASS_ENDS:
        format->end_slice(&reading->writer, passes_track(reading, session, of), event.ns);
        break;
    case SPLIT:
    case PHASE:
        write_instant(reading, row, &event, what == SPLIT);
        break;
    case READING:
        write_reading(reading, row, event.ns);
        break;
    default:
        write_device_event(reading, row, what, &event);
        break;
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

/* --- A run ------------------------------------------------------------------------------------ */

static bool take_run(struct reading *reading, sqlite3_stmt *row, uint32_t place)
{
    int64_t in_flight = sqlite3_column_int64(row, 1);

    (void)place;
    if (in_flight < 1)
        in_flight = 1;
    if (in_flight > SLOTS_MAX)
        in_flight = SLOTS_MAX;
    reading->run = sqlite3_column_int64(row, 0);
    reading->slots = (uint32_t)in_flight;

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
    static const char one_run[] =
        "SELECT run, in_flight FROM run WHERE run = ?1 OR ?1 = 0 ORDER BY run DESC LIMIT 1";

    if (!each(&reading, one_run, 1, NULL, take_run))
        return false;
    if (!reading.slots && run)
        return refuse(&reading, "no run %lld", (long long)run);
    if (!reading.slots)
        return refuse(&reading, "no runs are recorded");

    format->begin(&reading.writer);
    bool good = add_names(&reading) && add_tracks(&reading) && write_events(&reading);
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
