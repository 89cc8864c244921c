/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Finds the meaning of a filter's names for one event. It is internal to the linker
 * (filter_link.c). */
#ifndef WEFT_LIB_EVENT_FILTER_SYMBOL_H_
#define WEFT_LIB_EVENT_FILTER_SYMBOL_H_

#include "lib/event/filter_linked.h"

struct weft_filter_scope {
  const void* desc;
  const struct weft_description_layout* layout;
  const struct weft_filter_contexts* contexts; /* NULL: none */
  uint32_t reads; /* enum weft_filter_reads of what was resolved so far */
};

/* Makes *load (zero before) the instruction that puts the symbol's value on the stack, and *type
 * its type. Returns 0, -ENOENT or -EPROTOTYPE, as weft_filter_link does. */
int weft_filter_resolve(struct weft_filter_scope* scope, const struct weft_filter_symbol* symbol,
                        const char* name, struct weft_linked_insn* load, uint8_t* type);

#endif /* WEFT_LIB_EVENT_FILTER_SYMBOL_H_ */
