// SPDX-License-Identifier: Apache-2.0
// What `kubectl weft doctor` says, line by line as it finds it: what works, what does not, and what
// it may not see. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_FINDINGS_H_
#define WEFT_CLI_KUBECTL_FINDINGS_H_

#include <cstdio>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::kubectl {

class Findings {
 public:
  explicit Findings(std::FILE* out) : out_(out) {}

  void Works(std::string_view subject, const std::string& what);
  // Neither good nor bad.
  void Note(std::string_view subject, const std::string& what);
  // `remedy`: what to do; "": `what` says it.
  void Wrong(std::string_view subject, const std::string& what, const std::string& remedy);
  // Could not be looked at: a missing right, or a failure, which counts as wrong.
  void Unseen(std::string_view subject, const Error& error);

  [[nodiscard]] int wrong() const { return wrong_; }
  [[nodiscard]] int unseen() const { return unseen_; }

 private:
  void Line(const char* verdict, std::string_view subject, const std::string& what);

  std::FILE* out_;
  int wrong_ = 0;
  int unseen_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_FINDINGS_H_
