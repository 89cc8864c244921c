// SPDX-License-Identifier: Apache-2.0
// See status_writer.h.
#include "node-agent/agent/cluster/status_writer.h"

#include <cstdio>
#include <random>

#include "lib/kube/backoff.h"

namespace weft::agent {

void StatusWriter::Put(const api::Metadata& session, const api::SessionStatus& status) {
  Write write{.address = {.resource = kube::kTraceSessions,
                          .name_space = session.name_space,
                          .name = session.name,
                          .subresource = "status"},
              .body = kube::Json::parse(api::StatusToJson(status), nullptr, false)};
  write.body["apiVersion"] = api::kApiVersion;
  write.body["kind"] = api::kSessionKind;
  write.body["metadata"] = {
      {"name", session.name}, {"namespace", session.name_space}, {"uid", session.uid}};
  const std::lock_guard lock(mutex_);
  waiting_.insert_or_assign(session.uid, std::move(write));
  wake_.notify_one();
}

bool StatusWriter::TryOnce(const Write& write) {
  const auto written = client_.Apply(write.address, write.body);
  if (written) return true;
  const ErrorCode code = written.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;  // it is gone
  std::fprintf(stderr, "weft-node-agent: status of %s/%s: %s\n", write.address.name_space.c_str(),
               write.address.name.c_str(), written.error().message.c_str());
  return code == ErrorCode::kInvalid;  // never understood, however often it is said
}

std::map<std::string, StatusWriter::Write>::node_type StatusWriter::TakeNextAfter(
    const std::string& uid) {
  const auto next = waiting_.upper_bound(uid);
  return waiting_.extract(next != waiting_.end() ? next : waiting_.begin());
}

void StatusWriter::Run(const std::stop_token& stop) {
  kube::Backoff backoff;
  std::minstd_rand random(std::random_device{}());
  std::string last;  // the uid of the session that had its turn
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (!wake_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
    auto node = TakeNextAfter(last);
    last = node.key();
    lock.unlock();
    const bool done = TryOnce(node.mapped());
    lock.lock();
    if (done) {
      backoff.Reset();
      continue;
    }
    waiting_.insert(std::move(node));  // unless there is a newer one
    wake_.wait_for(lock, stop, backoff.Next(random()), [] { return false; });
  }
}

}  // namespace weft::agent
