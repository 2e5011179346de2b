/* The runtime: this machine's OpenCL devices, and the thread that feeds them.
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

/* Owns devices, contexts and one scheduler thread. A process may have several runtimes.
 *
 * Thread-safety: every function that takes a runtime may be called from any thread except the
 * scheduler thread, on which callbacks run. cox_runtime_destroy comes last. */
typedef struct cox_runtime cox_runtime;

enum cox_log_level { COX_LOG_ERROR = 1, COX_LOG_WARN = 2, COX_LOG_INFO = 3, COX_LOG_DEBUG = 4 };

/* Receives one log line, without a newline. `line` is valid during the call. Runs on any thread, also
 * on several at once. Must not call the library. */
typedef void cox_log_fn(void *user, enum cox_log_level level, const char *line);

/* Whether one CPU core is kept free of kernels, to feed GPUs from. */
enum cox_reserve {
    COX_RESERVE_AUTO = 0, /* if a GPU takes part and the process has three cores or more */
    COX_RESERVE_OFF = 1,
    COX_RESERVE_ON = 2, /* `reserve_cpu` says which core; 0 = the runtime chooses */
};

/* How the library's kernels compute a * b + c. One choice holds for all devices of a runtime, so that
 * all give the same bits. Programs are built with -DCOX_FMA if it is fma. */
enum cox_arithmetic {
    COX_ARITHMETIC_AUTO = 0,   /* fma if every device has it in hardware */
    COX_ARITHMETIC_MULADD = 1, /* rounds twice */
    COX_ARITHMETIC_FMA = 2,    /* rounds once */
};

/* All fields are optional. Zero means the default. Read only during cox_runtime_create. */
struct cox_runtime_params {
    /* Which devices to use. NULL = all. A comma-separated list of
     *   all | cpu | gpu | accelerator   devices of that type
     *   P.D                             device D of platform P, as cox-devices prints them
     *   TEXT                            devices whose name or platform contains TEXT, in any case
     * An entry may end with  :NxC  (split the device into N sub-devices of C compute units) and with
     * =shared, =mapped or =staged (see cox_memory_mode). `all` skips software GPUs without FMA if the
     * CPU has FMA. */
    const char *devices;

    enum cox_reserve reserve;
    uint32_t reserve_cpu; /* 1 + the operating system's CPU number */

    /* Directory for compiled kernels and measured timings. Created if missing. NULL = keep nothing. */
    const char *cache_dir;

    cox_log_fn *log; /* NULL = no log */
    void *log_user;
    enum cox_log_level log_level; /* 0 = COX_LOG_WARN */

    enum cox_arithmetic arithmetic;

    /* The application's own contexts, see coxswain/opencl.h. NULL = the library makes all contexts. */
    const struct cox_opencl_contexts *contexts;
};

/* Find the devices and start the scheduler thread. `params` may be NULL. *out is NULL on an error.
 *
 * Blocks for 0.1 to 2 s, while drivers start.
 *
 * Errors, each with a log line:
 *   COX_E_INVALID      `out` is NULL, or a field of `params` has a wrong value
 *   COX_E_NOT_FOUND    an entry of `devices` selects no device
 *   COX_E_UNSUPPORTED  a device cannot be split as asked, or has no fma and fma was asked for
 *   COX_E_NO_PLATFORM  no OpenCL platform is installed
 *   COX_E_NO_DEVICE    the platforms have no device
 *   COX_E_NOMEM, COX_E_SYSTEM */
COX_API COX_MUST_CHECK cox_status cox_runtime_create(const struct cox_runtime_params *params,
                                                     cox_runtime **out);

/* Destroy the runtime and set *runtime to NULL. Accepts NULL. Blocks until the scheduler thread ends.
 *
 * Logs an error and does nothing if a session or buffer of the runtime still exists, if called from a
 * callback, or in a child process after fork. */
COX_API void cox_runtime_destroy(cox_runtime **runtime);

enum cox_device_type {
    COX_DEVICE_CPU = 1,
    COX_DEVICE_GPU = 2,
    COX_DEVICE_ACCELERATOR = 3,
    COX_DEVICE_OTHER = 4
};

/* How a device reaches a frame's memory. */
enum cox_memory_mode {
    COX_MODE_SHARED = 1, /* a sub-buffer of a context that it shares with other devices */
    COX_MODE_MAPPED = 2, /* works in host memory, and has its own context */
    COX_MODE_STAGED = 3, /* has its own memory; rows are copied there and back */
};

/* Whether a device has fma(). SLOW = a library call, about 20 times slower than an instruction. */
enum cox_fma { COX_FMA_NONE = 0, COX_FMA_SLOW = 1, COX_FMA_FAST = 2 };

struct cox_device_info {
    char name[128];
    char platform[128];
    char driver[64];
    char id[192]; /* stable across reboots: platform, name, and UUID or PCI address */
    enum cox_device_type type;
    enum cox_memory_mode mode;
    uint32_t platform_index; /* P and D of the selector P.D */
    uint32_t device_index;
    uint32_t context_group; /* devices with the same number share a context */
    uint32_t compute_units;
    uint32_t parent_units;   /* compute units of the whole device */
    uint32_t subdevice;      /* 0 = a whole device, else 1 + its index among the sub-devices */
    uint32_t max_work_group; /* in work-items */
    uint32_t base_align_bytes;
    uint64_t global_bytes;
    uint64_t max_alloc_bytes;
    bool unified; /* shares memory with the host */
    enum cox_fma fma;
};

COX_API uint32_t cox_runtime_device_count(const cox_runtime *runtime);

/* Errors:
 *   COX_E_INVALID    a pointer is NULL
 *   COX_E_NOT_FOUND  there is no device `index` */
COX_API cox_status cox_runtime_device_info(const cox_runtime *runtime, uint32_t index,
                                           struct cox_device_info *info);

enum { COX_CORE_KINDS_MAX = 8 };

struct cox_runtime_info {
    enum cox_arithmetic arithmetic; /* MULADD or FMA */
    uint32_t cores;                 /* physical cores that this process may use */
    uint32_t cpus;                  /* hardware threads that this process may use */
    uint32_t kind_count;            /* kinds of cores on a hybrid CPU; 0 = one kind, or unknown */
    uint32_t kind_cores[COX_CORE_KINDS_MAX]; /* least powerful kind first */
    bool reserved;                           /* a core is reserved */
    bool workers_kept_off;                   /* no kernel runs on that core */
    uint32_t reserved_cpu;    /* the operating system's number of its first hardware thread */
    char reserve_reason[160]; /* one sentence: why this core, or why none */
};

COX_API void cox_runtime_info(const cox_runtime *runtime, struct cox_runtime_info *info);

/* ---- buffers ---- */

/* Host memory that every device can use without a copy if its driver allows that.
 *
 * Plain memory works as well (cox_frame.data). A buffer avoids copies, and a frame in buffers survives
 * a device that hangs. Thread-safety: any thread, callbacks too. */
typedef struct cox_buffer cox_buffer;

/* Allocate a buffer, zeroed and page-aligned.
 *
 * Errors: COX_E_INVALID (a pointer is NULL; `bytes` is 0), COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_buffer_create(cox_runtime *runtime, size_t bytes,
                                                    cox_buffer **out);

/* Called once, when the library no longer uses wrapped memory, so that the application may free it.
 * Runs on a thread of the library. May create and destroy buffers. */
typedef void cox_released_fn(void *user);

/* Make a buffer of the application's memory. The application keeps `data` alive until `released` has
 * run, or, if `released` is NULL, until cox_buffer_destroy returns.
 *
 * `data` must be aligned for the types that kernels read there. GPUs that share memory with the host
 * need 4096 bytes to avoid a copy.
 *
 * Errors: COX_E_INVALID (a pointer is NULL; `bytes` is 0), COX_E_NOMEM */
COX_API COX_MUST_CHECK cox_status cox_buffer_wrap(cox_runtime *runtime, void *data, size_t bytes,
                                                  cox_released_fn *released, void *user,
                                                  cox_buffer **out);

/* Destroy the buffer and set *buffer to NULL. Accepts NULL. Frames under way keep the memory alive.
 *
 * Blocks only for wrapped memory without `released`: until no frame uses it. */
COX_API void cox_buffer_destroy(cox_buffer **buffer);

/* The buffer's memory. The application may use it except while a frame with this buffer is under way.
 *
 * Ask again after each frame. If a device hangs, the frame is finished in new memory. */
COX_API void *cox_buffer_data(const cox_buffer *buffer);

COX_API size_t cox_buffer_bytes(const cox_buffer *buffer);

/* The smallest pitch >= row_bytes at which bands may begin at any row, on every device. Sub-buffers
 * need alignment, so an odd pitch makes row_alignment larger (cox_session_info). */
COX_API size_t cox_runtime_pitch_bytes(const cox_runtime *runtime, size_t row_bytes);

#ifdef __cplusplus
}
#endif
#endif
