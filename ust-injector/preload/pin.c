// SPDX-License-Identifier: Apache-2.0
// See pin.h.
#include "ust-injector/preload/pin.h"

#include <stddef.h>

// Values of glibc's <dlfcn.h> and <link.h>; other libcs have no dladdr1.
#define WEFT_RTLD_DL_LINKMAP 2
#define WEFT_RTLD_LAZY 0x1
#define WEFT_RTLD_NOLOAD 0x4
#define WEFT_RTLD_NODELETE 0x1000

struct place {
  const char* file;
  void* base;
  const char* symbol;
  void* symbol_address;
};

struct map_entry {
  unsigned long base;
  const char* name;  // "" for the program
};

extern int dladdr1(const void* address, struct place* place, void** extra, int flags)
    __attribute__((weak));
extern void* dlopen(const char* file, int mode) __attribute__((weak));

void weft_pin_object(const void* address) {
  struct place place;
  struct map_entry* map = NULL;
  if (dladdr1 == NULL || dlopen == NULL ||
      dladdr1(address, &place, (void**)&map, WEFT_RTLD_DL_LINKMAP) == 0 || map == NULL ||
      map->name == NULL || map->name[0] == 0) {
    return;
  }
  // The handle stays open on purpose.
  (void)dlopen(map->name, WEFT_RTLD_LAZY | WEFT_RTLD_NOLOAD | WEFT_RTLD_NODELETE);
}
