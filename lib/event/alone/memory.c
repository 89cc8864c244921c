/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * memcpy and memset for the libraries that prove lib/event's C files to need no libc; libweft.so
 * and the kernel have their own.
 */
#include <stddef.h>

void* memcpy(void* to, const void* from, size_t size);
void* memset(void* to, int value, size_t size);

void* memcpy(void* to, const void* from, size_t size) {
  size_t i;

  for (i = 0; i < size; i++) ((volatile char*)to)[i] = ((const char*)from)[i];
  return to;
}

void* memset(void* to, int value, size_t size) {
  size_t i;

  for (i = 0; i < size; i++) ((volatile char*)to)[i] = (char)value;
  return to;
}
