// SPDX-License-Identifier: Apache-2.0
// Unpacks .gnu_debugdata, a section in which some distributions leave the symbols of stripped
// programs: an ELF file, compressed by xz. The file is a tenant's: this code runs in weft-types, a
// sandboxed process. Thread-safety: pure function.
#ifndef WEFT_NODE_AGENT_HOOKS_UNPACK_SYMBOLS_H_
#define WEFT_NODE_AGENT_HOOKS_UNPACK_SYMBOLS_H_

#include "lib/base/result.h"

namespace weft::hooks {

// Writes what the section of `file` contains to `to`. kNotFound: there is no such section;
// kInvalid: it is damaged; kLimit: it has more than kMaxUnpackedBytes.
Status UnpackSymbols(int file, int to);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_UNPACK_SYMBOLS_H_
