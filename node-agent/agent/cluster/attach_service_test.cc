// SPDX-License-Identifier: Apache-2.0
// Which processes get the library, and what is told of those that refuse it. Processes are real,
// their places are the test's, and "loading" lets a process map a file of that name.
#include "node-agent/agent/cluster/attach_service.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <set>

namespace weft::agent {
namespace {

constexpr auto kPatience = std::chrono::seconds(60);  // only a failure waits for it
const std::string kContainer(64, 'a');

// A child that maps libweft.so when it is told to.
class Process {
 public:
  Process() {
    EXPECT_EQ(pipe(orders_), 0);
    EXPECT_EQ(pipe(answers_), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte = 0;
    while (read(orders_[0], &byte, 1) == 1) {
      const int library = memfd_create("libweft.so", 0);
      if (ftruncate(library, 4096) != 0 ||
          mmap(nullptr, 4096, PROT_READ, MAP_SHARED, library, 0) == MAP_FAILED ||
          write(answers_[1], &byte, 1) != 1)
        break;
    }
    _exit(0);
  }
  ~Process() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int fd : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(fd);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] int32_t pid() const { return pid_; }
  Status Load() const {
    char byte = 0;
    const bool done = write(orders_[1], &byte, 1) == 1 && read(answers_[0], &byte, 1) == 1;
    return done ? Status() : Fail(ErrorCode::kNotFound, "it ended");
  }

 private:
  int32_t pid_ = 0;
  int orders_[2] = {};
  int answers_[2] = {};
};

class Attach : public testing::Test {
 protected:
  static bool WaitFor(const std::function<bool()>& what) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!what()) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(1000);
    }
    return true;
  }
  AttachService::PlaceOf Places() {
    return [this](int32_t pid) -> std::optional<CgroupPlace> {
      const auto found = places_.find(pid);
      return found == places_.end() ? std::nullopt : std::optional(found->second);
    };
  }

  std::map<int32_t, CgroupPlace> places_;  // before SetContainers
};

TEST_F(Attach, ProcessesOfTheContainersGetTheLibraryAndNoOthers) {
  const Process one, of_another_pod, of_the_node;
  places_ = {{one.pid(), {"pod", kContainer}}, {of_another_pod.pid(), {"other", kContainer}}};
  std::mutex mutex;
  std::set<int32_t> asked;
  AttachService service(Places(), [&](int32_t pid, const CgroupPlace& place) {
    const std::lock_guard lock(mutex);
    asked.insert(pid);
    EXPECT_EQ(place.pod_uid, "pod");
    return one.Load();
  });
  service.SetContainers({{kContainer, "pod"}});
  std::vector<int32_t> changed;
  ASSERT_TRUE(WaitFor([&] {
    changed = service.TakeChanged();
    return !changed.empty();
  }));
  EXPECT_EQ(changed, std::vector<int32_t>{one.pid()});
  ASSERT_TRUE(WaitFor([&] { return service.is_settled(); }));
  EXPECT_TRUE(service.TakeChanged().empty());
  EXPECT_EQ(service.Outcomes().at(kContainer), (AttachService::Outcome{1, {}}));
  service.SetContainers({});
  ASSERT_TRUE(WaitFor([&] { return service.is_settled() && service.Outcomes().empty(); }));
  const std::lock_guard lock(mutex);
  EXPECT_EQ(asked, std::set<int32_t>{one.pid()});
}

TEST_F(Attach, ARefusalIsToldWithItsReasonUntilItPasses) {
  const Process one, two;
  places_ = {{one.pid(), {"pod", kContainer}}, {two.pid(), {"pod", kContainer}}};
  std::atomic<bool> refuses{true};
  AttachService service(Places(), [&](int32_t pid, const CgroupPlace&) -> Status {
    if (refuses)
      return Fail(ErrorCode::kPermission, "process " + std::to_string(1000 + pid) + " traces it");
    return (pid == one.pid() ? one : two).Load();
  });
  service.SetContainers({{kContainer, "pod"}});
  ASSERT_TRUE(WaitFor([&] { return service.is_settled(); }));
  EXPECT_EQ(service.Outcomes().at(kContainer),
            (AttachService::Outcome{0, {{"a process traces it", 2}}}));
  refuses = false;
  EXPECT_TRUE(
      WaitFor([&] { return service.Outcomes().at(kContainer) == AttachService::Outcome{2, {}}; }));
}

TEST_F(Attach, WhatAnEarlierAgentLeftIsEndedOnce) {
  const Process one;
  ASSERT_TRUE(one.Load());
  places_ = {{one.pid(), {"pod", kContainer}}};
  std::atomic<int> looks{0}, loads{0};
  AttachService service(
      [&](int32_t pid) {
        looks += pid == one.pid() ? 1 : 0;
        return Places()(pid);
      },
      [&](int32_t, const CgroupPlace&) -> Status {
        if (++loads == 1) return Fail(ErrorCode::kPermission, "process 7 traces it");
        return {};
      });
  service.SetContainers({{kContainer, "pod"}});
  ASSERT_TRUE(
      WaitFor([&] { return service.Outcomes()[kContainer] == AttachService::Outcome{1, {}}; }));
  const int looked = looks;
  ASSERT_TRUE(WaitFor([&] { return looks > looked + 1; }));
  EXPECT_EQ(loads, 2);
  EXPECT_EQ(service.TakeChanged(), std::vector<int32_t>{one.pid()});
}

// It may have been given back what the library changed in it.
TEST_F(Attach, AContainerThatWasLeftOutIsLoadedAgain) {
  const Process one;
  ASSERT_TRUE(one.Load());
  places_ = {{one.pid(), {"pod", kContainer}}};
  std::atomic<int> loads{0};
  AttachService service(Places(), [&](int32_t, const CgroupPlace&) -> Status {
    ++loads;
    return {};
  });
  service.SetContainers({{kContainer, "pod"}});
  ASSERT_TRUE(WaitFor([&] {
    (void)service.TakeChanged();
    return service.is_settled();
  }));
  ASSERT_EQ(loads, 1);
  service.SetContainers({});
  service.SetContainers({{kContainer, "pod"}});
  EXPECT_TRUE(WaitFor([&] { return loads == 2; }));
}

// A library that is loaded after its container was left out would record nothing.
TEST_F(Attach, NothingIsLoadedOnceTheContainerIsLeftOut) {
  const Process one, two;
  places_ = {{one.pid(), {"pod", kContainer}}, {two.pid(), {"pod", kContainer}}};
  std::atomic<int> loads{0};
  std::promise<void> begun, left_out;
  AttachService service(Places(), [&](int32_t pid, const CgroupPlace&) -> Status {
    if (++loads == 1) {
      begun.set_value();
      left_out.get_future().wait();
    }
    return (pid == one.pid() ? one : two).Load();
  });
  service.SetContainers({{kContainer, "pod"}});
  begun.get_future().wait();
  service.SetContainers({});
  left_out.set_value();
  size_t changed = 0;
  EXPECT_TRUE(WaitFor([&] {
    changed += service.TakeChanged().size();
    return service.is_settled();
  }));
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(changed, 1u);  // it is told, so that it is given back
}

TEST_F(Attach, AProcessThatDoesNotAnswerHoldsUpItsPodOnly) {
  const Process one, two, of_another_pod;
  const std::string other(64, 'b');
  places_ = {{one.pid(), {"pod", kContainer}},
             {two.pid(), {"pod", kContainer}},
             {of_another_pod.pid(), {"other", other}}};
  std::promise<void> answer;
  // Ones: loads that have begun; tens: those that have ended. The one that came late is made again.
  const auto counts = std::make_shared<std::atomic<int>>();
  const auto load = [&, counts, answered = answer.get_future().share()](
                        int32_t pid, const CgroupPlace& place) -> Status {
    if (place.pod_uid == "other") return of_another_pod.Load();
    if (++*counts == 1) answered.wait();
    const Status loaded = (pid == one.pid() ? one : two).Load();
    *counts += 10;
    return loaded;
  };
  AttachService service(Places(), load, std::chrono::milliseconds(100));
  service.SetContainers({{kContainer, "pod"}, {other, "other"}});
  ASSERT_TRUE(WaitFor([&] {
    (void)service.TakeChanged();
    return service.is_settled() && service.Outcomes().at(other).with_library == 1;
  }));
  EXPECT_EQ(service.Outcomes().at(kContainer).refused.size(), 1u);
  EXPECT_EQ(*counts, 1);
  answer.set_value();
  EXPECT_TRUE(WaitFor([&] {
    return service.Outcomes().at(kContainer) == AttachService::Outcome{2, {}} && *counts >= 33;
  }));
}

TEST_F(Attach, ALoadThatEndsLateIsToldWhenItsContainerIsLeftOut) {
  const Process one;
  places_ = {{one.pid(), {"pod", kContainer}}};
  std::promise<void> answer;
  const auto load = [&, answered = answer.get_future().share()](int32_t, const CgroupPlace&) {
    answered.wait();
    return one.Load();
  };
  AttachService service(Places(), load, std::chrono::milliseconds(100));
  const auto is_settled = [&] { return service.is_settled(); };
  service.SetContainers({{kContainer, "pod"}});
  ASSERT_TRUE(WaitFor(is_settled));
  service.SetContainers({});
  ASSERT_TRUE(WaitFor(is_settled));
  EXPECT_FALSE(service.is_done());
  EXPECT_TRUE(service.TakeChanged().empty());
  const uint64_t news = service.news();
  answer.set_value();
  ASSERT_TRUE(WaitFor([&] { return service.news() != news; }));
  EXPECT_EQ(service.TakeChanged(), std::vector<int32_t>{one.pid()});
  EXPECT_TRUE(service.is_done());
}

TEST_F(Attach, AServiceEndsWhileAProcessDoesNotAnswer) {
  const Process one;
  places_ = {{one.pid(), {"pod", kContainer}}};
  std::promise<void> answer;
  const auto begun = std::make_shared<std::atomic<bool>>();
  {
    AttachService service(
        Places(),
        [begun, answered = answer.get_future().share()](int32_t, const CgroupPlace&) -> Status {
          *begun = true;
          answered.wait();
          return Fail(ErrorCode::kNotFound, "it ended");
        });
    service.SetContainers({{kContainer, "pod"}});
    ASSERT_TRUE(WaitFor([&] { return begun->load(); }));
  }
  answer.set_value();
}

}  // namespace
}  // namespace weft::agent
