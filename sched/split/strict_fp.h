/* Turn off fused multiply-add: the same measurements must give the same split on every machine. GCC
 * does not know the pragma, but does not contract in ISO mode (-std=c11) or with -ffp-contract=off.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_SPLIT_STRICT_FP_H
#define COX_SPLIT_STRICT_FP_H

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#endif
