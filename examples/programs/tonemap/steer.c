/* cox-tonemap steer: the parts' histograms, in the film's order, to the light of each frame: what one machine that maps
 * the whole film finds from frame to frame (runtime/stream).
 * SPDX-License-Identifier: Apache-2.0 */
#include "jobs.h"
#include "common/by_first.h"
#include "part.h"
#include "range.h"
#include "scenes.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* Whether the parts are one film's and follow each other. */
static bool fit_together(const struct part *parts, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const struct part *before = &parts[i - 1], *part = &parts[i];
        if (!profile_same(&parts[0].profile, parts[0].text.path, &part->profile, part->text.path) ||
            !range_follows("part", before->text.path, before->first + before->count,
                           part->text.path, part->first))
            return false;
        if (before->last && part->count)
            return misfit("%s: the film ends with it, and %s is of frames behind that",
                          before->text.path, part->text.path);
    }
    return true;
}

/* How the curve follows the film. */
struct steering {
    struct cox_video_steer state;
    struct cox_video_steer_options options;
    struct scenes_light now;
};

/* Let the curve follow the next frame. Whether a scene begins with it. */
static bool follow(struct steering *steering, const struct profile *profile,
                   const uint32_t *histogram)
{
    const float gain = profile->settings.gain > 0 ? profile->settings.gain : 1.0f;
    struct cox_video_settings settings = profile->settings;
    const bool begins = cox_video_steer(&steering->state, &steering->options, &profile->shape,
                                        histogram, &settings);
    scenes_light_set(&steering->now, settings.peak_nits * gain, settings.gain * gain);
    return begins;
}

/* The light of a part's frames. Without a look ahead a frame has the light that was found with the frame before it; the
 * film's first frame has its own. */
static bool steer_part(struct part *part, struct steering *steering, struct scenes *scenes)
{
    uint32_t histogram[COX_VIDEO_BINS];
    const struct profile *profile = &part->profile;
    for (uint64_t n = 0; n < part->count; n++) {
        const uint64_t at = part->first - scenes->first + n;
        struct scenes_light *light = &scenes->light[at];
        if (!profile->steering.on) {
            *light = steering->now;
            continue;
        }
        if (!part_next(part, histogram))
            return false;
        const bool own = profile->steering.lookahead || !at;
        if (!own)
            *light = steering->now;
        const bool begins = follow(steering, profile, histogram);
        if (own)
            *light = steering->now;
        light->begins = begins;
    }
    return part->text.at == part->text.bytes ||
           misfit("%s: has more histograms than it says", part->text.path);
}

/* Before the first frame. The profile has the stream's peak only where source.c has found it possible. */
static void begin(struct steering *steering, const struct profile *profile)
{
    const struct film_steering *about = &profile->steering;
    *steering = (struct steering){
        .options = {.prior_nits = about->known_peak_nits,
                    .most_nits = about->trusts ? about->known_peak_nits : 0},
        .now = {.peak_nits = profile->settings.peak_nits > 0 ? profile->settings.peak_nits : 1000,
                .gain = profile->settings.gain > 0 ? profile->settings.gain : 1}};
}

/* Whether scenes of these frames, as these parts are to look, are there: people may have changed them. */
static bool is_done(const struct part *parts, uint64_t count, const char *output)
{
    struct scenes there;
    if (access(output, F_OK) || !scenes_read(&there, output))
        return false;
    const bool done = profile_equal(&there.profile, &parts[0].profile) &&
                      there.first == parts[0].first && there.count == count;
    scenes_free(&there);
    return done;
}

static bool steer_all(struct part *parts, uint32_t count, const struct options *options)
{
    const char *output = options->output;
    struct steering steering;
    uint64_t cuts = 0;
    qsort(parts, count, sizeof *parts, by_first);
    if (!fit_together(parts, count))
        return false;
    const struct part *last = &parts[count - 1];
    struct scenes scenes = {
        .profile = parts[0].profile, .first = parts[0].first, .last = last->last};
    const uint64_t frames = last->first + last->count - scenes.first;
    if (frames > SCENES_FRAMES_MAX)
        return misfit("%s: a film has %d frames at most", last->text.path, SCENES_FRAMES_MAX);
    if (scenes.first)
        warn("%s: begins with frame %" PRIu64 ": the light is found as if the film began there",
             parts[0].text.path, scenes.first);
    if (!scenes.last)
        warn(
            "%s: the film does not end with it, as far as it tells: the frames behind it are in no part",
            last->text.path);
    if (!options->overwrite && is_done(parts, frames, output)) {
        say("done      %s is there already (--overwrite makes it again)\n", output);
        return true;
    }
    if (!scenes_make(&scenes, frames))
        return false;
    begin(&steering, &scenes.profile);
    bool good = true;
    for (uint32_t i = 0; good && i < count; i++)
        good = steer_part(&parts[i], &steering, &scenes);
    good = good && scenes_write(&scenes, output);
    for (uint64_t i = 1; i < frames; i++)
        cuts += scenes.light[i].begins;
    if (good)
        say("written   %s (frames %" PRIu64 " to %" PRIu64 "%s, %" PRIu64 " cut%s)\n", output,
            scenes.first, scenes.first + frames - (frames > 0),
            scenes.last ? ", to the film's end" : "", cuts, cuts == 1 ? "" : "s");
    scenes_free(&scenes);
    return good;
}

bool steer_job(const struct options *options)
{
    const uint32_t count = options->input_count;
    struct part *parts = calloc(count, sizeof *parts);
    uint32_t opened = 0;
    if (!parts)
        return complain("out of memory");
    for (uint32_t i = 0; i < count; i++)
        if (outfile_same_place(options->inputs[i], options->output)) {
            free(parts);
            return complain("%s: is an input; give the output another name", options->output);
        }
    while (opened < count && part_open(&parts[opened], options->inputs[opened]))
        opened++;
    const bool good = opened == count && steer_all(parts, count, options);
    for (uint32_t i = 0; i < opened; i++)
        part_close(&parts[i]);
    free(parts);
    return good;
}
