// SPDX-License-Identifier: Apache-2.0
// For tests: an event with its description and its image, and evaluating a filter on it the way a
// traced program does. The image's buffers have exactly the promised sizes, so that ASan sees any
// read beyond them.
#ifndef WEFT_LIB_EVENT_FILTER_TEST_EVENT_H_
#define WEFT_LIB_EVENT_FILTER_TEST_EVENT_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "lib/event/description.h"
#include "lib/event/filter.h"

namespace weft::testing {

// A context's value; monostate: there is none now.
using ContextValue = std::variant<std::monostate, int64_t, double, std::string>;

// Contexts by name ("vpid", "provider:name"). They have the type of their value, or type ANY.
struct TestContexts : weft_filter_contexts {
  struct Entry {
    std::string name;
    uint8_t kind;
    uint8_t type;
    ContextValue value;
  };
  std::vector<Entry> entries;

  TestContexts() : weft_filter_contexts{&Find, &Fetch} {}

  static int Find(const weft_filter_contexts* self, uint8_t kind, const char* name, uint32_t size,
                  uint8_t* type) {
    const auto& entries = static_cast<const TestContexts*>(self)->entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].kind != kind || entries[i].name != std::string_view(name, size)) continue;
      *type = entries[i].type;
      return static_cast<int>(i);
    }
    return -ENOENT;
  }

  static int Fetch(void* arg, uint32_t number, weft_filter_value* out) {
    const Entry& entry = static_cast<const TestContexts*>(arg)->entries[number];
    if (const auto* i = std::get_if<int64_t>(&entry.value)) {
      out->type = WEFT_FILTER_INT;
      out->bits = static_cast<uint64_t>(*i);
    } else if (const auto* d = std::get_if<double>(&entry.value)) {
      out->type = WEFT_FILTER_FLOAT;
      std::memcpy(&out->bits, d, sizeof(*d));
    } else if (const auto* s = std::get_if<std::string>(&entry.value)) {
      out->type = WEFT_FILTER_STRING;
      out->text = s->data();
      out->size = static_cast<uint32_t>(s->size());
    } else {
      return -ENOENT;
    }
    return 0;
  }
};

class TestEvent {
 public:
  // Adds an integer, enum or float field.
  template <typename T>
  TestEvent& Number(std::string name, T value, uint8_t extra_flags = 0) {
    FieldDescription field{.name = std::move(name), .flags = extra_flags, .elem_size = sizeof(T)};
    if constexpr (std::is_floating_point_v<T>) field.kind = FieldKind::kFloat;
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) field.flags |= WEFT_FIELD_SIGNED;
    return Add(std::move(field), ToBytes(value, extra_flags), {});
  }

  TestEvent& Text(std::string name, std::string_view value, uint8_t extra_flags = 0) {
    FieldDescription field{
        .name = std::move(name), .kind = FieldKind::kString, .flags = extra_flags, .elem_size = 1};
    return Add(std::move(field), ToBytes(static_cast<uint32_t>(value.size()), 0),
               {value.begin(), value.end()});
  }

  template <typename T>
  TestEvent& Array(std::string name, const std::vector<T>& values, uint8_t extra_flags = 0) {
    FieldDescription field = Elements<T>(std::move(name), FieldKind::kArray, extra_flags);
    field.count = static_cast<uint32_t>(values.size());
    std::vector<uint8_t> bytes = ElementBytes(values, extra_flags);
    if ((extra_flags & WEFT_FIELD_INLINE) != 0) return Add(std::move(field), std::move(bytes), {});
    return Add(std::move(field), {}, std::move(bytes));
  }

  template <typename T>
  TestEvent& Sequence(std::string name, const std::vector<T>& values, uint8_t extra_flags = 0) {
    FieldDescription field = Elements<T>(std::move(name), FieldKind::kSequence, extra_flags);
    field.length_size = 4;
    return Add(std::move(field), ToBytes(static_cast<uint32_t>(values.size()), 0),
               ElementBytes(values, extra_flags));
  }

  // Lays everything out; no more fields may be added.
  void Build() {
    description_.name = "test:event";
    description_.ComputeLayout();
    encoded_ = *description_.Encode();
    fixed_size_ = description_.fixed_size + description_.nowrite_size;
    fixed_ = std::make_unique<uint8_t[]>(fixed_size_);
    segments_.resize(description_.segment_count + description_.nowrite_segments);
    buffers_.resize(segments_.size());
    for (size_t i = 0; i < description_.fields.size(); ++i) {
      const FieldDescription& field = description_.fields[i];
      if (!fixed_bytes_[i].empty())
        std::memcpy(fixed_.get() + field.fixed_offset, fixed_bytes_[i].data(),
                    fixed_bytes_[i].size());
      if (!field.segment) continue;
      const std::vector<uint8_t>& bytes = segment_bytes_[i];
      auto& buffer = buffers_[*field.segment];
      buffer = std::make_unique<uint8_t[]>(bytes.size());
      if (!bytes.empty()) std::memcpy(buffer.get(), bytes.data(), bytes.size());
      segments_[*field.segment] = {.data = buffer.get(),
                                   .size = static_cast<uint32_t>(bytes.size())};
    }
  }

  [[nodiscard]] const EventDescription& description() const { return description_; }
  [[nodiscard]] const std::vector<uint8_t>& encoded() const { return encoded_; }
  [[nodiscard]] const uint8_t* fixed() const { return fixed_.get(); }
  [[nodiscard]] std::vector<weft_segment>& segments() { return segments_; }

  template <typename T>
  static std::vector<uint8_t> ToBytes(T value, uint8_t flags) {
    std::vector<uint8_t> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    if ((flags & WEFT_FIELD_NETWORK) != 0) std::reverse(bytes.begin(), bytes.end());
    return bytes;
  }

 private:
  template <typename T>
  static FieldDescription Elements(std::string name, FieldKind kind, uint8_t extra_flags) {
    FieldDescription field{
        .name = std::move(name), .kind = kind, .flags = extra_flags, .elem_size = sizeof(T)};
    if constexpr (std::is_floating_point_v<T>) field.flags |= WEFT_FIELD_FLOAT_ELEMENTS;
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) field.flags |= WEFT_FIELD_SIGNED;
    return field;
  }

  template <typename T>
  static std::vector<uint8_t> ElementBytes(const std::vector<T>& values, uint8_t flags) {
    std::vector<uint8_t> out;
    for (const T value : values) {
      const std::vector<uint8_t> bytes = ToBytes(value, flags);
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
  }

  TestEvent& Add(FieldDescription field, std::vector<uint8_t> fixed, std::vector<uint8_t> segment) {
    description_.fields.push_back(std::move(field));
    fixed_bytes_.push_back(std::move(fixed));
    segment_bytes_.push_back(std::move(segment));
    return *this;
  }

  EventDescription description_;
  std::vector<uint8_t> encoded_;
  std::vector<std::vector<uint8_t>> fixed_bytes_;    // by field
  std::vector<std::vector<uint8_t>> segment_bytes_;  // by field
  size_t fixed_size_ = 0;
  std::unique_ptr<uint8_t[]> fixed_;
  std::vector<std::unique_ptr<uint8_t[]>> buffers_;
  std::vector<weft_segment> segments_;
};

// A program linked to one event. `error`: that of weft_filter_link, or 0.
struct LinkedFilter {
  int error = 0;
  std::unique_ptr<uint64_t[]> memory;

  LinkedFilter(const std::vector<uint8_t>& program, const std::vector<uint8_t>& description,
               const weft_filter_contexts* contexts) {
    weft_description_layout layout;
    error = weft_description_check(description.data(), static_cast<uint32_t>(description.size()),
                                   &layout);
    if (error != 0) return;
    const auto size = static_cast<uint32_t>(program.size());
    error =
        weft_filter_link(program.data(), size, description.data(), &layout, contexts, nullptr, 0);
    if (error < 0) return;
    memory = std::make_unique<uint64_t[]>((static_cast<size_t>(error) + 7) / 8);
    error = weft_filter_link(program.data(), size, description.data(), &layout, contexts,
                             memory.get(), static_cast<uint32_t>(error));
    if (error > 0) error = 0;
  }

  [[nodiscard]] const weft_linked_filter* get() const {
    return reinterpret_cast<const weft_linked_filter*>(memory.get());
  }

  [[nodiscard]] bool Run(TestEvent& event, TestContexts* contexts) const {
    return error == 0 && weft_filter_run(get(), event.fixed(), event.segments().data(), contexts);
  }
};

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_TEST_EVENT_H_
