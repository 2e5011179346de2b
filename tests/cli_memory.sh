#!/bin/sh
# What cox-tonemap keeps of the devices from run to run.   sh cli_memory.sh BIN_DIR SOURCE_DIR
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
. "$(dirname "$0")/tonemap.sh"
. "$(dirname "$0")/setups.sh"
able "two sub-devices" "pocl cores" || exit 77
OCL_ICD_VENDORS=$work/pocl
export OCL_ICD_VENDORS
if ! command -v sqlite3 >/dev/null; then
    echo "skipped, because sqlite3 is missing (Debian: sqlite3)"
    exit 77
fi
memory=$work/home/coxswain/models.sqlite
ask() { sqlite3 "$memory" "$1" 2>&1; }

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
recalls() { has err 'begins with what an earlier one measured' "$1"; }
forgets() {
    if grep -q 'begins with what an earlier one measured' "$work/err"; then fail "$1: it recalls"; else pass; fi
}

film 'the first run'
forgets 'the first run'
first=$(hash_of)
if [ ! -e "$memory" ]; then
    if [ "$failed" -eq 0 ]; then
        echo "skipped, because the library is built without SQLite"
        exit 77
    fi
    fail 'nothing was kept'
fi
equal "$(stat -c %a "$memory")" 600 'nobody else may read it'
equal "$(ask 'SELECT count(*) FROM entry')" 1 'one entry'
equal "$(ask 'SELECT count(*) FROM model')" 2 'of two devices'

film 'the second run'
recalls 'the second run'
equal "$(hash_of)" "$first" 'the same picture'
equal "$(ask 'SELECT count(*) FROM entry')" 1 'still one entry'

film 'another policy' --policy ewma
forgets 'a policy that keeps nothing'

film 'without cache' --no-cache
forgets 'without cache'

ask 'PRAGMA user_version = 9' >/dev/null
before=$(cksum <"$memory")
film 'another version'
forgets 'another version'
equal "$(grep -c 'models.sqlite' "$work/err")" 1 'one line'
has err 'models.sqlite was written by another version.*Remove it' 'says what to do'
equal "$(cksum <"$memory")" "$before" 'left as it was'

printf 'no database at all, but long enough to be one' >"$memory"
film 'damaged'
has err 'models.sqlite is no database.*Remove it' 'says what to do'
equal "$(cat "$memory")" 'no database at all, but long enough to be one' 'left as it was'

rm "$memory"
film 'after it was removed'
forgets 'after it was removed'
film 'and again'
recalls 'begun anew'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
