#!/bin/sh
# Tests of coxswain/gl.h on each set-up of OpenCL devices that this machine's packages allow, with buffers that OpenGL
# maps, and shared with OpenCL by a layer. Usage:
#
#   sh gl.sh BIN_DIR SOURCE_DIR
#
# COX_SHORT=1: only the first set-up that this machine can have.
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
. "$source/tests/support/setups.sh"

[ -x "$COX_TEST_DIR/interop_gl" ] || skip "it was built without EGL (Debian: libegl-dev libgl-dev)"

interop() { # NAME NEEDS VENDORS ARGUMENTS...
    setup=$1 needs=$2 icds=$3
    shift 3
    on "$setup" "$needs" "$icds" timeout 600 "$COX_TEST_DIR/interop_gl" "$@" && sed 's/^/  /' "$work/out"
}

interop "PoCL" "pocl" "$work/pocl" --expect 1
interop "PoCL, staged" "pocl" "$work/pocl" --devices cpu=staged --expect 1
show_llvmpipe
interop "llvmpipe" "rusticl" "$work/rusticl" --expect 1
interop "llvmpipe, staged" "rusticl" "$work/rusticl" --devices gpu=staged --expect 1
interop "PoCL and llvmpipe" "pocl rusticl" "$work/both" --devices cpu,gpu --expect 2

# Devices that share with OpenGL.
export OPENCL_LAYERS="$COX_TEST_LAYER_DIR/layer_gl.so"
hide_llvmpipe
interop "PoCL, cl_khr_gl_sharing" "pocl" "$work/pocl" --expect 1
interop "PoCL, staged, cl_khr_gl_sharing" "pocl" "$work/pocl" --devices cpu=staged --expect 1
show_llvmpipe
interop "llvmpipe, cl_khr_gl_sharing" "rusticl" "$work/rusticl" --expect 1
unset OPENCL_LAYERS
hide_llvmpipe
finish_setups
