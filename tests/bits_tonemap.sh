#!/bin/sh
# The same bits on every set-up: bits_tonemap on PoCL, on llvmpipe, on two sub-devices and on PoCL + llvmpipe, each with
# only the platforms it names. Every picture must get the same hash from all of them.
#
#   sh bits_tonemap.sh BIN_DIR SOURCE_DIR
#
# SPLITS=N for another number of random splits for each picture and set-up than 100, or 14 under AddressSanitizer.
# SPDX-License-Identifier: Apache-2.0
set -u
program="${COX_TEST_DIR:-$1/../tests}/bits_tonemap"
vendors="${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"
[ -z "${ASAN_OPTIONS:-}" ] && enough=100 || enough=14
splits=${SPLITS:-$enough}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir -p "$work/pocl" "$work/rusticl" "$work/both" "$work/cache"
ran=0 failed=0 left_out=0
reference=--reference # the first set-up's results, which the others must equal, are held against the reference

find_icd() { # NAME: the vendor file of a platform
    for icd in "$vendors"/*"$1"*.icd; do
        [ -e "$icd" ] && { echo "$icd"; return 0; }
    done
    return 1
}

pocl=$(find_icd pocl) && cp "$pocl" "$work/pocl" && cp "$pocl" "$work/both"
rusticl=$(find_icd rusticl) && cp "$rusticl" "$work/rusticl" && cp "$rusticl" "$work/both"

skip() { # NAME WHY
    left_out=$((left_out + 1))
    echo "$1: skipped, because $2"
}

# NAME NEEDS VENDORS ARGUMENTS...; NEEDS is a list of: pocl, rusticl, cores
setup() {
    name=$1 needs=$2 icds=$3
    shift 3
    for need in $needs; do
        case $need in
        pocl) [ -n "$pocl" ] || { skip "$name" "PoCL is missing (Debian: pocl-opencl-icd)"; return; } ;;
        rusticl) [ -n "$rusticl" ] || { skip "$name" "rusticl is missing (Debian: mesa-opencl-icd)"; return; } ;;
        cores) [ "$(nproc)" -ge 2 ] || { skip "$name" "it takes two cores"; return; } ;;
        esac
    done
    began=$(date +%s)
    # shellcheck disable=SC2086
    OCL_ICD_VENDORS="$icds" timeout 600 "$program" --cache "$work/cache" --splits "$splits" $reference "$@" \
        >"$work/out" 2>"$work/err"
    code=$?
    if [ $code -eq 77 ]; then
        skip "$name" "$(tail -n 1 "$work/err")"
        return
    fi
    ran=$((ran + 1))
    reference=
    cat "$work/out" >>"$work/all"
    echo "$name: $(tail -n 1 "$work/out"), $(($(date +%s) - began)) s"
    sed -n 's/^device /    device /p; s/^splits /    splits: /p' "$work/out"
    [ -s "$work/err" ] && cat "$work/err"
    if [ $code -ne 0 ]; then
        failed=$((failed + 1))
        echo "$name: FAILED (exit status $code)"
        grep -E ' (DIFFERENT|BEYOND)$' "$work/out"
    fi
}

unset POCL_DEVICES RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
setup "PoCL" "pocl" "$work/pocl" --devices cpu --expect 1
setup "two sub-devices of PoCL" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2
export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
# AddressSanitizer's slow unwinder allocates while it looks through the frames that LLVM registered, and waits for itself.
[ -z "${ASAN_OPTIONS:-}" ] || export ASAN_OPTIONS="$ASAN_OPTIONS:fast_unwind_on_malloc=1:detect_leaks=0"
setup "llvmpipe" "rusticl" "$work/rusticl" --devices gpu --expect 1
setup "PoCL + llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2

[ $ran -gt 0 ] || exit 77

# One line for each picture and mapping: passed if all set-ups have it, each found its own results equal, and the hashes
# are the same. Then one for each mapping against the reference. A set-up that failed otherwise counts as well.
echo
awk -v ran="$ran" -v left_out="$left_out" -v broken="$failed" '
    $1 == "bits" {
        key = $2 " " $3 " " $4
        if (!(key in hash)) {
            hash[key] = $5
            order[count++] = key
        } else if (hash[key] != $5)
            differs[key] = differs[key] " " $5
        seen[key]++
        runs[key] += $6
        if ($7 != "equal")
            inside[key]++
    }
    $1 == "error" { error[errors++] = $0 }
    END {
        printf "%-15s %-9s %-12s %-16s %6s  %s\n", "picture", "size", "mapping", "hash", "runs", "set-ups"
        for (i = 0; i < count; i++) {
            key = order[i]
            split(key, word, " ")
            good = seen[key] == ran && !inside[key] && !(key in differs)
            good ? passed++ : failed++
            printf "%-15s %-9s %-12s %s %6d  %s\n", word[1], word[2], word[3], hash[key], runs[key],
                good ? "equal on " ran : "FAILED: " seen[key] " of " ran " set-ups, " inside[key] + 0 \
                " of them not equal in themselves" (key in differs ? ", elsewhere" differs[key] : "")
        }
        if (errors) {
            printf "\nAgainst the double-precision reference, in codes: the largest distance from its real number, the\n"
            printf "largest from its code, and how many pixels have a channel with another code than it.\n"
            printf "%-12s %-31s  %s\n", "mapping", "EXR pictures", "made-up pictures"
        }
        for (i = 0; i < errors; i++) {
            split(error[i], word, " ")
            good = word[9] == "within"
            good ? passed++ : failed++
            printf "%-12s %7s %7s %13s    %7s %7s %13s   %s\n", word[2], word[3], word[4], word[5], word[6], word[7],
                word[8], good ? "within" : "FAILED"
        }
        if (broken && !failed)
            failed = broken
        printf "\n%d set-ups compared, %d left out\n%d passed, %d failed\n", ran, left_out, passed, failed
        exit failed != 0
    }' "$work/all"
