#!/bin/sh
# Set-ups of OpenCL devices, for scripts that run a program on several. Set `work` to a temporary folder first.
#
#   $work/pocl, $work/rusticl, $work/both   vendor folders with only these platforms, for OCL_ICD_VENDORS
#   $only                                   set if OCL_ICD_VENDORS is a vendor file, not a folder: use no other platform
#   able NAME NEEDS                         whether this machine has what the set-up needs, a list of: pocl, rusticl,
#                                           cores. If not, it calls leave_out NAME WHY of the harness. Without the
#                                           harness it calls skip NAME WHY, which the script may replace
#
# With the harness also:
#   launch NAME COMMAND...                  run a test program and print its last line. Exit status 0 counts as passed,
#                                           77 as skipped. Returns whether it passed
#   on NAME NEEDS VENDORS COMMAND...        the same with these vendors, if the set-up is wanted and possible
#   wanted                                  whether another set-up is to run; with COX_SHORT=1 only one runs
#   may_crash=PATTERN                       run a program again, three times in all, if a signal ends it in an object
#                                           whose path matches (grep -E). The program must call crash_tell (crash.h).
#                                           The object is the innermost one outside the C and C++ libraries
#   show_llvmpipe, hide_llvmpipe            whether rusticl has a device from here on; at first it has none
#   finish_setups                           as `finish`, but skipped if this machine can have none of the set-ups
#   need_oclgrind PROGRAM                   skip if Oclgrind is missing or cannot run this program
# SPDX-License-Identifier: Apache-2.0
: "${work:?}"
vendors="${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"
only=
if [ -f "$vendors" ]; then
    only=$vendors
    vendors=$(dirname "$vendors") # the others are in the same folder
fi
mkdir -p "$work/pocl" "$work/rusticl" "$work/both" "$work/cache"

find_icd() { # NAME: the vendor file of a platform
    for icd in "$vendors"/*"$1"*.icd; do
        [ -e "$icd" ] && { echo "$icd"; return 0; }
    done
    return 1
}

pocl=$(find_icd pocl) && cp "$pocl" "$work/pocl" && cp "$pocl" "$work/both"
rusticl=$(find_icd rusticl) && cp "$rusticl" "$work/rusticl" && cp "$rusticl" "$work/both"

if [ "${COX_HARNESS:-}" = $$ ]; then
    without() { leave_out "$@"; }
else
    skip() { echo "$1: skipped, because $2"; }
    without() { skip "$@"; }
fi

able() {
    for need in $2; do
        case $need in
        pocl) [ -n "$pocl" ] || { without "$1" "PoCL is missing (Debian: pocl-opencl-icd)"; return 1; } ;;
        rusticl) [ -n "$rusticl" ] || { without "$1" "rusticl is missing (Debian: mesa-opencl-icd)"; return 1; } ;;
        cores) [ "$(nproc)" -ge 2 ] || { without "$1" "it needs two cores"; return 1; } ;;
        esac
    done
}

wanted() { [ -z "${COX_SHORT:-}" ] || [ $((passed + failed)) -eq 0 ]; }

may_crash=
crashed_in() {
    sed -n 's/^crash: \([^([]*\).*/\1/p' "$work/err" | grep -vE '/(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^/]*)[.]' | head -n 1
}

launch() { # NAME COMMAND...
    what=$1
    shift
    for try in 1 2 3; do
        status=0
        "$@" >"$work/out" 2>"$work/err" || status=$?
        [ "$may_crash" ] && [ $status -gt 128 ] && crashed_in | grep -qE "$may_crash" || break
        echo "$what: run $try of 3 crashed in $(crashed_in), not in our code (exit status $status)"
    done

    case $status in
    0) pass ;;
    77) leave_out "$what" "$(cat "$work/out" "$work/err" | sed -n '$s/.*skipped, because //; $p')" ;;
    *) fail "exit status $status" ;;
    esac
    [ $status -eq 77 ] || echo "$what: $(tail -n 1 "$work/out")"
    [ $status -eq 0 ]
}

on() { # NAME NEEDS VENDORS COMMAND...
    wanted && able "$1" "$2" || return
    title=$1 icds=$3
    shift 3
    launch "$title" env OCL_ICD_VENDORS="$icds" "$@"
}

# llvmpipe makes many small allocations, each of which takes whole pages. AddressSanitizer's quarantine does not
# count that: it grew to 8 GB in 150 frames.
show_llvmpipe() {
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    export ASAN_OPTIONS="${ASAN_OPTIONS:-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
}
hide_llvmpipe() { unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE; }

finish_setups() {
    [ $((passed + failed)) -gt 0 ] || skip "this machine can have none of the set-ups"
    finish
}

need_oclgrind() { # PROGRAM
    need oclgrind
    ! ldd "$1" | grep -q libasan || skip "Oclgrind and AddressSanitizer must both be loaded first"
}
