/* Fuzz target: cox-bench's command line. Parsing must not crash, and accepted options must be within their limits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench/options.h"
#include "args.h"
#include "common/policies/registry.h"

#include <stdarg.h>

static unsigned complaints;

/* Replaces bench/message.c: counts the messages. */
bool bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool bench_fail(const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    CHECK(vsnprintf(line, sizeof line, format, args) > 0);
    va_end(args);
    complaints++;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_args args;
    struct bench_options options = {.ratio = 3};
    bool check = false;
    if (!fuzz_args_make(&args, "cox-bench", data, size))
        return 0;
    complaints = 0;
    fuzz_hush();
    int status = bench_options_parse(args.count, args.words, &options, &check);
    fuzz_speak();
    CHECK(status == -1 || status == 0 || status == BENCH_EXIT_USAGE);
    CHECK(status == BENCH_EXIT_USAGE || !complaints);
    if (status == -1) {
        CHECK(optind >= 1 && optind <= args.count);
        CHECK(options.rounds <= 101);
        CHECK(options.frames == 0 || (options.frames >= 10 && options.frames <= 10000000));
        CHECK(options.in_flight <= 8);
        CHECK(!options.width == !options.height && options.width <= 16384 && options.height <= 16384);
        CHECK(options.width == 0 || (options.width >= 16 && options.height >= 16));
        CHECK(options.ratio >= 1 && options.ratio <= 64 && options.quiet_s >= 0 && options.quiet_s <= 86400);
        for (int p = 0; p < BENCH_POLICIES_MAX && options.policies[p]; p++)
            CHECK(program_policy_find(options.policies[p]->name) == options.policies[p]);
        CHECK(fuzz_args_hold(&args, options.devices));
    }
    fuzz_args_free(&args);
    return 0;
}
