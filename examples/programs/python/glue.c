/* SPDX-License-Identifier: Apache-2.0 */
#include "glue.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- the hub ---- */

struct coxpy_hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool poked;

    struct coxpy_ticket *tickets, **last_ticket;
    struct coxpy_line *lines, **last_line;
    uint64_t line_count;
};

struct coxpy_hub *coxpy_hub_create(void)
{
    struct coxpy_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return NULL;

    coxpy_hub_forked(hub);
    hub->last_ticket = &hub->tickets;
    hub->last_line = &hub->lines;
    return hub;
}

void coxpy_hub_destroy(struct coxpy_hub *hub)
{
    if (!hub)
        return;

    coxpy_lines_free(hub->lines);
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

void coxpy_hub_forked(struct coxpy_hub *hub)
{
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->changed, NULL);
}

struct coxpy_ticket *coxpy_hub_wait(struct coxpy_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    while (!hub->tickets && !hub->lines && !hub->poked)
        pthread_cond_wait(&hub->changed, &hub->lock);

    struct coxpy_ticket *tickets = hub->tickets;
    hub->tickets = NULL;
    hub->last_ticket = &hub->tickets;
    hub->poked = false;

    pthread_mutex_unlock(&hub->lock);
    return tickets;
}

void coxpy_hub_poke(struct coxpy_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    hub->poked = true;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

void coxpy_done(void *user, uint64_t frame, cox_status status)
{
    struct coxpy_ticket *ticket = user;
    struct coxpy_hub *hub = ticket->hub;
    ticket->next = NULL;
    ticket->frame = frame;
    ticket->status = status;

    pthread_mutex_lock(&hub->lock);
    *hub->last_ticket = ticket;
    hub->last_ticket = &ticket->next;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- the log ---- */

static _Thread_local uint64_t caller; /* 0 = a thread of the library */
static _Thread_local uint64_t mark;

uint64_t coxpy_caller(void)
{
    static _Atomic uint64_t threads;
    if (!caller)
        caller = atomic_fetch_add(&threads, 1) + 1;

    return caller;
}

uint64_t coxpy_hub_enter(struct coxpy_hub *hub)
{
    coxpy_caller();

    pthread_mutex_lock(&hub->lock);
    mark = hub->line_count;
    pthread_mutex_unlock(&hub->lock);
    return mark;
}

uint64_t coxpy_mark(void)
{
    return mark;
}

struct coxpy_line *coxpy_hub_take_lines(struct coxpy_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    struct coxpy_line *lines = hub->lines;
    hub->lines = NULL;
    hub->last_line = &hub->lines;
    pthread_mutex_unlock(&hub->lock);

    return lines;
}

void coxpy_lines_free(struct coxpy_line *lines)
{
    while (lines) {
        struct coxpy_line *next = lines->next;
        free(lines->text);
        free(lines);
        lines = next;
    }
}

void coxpy_log(void *user, enum cox_log_level level, const char *text)
{
    struct coxpy_hub *hub = user;
    struct coxpy_line *line = calloc(1, sizeof *line);
    if (line)
        line->text = strdup(text);
    if (!line || !line->text) {
        free(line);
        return;
    }
    line->level = level;
    line->caller = caller;

    pthread_mutex_lock(&hub->lock);
    line->number = ++hub->line_count;
    *hub->last_line = line;
    hub->last_line = &line->next;
    pthread_cond_signal(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- frames ---- */

static struct cox_frame make_frame(const struct cox_frame *more, cox_buffer *const *buffers,
                                   const char *constants)
{
    struct cox_frame frame = {.buffers = NULL};
    if (more)
        frame = *more;

    frame.buffers = buffers;
    frame.constants = constants;
    return frame;
}

cox_status coxpy_run(struct coxpy_hub *hub, cox_session *session, const struct cox_frame *more,
                     cox_buffer *const *buffers, const char *constants)
{
    const struct cox_frame frame = make_frame(more, buffers, constants);
    coxpy_hub_enter(hub);

    return cox_session_run(session, &frame);
}

cox_status coxpy_submit(struct coxpy_ticket *ticket, cox_session *session,
                        const struct cox_frame *more, cox_buffer *const *buffers,
                        const char *constants)
{
    const struct cox_frame frame = make_frame(more, buffers, constants);
    coxpy_hub_enter(ticket->hub);

    return cox_session_submit(session, &frame, coxpy_done, ticket);
}

/* ---- reports ---- */

struct coxpy_reports {
    pthread_mutex_t lock;
    struct coxpy_report *list, **last;
};

struct coxpy_reports *coxpy_reports_create(void)
{
    struct coxpy_reports *reports = calloc(1, sizeof *reports);
    if (!reports)
        return NULL;

    pthread_mutex_init(&reports->lock, NULL);
    reports->last = &reports->list;
    return reports;
}

void coxpy_reports_destroy(struct coxpy_reports *reports)
{
    if (!reports)
        return;

    coxpy_report_list_free(reports->list);
    pthread_mutex_destroy(&reports->lock);
    free(reports);
}

struct coxpy_report *coxpy_reports_take(struct coxpy_reports *reports)
{
    pthread_mutex_lock(&reports->lock);
    struct coxpy_report *list = reports->list;
    reports->list = NULL;
    reports->last = &reports->list;
    pthread_mutex_unlock(&reports->lock);

    return list;
}

void coxpy_report_list_free(struct coxpy_report *list)
{
    while (list) {
        struct coxpy_report *next = list->next;
        free(list);
        list = next;
    }
}

void coxpy_report(void *user, const struct cox_frame_report *report)
{
    struct coxpy_reports *reports = user;
    const size_t band_bytes = report->band_count * sizeof *report->bands;
    const size_t pass_bytes = report->pass_count * sizeof *report->passes;
    struct coxpy_report *copy = malloc(sizeof *copy + band_bytes + pass_bytes);
    if (!copy)
        return;

    struct cox_band_report *bands = (void *)(copy + 1);
    struct cox_pass_report *passes = (void *)((char *)bands + band_bytes);
    *copy = (struct coxpy_report){.frame = *report};
    if (band_bytes)
        copy->frame.bands = memcpy(bands, report->bands, band_bytes);
    if (pass_bytes)
        copy->frame.passes = memcpy(passes, report->passes, pass_bytes);

    pthread_mutex_lock(&reports->lock);
    *reports->last = copy;
    reports->last = &copy->next;
    pthread_mutex_unlock(&reports->lock);
}
