/* A recorded run as a trace for a viewer: tracks with slices, instants and counters, all in order
 * of time. trace.c reads them from a session database. Each format (paje.c, perfetto.c) writes them
 * as they come.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_TRACE_H
#define COX_EXAMPLES_LAB_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum trace_track_kind {
    TRACE_MACHINE, /* the first one; has groups */
    TRACE_GROUP,   /* a session, or the telemetry; has slices and counters */
    TRACE_SLICES,  /* and instants */
    TRACE_COUNTER
};

/* Numbers count from 1; a track's parent comes before it. */
struct trace_track {
    enum trace_track_kind kind;
    uint32_t number, parent; /* parent 0 = none */
    const char *name;        /* printable UTF-8; NULL at the trace's end, like `unit` */
    const char *unit;        /* of counters; "" = none */
};

/* TRACE_FRAME to TRACE_BAND are slices, the others instants. */
enum trace_category {
    TRACE_FRAME,
    TRACE_PASS,
    TRACE_BAND,
    TRACE_SPLIT,
    TRACE_PHASE,
    TRACE_CATEGORIES
};
extern const char *const trace_category_names[TRACE_CATEGORIES];

enum trace_field {
    TRACE_FIELD_FRAME,
    TRACE_FIELD_FIRST_ROW,
    TRACE_FIELD_ROWS,
    TRACE_FIELD_QUEUE_NS,
    TRACE_FIELD_KERNEL_NS,
    TRACE_FIELD_PREDICTED_NS,
    TRACE_FIELD_ATTEMPT,
    TRACE_FIELD_STATUS,
    TRACE_FIELDS
};
extern const char *const trace_field_names[TRACE_FIELDS];

/* The beginning of a slice, or an instant. */
struct trace_event {
    uint32_t track;
    int64_t ns; /* since the trace's beginning */
    enum trace_category category;
    uint32_t name;                /* a number of trace_format.add_name */
    int64_t fields[TRACE_FIELDS]; /* negative = unknown */
};

/* A format's state while it is written. */
struct trace_writer {
    FILE *to;
    uint32_t names; /* added until now */
    int64_t last_ns;
};

/* A writer of a format. The caller checks the stream `to` for errors at the end. All names come
 * first, with numbers that count from 1; then all tracks; then the events. */
struct trace_format {
    const char *name;
    void (*begin)(struct trace_writer *writer);
    void (*add_name)(struct trace_writer *writer, uint32_t name, enum trace_category category,
                     const char *text);
    void (*add_track)(struct trace_writer *writer, const struct trace_track *track);
    void (*begin_slice)(struct trace_writer *writer, const struct trace_event *event);
    void (*end_slice)(struct trace_writer *writer, uint32_t track, int64_t ns);
    void (*instant)(struct trace_writer *writer, const struct trace_event *event);
    void (*count)(struct trace_writer *writer, uint32_t track, int64_t ns, double value);
    void (*end)(struct trace_writer *writer, const struct trace_track *tracks, uint32_t count);
};
extern const struct trace_format trace_paje, trace_perfetto;

/* One run of a database: its policies' sessions. `run` 0 = the last one; `policy` NULL = all. False
 * with one sentence in `why`. */
struct sqlite3;
bool trace_read(struct sqlite3 *db, int64_t run, const char *policy,
                const struct trace_format *format, FILE *to, char *why, size_t why_bytes);

#endif
