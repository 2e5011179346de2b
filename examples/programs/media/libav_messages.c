/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "video_kinds.h"

#if COX_HAVE_LIBAV

#include "libav_input.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    char *text; /* NULL = not wanted */
    size_t bytes;
} kept;

/* What this thread's messages are about, if their sender does not say. NULL = nothing that counts. */
static _Thread_local struct libav_complaints *subject;

/* A message may come in several parts; only the first one begins a line. */
static _Thread_local bool within_line;

/* What a message is about. */
static struct libav_complaints *find_subject(void *sender)
{
    const bool decoder = sender && *(const AVClass **)sender == lib.avcodec_get_class();
    if (!decoder || !((AVCodecContext *)sender)->opaque)
        return subject;

    struct libav *libav = ((AVCodecContext *)sender)->opaque;
    return &libav->complaints;
}

static void count(struct libav_complaints *complaints, const char *text)
{
    pthread_mutex_lock(&complaints->lock);
    if (!complaints->count++)
        snprintf(complaints->first, sizeof complaints->first, "%s", text);

    if (!complaints->checksum && (strcasestr(text, "checksum") || strcasestr(text, "crc"))) {
        complaints->checksum = true;
        snprintf(complaints->mismatch, sizeof complaints->mismatch, "%s", text);
    }
    pthread_mutex_unlock(&complaints->lock);
}

static void on_message(void *sender, int level, const char *format, va_list args)
{
    char text[LIBAV_MESSAGE_BYTES];
    if (level > AV_LOG_ERROR)
        return;

    const bool begins = !within_line;
    within_line = !strchr(format, '\n');
    if (!begins)
        return;

    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\r\n")] = 0;
    make_printable(text);
    if (kept.text && !*kept.text)
        snprintf(kept.text, kept.bytes, "%s", text);
    struct libav_complaints *complaints = find_subject(sender);
    if (complaints)
        count(complaints, text);
}

void libav_messages_about(struct libav_complaints *complaints)
{
    subject = complaints;
}

void libav_messages_keep(char *text, size_t bytes)
{
    lib.av_log_set_callback(on_message);
    kept.text = text;
    kept.bytes = bytes;
    within_line = false;
    if (text)
        *text = 0;
}

void libav_complaints_begin(struct libav_complaints *complaints)
{
    *complaints = (struct libav_complaints){.lock = PTHREAD_MUTEX_INITIALIZER};
    lib.av_log_set_callback(on_message);
}

void libav_complaints_clear(struct libav_complaints *complaints)
{
    pthread_mutex_lock(&complaints->lock);
    complaints->count = 0;
    complaints->checksum = false;
    pthread_mutex_unlock(&complaints->lock);
}

void libav_complaints_end(struct libav_complaints *complaints)
{
    pthread_mutex_destroy(&complaints->lock);
}

bool libav_complaints_mismatch(struct libav_complaints *complaints, char *text, size_t bytes)
{
    pthread_mutex_lock(&complaints->lock);
    const bool found = complaints->checksum;
    if (found)
        snprintf(text, bytes, "%s", complaints->mismatch);
    pthread_mutex_unlock(&complaints->lock);
    return found;
}

uint64_t libav_complaints_count(struct libav_complaints *complaints, char *text, size_t bytes)
{
    pthread_mutex_lock(&complaints->lock);
    const uint64_t all = complaints->count;
    snprintf(text, bytes, "%s", complaints->first);
    pthread_mutex_unlock(&complaints->lock);
    return all;
}

#endif
