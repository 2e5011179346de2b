/* Fuzz target: cox-tonemap's command line. Parsing must not crash, and accepted options must be consistent.
 * SPDX-License-Identifier: Apache-2.0 */
#include "args.h"
#include "tonemap/command_line.h"
#include "tonemap/option_checks.h"

#include <math.h>

/* What pictures and films both rely on. */
static void check_run(const struct options *options, const struct fuzz_args *args)
{
    double sum = 0;
    CHECK(options->output && !options->input == options->table);
    CHECK(fuzz_args_hold(args, options->input) && fuzz_args_hold(args, options->judge));
    CHECK(fuzz_args_hold(args, options->output) || (options->judge && !strcmp(options->output, "null:")));
    CHECK(fuzz_args_hold(args, options->stats) && fuzz_args_hold(args, options->trace));
    CHECK(fuzz_args_hold(args, options->devices));
    CHECK(fuzz_args_hold(args, options->encoder) && fuzz_args_hold(args, options->crf));
    CHECK(fuzz_args_hold(args, options->preset));
    CHECK(!options->policy || cox_policy_find(options->policy));
    CHECK(options->in_flight >= 1 && options->in_flight <= COX_IN_FLIGHT_MAX && options->repeat >= 1);
    CHECK(options->policy_options.ratio_count <= COX_DEVICES_MAX);
    for (uint32_t i = 0; i < options->policy_options.ratio_count; i++) {
        CHECK(options->ratios[i] >= 0 && options->ratios[i] <= 1);
        sum += options->ratios[i];
    }
    CHECK(!options->policy_options.ratio_count || fabs(sum - 1) < 1e-5);
    CHECK(cox_operator_name(options->op) && fabs(options->exposure_stops) <= 32 && options->desaturate <= 1);
    CHECK(options->peak_auto || options->lut || (options->peak_nits >= 1 && options->peak_nits <= 1e6));
    CHECK(fuzz_args_hold(args, options->lut) && !(options->lut && (options->peak_auto || options->scenes)));
    CHECK(!options->points || (options->table && options->points >= 2 && options->points <= COX_LUT_POINTS_MAX));
    CHECK(options->sdr_white_nits >= 0 && options->sdr_white_nits <= 10000);
    CHECK(options->depth == 0 || options->depth == 8 || options->depth == 10 || options->depth == 16);
    CHECK(!options->rate.num == !options->rate.den);
    CHECK(options->start <= VIDEO_FRAMES_MAX && options->frames <= VIDEO_FRAMES_MAX);
    CHECK(options->frame <= VIDEO_FRAMES_MAX);
    CHECK(!(options->raw.given && options->raw_by_name));
    if (options->raw.given) {
        CHECK(options->raw.width >= 1 && options->raw.width <= VIDEO_SIDE_MAX);
        CHECK(options->raw.height >= 1 && options->raw.height <= VIDEO_SIDE_MAX);
        CHECK(options->raw.pixel.depth >= 8 && options->raw.pixel.depth <= 16);
    }
}

/* Options accepted for one kind of input include none of the other kind, an existing output, and a depth that it
 * has. */
static void check_job(struct options options, enum options_job job)
{
    struct options_error error = {""};
    if (!options_suit(&options, job, &error)) {
        CHECK(error.text[0]);
        return;
    }
    if (job == OPTIONS_PICTURE) {
        CHECK(options.depth == 8 || options.depth == 16);
        CHECK(!options.raw.given && !options.frame_list && !options.sheet_count && !options.lookahead &&
              !options.has_transfer && !options.passes_sdr);
        return;
    }
    CHECK(options.to > OUTPUT_NAME && options.to <= OUTPUT_MP4);
    CHECK(options_want_finished(&options) ||
          (!options.encoder && !options.crf && !options.preset && !options.overwrite));
    CHECK(!options.detail || (options.detail >= 0.25f && options.detail <= 4));
    CHECK(options.op != COX_OPERATOR_EXPOSURE && options.alpha == PICTURE_ALPHA_BLACK && options.repeat == 1);
    CHECK(!options.verify && (options.peak_auto || !options.lookahead));
    CHECK(!options.frame_list || (options.to == OUTPUT_PNG && options.frame_count >= 1));
    CHECK(!options.sheet_count || (options.to == OUTPUT_PNG && !options.frame_list && !options.layer));
    CHECK(options.sheet_count <= options.sheet_columns * options.sheet_rows);
    CHECK(options.to != OUTPUT_PNG || options.sheet_count || (!options.start && !options.frames));
    CHECK(options.to != OUTPUT_PNG || options.depth != 10);
    CHECK(options.to != OUTPUT_NV12 || options.depth == 8);
    CHECK(options.to != OUTPUT_P010 || options.depth == 10);
    CHECK(options.depth == 8 || options.depth == 10 || (options.depth == 16 && options.to == OUTPUT_PNG));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_args args;
    if (!fuzz_args_make(&args, "cox-tonemap", data, size))
        return 0;

    char *again[FUZZ_ARGS_MAX + 1];
    memcpy(again, args.words, sizeof again);
    struct options options, second;
    struct options_error error, error2;
    enum options_parsed parsed = options_parse(&options, args.count, args.words, &error);
    CHECK(parsed >= OPTIONS_WRONG && parsed <= OPTIONS_HARDWARE);
    CHECK((parsed == OPTIONS_WRONG) == (error.text[0] != 0));
    CHECK(memchr(error.text, 0, sizeof error.text));
    if (parsed == OPTIONS_RUN)
        check_run(&options, &args);
    if (parsed == OPTIONS_RUN && !options.table) {
        check_job(options, OPTIONS_PICTURE);
        check_job(options, OPTIONS_VIDEO);
    }
    /* A second parse does not depend on the first. */
    CHECK(options_parse(&second, args.count, again, &error2) == parsed);
    CHECK(!strcmp(error.text, error2.text) && options.given == second.given && options.input == second.input);
    fuzz_args_free(&args);
    return 0;
}
