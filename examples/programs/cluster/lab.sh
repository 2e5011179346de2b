#!/bin/sh
# Run one experiment on each of several machines, by ssh, into one database and one report.
#
#   MACHINES="- user@one two" sh lab.sh RESULT.db [OPTIONS-OF-RUN...]
#
# "-" is this machine. The script creates the folder RESULT.db.machines, which must be on storage that all machines see
# under the same name. The machines work at the same time, each with its own devices. To compare policies on each
# machine, use --policy adaptive,ewma,last-frame. Writes RESULT.db and RESULT.html.
# SPDX-License-Identifier: Apache-2.0
set -eu
[ $# -ge 1 ] || { sed -n '2,4s/^# *//p' "$0"; exit 2; }
# place NAME: the whole path. The line after it keeps $() from removing newlines at the name's end; %?? removes that line.
place() { realpath -- "$1" && echo .; }
result=$(place "$1")
result=${result%??}
shift
lab=${LAB:-cox-lab}
folder=$result.machines
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

# run_on MACHINE: run there; the output goes to a file.
run_on() {
    name=$(printf %s "$1" | tr -c 'a-zA-Z0-9.@-' _)
    machine=$1
    shift
    command="$(quoted "$lab" run "$@") -o $(quoted "$folder/$name.db")"
    if [ "$machine" = - ]; then sh -c "$command"; else ssh -- "$machine" "$command"; fi >"$folder/$name.log" 2>&1 </dev/null
}

started=
for machine in ${MACHINES:--}; do
    run_on "$machine" "$@" &
    started="$started $!"
done
failed=
for pid in $started; do
    wait "$pid" || failed=yes
done
[ -z "$failed" ] || { tail -n 1 "$folder"/*.log | LC_ALL=C tr -c '[:print:]\n' '?' >&2; exit 1; }
"$lab" merge "$folder"/*.db -o "$result"
"$lab" report "$result" -o "${result%.db}.html"
