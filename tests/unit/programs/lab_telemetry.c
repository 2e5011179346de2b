/* What the lab reads about a machine, from copies of the /sys of two laptops (support/sysfs.sh).
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/telemetry/sampler.h"
#include "lab/telemetry/sysfs.h"
#include "common/now.h"
#include "support/folder.h"
#include "unit/programs/lab_asked.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char root[80];
static struct lab_telemetry *telemetry;
static double values[LAB_TELEMETRY_SOURCES_MAX];

static void begin(void)
{
    make_folder();
    chmod(folder, 0755);
    snprintf(root, sizeof root, "%s/sys", folder);
    snprintf(path, sizeof path, "%s/session.db", folder);
    cr_assert_eq(mkdir(root, 0755), 0);
}

static void end(void)
{
    lab_telemetry_close(&telemetry);
    remove_folder();
}

TestSuite(lab_telemetry, .init = begin, .fini = end);

/* Run a shell command in the tree. */
static void in_tree(const char *format, ...)
{
    char command[512], whole[600];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "cd %s && %s", root, command);
    cr_assert_eq(system(whole), 0, "%s", whole);
}

static void make_laptop(const char *name)
{
    in_tree("sh %s/tests/support/sysfs.sh %s %s", COX_TEST_SOURCE_DIR, name, root);
}

/* Replace a file's text in the same file, as the kernel does. A sampler that reads meanwhile finds the old line or
 * the new one. */
static void put(const char *name, const char *text)
{
    char whole[256];
    const size_t length = strlen(text);
    snprintf(whole, sizeof whole, "%s/%s", root, name);
    const int file = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    cr_assert_geq(file, 0, "%s", whole);
    cr_assert_eq(write(file, text, length), (ssize_t)length);
    cr_assert_eq(ftruncate(file, (off_t)length), 0);
    close(file);
}

static void put_for_cpus(int first, int end, const char *file, const char *text)
{
    char name[128];
    for (int cpu = first; cpu < end; cpu++) {
        snprintf(name, sizeof name, "devices/system/cpu/cpu%d/%s", cpu, file);
        put(name, text);
    }
}

static void open_with(const struct lab_telemetry_params *params)
{
    lab_telemetry_close(&telemetry);
    telemetry = lab_telemetry_open(params);
    cr_assert_not_null(telemetry);
}

static void open_tree(void)
{
    open_with(&(struct lab_telemetry_params){.sysfs = root});
}

static void open_laptop(const char *name)
{
    make_laptop(name);
    open_tree();
}

/* The index of the source with this name, or the number of sources if no source has it. */
static uint32_t find(const char *name)
{
    uint32_t i = 0;
    while (i < lab_telemetry_count(telemetry) && strcmp(lab_telemetry_source(telemetry, i)->name, name) != 0)
        i++;
    return i;
}

static uint32_t find_one(const char *name)
{
    uint32_t source = find(name);
    cr_assert_lt(source, lab_telemetry_count(telemetry), "there is no '%s'", name);
    return source;
}

/* `names` are separated by commas. */
static bool has(const char *names)
{
    char text[256];
    bool all = true;
    snprintf(text, sizeof text, "%s", names);
    for (char *name = strtok(text, ","); name; name = strtok(NULL, ","))
        all &= find(name) < lab_telemetry_count(telemetry);
    return all;
}

static double read_now(const char *name)
{
    lab_telemetry_read(telemetry, true, values);
    return values[find_one(name)];
}

/* The note that contains these words, or NULL. */
static const char *note(const char *words)
{
    const char *text;
    for (uint32_t i = 0; (text = lab_telemetry_note(telemetry, i)); i++)
        if (strstr(text, words))
            return text;
    return NULL;
}

/* Sources and their values. NAN: no value. */
struct reading {
    const char *name;
    double value;
};

static void check_value(const char *name, double value, const char *when)
{
    const double got = values[find_one(name)];
    cr_assert(isnan(value) ? isnan(got) : fabs(got - value) <= 1e-9, "%s, %s: %g instead of %g", when, name, got,
              value);
}

static void check_readings(const struct reading *readings, size_t count)
{
    lab_telemetry_read(telemetry, true, values);
    for (size_t i = 0; i < count; i++)
        check_value(readings[i].name, readings[i].value, "at first");
}

#define ASSERT_READINGS(...)                              \
    check_readings((const struct reading[]){__VA_ARGS__}, \
                   sizeof(const struct reading[]){__VA_ARGS__} / sizeof(struct reading))

static void check_setting(const char *name, const char *expected)
{
    cr_assert_str_eq(lab_telemetry_setting(telemetry, find_one(name), NULL), expected, "%s", name);
}

/* --- Two laptops -------------------------------------------------------------------------------------------------- */

Test(lab_telemetry, reads_what_an_intel_laptop_has)
{
    open_laptop("meteor-lake");
    /* The clock of the P cores is the mean of one thread of each: 3000, 3100, ... 3500. The clock of the GPU is the
     * actual one, not the requested one. */
    ASSERT_READINGS({"clock of the P cores", 3250}, {"clock of the E cores", 2400}, {"clock of the LP-E cores", 700},
                    {"clock of GPU card1", 1150}, {"temperature: Package id 0", 71},
                    {"temperature of the hottest core", 71}, {"temperature: zone x86_pkg_temp", 72},
                    {"power from BAT0", 31.25}, {"throttling of the package", 0});
    cr_assert_not(has("clock of the cores"));
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("clock of the P cores"))->part, "P cores");
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("clock of the LP-E cores"))->origin,
                     "devices/system/cpu/cpu20/cpufreq/scaling_cur_freq and 1 more");
    check_setting("governor of the E cores", "powersave");
    check_setting("energy preference of the P cores", "balance_performance");
    check_setting("platform profile", "balanced");
    check_setting("status of BAT0", "Discharging");
    check_setting("on line: AC", "0");
    cr_assert(has("power of package-0,power of package-0/core,power of package-0/uncore,power of psys"));
    cr_assert_eq(lab_telemetry_count(telemetry), 25,
                 "the mouse, the disk, the zone acpitz and intel-rapl-mmio are none");
    cr_assert_null(lab_telemetry_note(telemetry, 0), "%s", lab_telemetry_note(telemetry, 0));
}

Test(lab_telemetry, reads_what_an_amd_laptop_has)
{
    open_laptop("ryzen");
    /* The battery is charged with 1.5 A at 17 V. */
    ASSERT_READINGS({"clock of the cores", 3570}, {"temperature: Tctl", 63.5}, {"clock of GPU card0", 2104},
                    {"temperature of GPU card0 edge", 55}, {"power of GPU card0 PPT", 24.125},
                    {"load of GPU card0", 87}, {"power from BAT1", -25.5});
    check_setting("status of BAT1", "Charging");
    check_setting("on line: ACAD", "1");
    cr_assert(has("power of package-0,power of package-0/core"));
    cr_assert_not(has("throttling of the package"), "AMD's kernel driver does not count it");
    cr_assert_eq(lab_telemetry_count(telemetry), 14);
}

Test(lab_telemetry, reads_average_power_where_amdgpu_has_that)
{
    make_laptop("ryzen");
    put("class/drm/card0/device/hwmon/hwmon4/power1_average", "30000000\n");
    open_tree();
    ASSERT_READINGS({"power of GPU card0 PPT", 30});
}

Test(lab_telemetry, tells_kinds_of_cores_by_frequency_where_no_pmu_does_and_by_capacity_before)
{
    make_laptop("ryzen");
    put_for_cpus(8, 16, "cpufreq/cpuinfo_max_freq", "3300000\n"); /* compact cores */
    open_tree();
    ASSERT_READINGS({"clock of the large cores", 3530}, {"clock of the small cores", 3610});
    put_for_cpus(0, 4, "cpu_capacity", "1024\n");
    put_for_cpus(4, 12, "cpu_capacity", "700\n");
    put_for_cpus(12, 16, "cpu_capacity", "250\n");
    open_tree();
    ASSERT_READINGS({"clock of the large cores", 3510}, {"clock of the middle cores", 3570},
                    {"clock of the small cores", 3630});
}

/* --- What changes ------------------------------------------------------------------------------------------------- */

/* A file is written, and then a source has this value. */
struct step {
    const char *file; /* "cpu A B NAME": of the CPUs A to B - 1 */
    const char *text;
    const char *source; /* NULL: no source is read after this step */
    double value;
};

static void check_steps(const struct step *steps, size_t count)
{
    for (const struct step *step = steps; step < steps + count; step++) {
        int first, end, name;
        if (sscanf(step->file, "cpu %d %d %n", &first, &end, &name) == 2)
            put_for_cpus(first, end, step->file + name, step->text);
        else
            put(step->file, step->text);
        lab_telemetry_read(telemetry, true, values);
        if (step->source)
            check_value(step->source, step->value, step->text);
    }
}

Test(lab_telemetry, what_cannot_be_read_or_is_nonsense_has_no_value_until_it_is_back)
{
    static const struct step steps[] = {
        {"class/thermal/thermal_zone9/temp", "", "temperature: zone x86_pkg_temp", NAN},
        {"class/thermal/thermal_zone9/temp", "73000\n", "temperature: zone x86_pkg_temp", 73},
        {"class/thermal/thermal_zone9/temp", "-273200\n", "temperature: zone x86_pkg_temp", NAN},
        {"class/power_supply/BAT0/power_now", "", "power from BAT0", NAN},
        {"class/power_supply/BAT0/power_now", "4294967295000\n", "power from BAT0", NAN},
        {"class/power_supply/BAT0/power_now", "20000000\n", "power from BAT0", 20},
        {"class/power_supply/BAT0/status", "", "power from BAT0", NAN}, /* the sign is unknown */
        {"class/powercap/intel-rapl:0/energy_uj", "", "power of package-0", NAN},
        {"class/drm/card1/gt/gt0/rps_act_freq_mhz", "0\n", "clock of GPU card1", 0}, /* the GPU sleeps */
        /* A core that is offline does not count for the mean. */
        {"cpu 20 21 cpufreq/scaling_cur_freq", "", NULL, 0},
        {"cpu 21 22 cpufreq/scaling_cur_freq", "900000\n", "clock of the LP-E cores", 900},
        {"cpu 21 22 cpufreq/scaling_cur_freq", "", "clock of the LP-E cores", NAN},
        {"firmware/acpi/platform_profile", "", NULL, 0},
    };
    static const char *const clocks[] = {
        "<unknown>\n", "-1400000\n", "0\n", "999999999999\n",
        "12.5.7\n",    "0x10\n",     " \n", "99999999999999999999999999999999999999999999\n"};
    open_laptop("meteor-lake");
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        put_for_cpus(20, 22, "cpufreq/scaling_cur_freq", clocks[i]);
        cr_assert(isnan(read_now("clock of the LP-E cores")), "%s", clocks[i]);
    }
    check_steps(steps, sizeof steps / sizeof *steps);
    check_setting("platform profile", "");
}

Test(lab_telemetry, throttling_is_counted_from_the_first_reading_on)
{
    static const struct step steps[] = {
        {"cpu 0 22 thermal_throttle/package_throttle_count", "43\n", "throttling of the package",
         3}, /* one counter that every core shows */
        {"cpu 0 22 thermal_throttle/package_throttle_count", "2\n", "throttling of the package",
         3}, /* the counter starts again */
        {"cpu 0 22 thermal_throttle/package_throttle_count", "7\n", "throttling of the package", 8},
        /* A counter that disappears for a while adds nothing when it returns. */
        {"cpu 12 13 thermal_throttle/core_throttle_count", "", "throttling of the E cores", NAN},
        {"cpu 12 13 thermal_throttle/core_throttle_count", "5\n", "throttling of the E cores", 0},
        {"cpu 12 14 thermal_throttle/core_throttle_count", "9\n", "throttling of the E cores", 8},
    };
    open_laptop("meteor-lake");
    ASSERT_READINGS({"throttling of the package", 0}, {"throttling of the E cores", 0});
    check_steps(steps, sizeof steps / sizeof *steps);
    cr_assert_eq(values[find_one("throttling of the P cores")], 0);
}

Test(lab_telemetry, the_sign_of_a_battery_and_the_level_of_amdgpu_are_read)
{
    static const struct step steps[] = {
        /* A battery that is charged has negative power, whatever sign its driver reports. */
        {"class/power_supply/BAT1/status", "Discharging\n", NULL, 0},
        {"class/power_supply/BAT1/current_now", "-1000000\n", "power from BAT1", 17},
        /* amdgpu reports no clock. */
        {"class/drm/card0/device/pp_dpm_sclk", "0: 800Mhz\n1: 1100Mhz\n2: 2700Mhz *\n", "clock of GPU card0", 2700},
        {"class/drm/card0/device/pp_dpm_sclk", "0: 800Mhz\n1: 1100Mhz\n", "clock of GPU card0", NAN},
    };
    make_laptop("ryzen");
    in_tree("rm -r class/drm/card0/device/hwmon/hwmon4/freq1_input");
    open_tree();
    ASSERT_READINGS({"clock of GPU card0", 1100}, {"power from BAT1", -25.5});
    check_steps(steps, sizeof steps / sizeof *steps);
}

/* --- Counters ----------------------------------------------------------------------------------------------------- */

/* Power while `write` adds this many joules, compared with the clock. The first reading lies between t[0] and t[1],
 * the second between t[2] and t[3]. */
static void check_power(const char *name, double joules, void (*write)(void))
{
    uint64_t t[4];
    t[0] = now_ns();
    cr_assert(isnan(read_now(name)), "from a single reading");
    t[1] = now_ns();
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    write();
    t[2] = now_ns();
    double watts = read_now(name);
    t[3] = now_ns();
    cr_assert_geq(watts, joules / ((double)(t[3] - t[0]) / 1e9));
    cr_assert_leq(watts, joules / ((double)(t[2] - t[1]) / 1e9));
}

static void more_energy(void)
{
    put("class/powercap/intel-rapl:0/energy_uj", "81000400000\n");
}

static void wrapped_energy(void)
{
    put("class/powercap/intel-rapl:0/energy_uj", "100000\n");
}

Test(lab_telemetry, power_is_energy_by_time_and_goes_on_when_a_counter_wraps_around)
{
    open_laptop("meteor-lake");
    check_power("power of package-0", 0.4, more_energy);
    put("class/powercap/intel-rapl:0/energy_uj", "262143028850\n");
    open_tree();
    check_power("power of package-0", 0.4, wrapped_energy);
}

Test(lab_telemetry, energy_that_has_not_moved_yet_is_no_power_of_nothing)
{
    open_laptop("meteor-lake");
    read_now("power of package-0");
    cr_assert(isnan(read_now("power of package-0")));
    cr_assert(isnan(read_now("power of package-0/uncore")));
}

Test(lab_telemetry, a_graphics_cards_energy_is_power_too_and_a_reset_counter_is_no_value)
{
#define HWMON "class/drm/card1/device/hwmon/hwmon3/"
    make_laptop("meteor-lake");
    in_tree("mkdir -p " HWMON);
    put(HWMON "name", "xe\n");
    put(HWMON "energy1_label", "card\n");
    put(HWMON "energy1_input", "5000000\n");
    put(HWMON "energy2_input", "4000000\n");
    put(HWMON "temp2_input", "61000\n");
    open_tree();
    ASSERT_READINGS({"power of GPU card1 card", NAN}, {"temperature of GPU card1 2", 61});
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    put(HWMON "energy1_input", "5100000\n");
    cr_assert_gt(read_now("power of GPU card1 card"), 0);
    put(HWMON "energy1_input", "100\n");
    cr_assert(isnan(read_now("power of GPU card1 card")));
    cr_assert(has("power of GPU card1 2"));
}

/* --- Failures ----------------------------------------------------------------------------------------------------- */

Test(lab_telemetry, a_machine_that_tells_nothing_has_notes_and_no_sources)
{
    open_tree();
    cr_assert_eq(lab_telemetry_count(telemetry), 0);
    cr_assert(note("cores: "));
    cr_assert(note("modprobe coretemp"));
    cr_assert(note("modprobe intel_rapl_msr"));
    lab_telemetry_read(telemetry, true, values);
    snprintf(root, sizeof root, "/nonexistent");
    open_tree();
    cr_assert_eq(lab_telemetry_count(telemetry), 0);
    cr_assert(note("/nonexistent/devices/system/cpu"));
}

Test(lab_telemetry, cores_without_a_clock_are_noted)
{
    make_laptop("ryzen");
    in_tree("rm -r devices/system/cpu/cpu*/cpufreq");
    open_tree();
    cr_assert(note("no cpufreq driver"));
    cr_assert_not(has("clock of the cores"));
    cr_assert_not(has("governor of the cores"));
    cr_assert(has("temperature: Tctl"), "the other sources are still read");
}

Test(lab_telemetry, a_processor_of_e_cores_alone_has_no_p_cores)
{
    make_laptop("meteor-lake");
    put("devices/cpu_core/cpus", "\n");
    put("devices/cpu_atom/cpus", "0-21\n");
    open_tree();
    cr_assert(has("clock of the E cores,clock of the LP-E cores"));
    cr_assert_not(has("clock of the P cores"));
}

Test(lab_telemetry, a_pmu_of_low_power_cores_names_these)
{
    make_laptop("meteor-lake");
    put("devices/cpu_atom/cpus", "12-19\n");
    in_tree("mkdir devices/cpu_lowpower");
    put("devices/cpu_lowpower/cpus", "20-21\n");
    open_tree();
    ASSERT_READINGS({"clock of the LP-E cores", 700}, {"clock of the E cores", 2400});
}

Test(lab_telemetry, lists_that_are_none_name_no_core)
{
    make_laptop("meteor-lake");
    put("devices/cpu_atom/cpus", "-,12-x,9999999999999999999\n");
    put("devices/cpu_core/cpus", "\n");
    open_tree();
    cr_assert(has("clock of the large cores,clock of the small cores"), "by frequency, then");
    cr_assert(sysfs_list_has("0-3,8,10-11", 8) && sysfs_list_has("0-3,8,10-11", 11));
    cr_assert_not(sysfs_list_has("0-3,8,10-11", 9));
    cr_assert_not(sysfs_list_has("", 0));
    cr_assert_not(sysfs_list_has("5-", 4));
}

/* --- Permissions, and sources that are not files ------------------------------------------------------------------ */

static int event_files[2]; /* a pipe: each reading takes one count from it */
static uint32_t event_type;
static uint64_t events_asked;

static int open_event(uint32_t type, uint64_t config, int cpu)
{
    cr_assert_eq(cpu, 0);
    event_type = type;
    events_asked |= UINT64_C(1) << config;
    if (config != 2) {
        errno = ENOENT;
        return -1;
    }
    return event_files[0];
}

static int refuse_event(uint32_t type, uint64_t config, int cpu)
{
    (void)type;
    (void)config;
    (void)cpu;
    errno = EACCES;
    return -1;
}

static void count_event(uint64_t count)
{
    cr_assert_eq(write(event_files[1], &count, sizeof count), sizeof count);
}

static void more_counts(void)
{
    count_event((UINT64_C(1) << 32) * 5 / 2);
}

/* Without powercap. `count` is what the first look finds, to see whether the counter counts. */
static void open_with_perf(uint64_t count)
{
    make_laptop("meteor-lake");
    in_tree("rm -r class/powercap");
    cr_assert_eq(pipe(event_files), 0);
    count_event(count);
    open_with(&(struct lab_telemetry_params){.sysfs = root, .event_open = open_event});
}

Test(lab_telemetry, perf_counts_where_powercap_may_not_be_read)
{
    open_with_perf(1);
    cr_assert_eq(event_type, 21);
    cr_assert_eq(events_asked, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5);
    cr_assert_not(note("power"), "%s", note("power"));
    count_event(UINT64_C(1) << 32); /* one joule */
    check_power("power of package-0", 1.5, more_counts);
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("power of package-0"))->origin, "perf: power/energy-pkg/");
}

Test(lab_telemetry, an_event_that_never_counts_is_noted)
{
    open_with_perf(0);
    cr_assert_not(has("power of package-0"));
    cr_assert(note("does not change"));
}

Test(lab_telemetry, says_what_would_permit_powercap_and_perf)
{
    make_laptop("meteor-lake");
    const bool superuser = geteuid() == 0; /* root may read everything */
    in_tree("chmod %s class/powercap/*/energy_uj", superuser ? "400" : "0");
    cr_assert(!superuser || seteuid(65534) == 0);
    open_with(&(struct lab_telemetry_params){.sysfs = root, .event_open = refuse_event});
    cr_assert(note("RUN+=\"/bin/chgrp power /sys%p/energy_uj\""));
    cr_assert(note("kernel.perf_event_paranoid=0"));
    cr_assert_not(has("power of package-0"));
    cr_assert(has("clock of the P cores,power from BAT0"));
    lab_telemetry_close(&telemetry);
    cr_assert(!superuser || seteuid(0) == 0);
}

/* The library in this program's folder. */
static void nvml_path(char *library, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", library, bytes - 1);
    cr_assert_gt(length, 0);
    library[length] = '\0';
    snprintf(strrchr(library, '/'), 16, "/test_nvml.so");
}

Test(lab_telemetry, reads_nvidias_processors_by_their_library)
{
    char library[512];
    nvml_path(library, sizeof library);
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = library});
    ASSERT_READINGS({"power of NVIDIA GeForce RTX 4060 #0", 61.5}, {"clock of NVIDIA GeForce RTX 4060 #0", 2370},
                    {"temperature of NVIDIA GeForce RTX 4050 #1", 66});
    double load = values[find_one("load of NVIDIA GeForce RTX 4060 #0")];
    cr_assert_gt(read_now("load of NVIDIA GeForce RTX 4060 #0"), load);
    cr_assert_not(has("power of NVIDIA GeForce RTX 4050 #1"), "it has no sensor");
    cr_assert_eq(lab_telemetry_count(telemetry), 7);
}

Test(lab_telemetry, a_missing_nvidia_library_is_noted_where_its_driver_runs)
{
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = "/nonexistent/libnvidia-ml.so.1"});
    cr_assert_not(note("NVIDIA"), "its absence is not noted");
    in_tree("mkdir -p module/nvidia");
    put("module/nvidia/refcnt", "31\n");
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = "/nonexistent/libnvidia-ml.so.1"});
    cr_assert(note("/nonexistent/libnvidia-ml.so.1 is missing"));
}

Test(lab_telemetry, a_library_that_is_another_one_is_noted)
{
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = "libm.so.6"});
    cr_assert(note("too old"));
    cr_assert_eq(lab_telemetry_count(telemetry), 0);
}

/* --- Reading while frames run ------------------------------------------------------------------------------------- */

Test(lab_telemetry, what_changes_slowly_is_read_seldom)
{
    open_laptop("meteor-lake");
    lab_telemetry_read(telemetry, false, values);
    static const struct reading readings[] = {{"temperature: Package id 0", NAN},
                                              {"power from BAT0", NAN},
                                              {"temperature: zone x86_pkg_temp", 72},
                                              {"clock of the E cores", 2400}};
    for (int i = 0; i < 4; i++)
        check_value(readings[i].name, readings[i].value, "not all");
    check_setting("platform profile", "");
}

Test(lab_telemetry, a_setting_says_when_it_changed)
{
    bool changed;
    open_laptop("meteor-lake");
    read_now("platform profile");
    uint32_t source = find("platform profile");
    cr_assert(lab_telemetry_setting(telemetry, source, &changed) && changed);
    read_now("platform profile");
    cr_assert(lab_telemetry_setting(telemetry, source, &changed) && !changed);
    put("firmware/acpi/platform_profile", "performance\n");
    read_now("platform profile");
    cr_assert_str_eq(lab_telemetry_setting(telemetry, source, &changed), "performance");
    cr_assert(changed);
}

Test(lab_telemetry, reading_opens_nothing_and_allocates_nothing)
{
    open_laptop("meteor-lake");
    read_now("platform profile");
    size_t before = mallinfo2().uordblks;
    int lowest = dup(0);
    cr_assert_geq(lowest, 0);
    close(lowest);
    in_tree("rm -r class"); /* files that are already open can still be read */
    for (int i = 0; i < 100; i++)
        lab_telemetry_read(telemetry, true, values);
    cr_assert_float_eq(values[find_one("temperature: zone x86_pkg_temp")], 72, 1e-9);
    cr_assert_eq(mallinfo2().uordblks, before);
    int after = dup(0);
    cr_assert_eq(after, lowest);
    close(after);
}

Test(lab_telemetry, closing_gives_back_every_file)
{
    int before = dup(0);
    close(before);
    open_laptop("meteor-lake");
    lab_telemetry_close(&telemetry);
    int after = dup(0);
    cr_assert_eq(after, before);
    close(after);
    lab_telemetry_close(&telemetry);
}

Test(lab_telemetry, the_summary_names_parts_by_kind_and_fits)
{
    char text[300], little[20];
    open_laptop("meteor-lake");
    lab_telemetry_summary(telemetry, text, sizeof text);
    cr_assert(strstr(text, "clock (P cores, E cores, LP-E cores, GPU card1), temperature (Package id 0, "), "%s", text);
    lab_telemetry_summary(telemetry, little, sizeof little);
    cr_assert_str_eq(little, "clock (P cores, E c");
}

/* --- The sampler and its records ---------------------------------------------------------------------------------- */

static struct lab_store *store;
static struct lab_session *session;
static struct lab_sampler *sampler;

static void begin_run(void)
{
    store = open_store();
    lab_store_begin_run(store,
                        &(const struct lab_store_run){.source = "devices", .columns = 8, .rows = 8, .frames = 1});
}

static void begin_session(void)
{
    session = lab_store_begin_session(store,
                                      &(const struct lab_store_session){.kind = LAB_SESSION_POLICY, .policy = "x"});
}

/* Sample the clock every millisecond. */
static void start_sampler(void)
{
    begin_run();
    open_laptop("meteor-lake");
    sampler = lab_sampler_start(telemetry, store, 1000000);
    cr_assert_not_null(sampler);
}

#define OF_SOURCE(name) " FROM telemetry JOIN telemetry_source USING (run, source) WHERE name = '" name "'"

/* Wait until `count` recorded values of the source satisfy `condition`. The limit is five minutes, or more if the
 * sampler is not scheduled. */
static void await(uint64_t count, const char *source, const char *condition)
{
    char sql[512];
    snprintf(sql, sizeof sql, "SELECT count(*) >= %llu" OF_SOURCE("%s") " AND %s", (unsigned long long)count, source,
             condition);
    for (int tries = 0; tries < 15000; tries++) {
        nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
        lab_store_commit(store);
        if (strcmp(ask(sql), "1") == 0)
            return;
    }
    cr_assert_fail("timed out waiting for: %s", sql);
}

Test(lab_telemetry, the_sampler_records_values_that_frames_are_found_by)
{
    struct lab_sampler_cost cost;
    start_sampler();
    begin_session();
    await(1, "platform profile", "1");
    const struct cox_band_report band = {.rows = 8};
    struct cox_frame_report frame = {.total.start_ns = now_ns(), .joules = -1, .band_count = 1, .bands = &band};
    put("class/thermal/thermal_zone9/temp", "90000\n");
    await(1, "temperature: zone x86_pkg_temp", "value = 90");
    frame.total.end_ns = now_ns();
    lab_session_frame(session, &frame);
    put("firmware/acpi/platform_profile", "performance\n");
    await(2, "platform profile", "1");
    lab_sampler_stop(&sampler, &cost);
    cr_assert_null(sampler);
    cr_assert_geq(cost.readings, 3);
    cr_assert_gt(cost.cpu_ns, 0);
    close_store(store);
    answers("SELECT count(*) FROM telemetry_source", "25");
    answers("SELECT kind, part, unit, origin FROM telemetry_source WHERE name = 'temperature: zone x86_pkg_temp'",
            "temperature|x86_pkg_temp|°C|class/thermal/thermal_zone9/temp");
    /* The value while the frame ran. */
    answers("SELECT max(value) FROM telemetry JOIN telemetry_source USING (run, source)"
            " JOIN session s USING (run) JOIN telemetry_session o ON o.session = s.session"
            " JOIN frame f ON f.session = s.session"
            " WHERE name = 'temperature: zone x86_pkg_temp' AND at_ns BETWEEN o.start_ns + f.start_ns"
            " AND o.start_ns + f.start_ns + f.wall_ns",
            "90.0");
    /* A setting is recorded when it changes. */
    answers("SELECT group_concat(value, ' ') FROM (SELECT value" OF_SOURCE("platform profile") " ORDER BY at_ns)",
            "balanced performance");
    /* Slow values are read at most once per second. The times at which readings are due count. */
    answers("SELECT count(*) > 0 AND count(*) <= 1 + max(at_ns) / 1000000000" OF_SOURCE("power from BAT0"), "1");
}

Test(lab_telemetry, a_paused_sampler_reads_nothing_and_power_is_not_that_of_the_pause)
{
#define MARK(value) "(SELECT at_ns FROM telemetry WHERE source = 0 AND value = " value ")"
    struct lab_sampler_cost cost;
    start_sampler();
    await(1, "clock of the P cores", "1");
    lab_sampler_pause(sampler, true);
    put("class/powercap/intel-rapl:0/energy_uj", "81005000000\n"); /* 5 J more */
    uint64_t paused_ns = now_ns();
    nanosleep(&(const struct timespec){.tv_nsec = 50000000}, NULL);
    uint64_t until_ns = now_ns();
    lab_store_values(store, paused_ns, &(const double){1}, 1); /* the two times of the pause */
    lab_store_values(store, until_ns, &(const double){2}, 1);
    lab_sampler_pause(sampler, false);
    await(1, "clock of the P cores", "at_ns > " MARK("2"));
    lab_sampler_stop(&sampler, &cost);
    struct lab_sampler *none = NULL;
    lab_sampler_pause(none, true);
    close_store(store);
    answers("SELECT count(*) FROM telemetry WHERE at_ns > " MARK("1") " AND at_ns < " MARK("2"), "0");
    answers("SELECT max(at_ns) > " MARK("2") " FROM telemetry", "1");
    /* Counts from the pause do not belong to any reading. */
    answers("SELECT count(*)" OF_SOURCE("power of package-0") " AND value > 0", "0");
}

Test(lab_telemetry, telemetry_leaves_half_of_the_queue_to_frames_and_loses_none)
{
    double many[LAB_TELEMETRY_SOURCES_MAX] = {0};
    for (int i = 1; i < LAB_TELEMETRY_SOURCES_MAX; i++)
        many[i] = NAN; /* these values fill the queue, but not the database */
    begin_run();
    lab_store_source(store, 0, &(const struct lab_store_source){"n", "clock", "p", "MHz", "o"});
    for (uint64_t i = 0; i < 100000; i++) /* nothing is written during this loop */
        lab_store_values(store, now_ns(), many, LAB_TELEMETRY_SOURCES_MAX);
    begin_session();
    lab_session_frame(session, &(const struct cox_frame_report){.joules = -1});
    close_store(store); /* dropped telemetry is not an error */
    answers("SELECT count(*) FROM frame", "1");
    answers("SELECT count(*) > 100 FROM telemetry", "1");
}

Test(lab_telemetry, a_run_without_telemetry_has_no_starts_of_sessions)
{
    begin_run();
    begin_session();
    lab_session_frame(session, &(const struct cox_frame_report){.joules = -1});
    close_store(store);
    answers("SELECT (SELECT count(*) FROM telemetry_session), count(*) FROM frame", "0|1");
}

Test(lab_telemetry, a_sampler_that_was_never_started_costs_nothing)
{
    struct lab_sampler *none = NULL;
    struct lab_sampler_cost cost = {9, 9};
    lab_sampler_stop(&none, &cost);
    cr_assert_eq(cost.readings, 0);
}
