# SPDX-License-Identifier: Apache-2.0
"""Contexts have the values that the program itself reads; filters and trackers go by them."""

import json
import os
import subprocess
import time
import unittest

from tests.local.weft_local import BUILD, PATIENCE, LocalTest

CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
SELF = BUILD / "tests" / "local" / "local_self"
NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")
# The contexts that self.c prints.
CONTEXTS = ("vpid", "vtid", "pthread_id", "cpu_id", "procname", "vuid", "veuid", "vsuid", "vgid", "vegid",
            "vsgid", *(name + "_ns" for name in NAMESPACES))
UNMAPPED = 65534  # an id that a user namespace does not map
# In a PID namespace of its own: its vpid is 1, its children's 2, 3, ...
ALONE = ("unshare", "--pid", "--fork", "--kill-child")


class Values(LocalTest):
    maxDiff = None

    def needs_root(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, for namespaces and other users")


class Times(Values):
    """Makes the clock `monotonic`, which a node uses if programs cannot read its clock source."""
    HIDE = f"mount --bind $0 {CLOCK_SOURCE} && exec \"$@\""

    def record_monotonic(self, *program, before=()):
        """Returns the events' times, all between the recording's begin and its end, and the trace's
        counts."""
        self.needs_root()
        source = self.folder / "clocksource"
        source.write_text("hpet\n")
        command = ["unshare", "-m", "sh", "-c", self.HIDE, source, *before,
                   *self.command("--allow-missing", "-e", "emitter:*", program=[*program, *self.emitter()])]
        begin = time.time_ns()
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        end = time.time_ns()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_complete()
        self.assertEqual(self.counts()["late"], 0)
        wrong = [event for event in self.view() if not begin <= event["time_ns"] <= end]
        self.assertEqual(wrong[:3], [])

    def in_time_namespace(self, seconds):
        prefix = ("unshare", "--time", "--monotonic", seconds, "--fork")
        if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode != 0:
            self.skipTest("no time namespaces here")
        return prefix

    def test_without_a_time_namespace(self):
        self.record_monotonic()

    def test_program_in_a_time_namespace(self):
        self.record_monotonic(*self.in_time_namespace("86400"))

    def test_program_in_a_time_namespace_behind(self):
        self.record_monotonic(*self.in_time_namespace("-10"))

    def test_weft_in_a_time_namespace(self):
        self.record_monotonic(before=self.in_time_namespace("86400"))


class Contexts(Values):
    def compare(self, *commands, count, before=()):
        """Returns every context of every event, with the values that the program printed for it."""
        names = [word for name in CONTEXTS for word in ("-c", name)]
        out, _ = self.record("-e", "self:*", *names, program=[*before, SELF, "cpu:last", *commands])
        told = [json.loads(line) for line in out.splitlines()]
        found = [event["context"] for event in self.view()]
        self.assertEqual(len(told), count)
        # Events of a process that was heard of late may stand behind another's.
        self.assertEqual(sorted(found, key=lambda context: context["vpid"]),
                         sorted(told, key=lambda context: context["vpid"]))
        self.assertEqual([list(context) for context in found], [list(CONTEXTS)] * count)
        return told

    def test_threads_and_names(self):
        first, second = self.compare("emit", "thread", "name:another one", "emit", count=2)
        self.assertEqual((first["procname"], second["procname"]), ("local_self", "another one"))
        self.assertEqual(first["vpid"], second["vpid"])
        for name in ("vtid", "pthread_id"):
            self.assertNotEqual(first[name], second[name])

    def test_ids(self):
        self.needs_root()
        first, second = self.compare("emit", "gid:11,12,13", "uid:21,22,0", "emit", count=2)
        self.assertEqual(first["vuid"], 0)
        self.assertEqual([second[name] for name in CONTEXTS[5:11]], [21, 22, 0, 11, 12, 13])

    def in_a_user_namespace(self, *commands, vuid, before=()):
        if subprocess.run(["unshare", "--user", "true"], check=False,
                          capture_output=True).returncode != 0:
            self.skipTest("no user namespaces here")
        last = self.compare(*commands, count=commands.count("emit"), before=before)[-1]
        self.assertEqual(last["vuid"], vuid)
        self.assertNotEqual(last["user_ns"], os.stat("/proc/self/ns/user").st_ino)

    def test_goes_into_a_user_namespace(self):
        self.in_a_user_namespace("emit", "unshare:user", "emit", vuid=UNMAPPED)

    def test_is_in_a_user_namespace(self):
        self.in_a_user_namespace("emit", vuid=0, before=("unshare", "--user", "--map-root-user"))

    def test_namespaces(self):
        self.needs_root()
        for name in NAMESPACES:
            with self.subTest(name):
                self.folder = self.folder / name
                self.folder.mkdir()
                first, child, last = self.compare("emit", "unshare:" + name, "fork", "emit", count=3)
                changed = [{n for n in NAMESPACES if first[n + "_ns"] != event[n + "_ns"]}
                           for event in (child, last)]
                # These two namespaces begin with a child.
                self.assertEqual(changed, [{name}, {name} - {"pid", "time"}])


class ApplicationContexts(Values):
    # The values of self.c's contexts by type; those of narrow integers have equal bits, as far as
    # they go.
    TYPES = {"none": {}, "s8": -0x68, "s16": -0x4568, "s32": -0x1234568, "s64": -2**63,
             "u8": 0x98, "u16": 0xba98, "u32": 0xfedcba98, "u64": 2**64 - 1,
             "float": -2.5, "double": 0.1, "string": 'a "text"'}

    def test_every_type(self):
        names = [word for name in self.TYPES for word in ("-c", f"$app.self:{name}")]
        self.record("-e", "self:*", *names, program=[SELF, "emit", "types", "emit"])
        before, after = (event["context"] for event in self.view())
        self.assertEqual({name: after[f"_app_self_{name}"] for name in self.TYPES}, self.TYPES)
        self.assertEqual({name: before[f"_app_self_{name}"] for name in self.TYPES},
                         dict.fromkeys(self.TYPES, {}))  # no provider was loaded yet


class Filters(Values):
    def numbers(self, condition, *commands, before=()):
        """Returns the numbers of the recorded events, in order."""
        output = f"trace{len(list(self.folder.iterdir()))}"
        self.record("-e", "self:*", "--filter", condition, program=[*before, SELF, *commands],
                    output=output)
        return sorted(event["payload"]["number"] for event in self.view(output))

    def test_of_the_thread(self):
        self.needs_root()
        threads = ["emit", "thread", "name:xyz", "emit", "fork", "emit"]
        for condition, numbers in (("$ctx.vtid == 1", [1]), ("$ctx.vtid == 2", [2, 3]),
                                   ("$ctx.vpid != 1", [1]), ("$ctx.vpid == 1 && number >= 2", [2, 3]),
                                   ('$ctx.procname == "x*"', [1, 2, 3]),
                                   ('$ctx.procname == "local_self"', [1]),
                                   ('number == 1 && $ctx.procname != "xyz"', [1]),
                                   ("$ctx.vtid << 1 == 4 || number == 1", [1, 1, 2, 3])):
            with self.subTest(condition):
                self.assertEqual(self.numbers(condition, *threads, before=ALONE), numbers)

    def test_of_ids_and_namespaces(self):
        self.needs_root()
        own = os.stat("/proc/self/ns/uts").st_ino
        steps = ["emit", "uid:21,22,0", "emit", "uid:0,0,0", "unshare:uts", "emit"]
        for condition, numbers in (("$ctx.vuid == 21", [2]), ("$ctx.veuid == 22 && $ctx.vsuid == 0", [2]),
                                   (f"$ctx.uts_ns == {own}", [1, 2]),
                                   (f"$ctx.uts_ns != {own} || number == 1", [1, 3])):
            with self.subTest(condition):
                self.assertEqual(self.numbers(condition, *steps), numbers)

    def test_of_the_application(self):
        steps = ["emit", "app", "emit", "emit", "emit", "emit"]
        for condition, numbers in (("$app.self:number > 3", [4, 5]),
                                   ("$app.self:number > 3 && number < 5", [4]),
                                   ('$app.self:word == "e*"', [2, 4]),
                                   ('$app.self:word == "odd" || number == 2', [2, 3, 5]),
                                   ("$app.self:number == number", [2, 3, 4, 5]),
                                   # `||` does not evaluate its right side if the left one is true;
                                   # a missing value that is evaluated makes the filter false.
                                   ("number == 1 || $app.self:number == 3", [1, 3]),
                                   ("$app.self:number == 3 || number == 1", [3]),
                                   ("$app.self:word > 3 || number == 2", []),
                                   ("$app.self:absent == 1", [])):
            with self.subTest(condition):
                self.assertEqual(self.numbers(condition, *steps), numbers)


    def test_of_the_application_by_type(self):
        for condition in ("$app.self:s8 == -0x68 && $app.self:s16 == -0x4568 && $app.self:s32 == -0x1234568"
                          " && $app.self:s64 < -0x7fffffffffffffff",
                          "$app.self:u8 == 0x98 && $app.self:u16 == 0xba98 && $app.self:u32 == 0xfedcba98",
                          "$app.self:float == -2.5 && $app.self:double == 0.1",
                          '$app.self:string == "a *"'):
            with self.subTest(condition):
                self.assertEqual(self.numbers(condition, "emit", "types", "emit"), [2])


class Trackers(Values):
    def tracked(self, trackers, *commands, before=ALONE):
        """Returns (vpid, number) of the recorded events, in order."""
        output = f"trace{len(list(self.folder.iterdir()))}"
        text = self.folder / f"{output}.yaml"
        text.write_text(f"""apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {{name: t}}
spec:
  user: {{events: [{{name: "self:*"}}]}}
  context: [vpid]
  trackers: {{{trackers}}}
""")
        self.record("-f", text, program=[*before, SELF, *commands], output=output)
        found = [(event["context"]["vpid"], event["payload"]["number"]) for event in self.view(output)]
        self.assertEqual(self.counts()["emitted"], len(found))
        return sorted(found)

    def test_processes(self):
        self.needs_root()
        for vpids, expected in (("1", [(1, 1), (1, 2)]), ("2", [(2, 1)]), ("3", []),
                                ("2, 1", [(1, 1), (1, 2), (2, 1)])):
            with self.subTest(vpids):
                self.assertEqual(self.tracked(f"vpid: [{vpids}]", "emit", "fork", "emit"), expected)

    def test_a_process_stays_tracked_over_exec_and_in_its_threads(self):
        self.needs_root()
        steps = ["emit", "thread", "emit", "fork", "emit", "exec", "emit"]
        self.assertEqual(self.tracked("vpid: [1]", *steps), [(1, 1), (1, 1), (1, 2), (1, 3)])
        self.assertEqual(self.tracked("vpid: [2]", *steps), [])  # the thread is no process
        self.assertEqual(self.tracked("vpid: [3]", *steps), [(3, 1), (3, 1)])

    def test_users(self):
        """A process's user at its first event decides for as long as it runs its program."""
        self.needs_root()
        change = "uid:21,21,21"
        for steps, of_root, of_21 in (
                (["emit"], [(1, 1)], []),
                (["emit", change, "emit"], [(1, 1), (1, 2)], []),
                (["uid:21,0,0", "emit", "uid:0,0,0", "emit"], [], [(1, 1), (1, 2)]),
                (["emit", change, "fork", "emit"], [(1, 1), (1, 2)], [(2, 1)]),
                (["emit", change, "exec", "emit"], [(1, 1)], [(1, 1)])):
            with self.subTest(steps):
                self.assertEqual(self.tracked("vuid: [0]", *steps), of_root)
                self.assertEqual(self.tracked("vuid: [21]", *steps), of_21)

    def test_both_must_fit(self):
        self.needs_root()
        steps = ["emit", "uid:21,0,0", "fork", "emit"]
        self.assertEqual(self.tracked("vpid: [1, 2], vuid: [21, 22]", *steps), [(2, 1)])
        self.assertEqual(self.tracked("vpid: [1], vuid: [21]", *steps), [])


if __name__ == "__main__":
    unittest.main()
