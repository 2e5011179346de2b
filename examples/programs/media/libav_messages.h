/* libav's own messages. They are not printed. Errors are counted for the input that they are about.
 *
 * Decoders conceal damage and say so only in a message: to their caller the frame looks right.
 * Thread-safety: safe from any thread. Decoders call from their threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBAV_MESSAGES_H
#define LIBAV_MESSAGES_H

#include "libav_calls.h"

#include <pthread.h>

enum { LIBAV_MESSAGE_BYTES = 160 };

/* The errors about one input. */
struct libav_complaints {
    pthread_mutex_t lock;
    uint64_t count;
    char first[LIBAV_MESSAGE_BYTES];
    bool begun;     /* the first frame has come: before it some errors are usual */
    uint64_t harms; /* errors that leave a frame damaged for certain */
    char harm[LIBAV_MESSAGE_BYTES];
};

/* From now on this thread's messages are about that input; NULL = about nothing that counts. Those of
 * a decoder whose `opaque` is a struct libav are always about that one. */
void libav_messages_about(struct libav_complaints *complaints);

void libav_complaints_begin(struct libav_complaints *complaints);

/* Forget them: reading goes on at another place. */
void libav_complaints_clear(struct libav_complaints *complaints);
void libav_complaints_end(struct libav_complaints *complaints);

/* How many errors leave frames damaged: data differ from their checksum, or are not what the codec
 * allows. `text` is the first message. */
uint64_t libav_complaints_harms(struct libav_complaints *complaints, char *text, size_t bytes);

/* The film's first frame has come. Returns the number of errors before it. */
uint64_t libav_complaints_begun(struct libav_complaints *complaints);

/* The number of errors, and the first one. */
uint64_t libav_complaints_count(struct libav_complaints *complaints, char *text, size_t bytes);

/* Until the next call with NULL, copy this thread's first error message to `text`. */
void libav_messages_keep(char *text, size_t bytes);

#endif
