# cmake --install: library, headers, programs, find_package(coxswain) and pkg-config.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(TARGETS coxswain EXPORT coxswain-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${cox_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/coxswain)
# The documentation with its folders, and the files that it links to, so that its links work.
install(FILES LICENSE README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(linked IN ITEMS
        examples/programs/cluster/kubernetes.yaml examples/programs/cluster/lab.sh examples/programs/cluster/parallel.sh examples/programs/cluster/slurm.sh
        examples/data/LICENSE examples/programs/gstreamer/convolve.c examples/programs/lab/data/sharpen.cl examples/programs/lab/data/sharpen.json
        examples/programs/lab/data/soften.cl examples/programs/lab/data/soften.json examples/programs/lab/store/schema.sql runtime/stream/stream.c
        examples/programs/common/policies/history.h examples/programs/common/policies/registry.c examples/programs/common/policies/registry.h
        sched/split/waterfill.c
        tests/install/consumer/frame.cpp tests/interop/vulkan.c)
    get_filename_component(folder ${linked} DIRECTORY)
    install(FILES ${linked} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(FILES ${cox_headers} DESTINATION ${CMAKE_INSTALL_DOCDIR}/include/coxswain)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples FILES_MATCHING PATTERN "*.c" PATTERN "*.py"
    PATTERN programs EXCLUDE PATTERN data EXCLUDE PATTERN scenarios EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/coxswain)
install(EXPORT coxswain-targets NAMESPACE coxswain:: DESTINATION ${package_dir})
configure_package_config_file(cmake/coxswain-config.cmake.in ${PROJECT_BINARY_DIR}/generated/coxswain-config.cmake
    INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/coxswain-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/coxswain-config.cmake
              ${PROJECT_BINARY_DIR}/generated/coxswain-config-version.cmake
    DESTINATION ${package_dir})

# Paths relative to the .pc file, so that a tree moved elsewhere still works.
file(RELATIVE_PATH pc_to_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
# A program that is linked with the static library also needs the library's own libraries, with or without --static. So
# they are listed here under Libs, not under Requires. hwloc's own libraries matter only if hwloc is static, and its
# package may not be installed.
set(pc_libraries -lcoxswain)
if(cox_library_type STREQUAL "STATIC")
    list(APPEND pc_libraries ${HWLOC_LDFLAGS} ${UV_LDFLAGS})
    get_filename_component(opencl_dir ${OpenCL_LIBRARY} DIRECTORY)
    if(opencl_dir IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        list(APPEND pc_libraries -lOpenCL)
    else()
        list(APPEND pc_libraries ${OpenCL_LIBRARY})
    endif()
    if(COX_MATH_LIBRARY)
        list(APPEND pc_libraries -lm)
    endif()
    list(APPEND pc_libraries -pthread)
endif()
list(JOIN pc_libraries " " pc_libraries)
configure_file(cmake/coxswain.pc.in ${PROJECT_BINARY_DIR}/generated/coxswain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/coxswain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
