// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/plan.h"

#include <algorithm>
#include <cstring>

#include "lib/ctf/copy.h"

namespace weft::ctf {
namespace {

void AddCopy(Plan& plan, uint32_t bytes) {
  if (!plan.steps.empty() && plan.steps.back().kind == StepKind::kCopy) {
    plan.steps.back().bytes += bytes;
  } else {
    plan.steps.push_back({.kind = StepKind::kCopy, .bytes = bytes});
  }
  plan.fixed_size += bytes;
}

void AddArray(Plan& plan, const FieldDescription& field) {
  const uint32_t bytes = field.count * field.elem_size;
  const bool text = (field.flags & WEFT_FIELD_TEXT) != 0;
  if ((field.flags & WEFT_FIELD_INLINE) == 0) {
    plan.verbatim = false;
    plan.steps.push_back(
        {.kind = text ? StepKind::kSegmentText : StepKind::kSegment, .bytes = bytes});
    return;
  }
  if (!text) return AddCopy(plan, bytes);
  plan.verbatim = false;
  plan.fixed_size += bytes;
  plan.steps.push_back({.kind = StepKind::kInlineText, .bytes = bytes});
}

// Returns the number of bytes before the first NUL, at most `bytes`.
size_t TextSize(const uint8_t* text, size_t bytes) {
  return ::strnlen(reinterpret_cast<const char*>(text), bytes);
}

// Copies text of constant size up to its NUL, and writes zeros behind it. Returns the bytes before
// the NUL.
size_t PutText(uint8_t* out, const uint8_t* in, size_t bytes) {
  CopyBytes(out, in, bytes);
  const size_t used = TextSize(out, bytes);
  if (used < bytes) std::memset(out + used, 0, bytes - used);
  return used;
}

uint32_t LoadU32(const uint8_t* in) {
  uint32_t value;
  std::memcpy(&value, in, sizeof(value));
  return value;
}

// Two cursors over the record: the fixed part and, behind it, the segments.
class Runner {
 public:
  Runner(const Plan& plan, const uint8_t* in, const uint8_t* end, uint8_t* out, uint32_t first_text)
      : fixed_(in), segment_(in + plan.fixed_size), end_(end), out_(out), text_(first_text) {}

  bool Step(const struct Step& step) {
    switch (step.kind) {
      case StepKind::kCopy:
        CopyBytes(out_, fixed_, step.bytes);
        fixed_ += step.bytes;
        out_ += step.bytes;
        return true;
      case StepKind::kInlineText:
        NoteText(PutText(out_, fixed_, step.bytes));
        fixed_ += step.bytes;
        out_ += step.bytes;
        return true;
      case StepKind::kSegment:
      case StepKind::kSegmentText:
        return Segment(step);
      case StepKind::kString:
        return String();
      case StepKind::kSequence:
      case StepKind::kSequenceText:
        return Sequence(step);
      case StepKind::kDynamic:
      case StepKind::kAddresses:
        return false;  // contexts only, see RunContexts
    }
    return false;
  }

  [[nodiscard]] RunResult result() const { return {segment_, out_, empty_}; }

 private:
  [[nodiscard]] bool Has(uint64_t bytes) const {
    return bytes <= static_cast<uint64_t>(end_ - segment_);
  }

  void NoteText(size_t bytes) {
    if (bytes == 0) empty_ |= EmptyTextBit(text_);
    text_++;
  }

  void PutSegment(uint32_t bytes, bool text) {
    if (text) {
      NoteText(PutText(out_, segment_, bytes));
    } else {
      CopyBytes(out_, segment_, bytes);
    }
    segment_ += bytes;
    out_ += bytes;
  }

  bool Segment(const struct Step& step) {
    if (!Has(step.bytes)) return false;
    PutSegment(step.bytes, step.kind == StepKind::kSegmentText);
    return true;
  }

  bool String() {
    const uint32_t bytes = LoadU32(fixed_);
    fixed_ += 4;
    if (!Has(bytes)) return false;
    CopyBytes(out_, segment_, bytes);
    const size_t used = TextSize(out_, bytes);
    NoteText(used);
    out_ += used;
    *out_++ = 0;
    segment_ += bytes;
    return true;
  }

  bool Sequence(const struct Step& step) {
    const uint32_t count = LoadU32(fixed_);
    fixed_ += 4;
    const uint64_t bytes = uint64_t{count} * step.elem_size;
    if (!Has(bytes) || (uint64_t{count} >> (8 * step.length_size)) != 0) return false;
    std::memcpy(out_, &count, 4);  // there is room; what is too much is overwritten
    out_ += step.length_size;
    PutSegment(static_cast<uint32_t>(bytes), step.kind == StepKind::kSequenceText);
    return true;
  }

  const uint8_t* fixed_;
  const uint8_t* segment_;
  const uint8_t* end_;
  uint8_t* out_;
  uint32_t text_;
  EmptyTexts empty_ = 0;
};

// Returns the bytes of a DYNAMIC value of this type; 0 for NONE; kNoType: there is no such type.
constexpr uint32_t kNoType = UINT32_MAX;
uint32_t DynamicBytes(uint8_t type) {
  switch (type) {
    case WEFT_DYNAMIC_NONE:
      return 0;
    case WEFT_DYNAMIC_S8:
    case WEFT_DYNAMIC_U8:
      return 1;
    case WEFT_DYNAMIC_S16:
    case WEFT_DYNAMIC_U16:
      return 2;
    case WEFT_DYNAMIC_S32:
    case WEFT_DYNAMIC_U32:
    case WEFT_DYNAMIC_FLOAT:
      return 4;
    case WEFT_DYNAMIC_S64:
    case WEFT_DYNAMIC_U64:
    case WEFT_DYNAMIC_DOUBLE:
      return 8;
    default:
      return kNoType;
  }
}

bool RunDynamic(RunResult& at, const uint8_t* end, uint32_t text) {
  if (at.in == end) return false;
  const uint8_t type = *at.in++;
  *at.out++ = type;
  const auto left = static_cast<uint64_t>(end - at.in);
  if (type == WEFT_DYNAMIC_STRING) {
    if (left < 4) return false;
    const uint32_t bytes = LoadU32(at.in);
    if (bytes > left - 4) return false;
    CopyBytes(at.out, at.in + 4, bytes);
    const size_t used = TextSize(at.out, bytes);
    if (used == 0) at.empty |= EmptyTextBit(text);
    at.out += used;
    *at.out++ = 0;
    at.in += 4 + bytes;
    return true;
  }
  const uint32_t bytes = DynamicBytes(type);
  if (bytes > left) return false;
  CopyBytes(at.out, at.in, bytes);
  at.in += bytes;
  at.out += bytes;
  return true;
}

bool RunAddresses(RunResult& at, const uint8_t* end) {
  const auto left = static_cast<uint64_t>(end - at.in);
  if (left < 4) return false;
  const uint32_t count = LoadU32(at.in);
  const uint32_t bytes = 4 + 8 * count;
  if (count > WEFT_CONTEXT_MAX_ADDRESSES || bytes > left) return false;
  CopyBytes(at.out, at.in, bytes);
  at.in += bytes;
  at.out += bytes;
  return true;
}

// Contexts lie one after the other: no segments, and what follows one of no constant size moves
// with it.
RunResult RunContexts(const Plan& plan, const uint8_t* in, const uint8_t* end, uint8_t* out,
                      uint32_t text) {
  RunResult at{in, out};
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kDynamic) {
      if (!RunDynamic(at, end, text++)) return {};
      continue;
    }
    if (step.kind == StepKind::kAddresses) {
      if (!RunAddresses(at, end)) return {};
      continue;
    }
    if (step.bytes > static_cast<uint64_t>(end - at.in)) return {};
    if (step.kind == StepKind::kInlineText) {
      if (PutText(at.out, at.in, step.bytes) == 0) at.empty |= EmptyTextBit(text);
      text++;
    } else {
      CopyBytes(at.out, at.in, step.bytes);
    }
    at.in += step.bytes;
    at.out += step.bytes;
  }
  return at;
}

void CountTexts(Plan& plan) {
  plan.texts = static_cast<uint32_t>(std::ranges::count_if(plan.steps, [](const Step& step) {
    return step.kind == StepKind::kInlineText || step.kind == StepKind::kSegmentText ||
           step.kind == StepKind::kString || step.kind == StepKind::kSequenceText ||
           step.kind == StepKind::kDynamic;
  }));
}

}  // namespace

Plan MakeContextPlan(const ChannelSchema& channel) {
  Plan plan;
  for (const ContextField& context : channel.contexts) {
    const weft_context_info* info = weft_context_by_id(context.id);
    switch (static_cast<weft_context_type>(info->type)) {
      case WEFT_CONTEXT_DYNAMIC:
      case WEFT_CONTEXT_ADDRESSES:
        plan.sequential = true;
        plan.verbatim = false;
        plan.steps.push_back({.kind = info->type == WEFT_CONTEXT_DYNAMIC ? StepKind::kDynamic
                                                                         : StepKind::kAddresses});
        break;
      case WEFT_CONTEXT_TEXT:
        plan.verbatim = false;
        plan.fixed_size += info->size;
        plan.steps.push_back({.kind = StepKind::kInlineText, .bytes = info->size});
        break;
      case WEFT_CONTEXT_INT:
      case WEFT_CONTEXT_UINT:
        AddCopy(plan, info->size);
        break;
    }
  }
  CountTexts(plan);
  return plan;
}

Plan MakePayloadPlan(const EventDescription& event) {
  Plan plan;
  for (const FieldDescription& field : event.fields) {
    if ((field.flags & WEFT_FIELD_NOWRITE) != 0) continue;
    const bool text = (field.flags & WEFT_FIELD_TEXT) != 0;
    switch (field.kind) {
      case FieldKind::kString:
        plan.verbatim = false;
        plan.fixed_size += 4;
        plan.steps.push_back({.kind = StepKind::kString});
        break;
      case FieldKind::kSequence:
        plan.verbatim = false;
        plan.fixed_size += 4;
        plan.steps.push_back({.kind = text ? StepKind::kSequenceText : StepKind::kSequence,
                              .length_size = FileLengthSize(field.length_size),
                              .elem_size = field.elem_size});
        break;
      case FieldKind::kArray:
        AddArray(plan, field);
        break;
      default:
        AddCopy(plan, field.elem_size);
    }
  }
  CountTexts(plan);
  return plan;
}

RunResult RunPlan(const Plan& plan, const uint8_t* in, const uint8_t* end, uint8_t* out,
                  uint32_t first_text) {
  if (plan.sequential) return RunContexts(plan, in, end, out, first_text);
  if (plan.fixed_size > static_cast<uint64_t>(end - in)) return {};
  if (plan.verbatim) {
    CopyBytes(out, in, plan.fixed_size);
    return {in + plan.fixed_size, out + plan.fixed_size};
  }
  Runner runner(plan, in, end, out, first_text);
  for (const Step& step : plan.steps) {
    if (!runner.Step(step)) return {};
  }
  return runner.result();
}

}  // namespace weft::ctf
