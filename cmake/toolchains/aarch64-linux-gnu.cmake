# Cross-compile for arm64 with Debian's gcc-aarch64-linux-gnu and its multiarch libraries (libhwloc-dev:arm64 and
# others). Usage:
#
#   cmake -B build-arm64 -G Ninja -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake
#
# `.ci/run arm64` makes a root with these libraries, so that no foreign package is installed on the machine. The built
# programs run if the kernel starts arm64 programs: natively, or with qemu registered at binfmt_misc.
# CMAKE_CROSSCOMPILING_EMULATOR is not enough, because tests start other programs.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Use the machine's programs, and arm64's libraries and packages. Headers of both are in /usr/include.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
