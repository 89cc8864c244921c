// SPDX-License-Identifier: Apache-2.0
// Catalogue::Parse: YAML to entries. Everything that is not known is refused.
#include <yaml-cpp/yaml.h>

#include <functional>
#include <sstream>

#include "lib/event/text.h"
#include "node-agent/kernel/catalogue.h"

namespace weft::kernel {
namespace {

// Numbers of [x86_64, i386, aarch64]; programs of 32 bits on aarch64 have none here.
#if defined(__x86_64__)
constexpr int kNativeColumn = 0;
constexpr int kCompatColumn = 1;
constexpr int kLabelColumn = 0;
#elif defined(__aarch64__)
constexpr int kNativeColumn = 2;
constexpr int kCompatColumn = -1;
constexpr int kLabelColumn = 1;
#endif

// Is thrown inside this file only. yaml-cpp throws as well, and Parse makes a Result of both.
struct Wrong {
  std::string what;
};

[[noreturn]] void Refuse(const YAML::Node& at, const std::string& what) {
  throw Wrong{"line " + std::to_string(at.Mark().line + 1) + ": " + what};
}

std::vector<std::string> Words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> Texts(const YAML::Node& node) {
  std::vector<std::string> texts;
  if (node.IsScalar()) {
    texts.push_back(node.as<std::string>());
  } else {
    for (const YAML::Node& item : node) texts.push_back(item.as<std::string>());
  }
  return texts;
}

Path PathOf(const YAML::Node& node, const std::string& text) {
  Result<Path> path = Path::Parse(text);
  if (!path) Refuse(node, path.error().message);
  return std::move(*path);
}

std::vector<Path> PathsOf(const YAML::Node& node) {
  std::vector<Path> paths;
  for (const std::string& text : Texts(node)) paths.push_back(PathOf(node, text));
  return paths;
}

FieldSpec::As AsOf(const YAML::Node& node) {
  const auto text = node.as<std::string>();
  if (text == "bytes") return FieldSpec::As::kBytes;
  if (text == "text") return FieldSpec::As::kText;
  if (text == "address") return FieldSpec::As::kAddress;
  if (text == "unix_path") return FieldSpec::As::kUnixPath;
  if (text == "gather") return FieldSpec::As::kGather;
  Refuse(node, "'" + text + "' is not bytes, text, address, unix_path or gather");
}

template <typename Number>
Number NumberOf(const YAML::Node& node, int64_t least, int64_t most) {
  const auto number = node.as<int64_t>();
  if (number < least || number > most) Refuse(node, "the number is out of bounds");
  return static_cast<Number>(number);
}

// Reads one member of a field's map; returns false if there is no such member.
bool ReadFieldMember(const std::string& key, const YAML::Node& value, FieldSpec* field) {
  if (key == "path") {
    field->paths = PathsOf(value);
  } else if (key == "of") {
    field->of = value.as<std::string>();
  } else if (key == "as") {
    field->as = AsOf(value);
  } else if (key == "user") {
    field->user = value.as<bool>();
  } else if (key == "network") {
    field->network = value.as<bool>();
  } else if (key == "base") {
    field->base = NumberOf<uint8_t>(value, 2, 16);
  } else if (key == "add") {
    field->add = NumberOf<int32_t>(value, -(1 << 20), 1 << 20);
  } else if (key == "bits") {
    field->first_bit = NumberOf<uint8_t>(value[0], 0, 63);
    field->bits = NumberOf<uint8_t>(value[1], 1, 64 - field->first_bit);
  } else if (key == "limit") {
    field->limit = NumberOf<uint32_t>(value, 1, WEFT_FETCH_MAX_STRING);
  } else if (key == "labels") {
    field->labels = value.as<std::string>();
  } else if (key == "count") {
    field->count = PathOf(value, value.as<std::string>());
  } else if (key == "length") {
    field->length = PathOf(value, value.as<std::string>());
  } else if (key == "total") {
    field->total = value.as<std::string>();
  } else {
    return false;
  }
  return true;
}

FieldSpec ReadField(const std::string& name, const YAML::Node& node) {
  if (!IsIdentifier(name)) Refuse(node, "'" + name + "' is no name of a field");
  FieldSpec field{.name = name};
  if (!node.IsMap()) {
    field.paths = PathsOf(node);
  } else {
    for (const auto& member : node) {
      const auto key = member.first.as<std::string>();
      if (!ReadFieldMember(key, member.second, &field)) Refuse(node, "what is '" + key + "'?");
    }
  }
  if (field.paths.empty()) Refuse(node, "field '" + name + "' has no path");
  return field;
}

std::vector<FieldSpec> ReadFields(const YAML::Node& node) {
  std::vector<FieldSpec> fields;
  for (const auto& item : node) {
    const auto name = item.first.as<std::string>();
    for (const FieldSpec& other : fields)
      if (other.name == name) Refuse(item.second, "two fields '" + name + "'");
    fields.push_back(ReadField(name, item.second));
  }
  return fields;
}

// VALUE, or [of x86_64, of aarch64]; ~: this machine has none of that name.
std::vector<EnumMapping> ReadLabels(const YAML::Node& node) {
  std::vector<EnumMapping> labels;
  for (const auto& item : node) {
    const YAML::Node own = item.second.IsSequence() ? item.second[kLabelColumn] : item.second;
    if (own.IsNull()) continue;
    const auto value = own.as<uint64_t>();
    labels.push_back({item.first.as<std::string>(), value, value});
  }
  return labels;
}

SyscallField ReadSyscallField(const std::string& name, const YAML::Node& node) {
  if (!IsIdentifier(name)) Refuse(node, "'" + name + "' is no name of a field");
  SyscallField field;
  field.spec = {.name = name, .paths = {PathOf(node, name)}, .user = true};
  for (const auto& member : node) {
    const auto key = member.first.as<std::string>();
    if (key == "direction") {
      const auto text = member.second.as<std::string>();
      if (text == "out") {
        field.direction = SyscallField::Direction::kOut;
      } else if (text == "inout") {
        field.direction = SyscallField::Direction::kInOut;
      } else if (text != "in") {
        Refuse(node, "'" + text + "' is not in, out or inout");
      }
    } else if (key == "buffer") {
      field.buffer = member.second.as<bool>();
    } else if (!ReadFieldMember(key, member.second, &field.spec)) {
      Refuse(node, "what is '" + key + "'?");
    }
  }
  return field;
}

std::optional<uint32_t> NumberAt(const YAML::Node& columns, int column) {
  if (column < 0 || columns[column].IsNull()) return std::nullopt;
  return columns[column].as<uint32_t>();
}

}  // namespace

class CatalogueReader {
 public:
  explicit CatalogueReader(Catalogue* out) : out_(out) {}

  void Read(std::string_view document) {
    const YAML::Node root = YAML::Load(std::string(document));
    subjects_.clear();
    sets_.clear();
    for (const auto& part : root) {
      const auto key = part.first.as<std::string>();
      const YAML::Node& value = part.second;
      if (key == "subjects") {
        subjects_ = Texts(value);
      } else if (key == "labels") {
        for (const auto& item : value)
          out_->labels_[item.first.as<std::string>()] = ReadLabels(item.second);
      } else if (key == "sets") {
        for (const auto& item : value)
          sets_[item.first.as<std::string>()] = ReadFields(item.second);
      } else if (key == "structures") {
        for (const auto& item : value)
          out_->structures_[item.first.as<std::string>()] = ReadFields(item.second);
      } else if (key == "tracepoints") {
        for (const auto& item : value) ReadTracepoint(item.first, item.second);
      } else if (key == "states") {
        for (const auto& item : value) ReadState(item.first.as<std::string>(), item.second);
      } else if (key == "syscalls") {
        for (const auto& item : value) ReadSyscall(item.first, item.second);
      } else if (key == "numbers") {
        for (const auto& item : value)
          out_->numbers_.push_back({item.first.as<std::string>(),
                                    NumberAt(item.second, kNativeColumn),
                                    NumberAt(item.second, kCompatColumn)});
      } else if (key == "functions") {
        ReadNames(value, &out_->functions_);
      } else if (key == "compat_functions") {
        ReadNames(value, &out_->compat_functions_);
      } else if (key == "compat_structures") {
        ReadNames(value, &out_->compat_structures_);
      } else if (key == "compat_parameters") {
        for (const auto& item : value)
          out_->compat_parameters_[item.first.as<std::string>()] = Texts(item.second);
      } else {
        Refuse(value, "what is '" + key + "'?");
      }
    }
  }

 private:
  static void ReadNames(const YAML::Node& node,
                        std::map<std::string, std::string, std::less<>>* out) {
    for (const auto& item : node)
      (*out)[item.first.as<std::string>()] = item.second.as<std::string>();
  }

  void ReadTracepoint(const YAML::Node& names, const YAML::Node& node) {
    TracepointEntry entry{.names = Words(names.as<std::string>()), .subjects = subjects_};
    bool has_fields = false;
    for (const auto& part : node) {
      const auto key = part.first.as<std::string>();
      const YAML::Node& value = part.second;
      if (key == "event") {
        entry.event = value.as<std::string>();
      } else if (key == "subjects") {
        entry.subjects = Texts(value);
      } else if (key == "fields") {
        entry.fields = ReadFields(value);
        has_fields = true;
      } else if (key == "use") {
        Use(value, &entry);
      } else if (key == "arguments") {
        entry.arguments = value.as<bool>();
      } else if (key == "exception") {
        entry.exception = value.as<std::string>();
      } else {
        Refuse(value, "what is '" + key + "'?");
      }
    }
    if ((has_fields ? 1 : 0) + (entry.arguments ? 1 : 0) + (entry.exception.empty() ? 0 : 1) != 1)
      Refuse(names, "wants either fields, arguments or an exception");
    for (const std::string& name : entry.names) {
      if (name.find('*') != std::string::npos) continue;
      if (!out_->exact_.emplace(name, out_->tracepoints_.size()).second)
        Refuse(names, "a second entry for '" + name + "'");
    }
    out_->tracepoints_.push_back(std::move(entry));
  }

  void ReadState(const std::string& event, const YAML::Node& node) {
    StateEntry entry{.event = event};
    for (const auto& part : node) {
      const auto key = part.first.as<std::string>();
      if (key == "of") {
        entry.of = part.second.as<std::string>();
      } else if (key == "fields") {
        entry.fields = ReadFields(part.second);
      } else {
        Refuse(part.second, "what is '" + key + "'?");
      }
    }
    if (entry.of.empty()) Refuse(node, "of what?");
    for (const StateEntry& other : out_->states_)
      if (other.event == event) Refuse(node, "a second event '" + event + "'");
    out_->states_.push_back(std::move(entry));
  }

  // Adds the fields of a set behind those that are there.
  void Use(const YAML::Node& value, TracepointEntry* entry) {
    for (const std::string& name : Texts(value)) {
      const auto set = sets_.find(name);
      if (set == sets_.end()) Refuse(value, "there is no set '" + name + "' above");
      entry->fields.insert(entry->fields.end(), set->second.begin(), set->second.end());
    }
  }

  void ReadSyscall(const YAML::Node& names, const YAML::Node& node) {
    SyscallEntry entry{.names = Words(names.as<std::string>())};
    for (const auto& item : node)
      entry.fields.push_back(ReadSyscallField(item.first.as<std::string>(), item.second));
    for (const std::string& name : entry.names)
      if (!out_->syscall_names_.emplace(name, out_->syscalls_.size()).second)
        Refuse(names, "a second entry for '" + name + "'");
    out_->syscalls_.push_back(std::move(entry));
  }

  Catalogue* out_;
  std::vector<std::string> subjects_;
  std::map<std::string, std::vector<FieldSpec>> sets_;
};

Result<Catalogue> Catalogue::Parse(std::span<const std::string_view> documents) {
  Catalogue catalogue;
  CatalogueReader reader(&catalogue);
  for (size_t i = 0; i < documents.size(); ++i) {
    const std::string where = "catalogue document " + std::to_string(i) + " (" +
                              std::string(documents[i].substr(0, documents[i].find('\n'))) + ")";
    try {
      reader.Read(documents[i]);
    } catch (const Wrong& wrong) {
      return Fail(ErrorCode::kInvalid, where + ", " + wrong.what);
    } catch (const YAML::Exception& error) {
      return Fail(ErrorCode::kInvalid, where + ": " + error.what());
    }
  }
  return catalogue;
}

}  // namespace weft::kernel
