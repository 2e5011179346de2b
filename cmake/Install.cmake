# cmake --install: library, headers, programs, find_package(coxswain) and pkg-config.
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

install(TARGETS coxswain EXPORT coxswain-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${cox_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/coxswain)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

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
configure_file(cmake/coxswain.pc.in ${PROJECT_BINARY_DIR}/generated/coxswain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/coxswain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
