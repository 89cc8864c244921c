// SPDX-License-Identifier: Apache-2.0
// The schema of a Trace: the one place for each field's name, type, limits and meaning. Internal to
// lib/api.
#ifndef WEFT_LIB_API_TRACE_SCHEMA_H_
#define WEFT_LIB_API_TRACE_SCHEMA_H_

#include "lib/api/schema.h"
#include "lib/api/trace.h"

namespace weft::api {

// The whole object; apiVersion and kind are accepted here, and checked by parse.cc.
const Type<Trace>& TraceSchema();
const Type<Trace>& ClusterTraceSchema();

// Return the schemas of its parts.
const Type<Metadata>& MetadataSchema();
TypePtr<LabelSelector> LabelSelectorSchema();
TypePtr<TraceSpec> SpecSchema();
TypePtr<TraceSpec> ClusterSpecSchema();
TypePtr<TraceStatus> StatusSchema();

}  // namespace weft::api

#endif  // WEFT_LIB_API_TRACE_SCHEMA_H_
