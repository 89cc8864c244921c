// SPDX-License-Identifier: Apache-2.0
// For fuzz targets: one event with a field of every sort, and contexts of every type.
#ifndef WEFT_LIB_EVENT_FILTER_FUZZ_EVENT_H_
#define WEFT_LIB_EVENT_FILTER_FUZZ_EVENT_H_

#include "lib/event/filter_test_event.h"

namespace weft::testing {

struct EventAndContexts {
  TestEvent event;
  TestContexts contexts;

  EventAndContexts() {
    event.Number<int8_t>("a", -1)
        .Number<uint64_t>("b", 7, WEFT_FIELD_NETWORK)
        .Number<double>("d", 0.5)
        .Number<float>("e", 2.5f, WEFT_FIELD_NETWORK)
        .Text("s", "abc")
        .Text("t", "", WEFT_FIELD_NOWRITE)
        .Array<int32_t>("n", {1, 2}, WEFT_FIELD_INLINE)
        .Array<double>("f", {1.5})
        .Sequence<int16_t>("q", {1, -2, 3})
        .Array<char>("x", {'a', 'b'}, WEFT_FIELD_TEXT | WEFT_FIELD_INLINE)
        .Array<char>("y", {'a', 0}, WEFT_FIELD_TEXT)
        .Sequence<char>("z", {'*'}, WEFT_FIELD_TEXT);
    event.Build();
    contexts.entries = {{"i", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{3}},
                        {"s", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_STRING, std::string("abc")},
                        {"p:i", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, int64_t{0}},
                        {"p:f", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, 2.5},
                        {"p:s", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, std::string("ab")},
                        {"p:n", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, std::monostate{}}};
  }
};

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_FUZZ_EVENT_H_
