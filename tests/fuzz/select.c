/* Fuzz target: the device selection language. Parsing must not crash. A text is refused with one line, or each
 * entry, parsed again as it was written, has the same meaning.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include "opencl/select.h"

#include <coxswain/sched.h>

static void check_entry(const struct cox__select_entry *entry)
{
    CHECK(*entry->written && memchr(entry->written, 0, sizeof entry->written));
    CHECK(memchr(entry->text, 0, sizeof entry->text));
    CHECK((entry->kind == COX__SELECT_TEXT) == (entry->text[0] != 0));
    CHECK((entry->kind == COX__SELECT_TYPE) == (entry->type != 0));
    CHECK(!strpbrk(entry->text, "=:,ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
    CHECK(entry->subdevices <= COX_DEVICES_MAX && !entry->subdevices == !entry->units && entry->units <= 65535);
    CHECK(entry->platform <= 65535 && entry->device <= 65535);
    CHECK(entry->mode == 0 || entry->mode == COX_MODE_SHARED || entry->mode == COX_MODE_MAPPED ||
          entry->mode == COX_MODE_STAGED);
}

/* An entry alone means the same as among others. */
static void check_again(const struct cox__select_entry *entry)
{
    struct cox__selection again;
    CHECK(cox__cl_select_parse(entry->written, &again, NULL, 0) == COX_OK);
    CHECK(again.count == 1 && !memcmp(&again.entries[0], entry, sizeof *entry));
}

static void check_match(const struct cox__select_entry *entry, const char *text)
{
    struct cox_device_info info = {.type = COX_DEVICE_GPU, .platform_index = 1, .device_index = 2};
    strncpy(info.name, text, sizeof info.name - 1);
    bool matches = cox__cl_select_match(entry, &info);
    switch (entry->kind) {
    case COX__SELECT_ALL:
        CHECK(matches);
        break;
    case COX__SELECT_TYPE:
        CHECK(matches == (entry->type == COX_DEVICE_GPU));
        break;
    case COX__SELECT_INDEX:
        CHECK(matches == (entry->platform == 1 && entry->device == 2));
        break;
    case COX__SELECT_TEXT:
        /* The platform has exactly this name. */
        memset(info.name, 0, sizeof info.name);
        memcpy(info.platform, entry->text, sizeof entry->text);
        CHECK(cox__cl_select_match(entry, &info));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cox__selection selection;
    char why[160];
    char *text = fuzz_text(data, size);
    memset(&selection, 0xa5, sizeof selection);
    memset(why, 0xa5, sizeof why);
    cox_status status = cox__cl_select_parse(text, &selection, why, sizeof why);
    CHECK(memchr(why, 0, sizeof why));
    CHECK((status == COX_OK) == !*why);
    if (status != COX_OK) {
        CHECK(status == COX_E_INVALID && selection.count == 0);
        CHECK(cox__cl_select_parse(text, &selection, why, 1) == status && !*why);
    }
    CHECK(selection.count <= COX__SELECT_MAX && (status != COX_OK || selection.count >= 1));
    for (uint32_t i = 0; i < selection.count; i++) {
        check_entry(&selection.entries[i]);
        check_again(&selection.entries[i]);
        check_match(&selection.entries[i], text);
    }
    free(text);
    return 0;
}
