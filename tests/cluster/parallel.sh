#!/bin/sh
# examples/cluster/parallel.sh on this machine, and on this machine by ssh; and again after a piece was lost.
#   sh parallel.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
bin=$(cd "$1" && pwd)
source=$(cd "$2" && pwd)
tonemap=$bin/cox-tonemap
export TONEMAP="$tonemap" ENCODE='--encoder ffv1'
work=$(mktemp -d) || exit 1
sshd_pid=
trap '[ -z "$sshd_pid" ] || kill "$sshd_pid" 2>/dev/null; rm -rf "$work"' EXIT
. "$(dirname "$0")/cluster_lib.sh"
parallel --version 2>/dev/null | grep -q '^GNU parallel' || skip "GNU parallel is missing"
export HOME="$work" # parallel keeps things there

recipe() { sh "$source/examples/cluster/parallel.sh" "$work/film.mkv" "$@" </dev/null >"$work/out" 2>"$work/err"; }

if recipe "$work/here.mkv" 4; then pass; else fail "here: $(cat "$work/err")"; fi
whole "$work/here.mkv" 'here'

# One piece is lost, and another is of something else: both are mapped again, and only they.
rm "$work/here.mkv.pieces/piece-2-of-4.mkv"
cp "$work/one.mkv" "$work/here.mkv.pieces/piece-3-of-4.mkv"
touch "$work/before"
sleep 0.1
if recipe "$work/here.mkv" 4; then pass; else fail "again: $(cat "$work/err")"; fi
whole "$work/here.mkv" 'again'
equal "$(find "$work/here.mkv.pieces" -name 'piece-*' -newer "$work/before" | wc -l)" 2 'again: pieces that were mapped'

# What analyse is told goes through, and what it refuses ends all.
if recipe "$work/wrong.mkv" 2 --operator no-such-operator; then fail 'a wrong option: no failure'; else pass; fi
[ -e "$work/wrong.mkv" ] && fail 'a wrong option: a file' || pass

# By ssh, to a server of one's own.
port=$((20000 + $$ % 20000))
ssh-keygen -q -t ed25519 -N '' -f "$work/host" && ssh-keygen -q -t ed25519 -N '' -f "$work/user" && cp "$work/user.pub" "$work/keys"
cat >"$work/sshd.conf" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $work/host
AuthorizedKeysFile $work/keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
END
sshd=$(command -v sshd || echo /usr/sbin/sshd)
cat >"$work/ssh.conf" <<END
Host there
    HostName 127.0.0.1
    Port $port
    IdentityFile $work/user
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
END
mkdir "$work/bin" # parallel has no other way to a configuration of one's own that goes everywhere
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh || echo false)" "$work/ssh.conf" >"$work/bin/ssh"
chmod +x "$work/bin/ssh"
PATH="$work/bin:$PATH"
login="ssh there"
mkdir -p /run/sshd 2>/dev/null
if [ -x "$sshd" ]; then
    "$sshd" -D -f "$work/sshd.conf" -E "$work/sshd.log" &
    sshd_pid=$!
    for try in 1 2 3 4 5 6 7 8 9 10; do
        $login true 2>/dev/null </dev/null && break
        sleep 0.3
    done
fi
if $login true 2>/dev/null </dev/null; then
    export PARALLEL='-S 1/:,1/there'
    if recipe "$work/there.mkv" 5; then pass; else fail "by ssh: $(cat "$work/err")"; fi
    whole "$work/there.mkv" 'by ssh'
    [ "$(grep -c 'Accepted publickey' "$work/sshd.log")" -gt 2 ] && pass || fail 'by ssh: nothing went there'
    if [ -x "$bin/cox-lab" ]; then
        MACHINES='- there' LAB="$bin/cox-lab" sh "$source/examples/cluster/lab.sh" "$work/lab.db" --frames 30 --policy adaptive,ewma --kernel work \
            --devices cpu:2x1 </dev/null >"$work/out" 2>"$work/err" && pass || fail "an experiment: $(cat "$work/err")"
        equal "$(grep -c ': 1 run$' "$work/out")" 2 'an experiment: its machines'
        grep -q 'Coxswain lab report' "$work/lab.html" && pass || fail 'an experiment: no report'
    fi
else
    echo 'by ssh it was not tried: there is no server here that lets one in'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
