// SPDX-License-Identifier: Apache-2.0
// TLS 1.2 and 1.3 without sockets: an Engine turns the bytes of a network into the bytes of a
// program, and back. Node and relay use it for their connections (docs/adr/0050).
//
// Life of an engine: the bytes that arrive go into Receive; the bytes of out() go to the peer, also
// during the handshake and after an error, which the peer then learns of. When established() is
// true, Read returns what the peer wrote, and Write encrypts.
//
// Memory: an engine holds what it was given and has not returned yet, and what out() has. Its owner
// bounds both by reading after each Receive, and by writing only when out() is empty.
//
// Thread-safety: contexts may be used by several threads. One thread owns an engine.
#ifndef WEFT_LIB_TLS_ENGINE_H_
#define WEFT_LIB_TLS_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

struct bio_st;
struct ssl_ctx_st;
struct ssl_st;

namespace weft::tls {

// Bytes of a bundle of CA certificates: two certificates need 2 KiB.
inline constexpr size_t kMaxBundleBytes = size_t{64} * 1024;

// Does everything for which OpenSSL and the C library open files or look at their environment, so
// that a sandbox may be entered afterwards. The other functions then need no system calls but
// getpid, getrandom, and those of malloc and of clocks. Call it before the other functions.
void Prepare();

class Engine;

// Trusts servers whose certificate one of these authorities signed.
class ClientContext {
 public:
  // `authorities_pem`: one certificate or several. kInvalid: there is none in it.
  static Result<ClientContext> Make(const std::string& authorities_pem);

 private:
  friend class Engine;
  explicit ClientContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

class ServerContext {
 public:
  // kInvalid: key and certificate do not match, or are none.
  static Result<ServerContext> Make(const std::string& chain_pem, const std::string& key_pem);

 private:
  friend class Engine;
  explicit ServerContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

class Engine {
 public:
  // The server's certificate must be for this DNS name. The handshake's first bytes are in out().
  static Result<Engine> Connect(const ClientContext& context, const std::string& server_name);
  static Result<Engine> Accept(const ServerContext& context);

  Engine(Engine&&) noexcept = default;
  Engine& operator=(Engine&&) noexcept = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() = default;

  // Takes bytes of the network. kPermission: the server's certificate is not accepted; kCorrupt:
  // the peer breaks the protocol. After an error the engine only has out().
  Status Receive(Bytes bytes);
  // Returns how many bytes it wrote into `room`; 0: there are no more now. kClosed: the peer ended
  // the connection.
  Result<size_t> Read(std::span<uint8_t> room);
  // Encrypts all of it. Only when established.
  Status Write(Bytes bytes);

  [[nodiscard]] bool established() const;
  // The bytes to be sent; valid until the next call of another function.
  [[nodiscard]] Bytes out() const;
  // Takes the first `bytes` of out() off.
  void Sent(size_t bytes);

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  explicit Engine(ssl_st* ssl) : ssl_(ssl) {}
  static Result<Engine> Make(ssl_ctx_st* context);
  Status Handshake();
  [[nodiscard]] std::unexpected<Error> Failed(int returned, const char* what) const;

  std::unique_ptr<ssl_st, Free> ssl_;
  bio_st* in_ = nullptr;  // ssl_ owns both
  bio_st* out_ = nullptr;
  size_t sent_ = 0;  // bytes at the front of out_ that were sent
};

}  // namespace weft::tls

#endif  // WEFT_LIB_TLS_ENGINE_H_
