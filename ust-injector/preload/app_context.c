// SPDX-License-Identifier: Apache-2.0
// See app_context.h.
#include "ust-injector/preload/app_context.h"

#include <errno.h>

#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/text.h"

#define WEFT_APP_CONTEXTS 64u

struct app_context {
  char name[WEFT_CONTEXT_NAME_MAX];
  void* data;
  weft_app_context_get get;  // NULL: nothing provides it now. Stored after `data`
};

static struct app_context contexts[WEFT_APP_CONTEXTS];
static uint32_t context_count;  // entries with a name; they stay

uint32_t weft_app_context_number(const char* name) {
  for (uint32_t i = 0; i < context_count; ++i) {
    if (weft_equal(contexts[i].name, name)) return i;
  }
  if (context_count == WEFT_APP_CONTEXTS) return WEFT_APP_CONTEXTS;
  char* at = contexts[context_count].name;
  if (!weft_append(&at, at + WEFT_CONTEXT_NAME_MAX, name)) return WEFT_APP_CONTEXTS;
  return context_count++;
}

static void get_value(uint32_t number, struct weft_app_context_value* value) {
  memset(value, 0, sizeof(*value));
  if (number >= WEFT_APP_CONTEXTS) return;
  // acquire: `data` was stored before `get`
  const weft_app_context_get get = __atomic_load_n(&contexts[number].get, __ATOMIC_ACQUIRE);
  if (get != NULL) get(contexts[number].data, value);
}

static uint32_t size_of(uint32_t type) {
  static const uint8_t sizes[] = {0, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
  return type < sizeof(sizes) ? sizes[type] : 0;
}

uint32_t weft_app_context_write(uint32_t number, uint8_t* to, uint32_t room) {
  struct weft_app_context_value value;
  get_value(number, &value);
  to[0] = (uint8_t)value.type;
  if (value.type == WEFT_DYNAMIC_STRING && value.text != NULL && room >= 5) {
    uint32_t size = (uint32_t)strlen(value.text);
    if (size > WEFT_CONTEXT_MAX_STRING) size = WEFT_CONTEXT_MAX_STRING;
    if (size > room - 5) size = room - 5;
    __builtin_memcpy(to + 1, &size, 4);
    memcpy(to + 5, value.text, size);  // NOLINT(bugprone-not-null-terminated-result): has a size
    return 5 + size;
  }
  const uint32_t size = size_of(value.type);
  if (size == 0 || room < 1 + size) {
    to[0] = WEFT_DYNAMIC_NONE;
    return 1;
  }
  memcpy(to + 1, &value.bits, size);
  return 1 + size;
}

static int64_t widen(const struct weft_app_context_value* value) {
  switch (value->type) {
    case WEFT_DYNAMIC_S8:
      return (int8_t)value->bits;
    case WEFT_DYNAMIC_S16:
      return (int16_t)value->bits;
    case WEFT_DYNAMIC_S32:
      return (int32_t)value->bits;
    case WEFT_DYNAMIC_U8:
      return (uint8_t)value->bits;
    case WEFT_DYNAMIC_U16:
      return (uint16_t)value->bits;
    case WEFT_DYNAMIC_U32:
      return (uint32_t)value->bits;
    default:
      return (int64_t)value->bits;
  }
}

int weft_app_context_value(uint32_t number, struct weft_filter_value* value) {
  struct weft_app_context_value v;
  get_value(number, &v);
  if (v.type == WEFT_DYNAMIC_STRING && v.text != NULL) {
    value->type = WEFT_FILTER_STRING;
    value->text = v.text;
    value->size = (uint32_t)strlen(v.text);
    return 0;
  }
  if (v.type == WEFT_DYNAMIC_FLOAT || v.type == WEFT_DYNAMIC_DOUBLE) {
    double d;
    float f;
    __builtin_memcpy(&d, &v.bits, 8);
    __builtin_memcpy(&f, &v.bits, 4);
    if (v.type == WEFT_DYNAMIC_FLOAT) d = f;
    value->type = WEFT_FILTER_FLOAT;
    __builtin_memcpy(&value->bits, &d, 8);
    return 0;
  }
  if (size_of(v.type) == 0) return -ENOENT;
  value->type = WEFT_FILTER_INT;
  value->bits = (uint64_t)widen(&v);
  return 0;
}

int weft_app_context_add(const char* name, weft_app_context_get get, void* data) {
  uint64_t mask;
  if (!weft_lock(&mask)) return -ENOMEM;
  const uint32_t n = weft_app_context_number(name);
  int result = -ENOSPC;
  if (n < WEFT_APP_CONTEXTS) {
    result = contexts[n].get == NULL ? 0 : -EEXIST;
    if (result == 0) {
      contexts[n].data = data;
      // release: `data` before `get`
      __atomic_store_n(&contexts[n].get, get, __ATOMIC_RELEASE);
    }
  }
  weft_unlock(mask);
  return result;
}

int weft_app_context_remove(const char* name) {
  uint64_t mask;
  if (!weft_lock(&mask)) return -ENOMEM;
  const uint32_t n = weft_app_context_number(name);
  int result = -ENOENT;
  if (n < WEFT_APP_CONTEXTS && contexts[n].get != NULL) {
    // release: for symmetry; a running call may still use it
    __atomic_store_n(&contexts[n].get, NULL, __ATOMIC_RELEASE);
    result = 0;
  }
  weft_unlock(mask);
  return result;
}
