/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"
#include "jobs.h"
#include "words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_folder(const char *path)
{
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

/* What can be read once only: it is looked into to name its output, and what was read for that would be missing. */
static bool is_read_once(const char *path)
{
    struct stat about;
    return !stat(path, &about) &&
           (S_ISFIFO(about.st_mode) || S_ISCHR(about.st_mode) || S_ISSOCK(about.st_mode));
}

bool batch_is(const struct options *options)
{
    const size_t length = strlen(options->output);
    return options->input_count > 1 || (length && options->output[length - 1] == '/') ||
           is_folder(options->output);
}

/* FOLDER/NAME.KIND for FOLDER and PATH/NAME.ANY; NULL: it has no name, or there is no memory. */
static char *output_of(const struct options *options)
{
    const char *slash = strrchr(options->input, '/'), *name = slash ? slash + 1 : options->input;
    const char *dot = strrchr(name, '.');
    const int length = (int)(dot && dot != name ? (size_t)(dot - name) : strlen(name));
    enum output_kind kind = options->to;
    if (kind == OUTPUT_NULL)
        return strdup("null:");
    if (kind == OUTPUT_NAME)
        kind = job_by_input(options) == OPTIONS_VIDEO ? OUTPUT_MKV : OUTPUT_PNG;
    const size_t bytes = strlen(options->output) + (size_t)length + 8;
    char *path = length ? malloc(bytes) : NULL;
    if (path)
        snprintf(path, bytes, "%s/%.*s.%s", options->output, length, name, options_kind_name(kind));
    return path;
}

/* What is wrong whatever the inputs hold: said before any work. */
static bool name_outputs(const struct options *options, char **outputs)
{
    struct options at = *options;
    struct options_error wrong;
    for (uint32_t i = 0; i < options->input_count; i++) {
        if (!strcmp(options->inputs[i], "-"))
            return complain("standard input has no name for a file in %s", options->output);
        if (is_read_once(options->inputs[i]))
            return complain(
                "%s: is no file; a pipe or a device can only be the single input, with a file as output",
                options->inputs[i]);
        if (!options_take(&at, options->inputs[i], &wrong))
            return complain("%s", wrong.text);
        outputs[i] = output_of(&at);
        if (!outputs[i])
            return complain("%s: gives no name for a file in %s", at.input, options->output);
        for (uint32_t j = 0; j < i && at.to != OUTPUT_NULL; j++)
            if (!strcmp(outputs[i], outputs[j]))
                return complain("%s and %s would both be %s", options->inputs[j], at.input,
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
        if (options_take(&one, options->inputs[i], &wrong)) {
            one.output = outputs[i];
            status = job_run(&one);
        }
        if (interrupted() && (status || i + 1 < options->input_count))
            return status ? status : 128 + interrupted();
        failed += status != 0;
    }
    if (failed && options->input_count > 1)
        complain("%u of %u inputs failed", failed, options->input_count);
    return failed ? EXIT_BAD : 0;
}

int batch_run(const struct options *options)
{
    if (!is_folder(options->output)) {
        if (options->input_count > 1)
            complain("several inputs go to a folder, and %s is none: what is '%s'?",
                     options->output, options->inputs[1]);
        else
            complain("%s: there is no such folder", options->output);
        return EXIT_USAGE;
    }
    char **outputs = calloc(options->input_count, sizeof *outputs);
    int status = EXIT_USAGE;
    if (!outputs)
        complain("out of memory");
    else if (name_outputs(options, outputs))
        status = run_all(options, outputs);
    for (uint32_t i = 0; outputs && i < options->input_count; i++)
        free(outputs[i]);
    free(outputs);
    return status;
}
