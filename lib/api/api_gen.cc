// SPDX-License-Identifier: Apache-2.0
// weft-api-gen TOP: writes what is made from the schema table into the repository at TOP:
// charts/weft/definitions/*.yaml, and the tables in docs/formats/trace.md, clustertrace.md and
// tracesession.md.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "lib/api/crd.h"

namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::cerr << "weft-api-gen: cannot write " << path << "\n";
  return !out.fail();
}

bool WriteReference(const std::string& path, const std::string& tables) {
  std::string text = ReadFile(path);
  const std::size_t begin = text.find(weft::api::kReferenceBegin);
  const std::size_t end = text.find(weft::api::kReferenceEnd);
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    std::cerr << "weft-api-gen: " << path << " has not the two marks for the fields\n";
    return false;
  }
  const std::size_t from = begin + weft::api::kReferenceBegin.size();
  text.replace(from, end - from, "\n" + tables);
  return WriteFile(path, text);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: weft-api-gen TOP\n";
    return 2;
  }
  const std::string top = argv[1];
  const std::string crds = top + "/charts/weft/definitions/";
  const std::string docs = top + "/docs/formats/";
  const bool good = WriteFile(crds + "trace.yaml", weft::api::TraceCrdYaml()) &&
                    WriteFile(crds + "clustertrace.yaml", weft::api::ClusterTraceCrdYaml()) &&
                    WriteFile(crds + "tracesession.yaml", weft::api::SessionCrdYaml()) &&
                    WriteReference(docs + "trace.md", weft::api::TraceReference()) &&
                    WriteReference(docs + "clustertrace.md", weft::api::ClusterTraceReference()) &&
                    WriteReference(docs + "tracesession.md", weft::api::SessionReference());
  return good ? 0 : 1;
}
