// SPDX-License-Identifier: Apache-2.0
// See report_formats.h.
#include "cli/report/report_formats.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "cli/json_printer.h"
#include "cli/view_text.h"

namespace weft::cli {
namespace {

// Calls that together took less than this share of all are not shown as text.
constexpr uint64_t kShownShare = 1000;

template <typename... Args>
void AppendFormat(std::string& out, const char* format, Args... args) {
  std::array<char, 160> text;
  const int n = std::snprintf(text.data(), text.size(), format, args...);
  if (n > 0) out.append(text.data(), std::min(static_cast<size_t>(n), text.size() - 1));
}

// Returns the functions, those with the largest total first.
std::vector<const FunctionCalls*> Sorted(const CallTree& tree) {
  std::vector<const FunctionCalls*> functions;
  for (const FunctionCalls& function : tree.functions())
    if (function.durations.count() + function.unfinished > 0) functions.push_back(&function);
  std::ranges::sort(functions, [](const FunctionCalls* a, const FunctionCalls* b) {
    return std::pair(a->total_ns, b->name) > std::pair(b->total_ns, a->name);
  });
  return functions;
}

using NodeOfFunction = std::pair<uint32_t, const CallNode*>;

std::vector<NodeOfFunction> Sorted(const CallNodes& nodes) {
  std::vector<NodeOfFunction> sorted;
  for (const auto& [function, node] : nodes) sorted.emplace_back(function, node.get());
  std::ranges::sort(sorted, [](const NodeOfFunction& a, const NodeOfFunction& b) {
    return std::pair(a.second->total_ns, b.first) > std::pair(b.second->total_ns, a.first);
  });
  return sorted;
}

uint64_t TotalOf(const CallNodes& nodes) {
  uint64_t total = 0;
  for (const auto& [function, node] : nodes) total += std::min(node->total_ns, UINT64_MAX - total);
  return total;
}

void AppendTable(const CallTree& tree, std::string& out) {
  AppendFormat(out, "%10s %11s %11s %11s %11s %11s %11s  %s\n", "calls", "total", "self", "min",
               "median", "p99", "max", "function");
  for (const FunctionCalls* f : Sorted(tree)) {
    const Durations& d = f->durations;
    AppendFormat(out, "%10" PRIu64, d.count() + f->unfinished);
    const std::array<uint64_t, 6> times = {f->total_ns,       f->self_ns,         d.min(),
                                           d.Percentile(0.5), d.Percentile(0.99), d.max()};
    for (const uint64_t ns : times)
      AppendFormat(out, " %11s", d.count() == 0 ? "-" : DurationText(ns).c_str());
    out += "  ";
    AppendName(out, f->name);
    out += "\n";
  }
}

// Returns the number of nodes that were too small to be shown.
uint64_t AppendTree(const CallTree& tree, const CallNodes& nodes, uint64_t least, size_t indent,
                    std::string& out) {
  uint64_t hidden = 0;
  for (const auto& [function, node] : Sorted(nodes)) {
    if (node->total_ns < least) {
      hidden++;
      continue;
    }
    AppendFormat(out, "%10" PRIu64 " %11s %11s  ", node->calls,
                 DurationText(node->total_ns).c_str(), DurationText(node->self_ns).c_str());
    out.append(2 * indent, ' ');
    AppendName(out, tree.functions()[function].name);
    out += "\n";
    hidden += AppendTree(tree, node->inner, least, indent + 1, out);
  }
  return hidden;
}

void AppendJsonNodes(const CallTree& tree, const CallNodes& nodes, std::string& out) {
  out += "[";
  bool first = true;
  for (const auto& [function, node] : Sorted(nodes)) {
    if (!first) out += ",";
    first = false;
    out += "{\"name\":";
    AppendJsonString(out, tree.functions()[function].name);
    AppendFormat(out, ",\"calls\":%" PRIu64 ",\"total_ns\":%" PRIu64 ",\"self_ns\":%" PRIu64,
                 node->calls, node->total_ns, node->self_ns);
    if (!node->inner.empty()) {
      out += ",\"inner\":";
      AppendJsonNodes(tree, node->inner, out);
    }
    out += "}";
  }
  out += "]";
}

void AppendFolded(const CallTree& tree, const CallNodes& nodes, std::string& stack,
                  std::string& out) {
  for (const auto& [function, node] : nodes) {
    const size_t before = stack.size();
    if (before != 0) stack += ";";
    std::string name = tree.functions()[function].name;
    std::ranges::replace(name, ';', ':');
    AppendName(stack, name);
    if (node->self_ns > 0) {
      out += stack;
      AppendFormat(out, " %" PRIu64 "\n", node->self_ns);
    }
    AppendFolded(tree, node->inner, stack, out);
    stack.resize(before);
  }
}

}  // namespace

std::string DurationText(uint64_t ns) {
  constexpr std::array<std::pair<uint64_t, const char*>, 3> kUnits = {
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}}};
  std::string text;
  for (const auto& [unit, name] : kUnits) {
    if (ns < unit) continue;
    AppendFormat(text, "%" PRIu64 ".%03" PRIu64 " %s", ns / unit, ns % unit / (unit / 1000), name);
    return text;
  }
  AppendFormat(text, "%" PRIu64 " ns", ns);
  return text;
}

std::string ReportText(const CallTree& tree) {
  std::string out;
  AppendTable(tree, out);
  if (tree.roots().empty()) return out;
  AppendFormat(out, "\n%10s %11s %11s  %s\n", "calls", "total", "self", "call tree");
  const uint64_t least = TotalOf(tree.roots()) / kShownShare;
  const uint64_t hidden = AppendTree(tree, tree.roots(), least, 0, out);
  if (hidden > 0)
    AppendFormat(out, "%" PRIu64 " entries with less than 0.1 %% of the time: see --to json\n",
                 hidden);
  return out;
}

std::string ReportJson(const CallTree& tree) {
  std::string out = "{\"functions\":[";
  for (const FunctionCalls* f : Sorted(tree)) {
    const Durations& d = f->durations;
    out += out.ends_with('[') ? "{\"name\":" : ",{\"name\":";
    AppendJsonString(out, f->name);
    AppendFormat(out, ",\"calls\":%" PRIu64 ",\"unfinished\":%" PRIu64, d.count(), f->unfinished);
    if (d.count() > 0) {
      AppendFormat(out, ",\"total_ns\":%" PRIu64 ",\"self_ns\":%" PRIu64, f->total_ns, f->self_ns);
      AppendFormat(out,
                   ",\"min_ns\":%" PRIu64 ",\"median_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64
                   ",\"max_ns\":%" PRIu64,
                   d.min(), d.Percentile(0.5), d.Percentile(0.99), d.max());
    }
    out += "}";
  }
  out += "],\"tree\":";
  AppendJsonNodes(tree, tree.roots(), out);
  return out + "}\n";
}

std::string ReportFolded(const CallTree& tree) {
  std::string out, stack;
  AppendFolded(tree, tree.roots(), stack, out);
  return out;
}

}  // namespace weft::cli
