#!/bin/sh
# examples/cluster/slurm.sh under a SLURM of one's own, of one node: the film is whole; after a failure the rest is done.
#   sh slurm.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
bin=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
tonemap=$bin/cox-tonemap
export TONEMAP="$tonemap" ENCODE='--encoder ffv1' PATH="$PATH:/usr/sbin"
work=$(mktemp -d) || exit 1
daemons=
stop() {
    for name in slurmd slurmctld munge; do
        [ -s "$work/run/$name.pid" ] && kill "$(cat "$work/run/$name.pid")" 2>/dev/null
    done
    [ -z "$daemons" ] || sleep 1
    rm -rf "$work"
}
trap stop EXIT
. "$(dirname "$0")/cluster_lib.sh"
for program in sbatch slurmctld slurmd munged; do
    command -v $program >/dev/null || skip "$program is missing"
done
[ "$(id -u)" = 0 ] || skip "SLURM's daemons want root"

# --- A cluster of this machine ---

host=$(hostname -s)
port=$((20000 + $$ % 20000))
mkdir "$work/state" "$work/spool" "$work/run"
chmod 755 "$work"
head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
cat >"$work/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/run/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_interval=1
ReturnToService=2
MpiDefault=none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP
END
export SLURM_CONF="$work/slurm.conf"
daemons=yes
munged --force --key-file="$work/munge.key" --socket="$work/run/munge.socket" --pid-file="$work/run/munge.pid" \
    --log-file="$work/munge.log" --seed-file="$work/seed" >/dev/null 2>&1
slurmctld -f "$SLURM_CONF" >/dev/null 2>&1
slurmd -f "$SLURM_CONF" >/dev/null 2>&1
tries=60
until sinfo -h -o %t 2>/dev/null | grep -q idle || [ $tries -eq 0 ]; do
    sleep 0.5
    tries=$((tries - 1))
done
[ $tries -gt 0 ] || skip "SLURM does not start here: $(tail -n 1 "$work/slurmctld.log" "$work/slurmd.log" 2>/dev/null | tr '\n' ' ')"

# --- The recipe ---

# recipe OUTPUT ...: until no job is left; sets `last`.
recipe() {
    last=$(sh "$source/examples/cluster/slurm.sh" "$work/film.mkv" "$@" </dev/null 2>"$work/err") || return 1
    tries=600
    while [ -n "$(squeue -h 2>/dev/null)" ] && [ $tries -gt 0 ]; do
        sleep 0.5
        tries=$((tries - 1))
    done
    [ $tries -gt 0 ]
}

if recipe "$work/film sdr.mkv" 4; then pass; else fail "the recipe: $(cat "$work/err" "$work"/*.pieces/*.log)"; fi
whole "$work/film sdr.mkv" 'the recipe'

rm "$work/film sdr.mkv.pieces/piece-1-of-4.mkv" "$work/film sdr.mkv"
touch "$work/before"
sleep 0.1
if recipe "$work/film sdr.mkv" 4; then pass; else fail "again: $(cat "$work/err")"; fi
whole "$work/film sdr.mkv" 'again'
equal "$(find "$work/film sdr.mkv.pieces" -name 'piece-*' -newer "$work/before" | wc -l)" 1 'again: pieces that were mapped'

# What analyse refuses: the jobs behind it do not begin, and there is no file.
recipe "$work/wrong.mkv" 2 --operator no-such-operator
[ -e "$work/wrong.mkv" ] && fail 'a wrong option: a file' || pass
grep -q no-such-operator "$work"/wrong.mkv.pieces/analyse-*.log && pass || fail 'a wrong option: no log tells'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
