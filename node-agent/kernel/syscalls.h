// SPDX-License-Identifier: Apache-2.0
// The system calls of a kernel, and how each is recorded: as an event at its entry and one at its
// exit.
//
// Sources: the catalogue has the numbers, which the kernel never changes. BTF shows whether a call
// exists, by its function (__x64_sys_NAME, __do_sys_NAME). Parameters come from tracefs
// (events/syscalls), else from a function of the call in BTF; else they are six words without
// names.
//
// Names are those of the functions, as in LTTng and tracefs (newfstat); Match also accepts those
// of the tables (fstat). Events are syscall_entry_NAME and syscall_exit_NAME. The events of 32-bit
// programs begin with compat_syscall_entry_ and compat_syscall_exit_: their arguments are 32 bits
// wide, and structures behind them have the layouts of 32-bit programs. Parameters are read when a
// call is resolved: to open a file of tracefs for each of some 700 calls would take an emulated
// machine with a slow kernel longer than the keeper waits for a heartbeat. Thread-safety:
// immutable after Load.
#ifndef WEFT_NODE_AGENT_KERNEL_SYSCALLS_H_
#define WEFT_NODE_AGENT_KERNEL_SYSCALLS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node-agent/kernel/field.h"
#include "node-agent/kernel/multiplexed_syscalls.h"
#include "node-agent/kernel/resolve.h"
#include "node-agent/kernel/syscall_format.h"

namespace weft::kernel {

struct Syscall {
  std::string name;  // of the function
  std::string table_name;
  uint32_t number = 0;
  bool compat = false;
  const MultiplexedSyscall* by = nullptr;  // made through another call, whose number that is
};

class Syscalls {
 public:
  // `tracefs`: the place of that file system; empty, or without files: it is not used. `btf` and
  // `catalogue` must live as long as the result. `features`: those of weft.ko (enum
  // weft_kernel_feature). Fields whose programs need other features are left out. kUnsupported: the
  // catalogue does not have this machine's numbers.
  static Result<Syscalls> Load(const Btf& btf, const Catalogue& catalogue,
                               const std::string& tracefs, uint32_t features = UINT32_MAX);

  [[nodiscard]] const std::vector<Syscall>& all() const { return all_; }

  // Returns the calls that a rule matches. Pattern and exclusions are star patterns over either
  // name, or a number, in decimal, of 64-bit programs' calls. Calls that 32-bit programs make
  // through another call are included, as calls of their own, unless the pattern matches that other
  // call.
  [[nodiscard]] std::vector<const Syscall*> Match(const std::string& pattern,
                                                  const std::vector<std::string>& exclusions) const;

  // Does a rule mean calls of numbers that none of all() has? Their name is "unknown".
  [[nodiscard]] static bool MeansUnknown(const std::string& pattern,
                                         const std::vector<std::string>& exclusions);
  // Returns the events of calls with unknown numbers, of 64-bit and of 32-bit programs.
  [[nodiscard]] Result<std::vector<Resolved>> ResolveUnknown() const;

  // Does the kernel have a function for a call of this name, but the catalogue no number?
  [[nodiscard]] bool LacksNumberOf(const std::string& name) const;

  // `buffer_bytes`: how many bytes that a call reads or writes are recorded as well; 0: only the
  // buffer's address.
  [[nodiscard]] Result<Resolved> ResolveEntry(const Syscall& call, uint32_t buffer_bytes = 0) const;
  [[nodiscard]] Result<Resolved> ResolveExit(const Syscall& call, uint32_t buffer_bytes = 0) const;

 private:
  Syscalls(const Btf& btf, const Catalogue& catalogue, std::string tracefs)
      : btf_(&btf), catalogue_(&catalogue), tracefs_(std::move(tracefs)) {}

  void Add(const SyscallNumber& number, bool compat);
  void AddMultiplexed();
  [[nodiscard]] Result<Resolved> ResolveUnknown(bool compat, bool exit) const;
  [[nodiscard]] std::vector<SyscallParameter> ParametersOf(const std::string& function) const;
  [[nodiscard]] std::vector<SyscallParameter> CompatParametersOf(const std::string& function) const;
  [[nodiscard]] Result<Field> MakeField(const Syscall& call, const FieldMaker& maker,
                                        FieldSpec spec) const;
  [[nodiscard]] std::vector<Argument> ArgumentsOf(const std::vector<SyscallParameter>& parameters,
                                                  bool exit) const;
  [[nodiscard]] uint32_t TypeOf(const SyscallParameter& parameter) const;
  [[nodiscard]] Result<Resolved> Resolve(const Syscall& call, bool exit,
                                         uint32_t buffer_bytes) const;

  bool has_parts_ = true;
  bool has_socket_addresses_ = true;
  const Btf* btf_;
  const Catalogue* catalogue_;
  std::string tracefs_;
  std::vector<Syscall> all_;
  std::vector<Syscall> multiplexed_;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_SYSCALLS_H_
