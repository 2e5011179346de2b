/* The kernels of cox-tonemap's usual films, compiled before they are needed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_COMPILE_H
#define DEVICES_COMPILE_H

#include <coxswain/coxswain.h>

/* For each kind of film a line on standard output, with the time that it took on all devices
 * together. The runtime keeps the kernels in its cache, drivers in theirs. Returns the first error.
 * Blocks: for compilation. */
cox_status compile_films(cox_runtime *runtime);

#endif
