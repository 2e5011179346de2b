/* The part of the Python module that is C: callbacks that must not wait for Python's global lock.
 *
 * The library calls them on its own threads. They put what they get into lists of a hub, which a
 * thread of Python's empties. No function here calls Python.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXPY_GLUE_H
#define COXPY_GLUE_H

#include <coxswain/coxswain.h>

/* One frame under way. Its memory belongs to Python, until coxpy_hub_wait has returned it. */
struct coxpy_ticket {
    struct coxpy_ticket *next;
    struct coxpy_hub *hub;
    uint64_t id; /* Python's */
    uint64_t frame;
    cox_status status;
};

/* One line of the log. */
struct coxpy_line {
    struct coxpy_line *next;
    uint64_t number; /* counts from 1 */
    uint64_t caller; /* the thread that wrote it, see coxpy_caller; 0 = a thread of the library */
    enum cox_log_level level;
    char *text;
};

/* A copy of a frame's report with its bands and passes, in one piece of memory. */
struct coxpy_report {
    struct coxpy_report *next;
    struct cox_frame_report frame;
};

/* Finished frames and log lines of one runtime. Thread-safety: any thread. */
struct coxpy_hub;

/* NULL: no memory. */
struct coxpy_hub *coxpy_hub_create(void);
void coxpy_hub_destroy(struct coxpy_hub *hub);

/* Make a new lock, in a child process after fork: a thread of the parent may have held the old. */
void coxpy_hub_forked(struct coxpy_hub *hub);

/* Wait for finished frames, log lines or coxpy_hub_poke. Returns the frames in the order in which
 * they finished, or NULL. */
struct coxpy_ticket *coxpy_hub_wait(struct coxpy_hub *hub);
void coxpy_hub_poke(struct coxpy_hub *hub);

/* A thread of Python's calls this before it calls the library. Returns the number of lines so
 * far. */
uint64_t coxpy_hub_enter(struct coxpy_hub *hub);

/* Take the lines, oldest first. Free them with coxpy_lines_free. */
struct coxpy_line *coxpy_hub_take_lines(struct coxpy_hub *hub);
void coxpy_lines_free(struct coxpy_line *lines);

/* The number of the calling thread, from 1. */
uint64_t coxpy_caller(void);

/* Run or submit one frame. `more` has the fields of the frame besides buffers and constants; NULL =
 * defaults. `constants` may be NULL. The mark of the call is in coxpy_mark. */
cox_status coxpy_run(struct coxpy_hub *hub, cox_session *session, const struct cox_frame *more,
                     cox_buffer *const *buffers, const char *constants);
cox_status coxpy_submit(struct coxpy_ticket *ticket, cox_session *session,
                        const struct cox_frame *more, cox_buffer *const *buffers,
                        const char *constants);

/* What coxpy_hub_enter returned to the calling thread last. */
uint64_t coxpy_mark(void);

/* Reports of one session. */
struct coxpy_reports;

/* NULL: no memory. */
struct coxpy_reports *coxpy_reports_create(void);
void coxpy_reports_destroy(struct coxpy_reports *reports);

/* Take the reports, oldest first. Free them with coxpy_report_list_free. */
struct coxpy_report *coxpy_reports_take(struct coxpy_reports *reports);
void coxpy_report_list_free(struct coxpy_report *list);

/* Callbacks for the library. `user` is a hub, a ticket, a struct coxpy_reports. If there is no
 * memory, a line or a report is dropped. */
void coxpy_log(void *user, enum cox_log_level level, const char *line);
void coxpy_done(void *user, uint64_t frame, cox_status status);
void coxpy_report(void *user, const struct cox_frame_report *report);

#endif
