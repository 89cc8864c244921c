// SPDX-License-Identifier: Apache-2.0
// Checks single strings of a Trace: Kubernetes names and labels, and weft's patterns. Each function
// returns "" for a valid string, else a phrase that follows the field's path ("must ..."), but for
// CheckTraceCount. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_NAMES_H_
#define WEFT_LIB_API_NAMES_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace weft::api {

// Returns a whole sentence if a namespace that has `others` Traces may have no further one.
std::string CheckTraceCount(std::size_t others, std::size_t most);

// Checks an RFC 1123 label: namespaces, containers.
std::string CheckDnsLabel(std::string_view text);
// Checks an RFC 1123 subdomain of at most 253 bytes: pods, most objects.
std::string CheckDnsSubdomain(std::string_view text);
// Checks a subdomain of at most limits::kTraceName bytes.
std::string CheckTraceName(std::string_view text);
// "[subdomain/]name": keys of labels, annotations, selectors.
std::string CheckLabelKey(std::string_view text);
std::string CheckLabelValue(std::string_view text);

// Checks a glob that can match a tracepoint's "provider:event": letters, digits, _ . $ - and *,
// with one colon, or with a * that may stand for it.
std::string CheckEventPattern(std::string_view text);
// Checks a glob over kernel event or system call names: the same characters without the colon.
std::string CheckKernelPattern(std::string_view text);
// Checks a glob over functions or file names: anything that can be printed.
std::string CheckPrintablePattern(std::string_view text);
// Checks the absolute path of a file, without ".." in it.
std::string CheckFilePath(std::string_view text);
// Checks "provider:name" of a USDT probe.
std::string CheckUsdtName(std::string_view text);
// Checks a C identifier.
std::string CheckIdentifier(std::string_view text);
// Checks a filter's outer form: not blank, UTF-8, no control characters but blanks. lib/event
// checks its meaning.
std::string CheckFilterText(std::string_view text);
// Checks a time of RFC 3339 with seconds, "2026-01-02T03:04:05Z"; a fraction and an offset are
// allowed.
std::string CheckTime(std::string_view text);
// Checks a UUID in lower case, 8-4-4-4-12.
std::string CheckUuid(std::string_view text);
std::string CheckAnyText(std::string_view text);

}  // namespace weft::api

#endif  // WEFT_LIB_API_NAMES_H_
