/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"
#include "message.h"

static bool any_missing;

/* The least number of devices that the session should have. */
static uint32_t wanted(cox_runtime *runtime, const struct cox_session_params *params)
{
    uint32_t count = 1;
    if (!params->devices)
        return cox_runtime_device_count(runtime);

    for (const char *at = params->devices; *at; at++)
        count += *at == ',';
    return count;
}

cox_status bench_session_create(cox_runtime *runtime, const struct cox_session_params *params,
                                cox_session **session)
{
    struct cox_session_info info;
    const cox_status status = cox_session_create(runtime, params, session);
    if (status)
        return status;

    cox_session_info(*session, &info);
    if (info.device_count < wanted(runtime, params))
        any_missing = !bench_fail("a device does not take part: the figures are without it");
    return COX_OK;
}

static void note_failures(const struct cox_session_info *info)
{
    bool failed = false;
    for (uint32_t d = 0; d < info->device_count; d++)
        failed |= info->devices[d].lost || info->devices[d].state == COX_DEVICE_ABSENT;

    if (failed)
        any_missing = !bench_fail("a device failed: other devices did some of its rows");
}

void bench_session_destroy(cox_session **session)
{
    struct cox_session_info info;
    cox_session_info(*session, &info);
    note_failures(&info);
    cox_session_destroy(session);
}

void bench_session_destroy_stream(cox_video_stream **stream)
{
    struct cox_session_info info;
    if (*stream) {
        cox_video_stream_session_info(*stream, &info);
        note_failures(&info);
    }
    cox_video_stream_destroy(stream);
}

bool bench_session_any_missing(void)
{
    return any_missing;
}
