/* The headers and libraries that an application gives.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_API_COMPILE_H
#define COX_API_COMPILE_H

#include "base/log.h"

#include <coxswain/session.h>

/* Check the names and texts of both lists. Errors: COX_E_INVALID (the log says which). */
cox_status cox__compile_check(const struct cox_source *headers, const struct cox_source *libraries,
                              const struct cox__log *log);

#endif
