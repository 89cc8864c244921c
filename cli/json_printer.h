// SPDX-License-Identifier: Apache-2.0
// Prints fields of events as JSON values; docs/formats/ctf.md names the members. Thread-safety: one
// thread per printer.
#ifndef WEFT_CLI_JSON_PRINTER_H_
#define WEFT_CLI_JSON_PRINTER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ctf/decoder.h"

namespace weft::cli {

// A string. What is no UTF-8 in it, as names may have it, becomes "\xNN".
void AppendJsonString(std::string& out, std::string_view text);

class JsonPrinter final : public ctf::Visitor {
 public:
  // Appends to `out`.
  explicit JsonPrinter(std::string& out) : out_(out) {}

  void Integer(const ctf::Type& type, uint64_t value) override;
  void Float(const ctf::Type& type, double value) override;
  void Bool(const ctf::Type& type, bool value) override;
  void BitMap(const ctf::Type& type, uint64_t value) override;
  void Text(const ctf::Type& type, std::string_view text) override;
  void Blob(const ctf::Type& type, std::span<const uint8_t> bytes) override;
  void NoOption(const ctf::Type& type) override;
  void BeginStruct(const ctf::Type& type) override;
  void BeginMember(const ctf::Type& type, const ctf::Member& member) override;
  void EndStruct(const ctf::Type& type) override;
  void BeginArray(const ctf::Type& type, uint64_t length) override;
  void BeginElement(const ctf::Type& type, uint64_t index) override;
  void EndArray(const ctf::Type& type) override;

 private:
  std::string& out_;
  std::vector<int> members_;  // printed so far, per open structure
};

}  // namespace weft::cli

#endif  // WEFT_CLI_JSON_PRINTER_H_
