// SPDX-License-Identifier: Apache-2.0
// The schema of a TraceSession; trace_schema.h has that of a Trace. Internal to lib/api.
#ifndef WEFT_LIB_API_SESSION_SCHEMA_H_
#define WEFT_LIB_API_SESSION_SCHEMA_H_

#include "lib/api/schema.h"
#include "lib/api/session.h"

namespace weft::api {

// The whole object; apiVersion and kind are accepted here, and checked by session.cc.
const Type<TraceSession>& SessionSchema();

TypePtr<SessionSpec> SessionSpecSchema();
TypePtr<SessionStatus> SessionStatusSchema();

}  // namespace weft::api

#endif  // WEFT_LIB_API_SESSION_SCHEMA_H_
