/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that a header defines for every file that includes it (tracef, tracelog). As with C++'s
 * inline variables, all files of a program or shared object together have one. Tracepoint and event
 * are weak and hidden. Their descriptions and their entries in the lists for libweft.so are in a
 * section group `group`, of which the linker keeps one. With LTO, one assembler sees the directives
 * of several files and keeps the first ones.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_SHARED_EVENT_H_
#define WEFT_DETAIL_SHARED_EVENT_H_

#include "callsite.h"
#include "provider.h"

#define WEFT_SHARED __attribute__((weak, used, visibility("hidden")))

#define WEFT_SHARED_EVENT(class_provider, class_name, provider, event, args)  \
  WEFT_DECLARE_TRACEPOINT(provider, event, args)                              \
  WEFT_DECLARE_EVENT(provider, event, args)                                   \
  WEFT_BEGIN_C                                                                \
  WEFT_SHARED struct weft_tracepoint weft_tracepoint_##provider##___##event = \
      WEFT_TRACEPOINT_VALUE(provider, event, args);                           \
  WEFT_SHARED struct weft_event weft_event_##provider##___##event =           \
      WEFT_EVENT_VALUE(class_provider, class_name, provider, event, args);    \
  WEFT_END_C                                                                  \
  WEFT_DEFINE_PROBE(class_provider, class_name, provider, event, args, WEFT_ARGS_MORE_NAMES(args))

#ifdef WEFT_RETAIN
#define WEFT_SHARED_FLAGS "awGR"
#else
#define WEFT_SHARED_FLAGS "awG"
#endif
#define WEFT_SHARED_LIST(group, section, symbol)                             \
  __asm__ __volatile__(".if .Lweft_first_" group "\n\t.pushsection " section \
                       ",\"" WEFT_SHARED_FLAGS "\",@progbits," group         \
                       ",comdat\n\t.balign 8\n\t.8byte " symbol "\n\t.popsection\n\t.endif");

/* Values of WEFT_DESC_SECTION and WEFT_DESC_END while such events are described. */
#define WEFT_DESC_OF_GROUP(group) \
  ".if .Lweft_first_" group "\n\t.pushsection weft_desc,\"aG\",@progbits," group ",comdat\n\t"
#define WEFT_DESC_END_OF_GROUP "\n\t.popsection\n\t.endif"

/* Use in the body of a function: BEGIN once, then the events. */
#define WEFT_DESCRIBE_SHARED_BEGIN(group)                                          \
  __asm__ __volatile__(".ifndef .Lweft_seen_" group "\n\t.set .Lweft_first_" group \
                       ", 1\n\t"                                                   \
                       ".else\n\t.set .Lweft_first_" group                         \
                       ", 0\n\t.endif\n\t"                                         \
                       ".set .Lweft_seen_" group ", 1");
#define WEFT_DESCRIBE_SHARED_EVENT(group, class_provider, class_name, provider, event, level) \
  WEFT_SHARED_LIST(group, "weft_tracepoints", "weft_tracepoint_" #provider "___" #event)      \
  WEFT_SHARED_LIST(group, "weft_events", "weft_event_" #provider "___" #event)                \
  WEFT_DESCRIBE_LOGLEVEL(provider, event, level)                                              \
  WEFT_DEFINE_DESCRIPTION(class_provider, class_name, provider, event)

#endif /* WEFT_DETAIL_SHARED_EVENT_H_ */
