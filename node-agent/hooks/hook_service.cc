// SPDX-License-Identifier: Apache-2.0
// See hook_service.h.
#include "node-agent/hooks/hook_service.h"

#include <dirent.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "lib/abi/control.h"
#include "lib/abi/hooks.h"
#include "lib/base/background.h"
#include "lib/event/match.h"
#include "lib/ipc/local_socket.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

constexpr size_t kNamedFunctions = 4;  // in a line of the summary

std::vector<int32_t> AllProcesses() {
  std::vector<int32_t> pids;
  DIR* dir = opendir("/proc");
  if (dir == nullptr) return pids;
  while (const dirent* entry = readdir(dir)) {
    int32_t pid = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr == end && pid > 0) pids.push_back(pid);
  }
  closedir(dir);
  return pids;
}

uint64_t NumberOf(const std::vector<LoadedObject>& objects) {
  std::string text;
  for (const LoadedObject& object : objects)
    text += object.name + "\n" + std::to_string(object.begin) + " " + std::to_string(object.inode) +
            "\n";
  return weft_fnv1a64(text.data(), text.size());
}

std::string Quoted(const HookRule& rule) {
  std::string text = "Trace \"" + rule.trace + "\": function \"" + rule.rule.name + "\"";
  if (!rule.rule.object.empty()) text += " of \"" + rule.rule.object + "\"";
  return text;
}

// Returns the part of a line that tells where types are from; "": all are the Trace's.
std::string TypesText(const std::map<std::pair<std::string, std::string>, TypeSource>& functions) {
  const auto count = [&](TypeSource wanted) {
    return std::ranges::count_if(functions, [&](const auto& f) { return f.second == wanted; });
  };
  std::string text;
  const auto add = [&text](auto number, const std::string& what) {
    if (number == 0) return;
    text += text.empty() ? "; arguments " : ", ";
    text.append("of ").append(std::to_string(number)).append(" ").append(what);
  };
  add(count(TypeSource::kDebugInformation), "as their debug information says");
  add(count(TypeSource::kRegisters), "as words of registers, since their types are not known");
  return text;
}

}  // namespace

HookService::~HookService() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Status HookService::Start(const std::string& folder, const std::string& control) {
  struct stat st{};
  const std::string path = folder + "/" + control;
  if (stat(path.c_str(), &st) != 0) return FailErrno(path);
  control_ = "/" + control;
  control_inode_ = st.st_ino;
  WEFT_ASSIGN(listener_, ipc::ListenAt(folder, WEFT_HOOKS_SOCKET, 0666));
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return FailErrno("eventfd");
  thread_ = ThreadWithoutSignals([this] { Work(); });
  return {};
}

void HookService::SetRules(std::vector<HookRule> rules) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted_number_ != 0 && rules == wanted_) return;
    wanted_ = std::move(rules);
    for (const HookRule& rule : wanted_) hooked_[Quoted(rule)];
    ++wanted_number_;
    settled_ = false;
  }
  eventfd_write(wake_.get(), 1);
}

std::vector<std::string> HookService::TakeNotes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

std::vector<std::string> HookService::Summary() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [rule, functions] : hooked_) {
    const size_t count = functions.size();
    std::string line =
        rule + ": hooked " + std::to_string(count) + (count == 1 ? " function" : " functions");
    size_t named = 0;
    for (const auto& [function_and_object, source] : functions) {
      const auto& [function, object] = function_and_object;
      if (named == kNamedFunctions) {
        line += ", ...";
        break;
      }
      line += named++ == 0 ? ": " : ", ";
      line.append(function).append(" (").append(object).append(")");
    }
    line += TypesText(functions);
    if (const auto hint = hints_.find(rule); count == 0 && hint != hints_.end())
      line += hint->second;
    lines.push_back(line);
  }
  return lines;
}

// --- the thread --------------------------------------------------------------------------------

void HookService::Work() {
  for (bool first = true;; first = false) {
    pollfd waits[] = {{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    if (!first) (void)poll(waits, 2, static_cast<int>(kLookInterval.count()));
    eventfd_t ignored = 0;
    (void)eventfd_read(wake_.get(), &ignored);
    bool changed = false;
    std::vector<HookRule> before;
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
      changed = number_ != wanted_number_;
      if (changed) {
        before = std::exchange(rules_, wanted_);
        number_ = wanted_number_;
        cache_.Clear();
      }
    }
    TakeCalls();
    if (changed || !rules_.empty()) Look(changed);
    if (!changed) continue;
    if (rules_.empty()) NoteUnknown(before);
    const std::lock_guard lock(mutex_);
    if (number_ == wanted_number_) settled_ = true;
  }
}

void HookService::TakeCalls() {
  for (;;) {
    const UniqueFd call(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!call) return;
    ucred who{};
    socklen_t size = sizeof(who);
    if (getsockopt(call.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0) continue;
    Seen& seen = seen_[who.pid];
    seen.is_member = true;
    seen.objects = 0;
    if (!rules_.empty()) LookAt(who.pid, seen, false);
  }
}

void HookService::Look(bool all) {
  const std::vector<int32_t> alive = AllProcesses();
  std::erase_if(seen_, [&](const auto& entry) {
    return std::ranges::find(alive, entry.first) == alive.end();
  });
  for (const int32_t pid : alive) {
    if (pid == getpid()) continue;
    Seen& seen = seen_[pid];
    if (all || seen.is_member || seen.looks < kLooksAtNew) LookAt(pid, seen, all);
    ++seen.looks;
  }
}

bool HookService::IsMember(const std::vector<MappedRange>& ranges) const {
  return std::ranges::any_of(ranges, [this](const MappedRange& range) {
    return range.inode == control_inode_ && range.path.ends_with(control_);
  });
}

void HookService::LookAt(int32_t pid, Seen& seen, bool all) {
  const auto ranges = ReadRanges(pid);
  if (!ranges || !IsMember(*ranges)) {
    seen.is_member = false;
    return;
  }
  const uint64_t objects = NumberOf(ObjectsOf(*ranges));
  const bool changed = !seen.is_member || seen.objects != objects;
  seen.is_member = true;
  seen.objects = objects;
  if (all || changed) Hook(pid);
}

void HookService::Hook(int32_t pid) {
  HookReport report;
  const Status status = HookProcess(pid, rules_, cache_, report);
  Record(pid, status, report);
}

void HookService::Record(int32_t pid, const Status& status, const HookReport& report) {
  const std::lock_guard lock(mutex_);
  if (!status && !rules_.empty())
    Note("process " + std::to_string(pid) +
         ": its functions are not recorded: " + status.error().message);
  if (number_ != wanted_number_) return;
  if (status)
    for (const auto& [place, source] : report.hooked) {
      const auto& [rule, object, function] = place;
      hooked_[Quoted(rules_[rule])].insert_or_assign({function, object}, source);
    }
  for (const auto& [object, why] : report.untyped)
    Note("types of functions of " + object + " are not known: " + why);
  for (const auto& [rule, names] : report.near) {
    NearNames& near = near_names_[Quoted(rules_[rule])];
    near.Offer(names.best());
  }
  for (const std::string& object : report.objects)
    if (objects_.size() < kMaxObjectNames) objects_.insert(object);
  for (const HookRule& rule : rules_) hints_[Quoted(rule)] = Hint(rule);
  // One line for each reason.
  std::map<std::array<std::string, 4>, std::vector<std::string>> reasons;
  for (const RefusedFunction& refused : report.refused)
    reasons[{rules_[refused.rule].trace, refused.exit_only ? "the exit of " : "", refused.object,
             refused.why}]
        .push_back(refused.function);
  for (const auto& [reason, functions] : reasons) {
    const auto& [trace, moment, object, why] = reason;
    std::string what;
    for (size_t i = 0; i < functions.size() && i < kNamedFunctions; ++i)
      what += (i == 0 ? "" : ", ") + functions[i];
    if (functions.size() > kNamedFunctions)
      what += " and " + std::to_string(functions.size() - kNamedFunctions) + " others";
    std::string line = "Trace \"" + trace + "\": ";
    line.append(moment).append(what).append(what.empty() ? "" : " of ").append(object);
    line.append(functions.size() == 1 ? " is" : " are").append(" not recorded: ").append(why);
    Note(line);
  }
}

// Returns the end of a line about a rule that has hooked nothing.
std::string HookService::Hint(const HookRule& rule) const {
  const std::string& pattern = rule.rule.object;
  if (!pattern.empty() && std::ranges::none_of(objects_, [&](const std::string& object) {
        return weft_glob_match_str(pattern.c_str(), object.c_str());
      })) {
    NearNames near(pattern);
    for (const std::string& object : objects_) {
      near.Offer(object, "");
      // libx.so.1.2 is near to libx.so*, too.
      if (const size_t at = object.find(".so."); at != std::string::npos)
        near.Offer(object.substr(0, at + 3), "");
    }
    return "; no process has loaded a file \"" + pattern + "\"" + DidYouMean(near.best());
  }
  const auto near = near_names_.find(Quoted(rule));
  if (near == near_names_.end() || near->second.best().empty()) return "";
  return "; there is no such function" + DidYouMean(near->second.best());
}

void HookService::Note(const std::string& text) {
  if (noted_.size() < kMaxNotes && noted_.insert(text).second) notes_.push_back(text);
}

void HookService::NoteUnknown(const std::vector<HookRule>& rules) {
  const std::lock_guard lock(mutex_);
  for (const HookRule& rule : rules)
    if (hooked_[Quoted(rule)].empty())
      Note(Quoted(rule) + ": no function that it means was hooked in any process" +
           (hints_[Quoted(rule)].empty() ? "; see nm -C or nm -D for the names in a file"
                                         : hints_[Quoted(rule)]));
}

}  // namespace weft::hooks
