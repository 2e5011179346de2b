/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

#define ON(setup) (1u << FAULT_ON_##setup)
#define ALWAYS UINT32_MAX
#define MS UINT64_C(1000000)
#define NEVER UINT64_MAX

/* A refused call. On scripted devices, the submit of a band fails with `what`. */
#define REFUSED(what, times) .fake = {{.kind = FAKE_SUBMIT_FAILS, .status = (what), .skip = 30, .count = (times)}}
#define FAILS(times) .fake = {{.kind = FAKE_EVENT_FAILS, .skip = 30, .count = (times)}}
#define FAKED(what, times, ...) .fake = {{.kind = (what), .skip = 30, .count = (times), __VA_ARGS__}}
#define LATE(ns) FAKED(FAKE_HANGS, 1, .delay_ns = (ns))

/* In real time, so it must end: after the thread was given up. */
#define STUCK(what) FAKED(what, 1, .delay_ns = 1200 * MS)

#define NO_COPIES .not_on = ON(ONE) | ON(SHARED) | ON(MAPPED) | ON(SCRIPTED), .reason = "nothing is copied there"
#define NO_MAPS .not_on = ON(STAGED) | ON(SCRIPTED), .reason = "bands are not mapped there"
#define NO_TWO .not_on = ON(ONE), .reason = "a comparison needs two devices"
#define NO_OTHER .not_on = ON(ONE), .reason = "the session has no other device"
#define NO_LATER .not_on = ON(STAGED) | ON(SCRIPTED), .reason = "all memory is created with the session"
#define NO_CALL .not_on = ON(SCRIPTED), .reason = "scripted devices have no such call"

const struct fault_case fault_cases[] = {
    /* refused calls */
    {"launch refused once, CL_OUT_OF_RESOURCES", "kernel device=@ at=40 error=CL_OUT_OF_RESOURCES",
     REFUSED(COX_E_DEVICE_MEMORY, 1), .flags = FAULT_QUICK},
    {"launch refused three times, CL_OUT_OF_HOST_MEMORY", "kernel device=@ from=40 count=3 error=CL_OUT_OF_HOST_MEMORY",
     REFUSED(COX_E_NOMEM, 3)},
    {"launch refused once, CL_INVALID_COMMAND_QUEUE", "kernel device=@ at=40 error=CL_INVALID_COMMAND_QUEUE",
     REFUSED(COX_E_DEVICE_LOST, 1)},
    {"launch refused once, CL_MEM_OBJECT_ALLOCATION_FAILURE",
     "kernel device=@ at=40 error=CL_MEM_OBJECT_ALLOCATION_FAILURE", REFUSED(COX_E_DEVICE_MEMORY, 1)},
    {"launch refused once, an unknown code", "kernel device=@ at=40 error=-9999", REFUSED(COX_E_SYSTEM, 1)},
    {"every 20th launch refused", "kernel device=@ from=40 every=20 error=CL_OUT_OF_RESOURCES",
     REFUSED(COX_E_DEVICE_MEMORY, 10)},
    {"launch refused for ever, CL_DEVICE_NOT_AVAILABLE", "kernel device=@ from=40 error=CL_DEVICE_NOT_AVAILABLE",
     REFUSED(COX_E_DEVICE_LOST, ALWAYS), .flags = FAULT_QUICK},
    {"map refused once", "map device=@ at=150 error=CL_MAP_FAILURE", NO_MAPS},
    {"map refused for ever", "map device=@ from=150 error=CL_OUT_OF_RESOURCES", NO_MAPS},
    {"unmap refused once", "clEnqueueUnmapMemObject device=@ at=150 error=CL_OUT_OF_RESOURCES", NO_MAPS},
    {"read refused once", "clEnqueueReadBuffer device=@ at=60 error=CL_OUT_OF_RESOURCES",
     REFUSED(COX_E_DEVICE_MEMORY, 1)},
    {"read refused for ever", "clEnqueueReadBuffer device=@ from=60 error=CL_OUT_OF_HOST_MEMORY",
     REFUSED(COX_E_NOMEM, ALWAYS)},
    {"write refused once", "clEnqueueWriteBuffer device=@ at=100 error=CL_OUT_OF_RESOURCES", NO_COPIES},
    {"fill refused once", "clEnqueueFillBuffer device=@ at=50 error=CL_OUT_OF_RESOURCES", NO_CALL},
    {"kernel argument refused once", "clSetKernelArg device=% at=40 error=CL_OUT_OF_RESOURCES", NO_CALL},
    {"flush refused once", "flush device=@ at=60 error=CL_OUT_OF_RESOURCES", NO_CALL},
    {"every 10th flush refused", "flush device=@ from=60 every=10 error=CL_INVALID_COMMAND_QUEUE", NO_CALL},
    {"event callback refused once", "clSetEventCallback device=@ at=50 error=CL_OUT_OF_HOST_MEMORY",
     FAKED(FAKE_NO_POST, 1)},
    {"event callback refused always", "clSetEventCallback device=@ error=CL_OUT_OF_HOST_MEMORY",
     FAKED(FAKE_NO_POST, ALWAYS)},
    {"event status refused once", "clGetEventInfo device=@ at=60 error=CL_OUT_OF_HOST_MEMORY", FAILS(1)},
    {"event status refused for ever", "clGetEventInfo device=@ from=60 error=CL_INVALID_EVENT", FAILS(ALWAYS)},
    {"sub-buffer refused once", "clCreateSubBuffer device=% at=12 error=CL_OUT_OF_RESOURCES", .flags = FAULT_MOVING,
     .not_on = ON(ONE) | ON(MAPPED) | ON(STAGED) | ON(SCRIPTED), .reason = "there are no sub-buffers"},
    {"buffer refused in mid-stream", "clCreateBuffer device=% at=14 error=CL_MEM_OBJECT_ALLOCATION_FAILURE",
     .flags = FAULT_MOVING, NO_LATER},
    {"three buffers refused", "clCreateBuffer device=% from=14 every=5 count=3 error=CL_OUT_OF_HOST_MEMORY",
     .flags = FAULT_MOVING, NO_LATER},
    {"buffer refused when the session begins", "clCreateBuffer device=% at=2 error=CL_MEM_OBJECT_ALLOCATION_FAILURE",
     .fake = {{.kind = FAKE_INSTANCE_FAILS, .status = COX_E_DEVICE_MEMORY}}, NO_OTHER},
    {"kernel object refused once", "clCreateKernel device=% at=1 error=CL_OUT_OF_HOST_MEMORY",
     .fake = {{.kind = FAKE_INSTANCE_FAILS, .status = COX_E_NOMEM}}, NO_OTHER},
    {"kernel does not build on one device", "clBuildProgram device=@ error=CL_BUILD_PROGRAM_FAILURE",
     .fake = {{.kind = FAKE_INSTANCE_FAILS, .status = COX_E_BUILD, .count = ALWAYS}}, NO_OTHER, .flags = FAULT_QUICK},
    {"command queue refused once", "clCreateCommandQueue device=@ at=2 error=CL_OUT_OF_RESOURCES",
     .fake = {{.kind = FAKE_INSTANCE_FAILS, .status = COX_E_DEVICE_MEMORY}}, NO_OTHER},
    {"lost, and no new context for some time",
     "kernel device=@ at=40 error=CL_OUT_OF_RESOURCES\n"
     "clCreateContext device=% from=2 count=3 error=CL_DEVICE_NOT_AVAILABLE",
     .fake = {{.kind = FAKE_EVENT_FAILS, .skip = 30},
              {.kind = FAKE_INSTANCE_FAILS, .skip = 1, .status = COX_E_DEVICE_LOST, .count = 3}},
     .flags = FAULT_PARTIAL},

    /* commands that end with an error */
    {"kernel fails once", "kernel device=@ at=40 status=CL_OUT_OF_RESOURCES", FAILS(1), .flags = FAULT_QUICK},
    {"kernel fails once, after it has run", "kernel device=@ at=40 status-after=-9999", FAILS(1)},
    {"every 10th kernel fails", "kernel device=@ from=40 every=10 status=CL_OUT_OF_RESOURCES", FAILS(10)},
    {"kernel fails for ever", "kernel device=@ from=40 status=CL_DEVICE_NOT_AVAILABLE", FAILS(ALWAYS)},
    {"map fails once", "map device=@ at=150 status=CL_MAP_FAILURE", NO_MAPS},
    {"read fails once", "clEnqueueReadBuffer device=@ at=60 status=CL_OUT_OF_RESOURCES",
     FAKED(FAKE_FAILS_LATE, 1, .delay_ns = 5 * MS)},
    {"write fails once", "clEnqueueWriteBuffer device=@ at=100 status=CL_OUT_OF_RESOURCES", NO_COPIES},
    {"fill fails once", "clEnqueueFillBuffer device=@ at=50 status=CL_OUT_OF_RESOURCES", NO_CALL},
    {"the event says that the kernel failed, once", "kernel device=@ at=40 status-query=-5", NO_CALL},

    /* late commands */
    {"kernel 50 ms late, once", "kernel device=@ at=40 late=50ms", LATE(50 * MS), .flags = FAULT_QUICK},
    {"kernel 50 ms late, every 25th", "kernel device=@ from=40 every=25 late=50ms",
     FAKED(FAKE_HANGS, 6, .delay_ns = 50 * MS)},
    {"kernel 300 ms late, once", "kernel device=@ at=40 late=300ms", LATE(300 * MS)},
    {"kernel late beyond the timeout, buffers made anew", "kernel device=@ at=40 late=1600ms", LATE(800 * MS),
     .flags = FAULT_RENEW},
    {"kernel seen late beyond the timeout, buffers made anew", "kernel device=@ at=40 late-seen=1600ms", NO_CALL,
     .flags = FAULT_RENEW},
    {"kernel that never ends, once", "kernel device=@ at=40 never", LATE(NEVER), .flags = FAULT_QUICK},
    {"kernels that never end, for ever", "kernel device=@ from=40 never", FAKED(FAKE_HANGS, ALWAYS, .delay_ns = NEVER)},
    {"kernel that ends but is never seen to", "kernel device=@ at=40 never-seen", NO_CALL},
    {"kernel seen 50 ms late, once", "kernel device=@ at=40 late-seen=50ms", NO_CALL},
    {"read 50 ms late, every 25th", "clEnqueueReadBuffer device=@ from=60 every=25 late=50ms",
     FAKED(FAKE_HANGS, 6, .delay_ns = 50 * MS)},
    {"read that never ends, once", "clEnqueueReadBuffer device=@ at=60 never", LATE(NEVER)},
    {"map that never ends, once", "map device=@ at=150 never", NO_MAPS},
    {"write that never ends, once", "clEnqueueWriteBuffer device=@ at=100 never", NO_COPIES},
    {"enqueue call that takes 100 ms, once", "kernel device=@ at=40 hang=100ms",
     FAKED(FAKE_SUBMIT_BLOCKS, 1, .delay_ns = 100 * MS)},
    {"enqueue call that takes 2 s, once", "kernel device=@ at=40 hang=2s", STUCK(FAKE_SUBMIT_STUCK),
     .flags = FAULT_RENEW},
    {"enqueue call that never returns", "kernel device=@ at=40 hang=forever", NO_CALL, .flags = FAULT_QUICK},
    {"map call that never returns", "map device=@ at=150 hang=forever", NO_MAPS},
    {"write call that never returns", "clEnqueueWriteBuffer device=@ at=100 hang=forever", NO_COPIES},
    {"flush that takes 2 s, once", "flush device=@ at=60 hang=2s", STUCK(FAKE_FLUSH_STUCK), .flags = FAULT_RENEW},
    {"flush that never returns", "flush device=@ at=60 hang=forever", NO_CALL},
    {"question that takes 2 s, once", "clGetEventInfo device=@ at=60 hang=2s", STUCK(FAKE_POLL_STUCK),
     .flags = FAULT_RENEW},
    {"question that never returns", "clGetEventInfo device=@ at=60 hang=forever", NO_CALL, .flags = FAULT_QUICK},
    {"kernels 5 times as slow", "kernel device=@ from=40 slow=5", FAKED(FAKE_SLOW, ALWAYS, .factor = 5)},
    {"kernels 50 times as slow for 20 bands", "kernel device=@ from=40 count=20 slow=50",
     FAKED(FAKE_SLOW, 20, .factor = 50)},
    {"needs a flush", "enqueue device=@ needs-flush", NO_CALL},

    /* callbacks */
    {"a callback dropped, or two", "event device=@ from=60 count=8 callback=drop", FAKED(FAKE_NO_POST, 1),
     .flags = FAULT_QUICK},
    {"callbacks dropped always", "event device=@ callback=drop", FAKED(FAKE_NO_POST, ALWAYS)},
    {"callbacks twice", "event device=@ callback=twice", FAKED(FAKE_POST_TWICE, ALWAYS)},
    {"callbacks early", "event device=@ callback=early", FAKED(FAKE_POST_EARLY, ALWAYS), .flags = FAULT_QUICK},
    {"callbacks 30 ms late", "event device=@ chance=0.1 seed=1 callback=late=30ms",
     FAKED(FAKE_POST_LATE, 20, .delay_ns = 30 * MS)},
    {"callbacks with a wrong status", "event device=@ callback=wrong-status", NO_CALL},

    /* profiles */
    {"profile backwards", "event device=@ profile=backwards", FAKED(FAKE_LIES_PROFILE, ALWAYS)},
    {"profile zero", "event device=@ profile=zero", FAKED(FAKE_LIES_PROFILE, ALWAYS, .delay_ns = 1)},
    {"profile huge", "event device=@ profile=huge", FAKED(FAKE_LIES_PROFILE, ALWAYS, .delay_ns = UINT64_MAX / 4)},
    {"profile refused", "event device=@ profile=error", NO_CALL},
    {"ends before it began", NULL, FAKED(FAKE_END_EARLY, ALWAYS, .delay_ns = 5 * MS), .not_on = ~ON(SCRIPTED),
     .reason = "the library's own clock says when a command of a driver ended"},

    /* wrong results */
    {"wrong bits once", "kernel device=@ at=41 corrupt=3", FAKED(FAKE_CORRUPTS, 1, .factor = 3),
     .flags = FAULT_VERIFY | FAULT_QUICK | FAULT_UNSURE, NO_TWO},
    {"wrong bits in every 10th band", "kernel device=@ from=41 every=10 corrupt=3",
     FAKED(FAKE_CORRUPTS, 10, .factor = 1), .flags = FAULT_VERIFY | FAULT_UNSURE, NO_TWO},
    {"wrong bits always", "kernel device=@ from=41 corrupt=1", FAKED(FAKE_CORRUPTS, ALWAYS, .factor = 1),
     .flags = FAULT_VERIFY | FAULT_UNSURE, NO_TWO},

    /* vanishing devices */
    {"device vanishes for ever", "kernel device=@ at=40 vanish", FAKED(FAKE_DEVICE_DIES, 1), .flags = FAULT_QUICK},
    {"device vanishes for 300 ms", "kernel device=@ at=40 vanish for=300ms",
     FAKED(FAKE_DEVICE_DIES, 1, .delay_ns = 300 * MS), .flags = FAULT_QUICK},
    {"device vanishes twice for 100 ms", "kernel device=@ from=40 every=40 count=2 vanish for=100ms",
     FAKED(FAKE_DEVICE_DIES, 2, .delay_ns = 100 * MS), .flags = FAULT_PARTIAL},
    {"lost, and releasing its context hangs",
     "kernel device=@ from=40 every=10 count=2 status=CL_OUT_OF_RESOURCES\n"
     "clReleaseContext device=% at=1 hang=1500ms",
     .fake = {{.kind = FAKE_HANGS, .skip = 30, .delay_ns = NEVER},
              {.kind = FAKE_DESTROY_BLOCKS, .delay_ns = 1500 * MS}}},
    {"lost, and releasing its queue hangs",
     "kernel device=@ at=40 status=CL_OUT_OF_RESOURCES\n"
     "clReleaseCommandQueue device=@ at=1 hang=1500ms",
     NO_CALL},
    {"lost, and clFinish hangs",
     "kernel device=@ at=40 status=CL_OUT_OF_RESOURCES\n"
     "clFinish device=@ from=2 count=1 hang=1500ms",
     NO_CALL, .flags = FAULT_PARTIAL},

#define MIX(seed)                                                                                   \
    "kernel device=@ from=20 chance=0.02 seed=" seed " status=CL_OUT_OF_RESOURCES\n"                \
    "kernel device=@ from=20 chance=0.02 seed=1" seed " late=80ms\n"                                \
    "event device=@ from=20 chance=0.05 seed=2" seed " callback=drop\n"                             \
    "event device=@ from=20 chance=0.05 seed=3" seed " callback=twice\n"                            \
    "clEnqueueReadBuffer device=@ from=20 chance=0.01 seed=4" seed " error=CL_OUT_OF_HOST_MEMORY\n" \
    "kernel device=@ from=30 chance=0.005 seed=5" seed " vanish for=50ms"
    /* all kinds together */
    {"a mix, seed 1", MIX("1"),
     .fake = {{.kind = FAKE_EVENT_FAILS, .skip = 20, .count = 3},
              {.kind = FAKE_HANGS, .skip = 40, .count = 3, .delay_ns = 80 * MS}},
     .flags = FAULT_PARTIAL | FAULT_QUICK},
    {"a mix, seed 2", MIX("2"),
     .fake = {{.kind = FAKE_HANGS, .skip = 20, .count = 3, .delay_ns = NEVER},
              {.kind = FAKE_POST_TWICE, .skip = 10, .count = ALWAYS}},
     .flags = FAULT_PARTIAL},
    {"a mix, seed 3", MIX("3"),
     .fake = {{.kind = FAKE_DEVICE_DIES, .skip = 20, .count = 2, .delay_ns = 50 * MS},
              {.kind = FAKE_NO_POST, .skip = 10, .count = ALWAYS}},
     .flags = FAULT_PARTIAL},
    {"a mix, seed 4", MIX("4"),
     .fake = {{.kind = FAKE_SUBMIT_FAILS, .skip = 20, .count = 3, .status = COX_E_NOMEM},
              {.kind = FAKE_FAILS_LATE, .skip = 30, .count = 2, .delay_ns = 40 * MS}},
     .flags = FAULT_PARTIAL},
};

const uint32_t fault_case_count = sizeof fault_cases / sizeof fault_cases[0];

const char *fault_setup_name(enum fault_setup setup)
{
    static const char *const names[FAULT_SETUPS] = {"one", "shared", "mapped", "staged", "scripted"};
    return setup < FAULT_SETUPS ? names[setup] : "?";
}
