// SPDX-License-Identifier: Apache-2.0
// The transport on cpprestsdk. Facts about it that shape this file: set_timeout is a limit of
// silence, not of the whole request; a client keeps its TLS context, so other certificates need
// another client; reading line by line costs twice the CPU of taking what is there; it throws,
// everywhere.
#include "lib/kube/transport.h"

#include <cpprest/http_client.h>
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

HttpReply Failed(TransportFailure failure, std::string problem) {
  HttpReply reply;
  reply.failure = failure;
  reply.problem = std::move(problem);
  return reply;
}

class CppRestTransport final : public Transport {
 public:
  explicit CppRestTransport(TransportConfig config) : config_(std::move(config)) {}

  HttpReply Send(const HttpRequest& request, const std::stop_token& stop) override {
    return Perform(request, stop, kAnswerIdleLimit, nullptr);
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
    const std::shared_ptr<Client> client = ClientFor(idle_limit);
    http::http_response response = client->request(Build(request), cancel.get_token()).get();
    HttpReply reply;
    reply.status = response.status_code();
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

  http::http_request Build(const HttpRequest& request) {
    http::http_request out(request.method);
    out.set_request_uri(web::uri(request.target));
    out.headers().add("Accept", "application/json");
    if (!request.content_type.empty()) out.set_body(request.body, request.content_type);
    if (const std::string token = ReadToken(config_.token_file); !token.empty())
      out.headers().add("Authorization", "Bearer " + token);
    return out;
  }

  // One client per idle limit, made anew when a certificate changed. Requests under way keep
  // theirs.
  std::shared_ptr<Client> ClientFor(std::chrono::seconds idle_limit) {
    const Versions now = {VersionOf(config_.ca_file), VersionOf(config_.client_cert_file),
                          VersionOf(config_.client_key_file)};
    const std::lock_guard<std::mutex> lock(mutex_);
    if (now != versions_) clients_.clear();
    versions_ = now;
    std::shared_ptr<Client>& client = clients_[idle_limit];
    if (client == nullptr) client = std::make_shared<Client>(config_.server, Settings(idle_limit));
    return client;
  }

  http::client::http_client_config Settings(std::chrono::seconds idle_limit) const {
    http::client::http_client_config settings;
    settings.set_timeout(idle_limit);
    settings.set_ssl_context_callback([config = config_](boost::asio::ssl::context& context) {
      if (!config.ca_file.empty()) context.load_verify_file(config.ca_file);
      if (config.client_cert_file.empty()) return;
      context.use_certificate_chain_file(config.client_cert_file);
      context.use_private_key_file(config.client_key_file, boost::asio::ssl::context::pem);
    });
    return settings;
  }

  const TransportConfig config_;
  std::mutex mutex_;
  Versions versions_;
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
