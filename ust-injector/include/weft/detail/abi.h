/* SPDX-License-Identifier: Apache-2.0 */
/* The ABI with libweft.so; -Wpedantic must not speak of its flexible array to a program in C++. */
#ifndef WEFT_DETAIL_ABI_H_
#define WEFT_DETAIL_ABI_H_

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include "../abi/tracepoint.h"  // IWYU pragma: export
#pragma GCC diagnostic pop

#endif /* WEFT_DETAIL_ABI_H_ */
