// SPDX-License-Identifier: Apache-2.0
// Words of CTF 2 metadata that both its writer and its parser use. Thread-safety: constants.
#ifndef WEFT_LIB_CTF_CTF2_NAMES_H_
#define WEFT_LIB_CTF_CTF2_NAMES_H_

#include <array>
#include <string_view>
#include <utility>

#include "lib/ctf/type.h"

namespace weft::ctf {

inline constexpr char kRecordSeparator = '\x1e';

// kBegin and kClock share a name; the scope tells which one is meant.
inline constexpr std::array<std::pair<Role, std::string_view>, 12> kRoleNames = {{
    {Role::kMagic, "packet-magic-number"},
    {Role::kUuid, "metadata-stream-uuid"},
    {Role::kStreamClass, "data-stream-class-id"},
    {Role::kStreamInstance, "data-stream-id"},
    {Role::kBegin, "default-clock-timestamp"},
    {Role::kClock, "default-clock-timestamp"},
    {Role::kEnd, "packet-end-default-clock-timestamp"},
    {Role::kContentSize, "packet-content-length"},
    {Role::kPacketSize, "packet-total-length"},
    {Role::kSequenceNumber, "packet-sequence-number"},
    {Role::kDiscarded, "discarded-event-record-counter-snapshot"},
    {Role::kEventClass, "event-record-class-id"},
}};

// LTTng's log levels 0 to 14, as babeltrace2 spells them.
inline constexpr std::array<std::string_view, 15> kLogLevelNames = {
    "emergency",    "alert",      "critical",       "error",         "warning",
    "notice",       "info",       "debug:system",   "debug:program", "debug:process",
    "debug:module", "debug:unit", "debug:function", "debug:line",    "debug"};

// The namespace of event attributes that babeltrace2 and LTTng know.
inline constexpr std::string_view kAttributeNamespace = "babeltrace.org,2020";

// The scopes that a reference may name: CTF 2's name of a scope, and TSDL's, which Type::reference
// uses.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kOrigins = {{
    {"packet-header", "trace.packet.header"},
    {"packet-context", "stream.packet.context"},
    {"event-record-header", "stream.event.header"},
    {"event-record-common-context", "stream.event.context"},
    {"event-record-specific-context", "event.context"},
    {"event-record-payload", "event.fields"},
}};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_CTF2_NAMES_H_
