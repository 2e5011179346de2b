/* The F distribution.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_F_DISTRIBUTION_H
#define COX_EXAMPLES_LAB_F_DISTRIBUTION_H

/* The probability that F with these degrees of freedom is at least `f`. NaN for NaN. */
double f_tail(double f, double degrees, double error_degrees);

#endif
