/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#if COX_HAVE_LIBAV

#include "libav_index.h"

#include "common/cache_folder.h"

#include <stdlib.h>
#include <string.h>

/* What the index needs of a packet. */
struct packet {
    int64_t time, seek;
    bool key;
    bool shown; /* false: only a reference for others */
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

/* Read all packets, from the first one on at which a decoder can start. */
static enum libav_indexed read_packets(struct packets *packets, AVFormatContext *container,
                                       int stream, struct error *error)
{
    AVPacket *packet = lib.av_packet_alloc();
    enum libav_indexed result = LIBAV_INDEXED;
    int code = 0;

    if (!packet)
        result = LIBAV_INDEX_FAILED;

    while (result == LIBAV_INDEXED && (code = lib.av_read_frame(container, packet)) >= 0) {
        const bool key = packet->flags & AV_PKT_FLAG_KEY;
        if (packet->stream_index == stream && (key || packets->count)) {
            int64_t seek = packet->pts;
            if (packet->pts == AV_NOPTS_VALUE)
                result = LIBAV_NO_INDEX;
            if (packet->dts != AV_NOPTS_VALUE && packet->dts < packet->pts)
                seek = packet->dts;
            const bool shown = !(packet->flags & AV_PKT_FLAG_DISCARD);
            if (!append(packets, (struct packet){packet->pts, seek, key, shown}))
                result = LIBAV_INDEX_FAILED;
        }
        lib.av_packet_unref(packet);
    }
    lib.av_packet_free(&packet);

    if (result == LIBAV_INDEX_FAILED)
        error_set(error, "out of memory");
    if (result == LIBAV_INDEXED && code == AVERROR_EXIT) {
        libav_fail("cannot be indexed", code, error);
        return LIBAV_INDEX_FAILED;
    }
    return result; /* another error ends decoding at the same place */
}

static int by_time(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

bool libav_times_sort(int64_t *times, uint64_t count)
{
    qsort(times, count, sizeof *times, by_time);
    for (uint64_t i = 1; i < count; i++)
        if (times[i] == times[i - 1])
            return false;
    return true;
}

uint64_t libav_times_find(const int64_t *times, uint64_t count, int64_t time)
{
    uint64_t from = 0, to = count;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (times[middle] < time)
            from = middle + 1;
        else
            to = middle;
    }

    return from;
}

/* Collect the frames' times; false if two are equal. Frames before the first key frame's time lead
 * it: their references came before the file's beginning. */
static bool number_frames(struct libav_index *index, const struct packets *packets)
{
    for (uint64_t i = 0; i < packets->count; i++)
        if (packets->all[i].shown && packets->all[i].time >= packets->all[0].time)
            index->times[index->frame_count++] = packets->all[i].time;
    return libav_times_sort(index->times, index->frame_count);
}

/* An access is a key frame that is later than all frames before it in the file. */
static void note_access(struct libav_index *index, const struct packets *packets)
{
    int64_t latest = INT64_MIN;
    for (uint64_t i = 0; i < packets->count; i++) {
        const struct packet *packet = &packets->all[i];
        if (packet->key && packet->time > latest)
            index->access[index->access_count++] = (struct libav_access){
                packet->time, packet->seek,
                libav_times_find(index->times, index->frame_count, packet->time)};
        if (packet->time > latest)
            latest = packet->time;
    }
}

enum libav_indexed libav_index_read(struct libav_index *index, AVFormatContext *container,
                                    int stream, struct error *error)
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
            error_set(error, "out of memory");
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

/* --- Kept for the next time ------------------------------------------------------------------- */

/* The head of a kept index. The times and the accesses follow. Times and key frames come from the
 * demuxers and parsers, so another version of the libraries may differ. */
struct head {
    uint32_t format_version, codec_version; /* of libavformat and libavcodec, as they were loaded */
    uint64_t frame_count, access_count;
};

static struct head head_of(const struct libav_index *index)
{
    return (struct head){.format_version = lib.avformat_version(),
                         .codec_version = lib.avcodec_version(),
                         .frame_count = index->frame_count,
                         .access_count = index->access_count};
}

/* Whether the index was made by these libraries. */
static bool is_of_now(const struct head *head)
{
    const struct head now = head_of(&(struct libav_index){.times = NULL});
    return head->format_version == now.format_version && head->codec_version == now.codec_version;
}

void libav_index_keep(const struct libav_index *index, const char *folder,
                      const struct libav_index_key *key)
{
    const struct head head = head_of(index);
    const size_t times = index->frame_count * sizeof *index->times;
    const size_t access = index->access_count * sizeof *index->access;
    char *data = malloc(sizeof head + times + access);
    if (!data)
        return;

    memcpy(data, &head, sizeof head);
    memcpy(data + sizeof head, index->times, times);
    memcpy(data + sizeof head + times, index->access, access);
    cache_store(folder, key, sizeof *key, data, sizeof head + times + access);
    free(data);
}

/* Whether the values are possible: a hostile file can have the right hash. */
static bool is_sound(const struct libav_index *index)
{
    for (uint64_t i = 1; i < index->frame_count; i++)
        if (index->times[i] <= index->times[i - 1])
            return false;

    for (uint64_t i = 0; i < index->access_count; i++)
        if (index->access[i].frame > index->frame_count ||
            (i && index->access[i].frame < index->access[i - 1].frame))
            return false;
    return index->frame_count > 0;
}

static bool read_index(struct libav_index *index, const char *data, size_t bytes)
{
    struct head head;
    if (bytes < sizeof head)
        return false;

    memcpy(&head, data, sizeof head);
    if (!is_of_now(&head) || head.frame_count > bytes / sizeof *index->times ||
        head.access_count > bytes / sizeof *index->access)
        return false;

    const size_t times = head.frame_count * sizeof *index->times;
    const size_t access = head.access_count * sizeof *index->access;
    if (sizeof head + times + access != bytes)
        return false;

    index->frame_count = head.frame_count;
    index->access_count = head.access_count;
    index->times = malloc(times + 1);
    index->access = malloc(access + 1);
    if (!index->times || !index->access)
        return false;

    memcpy(index->times, data + sizeof head, times);
    memcpy(index->access, data + sizeof head + times, access);
    return is_sound(index);
}

bool libav_index_load(struct libav_index *index, const char *folder,
                      const struct libav_index_key *key)
{
    size_t bytes;
    char *data = cache_load(folder, key, sizeof *key, &bytes);
    memset(index, 0, sizeof *index);

    const bool read = data && read_index(index, data, bytes);
    free(data);
    if (!read)
        libav_index_free(index);
    return read;
}

void libav_index_free(struct libav_index *index)
{
    free(index->times);
    free(index->access);
    memset(index, 0, sizeof *index);
}

#endif
