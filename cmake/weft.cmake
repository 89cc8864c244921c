# SPDX-License-Identifier: Apache-2.0
#
# Everything the folders share: compiler flags, sanitizers, and eight functions.
#
#   weft_library(NAME SOURCES a.cc ... [DEPS weft_base ...])
#       Static, position-independent library, target weft_NAME. Without SOURCES: headers only.
#   weft_executable(NAME SOURCES main.cc ... [DEPS ...] [INSTALL [CLUSTER]] [UNSANITIZED])
#       Program NAME. INSTALL puts it into bin/ of the install tree, and into bin/ of the build
#       folder, so that programs find each other and ../lib the same way in both. UNSANITIZED: no
#       test of a build with a sanitizer runs it, so it is not built there.
#   weft_test(NAME SOURCES foo_test.cc ... [DEPS ...] [LABELS unit|local|...] [TIMEOUT seconds])
#       GoogleTest and GoogleMock program and one ctest entry. Labels are the parts of ./dev
#       test: `unit` unless told otherwise; `local` starts processes; `matrix`; `model`. Besides
#       one of these, `noasan` keeps a test out of the build with the address sanitizer (say why where
#       it stands), `threads` is what the one with the thread sanitizer consists of, and `http` keeps a
#       test out of both in their short form: what it needs of Beast and cpprest takes minutes to build.
#       Where files are: the macros WEFT_SOURCE_DIR and WEFT_BINARY_DIR. The limit is 300 s, four
#       times that with a sanitizer; WEFT_LONG=1 in the environment asks for the long form. A test
#       may bring its own main().
#   weft_fuzz(NAME SOURCES foo_fuzz.cc ... [DEPS ...])
#       libFuzzer program and ctest entry (label `fuzz`) in the presets asan and fuzz; nothing in others.
#       Seeds: files in the folder NAME_corpus beside the first source; scripts/fuzz_seeds.py makes some of them.
#   weft_guest_test(NAME COMMAND program arguments... [OPTIONS ...] [LONG_ON_OLD] [KERNELS ...]
#                   [DEBUG_OPTIONS ...])
#       A ctest entry NAME_KERNEL for each kernel of `./dev vm run` (OPTIONS: more of its own): the command,
#       in a guest, with the file of weft.ko, which ./dev test builds before, in WEFT_MODULE. Label `vm`; in
#       the debug kernel, where all takes many times as long, `vm_debug`: part of the long form, each test in
#       its short one. LONG_ON_OLD: with the older of the two kernels in the long form only (`vm_long`).
#       KERNELS: these instead; any other one is for the long form. DEBUG_OPTIONS: more, for the debug kernel.
#   weft_install(TARGET KIND DESTINATION folder [COMPONENT cluster])
#       install(TARGETS), and makes TARGET a part of the target install_tree, and of local_tree, unless its
#       component is cluster.
#   weft_large_units(TARGET)
#       For a library made with plain add_library: with WEFT_LARGE_UNITS its C++ files are compiled eight at a
#       time, in less than half the time. So a name in an anonymous namespace must be the only one in its library.
#   weft_flags(TARGET)
#       Our warnings and the chosen sanitizer, for a target made with plain add_library or
#       add_executable. A freestanding target links weft_warnings only: no runtime can be in it.
#
# Include paths start at the top of the repository: #include "lib/base/result.h".

include(GNUInstallDirs)

# The component `cluster` has the programs that run in a cluster only, `local` everything else.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME local)

# --- languages -------------------------------------------------------------------------------

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One set of optimisation flags for every preset; assert() stays on. -g1 is lines and functions, what a
# backtrace and perf need; variables and types as well would be a third of the compile time.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "kind of build" FORCE)
endif()
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1")

# No path of the machine that built it gets into a binary (and ccache hits in every build folder).
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -fno-omit-frame-pointer)
include_directories(${CMAKE_SOURCE_DIR})

# --- quick builds ----------------------------------------------------------------------------

find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${WEFT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
find_program(WEFT_MOLD mold)
if(WEFT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
# C++ libraries hold the paths of their objects, not copies. None is installed; that would need a copy.
set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qc --thin <TARGET> <LINK_FLAGS> <OBJECTS>")

# --- warnings --------------------------------------------------------------------------------

# Left out of -Wextra: -Wmissing-field-initializers, because a designated initializer that names
# only what differs from zero is what we want. Not errors: three gcc 12 checks that report false
# positives in libstdc++ at -O2 (GCC bugs 105329, 105562, 106199).
add_library(weft_warnings INTERFACE)
target_compile_options(weft_warnings INTERFACE
    -Wall -Wextra -Werror -Wundef -Wvla -Wno-missing-field-initializers
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
    $<$<C_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized -Wno-error=stringop-overflow>
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)

# --- sanitizers ------------------------------------------------------------------------------

set(WEFT_SANITIZE "" CACHE STRING "empty, address (with undefined), thread or fuzz")
set_property(CACHE WEFT_SANITIZE PROPERTY STRINGS "" address thread fuzz)
set(WEFT_SANITIZE_HTTP ON CACHE BOOL "with the tests labelled http")
set(WEFT_FUZZ_SECONDS 20 CACHE STRING "how long ctest runs each fuzz target")

set(sanitize_compile "")
if(WEFT_SANITIZE MATCHES "^(address|fuzz)$")
  set(sanitize_compile -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
elseif(WEFT_SANITIZE STREQUAL "thread")
  set(sanitize_compile -fsanitize=thread)
elseif(WEFT_SANITIZE)
  message(FATAL_ERROR "WEFT_SANITIZE is '${WEFT_SANITIZE}': not address, thread or fuzz")
endif()
add_library(weft_sanitize INTERFACE)
target_compile_options(weft_sanitize INTERFACE ${sanitize_compile})
target_link_options(weft_sanitize INTERFACE ${sanitize_compile})
if(WEFT_SANITIZE)
  # What a sanitizer sees is the same. With that of addresses the heaviest file takes 21 s at -O1 and 7 s
  # at -O0. The preset fuzz has the fuzz targets of asan again, for those who run them for long.
  target_compile_options(weft_sanitize INTERFACE $<IF:$<STREQUAL:${WEFT_SANITIZE},fuzz>,-O1,-O0>)
  target_compile_definitions(weft_sanitize INTERFACE WEFT_SANITIZED=1)
endif()

# --- the functions ---------------------------------------------------------------------------

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

# Building the install tree needs no package that only tests need. Where GoogleTest is missing, tests
# are left out, unless they are asked for (./dev build --all): then a missing package is an error.
find_package(GTest QUIET)
option(WEFT_TESTS "tests and benches; needs the packages of ./dev setup test" ${GTest_FOUND})
if(WEFT_TESTS)
  find_package(GTest REQUIRED)
endif()

# Not C files: they are quick to compile, and the same names stand in several of them.
option(WEFT_LARGE_UNITS "C++ files of libraries are compiled eight at a time" OFF)
function(weft_large_units target)
  if(WEFT_LARGE_UNITS)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
    get_target_property(sources ${target} SOURCES)
    list(FILTER sources INCLUDE REGEX "\\.c$")
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

function(weft_flags target)
  target_link_libraries(${target} PRIVATE weft_warnings weft_sanitize)
endfunction()

# With sanitizers only what the tests need is built; in the preset asan they need programs.
function(_weft_finish target)
  weft_flags(${target})
  get_target_property(type ${target} TYPE)
  if(WEFT_SANITIZE AND NOT (WEFT_SANITIZE STREQUAL "address" AND type STREQUAL "EXECUTABLE"))
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

function(weft_install target)
  install(TARGETS ${target} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY WEFT_INSTALLED ${target})
  if(NOT "cluster" IN_LIST ARGN)
    set_property(GLOBAL APPEND PROPERTY WEFT_INSTALLED_LOCAL ${target})
  endif()
endfunction()

function(_weft_refuse_unknown name)
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: what is '${ARG_UNPARSED_ARGUMENTS}'?")
  endif()
endfunction()

function(weft_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  _weft_refuse_unknown(${name})
  if(NOT ARG_SOURCES)
    add_library(weft_${name} INTERFACE)
    target_link_libraries(weft_${name} INTERFACE ${ARG_DEPS})
    return()
  endif()
  add_library(weft_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(weft_${name} PUBLIC ${ARG_DEPS})
  weft_large_units(weft_${name})
  _weft_finish(weft_${name})
endfunction()

function(weft_executable name)
  cmake_parse_arguments(ARG "INSTALL;CLUSTER;UNSANITIZED" "" "SOURCES;DEPS" ${ARGN})
  _weft_refuse_unknown(${name})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS})
  _weft_finish(${name})
  if(ARG_UNSANITIZED AND WEFT_SANITIZE)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(ARG_INSTALL AND NOT WEFT_SANITIZE STREQUAL "fuzz")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
    set(component local)
    if(ARG_CLUSTER)
      set(component cluster)
    endif()
    weft_install(${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  endif()
endfunction()

function(weft_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  _weft_refuse_unknown(${name})
  if(NOT WEFT_TESTS OR WEFT_SANITIZE STREQUAL "fuzz")
    return()
  endif()
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  if(WEFT_SANITIZE)
    math(EXPR ARG_TIMEOUT "${ARG_TIMEOUT} * 4")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_definitions(${name} PRIVATE
      WEFT_SOURCE_DIR="${CMAKE_SOURCE_DIR}" WEFT_BINARY_DIR="${CMAKE_BINARY_DIR}")
  weft_flags(${name})
  if((WEFT_SANITIZE AND NOT WEFT_SANITIZE_HTTP AND "http" IN_LIST ARG_LABELS) OR
     (WEFT_SANITIZE STREQUAL "address" AND "noasan" IN_LIST ARG_LABELS) OR
     (WEFT_SANITIZE STREQUAL "thread" AND NOT "threads" IN_LIST ARG_LABELS))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

function(weft_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  _weft_refuse_unknown(${name})
  if(NOT WEFT_SANITIZE MATCHES "^(address|fuzz)$")
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} Threads::Threads)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  weft_flags(${name})
  set(corpus ${CMAKE_CURRENT_BINARY_DIR}/${name}.corpus)
  file(MAKE_DIRECTORY ${corpus})
  list(GET ARG_SOURCES 0 first_source)
  cmake_path(GET first_source PARENT_PATH source_folder)
  set(seeds ${CMAKE_CURRENT_SOURCE_DIR}/${source_folder}/${name}_corpus)
  if(NOT IS_DIRECTORY ${seeds})
    message(FATAL_ERROR "weft_fuzz(${name}): there are no seeds: ${seeds}")
  endif()
  add_test(NAME ${name} COMMAND ${name} -max_total_time=${WEFT_FUZZ_SECONDS} -timeout=30
           -rss_limit_mb=2048 -artifact_prefix=${CMAKE_CURRENT_BINARY_DIR}/${name}. ${corpus} ${seeds})
  math(EXPR limit "${WEFT_FUZZ_SECONDS} + 300")
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()

function(weft_guest_test name)
  cmake_parse_arguments(GUEST "LONG_ON_OLD" "" "COMMAND;OPTIONS;DEBUG_OPTIONS;KERNELS" ${ARGN})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  if(NOT GUEST_KERNELS)
    set(GUEST_KERNELS 6.1 6.12 6.12-debug)
  endif()
  foreach(kernel ${GUEST_KERNELS})
    set(options ${GUEST_OPTIONS})
    if(kernel MATCHES debug)
      list(APPEND options ${GUEST_DEBUG_OPTIONS})
    endif()
    add_test(NAME ${name}_${kernel}
      COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/kmod/qemu/vm.py run ${kernel} --with-parent --timeout 1700
              ${options} -- ${GUEST_COMMAND}
      WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set(environment WEFT_MODULE=${CMAKE_SOURCE_DIR}/build/kmod/${kernel}/weft.ko WEFT_BUILD=${CMAKE_BINARY_DIR})
    if(kernel MATCHES debug)
      set_tests_properties(${name}_${kernel} PROPERTIES LABELS vm_debug TIMEOUT 60000
        ENVIRONMENT "${environment};WEFT_PATIENCE=2400;WEFT_LONG=0")
    else()
      set(label vm)
      if((GUEST_LONG_ON_OLD AND kernel STREQUAL "6.1") OR NOT kernel MATCHES "^(6.1|6.12)$")
        set(label vm_long)
      endif()
      set_tests_properties(${name}_${kernel} PROPERTIES LABELS ${label} TIMEOUT 6000
        ENVIRONMENT "${environment};WEFT_PATIENCE=900")
    endif()
  endforeach()
endfunction()
