/* Names of OpenCL C's types, as sources and drivers write them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_BASE_TYPE_NAME_H
#define COX_BASE_TYPE_NAME_H

#include <stdint.h>

/* Bytes of a scalar or vector type, such as "uchar" or "float4"; 0 for any other. A vector of three
 * has the size of four. */
uint32_t cox__type_name_bytes(const char *type);

#endif
