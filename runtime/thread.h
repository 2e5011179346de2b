/* Background threads of the library's own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_THREAD_H
#define COX_RUNTIME_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Start a joinable thread that takes none of the application's signals; `name` has at most 15 characters. False: there is none
 * to be had. pthread_setname_np wants _GNU_SOURCE. */
static inline bool cox__thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(thread, NULL, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_setname_np(*thread, name);
    return started;
}

#endif
