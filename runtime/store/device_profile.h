/* Device profiles: what a session measured of its devices, kept for the next session of the same
 * kind.
 *
 * Sessions are of one kind if all of this is the same:
 * - The kernels: source, build options, launch geometry, arguments.
 * - The shape: rows, columns, bindings with their pitches and contracts.
 * - All devices: identity, driver, compute units, memory mode.
 * - The policy and the objective.
 *
 * The profiles of one kind are one file in the cache directory (cache.h), named by the digest of
 * all that. A file that is missing, damaged or implausible is ignored and written again when the
 * session ends. If there is no file of its kind, a session with a warm_start begins with what that
 * session has measured.
 *
 * Thread-safety: several threads and processes may load and save at once; the last one to save a
 * file wins. The functions block for file access, so do not call them on the scheduler thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef COX_RUNTIME_DEVICE_PROFILE_H
#define COX_RUNTIME_DEVICE_PROFILE_H

#include "engine/engine.h"

/* Load the profiles that an earlier session saved, or else take those of params->warm_start. Gives
 * them to the policy and sets the devices' single_device_ns. Call it after the policy's init and
 * before the first frame. */
void cox__device_profile_load(cox_session *session, const struct cox__session_spec *params);

/* Skip the session's warm-up, if the session has begun with measurements and every device has done
 * frames with the same kernels for the warm_start. A warm-up would find out which devices compute
 * inside the enqueue call; the session takes that over. Returns false if the session needs a
 * warm-up. Call it after cox__device_profile_load. */
bool cox__device_profile_skip_warmup(cox_session *session, cox_session *warm_start);

/* Save what the session measured, if it did enough frames and none of its devices has left. Call it
 * when nothing is running and the policy still exists. */
void cox__device_profile_save(cox_session *session);

/* Whether profiles are usable: finite, in range, for one device at least, and with shares that sum
 * to one at most. */
bool cox__device_profiles_plausible(const struct cox_device_profile *profiles, uint32_t count);

#endif
