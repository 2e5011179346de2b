/* The machine's telemetry during a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"
#include "state.h"

#include <inttypes.h>

static void print_sources(const struct run *run)
{
    char text[1024], plain[1024];

    if (run->sampler)
        printf("telemetry: every %g ms: %s\n", (double)run->options->telemetry_ns / 1e6,
               text_plain(lab_telemetry_summary(run->telemetry, text, sizeof text), plain,
                          sizeof plain));
    else
        printf("telemetry: this machine has no readings\n");

    for (uint32_t i = 0; run->telemetry && lab_telemetry_note(run->telemetry, i); i++)
        printf("not available: %s\n", lab_telemetry_note(run->telemetry, i));
    fflush(stdout);
}

void lab__run_start_telemetry(struct run *run)
{
    const struct lab_run_options *options = run->options;

    if (!options->telemetry_ns || !run->number)
        return;

    run->telemetry =
        lab_telemetry_open(&(const struct lab_telemetry_params){.sysfs = options->sysfs});
    if (run->telemetry && lab_telemetry_count(run->telemetry) > 0)
        run->sampler = lab_sampler_start(run->telemetry, run->command->store,
                                         options->telemetry_ns);

    if (options->format == LAB_TABLE && !lab_sides_is_second(run->command->sides))
        print_sources(run);
}

void lab__run_stop_telemetry(struct run *run)
{
    lab_sampler_stop(&run->sampler, &run->telemetry_cost);
    lab_telemetry_close(&run->telemetry);
}

void lab__run_print_telemetry(const struct run *run)
{
    const struct lab_sampler_cost *cost = &run->telemetry_cost;

    if (run->options->format == LAB_TABLE && cost->readings)
        printf("\ntelemetry: %" PRIu64 " readings, %.0f us of processor time each\n",
               cost->readings, cost->cpu_ns / 1e3 / (double)cost->readings);
}
