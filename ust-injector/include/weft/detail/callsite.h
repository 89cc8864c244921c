/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call sites' part of a tracepoint: its declaration, its definition, and the code of a call.
 * Nothing here knows the fields of an event; the probe does (detail/provider.h).
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_CALLSITE_H_
#define WEFT_DETAIL_CALLSITE_H_

#include <stddef.h>

#include "abi.h"
#include "args.h"
#include "compiler.h"
#include "object.h"
#include "probes.h"

/* `enabled` points to this word until libweft.so points it elsewhere, or for ever without
 * libweft.so. */
static const uint32_t weft_never_enabled __attribute__((unused)) = 0;

/* Returns a hint; the library decides exactly. It is assembly because compilers do not make an
 * atomic load an operand of the comparison. An event that is off would then cost one more
 * instruction. */
WEFT_INLINE int weft_word_is_set(const uint32_t* word) {
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
  int set;
  __asm__ __volatile__("cmp{l $0, %1| " WEFT_ASM_DWORD "%1, 0}" : "=@ccne"(set) : "m"(*word));
  return set;
#else
  return __atomic_load_n(word, __ATOMIC_RELAXED) != 0; /* relaxed: orders nothing */
#endif
}

#define WEFT_TRACEPOINT_ENABLED(tracepoint) \
  WEFT_UNLIKELY(weft_word_is_set(WEFT_LOAD((tracepoint).enabled)))

/* Asks the library for the exact answer, for tracepoint_enabled(). */
WEFT_COLD int weft_tracepoint_ask(struct weft_tracepoint* tracepoint) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->tracepoint_enabled(tracepoint) : 0;
}

/* Compares like strcmp, so that a file with call sites alone refers to no function of libc. */
WEFT_COLD int weft_texts_are_equal(const char* a, const char* b) {
  if (a == b) return 1; /* as in most objects: the linker merges equal texts */
  while (*a != '\0' && *a == *b) {
    a++;
    b++;
  }
  return *a == *b;
}

/* Returns the provider's probe number `turn`, or NULL, for a tracepoint with more to call than
 * `only_probe`. */
typedef void (*weft_untyped_probe)(void);
WEFT_COLD weft_untyped_probe weft_probe_number(struct weft_tracepoint* tracepoint, uint32_t turn) {
  if (tracepoint->size >= offsetof(struct weft_tracepoint, providers) + sizeof(void*) &&
      WEFT_LOAD(tracepoint->providers) != NULL) {
    return WEFT_LIBRARY->probe_of(tracepoint, &weft_this_object, turn);
  }
  return turn == 0 ? WEFT_LOAD(tracepoint->probe) : NULL;
}

/*
 * weft_call_P___E calls the probe from the call site itself, so that the probe's return address is
 * the address of the tracepoint in the traced program; the empty assembly after it keeps the
 * compiler from making it a jump. If there is more to call, weft_call_more_P___E calls it, as
 * weft/abi/tracepoint.h says, and returns the last provider's probe. weft_attach_P___E checks the
 * type of an application's probe.
 */
#define WEFT_DECLARE_TRACEPOINT(provider, event, args)                                            \
  typedef void weft_probe_type_##provider##___##event(WEFT_ARGS_PROTO(args));                     \
  typedef void weft_app_probe_type_##provider##___##event(WEFT_ARGS_DATA_PROTO(args));            \
  WEFT_EXTERN_C struct weft_tracepoint weft_tracepoint_##provider##___##event                     \
      WEFT_TRACEPOINT_VISIBILITY;                                                                 \
  WEFT_COLD void weft_call_app_##provider##___##event(                                            \
      struct weft_tracepoint* weft_self WEFT_ARGS_MORE_PROTO(args)) {                             \
    const struct weft_app_probes* weft_list;                                                      \
    uint32_t weft_i;                                                                              \
    /* seq_cst: a thread that took a probe out of the list sees this call, or it sees the list */ \
    __atomic_add_fetch(&weft_self->enters, 1, __ATOMIC_SEQ_CST);                                  \
    weft_list = __atomic_load_n(&weft_self->app_probes, __ATOMIC_SEQ_CST);                        \
    for (weft_i = 0; weft_list && weft_i < weft_list->count; weft_i++) {                          \
      void* weft_data = weft_list->probes[weft_i].data;                                           \
      ((weft_app_probe_type_##provider##___##event*)weft_list->probes[weft_i].fn)(                \
          WEFT_ARGS_DATA_NAMES(args));                                                            \
    }                                                                                             \
    /* seq_cst: pairs with detach, which frees after it */                                        \
    __atomic_add_fetch(&weft_self->leaves, 1, __ATOMIC_SEQ_CST);                                  \
  }                                                                                               \
  WEFT_COLD weft_untyped_probe weft_call_more_##provider##___##event(                             \
      struct weft_tracepoint* weft_self WEFT_ARGS_MORE_PROTO(args)) {                             \
    weft_untyped_probe weft_probe, weft_next;                                                     \
    uint32_t weft_turn = 1;                                                                       \
    if (WEFT_LOAD(weft_self->app_probes) != NULL &&                                               \
        weft_texts_are_equal(weft_self->signature, WEFT_ARGS_TEXT(args))) {                       \
      weft_call_app_##provider##___##event(weft_self WEFT_ARGS_MORE_NAMES(args));                 \
    }                                                                                             \
    weft_probe = weft_probe_number(weft_self, 0);                                                 \
    while (weft_probe && (weft_next = weft_probe_number(weft_self, weft_turn++)) != NULL) {       \
      ((weft_probe_type_##provider##___##event*)weft_probe)(WEFT_ARGS_NAMES(args));               \
      weft_probe = weft_next;                                                                     \
    }                                                                                             \
    return weft_probe;                                                                            \
  }                                                                                               \
  WEFT_INLINE void weft_call_##provider##___##event(WEFT_ARGS_PROTO(args)) {                      \
    struct weft_tracepoint* weft_self = &weft_tracepoint_##provider##___##event;                  \
    weft_untyped_probe weft_probe = WEFT_LOAD(weft_self->only_probe);                             \
    if (WEFT_UNLIKELY(!weft_probe)) {                                                             \
      weft_probe = weft_call_more_##provider##___##event(weft_self WEFT_ARGS_MORE_NAMES(args));   \
      if (!weft_probe) return;                                                                    \
    }                                                                                             \
    ((weft_probe_type_##provider##___##event*)weft_probe)(WEFT_ARGS_NAMES(args));                 \
    __asm__ __volatile__("");                                                                     \
  }                                                                                               \
  WEFT_INLINE int weft_attach_##provider##___##event(                                             \
      weft_app_probe_type_##provider##___##event* fn, void* data) {                               \
    return weft_probe_attach_checked(#provider ":" #event, WEFT_ARGS_TEXT(args),                  \
                                     (void (*)(void))fn, data);                                   \
  }                                                                                               \
  WEFT_INLINE int weft_detach_##provider##___##event(                                             \
      weft_app_probe_type_##provider##___##event* fn, void* data) {                               \
    return weft_probe_detach_checked(#provider ":" #event, (void (*)(void))fn, data);             \
  }

#define WEFT_TRACEPOINT_VALUE(provider, event, args) \
  {(uint32_t)sizeof(struct weft_tracepoint),         \
   0,                                                \
   &weft_never_enabled,                              \
   NULL,                                             \
   NULL,                                             \
   0,                                                \
   0,                                                \
   #provider ":" #event,                             \
   WEFT_ARGS_TEXT(args),                             \
   NULL,                                             \
   NULL,                                             \
   NULL}

/*
 * The definition. The list for libweft.so leads to the symbol, not to this very object. If a
 * program has a copy of a library's data (copy relocation), or two libraries define one tracepoint,
 * libweft.so has to know the one that call sites use. The list of arguments tells libweft.so what
 * this object's call sites pass; another object's definition of the tracepoint may have other
 * arguments.
 */
#define WEFT_DEFINE_TRACEPOINT(provider, event, args)                                 \
  WEFT_CHECK_NAME(provider, event)                                                    \
  WEFT_PROVIDER_REFERENCE(provider, event)                                            \
  struct weft_tracepoint weft_tracepoint_##provider##___##event =                     \
      WEFT_TRACEPOINT_VALUE(provider, event, args);                                   \
  static struct weft_tracepoint* weft_entry_tracepoint_##provider##___##event         \
      __attribute__((section("weft_tracepoints"), WEFT_KEEP)) =                       \
          &weft_tracepoint_##provider##___##event;                                    \
  static struct weft_tracepoint_arguments weft_entry_arguments_##provider##___##event \
      __attribute__((section("weft_arguments"), WEFT_KEEP)) = {                       \
          &weft_tracepoint_##provider##___##event, WEFT_ARGS_TEXT(args)};

#define WEFT_CHECK_NAME(provider, event)                               \
  WEFT_ABI_ASSERT(sizeof(#provider ":" #event) <= WEFT_EVENT_NAME_MAX, \
                  "weft: the name of a tracepoint is too long");

#endif /* WEFT_DETAIL_CALLSITE_H_ */
