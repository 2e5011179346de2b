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
# place NAME: the whole path. The line after it keeps $() from removing newlines at the name's end; %?? removes that line.
place() { realpath -- "$1" && echo .; }
film=$(place "$1")
film=${film%??}
output=$(place "$2")
output=${output%??}
pieces=${3:-64}
case $pieces in *[!0-9]*) echo "parallel.sh: the number of pieces is '$pieces'" >&2 && exit 2 ;; esac
shift 2
[ $# -eq 0 ] || shift
tonemap=${TONEMAP:-cox-tonemap}
folder=$output.pieces
mkdir -p "$folder"

# quoted WORD...: for a shell. What $() takes of it ends in a quote, so newlines stay.
quoted() {
    space=
    for word; do
        printf "%s'" "$space"
        printf %s "$word" | sed "s/'/'\\\\''/g"
        printf "'"
        space=' '
    done
}

# each COMMAND: run it for each piece, with the variable n as its number. One piece at a time on each machine, because it
# uses all devices of the machine. A piece that fails is tried once more. GNU parallel evaluates parts of a command, for
# example {= =}, so names reach the machines in the variable COMMAND.
# shellcheck disable=SC2016
each() {
    seq "$pieces" | COMMAND=$1 parallel --jobs 1 --retries 2 --halt soon,fail=1 --quote --will-cite --env COMMAND \
        sh -c 'n=$1; eval "$COMMAND"' sh '{}'
}

share="--share \$n/$pieces --quiet"
each "exec $(quoted "$tonemap" analyse "$film" "$@") $share -o $(quoted "$folder/")\$n-of-$pieces.part"
"$tonemap" steer "$folder"/*-of-"$pieces".part -o "$folder/film.scene"
each "exec $(quoted "$tonemap" map "$film" --scene "$folder/film.scene") $share ${ENCODE:-} -o $(quoted "$folder/piece-")\$n-of-$pieces.mkv"
"$tonemap" join "$folder"/piece-*-of-"$pieces".mkv --scene "$folder/film.scene" --source "$film" -o "$output" --overwrite
