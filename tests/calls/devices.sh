#!/bin/sh
# Some calls of cox-devices fail once. See sweep.py.
#   sh devices.sh BIN_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/../support/calls.sh"
need_device
sweeps --case 'devices$' --each 1 --call '^(calloc|posix_memalign|open|__openat_2|fopen|pthread_create|eventfd|clGetPlatformIDs)$'
# A device or platform that cannot be asked is left out, and a line says so.
sweeps --case 'devices$' --how opencl --call '^clGetDevice'
finish
