// SPDX-License-Identifier: Apache-2.0
// See findings.h.
#include "cli/kubectl/findings.h"

#include "cli/kubectl/explain.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {

void Findings::Line(const char* verdict, std::string_view subject, const std::string& what) {
  std::fprintf(out_, "%-7s  %s: %s\n", verdict, Printable(subject).c_str(),
               Printable(what).c_str());
  std::fflush(out_);
}

void Findings::Works(std::string_view subject, const std::string& what) {
  Line("ok", subject, what);
}

void Findings::Note(std::string_view subject, const std::string& what) {
  Line("note", subject, what);
}

void Findings::Wrong(std::string_view subject, const std::string& what, const std::string& remedy) {
  ++wrong_;
  Line("WRONG", subject, what);
  if (!remedy.empty()) std::fprintf(out_, "         to do: %s\n", Printable(remedy).c_str());
}

void Findings::Unseen(std::string_view subject, const Error& error) {
  if (error.code != ErrorCode::kPermission) return Wrong(subject, Explain(error), "");
  ++unseen_;
  Line("unknown", subject, Explain(error));
}

}  // namespace weft::kubectl
