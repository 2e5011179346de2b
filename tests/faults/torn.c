/* After a frame's callback, does any device still touch the frame's buffers? The error would show when a device is
 * late. Busy loops make devices late now and then. Under the fault layer, devices hang, are lost, and wake. This is a
 * plain program against the public interface.
 *
 *   torn DEVICES FRAMES [--run] [--chain] [--wrapped] [--wake] [--in-flight N] [--hogs N] [--pulse MS] [--later MS]
 *        [--rounds N] [--timeout MS] [--devices-at-least N]
 *
 * DEVICES is a device selection as in coxswain/runtime.h, "all" for every device. Frames come from a pool of buffers,
 * as a decoder's do. The callback keeps a copy of the output, marks every value of the output, and refills the inputs
 * for the next frame. The copy is compared with the expected output. Some time later, every mark must still be there.
 * A device that writes the output after the callback removes marks, whatever it writes. Only after this check may
 * another frame use the buffers.
 *
 *   --run            Use cox_session_run. Otherwise: cox_session_submit, with several frames under way.
 *   --chain          Each frame's output is the next frame's input, while both are under way. The output is not
 *                    marked. It must not change.
 *   --wrapped        Use the program's memory. A frame may then end with COX_E_MEMORY_UNSAFE.
 *   --wake           Needs the fault layer. The layer's clock does not advance, so a late command is held. The command
 *                    runs after its device was lost and a later frame was delivered. A device must be lost.
 *   --timeout MS     The session's device_timeout_ns (0: the default).
 *   --in-flight N    Frames under way at once (2).
 *   --hogs N         Threads that compute busy loops at the same time (0).
 *   --pulse MS       Each hog computes for this time, then sleeps for this time, all hogs at once (0: no sleep).
 *   --later MS       Time from the callback to the check of the marks (15).
 *   --rounds N       Work for each value: steps of the kernel's loop (60).
 *   --devices-at-least N   Skip if the selection gives fewer devices (1).
 *
 * The program prints these numbers:
 *   - all frames
 *   - frames that failed
 *   - frames that ended tainted
 *   - frames that were wrong in the callback
 *   - frames that changed later
 *   - devices that were lost
 *
 * The exit status is 1 if a frame was wrong, changed or failed, or if no frame succeeded. It is 77 if the machine does
 * not have such devices.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "specs.h"
#include "control.h"
#include "base/clock.h"
#include "support/fake_rig.h"

#include <coxswain/coxswain.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { ROWS = 240, COLUMNS = 512, SETS = 12, BUFFERS = 3, HOGS_MAX = 256, SKIPPED = 77, WAIT_MAX_S = 600 };

/* By the fault layer's clock. Longer than any kernel is late. */
static const uint64_t wake_ns = UINT64_C(86400) * 1000000000;

static const uint32_t mark = 0x5eed0bad;
enum { BASE, NEAR, OUT }; /* a frame's buffers */

/* The kernel's loop is equal to one product and one sum per value, which the host computes. The factor is a
 * parameter, so that no compiler simplifies the loop. */
static const char source[] =
    "kernel void churn(global const uint *base, global const uint *near_rows, int origin, global uint *out, int columns,\n"
    "                  int first, int rows, int frame_rows, int pitch, uint factor, uint addend, int rounds) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x >= columns || y >= rows) return;\n"
    "    uint value = base[y * pitch + x];\n"
    "    for (int line = first + y - 1; line <= first + y + 1; line++)\n"
    "        if (line >= 0 && line < frame_rows) value += near_rows[(line - origin) * pitch + x];\n"
    "    for (int i = 0; i < rounds; i++) value = value * factor + addend;\n"
    "    out[y * pitch + x] = value;\n"
    "}\n";

struct churn {
    int pitch;
    uint32_t factor, addend;
    int rounds;
};

struct options {
    const char *devices;
    uint32_t frames, in_flight, hogs, pulse_ms, later_ms, rounds, timeout_ms, devices_at_least;
    bool run, chain, wrapped, wake;
};

/* The buffers of one frame. `done` is posted when its callback has run. */
struct set {
    struct torn *torn;
    cox_buffer *buffers[BUFFERS];
    void *memory[BUFFERS];     /* with --wrapped, aligned */
    const struct set *before;  /* with --chain: its output is this one's input */
    uint32_t *expected, *seen; /* the expected output, and the output in the callback */
    uint32_t frame, seed;
    cox_status status;
    uint64_t done_ns;
    uint32_t lost; /* device losses so far */
    sem_t done;
};

struct torn {
    struct options options;
    cox_runtime *runtime;
    cox_session *session;
    uint32_t pitch; /* in values */
    struct churn params;
    uint32_t factor, addend; /* of the whole loop */
    struct set sets[SETS];
    pthread_t hogs[HOGS_MAX];
    uint32_t hog_count;
    atomic_bool enough; /* ends the busy loops */
    struct fault fault;
    uint32_t good, failed, tainted, wrong, changed, woken;
};

static void sleep_until(uint64_t at_ns)
{
    const struct timespec time = {.tv_sec = (time_t)(at_ns / 1000000000u), .tv_nsec = (long)(at_ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL))
        ;
}

static void wait_for_callback(struct set *set)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MAX_S;
    while (sem_timedwait(&set->done, &until)) {
        if (errno == EINTR)
            continue;
        printf("timed out waiting for a callback\n");
        exit(1);
    }
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

static void fill_with_noise(uint32_t *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t value = ((uint32_t)i + seed) * 0x9e3779b1u;
        value = (value ^ value >> 15) * 0x85ebca77u;
        values[i] = value ^ value >> 13;
    }
}

static void refill(struct set *set)
{
    const size_t count = (size_t)ROWS * set->torn->pitch;
    for (int b = BASE; b <= NEAR; b++)
        fill_with_noise(cox_buffer_data(set->buffers[b]), count, set->seed += 0x51ed270bu);
}

static void compute_expected(struct set *set)
{
    const struct torn *torn = set->torn;
    const uint32_t *base = set->before ? set->before->expected : cox_buffer_data(set->buffers[BASE]);
    const uint32_t *near = cox_buffer_data(set->buffers[NEAR]);
    for (size_t row = 0; row < ROWS; row++) {
        const size_t at = row * torn->pitch, above = row ? at - torn->pitch : at, below = at + torn->pitch;
        for (size_t x = 0; x < COLUMNS; x++) {
            uint32_t value = base[at + x] + near[at + x];
            value += row ? near[above + x] : 0;
            value += row + 1 < ROWS ? near[below + x] : 0;
            set->expected[at + x] = value * torn->factor + torn->addend;
        }
    }
}

static bool was_right(const struct set *set)
{
    const size_t pitch = set->torn->pitch;
    for (size_t row = 0; row < ROWS; row++)
        if (memcmp(set->seen + row * pitch, set->expected + row * pitch, COLUMNS * sizeof *set->seen) != 0)
            return false;
    return true;
}

/* Whether the output is unchanged since the callback. */
static bool is_untouched(const struct set *set)
{
    const uint32_t *out = cox_buffer_data(set->buffers[OUT]);
    const size_t count = (size_t)ROWS * set->torn->pitch;
    size_t i = 0;
    while (i < count && out[i] == (set->torn->options.chain ? set->seen[i] : mark))
        i++;
    return i == count;
}

/* The callback. From here on the buffers belong to the application. */
static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct set *set = user;
    uint32_t *out = cox_buffer_data(set->buffers[OUT]);
    const size_t count = (size_t)ROWS * set->torn->pitch;
    (void)frame;
    set->done_ns = cox__clock_ns();
    set->status = status;
    set->lost = rig_times_lost(set->torn->session);
    memcpy(set->seen, out, count * sizeof *out);
    for (size_t i = 0; i < count && !set->torn->options.chain; i++)
        out[i] = mark;
    refill(set);
    sem_post(&set->done);
}

static void submit(struct torn *torn, struct set *set)
{
    cox_buffer *const buffers[BUFFERS] = {[BASE] = set->before ? set->before->buffers[OUT] : set->buffers[BASE],
                                          [NEAR] = set->buffers[NEAR],
                                          [OUT] = set->buffers[OUT]};
    const struct cox__frame_spec frame = {.buffers = buffers, .buffer_count = BUFFERS, .params = &torn->params};
    if (torn->options.run) {
        on_done(set, 0, cox__session_run(torn->session, &frame));
        return;
    }
    const cox_status status = cox__session_submit(torn->session, &frame, on_done, set);
    if (status)
        on_done(set, 0, status); /* cox_session_run calls no callback */
}

/* Check the set's buffers, once --later has passed since the frame's callback. */
static void check(struct torn *torn, struct set *set)
{
    wait_for_callback(set);
    if (torn->options.wake && set->lost > torn->woken)
        torn->fault.advance(wake_ns);
    torn->woken = set->lost;
    sleep_until(set->done_ns + torn->options.later_ms * UINT64_C(1000000));
    if (set->status == COX_E_MEMORY_UNSAFE && torn->options.wrapped) {
        torn->tainted++;
    } else if (set->status) {
        torn->failed++;
    } else {
        torn->good++;
        torn->wrong += !was_right(set);
        torn->changed += !is_untouched(set);
    }
}

/* Run all frames. A set is checked before another frame uses it. */
static bool play(struct torn *torn)
{
    const uint32_t frames = torn->options.frames;
    for (uint32_t n = 0; n < frames + SETS; n++) {
        struct set *set = &torn->sets[n % SETS];
        if (n >= SETS && n - SETS < frames)
            check(torn, set);
        if (n >= frames)
            continue;
        set->before = torn->options.chain && n > 0 ? &torn->sets[(n - 1) % SETS] : NULL;
        compute_expected(set);
        submit(torn, set);
    }

    const uint32_t lost = rig_times_lost(torn->session);
    printf("frames %" PRIu32 ", failed %" PRIu32 ", tainted %" PRIu32 ", wrong at once %" PRIu32
           ", changed later %" PRIu32 ", devices lost %" PRIu32 "\n",
           frames, torn->failed, torn->tainted, torn->wrong, torn->changed, lost);
    return torn->good && !torn->wrong && !torn->changed && !torn->failed && (lost || !torn->options.wake);
}

/* --- Busy loops --------------------------------------------------------------------------------------------------- */

static void *hog(void *user)
{
    const struct torn *torn = user;
    const uint64_t pulse_ns = torn->options.pulse_ms * UINT64_C(1000000);
    volatile uint32_t value = 1;
    while (!atomic_load_explicit(&torn->enough, memory_order_relaxed)) {
        for (int i = 0; i < 10000; i++)
            value = value * 3 + 1;
        const uint64_t pulses = pulse_ns ? cox__clock_ns() / pulse_ns : 0;
        if (pulses % 2)
            sleep_until((pulses + 1) * pulse_ns);
    }
    return NULL;
}

/* Called before the library, which may later choose cores for new threads. */
static bool start_hogs(struct torn *torn)
{
    while (torn->hog_count < torn->options.hogs)
        if (pthread_create(&torn->hogs[torn->hog_count], NULL, hog, torn))
            return false;
        else
            torn->hog_count++;
    return true;
}

static void stop_hogs(struct torn *torn)
{
    atomic_store(&torn->enough, true);
    while (torn->hog_count)
        pthread_join(torn->hogs[--torn->hog_count], NULL);
}

/* --- Set-up and end ----------------------------------------------------------------------------------------------- */

static void say(void *user, enum cox_log_level level, const char *line)
{
    (void)level;
    fprintf(user, "%s\n", line);
}

static cox_status open_session(struct torn *torn)
{
    const size_t pitch_bytes = torn->pitch * sizeof(uint32_t);
    const struct cox__binding bindings[BUFFERS] = {
        [BASE] = {.name = "base", .access = COX__READ, .pitch_bytes = pitch_bytes},
        [NEAR] =
            {.name = "near", .row_access = COX__HALO, .halo_rows = 1, .access = COX__READ, .pitch_bytes = pitch_bytes},
        [OUT] = {.name = "out", .access = COX__WRITE, .pitch_bytes = pitch_bytes}};
    const struct cox__arg args[] = {COX__ARG_BUFFER(BASE),
                                    COX__ARG_BUFFER(NEAR),
                                    COX__ARG_ORIGIN(NEAR),
                                    COX__ARG_BUFFER(OUT),
                                    COX__ARG_COLUMNS,
                                    COX__ARG_FIRST_ROW,
                                    COX__ARG_ROWS,
                                    COX__ARG_FRAME_ROWS,
                                    COX__ARG_FIELD(struct churn, pitch),
                                    COX__ARG_FIELD(struct churn, factor),
                                    COX__ARG_FIELD(struct churn, addend),
                                    COX__ARG_FIELD(struct churn, rounds)};
    const struct cox__variant variant = {.source = source, .local_columns = 64, .any_local = true};
    const struct cox__stage stage = RIG_STAGE_OF("churn", COLUMNS, &variant, args);
    return cox__session_create(torn->runtime,
                               &(const struct cox__session_spec){.rows = ROWS,
                                                                 .binding_count = BUFFERS,
                                                                 .bindings = bindings,
                                                                 .stage_count = 1,
                                                                 .stages = &stage,
                                                                 .params_bytes = sizeof torn->params,
                                                                 .in_flight = torn->options.in_flight,
                                                                 .device_timeout_ns = torn->options.timeout_ms *
                                                                                      UINT64_C(1000000)},
                               &torn->session);
}

/* Computes the factor and the addend of all rounds together. */
static void plan_work(struct torn *torn)
{
    torn->params = (struct churn){
        .pitch = (int)torn->pitch, .factor = 0x915f77f5u, .addend = 0x2545f491u, .rounds = (int)torn->options.rounds};
    torn->factor = 1;
    torn->addend = 0;
    for (uint32_t i = 0; i < torn->options.rounds; i++) {
        torn->factor *= torn->params.factor;
        torn->addend = torn->addend * torn->params.factor + torn->params.addend;
    }
}

static cox_status make_buffer(struct torn *torn, struct set *set, int binding, size_t bytes)
{
    if (!torn->options.wrapped)
        return cox_buffer_create(torn->runtime, bytes, &set->buffers[binding]);
    set->memory[binding] = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    return set->memory[binding] ? cox_buffer_wrap(torn->runtime, set->memory[binding], bytes, free,
                                                  set->memory[binding], &set->buffers[binding])
                                : COX_E_NOMEM;
}

static cox_status make_set(struct torn *torn, struct set *set)
{
    const size_t bytes = (size_t)ROWS * torn->pitch * sizeof(uint32_t);
    set->torn = torn;
    set->seed = (uint32_t)(set - torn->sets);
    set->expected = malloc(bytes);
    set->seen = malloc(bytes);
    if (!set->expected || !set->seen)
        return COX_E_NOMEM;
    for (int b = 0; b < BUFFERS; b++) {
        const cox_status status = make_buffer(torn, set, b, bytes);
        if (status)
            return status;
    }
    refill(set);
    return COX_OK;
}

static cox_status begin(struct torn *torn)
{
    cox_status status = cox_runtime_create(&(const struct cox_runtime_params){.devices = torn->options.devices,
                                                                              .log = say,
                                                                              .log_user = stderr},
                                           &torn->runtime);
    if (status)
        return status;
    if (cox_runtime_device_count(torn->runtime) < torn->options.devices_at_least)
        return COX_E_NO_DEVICE;
    torn->pitch = (uint32_t)(cox_runtime_pitch_bytes(torn->runtime, COLUMNS * sizeof(uint32_t)) / sizeof(uint32_t));
    plan_work(torn);
    for (int i = 0; i < SETS && !status; i++)
        status = make_set(torn, &torn->sets[i]);
    return status ? status : open_session(torn);
}

static void end(struct torn *torn)
{
    cox_session_destroy(&torn->session);
    for (int i = 0; i < SETS; i++) {
        for (int b = 0; b < BUFFERS; b++)
            cox_buffer_destroy(&torn->sets[i].buffers[b]);
        free(torn->sets[i].expected);
        free(torn->sets[i].seen);
        sem_destroy(&torn->sets[i].done);
    }
    cox_runtime_destroy(&torn->runtime);
    stop_hogs(torn);
}

/* --- The command line --------------------------------------------------------------------------------------------- */

static bool take_number(const char *text, uint32_t most, uint32_t *out)
{
    char *rest;
    const unsigned long long value = text ? strtoull(text, &rest, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *rest || value > most)
        return false;
    *out = (uint32_t)value;
    return true;
}

static bool take_options(struct options *options, int count, char **words)
{
    const struct {
        const char *name;
        uint32_t *value, most;
    } known[] = {{"--in-flight", &options->in_flight, SETS},
                 {"--hogs", &options->hogs, HOGS_MAX},
                 {"--pulse", &options->pulse_ms, 60000},
                 {"--later", &options->later_ms, 10000},
                 {"--rounds", &options->rounds, 1000000},
                 {"--timeout", &options->timeout_ms, 1000000},
                 {"--devices-at-least", &options->devices_at_least, UINT32_MAX}};
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"--run", &options->run},
                 {"--chain", &options->chain},
                 {"--wrapped", &options->wrapped},
                 {"--wake", &options->wake}};
    *options = (struct options){.devices = words[1], .in_flight = 2, .later_ms = 15, .rounds = 60};
    if (count < 3 || !take_number(words[2], 10000000, &options->frames) || !options->frames)
        return false;
    for (int i = 3; i < count; i++) {
        bool taken = false;
        for (size_t f = 0; f < sizeof flags / sizeof *flags && !taken; f++)
            if (strcmp(words[i], flags[f].name) == 0)
                *flags[f].value = taken = true;
        for (size_t k = 0; k < sizeof known / sizeof *known && !taken; k++)
            if (strcmp(words[i], known[k].name) == 0)
                taken = take_number(words[++i], known[k].most, known[k].value);
        if (!taken)
            return false;
    }
    return true;
}

int main(int count, char **words)
{
    static struct torn torn;
    if (!take_options(&torn.options, count, words)) {
        fputs("usage: torn DEVICES FRAMES [OPTIONS], as the head of torn.c says\n", stderr);
        return 2;
    }
    for (int i = 0; i < SETS; i++)
        sem_init(&torn.sets[i].done, 0, 0);
    if (torn.options.wake) {
        if (!fault_open(&torn.fault, NULL))
            return 2;
        torn.fault.advance(0);
    }
    cox_status status = start_hogs(&torn) ? begin(&torn) : COX_E_SYSTEM;
    const bool good = !status && play(&torn);
    end(&torn);
    if (status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE || status == COX_E_NOT_FOUND) {
        printf("skipped, because such devices are missing: %s\n", torn.options.devices);
        return SKIPPED;
    }
    if (status)
        fprintf(stderr, "torn: %s\n", cox_status_text(status));
    return !good;
}
