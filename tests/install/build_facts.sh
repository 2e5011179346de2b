#!/bin/sh
# What cox-lab prints about its build: the commit of the source's own repository, flags without paths, the hash of the
# kernels. It is the same wherever the source lies, and a build without changes writes nothing.
#   build_facts.sh CMAKE SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
need git sha256sum
cmake=$1
source=$2

# A source tree with two kernels, at a place.
plant() {
    mkdir -p "$1/kernels/a" "$1/kernels/b"
    echo 'kernel void one() {}' >"$1/kernels/a/one.cl"
    echo 'int two();' >"$1/kernels/b/two.clh"
}

# facts TREE: write TREE's facts to facts.c
facts() {
    what="facts of $1"
    check "the script fails" "$cmake" "-DCOX_OUTPUT=$work/d/facts.c" "-DCOX_SOURCE=$1" \
        "-DCOX_KERNELS=$1/kernels/a/one.cl|$1/kernels/b/two.clh" -DCOX_TYPE=Release "-DCOX_COMPILER=GNU 12.2.0" \
        "-DCOX_FLAGS=-O2  -ffile-prefix-map=$1=. -I/home/someone/include -isystem /opt/x -DNAME=\"a\\b\"  -Wall" \
        -P "$source/cmake/BuildFacts.cmake"
}
commit() {
    git -C "$1" -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qam "$2"
}

# Outside of a repository. GIT_CEILING_DIRECTORIES: the temporary folder may lie in one.
GIT_CEILING_DIRECTORIES=$work
GIT_CONFIG_GLOBAL=/dev/null
export GIT_CEILING_DIRECTORIES GIT_CONFIG_GLOBAL
plant "$work/archive"
facts "$work/archive"
contains facts.c '\.commit = "unknown"' '\.type = "Release"' '\.compiler = "GNU 12.2.0"'
contains facts.c '\.flags = "-O2 -ffile-prefix-map=\.=\. -IPATH -isystem PATH -DNAME=\\"a\\\\b\\" -Wall"'
lacks facts.c "$work" someone
hash=$(cd "$work/archive/kernels" && sha256sum a/one.cl b/two.clh | sha256sum | cut -d ' ' -f 1)
contains facts.c "\.kernels_sha256 = \"$hash\""
cp facts.c first.c
plant "$work/another place"
facts "$work/another place"
same first.c facts.c

# The source is the root of a repository.
plant "$work/own"
git init -q "$work/own"
git -C "$work/own" add .
commit "$work/own" first
facts "$work/own"
first=$(git -C "$work/own" rev-parse HEAD)
contains facts.c "\.commit = \"$first\""
git -C "$work/own" -c user.name=a -c user.email=a@b tag -a -m tagged v1
facts "$work/own"
contains facts.c "\.commit = \"$first\""
touch -d '2001-01-01' facts.c
facts "$work/own"
equal "$(date -r facts.c +%Y)" 2001 "the year of a file that did not change"
echo '/* changed */' >>"$work/own/kernels/a/one.cl"
facts "$work/own"
contains facts.c "\.commit = \"$first-dirty\""
lacks facts.c "$hash"

# A copy in somebody else's repository has none.
plant "$work/own/third-party"
git -C "$work/own" add .
commit "$work/own" second
facts "$work/own/third-party"
contains facts.c '\.commit = "unknown"'
finish
