// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/event_builder.h"

#include <utility>

#include "lib/event/fetch_validate.h"
#include "lib/event/text.h"
#include "node-agent/kernel/fetch_program.h"

namespace weft::kernel {
namespace {

// LTTng's scale: kernel events have none of their own; 6 is "info".
constexpr int32_t kLogLevel = 6;

}  // namespace

EventBuilder::EventBuilder(std::string name, uint32_t kind) : kind_(kind) {
  event_.name = std::move(name);
  event_.loglevel = kLogLevel;
}

bool EventBuilder::HasRoom(const Field& field) const {
  EventDescription wider{.fields = event_.fields};
  wider.fields.push_back(field.description);
  wider.ComputeLayout();
  return wider.fixed_size <= WEFT_FETCH_MAX_FIXED &&
         wider.segment_count <= WEFT_FETCH_MAX_SEGMENTS &&
         segment_bytes_ + field.ops.back().limit <= WEFT_FETCH_MAX_BYTES &&
         ops_.size() + field.ops.size() <= WEFT_FETCH_MAX_OPS;
}

void EventBuilder::Add(const std::string& name, Result<Field> field) {
  if (event_.FindField(name) != nullptr) return;
  if (!field) {
    auto& absent = field.error().code == ErrorCode::kPermission ? withheld_ : left_out_;
    absent.push_back(name + ": " + field.error().message);
  } else if (!IsIdentifier(name)) {
    left_out_.push_back(name + ": no name of a field");
  } else if (!HasRoom(*field)) {
    left_out_.push_back(name + ": no room in a fetch program");
  } else {
    segment_bytes_ += field->ops.back().limit;
    event_.fields.push_back(std::move(field->description));
    ops_.insert(ops_.end(), field->ops.begin(), field->ops.end());
  }
}

Status EventBuilder::Finish(Resolved* out) {
  event_.ComputeLayout();
  WEFT_ASSIGN(out->description, event_.Encode());
  weft_description_layout layout{};
  weft_fetch_needs needs{};
  const std::vector<weft_fetch_op> program = FetchProgram(ops_);
  const int described = weft_description_check(
      out->description.data(), static_cast<uint32_t>(out->description.size()), &layout);
  if (described != 0 || weft_fetch_validate(program.data(), static_cast<uint32_t>(program.size()),
                                            kind_, out->description.data(), &layout, &needs) != 0)
    return Fail(ErrorCode::kInvalid, "event '" + event_.name + "' has no valid fetch program");
  out->name = event_.name;
  out->kind = kind_;
  out->fetch = std::move(ops_);
  out->left_out = std::move(left_out_);
  out->withheld = std::move(withheld_);
  return {};
}

}  // namespace weft::kernel
