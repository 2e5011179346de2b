#!/bin/sh
# A soak test on devices that fail at random, under the fault layer. Without options it runs 1500 small frames, with
# faults a hundred times as often.
#
#   sh soak.sh BIN_DIR SOURCE_DIR [fault_soak's options]
#   sh tests/faults/soak.sh build/bin . --frames 1000000
#   sh tests/faults/soak.sh build/bin . --minutes 30
#
# Both devices fail, hang and vanish at random, the second one more often. It also gives wrong rows now and then, so
# every band is verified. Faults begin after five seconds, when the expected result is known. They depend only on
# the number of the call and the seeds in the plan. $COX_FAULT_PLAN may name another plan.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"
cd "$OLDPWD" || exit 1 # $COX_FAULT_PLAN may be a relative name
shift 2
able fault_soak "pocl cores" || finish_setups
cat >"$work/plan" <<'END'
# the second device
clEnqueueNDRangeKernel device=0.1 after=5s chance=0.00005 seed=1 status=CL_OUT_OF_RESOURCES
clEnqueueNDRangeKernel device=0.1 after=5s chance=0.00003 seed=2 error=CL_OUT_OF_HOST_MEMORY
clEnqueueMapBuffer device=0.1 after=5s chance=0.00001 seed=3 error=CL_MAP_FAILURE
clEnqueueNDRangeKernel device=0.1 after=5s chance=0.0003 seed=4 late=40ms
clEnqueueMapBuffer device=0.1 after=5s chance=0.00005 seed=5 late=150ms
event device=0.1 after=5s chance=0.002 seed=6 callback=drop
event device=0.1 after=5s chance=0.01 seed=7 callback=twice
clEnqueueNDRangeKernel device=0.1 after=5s chance=0.00003 seed=8 corrupt=3
clEnqueueNDRangeKernel device=0.1 after=5s chance=0.00003 seed=9 vanish for=120ms
# the first one
clEnqueueNDRangeKernel device=0.0 after=5s chance=0.00001 seed=11 status=CL_OUT_OF_RESOURCES
clEnqueueNDRangeKernel device=0.0 after=5s chance=0.00005 seed=12 late=40ms
event device=0.0 after=5s chance=0.001 seed=13 callback=drop
event device=0.0 after=5s chance=0.01 seed=14 profile=backwards
END
short=
if [ $# -eq 0 ]; then
    short=1
    set -- --frames 1500
    sed -e 's/after=5s/from=60/' -e '/device=0.1/s/chance=0\.0000/chance=0.00/' "$work/plan" >"$work/often"
    mv "$work/often" "$work/plan"
fi
export OPENCL_LAYERS="$COX_TEST_LAYER_DIR/layer_fault.so"
export COX_FAULT_PLAN="${COX_FAULT_PLAN:-$work/plan}" COX_FAULT_REPORT="$work/report"
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0"
OCL_ICD_VENDORS="$work/pocl" "$COX_TEST_DIR/fault_soak" --devices cpu:2x1 --verify 1 "$@" || status=$?
[ $status -ne 77 ] || finish_setups

equal $status 0 'the soak'
check 'the fault layer leaves a report' test -s "$work/report"
echo "faults"
cat "$work/report"
# The plan lets the 78th kernel of the second device make it vanish.
[ -z "$short" ] || contains "$work/report" 'struck [1-9].*vanish'
finish
