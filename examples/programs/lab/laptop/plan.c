/* The parts: which commands run for each, and for how long.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"
#include "lab/telemetry/energy.h"
#include "lab/run/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    SIZES_MAX = 6,
    SIZES_LEAST = 3,
    FRAMES_LEAST = 24,
    FRAMES_MOST = 2000,
    SPLITS = 12 /* of the sweep in a round */
};

static const char compared_policies[] = "adaptive,last-frame,ewma,mean10,hguided,chunks";
enum { COMPARED_POLICIES = 6, PHASES = 3 /* before, while and after others compute */ };

/* Policies take longer than the oracle. The time that is left over goes to later parts. */
static const double slack = 1.4;
static const double start_s = 2; /* until the first frame */
/* With a third of the frames disturbed, the mean frame takes this many times as long. */
static const double disturbed = 1.3;
static const double soak_short = 0.3, soak_least = 2, soak_most = 120;
static const double sizes_share = 0.7; /* of the time, for the least frames of all sizes */

/* One call of laptop_plan. */
struct request {
    const struct laptop_options *options;
    const struct laptop_machine *machine;
    double seconds;
    const char *database;
    struct laptop_plan *plan;
};

const char *laptop_or_null(const char *text)
{
    if (!*text)
        return NULL;
    return text;
}

void laptop_machine_read(const struct laptop_options *options, struct laptop_machine *machine)
{
    struct lab_energy *energy;

    machine->kind_count = lab_core_kinds(laptop_or_null(options->sysfs), machine->kinds);
    machine->meter = lab_energy_open(laptop_or_null(options->powercap), &energy, machine->no_meter,
                                     sizeof machine->no_meter);
    if (machine->meter)
        lab_energy_close(&energy);
}

/* --- Commands --------------------------------------------------------------------------------- */

static void add(struct laptop_command *command, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=,.:/@#";
    const size_t bytes = strlen(text) + 1, shown = strlen(command->text);
    const char *quote = text[strspn(text, plain)] ? "'" : "";

    if (command->used + bytes > sizeof command->args)
        return;

    memcpy(command->args + command->used, text, bytes);
    command->used += bytes;
    snprintf(command->text + shown, sizeof command->text - shown, " %s%s%s", quote, text, quote);
}

/* An option with its value. */
__attribute__((format(printf, 3, 4))) static void add_option(struct laptop_command *command,
                                                             const char *option, const char *format,
                                                             ...)
{
    char text[LAPTOP_COMMAND_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);

    add(command, option);
    add(command, text);
}

/* A command of the plan, with the options that all have in common. */
static struct laptop_command *add_command(const struct request *request, const char *cpus)
{
    const struct laptop_options *options = request->options;
    struct laptop_command *command = &request->plan->commands[request->plan->count++];

    *command = (struct laptop_command){.used = 0};
    snprintf(command->cpus, sizeof command->cpus, "%s", cpus);
    snprintf(command->text, sizeof command->text, *cpus ? "taskset -c %s cox-lab" : "%scox-lab",
             cpus);

    add(command, "run");
    add(command, "--anonymous");
    if (*cpus)
        add_option(command, "--devices", "cpu");
    else if (options->devices)
        add_option(command, "--devices", "%s", options->devices);
    add_option(command, "--kernel", "%s", options->kernel);
    if (*options->sysfs)
        add_option(command, "--sysfs", "%s", options->sysfs);
    if (*options->powercap)
        add_option(command, "--powercap", "%s", options->powercap);
    add_option(command, "-o", "%s", request->database);
    add_option(command, "--rounds", "2");
    return command;
}

/* As above, on all CPUs, with frames of the size on the command line. */
static struct laptop_command *add_sized(const struct request *request, const char *cpus,
                                        const char *policies)
{
    struct laptop_command *command = add_command(request, cpus);

    add_option(command, "--size", "%" PRIu32 "x%" PRIu32, request->options->columns,
               request->options->rows);
    add_option(command, "--policy", "%s", policies);
    return command;
}

static void add_frames(struct laptop_command *command, uint32_t frames)
{
    add_option(command, "--frames", "%" PRIu32, frames);
}

/* --- How long it takes ------------------------------------------------------------------------ */

static double slowest_ns(const struct laptop_probe *probe)
{
    double slowest = 0;

    for (uint32_t d = 0; d < probe->device_count; d++)
        slowest = fmax(slowest, probe->single_device_ns[d]);
    return slowest;
}

/* Seconds of a round: eight frames of each policy, and the references'. A step of the curve takes
 * half as long as the slowest device alone, in the mean, but not less than the balanced frame. */
static double round_s(const struct laptop_probe *probe, uint32_t policies, uint32_t steps,
                      uint32_t turn)
{
    double frames_ns = LAB_RUN_BLOCK * policies * probe->oracle_ns +
                       SPLITS * turn * 1.1 * probe->oracle_ns;

    for (uint32_t d = 0; d < probe->device_count; d++)
        frames_ns += turn * probe->single_device_ns[d];
    return slack * (frames_ns + steps * turn * fmax(slowest_ns(probe) / 2, probe->oracle_ns)) / 1e9;
}

static uint32_t frames_for(const struct request *request, double seconds, double round)
{
    double frames = LAB_RUN_BLOCK * floor(seconds / round);

    if (request->options->frames)
        return request->options->frames;
    return (uint32_t)fmin(fmax(frames, FRAMES_LEAST), FRAMES_MOST);
}

/* --- The parts -------------------------------------------------------------------------------- */

static void plan_probe(const struct request *request)
{
    add_frames(add_sized(request, "", "single"), LAB_RUN_BLOCK);
}

/* From a quarter of each side to twice; the largest sizes are left out if the time is short. */
static void plan_sizes(const struct request *request)
{
    static const double sides[SIZES_MAX] = {0.25, 0.5, 0.75, 1, 1.5, 2};
    const struct laptop_options *options = request->options;
    const double round = round_s(&request->machine->probe, 2, 0, LAB_RUN_TURN);
    const double rounds_least = (double)FRAMES_LEAST / LAB_RUN_BLOCK;
    uint32_t count = SIZES_MAX;
    double areas = 0;
    char list[160] = "";
    size_t length = 0;

    for (uint32_t i = 0; i < count; i++)
        areas += sides[i] * sides[i];
    while (count > SIZES_LEAST &&
           areas * round * rounds_least + start_s * count > sizes_share * request->seconds) {
        count--;
        areas -= sides[count] * sides[count];
    }

    for (uint32_t i = 0; i < count; i++) {
        uint32_t columns = (uint32_t)(options->columns * sides[i] / 2) * 2;
        uint32_t rows = (uint32_t)(options->rows * sides[i] / 2) * 2;

        if (columns < LAB_SIZE_MIN || rows < LAB_SIZE_MIN || columns > LAB_SIZE_MAX ||
            rows > LAB_SIZE_MAX)
            continue;
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%" PRIu32 "x%" PRIu32,
                                   length ? "," : "", columns, rows);
    }

    struct laptop_command *command = add_command(request, "");
    add_option(command, "--size", "%s", list);
    add_option(command, "--policy", "adaptive,single");
    add_frames(command, frames_for(request, request->seconds - start_s * count, areas * round));
}

static void plan_curve(const struct request *request)
{
    const uint32_t steps = request->seconds > 120 ? 20 : 10;
    const double round = round_s(&request->machine->probe, COMPARED_POLICIES, steps, LAB_RUN_TURN);
    struct laptop_command *command = add_sized(request, "", compared_policies);

    add_option(command, "--curve", "%" PRIu32, steps);
    add_frames(command, frames_for(request, request->seconds - start_s, round));
}

static void plan_reserve(const struct request *request)
{
    const double round = 2 * round_s(&request->machine->probe, 3, 0, LAB_RUN_TURN);
    struct laptop_command *command = add_sized(request, "", "adaptive,last-frame,hguided");

    add_option(command, "--reserve", "both");
    add_frames(command, frames_for(request, request->seconds - 2 * start_s, round));
}

/* Enough frames in flight that the slowest device can do one while the fastest does all others. */
static uint32_t corun_in_flight(const struct laptop_probe *probe)
{
    double fastest = INFINITY;

    for (uint32_t d = 0; d < probe->device_count; d++)
        fastest = fmin(fastest, probe->single_device_ns[d]);

    double frames = ceil(slowest_ns(probe) / fastest) + 2;
    return (uint32_t)fmin(fmax(frames, 4), COX_IN_FLIGHT_MAX);
}

static void plan_corun(const struct request *request)
{
    const struct laptop_probe *probe = &request->machine->probe;
    const uint32_t in_flight = corun_in_flight(probe);
    const double round = round_s(probe, in_flight, 0, LAB_RUN_BLOCK * in_flight);
    uint32_t frames = frames_for(request, 0.5 * request->seconds - start_s, round);
    double soak = soak_short;

    if (!request->options->frames) {
        /* A block has this many times more frames. */
        frames = (uint32_t)fmin((double)frames * in_flight, FRAMES_MOST);
        /* Half of the time: a stage for each device and one for all, each after a quarter of
         * rest. */
        soak = 0.5 * request->seconds / (1.25 * (probe->device_count + 1));
        soak = fmin(fmax(soak, soak_least), soak_most);
    }

    struct laptop_command *command = add_sized(request, "", "inter-frame");
    add_option(command, "--in-flight", "%" PRIu32, in_flight);
    add_option(command, "--soak", "%.1f", soak);
    add_frames(command, frames);
}

static void plan_kinds(const struct request *request)
{
    const struct laptop_machine *machine = request->machine;
    const char *why = "The kinds of cores are unknown: the system does not report them.";

    if (machine->kind_count == 1)
        why = "The cores of this machine are of one kind.";
    if (machine->kind_count < 2) {
        snprintf(request->plan->why, sizeof request->plan->why, "%s", why);
        return;
    }

    double seconds = request->seconds / machine->kind_count - start_s;
    uint32_t frames = frames_for(request, seconds, 12 * slowest_ns(&machine->probe) / 1e9);
    for (uint32_t kind = 0; kind < machine->kind_count; kind++)
        add_frames(add_sized(request, machine->kinds[kind].cpus, "single"), frames);
}

static void plan_disturb(const struct request *request)
{
    const double round = round_s(&request->machine->probe, COMPARED_POLICIES, 0, LAB_RUN_TURN);
    uint32_t frames = frames_for(request, request->seconds - start_s, disturbed * round);

    /* An interval takes two blocks in each phase. */
    if (!request->options->frames && frames < PHASES * 2 * LAB_RUN_BLOCK)
        frames = PHASES * 2 * LAB_RUN_BLOCK;

    struct laptop_command *command = add_sized(request, "", compared_policies);
    add_option(command, "--disturb", "hog@%" PRIu32 ":%" PRIu32, frames / PHASES,
               frames - frames / PHASES);
    add_frames(command, frames);
}

/* The first deadline cannot be kept; the last one leaves room for the slower of two devices. */
static void plan_energy(const struct request *request)
{
    static const double deadlines[LAPTOP_COMMANDS_MAX] = {1, 1.25, 1.6, 2.2};
    const struct laptop_machine *machine = request->machine;
    const double round = round_s(&machine->probe, 3, 0, LAB_RUN_TURN);
    const double seconds = request->seconds / LAPTOP_COMMANDS_MAX - start_s;

    if (!machine->meter) {
        snprintf(request->plan->why, sizeof request->plan->why, "%s", machine->no_meter);
        return;
    }

    for (int i = 0; i < LAPTOP_COMMANDS_MAX; i++) {
        double deadline_ms = deadlines[i] * machine->probe.oracle_ns / 1e6;
        struct laptop_command *command = add_sized(request, "", "adaptive,last-frame,single");

        add_option(command, "--objective", "energy");
        add_option(command, "--deadline", "%.3f", fmax(deadline_ms, 0.001));
        add_frames(command, frames_for(request, seconds, round));
    }
}

/* --- The list of parts ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    double weight; /* of the time */
    void (*plan)(const struct request *request);
} parts[LAPTOP_ALL_PARTS] = {
    [LAPTOP_PROBE] = {"probe", 1, plan_probe},
    [LAPTOP_SIZES] = {"sizes", 18, plan_sizes},
    [LAPTOP_CURVE] = {"curve", 24, plan_curve},
    [LAPTOP_RESERVE] = {"reserve", 12, plan_reserve},
    [LAPTOP_CORUN] = {"corun", 20, plan_corun},
    [LAPTOP_KINDS] = {"kinds", 6, plan_kinds},
    [LAPTOP_DISTURB] = {"disturb", 14, plan_disturb},
    [LAPTOP_ENERGY] = {"energy", 12, plan_energy},
};

const char *laptop_part_name(enum laptop_part part)
{
    return parts[part].name;
}

bool laptop_part_find(const char *name, enum laptop_part *part)
{
    for (*part = 0; *part < LAPTOP_ALL_PARTS; ++*part)
        if (strcmp(parts[*part].name, name) == 0)
            return true;
    return false;
}

bool laptop_part_wanted(const struct laptop_options *options, enum laptop_part part)
{
    const char *name = parts[part].name;

    if (part == LAPTOP_PROBE || !options->parts)
        return true;

    for (const char *at = options->parts; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == strlen(name) && strncmp(at, name, strlen(name)) == 0)
            return true;
    return false;
}

double laptop_part_weight(const struct laptop_machine *machine, enum laptop_part part)
{
    if (part == LAPTOP_KINDS && machine->kind_count < 2)
        return 0;
    if (part == LAPTOP_ENERGY && !machine->meter)
        return 0;
    return parts[part].weight;
}

void laptop_plan(const struct laptop_options *options, const struct laptop_machine *machine,
                 enum laptop_part part, double seconds, const char *database,
                 struct laptop_plan *plan)
{
    *plan = (struct laptop_plan){.count = 0};
    parts[part].plan(&(const struct request){
        .options = options,
        .machine = machine,
        .seconds = seconds,
        .database = database,
        .plan = plan,
    });
}
