/* Runs frames on devices that keep failing, and checks that the process does not grow.
 *
 *   fault_soak [--frames N] [--seconds N | --minutes N] [--devices SEL] [--verify SHARE] [--small] [--samples FILE]
 *
 * It runs small frames of every contract (support/ref_stream.h) until N frames are done or the time is over. Run it
 * under the fault layer with soak.sh; without the layer it is a soak test of devices that do not fail. Every
 * With --small the frames are those of support/ref_small.h, of which millions take minutes. Every
 * frame's output is compared in its callback, and again before its buffers are reused. After every 500 frames the
 * program samples the resident memory, the open files and the threads. At the end it prints the result.
 *
 * Exit status 0: no frame was lost, doubled, out of order, wrong or failed. With 20 000 frames or more, the mean of
 * the last tenth of the memory samples must also be within 1 % of that of the second tenth. Exit status 77: there
 * are no such devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "base/clock.h"
#include "support/ref_small.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_FRAMES = 500, SAMPLES_MAX = 1 << 18, SAMPLES_LEAST = 40 };

static const uint64_t timeout_ns = 60000000000u;

struct options {
    uint64_t frames, seconds; /* 0 = no limit */
    bool verbose, small;
    const char *devices, *samples;
    double verify;
};

/* --- Samples of the process --------------------------------------------------------------------------------------- */

struct sample {
    uint64_t resident_bytes;
    uint32_t files, threads;
};

struct samples {
    struct sample *at;
    size_t count;
};

static uint32_t entries_of(const char *path)
{
    uint32_t count = 0;
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    if (directory)
        closedir(directory);
    return count;
}

static struct sample look(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *stream = fopen("/proc/self/statm", "r");
    if (!stream || fscanf(stream, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    if (stream)
        fclose(stream);
    return (struct sample){.resident_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE),
                           .files = entries_of("/proc/self/fd") - 1, /* minus the open folder itself */
                           .threads = entries_of("/proc/self/task")};
}

static bool samples_begin(struct samples *samples)
{
    const size_t bytes = SAMPLES_MAX * sizeof *samples->at;
    samples->at = malloc(bytes);
    if (samples->at)
        memset(samples->at, 1, bytes); /* touch all pages, so that they count from the beginning */
    return samples->at;
}

/* The mean of the n-th tenth of the samples, from 0. */
static double tenth(const struct samples *samples, size_t n)
{
    const size_t from = samples->count * n / 10, to = samples->count * (n + 1) / 10;
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += (double)samples->at[i].resident_bytes;
    return to > from ? sum / (double)(to - from) : 0;
}

/* --- The run ------------------------------------------------------------------------------------------------------ */

/* Run frames until enough are done, or one is refused. */
static bool soak(const struct options *options, cox_runtime *runtime, struct samples *samples,
                 struct ref_stream_counts *counts, struct cox_session_info *info)
{
    const struct cox__session_spec params = {.in_flight = 2, .verify = options->verify, .no_profile = true};
    const uint64_t began_ns = cox__clock_ns();
    cox_status status;
    struct ref_stream *stream = ref_stream_open(runtime, &params, &status);
    if (!stream) {
        fprintf(stderr, "fault_soak: no session: %s\n", cox_status_text(status));
        return false;
    }
    ref_stream_keep_inputs(stream);
    for (uint64_t n = 1; ref_stream_submit(stream, timeout_ns) == COX_OK && n != options->frames; n++) {
        if (n % SAMPLE_FRAMES == 0 && samples->count < SAMPLES_MAX)
            samples->at[samples->count++] = look();
        if (options->seconds && cox__clock_ns() - began_ns >= options->seconds * UINT64_C(1000000000))
            break;
    }
    ref_stream_close(&stream, counts, info);
    return true;
}

static bool soak_small(const struct options *options, cox_runtime *runtime, struct samples *samples,
                       struct ref_stream_counts *counts, struct cox_session_info *info)
{
    const uint64_t began_ns = cox__clock_ns();
    cox_status status;
    struct ref_small *small = ref_small_open(runtime, &status);
    if (!small) {
        fprintf(stderr, "fault_soak: no session: %s\n", cox_status_text(status));
        return false;
    }
    for (uint64_t n = 1; ref_small_submit(small) == COX_OK && n != options->frames; n++) {
        if (n % (10 * SAMPLE_FRAMES))
            continue;
        if (samples->count < SAMPLES_MAX)
            samples->at[samples->count++] = look();
        if (options->seconds && cox__clock_ns() - began_ns >= options->seconds * UINT64_C(1000000000))
            break;
    }
    ref_small_close(&small, counts, info);
    return true;
}

static void write_samples(const struct options *options, const struct samples *samples)
{
    FILE *stream = options->samples ? fopen(options->samples, "w") : NULL;
    for (size_t i = 0; stream && i < samples->count; i++)
        fprintf(stream, "%zu %" PRIu64 " %u %u\n", i + 1, samples->at[i].resident_bytes, samples->at[i].files,
                samples->at[i].threads);
    if (stream)
        fclose(stream);
}

static bool print_process(const struct samples *samples)
{
    if (samples->count < SAMPLES_LEAST) {
        printf("memory    too few samples (%zu) to say\n", samples->count);
        return true;
    }
    struct sample least = {.files = UINT32_MAX, .threads = UINT32_MAX}, most = {0};
    const struct sample *first = &samples->at[samples->count / 10], *end = &samples->at[samples->count - 1];
    for (const struct sample *sample = first; sample <= end; sample++) {
        least.files = sample->files < least.files ? sample->files : least.files;
        least.threads = sample->threads < least.threads ? sample->threads : least.threads;
        most.files = sample->files > most.files ? sample->files : most.files;
        most.threads = sample->threads > most.threads ? sample->threads : most.threads;
    }
    const double second = tenth(samples, 1), last = tenth(samples, 9);
    printf("memory    %.2f MB in the second tenth, %.2f MB in the last: ratio %.4f (%zu samples)\n", second / 1e6,
           last / 1e6, last / second, samples->count);
    printf("files     %u open after the first tenth, %u at the end, %u to %u between\n", first->files, end->files,
           least.files, most.files);
    printf("threads   %u after the first tenth, %u at the end, %u to %u between\n", first->threads, end->threads,
           least.threads, most.threads);
    return last / second < 1.01 && last / second > 0.99;
}

static bool print_frames(const struct ref_stream_counts *counts, const struct cox_session_info *info, uint64_t seconds)
{
    printf("frames    %" PRIu64 " in %" PRIu64 " s, %" PRIu64 " callbacks, %" PRIu64 " lost, %" PRIu64
           " duplicated, %" PRIu64 " out of order, %" PRIu64 " wrong, %" PRIu64 " errors, %" PRIu64 " refused\n",
           counts->frames, seconds, counts->callbacks, counts->lost, counts->duplicated, counts->unordered,
           counts->wrong, counts->errors, counts->refused);
    for (int i = 0; i < REF_STREAM_STATUSES; i++)
        if (counts->errors_by[i])
            printf("          %" PRIu64 " x %s\n", counts->errors_by[i], cox_status_name((cox_status)-i));
    for (uint32_t d = 0; d < info->device_count; d++)
        printf("device %u  lost %u times, came back %u times; %s at the end\n", d, info->devices[d].lost,
               info->devices[d].returned, cox_device_state_name(info->devices[d].state));
    return counts->callbacks == counts->frames && !counts->lost && !counts->duplicated && !counts->unordered &&
           !counts->wrong && !counts->errors && !counts->refused;
}

static void log_line(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    fprintf(stderr, "%d: %s\n", (int)level, line);
}

static bool parse_value(struct options *options, const char *name, const char *value)
{
    if (!strcmp(name, "--frames"))
        options->frames = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--seconds"))
        options->seconds = strtoull(value, NULL, 10);
    else if (!strcmp(name, "--minutes"))
        options->seconds = 60 * strtoull(value, NULL, 10);
    else if (!strcmp(name, "--devices"))
        options->devices = value;
    else if (!strcmp(name, "--verify"))
        options->verify = atof(value);
    else if (!strcmp(name, "--samples"))
        options->samples = value;
    else
        return false;
    return true;
}

static bool parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.devices = "cpu:2x1"};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--verbose"))
            options->verbose = true;
        else if (!strcmp(argv[i], "--small"))
            options->small = true;
        else if (i + 1 == argc || !parse_value(options, argv[i], argv[i + 1]))
            return false;
        else
            i++;
    }
    return options->frames || options->seconds;
}

int main(int argc, char **argv)
{
    struct options options;
    struct samples samples = {0};
    struct ref_stream_counts counts = {0};
    struct cox_session_info info = {0};
    cox_runtime *runtime = NULL;
    if (!parse(&options, argc, argv)) {
        fputs("usage: fault_soak [--frames N] [--seconds N | --minutes N] [--devices SEL] [--verify SHARE]\n"
              "                  [--small] [--samples FILE] [--verbose]\n",
              stderr);
        return 2;
    }
    const struct cox_runtime_params runtime_params = {
        .devices = options.devices, .log = options.verbose ? log_line : NULL, .log_level = COX_LOG_INFO};
    if (cox_runtime_create(&runtime_params, &runtime) != COX_OK || cox_runtime_device_count(runtime) < 2) {
        fprintf(stderr, "fault_soak: skipped, because there are no two devices that are %s\n", options.devices);
        cox_runtime_destroy(&runtime);
        return 77;
    }
    const uint64_t began_ns = cox__clock_ns();
    bool good = samples_begin(&samples) &&
                (options.small ? soak_small : soak)(&options, runtime, &samples, &counts, &info);
    cox_runtime_destroy(&runtime);
    if (!good) {
        fputs("fault_soak: it did not begin\n", stderr);
        free(samples.at);
        return 1;
    }
    good = print_frames(&counts, &info, (cox__clock_ns() - began_ns) / 1000000000);
    good = print_process(&samples) && good;
    write_samples(&options, &samples);
    free(samples.at);
    puts(good ? "good" : "NOT GOOD");
    return good ? 0 : 1;
}
