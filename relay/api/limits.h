// SPDX-License-Identifier: Apache-2.0
// Limits and times of the relay's HTTPS API, all in one place. lib/http/server.h has those of its
// connections.
#ifndef WEFT_RELAY_API_LIMITS_H_
#define WEFT_RELAY_API_LIMITS_H_

#include <chrono>
#include <cstddef>

namespace weft::relay_api {

// Connections, blocks of files that are being sent, and lists: far below the relay's memory limit
// in the chart (1 GiB), which ingest needs.
inline constexpr std::size_t kApiBytes = std::size_t{64} << 20;
// At most kMaxQuestions of these threads wait for the API server.
inline constexpr int kApiThreads = 8;
inline constexpr int kMaxQuestions = 5;

// A token of Kubernetes has about 1 KiB; a request's head is at most 16 KiB.
inline constexpr std::size_t kMaxTokenBytes = 8 * 1024;
inline constexpr std::size_t kMaxPathBytes = 1024;
// The secret of a TraceView: 32 characters of base64url are 192 bits.
inline constexpr std::size_t kMinSecretBytes = 32;
inline constexpr std::size_t kMaxSecretBytes = 128;
inline constexpr std::chrono::hours kMaxViewLifetime{1};

// How long an answer of the API server about a token is believed: a TraceView that was deleted, or
// a right that was taken away, ends within this time.
inline constexpr std::chrono::seconds kBelieveTime{3};
// Answers that are remembered; some 500 bytes each.
inline constexpr std::size_t kMaxBelieved = 4096;

// Requests of one credential: a download asks for each file of a Trace, one after the other.
inline constexpr double kCredentialRate = 100;
inline constexpr double kCredentialBurst = 400;
// Requests of all.
inline constexpr double kTotalRate = 1000;
inline constexpr double kTotalBurst = 2000;
// Questions to the API server about the tokens of one namespace, and of all. Tokens that are
// remembered need none, so a flood of wrong tokens does not end a download that is under way.
inline constexpr double kNamespaceQuestionRate = 5;
inline constexpr double kNamespaceQuestionBurst = 50;
inline constexpr double kQuestionRate = 50;
inline constexpr double kQuestionBurst = 200;
// Questions about tokens of agents, which users' tokens do not use up. A token that is remembered
// needs none, so a node with many namespaces asks once.
inline constexpr double kAgentQuestionRate = 50;
inline constexpr double kAgentQuestionBurst = 400;
// Credentials and namespaces whose rates are remembered.
inline constexpr std::size_t kMaxRated = 4096;
// Parts of files in one answer, and their bytes: any packet fits. Each thread of the API may hold
// one such answer.
inline constexpr std::size_t kMaxParts = 256;
inline constexpr std::size_t kMaxPartsBytes = std::size_t{4} << 20;
// Files that are being sent to one credential at the same time.
inline constexpr int kMaxDownloads = 16;
// Archives that are being compressed for all; each holds about 1 MiB.
inline constexpr int kMaxCompressions = 24;

// Lines of the log about requests: all of a quiet relay, the first ones of each second of a busy
// one, with the count of those that were left out.
inline constexpr double kAuditRate = 50;
inline constexpr double kAuditBurst = 200;

// What one answer lists. The entry of a stream's chunk has about 150 bytes.
inline constexpr std::size_t kMaxListedFiles = 50'000;
inline constexpr std::size_t kMaxListedTraces = 10'000;
// Seconds of which rates are given where a request does not name a number.
inline constexpr std::size_t kRateSeconds = 10;
// Folders below a Trace's: POD/CONTAINER/UUID/ust/uid/1000/64-bit.
inline constexpr int kMaxDepth = 12;
// Chunks of which the API remembers where their last whole packet ended; some 300 bytes each.
inline constexpr std::size_t kMaxMeasured = 65'536;

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_LIMITS_H_
