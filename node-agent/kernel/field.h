// SPDX-License-Identifier: Apache-2.0
// Turns one field that the catalogue wants into its description and the operations that make it,
// for this kernel. Thread-safety: plain values and functions.
#ifndef WEFT_NODE_AGENT_KERNEL_FIELD_H_
#define WEFT_NODE_AGENT_KERNEL_FIELD_H_

#include <set>
#include <vector>

#include "lib/event/description.h"
#include "node-agent/kernel/catalogue.h"
#include "node-agent/kernel/fetch_step.h"
#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {

struct Field {
  FieldDescription description;
  std::vector<FetchStep> ops;  // the last one makes it
};

struct FieldMaker {
  const Btf& btf;
  const Catalogue& catalogue;
  const std::vector<Argument>& arguments;
  // Addresses of kernel memory: they would tell a tenant where the kernel lies.
  bool addresses = false;
  // Arguments that are tasks and whose values are always shown. Values of other tasks are hidden
  // from a session that does not have them in its scope.
  std::set<uint32_t> open_tasks{};
  // true: memory that `arguments` point to needs loads that may fault (probes of functions)
  bool distrust = false;
  // All memory behind `arguments` is the current task's (system calls), not only that of the last
  // step of a path.
  bool user_arguments = false;
  // weft.ko has WEFT_KERNEL_PARTS.
  bool has_parts = true;
  // weft.ko has WEFT_KERNEL_SOCKET_ADDRESSES: without it, socket addresses are read whole, as far
  // as they could go.
  bool has_socket_addresses = true;
  // weft.ko has WEFT_KERNEL_USER_ADDRESSES: where addresses of the kernel are not shown, those of
  // the program are.
  bool has_user_addresses = false;

  // kNotFound, kUnsupported: this kernel has it not, or not so; kPermission: an address that may
  // not be shown.
  [[nodiscard]] Result<Field> Make(const FieldSpec& spec) const;

  // Makes a field of the argument itself; pointers become addresses.
  [[nodiscard]] Result<Field> MakeArgument(uint32_t number) const;

 private:
  [[nodiscard]] Result<Place> Find(const FieldSpec& spec) const;
  [[nodiscard]] bool HidesTask(uint32_t number) const;
  void MarkLoads(Place* place) const;
  [[nodiscard]] Result<Field> MakeAt(const FieldSpec& spec, Place place) const;
  [[nodiscard]] Result<Field> MakeInteger(const FieldSpec& spec, Place place,
                                          const BtfType& type) const;
  [[nodiscard]] Result<Field> MakePointer(const FieldSpec& spec, Place place,
                                          const BtfType& type) const;
  [[nodiscard]] Result<Field> MakeArray(const FieldSpec& spec, Place place,
                                        const BtfType& type) const;
  [[nodiscard]] Result<std::vector<FetchStep>> CountBy(const FieldSpec& spec,
                                                       const Path& path) const;
  [[nodiscard]] Result<Field> MakeWithin(const FieldSpec& spec, const Path& length,
                                         Place place) const;
  [[nodiscard]] Result<Field> MakeUnixPath(const FieldSpec& spec, Place place) const;
  [[nodiscard]] Result<Field> MakeCounted(const FieldSpec& spec, const Path& count,
                                          Place place) const;
  [[nodiscard]] Result<Field> MakeSequence(const FieldSpec& spec, Place place) const;
  [[nodiscard]] Result<Field> MakeEach(const FieldSpec& spec, Place place) const;
  [[nodiscard]] Result<Field> MakeGather(const FieldSpec& spec, Place place) const;
  [[nodiscard]] bool MayPointToUser(const BtfType& pointer) const;
  [[nodiscard]] bool IsChar(uint32_t type) const;
  [[nodiscard]] std::vector<EnumMapping> LabelsOf(const FieldSpec& spec, const BtfType& type) const;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_FIELD_H_
