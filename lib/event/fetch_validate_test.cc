// SPDX-License-Identifier: Apache-2.0
// Each rule of lib/event/fetch_validate.h and of lib/abi/fetch.h, kept and broken.
#include "lib/event/fetch_validate.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

#include "lib/event/description.h"

namespace weft {
namespace {

using Ops = std::vector<weft_fetch_op>;

weft_fetch_op Arg(uint8_t arg, uint8_t size = 8) {
  return {.code = WEFT_FETCH_ARG, .arg = arg, .size = size};
}
weft_fetch_op Load(uint8_t size, int32_t offset, uint8_t flags = 0) {
  return {.code = WEFT_FETCH_LOAD, .size = size, .flags = flags, .offset = offset};
}
weft_fetch_op Store(uint8_t size) { return {.code = WEFT_FETCH_STORE, .size = size}; }
weft_fetch_op Copy(uint8_t size, uint8_t flags = 0) {
  return {.code = WEFT_FETCH_BYTES, .size = size, .flags = flags};
}
weft_fetch_op String(uint32_t limit, uint8_t flags = 0) {
  return {.code = WEFT_FETCH_STRING, .flags = flags, .limit = limit};
}
weft_fetch_op Sequence(uint8_t size, uint32_t limit) {
  return {.code = WEFT_FETCH_SEQUENCE, .size = size, .limit = limit};
}
weft_fetch_op Gather(uint8_t size, uint32_t limit, uint8_t arg = WEFT_FETCH_NO_ARG,
                     uint8_t flags = WEFT_FETCH_USER) {
  return {.code = WEFT_FETCH_GATHER, .arg = arg, .size = size, .flags = flags, .limit = limit};
}
const weft_fetch_op kCount{.code = WEFT_FETCH_COUNT};
const weft_fetch_op kTask{.code = WEFT_FETCH_TASK};

FieldDescription Integer(uint8_t size) { return {.name = "i", .elem_size = size}; }
FieldDescription Comm() {
  return {.name = "comm",
          .kind = FieldKind::kArray,
          .flags = WEFT_FIELD_INLINE | WEFT_FIELD_TEXT,
          .elem_size = 1,
          .count = 16};
}
FieldDescription Text() { return {.name = "s", .kind = FieldKind::kString, .elem_size = 1}; }
FieldDescription Numbers() {
  return {.name = "q", .kind = FieldKind::kSequence, .elem_size = 2, .length_size = 4};
}

FieldDescription Contents() {
  return {.name = "c", .kind = FieldKind::kSequence, .elem_size = 1, .length_size = 4};
}

struct Outcome {
  int error = 0;
  weft_fetch_needs needs{};
};

Outcome Check(const std::vector<FieldDescription>& fields, const Ops& ops,
              uint32_t kind = WEFT_KERNEL_TRACEPOINT) {
  const EventDescription event{.name = "sched_switch", .fields = fields};
  const std::vector<uint8_t> bytes = event.Encode().value();
  weft_description_layout layout{};
  EXPECT_EQ(weft_description_check(bytes.data(), static_cast<uint32_t>(bytes.size()), &layout), 0);
  Outcome outcome;
  const Ops exact(ops);
  outcome.error = weft_fetch_validate(exact.data(), static_cast<uint32_t>(exact.size()), kind,
                                      bytes.data(), &layout, &outcome.needs);
  return outcome;
}

int Error(const std::vector<FieldDescription>& fields, const Ops& ops,
          uint32_t kind = WEFT_KERNEL_TRACEPOINT) {
  return Check(fields, ops, kind).error;
}

// Makes one integer of 4 bytes by these operations and a STORE.
int Before(Ops ops, uint32_t kind = WEFT_KERNEL_TRACEPOINT) {
  ops.push_back(Store(4));
  return Error({Integer(4)}, ops, kind);
}

TEST(FetchValidate, AcceptsEveryKindOfField) {
  FieldDescription hidden = Text();
  hidden.name = "hidden";
  hidden.flags = WEFT_FIELD_NOWRITE;
  const Outcome outcome = Check({Comm(), Integer(4), Text(), Numbers(), hidden},
                                {Arg(1),
                                 kTask,
                                 {.code = WEFT_FETCH_BYTES, .size = 16, .offset = 80},
                                 Arg(1),
                                 Load(4, 8, WEFT_FETCH_TRUSTED),
                                 Store(4),
                                 Arg(0),
                                 String(100),
                                 Arg(2, 4),
                                 kCount,
                                 Arg(3),
                                 Sequence(2, 64),
                                 String(7, WEFT_FETCH_USER)});
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(outcome.needs.segment_bytes, 164u);
  EXPECT_EQ(outcome.needs.nowrite_segment_bytes, 7u);
  EXPECT_EQ(outcome.needs.args, 0xfu);
  EXPECT_EQ(outcome.needs.uses,
            uint32_t{WEFT_FETCH_USES_TASK | WEFT_FETCH_USES_USER | WEFT_FETCH_USES_KERNEL});
}

TEST(FetchValidate, SaysThatOnlyTrustedMemoryIsRead) {
  EXPECT_EQ(Check({Integer(4)}, {Arg(0), Load(4, 0, WEFT_FETCH_TRUSTED), Store(4)}).needs.uses, 0u);
  EXPECT_EQ(Check({}, {}).error, 0) << "an event without fields";
}

TEST(FetchValidate, WantsOneOutputOfTheFieldsKindAndSizePerField) {
  EXPECT_EQ(Error({Integer(4)}, {}), -EINVAL);
  EXPECT_EQ(Error({Integer(4)}, {Store(4), Store(4)}), -EINVAL);
  EXPECT_EQ(Error({Integer(4)}, {Store(8)}), -EINVAL);
  EXPECT_EQ(Error({Integer(4)}, {Store(4), Arg(0)}), -EINVAL) << "an end that makes nothing";
  EXPECT_EQ(Error({Integer(4)}, {Arg(0), Copy(4)}), -EINVAL);
  EXPECT_EQ(Error({Comm()}, {Arg(0), Copy(15)}), -EINVAL);
  EXPECT_EQ(Error({Comm()}, {Arg(0), String(16)}), -EINVAL);
  EXPECT_EQ(Error({Text()}, {Arg(0), Sequence(1, 16)}), -EINVAL);
  EXPECT_EQ(Error({Numbers()}, {Arg(0), kCount, Sequence(4, 16)}), -EINVAL);
  EXPECT_EQ(Error({Numbers()}, {Arg(0), kCount, Sequence(2, 15)}), -EINVAL) << "half an element";
  EXPECT_EQ(Error({Numbers()}, {Arg(0), Sequence(2, 16)}), -EINVAL) << "of how many?";
  FieldDescription number{.name = "f", .kind = FieldKind::kFloat};
  EXPECT_EQ(Error({number}, {Store(4)}), -EINVAL);
  FieldDescription large = Comm();
  large.flags = 0;
  EXPECT_EQ(Error({large}, {Copy(16)}), -EINVAL) << "an array that is a segment";
}

TEST(FetchValidate, BoundsElementsThatAreReadOneByOne) {
  const auto each = [](uint8_t apart, uint32_t limit) {
    weft_fetch_op op = Sequence(2, limit);
    op.arg = apart;
    return Error({Numbers()}, {Arg(0), kCount, op});
  };
  EXPECT_EQ(each(16, 2 * WEFT_FETCH_MAX_PARTS), 0);
  EXPECT_EQ(each(255, 2), 0);
  EXPECT_EQ(each(1, 2), 0) << "they may overlap";
  EXPECT_EQ(each(16, 2 * WEFT_FETCH_MAX_PARTS + 2), -EINVAL);
  EXPECT_EQ(each(16, 3), -EINVAL);
  EXPECT_EQ(each(0, 2 * WEFT_FETCH_MAX_PARTS + 2), 0) << "they touch";
}

TEST(FetchValidate, GathersBytesOfUserMemory) {
  const auto gather = [](const weft_fetch_op& op, uint32_t kind = WEFT_KERNEL_SYSCALL_EXIT) {
    return Check({Contents()}, {Arg(2), kCount, Arg(1), op}, kind);
  };
  const Outcome outcome = gather(Gather(8, 100, 7));
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(outcome.needs.args, 0x86u);
  EXPECT_EQ(outcome.needs.segment_bytes, 100u);
  EXPECT_EQ(outcome.needs.uses, uint32_t{WEFT_FETCH_USES_USER});
  EXPECT_EQ(gather(Gather(4, 1)).needs.args, 0x6u);
  EXPECT_EQ(gather(Gather(8, 100, 8)).error, -EINVAL) << "no such argument";
  EXPECT_EQ(gather(Gather(8, 100, 7), WEFT_KERNEL_SYSCALL_ENTRY).error, -EINVAL);
  EXPECT_EQ(gather(Gather(2, 100)).error, -EINVAL);
  EXPECT_EQ(gather(Gather(8, 0)).error, -EINVAL);
  EXPECT_EQ(gather(Gather(8, WEFT_FETCH_MAX_STRING + 1)).error, -EINVAL);
  EXPECT_EQ(gather(Gather(8, 100, 7, 0)).error, -EINVAL) << "the kernel's own memory";
  EXPECT_EQ(gather(Gather(8, 100, 5), WEFT_KERNEL_STATE).error, -EINVAL);
  EXPECT_EQ(Error({Contents()}, {Arg(1), Gather(8, 100)}), -EINVAL) << "of how many?";
  EXPECT_EQ(Error({Numbers()}, {Arg(1), kCount, Gather(8, 100)}), -EINVAL) << "no bytes";
  EXPECT_EQ(Error({Text()}, {Arg(1), kCount, Gather(8, 100)}), -EINVAL);
}

TEST(FetchValidate, ReadsSocketAddressesAsFarAsTheirLengthGoes) {
  const auto within = [](int32_t end, uint8_t flags = 0) {
    return weft_fetch_op{.code = WEFT_FETCH_WITHIN, .flags = flags, .offset = end};
  };
  const auto path = [](int32_t begin, uint32_t limit, uint8_t flags = WEFT_FETCH_USER) {
    return weft_fetch_op{
        .code = WEFT_FETCH_UNIX_PATH, .flags = flags, .offset = begin, .limit = limit};
  };
  const auto made = [](const weft_fetch_op& op, uint32_t kind = WEFT_KERNEL_SYSCALL_ENTRY) {
    return Check({Text()}, {Arg(2), kCount, Arg(1), op}, kind);
  };
  EXPECT_EQ(Before({Arg(2), kCount, Arg(1), within(4), Load(2, 2)}), 0);
  EXPECT_EQ(Before({Arg(2), kCount, Arg(1), within(0), Load(4, 0, WEFT_FETCH_TRUSTED)}), 0)
      << "A is what it was";
  EXPECT_EQ(Before({Arg(1), within(4), Load(2, 2)}), -EINVAL) << "of how many?";
  EXPECT_EQ(Before({Arg(2), kCount, Arg(1), within(-1), Load(2, 2)}), -EINVAL);
  EXPECT_EQ(Before({Arg(2), kCount, Arg(1), within(4, WEFT_FETCH_USER)}), -EINVAL);
  EXPECT_EQ(Error({Integer(4)}, {kCount, Store(4), within(0)}), -EINVAL) << "it makes no field";
  const Outcome outcome = made(path(2, 108));
  EXPECT_EQ(outcome.error, 0);
  EXPECT_EQ(outcome.needs.segment_bytes, 108u);
  EXPECT_EQ(outcome.needs.args, 0x6u);
  EXPECT_EQ(outcome.needs.uses, uint32_t{WEFT_FETCH_USES_USER});
  EXPECT_EQ(made(path(-1, 108)).error, -EINVAL);
  EXPECT_EQ(made(path(2, 0)).error, -EINVAL);
  EXPECT_EQ(made(path(2, WEFT_FETCH_MAX_STRING + 1)).error, -EINVAL);
  EXPECT_EQ(made(path(2, 108, 0)).error, -EINVAL) << "the kernel's own memory";
  EXPECT_EQ(made(path(2, 108), WEFT_KERNEL_STATE).error, -EINVAL);
  weft_fetch_op with_more = path(2, 108);
  with_more.size = 1;
  EXPECT_EQ(made(with_more).error, -EINVAL);
  with_more = path(2, 108);
  with_more.arg = 1;
  EXPECT_EQ(made(with_more).error, -EINVAL);
  EXPECT_EQ(Error({Text()}, {Arg(1), path(2, 108)}), -EINVAL) << "of how many?";
  EXPECT_EQ(Error({Contents()}, {kCount, Arg(1), path(2, 108)}), -EINVAL) << "no text";
}

TEST(FetchValidate, KnowsTheArgumentsOfEachKind) {
  const auto last = [](uint32_t kind, uint8_t arg) { return Before({Arg(arg)}, kind); };
  EXPECT_EQ(last(WEFT_KERNEL_TRACEPOINT, 11), 0);
  EXPECT_EQ(last(WEFT_KERNEL_TRACEPOINT, 12), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_SYSCALL_ENTRY, 6), 0);
  EXPECT_EQ(last(WEFT_KERNEL_SYSCALL_ENTRY, 7), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_SYSCALL_EXIT, 7), 0);
  EXPECT_EQ(last(WEFT_KERNEL_SYSCALL_EXIT, 8), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_KPROBE, 7), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_KRETPROBE, 8), 0);
  EXPECT_EQ(last(WEFT_KERNEL_KRETPROBE, 9), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_STATE, 5), 0);
  EXPECT_EQ(last(WEFT_KERNEL_STATE, 6), -EINVAL);
  EXPECT_EQ(Error({}, {}, 0), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_UPROBE, 6), 0);
  EXPECT_EQ(last(WEFT_KERNEL_UPROBE, 7), -EINVAL);
  EXPECT_EQ(last(WEFT_KERNEL_URETPROBE, 8), 0);
  EXPECT_EQ(last(WEFT_KERNEL_URETPROBE, 9), -EINVAL);
  EXPECT_EQ(Error({}, {}, 200), -EINVAL);
}

TEST(FetchValidate, RefusesOperandsThatAnOperationDoesNotHave) {
  for (int code = 0; code < 256; ++code) {
    const bool known = code >= WEFT_FETCH_ARG && code <= WEFT_FETCH_TASK;
    const bool sized = known && code <= WEFT_FETCH_BITS && code != WEFT_FETCH_ADD;
    const bool offset = known && code >= WEFT_FETCH_LOAD && code <= WEFT_FETCH_BITS;
    weft_fetch_op plain{.code = static_cast<uint8_t>(code), .size = uint8_t(sized ? 4 : 0)};
    const auto with = [&](auto&& change) {
      weft_fetch_op op = plain;
      change(op);
      return Before({Arg(0), op}) == 0;
    };
    EXPECT_EQ(with([](auto&) {}), known) << code;
    EXPECT_FALSE(with([](auto& op) { op.size ^= 4; })) << code;
    EXPECT_EQ(with([](auto& op) { op.arg = 1; }), code == WEFT_FETCH_ARG) << code;
    EXPECT_EQ(with([](auto& op) { op.offset = 1; }), offset) << code;
    EXPECT_FALSE(with([](auto& op) { op.limit = 1; })) << code;
    EXPECT_FALSE(with([](auto& op) { op.reserved = 1; })) << code;
    EXPECT_EQ(with([](auto& op) { op.flags = WEFT_FETCH_USER; }), code == WEFT_FETCH_LOAD) << code;
    EXPECT_EQ(with([](auto& op) { op.flags = WEFT_FETCH_KEEP_OTHER; }), code == WEFT_FETCH_ARG)
        << code;
  }
  EXPECT_EQ(Before({{.code = 200}}), -EOPNOTSUPP);
  EXPECT_EQ(Before({Load(4, 0, 16)}), -EOPNOTSUPP);
  EXPECT_EQ(Before({Arg(0), Load(4, 0, WEFT_FETCH_TRUSTED | WEFT_FETCH_USER)}), -EINVAL);
}

TEST(FetchValidate, BoundsBitFields) {
  const auto bits = [](uint8_t size, int32_t from) {
    return Before({Arg(0), {.code = WEFT_FETCH_BITS, .size = size, .offset = from}});
  };
  EXPECT_EQ(bits(1, 63), 0);
  EXPECT_EQ(bits(64, 0), 0);
  EXPECT_EQ(bits(0, 0), -EINVAL);
  EXPECT_EQ(bits(2, 63), -EINVAL);
  EXPECT_EQ(bits(1, 64), -EINVAL);
  EXPECT_EQ(bits(1, -1), -EINVAL);
}

TEST(FetchValidate, TrustsOnlyWholeArgumentsOfTracepoints) {
  const weft_fetch_op add{.code = WEFT_FETCH_ADD, .offset = 8};
  const weft_fetch_op read = Load(4, 0, WEFT_FETCH_TRUSTED);
  EXPECT_EQ(Before({Arg(0), read}), 0);
  EXPECT_EQ(Before({Arg(0), add, read}), 0);
  EXPECT_EQ(Before({Arg(0), kTask, read}), 0);
  EXPECT_EQ(Before({read}), -EINVAL) << "A is 0";
  EXPECT_EQ(Before({Arg(0, 4), read}), -EINVAL) << "half a pointer";
  EXPECT_EQ(Before({Arg(0), Load(8, 0), read}), -EINVAL) << "loaded";
  EXPECT_EQ(Before({Arg(0), {.code = WEFT_FETCH_BITS, .size = 64}, read}), -EINVAL);
  for (const uint32_t kind : {WEFT_KERNEL_SYSCALL_ENTRY, WEFT_KERNEL_SYSCALL_EXIT,
                              WEFT_KERNEL_KPROBE, WEFT_KERNEL_KRETPROBE}) {
    EXPECT_EQ(Before({Arg(0), read}, kind), -EINVAL) << kind;
    EXPECT_EQ(Before({Arg(0), kTask}, kind), -EINVAL) << kind;
  }
  EXPECT_EQ(Before({Arg(0), add, kTask}), -EINVAL);
  EXPECT_EQ(Before({Arg(0), Load(8, 0), kTask}), -EINVAL);
}

TEST(FetchValidate, TrustsWhatAStatedumpHandsOutButReadsNoUserMemoryInIt) {
  EXPECT_EQ(Before({Arg(0), kTask, Load(4, 8, WEFT_FETCH_TRUSTED)}, WEFT_KERNEL_STATE), 0);
  EXPECT_EQ(Before({Load(4, 8, WEFT_FETCH_TRUSTED)}, WEFT_KERNEL_STATE), -EINVAL);
  EXPECT_EQ(Before({Arg(0), Load(4, 8, WEFT_FETCH_USER)}, WEFT_KERNEL_STATE), -EINVAL);
  EXPECT_EQ(Error({Text()}, {Arg(0), String(16, WEFT_FETCH_USER)}, WEFT_KERNEL_STATE), -EINVAL);
  EXPECT_EQ(Error({Text()}, {Arg(0), String(16)}, WEFT_KERNEL_STATE), 0);
}

TEST(FetchValidate, AnIntegerMayBeKeptWhereItIsAnAddressOfUserMemory) {
  const auto store = [](uint8_t flags, uint32_t kind) {
    return Error({Integer(8)}, {Arg(0), {.code = WEFT_FETCH_STORE, .size = 8, .flags = flags}},
                 kind);
  };
  EXPECT_EQ(store(WEFT_FETCH_USER, WEFT_KERNEL_KPROBE), 0);
  EXPECT_EQ(store(WEFT_FETCH_USER, WEFT_KERNEL_STATE), -EINVAL) << "the caller's memory";
  EXPECT_EQ(store(WEFT_FETCH_TRUSTED, WEFT_KERNEL_KPROBE), -EINVAL);
}

TEST(FetchValidate, RegistersAreForProbesOfUserFunctions) {
  const auto reg = [](uint8_t number, uint8_t size = 4) {
    return weft_fetch_op{.code = WEFT_FETCH_REG, .arg = number, .size = size};
  };
  constexpr uint8_t kLast = WEFT_FETCH_REGISTERS - 1;
  for (const uint32_t kind : {WEFT_KERNEL_UPROBE, WEFT_KERNEL_URETPROBE}) {
    EXPECT_EQ(Before({reg(0)}, kind), 0);
    EXPECT_EQ(Before({reg(kLast, 8)}, kind), 0);
    EXPECT_EQ(Before({reg(WEFT_FETCH_REG_ZERO, 8)}, kind), 0);
    EXPECT_EQ(Before({reg(kLast + 1)}, kind), -EINVAL);
    EXPECT_EQ(Before({reg(0, 3)}, kind), -EINVAL);
    EXPECT_EQ(Before({reg(0, 8), Load(4, 8, WEFT_FETCH_USER)}, kind), 0);
    EXPECT_EQ(Before({reg(0, 8), Load(4, 8, WEFT_FETCH_TRUSTED)}, kind), -EINVAL);
    EXPECT_EQ(Before({reg(0, 8), kTask}, kind), -EINVAL);
    EXPECT_EQ(Check({Integer(4)}, {reg(0), Store(4)}, kind).needs.uses,
              uint32_t{WEFT_FETCH_USES_REGISTERS});
    EXPECT_EQ(Check({Integer(4)}, {reg(0), Store(4)}, kind).needs.args, 0u);
  }
  for (const uint32_t kind : {WEFT_KERNEL_TRACEPOINT, WEFT_KERNEL_SYSCALL_ENTRY,
                              WEFT_KERNEL_SYSCALL_EXIT, WEFT_KERNEL_KPROBE, WEFT_KERNEL_KRETPROBE})
    EXPECT_EQ(Before({reg(0)}, kind), -EINVAL) << kind;
}

TEST(FetchValidate, KeepsTheLimits) {
  EXPECT_EQ(Error({Text()}, {Arg(0), String(WEFT_FETCH_MAX_STRING)}), 0);
  EXPECT_EQ(Error({Text()}, {Arg(0), String(WEFT_FETCH_MAX_STRING + 1)}), -EINVAL);
  EXPECT_EQ(Error({Text()}, {Arg(0), String(0)}), -EINVAL);
  const auto texts = [](size_t count, uint32_t limit) {
    return Error(std::vector<FieldDescription>(count, Text()), Ops(count, String(limit)));
  };
  EXPECT_EQ(texts(WEFT_FETCH_MAX_SEGMENTS, 512), 0);
  EXPECT_EQ(texts(WEFT_FETCH_MAX_SEGMENTS, 513), -EINVAL) << "bytes";
  EXPECT_EQ(texts(WEFT_FETCH_MAX_SEGMENTS + 1, 1), -EINVAL);
  const auto words = [](size_t count) {
    return Error(std::vector<FieldDescription>(count, Integer(8)), Ops(count, Store(8)));
  };
  EXPECT_EQ(words(WEFT_FETCH_MAX_FIXED / 8), 0);
  EXPECT_EQ(words(WEFT_FETCH_MAX_FIXED / 8 + 1), -EINVAL);
  EXPECT_EQ(Before(Ops(WEFT_FETCH_MAX_OPS - 1, Arg(0))), 0);
  EXPECT_EQ(Before(Ops(WEFT_FETCH_MAX_OPS, Arg(0))), -EINVAL);
}

}  // namespace
}  // namespace weft
