// SPDX-License-Identifier: Apache-2.0
// Named places where a test can kill the consumer. In the product they compile to nothing; the library
// weft_consumer_testing is built with WEFT_KILL_POINTS and obeys WEFT_KILL_AT=NAME:COUNT in the
// environment: SIGKILL to itself when NAME is reached for the COUNT-th time. (In the sandbox the very
// call that names itself is the end: the same, with another number of the signal.)
#ifndef WEFT_NODE_AGENT_CONSUMER_KILL_POINT_H_
#define WEFT_NODE_AGENT_CONSUMER_KILL_POINT_H_

namespace weft::consumer {

#ifdef WEFT_KILL_POINTS
void KillPoint(const char* name);
#else
inline void KillPoint(const char* name) { (void)name; }
#endif

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_KILL_POINT_H_
