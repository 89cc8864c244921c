// SPDX-License-Identifier: Apache-2.0
// See trace_view.h.
#include "cli/kubectl/trace_view.h"

#include <sys/random.h>

#include "lib/api/trace.h"
#include "lib/base/hexadecimal.h"
#include "lib/kube/digest.h"
#include "lib/kube/time.h"

namespace weft::kubectl {
namespace {

constexpr std::size_t kSecretBytes = 32;

}  // namespace

std::string ViewToken(const std::string& name_space, const std::string& view,
                      const std::string& secret) {
  return name_space + "." + view + "." + secret;
}

Result<std::string> MakeSecret() {
  std::string bytes(kSecretBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return FailErrno("getrandom");
  return ToHexadecimal(bytes);
}

TraceView::~TraceView() { Delete(); }

void TraceView::Delete() {
  if (name_.empty()) return;
  // One that stays ends by itself.
  (void)connection_.client->Delete({.resource = kube::kTraceViews,
                                    .name_space = connection_.name_space,
                                    .name = std::exchange(name_, "")},
                                   "");
}

Result<std::string> TraceView::Token() {
  if (!name_.empty() && Clock::now() - made_ < kViewLife / 2) return token_;
  WEFT_ASSIGN(const std::string secret, MakeSecret());
  WEFT_ASSIGN(const std::string digest, Sha256(secret));
  // The caller has read the Trace: the API server's time is known.
  const std::string expires = kube::FormatTime(connection_.client->ServerTime() + kViewLife);
  const kube::Json object = {
      {"apiVersion", api::kApiVersion},
      {"kind", "TraceView"},
      {"metadata", {{"generateName", "kubectl-weft-"}}},
      {"spec", {{"trace", trace_}, {"tokenSHA256", digest}, {"expires", expires}}}};
  WEFT_ASSIGN(const kube::Json made,
              connection_.client->Create(
                  {.resource = kube::kTraceViews, .name_space = connection_.name_space}, object));
  Delete();
  name_ = kube::TextAt(made, {"metadata", "name"});
  token_ = ViewToken(connection_.name_space, name_, secret);
  made_ = Clock::now();
  return token_;
}

}  // namespace weft::kubectl
