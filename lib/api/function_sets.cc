// SPDX-License-Identifier: Apache-2.0
// See function_sets.h. Prototypes: POSIX.1-2017, glibc's manual, SSL_read(3ssl) and its neighbours.
//
// No function of the C library is in a table that glibc's posix_spawn calls in its child: dup2,
// fcntl, sigaction, sigprocmask, execve and others. It calls inner versions of open and close.
//
// A variable argument (the mode of open) is not in a table: it may not be there.
#include "lib/api/function_sets.h"

#include <algorithm>
#include <span>
#include <string>

#include "lib/api/value_type.h"

namespace weft::api {
namespace {

struct SetFunction {
  std::string_view name;
  std::string_view returns;    // "": nothing
  std::string_view arguments;  // "NAME:TYPE NAME:TYPE"
  // Its caller is asked for by its return address: the exit is not recorded.
  bool entry_only = false;
};

constexpr SetFunction kMalloc[] = {
    {"malloc", "pointer", "size:uint64"},
    {"calloc", "pointer", "count:uint64 size:uint64"},
    {"realloc", "pointer", "memory:pointer size:uint64"},
    {"reallocarray", "pointer", "memory:pointer count:uint64 size:uint64"},
    {"free", "", "memory:pointer"},
    {"posix_memalign", "int32", "result:pointer alignment:uint64 size:uint64"},
    {"aligned_alloc", "pointer", "alignment:uint64 size:uint64"},
    {"memalign", "pointer", "alignment:uint64 size:uint64"},
    {"valloc", "pointer", "size:uint64"},
    {"pvalloc", "pointer", "size:uint64"},
};

constexpr SetFunction kPthread[] = {
    {"pthread_mutex_lock", "int32", "mutex:pointer"},
    {"pthread_mutex_trylock", "int32", "mutex:pointer"},
    {"pthread_mutex_timedlock", "int32", "mutex:pointer until:pointer"},
    {"pthread_mutex_unlock", "int32", "mutex:pointer"},
    {"pthread_rwlock_rdlock", "int32", "lock:pointer"},
    {"pthread_rwlock_tryrdlock", "int32", "lock:pointer"},
    {"pthread_rwlock_timedrdlock", "int32", "lock:pointer until:pointer"},
    {"pthread_rwlock_wrlock", "int32", "lock:pointer"},
    {"pthread_rwlock_trywrlock", "int32", "lock:pointer"},
    {"pthread_rwlock_timedwrlock", "int32", "lock:pointer until:pointer"},
    {"pthread_rwlock_unlock", "int32", "lock:pointer"},
    {"pthread_spin_lock", "int32", "lock:pointer"},
    {"pthread_spin_trylock", "int32", "lock:pointer"},
    {"pthread_spin_unlock", "int32", "lock:pointer"},
    {"pthread_cond_wait", "int32", "condition:pointer mutex:pointer"},
    {"pthread_cond_timedwait", "int32", "condition:pointer mutex:pointer until:pointer"},
    {"pthread_cond_signal", "int32", "condition:pointer"},
    {"pthread_cond_broadcast", "int32", "condition:pointer"},
    {"pthread_barrier_wait", "int32", "barrier:pointer"},
    {"sem_wait", "int32", "semaphore:pointer"},
    {"sem_trywait", "int32", "semaphore:pointer"},
    {"sem_timedwait", "int32", "semaphore:pointer until:pointer"},
    {"sem_post", "int32", "semaphore:pointer"},
    {"pthread_create", "int32", "thread:pointer attributes:pointer start:pointer argument:pointer"},
    {"pthread_join", "int32", "thread:uint64 result:pointer"},
    {"pthread_detach", "int32", "thread:uint64"},
};

constexpr SetFunction kDl[] = {
    {"dlopen", "pointer", "file:string mode:int32", true},
    {"dlmopen", "pointer", "space:int64 file:string mode:int32", true},
    {"dlsym", "pointer", "handle:pointer name:string", true},
    {"dlvsym", "pointer", "handle:pointer name:string version:string", true},
    {"dlclose", "int32", "handle:pointer"},
};

constexpr SetFunction kIo[] = {
    {"open", "int32", "path:string flags:int32"},
    {"openat", "int32", "folder:int32 path:string flags:int32"},
    {"creat", "int32", "path:string mode:uint32"},
    {"close", "int32", "fd:int32"},
    {"read", "int64", "fd:int32 buffer:pointer size:uint64"},
    {"write", "int64", "fd:int32 buffer:pointer size:uint64"},
    {"pread", "int64", "fd:int32 buffer:pointer size:uint64 offset:int64"},
    {"pwrite", "int64", "fd:int32 buffer:pointer size:uint64 offset:int64"},
    {"readv", "int64", "fd:int32 parts:pointer count:int32"},
    {"writev", "int64", "fd:int32 parts:pointer count:int32"},
    {"lseek", "int64", "fd:int32 offset:int64 whence:int32"},
    {"ftruncate", "int32", "fd:int32 size:int64"},
    {"fsync", "int32", "fd:int32"},
    {"fdatasync", "int32", "fd:int32"},
    {"socket", "int32", "domain:int32 type:int32 protocol:int32"},
    {"connect", "int32", "fd:int32 address:pointer size:uint32"},
    {"bind", "int32", "fd:int32 address:pointer size:uint32"},
    {"listen", "int32", "fd:int32 backlog:int32"},
    {"accept", "int32", "fd:int32 address:pointer size:pointer"},
    {"accept4", "int32", "fd:int32 address:pointer size:pointer flags:int32"},
    {"shutdown", "int32", "fd:int32 how:int32"},
    {"send", "int64", "fd:int32 buffer:pointer size:uint64 flags:int32"},
    {"sendto", "int64",
     "fd:int32 buffer:pointer size:uint64 flags:int32 address:pointer address_size:uint32"},
    {"sendmsg", "int64", "fd:int32 message:pointer flags:int32"},
    {"recv", "int64", "fd:int32 buffer:pointer size:uint64 flags:int32"},
    {"recvfrom", "int64",
     "fd:int32 buffer:pointer size:uint64 flags:int32 address:pointer address_size:pointer"},
    {"recvmsg", "int64", "fd:int32 message:pointer flags:int32"},
    {"poll", "int32", "fds:pointer count:uint64 timeout:int32"},
    {"epoll_wait", "int32", "fd:int32 events:pointer count:int32 timeout:int32"},
    {"fopen", "pointer", "path:string mode:string"},
    {"fclose", "int32", "stream:pointer"},
    {"fread", "uint64", "buffer:pointer size:uint64 count:uint64 stream:pointer"},
    {"fwrite", "uint64", "buffer:pointer size:uint64 count:uint64 stream:pointer"},
    {"fflush", "int32", "stream:pointer"},
};

// What is sent and received is not recorded: it may be secret, and a rule can ask for it.
constexpr SetFunction kSsl[] = {
    {"SSL_new", "pointer", "context:pointer"},
    {"SSL_free", "", "ssl:pointer"},
    {"SSL_set_fd", "int32", "ssl:pointer fd:int32"},
    {"SSL_connect", "int32", "ssl:pointer"},
    {"SSL_accept", "int32", "ssl:pointer"},
    {"SSL_do_handshake", "int32", "ssl:pointer"},
    {"SSL_read", "int32", "ssl:pointer buffer:pointer size:int32"},
    {"SSL_read_ex", "int32", "ssl:pointer buffer:pointer size:uint64 done:pointer"},
    {"SSL_peek", "int32", "ssl:pointer buffer:pointer size:int32"},
    {"SSL_write", "int32", "ssl:pointer buffer:pointer size:int32"},
    {"SSL_write_ex", "int32", "ssl:pointer buffer:pointer size:uint64 done:pointer"},
    {"SSL_shutdown", "int32", "ssl:pointer"},
};

// Files in which the functions are. Before glibc 2.34, some were in libraries beside libc, and the
// files had the version in their names. musl is one file, which is its dynamic loader, too.
constexpr std::string_view kMallocObjects[] = {
    "libc.so*", "libc-2.*", "ld-musl-*", "libjemalloc.so*", "libtcmalloc*.so*", "libmimalloc.so*"};
constexpr std::string_view kPthreadObjects[] = {"libc.so*", "libc-2.*", "ld-musl-*",
                                                "libpthread.so*", "libpthread-2.*"};
constexpr std::string_view kDlObjects[] = {"libc.so*", "libc-2.*", "ld-musl-*", "libdl.so*",
                                           "libdl-2.*"};
constexpr std::string_view kSslObjects[] = {"libssl.so*"};

struct Set {
  std::span<const SetFunction> functions;
  std::span<const std::string_view> objects;
};

Set Find(FunctionSet set) {
  switch (set) {
    case FunctionSet::kMalloc:
      return {kMalloc, kMallocObjects};
    case FunctionSet::kPthread:
      return {kPthread, kPthreadObjects};
    case FunctionSet::kDl:
      return {kDl, kDlObjects};
    case FunctionSet::kIo:
      return {kIo, kPthreadObjects};
    case FunctionSet::kSsl:
      return {kSsl, kSslObjects};
  }
  return {};
}

ValueType TypeNamed(std::string_view name) {
  return static_cast<ValueType>(std::ranges::find(kValueTypes, name) - kValueTypes.begin());
}

std::vector<FunctionArg> Arguments(std::string_view text) {
  std::vector<FunctionArg> args;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const size_t colon = part.find(':');
    args.push_back(
        {.name = std::string(part.substr(0, colon)), .type = TypeNamed(part.substr(colon + 1))});
  }
  return args;
}

}  // namespace

std::vector<FunctionRule> ExpandSet(const FunctionRule& rule) {
  if (!rule.set) return {rule};
  const Set set = Find(*rule.set);
  std::vector<std::string> objects(set.objects.begin(), set.objects.end());
  if (!rule.object.empty()) objects = {rule.object};
  std::vector<FunctionRule> rules;
  for (const SetFunction& function : set.functions) {
    FunctionRule one = rule;
    one.name = function.name;
    one.args = Arguments(function.arguments);
    if (!function.returns.empty()) one.returns = TypeNamed(function.returns);
    if (function.entry_only)
      one.record = {FunctionMoment::kEntry};
    else if (rule.record.empty())
      one.record = {FunctionMoment::kCall};
    for (const std::string& object : objects) {
      one.object = object;
      rules.push_back(one);
    }
  }
  return rules;
}

bool IsOfCLibrarySet(std::string_view function) {
  for (const FunctionSet set :
       {FunctionSet::kMalloc, FunctionSet::kPthread, FunctionSet::kDl, FunctionSet::kIo})
    if (std::ranges::find(Find(set).functions, function, &SetFunction::name) !=
        Find(set).functions.end())
      return true;
  return false;
}

}  // namespace weft::api
