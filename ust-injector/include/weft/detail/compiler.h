/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few things that C, C++, gcc and clang say differently, and how a program refers to libweft.so.
 * Included by every header of <weft/...>; used at compile time only.
 */
#ifndef WEFT_DETAIL_COMPILER_H_
#define WEFT_DETAIL_COMPILER_H_

#include "link_map.h"

#ifdef __cplusplus
#define WEFT_EXTERN_C extern "C"
#define WEFT_BEGIN_C extern "C" {
#define WEFT_END_C }
#else
#define WEFT_EXTERN_C extern
#define WEFT_BEGIN_C
#define WEFT_END_C
#endif

#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WEFT_INLINE static inline __attribute__((always_inline, unused, no_instrument_function))
#define WEFT_COLD static __attribute__((noinline, cold, unused, no_instrument_function))

/* libweft.so changes these words while the program runs; nothing is ordered by them. */
#define WEFT_LOAD(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)

/* For what only the linker's start/stop symbols refer to: neither the compiler nor --gc-sections
 * (lld collects such sections, GNU ld does not) may drop it. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define WEFT_KEEP used, retain
#define WEFT_RETAIN
#endif
#endif
#ifndef WEFT_KEEP
#define WEFT_KEEP used
#endif

#define WEFT_TEXT(...) WEFT_TEXT_(__VA_ARGS__)
#define WEFT_TEXT_(...) #__VA_ARGS__
#define WEFT_JOIN(a, b) WEFT_JOIN_(a, b)
#define WEFT_JOIN_(a, b) a##b

/*
 * WEFT_LIBRARY_SYMBOL(name): the address of a function of libweft.so, as void (*)(void), or NULL in a
 * process without it. In assembly, since a compiler may take the address of a weak symbol in a
 * non-PIE program for a link-time constant, which is then 0 for ever. The GOT entry is filled by
 * ld.so, or at link time with 0 in a static program, and by some linkers (mold) in any: then the
 * list of loaded objects is asked.
 */
#define WEFT_LIBRARY_SYMBOL(name)                                              \
  __extension__({                                                              \
    void (*weft_found)(void) = WEFT_WEAK_SYMBOL(name);                         \
    if (!weft_found) weft_found = (void (*)(void))weft_link_map_symbol(#name); \
    weft_found;                                                                \
  })
#if defined(__x86_64__)
#define WEFT_WEAK_SYMBOL(name)                                                             \
  __extension__({                                                                             \
    void (*weft_address)(void);                                                               \
    __asm__(".weak " #name "\n\t{movq " #name "@GOTPCREL(%%rip), %0|mov %0, QWORD PTR " #name \
            "@GOTPCREL[rip]}"                                                                 \
            : "=r"(weft_address));                                                            \
    weft_address;                                                                             \
  })
#elif defined(__aarch64__)
#define WEFT_WEAK_SYMBOL(name)                                                             \
  __extension__({                                                                             \
    void (*weft_address)(void);                                                               \
    __asm__(".weak " #name "\n\tadrp %0, :got:" #name "\n\tldr %0, [%0, :got_lo12:" #name "]" \
            : "=r"(weft_address));                                                            \
    weft_address;                                                                             \
  })
#else
#error "weft supports x86-64 and arm64"
#endif

#endif /* WEFT_DETAIL_COMPILER_H_ */
