// SPDX-License-Identifier: Apache-2.0
// See engine.h. OpenSSL 3 with memory BIOs.
#include "lib/tls/engine.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <climits>
#include <ctime>

#include "lib/base/freed.h"

namespace weft::tls {
namespace {

// TLS 1.2 with forward secrecy and authenticated encryption only. 128 bits come first: they cost
// less CPU.
constexpr const char* kCiphers12 = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kCiphers13 =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

std::string LastReason() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "the connection is broken" : reason;
}

std::unexpected<Error> Invalid(const char* what) {
  return Fail(ErrorCode::kInvalid, std::string(what) + ": " + LastReason());
}

BioPtr Reading(const std::string& text) {
  return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<std::shared_ptr<SSL_CTX>> MakeContext(const SSL_METHOD* method) {
  Prepare();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), Freed<SSL_CTX_free>());
  if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context.get(), kCiphers12) != 1 ||
      SSL_CTX_set_ciphersuites(context.get(), kCiphers13) != 1) {
    return Invalid("TLS");
  }
  // No resumption: sessions live for hours, and the server then never writes by itself on a
  // connection whose client does not read.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // An idle connection keeps no buffers.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  return context;
}

}  // namespace

void Prepare() {
  static const bool done = [] {
    // OpenSSL's configuration file is the machine's, not weft's.
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_LOAD_SSL_STRINGS |
                         OPENSSL_INIT_LOAD_CRYPTO_STRINGS,
                     nullptr);
    // Times in certificates: gmtime reads the time zone at its first call.
    ::tzset();
    std::array<unsigned char, 1> byte{};
    (void)RAND_bytes(byte.data(), byte.size());
    ERR_clear_error();
    return true;
  }();
  (void)done;
}

Result<ClientContext> ClientContext::Make(const std::string& authorities_pem) {
  if (authorities_pem.size() > kMaxBundleBytes) {
    return Fail(ErrorCode::kInvalid, "CA bundle: it is longer than 64 KiB");
  }
  WEFT_ASSIGN(auto context, MakeContext(TLS_client_method()));
  X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
  const BioPtr pem = Reading(authorities_pem);
  int count = 0;
  while (const X509Ptr one{PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, one.get()) != 1) return Invalid("CA bundle");
    count++;
  }
  // The end of the text is an error, too.
  ERR_clear_error();
  if (count == 0) return Fail(ErrorCode::kInvalid, "CA bundle: it has no certificate");
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return ClientContext(std::move(context));
}

Result<ServerContext> ServerContext::Make(const std::string& chain_pem,
                                          const std::string& key_pem) {
  WEFT_ASSIGN(auto context, MakeContext(TLS_server_method()));
  const BioPtr chain = Reading(chain_pem);
  const X509Ptr leaf{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)};
  const KeyPtr key{PEM_read_bio_PrivateKey(Reading(key_pem).get(), nullptr, nullptr, nullptr)};
  if (leaf == nullptr || SSL_CTX_use_certificate(context.get(), leaf.get()) != 1) {
    return Invalid("certificate");
  }
  while (const X509Ptr above{PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr)}) {
    if (SSL_CTX_add1_chain_cert(context.get(), above.get()) != 1) return Invalid("certificate");
  }
  ERR_clear_error();
  if (key == nullptr || SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1) {
    return Invalid("key of the certificate");
  }
  return ServerContext(std::move(context));
}

void Engine::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }

Result<Engine> Engine::Make(ssl_ctx_st* context) {
  Engine engine(SSL_new(context));
  BioPtr in(BIO_new(BIO_s_mem()));
  BioPtr out(BIO_new(BIO_s_mem()));
  if (engine.ssl_ == nullptr || in == nullptr || out == nullptr) return Invalid("TLS");
  engine.in_ = in.release();
  engine.out_ = out.release();
  SSL_set_bio(engine.ssl_.get(), engine.in_, engine.out_);
  return engine;
}

Result<Engine> Engine::Connect(const ClientContext& context, const std::string& server_name) {
  WEFT_ASSIGN(Engine engine, Make(context.context_.get()));
  SSL* const ssl = engine.ssl_.get();
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (server_name.empty() || SSL_set1_host(ssl, server_name.c_str()) != 1 ||
      SSL_set_tlsext_host_name(ssl, server_name.c_str()) != 1) {
    return Invalid("name of the server");
  }
  SSL_set_connect_state(ssl);
  WEFT_TRY(engine.Handshake());
  return engine;
}

Result<Engine> Engine::Accept(const ServerContext& context) {
  WEFT_ASSIGN(Engine engine, Make(context.context_.get()));
  SSL_set_accept_state(engine.ssl_.get());
  return engine;
}

std::unexpected<Error> Engine::Failed(int returned, const char* what) const {
  const int kind = SSL_get_error(ssl_.get(), returned);
  if (kind == SSL_ERROR_ZERO_RETURN) {
    return Fail(ErrorCode::kClosed, std::string(what) + ": the peer ended the connection");
  }
  const long verified = SSL_get_verify_result(ssl_.get());
  if (SSL_is_server(ssl_.get()) == 0 && verified != X509_V_OK) {
    ERR_clear_error();
    return Fail(ErrorCode::kPermission, std::string(what) + ": the server's certificate: " +
                                            X509_verify_cert_error_string(verified));
  }
  return Fail(ErrorCode::kCorrupt, std::string(what) + ": " + LastReason());
}

Status Engine::Handshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1 || SSL_get_error(ssl_.get(), done) == SSL_ERROR_WANT_READ) return {};
  return Failed(done, "TLS handshake");
}

Status Engine::Receive(Bytes bytes) {
  for (Bytes rest = bytes; !rest.empty();) {
    const int part = static_cast<int>(std::min<size_t>(rest.size(), INT_MAX));
    if (BIO_write(in_, rest.data(), part) != part) return Invalid("TLS");
    rest = rest.subspan(static_cast<size_t>(part));
  }
  return established() ? Status() : Handshake();
}

Result<size_t> Engine::Read(std::span<uint8_t> room) {
  size_t total = 0;
  while (established() && total < room.size()) {
    ERR_clear_error();
    const size_t most = std::min<size_t>(room.size() - total, INT_MAX);
    const int got = SSL_read(ssl_.get(), room.data() + total, static_cast<int>(most));
    if (got <= 0 && total == 0 && SSL_get_error(ssl_.get(), got) != SSL_ERROR_WANT_READ) {
      return Failed(got, "TLS");
    }
    // An error comes again at the next call.
    if (got <= 0) break;
    total += static_cast<size_t>(got);
  }
  return total;
}

Status Engine::Write(Bytes bytes) {
  for (Bytes rest = bytes; !rest.empty();) {
    ERR_clear_error();
    const int wrote = SSL_write(ssl_.get(), rest.data(),
                                static_cast<int>(std::min<size_t>(rest.size(), INT_MAX)));
    if (wrote <= 0) return Failed(wrote, "TLS");
    rest = rest.subspan(static_cast<size_t>(wrote));
  }
  return {};
}

bool Engine::established() const { return SSL_is_init_finished(ssl_.get()) != 0; }

Bytes Engine::out() const {
  char* data = nullptr;
  const long size = BIO_get_mem_data(out_, &data);
  return Bytes(reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(size)).subspan(sent_);
}

void Engine::Sent(size_t bytes) {
  sent_ += bytes;
  if (!out().empty()) return;
  (void)BIO_reset(out_);
  sent_ = 0;
}

}  // namespace weft::tls
