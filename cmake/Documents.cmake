# What is made of the headers and the guide: the reference of the interface as a page (the target reference).
# SPDX-License-Identifier: Apache-2.0
find_program(COX_PYTHON python3)
mark_as_advanced(COX_PYTHON)

# Not part of `all`: an application's build has no use for it. Installed where it has been made.
set(reference_page ${PROJECT_BINARY_DIR}/reference/index.html)
if(COX_PYTHON)
    set(reference_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/reference.py)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/reference)
    add_custom_command(OUTPUT ${reference_page}
        COMMAND ${COX_PYTHON} ${reference_script} -o ${reference_page} ${cox_headers}
        DEPENDS ${reference_script} ${cox_headers}
        VERBATIM)
    if(cox_top_level)
        add_custom_target(reference DEPENDS ${reference_page})
    endif()
endif()
install(FILES ${reference_page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/reference OPTIONAL)
