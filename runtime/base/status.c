/* Texts of enumerations.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/session.h>

const char *cox_version(void)
{
    return COX_VERSION_STRING;
}

const char *cox_status_text(cox_status status)
{
    switch (status) {
#define CASE(name, value, text) \
    case name:                  \
        return text;
        COX_STATUS_MAP(CASE)
#undef CASE
    }

    return "unknown status";
}

const char *cox_status_name(cox_status status)
{
    switch (status) {
#define CASE(name, value, text) \
    case name:                  \
        return #name;
        COX_STATUS_MAP(CASE)
#undef CASE
    }

    return "unknown status";
}

const char *cox_device_type_name(enum cox_device_type type)
{
    switch (type) {
    case COX_DEVICE_CPU:
        return "cpu";
    case COX_DEVICE_GPU:
        return "gpu";
    case COX_DEVICE_ACCELERATOR:
        return "accelerator";
    case COX_DEVICE_OTHER:
        return "other";
    }

    return "unknown";
}

const char *cox_memory_mode_name(enum cox_memory_mode mode)
{
    switch (mode) {
    case COX_MODE_SHARED:
        return "shared";
    case COX_MODE_MAPPED:
        return "mapped";
    case COX_MODE_STAGED:
        return "staged";
    }

    return "unknown";
}

const char *cox_host_memory_name(enum cox_host_memory memory)
{
    switch (memory) {
    case COX_HOST_MEMORY_UNKNOWN:
        break;
    case COX_HOST_MEMORY_WRAPPED:
        return "wrapped";
    case COX_HOST_MEMORY_COPIED:
        return "copied";
    }

    return "unknown";
}

const char *cox_fma_name(enum cox_fma fma)
{
    switch (fma) {
    case COX_FMA_NONE:
        return "none";
    case COX_FMA_SLOW:
        return "slow";
    case COX_FMA_FAST:
        return "fast";
    }

    return "unknown";
}

const char *cox_arithmetic_name(enum cox_arithmetic arithmetic)
{
    switch (arithmetic) {
    case COX_ARITHMETIC_AUTO:
        return "auto";
    case COX_ARITHMETIC_MULADD:
        return "muladd";
    case COX_ARITHMETIC_FMA:
        return "fma";
    }

    return "unknown";
}

const char *cox_device_state_name(enum cox_device_state state)
{
    switch (state) {
    case COX_DEVICE_ACTIVE:
        return "active";
    case COX_DEVICE_DRAINING:
        return "draining";
    case COX_DEVICE_QUARANTINED:
        return "quarantined";
    case COX_DEVICE_REBUILDING:
        return "rebuilding";
    case COX_DEVICE_PROBATION:
        return "on probation";
    case COX_DEVICE_JOINING:
        return "joining";
    case COX_DEVICE_ABSENT:
        return "absent";
    }

    return "unknown";
}
