#!/bin/sh
# What cox-devices prints, and how it fails.
#   sh devices.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/../support/harness.sh"
unset OCL_ICD_VENDORS
devices=$bin/cox-devices

program() { "$devices" "$@"; }

# fails_with_one_line STATUS PATTERN WHAT ARGS...: nothing on standard output, one line on standard error.
fails_with_one_line() {
    denies "$@"
    equal "$(cat "$work/out")" '' 'standard output'
    equal "$(wc -l <"$work/err")" 1 'lines of the error'
}

# A PCI folder with one device of this class and vendor.
pci() {
    rm -rf "$work/pci"
    mkdir -p "$work/pci/0000:01:00.0"
    echo "$1" >"$work/pci/0000:01:00.0/class"
    echo "$2" >"$work/pci/0000:01:00.0/vendor"
}
mkdir "$work/none" "$work/vendors"

# --- Without any platform --------------------------------------------------------------------------------------------
export OCL_ICD_VENDORS="$work/vendors"
fails_with_one_line 1 'no OpenCL platform is installed.*pocl-opencl-icd' 'no platform' --pci "$work/none"
fails_with_one_line 1 'no OpenCL platform is installed' 'no platform, JSON' --json --pci "$work/none"
pci 0x030000 0x8086
denies 1 'Intel GPU found.*intel-opencl-icd' 'no platform, a GPU by Intel' --pci "$work/pci"
unset OCL_ICD_VENDORS

# --- Without /sys, as in a bare chroot -------------------------------------------------------------------------------
if unshare --mount sh -c 'umount -l /sys && [ ! -e /sys/devices/system ]' 2>/dev/null; then
    # OpenCL may fail here: PoCL 6 ends the process.
    what='no /sys'
    unshare --mount sh -c 'umount -l /sys && exec "$0"' "$devices" >"$work/out" 2>"$work/err"
    head -n 1 "$work/err" >"$work/first"
    contains "$work/first" '/sys is not mounted, .*mount -t sysfs sysfs /sys'
else
    leave_out 'what is said without /sys' 'it cannot be taken away here'
fi

# --- Arguments -------------------------------------------------------------------------------------------------------
prints '^Usage: cox-devices' 'help' --help
prints '^cox-devices [0-9]+\.[0-9]+\.[0-9]+$' 'version' --version
fails_with_one_line 2 "nonsense" 'an argument too many' nonsense
fails_with_one_line 2 "unrecognized option" 'an unknown option' --nonsense
for reserve in '' maybe -1 1x 99999999999; do
    fails_with_one_line 2 'auto, on, off or the number of a CPU' "reserve '$reserve'" "--reserve=$reserve"
done

need_device
run 0 'a plain call' --pci "$work/none"
fails_with_one_line 1 "no device matches 'no such thing'; available: [0-9]+\.[0-9]+: " 'an unknown device' \
    --devices 'no such thing'
fails_with_one_line 1 'cpu:2y1.*:NxC' 'malformed sub-devices' --devices cpu:2y1
fails_with_one_line 1 'empty entry' 'an empty entry' --devices ,
fails_with_one_line 1 'shared, mapped or staged' 'an unknown mode' --devices all=fast
fails_with_one_line 1 'CPU 8191 does not exist' 'a CPU that is not there' --reserve 8191

# --- Text ------------------------------------------------------------------------------------------------------------
run 0 'text' --pci "$work/none"
contains out '^Processor$' '^Platforms$' '^Devices$' '^  cores  +[0-9]+' '^  reserved core  .'
contains out '^  [0-9]+\.[0-9]+ +(cpu|gpu|accelerator|other) +(shared|mapped|staged) +[0-9]+ '
check 'the names do not stand under their heading' awk '/^Devices$/ {getline head; at = index(head, "NAME")} at && /^  [0-9]+\.[0-9]+ / {n++; if (substr($0, at - 1, 1) != " " || substr($0, at, 1) == " ") bad = 1} END {exit !(n && !bad)}' "$work/out"
lacks out '[[:blank:]]$'
prints 'reserved core  none: switched off' 'off' --reserve off --pci "$work/none"
if [ -w /dev/full ]; then
    what='a full disk'
    "$devices" >/dev/full 2>"$work/err"
    equal $? 1 'status'
    contains err 'cannot write to standard output'
fi

# --- What is missing -------------------------------------------------------------------------------------------------
# Only makers without a device on this machine, so that the test passes on machines with GPUs.
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
    contains out "^Missing\$" "$name GPU found.*$package"
    pci 0x020000 "$vendor"
    run 0 "a network card by $name" --pci "$work/pci"
    lacks out "$name GPU"
    pci 0x030200 "$vendor"
    run 0 'a selection lacks nothing' --devices all --pci "$work/pci"
    lacks out '^Missing$'
done
pci 0x030000 0x1a03
run 0 "a server's console chip" --pci "$work/pci"
lacks out 'GPU found'

# --- JSON ------------------------------------------------------------------------------------------------------------
for key in version host cores cpus kinds reserved workers_kept_off reserved_cpu reserve_reason platforms index vendor \
    devices number name platform driver id type mode platform_index device_index subdevice context_group compute_units \
    parent_units max_work_group vector_width_float base_align_bytes global_bytes max_alloc_bytes unified host_memory fma arithmetic missing notes; do
    check "JSON lacks \"$key\"" grep -q "\"$key\": " "$work/plain.json"
done
if command -v jq >/dev/null; then
    query() {
        check "$1" jq -e "$2" "$work/plain.json"
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
    # shellcheck disable=SC2016
    check 'another device' jq -e --arg number "$number" '.devices | length == 1 and .[0].number == $number' "$work/out"
fi

# --- Measured frames -------------------------------------------------------------------------------------------------
prints '^How soon the end of a frame of 64 KiB is noticed' 'measured frames' --measure
count=$(grep -c '"number":' "$work/plain.json")
counts "$count" out '^  [0-9]+\.[0-9]+(#[0-9]+)? +(its clock does not report ends|[0-9.]+ us +[0-9.]+ us +[0-9.]+ us$)'
counts "$count" out '^  [0-9]+\.[0-9]+(#[0-9]+)? +[0-9.]+ us  (wrapped: no copies|copied, at [0-9.]+ GB/s)$'
run 0 'measured frames as JSON' --measure --json
contains out '"frame_memory": \{"wrapped": (true|false), "extra_us": [0-9.]+, "gb_per_s": [0-9.e+]+\}'
contains out '"noticed_after": (null|\{"p50_us": [0-9.]+, "p99_us": [0-9.]+, "clock_error_us": [0-9.]+\})'

# --- Configurations that this machine supports -----------------------------------------------------------------------
if grep -q '"type": "cpu"' "$work/plain.json" && grep -Eq '"parent_units": ([2-9]|[1-9][0-9])' "$work/plain.json"; then
    # No current machine copies 128 MiB in and out as fast as it hands them over without a copy.
    prints '^  [0-9.]+ +[0-9.]+ us  copied, at ' 'a staged device copies' --devices cpu=staged --measure
    run 0 'sub-devices' --devices cpu:2x1
    contains out '#1 +cpu +.* 1/[0-9]+ ' '#2 +cpu +.* 1/[0-9]+ '
fi
if [ "$(grep '"cores":' "$work/plain.json" | head -n 1 | tr -dc 0-9)" -ge 2 ] &&
    grep -q '"platform": "Portable Computing Language"' "$work/plain.json"; then
    run 0 'forced reservation' --json --devices cpu --reserve on
    contains out '"reserved": true' '"workers_kept_off": true'
    contains out '"reserve_reason": "CPU [0-9]+ \(.*\): [0-9]+ worker threads? stays? off it"'
fi
if grep -q '"name": "rusticl"' "$work/plain.json"; then
    run 0 'rusticl without drivers'
    contains out 'rusticl .* none, which is normal \(.*RUSTICL_ENABLE\)'
    export RUSTICL_ENABLE=llvmpipe RUSTICL_DEVICE_TYPE=gpu
    run 0 'llvmpipe as a GPU' --devices all,gpu --measure
    contains out ' gpu .* llvmpipe' '^Arithmetic of all devices: muladd' 'llvmpipe.* has no fma'
    contains out '^  [0-9.]+ +(its clock does not report ends|[0-9.]+ us +[0-9.]+ us +[0-9.]+ us$)'
    # The default leaves a software GPU out if the CPU has fma, and says why.
    why='it is a software GPU without fma, and the CPU has fma; '
    for selection in '' '--devices all'; do
        run 0 "$selection: all but llvmpipe" $selection --json
        if grep -q '"fma": "fast"' "$work/out"; then
            contains out "\"left_out\": " "\"number\": \"[0-9.]+\".*\"name\": \"llvmpipe.*\"reason\": \"$why" \
                '"name": "rusticl"' '"notes": \[\]'
            lacks out '^ +"name": "llvmpipe'
            run 0 "$selection: all but llvmpipe, text" $selection
            contains out '^Left out$' "^  [0-9.]+  llvmpipe.* \(rusticl\): $why" '^Arithmetic of all devices: fma$'
        else
            contains out '"name": "llvmpipe'
            lacks out "$why" '^Left out$'
        fi
    done
    run 0 'llvmpipe by its name' --devices llvmpipe
    lacks out '^Left out$'
else
    leave_out 'llvmpipe' 'rusticl is not installed'
fi
finish
