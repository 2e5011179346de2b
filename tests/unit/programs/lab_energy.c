/* The processor's energy counters, in a simulated /sys/class/powercap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lab/telemetry/energy.h"
#include "support/folder.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char why[600];

static struct lab_energy *energy;

static void end(void)
{
    lab_energy_close(&energy);
    cr_assert_null(energy);
    remove_folder();
}

TestSuite(lab_energy, .init = make_folder, .fini = end);

static void put_file(const char *domain, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, domain);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", folder, domain, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

static void set_counter(const char *domain, uint64_t uj)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, uj);
    put_file(domain, "energy_uj", text);
}

static void make_domain(const char *domain, const char *name, uint64_t uj)
{
    put_file(domain, "name", name);
    put_file(domain, "max_energy_range_uj", "262143328850");
    set_counter(domain, uj);
}

static void open_meter(void)
{
    cr_assert(lab_energy_open(folder, &energy, why, sizeof why), "%s", why);
}

static void joules_are(double joules)
{
    cr_assert_float_eq(lab_energy_joules(energy), joules, 1e-9, "%g", lab_energy_joules(energy));
}

static void refuse(const char *root, const char *words)
{
    cr_assert_not(lab_energy_open(root, &energy, why, sizeof why));
    cr_assert_null(energy);
    cr_assert_not_null(strstr(why, words), "%s", why);
}

Test(lab_energy, counts_joules_from_its_opening)
{
    make_domain("intel-rapl:0", "package-0", 5000000);
    open_meter();
    joules_are(0);
    set_counter("intel-rapl:0", 7500000);
    joules_are(2.5);
    joules_are(2.5);
    cr_assert_str_eq(lab_energy_name(energy), "RAPL: package-0");
}

Test(lab_energy, sums_packages_and_nothing_that_is_in_them_already)
{
    make_domain("intel-rapl", "control type, not a domain", 0);
    make_domain("intel-rapl:0", "package-0", 0);
    make_domain("intel-rapl:0:0", "core", 0);
    make_domain("intel-rapl:1", "package-1-die-0", 0);
    make_domain("intel-rapl:2", "psys", 0);
    make_domain("intel-rapl-mmio:0", "package-0", 0);
    make_domain("dtpm:0", "package-0", 0);
    open_meter();
    const char *const domains[] = {"intel-rapl", "intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0", "dtpm:0"};
    for (int i = 0; i < 5; i++)
        set_counter(domains[i], 1000000000);
    set_counter("intel-rapl:0", 1000000);
    set_counter("intel-rapl:1", 3000000);
    joules_are(4);
    cr_assert_str_eq(lab_energy_name(energy), "RAPL: package-0, package-1-die-0");
}

Test(lab_energy, goes_on_when_a_counter_wraps_around)
{
    make_domain("intel-rapl:0", "package-0", 262143000000);
    open_meter();
    set_counter("intel-rapl:0", 671150);
    joules_are((328850 + 671150) / 1e6);
    set_counter("intel-rapl:0", 1671150);
    joules_are(2);
}

Test(lab_energy, a_wrap_of_unknown_length_adds_nothing)
{
    make_domain("intel-rapl:0", "package-0", 900000000);
    put_file("intel-rapl:0", "max_energy_range_uj", "nonsense");
    open_meter();
    set_counter("intel-rapl:0", 1000000);
    joules_are(0);
    set_counter("intel-rapl:0", 2000000);
    joules_are(1);
}

Test(lab_energy, says_unknown_while_a_counter_cannot_be_read)
{
    make_domain("intel-rapl:0", "package-0", 1000000);
    open_meter();
    put_file("intel-rapl:0", "energy_uj", "-5");
    cr_assert_lt(lab_energy_joules(energy), 0);
    put_file("intel-rapl:0", "energy_uj", "");
    cr_assert_lt(lab_energy_joules(energy), 0);
    set_counter("intel-rapl:0", 3000000);
    joules_are(2);
}

Test(lab_energy, refuses_a_machine_without_a_meter)
{
    make_domain("intel-rapl:0", "psys", 0);
    refuse(folder, "no RAPL package");
    refuse("/nonexistent", "/nonexistent");
}

Test(lab_energy, says_that_a_counter_may_not_be_read)
{
    char path[128];
    make_domain("intel-rapl:0", "package-0", 0);
    snprintf(path, sizeof path, "%s/intel-rapl:0/energy_uj", folder);
    unlink(path); /* root may read everything, so remove the file */
    refuse(folder, "cannot read");
    make_domain("intel-rapl:0", "package-0", 0);
    put_file("intel-rapl:0", "energy_uj", "many");
    refuse(folder, "cannot read");
}
