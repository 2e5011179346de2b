/* The device selection language: parsing and matching.
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
    cox_status status = cox__select_parse(text, &selection, why, sizeof why);
    cr_assert_eq(status, COX_OK, "'%s' is refused: %s", text ? text : "(null)", why);
    cr_assert_eq(selection.count, entries, "'%s' gives %u entries", text ? text : "(null)", selection.count);
    cr_assert_str_empty(why);
}

/* `text` is refused with one sentence that contains `about`. */
static void refuse(const char *text, const char *about)
{
    memset(why, '#', sizeof why);
    cr_assert_eq(cox__select_parse(text, &selection, why, sizeof why), COX_E_INVALID, "'%s' is accepted", text);
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

Test(select, nothing_selects_every_device)
{
    const char *const nothings[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        accept(nothings[i], 1);
        cr_assert_eq(selection.entries[0].kind, COX__SELECT_ALL);
        cr_assert_eq(selection.entries[0].subdevices, 0);
        cr_assert_eq(selection.entries[0].mode, 0);
        cr_assert_str_eq(selection.entries[0].written, "all");
    }
}

Test(select, types_are_recognised_in_any_case)
{
    accept("cpu,GPU,Accelerator,all", 4);
    const enum cox_device_type types[] = {COX_DEVICE_CPU, COX_DEVICE_GPU, COX_DEVICE_ACCELERATOR};
    for (size_t i = 0; i < 3; i++) {
        cr_assert_eq(selection.entries[i].kind, COX__SELECT_TYPE);
        cr_assert_eq(selection.entries[i].type, types[i]);
    }
    cr_assert_eq(selection.entries[3].kind, COX__SELECT_ALL);
    cr_assert_str_eq(selection.entries[1].written, "GPU");
}

Test(select, a_number_pair_is_platform_and_device)
{
    accept("0.1,12.345", 2);
    cr_assert_eq(selection.entries[0].kind, COX__SELECT_INDEX);
    cr_assert_eq(selection.entries[0].platform, 0);
    cr_assert_eq(selection.entries[0].device, 1);
    cr_assert_eq(selection.entries[1].platform, 12);
    cr_assert_eq(selection.entries[1].device, 345);
}

Test(select, anything_else_is_part_of_a_name)
{
    accept("Arc A770,630,v1.2.3,1.,.5,cpus", 6);
    for (uint32_t i = 0; i < 6; i++)
        cr_assert_eq(selection.entries[i].kind, COX__SELECT_TEXT);
    cr_assert_str_eq(selection.entries[0].text, "arc a770");
    cr_assert_str_eq(selection.entries[0].written, "Arc A770");
    cr_assert_str_eq(selection.entries[5].text, "cpus");
}

Test(select, a_suffix_makes_sub_devices)
{
    accept("cpu:2x1,:4X2,0.0:32x65535,pocl:1x1", 4);
    const uint32_t count[] = {2, 4, 32, 1}, units[] = {1, 2, 65535, 1};
    const enum cox__select_kind kinds[] = {COX__SELECT_TYPE, COX__SELECT_ALL, COX__SELECT_INDEX, COX__SELECT_TEXT};
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(selection.entries[i].subdevices, count[i]);
        cr_assert_eq(selection.entries[i].units, units[i]);
        cr_assert_eq(selection.entries[i].kind, kinds[i]);
    }
    cr_assert_str_eq(selection.entries[0].written, "cpu:2x1");
    cr_assert_str_eq(selection.entries[3].text, "pocl");
}

Test(select, an_equals_sign_sets_the_memory_mode)
{
    accept("gpu=staged,cpu:2x1=Shared,=mapped,tesla", 4);
    const enum cox_memory_mode modes[] = {COX_MODE_STAGED, COX_MODE_SHARED, COX_MODE_MAPPED, 0};
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(selection.entries[i].mode, modes[i]);
    cr_assert_eq(selection.entries[1].subdevices, 2);
    cr_assert_eq(selection.entries[2].kind, COX__SELECT_ALL);
}

Test(select, spaces_around_the_parts_do_not_matter)
{
    accept("  cpu : 2x1 = mapped ,\tArc A770 ", 2);
    cr_assert_eq(selection.entries[0].kind, COX__SELECT_TYPE);
    cr_assert_eq(selection.entries[0].units, 1);
    cr_assert_eq(selection.entries[0].mode, COX_MODE_MAPPED);
    cr_assert_str_eq(selection.entries[1].text, "arc a770");
}

Test(select, refuses_empty_entries)
{
    const char *const texts[] = {",", "cpu,", ",cpu", "cpu,,gpu", " ", "cpu, ,gpu"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], "empty entry");
}

Test(select, refuses_malformed_sub_devices)
{
    const char *const texts[] = {"cpu:",     "cpu:2",    "cpu:x",       "cpu:2x",           "cpu:x2",
                                 "cpu:0x1",  "cpu:1x0",  "cpu:-1x1",    "cpu:2x1x1",        "cpu:2*1",
                                 "cpu:+2x1", "cpu:2 x1", "cpu:2x65536", "cpu:4294967297x1", "cpu:2x1 1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        refuse(texts[i], ":NxC");
    refuse("cpu:33x1", "at most 32 sub-devices");
}

Test(select, refuses_unknown_and_repeated_modes)
{
    refuse("gpu=", "shared, mapped or staged");
    refuse("gpu=pinned", "shared, mapped or staged");
    refuse("gpu=stagedx", "shared, mapped or staged");
    refuse("gpu=mapped:2x1", "shared, mapped or staged");
    refuse("gpu=mapped=staged", "at most one");
    refuse("cpu:2x1:2x1", "at most one");
}

Test(select, refuses_numbers_that_overflow)
{
    refuse("0.65536", "numbers are at most");
    refuse("99999999999999999999.0", "numbers are at most");
    accept("65535.65535", 1);
}

Test(select, names_the_offending_entry)
{
    refuse("cpu,gpu=fast,0.1", "'gpu=fast'");
}

Test(select, length_limits_are_checked_not_cut)
{
    char text[400];
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
}

Test(select, thirty_two_entries_and_no_more)
{
    char text[33 * 4 + 1] = "";
    for (int i = 0; i < 32; i++)
        strcat(text, i ? ",cpu" : "cpu");
    accept(text, 32);
    strcat(text, ",cpu");
    refuse(text, "more than 32 entries");
}

Test(select, works_without_a_place_for_the_sentence)
{
    cr_assert_eq(cox__select_parse("cpu", &selection, NULL, 0), COX_OK);
    cr_assert_eq(cox__select_parse(",", &selection, NULL, 0), COX_E_INVALID);
    cr_assert_eq(cox__select_parse("cpu", NULL, why, sizeof why), COX_E_INVALID);
    char tiny[5] = "####";
    cr_assert_eq(cox__select_parse(",", &selection, tiny, sizeof tiny), COX_E_INVALID);
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
        cr_assert_eq(cox__select_match(&selection.entries[0], &gpu), cases[i].gpu, "'%s' and the GPU", cases[i].text);
        cr_assert_eq(cox__select_match(&selection.entries[0], &cpu), cases[i].cpu, "'%s' and the CPU", cases[i].text);
    }
    cr_assert_not(cox__select_match(NULL, &gpu));
    cr_assert_not(cox__select_match(&selection.entries[0], NULL));
}

/* Any text at all either parses into entries within bounds or is refused with a terminated sentence. */
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
        cox_status status = cox__select_parse(text, &selection, why, sizeof why);
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
