// SPDX-License-Identifier: Apache-2.0
// Generates files from the schema table: the CustomResourceDefinitions and the field references.
// Used by the generator weft-api-gen and by the tests that compare the committed files with its
// output. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_CRD_H_
#define WEFT_LIB_API_CRD_H_

#include <string>
#include <string_view>

namespace weft::api {

// Return charts/weft/definitions/trace.yaml, clustertrace.yaml and tracesession.yaml as a whole.
std::string TraceCrdYaml();
std::string ClusterTraceCrdYaml();
std::string SessionCrdYaml();

// The tables of docs/formats/trace.md, clustertrace.md and tracesession.md, which stand there
// between the two marks. Fields that ClusterTrace and Trace share are only in the Trace's table.
inline constexpr std::string_view kReferenceBegin =
    "<!-- fields: begin, made by weft-api-gen -->\n";
inline constexpr std::string_view kReferenceEnd = "<!-- fields: end -->\n";
std::string TraceReference();
std::string ClusterTraceReference();
std::string SessionReference();

}  // namespace weft::api

#endif  // WEFT_LIB_API_CRD_H_
