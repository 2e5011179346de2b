#!/bin/sh
# A film over several machines with GNU parallel, by ssh: the frames are those of one run.
#
#   sh parallel.sh FILM OUTPUT.mkv [PIECES [OPTIONS-OF-ANALYSE...]]
#
# The film, and the folder OUTPUT.mkv.pieces, which is made, are on storage that all machines see under the same names. Which machines
# these are stands in PARALLEL, for one: PARALLEL="-S :,user@one,2/two" (":" is this one; "2/" two pieces at a time). The encoder's
# options are in ENCODE. After a failure start it again: what is done is left alone.
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

# One piece at a time on each machine, whose devices it uses all of; once more where one fails.
each() { seq "$pieces" | parallel --jobs 1 --retries 2 --halt soon,fail=1 --quote --will-cite "$@"; }

each "$tonemap" analyse "$film" "$@" --share "{}/$pieces" -o "$folder/{}-of-$pieces.part" --quiet
"$tonemap" steer "$folder"/*-of-"$pieces".part -o "$folder/film.scene"
# shellcheck disable=SC2086
each "$tonemap" map "$film" --scene "$folder/film.scene" --share "{}/$pieces" ${ENCODE:-} -o "$folder/piece-{}-of-$pieces.mkv" --quiet
"$tonemap" join "$folder"/piece-*-of-"$pieces".mkv --scene "$folder/film.scene" --source "$film" -o "$output" --overwrite
