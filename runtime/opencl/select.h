/* The device selection language of cox_runtime_params.devices: parsing and matching, without
 * OpenCL.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_OPENCL_SELECT_H
#define COX_OPENCL_SELECT_H

#include <coxswain/runtime.h>

enum { COX__SELECT_MAX = 32 };

enum cox__select_kind { COX__SELECT_ALL, COX__SELECT_TYPE, COX__SELECT_INDEX, COX__SELECT_TEXT };

struct cox__select_entry {
    enum cox__select_kind kind;
    enum cox_device_type type; /* TYPE */
    uint32_t platform, device; /* INDEX */
    char text[96];             /* TEXT, in lower case */
    char written[128];         /* the entry as the user wrote it, for messages */
    uint32_t subdevices;       /* 0 = the whole device */
    uint32_t units;            /* compute units of each */
    enum cox_memory_mode mode; /* 0 = the runtime decides */
};

struct cox__selection {
    uint32_t count;
    struct cox__select_entry entries[COX__SELECT_MAX];
};

/* Parse a selection; NULL or "" = one entry ALL. Errors: COX_E_INVALID with one sentence in
 * `why`. */
cox_status cox__cl_select_parse(const char *text, struct cox__selection *out, char *why,
                                size_t why_bytes);

/* Whether an entry selects a device. Uses the type, name, platform, platform_index and device_index
 * of `info`. */
bool cox__cl_select_match(const struct cox__select_entry *entry,
                          const struct cox_device_info *info);

#endif
