// SPDX-License-Identifier: Apache-2.0
// Names of C++ functions, as people write them in a Trace and as events have them. Symbols are
// foreign. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_CPP_NAMES_H_
#define WEFT_NODE_AGENT_HOOKS_CPP_NAMES_H_

#include <string>
#include <string_view>
#include <vector>

namespace weft::hooks {

// Returns the names of a symbol, the best for an event first: without the return type that
// functions of templates have in their names, with arguments and without; then with it. Empty: it
// is no symbol of C++.
std::vector<std::string> CppNames(const std::string& symbol);

// Returns a name with the spaces that it needs, and one behind each comma.
std::string SpellName(std::string_view name);
// Returns a pattern for names that SpellName returned: "f(const char *)" as "f(char const*)". A
// const before a type with a wildcard in its name is left where it is.
std::string SpellPattern(std::string_view pattern);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_CPP_NAMES_H_
