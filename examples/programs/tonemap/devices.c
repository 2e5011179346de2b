/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "devices.h"
#include "common/cache_folder.h"
#include "words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- Start and end ------------------------------------------------------------------------------------------------ */

static bool complain_start(const struct options *options, cox_status status)
{
    char what[256];
    switch (status) {
    case COX_E_NO_PLATFORM:
        return complain(
            "no OpenCL platform is installed, or none can be loaded; PoCL runs on any processor (Debian: apt "
            "install pocl-opencl-icd)");
    case COX_E_NO_DEVICE:
        return complain(
            "OpenCL is installed, but none of its platforms has a device; PoCL runs on any processor "
            "(Debian: apt install pocl-opencl-icd) if it can write to its cache (~/.cache/pocl, "
            "$XDG_CACHE_HOME or $POCL_CACHE_DIR)");
    case COX_E_NOT_FOUND:
        snprintf(what, sizeof what, "--devices %.200s",
                 options->devices ? options->devices : "all");
        return complain_reasons(what);
    case COX_E_INVALID:
    case COX_E_UNSUPPORTED:
        return complain_reasons("cannot start OpenCL");
    default:
        return complain_status("cannot start OpenCL", status);
    }
}

bool devices_start(struct devices *devices, const struct options *options)
{
    char cache[4096];
    const struct cox_runtime_params params = {
        .devices = options->devices,
        .arithmetic = options->arithmetic,
        .reserve = options->reserve,
        .reserve_cpu = options->reserve_cpu,
        .cache_dir = options->no_cache ? NULL : cache_folder(cache, sizeof cache),
        .log = words_log,
        .log_level = options->verbose ? COX_LOG_INFO : COX_LOG_WARN};
    cox_status status = cox_runtime_create(&devices->runtime, &params);
    if (status != COX_OK)
        return complain_start(options, status);
    devices->count = cox_runtime_device_count(devices->runtime);
    if (devices->count > COX_DEVICES_MAX)
        devices->count = COX_DEVICES_MAX;
    for (uint32_t d = 0; d < devices->count; d++)
        if (cox_runtime_device_info(devices->runtime, d, &devices->info[d]) != COX_OK)
            return complain("a device went away");
    if (options->policy_options.ratio_count &&
        options->policy_options.ratio_count != devices->count)
        return complain("--split has %u shares for %u device%s",
                        options->policy_options.ratio_count, devices->count,
                        devices->count == 1 ? "" : "s");
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
    params->profile = options->trace != NULL;
}

bool devices_memory(const char *what, uint32_t width, uint32_t height, double bytes)
{
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0 && bytes > (double)pages * (double)page_bytes)
        return complain(
            "%s: %u x %u pixels need %.1f GiB of memory, which this machine does not have", what,
            width, height, bytes / 0x1p30);
    return true;
}

/* --- For people and for statistics -------------------------------------------------------------------------------- */

const char *devices_arithmetic(const struct devices *devices)
{
    return cox_arithmetic_name(cox_runtime_arithmetic(devices->runtime));
}

void devices_print(const struct devices *devices, const struct cox_session_info *session,
                   bool verbose)
{
    say("devices\n");
    for (uint32_t d = 0; d < devices->count; d++) {
        const struct cox_device_info *device = &devices->info[d];
        char mark = '-';
        for (uint32_t i = 0; i < session->device_count; i++)
            if (session->devices[i].device == d && session->devices[i].state == COX_DEVICE_ACTIVE)
                mark = report_bar_mark(i);
        say("  %c %u  %.60s (%.40s), %s, %s memory, %u compute unit%s%s%s\n", mark, d, device->name,
            device->platform, cox_device_type_name(device->type),
            cox_memory_mode_name(device->mode), device->compute_units,
            device->compute_units == 1 ? "" : "s", device->subdevice ? ", a sub-device" : "",
            mark == '-' ? ": does not take part" : "");
    }
    if (verbose)
        say("  arithmetic %s\n", devices_arithmetic(devices));
    struct cox_host_info host;
    cox_runtime_host_info(devices->runtime, &host);
    if (host.reserved)
        say("  CPU %u is kept for the scheduler: %s\n", host.reserved_cpu, host.reserve_reason);
    else if (verbose)
        say("  no core is reserved: %s\n", host.reserve_reason);
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
            bands[b].status == COX_E_TIMEOUT                                 ? " (timeout)"
            : bands[b].status == COX_E_MISMATCH                              ? " (wrong)"
            : bands[b].status != COX_OK                                      ? " (failed)"
            : bands[b].attempt                                               ? " (again)"
            : b + 1 < frame->band_count && !report_begins_pass(bands, b + 1) ? ","
                                                                             : "");
    say("  %s\n", cox_reason_text(frame->reason));
}

void devices_print_warmup(const struct cox_session_info *session)
{
    const char *before = "warm-up  ";
    for (uint32_t d = 0; d < session->device_count; d++) {
        if (!session->devices[d].solo_ns)
            continue;
        say("%s device %u alone %.2f ms", before, session->devices[d].device,
            (double)session->devices[d].solo_ns / 1e6);
        before = ",";
    }
    if (*before == ',')
        say("\n");
}

void devices_add_trouble(struct cox_session_info *session, const struct cox_session_info *other)
{
    for (uint32_t d = 0; d < session->device_count && d < other->device_count; d++) {
        struct cox_session_device *device = &session->devices[d];
        device->lost += other->devices[d].lost;
        device->returned += other->devices[d].returned;
        if (other->devices[d].state > device->state)
            device->state = other->devices[d].state;
    }
}

void devices_print_late(const struct options *options, struct report *report)
{
    uint64_t frames, worst_ns;
    if (!options->policy_options.deadline_ns)
        return;
    report_late(report, &frames, &worst_ns);
    say("late      %llu of %llu frames", (unsigned long long)frames,
        (unsigned long long)report_frame_count(report));
    if (frames)
        say(", by %.2f ms at most", (double)worst_ns / 1e6);
    say(" (deadline %g ms)\n", (double)options->policy_options.deadline_ns / 1e6);
}

static void say_times(const char *what, uint32_t times)
{
    if (times)
        say(", %s %s", what, times == 1 ? "once" : times == 2 ? "twice" : "");
    if (times > 2)
        say("%u times", times);
}

void devices_print_trouble(const struct devices *devices, const struct cox_session_info *session)
{
    for (uint32_t d = 0; d < session->device_count; d++) {
        const struct cox_session_device *device = &session->devices[d];
        if (!device->lost && device->state == COX_DEVICE_ACTIVE)
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
        text->solo_ns[d] = session->devices[d].solo_ns;
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
                                   .granule = session->granule,
                                   .device_count = session->device_count,
                                   .devices = text->devices,
                                   .solo_ns = text->solo_ns};
}
