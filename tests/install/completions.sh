#!/usr/bin/env bash
# Completions offer every long option of each --help, the values of options, and commands. zsh can read its files.
#   completions.sh COMPLETIONS_DIR PROGRAMS_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/support/harness.sh
. "$(dirname "$0")/../support/harness.sh"
made=$(cd "$1" && pwd) programs=$(cd "$2" && pwd)

# offered WORD...: what the completion offers for the last word of this command line
offered()
{
    local name=${1//-/_}
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    "_$name" || true
    printf '%s\n' "${COMPREPLY[@]}"
}

# offers WHAT WORD...
offers()
{
    if offered "${@:2}" | grep -Fxe "$1" >/dev/null; then
        pass
    else
        fail "'${*:2}' is not completed to $1, but to: $(offered "${@:2}" | tr '\n' ' ')"
    fi
}

# every_option PROGRAM [COMMAND]
every_option()
{
    local option
    for option in $("$programs/$1" "${@:2}" --help | grep -E '^ {0,6}-' | grep -oE '^ *(-[^ ]+, )*-[^ ,]+' | grep -oE -e '--[a-z-]+' | sort -u); do
        offers "$option" "$@" --
        offers "$option" "$@" "${option%?}"
    done
}

for file in "$made"/cox-*; do
    # shellcheck disable=SC1090 # made by the build
    source "$file"
    name=$(basename "$file")
    every_option "$name"
    ! command -v zsh >/dev/null || check "zsh does not read _$name" zsh -n "$made/_$name"
done
command -v zsh >/dev/null || leave_out zsh 'it is not installed'

offers guides cox-bench g
every_option cox-bench guides
offers muladd cox-bench kernels --arithmetic mu
offers pictures cox-bench stream --kernel ''
offers auto cox-devices --reserve a
policies='adaptive ewma chunks hguided last-frame mean10 static single inter-frame qilin fpm kalman ucb'
for policy in $policies; do
    offers "adaptive,$policy" cox-bench decide --policy "adaptive,${policy:0:2}"
done
if [ -x "$programs/cox-tonemap" ]; then
    for operator in hable reinhard mobius bt2390 bt2446a bt2446c spline aces linear clip local hdr10plus exposure; do
        offers $operator cox-tonemap film.mkv --operator "${operator:0:1}"
        offers $operator cox-tonemap film.mkv --operator = "${operator:0:1}"
        offers $operator cox-tonemap film.mkv --operator =
    done
    for policy in $("$programs/cox-tonemap" --policy help | tr -d ,); do
        offers "$policy" cox-tonemap film.mkv --policy "${policy:0:2}"
    done
    offers compress cox-tonemap --gamut c
    offers mkv cox-tonemap film.y4m --to m
    offers gpu,cpu cox-tonemap --devices gpu,c
    cd "$made" || exit
    offers cox-bench cox-tonemap cox-b
    offers cox-bench cox-tonemap film.mkv --stats cox-b
fi
if [ -x "$programs/cox-lab" ]; then
    for command in $("$programs/cox-lab" --help | sed -nE 's/^  ([a-z]+) .*/\1/p'); do
        offers "$command" cox-lab "${command:0:2}"
        every_option cox-lab "$command"
    done
    offers energy cox-lab run --objective e
    for policy in $policies; do
        offers "$policy" cox-lab run --policy "${policy:0:2}"
    done
    offers perfetto cox-lab export session.db --format ''
fi

finish
