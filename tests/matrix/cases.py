# SPDX-License-Identifier: Apache-2.0
"""The table of the matrix. A case is one program with its arguments; matrix.py says what is compared.

Words in `argv`: {bin} the folder of the flavour's programs, {programs} that of all flavours. `books` is
what is expected of emitted, recorded and discarded with events enabled:
  exact    recorded + discarded = emitted
  killed   the same, but for what the program says was left unfinished: at most so many more
  all      recorded = emitted, nothing discarded
  some     something was recorded, and not more than was emitted: the comment says why not exactly
  none     nothing reaches a ring: the comment says why
  named    no ring set can be made: its name is told
  any      not compared: the program cannot know how much it emitted
"""

import dataclasses

GLIBC = ("glibc",)
BOTH = ("glibc", "musl")
ASAN = ("asan", "asan-clang")
ASAN_SHARED = (*ASAN, "asan-clang-shared")
# The compilers of the flavours that a machine may lack.
COMPILERS = {"musl": "musl-gcc", "asan-clang": "clang-19", "asan-clang-shared": "clang-19"}


@dataclasses.dataclass(frozen=True)
class Case:
    group: str
    name: str
    argv: tuple
    books: str = "exact"
    flavours: tuple = BOTH
    status: int | None = 0  # without the library; None: whatever it is
    root: bool = False
    tools: tuple = ()
    unordered: bool = False  # lines of several processes
    env: dict = dataclasses.field(default_factory=dict)
    preload_as: str = "LD_PRELOAD"
    clock: str = "tsc"
    mode: str = "discard"
    subbuf_shift: int = 16
    never: tuple = ()  # reasons for which nothing may be discarded
    contexts: tuple = ()  # ids of lib/abi/context.h
    sharing: bool = False  # of the events some come from children that share their parent's memory
    # Is recorded too: with "objects" in it, "empty", since they cannot be looked at, or with "any".
    statedump: str = ""


def program(group, name, *args, **more):
    label = "-".join((name, *args)) if "label" not in more else more.pop("label")
    return Case(group, label, ("{bin}/" + name, *args), **more)


def under_filter(action, calls, books, *args, name="plain", flavours=BOTH):
    """Returns a case in which the program is executed under a filter."""
    return Case("seccomp", "-".join(("exec", action, calls, *(word for word in args if "/" not in word))),
                ("{programs}/glibc/under_filter", action, calls, "{bin}/" + name, *args), books=books,
                flavours=flavours, status=None, preload_as="WITH_PRELOAD")


def system(name, *argv, **more):
    """Returns a case with a program that knows nothing of weft. If events are enabled,
    programs/witness.c emits in it."""
    return Case("system", name, argv, flavours=GLIBC, tools=(argv[0],), status=None, **more)


PYTHON = """
import subprocess, os, threading
for i in range(10):
    subprocess.run(["true"], check=True)
    print(subprocess.run(["sh", "-c", "echo $0 $PPID_X; exit 3"], capture_output=True))
threads = [threading.Thread(target=lambda: [subprocess.run(["true"]) for _ in range(5)])
           for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
pid = os.fork()
if pid == 0:
    os._exit(4)
print(os.waitpid(pid, 0)[1], os.system("exit 2"), os.popen("echo popen").read())
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 5"], {})
print(os.waitpid(pid, 0)[1])
"""

SHELL = """
set -e
for i in 1 2 3 4 5; do echo $i | cat | tr 1-5 a-e; done
( exit 3 ) || echo $?
x=$(printf '%s ' "$@" | wc -c)
echo $x
exec 3>&1 1>&2 2>&3
{ sh -c 'kill -9 $$'; } 2>/dev/null || echo killed $?
trap 'echo trap' EXIT
"""

# perf:thread: task-clock, page-faults, context-switches, cpu-cycles (nowhere in most virtual machines).
PERF = ((21, 1, 1), (21, 1, 2), (21, 1, 3), (21, 0, 0))

PROCESSES = [
    program("processes", "plain", books="all", flavours=("glibc", "musl", "nopie"), status=7),
    # A static program has no dynamic linker: nothing is loaded into it.
    program("processes", "plain", label="static", books="none", flavours=("static",), status=7),
    program("processes", "plain", label="monotonic", books="all", status=7, clock="monotonic"),
    program("processes", "plain", label="contexts", books="all", status=7, subbuf_shift=20,
            contexts=(1, 2, 3, 4, 5, 6)),
    program("processes", "overflow"),
    program("processes", "overflow", label="overwrite", mode="overwrite", books="all"),
    program("processes", "overflow", label="overwrite-monotonic", mode="overwrite", books="all",
            clock="monotonic"),
    program("processes", "exec_chain", status=4, books="all"),
    program("processes", "daemonise", books="all"),
    program("processes", "last_words", status=12, books="all"),
    program("processes", "static_objects", status=3, books="all", flavours=GLIBC),
    program("processes", "plain", label="rseq-off", books="all", status=7, flavours=GLIBC,
            env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
]

def dumping(name, *args, label="", objects="objects", **more):
    """Returns a case with the state dump in every ring set; sub-buffers are large enough to
    discard nothing."""
    return program("statedump", name, *args, label=label or name, subbuf_shift=20,
                   statedump=objects, books=more.pop("books", "all"), **more)


STATEDUMP = [
    dumping("plain", flavours=("glibc", "musl", "nopie"), status=7),
    dumping("plain", label="monotonic", clock="monotonic", status=7),
    dumping("exec_chain", status=4),
    dumping("daemonise"),
    dumping("close_all"),
    dumping("all_descriptors"),
    dumping("last_words", status=12),
    dumping("fork_tree"),
    dumping("fork_threads"),
    dumping("fork_in_handler"),
    dumping("vfork_first"),
    dumping("threads", label="threads-contexts", contexts=(1, 2, 5)),
    dumping("thread_churn"),
    dumping("nested_signals"),
    dumping("small_stacks", contexts=(1, 2, 4), env={"LD_BIND_NOW": "1"}),
    dumping("limits", "lock-future", root=True),
    dumping("limits", "nproc", label="limits-nproc"),
    dumping("dlopen_loop", "{bin}/plugin.so", label="dlopen_loop"),
    dumping("plain", label="asan", flavours=("asan",), status=7),
    *(dumping("identity", what, label=f"identity-{what}", root=True)
      for what in ("uid", "pid-ns", "all-ns", "user-ns")),
    # No /proc: the child's ring set has only the frame.
    dumping("identity", "chroot", label="identity-chroot", root=True, objects="any"),
    *(dumping("late_filter", how, when, label=f"late_filter-{how}-{when}", status=5)
      for how in ("prctl", "deny") for when in ("before", "after") if (how, when) != ("deny", "before")),
    *(dataclasses.replace(under_filter("kill", calls, "all"), group="statedump", subbuf_shift=20,
                          statedump=objects)
      for calls, objects in (("lseek", "objects"), ("process_vm_readv", "empty"))),
]

CHILDREN = [
    program("children", "fork_tree", books="all"),
    program("children", "fork_tree", label="fork_tree-perf", books="all", contexts=PERF),
    program("children", "vfork_hits", label="vfork-perf", contexts=PERF, subbuf_shift=20),
    program("children", "fork_threads"),
    program("children", "raw_fork", books="all"),
    program("children", "fork_in_handler", subbuf_shift=18),
    program("children", "vfork_first", books="all"),
    program("children", "vfork_hits", flavours=("glibc", "musl", "nopie")),
    program("children", "vfork_hits", label="vfork-static", books="none", flavours=("static",)),
    program("children", "vfork_hits", label="vfork-overwrite", mode="overwrite", subbuf_shift=12),
    program("children", "spawn"),
    program("children", "clone_vm"),
    program("children", "clone_vm", label="clone_vm-overwrite", mode="overwrite", subbuf_shift=12),
    program("children", "clone_vm_killed", books="killed", mode="overwrite", never=("nested",)),
    program("children", "vfork_killed", books="killed", mode="overwrite", subbuf_shift=12,
            never=("nested", "contended")),
    program("children", "vfork_killed", books="killed", label="vfork_killed-discard",
            never=("nested", "contended")),
]

THREADS = [
    program("threads", "threads", flavours=("glibc", "musl", "nopie")),
    program("threads", "threads", label="static", books="none", flavours=("static",)),
    program("threads", "threads", label="overwrite", mode="overwrite", subbuf_shift=12),
    program("threads", "threads", label="monotonic", clock="monotonic"),
    program("threads", "threads", label="rseq-off", flavours=GLIBC,
            env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    program("threads", "threads", label="contexts", contexts=(1, 2, 4), subbuf_shift=18),
    program("threads", "threads", label="perf", contexts=PERF, subbuf_shift=20),
    program("threads", "thread_churn", label="thread_churn-perf", contexts=PERF, subbuf_shift=20,
            books="all"),
    program("threads", "nested_signals", label="nested-perf", contexts=PERF, subbuf_shift=20),
    program("threads", "small_stacks", label="small_stacks-perf", contexts=PERF,
            env={"LD_BIND_NOW": "1"}),
    program("threads", "thread_churn", subbuf_shift=18, books="all"),
    program("threads", "thread_churn", label="thread_churn-overwrite", mode="overwrite",
            subbuf_shift=12),
    program("threads", "thread_churn", label="thread_churn-rseq-off", flavours=GLIBC,
            subbuf_shift=18, env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    program("threads", "nested_signals", subbuf_shift=18),
    program("threads", "nested_signals", label="nested-overwrite", mode="overwrite",
            subbuf_shift=12),
    # These use the atomic slot, with room for all events: before, after and between events of
    # weft's own area.
    *(program("threads", "rseq_threads", steps, books="all", subbuf_shift=22,
              env={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"})
      for steps in ("re", "rue", "ere", "erue", "fre")),
    # Bound at start: ld.so's lazy binding of the program's own strlen needs more stack than there is.
    program("threads", "small_stacks", env={"LD_BIND_NOW": "1"}),
    program("threads", "small_stacks", label="small_stacks-contexts", contexts=(1, 2, 4),
            env={"LD_BIND_NOW": "1"}),
    program("threads", "sigsegv", status=-11),
    program("threads", "sigsegv", "recover"),
]

LIMITS = [
    program("limits", "all_descriptors", books="all"),
    program("limits", "close_all", books="all"),
    program("limits", "close_all", label="close_all-perf", books="all", contexts=PERF),
    program("limits", "all_descriptors", label="all_descriptors-perf", books="all", contexts=PERF),
    program("limits", "limits", "as-room"),
    # No address space for a ring set: what was discarded is nowhere to be counted.
    program("limits", "limits", "as-tight", books="any"),
    # No file of that size may be made, and no signal for trying.
    program("limits", "limits", "fsize", books="named"),
    # At first no ring set is possible: events are discarded, and counted as soon as there is one.
    program("limits", "limits", "fsize-later"),
    program("limits", "limits", "nproc", books="all"),
    program("limits", "limits", "stack", books="all"),
    program("limits", "limits", "lock-future", books="all", root=True),
    program("limits", "limits", "lock-limit", books="any", root=True),
]

SECCOMP = [
    under_filter("eperm", "memfd_create", "named"),
    under_filter("enosys", "memfd_create", "named"),
    # The doorbell cannot be rung; an agent finds the ring set in /proc.
    under_filter("eperm", "socket", "none"),
    under_filter("enosys", "rseq", "all"),
    under_filter("eperm", "getrandom,sched_yield,munlock", "all"),
    # No ring set without MADV_WIPEONFORK: a child would write into it.
    under_filter("eperm", "madvise", "none"),
    under_filter("kill", "memfd_create", "none"),
    under_filter("kill-thread", "memfd_create", "none"),
    under_filter("trap", "socket", "none"),
    under_filter("kill", "socket", "none"),
    under_filter("kill", "rseq", "any"),
    under_filter("kill", "prctl", "none"),
    under_filter("kill", "madvise,munlock,lseek", "none"),
    under_filter("kill", "getrandom,connect", "none"),
    under_filter("kill", "gettid,sched_yield,getuid", "none"),
    under_filter("kill", "nanosleep", "all"),
    under_filter("kill", "lseek", "all"),
    # Calls that only contexts make: each is left out where it would kill.
    dataclasses.replace(under_filter("kill", "getresuid,getresgid,readlinkat", "all"),
                        contexts=(1, 7, 12, 15), subbuf_shift=20),
    dataclasses.replace(under_filter("kill", "perf_event_open,getrusage,clock_gettime", "all"),
                        contexts=PERF, subbuf_shift=20),
    program("seccomp", "late_filter", "prctl", "after", label="late_filter-perf", status=5,
            books="all", contexts=PERF, subbuf_shift=18),
    under_filter("kill", "memfd_create", "none", name="threads"),
    under_filter("eperm", "memfd_create", "named", name="fork_tree"),
    under_filter("eperm", "getrandom", "all", name="fork_tree"),
    *(program("seccomp", "late_filter", how, when, status=5, books="all")
      for how in ("prctl", "syscall", "deny") for when in ("before", "after")
      if (how, when) != ("deny", "before")),
    # Strict mode takes the time stamp counter away: only what came before is recorded.
    program("seccomp", "late_filter", "strict", "before", status=5, books="none"),
    program("seccomp", "late_filter", "strict", "after", status=5, books="some"),
    program("seccomp", "late_filter", "tsc", "after", status=5, books="some"),
    # The ring set could not be made any more.
    program("seccomp", "late_filter", "deny", "before", status=5, books="none"),
    # The library does not learn of the filter: both kinds of events were on before.
    program("seccomp", "late_filter", "unseen", "after", status=5, books="all"),
    program("seccomp", "late_filter", "prctl", "before", label="late_filter-monotonic", status=5,
            books="all", clock="monotonic"),
    program("seccomp", "late_filter", "prctl", "before", label="late_filter-contexts", status=5,
            books="all", contexts=(1, 2, 4), subbuf_shift=18),
    program("seccomp", "filter_in_thread", books="any"),
    # Threads that wait for children of all kinds meet no child of weft's. If the plugin is loaded
    # late they may, and nothing depends on it.
    *(under_filter(action, "getresuid", "all", when, "{bin}/plugin.so", name="wall")
      for action in ("eperm", "kill") for when in ("early", "late")),
    # The library reads addresses that a program passes to a system call by process_vm_readv, or
    # without it.
    program("seccomp", "bad_pointers", books="all"),
    *(program("seccomp", "bad_pointers", action, "process_vm_readv", books="all")
      for action in ("eperm", "kill")),
    *(under_filter(action, "process_vm_readv", "all", name="bad_pointers") for action in ("eperm", "kill")),
    # The library cannot find out whether memory can be read, so it treats each filter as one that
    # kills.
    program("seccomp", "bad_pointers", "eperm", "process_vm_readv,rt_sigprocmask", books="all"),
]

IDENTITY = [
    program("identity", "identity", what, root=True, books="all")
    for what in ("nothing", "uid", "chroot", "pid-ns", "all-ns", "user-ns")
] + [
    # Events' times are the host's, whatever CLOCK_MONOTONIC is to the process.
    *(program("identity", "time_namespace", when, seconds, root=True, books="all", clock="monotonic")
      for when in ("early", "late") for seconds in ("86400", "-1")),
    program("identity", "setuid_program", status=3, root=True, books="none"),
]

OBJECTS = [
    program("objects", "dlopen_loop", "{bin}/plugin.so", label="dlopen_loop"),
    program("objects", "dlclose_under_call", "{bin}/provider_only.so", label="dlclose_under_call"),
    program("objects", "dlclose_under_call", "{bin}/provider_only.so", label="dlclose-small",
            subbuf_shift=12),
    program("objects", "dlclose_under_call", "{bin}/provider_only.so", label="dlclose-overwrite",
            mode="overwrite", subbuf_shift=12),
    program("objects", "plain", label="asan", flavours=ASAN_SHARED, status=7, books="all"),
    program("objects", "threads", label="asan-threads", flavours=ASAN_SHARED),
    program("objects", "vfork_hits", label="asan-vfork", flavours=ASAN),
    program("objects", "spawn", label="asan-spawn", flavours=ASAN),
    program("objects", "static_objects", label="asan-c++", flavours=ASAN, status=3, books="all"),
]

VALGRIND = [
    Case("objects", f"valgrind-{name}", ("valgrind", "-q", "{bin}/" + name), flavours=GLIBC,
         tools=("valgrind",), status=None)
    for name in ("plain", "threads", "spawn", "fork_tree")
]


def emulated(name, *args, label=None, **more):
    return Case("arm64", label or name,
                ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "{bin}/" + name, *args),
                flavours=("arm64",), tools=("qemu-aarch64", "aarch64-linux-gnu-gcc"), **more)


ARM64 = [
    emulated("plain", status=7, books="all"),
    emulated("plain", label="monotonic", status=7, books="all", clock="monotonic"),
    emulated("plain", label="contexts", status=7, books="all", contexts=(1, 2, 4), subbuf_shift=20),
    emulated("overflow", mode="overwrite", books="all"),
    emulated("threads"),
    emulated("fork_tree", books="all"),
    emulated("raw_fork", books="all"),
    emulated("vfork_first", books="all"),
    emulated("last_words", books="all", status=12),
]

SYSTEM = [
    system("python", "python3", "-c", PYTHON, sharing=True),
    system("sh", "sh", "-c", SHELL, "sh", "a", "b"),
    system("bash", "bash", "-c", SHELL, "bash", "a", "b"),
    system("perl", "perl", "-e", "for (1..20) { system('true'); print `echo $_`; } exec 'false';"),
    system("find", "find", "/usr/share/doc", "-maxdepth", "1", "-name", "a*", "-exec", "echo", "{}",
           ";"),
    system("tar", "sh", "-c", "tar czf - /etc/passwd 2>/dev/null | tar tzf -"),
    system("xargs", "sh", "-c", "seq 40 | xargs -n1 -P1 echo"),
    system("timeout", "timeout", "-s", "KILL", "0.2", "sleep", "5"),
    system("make", "sh", "-c", "printf 'a: b c\\n\\t@echo a\\nb c:\\n\\t@echo $@\\n' | make -s -f -",
           ),
    system("env", "env", "-i", "sh", "-c", "echo empty"),
    system("setpriv", "setpriv", "--no-new-privs", "sh", "-c", "echo privileges"),
    system("unshare", "unshare", "--fork", "--pid", "--mount-proc", "sh", "-c", "echo $$", root=True),
    system("gdb", "gdb", "-nx", "-batch", "-ex", "run", "-ex", "bt", "--args", "true"),
    system("strace", "strace", "-f", "-o", "/dev/null", "sh", "-c", "true; echo traced"),
]

CASES = PROCESSES + STATEDUMP + CHILDREN + THREADS + LIMITS + SECCOMP + IDENTITY + OBJECTS + VALGRIND + ARM64 + SYSTEM
