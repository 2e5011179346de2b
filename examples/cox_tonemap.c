/* cox-tonemap: an HDR picture to an SDR one, on every OpenCL device of the machine at once. docs/cox-tonemap.md is its
 * manual.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "common/outfile.h"
#include "common/picture.h"
#include "common/progress.h"
#include "common/report.h"

#include <coxswain/coxswain.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_BAD = 1, EXIT_USAGE = 2 };
enum { REPEAT_MAX = 1000000, FRAME_LINES_MAX = 12, BAR_WIDTH = 24 };

/* SDR white of an HDR picture, in cd/m2 (ITU-R BT.2408). */
static const double white_nits = 203.0;

static const char usage_text[] =
    "Usage: cox-tonemap INPUT -o OUTPUT [options]\n"
    "\n"
    "Tone-maps an HDR picture (OpenEXR, Radiance .hdr, PFM; - is standard input) to a PNG, on all OpenCL devices\n"
    "of this machine together.\n"
    "\n"
    "  -o, --output FILE       the PNG; - is standard output\n"
    "      --operator NAME     hable (default), reinhard, mobius, aces, exposure or linear\n"
    "      --exposure STOPS    brighten (> 0) or darken (< 0) the picture; added to what --peak auto finds\n"
    "      --peak NITS|auto    the brightest light that keeps its gradation, in cd/m2 with white at 203;\n"
    "                          auto (default): exposure and peak from the picture itself\n"
    "      --desat STRENGTH    how much colours brighter than white fade to white, 0 to 1 (default 0.75)\n"
    "      --depth 8|16        bits per channel of the PNG (default 8)\n"
    "      --alpha             keep an alpha channel (default: transparent parts lie over black)\n"
    "\n"
    "      --devices LIST      cpu, gpu, all, PLATFORM.DEVICE, part of a name; :NxC for N sub-devices of C compute\n"
    "                          units; =shared, =mapped or =staged; comma-separated (default: every device)\n"
    "      --policy NAME       how rows are shared out; --policy help lists the names\n"
    "      --split A,B,...     fixed shares of the rows, one for each device, summing to 1\n"
    "      --reserve WHICH     keep a core for feeding devices: auto (default), on, off or a CPU's number\n"
    "      --in-flight N       frames under way at once, 1 to 16 (default 2)\n"
    "      --no-cache          compile the kernels anew\n"
    "\n"
    "      --repeat N          do the picture N times, to measure (default 1)\n"
    "      --stats FILE        write what each frame cost, as JSON\n"
    "      --trace FILE        write a trace for Perfetto or chrome://tracing\n"
    "      --verify            do the picture on each device alone too and compare every bit\n"
    "      --hash              print a hash of the output's pixels\n"
    "  -v, --verbose           say more;  -q, --quiet  say nothing but errors\n"
    "  -h, --help              this text\n"
    "      --version           versions\n";

struct options {
    const char *input;
    const char *output;
    const char *stats;
    const char *trace;
    const char *devices;
    const char *policy;
    enum cox_operator op;
    double exposure_stops;
    bool peak_auto;
    double peak_nits;
    float desaturate;
    enum cox_pixel_out depth;
    enum picture_alpha alpha;
    double ratios[COX_DEVICES_MAX];
    uint32_t ratio_count;
    enum cox_reserve reserve;
    uint32_t reserve_cpu;
    uint32_t in_flight;
    uint64_t repeat;
    bool no_cache, verify, hash, verbose, quiet;
};

/* --- Words --------------------------------------------------------------------------------------------------------- */

static FILE *say_stream; /* where results go: standard output, unless data goes there; NULL = nowhere */

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    if (!say_stream)
        return;
    va_list args;
    va_start(args, format);
    vfprintf(say_stream, format, args);
    va_end(args);
}

/* One line on standard error. Returns false, so that a step can `return complain(...)`. */
__attribute__((format(printf, 1, 2))) static bool complain(const char *format, ...)
{
    char line[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "cox-tonemap: %s\n", line);
    return false;
}

/* What the library says. Its errors are kept until it is known whether they end the program: then they are the reason
 * in the one line that tells of it; else they are warnings. */
static struct {
    pthread_mutex_t lock;
    enum cox_log_level shown;
    size_t used;
    unsigned lines;
    char text[16384]; /* lines, each with a newline */
    unsigned said_count;
    uint64_t said[64]; /* hashes of what was printed: every session has the same to say of the same device */
} logbook = {.lock = PTHREAD_MUTEX_INITIALIZER, .shown = COX_LOG_WARN};

/* FNV-1a, 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (const uint8_t *at = data, *end = at + bytes; at < end; at++)
        hash = (hash ^ *at) * 0x100000001b3;
    return hash;
}
static const uint64_t hash_start = 0xcbf29ce484222325;

static bool said_before(const char *line)
{
    uint64_t hash = hash_bytes(hash_start, line, strlen(line));
    for (unsigned i = 0; i < logbook.said_count; i++)
        if (logbook.said[i] == hash)
            return true;
    if (logbook.said_count < sizeof logbook.said / sizeof logbook.said[0])
        logbook.said[logbook.said_count++] = hash;
    return false;
}

static void on_log(void *user, enum cox_log_level level, const char *line)
{
    (void)user;
    pthread_mutex_lock(&logbook.lock);
    if (level == COX_LOG_ERROR) {
        size_t length = strlen(line);
        if (length + 2 < sizeof logbook.text - logbook.used) {
            memcpy(logbook.text + logbook.used, line, length);
            logbook.used += length;
            logbook.text[logbook.used++] = '\n';
            logbook.text[logbook.used] = 0;
            logbook.lines++;
        }
    } else if (level <= logbook.shown && !said_before(line)) {
        fprintf(stderr, "cox-tonemap: %s%s\n", level == COX_LOG_WARN ? "warning: " : "", line);
    }
    pthread_mutex_unlock(&logbook.lock);
}

static void logbook_clear(void)
{
    logbook.used = 0;
    logbook.lines = 0;
    logbook.text[0] = 0;
}

/* The errors so far were survived. */
static void logbook_warn(void)
{
    pthread_mutex_lock(&logbook.lock);
    for (const char *line = logbook.text; *line;) {
        int length = (int)strcspn(line, "\n");
        if (logbook.shown >= COX_LOG_WARN)
            fprintf(stderr, "cox-tonemap: warning: %.*s\n", length, line);
        line += length + 1;
    }
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
}

/* A call of the library failed: `what` could not be done. A reason of many lines (a compiler's) comes before. */
static bool complain_status(const char *what, cox_status status)
{
    pthread_mutex_lock(&logbook.lock);
    if (logbook.lines > 1)
        fputs(logbook.text, stderr);
    if (logbook.lines == 1)
        complain("%s: %s: %.*s", what, cox_status_text(status), (int)strcspn(logbook.text, "\n"), logbook.text);
    else
        complain("%s: %s", what, cox_status_text(status));
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
    return false;
}

/* --- Interruption -------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted; /* the signal's number */

static void on_signal(int number)
{
    if (interrupted) { /* the second time, without waiting for a driver that hangs */
        outfile_remove_all();
        _exit(128 + number);
    }
    interrupted = number;
}

/* A driver's compiler may end the process (LLVM does, on an internal error). The signal strikes again after this. */
static void on_crash(int number)
{
    outfile_remove_all();
    raise(number); /* held back until this returns */
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction before;
        if (!sigaction(numbers[i], NULL, &before) && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
    action.sa_handler = on_crash;
    action.sa_flags = (int)SA_RESETHAND;
    static const int crashes[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGQUIT, SIGXCPU};
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigaction(crashes[i], &action, NULL);
    atexit(outfile_remove_all);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe and a file that may not grow are errors of the write */
    signal(SIGXFSZ, SIG_IGN);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- Options ------------------------------------------------------------------------------------------------------- */

static bool parse_number(const char *text, double *value)
{
    char *end;
    errno = 0;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

static bool parse_count(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    size_t digits = strspn(text, "0123456789");
    if (!digits || text[digits] || digits > 18)
        return false;
    *value = strtoull(text, NULL, 10);
    return *value >= least && *value <= most;
}

static void operator_names(char *text, size_t bytes)
{
    size_t used = 0;
    for (int op = 0; op < COX_OPERATOR_COUNT && used < bytes; op++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", op ? ", " : "",
                                 cox_operator_name((enum cox_operator)op));
}

static void policy_names(char *text, size_t bytes)
{
    size_t used = 0;
    const struct cox_policy *policy;
    for (uint32_t i = 0; (policy = cox_policy_at(i)) && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", policy->name);
}

static bool parse_split(struct options *options, const char *text)
{
    double sum = 0;
    const char *at = text;
    for (;;) {
        char *end;
        double ratio = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !isfinite(ratio) || ratio < 0 || ratio > 1)
            return complain("--split %s: give shares between 0 and 1 separated by commas, such as 0.75,0.25", text);
        if (options->ratio_count == COX_DEVICES_MAX)
            return complain("--split %s: more than %d shares", text, COX_DEVICES_MAX);
        options->ratios[options->ratio_count++] = ratio;
        sum += ratio;
        if (!*end)
            break;
        at = end + 1;
    }
    if (fabs(sum - 1.0) > 1e-6)
        return complain("--split %s: the shares sum to %g, not to 1", text, sum);
    return true;
}

static bool parse_reserve(struct options *options, const char *text)
{
    uint64_t cpu;
    if (!strcmp(text, "auto"))
        options->reserve = COX_RESERVE_AUTO;
    else if (!strcmp(text, "off"))
        options->reserve = COX_RESERVE_OFF;
    else if (!strcmp(text, "on"))
        options->reserve = COX_RESERVE_ON;
    else if (parse_count(text, 0, UINT32_MAX, &cpu)) {
        options->reserve = COX_RESERVE_CORE;
        options->reserve_cpu = (uint32_t)cpu;
    } else
        return complain("--reserve %s: not auto, on, off or the number of a CPU", text);
    return true;
}

enum {
    OPTION_OPERATOR = 256,
    OPTION_EXPOSURE,
    OPTION_PEAK,
    OPTION_DESAT,
    OPTION_DEPTH,
    OPTION_ALPHA,
    OPTION_DEVICES,
    OPTION_POLICY,
    OPTION_SPLIT,
    OPTION_RESERVE,
    OPTION_IN_FLIGHT,
    OPTION_NO_CACHE,
    OPTION_REPEAT,
    OPTION_STATS,
    OPTION_TRACE,
    OPTION_VERIFY,
    OPTION_HASH,
    OPTION_VERSION,
};

static const struct option long_options[] = {{"output", required_argument, NULL, 'o'},
                                             {"operator", required_argument, NULL, OPTION_OPERATOR},
                                             {"exposure", required_argument, NULL, OPTION_EXPOSURE},
                                             {"peak", required_argument, NULL, OPTION_PEAK},
                                             {"desat", required_argument, NULL, OPTION_DESAT},
                                             {"depth", required_argument, NULL, OPTION_DEPTH},
                                             {"alpha", no_argument, NULL, OPTION_ALPHA},
                                             {"devices", required_argument, NULL, OPTION_DEVICES},
                                             {"policy", required_argument, NULL, OPTION_POLICY},
                                             {"split", required_argument, NULL, OPTION_SPLIT},
                                             {"reserve", required_argument, NULL, OPTION_RESERVE},
                                             {"in-flight", required_argument, NULL, OPTION_IN_FLIGHT},
                                             {"no-cache", no_argument, NULL, OPTION_NO_CACHE},
                                             {"repeat", required_argument, NULL, OPTION_REPEAT},
                                             {"stats", required_argument, NULL, OPTION_STATS},
                                             {"trace", required_argument, NULL, OPTION_TRACE},
                                             {"verify", no_argument, NULL, OPTION_VERIFY},
                                             {"hash", no_argument, NULL, OPTION_HASH},
                                             {"verbose", no_argument, NULL, 'v'},
                                             {"quiet", no_argument, NULL, 'q'},
                                             {"help", no_argument, NULL, 'h'},
                                             {"version", no_argument, NULL, OPTION_VERSION},
                                             {NULL, 0, NULL, 0}};

/* Options that say how the result is to look. */
static bool parse_look(struct options *options, int which, const char *text)
{
    char names[256];
    double number;
    switch (which) {
    case OPTION_OPERATOR:
        if (cox_operator_find(text, &options->op) == COX_OK)
            return true;
        operator_names(names, sizeof names);
        return complain("there is no operator '%s'; there are: %s", text, names);
    case OPTION_EXPOSURE:
        if (!parse_number(text, &options->exposure_stops) || fabs(options->exposure_stops) > 32)
            return complain("--exposure %s: not a number of stops between -32 and 32", text);
        return true;
    case OPTION_PEAK:
        options->peak_auto = !strcmp(text, "auto");
        if (options->peak_auto)
            return true;
        if (!parse_number(text, &options->peak_nits) || options->peak_nits < 1 || options->peak_nits > 1e6)
            return complain("--peak %s: neither auto nor a luminance between 1 and 1000000 cd/m2", text);
        return true;
    case OPTION_DESAT:
        if (!parse_number(text, &number) || number < 0 || number > 1)
            return complain("--desat %s: not a strength between 0 and 1", text);
        options->desaturate = number > 0 ? (float)number : -1.0f; /* the library's 0 means its default */
        return true;
    default:
        if (strcmp(text, "8") && strcmp(text, "16"))
            return complain("--depth %s: neither 8 nor 16", text);
        options->depth = strcmp(text, "8") ? COX_PIXEL_RGBA16 : COX_PIXEL_RGBA8;
        return true;
    }
}

/* Options that say who does the work. */
static bool parse_work(struct options *options, int which, const char *text)
{
    char names[256];
    uint64_t count;
    switch (which) {
    case OPTION_POLICY:
        policy_names(names, sizeof names);
        if (cox_policy_find(text)) {
            options->policy = text;
            return true;
        }
        return complain("there is no policy '%s'; there are: %s", text, names);
    case OPTION_SPLIT:
        options->ratio_count = 0;
        return parse_split(options, text);
    case OPTION_RESERVE:
        return parse_reserve(options, text);
    case OPTION_IN_FLIGHT:
        if (!parse_count(text, 1, COX_IN_FLIGHT_MAX, &count))
            return complain("--in-flight %s: not a number of frames between 1 and %d", text, COX_IN_FLIGHT_MAX);
        options->in_flight = (uint32_t)count;
        return true;
    default:
        if (!parse_count(text, 1, REPEAT_MAX, &options->repeat))
            return complain("--repeat %s: not a number between 1 and %d", text, REPEAT_MAX);
        return true;
    }
}

static bool check_options(struct options *options)
{
    if (!options->input)
        return complain("no input: give a picture (cox-tonemap --help tells more)");
    if (!options->output)
        return complain("no output: give one with -o (cox-tonemap --help tells more)");
    if (options->ratio_count && options->policy && strcmp(options->policy, "static"))
        return complain("--split fixes the shares, which --policy %s would change", options->policy);
    if (options->ratio_count)
        options->policy = "static";
    unsigned standard = !strcmp(options->output, "-");
    standard += options->stats && !strcmp(options->stats, "-");
    standard += options->trace && !strcmp(options->trace, "-");
    if (standard > 1)
        return complain("only one of output, statistics and trace can go to standard output");
    say_stream = options->quiet ? NULL : standard ? stderr : stdout;
    logbook.shown = options->quiet ? COX_LOG_ERROR : options->verbose ? COX_LOG_INFO : COX_LOG_WARN;
    return true;
}

enum parsed { PARSED_RUN, PARSED_DONE, PARSED_WRONG };

static enum parsed parse_options(struct options *options, int argc, char **argv)
{
    opterr = 0;
    for (;;) {
        int at = optind;
        int which = getopt_long(argc, argv, ":o:vqh", long_options, NULL);
        bool good = true;
        switch (which) {
        case -1:
            if (optind < argc)
                options->input = argv[optind++];
            if (optind < argc)
                good = complain("one picture at a time: what is '%s'?", argv[optind]);
            return good && check_options(options) ? PARSED_RUN : PARSED_WRONG;
        case 'o':
            options->output = optarg;
            break;
        case 'v':
            options->verbose = true;
            break;
        case 'q':
            options->quiet = true;
            break;
        case 'h':
            fputs(usage_text, stdout);
            return PARSED_DONE;
        case OPTION_VERSION:
            printf("cox-tonemap %s\n", cox_version());
            return PARSED_DONE;
        case OPTION_OPERATOR:
        case OPTION_EXPOSURE:
        case OPTION_PEAK:
        case OPTION_DESAT:
        case OPTION_DEPTH:
            good = parse_look(options, which, optarg);
            break;
        case OPTION_ALPHA:
            options->alpha = PICTURE_ALPHA_STRAIGHT;
            break;
        case OPTION_DEVICES:
            options->devices = optarg;
            break;
        case OPTION_POLICY:
            if (!strcmp(optarg, "help")) {
                char names[256];
                policy_names(names, sizeof names);
                printf("%s\n", names);
                return PARSED_DONE;
            }
            good = parse_work(options, which, optarg);
            break;
        case OPTION_SPLIT:
        case OPTION_RESERVE:
        case OPTION_IN_FLIGHT:
        case OPTION_REPEAT:
            good = parse_work(options, which, optarg);
            break;
        case OPTION_NO_CACHE:
            options->no_cache = true;
            break;
        case OPTION_STATS:
            options->stats = optarg;
            break;
        case OPTION_TRACE:
            options->trace = optarg;
            break;
        case OPTION_VERIFY:
            options->verify = true;
            break;
        case OPTION_HASH:
            options->hash = true;
            break;
        case ':':
            good = complain("the option %s needs a value", argv[at]);
            break;
        default:
            good = complain("there is no option %s (cox-tonemap --help lists them)", argv[at]);
            break;
        }
        if (!good)
            return PARSED_WRONG;
    }
}

/* --- Where compiled kernels are kept ------------------------------------------------------------------------------- */

static bool make_directories(char *path)
{
    for (char *slash = path + 1; *slash; slash++) {
        if (*slash != '/')
            continue;
        *slash = 0;
        bool made = !mkdir(path, 0755) || errno == EEXIST;
        *slash = '/';
        if (!made)
            return false;
    }
    return !mkdir(path, 0755) || errno == EEXIST;
}

/* $XDG_CACHE_HOME/coxswain, or else ~/.cache/coxswain; NULL if there is no such place. */
static const char *cache_directory(char *path, size_t bytes)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (base && *base == '/')
        length = snprintf(path, bytes, "%s/coxswain", base);
    else if (home && *home == '/')
        length = snprintf(path, bytes, "%s/.cache/coxswain", home);
    return length > 0 && (size_t)length < bytes && make_directories(path) ? path : NULL;
}

/* --- The work ------------------------------------------------------------------------------------------------------ */

/* Frames under way. `done` counts what the session gave back, in order. */
struct flight {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t done;
    uint64_t failed_frame;
    cox_status status; /* of the first frame that failed */
};

struct job {
    const struct options *options;
    struct picture_input *input;
    struct picture_output *output;
    struct outfile *stats, *trace;
    const struct picture_format *format;
    cox_runtime *runtime;
    uint32_t device_count;
    struct cox_device_info devices[COX_DEVICES_MAX];
    struct cox_tonemap_shape shape;
    struct cox_tonemap_params params;
    uint32_t slot_count; /* pictures in memory: as many as may be under way */
    cox_buffer *in[COX_IN_FLIGHT_MAX];
    cox_buffer *out[COX_IN_FLIGHT_MAX];
    cox_session *session;
    struct cox_session_info info;
    struct report *report;
    struct flight flight;
    struct progress progress;
    uint64_t lines_printed;
};

static bool complain_about(const char *path, const struct picture_error *error)
{
    return complain("%s: %s", !strcmp(path, "-") ? "standard stream" : *path ? path : "''", error->text);
}

static bool check_places(const struct options *options)
{
    const char *const outputs[] = {options->output, options->stats, options->trace};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        if (!outputs[i])
            continue;
        if (outfile_same_place(options->input, outputs[i]))
            return complain("%s: is the input; give the output another name", outputs[i]);
        for (size_t j = 0; j < i; j++)
            if (outputs[j] && outfile_same_place(outputs[i], outputs[j]))
                return complain("%s: is two outputs; give one of them another name", outputs[i]);
    }
    return true;
}

/* Everything that can be refused before any device works is refused here. */
static bool open_files(struct job *job)
{
    const struct options *options = job->options;
    struct picture_error error;
    if (!picture_input_open(&job->input, options->input, options->alpha, &error))
        return complain_about(options->input, &error);
    job->format = picture_input_format(job->input);
    if (!check_places(options))
        return false;
    if (!picture_output_open(&job->output, options->output, job->format->width, job->format->height, options->depth,
                             &error))
        return complain_about(options->output, &error);
    if (options->stats && !outfile_open(&job->stats, options->stats, &error))
        return complain_about(options->stats, &error);
    if (options->trace && !outfile_open(&job->trace, options->trace, &error))
        return complain_about(options->trace, &error);
    return true;
}

/* The library's lines say what it did not find and what there is, or what it does not understand. */
static bool complain_reasons(const char *what)
{
    pthread_mutex_lock(&logbook.lock);
    char all[1536] = "";
    size_t used = 0;
    for (const char *line = logbook.text; *line && used < sizeof all; line += strcspn(line, "\n") + 1)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s", used ? "; " : "", (int)strcspn(line, "\n"),
                                 line);
    complain("%s: %s", what, *all ? all : "the reason is not known");
    logbook_clear();
    pthread_mutex_unlock(&logbook.lock);
    return false;
}

static bool start_runtime(struct job *job)
{
    const struct options *options = job->options;
    char cache[4096], what[256];
    const struct cox_runtime_params params = {.devices = options->devices,
                                              .reserve = options->reserve,
                                              .reserve_cpu = options->reserve_cpu,
                                              .cache_dir = options->no_cache ? NULL
                                                                             : cache_directory(cache, sizeof cache),
                                              .log = on_log,
                                              .log_level = options->verbose ? COX_LOG_INFO : COX_LOG_WARN};
    cox_status status = cox_runtime_create(&job->runtime, &params);
    switch (status) {
    case COX_OK:
        break;
    case COX_E_NO_PLATFORM:
        return complain(
            "no OpenCL platform is installed, or none can be loaded; PoCL runs on any processor (Debian: apt "
            "install pocl-opencl-icd)");
    case COX_E_NO_DEVICE:
        return complain("OpenCL is installed, but none of its platforms has a device; PoCL runs on any processor "
                        "(Debian: apt install pocl-opencl-icd) if it can write to its cache (~/.cache/pocl, "
                        "$XDG_CACHE_HOME or $POCL_CACHE_DIR)");
    case COX_E_NOT_FOUND:
        snprintf(what, sizeof what, "--devices %.200s", options->devices ? options->devices : "all");
        return complain_reasons(what);
    case COX_E_INVALID:
        return complain_reasons("cannot start OpenCL");
    default:
        return complain_status("cannot start OpenCL", status);
    }
    job->device_count = cox_runtime_device_count(job->runtime);
    if (job->device_count > COX_DEVICES_MAX)
        job->device_count = COX_DEVICES_MAX;
    for (uint32_t d = 0; d < job->device_count; d++)
        if (cox_runtime_device_info(job->runtime, d, &job->devices[d]) != COX_OK)
            return complain("a device went away");
    if (options->ratio_count && options->ratio_count != job->device_count)
        return complain("--split has %u shares for %u device%s", options->ratio_count, job->device_count,
                        job->device_count == 1 ? "" : "s");
    return true;
}

static size_t in_pixel_bytes(const struct job *job)
{
    return job->shape.in == COX_PIXEL_RGBA_HALF ? 8 : 16;
}

static size_t out_pixel_bytes(const struct job *job)
{
    return job->shape.out == COX_PIXEL_RGBA8 ? 4 : 8;
}

/* The picture is read once and copied: every frame under way has its own memory, as the frames of a film would. */
static bool load_picture(struct job *job)
{
    const struct picture_format *format = job->format;
    job->shape = (struct cox_tonemap_shape){
        .width = format->width, .height = format->height, .in = format->pixel, .out = job->options->depth};
    job->shape.in_pitch_bytes = cox_runtime_pitch_bytes(job->runtime, format->width * in_pixel_bytes(job));
    job->shape.out_pitch_bytes = cox_runtime_pitch_bytes(job->runtime, format->width * out_pixel_bytes(job));
    job->slot_count = job->options->in_flight;
    if (job->slot_count > job->options->repeat)
        job->slot_count = (uint32_t)job->options->repeat;

    size_t in_bytes = job->shape.in_pitch_bytes * format->height;
    size_t out_bytes = job->shape.out_pitch_bytes * format->height;
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    double needed = ((double)in_bytes + (double)out_bytes) * job->slot_count;
    if (pages > 0 && page_bytes > 0 && needed > (double)pages * (double)page_bytes)
        return complain("%s: %u x %u pixels need %.1f GiB of memory, which this machine does not have",
                        job->options->input, format->width, format->height, needed / 0x1p30);
    cox_status status = COX_OK;
    for (uint32_t i = 0; i < job->slot_count && status == COX_OK; i++) {
        status = cox_buffer_create(job->runtime, in_bytes, &job->in[i]);
        if (status == COX_OK)
            status = cox_buffer_create(job->runtime, out_bytes, &job->out[i]);
    }
    if (status != COX_OK)
        return complain_status("cannot get memory for the picture", status);

    struct picture_error error = {""};
    void *pixels = cox_buffer_data(job->in[0]);
    if (picture_input_read(job->input, pixels, job->shape.in_pitch_bytes, &error) != PICTURE_READ_FRAME)
        return complain_about(job->options->input, &error);
    for (uint32_t i = 1; i < job->slot_count; i++)
        memcpy(cox_buffer_data(job->in[i]), pixels, in_bytes);
    return true;
}

/* Exposure and peak from the picture: a pass of its own over all devices. */
static bool analyse(struct job *job, struct cox_tonemap_settings *settings)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.no_warmup = true, .in_flight = 1};
    cox_session *session = NULL;
    cox_buffer *histogram = NULL;
    struct cox_tonemap_analysis analysis;
    cox_status status = cox_tonemap_analysis(&job->shape, &storage, &params);
    if (status == COX_OK)
        status = cox_session_create(job->runtime, &params, &session);
    if (status == COX_OK)
        status = cox_buffer_create(job->runtime, COX_TONEMAP_HISTOGRAM_BYTES, &histogram);
    if (status == COX_OK) {
        cox_buffer *const buffers[2] = {job->in[0], histogram};
        status = cox_session_run(session, &(const struct cox_frame){.buffers = buffers, .buffer_count = 2});
    }
    if (status == COX_OK) {
        cox_tonemap_read_analysis(cox_buffer_data(histogram), &analysis);
        cox_tonemap_expose(&analysis, settings);
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white), from the picture: log-average %.4g, peak %.4g\n",
            (double)settings->exposure_stops, (double)settings->peak * white_nits, (double)settings->peak,
            (double)analysis.log_average, (double)analysis.peak);
    }
    cox_session_destroy(&session);
    cox_buffer_destroy(&histogram);
    return status == COX_OK || complain_status("cannot analyse the picture", status);
}

static bool choose_settings(struct job *job)
{
    const struct options *options = job->options;
    struct cox_tonemap_settings settings = {
        .op = options->op, .exposure_stops = (float)options->exposure_stops, .desaturate = options->desaturate};
    if (options->peak_auto) {
        if (!analyse(job, &settings))
            return false;
    } else {
        settings.peak = (float)(options->peak_nits / white_nits);
        say("exposure  %+.2f stops, peak %.0f cd/m2 (%.1f x white)\n", options->exposure_stops, options->peak_nits,
            (double)settings.peak);
    }
    cox_status status = cox_tonemap_prepare(&job->shape, &settings, &job->params);
    return status == COX_OK || complain_status("cannot prepare the operator", status);
}

/* `device` < 0: all of them, as the options say; else that one alone. */
static cox_status create_session(struct job *job, int64_t device, cox_session **session)
{
    struct cox_tonemap_storage storage;
    struct cox_session_params params = {.in_flight = 1};
    uint32_t only = (uint32_t)device;
    cox_status status = cox_tonemap_mapping(&job->shape, &storage, &params);
    if (status != COX_OK)
        return status;
    if (device >= 0) {
        params.devices = &only;
        params.device_count = 1;
        params.no_warmup = true;
    } else {
        params.policy = job->options->policy;
        if (job->options->ratio_count) {
            params.policy_options.ratios = job->options->ratios;
            params.policy_options.ratio_count = job->options->ratio_count;
        }
        params.in_flight = job->options->in_flight;
        params.report = report_on_frame;
        params.report_user = job->report;
    }
    return cox_session_create(job->runtime, &params, session);
}

static void print_devices(const struct job *job)
{
    say("devices\n");
    for (uint32_t d = 0; d < job->device_count; d++) {
        const struct cox_device_info *device = &job->devices[d];
        char mark = '-';
        for (uint32_t i = 0; i < job->info.device_count; i++)
            if (job->info.devices[i].device == d && job->info.devices[i].usable)
                mark = report_bar_mark(i);
        say("  %c %u  %.60s (%.40s), %s, %s memory, %u compute unit%s%s%s\n", mark, d, device->name, device->platform,
            cox_device_type_name(device->type), cox_memory_mode_name(device->mode), device->compute_units,
            device->compute_units == 1 ? "" : "s", device->subdevice ? ", a sub-device" : "",
            mark == '-' ? ": does not take part" : "");
    }
    struct cox_host_info host;
    cox_runtime_host_info(job->runtime, &host);
    if (host.reserved)
        say("  CPU %u is kept for the scheduler: %s\n", host.reserved_cpu, host.reserve_reason);
    else if (job->options->verbose)
        say("  no core is reserved: %s\n", host.reserve_reason);
}

static bool start_session(struct job *job)
{
    job->report = report_create(job->device_count, job->options->repeat);
    if (!job->report)
        return complain("out of memory");
    cox_status status = create_session(job, -1, &job->session);
    if (status != COX_OK)
        return complain_status("cannot build the pipeline", status);
    cox_session_info(job->session, &job->info);
    return true;
}

/* --- Frames -------------------------------------------------------------------------------------------------------- */

static void on_done(void *user, uint64_t frame, cox_status status)
{
    struct flight *flight = user;
    pthread_mutex_lock(&flight->lock);
    if (status != COX_OK && flight->status == COX_OK) {
        flight->status = status;
        flight->failed_frame = frame;
    }
    flight->done++;
    pthread_cond_signal(&flight->changed);
    pthread_mutex_unlock(&flight->lock);
}

static void print_frame(struct job *job, uint64_t n)
{
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    char bar[BAR_WIDTH + 3];
    if (!report_frame(job->report, n, &frame, bands, COX_BANDS_MAX))
        return;
    report_bar(bands, frame.band_count, BAR_WIDTH, bar);
    progress_clear(&job->progress);
    say("frame %5" PRIu64 "  %s %8.2f ms ", frame.index, bar, (double)(frame.end_ns - frame.start_ns) / 1e6);
    for (uint32_t b = 0; b < frame.band_count; b++)
        say(" %c %u rows %.2f ms%s", report_bar_mark(bands[b].device), bands[b].rows, (double)bands[b].wall_ns / 1e6,
            bands[b].attempt           ? " (again)"
            : b + 1 < frame.band_count ? ","
                                       : "");
    say("  %s\n", cox_reason_text(frame.reason));
}

/* The first frames line by line, then only the live line, then the last ones; all of them with --verbose. */
static void show(struct job *job, bool last)
{
    uint64_t count = report_frame_count(job->report), total = job->options->repeat; /* printed: the first, the last */
    bool all = job->options->verbose || total <= FRAME_LINES_MAX;
    uint64_t head = all ? total : FRAME_LINES_MAX - 2, tail = count > 2 ? count - 2 : 0;
    for (; say_stream && job->lines_printed < count; job->lines_printed++) {
        if (job->lines_printed == head && !all && last)
            say("...\n");
        if (job->lines_printed < head || (last && job->lines_printed >= tail))
            print_frame(job, job->lines_printed);
        else if (!last)
            break; /* kept for the end */
    }
    if (last || job->options->quiet)
        return;
    struct report_frame frame;
    struct cox_band_report bands[COX_BANDS_MAX];
    char bar[BAR_WIDTH + 3] = "";
    if (count && report_frame(job->report, count - 1, &frame, bands, COX_BANDS_MAX))
        report_bar(bands, frame.band_count, BAR_WIDTH, bar);
    progress_update(&job->progress, count, bar, now_ns());
}

/* Wait until so many frames came back, or one failed, or the user had enough. */
static bool wait_for(struct job *job, uint64_t done)
{
    struct flight *flight = &job->flight;
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_mutex_lock(&flight->lock);
        if (flight->done < done && flight->status == COX_OK && !interrupted)
            pthread_cond_timedwait(&flight->changed, &flight->lock, &until);
        bool reached = flight->done >= done, stop = flight->status != COX_OK || interrupted;
        pthread_mutex_unlock(&flight->lock);
        show(job, false);
        if (reached || stop)
            return !stop;
    }
}

static bool run_frames(struct job *job)
{
    struct flight *flight = &job->flight;
    progress_begin(&job->progress, stderr, job->options->repeat, now_ns());
    cox_status status = COX_OK;
    for (uint64_t i = 0; i < job->options->repeat && status == COX_OK; i++) {
        if (!wait_for(job, i >= job->slot_count ? i - job->slot_count + 1 : 0))
            break;
        uint32_t slot = (uint32_t)(i % job->slot_count);
        cox_buffer *const buffers[2] = {job->in[slot], job->out[slot]};
        const struct cox_frame frame = {.buffers = buffers, .buffer_count = 2, .params = &job->params};
        status = cox_session_submit(job->session, &frame, on_done, flight);
    }
    if (status == COX_OK)
        wait_for(job, job->options->repeat);
    cox_session_wait(job->session);
    show(job, true);
    progress_clear(&job->progress);
    if (status != COX_OK)
        return complain_status("a frame was refused", status);
    if (flight->status != COX_OK) {
        char what[64];
        snprintf(what, sizeof what, "frame %" PRIu64 " failed", flight->failed_frame);
        return complain_status(what, flight->status);
    }
    if (interrupted)
        return complain("interrupted");
    logbook_warn();
    cox_session_info(job->session, &job->info);
    return true;
}

/* --- Results ------------------------------------------------------------------------------------------------------- */

/* Of the pixels, without the padding of rows. */
static uint64_t hash_pixels(const struct job *job, const cox_buffer *buffer)
{
    uint64_t hash = hash_start;
    for (uint32_t y = 0; y < job->shape.height; y++)
        hash = hash_bytes(hash, (const uint8_t *)cox_buffer_data(buffer) + y * job->shape.out_pitch_bytes,
                          job->shape.width * out_pixel_bytes(job));
    return hash;
}

/* Every device does the picture alone; all must give what they gave together. The memory of the last frame's input
 * is intact; the results go into a buffer of their own. */
static bool verify(struct job *job, uint64_t expected)
{
    cox_buffer *result = NULL;
    bool equal = true;
    for (uint32_t i = 0; i + 1 < job->slot_count; i++) /* the other frames that are still in memory */
        equal = equal && hash_pixels(job, job->out[i]) == hash_pixels(job, job->out[i + 1]);
    if (!equal)
        return complain("verification failed: two frames of the same picture differ");
    cox_status status = cox_buffer_create(job->runtime, job->shape.out_pitch_bytes * job->shape.height, &result);
    if (status != COX_OK)
        return complain_status("cannot get memory to verify", status);
    say("verify    together        %016" PRIx64 "\n", expected);
    for (uint32_t i = 0; i < job->info.device_count && !interrupted; i++) {
        cox_session *session = NULL;
        uint32_t d = job->info.devices[i].device;
        status = create_session(job, d, &session);
        if (status == COX_OK) {
            cox_buffer *const buffers[2] = {job->in[0], result};
            memset(cox_buffer_data(result), 0, job->shape.out_pitch_bytes * job->shape.height);
            status = cox_session_run(session, &(const struct cox_frame){
                                                  .buffers = buffers, .buffer_count = 2, .params = &job->params});
        }
        cox_session_destroy(&session);
        if (status != COX_OK) {
            complain_status("cannot verify on one device alone", status);
            break;
        }
        uint64_t hash = hash_pixels(job, result);
        equal = equal && hash == expected;
        say("verify    device %2u alone %016" PRIx64 "  %s\n", d, hash, hash == expected ? "equal" : "DIFFERENT");
    }
    cox_buffer_destroy(&result);
    if (interrupted)
        return complain("interrupted");
    if (!equal)
        return complain("verification failed: devices give different pixels");
    return status == COX_OK;
}

static void print_summary(struct job *job, const uint64_t *solo_ns)
{
    struct report_summary summary;
    report_summarise(job->report, solo_ns, job->info.device_count, &summary);
    const char *before = "warm-up  ";
    for (uint32_t d = 0; d < job->info.device_count; d++) {
        if (!solo_ns[d])
            continue;
        say("%s device %u alone %.2f ms", before, job->info.devices[d].device, (double)solo_ns[d] / 1e6);
        before = ",";
    }
    if (*before == ',')
        say("\n");
    say("result    %" PRIu64 " frame%s, %.1f frames/s, %.2f ms (median), %.2f ms (99 %%)", summary.frames,
        summary.frames == 1 ? "" : "s", summary.fps, (double)summary.wall_p50_ns / 1e6,
        (double)summary.wall_p99_ns / 1e6);
    if (isnan(summary.efficiency))
        say(", efficiency unknown\n");
    else
        say(", efficiency %.3f\n", summary.efficiency);
}

static bool finish_file(struct outfile **file, const char *path)
{
    struct picture_error error;
    return outfile_finish(file, &error) || complain_about(path, &error);
}

static bool deliver(struct job *job)
{
    const struct options *options = job->options;
    struct picture_error error;
    uint64_t solo_ns[COX_DEVICES_MAX];
    struct report_device names[COX_DEVICES_MAX];
    for (uint32_t d = 0; d < job->info.device_count; d++) {
        const struct cox_session_device *device = &job->info.devices[d];
        const struct cox_device_info *info = &job->devices[device->device];
        solo_ns[d] = device->solo_ns;
        names[d] = (struct report_device){info->name, cox_device_type_name(info->type),
                                          cox_memory_mode_name(device->mode)};
    }
    const struct report_about about = {.program = "cox-tonemap",
                                       .policy = job->info.policy,
                                       .granule = job->info.granule,
                                       .device_count = job->info.device_count,
                                       .devices = names,
                                       .solo_ns = solo_ns};
    print_summary(job, solo_ns);
    const cox_buffer *last = job->out[(options->repeat - 1) % job->slot_count];
    uint64_t hash = options->hash || options->verbose || options->verify ? hash_pixels(job, last) : 0;
    if (options->verify && !verify(job, hash))
        return false;
    if (options->hash || options->verbose)
        say("hash      %016" PRIx64 "\n", hash);
    if (report_lost(job->report))
        complain("warning: %" PRIu64 " frames are missing in the statistics: out of memory", report_lost(job->report));

    if (!picture_output_write(job->output, cox_buffer_data(last), job->shape.out_pitch_bytes, &error))
        return complain_about(options->output, &error);
    if (job->stats)
        report_write_stats(job->report, &about, outfile_stream(job->stats));
    if (job->trace)
        report_write_trace(job->report, &about, outfile_stream(job->trace));
    if (interrupted)
        return complain("interrupted");
    if (!picture_output_finish(&job->output, &error))
        return complain_about(options->output, &error);
    if (job->stats && !finish_file(&job->stats, options->stats))
        return false;
    if (job->trace && !finish_file(&job->trace, options->trace))
        return false;
    say("written   %s (%u x %u, %d bit)\n", options->output, job->format->width, job->format->height,
        options->depth == COX_PIXEL_RGBA8 ? 8 : 16);
    return true;
}

static bool run(struct job *job)
{
    if (!open_files(job) || !start_runtime(job) || !load_picture(job) || !start_session(job))
        return false;
    say("picture   %s: %u x %u, %s\n", job->options->input, job->format->width, job->format->height, job->format->text);
    print_devices(job);
    if (!choose_settings(job))
        return false;
    if (interrupted)
        return complain("interrupted");
    say("policy    %s, granule %u row%s, %u frame%s in flight\n", job->info.policy, job->info.granule,
        job->info.granule == 1 ? "" : "s", job->slot_count, job->slot_count == 1 ? "" : "s");
    return run_frames(job) && deliver(job);
}

static void clean_up(struct job *job)
{
    cox_session_destroy(&job->session);
    for (uint32_t i = 0; i < COX_IN_FLIGHT_MAX; i++) {
        cox_buffer_destroy(&job->in[i]);
        cox_buffer_destroy(&job->out[i]);
    }
    cox_runtime_destroy(&job->runtime);
    report_destroy(&job->report);
    picture_output_abandon(&job->output);
    outfile_abandon(&job->stats);
    outfile_abandon(&job->trace);
    picture_input_close(&job->input);
    pthread_cond_destroy(&job->flight.changed);
    pthread_mutex_destroy(&job->flight.lock);
}

int main(int argc, char **argv)
{
    outfile_guard_standard();
    struct options options = {.op = COX_OPERATOR_HABLE, .peak_auto = true, .in_flight = 2, .repeat = 1};
    switch (parse_options(&options, argc, argv)) {
    case PARSED_DONE:
        if (fflush(stdout) || ferror(stdout)) {
            complain("cannot write to the terminal or pipe: %s", strerror(errno));
            return EXIT_BAD;
        }
        return 0;
    case PARSED_WRONG:
        return EXIT_USAGE;
    case PARSED_RUN:
        break;
    }
    catch_signals();
    struct job job = {.options = &options,
                      .flight = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
    bool good = run(&job);
    clean_up(&job);
    if (good && say_stream && (fflush(say_stream) || ferror(say_stream)))
        good = complain("cannot write to the terminal or pipe: %s", strerror(errno));
    return good ? 0 : interrupted ? 128 + interrupted : EXIT_BAD;
}
