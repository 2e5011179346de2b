/* The kernels of cox-tonemap's usual films, compiled before they are needed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DEVICES_COMPILE_H
#define DEVICES_COMPILE_H

#include <coxswain/coxswain.h>

/* Compile the kernels of each kind of film, and print a line with the time on all devices together.
 * The runtime and the drivers keep the kernels in their caches. Returns the first error. Blocks for
 * the compilation. */
cox_status compile_films(cox_runtime *runtime);

#endif
