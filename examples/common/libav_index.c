/* SPDX-License-Identifier: Apache-2.0 */
#if COX_HAVE_LIBAV

#include "libav_index.h"

#include <stdlib.h>
#include <string.h>

/* What a packet says of its frame. */
struct packet {
    int64_t time, seek;
    bool key;
    bool shown; /* false: decoded for the others' sake */
};

struct packets {
    struct packet *all;
    uint64_t count, capacity;
};

static bool append(struct packets *packets, struct packet packet)
{
    if (packets->count == packets->capacity) {
        const uint64_t capacity = packets->capacity ? packets->capacity * 2 : 4096;
        struct packet *all = realloc(packets->all, capacity * sizeof *all);
        if (!all)
            return false;
        packets->all = all;
        packets->capacity = capacity;
    }
    packets->all[packets->count++] = packet;
    return true;
}

/* All packets, from the first one on that a decoder may begin with. */
static enum libav_indexed read_packets(struct packets *packets, AVFormatContext *container, int stream,
                                       struct picture_error *error)
{
    AVPacket *packet = lib.av_packet_alloc();
    enum libav_indexed result = packet ? LIBAV_INDEXED : LIBAV_INDEX_FAILED;
    int code = 0;
    while (result == LIBAV_INDEXED && (code = lib.av_read_frame(container, packet)) >= 0) {
        const bool key = packet->flags & AV_PKT_FLAG_KEY, shown = !(packet->flags & AV_PKT_FLAG_DISCARD);
        if (packet->stream_index == stream && (key || packets->count)) {
            if (packet->pts == AV_NOPTS_VALUE)
                result = LIBAV_NO_INDEX;
            const int64_t seek = packet->dts != AV_NOPTS_VALUE && packet->dts < packet->pts ? packet->dts : packet->pts;
            if (!append(packets, (struct packet){packet->pts, seek, key, shown}))
                result = LIBAV_INDEX_FAILED;
        }
        lib.av_packet_unref(packet);
    }
    lib.av_packet_free(&packet);
    if (result == LIBAV_INDEX_FAILED)
        picture_fail(error, "out of memory");
    if (result == LIBAV_INDEXED && code == AVERROR_EXIT) {
        libav_fail("not indexed", code, error);
        return LIBAV_INDEX_FAILED;
    }
    return result; /* another error ends what can be decoded, too */
}

static int by_time(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* The number of the frame of this time, or of the first one after it. */
static uint64_t frame_at(const struct libav_index *index, int64_t time)
{
    uint64_t from = 0, to = index->frame_count;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (index->times[middle] < time)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The frames' times; false where two have the same. Frames before the first key frame's time lead it: they need what
 * came before the beginning. */
static bool number_frames(struct libav_index *index, const struct packets *packets)
{
    for (uint64_t i = 0; i < packets->count; i++)
        if (packets->all[i].shown && packets->all[i].time >= packets->all[0].time)
            index->times[index->frame_count++] = packets->all[i].time;
    qsort(index->times, index->frame_count, sizeof *index->times, by_time);
    for (uint64_t i = 1; i < index->frame_count; i++)
        if (index->times[i] == index->times[i - 1])
            return false;
    return true;
}

/* A key frame after which no frame of a later time lies before it in the file. */
static void note_access(struct libav_index *index, const struct packets *packets)
{
    int64_t latest = INT64_MIN;
    for (uint64_t i = 0; i < packets->count; i++) {
        const struct packet *packet = &packets->all[i];
        if (packet->key && packet->time > latest)
            index->access[index->access_count++] = (struct libav_access){packet->time, packet->seek,
                                                                         frame_at(index, packet->time)};
        if (packet->time > latest)
            latest = packet->time;
    }
}

enum libav_indexed libav_index_read(struct libav_index *index, AVFormatContext *container, int stream,
                                    struct picture_error *error)
{
    struct packets packets = {0};
    memset(index, 0, sizeof *index);
    enum libav_indexed result = read_packets(&packets, container, stream, error);
    if (result == LIBAV_INDEXED && !packets.count)
        result = LIBAV_NO_INDEX;
    if (result == LIBAV_INDEXED) {
        index->times = calloc(packets.count, sizeof *index->times);
        index->access = calloc(packets.count, sizeof *index->access);
        if (!index->times || !index->access) {
            picture_fail(error, "out of memory");
            result = LIBAV_INDEX_FAILED;
        } else if (number_frames(index, &packets)) {
            note_access(index, &packets);
        } else {
            result = LIBAV_NO_INDEX;
        }
    }
    free(packets.all);
    if (result != LIBAV_INDEXED)
        libav_index_free(index);
    return result;
}

uint64_t libav_index_find(const struct libav_index *index, uint64_t frame)
{
    uint64_t found = 0;
    while (found + 1 < index->access_count && index->access[found + 1].frame <= frame)
        found++;
    return found;
}

void libav_index_free(struct libav_index *index)
{
    free(index->times);
    free(index->access);
    memset(index, 0, sizeof *index);
}

#endif
