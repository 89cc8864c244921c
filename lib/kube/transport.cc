// SPDX-License-Identifier: Apache-2.0
// The transport on cpprestsdk. Facts about it that shape this file: set_timeout is a limit of
// silence, not of the whole request; a client keeps its TLS context, so other certificates need
// another client; reading line by line costs twice the CPU of taking what is there; it throws,
// everywhere.
#include "lib/kube/transport.h"

#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pplx/threadpool.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <tuple>

namespace weft::kube {
namespace {

namespace http = web::http;
using Client = http::client::http_client;

constexpr std::size_t kChunk = 64 * 1024;

// Which version of a file it is: what a rename or a write changes.
using FileVersion = std::tuple<dev_t, ino_t, std::int64_t, std::int64_t, off_t>;

FileVersion VersionOf(const std::string& path) {
  struct stat s = {};
  if (path.empty() || stat(path.c_str(), &s) != 0) return {};
  return {s.st_dev, s.st_ino, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_size};
}

// A token's file, without what an editor left behind it. "": there is none.
std::string ReadToken(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// The certificates that a connection shows and trusts.
void UseCertificates(boost::asio::ssl::context& context, const TransportConfig& config,
                     const Credentials& credentials) {
  namespace asio = boost::asio;
  if (!config.ca_file.empty()) context.load_verify_file(config.ca_file);
  if (!config.ca.empty()) context.add_certificate_authority(asio::buffer(config.ca));
  if (!credentials.certificate.empty()) {
    context.use_certificate_chain(asio::buffer(credentials.certificate));
    context.use_private_key(asio::buffer(credentials.key), asio::ssl::context::pem);
  } else if (!config.client_cert_file.empty()) {
    context.use_certificate_chain_file(config.client_cert_file);
    context.use_private_key_file(config.client_key_file, asio::ssl::context::pem);
  }
}

// Verifies a server's certificate by the name at `name` (a std::string) instead of the host that
// cpprestsdk connects to.
int VerifyByName(X509_STORE_CTX* store, void* name) {
  const auto& wanted = *static_cast<const std::string*>(name);
  X509_VERIFY_PARAM* rules = X509_STORE_CTX_get0_param(store);
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, wanted.c_str()) != 1 &&
      X509_VERIFY_PARAM_set1_host(rules, wanted.data(), wanted.size()) != 1)
    return 0;
  // cpprestsdk's own check, which compares the host, is not called.
  X509_STORE_CTX_set_verify_cb(store, [](int good, X509_STORE_CTX*) { return good; });
  return X509_verify_cert(store);
}

// The name that a handshake of this context asks the server for.
int NameSlot() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return slot;
}

// `name` outlives the context.
void ExpectName(SSL_CTX* context, const std::string* name) {
  auto* held = const_cast<std::string*>(name);  // OpenSSL's pointers are not const
  SSL_CTX_set_cert_verify_callback(context, VerifyByName, held);
  SSL_CTX_set_ex_data(context, NameSlot(), held);
  SSL_CTX_set_info_callback(context, [](const SSL* ssl, int where, int) {
    if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
    const void* wanted = SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), NameSlot());
    SSL_set_tlsext_host_name(const_cast<SSL*>(ssl),
                             static_cast<const std::string*>(wanted)->c_str());
  });
}

HttpReply Failed(TransportFailure failure, std::string problem) {
  HttpReply reply;
  reply.failure = failure;
  reply.problem = std::move(problem);
  return reply;
}

std::optional<std::chrono::system_clock::time_point> DateOf(const http::http_response& response) {
  const auto header = response.headers().find("Date");
  if (header == response.headers().end()) return std::nullopt;
  const auto date = utility::datetime::from_string(header->second, utility::datetime::RFC_1123);
  if (!date.is_initialized()) return std::nullopt;
  // In 100 ns since 1601.
  constexpr utility::datetime::interval_type kYear1970 = 116'444'736'000'000'000;
  const auto since_1970 = static_cast<int64_t>(date.to_interval() - kYear1970);
  return std::chrono::system_clock::time_point(std::chrono::seconds(since_1970 / 10'000'000));
}

class CppRestTransport final : public Transport {
 public:
  explicit CppRestTransport(TransportConfig config) : config_(std::move(config)) {}

  HttpReply Send(const HttpRequest& request, const std::stop_token& stop) override {
    return Perform(request, stop, request.answer_limit, nullptr);
  }

  HttpReply Stream(const HttpRequest& request, const std::stop_token& stop,
                   const BytesHandler& on_bytes) override {
    return Perform(request, stop, kStreamIdleLimit, &on_bytes);
  }

 private:
  using Versions = std::array<FileVersion, 3>;

  // Everything of cpprestsdk that can throw is below this call.
  HttpReply Perform(const HttpRequest& request, const std::stop_token& stop,
                    std::chrono::seconds idle_limit, const BytesHandler* on_bytes) {
    pplx::cancellation_token_source cancel;
    const std::stop_callback on_stop(stop, [&cancel] { cancel.cancel(); });
    try {
      return Exchange(request, stop, cancel, idle_limit, on_bytes);
    } catch (const http::http_exception& error) {
      if (stop.stop_requested()) return Failed(TransportFailure::kCancelled, "cancelled");
      const bool late = error.error_code() == std::errc::timed_out;
      return Failed(late ? TransportFailure::kTimeout : TransportFailure::kConnection,
                    error.what());
    } catch (const pplx::task_canceled&) {
      return Failed(TransportFailure::kCancelled, "cancelled");
    } catch (const std::exception& error) {
      if (stop.stop_requested()) return Failed(TransportFailure::kCancelled, "cancelled");
      return Failed(TransportFailure::kConfig, error.what());
    }
  }

  HttpReply Exchange(const HttpRequest& request, const std::stop_token& stop,
                     pplx::cancellation_token_source& cancel, std::chrono::seconds idle_limit,
                     const BytesHandler* on_bytes) {
    const Credentials credentials = config_.credentials ? config_.credentials() : Credentials{};
    if (!credentials.problem.empty()) return Failed(TransportFailure::kConfig, credentials.problem);
    const std::shared_ptr<Client> client = ClientFor(idle_limit, credentials);
    http::http_response response =
        client->request(Build(request, credentials), cancel.get_token()).get();
    HttpReply reply;
    reply.status = response.status_code();
    reply.date = DateOf(response);
    const bool streams = on_bytes != nullptr && reply.status == http::status_codes::OK;
    auto buffer = response.body().streambuf();
    std::string chunk;
    // getc waits for a byte or the end without taking it; then everything there is taken at once.
    while (buffer.getc().get() != std::char_traits<char>::eof()) {
      chunk.resize(std::clamp<std::size_t>(buffer.in_avail(), 1, kChunk));
      chunk.resize(buffer.getn(reinterpret_cast<uint8_t*>(chunk.data()), chunk.size()).get());
      if (stop.stop_requested()) return Failed(TransportFailure::kCancelled, "cancelled");
      if (streams && !(*on_bytes)(chunk)) {
        cancel.cancel();
        return Failed(TransportFailure::kCancelled, "ended by its reader");
      }
      if (!streams) reply.body += chunk;
      if (reply.body.size() > kMaxAnswerBytes) {
        cancel.cancel();
        return Failed(TransportFailure::kTooLarge, "the answer is too large");
      }
    }
    return reply;
  }

  http::http_request Build(const HttpRequest& request, const Credentials& credentials) {
    http::http_request out(request.method);
    out.set_request_uri(web::uri(request.target));
    for (const auto& [name, value] : config_.headers) out.headers().add(name, value);
    for (const auto& [name, value] : request.headers) out.headers().add(name, value);
    if (!out.headers().has("Accept")) out.headers().add("Accept", "application/json");
    if (!request.content_type.empty()) out.set_body(request.body, request.content_type);
    std::string token = credentials.token;
    if (token.empty()) token = ReadToken(config_.token_file);
    if (!token.empty()) out.headers().add("Authorization", "Bearer " + token);
    return out;
  }

  // One client per idle limit, made anew when a certificate changed. Requests under way keep
  // theirs.
  std::shared_ptr<Client> ClientFor(std::chrono::seconds idle_limit,
                                    const Credentials& credentials) {
    const Versions now = {VersionOf(config_.ca_file), VersionOf(config_.client_cert_file),
                          VersionOf(config_.client_key_file)};
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now != versions_ || credentials.certificate != certificate_) clients_.clear();
    versions_ = now;
    certificate_ = credentials.certificate;
    std::shared_ptr<Client>& client = clients_[idle_limit];
    if (client == nullptr)
      client = std::make_shared<Client>(config_.server, Settings(idle_limit, credentials));
    return client;
  }

  http::client::http_client_config Settings(std::chrono::seconds idle_limit,
                                            const Credentials& credentials) const {
    http::client::http_client_config settings;
    settings.set_timeout(idle_limit);
    settings.set_validate_certificates(!config_.trusts_any_server);
    if (!config_.proxy.empty()) settings.set_proxy(web::web_proxy(web::uri(config_.proxy)));
    // A request under way keeps its client, and with it this callback and its copies.
    const auto held = std::make_shared<const TransportConfig>(config_);
    settings.set_ssl_context_callback([held, credentials](boost::asio::ssl::context& context) {
      UseCertificates(context, *held, credentials);
      if (!held->server_name.empty()) ExpectName(context.native_handle(), &held->server_name);
    });
    return settings;
  }

  const TransportConfig config_;
  std::mutex mutex_;
  Versions versions_;
  std::string certificate_;  // of the credentials that the clients were made with
  std::map<std::chrono::seconds, std::shared_ptr<Client>> clients_;
};

}  // namespace

std::unique_ptr<Transport> MakeTransport(const TransportConfig& config) {
  // Must come before anything else of cpprestsdk's, once in a process.
  static std::once_flag once;
  std::call_once(once, [] { crossplat::threadpool::initialize_with_threads(kTransportThreads); });
  return std::make_unique<CppRestTransport>(config);
}

}  // namespace weft::kube
