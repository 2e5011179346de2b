/* The parts: what is run for each, and how long.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/run/energy.h"
#include "lab/run/measure.h"
#include "plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum {
    SIZES_MAX = 6,
    FRAMES_LEAST = 24,
    FRAMES_MOST = 2000,
    SPLITS = 12 /* of the sweep in a round */
};

static const char compared_policies[] = "adaptive,last-frame,ewma,mean10,hguided,chunks";
enum { COMPARED_POLICIES = 6, PHASES = 3 /* before, while and after others compute */ };

static const double slack =
    1.4; /* policies take longer than the oracle; time that is left over goes to later parts */
static const double start_s = 2; /* until the first frame */
static const double disturbed =
    1.3; /* a frame takes longer in the mean, where a third of them are disturbed */
static const double soak_short = 0.3, soak_least = 2, soak_most = 120;
static const double sizes_share = 0.7; /* of the time, for the least frames of all sizes */

static const struct {
    const char *name;
    double weight; /* of the time */
} parts[LAPTOP_ALL_PARTS] = {[LAPTOP_PROBE] = {"probe", 1},      [LAPTOP_SIZES] = {"sizes", 18},
                             [LAPTOP_CURVE] = {"curve", 24},     [LAPTOP_RESERVE] = {"reserve", 12},
                             [LAPTOP_CORUN] = {"corun", 20},     [LAPTOP_KINDS] = {"kinds", 6},
                             [LAPTOP_DISTURB] = {"disturb", 14}, [LAPTOP_ENERGY] = {"energy", 12}};

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

const char *laptop_or_null(const char *text)
{
    return *text ? text : NULL;
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

__attribute__((format(printf, 2, 3))) static void add(struct laptop_command *command,
                                                      const char *format, ...)
{
    char text[LAPTOP_COMMAND_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const size_t bytes = strlen(text) + 1, shown = strlen(command->text);
    bool plain =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=,.:/@#") ==
        bytes - 1;
    if (command->used + bytes > sizeof command->args)
        return;
    memcpy(command->args + command->used, text, bytes);
    command->used += bytes;
    snprintf(command->text + shown, sizeof command->text - shown, plain ? " %s" : " '%s'", text);
}

/* A command of the plan with what all have in common. */
static struct laptop_command *add_command(const struct laptop_options *options,
                                          const char *database, const char *cpus,
                                          struct laptop_plan *plan)
{
    struct laptop_command *command = &plan->commands[plan->count++];
    *command = (struct laptop_command){.used = 0};
    snprintf(command->cpus, sizeof command->cpus, "%s", cpus);
    snprintf(command->text, sizeof command->text, *cpus ? "taskset -c %s cox-lab" : "%scox-lab",
             cpus);
    add(command, "run");
    add(command, "--anonymous");
    if (*cpus) {
        add(command, "--devices");
        add(command, "cpu");
    } else if (options->devices) {
        add(command, "--devices");
        add(command, "%s", options->devices);
    }
    add(command, "--kernel");
    add(command, "%s", options->kernel);
    if (*options->sysfs) {
        add(command, "--sysfs");
        add(command, "%s", options->sysfs);
    }
    if (*options->powercap) {
        add(command, "--powercap");
        add(command, "%s", options->powercap);
    }
    add(command, "-o");
    add(command, "%s", database);
    add(command, "--rounds");
    add(command, "2");
    return command;
}

static void add_size(const struct laptop_options *options, struct laptop_command *command)
{
    add(command, "--size");
    add(command, "%" PRIu32 "x%" PRIu32, options->columns, options->rows);
}

static void add_pair(struct laptop_command *command, const char *option, const char *value)
{
    add(command, "%s", option);
    add(command, "%s", value);
}

/* --- How long it takes ------------------------------------------------------------------------ */

/* Seconds of a round: eight frames of each policy, and the references'. A step of the curve takes
 * half of what the slowest device takes alone, in the mean, or what the balanced frame takes. */
static double round_s(const struct laptop_probe *probe, uint32_t policies, uint32_t steps,
                      uint32_t turn)
{
    double frames_ns = LAB_RUN_BLOCK * policies * probe->oracle_ns +
                       SPLITS * turn * 1.1 * probe->oracle_ns;
    double slowest = 0;
    for (uint32_t d = 0; d < probe->device_count; d++) {
        frames_ns += turn * probe->solo_ns[d];
        slowest = fmax(slowest, probe->solo_ns[d]);
    }
    return slack * (frames_ns + steps * turn * fmax(slowest / 2, probe->oracle_ns)) / 1e9;
}

static uint32_t frames_for(const struct laptop_options *options, double seconds, double round)
{
    double frames = LAB_RUN_BLOCK * floor(seconds / round);
    if (options->frames)
        return options->frames;
    return (uint32_t)fmin(fmax(frames, FRAMES_LEAST), FRAMES_MOST);
}

static void add_frames(struct laptop_command *command, uint32_t frames)
{
    add(command, "--frames");
    add(command, "%" PRIu32, frames);
}

/* --- The parts -------------------------------------------------------------------------------- */

static void plan_probe(const struct laptop_options *options, const char *database,
                       struct laptop_plan *plan)
{
    struct laptop_command *command = add_command(options, database, "", plan);
    add_size(options, command);
    add_pair(command, "--policy", "single");
    add_frames(command, LAB_RUN_BLOCK);
}

/* From a quarter of each side to twice; the largest are left out where the time is short. */
static void plan_sizes(const struct laptop_options *options, const struct laptop_probe *probe,
                       double seconds, const char *database, struct laptop_plan *plan)
{
    static const double sides[SIZES_MAX] = {0.25, 0.5, 0.75, 1, 1.5, 2};
    uint32_t count = SIZES_MAX;
    double areas, round = round_s(probe, 2, 0, LAB_RUN_TURN);
    char list[160] = "";
    size_t length = 0;
    for (;; count--) {
        areas = 0;
        for (uint32_t i = 0; i < count; i++)
            areas += sides[i] * sides[i];
        if (count <= 3 ||
            areas * round * FRAMES_LEAST / LAB_RUN_BLOCK + start_s * count <= sizes_share * seconds)
            break;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t columns = (uint32_t)(options->columns * sides[i] / 2) * 2,
                 rows = (uint32_t)(options->rows * sides[i] / 2) * 2;
        if (columns < LAB_SIZE_MIN || rows < LAB_SIZE_MIN || columns > LAB_SIZE_MAX ||
            rows > LAB_SIZE_MAX)
            continue;
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%" PRIu32 "x%" PRIu32,
                                   length ? "," : "", columns, rows);
    }
    struct laptop_command *command = add_command(options, database, "", plan);
    add_pair(command, "--size", list);
    add_pair(command, "--policy", "adaptive,single");
    add_frames(command, frames_for(options, seconds - start_s * count, areas * round));
}

static void plan_curve(const struct laptop_options *options, const struct laptop_probe *probe,
                       double seconds, const char *database, struct laptop_plan *plan)
{
    uint32_t steps = seconds > 120 ? 20 : 10;
    struct laptop_command *command = add_command(options, database, "", plan);
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, steps);
    add_size(options, command);
    add_pair(command, "--policy", compared_policies);
    add_pair(command, "--curve", text);
    add_frames(command, frames_for(options, seconds - start_s,
                                   round_s(probe, COMPARED_POLICIES, steps, LAB_RUN_TURN)));
}

static void plan_reserve(const struct laptop_options *options, const struct laptop_probe *probe,
                         double seconds, const char *database, struct laptop_plan *plan)
{
    struct laptop_command *command = add_command(options, database, "", plan);
    add_size(options, command);
    add_pair(command, "--policy", "adaptive,last-frame,hguided");
    add_pair(command, "--reserve", "both");
    add_frames(command,
               frames_for(options, seconds - 2 * start_s, 2 * round_s(probe, 3, 0, LAB_RUN_TURN)));
}

/* So many frames in flight that the slowest device can do one while the fastest does all others. */
static uint32_t corun_in_flight(const struct laptop_probe *probe)
{
    double slowest = 0, fastest = INFINITY;
    for (uint32_t d = 0; d < probe->device_count; d++) {
        slowest = fmax(slowest, probe->solo_ns[d]);
        fastest = fmin(fastest, probe->solo_ns[d]);
    }
    double frames = ceil(slowest / fastest) + 2;
    return (uint32_t)fmin(fmax(frames, 4), COX_IN_FLIGHT_MAX);
}

static void plan_corun(const struct laptop_options *options, const struct laptop_probe *probe,
                       double seconds, const char *database, struct laptop_plan *plan)
{
    struct laptop_command *command = add_command(options, database, "", plan);
    /* Half of the time: a stage for each device and one for all, with a quarter of rest before
     * each. */
    double soak = options->frames
                      ? soak_short
                      : fmin(fmax(0.5 * seconds / (1.25 * (probe->device_count + 1)), soak_least),
                             soak_most);
    const uint32_t in_flight = corun_in_flight(probe);
    uint32_t frames = frames_for(options, 0.5 * seconds - start_s,
                                 round_s(probe, in_flight, 0, LAB_RUN_BLOCK * in_flight));
    if (!options->frames) /* a block is so many times longer */
        frames = (uint32_t)fmin((double)frames * in_flight, FRAMES_MOST);
    add_size(options, command);
    add_pair(command, "--policy", "inter-frame");
    add(command, "--in-flight");
    add(command, "%" PRIu32, in_flight);
    add(command, "--soak");
    add(command, "%.1f", soak);
    add_frames(command, frames);
}

static void plan_kinds(const struct laptop_options *options, const struct laptop_machine *machine,
                       double seconds, const char *database, struct laptop_plan *plan)
{
    if (machine->kind_count < 2) {
        snprintf(plan->why, sizeof plan->why,
                 machine->kind_count ? "The cores of this machine are of one kind."
                                     : "The system does not say what kinds of cores it has.");
        return;
    }
    for (uint32_t kind = 0; kind < machine->kind_count; kind++) {
        struct laptop_command *command = add_command(options, database, machine->kinds[kind].cpus,
                                                     plan);
        double slowest = 0;
        for (uint32_t d = 0; d < machine->probe.device_count; d++)
            slowest = fmax(slowest, machine->probe.solo_ns[d]);
        add_size(options, command);
        add_pair(command, "--policy", "single");
        add_frames(command, frames_for(options, seconds / machine->kind_count - start_s,
                                       12 * slowest / 1e9));
    }
}

static void plan_disturb(const struct laptop_options *options, const struct laptop_probe *probe,
                         double seconds, const char *database, struct laptop_plan *plan)
{
    struct laptop_command *command = add_command(options, database, "", plan);
    uint32_t frames = frames_for(options, seconds - start_s,
                                 disturbed * round_s(probe, COMPARED_POLICIES, 0, LAB_RUN_TURN));
    if (!options->frames &&
        frames < PHASES * 2 * LAB_RUN_BLOCK) /* two blocks in each phase: intervals */
        frames = PHASES * 2 * LAB_RUN_BLOCK;
    add_size(options, command);
    add_pair(command, "--policy", compared_policies);
    add(command, "--disturb");
    add(command, "hog@%" PRIu32 ":%" PRIu32, frames / PHASES, frames - frames / PHASES);
    add_frames(command, frames);
}

/* The first deadline cannot be kept, the last one leaves room for the slower of two devices. */
static void plan_energy(const struct laptop_options *options, const struct laptop_machine *machine,
                        double seconds, const char *database, struct laptop_plan *plan)
{
    static const double deadlines[LAPTOP_COMMANDS_MAX] = {1, 1.25, 1.6, 2.2};
    if (!machine->meter) {
        snprintf(plan->why, sizeof plan->why, "%s", machine->no_meter);
        return;
    }
    for (int i = 0; i < LAPTOP_COMMANDS_MAX; i++) {
        struct laptop_command *command = add_command(options, database, "", plan);
        add_size(options, command);
        add_pair(command, "--policy", "adaptive,last-frame,single");
        add_pair(command, "--objective", "energy");
        add(command, "--deadline");
        add(command, "%.3f", fmax(deadlines[i] * machine->probe.oracle_ns / 1e6, 0.001));
        add_frames(command, frames_for(options, seconds / LAPTOP_COMMANDS_MAX - start_s,
                                       round_s(&machine->probe, 3, 0, LAB_RUN_TURN)));
    }
}

double laptop_part_weight(const struct laptop_machine *machine, enum laptop_part part)
{
    bool cannot = (part == LAPTOP_KINDS && machine->kind_count < 2) ||
                  (part == LAPTOP_ENERGY && !machine->meter);
    return cannot ? 0 : parts[part].weight;
}

void laptop_plan(const struct laptop_options *options, const struct laptop_machine *machine,
                 enum laptop_part part, double seconds, const char *database,
                 struct laptop_plan *plan)
{
    const struct laptop_probe *probe = &machine->probe;
    *plan = (struct laptop_plan){.count = 0};
    if (part == LAPTOP_PROBE)
        plan_probe(options, database, plan);
    else if (part == LAPTOP_SIZES)
        plan_sizes(options, probe, seconds, database, plan);
    else if (part == LAPTOP_CURVE)
        plan_curve(options, probe, seconds, database, plan);
    else if (part == LAPTOP_RESERVE)
        plan_reserve(options, probe, seconds, database, plan);
    else if (part == LAPTOP_CORUN)
        plan_corun(options, probe, seconds, database, plan);
    else if (part == LAPTOP_KINDS)
        plan_kinds(options, machine, seconds, database, plan);
    else if (part == LAPTOP_DISTURB)
        plan_disturb(options, probe, seconds, database, plan);
    else
        plan_energy(options, machine, seconds, database, plan);
}
