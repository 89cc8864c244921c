/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the text of a tracef() or tracelog(): a short one on the stack, a long one by malloc. errno
 * is kept. Runs in the thread of the call, only while the event is recorded.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_MESSAGE_H_
#define WEFT_DETAIL_MESSAGE_H_

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler.h"

struct weft_message {
  const char* text;
  unsigned int size;
  int saved_errno;
  char* memory;
  char buffer[256];
};

/* Returns false if there is no memory or vsnprintf refuses the format. */
static inline __attribute__((unused, format(printf, 2, 0))) int weft_message_make(
    struct weft_message* m, const char* format, va_list arguments) {
  va_list again;
  int size;
  m->saved_errno = errno;
  m->memory = NULL;
  m->text = m->buffer;
  va_copy(again, arguments);
  size = vsnprintf(m->buffer, sizeof(m->buffer), format, arguments);
  if (size >= (int)sizeof(m->buffer)) {
    m->text = m->memory = (char*)malloc((size_t)size + 1);
    if (m->memory) size = vsnprintf(m->memory, (size_t)size + 1, format, again);
  }
  va_end(again);
  m->size = (unsigned int)size;
  return size >= 0 && m->text != NULL;
}

static inline __attribute__((unused)) void weft_message_free(struct weft_message* m) {
  free(m->memory);
  errno = m->saved_errno;
}

#endif /* WEFT_DETAIL_MESSAGE_H_ */
