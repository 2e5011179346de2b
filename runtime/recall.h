/* A session's memory: what makes sessions of one kind, when an earlier one is recalled and when this one is kept.
 *
 * Sessions are of one kind if they run the same kernels (source, build options, launch geometry, arguments) over the same
 * shape (rows, columns, bindings with their pitches and contracts) on the same devices (identity, driver, compute units,
 * memory mode; all of them and no other), with the same policy and objective.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_RECALL_H
#define COX_RUNTIME_RECALL_H

#include "engine.h"

/* Begin a session with what an earlier one of its kind measured, if there is one: gives it to the policy and sets the units'
 * solo_ns. After the policy's init, before the first frame. Blocks for file access. */
void cox__recall_begin(cox_session *session, const struct cox_session_params *params);

/* Keep what the session measured, if that is enough and all its devices have lasted. When nothing is under way, while the
 * policy is alive. Blocks for file access. */
void cox__recall_end(cox_session *session);

#endif
