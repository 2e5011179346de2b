/* Device profiles: what a session measured of its devices, kept for the next session of the same kind.
 *
 * Sessions are of one kind if they run the same kernels (source, build options, launch geometry, arguments) over the
 * same shape (rows, columns, bindings with their pitches and contracts) on the same devices (identity, driver, compute
 * units, memory mode; all of them and no other), with the same policy and objective. The profiles of one kind are one
 * file in the cache directory (cache.h), named by the digest of all that. A file that is missing, damaged or
 * implausible is ignored and written anew when the session ends.
 *
 * A session that has a warm_start begins with what that one has measured, where there is no file of its own kind.
 *
 * Thread-safety: several threads and processes may load and save at once; of two that save the same profiles the last
 * one wins. Blocks for file access, so not for the scheduler thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_DEVICE_PROFILE_H
#define COX_RUNTIME_DEVICE_PROFILE_H

#include "engine/engine.h"

/* Load the session's profiles, if an earlier session saved them, or else take those of params->warm_start: gives them
 * to the policy and sets the devices' single_device_ns. After the policy's init, before the first frame. */
void cox__device_profile_load(cox_session *session, const struct cox__session_spec *params);

/* Have the session do without a warm-up, if it has begun with what was measured and every device has done frames with
 * the same kernels for the warm_start: it takes over which devices compute inside the enqueue call, which a warm-up
 * would find out. False: it needs one. After cox__device_profile_load. */
bool cox__device_profile_skip_warmup(cox_session *session, cox_session *warm_start);

/* Save what the session measured, if it did enough frames and all its devices have lasted. When nothing is under way,
 * while the policy is alive. */
void cox__device_profile_save(cox_session *session);

/* Whether profiles can be of use: finite, in range, of one device at least, and shares of one whole. */
bool cox__device_profiles_plausible(const struct cox_device_profile *profiles, uint32_t count);

#endif
