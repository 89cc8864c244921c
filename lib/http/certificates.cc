// SPDX-License-Identifier: Apache-2.0
// Certificates with OpenSSL 3.
#include "lib/http/certificates.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>

#include "lib/base/freed.h"

namespace weft::http {
namespace {

using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr std::chrono::minutes kClockSlack{10};

std::unexpected<Error> FailOpenSsl(const std::string& what) {
  std::array<char, 256> text = {};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return Fail(ErrorCode::kInvalid, what + ": " + text.data());
}

BioPtr Reading(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

X509Ptr ReadCertificate(const std::string& pem) {
  return X509Ptr(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr));
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<KeyPair> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_out(BIO_new(BIO_s_mem()));
  const BioPtr key_out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_out.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return FailOpenSsl("cannot write a certificate");
  return KeyPair{Contents(certificate_out.get()), Contents(key_out.get())};
}

bool AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// RFC 5280 4.1.2.2: positive, at most 20 octets, not to be guessed.
bool SetSerial(X509* certificate) {
  std::array<unsigned char, 16> bytes = {};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(
      BN_bin2bn(bytes.data(), bytes.size(), nullptr));
  return number != nullptr &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Everything but extensions and signature.
X509Ptr Begin(const std::string& name, EVP_PKEY* key, const Validity& validity) {
  X509Ptr certificate(X509_new());
  if (certificate == nullptr) return nullptr;
  const std::time_t from = std::chrono::system_clock::to_time_t(validity.now - kClockSlack);
  const std::time_t to = std::chrono::system_clock::to_time_t(validity.now + validity.lifetime);
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool good = X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
                    SetSerial(certificate.get()) &&
                    ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(certificate.get()), to) != nullptr &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                               reinterpret_cast<const unsigned char*>(name.data()),
                                               static_cast<int>(name.size()), -1, 0) == 1;
  return good ? std::move(certificate) : nullptr;
}

}  // namespace

Result<KeyPair> MakeAuthority(const std::string& name, const Validity& validity) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return FailOpenSsl("cannot make a key");
  const X509Ptr ca = Begin(name, key.get(), validity);
  if (ca == nullptr || X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get())) != 1 ||
      !AddExtension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(ca.get(), ca.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(ca.get(), key.get(), EVP_sha256()) == 0)
    return FailOpenSsl("cannot make a CA");
  return ToPem(ca.get(), key.get());
}

Result<KeyPair> MakeServerCertificate(const KeyPair& authority,
                                      const std::vector<std::string>& dns_names,
                                      const Validity& validity) {
  if (dns_names.empty()) return Fail(ErrorCode::kInvalid, "a server needs a name");
  const X509Ptr ca = ReadCertificate(authority.certificate_pem);
  const KeyPtr ca_key(
      PEM_read_bio_PrivateKey(Reading(authority.key_pem).get(), nullptr, nullptr, nullptr));
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (ca == nullptr || ca_key == nullptr || key == nullptr) return FailOpenSsl("cannot read a CA");
  std::string names;
  for (const std::string& name : dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  // The common name has 64 characters at most, and is not looked at where there are DNS names.
  const X509Ptr server = Begin(dns_names.front().substr(0, 64), key.get(), validity);
  if (server == nullptr ||
      X509_set_issuer_name(server.get(), X509_get_subject_name(ca.get())) != 1 ||
      !AddExtension(server.get(), ca.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(server.get(), ca.get(), NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(server.get(), ca.get(), NID_ext_key_usage, "serverAuth") ||
      !AddExtension(server.get(), ca.get(), NID_authority_key_identifier, "keyid") ||
      !AddExtension(server.get(), ca.get(), NID_subject_alt_name, names) ||
      X509_sign(server.get(), ca_key.get(), EVP_sha256()) == 0)
    return FailOpenSsl("cannot make a certificate");
  return ToPem(server.get(), key.get());
}

bool IsGoodAuthority(const std::string& certificate_pem, WallTime now, std::chrono::hours margin) {
  const X509Ptr authority = ReadCertificate(certificate_pem);
  ERR_clear_error();
  std::time_t then = std::chrono::system_clock::to_time_t(now + margin);
  return authority != nullptr && X509_check_ca(authority.get()) == 1 &&
         X509_cmp_time(X509_get0_notAfter(authority.get()), &then) > 0 &&
         X509_verify(authority.get(), X509_get0_pubkey(authority.get())) == 1;
}

bool IsGoodFor(const std::string& certificate_pem, const std::string& authority_pem,
               const std::string& dns_name, WallTime now, std::chrono::hours margin) {
  const X509Ptr certificate = ReadCertificate(certificate_pem);
  const X509Ptr authority = ReadCertificate(authority_pem);
  ERR_clear_error();
  if (certificate == nullptr || authority == nullptr) return false;
  std::time_t then = std::chrono::system_clock::to_time_t(now + margin);
  // Positive: the time in the certificate is later.
  return X509_cmp_time(X509_get0_notAfter(certificate.get()), &then) > 0 &&
         X509_cmp_time(X509_get0_notAfter(authority.get()), &then) > 0 &&
         X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1 &&
         X509_check_host(certificate.get(), dns_name.data(), dns_name.size(), 0, nullptr) == 1;
}

}  // namespace weft::http
