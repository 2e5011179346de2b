/* Coxswain: split every frame over all OpenCL devices of a machine.
 *
 * Includes every public header except coxswain/gl.h, coxswain/libav.h and coxswain/opencl.h, which
 * are for applications with objects of other libraries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COXSWAIN_COXSWAIN_H
#define COXSWAIN_COXSWAIN_H

#include <coxswain/filter.h>
#include <coxswain/inspect.h>
#include <coxswain/runtime.h>
#include <coxswain/sched.h>
#include <coxswain/session.h>
#include <coxswain/status.h>
#include <coxswain/dolby.h>
#include <coxswain/stream.h>
#include <coxswain/tonemap.h>
#include <coxswain/version.h>
#include <coxswain/video.h>

#endif
