#!/bin/sh
# Make docs/results/before-after.png: the same picture at the same exposure, clipped and tone-mapped; and
# docs/results/local.jpg: by hable, the default, and by local. Needs ImageMagick.
# docs/results/before-after.sh [BIN_DIR]
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/../.."
bin=${1:-build/bin}
picture=examples/data/StillLife.exr
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

stops=$("$bin/cox-tonemap" $picture -o "$dir/after.png" | sed -n 's/^exposure *\([-+.0-9]*\) stops.*/\1/p')
[ -n "$stops" ] || { echo "cox-tonemap did not say which exposure it chose" >&2; exit 1; }
"$bin/cox-tonemap" -q $picture -o "$dir/before.png" --operator clip --peak 203 --exposure "$stops"
convert "$dir/before.png" "$dir/after.png" +append -resize 1240x -strip docs/results/before-after.png
"$bin/cox-tonemap" -q $picture -o "$dir/local.png" --operator local
convert "$dir/after.png" "$dir/local.png" +append -resize 1240x -strip -quality 90 docs/results/local.jpg
