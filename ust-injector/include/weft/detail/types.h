/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of a field's C type that the compiler knows: is it signed, an address, a
 * floating-point number? They are constants at -O0 too, because assembler directives take them as
 * operands.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_TYPES_H_
#define WEFT_DETAIL_TYPES_H_

#include "abi.h"

/* Values of __builtin_classify_type, the same in gcc and clang, in C and C++. */
#define WEFT_IS_POINTER(type) (__builtin_classify_type((type)0) == 5)
#define WEFT_IS_FLOAT(type) (__builtin_classify_type((type)0) == 8)

#ifdef __cplusplus
template <typename T>
struct weft_signedness {
  enum { value = (T)-1 < (T)1 };
};
template <typename T>
struct weft_signedness<T*> {
  enum { value = 0 };
};
template <>
struct weft_signedness<bool> {
  enum { value = 0 };
};
#define WEFT_IS_SIGNED(type) (weft_signedness<type>::value != 0)
#else
/* One type for both: the branch not taken must not compare pointers, which is no constant. */
#define WEFT_IS_SIGNED(type)                                                     \
  (__builtin_choose_expr(                                                        \
      WEFT_IS_POINTER(type), 0,                                                  \
      (__typeof__(__builtin_choose_expr(WEFT_IS_POINTER(type), 0, (type)0)))-1 < \
          (__typeof__(__builtin_choose_expr(WEFT_IS_POINTER(type), 0, (type)0)))1))
#endif

#define WEFT_INTEGER_FLAGS(type)                    \
  ((WEFT_IS_SIGNED(type) ? WEFT_FIELD_SIGNED : 0) | \
   (WEFT_IS_POINTER(type) ? WEFT_FIELD_POINTER : 0))
#define WEFT_ELEMENT_FLAGS(type) \
  (WEFT_INTEGER_FLAGS(type) | (WEFT_IS_FLOAT(type) ? WEFT_FIELD_FLOAT_ELEMENTS : 0))

#endif /* WEFT_DETAIL_TYPES_H_ */
