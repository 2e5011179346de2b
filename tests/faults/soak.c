/* Frames without end on devices that keep failing: does the process stay as large as it was?
 *
 *   fault_soak [--frames N] [--seconds N | --minutes N] [--video] [--devices SEL] [--verify SHARE] [--samples FILE]
 *
 * Small frames of every contract (support/ref_stream.h), or with --video 1920 x 1080 frames of PQ mapped to SDR; until
 * N frames or the time is over. Run it under the fault layer with soak.sh; without the layer it is a soak of devices
 * that do not fail. Every frame's output is compared, in its callback and again before its buffers are used anew. After
 * every 500 frames the resident memory, the open files and the threads are looked at. Prints what came of it; the exit
 * status is 0 if no frame was lost, doubled, out of order, wrong or failed, and, of 20 000 frames or more, the mean of
 * the last tenth of the samples of memory is within 1 % of that of the second tenth; 77 if there are no such devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/ref_stream.h"

#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLE_FRAMES = 500, SAMPLES_MAX = 1 << 18, SAMPLES_LEAST = 40 };
enum { IN_FLIGHT = 2, SETS = IN_FLIGHT + 2, WIDTH = 1920, HEIGHT = 1080, PLANES = COX_VIDEO_PLANES_MAX };

static const uint64_t timeout_ns = 60000000000u;

struct options {
    uint64_t frames, seconds; /* 0 = no bound */
    bool video, verbose;
    const char *devices, *samples;
    double verify;
};

/* --- Looking at the process --------------------------------------------------------------------------------------- */

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
                           .files = entries_of("/proc/self/fd") - 1, /* the one that counts them is open too */
                           .threads = entries_of("/proc/self/task")};
}

static bool samples_begin(struct samples *samples)
{
    const size_t bytes = SAMPLES_MAX * sizeof *samples->at;
    samples->at = malloc(bytes);
    if (samples->at)
        memset(samples->at, 1, bytes); /* so that its pages count from the beginning */
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

/* --- A film ------------------------------------------------------------------------------------------------------- */

struct film;

struct film_set {
    struct film *film;
    cox_buffer *buffers[2 * PLANES]; /* those that are read, then those that are written */
    cox_buffer **out;
    unsigned char *expected[PLANES];
    bool under_way, good;
};

struct film {
    cox_session *session;
    struct cox_video_shape shape;
    struct cox_video_params params;
    uint32_t in_planes, out_planes;
    size_t in_bytes[PLANES], out_bytes[PLANES];
    uint64_t attempts;
    pthread_mutex_t lock; /* around everything below */
    pthread_cond_t free;
    uint64_t next;
    struct ref_stream_counts counts;
    struct film_set sets[SETS];
};

/* Codes of a picture with light of every kind in it, another one for each set. */
static void paint(struct film *film, struct film_set *set, uint32_t which)
{
    for (uint32_t p = 0; p < film->in_planes; p++) {
        uint16_t *plane = cox_buffer_data(set->buffers[p]);
        const size_t pitch = film->shape.in_pitch_bytes[p] / sizeof *plane;
        for (size_t i = 0; i < film->in_bytes[p] / sizeof *plane; i++) {
            const uint32_t x = (uint32_t)(i % pitch), y = (uint32_t)(i / pitch);
            plane[i] = (uint16_t)(p ? 512 + (x + 3 * y + 7 * which) % 97 - 48
                                    : 64 + (x * 5 + y * 3 + 131 * which) % 877);
        }
    }
}

static bool film_right(const struct film *film, const struct film_set *set)
{
    for (uint32_t p = 0; p < film->out_planes; p++)
        if (memcmp(cox_buffer_data(set->out[p]), set->expected[p], film->out_bytes[p]) != 0)
            return false;
    return true;
}

/* The frame of a set, and its output cleared: a row that nobody writes shall show. */
static struct cox_frame film_frame(const struct film *film, const struct film_set *set)
{
    for (uint32_t p = 0; p < film->out_planes; p++)
        memset(cox_buffer_data(set->out[p]), 0, film->out_bytes[p]);
    return (struct cox_frame){
        .buffers = set->buffers, .buffer_count = film->in_planes + film->out_planes, .params = &film->params};
}

/* A cox_done_fn. */
static void on_mapped(void *user, uint64_t frame, cox_status status)
{
    struct film_set *set = user;
    struct film *film = set->film;
    const bool wrong = status == COX_OK && !film_right(film, set);
    pthread_mutex_lock(&film->lock);
    film->counts.callbacks++;
    film->counts.duplicated += !set->under_way || frame < film->next;
    film->counts.unordered += frame > film->next;
    film->next = frame + 1;
    film->counts.wrong += wrong;
    film->counts.errors += status != COX_OK;
    if (status != COX_OK)
        film->counts.errors_by[-status < REF_STREAM_STATUSES ? -status : 0]++;
    set->good = status == COX_OK && !wrong;
    set->under_way = false;
    pthread_cond_signal(&film->free);
    pthread_mutex_unlock(&film->lock);
}

static cox_status film_submit(void *user)
{
    struct film *film = user;
    struct film_set *set = &film->sets[film->attempts++ % SETS];
    pthread_mutex_lock(&film->lock);
    while (set->under_way)
        pthread_cond_wait(&film->free, &film->lock);
    pthread_mutex_unlock(&film->lock);
    if (set->good && !film_right(film, set)) {
        pthread_mutex_lock(&film->lock);
        film->counts.wrong++;
        pthread_mutex_unlock(&film->lock);
    }
    const struct cox_frame frame = film_frame(film, set);
    set->under_way = true;
    set->good = false;
    cox_status status = COX_E_NO_DEVICE;
    for (int tries = 0; status == COX_E_NO_DEVICE && tries < 600; tries++) {
        status = cox_session_submit(film->session, &frame, on_mapped, set);
        if (status == COX_E_NO_DEVICE)
            nanosleep(&(const struct timespec){.tv_nsec = 100000000}, NULL);
    }
    pthread_mutex_lock(&film->lock);
    film->counts.frames += status == COX_OK;
    film->counts.refused += status != COX_OK;
    if (status != COX_OK)
        set->under_way = false;
    pthread_mutex_unlock(&film->lock);
    return status;
}

/* What must come out, by the first device alone, before any fault begins. */
static bool film_expect(struct film *film, cox_runtime *runtime, const struct cox_session_params *shaped)
{
    struct cox_session_params params = *shaped;
    static const uint32_t first = 0;
    cox_session *session = NULL;
    params.devices = &first;
    params.device_count = 1;
    params.verify = 0;
    bool good = cox_session_create(runtime, &params, &session) == COX_OK;
    for (uint32_t i = 0; i < SETS && good; i++) {
        struct film_set *set = &film->sets[i];
        const struct cox_frame frame = film_frame(film, set);
        good = cox_session_run(session, &frame) == COX_OK;
        for (uint32_t p = 0; p < film->out_planes; p++)
            memcpy(set->expected[p], cox_buffer_data(set->out[p]), film->out_bytes[p]);
    }
    cox_session_destroy(&session);
    return good;
}

static void plan_planes(cox_runtime *runtime, const struct cox_video_plane *planes, uint32_t count, size_t *pitch_bytes,
                        size_t *bytes)
{
    for (uint32_t p = 0; p < count; p++) {
        pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        bytes[p] = pitch_bytes[p] * planes[p].rows;
    }
}

static bool film_plan(struct film *film, cox_runtime *runtime)
{
    struct cox_video_plane planes[PLANES];
    const struct cox_video_format in = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
    const struct cox_video_format out = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
    *film = (struct film){.shape = {.width = WIDTH, .height = HEIGHT, .in = in, .out = out, .fade = true}};
    pthread_mutex_init(&film->lock, NULL);
    pthread_cond_init(&film->free, NULL);
    film->in_planes = cox_video_planes(&in, WIDTH, HEIGHT, planes);
    plan_planes(runtime, planes, film->in_planes, film->shape.in_pitch_bytes, film->in_bytes);
    film->out_planes = cox_video_planes(&out, WIDTH, HEIGHT, planes);
    plan_planes(runtime, planes, film->out_planes, film->shape.out_pitch_bytes, film->out_bytes);
    bool good = cox_video_prepare(&film->shape, &(const struct cox_video_settings){0}, &film->params) == COX_OK;
    for (uint32_t i = 0; i < SETS && good; i++) {
        struct film_set *set = &film->sets[i];
        set->film = film;
        set->out = set->buffers + film->in_planes;
        for (uint32_t p = 0; p < film->in_planes && good; p++)
            good = cox_buffer_create(runtime, film->in_bytes[p], &set->buffers[p]) == COX_OK;
        for (uint32_t p = 0; p < film->out_planes && good; p++) {
            set->expected[p] = malloc(film->out_bytes[p]);
            good = set->expected[p] && cox_buffer_create(runtime, film->out_bytes[p], &set->out[p]) == COX_OK;
        }
        if (good)
            paint(film, set, i);
    }
    return good;
}

static bool film_open(struct film *film, cox_runtime *runtime, const struct cox_session_params *extra)
{
    struct cox_video_storage storage;
    struct cox_session_params params = *extra;
    return film_plan(film, runtime) && cox_video_mapping(&film->shape, false, &storage, &params) == COX_OK &&
           film_expect(film, runtime, &params) && cox_session_create(runtime, &params, &film->session) == COX_OK;
}

static void film_close(struct film *film, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    if (film->session) {
        cox_session_wait(film->session);
        cox_session_info(film->session, info, sizeof *info);
    }
    cox_session_destroy(&film->session);
    for (uint32_t i = 0; i < SETS; i++) {
        if (film->sets[i].good && !film_right(film, &film->sets[i]))
            film->counts.wrong++;
        for (uint32_t p = 0; p < 2 * PLANES; p++)
            cox_buffer_destroy(&film->sets[i].buffers[p]);
        for (uint32_t p = 0; p < PLANES; p++)
            free(film->sets[i].expected[p]);
    }
    *counts = film->counts;
    const uint64_t once = counts->callbacks - counts->duplicated;
    counts->lost = counts->frames > once ? counts->frames - once : 0;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

static uint64_t now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

/* Frames until enough are done, or one is refused. */
static void soak(const struct options *options, struct samples *samples, cox_status (*submit)(void *), void *user)
{
    const uint64_t began_s = now_s();
    for (uint64_t n = 1; submit(user) == COX_OK && n != options->frames; n++) {
        if (n % SAMPLE_FRAMES == 0 && samples->count < SAMPLES_MAX)
            samples->at[samples->count++] = look();
        if (options->seconds && now_s() - began_s >= options->seconds)
            return;
    }
}

static cox_status stream_submit(void *stream)
{
    return ref_stream_submit(stream, timeout_ns);
}

static bool soak_film(const struct options *options, cox_runtime *runtime, const struct cox_session_params *params,
                      struct samples *samples, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    static struct film film;
    const bool good = film_open(&film, runtime, params);
    if (good)
        soak(options, samples, film_submit, &film);
    film_close(&film, counts, info);
    return good;
}

static bool soak_stream(const struct options *options, cox_runtime *runtime, const struct cox_session_params *params,
                        struct samples *samples, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    cox_status status;
    struct ref_stream *stream = ref_stream_open(runtime, params, &status);
    if (!stream) {
        fprintf(stderr, "fault_soak: no session: %s\n", cox_status_text(status));
        return false;
    }
    ref_stream_keep_inputs(stream);
    soak(options, samples, stream_submit, stream);
    ref_stream_close(&stream, counts, info);
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
        if (!strcmp(argv[i], "--video"))
            options->video = true;
        else if (!strcmp(argv[i], "--verbose"))
            options->verbose = true;
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
        fputs("usage: fault_soak [--frames N] [--seconds N | --minutes N] [--video] [--devices SEL] [--verify SHARE]\n"
              "                  [--samples FILE] [--verbose]\n",
              stderr);
        return 2;
    }
    const struct cox_runtime_params runtime_params = {
        .devices = options.devices, .log = options.verbose ? log_line : NULL, .log_level = COX_LOG_INFO};
    if (cox_runtime_create(&runtime, &runtime_params) != COX_OK || cox_runtime_device_count(runtime) < 2) {
        fprintf(stderr, "fault_soak: skipped, because there are no two devices that are %s\n", options.devices);
        cox_runtime_destroy(&runtime);
        return 77;
    }
    const struct cox_session_params params = {.in_flight = IN_FLIGHT, .verify = options.verify, .no_profile = true};
    const uint64_t began_s = now_s();
    bool good = samples_begin(&samples) &&
                (options.video ? soak_film : soak_stream)(&options, runtime, &params, &samples, &counts, &info);
    cox_runtime_destroy(&runtime);
    if (!good) {
        fputs("fault_soak: it did not begin\n", stderr);
        return 1;
    }
    good = print_frames(&counts, &info, now_s() - began_s);
    good = print_process(&samples) && good;
    write_samples(&options, &samples);
    free(samples.at);
    puts(good ? "good" : "NOT GOOD");
    return good ? 0 : 1;
}
