/* Forbids fused multiply-adds: the same input must give the same result on every machine. GCC does
 * not know the pragma, but does not contract in ISO mode (-std=c11).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STRICT_FP_H
#define STRICT_FP_H

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#endif
