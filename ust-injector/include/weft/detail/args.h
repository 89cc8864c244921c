/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TP_ARGS(type1, name1, ...) as a tuple in parentheses, and the forms that the macros make of it:
 *   WEFT_ARGS_PROTO(args)       type1 name1, type2 name2     or void
 *   WEFT_ARGS_DATA_PROTO(args)  void *data, type1 name1, ... or void *data
 *   WEFT_ARGS_NAMES(args)       name1, name2                 or nothing
 *   WEFT_ARGS_DATA_NAMES(args)  data, name1, name2           or data
 *   WEFT_ARGS_MORE_PROTO(args), WEFT_ARGS_MORE_NAMES(args)   the same, each with a comma before it
 *   WEFT_ARGS_TYPES(id, args)   typedef type1 weft_argument_2_of_id; typedef type2 ...;
 *   WEFT_ARGS_MORE_CONVERTED(id, args)   , (weft_argument_2_of_id)(name1), ...
 *   WEFT_ARGS_TEXT(args)        "type1, name1, type2, name2"
 * A tuple has 0 to 10 pairs; () and (void) mean no arguments, both count as one.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_ARGS_H_
#define WEFT_DETAIL_ARGS_H_

#include "compiler.h"

#define WEFT_ARGS_PICK(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, \
                       a18, a19, a20, n, ...)                                                      \
  n
#define WEFT_ARGS_COUNT(...)                                                                      \
  WEFT_ARGS_PICK(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, \
                 1, 0)

#define WEFT_ARGS_APPLY(prefix, ...) WEFT_JOIN(prefix, WEFT_ARGS_COUNT(__VA_ARGS__))(__VA_ARGS__)

#define WEFT_ARGS_PROTO(args) WEFT_ARGS_PROTO_ args
#define WEFT_ARGS_PROTO_(...) WEFT_ARGS_APPLY(WEFT_PROTO_, __VA_ARGS__)
#define WEFT_ARGS_DATA_PROTO(args) WEFT_ARGS_DATA_PROTO_ args
#define WEFT_ARGS_DATA_PROTO_(...) void* weft_data WEFT_ARGS_APPLY(WEFT_MORE_PROTO_, __VA_ARGS__)
#define WEFT_ARGS_NAMES(args) WEFT_ARGS_NAMES_ args
#define WEFT_ARGS_NAMES_(...) WEFT_ARGS_APPLY(WEFT_NAMES_, __VA_ARGS__)
#define WEFT_ARGS_DATA_NAMES(args) WEFT_ARGS_DATA_NAMES_ args
#define WEFT_ARGS_DATA_NAMES_(...) weft_data WEFT_ARGS_APPLY(WEFT_MORE_NAMES_, __VA_ARGS__)
#define WEFT_ARGS_MORE_PROTO(args) WEFT_ARGS_MORE_PROTO_ args
#define WEFT_ARGS_MORE_PROTO_(...) WEFT_ARGS_APPLY(WEFT_MORE_PROTO_, __VA_ARGS__)
#define WEFT_ARGS_MORE_NAMES(args) WEFT_ARGS_MORE_NAMES_ args
#define WEFT_ARGS_MORE_NAMES_(...) WEFT_ARGS_APPLY(WEFT_MORE_NAMES_, __VA_ARGS__)
#define WEFT_ARGS_TYPES(id, args) WEFT_ARGS_WITH(WEFT_TYPES_, id, WEFT_ARGS_BARE args)
#define WEFT_ARGS_MORE_CONVERTED(id, args) WEFT_ARGS_WITH(WEFT_CONVERTED_, id, WEFT_ARGS_BARE args)
#define WEFT_ARGS_BARE(...) __VA_ARGS__
#define WEFT_ARGS_WITH(prefix, id, ...) \
  WEFT_JOIN(prefix, WEFT_ARGS_COUNT(__VA_ARGS__))(id, __VA_ARGS__)
#define WEFT_ARGS_TEXT(args) WEFT_ARGS_TEXT_ args
#define WEFT_ARGS_TEXT_(...) WEFT_TEXT(__VA_ARGS__)

/* A field may leave an argument unused: that is the provider's business. */
#define WEFT_PROTO_1(nothing) void
#define WEFT_PROTO_2(type, name) type name __attribute__((unused))
#define WEFT_PROTO_4(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_2(__VA_ARGS__)
#define WEFT_PROTO_6(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_4(__VA_ARGS__)
#define WEFT_PROTO_8(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_6(__VA_ARGS__)
#define WEFT_PROTO_10(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_8(__VA_ARGS__)
#define WEFT_PROTO_12(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_10(__VA_ARGS__)
#define WEFT_PROTO_14(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_12(__VA_ARGS__)
#define WEFT_PROTO_16(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_14(__VA_ARGS__)
#define WEFT_PROTO_18(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_16(__VA_ARGS__)
#define WEFT_PROTO_20(type, name, ...) WEFT_PROTO_2(type, name), WEFT_PROTO_18(__VA_ARGS__)

#define WEFT_NAMES_1(nothing)
#define WEFT_NAMES_2(type, name) name
#define WEFT_NAMES_4(type, name, ...) name, WEFT_NAMES_2(__VA_ARGS__)
#define WEFT_NAMES_6(type, name, ...) name, WEFT_NAMES_4(__VA_ARGS__)
#define WEFT_NAMES_8(type, name, ...) name, WEFT_NAMES_6(__VA_ARGS__)
#define WEFT_NAMES_10(type, name, ...) name, WEFT_NAMES_8(__VA_ARGS__)
#define WEFT_NAMES_12(type, name, ...) name, WEFT_NAMES_10(__VA_ARGS__)
#define WEFT_NAMES_14(type, name, ...) name, WEFT_NAMES_12(__VA_ARGS__)
#define WEFT_NAMES_16(type, name, ...) name, WEFT_NAMES_14(__VA_ARGS__)
#define WEFT_NAMES_18(type, name, ...) name, WEFT_NAMES_16(__VA_ARGS__)
#define WEFT_NAMES_20(type, name, ...) name, WEFT_NAMES_18(__VA_ARGS__)

/* Parameters and names that follow a first parameter, each with a comma before it. */
#define WEFT_MORE_PROTO_1(nothing)
#define WEFT_MORE_NAMES_1(nothing)
#define WEFT_MORE_PROTO_2(...) , WEFT_PROTO_2(__VA_ARGS__)
#define WEFT_MORE_NAMES_2(...) , WEFT_NAMES_2(__VA_ARGS__)
#define WEFT_MORE_PROTO_4(...) , WEFT_PROTO_4(__VA_ARGS__)
#define WEFT_MORE_NAMES_4(...) , WEFT_NAMES_4(__VA_ARGS__)
#define WEFT_MORE_PROTO_6(...) , WEFT_PROTO_6(__VA_ARGS__)
#define WEFT_MORE_NAMES_6(...) , WEFT_NAMES_6(__VA_ARGS__)
#define WEFT_MORE_PROTO_8(...) , WEFT_PROTO_8(__VA_ARGS__)
#define WEFT_MORE_NAMES_8(...) , WEFT_NAMES_8(__VA_ARGS__)
#define WEFT_MORE_PROTO_10(...) , WEFT_PROTO_10(__VA_ARGS__)
#define WEFT_MORE_NAMES_10(...) , WEFT_NAMES_10(__VA_ARGS__)
#define WEFT_MORE_PROTO_12(...) , WEFT_PROTO_12(__VA_ARGS__)
#define WEFT_MORE_NAMES_12(...) , WEFT_NAMES_12(__VA_ARGS__)
#define WEFT_MORE_PROTO_14(...) , WEFT_PROTO_14(__VA_ARGS__)
#define WEFT_MORE_NAMES_14(...) , WEFT_NAMES_14(__VA_ARGS__)
#define WEFT_MORE_PROTO_16(...) , WEFT_PROTO_16(__VA_ARGS__)
#define WEFT_MORE_NAMES_16(...) , WEFT_NAMES_16(__VA_ARGS__)
#define WEFT_MORE_PROTO_18(...) , WEFT_PROTO_18(__VA_ARGS__)
#define WEFT_MORE_NAMES_18(...) , WEFT_NAMES_18(__VA_ARGS__)
#define WEFT_MORE_PROTO_20(...) , WEFT_PROTO_20(__VA_ARGS__)
#define WEFT_MORE_NAMES_20(...) , WEFT_NAMES_20(__VA_ARGS__)

/* The types of a class's arguments, numbered from the last, and arguments as these types: an
 * instance of the class may have other ones (pointers to another struct, above all), which are
 * converted. */
#define WEFT_ARG_TYPE(id, n) weft_argument_##n##_of_##id
#define WEFT_TYPE(id, type, n) typedef type WEFT_ARG_TYPE(id, n);
#define WEFT_CONVERT(id, name, n) (WEFT_ARG_TYPE(id, n))(name)
#define WEFT_TYPES_1(id, nothing)
#define WEFT_TYPES_2(id, type, name) WEFT_TYPE(id, type, 1)
#define WEFT_TYPES_4(id, type, name, ...) WEFT_TYPE(id, type, 2) WEFT_TYPES_2(id, __VA_ARGS__)
#define WEFT_TYPES_6(id, type, name, ...) WEFT_TYPE(id, type, 3) WEFT_TYPES_4(id, __VA_ARGS__)
#define WEFT_TYPES_8(id, type, name, ...) WEFT_TYPE(id, type, 4) WEFT_TYPES_6(id, __VA_ARGS__)
#define WEFT_TYPES_10(id, type, name, ...) WEFT_TYPE(id, type, 5) WEFT_TYPES_8(id, __VA_ARGS__)
#define WEFT_TYPES_12(id, type, name, ...) WEFT_TYPE(id, type, 6) WEFT_TYPES_10(id, __VA_ARGS__)
#define WEFT_TYPES_14(id, type, name, ...) WEFT_TYPE(id, type, 7) WEFT_TYPES_12(id, __VA_ARGS__)
#define WEFT_TYPES_16(id, type, name, ...) WEFT_TYPE(id, type, 8) WEFT_TYPES_14(id, __VA_ARGS__)
#define WEFT_TYPES_18(id, type, name, ...) WEFT_TYPE(id, type, 9) WEFT_TYPES_16(id, __VA_ARGS__)
#define WEFT_TYPES_20(id, type, name, ...) WEFT_TYPE(id, type, 10) WEFT_TYPES_18(id, __VA_ARGS__)
#define WEFT_CONVERTED_1(id, nothing)
#define WEFT_CONVERTED_2(id, type, name) , WEFT_CONVERT(id, name, 1)
#define WEFT_CONVERTED_4(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 2) WEFT_CONVERTED_2(id, __VA_ARGS__)
#define WEFT_CONVERTED_6(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 3) WEFT_CONVERTED_4(id, __VA_ARGS__)
#define WEFT_CONVERTED_8(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 4) WEFT_CONVERTED_6(id, __VA_ARGS__)
#define WEFT_CONVERTED_10(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 5) WEFT_CONVERTED_8(id, __VA_ARGS__)
#define WEFT_CONVERTED_12(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 6) WEFT_CONVERTED_10(id, __VA_ARGS__)
#define WEFT_CONVERTED_14(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 7) WEFT_CONVERTED_12(id, __VA_ARGS__)
#define WEFT_CONVERTED_16(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 8) WEFT_CONVERTED_14(id, __VA_ARGS__)
#define WEFT_CONVERTED_18(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 9) WEFT_CONVERTED_16(id, __VA_ARGS__)
#define WEFT_CONVERTED_20(id, type, name, ...) \
  , WEFT_CONVERT(id, name, 10) WEFT_CONVERTED_18(id, __VA_ARGS__)

#endif /* WEFT_DETAIL_ARGS_H_ */
