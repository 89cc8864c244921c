#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flight recorders on a real cluster: what overwrites its oldest events, streamed and as a snapshot. The
books balance, and the newest events are there. Also Traces that have one name after each other, the counts of a
session that is deleted, what images preload, many pods at once, and types of functions from a debuginfod server. And
what tenants read of their Traces (view_cases.py), and what nodes have to prove (trust_cases.py)."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from tests.cluster import settings
from tests.cluster.relay_files import discarded_in, events_in, relay_folder, trace_folder
from tests.cluster.trust_cases import TrustCases
from tests.cluster.view_cases import ViewCases
from tests.cluster.weft_cluster import PATIENCE, RESTRICTED_CONTAINER, get, kubectl, pod
from tests.cluster.with_weft import WeftTest, container_pids, metric, send_signal, trace
from tests.local.huge_pages import HUGE, bytes_in_huge_pages, why_no_huge_page

LONG = os.environ.get("WEFT_LONG") == "1"
PODS = 200 if LONG else 24  # at once
EVENTS = 200_000  # of each of two threads in a round: many times what the buffers hold
DEBUG_PORT = 8080
DEBUG_SERVER = f"http://debug.typed.svc:{DEBUG_PORT}"
TYPED = """#include <unistd.h>
static volatile int last;
__attribute__((noipa)) int typed(int number) {
  last = number;
  return number + 1;
}
int main(void) {
  for (int i = 0;; i = typed(i)) usleep(1000);
}
"""
BUFFER = {"size": "16Ki", "count": 2, "mode": "overwrite"}
RELAY_USER = 65532
CLONE_NEWNS, MS_REMOUNT = 0x20000, 32
# In a process of its own, as a process does not come back from the container's file systems.
MOUNT_IN = f"""import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, folder, size, flags = sys.argv[1:]
options = f"size={{size}},mode=755,uid={RELAY_USER},gid={RELAY_USER}".encode()
if (libc.setns(os.open(f"/proc/{{pid}}/ns/mnt", os.O_RDONLY), {CLONE_NEWNS}) or
        libc.mount(b"tmpfs", folder.encode(), b"tmpfs", int(flags), options)):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


def mount_memory(pid, folder, size, flags=0):
    """Mounts a file system in memory over a folder of a process's container, which nothing outside of it sees."""
    subprocess.run([sys.executable, "-c", MOUNT_IN, str(pid), folder, size, str(flags)], check=True)


class Modes(TrustCases, ViewCases, WeftTest):
    LOADED = WeftTest.LOADED + ("preloading",)
    VALUES = f"agent.debuginfod.urls[0]={DEBUG_SERVER}"

    def start(self, namespace, buffer=BUFFER, labels=None, **spec):
        """A tenant, and a Trace of it that is ready. Labels: of the namespace."""
        self.injected_namespace(namespace, labels)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"},
                       args=["--events", str(EVENTS), "--threads", "2"]), namespace=namespace)
        self.wait_for_pod(namespace, "tenant")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}, buffer=buffer,
                         **spec), namespace=namespace)
        self.wait_ready(namespace, "t", traced=1)

    def assert_end(self, namespace, emitted):
        events = self.end_by_time(namespace, "t")
        self.assertEqual(events["recorded"], emitted)
        self.assertEqual(events["recorded"], events["delivered"] + events["overwritten"])
        self.assertGreater(events["overwritten"], 0, "nothing was overwritten: the buffers are too large")
        stored = events_in(relay_folder() / namespace / "t")
        self.assertEqual(sum(stored.values()), events["delivered"])
        self.assertEqual(metric(self.metrics("agent"), "weft_events_overwritten_total", namespace, "t"),
                         events["overwritten"])
        return stored

    def test_overwritten_events_are_counted(self):
        self.start("flight")
        self.assert_end("flight", self.run_tenant("flight"))

    def test_a_trace_keeps_its_newest_events_within_its_share(self):
        self.start("share", buffer={"size": "1Mi", "count": 8}, storage={"maxSize": "16Mi"})

        def removed():
            return metric(self.metrics("relay"), "weft_relay_removed_events_total", "share", "t")
        # A round stores some MiB: fewer where events are discarded.
        self.wait_for(lambda: self.run_tenant("share", rounds=3) and removed() > 0, "nothing is removed")
        events = self.end_by_time("share", "t")
        self.assertEqual(events["recorded"] + events["discarded"], self.emitted("share", "tenant"))
        self.assertEqual(events["delivered"], events["recorded"])
        folder = relay_folder() / "share" / "t"
        self.assertEqual(sum(events_in(folder).values()) + removed(), events["delivered"])
        self.assertLessEqual(sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()), 16 << 20)
        self.wait_for(lambda: get("share", "trace", "t")["status"].get("storage", {}).get("removedEvents") == removed(),
                      "the status has another count of what was removed than the relay")

    def test_a_full_disk_of_the_relay_is_told_of_while_it_is_full(self):
        """It holds up the Trace whose folder is on it, and no other."""
        name = "full"
        relay = container_pids("weft", "weft-relay-0", "weft-relay")[0]
        folder = relay_folder() / name / "t"
        folder.mkdir(parents=True)
        for one in (folder, folder.parent):
            os.chown(one, RELAY_USER, RELAY_USER)
        mount_memory(relay, f"/data/{name}/t", "4m")
        self.start(name, buffer={"mode": "discard"})
        self.apply(trace("other", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=name)
        self.wait_ready(name, "other", traced=1)

        def events():
            return get(name, "trace", "t")["status"]["events"]

        def reason(of="t"):
            return self.condition(name, of, "RelayAvailable")["reason"]
        self.wait_for(lambda: self.run_tenant(name) and reason() == "Refused", "the disk does not become full")
        self.assertIn("No space left on device", self.condition(name, "t", "RelayAvailable")["message"])
        before = events()
        emitted = self.run_tenant(name)
        self.wait_for(lambda: events()["recorded"] + events()["discarded"] == emitted,
                      "the status does not tell what became of the events")
        self.assertGreater(events()["discarded"], before["discarded"])
        self.assertEqual(metric(self.metrics("agent"), "weft_events_discarded_total", name, "t"), events()["discarded"])
        self.assertRegex(self.metrics("relay"), r'weft_relay_refused_sessions_total{reason="storage"} [1-9]')
        self.assertEqual(reason("other"), "Connected")
        mount_memory(relay, f"/data/{name}/t", "256m", flags=MS_REMOUNT)
        self.wait_for(lambda: reason() == "Connected", "the relay stays unavailable")
        emitted = self.run_tenant(name)
        for one, store in (("t", pathlib.Path(f"/proc/{relay}/root/data")), ("other", relay_folder())):
            ended = self.end_by_time(name, one)
            self.assertEqual((ended["recorded"] + ended["discarded"], ended["lost"]), (emitted, 0))
            self.assertEqual(ended["delivered"], ended["recorded"])
            stored = store / get(name, "trace", one)["status"]["folder"]
            self.assertEqual((sum(events_in(stored).values()), discarded_in(stored)),
                             (ended["delivered"], ended["discarded"]))
            self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", name, one), ended["delivered"])

    def test_rules_that_no_program_offers_are_named(self):
        """A misspelt event, and a misspelt field in a filter: with what there is, also beside a rule that is right."""
        self.start("misspelt")
        rules = [{"name": "tenant:wrok"}, {"name": "tenant:work", "filter": "nubmer > 0"}]
        wrong = trace("wrong", "tenant", user={"events": rules})
        self.apply(wrong, namespace="misspelt")

        def said():
            condition = self.condition("misspelt", "wrong", "Receiving")
            return condition["reason"], condition.get("message", "")
        event = ('event "tenant:wrok": running programs offer no such tracepoint, did you mean "tenant:work"?')
        field = ('filter of event "tenant:work": no event that running programs offer for it has a field "nubmer", '
                 'did you mean "number"?')
        self.wait_for(lambda: said() == ("NotOffered", f"{event}; {field}"), "the Trace does not say what is wrong")
        rules[1]["filter"] = "number >= 0"
        self.apply(wrong, namespace="misspelt")
        self.wait_for(lambda: said() == ("NotOffered", event), "the field that was mended is still named")
        self.run_tenant("misspelt")
        self.wait_for(lambda: said() == ("Delivered", event), "the wrong rule is not named beside the right one")

    def test_rings_in_full_use_are_moved_into_huge_pages(self):
        why = why_no_huge_page()
        if why:
            self.skipTest(f"no huge page is to be had here: {why}")
        self.start("busy", buffer={"mode": "overwrite"})

        def is_moved():
            # Each time that the writer goes round is a trial, which may find no huge page.
            self.run_tenant("busy")
            maps = kubectl("-n", "busy", "exec", "tenant", "--", "cat", "/proc/1/smaps").stdout
            return bytes_in_huge_pages(maps) >= HUGE

        self.wait_for(is_moved, "no ring was moved")

    def test_a_snapshot_is_what_the_buffers_hold_at_the_end(self):
        self.start("snapshot", output={"mode": "snapshot"})
        emitted = self.run_tenant("snapshot", rounds=2)
        self.assertEqual(metric(self.metrics("relay"), "weft_events_delivered_total", "snapshot", "t"),
                         0)
        stored = self.assert_end("snapshot", emitted)
        # A round ends with it, on a thread of its own.
        self.assertGreaterEqual(stored["tenant:idle"], 1)

    def test_the_last_events_of_a_pod_that_ended_are_there(self):
        self.start("ended", output={"mode": "snapshot"})
        emitted = self.run_tenant("ended")
        kubectl("-n", "ended", "delete", "pod", "tenant")
        self.wait_for(lambda: metric(self.metrics("relay"), "weft_events_delivered_total", "ended",
                                     "t"), "nothing of the pod comes")
        self.assert_end("ended", emitted)

    def test_pods_whose_processes_lack_the_library_are_named(self):
        """And a container that `kubectl debug` added, which a Trace asks for."""
        # Not below /tmp, which may be mounted without setuid.
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=settings.TOP / "build")))
        for program, options in (("static", ["-static"]), ("setuid", [])):
            subprocess.run(["cc", *options, "-x", "c", "-", "-o", files / program], text=True, check=True,
                           input="#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
        (files / "setuid").chmod(0o4755)
        files.chmod(0o755)
        name = "named"
        self.start(name, labels={})
        bare = pod("bare", "shell", labels={"app": "tenant"}, command=["env", "-i", "sleep", "100000"])
        static, setuid = (pod(one, "shell", labels={"app": "tenant"}, command=[f"/files/{one}"],
                              mounts={"/files": {"hostPath": {"path": str(files)}}}) for one in ("static", "setuid"))
        # Otherwise the kernel ignores the bit.
        escalates = {"allowPrivilegeEscalation": True}
        setuid["spec"]["containers"][0]["securityContext"] = RESTRICTED_CONTAINER | escalates
        absent = pod("absent", "absent", labels={"app": "tenant"}, command=["sleep", "100000"])
        self.apply(bare, static, setuid, absent, namespace=name)
        kubectl("-n", name, "debug", "tenant", "--image=localhost/weft-test/shell:dev", "--container=debugger",
                "--profile=general", "--", "sleep", "100000")
        debugged = trace("debugged", "tenant")
        debugged["spec"]["pods"]["containers"] = ["debugger"]
        self.apply(debugged, namespace=name)

        def skipped():
            pods = get(name, "trace", "t")["status"]["pods"]
            return pods["traced"], {s["reason"]: sorted(s["names"]) for s in pods.get("skipped", [])}

        wanted = (1, {"LibraryNotLoaded": ["bare", "setuid", "static"], "NotStarted": ["absent"]})
        self.wait_for(lambda: skipped() == wanted, f"not all pods are named: {skipped()}")
        messages = {s["reason"]: s["message"] for s in get(name, "trace", "t")["status"]["pods"]["skipped"]}
        for part in ("static or setuid", "keep LD_PRELOAD", "spec.kernel.userProbes"):
            self.assertIn(part, messages["LibraryNotLoaded"])
        users = [re.search(r"^Uid:\t(\d+)\t(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8"),
                           re.MULTILINE).groups() for pid in container_pids(name, "setuid")]
        self.assertEqual(users, [("65532", "0")], "the program does not run as its owner")
        self.assertEqual(self.condition(name, "t", "Ready")["status"], "True")

        def ephemeral():
            pods = get(name, "trace", "debugged").get("status", {}).get("pods", {})
            return [s["names"] for s in pods.get("skipped", []) if s["reason"] == "EphemeralContainer"]
        self.wait_for(lambda: ephemeral() == [["tenant"]], "the pod with the ephemeral container is not named")

    def test_many_pods_at_once(self):
        """A Job whose pods all run, then emit at one moment, and end."""
        name = "many"
        gate = settings.CONTROL_PLANE.folder / "gate"
        gate.mkdir()
        self.injected_namespace(name, {})
        # The webhook may hear of the library later, and the pods of a Job are made once.
        self.apply(pod("probe", "tenant"), namespace=name)
        self.apply(trace("t", name, buffer={"size": "64Ki", "count": 4}), namespace=name)
        run = "until [ -e /gate/open ]; do sleep 2; done; exec shop --orders 300 --threads 1"
        template = pod("", "shop", command=["sh", "-c", run],
                       mounts={"/gate": {"hostPath": {"path": str(gate), "type": "Directory"}}})
        self.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
                    "spec": {"parallelism": PODS, "completions": PODS,
                             "template": {"metadata": {"labels": {"app": name}}, "spec": template["spec"]}}},
                   namespace=name)
        self.wait_for(lambda: get(name, "trace", "t").get("status", {}).get("pods", {}).get("traced") == PODS,
                      "not all pods are traced")
        (gate / "open").touch()
        kubectl("-n", name, "wait", f"job/{name}", "--for=condition=Complete", f"--timeout={PATIENCE:.0f}s")
        logs = kubectl("-n", name, "logs", "-l", f"app={name}", "--tail=-1", f"--max-log-requests={PODS}").stdout
        emitted = [int(count) for count in re.findall(r"^events (\d+)$", logs, re.MULTILINE)]
        self.assertEqual(len(emitted), PODS)
        # Where a node does not answer for a moment, there is one more.
        self.assertLessEqual(self.event_reasons(name, "t").count("Recording"), 4, "Ready changed to and fro")
        events = self.end_by_time(name, "t")
        self.assertEqual((events["recorded"] + events["discarded"], events["lost"]), (sum(emitted), 0))
        self.assertEqual(events["delivered"], events["recorded"])
        folder = trace_folder(name, "t")
        self.assertEqual(len(list(folder.iterdir())), PODS)
        self.assertEqual((sum(events_in(folder).values()), discarded_in(folder)),
                         (events["delivered"], events["discarded"]))

    def preloading_pod(self, namespace, name, annotations=None, env_from=None):
        """A tenant whose image sets LD_PRELOAD."""
        made = pod(name, "preloading", labels={"app": "preloading"})
        made["metadata"]["annotations"] = annotations or {}
        if env_from:
            made["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": env_from}}]
        self.apply(made, namespace=namespace)
        self.wait_for_pod(namespace, name)

    def test_what_images_and_envfrom_preload_is_kept_or_named(self):
        name = "preloading"
        library = "/usr/lib/libimage_library.so"
        self.injected_namespace(name)
        for config_map, data in (("sets", {"LD_PRELOAD": library}), ("sets-not", {"A": "b"})):
            self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": config_map}, "data": data},
                       namespace=name)
        self.preloading_pod(name, "replaced")
        self.preloading_pod(name, "other-env", env_from="sets-not")
        self.preloading_pod(name, "annotated", annotations={"weft.dev/preload": library})
        self.preloading_pod(name, "from-env", env_from="sets")
        self.apply(trace("t", "preloading", user={"events": [{"name": "tenant:*"}]}), namespace=name)
        self.wait_ready(name, "t", traced=4)
        self.wait_for(lambda: all(f"{p}/main" in self.condition(name, "t", "PreloadKept").get("message", "")
                                  for p in ("replaced", "other-env")), "the pods are not named")
        kept = self.condition(name, "t", "PreloadKept")
        self.assertEqual((kept["status"], kept["reason"]), ("False", "ImagePreloadReplaced"))
        self.assertIn(f'weft.dev/preload: "{library}"', kept["message"])
        emitted = 0
        for one, runs in (("replaced", False), ("other-env", False), ("annotated", True), ("from-env", True)):
            logs = kubectl("-n", name, "logs", one).stdout
            self.assertEqual("the image's library runs" in logs, runs, (one, logs))
            self.assertNotIn("ld.so", logs)
            if runs:
                self.assertNotIn(f"{one}/main", kept["message"])
            emitted += self.run_tenant(name, pod=(one,))
        notes = [e for e in get(name, "events.events.k8s.io")["items"] if e["reason"] == "ImagePreloadReplaced"]
        self.assertEqual(len(notes), 1, notes)
        kubectl("-n", name, "delete", "pod", "replaced", "other-env")
        self.wait_for(lambda: self.condition(name, "t", "PreloadKept")["status"] == "True", "it stays False")
        events = self.end_by_time(name, "t")
        self.assertEqual((events["recorded"], events["delivered"], events["missing"]), (emitted, emitted, 0))

    def test_symbols_and_types_come_from_a_debuginfod_server(self):
        """It is a Service of the cluster. The program is stripped: without the server, nothing is recorded."""
        files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(["cc", "-g", "-O1", "-Wl,--build-id", "-x", "c", "-", "-o", files / "whole"], input=TYPED, text=True,
                       check=True)
        subprocess.run(["objcopy", "--strip-all", files / "whole", files / "typed"], check=True)
        notes = subprocess.run(["readelf", "-n", files / "whole"], check=True, capture_output=True, text=True).stdout
        folder = files / "buildid" / notes.split("Build ID: ")[1].split()[0]
        folder.mkdir(parents=True)
        subprocess.run(["objcopy", "--only-keep-debug", files / "whole", folder / "debuginfo"], check=True)
        files.chmod(0o755)
        name = self.injected_namespace("typed", labels={})
        mounts = {"/files": {"hostPath": {"path": str(files)}}}
        ports = [{"port": DEBUG_PORT, "targetPort": DEBUG_PORT}]
        self.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "debug"},
                    "spec": {"selector": {"app": "debug"}, "ports": ports}},
                   pod("debug", "shell", labels={"app": "debug"}, mounts=mounts,
                       command=["httpd", "-f", "-p", str(DEBUG_PORT), "-h", "/files"]),
                   pod("typed", "shell", labels={"app": "typed"}, mounts=mounts, command=["/files/typed"]), namespace=name)
        for one in ("debug", "typed"):
            self.wait_for_pod(name, one)
        # An agent asks once in ten minutes.
        url = f"{DEBUG_SERVER}/{folder.relative_to(files)}/debuginfo"
        self.wait_for(lambda: kubectl("-n", name, "exec", "typed", "--", "timeout", "5", "wget", "-q", "-O",
                                      "/dev/null", url, check=False).returncode == 0, "the server does not answer")
        self.apply(trace("t", "typed", user={"functions": [{"name": "type*", "object": "typed", "record": ["entry"]}]}),
                   namespace=name)
        self.wait_ready(name, "t")
        self.wait_for(lambda: metric(self.metrics("agent"), "weft_events_recorded_total", name, "t") > 0,
                      "nothing is recorded")
        self.end_by_time(name, "t")
        stored = trace_folder(name, "t")
        self.assertEqual(set(events_in(stored)), {"function:typed_entry"})
        for metadata in stored.rglob("metadata"):
            self.assertIn(b"number", metadata.read_bytes())

    def test_attach_needs_a_value_of_the_chart(self):
        name = "unlabelled"
        self.namespace(name)
        self.apply(pod("tenant", "tenant", labels={"app": "tenant"}), namespace=name)
        self.wait_for_pod(name, "tenant")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}], "attach": True}), namespace=name)
        self.wait_for(lambda: self.condition(name, "t", "ProcessesAttached")["reason"] == "NotAllowed",
                      "the Trace does not tell why nothing is recorded")
        self.assertIn("agent.attach.enabled", self.condition(name, "t", "ProcessesAttached")["message"])
        self.wait_for(lambda: self.condition(name, "t", "Ready")["reason"] == "NothingTraced", "it counts as recorded")

    def agent_pid(self):
        """The process weft-node-agent on the node, which the keeper starts again; None: it does not run."""
        return next(iter(container_pids("weft", self.agent_pod(), "weft-node-agent")), None)

    def agent_pod(self):
        return self.pods_of("agent")[0]

    def test_the_agents_pod_is_killed_deleted_and_comes_back(self):
        """The program goes on meanwhile: all that it emitted is in one CTF trace or counted as discarded, once."""
        name = "replaced"
        self.start(name, buffer={"mode": "discard"})
        self.run_tenant(name)
        send_signal(container_pids("weft", self.agent_pod()), signal.SIGKILL)
        self.run_tenant(name)
        self.wait_for(self.agent_pid, "the agent's container is not started again")
        self.run_tenant(name)
        kubectl("-n", "weft", "delete", "pod", self.agent_pod(), f"--timeout={PATIENCE:.0f}s")
        self.run_tenant(name)
        kubectl("-n", "weft", "rollout", "status", "daemonset/weft-agent", f"--timeout={PATIENCE:.0f}s")
        self.wait_ready(name, "t")
        emitted = self.run_tenant(name)
        events = self.end_by_time(name, "t")
        folder = trace_folder(name, "t")
        self.assertEqual(self.events_of(folder), emitted)
        self.assertEqual(sum(events_in(folder).values()), events["delivered"])
        self.assertEqual((events["lost"], events["recorded"]), (0, events["delivered"]))
        self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1)

    def events_of(self, folder):
        return sum(events_in(folder).values()) + discarded_in(folder)

    def test_counts_of_a_deleted_session_stay(self):
        name = "removed"
        self.start(name, buffer={"mode": "discard"})
        self.run_tenant(name)
        before = get(name, "tracesessions")["items"][0]["metadata"]
        kubectl("-n", name, "delete", "tracesession", before["name"], f"--timeout={PATIENCE:.0f}s")

        def next_is_ready():
            return any(s["metadata"]["uid"] != before["uid"] and
                       self.condition(name, before["name"], "Ready", "tracesession")["status"] == "True"
                       for s in get(name, "tracesessions")["items"])

        self.wait_for(next_is_ready, "no other session follows")
        emitted = self.run_tenant(name)
        events = self.end_by_time(name, "t")
        self.assertEqual(events["recorded"] + events["discarded"], emitted)
        self.assertEqual(events["recorded"], events["delivered"])
        self.assertEqual(get(name, "trace", "t")["status"]["removedSessions"]["uids"], [before["uid"]])
        # The Event follows the status.
        notes = self.wait_for(lambda: [e["note"] for e in get(name, "events.events.k8s.io")["items"]
                                       if e["reason"] == "Completed"], "no Event")
        self.assertEqual(len(notes), 1, notes)
        self.assertIn(f"Recorded {events['recorded']} events and delivered {events['delivered']}.", notes[0])

    def test_a_trace_made_again_has_a_folder_of_its_own(self):
        name = "again"
        self.start(name, buffer={"mode": "discard"})
        first = trace_folder(name, "t")
        self.run_tenant(name)
        # The agent that follows goes on in the same CTF trace.
        before = self.agent_pid()
        os.kill(before, signal.SIGKILL)
        self.wait_for(lambda: self.agent_pid() not in (None, before), "the agent is not started again")
        emitted = self.run_tenant(name)
        kubectl("-n", name, "delete", "trace", "t", f"--timeout={PATIENCE:.0f}s")
        self.apply(trace("t", "tenant", user={"events": [{"name": "tenant:*"}]}), namespace=name)
        self.wait_ready(name, "t", traced=1)
        second = trace_folder(name, "t")
        emitted_again = self.run_tenant(name) - emitted
        self.end_by_time(name, "t")
        self.assertEqual({first, second}, set((relay_folder() / name / "t").iterdir()))
        self.assertEqual(second.name, get(name, "trace", "t")["metadata"]["uid"])
        self.assertEqual(self.events_of(first), emitted)
        self.assertEqual(self.events_of(second), emitted_again)
        for folder in (first, second):
            self.assertEqual(len(list((folder / "tenant" / "main").iterdir())), 1)


if __name__ == "__main__":
    unittest.main()
