#!/bin/sh
# Compares the results of several set-ups.   sh same.sh BIN_DIR SOURCE_DIR filter|local|tonemap|video
#
# The set-ups are PoCL, llvmpipe, two sub-devices, and PoCL + llvmpipe, mapped and staged. Each sees only the
# platforms that it names. The program bits_NAME runs on each of them, in both arithmetics if the devices have both.
# In one arithmetic all set-ups must print the same hashes.
#
# A program prints a line for each item compared, and more lines with --reference:
#   bits WHAT SIZE HOW HASH RUNS equal|DIFFERENT
#   heading TEXT
#   error WHAT FIGURES... within|BEYOND
#
# Environment:
#   SPLITS=N     number of random splits for each item and set-up
#   COX_SHORT=1  only the first set-up that this machine can have, in muladd, with 3 splits
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(dirname "$0")
program=${COX_TEST_DIR:-$1/../tests}/bits_$3

# The head of the table, the number of splits, and that number under AddressSanitizer.
case $3 in
filter) title='filter form' enough=20 fewer=5 ;;
local) title='subject operator' enough=20 fewer=5 ;;
tonemap) title='picture mapping' enough=100 fewer=14 ;;
video) title='film mapping' enough=50 fewer=7 ;;
*) echo "same.sh: there is no program bits_$3" >&2 && exit 2 ;;
esac
[ -z "${ASAN_OPTIONS:-}" ] || enough=$fewer
[ -z "${COX_SHORT:-}" ] || enough=3
splits=${SPLITS:-$enough}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
. "$here/../support/setups.sh"
ran=0 failed=0 left_out=0 # of one arithmetic
compared=0 all_left_out=0 all_passed=0 all_failed=0

skip() { # NAME WHY
    left_out=$((left_out + 1))
    echo "$1: skipped, because $2"
}

# setup NAME NEEDS VENDORS ARGUMENTS...: run the program on a set-up
setup() {
    name=$1 icds=$3
    [ -z "${COX_SHORT:-}" ] || [ $ran -eq 0 ] || return 0
    able "$name" "$2" || return
    shift 3
    began=$(date +%s)
    # shellcheck disable=SC2086
    OCL_ICD_VENDORS="$icds" timeout 1800 "$program" --cache "${COX_TEST_KERNELS:-$work/cache}" --splits "$splits" --arithmetic "$arithmetic" $reference "$@" \
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

setups() {
    unset POCL_DEVICES RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    setup "PoCL" "pocl" "$work/pocl" --devices cpu --expect 1
    setup "two sub-devices of PoCL" "pocl cores" "$work/pocl" --devices cpu:2x1 --expect 2
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    setup "llvmpipe" "rusticl" "$work/rusticl" --devices gpu --expect 1
    setup "PoCL + llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2
    setup "PoCL + llvmpipe, both staged" "pocl rusticl" "$work/both" --devices cpu=staged,gpu=staged --expect 2
}

# Print one line for each item. It has passed if all set-ups have it, each found its own results equal, and the
# hashes are the same. Then print the lines of the comparison with the reference. A set-up that failed otherwise
# counts as well.
compare() {
    awk -v ran="$ran" -v counts="$work/counts" -v broken="$failed" -v title="$title" '
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
        $1 == "heading" { heading = heading "\n" substr($0, 9) }
        $1 == "error" { error[errors++] = $0 }
        END {
            split(title, word, " ")
            printf "%-15s %-9s %-12s %-16s %6s  %s\n", word[1], "size", word[2], "hash", "runs", "set-ups"
            for (i = 0; i < count; i++) {
                key = order[i]
                split(key, word, " ")
                good = seen[key] == ran && !inside[key] && !(key in differs)
                good ? passed++ : failed++
                printf "%-15s %-9s %-12s %s %6d  %s\n", word[1], word[2], word[3], hash[key], runs[key],
                    good ? "equal on " ran : "FAILED: " seen[key] " of " ran " set-ups, " inside[key] + 0 \
                    " of them not equal in themselves" (key in differs ? ", elsewhere" differs[key] : "")
            }
            if (errors)
                print heading
            for (i = 0; i < errors; i++) {
                words = split(error[i], word, " ")
                good = word[words] == "within"
                good ? passed++ : failed++
                printf "%-16s", word[2]
                for (w = 3; w < words; w++)
                    printf " %9s", word[w]
                print good ? "   within" : "   FAILED"
            }
            if (broken && !failed)
                failed = broken
            print passed + 0, failed + 0 >counts
        }' "$work/all"
}

[ -n "${COX_SHORT:-}" ] && arithmetics=muladd || arithmetics="muladd fma"
for arithmetic in $arithmetics; do
    ran=0 failed=0 left_out=0
    reference=--reference # for the first set-up only, whose results the others must equal
    : >"$work/all"
    echo "$arithmetic"
    setups
    echo
    echo "0 $((ran > 0))" >"$work/counts" # in case awk fails
    [ $ran -eq 0 ] || compare
    echo
    compared=$((compared + ran)) all_left_out=$((all_left_out + left_out))
    read -r passed failed <"$work/counts"
    all_passed=$((all_passed + passed)) all_failed=$((all_failed + failed))
done
[ $compared -gt 0 ] || exit 77
echo "$compared set-ups compared, $all_left_out left out"
echo "$all_passed passed, $all_failed failed"
exit $((all_failed != 0))
