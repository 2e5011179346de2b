/* A video stream under several threads: one sends frames, one receives them. Others change settings, cancel, query
 * and poll. Frames change size, pitch and memory all the time, and some streams end with frames in flight. The fake
 * devices' kernels copy only one byte. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "race.h"

#include <coxswain/stream.h>
#include <poll.h>
#include <stdatomic.h>

enum { STREAMS = 12, FRAMES = 150, SIZES = 2, SETS = 8, LEAST = 16 };

/* Copies the first byte of the input's first row to the output's first row. A pass that only counts has no output. */
static void mark(const struct fake_args *args)
{
    if (args->first_row == 0 && args->data[3])
        args->data[3][0] = args->data[0][0];
}

static const struct fake_params devices = {
    .device_count = 2,
    .real_time = true,
    .devices = {{.type = COX_DEVICE_CPU, .host_memory = COX_HOST_MEMORY_WRAPPED, .fixed_ns = 20e3, .ns_per_row = 1e3},
                {.mode = COX_MODE_STAGED, .fixed_ns = 50e3}},
    .kernel_count = 1,
    .kernels = {{"video", mark}}};

static const struct cox_video_format in_format = {.depth = 10, .chroma_x_log2 = 1, .chroma_y_log2 = 1};
static const struct cox_video_format out_format = {.depth = 8, .chroma_x_log2 = 1, .chroma_y_log2 = 1};

struct film {
    cox_runtime *runtime;
    cox_video_stream *stream;
    struct cox_video_image in[SETS], out[SETS]; /* in memory of the runtime; sizes alternate */
    char *other[SETS];                          /* memory of the program, which holds some inputs */
    atomic_bool over;
};

/* Some frames lie in the program's memory, and some are upside down. */
static struct cox_video_image input_of(const struct film *film, uint32_t n)
{
    struct cox_video_image image = film->in[n % SETS];
    if (n % 3 == 0)
        return image;
    for (int p = 0; p < COX_VIDEO_PLANES_MAX; p++) {
        const uint32_t rows = p ? image.height / 2 : image.height;
        image.memory[p] = NULL;
        image.data[p] = film->other[n % SETS] + p * 65536;
        if (n % 3 == 2) {
            image.data[p] = (char *)image.data[p] + (ptrdiff_t)(rows - 1) * image.pitch_bytes[p];
            image.pitch_bytes[p] = -image.pitch_bytes[p];
        }
    }
    return image;
}

static void *send_frames(void *user)
{
    struct film *film = user;
    for (uint32_t n = 0; n < FRAMES; n++) {
        const struct cox_video_image in = input_of(film, n);
        if (n % 40 == 39)
            cox_video_stream_restart(film->stream);
        const cox_status status = cox_video_stream_send(film->stream, &in, &film->out[n % SETS], NULL);
        CHECK(status == COX_OK || status == COX_E_CANCELLED);
        n -= status == COX_E_CANCELLED;
    }
    atomic_store(&film->over, true);
    return NULL;
}

static void *meddle(void *user)
{
    struct film *film = user;
    for (uint32_t n = 0; !atomic_load(&film->over); n++) {
        struct cox_video_stream_info info;
        struct cox_session_info session;
        struct pollfd waits = {.fd = cox_video_stream_descriptor(film->stream), .events = POLLIN};
        CHECK(cox_video_stream_set(film->stream, &(const struct cox_tonemap_options){
                                                     .settings.peak_nits = 500 + n % 500,
                                                     .peak = (enum cox_peak_source)(n / 8 % 3)}) == COX_OK);
        cox_video_stream_info(film->stream, &info);
        CHECK(info.frames_copied_in <= FRAMES);
        cox_video_stream_session_info(film->stream, &session);
        poll(&waits, 1, 1);
        if (n % 20 == 19)
            cox_video_stream_cancel(film->stream);
    }
    return NULL;
}

static void run(struct film *film, uint32_t frames)
{
    pthread_t sender, meddler;
    uint64_t received = 0;
    atomic_store(&film->over, false);
    CHECK(cox_video_stream_create(film->runtime, NULL, NULL, &film->stream) == COX_OK);
    race_start(&sender, 1, send_frames, film, 0);
    race_start(&meddler, 1, meddle, film, 0);
    while (received < frames) {
        struct cox_video_result result;
        const cox_status status = cox_video_stream_receive(film->stream, received % 2, &result);
        CHECK(status == COX_OK || status == COX_E_NOT_FOUND || status == COX_E_BUSY);
        CHECK(status != COX_OK || result.frame == received);
        CHECK(status != COX_OK || result.status == COX_OK || result.status == COX_E_CANCELLED);
        received += status == COX_OK;
        if (status != COX_OK)
            race_rest(20000);
    }
    race_join(&sender, 1);
    race_join(&meddler, 1);
    cox_video_stream_destroy(&film->stream);
}

int main(void)
{
    struct film film = {0};
    check_limit("streams with a sender, a receiver and one who meddles");
    struct fake *fake = fake_new(&devices);
    CHECK(cox__runtime_create_with(&film.runtime, &(const struct cox_runtime_params){0}, fake_make, fake) == COX_OK);
    for (uint32_t set = 0; set < SETS; set++) {
        const uint32_t side = LEAST << (set / 2 % SIZES);
        CHECK(cox_video_image_create(film.runtime, &in_format, side, side, &film.in[set]) == COX_OK);
        CHECK(cox_video_image_create(film.runtime, &out_format, side, side, &film.out[set]) == COX_OK);
        film.other[set] = calloc(COX_VIDEO_PLANES_MAX, 65536);
        CHECK(film.other[set]);
    }
    for (uint32_t n = 0; n < STREAMS; n++)
        run(&film, n % 3 ? FRAMES : FRAMES - n);
    for (uint32_t set = 0; set < SETS; set++) {
        cox_video_image_destroy(&film.in[set]);
        cox_video_image_destroy(&film.out[set]);
        free(film.other[set]);
    }
    CHECK(fake_await_gone(fake));
    cox_runtime_destroy(&film.runtime);
    CHECK(!film.runtime);
    CHECK(*fake_violation(fake) == '\0');
    fake_free(&fake);
    return 0;
}
