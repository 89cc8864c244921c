# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
#
# The C files of this folder that need no libc, listed by the programs that link them. Read by make
# (kmod/Kbuild) and by CMake (lib/event/CMakeLists.txt), so: one assignment a line, names without
# their suffix.

weft_event_shared := description_walk filter_link filter_run filter_symbol filter_validate match
weft_event_only_library := runtime_provider
weft_event_only_module := fetch_validate
