/* The runtime: the devices of this machine, the memory they can reach, the thread that feeds them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_RUNTIME_H
#define COXSWAIN_RUNTIME_H

#include <coxswain/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Owns devices, contexts, host memory and one scheduler thread. Several may live in one process.
 * Thread-safety: every function taking a `cox_runtime` is safe from any thread but the scheduler thread,
 * except cox_runtime_destroy, which must be the last one. */
typedef struct cox_runtime cox_runtime;

/* How much a line of the log matters. */
enum cox_log_level { COX_LOG_ERROR = 1, COX_LOG_WARN = 2, COX_LOG_INFO = 3, COX_LOG_DEBUG = 4 };

/* Receives one line without its newline, valid during the call. May run on any thread that is inside the
 * library or on the scheduler thread, on several at once; must not call the library back. */
typedef void cox_log_fn(void *user, enum cox_log_level level, const char *line);

/* Whether a core is kept free of kernel workers to feed asynchronous devices from. */
enum cox_reserve {
    /* yes if an asynchronous device takes part and there are three cores or more */
    COX_RESERVE_AUTO = 0,
    COX_RESERVE_OFF = 1,
    COX_RESERVE_ON = 2,   /* yes, the runtime chooses the core */
    COX_RESERVE_CORE = 3, /* yes, the core of the operating system's CPU number `reserve_cpu` */
};

/* How the project's kernels compute a * b + c: rounded twice, or once (fma). One for all devices of a runtime, from its
 * creation to its end, so that each of them gives the same bits; the two give different ones, in the last place.
 *
 * Programs are built with -DCOX_FMA where it is fma, for kernels of applications that want to do likewise. */
enum cox_arithmetic {
    COX_ARITHMETIC_AUTO = 0, /* fma if every device has it in hardware; no measurement decides */
    COX_ARITHMETIC_MULADD = 1,
    COX_ARITHMETIC_FMA = 2,
};

/* Zero in every field means the default. Read only during cox_runtime_create. */
struct cox_runtime_params {
    const char *devices; /* device selection (see cox_runtime_create); NULL = every device once */
    enum cox_reserve reserve;
    uint32_t reserve_cpu;

    /* Directory for compiled kernels and device profiles (what sessions measured), created if missing; NULL = none is
     * kept. */
    const char *cache_dir;

    cox_log_fn *log; /* NULL = silent */
    void *log_user;
    enum cox_log_level log_level; /* most detailed level reported; 0 = COX_LOG_WARN */

    enum cox_arithmetic arithmetic;

    /* Contexts of the application's for the devices to use (coxswain/opencl.h); NULL = the library makes them all. */
    const struct cox_opencl_contexts *contexts;
};

/* Find the devices, group them into contexts, start the scheduler thread. `*out` is NULL unless
 * COX_OK.
 *
 * `devices` is a comma-separated list. Each entry is
 *   all | cpu | gpu | accelerator          every device of that type. `all` skips software GPUs
 *                                          without fma if the CPU has fma.
 *   P.D                                    device D of platform P, as `cox-devices` numbers them
 *   TEXT                                   every device whose name or platform's name contains TEXT
 *                                          (any case)
 * and may end with
 *   :NxC                                   N sub-devices of C compute units each. Without a
 *                                          selector before it applies to every device.
 *   =shared | =mapped | =staged            a memory mode, after the sub-devices
 * A device selected twice is used once. An entry that selects nothing is an error.
 *
 * The first call in a process that touches OpenCL also decides on which cores a CPU platform's
 * workers may run. If another library made that call, a core is reserved without keeping these
 * workers off it, and the log says so.
 *
 * Blocks: for the drivers' start-up (0.1 to 2 s).
 * Errors, each with a line in the log that says which argument and why:
 *   COX_E_INVALID      `out` is NULL. In `devices`, the syntax is wrong, more than 32 devices are
 *                      selected, or a device has too few compute units for its sub-devices.
 *                      `reserve` is no cox_reserve, or `arithmetic` no cox_arithmetic. This process
 *                      may not use the CPU `reserve_cpu`. A context in `opencl` is NULL or invalid.
 *   COX_E_NOT_FOUND    an entry of `devices` selects nothing
 *   COX_E_UNSUPPORTED  a device cannot be cut as `devices` says, or fma is asked for and a device
 *                      has none
 *   COX_E_NO_DEVICE    there are platforms, but no devices
 *   COX_E_SYSTEM       a thread could not be created
 *   COX_E_NO_PLATFORM, COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_runtime_create(const struct cox_runtime_params *params,
                                                     cox_runtime **out);

/* Destroy and set to NULL; NULL is accepted. Blocks until the scheduler thread has ended.
 *
 * Does nothing but a line in the log, and leaves *runtime, while sessions or buffers of it are there, from a callback,
 * and in a child process after fork. */
COX_API void cox_runtime_destroy(cox_runtime **runtime);

/* What a device says it is (CL_DEVICE_TYPE). */
enum cox_device_type {
    COX_DEVICE_CPU = 1,
    COX_DEVICE_GPU = 2,
    COX_DEVICE_ACCELERATOR = 3,
    COX_DEVICE_OTHER = 4
};

/* How a device reaches the frame's memory. */
enum cox_memory_mode {
    COX_MODE_SHARED = 1, /* one context with others; a band is an aligned sub-buffer */
    COX_MODE_MAPPED = 2, /* wraps its own range of the host allocation */
    COX_MODE_STAGED = 3, /* own memory; pinned host memory, copies in pieces that overlap compute */
};

/* Whether a device's driver works in the host's memory or on a copy of it, told by how long mapping takes: OpenCL
 * allows both, whatever a device's type. Staged devices always copy. */
enum cox_host_memory {
    COX_HOST_MEMORY_UNKNOWN = 0, /* could not be measured */
    COX_HOST_MEMORY_WRAPPED = 1,
    COX_HOST_MEMORY_COPIED = 2,
};

/* A device's fma(): whether it says that it has one, and for a processor whether there is an instruction for it. Slow
 * is a call, into a library some twenty times slower. PoCL on arm64 does not say so, but has one that is a call. */
enum cox_fma { COX_FMA_NONE = 0, COX_FMA_SLOW = 1, COX_FMA_FAST = 2 };

/* "none", "slow", "fast"; "unknown" for any other value. */
COX_API const char *cox_fma_name(enum cox_fma fma);

/* "auto", "muladd", "fma"; "unknown" for any other value. */
COX_API const char *cox_arithmetic_name(enum cox_arithmetic arithmetic);

/* "unknown", "wrapped", "copied"; "unknown" for any other value. */
COX_API const char *cox_host_memory_name(enum cox_host_memory memory);

/* "cpu", "gpu", "accelerator", "other"; "shared", "mapped", "staged"; "unknown" for any other value. */
COX_API const char *cox_device_type_name(enum cox_device_type type);
COX_API const char *cox_memory_mode_name(enum cox_memory_mode mode);

/* One device. Strings are terminated. */
struct cox_device_info {
    char name[128];
    char platform[128];
    char driver[64];
    char id[192]; /* stable identity: platform, name and UUID or PCI address; not an index */
    enum cox_device_type type;
    enum cox_memory_mode mode;
    uint32_t platform_index; /* numbers for the selector P.D */
    uint32_t device_index;
    uint32_t context_group;  /* devices with the same number share one cl_context */
    uint32_t compute_units;  /* of the sub-device where it is one */
    uint32_t parent_units;   /* of the whole device */
    uint32_t subdevice;      /* 0 = not a sub-device, else 1 + its index in the partition */
    uint32_t max_work_group; /* work-items */
    uint32_t vector_width_float;
    uint32_t base_align_bytes; /* alignment that a sub-buffer's offset needs */
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    bool unified; /* works on host memory */
    enum cox_host_memory host_memory;
    enum cox_fma fma;
};

/* 0 if `runtime` is NULL. */
COX_API uint32_t cox_runtime_device_count(const cox_runtime *runtime);

/* What the kernels use, never AUTO; AUTO if `runtime` is NULL. */
COX_API enum cox_arithmetic cox_runtime_arithmetic(const cox_runtime *runtime);

/* Errors: COX_E_NOT_FOUND (index past the end), COX_E_INVALID (`runtime` or `info` is NULL); *info is untouched. */
COX_API cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index,
                                           struct cox_device_info *info);

/* The most kinds of cores that a cox_host_info holds. */
enum { COX_CORE_KINDS_MAX = 8 };

/* The machine's processor and the reserved core. */
struct cox_host_info {
    uint32_t cores;                          /* physical cores that this process may use */
    uint32_t cpus;                           /* hardware threads that this process may use */
    uint32_t kind_count;                     /* 0 = the kinds are unknown or alike */
    uint32_t kind_cores[COX_CORE_KINDS_MAX]; /* cores of each kind, least powerful first */
    char kind_name[COX_CORE_KINDS_MAX][32]; /* "IntelAtom", … ; "" where the system has no name */
    bool reserved;                          /* a core is reserved */
    bool workers_kept_off;                  /* no CPU-platform worker may run on it */
    uint32_t reserved_cpu;                  /* the system's number of its first hardware thread */
    char reserve_reason[160];               /* one sentence: why this core, or why none */
};

/* Zeros if `runtime` is NULL. */
COX_API void cox_runtime_host_info(const cox_runtime *runtime, struct cox_host_info *info);

/* Every OpenCL platform of the machine, usable or not; for diagnosis. */
struct cox_platform_info {
    char name[128];
    char vendor[128];
    char version[128];
    uint32_t devices; /* 0 is normal for a platform without hardware */
};

/* 0 if `runtime` is NULL. */
COX_API uint32_t cox_runtime_platform_count(const cox_runtime *runtime);

/* Errors: COX_E_NOT_FOUND (index past the end), COX_E_INVALID (`runtime` or `info` is NULL); *info is untouched. */
COX_API cox_status cox_runtime_platform_info(const cox_runtime *runtime, uint32_t index,
                                             struct cox_platform_info *info);

/* Host memory that every device of the runtime can work on: page-aligned, padded to pages, pinned for the first
 * context that has a staged device, zeroed.
 * Thread-safety: as for cox_runtime. */
typedef struct cox_buffer cox_buffer;

/* Errors, each with a line in the log: COX_E_INVALID (`runtime`, which has the log, or `out` is NULL; `bytes` is 0 or
 * more than SIZE_MAX / 2; a child process after fork), COX_E_NOMEM. */
COX_API COX_MUST_CHECK cox_status cox_buffer_create(cox_runtime *runtime, size_t bytes,
                                                    cox_buffer **out);

/* A wrapped buffer was destroyed, and no device touches its memory any more: the application may free it. Runs once, on
 * a thread of the library or inside cox_runtime_destroy, beside other callbacks. May make and destroy buffers. */
typedef void cox_released_fn(void *user);

/* Use the application's memory, which it keeps owning and must keep alive until the buffer is destroyed and `released`
 * has run, or, without that (NULL), until cox_buffer_destroy has returned.
 *
 * `data` must be aligned as the kernels that are given it need: to the size of the types that they read there. This
 * project's video kernels need nothing on a processor, and 4 bytes elsewhere. Processors work in it without a copy
 * wherever it lies, GPUs with host memory mostly where it is aligned to 4096 bytes; staged devices copy from pageable
 * memory, which is slower. cox_buffer_info says what happens.
 * Errors, each with a line in the log: COX_E_INVALID (`runtime`, which has the log, or `out` is NULL; `data` is NULL;
 * `bytes` is 0 or more than SIZE_MAX / 2; a child process after fork), COX_E_NOMEM. */
COX_API COX_MUST_CHECK cox_status cox_buffer_wrap(cox_runtime *runtime, void *data, size_t bytes,
                                                  cox_released_fn *released, void *user,
                                                  cox_buffer **out);

/* Destroy and set to NULL; NULL is accepted. The library's own memory, and wrapped memory with a `released` function,
 * go when no frame and no device uses them any more; this does not block. Other wrapped memory is waited for: blocks
 * while frames with it are under way, and for what the devices have to do.
 *
 * Does nothing but a line in the log, and leaves *buffer, in a child process after fork; and, where it would wait, from
 * a callback: other frames under way than the one whose `done` calls it use the buffer.
 * Thread-safety: safe from any thread. */
COX_API void cox_buffer_destroy(cox_buffer **buffer);

struct cox_buffer_info {
    size_t bytes;   /* as asked for */
    bool pinned;    /* page-locked by a driver */
    bool wrapped;   /* the application's memory */
    bool zero_copy; /* devices that work on host memory need no copy */
};

/* Zeros if `buffer` is NULL. */
COX_API void cox_buffer_info(const cox_buffer *buffer, struct cox_buffer_info *info);

/* The memory. Belongs to the application except between cox_session_submit and the frame's callback. Where a device
 * hung, and was given up, a frame ends in fresh memory: ask again after each callback. Wrapped memory stays where it
 * is. NULL if `buffer` is NULL. */
COX_API void *cox_buffer_data(const cox_buffer *buffer);

/* The least row pitch >= row_bytes that keeps band boundaries free: a multiple of every device's sub-buffer
 * alignment, which makes the row alignment as small as the kernel allows. A session with a row alignment above an eighth of
 * its rows is told so in the log when it is created, with the pitches that would mend it. Returns 0 if row_bytes is 0
 * or overflows, or `runtime` is NULL. */
COX_API size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes);

#ifdef __cplusplus
}
#endif
#endif
