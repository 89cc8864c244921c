# SPDX-License-Identifier: Apache-2.0
"""Tests recording of programs that run already, without libweft.so: it is loaded into them. What they do
stays right, counts are those of the program itself, and a load that fails, or whose agent dies, leaves
the program as it was. Needs root: the kernel lets only root open another process's mappings."""

import collections
import os
import pathlib
import platform
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from tests.cluster.programs import BuildFailed, go_client
from tests.debugger import traced
from tests.local.found_test import EVENTS, FoundTest
from tests.local.memory_test import LimitedGroup
from tests.local.weft_local import BUILD, PATIENCE, WEFT, children_of, name_of

PROGRAM = BUILD / "tests" / "local" / "local_attached"
LOAD = BUILD / "tests" / "local" / "local_attach_load"
LIBRARY = BUILD / "lib" / "libweft.so"
GDB_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "ust-injector" / "preload" / "weft-gdb.py"
THROWS = BUILD / "tests" / "local" / "local_functions_throws"
CALLS = 1000
# Times that the agent is killed while it loads the library.
DEATHS = int(os.environ.get("WEFT_ATTACH_DEATHS", "20"))
TRACE = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user:
    functions:
      - name: traced_call
        object: "local_attached*"
        args:
          - {name: "n", type: int64}
        returns: int64
        record: [entry, exit]
"""
THROWN = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  user:
    functions:
      - name: "shop::*"
        object: "PROGRAM"
        record: [exit, call]
"""
# Goroutines of the program, and names of what it calls and counts.
GO_WORKERS = 4
GO_FUNCTIONS = ("handle", "grow", "fails")
GO_TRACE = """apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: t}
spec:
  buffer: {size: 4Mi, count: 4}
  user:
    functions:
      - name: "main.(*service).handle"
        args:
          - {name: "service", type: pointer}
          - {name: "n", type: int64}
          - {name: "text", type: bytes, length: "size"}
          - {name: "size", type: uint64}
          - {name: "ratio", type: double}
        record: [entry]
      - name: "main.*"
        record: [entry]
      - name: "*"
        object: "program_of_go"
        record: [entry]
"""
# Places and sizes of what an ELF header says of sections.
SECTIONS_IN_HEADER = ((40, 8), (58, 6))
# musl-gcc does not look there.
KERNEL_HEADERS = ("-idirafter", "/usr/include", "-idirafter", f"/usr/include/{platform.machine()}-linux-gnu")


@unittest.skipUnless(platform.machine() == "x86_64", "libraries are loaded on x86-64 only")
class AttachTest(FoundTest):
    def setUp(self):
        super().setUp()
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("WEFT_", "LD_"))}

    def run_program(self, *words, program=PROGRAM):
        process = subprocess.Popen([str(word) for word in (program, self.folder, CALLS, *words)], env=self.environment,
                                   stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        self.wait_for(lambda: (self.folder / "ready").exists() or process.poll() is not None)
        self.assertIsNone(process.poll())
        return process

    def run_two(self, program):
        """Returns two processes that have begun: each has written a byte into `ready`."""
        processes = [self.run_program("busy", program=program) for _ in range(2)]
        self.wait_for(lambda: (self.folder / "ready").stat().st_size == 2, "one has not begun")
        return processes

    def pid_of(self, process):
        return process.pid

    def attach(self, *processes, options=("-e", "emitter:*"), output="trace", program=()):
        command = [str(WEFT), "record", *map(str, options), "-o", str(self.folder / output),
                   "--summary", str(self.folder / "summary.json")]
        for process in processes:
            command += ["--pid", str(getattr(process, "pid", process))]
        command += map(str, ("--", *program) if program else ())
        weft = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)
        self.running.append(weft)
        return weft

    def wait_until_recording(self, weft, output="trace"):
        def ready():
            shown = subprocess.run([WEFT, "status"], capture_output=True, text=True, check=True).stdout
            return any(": recording," in line and line.endswith(f"{self.folder}/{output}")
                       for line in shown.splitlines())
        self.wait_for(lambda: ready() or weft.poll() is not None)
        self.assertIsNone(weft.poll(), weft.stderr.read() if weft.poll() is not None else "")

    def stop(self, weft):
        weft.send_signal(signal.SIGINT)
        return self.finish(weft)

    def end_program(self, process):
        self.touch("release")
        _, err = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, err), (0, ""))

    def call(self):
        self.touch("go")
        self.wait_for((self.folder / "done").exists, "the program did not call its function")

    def functions(self, *more):
        path = self.folder / "functions.yaml"
        path.write_text(TRACE)
        return ("-f", path, *more)

    def attach_and_wait(self, program, output="trace"):
        weft = self.attach(self.pid_of(program), options=self.functions(), output=output)
        self.wait_until_recording(weft, output)
        return weft

    def check_functions(self, *kinds, calls=CALLS, exits=True):
        program = self.run_program(*kinds)
        weft = self.attach_and_wait(program)
        self.call()
        _, err = self.stop(weft)
        # Events of several processes may come out of order (`late`).
        in_order = sorted if "children" in kinds else list
        events = [e["payload"]["n"] for e in self.view() if e["event"] == "function:traced_call_entry"]
        self.assertEqual(in_order(events), list(range(calls)))
        events = [e["payload"]["ret"] for e in self.view() if e["event"] == "function:traced_call_exit"]
        self.assertEqual(in_order(events), [n * 3 + 1000001 for n in range(calls if exits else 0)])
        self.end_program(program)
        return err

    def check_throws(self, program):
        process = subprocess.Popen([program, "70", self.folder], env=self.environment, stdout=subprocess.DEVNULL)
        self.running.append(process)
        self.wait_for(lambda: (self.folder / "ready").exists() or process.poll() is not None)
        trace = self.functions()
        trace[1].write_text(THROWN.replace("PROGRAM", program.name))
        weft = self.attach(process, options=trace)
        self.wait_until_recording(weft)
        self.call()
        self.stop(weft)
        ends = collections.Counter((e["event"].removeprefix("function:shop::"), e["payload"]["unwound"])
                                   for e in self.view())
        self.assertEqual(ends, {(f"{name}_{moment}", unwound): count for moment in ("exit", "call")
                                for name, unwound, count in (
                                    ("Deep(int)", 1, 310), ("Leads(int)", 1, 10), ("Guarded(int, int&)", 1, 70),
                                    ("Ended(void*)", 2, 10), ("Jumps()", 1, 10),
                                    ("Price(int)", 0, 70), ("Price(double)", 0, 70))})
        self.touch("release")
        self.assertEqual(process.wait(PATIENCE), 0)


class Functions(AttachTest):
    def test_of_a_thread_that_computes(self):
        self.check_functions("busy")

    def test_of_a_thread_in_epoll_wait(self):
        self.check_functions("epoll")

    def test_of_a_thread_that_sleeps(self):
        self.check_functions("sleep")

    def test_of_a_thread_that_reads(self):
        self.check_functions("read")

    def test_of_a_thread_that_waits_for_a_signal(self):
        self.check_functions("sigwait")

    def test_of_a_thread_in_sigsuspend(self):
        self.check_functions("suspend")

    def test_beside_a_timer(self):
        self.check_functions("timer", "busy")

    def test_with_threads(self):
        self.check_functions("timer", "threads", "busy")

    def test_under_a_filter_that_kills(self):
        # The library tries it before it makes a ring set, and then records nothing.
        self.check_functions("filter", "busy", calls=0)

    def test_of_a_program_that_is_stopped(self):
        program = self.run_program("stopped", "busy")
        weft = self.attach_and_wait(program)
        program.send_signal(signal.SIGCONT)
        self.call()
        self.stop(weft)
        self.assertEqual(len(self.view()), 2 * CALLS)
        self.end_program(program)

    def test_under_a_filter_that_the_program_installs_later(self):
        # The library makes what it needs before.
        self.check_functions("busy", "later")

    def test_under_a_filter_that_it_installs_by_syscall(self):
        self.check_functions("busy", "seccomp")

    def test_of_children(self):
        self.check_functions("busy", "children")


class Unwound(AttachTest):
    """Exceptions and pthread_exit pass functions whose ends are recorded; some are in flight at the load."""

    def test_dynamic(self):
        self.check_throws(THROWS)

    def check_built(self, *command):
        program = self.folder / "throws"
        source = pathlib.Path(__file__).resolve().with_name("functions_throws.cc")
        subprocess.run([*command, "-std=c++20", "-O2", source, "-o", program, "-pthread"], check=True, timeout=PATIENCE)
        self.check_throws(program)

    def test_static(self):
        self.check_built("c++", "-static")

    def test_llvms_unwinder(self):
        if shutil.which("clang++-19") is None:
            self.skipTest("there is no clang++-19")
        self.check_built("clang++-19", "-stdlib=libc++", "--unwindlib=libunwind", "-rtlib=compiler-rt")


class Linked(AttachTest):
    """Programs that are linked otherwise, or run elsewhere."""

    def build(self, compiler, *options):
        if shutil.which(compiler) is None:
            self.skipTest(f"there is no {compiler}")
        program = self.folder / "local_attached_other"
        source = pathlib.Path(__file__).resolve().with_name("attached.c")
        command = [compiler, "-std=gnu11", "-O1", "-I", source.parents[2], *options, source, "-o", program, "-pthread"]
        built = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(built.returncode, 0, built.stderr)
        return program

    def check_linked(self, compiler, *options, strip=(), exits=True):
        program = self.build(compiler, *options)
        if strip:
            subprocess.run(["objcopy", *(f"--strip-symbol={name}" for name in strip), program], check=True,
                           timeout=PATIENCE)
        run = self.run_program
        self.run_program = lambda *words: run(*words, program=program)
        return self.check_functions("threads", "busy", exits=exits)

    def test_static(self):
        self.check_linked("cc", "-static")

    def test_static_and_position_independent(self):
        self.check_linked("cc", "-static-pie")

    def test_exits_are_refused_where_unwinders_cannot_be_told_of_them(self):
        err = self.check_linked("cc", "-static", strip=("dl_iterate_phdr", "_dl_find_object"), exits=False)
        self.assertIn("no function that tells unwinders of loaded objects was found in its symbols", err)

    def test_musl(self):
        self.check_linked("musl-gcc", *KERNEL_HEADERS)

    def test_musl_static(self):
        self.check_linked("musl-gcc", "-static", *KERNEL_HEADERS)

    def test_in_other_namespaces(self):
        def run(*words):
            command = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", PROGRAM,
                       self.folder, CALLS, *words]
            outer = subprocess.Popen([str(word) for word in command], env=self.environment, stderr=subprocess.PIPE,
                                     text=True)
            self.running.append(outer)
            self.wait_for(lambda: (self.folder / "ready").exists() or outer.poll() is not None)
            self.assertIsNone(outer.poll())
            return outer
        self.run_program = run
        self.pid_of = lambda outer: children_of(outer.pid)[0]
        self.check_functions("threads", "busy")


class Tracepoints(AttachTest):
    def start_hidden(self, *how, processes=1):
        ready = self.reports("ready") + processes
        program = subprocess.Popen([str(word) for word in self.hidden(*how)], env=self.environment)
        self.running.append(program)
        self.wait_for(lambda: self.reports("ready") == ready)
        return program

    def check(self, *how):
        program = self.start_hidden("rounds=1", *how)
        weft = self.attach(program)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.wait_for(lambda: self.reports() == 1)
        self.stop(weft)
        self.assert_complete(EVENTS)
        self.touch("release")
        self.assertEqual(program.wait(PATIENCE), 0)

    def test_compiled_into_the_program(self):
        self.check()

    def test_in_a_chroot(self):
        self.check("chroot")

    def test_under_a_filter(self):
        self.check("filtered")

    def test_by_one_recording_after_the_other(self):
        program = self.start_hidden("rounds=2")
        for i in range(2):
            weft = self.attach(program, output=f"trace{i}")
            self.wait_until_recording(weft, f"trace{i}")
            self.touch(f"go{i}")
            self.wait_for(lambda i=i: self.reports() == i + 1)
            self.stop(weft)
            self.assert_complete(EVENTS, output=f"trace{i}")

    def test_of_two_programs(self):
        program = self.start_hidden("rounds=1")
        other = self.start_hidden("rounds=1")
        weft = self.attach(program, other)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.wait_for(lambda: self.reports() == 2)
        self.stop(weft)
        self.assert_complete(2 * EVENTS)

    def test_until_the_program_ends(self):
        program = self.start_hidden("rounds=1")
        weft = self.attach(program)
        self.wait_until_recording(weft)
        self.touch("go0")
        self.touch("release")
        self.finish(weft)
        self.assertEqual(program.wait(PATIENCE), 0)
        self.assert_complete(EVENTS)

    def test_for_a_duration(self):
        program = self.start_hidden("rounds=1")
        self.finish(self.attach(program, options=("-e", "emitter:*", "--duration", "1s")))
        self.assertIsNone(program.poll())
        self.touch("go0")
        self.touch("release")
        self.assertEqual(program.wait(PATIENCE), 0)

    def test_ends_in_time_after_the_agent_died_between_two_questions_of_weft(self):
        program = self.start_hidden("rounds=1")
        weft = self.attach(program, options=("-e", "emitter:*", "--duration", "20s"))
        self.wait_until_recording(weft)
        weft.send_signal(signal.SIGSTOP)
        self.kill(weft, "weft-agent")
        weft.send_signal(signal.SIGCONT)
        self.finish(weft)
        self.assertIsNone(program.poll())

    def test_ends_when_the_keeper_died(self):
        program = self.start_hidden("rounds=1")
        weft = self.attach(program)
        self.wait_until_recording(weft)
        os.kill(self.session_processes(weft)["weft-keeper"], signal.SIGKILL)
        self.finish(weft, status=123)
        self.assertIsNone(program.poll())


class Detach(AttachTest):
    """After a recording the program's code is as it was before the first one."""

    def code_of(self, process):
        """Returns the bytes of all executable mappings of files, by address."""
        maps = pathlib.Path(f"/proc/{self.pid_of(process)}/maps").read_text().splitlines()
        code = {}
        with open(f"/proc/{self.pid_of(process)}/mem", "rb", buffering=0) as memory:
            for line in maps:
                words = line.split()
                if "x" not in words[1] or words[4] == "0" or "/memfd:" in line:
                    continue
                begin, end = (int(word, 16) for word in words[0].split("-"))
                memory.seek(begin)
                code[begin] = memory.read(end - begin)
        return code

    def changes_of(self, process, before):
        """Returns the addresses of code that is not as before."""
        now = self.code_of(process)
        self.assertEqual(now.keys(), before.keys())
        return [hex(begin + i) for begin, code in before.items() if now[begin] != code
                for i, (a, b) in enumerate(zip(now[begin], code)) if a != b]

    def record_calls(self, program, output):
        weft = self.attach_and_wait(program, output)
        (self.folder / "done").unlink(missing_ok=True)
        self.call()
        return weft

    def check_calls(self, output):
        for name, values in (("entry", range(CALLS)), ("exit", (n * 3 + 1000001 for n in range(CALLS)))):
            self.assertEqual([e["payload"]["n" if name == "entry" else "ret"] for e in self.view(output)
                              if e["event"] == f"function:traced_call_{name}"], list(values))

    def check(self, *kinds):
        program = self.run_program("again", *kinds)
        before = self.code_of(program)
        for i in range(2):
            weft = self.record_calls(program, f"trace{i}")
            self.assertNotEqual(self.changes_of(program, before), [])
            self.stop(weft)
            self.assertEqual(self.changes_of(program, before), [])
            if "children" not in kinds:
                self.check_calls(f"trace{i}")
        self.end_program(program)

    def test_of_threads(self):
        self.check("timer", "threads", "busy")

    def test_with_children(self):
        self.check("busy", "children")

    def test_during_a_call_that_an_unwinder_passes_later(self):
        program = self.run_program("again", "waits", "sleep")
        before = self.code_of(program)
        options = self.functions()
        options[1].write_text(TRACE.replace("name: traced_call", 'name: "traced_*"'))
        weft = self.attach(program, options=options)
        self.wait_until_recording(weft)
        self.touch("go")
        self.wait_for(lambda: (self.folder / "waits").exists() and (self.folder / "done").exists())
        self.stop(weft)
        self.assertEqual(self.changes_of(program, before), [])
        self.end_program(program)

    def test_filter_installed_between_recordings(self):
        # It kills for a call that the library makes, which therefore records nothing.
        program = self.run_program("again", "busy", "later")
        self.stop(self.attach_and_wait(program, "trace0"))
        self.call()
        weft = self.record_calls(program, "trace1")
        self.stop(weft)
        self.assertEqual(self.view("trace1"), [])
        self.end_program(program)

    def test_debugger_that_comes_during_a_recording(self):
        program = self.run_program("again", "busy")
        before = self.code_of(program)
        weft = self.attach_and_wait(program, "trace0")
        with traced(program.pid):
            _, err = self.stop(weft)
            self.assertIn(f"functions of process {program.pid} stay changed, but record nothing: ", err)
            self.assertNotEqual(self.changes_of(program, before), [])
        self.stop(self.record_calls(program, "trace1"))
        self.assertEqual(self.changes_of(program, before), [])
        self.check_calls("trace1")
        self.end_program(program)


@unittest.skipIf(shutil.which("gdb") is None, "needs gdb")
class Debugger(AttachTest):
    """gdb with weft's script sees complete stacks at each instruction of a call that is recorded."""

    def check_stacks(self, pid):
        commands = (f"source {GDB_SCRIPT}", f'set $folder = "{self.folder}"',
                    f"source {pathlib.Path(__file__).resolve().with_name('gdb_steps.py')}")
        done = subprocess.run(["gdb", "-nx", "-batch", "-p", str(pid), *(w for c in commands for w in ("-ex", c))],
                              capture_output=True, text=True, check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        lines = done.stdout.splitlines()
        self.assertEqual([line for line in lines if line.startswith("wrong:")], [], done.stderr)
        seen = next((set(line.split()) for line in lines if line.startswith("seen:")), set())
        # None is code that has no name: a thunk, say.
        self.assertLessEqual({"None", "traced_call", "weft_hook_enter", "weft_hook_entry", "weft_hook_exit",
                              "weft_hook_leave", "weft_hook_stubs"}, seen, done)

    def deep_functions(self):
        options = self.functions()
        options[1].write_text(TRACE.replace("name: traced_call", 'name: "traced_*"'))
        return options

    def test_attached(self):
        program = self.run_program("deep", "busy")
        weft = self.attach(program, options=self.deep_functions())
        self.wait_until_recording(weft)
        self.check_stacks(program.pid)
        self.wait_for((self.folder / "done").exists)
        self.stop(weft)
        self.assertEqual(len(self.view()), 2 * 4 * CALLS)
        self.end_program(program)

    def test_preloaded(self):
        weft = self.attach(options=self.deep_functions(), program=(PROGRAM, self.folder, CALLS, "deep", "busy"))
        self.wait_for(lambda: (self.folder / "ready").exists() or weft.poll() is not None)
        self.check_stacks(next(pid for pid in children_of(weft.pid) if name_of(pid) == PROGRAM.name))
        self.wait_for((self.folder / "done").exists)
        self.touch("release")
        self.finish(weft)
        self.assertEqual(len(self.view()), 2 * 4 * CALLS)


class Names(AttachTest):
    def test_all_processes_of_a_name_are_recorded(self):
        named = self.folder / f"named{os.getpid()}"
        shutil.copy(PROGRAM, named)
        programs = self.run_two(named)
        trace = self.functions()
        (self.folder / "functions.yaml").write_text(TRACE.replace("local_attached*", named.name))
        weft = self.attach(options=(*trace, "--process", named.name))
        self.wait_until_recording(weft)
        self.touch("go")
        self.wait_for(lambda: (self.folder / "done").exists() and
                      (self.folder / "done").stat().st_size == 2, "the programs did not call their function")
        self.stop(weft)
        self.assertEqual(len(self.view()), 4 * CALLS)
        for program in programs:
            self.end_program(program)

    def test_process_of_the_name_that_has_ended_is_left_out(self):
        named = self.folder / f"named{os.getpid()}"
        shutil.copy(PROGRAM, named)
        ended, program = self.run_two(named)
        ended.kill()
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        weft = self.attach(options=("-e", "emitter:*", "--process", named.name))
        self.wait_until_recording(weft)
        self.stop(weft)
        self.touch("go")
        self.end_program(program)
        ended.communicate(timeout=PATIENCE)

    def test_name_of_no_process_is_refused(self):
        _, err = self.finish(self.attach(options=("-e", "emitter:*", "--process", "no-such-process")), status=121)
        self.assertIn('no process is called "no-such-process"', err)


class LoaderTest(AttachTest):
    """The process that loads the library is killed at random points."""

    def load(self, program, times=0, **environment):
        loader = subprocess.Popen([LOAD, LIBRARY, str(program.pid), self.folder / "nowhere", str(times)],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=dict(os.environ, **environment))
        self.running.append(loader)
        self.assertEqual(loader.stdout.readline(), "begins\n")
        return loader

    def end_after_calls(self, program):
        # It checks functions that may be replaced by now.
        self.call()
        self.end_program(program)

    def check(self, *kinds):
        begin = time.monotonic()
        program = self.run_program(*kinds)
        loader = self.load(program)
        began = time.monotonic()
        self.assertEqual((loader.wait(PATIENCE), loader.stderr.read()), (0, ""))
        takes = time.monotonic() - began
        self.end_after_calls(program)
        ends = collections.Counter()
        for i in range(DEATHS):
            for name in ("release", "ready", "go", "done"):
                (self.folder / name).unlink(missing_ok=True)
            program = self.run_program(*kinds)
            loader = self.load(program)
            time.sleep(random.Random(f"{begin} {i}").uniform(0, takes))
            loader.kill()
            ends[loader.wait(PATIENCE)] += 1
            loader.communicate()
            self.end_after_calls(program)
        self.assertEqual(set(ends) - {0, -signal.SIGKILL}, set())


class Memory(LoaderTest):
    def test_library_counts_for_the_program(self):
        try:
            group = LimitedGroup(256 << 20)
        except OSError as error:
            self.skipTest(f"no control group with a memory limit can be made: {error}")
        self.addCleanup(group.folder.rmdir)
        program = self.run_program("busy")
        (group.folder / "cgroup.procs").write_text(str(program.pid))
        before = group.shmem()
        self.assertEqual(self.load(program).wait(PATIENCE), 0)
        self.wait_for(lambda: group.shmem() - before >= LIBRARY.stat().st_size, "the library counts elsewhere")
        self.end_after_calls(program)


class Deaths(LoaderTest):
    def check_next_recording(self, place):
        program = self.run_program("busy")
        loader = self.load(program, WEFT_KILL_AT=place)
        _, err = loader.communicate(timeout=PATIENCE)
        self.assertEqual((loader.returncode, err), (-signal.SIGKILL, ""))
        self.run_program = lambda: program
        self.check_functions()

    def test_before_its_constructors(self):
        self.check_next_recording("constructor:1")

    def test_before_its_second_constructor(self):
        """The second one makes what hooks need."""
        self.check_next_recording("constructor:2")

    def test_before_its_third_constructor(self):
        self.check_next_recording("constructor:3")

    def test_before_functions_are_replaced(self):
        self.check_next_recording("library_loaded:1")

    def test_leave_a_program_whose_functions_are_given_back(self):
        program = self.run_program("eintr", "timer", "threads", "busy")
        detach = Detach("check")
        detach.pid_of = self.pid_of
        before = detach.code_of(program)
        for i in range(DEATHS):
            loader = self.load(program, 1000000)
            time.sleep(random.Random(i).uniform(0, 0.1))
            loader.kill()
            self.assertEqual(loader.wait(PATIENCE), -signal.SIGKILL, loader.stderr.read())
            loader.communicate()
        loader = self.load(program, 1)
        _, err = loader.communicate(timeout=PATIENCE)
        self.assertEqual((loader.returncode, err), (0, ""))
        self.assertEqual(detach.changes_of(program, before), [])
        self.end_after_calls(program)

    def test_leave_a_thread_that_computes(self):
        self.check("busy")

    def test_leave_a_thread_in_a_call(self):
        self.check("sleep")

    def test_leave_a_thread_with_a_timer(self):
        self.check("eintr", "timer", "threads", "busy")


class Go(LoaderTest):
    """Programs of Go, whose goroutines have small stacks that move."""

    @classmethod
    def setUpClass(cls):
        cls.built = pathlib.Path(tempfile.mkdtemp(prefix="weft-attach-go-"))
        cls.addClassCleanup(shutil.rmtree, cls.built, ignore_errors=True)
        try:
            cls.go = go_client()
        except BuildFailed as e:
            raise unittest.SkipTest(f"there is no Go: {e}") from e
        cls.program = cls.build(with_cgo=False)

    @classmethod
    def build(cls, *, with_cgo, options=()):
        program = cls.built / "-".join((f"cgo{with_cgo:d}", *options)) / "program_of_go"
        environment = dict(os.environ, CGO_ENABLED=f"{with_cgo:d}", GOTOOLCHAIN="local", GOFLAGS="", GOWORK="off")
        built = subprocess.run([cls.go, "build", "-trimpath", "-buildvcs=false", *options, "-o", program, "."],
                               cwd=pathlib.Path(__file__).resolve().with_name("attached_go"), env=environment,
                               capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise AssertionError(built.stderr)
        return program

    def run_program(self, *words, program=None):
        return super().run_program(*words, program=program or self.program)

    def functions(self, *more):
        path = self.folder / "functions.yaml"
        path.write_text(GO_TRACE)
        return ("-f", path, *more)

    def check_counts(self):
        events = self.view()
        counts = collections.Counter(e["event"] for e in events)
        self.assertEqual([counts[f"function:main.(*service).{name}_entry"] for name in GO_FUNCTIONS],
                         [int(word) for word in (self.folder / "counts").read_text().split()])
        handled = [e["payload"] for e in events if e["event"] == "function:main.(*service).handle_entry"]
        self.assertEqual(sorted(e["n"] for e in handled), sorted(GO_WORKERS * list(range(CALLS))))
        self.assertEqual({(bytes(e["text"]), e["ratio"]) for e in handled}, {(b"text", 0.5)})

    def begin_anew(self):
        for name in ("ready", "go", "counts", "done", "release"):
            (self.folder / name).unlink()
        shutil.rmtree(self.folder / "trace")

    def check_attached(self):
        program = self.run_program()
        weft = self.attach_and_wait(program)
        self.call()
        _, notes = self.stop(weft)
        self.assertIn("it is of Go's runtime", notes)
        self.check_counts()
        self.end_program(program)

    def test_entries_are_those_of_the_program(self):
        self.check_attached()

    def test_entries_of_programs_without_symbols(self):
        static = self.build(with_cgo=False, options=("-ldflags=-s -w",))
        bare = static.with_name("bare") / "program_of_go"
        bare.parent.mkdir()
        shutil.copy(static, bare)
        with bare.open("r+b") as file:
            for at, size in SECTIONS_IN_HEADER:
                file.seek(at)
                file.write(bytes(size))
        for program in (static, self.build(with_cgo=False, options=("-ldflags=-s -w", "-buildmode=pie")), bare):
            with self.subTest(program=program.parent.name):
                self.program = program
                self.check_attached()
                self.begin_anew()

    def test_entries_of_a_program_with_cgo(self):
        self.program = self.build(with_cgo=True)
        self.check_attached()
        self.begin_anew()
        self.touch("go")
        self.touch("release")
        # weft starts it.
        self.record(*self.functions(), program=[self.program, self.folder, CALLS])
        self.check_counts()

    def test_program_stays_right_while_recording_begins_and_ends(self):
        program = self.run_program("endless")
        for i in range(5):
            weft = self.attach(program, options=self.functions(), output=f"trace{i}")
            self.wait_until_recording(weft, f"trace{i}")
            self.stop(weft)
        self.end_program(program)

    def end_after_calls(self, program):
        self.end_program(program)

    def test_program_stays_right_if_the_loader_dies(self):
        self.check("endless")


if __name__ == "__main__":
    unittest.main()
