/* The language that selects devices: parsing and matching.
 * SPDX-License-Identifier: Apache-2.0 */
#include "opencl/select.h"

#include <coxswain/sched.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct cox__selection selection;
static char why[200];

static void accept(const char *text, uint32_t entries)
{
    cox_status status = cox__cl_select_parse(text, &selection, why, sizeof why);
    cr_assert_eq(status, COX_OK, "'%s' is refused: %s", text ? text : "(null)", why);
    cr_assert_eq(selection.count, entries, "'%s' gives %u entries", text ? text : "(null)", selection.count);
    cr_assert_str_empty(why);
}

/* `text` is refused with one sentence that contains `about`. */
static void refuse(const char *text, const char *about)
{
    memset(why, '#', sizeof why);
    cr_assert_eq(cox__cl_select_parse(text, &selection, why, sizeof why), COX_E_INVALID, "'%s' is accepted", text);
    cr_assert_eq(selection.count, 0, "'%s' leaves entries behind", text);
    cr_assert_not_null(memchr(why, '\0', sizeof why));
    cr_assert_not_null(strstr(why, about), "'%s' is refused with: %s", text, why);
    cr_assert_null(strchr(why, '\n'));
}

static struct cox_device_info device(const char *platform, const char *name, enum cox_device_type type, uint32_t p,
                                     uint32_t d)
{
    struct cox_device_info info = {.type = type, .platform_index = p, .device_index = d};
    snprintf(info.platform, sizeof info.platform, "%s", platform);
    snprintf(info.name, sizeof info.name, "%s", name);
    return info;
}

/* The selection as text: kind, sub-devices and mode of each entry, and how it was written in brackets. */
static const char *selected(void)
{
    static const char *const modes[] = {
        [COX_MODE_SHARED] = "=shared", [COX_MODE_MAPPED] = "=mapped", [COX_MODE_STAGED] = "=staged"};
    static char text[1000];
    size_t used = 0;
    for (uint32_t i = 0; i < selection.count; i++) {
        const struct cox__select_entry *entry = &selection.entries[i];
        char what[300];
        if (entry->kind == COX__SELECT_INDEX)
            snprintf(what, sizeof what, "device %u of platform %u", entry->device, entry->platform);
        else if (entry->kind == COX__SELECT_TEXT)
            snprintf(what, sizeof what, "'%s'", entry->text);
        else
            strcpy(what, entry->kind == COX__SELECT_ALL          ? "all"
                         : entry->type == COX_DEVICE_CPU         ? "CPUs"
                         : entry->type == COX_DEVICE_GPU         ? "GPUs"
                         : entry->type == COX_DEVICE_ACCELERATOR ? "accelerators"
                                                                 : "?");
        if (entry->subdevices || entry->units)
            snprintf(what + strlen(what), 30, ":%ux%u", entry->subdevices, entry->units);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%s [%s]", i ? ", " : "", what,
                                 entry->mode ? modes[entry->mode] : "", entry->written);
    }
    return text;
}

Test(select, entries_are_types_numbers_or_parts_of_a_name_with_suffixes)
{
    static const struct {
        const char *text;
        uint32_t count;
        const char *selected;
    } cases[] = {
        {NULL, 1, "all [all]"},
        {"", 1, "all [all]"},
        {"cpu,GPU,Accelerator,all", 4, "CPUs [cpu], GPUs [GPU], accelerators [Accelerator], all [all]"},
        {"0.1,12.345", 2, "device 1 of platform 0 [0.1], device 345 of platform 12 [12.345]"},
        {"65535.65535", 1, "device 65535 of platform 65535 [65535.65535]"},
        {"Arc A770,630,v1.2.3", 3, "'arc a770' [Arc A770], '630' [630], 'v1.2.3' [v1.2.3]"},
        {"1.,.5,cpus", 3, "'1.' [1.], '.5' [.5], 'cpus' [cpus]"},
        {"cpu:2x1,:4X2", 2, "CPUs:2x1 [cpu:2x1], all:4x2 [:4X2]"},
        {"0.0:32x65535,pocl:1x1", 2, "device 0 of platform 0:32x65535 [0.0:32x65535], 'pocl':1x1 [pocl:1x1]"},
        {"gpu=staged,cpu:2x1=Shared", 2, "GPUs=staged [gpu=staged], CPUs:2x1=shared [cpu:2x1=Shared]"},
        {"=mapped,tesla", 2, "all=mapped [=mapped], 'tesla' [tesla]"},
        {"  cpu : 2x1 = mapped ,\tArc A770 ", 2, "CPUs:2x1=mapped [cpu : 2x1 = mapped], 'arc a770' [Arc A770]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        accept(cases[i].text, cases[i].count);
        cr_assert_str_eq(selected(), cases[i].selected, "%s", selected());
    }
}

Test(select, refuses_what_is_malformed_with_the_reason)
{
    static const char empty[] = "empty entry", suffix[] = ":NxC", modes[] = "shared, mapped or staged",
                      once[] = "at most one", numbers[] = "numbers are at most";
    static const char *const cases[][2] = {{",", empty},
                                           {"cpu,", empty},
                                           {",cpu", empty},
                                           {"cpu,,gpu", empty},
                                           {" ", empty},
                                           {"cpu, ,gpu", empty},
                                           {"cpu:", suffix},
                                           {"cpu:2", suffix},
                                           {"cpu:x", suffix},
                                           {"cpu:2x", suffix},
                                           {"cpu:x2", suffix},
                                           {"cpu:0x1", suffix},
                                           {"cpu:1x0", suffix},
                                           {"cpu:-1x1", suffix},
                                           {"cpu:2x1x1", suffix},
                                           {"cpu:2*1", suffix},
                                           {"cpu:+2x1", suffix},
                                           {"cpu:2 x1", suffix},
                                           {"cpu:2x65536", suffix},
                                           {"cpu:4294967297x1", suffix},
                                           {"cpu:2x1 1", suffix},
                                           {"cpu:33x1", "at most 32 sub-devices"},
                                           {"gpu=", modes},
                                           {"gpu=pinned", modes},
                                           {"gpu=stagedx", modes},
                                           {"gpu=mapped:2x1", modes},
                                           {"gpu=mapped=staged", once},
                                           {"cpu:2x1:2x1", once},
                                           {"0.65536", numbers},
                                           {"99999999999999999999.0", numbers},
                                           {"cpu,gpu=fast,0.1", "'gpu=fast'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refuse(cases[i][0], cases[i][1]);
}

Test(select, limits_are_checked_not_cut)
{
    char text[400], many[33 * 4 + 1] = "";
    memset(text, 'a', sizeof text);
    text[95] = '\0';
    accept(text, 1);
    cr_assert_eq(strlen(selection.entries[0].text), 95);
    text[95] = 'a';
    text[96] = '\0';
    refuse(text, "at most 95 characters");
    text[96] = 'a';
    text[399] = '\0';
    refuse(text, "longer than 127 characters");
    for (int i = 0; i < 32; i++)
        strcat(many, i ? ",cpu" : "cpu");
    accept(many, 32);
    strcat(many, ",cpu");
    refuse(many, "more than 32 entries");
}

Test(select, works_without_a_place_for_the_sentence)
{
    cr_assert_eq(cox__cl_select_parse("cpu", &selection, NULL, 0), COX_OK);
    cr_assert_eq(cox__cl_select_parse(",", &selection, NULL, 0), COX_E_INVALID);
    cr_assert_eq(cox__cl_select_parse("cpu", NULL, why, sizeof why), COX_E_INVALID);
    char tiny[5] = "####";
    cr_assert_eq(cox__cl_select_parse(",", &selection, tiny, sizeof tiny), COX_E_INVALID);
    cr_assert_eq(strlen(tiny), 4);
}

Test(select, matches_by_type_index_and_name)
{
    struct cox_device_info gpu = device("Intel(R) OpenCL HD Graphics", "Intel(R) UHD Graphics 630", COX_DEVICE_GPU, 1,
                                        0);
    struct cox_device_info cpu = device("Portable Computing Language", "pthread-AMD EPYC", COX_DEVICE_CPU, 0, 0);
    static const struct {
        const char *text;
        bool gpu, cpu;
    } cases[] = {
        {"all", true, true},      {"gpu", true, false},
        {"cpu", false, true},     {"accelerator", false, false},
        {"1.0", true, false},     {"0.0", false, true},
        {"0.1", false, false},    {"uhd", true, false},
        {"630", true, false},     {"PORTABLE comp", false, true},
        {"epyc", false, true},    {"graphics", true, false},
        {"nvidia", false, false}, {"630 ", true, false},
        {"6300", false, false},   {"epyc:2x1=mapped", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        accept(cases[i].text, 1);
        cr_assert_eq(cox__cl_select_match(&selection.entries[0], &gpu), cases[i].gpu, "'%s' and the GPU",
                     cases[i].text);
        cr_assert_eq(cox__cl_select_match(&selection.entries[0], &cpu), cases[i].cpu, "'%s' and the CPU",
                     cases[i].text);
    }
    cr_assert_not(cox__cl_select_match(NULL, &gpu));
    cr_assert_not(cox__cl_select_match(&selection.entries[0], NULL));
}

/* Any text is either parsed into valid entries, or refused with a terminated sentence. */
Test(select, survives_arbitrary_text)
{
    static const char letters[] = "cpugxal,.:=0123456789 \tX-\xc3\xa9";
    uint32_t seed = 12345;
    size_t accepted = 0, refused = 0;
    for (int round = 0; round < 100000; round++) {
        char text[24];
        seed = seed * 1664525u + 1013904223u;
        size_t length = (seed >> 8) % sizeof text;
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1664525u + 1013904223u;
            text[i] = letters[(seed >> 8) % (sizeof letters - 1)];
        }
        text[length] = '\0';
        cox_status status = cox__cl_select_parse(text, &selection, why, sizeof why);
        if (status == COX_OK) {
            accepted++;
            size_t commas = 0;
            for (size_t i = 0; i < length; i++)
                commas += text[i] == ',';
            cr_assert_eq(selection.count, commas + 1);
            for (uint32_t i = 0; i < selection.count; i++) {
                const struct cox__select_entry *entry = &selection.entries[i];
                cr_assert_eq(entry->subdevices == 0, entry->units == 0);
                cr_assert_leq(entry->subdevices, (uint32_t)COX_DEVICES_MAX);
                cr_assert_eq(entry->kind == COX__SELECT_TEXT, entry->text[0] != '\0');
            }
        } else {
            refused++;
            cr_assert_eq(status, COX_E_INVALID);
            cr_assert_neq(why[0], '\0');
            cr_assert_eq(selection.count, 0);
        }
    }
    cr_assert_gt(accepted, 1000);
    cr_assert_gt(refused, 1000);
}
