/* Which frames of a film damage may reach: a damaged packet's own frame, and those that refer to it,
 * up to the next key frame. Frames between a key frame's place in the file and its time may refer to
 * what comes before it.
 *
 * It is an upper limit: decoders do not say which frames a frame refers to.
 * Thread-safety: from one thread at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAME_DAMAGE_H
#define FRAME_DAMAGE_H

#include <stdbool.h>
#include <stdint.h>

/* More than the packets that a decoder holds. */
enum { FRAME_DAMAGE_HELD = 512 };

#define FRAME_DAMAGE_NO_TIME INT64_MIN

struct frame_damage {
    uint64_t places; /* where the film is damaged */
    uint64_t frames; /* that came out and may be damaged */
    uint64_t first;  /* the first of them */

    bool spreads;  /* to the next packet, unless it is a key frame */
    bool key_seen; /* only frames before `key_time` are reached */
    int64_t key_time;

    /* The last packets; packet n at n modulo FRAME_DAMAGE_HELD. */
    struct frame_damage_packet {
        int64_t time;
        bool waits; /* its frame has not come out */
        bool key, reached;
    } held[FRAME_DAMAGE_HELD];
    uint64_t packets;
};

/* The next packet goes to the decoder. `bad`: it is damaged itself. */
void frame_damage_packet(struct frame_damage *damage, int64_t time, bool key, bool bad);

/* The decoder could not use a packet. Decoders work ahead, so that it may be any that it holds. */
void frame_damage_refused(struct frame_damage *damage);

/* Frame number `frame` has come out. `bad`: it is damaged itself. */
void frame_damage_frame(struct frame_damage *damage, uint64_t frame, int64_t time, bool bad);

/* The first frame has come out: the packets whose frames should have come before it. Frames that lead
 * the first key frame are not among them. `*keyed`: one is the first key frame or follows it. */
uint64_t frame_damage_lost(struct frame_damage *damage, int64_t time, bool *keyed);

/* Decoding goes on elsewhere: nothing is held. */
void frame_damage_restart(struct frame_damage *damage);

#endif
