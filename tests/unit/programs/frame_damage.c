/* Which frames damage may reach.
 * SPDX-License-Identifier: Apache-2.0 */
#include "media/frame_damage.h"

#include <criterion/criterion.h>
#include <string.h>

/* A film: packets in the order of the file. 'K' is a key frame, 'P' and 'B' others, a small letter is damaged. A digit
 * before a letter is its time; frames come out in the order of their times. */
static struct frame_damage damage_of(const char *film)
{
    struct frame_damage damage = {0};
    for (const char *at = film; *at; at += 2)
        frame_damage_packet(&damage, at[0] - '0', at[1] == 'K' || at[1] == 'k', at[1] >= 'a');
    for (uint64_t n = 0; n < strlen(film) / 2; n++)
        frame_damage_frame(&damage, n, (int64_t)n, false);
    return damage;
}

static void expect(const char *film, uint64_t places, uint64_t frames, uint64_t first)
{
    const struct frame_damage damage = damage_of(film);
    cr_expect_eq(damage.places, places, "%s: %lu places", film, (unsigned long)damage.places);
    cr_expect_eq(damage.frames, frames, "%s: %lu frames", film, (unsigned long)damage.frames);
    cr_expect_eq(damage.first, first, "%s: first %lu", film, (unsigned long)damage.first);
}

Test(frame_damage, reaches_the_next_key_frame)
{
    expect("0K1P2P3K4P", 0, 0, 0);
    expect("0K1p2P3K4P5K", 1, 2, 1);
    expect("0K1P2P3k4P5P", 1, 3, 3);
    expect("0K1p2P3P4p5P6K", 2, 5, 1);
}

Test(frame_damage, reaches_frames_that_lead_a_key_frame)
{
    expect("0K1p4K2B3B5P6P", 1, 3, 1);
}

Test(frame_damage, of_key_frames_only_reaches_nothing_else)
{
    expect("0K1k2K3K", 1, 1, 1);
}

Test(frame_damage, of_a_packet_that_was_refused_reaches_what_is_held)
{
    struct frame_damage damage = {0};
    for (int64_t time = 0; time < 6; time++)
        frame_damage_packet(&damage, time, !time, false);
    frame_damage_frame(&damage, 0, 0, false);
    frame_damage_frame(&damage, 1, 1, false);
    frame_damage_refused(&damage);
    for (int64_t time = 3; time < 6; time++) /* 2 does not come out */
        frame_damage_frame(&damage, (uint64_t)time - 1, time, false);
    cr_expect_eq(damage.places, 1);
    cr_expect_eq(damage.frames, 3);
    cr_expect_eq(damage.first, 2);
}

Test(frame_damage, found_in_a_frame_counts_once)
{
    struct frame_damage damage = {0};
    for (int64_t time = 0; time < 4; time++)
        frame_damage_packet(&damage, time, !time, false);
    for (int64_t time = 0; time < 4; time++)
        frame_damage_frame(&damage, (uint64_t)time, time, time >= 1);
    cr_expect_eq(damage.places, 1);
    cr_expect_eq(damage.frames, 3);
}

Test(frame_damage, frames_before_the_first_one_are_lost)
{
    struct frame_damage damage = {0};
    bool keyed;
    frame_damage_packet(&damage, 5, false, false);
    frame_damage_packet(&damage, 8, true, false);
    frame_damage_packet(&damage, 7, false, false); /* it leads the key frame */
    cr_expect_eq(frame_damage_lost(&damage, 8, &keyed), 1);
    cr_expect_not(keyed);
    cr_expect_eq(frame_damage_lost(&damage, 9, &keyed), 2);
    cr_expect(keyed);
}
