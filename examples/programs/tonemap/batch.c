/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "batch.h"
#include "dispatch.h"
#include "interrupt.h"
#include "messages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

/* A pipe, a device or a socket. The kind of an input decides on its output's name, and the bytes
 * that are read to find the kind would be missing later. */
static bool is_read_once(const char *path)
{
    struct stat about;
    return !stat(path, &about) &&
           (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode) || S_ISSOCK(about.st_mode));
}

bool batch_is(const struct options *options)
{
    const size_t length = strlen(options->output);
    if (options->table)
        return false;
    return options->input_count > 1 || (length && options->output[length - 1] == '/') ||
           is_folder(options->output);
}

/* Set FOLDER/NAME.KIND for FOLDER and PATH/NAME.ANY; NULL if there is no memory. False: there is no
 * name. */
static bool name_output(const struct options *options, char **output)
{
    const char *slash = strrchr(options->input, '/'), *name = options->input;
    enum output_kind kind = options->to;
    char *path;
    if (slash)
        name = slash + 1;
    if (kind == OUTPUT_NULL) {
        *output = strdup("null:");
        return true;
    }
    if (kind == OUTPUT_NAME)
        kind = dispatch_by_input(options) == OPTIONS_VIDEO ? OUTPUT_MKV : OUTPUT_PNG;

    const char *dot = strrchr(name, '.');
    size_t length = strlen(name);
    if (dot && dot != name)
        length = (size_t)(dot - name);
    if (!length)
        return false;

    const char *number = options->frame_count > 1 ? "-%d" : ""; /* see stills_name */
    if (asprintf(&path, "%s/%.*s%s.%s", options->output, (int)length, name, number,
                 options_kind_name(kind)) >= 0)
        *output = path;
    return true;
}

/* Name all outputs before any work, so that names that cannot be are found at once. An output
 * without memory is NULL. */
static bool name_outputs(const struct options *options, char **outputs)
{
    struct options at = *options;
    struct options_error wrong;
    for (uint32_t i = 0; i < options->input_count; i++) {
        const char *input = options->inputs[i];
        if (!strcmp(input, "-"))
            return message_error("standard input cannot go to the folder %s: give an output file",
                                 options->output);
        if (is_read_once(input))
            return message_error(
                "%s: a pipe or device must be the only input, and the output must be a file",
                input);
        if (!options_take(&at, input, &wrong))
            return message_error("%s", wrong.text);

        if (!name_output(&at, &outputs[i]))
            return message_error("%s: cannot derive the name of an output file in %s", input,
                                 options->output);

        for (uint32_t j = 0; j < i && at.to != OUTPUT_NULL; j++)
            if (outputs[i] && outputs[j] && !strcmp(outputs[i], outputs[j]))
                return message_error("%s and %s have the same output %s", options->inputs[j], input,
                                     outputs[i]);
    }

    return true;
}

static int run_all(const struct options *options, char **outputs)
{
    uint32_t failed = 0;
    for (uint32_t i = 0; i < options->input_count; i++) {
        struct options one = *options;
        struct options_error wrong;
        int status = EXIT_USAGE;
        if (!outputs[i]) {
            message_error("%s: out of memory", options->inputs[i]);
        } else if (options_take(&one, options->inputs[i], &wrong)) {
            one.output = outputs[i];
            status = dispatch_run(&one);
        }

        const bool last = i + 1 == options->input_count;
        if (interrupted() && status)
            return status;
        if (interrupted() && !last)
            return 128 + interrupted();
        failed += status != 0;
    }

    if (failed && options->input_count > 1)
        message_error("%u of %u inputs failed", failed, options->input_count);
    return failed ? EXIT_BAD : 0;
}

int batch_run(const struct options *options)
{
    struct stat about;
    const bool there = !stat(options->output, &about);
    if (!there && errno != ENOENT) {
        message_error("%s: cannot be used: %s", options->output, strerror(errno));
        return EXIT_BAD;
    }
    if (!there || !S_ISDIR(about.st_mode)) {
        if (options->input_count > 1)
            message_error("%s: not a folder, which several inputs need; the second input is '%s'",
                          options->output, options->inputs[1]);
        else
            message_error("%s: no such folder", options->output);
        return EXIT_USAGE;
    }

    char **outputs = calloc(options->input_count, sizeof *outputs);
    if (!outputs) {
        message_error("out of memory");
        return EXIT_BAD;
    }

    int status = EXIT_USAGE;
    if (name_outputs(options, outputs))
        status = run_all(options, outputs);
    for (uint32_t i = 0; i < options->input_count; i++)
        free(outputs[i]);
    free(outputs);
    return status;
}
