// SPDX-License-Identifier: Apache-2.0
// A deleter for std::unique_ptr that calls a C library's function:
//
//   using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
#ifndef WEFT_LIB_BASE_FREED_H_
#define WEFT_LIB_BASE_FREED_H_

namespace weft {

template <auto Function>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Function(object);
  }
};

}  // namespace weft

#endif  // WEFT_LIB_BASE_FREED_H_
