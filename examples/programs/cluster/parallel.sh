#!/bin/sh
# Map a film on several machines with GNU parallel, by ssh. The frames are those of one run.
#
#   sh parallel.sh FILM OUTPUT.mkv [PIECES [OPTIONS-OF-ANALYSE...]]
#
# The script creates the folder OUTPUT.mkv.pieces. The film and this folder must be on storage that all machines see
# under the same names.
#
#   PARALLEL   the machines, for example PARALLEL="-S :,user@one,2/two". ":" is this machine, "2/" runs two pieces at a time.
#   ENCODE     options of the encoder
#
# After a failure, start the script again. It keeps the pieces that are done.
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -ge 2 ] || { sed -n '2,5s/^# *//p' "$0"; exit 2; }
film=$(realpath "$1")
output=$(realpath "$2")
pieces=${3:-64}
shift 2
[ $# -eq 0 ] || shift
tonemap=${TONEMAP:-cox-tonemap}
folder=$output.pieces
mkdir -p "$folder"

# One piece at a time on each machine, because it uses all devices of the machine. A piece that fails is tried once
# more.
each() { seq "$pieces" | parallel --jobs 1 --retries 2 --halt soon,fail=1 --quote --will-cite "$@"; }

each "$tonemap" analyse "$film" "$@" --share "{}/$pieces" -o "$folder/{}-of-$pieces.part" --quiet
"$tonemap" steer "$folder"/*-of-"$pieces".part -o "$folder/film.scene"
# shellcheck disable=SC2086
each "$tonemap" map "$film" --scene "$folder/film.scene" --share "{}/$pieces" ${ENCODE:-} -o "$folder/piece-{}-of-$pieces.mkv" --quiet
"$tonemap" join "$folder"/piece-*-of-"$pieces".mkv --scene "$folder/film.scene" --source "$film" -o "$output" --overwrite
