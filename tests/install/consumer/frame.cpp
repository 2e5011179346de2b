// A C++ application's first frame, with the headers' macros: a runtime, a session over one kernel, one frame, checked.
// Exit status 77 = this machine has no OpenCL device.
// SPDX-License-Identifier: Apache-2.0
#include <coxswain/coxswain.h>
#include <cstdint>
#include <cstdio>

namespace
{

constexpr std::uint32_t columns = 300, rows = 200;

const char source[] =
    "kernel void scale(global const uint *in, global uint *out, int columns, int rows, int first_row,\n"
    "                  uint factor) {\n"
    "    int x = get_global_id(0), y = get_global_id(1);\n"
    "    if (x < columns && y < rows) out[y * columns + x] = factor * in[y * columns + x] + first_row + y;\n"
    "}\n";

struct scale_constants {
    std::uint32_t unused, factor;
};

void say(void *user, enum cox_log_level, const char *line)
{
    std::fprintf(static_cast<std::FILE *>(user), "%s\n", line);
}

// Counts the frames that were delivered after their deadlines.
void count_late(void *user, const cox_frame_report *report)
{
    if (!report->warmup && report->deadline_ns && report->delivered_ns - report->submit_ns > report->deadline_ns)
        ++*static_cast<std::uint32_t *>(user);
}

cox_status open_session(cox_runtime *runtime, const char *policy, std::uint32_t device, std::uint32_t *late,
                        cox_session **session)
{
    cox_pass passes[2] = {}; // the last element ends the list
    passes[0].source = source;
    const cox_field fields[] = {COX_FIELD(scale_constants, factor), {}};
    cox_policy_options options = {};
    options.device = device;
    cox_session_params params = {};
    params.columns = columns;
    params.rows = rows;
    params.passes = passes;
    params.fields = fields;
    params.constants_bytes = sizeof(scale_constants);
    params.policy = policy;
    params.policy_options = &options;
    params.report = count_late;
    params.report_user = late;
    return cox_session_create(runtime, &params, session);
}

int fail(const char *what, cox_status status)
{
    std::fprintf(stderr, "%s: %s\n", what, cox_status_text(status));
    return status == COX_E_NO_PLATFORM || status == COX_E_NO_DEVICE ? 77 : 1;
}

int run()
{
    std::uint32_t late_frames = 0;
    cox_runtime *runtime = nullptr;
    cox_session *session = nullptr;
    cox_buffer *buffers[3] = {}; // the last element ends the list
    cox_runtime_params runtime_params = {};
    runtime_params.log = say;
    runtime_params.log_user = stderr;
    cox_status status = cox_runtime_create(&runtime_params, &runtime);
    if (status != COX_OK)
        return fail("runtime", status);
    for (int i = 0; i < 2 && status == COX_OK; i++)
        status = cox_buffer_create(runtime, columns * rows * sizeof(std::uint32_t), &buffers[i]);
    // The options reach the policy: device 1 + COX_DEVICES_MAX does not exist.
    if (status == COX_OK && open_session(runtime, "single", 1 + COX_DEVICES_MAX, &late_frames, &session) == COX_OK)
        status = COX_E_POLICY;
    if (status == COX_OK)
        status = open_session(runtime, "single", 1, &late_frames, &session);
    int wrong = 0;
    if (status == COX_OK) {
        auto *in = static_cast<std::uint32_t *>(cox_buffer_data(buffers[0]));
        const auto *out = static_cast<const std::uint32_t *>(cox_buffer_data(buffers[1]));
        for (std::uint32_t i = 0; i < columns * rows; i++)
            in[i] = i;
        // A frame without buffers is refused, a frame with buffers is done.
        cox_frame frame = {};
        if (cox_session_run(session, &frame) != COX_E_INVALID)
            wrong++;
        const scale_constants constants = {0, 3};
        // No frame is done within one nanosecond of its submission.
        frame.buffers = buffers;
        frame.constants = &constants;
        frame.deadline_ns = 1;
        status = cox_session_run(session, &frame);
        wrong += late_frames != 1;
        for (std::uint32_t i = 0; i < columns * rows; i++)
            wrong += out[i] != 3 * i + i / columns;
    }
    cox_session_destroy(&session);
    for (cox_buffer *&buffer : buffers)
        cox_buffer_destroy(&buffer);
    cox_runtime_destroy(&runtime);
    if (status != COX_OK)
        return fail("frame", status);
    std::printf("%u rows, %d wrong, C++ %ld\n", static_cast<unsigned>(rows), wrong, __cplusplus);
    return wrong ? 1 : 0;
}

} // namespace

int main()
{
    return run();
}
