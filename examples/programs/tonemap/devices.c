/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "devices.h"
#include "common/cache_folder.h"
#include "media/memory_limit.h"
#include "messages.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 }; /* of a split */

/* --- Start and end --- */

static bool start_error(const struct options *options, cox_status status)
{
    const char *devices = options->devices ? options->devices : "all";
    char what[256];
    switch (status) {
    case COX_E_NO_PLATFORM:
        return message_error(
            "no OpenCL platform is installed, or none can be loaded; PoCL runs on any CPU "
            "(Debian: apt install pocl-opencl-icd)");
    case COX_E_NO_DEVICE:
        return message_error(
            "no OpenCL platform has a device; PoCL runs on any CPU (Debian: apt install "
            "pocl-opencl-icd) and needs a writable cache folder (~/.cache/pocl, $XDG_CACHE_HOME or "
            "$POCL_CACHE_DIR)");
    case COX_E_NOT_FOUND:
        snprintf(what, sizeof what, "--devices %.200s", devices);
        return message_library_errors(what);
    case COX_E_INVALID:
    case COX_E_UNSUPPORTED:
        return message_library_errors("cannot start OpenCL");
    default:
        return message_status_error("cannot start OpenCL", status);
    }
}

bool devices_start(struct devices *devices, const struct options *options)
{
    const uint32_t shares = options->policy_options.ratio_count;
    char cache[4096];
    struct cox_runtime_params params = {.devices = options->devices,
                                        .arithmetic = options->arithmetic,
                                        .reserve = options->reserve,
                                        .reserve_cpu = options->reserve_cpu,
                                        .log = messages_log,
                                        .log_level = COX_LOG_WARN};
    if (!options->no_cache)
        params.cache_dir = cache_folder(cache, sizeof cache);
    if (options->verbose)
        params.log_level = COX_LOG_INFO;

    const cox_status status = cox_runtime_create(&params, &devices->runtime);
    if (status != COX_OK)
        return start_error(options, status);

    devices->count = cox_runtime_device_count(devices->runtime);
    if (devices->count > COX_DEVICES_MAX)
        devices->count = COX_DEVICES_MAX;
    for (uint32_t d = 0; d < devices->count; d++)
        if (cox_runtime_device_info(devices->runtime, d, &devices->info[d]) != COX_OK)
            return message_error("cannot get information about device %u", d);

    if (shares && shares != devices->count)
        return message_error("--split has %u shares for %u device%s", shares, devices->count,
                             plural(devices->count));
    return true;
}

void devices_stop(struct devices *devices)
{
    cox_runtime_destroy(&devices->runtime);
}

void devices_choose(const struct options *options, struct cox_session_params *params)
{
    params->policy = options->policy;
    params->policy_options = &options->policy_options;
    params->in_flight = options->in_flight;

    params->verify = options->verify_share;
    params->check = options->check_kernels;
    params->profile = options->trace != NULL;
}

enum cox_warmup devices_warmup(const struct devices *devices, const struct options *options)
{
    const bool waits = options->devices || options->policy || options->verify_share > 0 ||
                       options->check_kernels || options->stats || options->trace;
    if (devices->count == 1 || options->policy_options.ratio_count)
        return COX_WARMUP_NONE;

    return waits ? COX_WARMUP_FIRST_FRAME : COX_WARMUP_BACKGROUND;
}

bool devices_memory(const struct options *options, uint64_t file_bytes, uint32_t width,
                    uint32_t height, double bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    const double limit = (double)memory_limit(file_bytes, options->raw.memory_max);
    if (bytes > limit)
        return message_error(
            "%s: %u x %u pixels need %.1f GiB of memory, more than a file of this size may ask for; "
            "use --max-memory GIB if it is right",
            options->input, width, height, bytes / 0x1p30);

    if (pages > 0 && page_bytes > 0 && bytes > (double)pages * (double)page_bytes)
        return message_error(
            "%s: %u x %u pixels need %.1f GiB of memory, more than this machine has",
            options->input, width, height, bytes / 0x1p30);
    return true;
}

/* --- Results and statistics --- */

const char *devices_arithmetic(const struct devices *devices)
{
    return cox_arithmetic_name(cox_runtime_arithmetic(devices->runtime));
}

/* Whether the device has work, or will have some when it is ready. */
static bool takes_part(const struct cox_session_device *device)
{
    const bool joins = device->state == COX_DEVICE_JOINING ||
                       (device->state == COX_DEVICE_PROBATION && !device->lost);

    return joins || device->state == COX_DEVICE_ACTIVE;
}

void devices_print(const struct devices *devices, const struct cox_session_info *session,
                   bool verbose)
{
    say("devices\n");
    for (uint32_t d = 0; d < devices->count; d++) {
        const struct cox_device_info *device = &devices->info[d];
        const char *note = ": not used";
        char mark = '-';
        for (uint32_t i = 0; i < session->device_count; i++)
            if (session->devices[i].device == d && takes_part(&session->devices[i])) {
                mark = report_bar_mark(i);
                note = session->devices[i].state == COX_DEVICE_ACTIVE ? "" : ": joins later";
            }
        say("  %c %u  %.60s (%.40s), %s, %s memory, %u compute unit%s%s%s\n", mark, d, device->name,
            device->platform, cox_device_type_name(device->type),
            cox_memory_mode_name(device->mode), device->compute_units,
            plural(device->compute_units), device->subdevice ? ", a sub-device" : "", note);
    }

    if (verbose)
        say("  arithmetic %s\n", devices_arithmetic(devices));

    struct cox_host_info host;
    cox_runtime_host_info(devices->runtime, &host);
    if (host.reserved)
        say("  CPU %u is reserved for the scheduler: %s\n", host.reserved_cpu, host.reserve_reason);
    else if (verbose)
        say("  no core is reserved: %s\n", host.reserve_reason);
}

/* What follows the time of band `b`: how it ended, or a comma before the next band of its pass. */
static const char *band_suffix(const struct report_frame *frame,
                               const struct cox_band_report *bands, uint32_t b)
{
    const struct cox_band_report *band = &bands[b];
    if (band->status == COX_E_TIMEOUT)
        return " (timeout)";
    if (band->status == COX_E_MISMATCH)
        return " (wrong)";
    if (band->status != COX_OK)
        return " (failed)";
    if (band->attempt)
        return " (again)";

    if (b + 1 < frame->band_count && !report_begins_pass(bands, b + 1))
        return ",";
    return "";
}

void devices_print_frame(const struct report_frame *frame, const struct cox_band_report *bands)
{
    char bar[BAR_WIDTH + 3];
    report_bar(bands, frame->band_count, BAR_WIDTH, bar);
    say("frame %5" PRIu64 "  %s %8.2f ms ", frame->index, bar,
        (double)(frame->end_ns - frame->start_ns) / 1e6);

    for (uint32_t b = 0; b < frame->band_count; b++)
        say("%s %c %u rows %.2f ms%s", report_begins_pass(bands, b) ? " |" : "",
            report_bar_mark(bands[b].device), bands[b].rows, (double)bands[b].wall_ns / 1e6,
            band_suffix(frame, bands, b));

    say("  %s\n", cox_reason_text(frame->reason));
}

void devices_print_warmup(const struct cox_session_info *session)
{
    const char *before = "warm-up  ";
    for (uint32_t d = 0; d < session->device_count; d++) {
        if (!session->devices[d].single_device_ns)
            continue;
        say("%s device %u alone %.2f ms", before, session->devices[d].device,
            (double)session->devices[d].single_device_ns / 1e6);
        before = ",";
    }
    if (*before == ',')
        say("\n");
}

void devices_print_late(const struct options *options, struct report *report)
{
    uint64_t frames, worst_ns;

    if (!options->policy_options.deadline_ns)
        return;

    report_late(report, &frames, &worst_ns);
    say("late      %" PRIu64 " of %" PRIu64 " frames", frames, report_frame_count(report));

    if (frames)
        say(", by %.2f ms at most", (double)worst_ns / 1e6);
    say(" (deadline %g ms)\n", (double)options->policy_options.deadline_ns / 1e6);
}

/* ", lost once", ", lost 3 times"; nothing for no time. */
static void say_times(const char *what, uint32_t times)
{
    if (times == 1)
        say(", %s once", what);
    else if (times == 2)
        say(", %s twice", what);
    else if (times)
        say(", %s %u times", what, times);
}

void devices_print_trouble(const struct devices *devices, const struct cox_session_info *session)
{
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox_session_device *device = &session->devices[d];
        if (!device->lost && takes_part(device))
            continue;

        say("faults    %c %u  %.60s", report_bar_mark(d), device->device,
            devices->info[device->device].name);
        say_times("lost", device->lost);
        say_times("came back", device->returned);
        say("; %s at the end\n", cox_device_state_name(device->state));
    }
}

void devices_describe(const struct devices *devices, const struct cox_session_info *session,
                      struct devices_text *text, struct report_about *about)
{
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox_device_info *info = &devices->info[session->devices[d].device];
        text->single_device_ns[d] = session->devices[d].single_device_ns;
        text->devices[d] = (struct report_device){
            .name = info->name,
            .type = cox_device_type_name(info->type),
            .mode = cox_memory_mode_name(info->mode),
            .state = cox_device_state_name(session->devices[d].state),
            .lost = session->devices[d].lost,
            .returned = session->devices[d].returned};
    }

    *about = (struct report_about){.program = "cox-tonemap",
                                   .arithmetic = devices_arithmetic(devices),
                                   .policy = session->policy,
                                   .row_alignment = session->row_alignment,
                                   .device_count = session->device_count,
                                   .devices = text->devices,
                                   .single_device_ns = text->single_device_ns};
}
