// SPDX-License-Identifier: Apache-2.0
// See label_selector.h.
#include "cli/kubectl/label_selector.h"

#include "lib/api/diagnostic.h"

namespace weft::kubectl {
namespace {

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Takes the text up to the next comma that is not in parentheses.
std::string_view TakeRequirement(std::string_view& rest) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < rest.size() && (rest[end] != ',' || depth > 0); ++end) {
    if (rest[end] == '(') ++depth;
    if (rest[end] == ')') --depth;
  }
  const std::string_view one = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.size(), end + 1));
  return Trim(one);
}

// "(a, b)"
bool ParseValues(std::string_view text, std::vector<std::string>& out) {
  if (!text.starts_with('(') || !text.ends_with(')')) return false;
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) out.emplace_back(TakeRequirement(text));
  return !out.empty();
}

bool ParseRequirement(std::string_view text, api::LabelSelector& out) {
  api::LabelRequirement one;
  if (text.starts_with('!')) {
    one = {.key = std::string(Trim(text.substr(1))), .op = api::SelectorOperator::kDoesNotExist};
  } else if (const auto at = text.find(" notin "); at != std::string_view::npos) {
    one = {.key = std::string(Trim(text.substr(0, at))), .op = api::SelectorOperator::kNotIn};
    if (!ParseValues(Trim(text.substr(at + 7)), one.values)) return false;
  } else if (const auto in = text.find(" in "); in != std::string_view::npos) {
    one = {.key = std::string(Trim(text.substr(0, in))), .op = api::SelectorOperator::kIn};
    if (!ParseValues(Trim(text.substr(in + 4)), one.values)) return false;
  } else if (const auto differs = text.find("!="); differs != std::string_view::npos) {
    one = {.key = std::string(Trim(text.substr(0, differs))),
           .op = api::SelectorOperator::kNotIn,
           .values = {std::string(Trim(text.substr(differs + 2)))}};
  } else if (const auto equals = text.find('='); equals != std::string_view::npos) {
    const std::size_t value = text.substr(equals).starts_with("==") ? equals + 2 : equals + 1;
    const std::string key(Trim(text.substr(0, equals)));
    return !key.empty() && out.match_labels.emplace(key, Trim(text.substr(value))).second;
  } else {
    one = {.key = std::string(text), .op = api::SelectorOperator::kExists};
  }
  out.match_expressions.push_back(one);
  return !one.key.empty() && one.key.find(' ') == std::string::npos;
}

}  // namespace

Result<api::LabelSelector> ParseLabelSelector(std::string_view text) {
  api::LabelSelector out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = TakeRequirement(rest);
    if (!ParseRequirement(one, out))
      return Fail(ErrorCode::kInvalid, "-l " + api::Quote(text) + ": " + api::Quote(one) +
                                           " selects no labels; write app=shop,tier=web");
  }
  return out;
}

}  // namespace weft::kubectl
