#!/bin/sh
# What cox-devices prints, and how it fails.   sh devices.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
set -u
devices=$1/cox-devices
tonemap=$1/cox-tonemap # may not be built
clip=$2/examples/data/stilllife_pq_480x270.y4m
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE POCL_DEVICES OCL_ICD_VENDORS
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    sed 's/^/    out: /' "$work/out"
    sed 's/^/    err: /' "$work/err"
}

# run EXIT_STATUS NAME ARGS...: the program ends with that status.
run() {
    expected=$1
    what=$2
    shift 2
    "$devices" "$@" >"$work/out" 2>"$work/err"
    status=$?
    if [ "$status" -eq "$expected" ]; then pass; else fail "$what: status $status instead of $expected"; fi
}

# has FILE PATTERN NAME: some line of out or err matches.
has() { if grep -Eq -- "$2" "$work/$1"; then pass; else fail "$3: no line matches '$2'"; fi; }
lacks() { if grep -Eq -- "$2" "$work/$1"; then fail "$3: a line matches '$2'"; else pass; fi; }

# fails_with_one_line STATUS PATTERN NAME ARGS...: nothing on standard output, one line on standard error.
fails_with_one_line() {
    expected=$1
    pattern=$2
    about=$3
    shift 3
    run "$expected" "$about" "$@"
    has err "$pattern" "$about"
    if [ -s "$work/out" ]; then fail "$about: something on standard output"; else pass; fi
    if [ "$(wc -l <"$work/err")" -eq 1 ]; then pass; else fail "$about: not one line of error"; fi
}

# A PCI folder with one device of that class and vendor.
pci() {
    rm -rf "$work/pci"
    mkdir -p "$work/pci/0000:01:00.0"
    echo "$1" >"$work/pci/0000:01:00.0/class"
    echo "$2" >"$work/pci/0000:01:00.0/vendor"
}
mkdir "$work/none" "$work/vendors"

# --- Without any platform --------------------------------------------------------------------------------------------
OCL_ICD_VENDORS=$work/vendors
export OCL_ICD_VENDORS
fails_with_one_line 1 'no OpenCL platform is installed.*pocl-opencl-icd' 'no platform' --pci "$work/none"
fails_with_one_line 1 'no OpenCL platform is installed' 'no platform, JSON' --json --pci "$work/none"
pci 0x030000 0x8086
run 1 'no platform, a GPU by Intel' --pci "$work/pci"
has err 'GPU by Intel.*intel-opencl-icd' 'no platform, a GPU by Intel'
unset OCL_ICD_VENDORS

# --- Without /sys, as in a bare chroot -------------------------------------------------------------------------------
if unshare --mount sh -c 'umount -l /sys && [ ! -e /sys/devices/system ]' 2>/dev/null; then
    # What OpenCL makes of it is another matter: PoCL 6 ends the process.
    unshare --mount sh -c 'umount -l /sys && exec "$0"' "$devices" >"$work/out" 2>"$work/err"
    if head -n 1 "$work/err" | grep -q 'nothing in /sys, .*mount -t sysfs sysfs /sys'; then pass; else fail 'no /sys'; fi
else
    echo "skipped what is said without /sys, because it cannot be taken away here"
fi

# --- Arguments -------------------------------------------------------------------------------------------------------
run 0 'help' --help
has out '^Usage: cox-devices' 'help'
run 0 'version' --version
has out '^cox-devices [0-9]+\.[0-9]+\.[0-9]+$' 'version'
fails_with_one_line 2 "nonsense" 'an argument too many' nonsense
fails_with_one_line 2 "unrecognized option" 'an unknown option' --nonsense
for reserve in '' maybe -1 1x 99999999999; do
    fails_with_one_line 2 'auto, on, off or the number of a CPU' "reserve '$reserve'" "--reserve=$reserve"
done

run 0 'a plain call' --pci "$work/none"
if [ "$status" -ne 0 ] && grep -Eq 'no OpenCL (platform|device)' "$work/err"; then
    echo "skipped the rest, because this machine has no OpenCL device"
    echo "$passed passed, 0 failed"
    exit 77
fi
fails_with_one_line 1 "no device matches 'no such thing'; there is [0-9]+\.[0-9]+: " 'an unknown device' \
    --devices 'no such thing'
fails_with_one_line 1 'cpu:2y1.*:NxC' 'malformed sub-devices' --devices cpu:2y1
fails_with_one_line 1 'empty entry' 'an empty entry' --devices ,
fails_with_one_line 1 'shared, mapped or staged' 'an unknown mode' --devices all=fast
fails_with_one_line 1 'CPU 8191 does not exist' 'a CPU that is not there' --reserve 8191

# --- Text ------------------------------------------------------------------------------------------------------------
run 0 'text' --pci "$work/none"
for section in Processor Platforms Devices; do has out "^$section\$" 'text'; done
has out '^  cores  +[0-9]+' 'text'
has out '^  reserved core  .' 'text'
has out '^  [0-9]+\.[0-9]+ +(cpu|gpu|accelerator|other) +(shared|mapped|staged) +[0-9]+ ' 'text'
if awk '/^Devices$/ {getline head; at = index(head, "NAME")} at && /^  [0-9]+\.[0-9]+ / {n++; if (substr($0, at - 1, 1) != " " || substr($0, at, 1) == " ") bad = 1} END {exit !(n && !bad)}' "$work/out"; then
    pass
else
    fail 'the names do not stand under their heading'
fi
lacks out '[[:blank:]]$' 'text has no trailing blanks'
run 0 'off' --reserve off --pci "$work/none"
has out 'reserved core  none: switched off' 'off'
if [ -w /dev/full ]; then
    "$devices" >/dev/full 2>"$work/err"
    status=$?
    : >"$work/out"
    if [ "$status" -eq 1 ]; then pass; else fail "a full disk: status $status"; fi
    has err 'cannot be written' 'a full disk'
fi

# --- What is missing -------------------------------------------------------------------------------------------------
# Makers without a device on this machine only, so that the test holds on machines with GPUs.
run 0 'names' --json --pci "$work/none"
cp "$work/out" "$work/plain.json"
for maker in 0x8086:Intel:intel-opencl-icd 0x10de:NVIDIA:nvidia-opencl-icd 0x1002:AMD:RUSTICL_ENABLE; do
    vendor=${maker%%:*}
    package=${maker##*:}
    name=${maker#*:}
    name=${name%:*}
    if grep -Eiq "\"(name|platform)\": .*($name|radeon|gfx)" "$work/plain.json"; then continue; fi
    pci 0x030200 "$vendor"
    run 0 "a GPU by $name" --pci "$work/pci"
    has out "^Missing\$" "a GPU by $name"
    has out "GPU by $name.*$package" "a GPU by $name"
    pci 0x020000 "$vendor"
    run 0 "a network card by $name" --pci "$work/pci"
    lacks out "GPU by $name" "a network card by $name"
    pci 0x030200 "$vendor"
    run 0 'a selection lacks nothing' --devices all --pci "$work/pci"
    lacks out '^Missing$' 'a selection lacks nothing'
done
pci 0x030000 0x1a03
run 0 "a server's console chip" --pci "$work/pci"
lacks out 'There is a GPU' "a server's console chip"

# --- JSON ------------------------------------------------------------------------------------------------------------
for key in version host cores cpus kinds reserved workers_kept_off reserved_cpu reserve_reason platforms index vendor \
    devices number name platform driver id type mode platform_index device_index subdevice context_group compute_units \
    parent_units max_work_group vector_width_float base_align_bytes global_bytes max_alloc_bytes unified host_memory fma arithmetic missing notes; do
    if grep -q "\"$key\": " "$work/plain.json"; then pass; else fail "JSON lacks \"$key\""; fi
done
if command -v jq >/dev/null; then
    query() {
        if jq -e "$2" "$work/plain.json" >/dev/null 2>"$work/err"; then pass; else fail "JSON: $1"; fi
    }
    query 'is well-formed' .
    # shellcheck disable=SC2016 # $p is jq's
    query 'every device names an existing platform' \
        '.platforms as $p | all(.devices[]; $p[.platform_index].name == .platform)'
    query 'every device has a number of its own' '[.devices[].number] | length == (unique | length)'
    query 'devices in one context share memory' \
        'all(.devices | group_by(.context_group)[] | select(length > 1)[]; .mode != "mapped")'
    query 'reserved_cpu is null unless a core is reserved' '.host | .reserved == (.reserved_cpu != null)'
    query 'cores are at most CPUs' '.host.cores >= 1 and .host.cores <= .host.cpus'
    query 'kinds add up to the cores' '.host | (.kinds | length) == 0 or ([.kinds[].cores] | add) == .cores'
    number=$(jq -r '.devices[0].number' "$work/plain.json")
    run 0 'the number selects the device' --json --devices "$number"
    if jq -e --arg number "$number" '.devices | length == 1 and .[0].number == $number' "$work/out" >/dev/null; then
        pass
    else
        fail "--devices $number does not give that device"
    fi
fi

# --- Kernels before they are needed -----------------------------------------------------------------------------------
cache=$work/compiled
XDG_CACHE_HOME=$cache run 0 'kernels compiled' --compile --devices cpu
if [ "$(grep -cE '^  (PQ|HLG) .* peak .* [0-9.]+ s$' "$work/out")" -eq 8 ]; then pass; else fail 'kernels compiled: films'; fi
if [ "$(find "$cache/coxswain" -name '*.bin' | wc -l)" -ge 8 ]; then pass; else fail 'kernels compiled: files'; fi
kept=$(find "$cache/coxswain" -name '*.bin' | wc -l)
for film in '' '--peak 600' '--scale 1/2' '--scale 1/2 --peak 600'; do
    # shellcheck disable=SC2086
    [ ! -x "$tonemap" ] || XDG_CACHE_HOME=$cache "$tonemap" -q "$clip" -o null: --devices cpu $film 2>>"$work/err"
done
if [ "$(find "$cache/coxswain" -name '*.bin' | wc -l)" -eq "$kept" ]; then pass; else fail 'kernels compiled: a film needs others'; fi
HOME='' XDG_CACHE_HOME='' run 1 'nowhere to keep kernels' --compile
has err 'no folder to keep kernels in' 'nowhere to keep kernels'

# --- Frames that are measured ----------------------------------------------------------------------------------------
run 0 'measured frames' --measure
has out '^Ends of frames of 64 KiB' 'measured frames'
count=$(grep -Ec '^  [0-9]+\.[0-9]+(#[0-9]+)? +(its clock tells none|[0-9.]+ us +[0-9.]+ us +[0-9.]+ us$)' "$work/out")
if [ "$count" -eq "$(grep -c '"number":' "$work/plain.json")" ]; then pass; else fail "measured frames: $count devices"; fi
count=$(grep -Ec '^  [0-9]+\.[0-9]+(#[0-9]+)? +[0-9.]+ us  (wrapped: nothing is copied|copied, at [0-9.]+ GB/s)$' "$work/out")
if [ "$count" -eq "$(grep -c '"number":' "$work/plain.json")" ]; then pass; else fail "measured memory: $count devices"; fi
run 0 'measured frames as JSON' --measure --json
has out '"frame_memory": \{"wrapped": (true|false), "extra_us": [0-9.]+, "gb_per_s": [0-9.e+]+\}' 'measured frames as JSON'
has out '"noticed_after": (null|\{"p50_us": [0-9.]+, "p99_us": [0-9.]+, "clock_error_us": [0-9.]+\})' 'measured frames as JSON'

# --- Benches that this machine can have ------------------------------------------------------------------------------
if grep -q '"type": "cpu"' "$work/plain.json" && grep -Eq '"parent_units": ([2-9]|[1-9][0-9])' "$work/plain.json"; then
    # No machine of today copies 128 MiB in and out as fast as it hands them over.
    run 0 'a staged device copies' --devices cpu=staged --measure
    has out '^  [0-9.]+ +[0-9.]+ us  copied, at ' 'a staged device copies'
    run 0 'sub-devices' --devices cpu:2x1
    has out '#1 +cpu +.* 1/[0-9]+ ' 'sub-devices'
    has out '#2 +cpu +.* 1/[0-9]+ ' 'sub-devices'
fi
if [ "$(grep '"cores":' "$work/plain.json" | head -n 1 | tr -dc 0-9)" -ge 2 ] &&
    grep -q '"platform": "Portable Computing Language"' "$work/plain.json"; then
    run 0 'forced reservation' --json --devices cpu --reserve on
    has out '"reserved": true' 'forced reservation'
    has out '"workers_kept_off": true' 'forced reservation'
    has out '"reserve_reason": "CPU [0-9]+ \(.*\): [0-9]+ worker threads? stays? off it"' 'forced reservation'
fi
if grep -q '"name": "rusticl"' "$work/plain.json"; then
    run 0 'rusticl without drivers'
    has out 'rusticl .* none, which is normal \(.*RUSTICL_ENABLE\)' 'rusticl without drivers'
    RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    export RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
    run 0 'llvmpipe as a GPU' --devices all,gpu --measure
    has out ' gpu .* llvmpipe' 'llvmpipe as a GPU'
    has out '^Arithmetic of all of them: muladd' 'llvmpipe as a GPU'
    has out 'llvmpipe.* has no fma' 'llvmpipe as a GPU'
    has out '^  [0-9.]+ +(its clock tells none|[0-9.]+ us +[0-9.]+ us +[0-9.]+ us$)' 'llvmpipe measured'
    # Without a GPU that computes on the processor all can have fma.
    run 0 'all but llvmpipe' --json
    if grep -q '"fma": "fast"' "$work/out"; then lacks out llvmpipe 'all but llvmpipe'; else has out llvmpipe 'without fma'; fi
    unset RUSTICL_ENABLE RUSTICL_DEVICE_TYPE
else
    echo "skipped llvmpipe, because rusticl is not installed"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
