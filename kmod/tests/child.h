// SPDX-License-Identifier: GPL-2.0-only
// For tests: processes that take on a state that the test itself must not have, such as other
// namespaces or other users. For tests without other threads.
#ifndef WEFT_KMOD_TESTS_CHILD_H_
#define WEFT_KMOD_TESTS_CHILD_H_

#include <cstdint>
#include <functional>

namespace weft::kmod {

// Runs `body` in a child and waits for its end. True: the body said so.
bool InChild(const std::function<bool()>& body);

// Like InChild, in a child that is in a new user namespace. Ids 0 to 999 there are `first_uid` and
// `first_gid` and the following ids. The child is root there.
bool InUserNamespace(uint32_t first_uid, uint32_t first_gid, const std::function<bool()>& body);

}  // namespace weft::kmod

#endif  // WEFT_KMOD_TESTS_CHILD_H_
