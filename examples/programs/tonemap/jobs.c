/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"
#include "words.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_standard(const char *path)
{
    return path && path[0] == '-' && !path[1];
}

/* Said before anything about other options, since what they mean depends on the input. */
static bool can_be_read(const char *input)
{
    return is_standard(input) || !access(input, R_OK) ||
           complain("%s: cannot be opened: %s", input, strerror(errno));
}

enum options_job job_by_input(const struct options *options)
{
    const bool raw = options->raw.given || options->raw_by_name;
    return raw || video_kind_of(options->input) != VIDEO_KIND_NONE ? OPTIONS_VIDEO
                                                                   : OPTIONS_PICTURE;
}

/* What is neither video nor a picture is refused by the job that the output is for. */
static enum options_job job_of(const struct options *options)
{
    return options_want_video(options) ? OPTIONS_VIDEO : job_by_input(options);
}

/* Steer and join have inputs of their own kinds. */
static bool run_step(const struct options *options, enum options_job job)
{
    switch (options->step) {
    case FILM_ANALYSE:
        return analyse_job(options);
    case FILM_STEER:
        catch_signals_at_once();
        return steer_job(options);
    case FILM_JOIN:
        catch_signals_at_once();
        return join_job(options);
    default:
        return job == OPTIONS_VIDEO ? video_job(options) : picture_job(options);
    }
}

int job_run(struct options *options)
{
    struct options_error wrong;
    const bool of_film = options->step == FILM_STEER || options->step == FILM_JOIN;
    if (!can_be_read(options->input))
        return EXIT_BAD;
    const enum options_job job = of_film ? OPTIONS_VIDEO : job_of(options);
    if (!of_film && !options_suit(options, job, &wrong)) {
        complain("%s", wrong.text);
        return EXIT_USAGE;
    }
    const bool data = is_standard(options->output) || is_standard(options->stats) ||
                      is_standard(options->trace);
    words_begin(options->quiet ? NULL
                : data         ? stderr
                               : stdout,
                options->quiet     ? COX_LOG_ERROR
                : options->verbose ? COX_LOG_INFO
                                   : COX_LOG_WARN);
    const bool good = run_step(options, job) && words_finish();
    return good ? 0 : interrupted() ? 128 + interrupted() : words_misfit() ? EXIT_MISFIT : EXIT_BAD;
}
