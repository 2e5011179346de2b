#!/bin/sh
# The stored inputs of the fuzz targets. Those of a target NAME are one archive, corpus/NAME.tar. A target NAME_MORE
# without an archive uses that of NAME. The same inputs always make the same archive, byte for byte.
#
#   sh corpus.sh list NAME              print the names of its inputs
#   sh corpus.sh unpack NAME DIR        unpack its inputs to the folder DIR
#   sh corpus.sh add NAME FILE...       add files to it; a file replaces one of the same name
#   sh corpus.sh dictionary NAME        print the path of its dictionary, if it has one
# SPDX-License-Identifier: Apache-2.0
set -eu
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
usage() {
    sed -n 's/^#   \(sh corpus.sh\)/\1/p' "$0" >&2
    exit 2
}
[ $# -ge 2 ] || usage
command=$1 archive=$corpus/$2.tar dictionary=$corpus/$2.dict
shift 2
[ -e "$archive" ] || [ ! -e "${archive%_*}.tar" ] || archive=${archive%_*}.tar
[ -e "$dictionary" ] || dictionary=${dictionary%_*}.dict

case $command in
list) tar -tf "$archive" ;;
unpack)
    [ $# -eq 1 ] || usage
    mkdir -p "$1"
    tar -xf "$archive" -C "$1"
    ;;
add)
    [ $# -ge 1 ] || usage
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' INT TERM
    mkdir "$work/inputs"
    [ ! -e "$archive" ] || tar -xf "$archive" -C "$work/inputs"
    cp -- "$@" "$work/inputs"
    (cd "$work/inputs" && ls -A) | LC_ALL=C sort |
        tar -cf "$work/archive" -C "$work/inputs" --format=ustar --blocking-factor=1 --mtime=@0 --owner=0 --group=0 \
            --numeric-owner --mode=644 --no-recursion --verbatim-files-from --files-from=-
    cat "$work/archive" >"$archive"
    ;;
dictionary) [ ! -e "$dictionary" ] || echo "$dictionary" ;;
*) usage ;;
esac
