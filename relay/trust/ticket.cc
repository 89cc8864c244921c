// SPDX-License-Identifier: Apache-2.0
// See ticket.h.
#include "relay/trust/ticket.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <charconv>

#include "lib/base/hexadecimal.h"

namespace weft::relay_trust {
namespace {

// The first bytes of what is signed: a proof is no proof of anything else.
constexpr std::string_view kPurpose = "weft relay ticket 1";
constexpr size_t kMaxExpiresDigits = 19;

std::chrono::seconds SteadyNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now().time_since_epoch());
}

// With its length before it, so that no two lists of texts have the same bytes.
void AppendText(std::string& to, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  for (int shift = 0; shift < 32; shift += 8) to += static_cast<char>(size >> shift);
  to += text;
}

}  // namespace

Result<TicketBook> TicketBook::Make() {
  std::array<uint8_t, kTicketKeyBytes> key{};
  if (::getrandom(key.data(), key.size(), 0) != ssize_t{sizeof(key)}) {
    return FailErrno("random numbers");
  }
  return TicketBook(key, SteadyNow);
}

std::string TicketBook::Proof(std::string_view node, std::string_view kubernetes_namespace,
                              std::string_view expires) const {
  std::string text;
  for (const std::string_view part : {kPurpose, node, kubernetes_namespace, expires}) {
    AppendText(text, part);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> proof{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), proof.data(),
           &size) == nullptr) {
    return "";
  }
  return ToHexadecimal({reinterpret_cast<const char*>(proof.data()), size});
}

Result<std::string> TicketBook::Issue(std::string_view node,
                                      std::string_view kubernetes_namespace) const {
  const std::string expires = std::to_string((now_() + kTicketLifetime).count());
  const std::string proof = Proof(node, kubernetes_namespace, expires);
  if (proof.empty()) return Fail(ErrorCode::kIo, "OpenSSL has no HMAC");
  return expires + "." + proof;
}

TicketFault TicketBook::Check(std::string_view node, std::string_view kubernetes_namespace,
                              std::string_view ticket) const {
  if (ticket.empty()) return TicketFault::kAbsent;
  const size_t dot = ticket.find('.');
  if (dot == std::string_view::npos || dot > kMaxExpiresDigits) return TicketFault::kWrong;
  const std::string_view expires = ticket.substr(0, dot);
  const std::string_view claimed = ticket.substr(dot + 1);
  int64_t seconds = 0;
  const auto [end, error] =
      std::from_chars(expires.data(), expires.data() + expires.size(), seconds);
  if (error != std::errc() || end != expires.data() + expires.size()) return TicketFault::kWrong;
  const std::string proof = Proof(node, kubernetes_namespace, expires);
  // The comparison takes a time that does not depend on where they differ.
  if (proof.empty() || claimed.size() != proof.size() ||
      CRYPTO_memcmp(claimed.data(), proof.data(), proof.size()) != 0) {
    return TicketFault::kWrong;
  }
  return now_().count() < seconds ? TicketFault::kNone : TicketFault::kExpired;
}

}  // namespace weft::relay_trust
