# jfa_parser(OUT name dir): runs flex on dir/NAME.l and bison on dir/NAME.y, and gives the generated C files in OUT.
# Generated code is compiled without our warnings: it is not ours.
find_package(FLEX REQUIRED)
find_package(BISON 3.7 REQUIRED)
function(jfa_parser out name)
  set(gen ${CMAKE_CURRENT_BINARY_DIR})
  bison_target(${name}_y ${name}.y ${gen}/${name}_y.c DEFINES_FILE ${gen}/${name}_y.h COMPILE_FLAGS "-Wall -Werror")
  flex_target(${name}_l ${name}.l ${gen}/${name}_l.c DEFINES_FILE ${gen}/${name}_l.h)
  add_flex_bison_dependency(${name}_l ${name}_y)
  set_source_files_properties(${gen}/${name}_l.c ${gen}/${name}_y.c PROPERTIES COMPILE_OPTIONS "-w")
  set(${out} ${gen}/${name}_y.c ${gen}/${name}_l.c PARENT_SCOPE)
endfunction()

# jfa_test(name libs...): one cmocka executable from tests/.../NAME.c and one CTest entry of that name.
# cmocka has no CMake package on every supported system, so the library is named directly.
function(jfa_test name)
  add_executable(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c)
  target_link_libraries(${name} PRIVATE jfa_flags ${ARGN} cmocka m)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300)
endfunction()
