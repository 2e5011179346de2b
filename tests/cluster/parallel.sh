#!/bin/sh
# examples/programs/cluster/parallel.sh on this machine, directly and by ssh, and started again after a piece was lost.
#   sh parallel.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/cluster.sh"
parallel --version 2>/dev/null | grep -q '^GNU parallel' || skip "GNU parallel is missing"
export TONEMAP="$tonemap" ENCODE='--encoder ffv1' HOME="$work" # GNU parallel stores files in HOME

program() { sh "$source/examples/programs/cluster/parallel.sh" "$film" "$@"; }

run 0 'here' here.mkv 4
whole here.mkv

# One piece is missing and one belongs to another film. Only these two are mapped again.
rm here.mkv.pieces/piece-2-of-4.mkv
cp "$one" here.mkv.pieces/piece-3-of-4.mkv
remember
run 0 'again' here.mkv 4
whole here.mkv
equal "$(mapped here.mkv.pieces)" 2 'pieces that were mapped'

# The options of analyse are passed on, and an error of analyse ends everything.
what='a wrong option'
refute 'no failure' program wrong.mkv 2 --operator no-such-operator
refute 'a file' [ -e wrong.mkv ]

# By ssh, with a separate server for each connection, which needs no port.
sshd=$(PATH="$PATH:/usr/sbin" command -v sshd)
if [ -z "$sshd" ] || ! command -v ssh >/dev/null; then
    leave_out 'by ssh' 'there is no ssh, or no server (Debian: openssh-server)'
    finish
fi
what='by ssh'
mkdir -p /run/sshd "$work/bin" 2>/dev/null
check 'no key can be made' ssh-keygen -q -t ed25519 -N '' -f "$work/host"
check 'no key can be made' ssh-keygen -q -t ed25519 -N '' -f "$work/user"
cp "$work/user.pub" "$work/keys"
cat >"$work/sshd.conf" <<END
HostKey $work/host
AuthorizedKeysFile $work/keys
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
END
cat >"$work/ssh.conf" <<END
Host there
    ProxyCommand $sshd -i -f $work/sshd.conf -E $work/sshd.log
    IdentityFile $work/user
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
END
# GNU parallel has no other way to use a configuration file for every connection
printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$work/ssh.conf" >"$work/bin/ssh"
chmod +x "$work/bin/ssh"
PATH="$work/bin:$PATH"
if ! ssh there true 2>"$work/err"; then
    fail "no login; the server says: $(cat "$work/sshd.log")"
    finish
fi
export PARALLEL='-S 1/:,1/there'
run 0 'by ssh' "$work/d/there.mkv" 5
whole there.mkv
check 'nothing went there' [ "$(grep -c 'Accepted publickey' "$work/sshd.log")" -gt 2 ]
if [ -x "$bin/cox-lab" ]; then
    export MACHINES='- there' LAB="$bin/cox-lab"
    expect_status 0 'an experiment' sh "$source/examples/programs/cluster/lab.sh" "$work/d/lab.db" --frames 30 --policy adaptive,ewma \
        --kernel work --devices cpu:2x1
    counts 2 out ': 1 run$'
    contains lab.html 'Coxswain lab report'
fi
finish
