// SPDX-License-Identifier: Apache-2.0
// See hook_service.h.
#include "node-agent/hooks/hook_service.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "lib/abi/control.h"
#include "lib/abi/hooks.h"
#include "lib/api/function_sets.h"
#include "lib/base/background.h"
#include "lib/base/processes.h"
#include "lib/event/text.h"
#include "lib/ipc/local_socket.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

// A busy machine may load the library and look at a process only after a short recording has ended.
constexpr const char* kNotLooked =
    "; no process was ready to be hooked so far (if one ran: record longer)";
constexpr size_t kNamedFunctions = 4;  // in a line of the summary

uint64_t NumberOf(const std::vector<LoadedObject>& objects) {
  std::string text;
  for (const LoadedObject& object : objects)
    text += object.name + "\n" + std::to_string(object.begin) + " " + std::to_string(object.inode) +
            "\n";
  return weft_fnv1a64(text.data(), text.size());
}

// The kernel numbers anonymous shared memory together with memfds.
bool IsOwnArea(const HookedContainer& container, const MappedRange& range) {
  return container.own_areas.contains(range.inode) &&
         range.end - range.begin == WEFT_CONTROL_TOTAL_BYTES &&
         (range.path == "/memfd:" WEFT_CONTROL_MEMFD_NAME " (deleted)" ||
          range.path == "/dev/zero (deleted)");
}

std::string KeyOf(const HookedContainer& container) {
  return container.pod_uid + "/" + container.control;
}

bool GivesBack(const HookedContainer& container) {
  return container.gives_back && container.rules.empty();
}

std::string Quoted(const HookRule& rule) {
  std::string text = "Trace \"" + rule.trace + "\": ";
  if (rule.rule.set) return text.append("set \"").append(NameOf(*rule.rule.set)).append("\"");
  text += "function \"" + rule.rule.name + "\"";
  if (!rule.rule.object.empty()) text += " of \"" + rule.rule.object + "\"";
  return text;
}

// Returns the number of functions; `wanted`: only of those whose types are from there.
size_t CountOf(const HookedFunctions& functions, std::optional<TypeSource> wanted = std::nullopt) {
  size_t count = 0;
  for (const auto& [name, function] : functions)
    if (!wanted || function.source == *wanted) count += function.addresses;
  return count;
}

// Returns the part of a line that tells where types are from; "": all are the Trace's.
std::string TypesText(const HookedFunctions& functions) {
  const auto count = [&](TypeSource wanted) { return CountOf(functions, wanted); };
  std::string text;
  const auto add = [&text](auto number, const std::string& what) {
    if (number == 0) return;
    text += text.empty() ? "; arguments " : ", ";
    text.append("of ").append(std::to_string(number)).append(" ").append(what);
  };
  add(count(TypeSource::kDebugInformation), "as their debug information says");
  add(count(TypeSource::kServer), "as debug information from a debuginfod server says");
  add(count(TypeSource::kAwaited), "as words of registers, until a debuginfod server answers");
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
  work_.End();
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Result<HookService::Container> HookService::Open(HookedContainer of) {
  if (of.folder.empty()) return Container{.of = std::move(of), .cache = {}};
  struct stat st{};
  const std::string path = of.folder + "/" + of.control;
  if (stat(path.c_str(), &st) != 0) return FailErrno(path);
  std::shared_ptr<UniqueFd>& listener = wanted_listeners_[of.pod_uid];
  if (listener == nullptr) {
    WEFT_ASSIGN(UniqueFd made, ipc::ListenAt(of.folder, WEFT_HOOKS_SOCKET, 0666));
    listener = std::make_shared<UniqueFd>(std::move(made));
  }
  return Container{.of = std::move(of), .inode = st.st_ino};
}

Status HookService::SetContainers(std::vector<HookedContainer> containers) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    std::vector<Container> wanted;
    std::set<std::string> pods;
    for (HookedContainer& one : containers) {
      pods.insert(one.pod_uid);
      const auto before = std::ranges::find_if(
          wanted_, [&](const Container& c) { return KeyOf(c.of) == KeyOf(one); });
      if (before != wanted_.end()) {
        wanted.push_back(*before);
        wanted.back().of.rules = std::move(one.rules);
        wanted.back().of.own_areas = std::move(one.own_areas);
        wanted.back().of.gives_back = one.gives_back;
      } else if (auto opened = Open(std::move(one)); opened) {
        wanted.push_back(std::move(*opened));
      } else {
        status = std::unexpected(opened.error());
      }
    }
    std::erase_if(wanted_listeners_,
                  [&](const auto& entry) { return !pods.contains(entry.first); });
    const auto same = [](const Container& a, const Container& b) {
      return KeyOf(a.of) == KeyOf(b.of) && a.of.rules == b.of.rules &&
             a.of.own_areas == b.of.own_areas && a.of.gives_back == b.of.gives_back;
    };
    if (wanted_number_ != 0 && std::ranges::equal(wanted, wanted_, same)) return status;
    // One cache for all containers with the same rules: many pods have the same files.
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto other = std::ranges::find_if(wanted.begin(), wanted.begin() + i, [&](auto& c) {
        return c.of.rules == wanted[i].of.rules;
      });
      wanted[i].cache =
          other == wanted.begin() + i ? std::make_shared<FunctionCache>() : other->cache;
      for (const HookRule& rule : wanted[i].of.rules) hooked_[Quoted(rule)];
    }
    wanted_ = std::move(wanted);
    ++wanted_number_;
    settled_ = false;
  }
  if (!thread_.joinable()) {
    wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!wake_) return FailErrno("eventfd");
    thread_ = ThreadWithoutSignals([this] { Work(); });
  }
  eventfd_write(wake_.get(), 1);
  return status;
}

std::vector<std::string> HookService::TakeNotes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

std::vector<std::string> HookService::Summary() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> lines;
  for (const auto& [rule, functions] : hooked_) {
    const size_t count = CountOf(functions);
    std::string line =
        rule + ": hooked " + std::to_string(count) + (count == 1 ? " function" : " functions");
    size_t named = 0;
    for (const auto& [function_and_object, hooked] : functions) {
      const auto& [function, object] = function_and_object;
      if (named == kNamedFunctions) {
        line += ", ...";
        break;
      }
      line += named++ == 0 ? ": " : ", ";
      line.append(function).append(" (").append(object).append(")");
    }
    line += TypesText(functions);
    const auto hint = hints_.find(rule);
    if (count == 0) line += hint == hints_.end() ? kNotLooked : hint->second;
    lines.push_back(line);
  }
  return lines;
}

uint64_t HookService::Hooked() const {
  const std::lock_guard lock(mutex_);
  uint64_t count = 0;
  for (const auto& [rule, functions] : hooked_) count += CountOf(functions);
  return count;
}

uint64_t HookService::Searched() const {
  const std::lock_guard lock(mutex_);
  return searched_;
}

std::vector<std::string> HookService::Refusals(const std::string& trace) const {
  const std::lock_guard lock(mutex_);
  const std::string prefix = "Trace \"" + trace + "\": ";
  std::set<std::string> lines;
  for (const auto& [container, texts] : refusals_)
    for (const std::string& text : texts)
      if (text.starts_with(prefix)) lines.insert(text.substr(prefix.size()));
  for (const Container& container : wanted_) {
    if (std::ranges::none_of(container.of.rules,
                             [&](const HookRule& rule) { return rule.trace == trace; }))
      continue;
    // What is not known of an object concerns all Traces.
    if (const auto of = refusals_.find(KeyOf(container.of)); of != refusals_.end())
      std::ranges::copy_if(of->second, std::inserter(lines, lines.end()),
                           [](const std::string& text) { return !text.starts_with("Trace \""); });
    for (const auto& [pid, failure] : failures_)
      if (failure.container == KeyOf(container.of))
        lines.insert("a process of " + container.of.name + ": " + failure.why);
    for (const HookRule& rule : container.of.rules)
      if (const auto of = hooked_.find(Quoted(rule)); rule.trace == trace && of->second.empty() &&
                                                      !refused_.contains(of->first) &&
                                                      !IsCovered(rule))
        lines.insert(Quoted(rule).substr(prefix.size()) + " was found in no process" + Hint(rule));
  }
  return {lines.begin(), lines.end()};
}

// --- the thread --------------------------------------------------------------------------------

void HookService::Work() {
  uint64_t looked = 0;  // the orders for which all processes were looked at
  for (;;) {
    TakeOrders();
    {
      const std::lock_guard lock(mutex_);
      if (ends_) return;
    }
    TakeCalls();
    TakeLate();
    TakeAgain();
    if ((looked != number_ || !changed_.empty() || HasRules()) && !Look()) continue;
    Publish(looked);
    looked = number_;
    Wait();
  }
}

// `looked`: the orders for which all processes were looked at before.
void HookService::Publish(uint64_t looked) {
  const bool has_more = work_.has_late() || !changed_.empty() || !again_.empty();
  if (has_more_.exchange(has_more) && !has_more) ++news_;
  std::set<std::string> late;
  for (const Container& container : containers_)
    if (!MayHook(0, container)) late.insert(container.of.pod_uid);
  const std::lock_guard lock(mutex_);
  if (late != late_pods_) ++news_;
  late_pods_ = std::move(late);
  if (looked == number_) return;
  if (number_ == wanted_number_) settled_ = true;
  ++news_;
}

// A debugger, or a thread that is where nothing may change, may stay for hours, and each try stops
// the process.
void HookService::TakeAgain() {
  const auto now = std::chrono::steady_clock::now();
  for (auto& [container, again] : again_) {
    if (again.is_due || now < again.at) continue;
    again.is_due = true;
    again.pause = std::min<std::chrono::milliseconds>(2 * again.pause, kLongestAgainPause);
    changed_.insert(container);
  }
}

void HookService::Wait() {
  std::vector<pollfd> waits{{wake_.get(), POLLIN, 0}};
  for (const auto& [pod, listener] : listeners_) waits.push_back({listener->get(), POLLIN, 0});
  (void)poll(waits.data(), waits.size(), static_cast<int>(kLookInterval.count()));
  eventfd_t ignored = 0;
  (void)eventfd_read(wake_.get(), &ignored);
}

void HookService::TakeOrders() {
  {
    const std::lock_guard lock(mutex_);
    if (number_ == wanted_number_) return;
    number_ = wanted_number_;
    finished_.clear();
    const bool looks_again = std::exchange(looks_again_, false);
    std::map<std::string, const Container*> before;
    for (const Container& container : containers_) before[KeyOf(container.of)] = &container;
    for (const Container& container : wanted_) {
      const auto old = before.find(KeyOf(container.of));
      const bool has_rules = old != before.end() && old->second->of.rules == container.of.rules;
      if (has_rules && old->second->of.own_areas == container.of.own_areas &&
          old->second->of.gives_back == container.of.gives_back &&
          !(looks_again && GivesBack(container.of) && !again_.contains(KeyOf(container.of))))
        continue;
      changed_.insert(KeyOf(container.of));
      if (!has_rules || old->second->of.gives_back != container.of.gives_back)
        again_.erase(KeyOf(container.of));
      if (has_rules) continue;
      refusals_.erase(KeyOf(container.of));
      for (const HookRule& rule : container.of.rules) {
        refused_.erase(Quoted(rule));
        has_refused_object_.erase(Quoted(rule));
        recorded_as_.erase(Quoted(rule));
      }
    }
    std::erase_if(refusals_, [&](const auto& entry) {
      return std::ranges::none_of(wanted_,
                                  [&](const Container& c) { return KeyOf(c.of) == entry.first; });
    });
    containers_ = wanted_;
    listeners_ = wanted_listeners_;
  }
}

bool HookService::MayBeAt(const std::string& pod_uid) const {
  const std::lock_guard lock(mutex_);
  return !settled_ || late_pods_.contains(pod_uid);
}

void HookService::LookAgain() {
  {
    const std::lock_guard lock(mutex_);
    ++wanted_number_;
    looks_again_ = true;
    settled_ = false;
  }
  eventfd_write(wake_.get(), 1);
}

bool HookService::HasRules() const {
  return std::ranges::any_of(containers_, [](const Container& c) { return !c.of.rules.empty(); });
}

// A process calls because of rules that it has read, which may be newer than those of the last
// TakeOrders.
void HookService::TakeCalls() {
  const Listeners listeners = listeners_;
  for (const auto& [pod, listener] : listeners)
    for (size_t i = 0; i < kCallsAtOnce; ++i) {
      const UniqueFd call(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!call) break;
      ucred who{};
      socklen_t size = sizeof(who);
      if (getsockopt(call.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 0)
        continue;
      TakeOrders();
      Seen& seen = seen_[who.pid];
      seen.is_member = true;
      seen.objects = 0;
      LookAt(who.pid, seen);
    }
}

// Lets all processes that lack debug information be looked at again when a server answered, and
// when it may be asked again.
void HookService::TakeAnswers() {
  if (!server_->is_there()) return;
  const auto now = std::chrono::steady_clock::now();
  const uint64_t answers = server_->answers();
  if (answers == answers_ && now - took_answers_ < kServerPeriod) return;
  answers_ = answers;
  took_answers_ = now;
  std::set<const FunctionCache*> changed;
  for (const Container& container : containers_)
    if (container.cache->ForgetIncomplete()) changed.insert(container.cache.get());
  if (!changed.empty()) finished_.clear();
  const std::lock_guard lock(mutex_);
  for (const Container& container : containers_) {
    if (!changed.contains(container.cache.get())) continue;
    changed_.insert(KeyOf(container.of));
    refusals_.erase(KeyOf(container.of));
  }
}

// False: new orders came meanwhile, and not all processes were looked at.
bool HookService::Look() {
  const uint64_t number = number_;
  TakeAnswers();
  const std::vector<int32_t> alive = AllProcesses();
  std::erase_if(seen_,
                [&](const auto& entry) { return !std::ranges::binary_search(alive, entry.first); });
  {
    const std::lock_guard lock(mutex_);
    const size_t gone =
        std::erase_if(failures_, [&](const auto& entry) { return !seen_.contains(entry.first); });
    if (gone != 0) ++news_;
  }
  for (const int32_t pid : alive) {
    if (pid == getpid()) continue;
    Seen& seen = seen_[pid];
    if (!changed_.empty() || seen.is_member || seen.looks < kLooksAtNew) LookAt(pid, seen);
    ++seen.looks;
    // A process that starts waits for its hooks.
    TakeCalls();
    TakeOrders();
    if (number_ != number) return false;
  }
  changed_.clear();
  finished_.clear();
  std::erase_if(again_, [](const auto& entry) { return entry.second.is_due; });  // it is done
  return true;
}

// nullptr: it is in none of them.
const HookService::Container* HookService::ContainerOf(
    const std::string& pod, const std::vector<MappedRange>& ranges) const {
  for (const Container& container : containers_) {
    if (container.of.pod_uid != pod) continue;
    const std::string name = "/" + container.of.control;
    if (std::ranges::any_of(ranges, [&](const MappedRange& range) {
          return (container.inode != 0 && range.inode == container.inode &&
                  range.path.ends_with(name)) ||
                 IsOwnArea(container.of, range);
        }))
      return &container;
  }
  return nullptr;
}

void HookService::LookAt(int32_t pid, Seen& seen) {
  const bool was_member = std::exchange(seen.is_member, false);
  const auto pod = pod_of_ ? pod_of_(pid) : std::optional<std::string>("");
  if (!pod ||
      std::ranges::none_of(containers_, [&](const Container& c) { return c.of.pod_uid == *pod; }))
    return;
  const auto ranges = ReadRanges(pid);
  const Container* container = ranges ? ContainerOf(*pod, *ranges) : nullptr;
  if (container == nullptr) return;
  const uint64_t objects = NumberOf(ObjectsOf(*ranges));
  // An object that was unloaded and loaded again may have its old address.
  const bool changed = !was_member || seen.objects != objects || !ArePagesOwn(pid, seen.samples);
  seen.is_member = true;
  seen.objects = objects;
  if (changed) seen.samples.clear();
  const bool is_told = changed_.contains(KeyOf(container->of)) && !finished_.contains(pid);
  if ((is_told || (changed && !container->of.rules.empty())) && !Hook(pid, *container, objects)) {
    seen.objects = 0;
    if (!container->of.rules.empty()) return;
    Again& again = again_[KeyOf(container->of)];
    again.is_due = false;
    again.at = std::chrono::steady_clock::now() + again.pause;
  }
}

// Returns false if it is to be tried again. `objects`: the number of those that it had when it was
// found to be one of the container's.
bool HookService::Hook(int32_t pid, const Container& container, uint64_t objects) {
  if (!MayHook(pid, container)) return true;
  const auto outcome =
      work_.Do(pid, {.container = container, .objects = objects},
               [pid, rules = container.of.rules, cache = container.cache, server = server_,
                pod = container.of.pod_uid, gives_back = GivesBack(container.of)] {
                 Outcome of;
                 of.status = gives_back ? UnhookProcess(pid, of.report)
                                        : HookProcess(pid, rules, *cache, of.report,
                                                      {.server = server.get(), .pod = pod});
                 return of;
               });
  if (outcome) return Take(pid, container, objects, *outcome);
  Record(pid, container,
         Fail(ErrorCode::kTimeout,
              "its files or its memory do not answer, as on a FUSE file system whose server hangs; "
              "it is hooked when they do"),
         {});
  const auto used = container.cache;  // the next call changes `container`
  RenewCache(used);
  return true;
}

// A pod has one thread that is left behind, not one for each of its processes.
bool HookService::MayHook(int32_t pid, const Container& container) const {
  if (container.of.pod_uid.empty()) return !work_.IsLate(pid);
  return !work_.AnyLate(
      [&](const Subject& late) { return late.container.of.pod_uid == container.of.pod_uid; });
}

// A cache is for one thread, and the one that was left behind has it.
void HookService::RenewCache(const std::shared_ptr<FunctionCache>& used) {
  const auto renewed = std::make_shared<FunctionCache>();
  for (Container& container : containers_)
    if (container.cache == used) container.cache = renewed;
}

// Takes work whose thread ended after all. Rules may have changed meanwhile, and other processes of
// the pod have waited: all of them are looked at again.
void HookService::TakeLate() {
  for (const auto& [pid, late, outcome] : work_.TakeDone()) {
    const HookedContainer& of = late.container.of;
    const bool is_current = std::ranges::any_of(containers_, [&](const Container& container) {
      return KeyOf(container.of) == KeyOf(of) && container.of.rules == of.rules;
    });
    // What was slow to read is known now.
    for (Container& container : containers_)
      if (container.of.rules == of.rules) container.cache = late.container.cache;
    if (is_current) {
      if (Take(pid, late.container, late.objects, outcome)) finished_.insert(pid);
    } else {
      const std::lock_guard lock(mutex_);
      SetFailure(pid, {});
    }
    for (const Container& container : containers_)
      if (container.of.pod_uid == of.pod_uid) changed_.insert(KeyOf(container.of));
  }
}

// Returns false if it is to be tried again.
bool HookService::Take(int32_t pid, const Container& container, uint64_t objects,
                       const Outcome& outcome) {
  const Status& status = outcome.status;
  if (!status) {
    // Without memory it has ended.
    const auto ranges = ReadRanges(pid);
    if (!ranges || ranges->empty()) return true;
    // It may have executed another program meanwhile, which has loaded nothing yet.
    if (NumberOf(ObjectsOf(*ranges)) != objects) return false;
  }
  Record(pid, container, status, outcome.report);
  if (const auto seen = seen_.find(pid); status && seen != seen_.end()) {
    seen->second.samples.clear();
    for (const auto& [object, function] : outcome.report.samples)
      seen->second.samples.insert(function);
  }
  const bool is_debugged = !status && status.error().code == ErrorCode::kPermission;
  return status || (status.error().code != ErrorCode::kTimeout &&
                    !(is_debugged && container.of.rules.empty()));
}

// Under the lock. True: it is another one than before.
bool HookService::SetFailure(int32_t pid, Failure failure) {
  const auto before = failures_.find(pid);
  if (failure.why.empty() && before == failures_.end()) return false;
  if (before != failures_.end() && before->second == failure) return false;
  ++news_;
  if (failure.why.empty())
    failures_.erase(before);
  else
    failures_.insert_or_assign(pid, std::move(failure));
  return true;
}

void HookService::Record(int32_t pid, const Container& container, const Status& status,
                         const HookReport& report) {
  const std::lock_guard lock(mutex_);
  const std::vector<HookRule>& rules = container.of.rules;
  const bool cannot_stop = !status && (status.error().code == ErrorCode::kPermission ||
                                       status.error().code == ErrorCode::kTimeout);
  const bool is_left = cannot_stop && rules.empty();
  std::string why = status || (rules.empty() && !is_left) ? "" : status.error().message;
  if (is_left) why = "its functions stay changed, but record nothing: " + why;
  const bool is_news = SetFailure(pid, {.container = KeyOf(container.of), .why = why});
  if (is_news && is_left)
    NoteLeft(pid, container, status.error());
  else if (is_news && !why.empty() && !pod_of_)
    Note(container, "process " + std::to_string(pid) + ": its functions are not recorded: " + why);
  if (status && !rules.empty()) ++searched_;
  if (status)
    for (const auto& [place, hooked] : report.hooked) {
      const auto& [rule, object, function] = place;
      HookedFunctions& known = hooked_[Quoted(rules[rule])];
      if (known.size() < kMaxHookedNames || known.contains({function, object}))
        known.insert_or_assign({function, object}, hooked);
    }
  for (const auto& [object, why] : report.untyped)
    Note(container, std::string("types of functions of ")
                        .append(object)
                        .append(" are not all known: ")
                        .append(why));
  for (const auto& [object, why] : report.unnamed)
    Note(container, std::string("functions of ")
                        .append(object)
                        .append(" are those of its own symbols: ")
                        .append(why));
  for (const auto& [rule, names] : report.near) {
    NearNames& near = near_names_[Quoted(rules[rule])];
    near.Offer(names.best());
  }
  for (const auto& [rule, as] : report.recorded_as)
    recorded_as_.insert_or_assign(Quoted(rules[rule]),
                                  EarlierRule{as.name, Covers(rules[as.rule], rules[rule])});
  for (const auto& [rule, object] : report.of_c_library)
    of_c_library_.try_emplace(Quoted(rules[rule]), object);
  for (const std::string& object : report.objects)
    if (objects_.size() < kMaxObjectNames) objects_.insert(object);
  for (const RefusedFunction& refused : report.refused)
    if (refused.function.empty())
      has_refused_object_.insert(Quoted(rules[refused.rule]));
    else if (!refused.exit_only)
      refused_.insert(Quoted(rules[refused.rule]));
  for (const HookRule& rule : rules) hints_[Quoted(rule)] = Hint(rule);
  // One line for each reason.
  std::map<std::array<std::string, 4>, std::vector<std::string>> reasons;
  for (const RefusedFunction& refused : report.refused) {
    std::vector<std::string>& functions =
        reasons[{rules[refused.rule].trace, refused.exit_only ? "the exit of " : "", refused.object,
                 refused.why}];
    if (!refused.function.empty()) functions.push_back(refused.function);  // else all of the object
  }
  for (const auto& [reason, functions] : reasons) {
    const auto& [trace, moment, object, why] = reason;
    std::string what;
    for (size_t i = 0; i < functions.size() && i < kNamedFunctions; ++i)
      what += (i == 0 ? "" : ", ") + functions[i];
    if (functions.size() > kNamedFunctions)
      what += " and " + std::to_string(functions.size() - kNamedFunctions) + " others";
    std::string line = "Trace \"" + trace + "\": ";
    line.append(moment).append(what).append(what.empty() ? "" : " of ").append(object);
    line.append(functions.size() <= 1 ? " is" : " are").append(" not recorded: ").append(why);
    Note(container, line);
  }
}

// Does an earlier rule record what this one asks for, in the same Trace? Under the lock.
bool HookService::IsCovered(const HookRule& rule) const {
  const auto as = recorded_as_.find(Quoted(rule));
  return as != recorded_as_.end() && as->second.covers_it;
}

// Returns the end of a line about a rule that has hooked nothing.
std::string HookService::Hint(const HookRule& rule) const {
  const std::string& pattern = rule.rule.object;
  // Another line has the reason.
  if (refused_.contains(Quoted(rule))) return "";
  if (rule.rule.set) return "; no process has loaded a library that has its functions";
  if (!pattern.empty() && std::ranges::none_of(objects_, [&](const std::string& object) {
        return MeansObject(pattern, object);
      })) {
    NearNames near(pattern);
    for (const std::string& object : objects_) {
      near.Offer(object, "");
      // libx.so.1.2 is near to libx.so*, too.
      if (const size_t at = object.find(".so."); at != std::string::npos)
        near.Offer(object.substr(0, at + 3), "");
    }
    return "; no process has loaded a file \"" + pattern + "\"" +
           (near.best().empty() ? " (names of links do not count: see readlink -f)"
                                : DidYouMean(near.best()));
  }
  if (const auto as = recorded_as_.find(Quoted(rule)); as != recorded_as_.end())
    return "; an earlier rule has this function already, as " + as->second.name;
  if (const auto of = of_c_library_.find(Quoted(rule)); of != of_c_library_.end())
    return "; " + of->second +
           " has it, but it is of the C library and in no set: only functions of the sets malloc, "
           "pthread, dl and io are recorded there";
  const auto near = near_names_.find(Quoted(rule));
  if (near == near_names_.end() || near->second.best().empty())
    return has_refused_object_.contains(Quoted(rule))
               ? "; no other file that a process loaded has it"
               : "; no file that a process loaded has it (see nm -C or nm -D)";
  return "; there is no such function" + DidYouMean(near->second.best());
}

// Under the lock. No Trace's status tells of it: none records functions of the process any more.
void HookService::NoteLeft(int32_t pid, const Container& container, const Error& error) {
  const std::string process = "process " + std::to_string(pid);
  const std::string text =
      "functions of " + process + " stay changed, but record nothing: " + error.message;
  if (!pod_of_)
    Note(container, text + "; to give them back, record the process once more (--pid " +
                        std::to_string(pid) + ") when no debugger has it");
  else if (error.code == ErrorCode::kPermission && notes_.size() < kMaxNotes)
    notes_.push_back(Printable(container.of.name + ": " + text + "; weft tries again"));
}

// Under the lock.
void HookService::Note(const Container& container, const std::string& line) {
  const std::string text = Printable(line);  // it may have a path
  if (!pod_of_ && noted_.size() < kMaxNotes && noted_.insert(text).second) notes_.push_back(text);
  std::set<std::string>& refusals = refusals_[KeyOf(container.of)];
  if (refusals.size() < kMaxNotes && refusals.insert(text).second) ++news_;
}

}  // namespace weft::hooks
