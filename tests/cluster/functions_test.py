#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions by name, on a real cluster, in pods that enforce `restricted` and so run under a seccomp filter
(RuntimeDefault): of a program that starts while a Trace is there, exactly; of one that ran before, without a
restart; after the agent was killed. When the last Trace is gone, the program's code has its own bytes again.
And `attach: true`: programs of a namespace without the label, that run without the library."""

import concurrent.futures
import contextlib
import hashlib
import os
import pathlib
import re
import signal
import unittest

from tests.cluster.real_programs import CLIENTS, Database, Web
from tests.cluster.relay_files import discarded_in, events_in, numbers_in, trace_folder
from tests.cluster.weft_cluster import PATIENCE, RESTRICTED, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, metric, send_signal, trace
from tests.debugger import traced

LIBRARY = "libmylib.so"
CALLS = 5000  # of each of the two functions
ARGUMENTS = [{"name": "id", "type": "int32"}, {"name": "bytes", "type": "uint64"},
             {"name": "ratio", "type": "double"}, {"name": "data", "type": "pointer"}]
FUNCTIONS = [{"name": "my_traced_function", "object": LIBRARY + "*", "args": ARGUMENTS},
             {"name": "my_checksum", "object": LIBRARY + "*", "returns": "int64"}]
EVENTS = {f"function:{function['name']}_{moment}" for function in FUNCTIONS for moment in ("entry", "exit")}


def of_functions(name, *functions):
    return trace(name, "sample", user={"functions": list(functions)})


def has_loaded(pid):
    """Has the loader mapped the code of libmylib.so in a process?"""
    return re.search(" r-xp .*/" + LIBRARY, pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8"))


def waits_for_signals(pid):
    """Is a tenant in rt_sigtimedwait (128)? A signal that comes earlier may end it."""
    return pathlib.Path(f"/proc/{pid}/syscall").read_text(encoding="utf-8").startswith("128 ")


def code_of(pid):
    """Returns the code of libmylib.so in a process, and the file's bytes in its place."""
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
        found = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ \d+ +\S*/" + LIBRARY, line)
        if not found:
            continue
        begin, end, offset = (int(number, 16) for number in found.groups())
        with open(f"/proc/{pid}/mem", "rb") as memory, \
                open(f"/proc/{pid}/map_files/{begin:x}-{end:x}", "rb") as file:
            memory.seek(begin)
            file.seek(offset)
            original = file.read(end - begin)
            return memory.read(end - begin)[:len(original)], original
    raise AssertionError(f"process {pid} has not loaded {LIBRARY}")


def all_code_of(pid):
    """Returns digests of all executable mappings of files in a process, but for libweft.so's, by address."""
    code = {}
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines():
            words = line.split()
            if "x" not in words[1] or words[4] == "0" or "/memfd:" in line:
                continue
            begin, end = (int(word, 16) for word in words[0].split("-"))
            memory.seek(begin)
            code[begin] = hashlib.sha256(memory.read(end - begin)).hexdigest()
    return code


def libraries_in(pid):
    """How often libweft.so is loaded in a process."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8")
    return len(set(re.findall(r" (\d+) +/memfd:libweft\.so", maps)))


class Functions(WeftTest):
    LOADED = ("weft-agent", "weft-controller", "weft-webhook", "weft-relay", "sample", "database", "web", "tenant")
    VALUES = ("agent.attach.enabled=true,webhook.namespaceSelector[0].key=closed,"
              "webhook.namespaceSelector[0].operator=DoesNotExist")

    def start(self, name, command):
        one = pod(name, "sample", labels={"app": "sample"}, command=["sh", "-c", command])
        one["spec"]["containers"][0]["env"] = [{"name": "SIMULATED_WORK_US", "value": "200"}]
        self.apply(one, namespace="fn")
        self.wait_for_pod("fn", name)

    def recorded(self, name="t", namespace="fn"):
        # The agent does not answer while it starts again.
        with contextlib.suppress(AssertionError):
            return metric(self.metrics("agent"), "weft_events_recorded_total", namespace, name)
        return 0

    def wait_for_more(self):
        before = self.recorded()
        self.wait_for(lambda: self.recorded() > before, "no more calls are recorded")

    def is_hooked(self, pid):
        code, original = code_of(pid)
        return code != original

    def assert_exact(self):
        """A program that starts while the Trace is there: all its calls, with their values."""
        self.start("early", f"sample_app {CALLS}; exec sleep 100000")
        self.wait_for(lambda: f"sample_app: {CALLS} calls" in kubectl("-n", "fn", "logs", "early").stdout,
                      "the program does not end")

    def assert_stored(self):
        folder = trace_folder("fn", "t")
        names = events_in(folder / "early")
        self.assertEqual(set(names), EVENTS)
        self.assertEqual(sum(names.values()) + discarded_in(folder / "early"), 2 * 2 * CALLS)
        self.assertEqual(set(events_in(folder / "late")), EVENTS)

    def assert_refusals_are_told(self):
        """Another Trace on the same process: one of its functions is misspelt."""
        self.apply(of_functions("wrong", {"name": "my_traced_functoin"},
                                {"name": "my_checksum", "record": ["entry"]}), namespace="fn")
        self.wait_for(lambda: "my_traced_functoin" in self.condition(
            "fn", "wrong", "FunctionsHooked").get("message", ""), "the Trace does not tell what is wrong")
        told = self.condition("fn", "wrong", "FunctionsHooked")
        self.assertEqual((told["status"], told["reason"]), ("False", "HookedInPart"))
        self.assertIn("my_traced_function", told["message"])
        self.delete("fn", "wrong")

    def test_functions_in_pods(self):
        self.injected_namespace("fn")
        self.start("late", "exec sample_app 1000000000")
        late = self.wait_for(lambda: container_pids("fn", "late", "sample_app"), "it does not run")[0]
        self.assertRegex(pathlib.Path(f"/proc/{late}/status").read_text(encoding="utf-8"), r"Seccomp:\s+2")
        self.wait_for(lambda: has_loaded(late), "it does not load its library")
        self.assertFalse(self.is_hooked(late))
        self.apply(of_functions("t", *FUNCTIONS), namespace="fn")
        self.wait_ready("fn", "t", traced=1)
        self.assertTrue(self.is_hooked(late))
        self.wait_for_more()
        self.assert_exact()
        self.assertEqual(self.condition("fn", "t", "FunctionsHooked").get("message", ""), "")
        self.assert_refusals_are_told()
        send_signal(container_pids("weft", self.pods_of("agent")[0], "weft-node-agent"), signal.SIGKILL)
        self.wait_for_more()
        self.assertTrue(self.is_hooked(late))
        events = self.end_by_time("fn", "t")
        self.assertEqual(events["recorded"], events["delivered"] + events["overwritten"] + events["lost"])
        self.assertEqual(events["lost"], 0)
        self.assert_stored()
        self.wait_for(lambda: not self.is_hooked(late), "the functions are not as they were")
        self.delete("fn", "t")
        for name in ("late", "early"):
            self.assertEqual(get("fn", "pod", name)["status"]["containerStatuses"][0]["restartCount"], 0)
        self.assertEqual(container_pids("fn", "late", "sample_app"), [late])

    def start_bare(self, namespace, name, image="tenant", **more):
        """Starts a pod without the library. Returns its first process."""
        one = pod(name, image, labels={"app": image}, **more)
        one["spec"]["containers"][0]["env"] = [{"name": "SIMULATED_WORK_US", "value": "1000"}]
        self.apply(one, namespace=namespace)
        self.wait_for_pod(namespace, name)
        return self.wait_for(lambda: container_pids(namespace, name), "it does not run")[0]

    def skipped(self, namespace):
        return [(pods["reason"], pods["names"])
                for pods in get(namespace, "trace", "t").get("status", {}).get("pods", {}).get("skipped", [])]

    def assert_excluded(self, namespace):
        """The namespace has a label that the chart's webhook.namespaceSelector excludes."""
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}], "attach": True}), namespace=namespace)
        self.wait_for(lambda: self.skipped(namespace) == [("NotAttached", ["tenant"])], "the pod is not skipped")
        self.assertIn("webhook.namespaceSelector", self.condition(namespace, "t", "ProcessesAttached")["message"])

    def attached_condition(self):
        return self.condition("bare", "t", "ProcessesAttached")

    def assert_new_processes_are_found(self, before):
        """A process that starts while the Trace is on. It has no thread 1."""
        kubectl("-n", "bare", "exec", "tenant", "--", "sh", "-c", "tenant --threads 1 >/dev/null 2>&1 &")
        second = self.wait_for(lambda: set(container_pids("bare", "tenant", "tenant")) - before, "it does not run").pop()
        self.wait_for(lambda: waits_for_signals(second), "it does not start")
        self.wait_for(lambda: libraries_in(second), "the library is not loaded into a new process")
        recorded = self.recorded("t", "bare")

        def emits():
            os.kill(second, signal.SIGUSR1)
            return self.recorded("t", "bare") > recorded
        self.wait_for(emits, "nothing of the new process is recorded")

    def wait_for_code(self, code):
        """code: what all_code_of returned, by process."""
        for pid, expected in code.items():
            self.wait_for(lambda pid=pid, expected=expected: all_code_of(pid) == expected,
                          "code of a program is not as it was")

    def delete(self, namespace, *names):
        kubectl("-n", namespace, "delete", "trace", *names, f"--timeout={PATIENCE:.0f}s")

    def assert_recorded_again(self, sample, process):
        """Programs that were given back what weft had changed in them: of a function its exits, too. Of two Traces with
        `attach` one goes, and the other records on. One more comes while a program cannot be given back."""
        tenant = {"events": [{"name": "tenant:*"}], "attach": True}
        self.apply(trace("again", "sample", user={"functions": [FUNCTIONS[0]], "attach": True}),
                   trace("goes", "tenant", user=tenant), trace("stays", "tenant", user=tenant), namespace="bare")
        for name in ("again", "goes", "stays"):
            self.wait_ready("bare", name, traced=1)
        self.assertTrue(self.is_hooked(sample))
        before = self.emitted("bare", "tenant")
        emitted = self.run_tenant("bare") - before
        for name in ("goes", "stays"):
            self.wait_for(lambda name=name: self.recorded(name, "bare") == emitted, f"{name} has not all events")
        self.delete("bare", "goes")
        emitted = self.run_tenant("bare") - before
        self.wait_for(lambda: self.recorded("stays", "bare") == emitted, "not all that follows is recorded")
        with traced(process):
            self.delete("bare", "stays")
            self.apply(trace("next", "tenant", user=tenant), namespace="bare")
            self.wait_ready("bare", "next", traced=1)
        before = self.emitted("bare", "tenant")
        emitted = self.run_tenant("bare") - before
        self.wait_for(lambda: self.recorded("next", "bare") == emitted, "the next Trace has not all events")
        self.end_by_time("bare", "again")
        self.assertIn("function:my_traced_function_exit", events_in(trace_folder("bare", "again") / "sample"))
        self.delete("bare", "again", "next")

    def test_programs_that_run_without_the_library(self):
        self.namespace("bare", RESTRICTED)
        self.namespace("other", {**RESTRICTED, "closed": "yes"})
        other = self.start_bare("other", "tenant")
        self.assert_excluded("other")
        first = self.start_bare("bare", "tenant")
        debugged = self.start_bare("bare", "debugged")
        sample = self.start_bare("bare", "sample", "sample", command=["sample_app", "1000000000"])
        before = self.run_tenant("bare")
        code = {pid: all_code_of(pid) for pid in (first, sample)}
        with traced(debugged):
            self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}], "attach": True}),
                       trace("f", "sample", user={"functions": [{**FUNCTIONS[0], "record": ["entry"]}], "attach": True}),
                       namespace="bare")
            for name in ("t", "f"):
                self.wait_ready("bare", name, traced=1)
            self.wait_for(lambda: "debugged/main" in self.attached_condition().get("message", ""),
                          "the process under a debugger is not named")
            told = self.attached_condition()
            self.assertEqual((told["status"], told["reason"]), ("False", "AttachedInPart"))
            self.assertIn("traces it", told["message"])
            self.wait_for(lambda: self.skipped("bare") == [("NotAttached", ["debugged"])],
                          "the pod under a debugger does not count as skipped")
        self.wait_for(lambda: self.attached_condition()["status"] == "True", "it stays refused")
        for pid, before_it in code.items():
            self.assertNotEqual(all_code_of(pid), before_it)
        self.run_tenant("bare")
        send_signal(container_pids("weft", self.pods_of("agent")[0], "weft-node-agent"), signal.SIGKILL)
        emitted = self.run_tenant("bare", rounds=2) - before
        self.wait_for(lambda: self.recorded("t", "bare") == emitted, "not all that was emitted is recorded")
        self.assert_new_processes_are_found({first})
        self.assertEqual([libraries_in(pid) for pid in (first, debugged, other)], [1, 1, 0])
        events = self.end_by_time("bare", "t")
        self.assertEqual((events["lost"], events["recorded"]), (0, events["delivered"]))
        # Three rounds of 1000 events, after one without the library.
        self.assertEqual(numbers_in(trace_folder("bare", "t") / "tenant")[1], list(range(1000, 4000)))
        names = events_in(trace_folder("bare", "f"))
        self.assertEqual(set(names), {"function:my_traced_function_entry"})
        self.delete("bare", "f", "t")
        self.delete("other", "t")
        self.wait_for_code(code)
        self.assert_recorded_again(sample, first)
        self.wait_for_code(code)
        self.assertEqual(libraries_in(first), 1)
        for name in ("tenant", "debugged", "sample"):
            self.assertEqual(get("bare", "pod", name)["status"]["containerStatuses"][0]["restartCount"], 0)

    def assert_counted(self, namespace, name, counts):
        """Checks that a Trace's events are complete, and the counts of functions of a pod."""
        events = self.end_by_time(namespace, "t")
        self.assertEqual((events["lost"], events["recorded"]), (0, events["delivered"] + events["overwritten"]))
        folder = trace_folder(namespace, "t") / name
        self.assertEqual(discarded_in(folder), 0)
        found = events_in(folder)
        self.assertEqual({event: found[event] for event in counts}, counts)
        return found

    def test_real_programs_in_two_namespaces(self):
        """PostgreSQL under pgbench and nginx under load at the same time. They ran before their Traces."""
        self.namespace(CLIENTS)
        for namespace in ("db", "web"):
            self.injected_namespace(namespace)
        database, web = Database(self, "db"), Web(self, "web")
        query = {"name": "pg_parse_query", "object": "postgres", "args": [{"name": "query", "type": "string"}],
                 "filter": 'query == "UPDATE pgbench_accounts*"', "record": ["entry"]}
        self.apply(trace("t", "database", user={"functions": [query, {"name": "ExecutorRun", "record": ["call"]}]}),
                   namespace="db")
        handled = {"name": "ngx_http_process_request", "object": "nginx"}
        written = {"name": "SSL_write", "object": "libssl.so*", "returns": "int32"}
        self.apply(trace("t", "web", user={"functions": [handled, written]}), namespace="web")
        for namespace in ("db", "web"):
            self.wait_ready(namespace, "t", traced=1)
        before = web.logged()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            requests = pool.submit(web.run, 40)
            transactions = database.run(1000)
            requests.result()
        self.assertEqual(transactions, 1000)
        self.assertEqual(database.rows(), transactions)
        answered = web.logged() - before
        self.assertEqual(answered, 40)
        found = self.assert_counted("db", "database", {"function:pg_parse_query_entry": transactions})
        self.assertGreaterEqual(found["function:ExecutorRun_call"], 5 * transactions)
        found = self.assert_counted("web", "web", {"function:ngx_http_process_request_entry": answered,
                                                   "function:ngx_http_process_request_exit": answered})
        self.assertGreaterEqual(found["function:SSL_write_exit"], answered)
        self.assertEqual(found["function:SSL_write_exit"], found["function:SSL_write_entry"])
        for namespace, name in (("db", "database"), ("web", "web")):
            self.assertEqual(get(namespace, "pod", name)["status"]["containerStatuses"][0]["restartCount"], 0)


if __name__ == "__main__":
    unittest.main()
