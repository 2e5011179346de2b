#!/bin/sh
# Device profiles that cox-tonemap keeps from run to run.   sh device_profile.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
tonemap=$(cd "$1" && pwd)/cox-tonemap
if [ ! -x "$tonemap" ]; then
    echo "skipped, because cox-tonemap is not built (libpng is missing)"
    exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/home"
. "$(dirname "$0")/../support/tonemap.sh"
. "$(dirname "$0")/../support/setups.sh"
able "two sub-devices" "pocl cores" || exit 77
OCL_ICD_VENDORS=$work/pocl
export OCL_ICD_VENDORS
cache=$work/home/coxswain
profiles() { find "$cache" -name '*.profile' 2>/dev/null; }
count() { profiles | wc -l | tr -d ' '; }

# Twelve grey frames of 64 x 48, 4:2:0, 8 bits.
{
    printf 'YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n'
    n=0
    while [ $n -lt 12 ]; do
        printf 'FRAME\n'
        head -c 4608 /dev/zero | tr '\0' '\200'
        n=$((n + 1))
    done
} >"$work/clip.y4m"

# film NAME ARGS...: tone-maps the clip on two devices, telling what it does.
film() {
    what=$1
    shift
    run 0 "$what" "$work/clip.y4m" --devices cpu:2x1 --peak 1000 --transfer pq -o a.y4m --hash --verbose "$@"
    clean
}
loads() { has err 'begins with what an earlier one measured' "$1"; }
loads_none() {
    if grep -q 'begins with what an earlier one measured' "$work/err"; then fail "$1: it loads a profile"; else pass; fi
}

film 'the first run'
loads_none 'the first run'
first=$(hash_of)
equal "$(count)" 1 'one file'
profile=$(profiles)
equal "$(stat -c %a "$profile")" 600 'nobody else may read it'

film 'the second run'
loads 'the second run'
equal "$(hash_of)" "$first" 'the same picture'
equal "$(profiles)" "$profile" 'the same file'

film 'another policy' --policy ewma
loads_none 'a policy that saves nothing'

film 'without cache' --no-cache
loads_none 'without cache'

printf 'no profile at all, but long enough to be one, if it were not for what is written in it' >"$profile"
film 'damaged'
loads_none 'damaged'
equal "$(grep -c 'device profiles:.* is damaged, .*removed' "$work/err")" 1 'one line'
film 'after that'
loads 'written anew'

rm "$profile"
film 'after it was removed'
loads_none 'after it was removed'
film 'and again'
loads 'begun anew'
equal "$(count)" 1 'still one file'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
