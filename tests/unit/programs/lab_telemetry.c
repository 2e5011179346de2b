/* What the lab reads of a machine, on the laid-out /sys of two laptops (support/sysfs.sh).
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/telemetry/sampler.h"
#include "lab/telemetry/sysfs.h"
#include "common/now.h"
#include "support/scratch.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char folder[32], root[48];
static struct lab_telemetry *telemetry;
static double values[LAB_TELEMETRY_SOURCES_MAX];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/cox-telemetry-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    chmod(folder, 0755);
    snprintf(root, sizeof root, "%s/sys", folder);
    cr_assert_eq(mkdir(root, 0755), 0);
}

static void remove_folder(void)
{
    lab_telemetry_close(&telemetry);
    scratch_remove(folder);
}

TestSuite(lab_telemetry, .init = make_folder, .fini = remove_folder);

static void make_laptop(const char *name)
{
    char command[512];
    snprintf(command, sizeof command, "sh %s/tests/support/sysfs.sh %s %s", COX_TEST_SOURCE_DIR, name, root);
    cr_assert_eq(system(command), 0);
}

/* The text replaces the file's, in the same file, as the kernel does it: a sampler that reads meanwhile finds the old
 * line or the new one, never none. */
static void put(const char *path, const char *text)
{
    char whole[256];
    const size_t length = strlen(text);
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    const int file = open(whole, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    cr_assert_geq(file, 0, "%s", whole);
    cr_assert_eq(write(file, text, length), (ssize_t)length);
    cr_assert_eq(ftruncate(file, (off_t)length), 0);
    close(file);
}

static void put_for_cpus(int first, int end, const char *file, const char *text)
{
    char path[128];
    for (int cpu = first; cpu < end; cpu++) {
        snprintf(path, sizeof path, "devices/system/cpu/cpu%d/%s", cpu, file);
        put(path, text);
    }
}

static void take_away(const char *path)
{
    char command[256];
    snprintf(command, sizeof command, "rm -r %s/%s", root, path);
    cr_assert_eq(system(command), 0);
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

/* The number of a source; the count of them if there is none of that name. */
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

static bool has(const char *name)
{
    return find(name) < lab_telemetry_count(telemetry);
}

static double read_now(const char *name)
{
    lab_telemetry_read(telemetry, true, values);
    return values[find_one(name)];
}

static const char *setting(const char *name)
{
    return lab_telemetry_setting(telemetry, find_one(name), NULL);
}

/* The note in which the words stand; NULL = none. */
static const char *note(const char *words)
{
    const char *text;
    for (uint32_t i = 0; (text = lab_telemetry_note(telemetry, i)); i++)
        if (strstr(text, words))
            return text;
    return NULL;
}

/* --- Two laptops -------------------------------------------------------------------------------------------------- */

Test(lab_telemetry, reads_the_clocks_of_p_e_and_lp_e_cores_apart)
{
    open_laptop("meteor-lake");
    cr_assert_float_eq(read_now("clock of the P cores"), 3250, 1e-9); /* one thread of each: 3000, 3100, ... 3500 */
    cr_assert_float_eq(values[find_one("clock of the E cores")], 2400, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the LP-E cores")], 700, 1e-9);
    cr_assert_not(has("clock of the cores"));
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("clock of the P cores"))->part, "P cores");
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("clock of the LP-E cores"))->origin,
                     "devices/system/cpu/cpu20/cpufreq/scaling_cur_freq and 1 more");
}

Test(lab_telemetry, reads_what_an_intel_laptop_has)
{
    open_laptop("meteor-lake");
    cr_assert_float_eq(read_now("clock of GPU card1"), 1150, 1e-9, "what it is, not what was asked for");
    cr_assert_float_eq(values[find_one("temperature: Package id 0")], 71, 1e-9);
    cr_assert_float_eq(values[find_one("temperature of the hottest core")], 71, 1e-9);
    cr_assert_float_eq(values[find_one("temperature: zone x86_pkg_temp")], 72, 1e-9);
    cr_assert_float_eq(values[find_one("power from BAT0")], 31.25, 1e-9);
    cr_assert_eq(values[find_one("throttling of the package")], 0);
    cr_assert_str_eq(setting("governor of the E cores"), "powersave");
    cr_assert_str_eq(setting("energy preference of the P cores"), "balance_performance");
    cr_assert_str_eq(setting("platform profile"), "balanced");
    cr_assert_str_eq(setting("status of BAT0"), "Discharging");
    cr_assert_str_eq(setting("on line: AC"), "0");
    cr_assert(has("power of package-0") && has("power of package-0/core") && has("power of package-0/uncore") &&
              has("power of psys"));
    cr_assert_eq(lab_telemetry_count(telemetry), 25,
                 "the mouse, the disk, the zone acpitz and intel-rapl-mmio are none");
    cr_assert_null(lab_telemetry_note(telemetry, 0), "%s", lab_telemetry_note(telemetry, 0));
}

Test(lab_telemetry, reads_what_an_amd_laptop_has)
{
    open_laptop("ryzen");
    cr_assert_float_eq(read_now("clock of the cores"), 3570, 1e-9);
    cr_assert_float_eq(values[find_one("temperature: Tctl")], 63.5, 1e-9);
    cr_assert_float_eq(values[find_one("clock of GPU card0")], 2104, 1e-9);
    cr_assert_float_eq(values[find_one("temperature of GPU card0 edge")], 55, 1e-9);
    cr_assert_float_eq(values[find_one("power of GPU card0 PPT")], 24.125, 1e-9);
    cr_assert_float_eq(values[find_one("load of GPU card0")], 87, 1e-9);
    cr_assert_str_eq(setting("status of BAT1"), "Charging");
    cr_assert_str_eq(setting("on line: ACAD"), "1");
    cr_assert(has("power of package-0") && has("power of package-0/core"));
    cr_assert_not(has("throttling of the package"), "AMD's kernel driver does not count it");
    cr_assert_eq(lab_telemetry_count(telemetry), 14);
}

Test(lab_telemetry, a_battery_that_is_charged_has_negative_power_whatever_sign_its_driver_gives)
{
    open_laptop("ryzen");
    cr_assert_float_eq(read_now("power from BAT1"), -25.5, 1e-9); /* 1.5 A at 17 V */
    put("class/power_supply/BAT1/status", "Discharging\n");
    put("class/power_supply/BAT1/current_now", "-1000000\n");
    cr_assert_float_eq(read_now("power from BAT1"), 17, 1e-9);
}

Test(lab_telemetry, reads_the_level_in_use_where_amdgpu_gives_no_clock)
{
    make_laptop("ryzen");
    take_away("class/drm/card0/device/hwmon/hwmon4/freq1_input");
    open_tree();
    cr_assert_float_eq(read_now("clock of GPU card0"), 1100, 1e-9);
    put("class/drm/card0/device/pp_dpm_sclk", "0: 800Mhz\n1: 1100Mhz\n2: 2700Mhz *\n");
    cr_assert_float_eq(read_now("clock of GPU card0"), 2700, 1e-9);
    put("class/drm/card0/device/pp_dpm_sclk", "0: 800Mhz\n1: 1100Mhz\n");
    cr_assert(isnan(read_now("clock of GPU card0")), "no level is in use");
}

Test(lab_telemetry, reads_average_power_where_amdgpu_has_that)
{
    make_laptop("ryzen");
    put("class/drm/card0/device/hwmon/hwmon4/power1_average", "30000000\n");
    open_tree();
    cr_assert_float_eq(read_now("power of GPU card0 PPT"), 30, 1e-9);
}

Test(lab_telemetry, tells_kinds_by_frequency_where_no_pmu_does)
{
    make_laptop("ryzen");
    put_for_cpus(8, 16, "cpufreq/cpuinfo_max_freq", "3300000\n"); /* compact cores */
    open_tree();
    cr_assert_float_eq(read_now("clock of the large cores"), 3530, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the small cores")], 3610, 1e-9);
}

Test(lab_telemetry, tells_kinds_by_capacity_before_frequency)
{
    make_laptop("ryzen");
    put_for_cpus(0, 4, "cpu_capacity", "1024\n");
    put_for_cpus(4, 12, "cpu_capacity", "700\n");
    put_for_cpus(12, 16, "cpu_capacity", "250\n");
    open_tree();
    cr_assert_float_eq(read_now("clock of the large cores"), 3510, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the middle cores")], 3570, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the small cores")], 3630, 1e-9);
}

/* --- Counters ----------------------------------------------------------------------------------------------------- */

/* Power of so many joules more, which `write` makes, against the clock: the reading before lies between two times, and
 * so does the one after. */
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

Test(lab_telemetry, power_is_energy_by_time)
{
    open_laptop("meteor-lake");
    check_power("power of package-0", 0.4, more_energy);
}

Test(lab_telemetry, power_goes_on_when_a_counter_wraps_around)
{
    make_laptop("meteor-lake");
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
    make_laptop("meteor-lake");
    char path[128];
    snprintf(path, sizeof path, "mkdir -p %s/class/drm/card1/device/hwmon/hwmon3", root);
    cr_assert_eq(system(path), 0);
    put("class/drm/card1/device/hwmon/hwmon3/name", "xe\n");
    put("class/drm/card1/device/hwmon/hwmon3/energy1_label", "card\n");
    put("class/drm/card1/device/hwmon/hwmon3/energy1_input", "5000000\n");
    put("class/drm/card1/device/hwmon/hwmon3/energy2_input", "4000000\n");
    put("class/drm/card1/device/hwmon/hwmon3/temp2_input", "61000\n");
    open_tree();
    cr_assert(isnan(read_now("power of GPU card1 card")));
    cr_assert_float_eq(values[find_one("temperature of GPU card1 2")], 61, 1e-9);
    nanosleep(&(const struct timespec){.tv_nsec = 20000000}, NULL);
    put("class/drm/card1/device/hwmon/hwmon3/energy1_input", "5100000\n");
    cr_assert_gt(read_now("power of GPU card1 card"), 0);
    put("class/drm/card1/device/hwmon/hwmon3/energy1_input", "100\n");
    cr_assert(isnan(read_now("power of GPU card1 card")));
    cr_assert(has("power of GPU card1 2"));
}

Test(lab_telemetry, throttling_is_counted_from_the_first_reading_on)
{
    open_laptop("meteor-lake");
    cr_assert_eq(read_now("throttling of the package"), 0);
    put_for_cpus(0, 22, "thermal_throttle/package_throttle_count", "43\n");
    put_for_cpus(12, 14, "thermal_throttle/core_throttle_count", "9\n");
    cr_assert_eq(read_now("throttling of the package"), 3, "one counter, shown by each core");
    cr_assert_eq(values[find_one("throttling of the E cores")], 8);
    cr_assert_eq(values[find_one("throttling of the P cores")], 0);
}

Test(lab_telemetry, throttling_goes_on_when_a_counter_begins_again)
{
    open_laptop("meteor-lake");
    read_now("throttling of the package");
    put_for_cpus(0, 22, "thermal_throttle/package_throttle_count", "2\n");
    cr_assert_eq(read_now("throttling of the package"), 0);
    put_for_cpus(0, 22, "thermal_throttle/package_throttle_count", "7\n");
    cr_assert_eq(read_now("throttling of the package"), 5);
}

/* --- What goes wrong ---------------------------------------------------------------------------------------------- */

Test(lab_telemetry, a_machine_that_tells_nothing_has_notes_and_no_sources)
{
    open_tree();
    cr_assert_eq(lab_telemetry_count(telemetry), 0);
    cr_assert(note("the cores"));
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
    char path[64];
    for (int cpu = 0; cpu < 16; cpu++) {
        snprintf(path, sizeof path, "devices/system/cpu/cpu%d/cpufreq", cpu);
        take_away(path);
    }
    open_tree();
    cr_assert(note("no cpufreq driver"));
    cr_assert_not(has("clock of the cores"));
    cr_assert_not(has("governor of the cores"));
    cr_assert(has("temperature: Tctl"), "the rest is read all the same");
}

Test(lab_telemetry, a_file_that_vanishes_has_no_value_until_it_is_back)
{
    open_laptop("meteor-lake");
    put("class/thermal/thermal_zone9/temp", "");
    cr_assert(isnan(read_now("temperature: zone x86_pkg_temp")));
    put("class/thermal/thermal_zone9/temp", "73000\n");
    cr_assert_float_eq(read_now("temperature: zone x86_pkg_temp"), 73, 1e-9);
    put("class/power_supply/BAT0/power_now", "");
    cr_assert(isnan(read_now("power from BAT0")));
    put("class/power_supply/BAT0/power_now", "20000000\n");
    put("class/power_supply/BAT0/status", "");
    cr_assert(isnan(read_now("power from BAT0")), "of unknown sign");
    put("class/powercap/intel-rapl:0/energy_uj", "");
    cr_assert(isnan(read_now("power of package-0")));
    put("firmware/acpi/platform_profile", "");
    read_now("platform profile");
    cr_assert_str_eq(setting("platform profile"), "");
}

Test(lab_telemetry, a_core_that_is_off_line_is_not_in_the_mean)
{
    open_laptop("meteor-lake");
    put_for_cpus(20, 21, "cpufreq/scaling_cur_freq", "");
    put_for_cpus(21, 22, "cpufreq/scaling_cur_freq", "900000\n");
    cr_assert_float_eq(read_now("clock of the LP-E cores"), 900, 1e-9);
    put_for_cpus(21, 22, "cpufreq/scaling_cur_freq", "");
    cr_assert(isnan(read_now("clock of the LP-E cores")));
}

Test(lab_telemetry, a_counter_that_vanishes_for_a_while_adds_nothing_by_its_return)
{
    open_laptop("meteor-lake");
    cr_assert_eq(read_now("throttling of the E cores"), 0);
    put_for_cpus(12, 13, "thermal_throttle/core_throttle_count", "");
    cr_assert(isnan(read_now("throttling of the E cores")));
    put_for_cpus(12, 13, "thermal_throttle/core_throttle_count", "5\n");
    cr_assert_eq(read_now("throttling of the E cores"), 0);
}

Test(lab_telemetry, nonsense_is_no_value)
{
    static const char *const clocks[] = {
        "<unknown>\n", "-1400000\n", "0\n", "999999999999\n",
        "12.5.7\n",    "0x10\n",     " \n", "99999999999999999999999999999999999999999999\n"};
    open_laptop("meteor-lake");
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        put_for_cpus(20, 22, "cpufreq/scaling_cur_freq", clocks[i]);
        cr_assert(isnan(read_now("clock of the LP-E cores")), "%s", clocks[i]);
    }
    put("class/thermal/thermal_zone9/temp", "-273200\n");
    cr_assert(isnan(read_now("temperature: zone x86_pkg_temp")));
    put("class/power_supply/BAT0/power_now", "4294967295000\n");
    cr_assert(isnan(read_now("power from BAT0")));
    put("class/drm/card1/gt/gt0/rps_act_freq_mhz", "0\n");
    cr_assert_eq(read_now("clock of GPU card1"), 0, "it sleeps");
}

Test(lab_telemetry, a_processor_of_e_cores_alone_has_no_p_cores)
{
    make_laptop("meteor-lake");
    put("devices/cpu_core/cpus", "\n");
    put("devices/cpu_atom/cpus", "0-21\n");
    open_tree();
    cr_assert(has("clock of the E cores") && has("clock of the LP-E cores"));
    cr_assert_not(has("clock of the P cores"));
}

Test(lab_telemetry, a_pmu_of_low_power_cores_names_these)
{
    make_laptop("meteor-lake");
    put("devices/cpu_atom/cpus", "12-19\n");
    char command[128];
    snprintf(command, sizeof command, "mkdir %s/devices/cpu_lowpower", root);
    cr_assert_eq(system(command), 0);
    put("devices/cpu_lowpower/cpus", "20-21\n");
    open_tree();
    cr_assert_float_eq(read_now("clock of the LP-E cores"), 700, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the E cores")], 2400, 1e-9);
}

Test(lab_telemetry, lists_that_are_none_name_no_core)
{
    make_laptop("meteor-lake");
    put("devices/cpu_atom/cpus", "-,12-x,9999999999999999999\n");
    put("devices/cpu_core/cpus", "\n");
    open_tree();
    cr_assert(has("clock of the large cores") && has("clock of the small cores"), "by frequency, then");
    cr_assert(sysfs_list_has("0-3,8,10-11", 8) && sysfs_list_has("0-3,8,10-11", 11));
    cr_assert_not(sysfs_list_has("0-3,8,10-11", 9));
    cr_assert_not(sysfs_list_has("", 0));
    cr_assert_not(sysfs_list_has("5-", 4));
}

/* --- Permission, and what is no file ------------------------------------------------------------------------------ */

static int event_files[2]; /* a pipe: each reading takes a count */
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

Test(lab_telemetry, perf_counts_where_powercap_may_not_be_read)
{
    make_laptop("meteor-lake");
    take_away("class/powercap");
    cr_assert_eq(pipe(event_files), 0);
    count_event(1); /* of the look whether it counts at all */
    open_with(&(struct lab_telemetry_params){.sysfs = root, .event_open = open_event});
    cr_assert_eq(event_type, 21);
    cr_assert_eq(events_asked, 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5);
    cr_assert_not(note("power"), "%s", note("power"));
    count_event(UINT64_C(1) << 32); /* a joule */
    check_power("power of package-0", 1.5, more_counts);
    cr_assert_str_eq(lab_telemetry_source(telemetry, find("power of package-0"))->origin, "perf: power/energy-pkg/");
}

Test(lab_telemetry, an_event_that_never_counts_is_noted)
{
    make_laptop("meteor-lake");
    take_away("class/powercap");
    cr_assert_eq(pipe(event_files), 0);
    count_event(0);
    open_with(&(struct lab_telemetry_params){.sysfs = root, .event_open = open_event});
    cr_assert_not(has("power of package-0"));
    cr_assert(note("stands still"));
}

Test(lab_telemetry, says_what_would_permit_powercap_and_perf)
{
    make_laptop("meteor-lake");
    char command[128];
    snprintf(command, sizeof command, "chmod %s %s/class/powercap/*/energy_uj", geteuid() == 0 ? "400" : "0", root);
    cr_assert_eq(system(command), 0);
    cr_assert(geteuid() != 0 || seteuid(65534) == 0, "root may read everything");
    open_with(&(struct lab_telemetry_params){.sysfs = root, .event_open = refuse_event});
    cr_assert(note("RUN+=\"/bin/chgrp power /sys%p/energy_uj\""));
    cr_assert(note("kernel.perf_event_paranoid=0"));
    cr_assert_not(has("power of package-0"));
    cr_assert(has("clock of the P cores") && has("power from BAT0"));
    lab_telemetry_close(&telemetry);
    cr_assert(geteuid() != 65534 || seteuid(0) == 0);
}

/* The library beside this program. */
static void nvml_path(char *path, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    cr_assert_gt(length, 0);
    path[length] = '\0';
    snprintf(strrchr(path, '/'), 16, "/test_nvml.so");
}

Test(lab_telemetry, reads_nvidias_processors_by_their_library)
{
    char path[512];
    nvml_path(path, sizeof path);
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = path});
    cr_assert_float_eq(read_now("power of NVIDIA GeForce RTX 4060 #0"), 61.5, 1e-9);
    cr_assert_float_eq(values[find_one("clock of NVIDIA GeForce RTX 4060 #0")], 2370, 1e-9);
    cr_assert_float_eq(values[find_one("temperature of NVIDIA GeForce RTX 4050 #1")], 66, 1e-9);
    double load = values[find_one("load of NVIDIA GeForce RTX 4060 #0")];
    cr_assert_gt(read_now("load of NVIDIA GeForce RTX 4060 #0"), load);
    cr_assert_not(has("power of NVIDIA GeForce RTX 4050 #1"), "it has no sensor");
    cr_assert_eq(lab_telemetry_count(telemetry), 7);
}

Test(lab_telemetry, a_missing_nvidia_library_is_noted_where_its_driver_runs)
{
    open_with(&(struct lab_telemetry_params){.sysfs = root, .nvml = "/nonexistent/libnvidia-ml.so.1"});
    cr_assert_not(note("NVIDIA"), "nobody misses it");
    char command[128];
    snprintf(command, sizeof command, "mkdir -p %s/module/nvidia", root);
    cr_assert_eq(system(command), 0);
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
    cr_assert(isnan(values[find_one("temperature: Package id 0")]));
    cr_assert(isnan(values[find_one("power from BAT0")]));
    cr_assert_str_eq(setting("platform profile"), "");
    cr_assert_float_eq(values[find_one("temperature: zone x86_pkg_temp")], 72, 1e-9);
    cr_assert_float_eq(values[find_one("clock of the E cores")], 2400, 1e-9);
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
    take_away("class"); /* the files that are open are still read */
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

/* --- The sampler, and what is recorded ---------------------------------------------------------------------------- */

static char path[64], why[512];

static const char *ask(const char *sql)
{
    static char answer[256];
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    cr_assert(lab_store_open_to_read(path, &db, why, sizeof why), "%s", why);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(statement), SQLITE_ROW, "%s", sql);
    const char *text = (const char *)sqlite3_column_text(statement, 0);
    snprintf(answer, sizeof answer, "%s", text ? text : "NULL");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return answer;
}

static struct lab_store *begin_run(void)
{
    struct lab_store *store;
    snprintf(path, sizeof path, "%s/session.db", folder);
    cr_assert(lab_store_open(path, &store, why, sizeof why), "%s", why);
    lab_store_begin_run(store,
                        &(const struct lab_store_run){.source = "devices", .columns = 8, .rows = 8, .frames = 1});
    return store;
}

static void wait_ms(long ms)
{
    nanosleep(&(const struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Until so many values of a source are recorded that `condition` holds for, however long the sampler cannot run. */
static void await(struct lab_store *store, uint64_t count, const char *source, const char *condition)
{
    char sql[512];
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) >= %llu FROM telemetry JOIN telemetry_source USING (run, source) WHERE name = '%s' AND %s",
        (unsigned long long)count, source, condition);
    do {
        wait_ms(20);
        lab_store_commit(store);
    } while (strcmp(ask(sql), "1"));
}

Test(lab_telemetry, the_sampler_records_values_that_frames_are_found_by)
{
    struct lab_sampler_cost cost;
    struct lab_store *store = begin_run();
    open_laptop("meteor-lake");
    struct lab_sampler *sampler = lab_sampler_start(telemetry, store, 1000000);
    cr_assert_not_null(sampler);
    struct lab_session *session =
        lab_store_begin_session(store, &(const struct lab_store_session){.kind = LAB_SESSION_POLICY, .policy = "x"});
    await(store, 1, "platform profile", "1");
    const struct cox_band_report band = {.rows = 8};
    struct cox_frame_report frame = {.start_ns = now_ns(), .joules = -1, .band_count = 1, .bands = &band};
    put("class/thermal/thermal_zone9/temp", "90000\n");
    await(store, 1, "temperature: zone x86_pkg_temp", "value = 90");
    frame.end_ns = now_ns();
    lab_session_frame(session, &frame);
    put("firmware/acpi/platform_profile", "performance\n");
    await(store, 2, "platform profile", "1");
    lab_sampler_stop(&sampler, &cost);
    cr_assert_null(sampler);
    cr_assert_geq(cost.readings, 3);
    cr_assert_gt(cost.cpu_ns, 0);
    cr_assert(lab_store_close(&store, why, sizeof why), "%s", why);
    cr_assert_str_eq(ask("SELECT count(*) FROM telemetry_source"), "25");
    cr_assert_str_eq(ask("SELECT kind || '|' || part || '|' || unit || '|' || origin FROM telemetry_source"
                         " WHERE name = 'temperature: zone x86_pkg_temp'"),
                     "temperature|x86_pkg_temp|°C|class/thermal/thermal_zone9/temp");
    cr_assert_str_eq(ask("SELECT max(value) FROM telemetry JOIN telemetry_source USING (run, source)"
                         " JOIN session s USING (run) JOIN telemetry_session o ON o.session = s.session"
                         " JOIN frame f ON f.session = s.session"
                         " WHERE name = 'temperature: zone x86_pkg_temp' AND at_ns BETWEEN o.start_ns + f.start_ns"
                         " AND o.start_ns + f.start_ns + f.wall_ns"),
                     "90.0", "the value while the frame ran");
    cr_assert_str_eq(ask("SELECT group_concat(value, ' ') FROM (SELECT value FROM telemetry"
                         " JOIN telemetry_source USING (run, source) WHERE name = 'platform profile' ORDER BY at_ns)"),
                     "balanced performance", "a setting is recorded when it changes");
    cr_assert_str_eq(
        ask("SELECT count(*) > 3 * (SELECT count(*) FROM telemetry JOIN telemetry_source USING (run, source)"
            " WHERE name = 'power from BAT0') FROM telemetry JOIN telemetry_source USING (run, source)"
            " WHERE name = 'clock of the P cores'"),
        "1", "what changes slowly is read seldom");
}

Test(lab_telemetry, a_paused_sampler_reads_nothing_and_power_is_not_that_of_the_pause)
{
    struct lab_sampler_cost cost;
    struct lab_store *store = begin_run();
    open_laptop("meteor-lake");
    struct lab_sampler *sampler = lab_sampler_start(telemetry, store, 1000000);
    cr_assert_not_null(sampler);
    await(store, 1, "clock of the P cores", "1");
    lab_sampler_pause(sampler, true);
    put("class/powercap/intel-rapl:0/energy_uj", "81005000000\n"); /* 5 J more */
    uint64_t paused_ns = now_ns();
    wait_ms(50);
    uint64_t until_ns = now_ns();
    lab_store_values(store, paused_ns, &(const double){1}, 1); /* marks the two times */
    lab_store_values(store, until_ns, &(const double){2}, 1);
    lab_sampler_pause(sampler, false);
    await(store, 1, "clock of the P cores", "at_ns > (SELECT at_ns FROM telemetry WHERE source = 0 AND value = 2)");
    lab_sampler_stop(&sampler, &cost);
    struct lab_sampler *none = NULL;
    lab_sampler_pause(none, true);
    cr_assert(lab_store_close(&store, why, sizeof why), "%s", why);
    cr_assert_str_eq(ask("SELECT count(*) FROM telemetry"
                         " WHERE at_ns > (SELECT at_ns FROM telemetry WHERE source = 0 AND value = 1)"
                         " AND at_ns < (SELECT at_ns FROM telemetry WHERE source = 0 AND value = 2)"),
                     "0");
    cr_assert_str_eq(ask("SELECT max(at_ns) > (SELECT at_ns FROM telemetry WHERE source = 0 AND value = 2)"
                         " FROM telemetry"),
                     "1", "it goes on");
    cr_assert_str_eq(ask("SELECT count(*) FROM telemetry JOIN telemetry_source USING (run, source)"
                         " WHERE name = 'power of package-0' AND value > 0"),
                     "0", "what was counted in the pause is of no reading");
}

Test(lab_telemetry, telemetry_leaves_half_of_the_queue_to_frames_and_loses_none)
{
    struct lab_store *store = begin_run();
    double many[LAB_TELEMETRY_SOURCES_MAX] = {0};
    lab_store_source(store, 0, &(const struct lab_store_source){"n", "clock", "p", "MHz", "o"});
    for (uint64_t i = 0; i < 100000; i++) /* nothing is written meanwhile */
        lab_store_values(store, now_ns(), many, LAB_TELEMETRY_SOURCES_MAX);
    struct lab_session *session =
        lab_store_begin_session(store, &(const struct lab_store_session){.kind = LAB_SESSION_POLICY, .policy = "x"});
    lab_session_frame(session, &(const struct cox_frame_report){.joules = -1});
    cr_assert(lab_store_close(&store, why, sizeof why), "what is dropped of telemetry is no fault: %s", why);
    cr_assert_str_eq(ask("SELECT count(*) FROM frame"), "1");
    cr_assert_str_eq(ask("SELECT count(*) > 100 FROM telemetry"), "1");
}

Test(lab_telemetry, a_run_without_telemetry_has_no_starts_of_sessions)
{
    struct lab_store *store = begin_run();
    struct lab_session *session =
        lab_store_begin_session(store, &(const struct lab_store_session){.kind = LAB_SESSION_POLICY, .policy = "x"});
    lab_session_frame(session, &(const struct cox_frame_report){.joules = -1});
    cr_assert(lab_store_close(&store, why, sizeof why), "%s", why);
    cr_assert_str_eq(ask("SELECT (SELECT count(*) FROM telemetry_session) || ' ' || count(*) FROM frame"), "0 1");
}

Test(lab_telemetry, a_sampler_that_was_never_started_costs_nothing)
{
    struct lab_sampler *none = NULL;
    struct lab_sampler_cost cost = {9, 9};
    lab_sampler_stop(&none, &cost);
    cr_assert_eq(cost.readings, 0);
}
