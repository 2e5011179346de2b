#!/bin/sh
# Real sessions under the auditing layer on every set-up that this machine can give: sh session.sh BIN_DIR SOURCE_DIR
# Needs COX_TEST_DIR and COX_TEST_LAYER_DIR. FRAMES=N for another number than 1000, or 150 under AddressSanitizer.
# COX_SHORT=1: the first set-up that this machine can have, and 150 frames.
# SPDX-License-Identifier: Apache-2.0
set -u
[ -z "${ASAN_OPTIONS:-}${COX_SHORT:-}" ] && enough=1000 || enough=150
frames=${FRAMES:-$enough}
program=$COX_TEST_DIR/audit_session
failed=0
ran=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# audit NAME DEVICES [VARIABLE=VALUE…]: all pipelines, a policy whose bands stand still and one whose bands move; rows
# handed out on demand; the default, which may do all of it and measure on copies.
audit()
{
    name=$1
    devices=$2
    [ -z "${COX_SHORT:-}" ] || [ $ran -eq 0 ] || return 0
    shift 2
    for pipeline in rows contracts passes tonemap; do
        case $pipeline in
        rows) policies="static ewma chunks" ;;
        passes) policies="static ewma" ;;
        contracts) policies="static ewma adaptive" ;;
        *) policies="static ewma" ;;
        esac
        for policy in $policies; do
            env "$@" "$program" "$devices" "$policy" "$pipeline" "$frames" >"$output" 2>&1
            status=$?
            if [ $status -eq 77 ]; then
                echo "skipped $name, because: $(tail -n 1 "$output")"
                return
            fi
            ran=$((ran + 1))
            [ $status -eq 0 ] || { failed=$((failed + 1)); echo "FAILED ($status): $name"; }
            printf '%-20s ' "$name"
            cat "$output"
        done
    done
}

rusticl="RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu"
# The quarantine does not count what llvmpipe's many small page-aligned allocations really take: 8 GB in 150 frames.
[ -z "${ASAN_OPTIONS:-}" ] ||
    rusticl="$rusticl ASAN_OPTIONS=$ASAN_OPTIONS:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
audit "CPU" cpu RUSTICL_ENABLE=
audit "two sub-devices" cpu:2x1 RUSTICL_ENABLE=
# shellcheck disable=SC2086
audit "CPU and llvmpipe" cpu,gpu $rusticl
# shellcheck disable=SC2086
audit "llvmpipe" gpu $rusticl
audit "CPU with copies" cpu=staged RUSTICL_ENABLE=
# shellcheck disable=SC2086
audit "CPU, copies to GPU" cpu,gpu=staged $rusticl
audit "pthread and basic" - RUSTICL_ENABLE= "POCL_DEVICES=pthread basic"

[ $ran -gt 0 ] || exit 77
echo "$ran sessions of $frames frames, $failed not clean"
[ $failed -eq 0 ]
