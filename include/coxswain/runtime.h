/* The runtime: this machine's OpenCL devices, the memory that they can reach, and the thread that
 * feeds them.
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

/* Owns devices, contexts, host memory and one scheduler thread. A process may have several
 * runtimes.
 *
 * Thread-safety: every function that takes a runtime may be called from any thread except the
 * scheduler thread, on which callbacks run. cox_runtime_destroy must be the last call. Callbacks
 * that may create and destroy buffers say so. */
typedef struct cox_runtime cox_runtime;

/* The level of a log line. */
enum cox_log_level { COX_LOG_ERROR = 1, COX_LOG_WARN = 2, COX_LOG_INFO = 3, COX_LOG_DEBUG = 4 };

/* Receives one log line, without a newline. `line` is valid during the call.
 *
 * Runs on any thread that is inside the library, or on the scheduler thread. Several threads may be
 * in it at once. Must not call the library. */
typedef void cox_log_fn(void *user, enum cox_log_level level, const char *line);

/* Whether one CPU core is kept free of kernel workers, to feed asynchronous devices from. */
enum cox_reserve {
    /* yes, if an asynchronous device takes part and the process has three cores or more */
    COX_RESERVE_AUTO = 0,
    COX_RESERVE_OFF = 1,
    COX_RESERVE_ON = 2,   /* yes, and the runtime chooses the core */
    COX_RESERVE_CORE = 3, /* yes, the core of the operating system's CPU number `reserve_cpu` */
};

/* How the library's kernels compute a * b + c: rounded twice, or once (fma). The two give results
 * that differ in the last place.
 *
 * One choice holds for all devices of a runtime, from its creation to its end. So all devices give
 * the same bits. If the choice is fma, programs are built with -DCOX_FMA, which an application's
 * kernels may use too. */
enum cox_arithmetic {
    COX_ARITHMETIC_AUTO = 0,   /* fma if every device has it in hardware; nothing is measured */
    COX_ARITHMETIC_MULADD = 1, /* rounds twice */
    COX_ARITHMETIC_FMA = 2,    /* rounds once */
};

/* All fields are optional. Zero means the default. Read only during cox_runtime_create. */
struct cox_runtime_params {
    const char
        *devices; /* which devices to use, see cox_runtime_create; NULL = every device once */
    enum cox_reserve reserve;
    uint32_t reserve_cpu; /* for COX_RESERVE_CORE */

    /* Directory for compiled kernels and for device profiles, which hold what sessions measured.
     * Created if missing. NULL = keep nothing. */
    const char *cache_dir;

    cox_log_fn *log; /* NULL = no log */
    void *log_user;
    enum cox_log_level log_level; /* the most detailed level to report; 0 = COX_LOG_WARN */

    enum cox_arithmetic arithmetic;

    /* A list of the application's own contexts (cl_context) that ends with NULL, see
     * coxswain/opencl.h. NULL = the library makes all contexts. */
    struct _cl_context *const *contexts;
};

/* Find the devices, group them into contexts, and start the scheduler thread. `params` may be NULL.
 * *out is NULL on an error.
 *
 * `devices` is a comma-separated list. Each entry is one of
 *   all | cpu | gpu | accelerator   Every device of that type. `all` skips software GPUs without
 *                                   fma if the CPU has fma.
 *   P.D                             Device D of platform P, as `cox-devices` numbers them.
 *   TEXT                            Every device whose name or platform contains TEXT, in any case.
 * An entry may end with
 *   :NxC                            Split the device into N sub-devices of C compute units each.
 *                                   Without a selector before it, this applies to every device.
 *   =shared | =mapped | =staged     A memory mode (see cox_memory_mode), after the sub-devices.
 * A device that is selected twice is used once. An entry that selects no device is an error.
 *
 * The first OpenCL call in a process also decides on which cores the workers of a CPU platform may
 * run. If another library made that call, a core is still reserved, but those workers may run on
 * it. The log says so.
 *
 * Blocks: 0.1 to 2 s, while drivers start.
 *
 * Errors, each with a log line that names the argument and the reason:
 *   COX_E_INVALID      `out` is NULL. The syntax of `devices` is wrong, or it selects more than 32
 *                      devices. A device has too few compute units for its sub-devices. `reserve`
 *                      or `arithmetic` is not a value of its enum. This process may not use the
 *                      CPU `reserve_cpu`. A context in `contexts` is invalid. A parent of this
 *                      process created a runtime before it forked.
 *   COX_E_NOT_FOUND    An entry of `devices` selects no device.
 *   COX_E_UNSUPPORTED  A device cannot be split as `devices` says. Or `arithmetic` is fma and a
 *                      device has no fma.
 *   COX_E_NO_PLATFORM  No OpenCL platform is installed.
 *   COX_E_NO_DEVICE    There are platforms, but no devices.
 *   COX_E_SYSTEM       A thread could not be created.
 *   COX_E_NOMEM        Out of host memory. */
COX_API COX_MUST_CHECK cox_status cox_runtime_create(const struct cox_runtime_params *params,
                                                     cox_runtime **out);

/* Destroy the runtime and set *runtime to NULL. Accepts NULL. Blocks until the scheduler thread has
 * ended.
 *
 * Only writes a log line, and leaves *runtime as it was, in these cases:
 *   A session or a buffer of the runtime still exists.
 *   The call comes from a callback.
 *   The call is made in a child process after fork. */
COX_API void cox_runtime_destroy(cox_runtime **runtime);

/* What a device reports as its type (CL_DEVICE_TYPE). */
enum cox_device_type {
    COX_DEVICE_CPU = 1,
    COX_DEVICE_GPU = 2,
    COX_DEVICE_ACCELERATOR = 3,
    COX_DEVICE_OTHER = 4
};

/* How a device reaches a frame's memory. */
enum cox_memory_mode {
    COX_MODE_SHARED = 1, /* in one context with other devices; a band is an aligned sub-buffer */
    COX_MODE_MAPPED = 2, /* wraps its own range of the host allocation */

    /* Has its own memory. Rows are copied there and back in pieces, from and to pinned host memory,
     * while kernels run. */
    COX_MODE_STAGED = 3,
};

/* Whether a device's driver works in host memory or on a copy of it. OpenCL allows both for every
 * type of device. The library finds out by timing how long a mapping takes. Staged devices always
 * copy. */
enum cox_host_memory {
    COX_HOST_MEMORY_UNKNOWN = 0, /* could not be measured */
    COX_HOST_MEMORY_WRAPPED = 1,
    COX_HOST_MEMORY_COPIED = 2,
};

/* Whether a device has fma().
 *
 * FAST means that the device reports it, and for a CPU that the CPU has the instruction. SLOW is a
 * library call, about 20 times slower. PoCL on arm64 does not report fma, but has one that is a
 * call. */
enum cox_fma { COX_FMA_NONE = 0, COX_FMA_SLOW = 1, COX_FMA_FAST = 2 };

/* "none", "slow", "fast". "unknown" for any other value. */
COX_API const char *cox_fma_name(enum cox_fma fma);

/* "auto", "muladd", "fma". "unknown" for any other value. */
COX_API const char *cox_arithmetic_name(enum cox_arithmetic arithmetic);

/* "unknown", "wrapped", "copied". "unknown" for any other value. */
COX_API const char *cox_host_memory_name(enum cox_host_memory memory);

/* "cpu", "gpu", "accelerator", "other"; "shared", "mapped", "staged". "unknown" for any other
 * value. */
COX_API const char *cox_device_type_name(enum cox_device_type type);
COX_API const char *cox_memory_mode_name(enum cox_memory_mode mode);

/* One device. Strings are zero-terminated. */
struct cox_device_info {
    char name[128];
    char platform[128];
    char driver[64];
    char id[192]; /* stable identity, not an index: platform, name, and UUID or PCI address */
    enum cox_device_type type;
    enum cox_memory_mode mode;
    uint32_t platform_index; /* P and D of the selector P.D */
    uint32_t device_index;
    uint32_t context_group;  /* devices with the same number share one cl_context */
    uint32_t compute_units;  /* of the sub-device, if it is one */
    uint32_t parent_units;   /* compute units of the whole device */
    uint32_t subdevice;      /* 0 = a whole device, else 1 + its index among the sub-devices */
    uint32_t max_work_group; /* in work-items */
    uint32_t vector_width_float;
    uint32_t base_align_bytes; /* alignment that the offset of a sub-buffer needs */
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    bool unified; /* works on host memory */
    enum cox_host_memory host_memory;
    enum cox_fma fma;
};

/* The number of devices. 0 if `runtime` is NULL. */
COX_API uint32_t cox_runtime_device_count(const cox_runtime *runtime);

/* The arithmetic of the kernels: MULADD or FMA. AUTO only if `runtime` is NULL. */
COX_API enum cox_arithmetic cox_runtime_arithmetic(const cox_runtime *runtime);

/* Describe device `index`, from 0. On an error *info is unchanged.
 *
 * Errors:
 *   COX_E_INVALID    `runtime` or `info` is NULL
 *   COX_E_NOT_FOUND  there is no device `index` */
COX_API cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index,
                                           struct cox_device_info *info);

/* A device of the machine that the runtime does not use, although `devices` does not exclude it. It
 * cannot be used, or only an entry that names it selects it. */
struct cox_left_out {
    char name[128];
    char platform[128];
    uint32_t platform_index; /* P and D of the selector P.D */
    uint32_t device_index;
    char reason[160]; /* "it has no compiler for OpenCL C", … */
};

/* Describe device `index` that is left out, from 0, in the order of platforms. The log has a line
 * for each when the runtime is created. On an error *out is unchanged.
 *
 * Errors:
 *   COX_E_INVALID    `runtime` or `out` is NULL
 *   COX_E_NOT_FOUND  fewer devices are left out */
COX_API cox_status cox_runtime_left_out(const cox_runtime *runtime, uint32_t index,
                                        struct cox_left_out *out);

/* The most kinds of cores that a cox_host_info holds. */
enum { COX_CORE_KINDS_MAX = 8 };

/* The machine's CPU and the reserved core. */
struct cox_host_info {
    uint32_t cores;                          /* physical cores that this process may use */
    uint32_t cpus;                           /* hardware threads that this process may use */
    uint32_t kind_count;                     /* kinds of cores; 0 = unknown, or all are alike */
    uint32_t kind_cores[COX_CORE_KINDS_MAX]; /* cores of each kind, least powerful kind first */
    char kind_name[COX_CORE_KINDS_MAX][32];  /* "IntelAtom", …; "" if the system has no name */
    bool reserved;                           /* a core is reserved */
    bool workers_kept_off;                   /* no worker of a CPU platform may run on that core */
    uint32_t reserved_cpu;    /* the operating system's number of its first hardware thread */
    char reserve_reason[160]; /* one sentence: why this core, or why no core */
};

/* Describe the host. All zeros if `runtime` is NULL. */
COX_API void cox_runtime_host_info(const cox_runtime *runtime, struct cox_host_info *info);

/* One OpenCL platform of the machine, usable or not. For diagnosis. */
struct cox_platform_info {
    char name[128];
    char vendor[128];
    char version[128];
    uint32_t devices; /* 0 is normal for a platform without hardware */
};

/* The number of platforms. 0 if `runtime` is NULL. */
COX_API uint32_t cox_runtime_platform_count(const cox_runtime *runtime);

/* Describe platform `index`, from 0. On an error *info is unchanged.
 *
 * Errors:
 *   COX_E_INVALID    `runtime` or `info` is NULL
 *   COX_E_NOT_FOUND  there is no platform `index` */
COX_API cox_status cox_runtime_platform_info(const cox_runtime *runtime, uint32_t index,
                                             struct cox_platform_info *info);

/* Host memory that every device of the runtime can use.
 *
 * Plain memory works as well, but only for cox_session_run (cox_frame.data).
 *
 * Thread-safety: as for cox_runtime. Callbacks that may use buffers say so. */
typedef struct cox_buffer cox_buffer;

/* Allocate a buffer. Its memory is zeroed, page-aligned and padded to whole pages. It is pinned for
 * the first context that has a staged device.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID  `runtime` or `out` is NULL. `bytes` is 0 or more than SIZE_MAX / 2. The call is
 *                  made in a child process after fork.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_buffer_create(cox_runtime *runtime, size_t bytes,
                                                    cox_buffer **out);

/* A wrapped buffer was destroyed and no device uses its memory any more, so the application may
 * free it. Runs once, but never if a device hangs that may still touch the memory.
 *
 * Runs on a thread of the library or inside cox_runtime_destroy, also at the same time as other
 * callbacks. May create and destroy buffers. */
typedef void cox_released_fn(void *user);

/* Make a buffer of the application's memory. The application still owns `data`. It keeps `data`
 * alive until the buffer is destroyed and `released` has run. If `released` is NULL, it keeps
 * `data` alive until cox_buffer_destroy returns.
 *
 * `data` must be aligned for the types that kernels read there. The library's own video kernels
 * need no alignment on a CPU and 4 bytes elsewhere.
 *
 * Whether the memory is copied depends on the device:
 *   CPUs                    No copy, at any alignment.
 *   GPUs with host memory   Usually no copy if `data` is aligned to 4096 bytes.
 *   Staged devices          A copy from pageable memory, slower than one from pinned memory.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID  `runtime`, `data` or `out` is NULL. `bytes` is 0 or more than SIZE_MAX / 2. The
 *                  call is made in a child process after fork.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_buffer_wrap(cox_runtime *runtime, void *data, size_t bytes,
                                                  cox_released_fn *released, void *user,
                                                  cox_buffer **out);

/* Make a buffer of a part of a DMA-BUF. This is memory that a camera, decoder or GPU shares by a
 * file descriptor. Any `offset` is allowed; `data` of cox_buffer_wrap says what kernels need.
 *
 * The call maps the part. The library copies nothing; the device decides, as for cox_buffer_wrap.
 * `fd` is duplicated and stays the caller's. If it is only for reading, no frame may write the
 * buffer.
 *
 * The library calls DMA_BUF_IOCTL_SYNC. It starts an access before a frame is submitted, and ends
 * it before the frame's callback. Uses of one DMA-BUF may overlap, by several frames or several
 * buffers: the first use starts the access and the last one ends it. cox_session_submit therefore
 * blocks while other hardware works on the memory. If the call fails, cox_session_submit returns
 * COX_E_SYSTEM, or the frame ends with it. For planes of a stream (cox_video_image.memory) an
 * access lasts until the frame is received.
 *
 * Other accesses are up to the application: those through cox_buffer_data, and those of commands on
 * its own queues.
 *
 * `released` runs when the part is not mapped any more, and may be NULL. cox_buffer_destroy does
 * not block. While a device hangs that may still touch the memory, it stays mapped.
 *
 * Errors, each with a log line unless `runtime` is NULL:
 *   COX_E_INVALID      `runtime` or `out` is NULL. `fd` is not a DMA-BUF. `bytes` is 0 or more than
 *                      SIZE_MAX / 2, or the part exceeds the DMA-BUF. The call is made in a child
 *                      process after fork.
 *   COX_E_UNSUPPORTED  The memory cannot be mapped. Or `fd` is only for reading, and a device is
 *                      neither staged nor COX_HOST_MEMORY_WRAPPED.
 *   COX_E_SYSTEM       `fd` cannot be duplicated.
 *   COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_buffer_import_dmabuf(cox_runtime *runtime, int fd,
                                                           size_t offset, size_t bytes,
                                                           cox_released_fn *released, void *user,
                                                           cox_buffer **out);

/* Destroy the buffer and set *buffer to NULL. Accepts NULL. Frames under way keep the memory.
 *
 * Memory of the library or of a DMA-BUF, and wrapped memory with a `released` function, is let go
 * when no frame and no device uses it any more. The call does not block for that.
 *
 * Blocks only for wrapped memory without `released`: while frames with it are under way, and until
 * the devices have finished with it.
 *
 * Only writes a log line, and leaves *buffer as it was, in these cases:
 *   The call is made in a child process after fork.
 *   The call comes from a callback and would block, because a frame other than the one whose `done`
 *    is running uses the buffer.
 *
 * Thread-safety: any thread. */
COX_API void cox_buffer_destroy(cox_buffer **buffer);

/* The size of a buffer, as asked for. 0 if `buffer` is NULL. */
COX_API size_t cox_buffer_bytes(const cox_buffer *buffer);

/* The buffer's memory. The application may use it except between cox_session_submit and the frame's
 * callback. NULL if `buffer` is NULL.
 *
 * Ask again after each callback. If a device hangs and is given up, the frame is finished in new
 * memory. Wrapped memory never moves. */
COX_API void *cox_buffer_data(const cox_buffer *buffer);

/* Tell the library that the application wrote the buffer's memory: devices read all rows again.
 * Only buffers that stay on devices need it (cox_buffer_layout.stays). Accepts NULL.
 *
 * No frame with the buffer may be under way. Does not block. */
COX_API void cox_buffer_changed(cox_buffer *buffer);

/* The smallest pitch >= row_bytes that is a multiple of every device's sub-buffer alignment. With
 * such pitches, bands may begin at any row that the kernel allows.
 *
 * Other pitches make the row alignment larger. If it exceeds an eighth of a session's rows,
 * cox_session_create says so in the log, and names pitches that help.
 *
 * Returns 0 if `row_bytes` is 0, if the result overflows, or if `runtime` is NULL. */
COX_API size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes);

#ifdef __cplusplus
}
#endif
#endif
