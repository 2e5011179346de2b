#!/bin/sh
# The static library: a project around this one builds it (BUILD_SHARED_LIBS=OFF), hello.c is linked with it there, and from
# what that project installs with pkg-config, with and without --static, and with find_package. The library's objects are
# those of the build folder.   static.sh CMAKE GENERATOR CC BUILD_DIR SOURCE_DIR
# SPDX-License-Identifier: Apache-2.0
. "$(dirname "$0")/installed.sh"

linked() { # PROGRAM: it holds the library, and runs
    refute 'the program wants the shared library' eval 'readelf -d "$program" | grep "NEEDED.*libcoxswain"'
    hello "$program"
}

# A compiler's launcher that takes an object of the library from the build folder, if it is there.
cat >launcher <<END
#!/bin/sh
last=
for word; do
    [ "\$last" != -o ] || object=\$word
    [ "\$last" != -MF ] || echo "\$object:" >"\$word"
    last=\$word
done
case \$object in
*coxswain_objects.dir/*) cp "$build/CMakeFiles/coxswain_objects.dir/\${object#*coxswain_objects.dir/}" "\$object" 2>/dev/null && exit ;;
esac
exec "\$@"
END
chmod +x launcher
mkdir around
cat >around/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.20)
project(around LANGUAGES C)
set(BUILD_SHARED_LIBS OFF)
add_subdirectory("$source" coxswain)
add_executable(hello "$source/examples/hello.c")
target_link_libraries(hello PRIVATE coxswain::coxswain m)
END
expect_status 0 'add_subdirectory' "$cmake" -S around -B build -G "$generator" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_COMPILER_LAUNCHER="$work/d/launcher" -DCMAKE_BUILD_TYPE=Release
expect_status 0 'a build with add_subdirectory' "$cmake" --build build
program=build/hello
linked

install_moved "$work/d/build"
equal "$(find "$prefix" -name '*.so*')" '' 'a shared library beside the static one'
library=$(find "$prefix" -name libcoxswain.a)
equal "$(nm -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^cox_/ { print $3 }')" '' "names that are in a program's way"
check 'it has no names' eval 'nm -g --defined-only "$library" | grep -q " cox_"'

use_pkg_config
for how in "" --static; do
    # eval, because pkg-config quotes the space in the prefix for a shell. hello.c itself uses the mathematical library.
    expect_status 0 "a build with pkg-config $how" eval "\"$cc\" -std=c11 -Wall -Wextra -Werror \"$source/examples/hello.c\" -o hello \
        $(pkg-config $how --cflags --libs coxswain) -lm"
    program=./hello
    linked
done

build_consumer HELLO="$source/examples/hello.c"
program=consumer/hello
linked
finish_hello
