#!/bin/sh
# Damaged films and pictures of all kinds: whatever ffmpeg finds, the readers tell. The full run is
# python3 tests/media/damage.py BUILD/tests/media_read --each 500
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"

need ffmpeg python3
exec python3 "$source/tests/media/damage.py" "$COX_TEST_DIR/media_read" --each 16
