// SPDX-License-Identifier: Apache-2.0
// The objects (program, libraries, vDSO) that are loaded in this process: where, how large, which
// file, which build id. Found from outside, as a debugger would: /proc/thread-self/maps says where
// files are mapped, ELF headers and notes are read by process_vm_readv. So no lock of ld.so is
// needed (a signal handler or a fork child may be here while another thread holds it), and an
// object that is unloaded meanwhile cannot make us fault.
#ifndef WEFT_UST_INJECTOR_PRELOAD_LOADED_OBJECTS_H_
#define WEFT_UST_INJECTOR_PRELOAD_LOADED_OBJECTS_H_

#include <stdbool.h>
#include <stdint.h>

#define WEFT_BUILD_ID_MAX 64u

struct weft_loaded_object {
  uint64_t base;       // where its first segment lies
  uint64_t size;       // bytes to the end of its last segment; 0: the vDSO, which has no file
  uint32_t path_size;  // bytes, no NUL
  uint8_t is_pic;      // its addresses count from base
  uint8_t build_id_size;
  uint8_t reserved[2];
  uint8_t build_id[WEFT_BUILD_ID_MAX];
  char path[];
};

struct weft_loaded_objects;

// Makes an empty list; NULL: no memory. It makes two system calls, its end included. None of them
// opens anything.
struct weft_loaded_objects* weft_loaded_objects_new(void);
void weft_loaded_objects_free(struct weft_loaded_objects* list);

// Fills the list. Opens a descriptor for a moment; in a program with threads it does so in a thread
// of helper_task.h. The list is empty without /proc, and has no build ids if reading memory is
// denied. Objects beyond some thousand are left out.
void weft_loaded_objects_gather(struct weft_loaded_objects* list);

// Returns the entry behind `after` (NULL: the first), or NULL.
const struct weft_loaded_object* weft_loaded_objects_next(const struct weft_loaded_objects* list,
                                                          const struct weft_loaded_object* after);

#endif  // WEFT_UST_INJECTOR_PRELOAD_LOADED_OBJECTS_H_
