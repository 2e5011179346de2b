/* Frames without end on devices that keep failing: does the process stay as large as it was?
 *
 *   fault_soak [--frames N] [--seconds N | --minutes N] [--video] [--devices SEL] [--verify SHARE] [--samples FILE]
 *
 * Small frames of every contract (support/ref_stream.h), or with --video 1920 x 1080 frames of PQ mapped to SDR; until
 * N frames or the time is over. Run it under the fault layer with soak.sh; without the layer it is a soak of devices
 * that do not fail. Every frame's output is compared, in its callback and again before its buffers are used anew. Once
 * a second the resident memory, the open files and the threads are looked at. Prints what came of it; the exit status
 * is 0 if no frame was lost, doubled, out of order, wrong or failed, and the mean of the last tenth of the samples of
 * memory is within 1 % of that of the second tenth, 77 if there are no such devices.
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

struct sampler {
    pthread_t thread;
    pthread_mutex_t lock; /* around everything below */
    pthread_cond_t wake;
    bool stop;
    struct sample *samples;
    size_t count, room;
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

static void *keep_looking(void *user)
{
    struct sampler *sampler = user;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&sampler->lock);
    while (!sampler->stop) {
        next.tv_sec++;
        while (!sampler->stop && !pthread_cond_timedwait(&sampler->wake, &sampler->lock, &next))
            continue;
        if (sampler->stop || sampler->count == sampler->room)
            continue;
        pthread_mutex_unlock(&sampler->lock);
        const struct sample sample = look();
        pthread_mutex_lock(&sampler->lock);
        sampler->samples[sampler->count++] = sample;
    }
    pthread_mutex_unlock(&sampler->lock);
    return NULL;
}

static bool sampler_start(struct sampler *sampler)
{
    pthread_condattr_t monotonic;
    *sampler = (struct sampler){.room = 1 << 18};
    sampler->samples = calloc(sampler->room, sizeof *sampler->samples);
    if (!sampler->samples)
        return false;
    memset(sampler->samples, 1,
           sampler->room * sizeof *sampler->samples); /* so that its pages count from the beginning */
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&sampler->lock, NULL);
    pthread_cond_init(&sampler->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return !pthread_create(&sampler->thread, NULL, keep_looking, sampler);
}

static void sampler_stop(struct sampler *sampler)
{
    pthread_mutex_lock(&sampler->lock);
    sampler->stop = true;
    pthread_cond_signal(&sampler->wake);
    pthread_mutex_unlock(&sampler->lock);
    pthread_join(sampler->thread, NULL);
}

/* The mean of the n-th tenth of the samples, from 0. */
static double tenth(const struct sampler *sampler, size_t n)
{
    const size_t from = sampler->count * n / 10, to = sampler->count * (n + 1) / 10;
    double sum = 0;
    for (size_t i = from; i < to; i++)
        sum += (double)sampler->samples[i].resident_bytes;
    return to > from ? sum / (double)(to - from) : 0;
}

/* --- A film ------------------------------------------------------------------------------------------------------- */

struct film;

struct film_set {
    struct film *film;
    cox_buffer *in[PLANES], *out[PLANES];
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
        uint16_t *plane = cox_buffer_data(set->in[p]);
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

static cox_status film_submit(struct film *film)
{
    struct film_set *set = &film->sets[film->attempts++ % SETS];
    cox_buffer *buffers[2 * PLANES];
    pthread_mutex_lock(&film->lock);
    while (set->under_way)
        pthread_cond_wait(&film->free, &film->lock);
    pthread_mutex_unlock(&film->lock);
    if (set->good && !film_right(film, set)) {
        pthread_mutex_lock(&film->lock);
        film->counts.wrong++;
        pthread_mutex_unlock(&film->lock);
    }
    for (uint32_t p = 0; p < film->out_planes; p++) /* a row that nobody writes shall show */
        memset(cox_buffer_data(set->out[p]), 0, film->out_bytes[p]);
    memcpy(buffers, set->in, film->in_planes * sizeof buffers[0]);
    memcpy(buffers + film->in_planes, set->out, film->out_planes * sizeof buffers[0]);
    const struct cox_frame frame = {
        .buffers = buffers, .buffer_count = film->in_planes + film->out_planes, .params = &film->params};
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
        cox_buffer *buffers[2 * PLANES];
        memcpy(buffers, set->in, film->in_planes * sizeof buffers[0]);
        memcpy(buffers + film->in_planes, set->out, film->out_planes * sizeof buffers[0]);
        for (uint32_t p = 0; p < film->out_planes; p++)
            memset(cox_buffer_data(set->out[p]), 0, film->out_bytes[p]);
        good = cox_session_run(session, &(const struct cox_frame){.buffers = buffers,
                                                                  .buffer_count = film->in_planes + film->out_planes,
                                                                  .params = &film->params}) == COX_OK;
        for (uint32_t p = 0; p < film->out_planes; p++)
            memcpy(set->expected[p], cox_buffer_data(set->out[p]), film->out_bytes[p]);
    }
    cox_session_destroy(&session);
    return good;
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
    for (uint32_t p = 0; p < film->in_planes; p++) {
        film->shape.in_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        film->in_bytes[p] = film->shape.in_pitch_bytes[p] * planes[p].rows;
    }
    film->out_planes = cox_video_planes(&out, WIDTH, HEIGHT, planes);
    for (uint32_t p = 0; p < film->out_planes; p++) {
        film->shape.out_pitch_bytes[p] = cox_runtime_pitch_bytes(runtime, planes[p].row_bytes);
        film->out_bytes[p] = film->shape.out_pitch_bytes[p] * planes[p].rows;
    }
    bool good = cox_video_prepare(&film->shape, &(const struct cox_video_settings){0}, &film->params) == COX_OK;
    for (uint32_t i = 0; i < SETS && good; i++) {
        struct film_set *set = &film->sets[i];
        set->film = film;
        for (uint32_t p = 0; p < film->in_planes && good; p++)
            good = cox_buffer_create(runtime, film->in_bytes[p], &set->in[p]) == COX_OK;
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
        for (uint32_t p = 0; p < PLANES; p++) {
            cox_buffer_destroy(&film->sets[i].in[p]);
            cox_buffer_destroy(&film->sets[i].out[p]);
            free(film->sets[i].expected[p]);
        }
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

static bool more(const struct options *options, uint64_t frames, uint64_t began_s)
{
    if (options->seconds && now_s() - began_s >= options->seconds)
        return false;
    return !options->frames || frames < options->frames;
}

static bool soak_film(const struct options *options, cox_runtime *runtime, const struct cox_session_params *params,
                      struct sampler *sampler, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    static struct film film;
    if (!film_open(&film, runtime, params) || !sampler_start(sampler)) {
        film_close(&film, counts, info);
        return false;
    }
    const uint64_t began_s = now_s();
    for (uint64_t n = 0; more(options, n, began_s); n++)
        if (film_submit(&film) != COX_OK)
            break;
    sampler_stop(sampler);
    film_close(&film, counts, info);
    return true;
}

static bool soak_stream(const struct options *options, cox_runtime *runtime, const struct cox_session_params *params,
                        struct sampler *sampler, struct ref_stream_counts *counts, struct cox_session_info *info)
{
    cox_status status;
    struct ref_stream *stream = ref_stream_open(runtime, params, &status);
    if (!stream || !sampler_start(sampler)) {
        fprintf(stderr, "fault_soak: no session: %s\n", cox_status_text(status));
        return false;
    }
    const uint64_t began_s = now_s();
    ref_stream_keep_inputs(stream);
    for (uint64_t n = 0; more(options, n, began_s); n++)
        if (ref_stream_submit(stream, timeout_ns) != COX_OK)
            break;
    sampler_stop(sampler);
    ref_stream_close(&stream, counts, info);
    return true;
}

static void write_samples(const struct options *options, const struct sampler *sampler)
{
    FILE *stream = options->samples ? fopen(options->samples, "w") : NULL;
    for (size_t i = 0; stream && i < sampler->count; i++)
        fprintf(stream, "%zu %" PRIu64 " %u %u\n", i + 1, sampler->samples[i].resident_bytes, sampler->samples[i].files,
                sampler->samples[i].threads);
    if (stream)
        fclose(stream);
}

static bool print_process(const struct sampler *sampler)
{
    struct sample least = {.resident_bytes = UINT64_MAX, .files = UINT32_MAX, .threads = UINT32_MAX}, most = {0};
    for (size_t i = sampler->count / 10; i < sampler->count; i++) {
        const struct sample *sample = &sampler->samples[i];
        least.files = sample->files < least.files ? sample->files : least.files;
        least.threads = sample->threads < least.threads ? sample->threads : least.threads;
        most.files = sample->files > most.files ? sample->files : most.files;
        most.threads = sample->threads > most.threads ? sample->threads : most.threads;
    }
    if (sampler->count < 20) {
        printf("memory    too few samples (%zu) to say\n", sampler->count);
        return true;
    }
    const double second = tenth(sampler, 1), last = tenth(sampler, 9);
    printf("memory    %.2f MB in the second tenth, %.2f MB in the last: ratio %.4f (%zu samples)\n", second / 1e6,
           last / 1e6, last / second, sampler->count);
    const struct sample *tenth_one = &sampler->samples[sampler->count / 10],
                        *end = &sampler->samples[sampler->count - 1];
    printf("files     %u open after the first tenth, %u at the end, %u to %u between\n", tenth_one->files, end->files,
           least.files, most.files);
    printf("threads   %u after the first tenth, %u at the end, %u to %u between\n", tenth_one->threads, end->threads,
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
    struct sampler sampler = {0};
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
    bool good = options.video ? soak_film(&options, runtime, &params, &sampler, &counts, &info)
                              : soak_stream(&options, runtime, &params, &sampler, &counts, &info);
    cox_runtime_destroy(&runtime);
    if (!good) {
        fputs("fault_soak: it did not begin\n", stderr);
        return 1;
    }
    good = print_frames(&counts, &info, now_s() - began_s);
    good = print_process(&sampler) && good;
    write_samples(&options, &sampler);
    free(sampler.samples);
    puts(good ? "good" : "NOT GOOD");
    return good ? 0 : 1;
}
