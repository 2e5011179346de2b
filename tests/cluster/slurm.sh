#!/bin/sh
# examples/programs/cluster/slurm.sh with SLURM daemons of this test, on one node. The film is complete, and after a
# failure another start does the rest.
#   sh slurm.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/cluster.sh"
export TONEMAP="$tonemap" ENCODE='--encoder ffv1' PATH="$PATH:/usr/sbin"
need sbatch slurmctld slurmd munged python3
[ "$(id -u)" = 0 ] || skip "SLURM's daemons want root"

# --- A cluster on this machine ---

host=$(hostname -s)
mkdir "$work/state" "$work/spool" "$work/run"
chmod 755 "$work"
head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
export SLURM_CONF="$work/slurm.conf"
down() { # NAME: this daemon has ended
    [ ! -s "$work/run/$1.pid" ] || ! kill -0 "$(cat "$work/run/$1.pid")" 2>/dev/null
}
stop_daemons() {
    for name in slurmd slurmctld munge; do
        down $name || kill "$(cat "$work/run/$name.pid")"
        wait_until 60 "the end of $name" down $name || kill -KILL "$(cat "$work/run/$name.pid")"
    done
}
# up: start the daemons on free ports; succeeds if a node becomes idle
up() {
    ports=$(free_ports 2)
    cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports% *}
SlurmdPort=${ports#* }
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
    slurmctld -f "$SLURM_CONF" >"$work/slurmctld.out" 2>&1
    slurmd -f "$SLURM_CONF" >"$work/slurmd.out" 2>&1
    for _ in $(seq 300); do
        sinfo -h -o %t 2>/dev/null | grep -q idle && return
        # Another program has taken a port meanwhile.
        grep -q 'Address already in use' "$work/slurmctld.log" "$work/slurmd.log" 2>/dev/null && return 1
        sleep 0.5
    done
    false
}
what='SLURM'
at_exit stop_daemons
munged --force --key-file="$work/munge.key" --socket="$work/run/munge.socket" --pid-file="$work/run/munge.pid" \
    --log-file="$work/munge.log" --seed-file="$work/seed" >"$work/munge.out" 2>&1
tries=5
until up; do
    tries=$((tries - 1))
    if [ $tries -eq 0 ] || ! grep -q 'Address already in use' "$work"/slurm*.log; then
        fail "it does not start: $(tail -n 5 "$work"/*.log "$work"/*.out)"
        finish
    fi
    stop_daemons
    rm -f "$work"/slurm*.log
done

# --- The recipe ---

# Parts of these names mean something to a shell, or in SLURM's name of a log.
hostile="it's %j %A \$(id >pwned) {}.mkv"
sdr="sdr $hostile"
cp "$film" "$hostile"
program() { sh "$source/examples/programs/cluster/slurm.sh" "$hostile" "$@"; }
no_jobs() { [ -z "$(squeue -h 2>&1)" ]; }

run 0 'the recipe' "$work/d/$sdr" 4
wait_until 600 'the end of all jobs' no_jobs
whole "$sdr"

rm "$sdr.pieces/piece-1-of-4.mkv" "$sdr"
remember
run 0 'again' "$work/d/$sdr" 4
wait_until 600 'the end of all jobs' no_jobs
whole "$sdr"
equal "$(mapped "$sdr.pieces")" 1 'pieces that were mapped'
check 'no log of a piece' [ "$(find "$sdr.pieces" -name 'map-*-4.log' | wc -l)" -ge 1 ]
equal "$(find "$work" -name 'pwned*')" '' 'code that was run'

# analyse refuses the option. The later jobs do not start, and no file is left.
program "$work/d/wrong.mkv" 2 --operator no-such-operator >"$work/out" 2>"$work/err"
what='a wrong option'
wait_until 600 'the end of all jobs' no_jobs
refute 'a file' [ -e wrong.mkv ]
check 'no log tells' grep -q no-such-operator wrong.mkv.pieces/analyse-*.log
finish
