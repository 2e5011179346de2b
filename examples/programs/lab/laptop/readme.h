/* The README of the archive: what its files are, what made them, how to check them.
 * Thread-safety: no state.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_EXAMPLES_LAB_LAPTOP_README_H
#define COX_EXAMPLES_LAB_LAPTOP_README_H

#include "progress.h"

#include <stdio.h>

void laptop_readme(const struct laptop_records *records, FILE *to);

#endif
