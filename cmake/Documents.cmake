# Documents made from the headers, the guide and the programs' --help: the reference page (the target reference),
# manual pages, and completions.
# SPDX-License-Identifier: Apache-2.0
find_program(COX_PYTHON3 python3)
mark_as_advanced(COX_PYTHON3)

# Not part of `all`, because an application's build does not need it. Installed if it has been made.
set(reference_page ${PROJECT_BINARY_DIR}/reference/index.html)
if(COX_PYTHON3)
    set(reference_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/reference.py)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/reference)
    add_custom_command(OUTPUT ${reference_page}
        COMMAND ${COX_PYTHON3} ${reference_script} -o ${reference_page} ${cox_headers}
        DEPENDS ${reference_script} ${cox_headers}
        VERBATIM)
    if(cox_top_level)
        add_custom_target(reference DEPENDS ${reference_page})
    endif()
endif()
install(FILES ${reference_page} DESTINATION ${CMAKE_INSTALL_DOCDIR}/reference OPTIONAL)

# --- Manual pages and completions -------------------------------------------------------------------------------------
# cox_made_of_help(OUTPUT KIND NAME [GUIDE...]): make OUTPUT with cmake/programs.py, and add it to
# cox_made_of_help_files.
set(programs_script ${CMAKE_CURRENT_SOURCE_DIR}/cmake/programs.py)
set(cox_made_of_help_files)
function(cox_made_of_help output kind name)
    set(options --version ${PROJECT_VERSION})
    if(cox_library_type STREQUAL "SHARED")
        list(APPEND options --library $<TARGET_FILE:coxswain>) # a distribution's build has no run paths
    endif()
    list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/docs/guide/)
    add_custom_command(OUTPUT ${output}
        COMMAND ${COX_PYTHON3} ${programs_script} ${kind} -o ${output} ${options} ${name} $<TARGET_FILE:${name}> ${ARGN}
        DEPENDS ${programs_script} ${name} ${ARGN}
        VERBATIM)
    set(cox_made_of_help_files ${cox_made_of_help_files} ${output} PARENT_SCOPE)
endfunction()

set(COX_ZSH_DIR ${CMAKE_INSTALL_DATADIR}/zsh/site-functions CACHE STRING "Where completions for zsh are installed")
mark_as_advanced(COX_ZSH_DIR)
set(cox_documented)
foreach(program IN ITEMS cox-bench cox-devices cox-lab cox-tonemap)
    if(TARGET ${program})
        list(APPEND cox_documented ${program})
    endif()
endforeach()
set(guides_of_cox-bench bench-kernels.md cox-bench-guides.md)
set(guides_of_cox-devices cox-devices.md)
set(guides_of_cox-lab cox-lab.md)
set(guides_of_cox-tonemap cox-tonemap.md)

# They are made from the programs' output, so the programs must run on this machine. Files that were not made are not
# installed.
set(have_man OFF)
set(have_completions OFF)
if(COX_MAN OR COX_COMPLETIONS)
    if(NOT COX_PYTHON3)
        message(STATUS "manual pages and completions: not made, python3 is missing (Debian: python3)")
    elseif(CMAKE_CROSSCOMPILING)
        message(STATUS "manual pages and completions: not made, programs built for another machine do not run here")
    elseif(NOT COX_SANITIZE)
        set(have_man ${COX_MAN})
        set(have_completions ${COX_COMPLETIONS})
    endif()
endif()
set(cox_pages_dir ${PROJECT_BINARY_DIR}/man)
file(MAKE_DIRECTORY ${cox_pages_dir})
if(have_man)
    foreach(program IN LISTS cox_documented)
        cox_made_of_help(${cox_pages_dir}/${program}.1 man ${program} ${guides_of_${program}})
        install(FILES ${cox_pages_dir}/${program}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
    endforeach()
endif()
if(COX_MAN AND COX_PYTHON3) # coxswain(7) is made from the guide only
    set(overview ${CMAKE_CURRENT_SOURCE_DIR}/docs/guide/api.md)
    set(see ${cox_documented})
    list(TRANSFORM see PREPEND --see=)
    add_custom_command(OUTPUT ${cox_pages_dir}/coxswain.7
        COMMAND ${COX_PYTHON3} ${programs_script} page -o ${cox_pages_dir}/coxswain.7 --version ${PROJECT_VERSION} ${see}
                coxswain ${PROJECT_DESCRIPTION} ${overview}
        DEPENDS ${programs_script} ${overview}
        VERBATIM)
    list(APPEND cox_made_of_help_files ${cox_pages_dir}/coxswain.7)
    install(FILES ${cox_pages_dir}/coxswain.7 DESTINATION ${CMAKE_INSTALL_MANDIR}/man7 OPTIONAL)
endif()
set(cox_completions_dir ${PROJECT_BINARY_DIR}/completions)
if(have_completions)
    file(MAKE_DIRECTORY ${cox_completions_dir})
    foreach(program IN LISTS cox_documented)
        cox_made_of_help(${cox_completions_dir}/${program} bash ${program})
        cox_made_of_help(${cox_completions_dir}/_${program} zsh ${program})
        install(FILES ${cox_completions_dir}/${program}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions OPTIONAL)
        install(FILES ${cox_completions_dir}/_${program} DESTINATION ${COX_ZSH_DIR} OPTIONAL)
    endforeach()
endif()
if(cox_made_of_help_files)
    add_custom_target(made_of_help ALL DEPENDS ${cox_made_of_help_files})
endif()
