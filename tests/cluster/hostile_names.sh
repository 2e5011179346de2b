#!/bin/sh
# The recipes in examples/programs/cluster with file names that a shell, GNU parallel, SLURM or ssh could take for code. The
# names must arrive at the programs unchanged. Instead of these programs, the recipes start one that notes its arguments.
#   sh hostile_names.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/hostile_names.sh"
recipes=$source/examples/programs/cluster
mkdir "$work/bin"
noted=$work/noted

# A program that notes its arguments, each with a NUL, and makes the file that is named after -o.
cat >"$work/bin/cox-tonemap" <<END
#!/bin/sh
printf '%s\0' "\$@" end >>'$noted'
while [ \$# -gt 1 ]; do
    [ "\$1" != -o ] || echo made >"\$2"
    shift
done
END
cp "$work/bin/cox-tonemap" "$work/bin/cox-lab"

# ssh to this machine: the command goes through one shell more, with another working directory.
cat >"$work/bin/ssh" <<'END'
#!/bin/sh
while [ "$1" != there ]; do shift; done
shift
[ "${1:-}" != -- ] || shift
cd / && exec sh -c "$*"
END

# sbatch that runs the job at once. It knows the options that the recipe uses, and replaces what SLURM replaces.
cat >"$work/bin/sbatch" <<'END'
#!/bin/sh
array=
for option; do
    case $option in
    --output=*) pattern=${option#*=} ;;
    --array=*) array=${option#*=1-} ;;
    --wrap=*) command=${option#*=} ;;
    esac
done
two=$(printf '\002')
for number in $(seq "${array:-1}"); do
    log=$(printf %s "$pattern" | sed "s/%%/$two/g; s/%[jA]/1/g; s/%a/$number/g; s/%x/job/g; s/$two/%/g")
    SLURM_ARRAY_TASK_ID=$number sh -c "$command" >"$log" 2>&1 || exit
done
echo 1
END
chmod +x "$work/bin"/*
export PATH="$work/bin:$PATH" HOME="$work" PARALLEL=

# expected WORD...: the arguments of the next program
expected() { printf '%s\0' "$@" end >>"$work/right"; }

# A film of two pieces.
film_steps() { # FILM OUTPUT OPTIONS-OF-SHARE...
    film=$1
    output=$2
    shift 2
    expected analyse "$film" --share 1/2 "$@" -o "$output.pieces/1-of-2.part"
    expected analyse "$film" --share 2/2 "$@" -o "$output.pieces/2-of-2.part"
    expected steer "$output.pieces/1-of-2.part" "$output.pieces/2-of-2.part" -o "$output.pieces/film.scene"
    expected map "$film" --scene "$output.pieces/film.scene" --share 1/2 "$@" -o "$output.pieces/piece-1-of-2.mkv"
    expected map "$film" --scene "$output.pieces/film.scene" --share 2/2 "$@" -o "$output.pieces/piece-2-of-2.mkv"
    expected join "$output.pieces/piece-1-of-2.mkv" "$output.pieces/piece-2-of-2.mkv" --scene "$output.pieces/film.scene" \
        --source "$film" -o "$output" --overwrite
}

# Each name is the film's name, and with a suffix the output's name.
recipe() { # KIND NUMBER
    kind=$1
    what="$1, name $2"
    clean
    : >"$noted"
    : >"$work/right"
    case $kind in
    parallel | ssh)
        film_steps "$work/d/$name" "$work/d/${name}2" --quiet
        expect_status 0 "$what" sh "$recipes/parallel.sh" "$name" "${name}2" 2
        ;;
    slurm)
        case $name in
        *\\*)
            expect_status 2 "$what" sh "$recipes/slurm.sh" "$name" "${name}2" 2
            contains err 'SLURM cannot write logs to a folder whose name has a backslash'
            harmless
            return
            ;;
        esac
        film_steps "$work/d/$name" "$work/d/${name}2"
        expect_status 0 "$what" sh "$recipes/slurm.sh" "$name" "${name}2" 2
        ;;
    esac
    same "$noted" "$work/right" 'the arguments'
    only 'the folder' "${name}2" "${name}2.pieces"
    [ "$kind" != slurm ] || check 'no logs' [ -e "${name}2.pieces/map-1-2.log" ]
    harmless
}

each_name recipe slurm
if parallel --version 2>/dev/null | grep -q '^GNU parallel'; then
    each_name recipe parallel
    export PARALLEL='-S 1/there'
    each_name recipe ssh
    PARALLEL=
else
    leave_out 'parallel.sh' 'GNU parallel is missing'
fi

experiment() { # NUMBER
    what="lab, name $1"
    clean
    : >"$noted"
    : >"$work/right"
    result=$work/d/$name
    expected run --kernel "$name" -o "$result.machines/there.db"
    expected merge "$result.machines/there.db" -o "$result"
    expected report "$result" -o "${result%.db}.html"
    MACHINES=there expect_status 0 "$what" sh "$recipes/lab.sh" "$name" --kernel "$name"
    same "$noted" "$work/right" 'the arguments'
    only 'the folder' "${name}.machines" "$name" "$name.html"
    harmless
}
each_name experiment

# Kubernetes: all names in one call.
if python3 -c 'import yaml' 2>/dev/null; then
    names=$work/names
    : >"$names"
    add_name() { printf '%s\0' "$name" >>"$names"; }
    each_name add_name
    clean
    expect_status 0 'Kubernetes' python3 "$source/tests/cluster/hostile_kubernetes.py" "$recipes/kubernetes.yaml" "$names" "$noted"
    harmless
else
    leave_out 'kubernetes.yaml' "Python's yaml is missing"
fi
finish
