/* Perfetto's binary form: a stream of TracePacket, with TrackDescriptor and TrackEvent in them.
 * Names of slices, categories and annotations are interned: sent once, then used by their numbers.
 *
 * Facts: perfetto.dev, "Writing TrackEvent Protos Synthetically", and the field numbers of
 * trace_packet.proto, track_descriptor.proto, track_event.proto, debug_annotation.proto and
 * interned_data.proto; protobuf.dev, "Encoding".
 * SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <string.h>

enum { SEQUENCE = 1, STATE_CLEARED = 1, NEEDS_STATE = 2 };
enum { WIRE_VARINT = 0, WIRE_DOUBLE = 1, WIRE_BYTES = 2 };

/* Numbers of fields. */
enum { TRACE_PACKET = 1 };
enum {
    PACKET_TIMESTAMP = 8,
    PACKET_SEQUENCE = 10,
    PACKET_EVENT = 11,
    PACKET_INTERNED = 12,
    PACKET_FLAGS = 13,
    PACKET_TRACK = 60
};
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT_NAME = 6 };
enum {
    EVENT_CATEGORY = 3,
    EVENT_ANNOTATION = 4,
    EVENT_TYPE = 9,
    EVENT_NAME = 10,
    EVENT_TRACK = 11,
    EVENT_DOUBLE = 44
};
enum { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };
enum { ANNOTATION_NAME = 1, ANNOTATION_INT = 4 };
enum { INTERNED_CATEGORY = 1, INTERNED_EVENT = 2, INTERNED_ANNOTATION = 3 };
enum { NAME_IID = 1, NAME_TEXT = 2 };

/* A message under construction. Texts are cut, so that every message fits. */
enum { TEXT_MAX = 400 };
struct message {
    size_t bytes;
    unsigned char data[1024];
};

static void put_varint(struct message *message, uint64_t value)
{
    while (value >= 0x80) {
        message->data[message->bytes++] = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    message->data[message->bytes++] = (unsigned char)value;
}

static void put_number(struct message *message, unsigned field, uint64_t value)
{
    put_varint(message, field << 3 | WIRE_VARINT);
    put_varint(message, value);
}

static void put_bytes(struct message *message, unsigned field, const void *data, size_t bytes)
{
    put_varint(message, field << 3 | WIRE_BYTES);
    put_varint(message, bytes);
    memcpy(message->data + message->bytes, data, bytes);
    message->bytes += bytes;
}

static void put_message(struct message *message, unsigned field, const struct message *inner)
{
    put_bytes(message, field, inner->data, inner->bytes);
}

/* Cut between characters. */
static void put_text(struct message *message, unsigned field, const char *text)
{
    size_t bytes = strlen(text);
    if (bytes > TEXT_MAX)
        for (bytes = TEXT_MAX; bytes > 0 && ((unsigned char)text[bytes] & 0xc0) == 0x80;)
            bytes--;
    put_bytes(message, field, text, bytes);
}

/* Little-endian, whatever the machine is. */
static void put_double(struct message *message, unsigned field, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put_varint(message, field << 3 | WIRE_DOUBLE);
    for (int i = 0; i < 8; i++)
        message->data[message->bytes++] = (unsigned char)(bits >> 8 * i);
}

static void write_packet(const struct trace_writer *writer, const struct message *packet)
{
    struct message head = {.bytes = 0};

    put_varint(&head, TRACE_PACKET << 3 | WIRE_BYTES);
    put_varint(&head, packet->bytes);

    fwrite(head.data, 1, head.bytes, writer->to);
    fwrite(packet->data, 1, packet->bytes, writer->to);
}

/* Interned names accumulate until the state is cleared. Only the first packet clears it. */
static void intern(const struct trace_writer *writer, unsigned kind, uint32_t number,
                   const char *text, uint32_t flags)
{
    struct message name = {.bytes = 0}, interned = {.bytes = 0}, packet = {.bytes = 0};

    put_number(&name, NAME_IID, number);
    put_text(&name, NAME_TEXT, text);
    put_message(&interned, kind, &name);

    put_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    put_number(&packet, PACKET_FLAGS, flags);
    put_message(&packet, PACKET_INTERNED, &interned);
    write_packet(writer, &packet);
}

static void begin(struct trace_writer *writer)
{
    uint32_t flags = STATE_CLEARED;

    for (uint32_t c = 0; c < TRACE_CATEGORIES; c++, flags = NEEDS_STATE)
        intern(writer, INTERNED_CATEGORY, 1 + c, trace_category_names[c], flags);
    for (uint32_t f = 0; f < TRACE_FIELDS; f++)
        intern(writer, INTERNED_ANNOTATION, 1 + f, trace_field_names[f], NEEDS_STATE);
}

static void add_name(struct trace_writer *writer, uint32_t name, enum trace_category category,
                     const char *text)
{
    (void)category;
    intern(writer, INTERNED_EVENT, name, text, NEEDS_STATE);
}

/* The machine and the groups are processes, which viewers show as groups. */
static void add_track(struct trace_writer *writer, const struct trace_track *track)
{
    struct message inner = {.bytes = 0}, descriptor = {.bytes = 0}, packet = {.bytes = 0};

    put_number(&descriptor, TRACK_UUID, track->number);
    if (track->kind == TRACE_MACHINE || track->kind == TRACE_GROUP) {
        put_number(&inner, PROCESS_PID, track->number);
        put_text(&inner, PROCESS_NAME, track->name);
        put_message(&descriptor, TRACK_PROCESS, &inner);
    } else {
        put_text(&descriptor, TRACK_NAME, track->name);
        put_number(&descriptor, TRACK_PARENT, track->parent);
    }

    if (track->kind == TRACE_COUNTER) {
        put_text(&inner, COUNTER_UNIT_NAME, track->unit);
        put_message(&descriptor, TRACK_COUNTER, &inner);
    }

    put_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    put_message(&packet, PACKET_TRACK, &descriptor);
    write_packet(writer, &packet);
}

static void write_event(struct trace_writer *writer, int64_t ns, const struct message *event)
{
    struct message packet = {.bytes = 0};

    put_number(&packet, PACKET_TIMESTAMP, (uint64_t)ns);
    put_number(&packet, PACKET_SEQUENCE, SEQUENCE);
    put_number(&packet, PACKET_FLAGS, NEEDS_STATE);
    put_message(&packet, PACKET_EVENT, event);
    write_packet(writer, &packet);
}

static void put_event(struct message *message, unsigned type, const struct trace_event *event)
{
    put_number(message, EVENT_TYPE, type);
    put_number(message, EVENT_TRACK, event->track);
    put_number(message, EVENT_CATEGORY, 1u + event->category);
    put_number(message, EVENT_NAME, event->name);
    for (uint32_t f = 0; f < TRACE_FIELDS; f++) {
        struct message annotation = {.bytes = 0};
        if (event->fields[f] < 0)
            continue;

        put_number(&annotation, ANNOTATION_NAME, 1 + f);
        put_number(&annotation, ANNOTATION_INT, (uint64_t)event->fields[f]);
        put_message(message, EVENT_ANNOTATION, &annotation);
    }
}

static void begin_slice(struct trace_writer *writer, const struct trace_event *event)
{
    struct message message = {.bytes = 0};

    put_event(&message, SLICE_BEGIN, event);
    write_event(writer, event->ns, &message);
}

static void end_slice(struct trace_writer *writer, uint32_t track, int64_t ns)
{
    struct message message = {.bytes = 0};

    put_number(&message, EVENT_TYPE, SLICE_END);
    put_number(&message, EVENT_TRACK, track);
    write_event(writer, ns, &message);
}

static void instant(struct trace_writer *writer, const struct trace_event *event)
{
    struct message message = {.bytes = 0};

    put_event(&message, INSTANT, event);
    write_event(writer, event->ns, &message);
}

static void count(struct trace_writer *writer, uint32_t track, int64_t ns, double value)
{
    struct message message = {.bytes = 0};

    put_number(&message, EVENT_TYPE, COUNTER);
    put_number(&message, EVENT_TRACK, track);
    put_double(&message, EVENT_DOUBLE, value);
    write_event(writer, ns, &message);
}

static void end(struct trace_writer *writer, const struct trace_track *tracks, uint32_t count)
{
    (void)writer;
    (void)tracks;
    (void)count;
}

const struct trace_format trace_perfetto = {.name = "perfetto",
                                            .begin = begin,
                                            .add_name = add_name,
                                            .add_track = add_track,
                                            .begin_slice = begin_slice,
                                            .end_slice = end_slice,
                                            .instant = instant,
                                            .count = count,
                                            .end = end};
