/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Includes the ABI with libweft.so for programs. WEFT_IN_PROGRAM makes its files system headers, as
 * all headers of weft are: a program's warning options are about the program's own code.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_ABI_H_
#define WEFT_DETAIL_ABI_H_

#define WEFT_IN_PROGRAM
#include "../abi/tracepoint.h"  // IWYU pragma: export
#undef WEFT_IN_PROGRAM

#endif /* WEFT_DETAIL_ABI_H_ */
