#!/bin/sh
# Device profiles that cox-tonemap keeps from run to run.
#   sh device_profile.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/tonemap.sh"
. "$source/tests/support/setups.sh"
able "two sub-devices" "pocl cores" || skip "there are no two sub-devices"
export OCL_ICD_VENDORS="$work/pocl"
profiles() { find "$XDG_CACHE_HOME/coxswain" -name '*.profile' 2>/dev/null; }

# Twelve grey frames of 64 x 48, 4:2:0, 8 bits.
{
    printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n'
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
        printf 'FRAME\n'
        head -c 4608 /dev/zero | tr '\0' '\200'
    done
} >"$work/clip.y4m"

# film WHAT loads|lacks ARGS...: tone-map the clip on two devices. The run must load an earlier run's profile, or lack
# one.
film() {
    loads=$2
    h_film=$1
    shift 2
    run 0 "$h_film" "$work/clip.y4m" --devices cpu:2x1 --peak 1000 --transfer pq -o a.y4m --hash --verbose "$@"
    [ "$loads" = lacks ] || loads=contains
    $loads err 'starts with measurements from device profiles'
    clean
}

film 'the first run' lacks
first=$(hash_of)
profile=$(profiles)
equal "$(profiles | wc -l)" 1 'files'
equal "$(stat -c %a "$profile")" 600 'nobody else may read it'

film 'the second run' loads
equal "$(hash_of)" "$first" 'the picture'
equal "$(profiles)" "$profile" 'the file'
film 'a policy that saves nothing' lacks --policy chunks
film 'without cache' lacks --no-cache

printf 'no profile at all, but long enough to be one, if it were not for what is written in it' >"$profile"
film 'damaged' lacks
counts 1 err 'device profiles:.* is damaged .* was removed'
film 'written anew' loads

rm "$profile"
film 'after it was removed' lacks
film 'begun anew' loads
equal "$(profiles | wc -l)" 1 'files'
finish
