#!/bin/sh
# Writes a copy of a laptop's /sys, with the files that telemetry reads and some that it must ignore. The layout
# follows the kernel's documents (Documentation/ABI/testing, hwmon/sysfs-interface, power/powercap,
# gpu/amdgpu/thermal).
#
#   sh sysfs.sh meteor-lake|ryzen DIR
# SPDX-License-Identifier: Apache-2.0
set -eu
root=$2

# put PATH TEXT: write a file; \n in the text ends a line.
put() {
    folder=$root/${1%/*}
    [ -d "$folder" ] || mkdir -p "$folder"
    printf '%b\n' "$2" >"$root/$1"
}

# cpu NUMBER SIBLINGS CORE KHZ MOST_KHZ
cpu() {
    at=devices/system/cpu/cpu$1
    put "$at/topology/thread_siblings_list" "$2"
    put "$at/topology/physical_package_id" 0
    put "$at/topology/core_id" "$3"
    put "$at/cpufreq/scaling_cur_freq" "$4"
    put "$at/cpufreq/cpuinfo_max_freq" "$5"
    put "$at/cpufreq/cpuinfo_min_freq" 400000
    put "$at/cpufreq/scaling_governor" powersave
    put "$at/cpufreq/energy_performance_preference" balance_performance
}

# zone NAME MEASURES MICROJOULES
zone() {
    put "class/powercap/$1/name" "$2"
    put "class/powercap/$1/energy_uj" "$3"
    put "class/powercap/$1/max_energy_range_uj" 262143328850
}

# A Core Ultra 7 155H, Linux 6.8, i915: six P cores with two threads, eight E cores, two LP-E cores.
meteor_lake() {
    put devices/cpu_core/type 4
    put devices/cpu_core/cpus 0-11
    put devices/cpu_atom/type 10
    put devices/cpu_atom/cpus 12-21
    n=0
    while [ $n -lt 22 ]; do
        if [ $n -lt 12 ]; then
            first=$((n / 2 * 2))
            most=4500000
            [ $n -ge 4 ] && [ $n -lt 8 ] && most=4800000
            cpu $n "$first-$((first + 1))" $((n / 2 * 4)) $((3000000 + n / 2 * 100000)) $most
        elif [ $n -lt 20 ]; then
            cpu $n $n $((n + 12)) 2400000 3800000
        else
            cpu $n $n $((n + 44)) 700000 2500000
        fi
        at=devices/system/cpu/cpu$n/thermal_throttle
        put "$at/core_throttle_count" 5
        put "$at/package_throttle_count" 40
        n=$((n + 1))
    done
    put devices/system/cpu/online 0-21
    put devices/system/cpu/cpufreq/policy0/scaling_cur_freq 3000000
    put firmware/acpi/platform_profile balanced

    put class/hwmon/hwmon0/name AC
    put class/hwmon/hwmon1/name nvme
    put class/hwmon/hwmon1/temp1_input 41850
    put class/hwmon/hwmon6/name coretemp
    put class/hwmon/hwmon6/temp1_label 'Package id 0'
    put class/hwmon/hwmon6/temp1_input 71000
    put class/hwmon/hwmon6/temp1_crit 110000
    core=0
    for heat in 66000 69000 71000 68000 64000 63000; do
        put class/hwmon/hwmon6/temp$((core + 2))_label "Core $core"
        put class/hwmon/hwmon6/temp$((core + 2))_input $heat
        core=$((core + 4))
    done
    put class/thermal/thermal_zone0/type acpitz
    put class/thermal/thermal_zone0/temp 27800
    put class/thermal/thermal_zone9/type x86_pkg_temp
    put class/thermal/thermal_zone9/temp 72000
    put class/thermal/cooling_device0/type Processor

    put class/powercap/intel-rapl/enabled 1
    zone intel-rapl:0 package-0 81000000000
    zone intel-rapl:0:0 core 52000000000
    zone intel-rapl:0:1 uncore 3000000000
    zone intel-rapl:1 psys 99000000000
    zone intel-rapl-mmio:0 package-0 81000000000
    put devices/power/type 21
    put devices/power/cpumask 0
    code=1
    for event in cores pkg ram gpu psys; do
        if [ $event != ram ]; then
            put devices/power/events/energy-$event "event=0x0$code"
            put devices/power/events/energy-$event.unit Joules
            put devices/power/events/energy-$event.scale 2.3283064365386962890625e-10
        fi
        code=$((code + 1))
    done

    put class/drm/version 'drm 1.1.0 20060810'
    put class/drm/card1-eDP-1/status connected
    put class/drm/card1/device/vendor 0x8086
    put class/drm/card1/gt_act_freq_mhz 1150
    put class/drm/card1/gt_cur_freq_mhz 1200
    put class/drm/card1/gt/gt0/rps_act_freq_mhz 1150
    put class/drm/card1/gt/gt0/rps_cur_freq_mhz 1200

    put class/power_supply/AC/type Mains
    put class/power_supply/AC/online 0
    put class/power_supply/BAT0/type Battery
    put class/power_supply/BAT0/status Discharging
    put class/power_supply/BAT0/power_now 31250000
    put class/power_supply/BAT0/voltage_now 15400000
    put class/power_supply/hidpp_battery_0/type Battery
    put class/power_supply/hidpp_battery_0/scope Device
    put class/power_supply/hidpp_battery_0/status Discharging
    put class/power_supply/hidpp_battery_0/power_now 100000
}

# A Ryzen 7 7840U, Linux 6.8, amd-pstate, amdgpu: eight equal cores with two threads.
ryzen() {
    n=0
    while [ $n -lt 16 ]; do
        first=$((n / 2 * 2))
        cpu $n "$first-$((first + 1))" $((n / 2)) $((3500000 + n / 2 * 20000)) 5132000
        n=$((n + 1))
    done
    put firmware/acpi/platform_profile low-power

    put class/hwmon/hwmon0/name k10temp
    put class/hwmon/hwmon0/temp1_label Tctl
    put class/hwmon/hwmon0/temp1_input 63500
    put class/hwmon/hwmon4/name amdgpu
    put class/hwmon/hwmon4/temp1_input 55000
    put class/thermal/thermal_zone0/type acpitz
    put class/thermal/thermal_zone0/temp 55000
    put class/powercap/intel-rapl/enabled 0
    zone intel-rapl:0 package-0 41000000000
    zone intel-rapl:0:0 core 9000000000

    at=class/drm/card0/device
    put class/drm/card0-DP-1/status disconnected
    put $at/vendor 0x1002
    put $at/gpu_busy_percent 87
    put $at/pp_dpm_sclk '0: 800Mhz \n1: 1100Mhz *\n2: 2700Mhz'
    put $at/hwmon/hwmon4/name amdgpu
    put $at/hwmon/hwmon4/temp1_label edge
    put $at/hwmon/hwmon4/temp1_input 55000
    put $at/hwmon/hwmon4/power1_label PPT
    put $at/hwmon/hwmon4/power1_input 24125000
    put $at/hwmon/hwmon4/freq1_label sclk
    put $at/hwmon/hwmon4/freq1_input 2104000000

    put class/power_supply/ACAD/type Mains
    put class/power_supply/ACAD/online 1
    put class/power_supply/BAT1/type Battery
    put class/power_supply/BAT1/status Charging
    put class/power_supply/BAT1/current_now 1500000
    put class/power_supply/BAT1/voltage_now 17000000
    put class/power_supply/ucsi-source-psy-USBC000:001/type USB
    put class/power_supply/ucsi-source-psy-USBC000:001/online 1
}

case $1 in
meteor-lake) meteor_lake ;;
ryzen) ryzen ;;
*) echo "there is no tree '$1'" >&2 && exit 2 ;;
esac
