# Cross-compile for arm64 with Debian's gcc-aarch64-linux-gnu and its multiarch libraries (libhwloc-dev:arm64, ...):
#
#   cmake -B build-arm64 -G Ninja -D CMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake
#
# `.ci/run arm64` makes a root that has them, so that no foreign package goes into the machine itself. What is built runs
# where the kernel starts arm64 programs: natively, or with qemu registered at binfmt_misc. An emulator in
# CMAKE_CROSSCOMPILING_EMULATOR would not do: tests start programs of their own.
# SPDX-License-Identifier: Apache-2.0
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# Programs are the machine's, libraries and packages arm64's; headers of both lie in /usr/include.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
