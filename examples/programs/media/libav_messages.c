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

/* Whether the message says that a frame is damaged. A flag of the frame says so too, but some decoders
 * set it too late for a frame that has come out meanwhile. */
static bool tells_harm(const char *text, bool begun)
{
    static const char *const checksums[] = {"checksum", "crc"};
    static const char *const errors[] = {"error while decoding", "missing reference"};
    for (size_t i = 0; i < 2; i++)
        if (strcasestr(text, checksums[i]) || (begun && strcasestr(text, errors[i])))
            return true;
    return false;
}

static void count(struct libav_complaints *complaints, const char *text)
{
    pthread_mutex_lock(&complaints->lock);
    if (!complaints->count++)
        snprintf(complaints->first, sizeof complaints->first, "%s", text);

    if (tells_harm(text, complaints->begun) && !complaints->harms++)
        snprintf(complaints->harm, sizeof complaints->harm, "%s", text);
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
    complaints->harms = 0;
    complaints->begun = false;
    pthread_mutex_unlock(&complaints->lock);
}

void libav_complaints_end(struct libav_complaints *complaints)
{
    pthread_mutex_destroy(&complaints->lock);
}

/* Read a count and copy the message kept with it, under the lock. */
static uint64_t copy_complaint(struct libav_complaints *complaints, const uint64_t *count,
                               const char *message, char *text, size_t bytes)
{
    pthread_mutex_lock(&complaints->lock);
    const uint64_t all = *count;
    snprintf(text, bytes, "%s", message);
    pthread_mutex_unlock(&complaints->lock);
    return all;
}

uint64_t libav_complaints_harms(struct libav_complaints *complaints, char *text, size_t bytes)
{
    return copy_complaint(complaints, &complaints->harms, complaints->harm, text, bytes);
}

uint64_t libav_complaints_begun(struct libav_complaints *complaints)
{
    pthread_mutex_lock(&complaints->lock);
    complaints->begun = true;
    const uint64_t before = complaints->count;
    pthread_mutex_unlock(&complaints->lock);
    return before;
}

uint64_t libav_complaints_count(struct libav_complaints *complaints, char *text, size_t bytes)
{
    return copy_complaint(complaints, &complaints->count, complaints->first, text, bytes);
}

#endif
