#!/bin/sh
# Map a film on a cluster with SLURM, in four jobs that wait for each other. The frames are those of one run.
#
#   sh slurm.sh FILM OUTPUT.mkv [PIECES [OPTIONS-OF-ANALYSE...]]
#
# The script creates the folder OUTPUT.mkv.pieces. The film and this folder must be on storage that all nodes see under
# the same names.
#
#   SBATCH   further options for SLURM, for example SBATCH="--partition=gpu --gpus=1 --time=1:00:00"
#   ENCODE   options of the encoder
#
# Prints the number of the last job. After a failure, start the script again. It keeps the pieces that are done.
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
case $pieces in *[!0-9]*) echo "slurm.sh: the number of pieces is '$pieces'" >&2 && exit 2 ;; esac
shift 2
[ $# -eq 0 ] || shift
tonemap=${TONEMAP:-cox-tonemap}
folder=$output.pieces

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

# In the name of a log SLURM replaces %j and others, unless it has a backslash.
case $folder in *\\*) echo "slurm.sh: SLURM cannot write logs to a folder whose name has a backslash" >&2 && exit 2 ;; esac
mkdir -p "$folder"
logs=$(printf %s "$folder" | sed 's/%/%%/g')

# job NAME AFTER ARRAY COMMAND: submit a job and print its number.
job() {
    # shellcheck disable=SC2086
    sbatch --parsable --job-name="$1" --output="$logs/$1-%A-%a.log" ${2:+--dependency=afterok:$2} --kill-on-invalid-dep=yes \
        ${3:+--array=$3} ${SBATCH:-} --wrap="$4"
}

each="1-$pieces"
# SLURM puts the number in; the shell must not, here.
# shellcheck disable=SC2016
number='$SLURM_ARRAY_TASK_ID'
analyse=$(job analyse '' "$each" \
    "$(quoted "$tonemap" analyse "$film" "$@") --share $number/$pieces -o $(quoted "$folder")/$number-of-$pieces.part")
steer=$(job steer "$analyse" '' \
    "$(quoted "$tonemap" steer) $(quoted "$folder")/*-of-$pieces.part -o $(quoted "$folder/film.scene")")
map=$(job map "$steer" "$each" \
    "$(quoted "$tonemap" map "$film" --scene "$folder/film.scene") --share $number/$pieces ${ENCODE:-} -o $(quoted "$folder")/piece-$number-of-$pieces.mkv")
job join "$map" '' \
    "$(quoted "$tonemap") join $(quoted "$folder")/piece-*-of-$pieces.mkv --scene $(quoted "$folder/film.scene") --source $(quoted "$film") -o $(quoted "$output") --overwrite"
