/* SPDX-License-Identifier: Apache-2.0 */
#include "frame_damage.h"

/* Frames come out in the order of their times, at most this many packets later than others. */
enum { REORDERED_MAX = 16 };

static struct frame_damage_packet *packet_of(struct frame_damage *damage, uint64_t n)
{
    return &damage->held[n % FRAME_DAMAGE_HELD];
}

static uint64_t oldest(const struct frame_damage *damage)
{
    return damage->packets > FRAME_DAMAGE_HELD ? damage->packets - FRAME_DAMAGE_HELD : 0;
}

/* Whether damage spreads to the next packet. The second key frame ends it for all later frames. */
static bool reaches(struct frame_damage *damage, int64_t time, bool key)
{
    if (damage->spreads && key) {
        damage->spreads = !damage->key_seen;
        damage->key_seen = true;
        damage->key_time = time;
        return false;
    }

    return damage->spreads && (!damage->key_seen || time < damage->key_time);
}

/* Packet `n` is damaged: find out which of the later ones that reaches. */
static void spread_from(struct frame_damage *damage, uint64_t n)
{
    damage->spreads = true;
    damage->key_seen = false;
    for (n++; n < damage->packets; n++) {
        struct frame_damage_packet *packet = packet_of(damage, n);
        packet->reached |= reaches(damage, packet->time, packet->key);
    }
}

void frame_damage_packet(struct frame_damage *damage, int64_t time, bool key, bool bad)
{
    const uint64_t n = damage->packets++;
    const bool reached = reaches(damage, time, key);
    *packet_of(damage, n) = (struct frame_damage_packet){time, true, key, reached || bad};

    if (bad) {
        damage->places++;
        spread_from(damage, n);
    }
}

void frame_damage_refused(struct frame_damage *damage)
{
    uint64_t n = oldest(damage);
    while (n + 1 < damage->packets && !packet_of(damage, n)->waits)
        n++;

    damage->places++;
    spread_from(damage, n);
}

/* The number of the packet whose frame has come out. False: it is not known. */
static bool find(struct frame_damage *damage, int64_t time, uint64_t *n)
{
    if (time == FRAME_DAMAGE_NO_TIME)
        return false;

    for (*n = oldest(damage); *n < damage->packets; ++*n)
        if (packet_of(damage, *n)->waits && packet_of(damage, *n)->time == time)
            return true;
    return false;
}

void frame_damage_frame(struct frame_damage *damage, uint64_t frame, int64_t time, bool bad)
{
    uint64_t n = damage->packets - 1;
    bool reached = damage->spreads;
    if (find(damage, time, &n)) {
        reached = packet_of(damage, n)->reached;
        packet_of(damage, n)->waits = false;
        for (uint64_t lost = oldest(damage); lost + REORDERED_MAX < n; lost++)
            packet_of(damage, lost)->waits = false;
    }

    if (bad && !reached)
        damage->places++;
    if (bad)
        spread_from(damage, n);
    if ((reached || bad) && !damage->frames++)
        damage->first = frame;
}

uint64_t frame_damage_lost(struct frame_damage *damage, int64_t time, bool *keyed)
{
    int64_t begin = FRAME_DAMAGE_NO_TIME;
    uint64_t lost = 0;
    *keyed = false;

    for (uint64_t n = oldest(damage); n < damage->packets; n++) {
        const struct frame_damage_packet *packet = packet_of(damage, n);
        if (begin == FRAME_DAMAGE_NO_TIME && packet->key)
            begin = packet->time;
        if (packet->time == FRAME_DAMAGE_NO_TIME || packet->time >= time || packet->time < begin)
            continue;
        lost++;
        *keyed |= begin != FRAME_DAMAGE_NO_TIME;
    }
    return lost;
}

void frame_damage_restart(struct frame_damage *damage)
{
    for (uint32_t i = 0; i < FRAME_DAMAGE_HELD; i++)
        damage->held[i].waits = false;
    damage->spreads = false;
}
