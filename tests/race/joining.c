/* Sessions with a `ready` callback on several threads. Frames are submitted while devices join early, late or
 * never, and sessions are destroyed at any moment. Plain program, for ThreadSanitizer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "specs.h"
#include "race.h"

enum { THREADS = 4, ROUNDS = 150, ROWS = 32, COLUMNS = 16, FRAMES = 4, DEVICES = 3, TROUBLES = 20 };

static const struct fake_params devices = {.device_count = DEVICES,
                                           .real_time = true,
                                           .devices = {{.fixed_ns = 20e3, .ns_per_row = 1e3},
                                                       {.mode = COX_MODE_STAGED, .fixed_ns = 50e3},
                                                       {.ns_per_row = 2e3}}};

/* Not atomic: written by callbacks, which run one after the other, and read once the session is destroyed. */
struct guest {
    struct rig_frames *frames;
    cox_session *session;
    bool submits; /* whether `ready` submits frames */
    uint32_t ready_calls;
    cox_status ready_status;
    uint32_t accepted, done, good;
};

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct guest *guest = user;
    CHECK(guest->ready_calls == 1);
    CHECK(frame == guest->done);
    CHECK(status == (guest->ready_status ? COX_E_NO_DEVICE : COX_OK));
    guest->done++;
    guest->good += status == COX_OK;
}

static cox_status submit(struct guest *guest, uint32_t index)
{
    cox_buffer *buffers[2];
    const struct cox__frame_spec frame = race_map_frame(guest->frames, index, buffers);
    return cox__session_submit(guest->session, &frame, on_done, guest);
}

static void on_ready(void *user, cox_status status)
{
    struct guest *guest = user;
    CHECK(status == COX_OK || status == COX_E_BUILD);
    guest->ready_calls++;
    guest->ready_status = status;
    if (!guest->submits)
        return;
    const cox_status submitted = submit(guest, 0);
    CHECK(submitted == (status ? COX_E_NO_DEVICE : COX_OK));
    guest->accepted += submitted == COX_OK;
}

static void look(const struct guest *guest)
{
    const struct cox_session_info info = rig_info(guest->session);
    CHECK(info.device_count == DEVICES);
    for (uint32_t d = 0; d < DEVICES; d++)
        CHECK(info.devices[d].lost == 0 && info.devices[d].returned == 0);
}

/* Submits frames from this thread, not from `ready`. */
static void submit_some(struct guest *guest, uint64_t *seed)
{
    const uint32_t count = (uint32_t)(rig_random(seed) % (FRAMES + 1));
    for (uint32_t i = 0; i < count; i++) {
        const cox_status status = submit(guest, i);
        CHECK(status == COX_OK || status == COX_E_NO_DEVICE);
        if (status)
            return;
        guest->accepted++;
        look(guest);
    }
}

static void play_round(struct rig *rig, uint64_t *seed, uint32_t *without)
{
    struct guest guest = {.frames = rig_frames_new(rig, ROWS, COLUMNS, COLUMNS, FRAMES),
                          .submits = rig_random(seed) % 3 == 0};
    CHECK(rig_map_session(guest.frames,
                          &(const struct cox__session_spec){.in_flight = 1 + (uint32_t)(rig_random(seed) % 3),
                                                            .ready = on_ready,
                                                            .ready_user = &guest},
                          &guest.session) == COX_OK);
    if (!guest.submits)
        submit_some(&guest, seed);
    look(&guest);
    if (rig_random(seed) % 3 == 0)
        race_rest((long)(rig_random(seed) % 1000000));
    if (rig_random(seed) % 4 == 0) {
        const cox_status status = cox_session_warm(guest.session, NULL);
        CHECK(status == COX_OK || status == COX_E_NO_DEVICE);
    }
    if (guest.submits) /* destroy clears the variable that `ready` reads */
        CHECK(cox_session_wait(guest.session) == COX_OK);
    cox_session_destroy(&guest.session);
    CHECK(guest.ready_calls == 1);
    CHECK(guest.done == guest.accepted);
    *without += guest.ready_status != COX_OK;
    for (uint32_t i = 0; i < guest.good; i++)
        race_right("frame", i, rig_check(guest.frames, i));
    rig_frames_free(&guest.frames);
}

struct player {
    struct rig *rig;
    uint64_t seed;
    uint32_t without; /* rounds in which no device joined */
};

static void *play(void *data)
{
    struct player *player = data;
    for (uint32_t round = 0; round < ROUNDS; round++)
        play_round(player->rig, &player->seed, &player->without);
    return NULL;
}

/* Some device instances are created late, and some creations fail. */
static void script(struct fake *fake, uint64_t *seed)
{
    for (uint32_t i = 0; i < TROUBLES; i++) {
        const struct fake_fault slow = {.kind = FAKE_INSTANCE_BLOCKS,
                                        .device = (uint32_t)(rig_random(seed) % DEVICES),
                                        .skip = (uint32_t)(rig_random(seed) % (THREADS * ROUNDS)),
                                        .count = (uint32_t)(rig_random(seed) % 8),
                                        .delay_ns = rig_random(seed) % 1500000};
        struct fake_fault fails = slow;
        fails.kind = FAKE_INSTANCE_FAILS;
        fails.skip = (uint32_t)(rig_random(seed) % (THREADS * ROUNDS));
        fails.status = COX_E_BUILD;
        fake_script(fake, &slow);
        fake_script(fake, &fails);
    }
    for (uint32_t d = 0; d < DEVICES; d++) /* for a while every device fails */
        fake_script(fake, &(struct fake_fault){.kind = FAKE_INSTANCE_FAILS,
                                               .device = d,
                                               .skip = ROUNDS,
                                               .count = ROUNDS / 4,
                                               .status = COX_E_BUILD});
}

int main(void)
{
    struct rig *rig = rig_new(&devices);
    uint64_t seed = 7;
    script(rig_fake(rig), &seed);
    struct player players[THREADS];
    uint32_t without = 0;
    check_limit("sessions whose devices join");
    for (uint32_t t = 0; t < THREADS; t++)
        players[t] = (struct player){.rig = rig, .seed = t};
    race_run(THREADS, play, players, sizeof *players);
    for (uint32_t t = 0; t < THREADS; t++)
        without += players[t].without;
    CHECK(without > 0 && without < THREADS * ROUNDS);
    race_end("rig", 0, &rig);
    return 0;
}
