#!/bin/sh
# A wheel that is built offline against the installed library works in any folder.
#   wheel.sh CMAKE BUILD_DIR SOURCE_DIR PYTHON
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/harness.sh"
cmake=$1 build=$2 python=$4
"$python" -c 'import setuptools, wheel, pip' 2>"$work/err" ||
    skip "pip, setuptools or wheel is missing (Debian: python3-pip python3-setuptools python3-wheel)"

expect_status 0 'the library and its headers' "$cmake" --install "$build" --prefix "$work/d/prefix"
# Only the library's own files, so that nothing of the installed module can help.
find prefix -type d -name coxswain -path '*-packages/*' -exec rm -rf '{}' +
PKG_CONFIG_PATH=$(dirname "$(find "$work/d/prefix" -name coxswain.pc)")
export PKG_CONFIG_PATH
cp -R "$source/examples/programs/python" project
expect_status 0 'the wheel' "$python" -m pip wheel --no-build-isolation --no-deps --no-index -w wheels ./project
check 'one wheel for every Python 3' ls wheels/coxswain-*-cp3*-abi3-linux_*.whl
expect_status 0 'its installation' "$python" -m pip install --no-deps --no-index --target site wheels/*.whl

cat >hello.py <<'END_OF_PROGRAM'
import sys
import coxswain as cox, numpy as np
assert "/site/coxswain/" in cox.__file__, cox.__file__
try:
    runtime = cox.Runtime()
except (cox.NoPlatformError, cox.NoDeviceError):
    sys.exit(print("version", cox.__version__))
a = np.arange(64, dtype=np.uint32).reshape(8, 8)
source = "kernel void f(global const uint *in, global uint *out, int columns, int rows) {\n" \
         "int x = get_global_id(0), y = get_global_id(1); if (x < columns && y < rows) out[y * columns + x] = in[y * columns + x] + 1; }"
assert (runtime.run(source, a) == a + 1).all()
print("version", cox.__version__)
END_OF_PROGRAM
expect_status 0 'a program' env PYTHONPATH="$work/d/site" "$python" hello.py
contains out '^version [0-9]+\.[0-9]+\.[0-9]+$'
finish
