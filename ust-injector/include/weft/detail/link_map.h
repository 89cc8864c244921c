/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a function of libweft.so through the dynamic linker's list of loaded objects. Needed only in
 * programs whose linker settles a weak undefined symbol of an executable at 0 when it links (mold
 * does); called in constructors, under ld.so's lock. In a static program there is no list.
 */
#ifndef WEFT_DETAIL_LINK_MAP_H_
#define WEFT_DETAIL_LINK_MAP_H_

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
extern const ElfW(Dyn) weft_own_dynamic[] __asm__("_DYNAMIC")
    __attribute__((weak, visibility("hidden")));
#ifdef __cplusplus
}
#endif

/* glibc turns the addresses in a dynamic section into absolute ones, musl leaves them relative. */
static inline uintptr_t weft_dynamic_address(const struct link_map* map, ElfW(Sxword) tag) {
  const ElfW(Dyn) * d;
  for (d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == tag) {
      return d->d_un.d_ptr < map->l_addr ? map->l_addr + d->d_un.d_ptr : d->d_un.d_ptr;
    }
  }
  return 0;
}

static inline uintptr_t weft_symbol_in(const struct link_map* map, const char* name) {
  const ElfW(Sym)* symbols = (const ElfW(Sym)*)weft_dynamic_address(map, DT_SYMTAB);
  const char* strings = (const char*)weft_dynamic_address(map, DT_STRTAB);
  const uint32_t* hash = (const uint32_t*)weft_dynamic_address(map, DT_HASH);
  uint32_t i;
  if (!symbols || !strings || !hash) return 0;
  for (i = 0; i < hash[1]; ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF && strcmp(strings + symbols[i].st_name, name) == 0) {
      return map->l_addr + symbols[i].st_value;
    }
  }
  return 0;
}

static inline uintptr_t weft_link_map_symbol(const char* name) {
  static const char library[] = "/libweft.so";
  const struct r_debug* debug = NULL;
  const struct link_map* map;
  const ElfW(Dyn) * d;
  if (weft_own_dynamic == NULL) return 0;
  for (d = weft_own_dynamic; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_DEBUG) debug = (const struct r_debug*)d->d_un.d_ptr;
  }
  for (map = debug ? debug->r_map : NULL; map; map = map->l_next) {
    const size_t size = map->l_name ? strlen(map->l_name) : 0;
    if (size >= sizeof(library) - 1 &&
        strcmp(map->l_name + size - (sizeof(library) - 1), library) == 0) {
      return weft_symbol_in(map, name);
    }
  }
  return 0;
}

#endif /* WEFT_DETAIL_LINK_MAP_H_ */
