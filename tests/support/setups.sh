#!/bin/sh
# Set-ups of OpenCL devices, for scripts that run a program on several: sourced with `work` naming a folder of its own.
#
#   $work/pocl, $work/rusticl, $work/both   vendor folders that name only these platforms, for OCL_ICD_VENDORS
#   $only                                   the vendor file, if OCL_ICD_VENDORS names one instead of a folder: no other
#                                           platform is wanted
#   able NAME NEEDS                         whether this machine has what the set-up needs, a list of: pocl, rusticl, cores;
#                                           if not, says so by calling leave_out NAME WHY of the harness; without the harness
#                                           skip NAME WHY, which the script may replace
# SPDX-License-Identifier: Apache-2.0
: "${work:?}"
vendors="${OCL_ICD_VENDORS:-/etc/OpenCL/vendors}"
only=
if [ -f "$vendors" ]; then
    only=$vendors
    vendors=$(dirname "$vendors") # the others lie beside it
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
        cores) [ "$(nproc)" -ge 2 ] || { without "$1" "it takes two cores"; return 1; } ;;
        esac
    done
}
