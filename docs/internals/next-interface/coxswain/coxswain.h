/* The library without its OpenCL and FFmpeg parts.
 * SPDX-License-Identifier: Apache-2.0 */
#include <coxswain/stream.h>
