/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hides the few differences between C, C++, gcc and clang. Every header of <weft/...> includes it;
 * it is used at compile time only.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_COMPILER_H_
#define WEFT_DETAIL_COMPILER_H_

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
/* gcc -O0 keeps such functions also where nothing calls them: they must not refer to symbols that
 * are not in every program. preserve_most: clang would save registers for the call even when it
 * is not made, at every tracepoint that is off. */
#ifdef __clang__
#define WEFT_COLD \
  static __attribute__((noinline, cold, preserve_most, unused, no_instrument_function))
#else
#define WEFT_COLD static __attribute__((noinline, cold, unused, no_instrument_function))
#endif

/* With -masm=intel gcc writes the size before a memory operand, clang does not. */
#ifdef __clang__
#define WEFT_ASM_DWORD "DWORD PTR "
#else
#define WEFT_ASM_DWORD ""
#endif

/* libweft.so changes these words while the program runs; nothing is ordered by them. */
#define WEFT_LOAD(object) __atomic_load_n(&(object), __ATOMIC_RELAXED)

/* For objects that only the linker's start/stop symbols refer to: neither the compiler nor
 * --gc-sections (lld collects such sections, GNU ld does not) may drop them. */
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

/* Makes the name of a symbol of an event after both names are expanded: prefix, provider, "___",
 * event. */
#define WEFT_EVENT_SYMBOL(prefix, provider, event) WEFT_EVENT_SYMBOL_(prefix, provider, event)
#define WEFT_EVENT_SYMBOL_(prefix, provider, event) prefix##provider##___##event

#endif /* WEFT_DETAIL_COMPILER_H_ */
