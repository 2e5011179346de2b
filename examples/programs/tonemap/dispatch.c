/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"
#include "interrupt.h"
#include "jobs.h"
#include "messages.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_standard(const char *path)
{
    return path && !strcmp(path, "-");
}

/* Checked before the other options, whose meaning depends on the input. */
static bool can_be_read(const char *input)
{
    return is_standard(input) || !access(input, R_OK) ||
           message_error("%s: cannot be opened: %s", input, strerror(errno));
}

static bool is_raw(const struct options *options)
{
    return options->raw.given || options->raw_by_name;
}

enum options_job dispatch_by_input(const struct options *options)
{
    if (is_raw(options) || video_kind_of(options->input) != VIDEO_KIND_NONE)
        return OPTIONS_VIDEO;

    return OPTIONS_PICTURE;
}

/* An input that is neither video nor a picture goes to the job that the output is for, which
 * refuses it. Fails if the job depends on a file that cannot be read. */
static bool choose_job(const struct options *options, enum options_job *job)
{
    const bool judged = options->judge && !strcmp(options->output, "null:"); /* of any kind */
    *job = OPTIONS_VIDEO;
    if ((options_want_video(options) && !judged) || is_raw(options))
        return true;

    const enum video_kind kind = video_kind_of(options->input);
    if (kind == VIDEO_KIND_NONE)
        *job = OPTIONS_PICTURE;

    /* The reader of a video reports directories and standard input that cannot be read. */
    if (kind != VIDEO_KIND_UNREADABLE || errno == EISDIR || is_standard(options->input))
        return true;

    return message_error("%s: cannot be read: %s", options->input, strerror(errno));
}

static void begin_messages(const struct options *options)
{
    const bool data = is_standard(options->output) || is_standard(options->stats) ||
                      is_standard(options->trace);
    if (options->quiet)
        messages_begin(NULL, COX_LOG_ERROR);
    else
        messages_begin(data ? stderr : stdout, options->verbose ? COX_LOG_INFO : COX_LOG_WARN);
}

static bool run_job(const struct options *options, enum options_job job)
{
    if (options->table) {
        interrupt_catch_at_once();
        return cube_job(options);
    }

    switch (options->step) {
    case FILM_ANALYSE:
        return analyse_job(options);
    case FILM_STEER:
        interrupt_catch_at_once();
        return steer_job(options);
    case FILM_JOIN:
        interrupt_catch_at_once();
        return join_job(options);
    default:
        return job == OPTIONS_VIDEO ? video_job(options) : picture_job(options);
    }
}

int dispatch_run(struct options *options)
{
    struct options_error wrong;
    if (!options->table && !can_be_read(options->input))
        return EXIT_BAD;

    /* steer reads parts, join reads pieces, and a table has no input: none chooses the job. */
    const bool own_inputs = options->step == FILM_STEER || options->step == FILM_JOIN ||
                            options->table;
    enum options_job job = OPTIONS_VIDEO;
    if (!own_inputs && !choose_job(options, &job))
        return EXIT_BAD;
    if (!own_inputs && !options_suit(options, job, &wrong)) {
        message_error("%s", wrong.text);
        return EXIT_USAGE;
    }

    begin_messages(options);
    if (run_job(options, job) && messages_finish())
        return 0;
    if (interrupted())
        return 128 + interrupted();
    return messages_incompatible() ? EXIT_INCOMPATIBLE : EXIT_BAD;
}
