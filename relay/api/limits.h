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
// At most kMaxQuestions of these threads wait for the API server: kMaxQuestionsOfOne about tokens
// that may be wrong ones, as many about those that claim to be agents', and as many about known
// ones of each namespace, and of each user (judge.h). So a user with one namespace leaves some.
inline constexpr int kApiThreads = 16;
inline constexpr int kMaxQuestions = 14;
inline constexpr int kMaxQuestionsOfOne = 3;
static_assert(4 * kMaxQuestionsOfOne < kMaxQuestions && kMaxQuestions < kApiThreads);

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
// Requests from one address, apart from those that name the uid of a stored Trace: these have this
// share for each namespace. The requests of all users come from the API servers' addresses, an
// agent's from its pod's.
inline constexpr double kPeerRate = 1000;
inline constexpr double kPeerBurst = 2000;
// Questions to the API server about tokens that are not known to be good: from one address about
// one namespace (or about agents), from one address, about one namespace, and in total. Each share
// is smaller than the next: no pod uses up a namespace's, and no namespace that of the API server's
// address, from which all users come. Clients that name the uid of a stored Trace have a share of
// the namespace's size for themselves (Judge): no other tenant knows the uid.
inline constexpr double kPeerNamespaceQuestionRate = 10;
inline constexpr double kPeerNamespaceQuestionBurst = 50;
inline constexpr double kPeerQuestionRate = 50;
inline constexpr double kPeerQuestionBurst = 200;
inline constexpr double kNamespaceQuestionRate = 20;
inline constexpr double kNamespaceQuestionBurst = 100;
inline constexpr double kQuestionRate = 100;
inline constexpr double kQuestionBurst = 400;
// Questions about tokens of agents have a total of their own, which users' tokens do not use up.
inline constexpr double kAgentQuestionRate = 100;
inline constexpr double kAgentQuestionBurst = 400;
// Questions about tokens of one user, or of views and rights of one namespace, that were good a
// moment ago. They have a share of their own: a flood of wrong tokens does not end what reads
// already. Beyond it they use the shares above.
inline constexpr double kRenewalRate = 50;
inline constexpr double kRenewalBurst = 100;
inline constexpr std::chrono::seconds kGoodLately{60};
// Credentials, addresses and namespaces whose rates are remembered.
inline constexpr std::size_t kMaxRated = 4096;
// Parts of files in one answer, and their bytes: any packet fits. Each thread of the API may hold
// one such answer.
inline constexpr std::size_t kMaxParts = 256;
inline constexpr std::size_t kMaxPartsBytes = std::size_t{4} << 20;
// Files that are being sent to one credential at the same time.
inline constexpr int kMaxDownloads = 16;
// Archives that are being compressed for all, and for one namespace; each holds about 1 MiB.
inline constexpr int kMaxCompressions = 24;
inline constexpr int kMaxCompressionsOfNamespace = 8;
// Requests that read many files, which are being answered for all, and for one namespace. A list
// for a range of time of a large Trace keeps a thread of the API busy for seconds. The first parts
// of many large files do so, too, since the files' ends are not known yet. One thread remains for
// all else.
inline constexpr int kMaxLongReads = kApiThreads - 1;
inline constexpr int kMaxLongReadsOfNamespace = kApiThreads / 2;

// Lines of the log about requests of one credential, or, where none is proved, of one address: a
// quiet one has all of its lines, a busy one the first ones of each second, with the count of those
// that were left out. So the requests of one client do not hide those of others.
inline constexpr double kAuditRate = 5;
inline constexpr double kAuditBurst = 100;
// Likewise about connections that end before their request is read, of all addresses together.
inline constexpr double kRefusedPeerLines = 5;
inline constexpr double kRefusedPeerLinesAtOnce = 50;

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
