/* cox-bench's command line from hostile words: no crash, and what is accepted is within its bounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"
#include "args.h"

#include <stdarg.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned complaints;

bool bench_fail(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    FUZZ_CHECK(vsnprintf(line, sizeof line, format, args) > 0);
    va_end(args);
    complaints++;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[] = "cox-bench";
    struct fuzz_args args;
    struct bench_options options = {.ratio = 3};
    bool check = false;
    if (!fuzz_args_make(&args, data, size))
        return 0;
    memmove(args.words + 1, args.words, (FUZZ_ARGS_MAX - 1) * sizeof *args.words);
    args.words[0] = name;
    args.count += args.count < FUZZ_ARGS_MAX;
    args.words[args.count] = NULL;
    complaints = 0;
    fuzz_hush();
    int status = bench_options_parse(args.count, args.words, &options, &check);
    fuzz_speak();
    FUZZ_CHECK(status == -1 || status == 0 || status == BENCH_EXIT_USAGE);
    FUZZ_CHECK(status == BENCH_EXIT_USAGE || !complaints);
    if (status == -1) {
        FUZZ_CHECK(optind >= 1 && optind <= args.count);
        FUZZ_CHECK(options.frames == 0 || (options.frames >= 10 && options.frames <= 10000000));
        FUZZ_CHECK(options.in_flight <= 8);
        FUZZ_CHECK(!options.width == !options.height && options.width <= 16384 && options.height <= 16384);
        FUZZ_CHECK(options.width == 0 || (options.width >= 16 && options.height >= 16));
        FUZZ_CHECK(options.ratio >= 1 && options.ratio <= 64 && options.quiet_s >= 0 && options.quiet_s <= 86400);
        for (int p = 0; p < BENCH_POLICIES_MAX && options.policies[p]; p++)
            FUZZ_CHECK(cox_policy_find(options.policies[p]));
        FUZZ_CHECK(fuzz_args_hold(&args, options.devices));
    }
    free(args.text);
    return 0;
}
