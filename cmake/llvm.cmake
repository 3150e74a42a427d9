# Finds LLVM 20 to 22 by its llvm-config: the one named by LLVM_CONFIG (variable or environment), else the newest of
# llvm-config-22, -21, -20 and llvm-config. Gives JFA_LLVM_INCLUDE, JFA_LLVM_VERSION and the interface library jfa_llvm.
# JFA_STATIC_LLVM=ON links the NVPTX back end and the passes alone into the executable: it needs no libLLVM at run time
# (on Debian it needs libzstd-dev to build).
option(JFA_STATIC_LLVM "Link the parts of LLVM that are needed statically" OFF)

if(NOT LLVM_CONFIG AND DEFINED ENV{LLVM_CONFIG})
  set(LLVM_CONFIG $ENV{LLVM_CONFIG} CACHE FILEPATH "llvm-config of LLVM 20 to 22")
endif()
if(NOT LLVM_CONFIG)
  find_program(LLVM_CONFIG NAMES llvm-config-22 llvm-config-21 llvm-config-20 llvm-config
    PATHS /usr/lib/llvm-22/bin /usr/lib/llvm-21/bin /usr/lib/llvm-20/bin
    DOC "llvm-config of LLVM 20 to 22")
endif()
if(NOT LLVM_CONFIG)
  message(FATAL_ERROR "LLVM was not found: install llvm-22-dev (20 and 21 do as well), or set LLVM_CONFIG")
endif()

function(jfa_llvm_config out)
  execute_process(COMMAND ${LLVM_CONFIG} ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE complaint RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${LLVM_CONFIG} ${ARGN} failed: ${complaint}")
  endif()
  string(STRIP "${text}" text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

jfa_llvm_config(JFA_LLVM_VERSION --version)
if(JFA_LLVM_VERSION VERSION_LESS 20 OR JFA_LLVM_VERSION VERSION_GREATER_EQUAL 23)
  message(FATAL_ERROR "LLVM ${JFA_LLVM_VERSION} (${LLVM_CONFIG}) is not supported: 20, 21 and 22 are")
endif()
jfa_llvm_config(JFA_LLVM_INCLUDE --includedir)
jfa_llvm_config(jfa_llvm_libdir --libdir)

add_library(jfa_llvm INTERFACE)
target_include_directories(jfa_llvm SYSTEM INTERFACE ${JFA_LLVM_INCLUDE})
if(JFA_STATIC_LLVM)
  jfa_llvm_config(jfa_llvm_libs --link-static --libs nvptx passes)
  jfa_llvm_config(jfa_llvm_system --link-static --system-libs nvptx passes)
  separate_arguments(jfa_llvm_libs)
  separate_arguments(jfa_llvm_system)
  target_link_directories(jfa_llvm INTERFACE ${jfa_llvm_libdir})
  target_link_libraries(jfa_llvm INTERFACE ${jfa_llvm_libs} ${jfa_llvm_system} stdc++)
else()
  jfa_llvm_config(jfa_llvm_libs --link-shared --libs)
  separate_arguments(jfa_llvm_libs)
  target_link_directories(jfa_llvm INTERFACE ${jfa_llvm_libdir})
  target_link_libraries(jfa_llvm INTERFACE ${jfa_llvm_libs})
endif()
message(STATUS "LLVM ${JFA_LLVM_VERSION} (${LLVM_CONFIG})")
