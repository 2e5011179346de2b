#!/bin/sh
# Each call of the programs fails once: a system call, a call of a library, an OpenCL call. The program ends with the
# right result, or with a status and a message, and leaves nothing behind. This runs one case for each call and program,
# and all places where mistakes were found; CONTRIBUTING.md has the command for all places.
#   sh fail_once.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/calls.sh"
need ffmpeg
need_device
need_programs
sweeps --case 'tonemap|lab-(sim|merge|report|export|replay|fit)|devices$|hello|decide' --each 1
finish
