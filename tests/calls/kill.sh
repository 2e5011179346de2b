#!/bin/sh
# Programs are killed before, in and after the calls that change files. Files are whole, absent or as before, and the
# same command gives the same result. This kills at one place for each call and program; see fail_once.sh for all.
#   sh kill.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/calls.sh"
need ffmpeg
need_device
need_programs
for case in cold stats exr analyse steer map map-mkv join join-mkv mkv-overwrite; do cases="${cases:-}tonemap-$case\$|"; done
sweeps --case "${cases}lab-(sim-record|sim-append|merge|fit|report)" --how before,after,half --each 1
finish
