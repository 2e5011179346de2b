/* The Paje trace format: events defined in a header, then a line for each. Times are seconds.
 *
 * Facts: L. M. Schnorr, "Paje Input Data Format" (the documentation of PajeNG). Fields may be added
 * to an event: states have the frame and the rows that they are of.
 * SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <inttypes.h>

/* Numbers of the events in the header. */
enum {
    DEFINE_CONTAINER,
    DEFINE_STATE,
    DEFINE_EVENT,
    DEFINE_VARIABLE,
    DEFINE_VALUE,
    CREATE,
    DESTROY,
    PUSH,
    POP,
    NEW_EVENT,
    SET
};

static const char header[] =
    "%EventDef PajeDefineContainerType 0\n"
    "% Alias string\n% Type string\n% Name string\n"
    "%EndEventDef\n"
    "%EventDef PajeDefineStateType 1\n"
    "% Alias string\n% Type string\n% Name string\n"
    "%EndEventDef\n"
    "%EventDef PajeDefineEventType 2\n"
    "% Alias string\n% Type string\n% Name string\n% Color color\n"
    "%EndEventDef\n"
    "%EventDef PajeDefineVariableType 3\n"
    "% Alias string\n% Type string\n% Name string\n% Color color\n"
    "%EndEventDef\n"
    "%EventDef PajeDefineEntityValue 4\n"
    "% Alias string\n% Type string\n% Name string\n% Color color\n"
    "%EndEventDef\n"
    "%EventDef PajeCreateContainer 5\n"
    "% Time date\n% Alias string\n% Type string\n% Container string\n% Name string\n"
    "%EndEventDef\n"
    "%EventDef PajeDestroyContainer 6\n"
    "% Time date\n% Type string\n% Name string\n"
    "%EndEventDef\n"
    "%EventDef PajePushState 7\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n"
    "% Frame int\n% FirstRow int\n% Rows int\n"
    "%EndEventDef\n"
    "%EventDef PajePopState 8\n"
    "% Time date\n% Type string\n% Container string\n"
    "%EndEventDef\n"
    "%EventDef PajeNewEvent 9\n"
    "% Time date\n% Type string\n% Container string\n% Value string\n% Frame int\n"
    "%EndEventDef\n"
    "%EventDef PajeSetVariable 10\n"
    "% Time date\n% Type string\n% Container string\n% Value double\n"
    "%EndEventDef\n";

/* Containers' types by kind of track, and the type that contains them. */
static const char *const types[] = {
    [TRACE_MACHINE] = "M", [TRACE_GROUP] = "G", [TRACE_SLICES] = "T", [TRACE_COUNTER] = "C"};

static void begin(struct trace_writer *writer)
{
    FILE *to = writer->to;

    fputs(header, to);
    fprintf(to, "%d M 0 \"machine\"\n", DEFINE_CONTAINER);
    fprintf(to, "%d G M \"group\"\n", DEFINE_CONTAINER);
    fprintf(to, "%d T G \"track\"\n", DEFINE_CONTAINER);
    fprintf(to, "%d C G \"counter\"\n", DEFINE_CONTAINER);
    fprintf(to, "%d ST T \"state\"\n", DEFINE_STATE);
    fprintf(to, "%d EV T \"event\" \"0.2 0.2 0.2\"\n", DEFINE_EVENT);
    fprintf(to, "%d VA C \"value\" \"0.2 0.4 0.7\"\n", DEFINE_VARIABLE);
}

/* A text as a field: in quotes. The format has no escape for a quote. */
static void put_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text; text++)
        if (*text == '"')
            fputc('\'', to);
        else
            fputc(*text, to);
    fputc('"', to);
}

static void put_line(struct trace_writer *writer, int event, int64_t ns)
{
    writer->last_ns = ns;
    fprintf(writer->to, "%d %" PRId64 ".%09d", event, ns / 1000000000, (int)(ns % 1000000000));
}

static void add_name(struct trace_writer *writer, uint32_t name, enum trace_category category,
                     const char *text)
{
    static const char *const colours[] = {"0.6 0.7 0.8", "0.3 0.6 0.3", "0.3 0.5 0.8",
                                          "0.8 0.6 0.2", "0.6 0.4 0.7", "0.8 0.3 0.3"};
    const char *type = "EV";

    if (category <= TRACE_BAND)
        type = "ST";
    fprintf(writer->to, "%d n%" PRIu32 " %s ", DEFINE_VALUE, name, type);
    put_text(writer->to, text);
    fprintf(writer->to, " \"%s\"\n", colours[(name - 1) % (sizeof colours / sizeof colours[0])]);
}

static void add_track(struct trace_writer *writer, const struct trace_track *track)
{
    put_line(writer, CREATE, 0);
    fprintf(writer->to, " t%" PRIu32 " %s ", track->number, types[track->kind]);

    if (track->parent)
        fprintf(writer->to, "t%" PRIu32 " ", track->parent);
    else
        fputs("0 ", writer->to);

    put_text(writer->to, track->name);
    fputc('\n', writer->to);
}

static int64_t known(int64_t value)
{
    if (value < 0)
        return 0;

    return value;
}

static void begin_slice(struct trace_writer *writer, const struct trace_event *event)
{
    put_line(writer, PUSH, event->ns);
    fprintf(writer->to, " ST t%" PRIu32 " n%" PRIu32 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
            event->track, event->name, known(event->fields[TRACE_FIELD_FRAME]),
            known(event->fields[TRACE_FIELD_FIRST_ROW]), known(event->fields[TRACE_FIELD_ROWS]));
}

static void end_slice(struct trace_writer *writer, uint32_t track, int64_t ns)
{
    put_line(writer, POP, ns);
    fprintf(writer->to, " ST t%" PRIu32 "\n", track);
}

static void instant(struct trace_writer *writer, const struct trace_event *event)
{
    put_line(writer, NEW_EVENT, event->ns);
    fprintf(writer->to, " EV t%" PRIu32 " n%" PRIu32 " %" PRId64 "\n", event->track, event->name,
            known(event->fields[TRACE_FIELD_FRAME]));
}

static void count(struct trace_writer *writer, uint32_t track, int64_t ns, double value)
{
    put_line(writer, SET, ns);
    fprintf(writer->to, " VA t%" PRIu32 " %.6f\n", track, value);
}

/* Children are destroyed before their container. */
static void end(struct trace_writer *writer, const struct trace_track *tracks, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        put_line(writer, DESTROY, writer->last_ns);
        fprintf(writer->to, " %s t%" PRIu32 "\n", types[tracks[i].kind], tracks[i].number);
    }
}

const struct trace_format trace_paje = {.name = "paje",
                                        .begin = begin,
                                        .add_name = add_name,
                                        .add_track = add_track,
                                        .begin_slice = begin_slice,
                                        .end_slice = end_slice,
                                        .instant = instant,
                                        .count = count,
                                        .end = end};
