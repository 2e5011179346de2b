#!/bin/sh
# cox-devices --compile stores the kernels that cox-tonemap needs.
#   sh devices_compile.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/harness.sh"
devices=$bin/cox-devices
tonemap=$bin/cox-tonemap # may be missing from the build
clip=$source/examples/data/stilllife_pq_480x270.y4m

program() { "$devices" "$@"; }

kept() { find "$XDG_CACHE_HOME/coxswain" -name '*.bin' | wc -l; }
run 0 'kernels compiled' --compile --devices cpu
counts 8 out '^  (PQ|HLG) .* peak .* [0-9.]+ s$'
kept=$(kept)
check "$kept files" [ "$kept" -ge 8 ]
[ ! -x "$tonemap" ] || for film in '' '--peak 600' '--scale 1/2' '--scale 1/2 --peak 600'; do
    expect_status 0 "a film with '$film'" "$tonemap" -q "$clip" -o null: --devices cpu $film
    equal "$(kept)" "$kept" 'it needs other kernels'
done
expect_status 1 'nowhere to keep kernels' env HOME= XDG_CACHE_HOME= "$devices" --compile
contains err 'no cache folder for compiled kernels'
finish
